// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Questions about rules and running filters. They change nothing. */
#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "change/change.h"
#include "filter/hints.h"
#include "parse_packet.h"

/*
 * Visits the rules that match the flows and have not ended, pass rules first, until `visit` returns non-zero; returns
 * that value. `is_undone`: as if the pending change were undone. 0; -errno.
 */
static int each_match(struct store *store, bool is_undone, const struct rule *query,
		      int (*visit)(const struct rule *rule, void *context), void *context)
{
	struct rule candidates[RULE_KEYS_MAX];
	struct shape_list shapes;
	int error = is_undone ? store_undone_shapes(store, &shapes) : store_shapes(store, &shapes);

	for (size_t i = 0; i < shapes.count && !error; i++) {
		const size_t count = rule_under_shape(query, &shapes.entry[i].shape, candidates);

		for (size_t k = 0; k < count && !error; k++) {
			error = is_undone ? store_get_undone(store, &candidates[k]) : store_get(store, &candidates[k]);
			if (!error && candidates[k].timeout_ms >= 0)
				error = visit(&candidates[k], context);
			else if (error == -ENOENT)
				error = 0;
		}
	}
	return error;
}

struct rule_search {
	__u64 owners; /* bits */
	struct rule *rule;
};

static int take_owned(const struct rule *rule, void *context)
{
	const struct rule_search *search = context;

	if (!(rule_owners_now(rule) & search->owners))
		return 0;
	*search->rule = *rule;
	return 1;
}

static int find_rule(struct store *store, __u64 owners, const struct rule *query, struct rule *rule)
{
	struct rule_search search = { owners, rule };
	const int result = each_match(store, false, query, take_owned, &search);

	return result > 0 ? 0 : result ? result : -ENOENT;
}

int query_test(struct store *store, const struct rule *query, struct rule *rule)
{
	return find_rule(store, ~0ULL, query, rule);
}

int query_test_owned(struct store *store, unsigned int owner, const struct rule *asked, enum query_packets packets,
		     struct rule *rule)
{
	const struct rule query = query_looked_up(asked, packets);

	return find_rule(store, 1ULL << owner, &query, rule);
}

bool query_is_passed(struct store *store, const struct rule *drop, struct rule *pass)
{
	struct rule packets = *drop;

	packets.fields &= ~RULE_RATE;
	return drop->action != RULE_PASS && !query_test(store, &packets, pass) && pass->action == RULE_PASS;
}

static void assume_new(struct rule *query)
{
	query->fields |= rule_may_begin(query) ? RULE_NEW : 0;
}

/* `set` with what is known of `state new`. */
static struct rule query_of(const struct rule *set, enum query_packets packets)
{
	struct rule query = *set;

	if (packets == QUERY_SENT)
		query.fields &= ~RULE_NEW;
	else if (packets == QUERY_BEGINNING)
		assume_new(&query);
	return query;
}

static struct rule looked_up(const struct rule *asked, enum query_packets packets)
{
	struct rule set = *asked;

	if (packets == QUERY_SENT)
		rule_exchange(&set);
	return set;
}

struct rule query_looked_up(const struct rule *asked, enum query_packets packets)
{
	const struct rule set = looked_up(asked, packets);

	return query_of(&set, packets);
}

const char *const query_decision_words[QUERY_DECISIONS] = {
	[QUERY_NO_RULE] = "not blocked",
	[QUERY_MONITORED] = "not blocked: only monitored",
	[QUERY_LIMITED] = "not blocked: only limited",
	[QUERY_PASSED] = "passed",
	[QUERY_PARTLY] = "partly blocked",
	[QUERY_BLOCKED] = "blocked",
	[QUERY_BLOCKED_BY_POLICY] = "blocked: no rule passes it (policy no-rule drop)",
	[QUERY_BLOCKED_LATER] = "blocked: no rule passes it (policy later-fragment drop)",
};

/* By the rules that match the whole set. */
static int decide(struct store *store, const struct rule *set, enum query_packets packets,
		  struct query_finding *finding)
{
	const bool is_later = set->fragment == FLOW_FRAGMENT_LATER;
	const struct rule query = query_of(set, packets);
	struct rule *rule = &finding->rule, whole;
	struct store_settings settings;
	int error = query_test(store, &query, rule);

	/* A rule that blocks answers, too, says more than one with `state new`. */
	if (!error && rule_blocks(rule) && rule->fields & ~set->fields & RULE_NEW && !query_test(store, set, &whole) &&
	    rule_blocks(&whole))
		*rule = whole;
	finding->is_listed = !error;
	finding->has_part = false;
	finding->decision = error                        ? QUERY_NO_RULE :
			    rule->action == RULE_PASS    ? QUERY_PASSED :
			    rule_blocks(rule)            ? QUERY_BLOCKED :
			    rule->action == RULE_MONITOR ? QUERY_MONITORED :
							   QUERY_LIMITED;
	if ((error && error != -ENOENT) || finding->decision == QUERY_PASSED || finding->decision == QUERY_BLOCKED)
		return error;
	error = store_settings(store, &settings);
	if (!error && settings.policy[is_later ? OUTCOME_LATER_FRAGMENT : OUTCOME_NO_RULE] == VERDICT_DROP)
		finding->decision = is_later ? QUERY_BLOCKED_LATER : QUERY_BLOCKED_BY_POLICY;
	return error;
}

struct part_search {
	struct store *store;
	const struct rule *set;
	enum query_packets packets;
	bool wants_pass; /* a part that a rule passes, else one that a rule blocks */
	struct query_finding *finding;
};

static bool is_wanted(const struct part_search *search, enum rule_action action, __u8 fields)
{
	return search->wants_pass ? action == RULE_PASS : action == RULE_DROP && !(fields & RULE_RATE);
}

/* Stops at the first rule that makes a part fare otherwise. */
static int try_part(const struct rule *rule, void *context)
{
	const struct part_search *search = context;
	struct query_finding *finding = search->finding;
	struct rule query;
	int error;

	if (rule->timeout_ms < 0 || !is_wanted(search, rule->action, rule->fields) ||
	    (search->packets == QUERY_SENT && rule->fields & RULE_NEW) ||
	    !rule_intersect(rule, search->set, &finding->part))
		return 0;
	query = query_of(&finding->part, search->packets);
	error = query_test(search->store, &query, &finding->part_rule);
	finding->has_part = !error && is_wanted(search, finding->part_rule.action, finding->part_rule.fields);
	return error && error != -ENOENT ? error : finding->has_part;
}

/* The rules of a shape that match some packets of the set lie together in the store: *first and the bits say where. */
static unsigned int place_of(const struct rule *set, const struct rule_shape *shape, struct rule *first)
{
	const unsigned int width = rule_address_bits(shape->family);

	*first = (struct rule){ .family = shape->family, .src = set->src, .dst = set->dst };
	if (shape->src_len > set->src_len)
		return 8 + set->src_len;
	first->src = rule_network(&set->src, shape->src_len);
	first->src_len = shape->src_len;
	if (shape->dst_len > set->dst_len)
		return 8 + width + 8 + set->dst_len;
	first->dst = rule_network(&set->dst, shape->dst_len);
	first->dst_len = shape->dst_len;
	return 8 + width + 8 + width + 8;
}

/* In `finding`, as the operator asks: a part of the packets, if there is one. Reads no place twice. 0; -errno. */
static int find_part(struct store *store, const struct rule *asked, enum query_packets packets, bool wants_pass,
		     struct query_finding *finding)
{
	const bool is_assumed = wants_pass && finding->is_listed && finding->rule.fields & RULE_NEW;
	const struct rule set = is_assumed ? query_looked_up(asked, packets) : looked_up(asked, packets);
	struct part_search search = { store, &set, packets, wants_pass, finding };
	struct rule first = { .family = FLOW_NO_FAMILY }, other;
	struct shape_list shapes;
	int error = store_shapes(store, &shapes);

	if (!error)
		error = store_each_under(store, &first, 8, try_part, &search);
	for (size_t i = 0; !error && i < shapes.count; i++) {
		const struct rule_shape *shape = &shapes.entry[i].shape;
		unsigned int bits = place_of(&set, shape, &first);

		if (!is_wanted(&search, shape->action, shape->fields) ||
		    (set.family != FLOW_NO_FAMILY && set.family != shape->family))
			continue;
		for (size_t k = 0; bits && k < i; k++)
			if (is_wanted(&search, shapes.entry[k].shape.action, shapes.entry[k].shape.fields) &&
			    place_of(&set, &shapes.entry[k].shape, &other) == bits &&
			    !memcmp(&first, &other, sizeof(first)))
				bits = 0;
		if (bits)
			error = store_each_under(store, &first, bits, try_part, &search);
	}
	if (finding->has_part && packets == QUERY_SENT)
		rule_exchange(&finding->part);
	return finding->has_part ? 0 : error;
}

int query_decide(struct store *store, const struct rule *asked, enum query_packets packets,
		 struct query_finding *finding)
{
	const struct rule set = looked_up(asked, packets);
	int error = decide(store, &set, packets, finding);

	if (!error && finding->decision >= QUERY_BLOCKED)
		error = find_part(store, asked, packets, true, finding);
	if (finding->has_part)
		finding->decision = QUERY_PARTLY;
	return error;
}

int query_find_part(struct store *store, const struct rule *asked, enum query_packets packets,
		    struct query_finding *finding)
{
	return find_part(store, asked, packets, false, finding);
}

struct block_search {
	struct query_block *block;
	__s64 passed_ms;
};

static int note_end(const struct rule *rule, void *context)
{
	struct block_search *search = context;
	struct query_block *block = search->block;
	const __s64 end_ms = rule->timeout_ms ? rule->timeout_ms : QUERY_NEVER_MS;

	if (rule->action == RULE_PASS && end_ms > search->passed_ms) {
		search->passed_ms = end_ms;
	} else if (rule_blocks(rule) && end_ms > search->passed_ms) {
		/* Pass rules came first. */
		if (block->by == QUERY_NOTHING || !(rule_owners_now(rule) & 1ULL << STORE_BY_HAND))
			block->rule = *rule;
		block->by = QUERY_RULE;
	} else if (rule->action == RULE_DROP && rule->fields & RULE_RATE) {
		block->rate = rule->rate;
	}
	return 0;
}

int query_blocks(struct store *store, const struct rule *query, bool is_undone, struct query_block *block)
{
	struct block_search search = { .block = block };
	struct store_settings settings;
	int error;

	*block = (struct query_block){ .by = QUERY_NOTHING, .in_ms = QUERY_NEVER_MS };
	error = each_match(store, is_undone, query, note_end, &search);
	if (!error)
		error = is_undone ? store_undone_settings(store, &settings) : store_settings(store, &settings);
	if (error)
		return error;
	if (search.passed_ms == QUERY_NEVER_MS)
		block->rate = 0;
	if (block->by == QUERY_NOTHING && search.passed_ms < QUERY_NEVER_MS &&
	    settings.policy[OUTCOME_NO_RULE] == VERDICT_DROP)
		block->by = QUERY_POLICY;
	if (block->by != QUERY_NOTHING)
		block->in_ms = search.passed_ms;
	return 0;
}

/* Whether this part has an entry of the key that has not ended. If the clock cannot be read, none has ended. */
static bool has_entry(const struct kernel_filter *filter, const struct filter_tables *tables,
		      const struct rule_key *key, enum filter_part part)
{
	const struct abi_table *active = abi_active(filter->config);
	const __u64 *record = tables->part[part].memory.record;
	__u32 slot, end;
	__s64 left_ms;

	if (!filter_find(active, tables, key, part, &slot))
		return false;
	end = record ? abi_record_end(record[slot]) : 0;
	return !end || ticks_left(active->epoch + end, &left_ms, &(struct reason){}) || left_ms > 0;
}

int query_matches(const struct kernel_filter *filter, const struct rule *query, bool *matches)
{
	CLOSED_BY(filter_tables_close) struct filter_tables tables = {};
	struct rule rules[RULE_KEYS_MAX];
	struct rule_key keys[RULE_KEYS_MAX];
	int error = filter->config->magic ? filter_open_tables(filter, &tables) : -EINVAL;

	*matches = false;
	if (error)
		return error == -EINVAL ? 0 : error;
	for (enum flow_family family = 0; family < FLOW_FAMILIES; family++) {
		const struct abi_shape_list *list = abi_shapes(abi_active(filter->config), family);

		/* Each shape as the packet path does: first the hints, then the table. */
		for (size_t i = 0; i < list->count && i < ABI_SHAPES_MAX && !*matches; i++) {
			const struct abi_shape *compiled = abi_shape_at(list, i);
			struct rule_shape shape = rule_shape_of_compiled(compiled, family);
			const enum filter_part part = shape.fields & RULE_ADDRESSES ? FILTER_ADDRESSES : FILTER_RECORDS;

			shape.fields &= ~RULE_ADDRESSES;
			if (!rule_under_shape(query, &shape, rules))
				continue;
			rules->family = family;
			rule_keys(rules, keys);
			*matches = (!list->reads_hints || hints_allow(filter_hints_of(filter), keys, compiled->hint)) &&
				   has_entry(filter, &tables, keys, part);
		}
	}
	return 0;
}

struct key_lookup {
	const struct kernel_filter *filter;
	const struct filter_tables *tables;
};

static int find_key(const struct rule_key *key, bool is_shared, void *context)
{
	const struct key_lookup *lookup = context;

	(void)is_shared;
	for (enum filter_part part = 0; part < FILTER_PARTS; part++)
		if (has_entry(lookup->filter, lookup->tables, key, part))
			return 0;
	return -ENOENT;
}

int query_has_rule(const struct kernel_filter *filter, struct store *store, const struct rule *rule, bool *has_rule)
{
	CLOSED_BY(filter_tables_close) struct filter_tables tables = {};
	struct shape_list shapes;
	struct key_lookup lookup = { filter, &tables };
	int error = store_shapes(store, &shapes);

	*has_rule = false;
	if (!error)
		error = filter->config->magic ? filter_open_tables(filter, &tables) : -EINVAL;
	if (error)
		return error == -EINVAL ? 0 : error;
	error = keys_each(&shapes, rule, find_key, &lookup);
	*has_rule = !error;
	return error == -ENOENT ? 0 : error;
}

struct sample_view sample_view(const struct abi_sample *sample, struct store *store)
{
	struct sample_view view = {};
	struct flow flow = {}; /* the parser sets only the 4 bytes of an IPv4 address */

	parse_frame(sample->frame, sample->frame + sample->captured, &flow);
	view.has_flow = flow.family != FLOW_NO_FAMILY;
	view.is_sent = sample->verdict & ABI_SAMPLE_SENT;
	if (view.has_flow) {
		view.flow = rule_of_flow(&flow);
		view.packet = rule_of_packet(&flow);
		if (view.is_sent)
			rule_exchange(&view.packet);
		else
			assume_new(&view.packet);
	}
	if (sample->outcome < OUTCOME_POLICIES)
		view.cause = SAMPLE_POLICY;
	else if (store && view.has_flow && !query_test(store, &view.packet, &view.rule) &&
		 view.rule.action != RULE_PASS)
		view.cause = SAMPLE_RULE;
	else
		view.cause = SAMPLE_UNKNOWN_RULE;
	return view;
}

double query_fill(const struct kernel_filter *filter)
{
	return filter->config->used / (double)filter_slots(filter);
}

double query_false_positive_rate(const struct kernel_filter *filter, enum flow_family family)
{
	const struct abi_table *active = abi_active(filter->config);
	const struct abi_shape_list *list = abi_shapes(active, family);
	const double fill = active->used / (double)table_slots_of(filter_geometry(filter));
	double for_one_probe = table_false_positive_rate(filter->options.format, fill);
	size_t exact = 0;

	while (exact < list->count && rule_shape_of_compiled(abi_shape_at(list, exact), family).fields & RULE_ADDRESSES)
		exact++;
	if (filter->options.is_exact)
		for_one_probe /= 1ULL << HASH_TAG_BITS; /* ldexp() is in libm, which would cost every start 0.06 ms */
	return exact == list->count ? 0 : query_mean_probes(filter, family) * for_one_probe;
}

double query_mean_probes(const struct kernel_filter *filter, enum flow_family family)
{
	const struct abi_shape_list *list = abi_shapes(abi_active(filter->config), family);

	if (!list->reads_hints)
		return list->count;
	return hints_mean_probes(filter_hints_of(filter), list, family);
}
