// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "exporter/metrics.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <net/if.h>

#include "change/change.h"
#include "config/config.h"
#include "filter/filter.h"
#include "counters/counters.h"
#include "base/version.h"

/* The sums over all filters of a name. Most names have one filter. */
struct group {
	const char *name; /* "-": filters that are not set up */
	struct tally tally;
	struct abi_counter counters[ABI_COUNTERS]; /* the sums of the tally */
	__u64 slots, used, bytes, moves;
	bool is_filtering; /* all filters of the group do */
	const struct kernel_filter *first;
};

#define STORED_MAX 64 /* names that a configuration or a store has, besides those of running filters */

struct groups {
	const struct kernel_filter *filters;
	size_t filters_count;
	char stored[STORED_MAX][ABI_NAME_BYTES];
	struct group *group;
	size_t count;
};

static const char *name_of(const struct kernel_filter *filter)
{
	return filter->config->magic ? filter->config->name : "-";
}

/* Sums the filters by name. */
static int gather(struct groups *groups, struct reason *reason)
{
	int error = 0;

	groups->group = calloc(groups->filters_count + 1 + STORED_MAX, sizeof(*groups->group));
	if (!groups->group)
		return reason_set(reason, -ENOMEM, "not enough memory");
	for (size_t i = 0; i < groups->filters_count && !error; i++) {
		const struct kernel_filter *filter = &groups->filters[i];
		struct group *group = groups->group, *const end = groups->group + groups->count;

		while (group < end && (!group->name || strcmp(group->name, name_of(filter))))
			group++;
		if (group == end) {
			groups->count++;
			*group = (struct group){ .name = name_of(filter), .is_filtering = true, .first = filter };
		}
		group->slots += filter_slots(filter);
		group->used += filter->config->used;
		group->moves += abi_active(filter->config)->moves;
		group->bytes += kernel_filter_bytes(filter);
		group->is_filtering &= run_is_filtering(filter);
		error = tally_add(&group->tally, filter, reason);
	}
	for (size_t i = 0; i < groups->count && !error; i++)
		tally_sum(&groups->group[i].tally, TALLY_ALL, TALLY_ALL, groups->group[i].counters);
	return error;
}

static json_t *label(const struct group *group)
{
	return json_pack("{s:s}", "name", group->name);
}

/*
 * Adds the counters of a group. With `interface` and `row`, `counters` are those of one row. A row stays while
 * its interfaces come and go, so the labels name both.
 */
static void add_packets(json_t *packets, json_t *bytes, const struct group *group, const char *interface,
			unsigned int row, const struct abi_counter counters[ABI_COUNTERS])
{
	for (int i = 0; i < OUTCOMES * VERDICTS; i++) {
		const char *outcome = outcome_words[i / VERDICTS].name, *verdict = verdict_words[i % VERDICTS].name;
		json_t *labels;
		char number[16];

		if (!outcome_can_have(i / VERDICTS, i % VERDICTS))
			continue;
		snprintf(number, sizeof(number), "%u", row % ABI_COUNTER_SENT);
		/* Not with "s*": if memory is short, jansson would leave out a label, as if it were NULL. */
		labels = interface ? json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "name", group->name, "interface",
					       interface, "direction", tally_direction(row), "row", number, "outcome",
					       outcome, "verdict", verdict) :
				     json_pack("{s:s, s:s, s:s}", "name", group->name, "outcome", outcome, "verdict",
					       verdict);
		metrics_sample(packets, json_incref(labels), counters[i].packets);
		metrics_sample(bytes, labels, counters[i].bytes);
	}
}

static void add_counters(json_t *metrics, const struct groups *groups)
{
	json_t *packets, *bytes, *retries, *stopped, *moves;

	packets = metrics_family(metrics, "xdp_cuckoo_packets_total", METRIC_COUNTER,
				 "Packets by outcome and verdict; xdp-cuckoo help stats explains them.");
	bytes = metrics_family(metrics, "xdp_cuckoo_bytes_total", METRIC_COUNTER,
			       "Bytes of these packets, with the Ethernet header if there is one.");
	retries = metrics_family(metrics, "xdp_cuckoo_look_up_retries_total", METRIC_COUNTER,
				 "Look-ups repeated because the table changed.");
	stopped = metrics_family(metrics, "xdp_cuckoo_fingerprints_stopped_total", METRIC_COUNTER,
				 "Packets with the fingerprint of a rule that the exact table cleared.");
	moves = metrics_family(metrics, "xdp_cuckoo_table_moves_total", METRIC_COUNTER,
			       "Entries moved to make room since the table was made.");
	for (size_t i = 0; i < groups->count; i++) {
		const struct group *group = &groups->group[i];

		add_packets(packets, bytes, group, NULL, 0, group->counters);
		metrics_sample(retries, label(group), group->counters[ABI_COUNTER_RETRIES].packets);
		metrics_sample(stopped, label(group), group->counters[ABI_COUNTER_STOPPED].packets);
		metrics_sample(moves, label(group), group->moves);
	}
}

/* These have their own families, because a sum over the totals must not count packets twice. */
static void add_interface_counters(json_t *metrics, const struct groups *groups)
{
	json_t *packets = metrics_family(metrics, "xdp_cuckoo_interface_packets_total", METRIC_COUNTER,
					 "xdp_cuckoo_packets_total by interface, direction and row of counters.");
	json_t *bytes = metrics_family(metrics, "xdp_cuckoo_interface_bytes_total", METRIC_COUNTER,
				       "xdp_cuckoo_bytes_total by interface, direction and row of counters.");

	for (size_t i = 0; i < groups->count; i++)
		for (unsigned int row = 0; row < ABI_COUNTER_ROWS; row++) {
			const struct group *group = &groups->group[i];
			const char *interfaces = group->tally.interfaces[row];
			struct abi_counter counters[ABI_COUNTERS];

			tally_sum(&group->tally, row, TALLY_ALL, counters);
			if (!*interfaces && !tally_has_packets(counters))
				continue;
			add_packets(packets, bytes, group, *interfaces ? interfaces : "-", row, counters);
		}
}

static void add_tables(json_t *metrics, const struct groups *groups)
{
	json_t *filtering = metrics_family(metrics, "xdp_cuckoo_filtering", METRIC_GAUGE,
					   "1: rules are in force; 0: everything passes, see xdp-cuckoo status.");
	json_t *slots = metrics_family(metrics, "xdp_cuckoo_table_slots", METRIC_GAUGE,
				       "Slots of the table; 95 % of them can be filled.");
	json_t *used = metrics_family(metrics, "xdp_cuckoo_table_used_slots", METRIC_GAUGE, "Slots in use.");
	json_t *bytes =
		metrics_family(metrics, "xdp_cuckoo_table_bytes", METRIC_GAUGE, "Kernel memory of the filter's maps.");

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
					"Mean number of look-ups for a packet that no rule matches.");
	json_t *wrong = metrics_family(metrics, "xdp_cuckoo_false_positive_ratio", METRIC_GAUGE,
				       "Chance that such a packet is taken for a match.");

	for (size_t i = 0; i < groups->count; i++)
		for (enum flow_family family = 0; family < FLOW_FAMILIES; family++) {
			const struct group *group = &groups->group[i];
			json_t *labels = json_pack("{s:s, s:s}", "name", group->name, "family", families[family]);

			metrics_sample(probes, json_incref(labels), query_mean_probes(group->first, family));
			metrics_sample(wrong, labels, query_false_positive_rate(group->first, family));
		}
}

static json_t *attachment_labels(const struct kernel_filter *filter, size_t i)
{
	struct kernel_attachment attachment = filter->attachments[i];

	interface_clean_name(attachment.interface);
	return json_pack("{s:s, s:s, s:s, s:s}", "name", name_of(filter), "interface", attachment.interface,
			 "direction", kernel_is_outgoing(&attachment) ? "sent" : "received", "mode",
			 interface_mode_name(attachment.mode));
}

static void add_interfaces(json_t *metrics, const struct groups *groups)
{
	json_t *family = metrics_family(metrics, "xdp_cuckoo_interface_info", METRIC_GAUGE,
					"1 for each interface and direction that the filter runs on.");
	json_t *other = metrics_family(metrics, "xdp_cuckoo_interface_lost_direction", METRIC_GAUGE,
				       "1: another tool has taken off the other direction (none: both).");
	struct if_nameindex *there = if_nameindex();

	for (size_t f = 0; f < groups->filters_count; f++)
		for (size_t i = 0; i < groups->filters[f].attachments_count; i++) {
			const struct kernel_filter *filter = &groups->filters[f];
			json_t *labels = attachment_labels(filter, i);

			metrics_sample(family, json_incref(labels), 1);
			metrics_sample(other, labels, kernel_has_lost_direction(filter, &filter->attachments[i]));
		}
	for (size_t f = 0; f < groups->filters_count; f++)
		for (const struct if_nameindex *i = there; i && i->if_index; i++) {
			char interface[IF_NAMESIZE];

			if (!kernel_has_lost_interface(groups->filters, groups->filters_count, f, (int)i->if_index))
				continue;
			snprintf(interface, sizeof(interface), "%s", i->if_name);
			interface_clean_name(interface);
			metrics_sample(other,
				       json_pack("{s:s, s:s, s:s, s:s}", "name", name_of(&groups->filters[f]),
						 "interface", interface, "direction", "none", "mode", "none"),
				       1);
		}
	if (there)
		if_freenameindex(there);
}

static void add_configuration(json_t *family, json_t *wrong, const char *name)
{
	struct reason ignored;
	struct config *config;
	const int error = config_open(NULL, name, NULL, &config, &ignored);

	metrics_sample(wrong, json_pack("{s:s}", "name", name), error != 0);
	if (error)
		return;
	for (size_t i = 0; i < config->interfaces_count; i++) {
		const int index = interfaces_index(config->interfaces[i]);
		char interface[IF_NAMESIZE];
		size_t k = 0;

		/* The configuration may say another name of the interface, or both. A sample may not be there twice. */
		while (k < i && (!index || interfaces_index(config->interfaces[k]) != index))
			k++;
		snprintf(interface, sizeof(interface), "%s", config->interfaces[i]);
		if (k < i || (index && (!if_indextoname(index, interface) || kernel_may_be_unseen(index))))
			continue;
		interface_clean_name(interface);
		metrics_sample(family,
			       json_pack("{s:s, s:s, s:s}", "name", name, "interface", interface, "direction",
					 "received"),
			       1);
		if (config->load.is_outgoing && kernel_sees_tc())
			metrics_sample(family,
				       json_pack("{s:s, s:s, s:s}", "name", name, "interface", interface, "direction",
						 "sent"),
				       1);
	}
	config_close(config);
}

/* An alert compares them with xdp_cuckoo_interface_info: no filter may run that could say what it lacks. */
static void add_configured(json_t *metrics)
{
	json_t *family =
		metrics_family(metrics, "xdp_cuckoo_interface_configured", METRIC_GAUGE,
			       "1 for each interface and direction that a configuration names, there or not.");
	json_t *wrong = metrics_family(metrics, "xdp_cuckoo_configuration_wrong", METRIC_GAUGE,
				       "1: the configuration has mistakes; see xdp-cuckoo up --dry-run.");
	glob_t files = {};

	glob(CONFIG_DIR "/*.conf", 0, NULL, &files);
	for (size_t i = 0; i < files.gl_pathc; i++) {
		char name[ABI_NAME_BYTES];
		const char *file = strrchr(files.gl_pathv[i], '/') + 1;

		snprintf(name, sizeof(name), "%.*s", (int)(strlen(file) - strlen(".conf")), file);
		if (session_is_name(name))
			add_configuration(family, wrong, name);
	}
	globfree(&files);
}

/* Adds the counts of the driver and of the filter with equal labels. */
static void add_bypasses(json_t *metrics, const struct groups *groups)
{
	json_t *received = metrics_family(metrics, "xdp_cuckoo_interface_received_packets_total", METRIC_COUNTER,
					  "Packets that the interface has received, by its driver's own count.");
	json_t *seen = metrics_family(metrics, "xdp_cuckoo_interface_seen_packets_total", METRIC_COUNTER,
				      "Packets of the interface that the filter has seen.");
	json_t *lost = metrics_family(metrics, "xdp_cuckoo_interface_lost_packets_total", METRIC_COUNTER,
				      "Packets that the card had no room for, so that the filter has not seen them.");
	struct interface *interfaces;
	struct reason ignored;
	__u64 packets;
	size_t count;

	interfaces_list(&interfaces, &count);
	for (size_t f = 0; f < groups->filters_count; f++)
		for (size_t i = 0; i < groups->filters[f].attachments_count; i++) {
			const struct kernel_filter *filter = &groups->filters[f];
			const struct kernel_attachment *attachment = &filter->attachments[i];
			json_t *labels;

			if (kernel_is_outgoing(attachment))
				continue;
			labels = attachment_labels(filter, i);
			metrics_sample(lost, json_incref(labels), attachment->lost);
			/* On an interface of libxdp's dispatcher, other programs may take packets. */
			if (attachment->root_id == attachment->prog_id &&
			    !kernel_counted_on(filter, attachment, interfaces, count, &packets, &ignored)) {
				for (size_t k = 0; k < count; k++)
					if (interfaces[k].index == attachment->ifindex)
						metrics_sample(received, json_incref(labels), interfaces[k].received);
				metrics_sample(seen, json_incref(labels), packets);
			}
			json_decref(labels);
		}
	free(interfaces);
}

/* The families of add_rules() for lists. */
enum list_metric {
	LIST_RULES,
	LIST_IMPORTED,
	LIST_PACKETS,
	LIST_BYTES,
	LIST_FLOWS,
	LIST_REFUSED,
	LIST_REFUSED_RULES,
	LIST_UNREADABLE,
	LIST_FAILURES,
	LIST_FETCHED,
	LIST_NOT_FED,
	LIST_HELD,
	LIST_REFUSED_FOR,
	LIST_SESSION_UP,
	LIST_SESSION_SINCE,
	LIST_SESSIONS,
	LIST_METRICS
};

static const struct {
	const char *name, *help;
} list_metrics[LIST_METRICS] = {
	[LIST_RULES] = { "xdp_cuckoo_list_rules", "Rules of a named list, alone or shared with others." },
	[LIST_IMPORTED] = { "xdp_cuckoo_list_import_timestamp_seconds",
			    "When a named list was last imported: seconds since 1970." },
	[LIST_PACKETS] = { "xdp_cuckoo_list_matched_packets",
			   "Packets that rules of a list matched; with at most 500000 rules." },
	[LIST_BYTES] = { "xdp_cuckoo_list_matched_bytes", "Bytes of these packets." },
	[LIST_FLOWS] = { "xdp_cuckoo_list_flows", "Flows that BGP announces for a list of `flowspec`." },
	[LIST_REFUSED] = { "xdp_cuckoo_list_refused_flows", "How many of these have no rules." },
	[LIST_REFUSED_RULES] = { "xdp_cuckoo_list_refused_rules",
				 "Rules of `crowdsec` that would lock this host out, or find no room." },
	[LIST_UNREADABLE] = { "xdp_cuckoo_list_unreadable_lines",
			      "Lines of GoBGP that `flowspec` could not read since it started." },
	[LIST_FAILURES] = { "xdp_cuckoo_list_failed_fetches",
			    "Fetches of a list by URL that failed since the last that succeeded." },
	[LIST_FETCHED] = { "xdp_cuckoo_list_fetch_timestamp_seconds",
			   "When a list by URL was last fetched: seconds since 1970." },
	[LIST_NOT_FED] = { "xdp_cuckoo_list_not_fed",
			   "1: the source of a list is silent for too long; see xdp-cuckoo lists." },
	[LIST_HELD] = { "xdp_cuckoo_list_held_flows", "Flows of BGP of which all rules are in the list." },
	[LIST_REFUSED_FOR] = { "xdp_cuckoo_list_flows_refused_for",
			       "Flows of BGP that are refused, by reason; see xdp-cuckoo-flowspec(7)." },
	[LIST_SESSION_UP] = { "xdp_cuckoo_list_session_up", "1: the BGP session of a peer is up; 0: it is down." },
	[LIST_SESSION_SINCE] = { "xdp_cuckoo_list_session_timestamp_seconds",
				 "Since when the session is up or down: seconds since 1970." },
	[LIST_SESSIONS] = { "xdp_cuckoo_list_sessions", "BGP sessions of a list of `flowspec`, by state." },
};

/* Leaves out the session of a peer if gobgp has not told its state. `labels` have the name and the list. */
static void add_flows(json_t *const families[LIST_METRICS], json_t *labels, const struct flow_report *report)
{
	metrics_sample(families[LIST_HELD], json_incref(labels), report->flows[REFUSAL_NONE]);
	for (enum refusal i = REFUSAL_NONE + 1; i < REFUSALS; i++) {
		json_t *more = json_copy(labels);

		json_object_set_new(more, "reason", json_string(refusal_names[i]));
		metrics_sample(families[LIST_REFUSED_FOR], more, report->flows[i]);
	}
	for (enum peer_state i = 0; i < PEER_STATES; i++) {
		json_t *more = json_copy(labels);

		json_object_set_new(more, "state", json_string(peer_state_names[i]));
		metrics_sample(families[LIST_SESSIONS], more, report->sessions[i]);
	}
	for (size_t i = 0; i < report->peers; i++) {
		const struct flow_peer *peer = &report->peer[i];
		json_t *more = json_copy(labels);

		json_object_set_new(more, "peer", json_string(peer->address));
		if (peer->state != PEER_UNKNOWN)
			metrics_sample(families[LIST_SESSION_UP], json_incref(more), peer->state == PEER_UP);
		if (peer->state != PEER_UNKNOWN && peer->since_s)
			metrics_sample(families[LIST_SESSION_SINCE], json_incref(more), peer->since_s);
		json_decref(more);
	}
}

/* "-" are the rules that were added by hand. A list that was only fed by `add` has no time of an import. */
static void add_lists(json_t *const families[LIST_METRICS], const struct group *group,
		      const struct store_summary *summary)
{
	for (size_t i = 0; i <= STORE_LISTS_MAX; i++) {
		const struct store_list *list = &summary->lists.list[i];
		const char *name = i == STORE_BY_HAND ? "-" : list->name;

		if (*list->name) {
			const struct store_source source = store_source_parse(list->source);
			json_t *labels = json_pack("{s:s, s:s}", "name", group->name, "list", name);

			metrics_sample(families[LIST_RULES], json_incref(labels), list->rules);
			if (list->imported_s)
				metrics_sample(families[LIST_IMPORTED], json_incref(labels), list->imported_s);
			if (source.kind == STORE_SOURCE_FLOWSPEC) {
				metrics_sample(families[LIST_FLOWS], json_incref(labels), source.flows);
				metrics_sample(families[LIST_REFUSED], json_incref(labels), source.refused);
				metrics_sample(families[LIST_UNREADABLE], json_incref(labels), source.unreadable);
			}
			if (source.kind == STORE_SOURCE_CROWDSEC)
				metrics_sample(families[LIST_REFUSED_RULES], json_incref(labels), source.refused);
			if (summary->flows[i].second)
				add_flows(families, labels, &summary->flows[i]);
			if (list->stale_s)
				metrics_sample(families[LIST_NOT_FED], json_incref(labels),
					       store_list_silent_s(list, &summary->feeds.feed[i]) != 0);
			if (summary->feeds.feed[i].config)
				metrics_sample(families[LIST_FAILURES], json_incref(labels),
					       summary->feeds.feed[i].failures);
			if (summary->feeds.feed[i].fetched_s)
				metrics_sample(families[LIST_FETCHED], json_incref(labels),
					       summary->feeds.feed[i].fetched_s);
			json_decref(labels);
		}
		for (enum rule_action action = 0; action < RULE_ACTIONS && summary->has_counts; action++) {
			const struct list_count *count = &summary->counts.of[i][action];
			json_t *labels;

			if (!count->rules)
				continue;
			labels = json_pack("{s:s, s:s, s:s}", "name", group->name, "list", name, "action",
					   rule_action_name(action));
			metrics_sample(families[LIST_PACKETS], json_incref(labels), count->count.packets);
			metrics_sample(families[LIST_BYTES], labels, count->count.bytes);
		}
	}
}

/* Adds a group for each name with a configuration or a store, whose filter does not run. */
static void add_stored(struct groups *groups, const char *state)
{
	char pattern[PATH_MAX];
	glob_t files = {};
	size_t count = 0, configured;

	glob(CONFIG_DIR "/*.conf", 0, NULL, &files);
	configured = files.gl_pathc;
	snprintf(pattern, sizeof(pattern), "%s/*", state ? state : SESSION_STATE_DEFAULT);
	glob(pattern, GLOB_APPEND, NULL, &files);
	for (size_t i = 0; i < files.gl_pathc && count < STORED_MAX; i++) {
		const char *file = strrchr(files.gl_pathv[i], '/') + 1, *end = strrchr(file, '.');
		char *name = groups->stored[count];
		size_t k = 0;

		snprintf(name, ABI_NAME_BYTES, "%.*s", i < configured ? (int)(end - file) : ABI_NAME_BYTES - 1, file);
		while (k < groups->count && strcmp(groups->group[k].name, name))
			k++;
		if (k < groups->count || !session_is_name(name))
			continue;
		groups->group[groups->count++].name = name;
		count++;
	}
	globfree(&files);
}

/* Reads the store of each name. A name without a store has only the lists of its configuration. */
static void add_rules(json_t *metrics, const struct groups *groups, const char *state, struct reason *unread)
{
	json_t *readable = metrics_family(metrics, "xdp_cuckoo_store_readable", METRIC_GAUGE,
					  "1: the stored rules can be read; 0: they cannot.");
	json_t *rules =
		metrics_family(metrics, "xdp_cuckoo_rules", METRIC_GAUGE, "Rules that are stored and have not ended.");
	json_t *timed =
		metrics_family(metrics, "xdp_cuckoo_timed_rules", METRIC_GAUGE, "Rules that end by themselves.");
	json_t *families[LIST_METRICS];

	for (size_t i = 0; i < LIST_METRICS; i++)
		families[i] = metrics_family(metrics, list_metrics[i].name, METRIC_GAUGE, list_metrics[i].help);
	for (size_t i = 0; i < groups->count; i++) {
		const struct group *group = &groups->group[i];
		struct store_summary summary;
		struct reason reason;
		char dir[PATH_MAX];
		int error = session_state_dir(state, group->name, dir, sizeof(dir));

		if (!error)
			error = store_summary_read(dir, group->name, &summary, &reason);
		else
			reason_set(&reason, error, "the name of the state directory is too long");
		if (error == -ENOENT) {
			summary = (struct store_summary){};
			config_expect(group->name, &summary.lists);
			add_lists(families, group, &summary);
			continue;
		}
		if (group->first || error)
			metrics_sample(readable, label(group), !error);
		if (error && !*unread->text)
			reason_set(unread, error, "no rules of '%s': %s", group->name, reason.text);
		if (error)
			continue;
		if (group->first) {
			metrics_sample(rules, label(group), summary.info.rules);
			metrics_sample(timed, label(group), summary.info.timed);
		}
		config_expect(group->name, &summary.lists);
		add_lists(families, group, &summary);
	}
}

int metrics_gather(const char *state, json_t **metrics, struct reason *unread, struct reason *reason)
{
	struct kernel_filter *filters = NULL;
	struct groups groups = {};
	enum kernel_seen seen;
	json_t *build;
	int error = kernel_find_filters((struct kernel_wish){ .keeps_pins = true, .seen = &seen }, &filters,
					&groups.filters_count, reason);

	*metrics = NULL;
	*unread->text = '\0';
	groups.filters = filters;
	if (!error && seen != KERNEL_SEEN && groups.filters_count)
		*unread = *reason;
	else if (!error)
		error = kernel_seen_error(seen);
	if (!error)
		error = gather(&groups, reason);
	if (!error) {
		*metrics = metrics_begin();
		build = metrics_family(*metrics, "xdp_cuckoo_build_info", METRIC_GAUGE, "The version of the tool.");
		metrics_sample(build, json_pack("{s:s}", "version", VERSION), 1);
		add_interfaces(*metrics, &groups);
		add_configured(*metrics);
		add_tables(*metrics, &groups);
		add_counters(*metrics, &groups);
		add_interface_counters(*metrics, &groups);
		add_bypasses(*metrics, &groups);
		add_families(*metrics, &groups);
		add_stored(&groups, state);
		add_rules(*metrics, &groups, state, unread);
		error = metrics_end();
		if (error) {
			json_decref(*metrics);
			*metrics = NULL;
			reason_set(reason, error, "not enough memory");
		}
	}
	for (size_t i = 0; i < groups.count; i++)
		tally_close(&groups.group[i].tally);
	free(groups.group);
	kernel_filters_free(filters, groups.filters_count);
	return error;
}
