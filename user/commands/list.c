// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* list: the stored rules, and what the running filters have counted for each. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "commands/command.h"
#include "io/output.h"

static enum command_status run_list(const struct invocation *invocation);

const struct command command_list = {
	.name = "list",
	.group = COMMAND_RULES,
	.usage = "[--list NAME] [--counters]",
	.summary = "print all rules, or those of a list",
	.help = "One rule a line, in the form that add and import read, with what is left of its timeout; rules\n"
		"that have ended are left out. With --counters each also with the packets and bytes that it matched\n"
		"since the filter was loaded, behind a #; where prefixes of rules overlap, a packet may count for more\n"
		"than one. In a flood a random sample is counted, so that counts are right on average; stats is always\n"
		"exact. A --compact table does not count by rule. With --json each also with the lists that have\n"
		"it, and whether it was added by hand. Where a change was not confirmed in time and nothing has undone\n"
		"it yet, a running filter passes everything: a note says so, and with --json also\n"
		"not_confirmed_in_time, true, of each rule.\n"
		"\n"
		"  xdp-cuckoo list\n"
		"  xdp-cuckoo list --counters\n"
		"  xdp-cuckoo list --list spamhaus --json\n",
	.options = OPTION_COUNTERS | OPTION_LIST,
	.max = 0,
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ,
	.run = run_list,
};

struct printing {
	const struct rule_counts *counts; /* NULL: without counts */
	struct store_lists lists;
	unsigned int list; /* whose rules; 0: all */
	bool is_late;      /* they hold a change that was not confirmed in time */
};

/* What matches, action, timeout, comment and owners apart, as a program wants them. */
static json_t *rule_row(const struct printing *printing, const struct rule *rule)
{
	const __u64 owners = rule_owners_now(rule);
	char text[RULE_TEXT_BYTES];
	struct rule match = *rule;
	json_t *row;

	match.comment[0] = '\0';
	match.action = RULE_DROP;
	match.timeout_ms = 0;
	row = json_pack("{s:s, s:s, s:o, s:s, s:b, s:o}", "rule", rule_format(&match, text), "action",
			rule->action == RULE_DROP ? "drop" : "pass", "timeout_s",
			rule->timeout_ms ? json_integer((rule->timeout_ms + 999) / 1000) : json_null(), "comment",
			rule->comment, "by_hand", (int)(owners >> STORE_BY_HAND & 1), "lists",
			command_list_names(&printing->lists, owners));
	if (printing->is_late)
		json_object_set_new(row, "not_confirmed_in_time", json_true());
	return row;
}

static void print_with_count(const struct printing *printing, const struct rule *rule, const char *text,
			     const struct abi_counter *count)
{
	char line[RULE_TEXT_BYTES + 64];
	json_t *row = output_is_json() ? rule_row(printing, rule) : NULL;

	if (row) {
		json_object_set_new(row, "packets", json_integer(count->packets));
		json_object_set_new(row, "bytes", json_integer(count->bytes));
	}
	snprintf(line, sizeof(line), "%s # packets %llu bytes %llu", text, (unsigned long long)count->packets,
		 (unsigned long long)count->bytes);
	output_list_row(row, line);
}

static int print_rule(const struct rule *rule, void *context)
{
	const struct printing *printing = context;
	char text[RULE_TEXT_BYTES];

	if (rule->timeout_ms < 0 || (printing->list && !(rule_owners_now(rule) >> printing->list & 1)))
		return 0;
	rule_format(rule, text);
	if (printing->counts) {
		const struct abi_counter count = rule_counts_of(printing->counts, rule);

		print_with_count(printing, rule, text, &count);
	} else {
		output_list_row(output_is_json() ? rule_row(printing, rule) : NULL, text);
	}
	return 0;
}

static enum command_status print_all(const struct invocation *invocation, struct store *store,
				     struct rule_counts *counts)
{
	struct printing printing = { .counts = counts, .is_late = command_is_late(store) };
	int error = store ? store_lists(store, &printing.lists) : 0;

	if (!error && command_find_list(invocation, &printing.lists, &printing.list))
		return STATUS_NO;
	output_list_begin();
	if (!error && store && counts)
		error = store_shapes(store, &counts->shapes);
	if (!error && store)
		error = store_each(store, print_rule, &printing);
	output_list_end();
	if (error)
		return command_error(STATUS_SYSTEM, "cannot read the store: %s", strerror(-error));
	return STATUS_DONE;
}

static enum command_status run_list(const struct invocation *invocation)
{
	const bool wants_counters = invocation->wants_counters;
	struct rule_counts counts = {};
	enum command_status status;
	struct reason reason;
	struct store *store;
	int error = command_open_store(invocation, &store, &reason);

	if (error)
		return command_failed(error, &reason);
	status = wants_counters ? command_open_counts(invocation, &counts) : STATUS_DONE;
	if (status == STATUS_DONE)
		status = print_all(invocation, store, wants_counters ? &counts : NULL);
	rule_counts_close(&counts);
	store_close(store);
	return status;
}
