// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Questions about rules and running filters. They change nothing. */
#include <errno.h>

#include "change/change.h"
#include "filter/hints.h"
#include "parse_packet.h"

/* Rules and settings of a store: those of now, or those that there would be if the pending change were undone. */
struct rules_of {
	int (*shapes)(struct store *store, struct shape_list *list);
	int (*get)(struct store *store, struct rule *rule);
	int (*settings)(struct store *store, struct store_settings *settings);
};

static const struct rules_of now = { store_shapes, store_get, store_settings },
			     undone = { store_undone_shapes, store_get_undone, store_undone_settings };

/*
 * Visits the rules that match the flows and have not ended, pass rules first, until `visit` returns non-zero; returns
 * that value. 0; -errno.
 */
static int each_match(struct store *store, const struct rules_of *rules, const struct rule *query,
		      int (*visit)(const struct rule *rule, void *context), void *context)
{
	struct rule candidates[RULE_KEYS_MAX];
	struct shape_list shapes;
	int error = rules->shapes(store, &shapes);

	for (size_t i = 0; i < shapes.count && !error; i++) {
		const size_t count = rule_under_shape(query, &shapes.entry[i].shape, candidates);

		for (size_t k = 0; k < count && !error; k++) {
			error = rules->get(store, &candidates[k]);
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
	const int result = each_match(store, &now, query, take_owned, &search);

	return result > 0 ? 0 : result ? result : -ENOENT;
}

int query_test(struct store *store, const struct rule *query, struct rule *rule)
{
	return find_rule(store, ~0ULL, query, rule);
}

int query_test_owned(struct store *store, unsigned int owner, const struct rule *query, struct rule *rule)
{
	return find_rule(store, 1ULL << owner, query, rule);
}

void query_assume_new(struct rule *query)
{
	query->fields |= rule_may_begin(query) ? RULE_NEW : 0;
}

const char *const query_decision_words[QUERY_DECISIONS] = {
	[QUERY_NO_RULE] = "not blocked",
	[QUERY_MONITORED] = "not blocked: only monitored",
	[QUERY_LIMITED] = "not blocked: only limited",
	[QUERY_PASSED] = "passed",
	[QUERY_BLOCKED] = "blocked",
	[QUERY_BLOCKED_BY_POLICY] = "blocked: no rule passes it (policy no-rule drop)",
	[QUERY_BLOCKED_LATER] = "blocked: no rule passes it (policy later-fragment drop)",
};

int query_decide(struct store *store, const struct rule *query, struct rule *rule, bool *is_listed,
		 enum query_decision *decision)
{
	const bool is_later = query->fragment == FLOW_FRAGMENT_LATER;
	struct store_settings settings;
	int error = query_test(store, query, rule);

	*is_listed = !error;
	*decision = error                        ? QUERY_NO_RULE :
		    rule->action == RULE_PASS    ? QUERY_PASSED :
		    rule_blocks(rule)            ? QUERY_BLOCKED :
		    rule->action == RULE_MONITOR ? QUERY_MONITORED :
						   QUERY_LIMITED;
	if ((error && error != -ENOENT) || *decision == QUERY_PASSED || *decision == QUERY_BLOCKED)
		return error;
	error = store_settings(store, &settings);
	if (!error && settings.policy[is_later ? OUTCOME_LATER_FRAGMENT : OUTCOME_NO_RULE] == VERDICT_DROP)
		*decision = is_later ? QUERY_BLOCKED_LATER : QUERY_BLOCKED_BY_POLICY;
	return error;
}

struct part_search {
	struct store *store;
	const struct rule *query;
	struct rule *part, *rule;
	bool is_found;
};

/* Stops at the first rule that blocks a part. */
static int try_part(const struct rule *rule, void *context)
{
	struct part_search *search = context;

	if (!rule_blocks(rule) || rule->timeout_ms < 0 || rule_covers(rule, search->query) ||
	    !rule_intersect(rule, search->query, search->part) ||
	    query_test(search->store, search->part, search->rule) || !rule_blocks(search->rule))
		return 0;
	search->is_found = true;
	return 1;
}

int query_find_part(struct store *store, const struct rule *query, struct rule *part, struct rule *rule)
{
	struct part_search search = { .store = store, .query = query, .part = part, .rule = rule };
	struct shape_list shapes;
	bool has_narrower = false;
	int error = store_shapes(store, &shapes);

	/* A drop rule can match a part of the flows only if its shape is narrower. */
	for (size_t i = 0; !error && i < shapes.count; i++) {
		const struct rule_shape *shape = &shapes.entry[i].shape;

		has_narrower |= shape->action == RULE_DROP && !(shape->fields & RULE_RATE) &&
				(query->family == FLOW_NO_FAMILY || shape->family == query->family) &&
				(shape->fields & ~query->fields || shape->src_len > query->src_len ||
				 shape->dst_len > query->dst_len);
	}
	if (has_narrower)
		error = store_each(store, try_part, &search);
	return search.is_found ? 0 : error ? error : -ENOENT;
}

struct block_search {
	struct query_block *block; /* `rule`: the drop rule that ends last */
	__s64 passed_ms, dropped_ms;
};

static int note_end(const struct rule *rule, void *context)
{
	struct block_search *search = context;
	const __s64 end_ms = rule->timeout_ms ? rule->timeout_ms : QUERY_NEVER_MS;

	if (rule->action == RULE_PASS && end_ms > search->passed_ms) {
		search->passed_ms = end_ms;
	} else if (rule_blocks(rule) && end_ms > search->dropped_ms) {
		search->dropped_ms = end_ms;
		search->block->rule = *rule;
	} else if (rule->action == RULE_DROP && rule->fields & RULE_RATE) {
		search->block->rate = rule->rate;
	}
	return 0;
}

static int blocks(struct store *store, const struct rules_of *rules, const struct rule *query,
		  struct query_block *block)
{
	struct block_search search = { .block = block };
	struct store_settings settings;
	int error;

	*block = (struct query_block){ .by = QUERY_NOTHING, .in_ms = QUERY_NEVER_MS };
	error = each_match(store, rules, query, note_end, &search);
	if (!error)
		error = rules->settings(store, &settings);
	if (error)
		return error;
	if (search.passed_ms == QUERY_NEVER_MS)
		block->rate = 0;
	if (search.dropped_ms > search.passed_ms)
		block->by = QUERY_RULE;
	else if (search.passed_ms < QUERY_NEVER_MS && settings.policy[OUTCOME_NO_RULE] == VERDICT_DROP)
		block->by = QUERY_POLICY;
	if (block->by != QUERY_NOTHING)
		block->in_ms = search.passed_ms;
	return 0;
}

int query_blocks(struct store *store, const struct rule *query, struct query_block *block)
{
	return blocks(store, &now, query, block);
}

int query_blocks_undone(struct store *store, const struct rule *query, struct query_block *block)
{
	return blocks(store, &undone, query, block);
}

/* Whether the filter has an entry of this key that has not ended. If the clock cannot be read, none has ended. */
static bool has_entry(const struct kernel_filter *filter, const struct table *table, const struct rule_key *key)
{
	const struct abi_table *active = abi_active(filter->config);
	const struct hash_value value = rule_hash(key, &active->secret);
	__u32 slot, end;
	__s64 left_ms;

	if (!table_find(table, &value, &slot))
		return false;
	end = table->memory.record ? abi_record_end(table->memory.record[slot]) : 0;
	return !end || ticks_left(active->epoch + end, &left_ms, &(struct reason){}) || left_ms > 0;
}

int query_matches(const struct kernel_filter *filter, const struct rule *query, bool *matches)
{
	struct rule rules[RULE_KEYS_MAX];
	struct rule_key keys[RULE_KEYS_MAX];
	struct table table;
	int error = filter->config->magic ? filter_open_table(filter, &table) : -EINVAL;

	*matches = false;
	if (error)
		return error == -EINVAL ? 0 : error;
	for (enum flow_family family = 0; family < FLOW_FAMILIES; family++) {
		const struct abi_shape_list *list = abi_shapes(abi_active(filter->config), family);

		/* Each shape as the packet path does: first the hints, then the table. */
		for (size_t i = 0; i < list->count && i < ABI_SHAPES_MAX && !*matches; i++) {
			const struct abi_shape *compiled = abi_shape_at(list, i);
			const struct rule_shape shape = rule_shape_of_compiled(compiled, family);

			if (!rule_under_shape(query, &shape, rules))
				continue;
			rules->family = family;
			rule_keys(rules, keys);
			*matches = (!list->reads_hints || hints_allow(filter_hints_of(filter), keys, compiled->hint)) &&
				   has_entry(filter, &table, keys);
		}
	}
	table_close(&table);
	return 0;
}

struct key_lookup {
	const struct kernel_filter *filter;
	const struct table *table;
};

static int find_key(const struct rule_key *key, bool is_shared, void *context)
{
	const struct key_lookup *lookup = context;

	(void)is_shared;
	return has_entry(lookup->filter, lookup->table, key) ? 0 : -ENOENT;
}

int query_has_rule(const struct kernel_filter *filter, struct store *store, const struct rule *rule, bool *has_rule)
{
	struct shape_list shapes;
	struct table table;
	struct key_lookup lookup = { filter, &table };
	int error = store_shapes(store, &shapes);

	*has_rule = false;
	if (!error)
		error = filter->config->magic ? filter_open_table(filter, &table) : -EINVAL;
	if (error)
		return error == -EINVAL ? 0 : error;
	error = keys_each(&shapes, rule, find_key, &lookup);
	*has_rule = !error;
	table_close(&table);
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
			query_assume_new(&view.packet);
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
	return filter->config->used / (double)table_slots_of(filter_geometry(filter));
}

double query_false_positive_rate(const struct kernel_filter *filter, enum flow_family family)
{
	double for_one_probe = table_false_positive_rate(filter->options.format, query_fill(filter));

	if (filter->options.is_exact)
		for_one_probe /= 1ULL << HASH_TAG_BITS; /* ldexp() is in libm, which would cost every start 0.06 ms */
	return query_mean_probes(filter, family) * for_one_probe;
}

double query_mean_probes(const struct kernel_filter *filter, enum flow_family family)
{
	const struct abi_shape_list *list = abi_shapes(abi_active(filter->config), family);

	if (!list->reads_hints)
		return list->count;
	return hints_mean_probes(filter_hints_of(filter), list, family);
}
