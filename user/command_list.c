// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* list: the stored rules, and what the running filters have counted for each. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "keys.h"
#include "output.h"

static enum command_status run_list(const struct invocation *invocation);

const struct command command_list = {
	.name = "list",
	.group = COMMAND_RULES,
	.usage = "[--counters]",
	.summary = "print all rules",
	.help = "One rule a line, in the form that add and import read, with what is left of its timeout; rules\n"
	"that have ended are left out. With --counters each also with the packets and bytes that it matched\n"
	"since the filter was loaded, behind a #; a --compact table does not count by rule.\n"
	"\n"
	"  xdp-cuckoo list\n"
	"  xdp-cuckoo list --counters\n"
	"  xdp-cuckoo list --json\n",
	.options = OPTION_COUNTERS,
	.max = 0,
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ,
	.run = run_list,
};

/* Running filters of the name, with their tables opened to look into. */
struct counting {
	struct kernel_filter *filters;
	struct table *tables;
	size_t count;
	struct shape_list shapes; /* of the store whose rules are counted */
};

static bool counts_rules(const struct kernel_filter *filter, const char *name)
{
	return filter->config->magic && filter->options.has_counts &&
	       !strcmp(filter->config->name, name);
}

static void counting_close(struct counting *counting)
{
	for (size_t i = 0; counting->tables && i < counting->count; i++)
		table_close(&counting->tables[i]);
	free(counting->tables);
	kernel_filters_free(counting->filters, counting->count);
}

/* A table that was not opened counts nothing. -ENOENT where none counts. */
static int counting_open(const struct invocation *invocation, struct counting *counting,
			 struct reason *reason)
{
	size_t found = 0;
	int error = kernel_find(&counting->filters, &counting->count, reason);

	if (error)
		return error;
	counting->tables = calloc(counting->count + 1, sizeof(*counting->tables));
	for (size_t i = 0; counting->tables && i < counting->count; i++)
		if (counts_rules(&counting->filters[i], invocation->name))
			found += !target_open_table(&counting->filters[i], &counting->tables[i]);
	if (found)
		return 0;
	return reason_set(reason, -ENOENT, "no filter '%s' that counts by rule is running here; see "
			  "xdp-cuckoo status", invocation->name);
}

static void add_count(const struct counting *counting, size_t i, const struct rule_key *key,
		      struct abi_counter *sum)
{
	const struct table *table = &counting->tables[i];
	struct hash_value value;
	__u32 number;

	if (!table->memory.has_counts)
		return;
	value = rule_hash(key, &counting->filters[i].config->secret);
	if (!table_find(table, &value, &number) || number >= table_slots(table))
		return;
	sum->packets += table_counter(table, number)->packets;
	sum->bytes += table_counter(table, number)->bytes & ~ABI_RULE_TAKEN;
}

struct counted_rule {
	const struct counting *counting;
	struct abi_counter sum;
};

static int count_key(const struct rule_key *key, bool is_shared, void *context)
{
	struct counted_rule *counted = context;

	(void)is_shared;
	for (size_t i = 0; i < counted->counting->count; i++)
		add_count(counted->counting, i, key, &counted->sum);
	return 0;
}

/* Where prefixes of rules overlap, a packet may count for each. */
static struct abi_counter count_rule(const struct counting *counting, const struct rule *rule)
{
	struct counted_rule counted = { .counting = counting };

	keys_each(&counting->shapes, rule, count_key, &counted);
	return counted.sum;
}

/* What matches, action, timeout and comment apart, as a program wants them. */
static json_t *rule_row(const struct rule *rule)
{
	char text[RULE_TEXT_BYTES];
	struct rule match = *rule;

	match.comment[0] = '\0';
	match.action = RULE_DROP;
	match.timeout_ms = 0;
	return json_pack("{s:s, s:s, s:o, s:s}", "rule", rule_format(&match, text), "action",
			 rule->action == RULE_DROP ? "drop" : "pass", "timeout_s",
			 rule->timeout_ms ? json_integer((rule->timeout_ms + 999) / 1000) : json_null(),
			 "comment", rule->comment);
}

static void print_with_count(const struct rule *rule, const char *text,
			     const struct abi_counter *count)
{
	char line[RULE_TEXT_BYTES + 64];
	json_t *row = output_is_json() ? rule_row(rule) : NULL;

	if (row) {
		json_object_set_new(row, "packets", json_integer(count->packets));
		json_object_set_new(row, "bytes", json_integer(count->bytes));
	}
	snprintf(line, sizeof(line), "%s # packets %llu bytes %llu", text,
		 (unsigned long long)count->packets, (unsigned long long)count->bytes);
	output_list_row(row, line);
}

static int print_rule(const struct rule *rule, void *context)
{
	const struct counting *counting = context;
	char text[RULE_TEXT_BYTES];

	if (rule->timeout_ms < 0)
		return 0;
	rule_format(rule, text);
	if (counting) {
		const struct abi_counter count = count_rule(counting, rule);

		print_with_count(rule, text, &count);
	} else {
		output_list_row(output_is_json() ? rule_row(rule) : NULL, text);
	}
	return 0;
}

static enum command_status print_all(struct store *store, struct counting *counting)
{
	int error;

	output_list_begin();
	error = store && counting ? store_shapes(store, &counting->shapes) : 0;
	if (!error && store)
		error = store_each(store, print_rule, counting);
	output_list_end();
	if (error)
		return command_error(STATUS_SYSTEM, "cannot read the store: %s", strerror(-error));
	return STATUS_DONE;
}

static enum command_status run_list(const struct invocation *invocation)
{
	const bool wants_counters = invocation->wants_counters;
	struct counting counting = {};
	enum command_status status;
	struct reason reason;
	struct store *store;
	int error = command_open_store(invocation, &store, &reason);

	if (error)
		return command_failed(error, &reason);
	if (wants_counters)
		error = counting_open(invocation, &counting, &reason);
	if (error == -ENOENT)
		status = command_error(STATUS_NO, "%s", reason.text);
	else if (error)
		status = command_failed(error, &reason);
	else
		status = print_all(store, wants_counters ? &counting : NULL);
	counting_close(&counting);
	store_close(store);
	return status;
}
