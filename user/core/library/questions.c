// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The public functions that only read: rules, running filters, counters. */
#include <errno.h>
#include <string.h>

#include "counters/counters.h"
#include "library/internal.h"

_Static_assert(sizeof(struct xdp_cuckoo_info) == 64, "layout of the library's information");

/* ---- test ---- */

int xdp_cuckoo_test(struct xdp_cuckoo_filter *filter, const struct xdp_cuckoo_rule *flow,
		    enum xdp_cuckoo_answer *answer, struct xdp_cuckoo_rule *rule)
{
	static const enum xdp_cuckoo_answer answers[QUERY_DECISIONS] = {
		[QUERY_NO_RULE] = XDP_CUCKOO_NOT_BLOCKED,
		[QUERY_MONITORED] = XDP_CUCKOO_MONITORED,
		[QUERY_LIMITED] = XDP_CUCKOO_LIMITED,
		[QUERY_PASSED] = XDP_CUCKOO_PASSED,
		[QUERY_PARTLY] = XDP_CUCKOO_PARTLY,
		[QUERY_BLOCKED] = XDP_CUCKOO_BLOCKED,
		[QUERY_BLOCKED_BY_POLICY] = XDP_CUCKOO_BLOCKED_BY_POLICY,
		[QUERY_BLOCKED_LATER] = XDP_CUCKOO_BLOCKED_BY_POLICY,
	};
	struct query_finding found;
	struct rule query;
	struct store *store;
	int error = public_enter(filter);

	*answer = XDP_CUCKOO_NOT_BLOCKED;
	if (rule)
		memset(rule, 0, sizeof(*rule));
	if (!error)
		error = public_read_rule(filter, flow, &query, &filter->reason);
	if (!error)
		error = public_open_store(filter, &store);
	if (error)
		return public_leave(filter, error);
	error = query_decide(store, &query, QUERY_RECEIVED, &found);
	if (!error)
		*answer = answers[found.decision];
	if (!error && found.is_listed && rule)
		public_write_rule(filter, &found.rule, rule);
	if (error)
		store_unread_reason(error, &filter->reason);
	public_close_store(filter, store);
	return public_leave(filter, error);
}

/* ---- visits ---- */

struct visiting {
	struct xdp_cuckoo_filter *filter;
	int (*visit)(const struct xdp_cuckoo_rule *rule, void *context);
	int (*visit_counted)(const struct xdp_cuckoo_rule *rule, const struct xdp_cuckoo_matched *matched,
			     void *context);
	void *context;
	__u64 owners; /* visit only rules that one of them wants now */
	struct rule_counts *counts;
	int ended; /* the last result of the caller's function */
};

static struct xdp_cuckoo_matched matched_of(const struct rule_counts *counts, const struct rule *rule)
{
	const struct abi_counter sum = rule_counts_of(counts, rule);

	return (struct xdp_cuckoo_matched){ sum.packets, sum.bytes };
}

static int visit(const struct rule *rule, void *context)
{
	struct visiting *visiting = context;
	struct xdp_cuckoo_matched matched;
	struct xdp_cuckoo_rule given;

	if (rule->timeout_ms < 0 || !(rule_owners_now(rule) & visiting->owners))
		return 0;
	public_write_rule(visiting->filter, rule, &given);
	if (visiting->counts) {
		matched = matched_of(visiting->counts, rule);
		visiting->ended = visiting->visit_counted(&given, &matched, visiting->context);
	} else {
		visiting->ended = visiting->visit(&given, visiting->context);
	}
	return visiting->ended;
}

/* The shapes must be of the same moment as the rules, so the store is open already. */
static int open_counts(struct xdp_cuckoo_filter *filter, struct store *store, struct rule_counts *counts)
{
	int error = rule_counts_open(counts, filter->name, &filter->reason);

	if (error == -ENOENT)
		return reason_set(&filter->reason, -ENODEV, "no filter '%s' is running here", filter->name);
	if (error == -EOPNOTSUPP)
		return reason_set(&filter->reason, error, "the filter '%s' does not count by rule", filter->name);
	if (error)
		return error;
	error = store_shapes(store, &counts->shapes);
	return error ? store_unread_reason(error, &filter->reason) : 0;
}

/* `list` NULL: all rules. */
static int visit_rules(struct xdp_cuckoo_filter *filter, const char *list, struct visiting *visiting)
{
	struct store *store;
	unsigned int owner;
	int error = public_enter(filter);

	if (!error)
		error = public_open_store(filter, &store);
	if (error)
		return public_leave(filter, error);
	error = list ? public_find_list(filter, store, list, &owner) : 0;
	visiting->filter = filter;
	visiting->owners = list && !error ? 1ULL << owner : ~0ULL;
	if (!error && visiting->counts)
		error = open_counts(filter, store, visiting->counts);
	if (!error) {
		filter->is_visiting = true;
		error = store_each(store, visit, visiting);
		filter->is_visiting = false;
		if (visiting->ended)
			filter->reason.text[0] = '\0';
		else if (error)
			store_unread_reason(error, &filter->reason);
	}
	public_close_store(filter, store);
	return public_leave(filter, error);
}

int xdp_cuckoo_each(struct xdp_cuckoo_filter *filter,
		    int (*visit_rule)(const struct xdp_cuckoo_rule *rule, void *context), void *context)
{
	return xdp_cuckoo_list_each(filter, NULL, visit_rule, context);
}

int xdp_cuckoo_list_each(struct xdp_cuckoo_filter *filter, const char *list,
			 int (*visit_rule)(const struct xdp_cuckoo_rule *rule, void *context), void *context)
{
	return visit_rules(filter, list, &(struct visiting){ .visit = visit_rule, .context = context });
}

int xdp_cuckoo_each_counted(struct xdp_cuckoo_filter *filter, const char *list,
			    int (*visit_rule)(const struct xdp_cuckoo_rule *rule,
					      const struct xdp_cuckoo_matched *matched, void *context),
			    void *context)
{
	struct rule_counts counts = {};
	int error =
		visit_rules(filter, list,
			    &(struct visiting){ .visit_counted = visit_rule, .context = context, .counts = &counts });

	rule_counts_close(&counts);
	return error;
}

int xdp_cuckoo_rule_counts(struct xdp_cuckoo_filter *filter, const struct xdp_cuckoo_rule *from,
			   struct xdp_cuckoo_matched *matched)
{
	struct rule_counts counts = {};
	char text[RULE_TEXT_BYTES];
	struct store *store;
	struct rule rule;
	int error = public_enter(filter);

	*matched = (struct xdp_cuckoo_matched){};
	if (!error)
		error = public_read_rule(filter, from, &rule, &filter->reason);
	if (!error)
		error = public_open_store(filter, &store);
	if (error)
		return public_leave(filter, error);
	error = store_get(store, &rule);
	if (error == -ENOENT || (!error && rule.timeout_ms < 0))
		error = reason_set(&filter->reason, -ENOENT, "no such rule: %.250s", rule_format(&rule, text));
	else if (error)
		store_unread_reason(error, &filter->reason);
	else
		error = open_counts(filter, store, &counts);
	if (!error)
		*matched = matched_of(&counts, &rule);
	rule_counts_close(&counts);
	public_close_store(filter, store);
	return public_leave(filter, error);
}

/* ---- what runs ---- */

int xdp_cuckoo_get_info(struct xdp_cuckoo_filter *filter, struct xdp_cuckoo_info *info)
{
	struct kernel_filter *running = NULL;
	struct store_settings settings = {};
	struct store_info stored = {};
	struct store *store = NULL;
	size_t count = 0;
	int error = public_enter(filter);

	memset(info, 0, sizeof(*info));
	if (!error)
		error = public_open_store(filter, &store);
	if (!error) {
		error = store_info(store, &stored);
		if (!error)
			error = store_settings(store, &settings);
		if (!error) {
			info->rules = stored.rules;
			info->timed_rules = stored.timed;
			info->is_monitor_only = settings.is_monitor_only;
		}
		store_unread_reason(error, &filter->reason);
		public_close_store(filter, store);
	}
	if (!error)
		error = kernel_find_filters((struct kernel_wish){ .must_see = filter->name }, &running, &count,
					    &filter->reason);
	for (size_t i = 0; i < count; i++) {
		const struct abi_config *config = running[i].config;

		if (!kernel_may_be_named(config, filter->name))
			continue;
		for (size_t k = 0; k < running[i].attachments_count; k++)
			info->interfaces += !kernel_goes_with_another(&running[i], &running[i].attachments[k]);
		info->slots += filter_slots(&running[i]);
		info->used_slots += config->used;
		info->is_panic |= (__atomic_load_n(&config->run, __ATOMIC_ACQUIRE) & ABI_RUN_PANIC) != 0;
	}
	kernel_filters_free(running, count);
	return public_leave(filter, error);
}

/* ---- counts ---- */

static void write_count(const struct abi_counter counter[VERDICTS], const char *outcome, struct xdp_cuckoo_count *count)
{
	*count = (struct xdp_cuckoo_count){
		.outcome = outcome,
		.passed_packets = counter[VERDICT_PASS].packets,
		.passed_bytes = counter[VERDICT_PASS].bytes,
		.dropped_packets = counter[VERDICT_DROP].packets,
		.dropped_bytes = counter[VERDICT_DROP].bytes,
		.would_drop_packets = counter[VERDICT_WOULD_DROP].packets,
		.would_drop_bytes = counter[VERDICT_WOULD_DROP].bytes,
	};
}

int xdp_cuckoo_counts(struct xdp_cuckoo_filter *filter, struct xdp_cuckoo_count *counts, size_t room, size_t *count)
{
	struct abi_counter counter[ABI_COUNTERS], all[VERDICTS];
	struct kernel_filter *running = NULL;
	struct tally tally = {};
	size_t filters = 0;
	int error = public_enter(filter);

	*count = 0;
	if (!error)
		error = kernel_find_filters((struct kernel_wish){ .must_see = filter->name }, &running, &filters,
					    &filter->reason);
	for (size_t i = 0; i < filters && !error; i++)
		if (kernel_may_be_named(running[i].config, filter->name))
			error = tally_add(&tally, &running[i], &filter->reason);
	kernel_filters_free(running, filters);
	if (!error && !tally.filters)
		error = reason_set(&filter->reason, -ENODEV, "no filter '%s' is running here", filter->name);
	if (!error) {
		tally_sum(&tally, TALLY_ALL, TALLY_ALL, counter);
		tally_verdicts(counter, all);
		for (size_t outcome = 0; outcome < OUTCOMES && outcome < room; outcome++)
			write_count(&counter[outcome * VERDICTS], outcome_words[outcome].name, &counts[outcome]);
		if (OUTCOMES < room)
			write_count(all, "all", &counts[OUTCOMES]);
		*count = OUTCOMES + 1;
	}
	tally_close(&tally);
	return public_leave(filter, error);
}
