// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* add, del: one rule. */
#include <errno.h>
#include <stdio.h>

#include "commands/command.h"
#include "io/output.h"

static enum command_status run_add(const struct invocation *invocation);
static enum command_status run_del(const struct invocation *invocation);

#define RULE_HELP \
	"A rule names some of these fields, in any order. A field that is not named\n" \
	"matches anything:\n" \
	"  proto NAME|NUMBER        tcp, udp, icmp, ipv6-icmp, sctp, dccp, udplite, ...\n" \
	"  src, dst ADDRESS[/LEN]   IPv4 or IPv6; a bare address or prefix means src\n" \
	"  sport, dport PORT        tcp, udp, udplite, sctp, dccp; without proto: any\n" \
	"  type, code NUMBER        with proto icmp or ipv6-icmp\n" \
	"  action drop|pass|monitor default: drop; a pass rule always wins; a monitor\n" \
	"                           rule drops nothing, and counts what it would drop\n" \
	"  timeout TIME             the rule ends after 90s, 15m, 1h30m, 2d, 1w; without\n" \
	"                           a unit: seconds\n" \
	"  comment \"TEXT\"\n"
#define FORCE_HELP \
	"  --force    even if this blocks one of these: this host's own addresses, its\n" \
	"             default gateway, its name servers, your SSH session, or the IPv6\n" \
	"             neighbour discovery by which gateway and session find this host\n"

const struct command command_add = {
	.name = "add",
	.group = COMMAND_RULES,
	.usage = "RULE [--list NAME] [--force]",
	.summary = "add a rule",
	.help = RULE_HELP "A rule is for received packets: src is the other side, dst an address of this\n"
			  "host or one that it forwards to. What this host sends is not filtered.\n"
			  "The rule is stored and active when the command returns. Status 1: the rule is\n"
			  "already there, without a timeout; `del` it first. A rule with a timeout is\n"
			  "updated: it ends at the new time, or never. A rule from a list is updated too.\n"
			  "A rule ends by itself at its time. Only in a --compact table `expire` must end\n"
			  "it, since such a table stores no times.\n"
			  "If a list has the rule with a timeout too, the later end counts, even after the\n"
			  "list has dropped the rule; `del` ends it at once.\n"
			  "  --list NAME  the rule belongs to the list NAME, which is made if there is none;\n"
			  "             also as the words `list NAME` of the rule. A rule may belong to\n"
			  "             several lists. So a program that bans addresses has a list of its\n"
			  "             own, and its bans and the rules of a feed never end each other\n" FORCE_HELP
			  "\n"
			  "  xdp-cuckoo add 192.0.2.1\n"
			  "  xdp-cuckoo add 203.0.113.0/24 timeout 1h\n"
			  "  xdp-cuckoo add 198.51.100.7 action pass comment \"the office\"\n"
			  "  xdp-cuckoo add 203.0.113.9 timeout 1h --list bans\n"
			  "  xdp-cuckoo add proto tcp src 192.0.2.1 sport 1234 dst 198.51.100.7 dport 443\n",
	.options = OPTION_LIST | OPTION_FORCE,
	.min = 1,
	.max = RULE_WORDS_MAX,
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ | PRIVILEGE_SSH,
	.run = run_add,
};

const struct command command_del = {
	.name = "del",
	.group = COMMAND_RULES,
	.usage = "RULE [--list NAME] [--force]",
	.summary = "delete a rule",
	.help = "Write the rule as `list` shows it. The action must match; comment and timeout\n"
		"may differ. Status 1: there is no such rule. If a list has the rule, the next\n"
		"import of that list brings it back.\n"
		"  --list NAME  only the list NAME gives the rule up; also as the words `list NAME`\n"
		"             of the rule. The rule stays while other lists have it, or while it is\n"
		"             also added by hand. Status 1: the list does not have it\n" FORCE_HELP "\n"
		"  xdp-cuckoo del 192.0.2.1\n"
		"  xdp-cuckoo del 203.0.113.9 --list bans\n"
		"  xdp-cuckoo del src 203.0.113.0/24 proto udp dport 53\n",
	.options = OPTION_LIST | OPTION_FORCE,
	.min = 1,
	.max = RULE_WORDS_MAX,
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ | PRIVILEGE_SSH,
	.run = run_del,
};

/* The rule of `add` or `del`, and what became of it. */
struct rule_change {
	struct rule rule;
	const char *list; /* the owner of the rule; NULL: by hand for `add`, all owners for `del` */
	bool is_refused;  /* already there; no such rule */
	bool is_updated;  /* already there, with another end or another owner */
	json_t *lists;    /* lists that had the deleted rule; NULL: not known */
	json_t *left_to;  /* owners that keep the rule that the list gave up; NULL: it is deleted */
};

static int add(struct session *session, struct rule_change *change, struct reason *reason)
{
	enum store_added added;
	int error = change_open_list(session, change->list, NULL, reason);

	if (!error)
		error = change_add(session, &change->rule, &added, reason);
	if (error)
		return error;
	change->is_refused = added == STORE_UNCHANGED;
	change->is_updated = added == STORE_NEW_END || added == STORE_NEW_OWNER;
	/* The message shows the stored rule. */
	if (change->is_refused)
		store_get(session->store, &change->rule);
	return change->is_refused ? -EEXIST : 0;
}

static int del(struct session *session, struct rule_change *change, struct reason *reason)
{
	enum store_deleted deleted;
	int error;

	error = change_find_list(session, change->list, reason);
	if (error)
		return error;
	if (change->list) {
		error = change_give_up(session, &change->rule, &deleted, reason);
	} else {
		change->lists = command_lists_of(session->store, &change->rule);
		error = change_del(session, &change->rule, &deleted, reason);
	}
	if (error)
		return error;
	if (deleted == STORE_STILL_WANTED)
		change->left_to = command_owners_of(session->store, &change->rule);
	change->is_refused = deleted == STORE_NO_SUCH_RULE;
	return change->is_refused ? -ENOENT : 0;
}

/* A compact table does not end rules by itself. */
static void note_compact(const struct session *session, const struct rule *rule)
{
	for (size_t i = 0; i < session->filters_count && rule->timeout_ms; i++)
		if (!session->filters[i].kernel.options.is_exact) {
			output_note("a compact table does not know when a rule ends: run xdp-cuckoo expire to end it");
			return;
		}
}

static void note_lists(const json_t *lists)
{
	const json_t *name;
	char text[256] = "";
	size_t i, used = 0;

	json_array_foreach(lists, i, name) if (used < sizeof(text))
		used += snprintf(text + used, sizeof(text) - used, "%s%s", i ? ", " : "", json_string_value(name));
	if (used)
		output_note("these lists had it: %s; the next import of a list brings it back if it is still in it; to "
			    "delete it from one list only: --list NAME; to let it pass permanently, add a pass rule "
			    "(action pass)",
			    text);
}

static enum command_status change_rule(const struct invocation *invocation, struct rule_change *change,
				       const char *done, const char *refused,
				       int (*make)(struct session *, struct rule_change *, struct reason *))
{
	char text[RULE_TEXT_BYTES];
	struct reason reason;
	struct guard guard;
	struct session session;
	int error = command_open_guarded(invocation, &session, &guard, &reason);

	if (!error) {
		command_report_targets(&session);
		error = change_begin(&session, &reason);
	}
	if (!error)
		error = change_end(&session, make(&session, change, &reason), &reason);
	if (!error) {
		command_report_rebuilds(&session);
		if (make == add)
			note_compact(&session, &change->rule);
		note_lists(change->lists);
	}
	json_decref(change->lists);
	session_close(&session);
	guard_close(&guard);
	rule_format(&change->rule, text);
	if (change->is_refused && change->list)
		return command_error(STATUS_NO, "%s in the list '%s': %s; xdp-cuckoo list --list %s shows its rules",
				     refused, change->list, text, change->list);
	if (change->is_refused)
		return command_error(STATUS_NO, "%s: %s; xdp-cuckoo list shows the rules", refused, text);
	if (error) {
		json_decref(change->left_to);
		return command_list_failed(error, &reason);
	}
	output_print(json_pack("{s:s, s:s*, s:o*}",
			       change->left_to    ? "given_up" :
			       change->is_updated ? "updated" :
						    done,
			       text, "list", change->list, "left_to", change->left_to));
	return STATUS_DONE;
}

static enum command_status run_add(const struct invocation *invocation)
{
	struct rule_change change = {};
	char text[RULE_TEXT_BYTES];
	const char *special;

	if (command_read_rule(invocation, &change.rule, &change.list))
		return STATUS_USAGE;
	special = guard_special(&change.rule);
	if (special)
		output_note("'%s' drops addresses that are seldom meant: %s", rule_format(&change.rule, text), special);
	return change_rule(invocation, &change, "added",
			   change.rule.timeout_ms ? "already there without a timeout, and stays until it is deleted" :
						    "already there",
			   add);
}

static enum command_status run_del(const struct invocation *invocation)
{
	struct rule_change change = {};

	if (command_read_rule(invocation, &change.rule, &change.list))
		return STATUS_USAGE;
	return change_rule(invocation, &change, "deleted", "no such rule", del);
}
