// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* import: the rules of a list, in one change: beside what is there, or in its place. */
#include "commands/command.h"
#include "lists/import.h"
#include "lists/list.h"
#include "io/output.h"

static enum command_status run_import(const struct invocation *invocation);

const struct command command_import = {
	.name = "import",
	.group = COMMAND_RULES,
	.usage = "FILE|- [--list NAME] [--replace] [--format text|ipset|nft|spamhaus|csv] [--dry-run] [--strict] "
		 "[--timeout TIME] [--confirm TIME] [--force]",
	.summary = "add the rules of a list, or make the rules equal to it",
	.help = "One change: durable and active as a whole when it returns, or not at all. The format is told from\n"
		"the content, or named:\n"
		"  text      a rule, address, prefix or range A-B a line, # and ; start a comment; FireHOL netset\n"
		"  ipset     ipset save: the first address is the source, the second the destination, the port the\n"
		"            destination's; nomatch makes a pass rule, which wins over every drop rule\n"
		"  nft       nft -j list set, or of many sets: as with ipset; of two services the first is the source's\n"
		"            port. Take only the sets you mean: a set does not say whether it drops\n"
		"  spamhaus  DROP, text or JSON lines; the SBL number becomes the comment\n"
		"  csv       the first line names the columns: src, sport, dst, dport, proto, type, code, action,\n"
		"            timeout, comment, or usual names for these; all others are left out. A row without an\n"
		"            address is bad, unless there are both a column src and a column dst\n"
		"Ranges become the fewest prefixes. Bad lines are named with file, line and word, and left out; then the\n"
		"status is 2. Where a rule is there already, its timeout is updated; without --replace one that is there\n"
		"for good stays so, and keeps its comment. One that ends by itself takes the comment of the line, if\n"
		"there is one. With --replace the comments are those of the file. A rule that others have as well keeps\n"
		"its comment in any case.\n"
		"  --list NAME     the rules are those of the list NAME, beside others' and those added by hand. A rule\n"
		"                  stays until the last who has it gives it up, or del deletes it; its comment is that of\n"
		"                  the first, and its timeout counts once nobody has it for good: of several the latest\n"
		"                  end, also when the one that asked for that has given the rule up\n"
		"  --replace       with --list: makes the rules of that list equal to the file, and leaves all others.\n"
		"                  Without: deletes everything that the file does not name; where lists have rules that\n"
		"                  needs --force. Changes only what differs; packets meet the old rules or the new ones,\n"
		"                  nothing between\n"
		"  --dry-run       says what would be added, updated, kept and removed, and changes nothing\n"
		"  --strict        changes nothing if any line is bad\n"
		"  --timeout TIME  for rules that name none\n"
		"  --confirm TIME  undoes all of it unless `xdp-cuckoo confirm` comes within TIME, from when it is\n"
		"                  done. What other commands change meanwhile stays, of the same rules too\n"
		"  --force         also where it blocks this host's own addresses, its default gateway, its name\n"
		"                  servers or the SSH session this is typed in; --replace by an empty list, or of lists\n"
		"                  by what is in none\n"
		"\n"
		"  xdp-cuckoo import firehol_level1.netset --replace --strict\n"
		"  xdp-cuckoo import drop.txt --list spamhaus --replace\n"
		"  ipset save | xdp-cuckoo import - --dry-run\n"
		"  nft -j list set inet filter blocked | xdp-cuckoo import - --confirm 30s\n"
		"  zcat list.csv.gz | xdp-cuckoo import - --format csv --timeout 1d\n",
	.options = OPTION_LIST | OPTION_LIST_FORMAT | OPTION_REPLACE | OPTION_DRY_RUN | OPTION_STRICT | OPTION_TIMEOUT |
		   OPTION_CONFIRM | OPTION_FORCE,
	.min = 1,
	.max = 1,
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ | PRIVILEGE_SSH,
	.run = run_import,
};

static enum command_status check_options(const struct invocation *invocation)
{
	const char *format = invocation->list_format;

	if (format && !list_format_named(format))
		return command_not_a_choice("--format", format, "text|ipset|nft|spamhaus|csv");
	if (invocation->is_dry_run && invocation->confirm_ms)
		return command_error(STATUS_USAGE, "--dry-run changes nothing that --confirm could undo");
	return STATUS_DONE;
}

static enum command_status run_import(const struct invocation *invocation)
{
	struct import_result result;
	struct reason reason;
	int error;

	if (check_options(invocation))
		return STATUS_USAGE;
	error = import_list(invocation, invocation->operands[0], &result, &reason);
	output_print(result.answer);
	if (!error && result.deadline_ms)
		command_report_confirm(invocation, result.deadline_ms);
	if (error)
		return command_failed(error, &reason);
	return result.bad_lines ? STATUS_USAGE : STATUS_DONE;
}
