// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* status, stats: what runs, and what it has done. Both only read. */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "command.h"
#include "output.h"

static enum command_status run_status(const struct invocation *invocation);
static enum command_status run_stats(const struct invocation *invocation);

const struct command command_status = {
	.name = "status",
	.usage = "",
	.summary = "show the stored rules and the running filters",
	.help = "Rules and generation of the store, and each running filter of any name: interfaces, how\n"
	"its table keeps entries, load factor, memory, the most entries that one insert has moved, how\n"
	"often a look-up was tried again because the table moved, shapes in use (kinds of rule; a packet\n"
	"costs one probe for each of its family), and the chance that a packet no rule names is taken for\n"
	"one that a rule names.\n"
	"\n"
	"  xdp-cuckoo status\n"
	"  xdp-cuckoo status --json\n",
	.run = run_status,
};

const struct command command_stats = {
	.name = "stats",
	.usage = "",
	.summary = "show how many packets were passed and dropped, and why",
	.help = "Counted since the filter was loaded, over all its interfaces and CPUs:\n"
	"  no rule            read whole, no rule matched\n"
	"  later fragment     not the first fragment: no ports to look at; rules without ports apply\n"
	"  not IP             neither IPv4 nor IPv6 behind at most two VLAN tags\n"
	"  truncated          a header runs past the frame or past the length that IP states\n"
	"  malformed          a header contradicts itself\n"
	"  too many headers   more than 8 IPv6 extension headers\n"
	"  unsettled          the table moved during every look-up of a key\n"
	"  drop rule          a drop rule matched\n"
	"  pass rule          a pass rule matched\n"
	"  not set up         the program was loaded but no table was set up yet\n"
	"\n"
	"  xdp-cuckoo stats\n"
	"  xdp-cuckoo --name web stats --json\n",
	.run = run_stats,
};

static const char *const outcome_names[OUTCOMES] = {
	[OUTCOME_NO_RULE] = "no rule",
	[OUTCOME_LATER_FRAGMENT] = "later fragment",
	[OUTCOME_NOT_IP] = "not IP",
	[OUTCOME_TRUNCATED] = "truncated",
	[OUTCOME_MALFORMED] = "malformed",
	[OUTCOME_TOO_MANY_HEADERS] = "too many headers",
	[OUTCOME_UNSETTLED] = "unsettled",
	[OUTCOME_DROP_RULE] = "drop rule",
	[OUTCOME_PASS_RULE] = "pass rule",
	[OUTCOME_NOT_SET_UP] = "not set up",
};

/* ---- status ---- */

static json_t *shapes_of(const struct abi_config *config)
{
	json_t *names = json_array();
	char text[RULE_TEXT_BYTES];

	for (int family = 0; family < FLOW_FAMILIES; family++) {
		const struct abi_shape_list *list = abi_shapes(config, family);

		for (__u64 i = 0; i < list->count && i < ABI_SHAPES_MAX; i++) {
			struct rule_shape shape = rule_shape_of_tag(list->shape[i].tag, family);

			json_array_append_new(names, json_string(rule_shape_format(&shape, text)));
		}
	}
	return names;
}

static json_t *interfaces_of(const struct kernel_filter *filter)
{
	json_t *rows = json_array();

	for (size_t i = 0; i < filter->attachments_count; i++) {
		const struct kernel_attachment *attachment = &filter->attachments[i];

		json_array_append_new(rows, json_pack("{s:s, s:s, s:I}", "interface",
						      attachment->interface, "mode",
						      interface_mode_name(attachment->mode),
						      "program", (json_int_t)attachment->prog_id));
	}
	return rows;
}

static const char *condition(const struct kernel_filter *filter, const struct invocation *invocation,
			     const struct store_info *info)
{
	const struct abi_config *config = filter->config;

	if (!config->magic)
		return "not set up: passes everything until the next add, import or load";
	if (strcmp(config->name, invocation->name))
		return "of another name";
	if (memcmp(config->store_id, info->id, sizeof(info->id)))
		return "filled from another store (--state)";
	if (config->generation != info->generation)
		return "a writer is at work, or one did not finish: the next change repairs it";
	return "equal to the store";
}

static json_t *filter_status(const struct kernel_filter *filter, const struct invocation *invocation,
			     const struct store_info *info, __u64 retries)
{
	const struct abi_config *config = filter->config;
	__u64 slots = table_slots_of(target_geometry(filter)), bytes = kernel_filter_bytes(filter);

	return json_pack("{s:s, s:s, s:o, s:s, s:I, s:I, s:f, s:I, s:f, s:I, s:I, s:I, s:I, s:o, s:f, s:f}",
			 "name", filter->config->magic ? filter->config->name : "-",
			 "condition", condition(filter, invocation, info),
			 "interfaces", interfaces_of(filter),
			 "table", command_format_name(&filter->options),
			 "slots", (json_int_t)slots,
			 "used_slots", (json_int_t)config->used,
			 "load_factor", apply_load_factor(filter),
			 "table_bytes", (json_int_t)bytes,
			 "bytes_per_rule", config->used ? bytes / (double)config->used : 0.,
			 "generation", (json_int_t)config->generation,
			 "longest_path", (json_int_t)config->longest_path,
			 "moves", (json_int_t)config->moves,
			 "look_up_retries", (json_int_t)retries,
			 "shapes", shapes_of(config),
			 "false_positive_rate_ipv4", apply_false_positive_rate(filter, FLOW_IPV4),
			 "false_positive_rate_ipv6", apply_false_positive_rate(filter, FLOW_IPV6));
}

static int read_info(const struct invocation *invocation, struct store_info *info,
		     struct reason *reason)
{
	struct store *store;
	int error = command_open_store(invocation, &store, reason);

	*info = (struct store_info){};
	if (!error && store) {
		error = store_info(store, info);
		if (error)
			reason_set(reason, error, "cannot read the store: %s", strerror(-error));
	}
	store_close(store);
	return error;
}

static int add_filters(const struct invocation *invocation, const struct store_info *info,
		       json_t *running, struct reason *reason)
{
	struct abi_counter counters[ABI_COUNTERS];
	struct kernel_filter *filters;
	size_t count;
	int error = kernel_find(&filters, &count, reason);

	for (size_t i = 0; i < count && !error; i++) {
		error = kernel_counters(&filters[i], counters, reason);
		if (!error)
			json_array_append_new(running,
					      filter_status(&filters[i], invocation, info,
							    counters[ABI_COUNTER_RETRIES].packets));
	}
	kernel_filters_free(filters, count);
	return error;
}

static enum command_status run_status(const struct invocation *invocation)
{
	json_t *running = json_array();
	struct store_info info;
	struct reason reason;
	int error = read_info(invocation, &info, &reason);

	if (!error)
		error = add_filters(invocation, &info, running, &reason);
	if (error) {
		json_decref(running);
		return command_failed(error, &reason);
	}
	output_print(json_pack("{s:s, s:I, s:I, s:o}", "name", invocation->name, "rules",
			       (json_int_t)info.rules, "generation", (json_int_t)info.generation,
			       "running", running));
	return STATUS_DONE;
}

/* ---- stats ---- */

static void add_counter(struct abi_counter *sum, const struct abi_counter *counter)
{
	sum->packets += counter->packets;
	sum->bytes += counter->bytes;
}

/* A resize that was killed between two interfaces leaves two filters that count in one map. */
static bool counts_apart(const struct kernel_filter *filters, size_t f)
{
	for (size_t i = 0; i < f; i++)
		if (filters[i].map[KERNEL_COUNTERS].id == filters[f].map[KERNEL_COUNTERS].id)
			return false;
	return true;
}

/* The sum over the filters of the name; a filter nobody has set up counts for every name. */
static int sum_counters(const struct invocation *invocation,
			struct abi_counter sum[ABI_COUNTERS], size_t *found,
			struct reason *reason)
{
	struct abi_counter counters[ABI_COUNTERS];
	struct kernel_filter *filters;
	size_t count;
	int error = kernel_find(&filters, &count, reason);

	*found = 0;
	for (size_t f = 0; f < count && !error; f++) {
		const struct abi_config *config = filters[f].config;

		if (config->magic && strcmp(config->name, invocation->name))
			continue;
		if (!counts_apart(filters, f))
			continue;
		error = kernel_counters(&filters[f], counters, reason);
		(*found)++;
		for (int i = 0; i < ABI_COUNTERS; i++)
			add_counter(&sum[i], &counters[i]);
	}
	kernel_filters_free(filters, count);
	return error;
}

/* `counter`: the outcome's two, by verdict. */
static json_t *outcome_row(const char *name, const struct abi_counter counter[VERDICTS])
{
	return json_pack("{s:s, s:I, s:I, s:I, s:I}", "outcome", name,
			 "passed_packets", (json_int_t)counter[VERDICT_PASS].packets,
			 "passed_bytes", (json_int_t)counter[VERDICT_PASS].bytes,
			 "dropped_packets", (json_int_t)counter[VERDICT_DROP].packets,
			 "dropped_bytes", (json_int_t)counter[VERDICT_DROP].bytes);
}

static enum command_status run_stats(const struct invocation *invocation)
{
	struct abi_counter counters[ABI_COUNTERS] = {}, total[VERDICTS] = {};
	struct reason reason;
	json_t *rows;
	size_t found;
	int error = sum_counters(invocation, counters, &found, &reason);

	if (error)
		return command_failed(error, &reason);
	if (!found)
		return command_error(STATUS_NO, "no filter '%s' is running here; see xdp-cuckoo status",
				     invocation->name);
	rows = json_array();
	for (int outcome = 0; outcome < OUTCOMES; outcome++) {
		const struct abi_counter *counter = &counters[outcome * VERDICTS];

		json_array_append_new(rows, outcome_row(outcome_names[outcome], counter));
		for (int verdict = 0; verdict < VERDICTS; verdict++)
			add_counter(&total[verdict], &counter[verdict]);
	}
	json_array_append_new(rows, outcome_row("all", total));
	output_print(rows);
	return STATUS_DONE;
}
