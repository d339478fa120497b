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
#include "base/memory.h"
#include "base/version.h"

/*
 * All families, in the order in which they are printed. Those named _total are counters, all others gauges. Packets of
 * interfaces have their own families, because a sum over the totals must not count packets twice.
 */
#define ALL_FAMILIES(ROW) \
	ROW(BUILD_INFO, "xdp_cuckoo_build_info", "The version of the tool.") \
	ROW(INTERFACE_INFO, "xdp_cuckoo_interface_info", \
	    "1 for each interface and direction that the filter runs on.") \
	ROW(LOST_DIRECTION, "xdp_cuckoo_interface_lost_direction", \
	    "1: another tool has taken off the other direction (none: both).") \
	ROW(BEHIND, "xdp_cuckoo_interface_behind_another", \
	    "1: at tc, a program of another tool comes before the filter.") \
	ROW(CONFIGURED, "xdp_cuckoo_interface_configured", \
	    "1 for each interface and direction that a configuration names, there or not.") \
	ROW(CONFIGURATION_WRONG, "xdp_cuckoo_configuration_wrong", \
	    "1: the configuration has mistakes; see xdp-cuckoo up --dry-run.") \
	ROW(FILTERING, "xdp_cuckoo_filtering", \
	    "1: rules are in force; 0: everything passes, see xdp-cuckoo status.") \
	ROW(SLOTS, "xdp_cuckoo_table_slots", "Slots of the table; 95 % of them can be filled.") \
	ROW(USED_SLOTS, "xdp_cuckoo_table_used_slots", "Slots in use.") \
	ROW(TABLE_BYTES, "xdp_cuckoo_table_bytes", "Kernel memory of the filter's maps.") \
	ROW(PACKETS, "xdp_cuckoo_packets_total", \
	    "Packets by outcome and verdict; xdp-cuckoo help stats explains them.") \
	ROW(BYTES, "xdp_cuckoo_bytes_total", \
	    "Bytes of these packets, with the Ethernet header if there is one.") \
	ROW(RETRIES, "xdp_cuckoo_look_up_retries_total", \
	    "Look-ups repeated because the table changed.") \
	ROW(STOPPED, "xdp_cuckoo_fingerprints_stopped_total", \
	    "Packets with the fingerprint of a rule that the exact table cleared.") \
	ROW(MOVES, "xdp_cuckoo_table_moves_total", \
	    "Entries moved to make room since the table was made.") \
	ROW(INTERFACE_PACKETS, "xdp_cuckoo_interface_packets_total", \
	    "xdp_cuckoo_packets_total by interface, direction and row of counters.") \
	ROW(INTERFACE_BYTES, "xdp_cuckoo_interface_bytes_total", \
	    "xdp_cuckoo_bytes_total by interface, direction and row of counters.") \
	ROW(RECEIVED, "xdp_cuckoo_interface_received_packets_total", \
	    "Packets that the interface has received, by its driver's own count.") \
	ROW(SEEN, "xdp_cuckoo_interface_seen_packets_total", \
	    "Packets of the interface that the filter has seen.") \
	ROW(LOST, "xdp_cuckoo_interface_lost_packets_total", \
	    "Packets that the card had no room for, so that the filter has not seen them.") \
	ROW(MEAN_PROBES, "xdp_cuckoo_mean_probes", \
	    "Mean number of look-ups for a packet that no rule matches.") \
	ROW(FALSE_POSITIVES, "xdp_cuckoo_false_positive_ratio", \
	    "Chance that such a packet is taken for a match.") \
	ROW(STORE_READABLE, "xdp_cuckoo_store_readable", \
	    "1: the stored rules can be read; 0: they cannot.") \
	ROW(RULES, "xdp_cuckoo_rules", "Rules that are stored and have not ended.") \
	ROW(TIMED_RULES, "xdp_cuckoo_timed_rules", "Rules that end by themselves.") \
	ROW(LIST_RULES, "xdp_cuckoo_list_rules", \
	    "Rules of a named list, alone or shared with others.") \
	ROW(LIST_IMPORTED, "xdp_cuckoo_list_import_timestamp_seconds", \
	    "When a named list was last imported: seconds since 1970.") \
	ROW(LIST_PACKETS, "xdp_cuckoo_list_matched_packets", \
	    "Packets that rules of a list matched; only if 5 s, and 500000 rules, are enough.") \
	ROW(LIST_BYTES, "xdp_cuckoo_list_matched_bytes", "Bytes of these packets.") \
	ROW(LIST_FLOWS, "xdp_cuckoo_list_flows", \
	    "Flows that BGP announces for a list of `flowspec`.") \
	ROW(LIST_REFUSED, "xdp_cuckoo_list_refused_flows", "How many of these have no rules.") \
	ROW(LIST_REFUSED_RULES, "xdp_cuckoo_list_refused_rules", \
	    "Rules of `crowdsec` or a fleet that would lock this host out, or find no room.") \
	ROW(LIST_UNREADABLE, "xdp_cuckoo_list_unreadable_lines", \
	    "Lines of GoBGP that `flowspec` could not read since it started.") \
	ROW(LIST_FAILURES, "xdp_cuckoo_list_failed_fetches", \
	    "Fetches of a list by URL that failed since the last that succeeded.") \
	ROW(LIST_LEFT_OUT, "xdp_cuckoo_list_left_out", \
	    "Bad lines of a list, and rules that would lock this host out or find no room.") \
	ROW(LIST_FETCHED, "xdp_cuckoo_list_fetch_timestamp_seconds", \
	    "When a list by URL was last fetched: seconds since 1970.") \
	ROW(LIST_NOT_FED, "xdp_cuckoo_list_not_fed", \
	    "1: the source of a list is silent for too long; see xdp-cuckoo lists.") \
	ROW(LIST_HELD, "xdp_cuckoo_list_held_flows", \
	    "Flows of BGP of which all rules are in the list.") \
	ROW(LIST_REFUSED_FOR, "xdp_cuckoo_list_flows_refused_for", \
	    "Flows of BGP that are refused, by reason; see xdp-cuckoo-flowspec(7).") \
	ROW(LIST_SESSION_UP, "xdp_cuckoo_list_session_up", \
	    "1: the BGP session of a peer is up; 0: it is down.") \
	ROW(LIST_SESSION_SINCE, "xdp_cuckoo_list_session_timestamp_seconds", \
	    "Since when the session is up or down: seconds since 1970.") \
	ROW(LIST_SESSIONS, "xdp_cuckoo_list_sessions", \
	    "BGP sessions of a list of `flowspec`, by state.")

enum family {
#define ROW(family, name, help) family,
	ALL_FAMILIES(ROW)
#undef ROW
		FAMILIES
};

static const struct {
	const char *name, *help;
} families[] = {
#define ROW(family, name, help) { name, help },
	ALL_FAMILIES(ROW)
#undef ROW
};

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

struct gathering {
	json_t *family[FAMILIES];
	struct kernel_filter *filters;
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
static int sum_filters(struct gathering *all, struct reason *reason)
{
	int error = 0;

	all->group = calloc(all->filters_count + 1 + STORED_MAX, sizeof(*all->group));
	if (!all->group)
		return reason_set(reason, -ENOMEM, "not enough memory");
	for (size_t i = 0; i < all->filters_count && !error; i++) {
		const struct kernel_filter *filter = &all->filters[i];
		struct group *group = all->group, *const end = all->group + all->count;

		while (group < end && (!group->name || strcmp(group->name, name_of(filter))))
			group++;
		if (group == end) {
			all->count++;
			*group = (struct group){ .name = name_of(filter), .is_filtering = true, .first = filter };
		}
		group->slots += filter_slots(filter);
		group->used += filter->config->used;
		group->moves += abi_active(filter->config)->moves;
		group->bytes += kernel_filter_bytes(filter);
		group->is_filtering &= run_is_filtering(filter);
		error = tally_add(&group->tally, filter, reason);
	}
	for (size_t i = 0; i < all->count && !error; i++)
		tally_sum(&all->group[i].tally, TALLY_ALL, TALLY_ALL, all->group[i].counters);
	return error;
}

static void sample(const struct gathering *all, enum family family, json_t *labels, double value)
{
	metrics_sample(all->family[family], json_incref(labels), value);
}

/* A copy of the labels with one more. NULL if memory is short: a sample never lacks a label. */
static json_t *with_label(json_t *labels, const char *name, const char *value)
{
	json_t *more = json_copy(labels);

	if (!json_object_set_new(more, name, json_string(value)))
		return more;
	json_decref(more);
	return NULL;
}

/* ---- the filters of a name ---- */

static void add_packets(const struct gathering *all, enum family packets, enum family bytes,
			json_t *labels, const struct abi_counter counters[ABI_COUNTERS])
{
	for (int i = 0; i < OUTCOMES * VERDICTS; i++) {
		json_auto_t *outcome =
			with_label(labels, "outcome", outcome_words[i / VERDICTS].name);
		json_auto_t *both =
			with_label(outcome, "verdict", verdict_words[i % VERDICTS].name);

		if (!outcome_can_have(i / VERDICTS, i % VERDICTS))
			continue;
		sample(all, packets, both, counters[i].packets);
		sample(all, bytes, both, counters[i].bytes);
	}
}

/* A row of counters stays while its interfaces come and go, so the labels name both. */
static void add_row(const struct gathering *all, const struct group *group, unsigned int row)
{
	const char *interfaces = group->tally.interfaces[row];
	struct abi_counter counters[ABI_COUNTERS];
	json_auto_t *labels = NULL;
	char number[16];

	tally_sum(&group->tally, row, TALLY_ALL, counters);
	if (!*interfaces && !tally_has_packets(counters))
		return;
	snprintf(number, sizeof(number), "%u", row % ABI_COUNTER_SENT);
	labels = json_pack("{s:s, s:s, s:s, s:s}", "name", group->name, "interface",
			   *interfaces ? interfaces : "-", "direction", tally_direction(row), "row",
			   number);
	add_packets(all, INTERFACE_PACKETS, INTERFACE_BYTES, labels, counters);
}

static void add_group(const struct gathering *all, const struct group *group)
{
	static const char *const names[] = { [FLOW_IPV4] = "ipv4", [FLOW_IPV6] = "ipv6" };
	json_auto_t *labels = json_pack("{s:s}", "name", group->name);

	sample(all, FILTERING, labels, group->is_filtering);
	sample(all, SLOTS, labels, group->slots);
	sample(all, USED_SLOTS, labels, group->used);
	sample(all, TABLE_BYTES, labels, group->bytes);
	sample(all, RETRIES, labels, group->counters[ABI_COUNTER_RETRIES].packets);
	sample(all, STOPPED, labels, group->counters[ABI_COUNTER_STOPPED].packets);
	sample(all, MOVES, labels, group->moves);
	add_packets(all, PACKETS, BYTES, labels, group->counters);
	for (unsigned int row = 0; row < ABI_COUNTER_ROWS; row++)
		add_row(all, group, row);
	for (enum flow_family family = 0; family < FLOW_FAMILIES; family++) {
		json_auto_t *more = with_label(labels, "family", names[family]);

		sample(all, MEAN_PROBES, more, query_mean_probes(group->first, family));
		sample(all, FALSE_POSITIVES, more, query_false_positive_rate(group->first, family));
	}
}

/* ---- interfaces ---- */

static json_t *interface_labels(const char *name, const char *interface, const char *direction)
{
	char clean[IF_NAMESIZE];

	snprintf(clean, sizeof(clean), "%s", interface);
	interface_clean_name(clean);
	return json_pack("{s:s, s:s, s:s}", "name", name, "interface", clean, "direction",
			 direction);
}

static void add_attachment(const struct gathering *all, const struct kernel_filter *filter,
			   const struct kernel_attachment *attachment,
			   const struct interface *interfaces, size_t count)
{
	const bool is_sent = kernel_is_outgoing(attachment);
	json_auto_t *name = interface_labels(name_of(filter), attachment->interface,
					     is_sent ? "sent" : "received");
	json_auto_t *labels = with_label(name, "mode", interface_mode_name(attachment->mode));
	struct reason ignored;
	__u64 packets;

	sample(all, INTERFACE_INFO, labels, 1);
	sample(all, LOST_DIRECTION, labels, kernel_has_lost_direction(filter, attachment));
	sample(all, BEHIND, labels, attachment->is_behind);
	if (is_sent)
		return;
	sample(all, LOST, labels, attachment->lost);
	/* On an interface of libxdp's dispatcher, other programs may take packets. */
	if (attachment->root_id != attachment->prog_id ||
	    kernel_counted_on(filter, attachment, interfaces, count, &packets, &ignored))
		return;
	for (size_t i = 0; i < count; i++)
		if (interfaces[i].index == attachment->ifindex)
			sample(all, RECEIVED, labels, interfaces[i].received);
	sample(all, SEEN, labels, packets);
}

static void add_interfaces(const struct gathering *all)
{
	struct if_nameindex *there = if_nameindex();
	FREED struct interface *interfaces = NULL;
	size_t count;

	interfaces_list(&interfaces, &count);
	for (size_t f = 0; f < all->filters_count; f++)
		for (size_t i = 0; i < all->filters[f].attachments_count; i++)
			add_attachment(all, &all->filters[f], &all->filters[f].attachments[i],
				       interfaces, count);
	for (size_t f = 0; f < all->filters_count; f++)
		for (const struct if_nameindex *i = there; i && i->if_index; i++) {
			json_auto_t *name =
				interface_labels(name_of(&all->filters[f]), i->if_name, "none");
			json_auto_t *labels = with_label(name, "mode", "none");

			if (kernel_has_lost_interface(all->filters, all->filters_count, f,
						      (int)i->if_index))
				sample(all, LOST_DIRECTION, labels, 1);
		}
	if (there)
		if_freenameindex(there);
}

/* An alert compares them with xdp_cuckoo_interface_info: no filter may run that could say what it lacks. */
static void add_configuration(const struct gathering *all, const char *name)
{
	json_auto_t *labels = json_pack("{s:s}", "name", name);
	struct reason ignored;
	struct config *config;
	const int error = config_open(NULL, name, NULL, &config, &ignored);

	sample(all, CONFIGURATION_WRONG, labels, error != 0);
	if (error)
		return;
	for (size_t i = 0; i < config->interfaces_count; i++) {
		const int index = interfaces_index(config->interfaces[i]);
		json_auto_t *received = NULL, *sent = NULL;
		char interface[IF_NAMESIZE];
		size_t k = 0;

		/* The configuration may say another name of the interface, or both. A sample may not be there twice. */
		while (k < i && (!index || interfaces_index(config->interfaces[k]) != index))
			k++;
		snprintf(interface, sizeof(interface), "%s", config->interfaces[i]);
		if (k < i || (index && (!if_indextoname(index, interface) || kernel_may_be_unseen(index))))
			continue;
		received = interface_labels(name, interface, "received");
		sample(all, CONFIGURED, received, 1);
		if (!config->load.is_outgoing || !kernel_sees_tc())
			continue;
		sent = interface_labels(name, interface, "sent");
		sample(all, CONFIGURED, sent, 1);
	}
	config_close(config);
}

/* ---- stores ---- */

/* Leaves out the session of a peer if gobgp has not told its state. `labels` have the name and the list. */
static void add_flows(const struct gathering *all, json_t *labels, const struct flow_report *report)
{
	sample(all, LIST_HELD, labels, report->flows[REFUSAL_NONE]);
	for (enum refusal i = REFUSAL_NONE + 1; i < REFUSALS; i++) {
		json_auto_t *more = with_label(labels, "reason", refusal_names[i]);

		sample(all, LIST_REFUSED_FOR, more, report->flows[i]);
	}
	for (enum peer_state i = 0; i < PEER_STATES; i++) {
		json_auto_t *more = with_label(labels, "state", peer_state_names[i]);

		sample(all, LIST_SESSIONS, more, report->sessions[i]);
	}
	for (size_t i = 0; i < report->peers; i++) {
		const struct flow_peer *peer = &report->peer[i];
		json_auto_t *more = with_label(labels, "peer", peer->address);

		if (peer->state != PEER_UNKNOWN)
			sample(all, LIST_SESSION_UP, more, peer->state == PEER_UP);
		if (peer->state != PEER_UNKNOWN && peer->since_s)
			sample(all, LIST_SESSION_SINCE, more, peer->since_s);
	}
}

/* A list that was only fed by `add` has no time of an import. */
static void add_list(const struct gathering *all, json_t *labels, const struct store_list *list,
		     const struct store_feed *feed, const struct flow_report *flows)
{
	const struct store_source source = store_source_parse(list->source);

	sample(all, LIST_RULES, labels, list->rules);
	if (list->imported_s)
		sample(all, LIST_IMPORTED, labels, list->imported_s);
	if (source.kind == STORE_SOURCE_FLOWSPEC) {
		sample(all, LIST_FLOWS, labels, source.flows);
		sample(all, LIST_REFUSED, labels, source.refused);
		sample(all, LIST_UNREADABLE, labels, source.unreadable);
	}
	if (source.kind == STORE_SOURCE_CROWDSEC || source.kind == STORE_SOURCE_FLEET)
		sample(all, LIST_REFUSED_RULES, labels, source.refused);
	if (flows->second)
		add_flows(all, labels, flows);
	if (list->stale_s)
		sample(all, LIST_NOT_FED, labels, store_list_silent_s(list, feed) != 0);
	if (list->imported_s && source.kind == STORE_SOURCE_OTHER)
		sample(all, LIST_LEFT_OUT, labels, store_list_left_out(list, feed));
	if (feed->config)
		sample(all, LIST_FAILURES, labels, feed->failures);
	if (feed->fetched_s)
		sample(all, LIST_FETCHED, labels, feed->fetched_s);
}

/* "-" are the rules that were added by hand. */
static void add_lists(const struct gathering *all, const char *name, struct store_summary *summary)
{
	config_expect(name, &summary->lists);
	for (size_t i = 0; i <= STORE_LISTS_MAX; i++) {
		const struct store_list *list = &summary->lists.list[i];
		json_auto_t *labels = json_pack("{s:s, s:s}", "name", name, "list",
						i == STORE_BY_HAND ? "-" : list->name);

		if (*list->name)
			add_list(all, labels, list, &summary->feeds.feed[i], &summary->flows[i]);
		for (enum rule_action action = 0; action < RULE_ACTIONS && summary->has_counts; action++) {
			const struct list_count *count = &summary->counts.of[i][action];
			json_auto_t *more = with_label(labels, "action", rule_action_name(action));

			if (!count->rules)
				continue;
			sample(all, LIST_PACKETS, more, count->count.packets);
			sample(all, LIST_BYTES, more, count->count.bytes);
		}
	}
}

/* Adds a group for each name with a configuration or a store, whose filter does not run. */
static void add_stored(struct gathering *all, const char *state)
{
	char pattern[PATH_MAX];
	glob_t files = {};
	size_t count = 0, configured;

	glob(CONFIG_DIR "/*.conf", 0, NULL, &files);
	configured = files.gl_pathc;
	snprintf(pattern, sizeof(pattern), "%s/*", state ? state : SESSION_STATE_DEFAULT);
	glob(pattern, GLOB_APPEND, NULL, &files);
	for (size_t i = 0; i < files.gl_pathc; i++) {
		const char *file = strrchr(files.gl_pathv[i], '/') + 1, *end = strrchr(file, '.');
		char name[ABI_NAME_BYTES];
		size_t k = 0;

		snprintf(name, ABI_NAME_BYTES, "%.*s", i < configured ? (int)(end - file) : ABI_NAME_BYTES - 1, file);
		if (!session_is_name(name))
			continue;
		if (i < configured)
			add_configuration(all, name);
		while (k < all->count && strcmp(all->group[k].name, name))
			k++;
		if (k == all->count && count < STORED_MAX)
			all->group[all->count++].name = strcpy(all->stored[count++], name);
	}
	globfree(&files);
}

/* Reads the store of a name. A name without a store has only the lists of its configuration. */
static void add_store(const struct gathering *all, const struct group *group, const char *state,
		      struct reason *unread)
{
	json_auto_t *labels = json_pack("{s:s}", "name", group->name);
	struct store_summary summary = {};
	struct reason reason;
	char dir[PATH_MAX];
	int error = session_state_dir(state, group->name, dir, sizeof(dir));

	if (!error)
		error = store_summary_read(dir, group->name, &summary, &reason);
	else
		reason_set(&reason, error, "the name of the state directory is too long");
	if (error == -ENOENT) {
		summary = (struct store_summary){};
		add_lists(all, group->name, &summary);
		return;
	}
	if (group->first || error)
		sample(all, STORE_READABLE, labels, !error);
	if (error && !*unread->text)
		reason_set(unread, error, "no rules of '%s': %s", group->name, reason.text);
	if (error)
		return;
	if (group->first) {
		sample(all, RULES, labels, summary.info.rules);
		sample(all, TIMED_RULES, labels, summary.info.timed);
	}
	add_lists(all, group->name, &summary);
}

static void add_all(struct gathering *all, const char *state, json_t *metrics,
		    struct reason *unread)
{
	json_auto_t *labels = json_pack("{s:s}", "version", VERSION);

	for (enum family i = 0; i < FAMILIES; i++)
		all->family[i] = metrics_family(metrics, families[i].name,
						strstr(families[i].name, "_total") ?
							METRIC_COUNTER :
							METRIC_GAUGE,
						families[i].help);
	sample(all, BUILD_INFO, labels, 1);
	add_interfaces(all);
	for (size_t i = 0; i < all->count; i++)
		add_group(all, &all->group[i]);
	add_stored(all, state);
	for (size_t i = 0; i < all->count; i++)
		add_store(all, &all->group[i], state, unread);
}

int metrics_gather(const char *state, json_t **metrics, struct reason *unread, struct reason *reason)
{
	struct gathering all = {};
	enum kernel_seen seen;
	int error = kernel_find_filters((struct kernel_wish){ .keeps_pins = true, .seen = &seen },
					&all.filters, &all.filters_count, reason);

	*metrics = NULL;
	*unread->text = '\0';
	if (!error && seen != KERNEL_SEEN && all.filters_count)
		*unread = *reason;
	else if (!error)
		error = kernel_seen_error(seen);
	if (!error)
		error = sum_filters(&all, reason);
	if (!error) {
		*metrics = metrics_begin();
		add_all(&all, state, *metrics, unread);
		error = metrics_end();
		if (error) {
			json_decref(*metrics);
			*metrics = NULL;
			reason_set(reason, error, "not enough memory");
		}
	}
	for (size_t i = 0; i < all.count; i++)
		tally_close(&all.group[i].tally);
	free(all.group);
	kernel_filters_free(all.filters, all.filters_count);
	return error;
}
