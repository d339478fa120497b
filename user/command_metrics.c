// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* metrics: all running filters, as Prometheus reads them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "metrics.h"
#include "outcomes.h"
#include "output.h"
#include "tally.h"
#include "version.h"
#include "whole_file.h"

static enum command_status run_metrics(const struct invocation *invocation);

const struct command command_metrics = {
	.name = "metrics",
	.group = COMMAND_LOOK,
	.usage = "[FILE|-]",
	.summary = "print the state of all running filters for Prometheus",
	.help = "In Prometheus' text format, for the textfile collector of its node exporter; of every filter in this\n"
	"network namespace, whatever its name: packets and bytes by outcome and verdict, as `stats` shows\n"
	"them, in all and, as families of their own, by interface; rules, slots, memory, and whether it\n"
	"filters. The interface \"-\" is all that the filter runs on no more, or not in this namespace.\n"
	"Reads, and changes nothing. Status 0 also where no filter runs: then there are no samples of any.\n"
	"A FILE takes the place of an older one when it is whole, so that nobody reads half of it.\n"
	"\n"
	"  xdp-cuckoo metrics\n"
	"  xdp-cuckoo metrics /var/lib/prometheus/node-exporter/xdp-cuckoo.prom\n"
	"  xdp-cuckoo metrics --json\n",
	.max = 1,
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ | PRIVILEGE_WRITE,
	.run = run_metrics,
};

/* What is told of all filters of a name: mostly one. */
struct group {
	const char *name; /* "-": of those that nobody has set up */
	struct tally tally;
	__u64 slots, used, bytes, moves;
	bool is_filtering; /* all of them */
	const struct kernel_filter *first;
};

struct groups {
	const struct kernel_filter *filters;
	size_t filters_count;
	struct group *group;
	size_t count;
};

/* ---- gathering ---- */

static const char *name_of(const struct kernel_filter *filter)
{
	return filter->config->magic ? filter->config->name : "-";
}

static struct group *find_group(struct groups *groups, const struct kernel_filter *filter)
{
	struct group *group;

	for (group = groups->group; group < groups->group + groups->count; group++)
		if (group->name && !strcmp(group->name, name_of(filter)))
			return group;
	groups->count++;
	*group = (struct group){ .name = name_of(filter), .is_filtering = true, .first = filter };
	return group;
}

static int gather(struct groups *groups, struct reason *reason)
{
	int error = 0;

	groups->group = calloc(groups->filters_count + 1, sizeof(*groups->group));
	if (!groups->group)
		return reason_set(reason, -ENOMEM, "not enough memory");
	for (size_t i = 0; i < groups->filters_count && !error; i++) {
		const struct kernel_filter *filter = &groups->filters[i];
		struct group *group = find_group(groups, filter);

		group->slots += table_slots_of(target_geometry(filter));
		group->used += filter->config->used;
		group->moves += filter->config->moves;
		group->bytes += kernel_filter_bytes(filter);
		group->is_filtering &= command_is_filtering(filter);
		error = tally_add(&group->tally, filter, reason);
	}
	return error;
}

/* ---- families ---- */

static json_t *label(const struct group *group)
{
	return json_pack("{s:s}", "name", group->name);
}

/* `labels`, borrowed, are those of all the samples; `member`: of struct abi_counter. */
static void add_outcomes(json_t *family, const json_t *labels, const struct abi_counter counters[ABI_COUNTERS],
			 size_t member)
{
	for (int outcome = 0; outcome < OUTCOMES; outcome++)
		for (int verdict = 0; verdict < VERDICTS; verdict++) {
			const struct abi_counter *counter = &counters[outcome * VERDICTS + verdict];
			json_t *of_sample = json_copy((json_t *)labels);

			json_object_set_new(of_sample, "outcome", json_string(outcome_words[outcome].name));
			json_object_set_new(of_sample, "verdict", json_string(verdict_words[verdict].name));
			metrics_sample(family, of_sample, *(const __u64 *)((const char *)counter + member));
		}
}

static void add_packets(json_t *packets, json_t *bytes, json_t *labels,
			const struct abi_counter counters[ABI_COUNTERS])
{
	add_outcomes(packets, labels, counters, offsetof(struct abi_counter, packets));
	add_outcomes(bytes, labels, counters, offsetof(struct abi_counter, bytes));
	json_decref(labels);
}

static void add_counters(json_t *metrics, const struct groups *groups)
{
	json_t *packets = metrics_family(metrics, "xdp_cuckoo_packets_total", METRIC_COUNTER,
					 "Packets since the filter was loaded, by what they were and what became of "
					 "them.");
	json_t *bytes = metrics_family(metrics, "xdp_cuckoo_bytes_total", METRIC_COUNTER,
				       "Bytes of these packets, from the Ethernet header on.");
	json_t *retries = metrics_family(metrics, "xdp_cuckoo_look_up_retries_total", METRIC_COUNTER,
					 outcome_retries);
	json_t *stopped = metrics_family(metrics, "xdp_cuckoo_fingerprints_stopped_total", METRIC_COUNTER,
					 outcome_stopped);
	json_t *moves = metrics_family(metrics, "xdp_cuckoo_moves_total", METRIC_COUNTER,
				       "Entries moved to make room since the table was made.");

	for (size_t i = 0; i < groups->count; i++) {
		const struct group *group = &groups->group[i];
		struct abi_counter counters[ABI_COUNTERS];

		tally_sum(&group->tally, TALLY_ALL, TALLY_ALL, counters);
		add_packets(packets, bytes, label(group), counters);
		metrics_sample(retries, label(group), counters[ABI_COUNTER_RETRIES].packets);
		metrics_sample(stopped, label(group), counters[ABI_COUNTER_STOPPED].packets);
		metrics_sample(moves, label(group), group->moves);
	}
}

/* Families of their own: in those of the totals they would be counted twice by every sum. */
static void add_interface_counters(json_t *metrics, const struct groups *groups)
{
	json_t *packets = metrics_family(metrics, "xdp_cuckoo_interface_packets_total", METRIC_COUNTER,
					 "The packets of xdp_cuckoo_packets_total, by the interface they came by.");
	json_t *bytes = metrics_family(metrics, "xdp_cuckoo_interface_bytes_total", METRIC_COUNTER,
				       "The bytes of xdp_cuckoo_bytes_total, by the interface they came by.");

	for (size_t i = 0; i < groups->count; i++) {
		const struct group *group = &groups->group[i];
		struct abi_counter counters[ABI_COUNTERS];

		for (unsigned int row = 0; row < ABI_COUNTER_ROWS; row++) {
			if (!*group->tally.interfaces[row])
				continue;
			tally_sum(&group->tally, row, TALLY_ALL, counters);
			add_packets(packets, bytes,
				    json_pack("{s:s, s:s}", "name", group->name, "interface",
					      group->tally.interfaces[row]), counters);
		}
		tally_sum_elsewhere(&group->tally, counters);
		add_packets(packets, bytes, json_pack("{s:s, s:s}", "name", group->name, "interface", "-"),
			    counters);
	}
}

static void add_tables(json_t *metrics, const struct groups *groups)
{
	json_t *filtering = metrics_family(metrics, "xdp_cuckoo_filtering", METRIC_GAUGE,
					   "1 where rules are in force; 0: not set up, panic, unconfirmed or "
					   "monitor-only.");
	json_t *slots = metrics_family(metrics, "xdp_cuckoo_slots", METRIC_GAUGE,
				       "Slots of the table, of which 95 % can be filled.");
	json_t *used = metrics_family(metrics, "xdp_cuckoo_used_slots", METRIC_GAUGE, "Slots that are filled.");
	json_t *bytes = metrics_family(metrics, "xdp_cuckoo_table_bytes", METRIC_GAUGE,
				       "Kernel memory of the filter's maps.");

	for (size_t i = 0; i < groups->count; i++) {
		const struct group *group = &groups->group[i];

		metrics_sample(filtering, label(group), group->is_filtering);
		metrics_sample(slots, label(group), group->slots);
		metrics_sample(used, label(group), group->used);
		metrics_sample(bytes, label(group), group->bytes);
	}
}

static void add_families(json_t *metrics, const struct groups *groups)
{
	static const char *const families[] = { [FLOW_IPV4] = "ipv4", [FLOW_IPV6] = "ipv6" };
	json_t *probes = metrics_family(metrics, "xdp_cuckoo_mean_probes", METRIC_GAUGE,
					"Look-ups of a packet that no rule matches, as a mean.");
	json_t *wrong = metrics_family(metrics, "xdp_cuckoo_false_positive_rate", METRIC_GAUGE,
				       "Chance that such a packet is taken for one that a rule names.");

	for (size_t i = 0; i < groups->count; i++)
		for (enum flow_family family = 0; family < FLOW_FAMILIES; family++) {
			const struct group *group = &groups->group[i];
			json_t *labels = json_pack("{s:s, s:s}", "name", group->name, "family",
						   families[family]);

			metrics_sample(probes, json_copy(labels), apply_mean_probes(group->first, family));
			metrics_sample(wrong, labels, apply_false_positive_rate(group->first, family));
		}
}

static void add_interfaces(json_t *metrics, const struct groups *groups)
{
	json_t *family = metrics_family(metrics, "xdp_cuckoo_interface_info", METRIC_GAUGE,
					"1 for each interface that the filter runs on.");

	for (size_t f = 0; f < groups->filters_count; f++)
		for (size_t i = 0; i < groups->filters[f].attachments_count; i++) {
			const struct kernel_attachment *attachment = &groups->filters[f].attachments[i];

			metrics_sample(family, json_pack("{s:s, s:s, s:s}", "name", name_of(&groups->filters[f]),
							 "interface", attachment->interface, "mode",
							 interface_mode_name(attachment->mode)), 1);
		}
}

/* Of the store of each name, where it can be read: a filter may be there without one. */
static void add_rules(json_t *metrics, const struct groups *groups, const struct invocation *invocation)
{
	json_t *rules = metrics_family(metrics, "xdp_cuckoo_rules", METRIC_GAUGE, "Rules that are stored.");
	json_t *timed = metrics_family(metrics, "xdp_cuckoo_timed_rules", METRIC_GAUGE,
				       "Of the rules, those that end by themselves.");

	for (size_t i = 0; i < groups->count; i++) {
		struct invocation of_name = *invocation;
		struct store *store = NULL;
		struct store_info info;
		struct reason reason;

		of_name.name = groups->group[i].name;
		if (command_open_store(&of_name, &store, &reason)) {
			output_note("no rules of '%s': %s", of_name.name, reason.text);
			continue;
		}
		if (!store)
			continue;
		if (!store_info(store, &info)) {
			metrics_sample(rules, label(&groups->group[i]), info.rules);
			metrics_sample(timed, label(&groups->group[i]), info.timed);
		}
		store_close(store);
	}
}

static json_t *describe(const struct groups *groups, const struct invocation *invocation)
{
	json_t *metrics = json_array();
	json_t *build = metrics_family(metrics, "xdp_cuckoo_build_info", METRIC_GAUGE, "The version of the tool.");

	metrics_sample(build, json_pack("{s:s}", "version", VERSION), 1);
	add_interfaces(metrics, groups);
	add_tables(metrics, groups);
	add_rules(metrics, groups, invocation);
	add_counters(metrics, groups);
	add_interface_counters(metrics, groups);
	add_families(metrics, groups);
	return metrics;
}

static void print(json_t *metrics)
{
	if (output_is_json())
		output_print(json_incref(metrics));
	else
		metrics_write(stdout, metrics);
}

static enum command_status write_to(const char *path, const json_t *metrics)
{
	struct whole_file file;
	int error = whole_file_open(&file, path);

	if (!error) {
		metrics_write(file.to, metrics);
		error = whole_file_close(&file, 0);
	}
	return error ? command_error(STATUS_SYSTEM, "cannot write '%s': %s", path, strerror(-error)) : STATUS_DONE;
}

static enum command_status tell(const struct groups *groups, const struct invocation *invocation)
{
	const char *path = invocation->count ? invocation->operands[0] : "-";
	json_t *metrics = describe(groups, invocation);
	enum command_status status = STATUS_DONE;

	if (strcmp(path, "-"))
		status = write_to(path, metrics);
	else
		print(metrics);
	json_decref(metrics);
	return status;
}

static enum command_status run_metrics(const struct invocation *invocation)
{
	enum command_status status = STATUS_DONE;
	struct kernel_filter *filters;
	struct groups groups = {};
	struct reason reason;
	int error = kernel_find(&filters, &groups.filters_count, &reason);

	groups.filters = filters;
	if (!error)
		error = gather(&groups, &reason);
	if (!error)
		status = tell(&groups, invocation);
	for (size_t i = 0; i < groups.count; i++)
		tally_close(&groups.group[i].tally);
	free(groups.group);
	kernel_filters_free(filters, groups.filters_count);
	return error ? command_failed(error, &reason) : status;
}
