// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* All commands, in the order in which help shows them. */
#include <string.h>

#include "commands/command.h"
#include "base/suggest.h"

extern const struct command command_load, command_unload, command_status, command_stats;
extern const struct command command_add, command_del, command_test, command_list, command_flush;
extern const struct command command_import, command_export, command_resize, command_check, command_help;
extern const struct command command_batch, command_expire, command_version;
extern const struct command command_policy, command_monitor_only, command_panic, command_confirm;
extern const struct command command_bench, command_metrics, command_exporter, command_complete, command_monitor;
extern const struct command command_top, command_lists, command_up, command_down, command_check_config;
extern const struct command command_fleet, command_publish, command_follow, command_flowspec, command_refresh;
extern const struct command command_object, command_backup, command_restore;

/* clang-format off */
const struct command *const command_table[] = {
	&command_load,
	&command_unload,
	&command_status,
	&command_stats,
	&command_top,
	&command_add,
	&command_del,
	&command_test,
	&command_list,
	&command_flush,
	&command_import,
	&command_export,
	&command_backup,
	&command_restore,
	&command_lists,
	&command_refresh,
	&command_batch,
	&command_flowspec,
	&command_expire,
	&command_monitor,
	&command_policy,
	&command_monitor_only,
	&command_panic,
	&command_confirm,
	&command_fleet,
	&command_publish,
	&command_follow,
	&command_up,
	&command_down,
	&command_check_config,
	&command_resize,
	&command_object,
	&command_check,
	&command_bench,
	&command_metrics,
	&command_exporter,
	&command_help,
	&command_version,
	&command_complete,
	NULL,
};
/* clang-format on */

/* What other tools call these commands. Each name means one command, with the same words after it. */
static const struct {
	const char *name, *command;
	const char *word; /* comes before them; NULL: none */
} aliases[] = {
	{ "attach", "load", NULL },
	{ "start", "load", NULL },
	{ "detach", "unload", NULL },
	{ "insert", "add", NULL },
	{ "block", "add", NULL },
	{ "ban", "add", NULL },
	{ "deny", "add", NULL },
	{ "drop", "add", NULL },
	{ "rm", "del", NULL },
	{ "remove", "del", NULL },
	{ "delete", "del", NULL },
	{ "unblock", "del", NULL },
	{ "unban", "del", NULL },
	{ "show", "list", NULL },
	{ "ls", "list", NULL },
	{ "rules", "list", NULL },
	{ "get", "test", NULL },
	{ "query", "test", NULL },
	{ "lookup", "test", NULL },
	{ "banip", "add", NULL },
	{ "unbanip", "del", NULL },
	{ "check-ip", "test", NULL },
	{ "save", "export", NULL },
	{ "dump", "export", NULL },
	{ "clear", "flush", NULL },
	{ "watch", "monitor", NULL },
	{ "info", "status", NULL },
	{ "counters", "stats", NULL },
	{ "allow", "add", "pass" },
	{ "log", "monitor", NULL },
	{ "logs", "monitor", NULL },
	{ "stat", "stats", NULL },
	{ "banned", "list", NULL },
	{ "blocked", "list", NULL },
	{ "policies", "policy", NULL },
	{ "filters", "status", NULL },
	{ "interfaces", "status", NULL },
	{ "man", "help", NULL },
	{ "destroy", "lists", "delete" },
	{ "default", "policy", "no-rule" },
};

/* Words for which no single command is right, and what to type. */
static const struct {
	const char *name, *advice;
} advices[] = {
	{ "config", "to check /etc/xdp-cuckoo/default.conf: xdp-cuckoo check-config; to apply it: xdp-cuckoo up" },
	{ "pass", "write: xdp-cuckoo add ADDRESS action pass" },
	{ "accept", "write: xdp-cuckoo add ADDRESS action pass" },
	{ "permit", "write: xdp-cuckoo add ADDRESS action pass" },
	{ "whitelist", "write: xdp-cuckoo add ADDRESS action pass" },
	{ "allowlist", "write: xdp-cuckoo add ADDRESS action pass; for a file: import FILE --list NAME --action pass" },
	{ "trust", "write: xdp-cuckoo add ADDRESS action pass" },
	{ "blacklist", "write: xdp-cuckoo add ADDRESS; for a file: xdp-cuckoo import FILE --list NAME" },
	{ "blocklist", "write: xdp-cuckoo add ADDRESS; for a file: xdp-cuckoo import FILE --list NAME" },
	{ "blackhole", "write: xdp-cuckoo add ADDRESS" },
	{ "nullroute", "write: xdp-cuckoo add ADDRESS" },
	{ "tempban", "write: xdp-cuckoo add ADDRESS timeout 1h" },
	{ "reject", "no answer is sent to a blocked packet; write: xdp-cuckoo add ADDRESS" },
	{ "stop", "to pass everything at once: xdp-cuckoo panic; to take the filter off: xdp-cuckoo unload IFACE" },
	{ "disable", "to pass everything at once: xdp-cuckoo panic; to take the filter off: xdp-cuckoo unload IFACE" },
	{ "off", "to pass everything at once: xdp-cuckoo panic; to take the filter off: xdp-cuckoo unload IFACE" },
	{ "kill", "to pass everything at once: xdp-cuckoo panic; to take the filter off: xdp-cuckoo unload IFACE" },
	{ "bypass",
	  "to pass everything at once: xdp-cuckoo panic; to drop nothing and count: xdp-cuckoo monitor-only on" },
	{ "dry-run", "to try an import write --dry-run; to drop nothing and count: xdp-cuckoo monitor-only on" },
	{ "on", "after panic: xdp-cuckoo panic off; on an interface: xdp-cuckoo load IFACE" },
	{ "enable", "after panic: xdp-cuckoo panic off; on an interface: xdp-cuckoo load IFACE" },
	{ "restart", "nothing needs a restart: changes are active at once; after an upgrade: xdp-cuckoo up" },
	{ "reload", "changes are active at once; to apply the configuration file: xdp-cuckoo up" },
	{ "apply", "changes are active at once; to apply the configuration file: xdp-cuckoo up" },
	{ "undo", "only a change made with --confirm TIME can be undone; it undoes itself after TIME. Otherwise: "
		  "xdp-cuckoo del RULE" },
	{ "rollback", "only a change made with --confirm TIME can be undone; it undoes itself after TIME" },
	{ "revert", "only a change made with --confirm TIME can be undone; it undoes itself after TIME" },
	{ "commit", "each change is stored and active at once; after --confirm TIME: xdp-cuckoo confirm" },
	{ "cancel", "only a change made with --confirm TIME can be undone; it undoes itself after TIME" },
	{ "reset", "to count from 0: xdp-cuckoo stats --reset; to delete all rules: xdp-cuckoo flush" },
	{ "zero", "to count from 0: xdp-cuckoo stats --reset" },
	{ "swap", "an import replaces a list at once: xdp-cuckoo import FILE --list NAME --replace" },
	{ "replace", "an import replaces a list at once: xdp-cuckoo import FILE --list NAME --replace" },
	{ "update",
	  "for a list from a file: xdp-cuckoo import FILE --list NAME --replace; by URL: xdp-cuckoo refresh" },
	{ "sync", "for a list from a file: xdp-cuckoo import FILE --list NAME --replace; by URL: xdp-cuckoo refresh" },
	{ "fetch", "lists by URL are fetched by: xdp-cuckoo refresh" },
	{ "rename", "import it under the new name, then: xdp-cuckoo lists delete NAME" },
	{ "create", "a list comes into being by its import: xdp-cuckoo import FILE --list NAME" },
	{ "new", "a list comes into being by its import: xdp-cuckoo import FILE --list NAME" },
	{ "capacity", "a table grows by itself; to set its size: xdp-cuckoo resize N" },
	{ "grow", "a table grows by itself; to set its size: xdp-cuckoo resize N" },
	{ "maxelem", "a table grows by itself; to set its size: xdp-cuckoo resize N" },
	{ "find", "write: xdp-cuckoo test ADDRESS, or xdp-cuckoo list ADDRESS" },
	{ "search", "write: xdp-cuckoo test ADDRESS, or xdp-cuckoo list ADDRESS" },
	{ "why", "write: xdp-cuckoo test ADDRESS, or xdp-cuckoo list ADDRESS" },
	{ "verify", "write: xdp-cuckoo check, which also repairs tables" },
	{ "repair", "write: xdp-cuckoo check, which also repairs tables" },
	{ "fsck", "write: xdp-cuckoo check, which also repairs tables" },
	{ "cleanup", "rules that have ended are deleted by: xdp-cuckoo expire" },
	{ "gc", "rules that have ended are deleted by: xdp-cuckoo expire" },
	{ "tail", "xdp-cuckoo monitor shows dropped packets as they happen" },
	{ "tcpdump", "xdp-cuckoo monitor shows dropped packets as they happen" },
	{ "count", "rules are counted by: xdp-cuckoo status, or lists; packets by: xdp-cuckoo stats" },
	{ "dev", "write the command first: xdp-cuckoo status; load, stats and monitor take an interface" },
	{ "set", "a rule: xdp-cuckoo add RULE; a setting: xdp-cuckoo policy, or the configuration file" },
	{ "interface", "xdp-cuckoo status shows the interfaces; xdp-cuckoo load IFACE adds one" },
	{ "net", "xdp-cuckoo status shows the filters and their interfaces" },
	{ "prog", "xdp-cuckoo status shows the filters and their interfaces" },
	{ "map", "xdp-cuckoo status shows the tables; xdp-cuckoo list the rules" },
	{ "ip", "write: xdp-cuckoo add ADDRESS, or xdp-cuckoo test ADDRESS" },
	{ "port", "write: xdp-cuckoo add dport N, or xdp-cuckoo test dport N" },
	{ "table", "write the command first: xdp-cuckoo list, add, del, flush" },
	{ "permanent", "each change is stored at once: leave it out" },
	{ "list-all", "write: xdp-cuckoo status, and xdp-cuckoo list" },
	{ "panic-on", "write: xdp-cuckoo panic, which passes everything" },
	{ "panic-off", "write: xdp-cuckoo panic off" },
	{ "link", "xdp-cuckoo status shows the interfaces; xdp-cuckoo load IFACE adds one" },
	{ "rule", "write the command first: xdp-cuckoo add RULE, or list, del, test" },
	{ "limit", "a rule drops or passes all its packets; nft can limit their rate" },
	{ "ether", "rules match IP addresses, not Ethernet addresses; nft matches both" },
	{ "logging", "xdp-cuckoo monitor shows dropped packets" },
	{ "poll", "write: xdp-cuckoo top, or xdp-cuckoo stats --interval 1s" },
	{ "ping", "xdp-cuckoo status says whether packets reach the filter" },
	{ "is-active", "xdp-cuckoo status says whether packets reach the filter" },
	{ "showconf", "rules and settings are printed by: xdp-cuckoo backup; the state by: xdp-cuckoo status" },
	{ "setconf", "write: xdp-cuckoo up [FILE]; for a list: xdp-cuckoo import FILE --list NAME --replace" },
	{ "syncconf", "write: xdp-cuckoo up [FILE]; for a list: xdp-cuckoo import FILE --list NAME --replace" },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

const struct command *command_find(const char *name)
{
	for (size_t i = 0; i < COUNT(aliases); i++)
		if (!strcasecmp(aliases[i].name, name))
			name = aliases[i].command;
	for (const struct command *const *command = command_table; *command; command++)
		if (!strcasecmp((*command)->name, name))
			return *command;
	return NULL;
}

const char *command_alias(size_t index, const char **command)
{
	if (index >= COUNT(aliases))
		return NULL;
	*command = aliases[index].command;
	return aliases[index].name;
}

const char *command_alias_word(const char *name)
{
	for (size_t i = 0; i < COUNT(aliases); i++)
		if (!strcasecmp(aliases[i].name, name))
			return aliases[i].word;
	return NULL;
}

static const char *find_advice(const char *name)
{
	for (size_t i = 0; i < COUNT(advices); i++)
		if (!strcasecmp(advices[i].name, name))
			return advices[i].advice;
	return NULL;
}

bool command_is_known(const char *name)
{
	return find_advice(name) || command_find(name);
}

/* The nearest command, or what another tool calls it. "panic=on" is near to panic. */
static struct suggest nearest_of(const char *name)
{
	struct suggest suggest = suggest_for_part(name, strcspn(name, "="));

	for (const struct command *const *command = command_table; *command; command++)
		if ((*command)->group != COMMAND_HIDDEN)
			suggest_offer(&suggest, (*command)->name);
	for (size_t i = 0; i < COUNT(aliases); i++)
		suggest_offer(&suggest, aliases[i].name);
	return suggest;
}

enum command_status command_say_unknown(const char *name)
{
	struct suggest suggest;
	char text[SUGGEST_TEXT_BYTES];

	if (find_advice(name))
		return command_error(STATUS_USAGE, "no command '%s'; %s", name, find_advice(name));
	if (rule_keyword_of(name))
		return command_error(STATUS_USAGE,
				     "no command '%s'; write: xdp-cuckoo add %s ..., or xdp-cuckoo test %s ...", name,
				     name, name);
	/* An address first is a question about it, or a rule without `add`. */
	if (strpbrk(name, ".:"))
		return command_error(STATUS_USAGE,
				     "'%.60s' is no command; write: xdp-cuckoo add %.60s, or xdp-cuckoo test %.60s",
				     name, name, name);
	suggest = nearest_of(name);
	return command_error(STATUS_USAGE, "no command '%s'%s", name, suggest_text(&suggest, "xdp-cuckoo help", text));
}
