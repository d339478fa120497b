// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "command/options.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kernel/interfaces.h"
#include "kernel/kernel.h"
#include "io/output.h"
#include "base/suggest.h"
#include "change/change.h"
#include "config/config.h"

#define OPTION_CODE 256 /* getopt returns this for the first option. It is no character. */
#define SECONDS_MAX 3600
#define DRIVER_NS_MAX 1000000
#define INTERVAL_MS_MAX (24 * 3600 * 1000)
#define COUNT_MAX 1000000000
#define TOP_MAX 100000
#define LIMIT_MAX 100000 /* so that --sort needs at most 100 MB */

#define TO(member) offsetof(struct options_arguments, member)
#define INTO(member) offsetof(struct options_arguments, invocation.member)

const struct option_row options_table[] = {
	{ "json", NULL, "print JSON, errors too", .to = TO(wants_json), .letter = 'j', .is_common = true },
	{ "quiet", NULL, "print only errors, warnings and what is exported", .to = TO(wants_quiet), .letter = 'q',
	  .is_common = true },
	{ "name", "NAME", "the filter and its rules (default: " SESSION_NAME_DEFAULT ")", VALUE_NAME, .to = INTO(name),
	  .is_common = true },
	{ "state", "DIR", "keep rules in DIR/NAME (default: " SESSION_STATE_DEFAULT ")", VALUE_TEXT, .to = INTO(state),
	  .is_common = true },
	{ "pins", "DIR", "where filters are pinned, for users without CAP_SYS_ADMIN", VALUE_TEXT, .to = INTO(pins),
	  .is_common = true },
	{ "help", NULL, "explain the command", .to = TO(wants_help), .letter = 'h', .is_common = true },
	{ "version", NULL, "print the version", .to = TO(wants_version), .letter = 'V', .is_common = true },
	{ "mode", "auto|native|skb", "where in the kernel the filter runs", VALUE_MODE, .to = INTO(load.mode),
	  .letter = 'm' },
	{ "capacity", "N", "rules that the table must hold", VALUE_RULES, .to = INTO(load.capacity) },
	{ "compact", NULL, "fingerprints only: less memory, less exact", .to = INTO(load.is_compact) },
	{ "fingerprint", "8|16|17|32", "bits of a fingerprint in a compact table", VALUE_FINGERPRINT,
	  .to = INTO(load.fingerprint_bits) },
	{ "no-counters", NULL, "do not count packets and bytes by rule", .to = INTO(load.has_no_counters) },
	{ "no-spare", NULL, "no room for a second table", .to = INTO(load.has_no_spare) },
	{ "monitor-only", NULL, "drop nothing, count what would be dropped", .to = INTO(load.is_monitor_only) },
	{ "outgoing", NULL, "also the packets that this host sends", .to = INTO(load.is_outgoing) },
	{ "format", "text|ipset|nft|spamhaus|csv|iptables|p2p|dshield", "format of the list", VALUE_TEXT,
	  .to = INTO(list_format) },
	{ "action", "drop|pass|monitor", "for rules without an action of their own", VALUE_ACTION, .to = INTO(action) },
	{ "new-only", NULL, "the rules match only packets that begin something", .to = INTO(is_new_only) },
	{ "set", "SET", "read only this set of ipset or nft", VALUE_TEXT, .to = INTO(set_name) },
	{ "json-path", "PATH", "where JSON has the addresses: .prefixes[].ip_prefix", VALUE_JSON,
	  .to = INTO(json_path) },
	{ "list", "NAME", "the rules of this list", VALUE_NAME, .to = INTO(list_name) },
	{ "replace", NULL, "delete the rules that the list does not name", .to = INTO(is_replace) },
	{ "dry-run", NULL, "say what would change, and change nothing", .to = INTO(is_dry_run) },
	{ "strict", NULL, "change nothing if a line is bad", .to = INTO(is_strict) },
	{ "timeout", "TIME", "for rules without a timeout of their own", VALUE_TIME, .to = INTO(timeout_ms) },
	{ "confirm", "TIME", "undo it unless `xdp-cuckoo confirm` comes within TIME", VALUE_TIME,
	  .to = INTO(confirm_ms), .max = WATCHDOG_MS_MAX },
	{ "force", NULL, "even if this host may lose its connections", .to = INTO(is_forced) },
	{ "exist", NULL, "no error if it is there already, or not there", .to = INTO(may_exist) },
	{ "counters", NULL, "with the packets and bytes of each rule", .to = INTO(wants_counters) },
	{ "all", NULL, "every filter of this network namespace", .to = INTO(is_all) },
	{ "seconds", "N", "how long", VALUE_WHOLE, .to = INTO(seconds), .max = SECONDS_MAX, .unit = "seconds" },
	{ "driver-ns", "N", "time of the driver for one packet", VALUE_WHOLE, .to = INTO(driver_ns),
	  .max = DRIVER_NS_MAX, .unit = "nanoseconds" },
	{ "interval", "TIME", "print rates after each TIME", VALUE_TIME, .to = INTO(interval_ms),
	  .max = INTERVAL_MS_MAX },
	{ "count", "N", "end after N intervals or packets", VALUE_WHOLE, .to = INTO(end_count), .max = COUNT_MAX,
	  .unit = "intervals or packets", .letter = 'c',
	  .elsewhere = "; to try an import write --dry-run; a configuration is named without an option" },
	{ "by", "interface|cpu|source|rule|list|prefix", "one row for each", VALUE_TEXT, .to = INTO(by) },
	{ "sort", "packets|bytes|end", "most packets or bytes first, or what ends first; needs --limit", VALUE_TEXT,
	  .to = INTO(sort) },
	{ "limit", "N", "at most N rules", VALUE_WHOLE, .to = INTO(limit), .max = LIMIT_MAX, .unit = "rules" },
	{ "long", NULL, "who added each rule by hand, and when", .to = INTO(is_long) },
	{ "search", "TEXT", "only rules with this text in their comment", VALUE_TEXT, .to = INTO(search) },
	{ "top", "N", "show at most N rows", VALUE_WHOLE, .to = INTO(top), .max = TOP_MAX, .unit = "rows" },
	{ "interface", "IFACE", "only packets of this interface", VALUE_TEXT, .to = INTO(interface), .letter = 'i' },
	{ "every", "N", "show one packet in N", VALUE_WHOLE, .to = INTO(every), .max = COUNT_MAX, .unit = "packets" },
	{ "rate", "N", "at most N packets per second on each CPU", VALUE_WHOLE, .to = INTO(rate),
	  .max = LISTENER_RATE_MAX, .unit = "packets a second" },
	{ "write", "FILE|-", "write pcapng", VALUE_TEXT, .to = INTO(write_path), .letter = 'w' },
	{ "on-stop", NULL, "only if the configuration says detach-on-stop", .to = INTO(is_on_stop) },
	{ "reset", NULL, "count from 0 again", .to = INTO(is_reset) },
	{ "verbose", NULL, "everything that is known", .to = INTO(is_verbose), .letter = 'v' },
	{ "numeric", NULL, "addresses and ports as numbers: they always are", .to = TO(wants_numbers), .letter = 'n' },
	{ "listen", "ADDRESS:PORT", "where to serve (default: " EXPORTER_LISTEN_DEFAULT ")", VALUE_TEXT,
	  .to = INTO(listen) },
	{ "config", "FILE", "the configuration (default: " CONFIG_DIR "/NAME.conf)", VALUE_TEXT,
	  .to = INTO(config_path) },
	{ "preset", "PRESET", "one of xdp-cuckoo lists presets", VALUE_TEXT, .to = INTO(preset) },
	{ "once", NULL, "end when all lists are level with the broker, or one fails", .to = INTO(is_once) },
	{ "accept", NULL, "apply what the broker has, whatever it deletes", .to = INTO(is_accepted) },
	{ "stage", NULL, "only for hosts with staged = yes", .to = INTO(is_staged) },
	{ "wait", "PERCENT", "wait until this share of the hosts has it", VALUE_WHOLE, .to = INTO(wait_percent),
	  .max = 100, .unit = "percent" },
	{ "addresses", NULL, "lines are addresses to block, and nothing else", .to = INTO(is_addresses) },
	{ "print", NULL, "only print the lines that batch takes", .to = INTO(is_printed) },
	{ .name = NULL },
};

#define OPTIONS (sizeof(options_table) / sizeof(options_table[0]) - 1)
_Static_assert(OPTIONS <= 64, "`given` has a bit for each option");

bool options_are_of(const struct option_row *row, const struct command *command)
{
	const size_t length = strlen(row->name);

	for (const char *at = command->usage; !row->is_common && (at = strstr(at, "--")); at += 2)
		if (!strncmp(at + 2, row->name, length) && (!at[2 + length] || strchr(" ]", at[2 + length])))
			return true;
	return row->is_common;
}

static enum command_status take_value(const struct option_row *row, const char *value, void *to)
{
	char option[32], most[RULE_TIME_BYTES], whole[24];

	snprintf(option, sizeof(option), "--%s", row->name);
	switch (row->kind) {
	case VALUE_NONE:
		*(bool *)to = true;
		return STATUS_DONE;
	case VALUE_NAME:
		if (value_parse(row->kind, value, to))
			return STATUS_DONE;
		return command_fail(STATUS_USAGE,
				    "%s '%s': must be 1 to %d letters, digits, '.', '_' or '-', and not start with "
				    "'.' or '-'",
				    option, value, ABI_NAME_BYTES - 1);
	case VALUE_MODE:
	case VALUE_ACTION:
		return value_parse(row->kind, value, to) ? STATUS_DONE :
							   command_fail_choices(option, value, row->value);
	case VALUE_RULES:
		return command_read_rule_count(option, value, to);
	case VALUE_WHOLE:
		snprintf(whole, sizeof(whole), "%s", value);
		if (!strcmp(row->unit, "percent") && strlen(whole) > 1 && whole[strlen(whole) - 1] == '%')
			whole[strlen(whole) - 1] = '\0';
		if (strlen(value) < sizeof(whole) && !count_parse(whole, to) && *(__u64 *)to <= row->max)
			return STATUS_DONE;
		return command_fail(STATUS_USAGE, "%s '%s': must be a whole number of %s, 1 to %llu%s", option, value,
				    row->unit, row->max,
				    row->elsewhere && !strchr("0123456789-", *value) ? row->elsewhere : "");
	default:
		if (!value_parse(row->kind, value, to))
			return command_fail(STATUS_USAGE, "%s '%s': must be %s", option, value,
					    value_must_be[row->kind]);
		if (row->kind == VALUE_TIME && row->max && *(__s64 *)to > (__s64)row->max)
			return command_fail(STATUS_USAGE, "%s '%s': must be at most %s", option, value,
					    rule_time_format(row->max, most));
		return STATUS_DONE;
	}
}

/* Options of other tools. Where a letter would mean several of our options, none is taken. */
static const struct advice foreign_options[] = {
	{ "A|I", "write the command: xdp-cuckoo add RULE" },
	{ "D", "write the command: xdp-cuckoo del RULE" },
	{ "C|T", "write the command: xdp-cuckoo test RULE" },
	{ "L|S", "write the command: xdp-cuckoo list" },
	{ "F", "write the command: xdp-cuckoo flush" },
	{ "Z", "write the command: xdp-cuckoo stats --reset" },
	{ "N", "a list comes into being by its import: xdp-cuckoo import FILE --list NAME" },
	{ "X", "to drop a list, write: xdp-cuckoo lists delete NAME" },
	{ "P", "write the command: xdp-cuckoo policy OUTCOME pass|drop" },
	{ "s", "words of a rule have no dashes: src ADDRESS; packets are counted by: xdp-cuckoo stats" },
	{ "d",
	  "to block: xdp-cuckoo add ADDRESS; an interval, of stats or top, is --interval TIME; words of a rule have no "
	  "dashes: dst ADDRESS" },
	{ "p", "words of a rule have no dashes: proto tcp; what no rule matches: xdp-cuckoo policy" },
	{ "f", "a file is named without an option: xdp-cuckoo import FILE; to insist write --force" },
	{ "a", "to let pass: xdp-cuckoo add ADDRESS action pass; write --all, with unload; list shows everything" },
	{ "td", "write the command: xdp-cuckoo add ADDRESS timeout TIME" },
	{ "ta", "write the command: xdp-cuckoo add ADDRESS action pass timeout TIME" },
	{ "dr|ar|tr", "write the command: xdp-cuckoo del ADDRESS" },
	{ "ttl|bantime|duration|expire|expires",
	  "a list, with import, takes --timeout TIME; a rule is written without dashes: timeout TIME" },
	{ "allow|pass|accept", "a list, with import, takes --action pass; a rule is written: add ADDRESS action pass" },
	{ "e|!|exist", "write --exist, with add, del, unload and lists delete" },
	{ "t",
	  "the names of lists are printed by: xdp-cuckoo lists; a rule ends by: timeout TIME, a list by --timeout TIME" },
	{ "r", "write --replace, --reset or --rate N" },
	{ "l", "write --list NAME, or the command: xdp-cuckoo list" },
	{ "o",
	  "output goes to standard output, and --json makes it JSON; a file is written by: xdp-cuckoo export FILE" },
	{ "k", "leave it out: the rules stay in the store" },
	{ "4|6", "leave it out: a rule is IPv4 or IPv6 by its address" },
	{ "br", "leave it out: output is short, and --json makes it JSON" },
	{ "name|terse", "the names of lists are printed by: xdp-cuckoo lists; a filter is --name NAME" },
	{ "line-numbers", "leave it out: rules have no numbers" },
	{ "grep|match|find", "rules with a text in their comment: xdp-cuckoo list --search TEXT" },
	{ "file", "a file is named without an option: xdp-cuckoo import FILE" },
	{ "check", "to try an import write --dry-run; a table is checked by: xdp-cuckoo check" },
	{ "type", "in a rule write type N; the format of a list is --format FORMAT" },
	{ "follow", "leave it out: monitor and top continue until you stop them" },
	{ "watch", "xdp-cuckoo top is live; stats repeats with --interval TIME" },
	{ "append|merge", "leave it out: import adds rules, unless --replace is given" },
	{ "flush", "to make a list equal to a file write --replace; rules are deleted by: xdp-cuckoo flush" },
	{ "size|maxelem", "write --capacity N" },
	{ "repair|fix", "leave it out: check repairs what it finds" },
	{ "color|no-color", "output on a terminal has colours, unless the variable NO_COLOR is set" },
	{ "generic", "write --mode generic" },
	{ "native", "write --mode native" },
	{ "skb", "write --mode skb" },
	{ "add-source", "write the command: xdp-cuckoo add ADDRESS" },
	{ "add-entry", "write the command: xdp-cuckoo add ADDRESS --list NAME" },
	{ "ipset", "write --list NAME" },
	{ "zone", "leave it out: a rule holds on all interfaces of the filter" },
};

/* What to type for an option of another tool: `name`, up to '='. NULL: not known. */
static const char *advise_foreign(const char *name)
{
	return advice_find(foreign_options, sizeof(foreign_options) / sizeof(foreign_options[0]), name,
			   strcspn(name, "="), true);
}

/* `word` is -x, -xyz, --xyz or --xyz=value. */
static enum command_status refuse_option(const char *word)
{
	const char *name = word + strspn(word, "-"), *advice = advise_foreign(name);
	struct suggest suggest = suggest_for_part(name, strcspn(name, "=")), shown;
	char text[SUGGEST_TEXT_BYTES];
	size_t matches = 0, used = 0;

	if (advice)
		return command_fail(STATUS_USAGE, "unknown option '%s'; %s", word, advice);
	if (word[1] >= '0' && word[1] <= '9')
		return command_fail(STATUS_USAGE,
				    "'%s': a number or a time is not negative; to delete a rule write: xdp-cuckoo del "
				    "RULE",
				    word);
	for (size_t i = 0; i < OPTIONS; i++)
		if (!strncmp(options_table[i].name, name, suggest.length) && used < sizeof(text))
			used += snprintf(text + used, sizeof(text) - used, "%s--%s", matches++ ? ", " : "",
					 options_table[i].name);
	if (!strncmp(word, "--", 2) && matches > 1)
		return command_fail(STATUS_USAGE, "option '%s' is short for several: %s", word, text);
	if (rule_keyword_of(name))
		return command_fail(STATUS_USAGE, "unknown option '%s'; words of a rule have no dashes: %s", word,
				    rule_keyword_of(name));
	/* firewall-cmd has --reload. */
	if (command_is_known(name) && !command_find(name))
		return command_fail_unknown(name);
	if (command_find(name))
		return command_fail(STATUS_USAGE, "unknown option '%s'; a command has no dashes: xdp-cuckoo %s", word,
				    name);
	for (size_t i = 0; i < OPTIONS; i++)
		suggest_offer(&suggest, options_table[i].name);
	shown = suggest;
	if (*suggest.nearest)
		snprintf(shown.nearest, sizeof(shown.nearest), "--%.*s", SUGGEST_WORD_BYTES - 3, suggest.nearest);
	return command_fail(STATUS_USAGE, "unknown option '%s'%s", word, suggest_text(&shown, "xdp-cuckoo help", text));
}

/* A word like -nvL is several letters, of which `letter` is unknown. A word like -exist is one option of another tool. */
static enum command_status refuse_letter(char letter, char **argv)
{
	const char *next = argv[optind], *at = next && *next == '-' ? strchr(next + 1, letter) : NULL;
	/* getopt moves past such a word only after its last letter. */
	const char *word = at && at[1] ? next : argv[optind - 1];
	const char alone[] = { '-', letter, '\0' };
	bool is_option = advise_foreign(word + 1) || rule_keyword_of(word + 1) || command_is_known(word + 1);

	for (size_t i = 0; i < OPTIONS; i++)
		is_option |= !strcmp(options_table[i].name, word + 1);
	return refuse_option(is_option ? word : alone);
}

/* The row of a letter, or of what getopt returns for a long option; NULL: there is none. */
static const struct option_row *row_of(int code)
{
	for (size_t i = 0; i < OPTIONS && code; i++)
		if (options_table[i].letter == code || OPTION_CODE + (int)i == code)
			return &options_table[i];
	return NULL;
}

enum command_status options_read(int argc, char **argv, struct options_arguments *arguments)
{
	struct option options[OPTIONS + 1] = {};
	char letters[2 * OPTIONS + 2] = ":";
	enum command_status status = STATUS_DONE;
	size_t used = strlen(letters);
	int option;

	for (size_t i = 0; i < OPTIONS; i++) {
		const struct option_row *row = &options_table[i];

		options[i] = (struct option){ row->name, row->value != NULL, NULL, OPTION_CODE + i };
		if (row->letter)
			letters[used++] = row->letter;
		if (row->letter && row->value)
			letters[used++] = ':';
	}
	/* --json comes first, so that an error in an option before it is JSON too. */
	for (int i = 1; i < argc && strcmp(argv[i], "--"); i++) {
		const bool is_glued = !strncmp(argv[i], "-j", 2) && argv[i][2];
		const char *next = is_glued ? argv[i] + 2 : !strcmp(argv[i], "-j") && i + 1 < argc ? argv[i + 1] : "";

		if (suggest_has("DROP|REJECT|ACCEPT|RETURN|LOG", next, strlen(next), true))
			return command_fail(STATUS_USAGE,
					    "'-j %s': -j is --json here; write what a rule does as: action drop, pass or monitor",
					    next);
		if (!strcmp(argv[i], "--json") || !strcmp(argv[i], "-j"))
			output_use_json(true);
	}
	/* The advice for a command of another tool is better than that for its options. */
	if (argc > 1 && *argv[1] != '-' && !command_find(argv[1]))
		return command_fail_unknown(argv[1]);
	opterr = 0;
	while (status == STATUS_DONE && (option = getopt_long(argc, argv, letters, options, NULL)) != -1) {
		/* An option without a value that it needs, or with one that it does not take, is in `optopt`. */
		const struct option_row *row = row_of(option == '?' || option == ':' ? optopt : option);

		if (!row)
			status = optopt ? refuse_letter(optopt, argv) : refuse_option(argv[optind - 1]);
		else if (option == ':')
			status = command_fail(STATUS_USAGE, "'%s' needs a value: --%s %s", argv[optind - 1], row->name,
					      row->value);
		else if (option == '?')
			status = command_fail(STATUS_USAGE, "'%s': --%s takes no value", argv[optind - 1], row->name);
		else
			status = take_value(row, optarg, (char *)arguments + row->to);
		arguments->invocation.has_action |= row && row->to == INTO(action);
		arguments->given |= row ? 1ULL << (row - options_table) : 0;
		arguments->invocation.is_named |= row && row->to == INTO(name);
		if (arguments->wants_json)
			output_use_json(true);
	}
	if (arguments->invocation.pins)
		kernel_use_pins(arguments->invocation.pins);
	return status;
}

void options_give(struct options_arguments *arguments, const char *name)
{
	for (size_t i = 0; i < OPTIONS; i++)
		if (!strcmp(options_table[i].name, name)) {
			*(bool *)((char *)arguments + options_table[i].to) = true;
			arguments->given |= 1ULL << i;
		}
}

/*
 * What to type instead of an option that only other commands take. NULL: any command, any option. The usual advice, to leave the
 * option out, would be bad for --dry-run: the change would then be made in earnest.
 */
static const struct {
	const char *commands, *option, *advice;
} strays[] = {
	{ "load", "interface", "name the interface without an option: xdp-cuckoo load IFACE" },
	{ "unload", "interface", "name the interface without an option: xdp-cuckoo unload IFACE" },
	{ "stats", "interface", "write stats IFACE, --by interface or --interval TIME" },
	{ "top", "interface", "write --interval TIME, or xdp-cuckoo stats --by interface" },
	{ "import|lists", "numeric", "to try it write --dry-run" },
	{ "stats|top", "numeric", "write --count N" },
	{ "del|flush", "all", "to delete all rules: xdp-cuckoo flush" },
	{ "resize", "capacity", "write the number alone: xdp-cuckoo resize N" },
	{ "load", "dry-run", "load --monitor-only drops nothing, and counts what it would drop" },
	{ NULL, "dry-run",
	  "only add, del, flush, import, restore, refresh, publish, up and lists delete can be tried" },
	{ "up", "confirm", "to try the filter: xdp-cuckoo load IFACE --confirm TIME" },
	{ NULL, "confirm", "only load, add, del, flush, import, restore, policy and lists delete can be undone" },
	{ "add", "monitor-only", "to try a rule write action monitor" },
	{ NULL, "monitor-only", "to drop nothing, and count: xdp-cuckoo monitor-only on" },
	{ "restore", NULL, "a backup is restored as a whole; for a list: xdp-cuckoo import FILE" },
	{ "list", "verbose", "packets of each rule are printed by: xdp-cuckoo list --counters" },
};

static enum command_status refuse_stray(const struct command *command, const struct option_row *row)
{
	const char letter[] = { row->letter, '\0' };

	/* Without its timeout or its action a rule would be another. */
	if (strstr(command->usage, "RULE") && rule_keyword_of(row->name))
		return command_fail(STATUS_USAGE,
				    "%s does not take the option --%s: words of a rule have no dashes: %s %s",
				    command->name, row->name, row->name, row->value);
	for (size_t i = 0; i < sizeof(strays) / sizeof(strays[0]); i++)
		if ((!strays[i].commands ||
		     suggest_has(strays[i].commands, command->name, strlen(command->name), true)) &&
		    (!strays[i].option || !strcmp(strays[i].option, row->name)))
			return command_fail(STATUS_USAGE, "%s does not take the option --%s%s%s: %s", command->name,
					    row->name, *letter ? " or -" : "", letter, strays[i].advice);
	return command_fail(STATUS_USAGE, "%s does not take the option --%s: leave it out; usage: xdp-cuckoo %s%s%s",
			    command->name, row->name, command->name, *command->usage ? " " : "", command->usage);
}

enum command_status options_check(const struct command *command, const struct options_arguments *arguments)
{
	const bool takes_rule = strstr(command->usage, "RULE");
	const int count = arguments->invocation.count;
	/* "import FILE replace", "load eth0 mode=skb": options have dashes. An interface or a file may have that name. */
	for (int k = 0; k < count && !takes_rule; k++)
		for (const struct option_row *row = options_table; row->name; row++) {
			const char *word = arguments->invocation.operands[k];
			const size_t length = strcspn(word, "=");
			const bool has_more = row->value && !word[length];

			if (!row->is_common && options_are_of(row, command) && strlen(row->name) == length &&
			    !memcmp(row->name, word, length) && access(word, F_OK) && !interfaces_index(word))
				return command_fail(STATUS_USAGE, "%s '%s': this is an option, so write --%s%s%s",
						    command->name, word, word, has_more ? " " : "",
						    has_more ? row->value : "");
		}
	for (size_t i = 0; i < OPTIONS; i++)
		if (arguments->given & 1ULL << i && !options_are_of(&options_table[i], command))
			return refuse_stray(command, &options_table[i]);
	if (arguments->invocation.is_dry_run && arguments->invocation.confirm_ms)
		return command_fail(STATUS_USAGE, "--dry-run changes nothing that --confirm could undo");
	if (command->instead && count > command->max)
		return command_fail(STATUS_USAGE, "%s: too many words: '%s'; %s", command->name,
				    arguments->invocation.operands[command->max], command->instead);
	if (count < command->min && !strncmp(command->usage, "FILE", 4) && strstr(command->usage, "|-"))
		return command_fail(STATUS_USAGE, "%s: which FILE? - is standard input", command->name);
	if (count < command->min || (command->max >= 0 && count > command->max))
		return command_fail(STATUS_USAGE, "%s: too %s words; usage: xdp-cuckoo %s%s%s", command->name,
				    count < command->min ? "few" : "many", command->name, *command->usage ? " " : "",
				    command->usage);
	return STATUS_DONE;
}
