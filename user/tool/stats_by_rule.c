// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* stats --by rule, prefix, list: the rules that matched most packets. --by source: who sent what is dropped, from samples. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "tool/internal.h"
#include "base/clock.h"
#include "counters/counters.h"
#include "io/output.h"

#define TOP_DEFAULT 20
#define ENTRIES_MIN 1024
#define SOURCES_MAX 65536 /* of these the rarer half is forgotten */
#define SAMPLES_RATE 1000 /* per second on each CPU, as for top */
#define SAMPLES_MS 5000   /* how long, by default */
#define PAUSE_MS 200

/* A rule and its count. With --by prefix, the rule names only the source. Encoded, it takes a quarter of the memory. */
struct entry {
	__u8 rule[RULE_ENCODED_BYTES];
	__u64 length, rules;
	struct abi_counter count;
};

/* The best rules so far. There is room for more than are wanted, so that sorting is rare. */
struct ranking {
	const struct rule_counts *counts;
	const struct stats_prefix *prefix; /* NULL: by rule */
	bool is_sampled;                   /* by source */
	__u64 samples;                     /* of packets that are dropped, also those that are no IP */
	struct entry *entry;
	size_t count, room, top;
};

int stats_prefix_parse(const char *text, struct stats_prefix *prefix)
{
	unsigned int ipv4 = 24, ipv6 = 48;
	char one[32], both[32];

	/* scanf() also takes signs, blanks and leading zeros. */
	sscanf(text, "prefix=%3u,%3u", &ipv4, &ipv6);
	snprintf(one, sizeof(one), "prefix=%u", ipv4);
	snprintf(both, sizeof(both), "prefix=%u,%u", ipv4, ipv6);
	if (strcmp(text, "prefix") && strcmp(text, one) && strcmp(text, both))
		return -EINVAL;
	if (ipv4 < 1 || ipv4 > 32 || ipv6 < 1 || ipv6 > 128)
		return -EINVAL;
	prefix->length[FLOW_IPV4] = ipv4;
	prefix->length[FLOW_IPV6] = ipv6;
	return 0;
}

static int by_packets(const struct abi_counter *x, const struct abi_counter *y)
{
	return (x->packets < y->packets) - (x->packets > y->packets);
}

static int compare_counts(const void *a, const void *b)
{
	return by_packets(&((const struct entry *)a)->count, &((const struct entry *)b)->count);
}

static int compare_sources(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return memcmp(x->rule, y->rule, sizeof(x->rule));
}

/* By packets; by prefix, the sums of equal sources. */
static void sort(struct ranking *ranking)
{
	size_t joined = 0;

	if (!ranking->count)
		return;
	qsort(ranking->entry, ranking->count, sizeof(*ranking->entry),
	      ranking->prefix ? compare_sources : compare_counts);
	for (size_t i = 0; i < ranking->count && ranking->prefix; i++) {
		const struct entry *entry = &ranking->entry[i];
		struct entry *last = joined ? &ranking->entry[joined - 1] : NULL;

		if (last && !compare_sources(last, entry)) {
			last->count.packets += entry->count.packets;
			last->count.bytes += entry->count.bytes;
			last->rules += entry->rules;
			continue;
		}
		ranking->entry[joined++] = *entry;
	}
	if (ranking->prefix)
		ranking->count = joined;
}

/* Adds packets to a rule, or to the prefix of its source. 0; -ENOMEM. */
static int put(struct ranking *ranking, const struct rule *rule, struct abi_counter count)
{
	struct entry entry = { .rules = 1, .count = count }, *grown;
	struct rule summed;

	if (ranking->count == ranking->room) {
		sort(ranking);
		/* Only the first `top` rules may stay, but all prefixes: their sums may yet grow. */
		if (!ranking->prefix && ranking->count > ranking->top)
			ranking->count = ranking->top;
		if (ranking->is_sampled && ranking->count > SOURCES_MAX) {
			qsort(ranking->entry, ranking->count, sizeof(*ranking->entry), compare_counts);
			ranking->count = SOURCES_MAX / 2;
		}
		if (ranking->count > ranking->room / 2 || !ranking->room) {
			ranking->room = ranking->room ? 2 * ranking->room : 2 * ranking->top + ENTRIES_MIN;
			grown = realloc(ranking->entry, ranking->room * sizeof(*grown));
			if (!grown)
				return -ENOMEM;
			ranking->entry = grown;
		}
	}
	summed = *rule;
	if (ranking->prefix) {
		/* The prefix under which the rule counts. A rule without a source has no family. */
		summed = (struct rule){ .family = FLOW_NO_FAMILY };
		if (rule->src_len) {
			summed.family = rule->family;
			summed.src_len = MIN(rule->src_len, ranking->prefix->length[rule->family]);
			summed.src = rule_network(&rule->src, summed.src_len);
		}
	}
	entry.length = rule_encode(&summed, entry.rule);
	ranking->entry[ranking->count++] = entry;
	return 0;
}

static int rank(const struct rule *rule, void *context)
{
	struct ranking *ranking = context;
	struct abi_counter count;

	if (rule->action == RULE_PASS || rule->timeout_ms < 0)
		return 0;
	count = rule_counts_of(ranking->counts, rule);
	return count.packets ? put(ranking, rule, count) : 0;
}

/* Rules, prefixes or sources; most packets first. Frees the ranking. `store`: where the comments of rules are. */
static json_t *take_rows(struct ranking *ranking, struct store *store)
{
	json_t *rows = json_array();
	char text[RULE_TEXT_BYTES];
	struct rule rule;

	sort(ranking);
	if (ranking->count)
		qsort(ranking->entry, ranking->count, sizeof(*ranking->entry), compare_counts);
	for (size_t i = 0; i < ranking->count && i < ranking->top; i++) {
		const struct entry *entry = &ranking->entry[i];
		const json_int_t packets = entry->count.packets, bytes = entry->count.bytes;
		json_auto_t *comment = NULL;

		if (rule_decode(entry->rule, entry->length, &rule))
			continue;
		/* It is there: the store is read as it was at the start. */
		if (!ranking->prefix)
			store_get(store, &rule);
		comment = json_string(rule.comment);
		*rule.comment = '\0';
		rule.timeout_ms = 0;
		rule_format(&rule, text);
		json_array_append_new(
			rows,
			ranking->is_sampled ?
				json_pack("{s:f, s:I, s:s}", "percent", 100. * packets / ranking->samples, "samples",
					  packets, "source", text + strlen("src ")) :
			ranking->prefix ?
				json_pack("{s:I, s:I, s:I, s:s}", "packets", packets, "bytes", bytes, "rules",
					  entry->rules, "source", rule.src_len ? text + strlen("src ") : "any") :
				json_pack("{s:I, s:I, s:s, s:O}", "packets", packets, "bytes", bytes, "rule", text,
					  "comment", comment));
	}
	free(ranking->entry);
	return rows;
}

static enum command_status print_ranking(const struct invocation *invocation, struct store *store,
					 struct rule_counts *counts, const struct stats_prefix *prefix)
{
	struct ranking ranking = { .counts = counts,
				   .prefix = prefix,
				   .top = invocation->top ? invocation->top : TOP_DEFAULT };
	const int error = store ? store_each(store, rank, &ranking) : 0;
	struct reason reason;

	return command_answer(store_unread_reason(error, &reason), &reason, take_rows(&ranking, store));
}

/* ---- by source ---- */

static int take_sample(const struct abi_sample *sample, void *context)
{
	const struct sample_view view = sample_view(sample, NULL);
	struct rule source = { .family = view.flow.family, .src = view.flow.src };

	struct ranking *ranking = context;

	/* What would be dropped has passed. */
	if ((sample->verdict & ABI_SAMPLE_VERDICT) != VERDICT_DROP)
		return 0;
	ranking->samples++;
	source.src_len = view.has_flow ? rule_address_bits(source.family) : 0;
	return source.src_len ? put(ranking, &source, (struct abi_counter){ .packets = 1 }) : 0;
}

static int read_samples(const struct invocation *invocation, struct ranking *ranking, struct reason *reason)
{
	const __s64 ms = invocation->interval_ms ? invocation->interval_ms : SAMPLES_MS;
	const __s64 end_ms = clock_ms(CLOCK_MONOTONIC) + ms;
	__s64 now_ms = end_ms - ms, renew_ms = now_ms + LISTENER_RENEW_MS;
	struct listener listener;
	int error = listener_open(&listener, invocation->name, 1, SAMPLES_RATE, reason);

	for (; !error && now_ms < end_ms; now_ms = clock_ms(CLOCK_MONOTONIC)) {
		clock_pause(MIN(end_ms - now_ms, PAUSE_MS));
		error = listener_read(&listener, take_sample, ranking);
		if (!error && now_ms >= renew_ms) {
			error = listener_renew(&listener, reason);
			renew_ms = now_ms + LISTENER_RENEW_MS;
		}
	}
	if (error == -ENOMEM && !*reason->text)
		reason_set(reason, error, "not enough memory");
	listener_close(&listener);
	return error;
}

enum command_status stats_by_source(const struct invocation *invocation)
{
	const struct stats_prefix whole = { .length = { [FLOW_IPV4] = 32, [FLOW_IPV6] = 128 } };
	struct ranking ranking = { .prefix = &whole,
				   .is_sampled = true,
				   .top = invocation->top ? invocation->top : TOP_DEFAULT };
	struct reason reason = { "" };
	int error = read_samples(invocation, &ranking, &reason);
	json_t *rows = take_rows(&ranking, NULL);

	if (error == -ENOENT && !*reason.text) {
		json_decref(rows);
		return command_fail_not_running(invocation->name);
	}
	if (!error && !ranking.samples)
		output_note("no sample of a dropped packet came in this time");
	else if (!error && !ranking.count)
		output_note("the %llu samples of dropped packets have no IP source",
			    (unsigned long long)ranking.samples);
	return command_answer(error, &reason, rows);
}

/* ---- by list ---- */

struct list_row {
	const char *list;
	enum rule_action action;
	struct list_count count;
};

static int compare_lists(const void *a, const void *b)
{
	return by_packets(&((const struct list_row *)a)->count.count, &((const struct list_row *)b)->count.count);
}

static enum command_status print_lists(const struct invocation *invocation, struct store *store,
				       struct rule_counts *counts)
{
	struct list_row row[(1 + STORE_LISTS_MAX) * RULE_ACTIONS];
	struct store_lists lists = {};
	struct list_counts sums = {};
	json_t *rows = json_array();
	struct reason reason;
	size_t used = 0;
	int error = store ? store_lists(store, &lists) : 0;

	if (!error && store)
		error = list_counts_read(store, counts, &sums);
	for (size_t i = 0; i <= STORE_LISTS_MAX; i++)
		for (enum rule_action action = 0; action < RULE_ACTIONS; action++)
			if (sums.of[i][action].rules)
				row[used++] = (struct list_row){ i ? lists.list[i].name : "by hand", action,
								 sums.of[i][action] };
	qsort(row, used, sizeof(*row), compare_lists);
	for (size_t i = 0; i < used && i < (invocation->top ? invocation->top : TOP_DEFAULT); i++)
		json_array_append_new(rows, json_pack("{s:I, s:I, s:I, s:s, s:s}", "packets",
						      (json_int_t)row[i].count.count.packets, "bytes",
						      (json_int_t)row[i].count.count.bytes, "rules",
						      (json_int_t)row[i].count.rules, "action",
						      rule_action_name(row[i].action), "list", row[i].list));
	return command_answer(store_unread_reason(error, &reason), &reason, rows);
}

/* ---- both ---- */

enum command_status stats_by_rule(const struct invocation *invocation, enum stats_by by,
				  const struct stats_prefix *prefix)
{
	struct rule_counts counts = {};
	enum command_status status;
	struct reason reason;
	struct store *store;
	int error = command_open_store(invocation, &store, &reason);

	if (error)
		return command_fail_because(error, &reason);
	status = command_open_counts(invocation, store, &counts);
	if (status == STATUS_DONE)
		status = by == STATS_BY_LIST ?
				 print_lists(invocation, store, &counts) :
				 print_ranking(invocation, store, &counts, by == STATS_BY_PREFIX ? prefix : NULL);
	rule_counts_close(&counts);
	store_close(store);
	return status;
}
