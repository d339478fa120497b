// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The commands of all programs, in the order in which help shows them. */
#include <string.h>

#include "command/command.h"
#include "base/suggest.h"

/* clang-format off */
const struct command_row command_table[] = {
	{ "load", PROGRAM_TOOL, COMMAND_RUN, "run the filter on interfaces", true },
	{ "unload", PROGRAM_TOOL, COMMAND_RUN, "take the filter off interfaces", true },
	{ "status", PROGRAM_TOOL, COMMAND_LOOK, "show the stored rules and the running filters", true },
	{ "stats", PROGRAM_TOOL, COMMAND_LOOK, "show how many packets were passed and dropped, and why", true },
	{ "top", PROGRAM_WATCH, COMMAND_LOOK, "watch what is passed and dropped, live", true },
	{ "add", PROGRAM_TOOL, COMMAND_RULES, "add a rule", true },
	{ "del", PROGRAM_TOOL, COMMAND_RULES, "delete a rule", true },
	{ "test", PROGRAM_TOOL, COMMAND_RULES, "say whether these packets are blocked, and by which rule", true },
	{ "list", PROGRAM_TOOL, COMMAND_RULES, "print all rules, or those of a list", true },
	{ "flush", PROGRAM_TOOL, COMMAND_RULES, "delete all rules, or those of one list", false },
	{ "import", PROGRAM_TOOL, COMMAND_RULES, "add the rules of a list, or make the rules equal to it", true },
	{ "export", PROGRAM_TOOL, COMMAND_RULES, "write all rules, or those of a list, as a list", false },
	{ "backup", PROGRAM_TOOL, COMMAND_RULES, "write all that is stored: rules, lists, policies", false },
	{ "restore", PROGRAM_TOOL, COMMAND_RULES, "make rules, lists and policies equal to a backup", false },
	{ "lists", PROGRAM_TOOL, COMMAND_RULES, "show the named lists, the flows of one, or known providers; delete a list", false },
	{ "refresh", PROGRAM_FEED, COMMAND_RULES, "fetch the lists by URL that are due, or the lists of these names", false },
	{ "batch", PROGRAM_TOOL, COMMAND_RULES, "run add, del and test lines, one after the other", false },
	{ "flowspec", PROGRAM_FEED, COMMAND_RULES, "keep a list equal to the flows that BGP announces", false },
	{ "crowdsec", PROGRAM_FEED, COMMAND_RULES, "keep a list equal to the decisions of CrowdSec", false },
	{ "expire", PROGRAM_TOOL, COMMAND_RULES, "delete the rules that have ended", false },
	{ "monitor", PROGRAM_WATCH, COMMAND_LOOK, "show packets as they are dropped, or would be", false },
	{ "policy", PROGRAM_TOOL, COMMAND_RUN, "show or set the verdict for packets that no rule decides about", false },
	{ "monitor-only", PROGRAM_TOOL, COMMAND_RUN, "count what would be dropped, and drop nothing", false },
	{ "panic", PROGRAM_TOOL, COMMAND_RUN, "pass everything at once; off: filter again", true },
	{ "confirm", PROGRAM_TOOL, COMMAND_RUN, "keep what a --confirm TIME would undo", true },
	{ "fleet", PROGRAM_FLEET, COMMAND_FLEET, "make a fleet on a broker, or show its hosts", false },
	{ "publish", PROGRAM_FLEET, COMMAND_FLEET, "change a list of a fleet: all its hosts follow", false },
	{ "follow", PROGRAM_FLEET, COMMAND_FLEET, "keep lists of this host equal to those of a fleet", false },
	{ "up", PROGRAM_TOOL, COMMAND_RUN, "load filter, policies and lists as a configuration file says", false },
	{ "resize", PROGRAM_TOOL, COMMAND_RUN, "give the running tables room for N rules", false },
	{ "object", PROGRAM_TOOL, COMMAND_RUN, "write the program to a file, for xdp-loader and other loaders", false },
	{ "check", PROGRAM_TOOL, COMMAND_LOOK, "compare the running tables with the store, and repair them", false },
	{ "bench", PROGRAM_BENCH, COMMAND_LOOK, "measure what the filter costs a packet on this machine", false },
	{ "metrics", PROGRAM_EXPORTER, COMMAND_LOOK, "print the state of all running filters for Prometheus", false },
	{ "exporter", PROGRAM_EXPORTER, COMMAND_LOOK, "serve the state of all running filters to Prometheus", false },
	{ "help", PROGRAM_TOOL, COMMAND_TOOL, "explain the tool or a command", false },
	{ "complete", PROGRAM_TOOL, COMMAND_HIDDEN, "print what the last word may become", false },
	{ .name = NULL },
};
/* clang-format on */

/* What older versions and other tools call these commands. Each name means one command, with the same words after it. */
static const struct {
	const char *names, *command;
	const char *word; /* comes before them: a word, or an option; NULL: none */
} aliases[] = {
	{ "down", "unload", "--all" },
	{ "check-config", "up", "--dry-run" },
	{ "version", "help", "--version" },
	{ "attach|start", "load", NULL },
	{ "detach", "unload", NULL },
	{ "insert|block|ban|deny|drop|banip", "add", NULL },
	{ "rm|remove|delete|unblock|unban|unbanip", "del", NULL },
	{ "show|ls|rules|banned|blocked", "list", NULL },
	{ "get|query|lookup|check-ip", "test", NULL },
	{ "save|dump", "export", NULL },
	{ "clear", "flush", NULL },
	{ "watch|log|logs", "monitor", NULL },
	{ "info|filters|interfaces", "status", NULL },
	{ "counters|stat", "stats", NULL },
	{ "allow", "add", "pass" },
	{ "policies", "policy", NULL },
	{ "man", "help", NULL },
	{ "destroy", "lists", "delete" },
	{ "default", "policy", "no-rule" },
};

/* Words for which no single command is right, and what to type. */
static const struct advice advices[] = {
	{ "config", "to check /etc/xdp-cuckoo/default.conf: xdp-cuckoo up --dry-run; to apply it: xdp-cuckoo up" },
	{ "pass|accept|permit|whitelist|allowlist|trust",
	  "write: xdp-cuckoo add ADDRESS action pass; for a file: import FILE --list NAME --action pass" },
	{ "blacklist|blocklist|blackhole|nullroute",
	  "write: xdp-cuckoo add ADDRESS; for a file: xdp-cuckoo import FILE --list NAME" },
	{ "reject", "no answer is sent to a blocked packet; write: xdp-cuckoo add ADDRESS" },
	{ "stop|disable|off|kill",
	  "to pass everything at once: xdp-cuckoo panic; to take the filter off: xdp-cuckoo unload IFACE" },
	{ "bypass",
	  "to pass everything at once: xdp-cuckoo panic; to drop nothing and count: xdp-cuckoo monitor-only on" },
	{ "dry-run", "to try an import write --dry-run; to drop nothing and count: xdp-cuckoo monitor-only on" },
	{ "on|enable", "after panic: xdp-cuckoo panic off; on an interface: xdp-cuckoo load IFACE" },
	{ "restart", "nothing needs a restart: changes are active at once; after an upgrade: xdp-cuckoo up" },
	{ "reload|apply", "changes are active at once; to apply the configuration file: xdp-cuckoo up" },
	{ "undo|rollback|revert|cancel",
	  "only a change made with --confirm TIME can be undone; it undoes itself after TIME. Otherwise: xdp-cuckoo del RULE" },
	{ "decisions|tempban",
	  "write: xdp-cuckoo add ADDRESS timeout 1h, del or list; those of CrowdSec are read by: xdp-cuckoo crowdsec" },
	{ "commit", "each change is stored and active at once; after --confirm TIME: xdp-cuckoo confirm" },
	{ "reset", "to count from 0: xdp-cuckoo stats --reset" },
	{ "zero", "to count from 0: xdp-cuckoo stats --reset" },
	{ "swap|replace", "an import replaces a list at once: xdp-cuckoo import FILE --list NAME --replace" },
	{ "update|sync|fetch",
	  "for a list from a file: xdp-cuckoo import FILE --list NAME --replace; by URL: xdp-cuckoo refresh" },
	{ "rename", "import it under the new name, then: xdp-cuckoo lists delete NAME" },
	{ "create|new", "a list comes into being by its import: xdp-cuckoo import FILE --list NAME" },
	{ "capacity|grow|maxelem", "a table grows by itself; to set its size: xdp-cuckoo resize N" },
	{ "find|search|why", "write: xdp-cuckoo test ADDRESS, or xdp-cuckoo list ADDRESS" },
	{ "verify|repair|fsck", "write: xdp-cuckoo check, which also repairs tables" },
	{ "cleanup|gc", "rules that have ended are deleted by: xdp-cuckoo expire" },
	{ "tail|tcpdump|logging", "xdp-cuckoo monitor shows dropped packets as they happen" },
	{ "count", "rules are counted by: xdp-cuckoo status, or lists; packets by: xdp-cuckoo stats" },
	{ "dev", "write the command first: xdp-cuckoo status; load, stats and monitor take an interface" },
	{ "set", "a rule: xdp-cuckoo add RULE; a setting: xdp-cuckoo policy, or the configuration file" },
	{ "interface|link|net|prog", "xdp-cuckoo status shows the interfaces; xdp-cuckoo load IFACE adds one" },
	{ "map", "xdp-cuckoo status shows the tables; xdp-cuckoo list the rules" },
	{ "ip", "write: xdp-cuckoo add ADDRESS, or xdp-cuckoo test ADDRESS" },
	{ "port", "write: xdp-cuckoo add dport N, or xdp-cuckoo test dport N" },
	{ "table", "write the command first: xdp-cuckoo list, add, del, flush" },
	{ "permanent", "each change is stored at once: leave it out" },
	{ "list-all", "write: xdp-cuckoo status, and xdp-cuckoo list" },
	{ "panic-on", "write: xdp-cuckoo panic, which passes everything" },
	{ "panic-off", "write: xdp-cuckoo panic off" },
	{ "rule", "write the command first: xdp-cuckoo add RULE, or list, del, test" },
	{ "limit", "packets above a rate are dropped by a rule with a rate: xdp-cuckoo add ADDRESS rate 1000/s" },
	{ "ether", "rules match IP addresses, not Ethernet addresses; nft matches both" },
	{ "poll", "write: xdp-cuckoo top, or xdp-cuckoo stats --interval 1s" },
	{ "ping|is-active", "xdp-cuckoo status says whether packets reach the filter" },
	{ "showconf", "rules and settings are printed by: xdp-cuckoo backup; the state by: xdp-cuckoo status" },
	{ "setconf|syncconf", "write: xdp-cuckoo up [FILE]; for a list: xdp-cuckoo import FILE --list NAME --replace" },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

const struct command_row *command_find(const char *name)
{
	for (size_t i = 0; i < COUNT(aliases); i++)
		if (suggest_has(aliases[i].names, name, strlen(name), false))
			name = aliases[i].command;
	for (const struct command_row *row = command_table; row->name; row++)
		if (!strcasecmp(row->name, name))
			return row;
	return NULL;
}

const char *command_aliases(size_t index, const char **command, const char **word)
{
	if (index >= COUNT(aliases))
		return NULL;
	*command = aliases[index].command;
	*word = aliases[index].word;
	return aliases[index].names;
}

const char *command_alias_word(const char *name)
{
	for (size_t i = 0; i < COUNT(aliases); i++)
		if (suggest_has(aliases[i].names, name, strlen(name), false))
			return aliases[i].word;
	return NULL;
}

static const char *find_advice(const char *name)
{
	return advice_find(advices, COUNT(advices), name, strlen(name), false);
}

bool command_is_known(const char *name)
{
	return find_advice(name) || command_find(name);
}

enum command_status command_fail_unknown(const char *name)
{
	/* "panic=on" is near to panic. */
	struct suggest suggest = suggest_for_part(name, strcspn(name, "="));
	char text[SUGGEST_TEXT_BYTES];

	if (find_advice(name))
		return command_fail(STATUS_USAGE, "no command '%s'; %s", name, find_advice(name));
	if (rule_keyword_of(name))
		return command_fail(STATUS_USAGE,
				    "no command '%s'; write: xdp-cuckoo add %s ..., or xdp-cuckoo test %s ...", name,
				    name, name);
	/* An address first is a question about it, or a rule without `add`. */
	if (strpbrk(name, ".:"))
		return command_fail(STATUS_USAGE,
				    "'%.60s' is no command; write: xdp-cuckoo add %.60s, or xdp-cuckoo test %.60s",
				    name, name, name);
	for (const struct command_row *row = command_table; row->name; row++)
		if (row->group != COMMAND_HIDDEN)
			suggest_offer(&suggest, row->name);
	for (size_t i = 0; i < COUNT(aliases); i++)
		suggest_offer_choices(&suggest, aliases[i].names);
	return command_fail(STATUS_USAGE, "no command '%s'%s", name, suggest_text(&suggest, "xdp-cuckoo help", text));
}
