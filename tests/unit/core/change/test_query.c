// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Questions about drawn rules, beside a plain model: it looks at each rule, in no order. */
#include "unit/test.h"

#ifndef __x86_64__
TEST(test_query)
{
	fprintf(stderr, "skipped: steps/changes.h needs x86-64\n");
	skip();
}

TEST_MAIN(NULL, NULL)
#else
#include "steps/changes.h"

static const char *const questions[] = {
	"10.77.0.1",
	"10.77.0.1 proto udp dport 53",
	"10.77.0.2 dst 198.51.100.8 proto tcp dport 80",
	"10.77.0.1 dst 198.51.100.7 proto tcp dport 22 flags syn/syn,ack",
	"10.77.0.0/24",
	"10.77.0.0/25 proto udp",
	"10.76.0.0/14 state new",
	"198.51.100.7 dst 10.77.0.1 proto tcp sport 22",
	"2001:db8::1",
	"2001:db8::/32 proto udp dport 53 state new",
	"10.77.0.0/24 fragment later",
	"proto tcp",
	"proto udp dport 53",
	"192.0.2.9 proto udp length 40",
};

/* The rules in force, and those that there would be after the undo. */
static struct model {
	struct rule rule[COUNT(rules)];
	size_t count;
} now, undone;

static struct store *store;
static struct store_settings settings[2];

static int rank_of(const struct rule *rule)
{
	return rule->action == RULE_PASS ? 0 : rule->action == RULE_MONITOR ? 3 : rule->fields & RULE_RATE ? 2 : 1;
}

/* The rank of what decides about all these packets; 4: nothing does. */
static int rank(const struct rule *query, __u64 owners)
{
	int best = 4;

	for (size_t i = 0; i < now.count; i++)
		if (rule_covers(&now.rule[i], query) && rule_owners_now(&now.rule[i]) & owners &&
		    rank_of(&now.rule[i]) < best)
			best = rank_of(&now.rule[i]);
	return best;
}

/* Whether a part of the set fares so, by a rule of that rank. */
static bool has_part(const struct rule *set, enum query_packets packets, int wanted)
{
	for (size_t i = 0; i < now.count; i++) {
		struct rule part;

		if (rank_of(&now.rule[i]) != wanted || !rule_intersect(&now.rule[i], set, &part) ||
		    (packets == QUERY_SENT && now.rule[i].fields & RULE_NEW))
			continue;
		if (packets == QUERY_SENT)
			rule_exchange(&part);
		part = query_looked_up(&part, packets);
		if (rank(&part, ~0ULL) == wanted)
			return true;
	}
	return false;
}

static void ask(const struct rule *asked, enum query_packets packets)
{
	static const enum query_decision decisions[] = { QUERY_PASSED, QUERY_BLOCKED, QUERY_LIMITED, QUERY_MONITORED,
							 QUERY_NO_RULE };
	const struct rule query = query_looked_up(asked, packets);
	const bool is_later = asked->fragment == FLOW_FRAGMENT_LATER;
	const int best = rank(&query, ~0ULL), owned = rank(&query, 2);
	enum query_decision wanted = decisions[best];
	struct query_finding finding = {};
	struct rule set = *asked, rule, whole;

	/* Nobody knows of a sent packet whether it begins something. */
	assert_false(packets == QUERY_SENT && query.fields & RULE_NEW);
	assert_int_equal(query_test(store, &query, &rule), best == 4 ? -ENOENT : 0);
	assert_true(best == 4 || (rank_of(&rule) == best && rule_covers(&rule, &query) && rule.timeout_ms >= 0));
	assert_int_equal(query_test_owned(store, 1, asked, packets, &rule), owned == 4 ? -ENOENT : 0);
	assert_true(owned == 4 || (rank_of(&rule) == owned && rule_owners_now(&rule) & 2));
	assert_int_equal(query_decide(store, asked, packets, &finding), 0);
	assert_int_equal(finding.is_listed, best < 4);
	if (packets == QUERY_SENT)
		rule_exchange(&set);
	/* A rule that does not depend on `state new` says more. */
	if (best == 1 && rank(&set, ~0ULL) == 1) {
		assert_int_equal(query_test(store, &set, &whole), 0);
		assert_false(finding.rule.fields & ~set.fields & RULE_NEW);
	}
	if (best > 1 && settings[0].policy[is_later ? OUTCOME_LATER_FRAGMENT : OUTCOME_NO_RULE] == VERDICT_DROP)
		wanted = is_later ? QUERY_BLOCKED_LATER : QUERY_BLOCKED_BY_POLICY;
	if (wanted >= QUERY_BLOCKED &&
	    has_part(finding.is_listed && finding.rule.fields & RULE_NEW ? &query : &set, packets, 0))
		wanted = QUERY_PARTLY;
	if (finding.decision != wanted)
		fail_msg("%d, not %d", finding.decision, wanted);
	assert_int_equal(finding.has_part, wanted == QUERY_PARTLY);
	if (finding.has_part) {
		assert_true(rule_covers(asked, &finding.part) && finding.part_rule.action == RULE_PASS);
		return;
	}
	assert_int_equal(query_find_part(store, asked, packets, &finding), 0);
	assert_int_equal(finding.has_part, has_part(&set, packets, 1));
	if (finding.has_part)
		assert_true(rule_covers(asked, &finding.part) && rule_blocks(&finding.part_rule));
}

/* When a drop rule, or the policy, has its way, and whether a rate counts before. */
static void ask_blocks(const struct rule *query, bool is_undone)
{
	const struct model *model = is_undone ? &undone : &now;
	__s64 passed_ms = 0;
	bool is_limited = false, is_blocked = false, by_list = false;
	struct query_block block;
	enum query_blocker wanted;

	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < model->count; i++) {
			const struct rule *rule = &model->rule[i];
			const __s64 end_ms = rule->timeout_ms ? rule->timeout_ms : QUERY_NEVER_MS;

			if (!rule_covers(rule, query))
				continue;
			if (!pass && rule->action == RULE_PASS && end_ms > passed_ms)
				passed_ms = end_ms;
			if (pass && rule_blocks(rule) && end_ms > passed_ms) {
				is_blocked = true;
				by_list |= !(rule_owners_now(rule) & 1);
			}
			is_limited |= rank_of(rule) == 2;
		}
	wanted = is_blocked ? QUERY_RULE :
		 passed_ms < QUERY_NEVER_MS && settings[is_undone].policy[OUTCOME_NO_RULE] == VERDICT_DROP ?
			      QUERY_POLICY :
			      QUERY_NOTHING;
	assert_int_equal(query_blocks(store, query, is_undone, &block), 0);
	assert_int_equal(block.by, wanted);
	assert_true(block.in_ms == (wanted == QUERY_NOTHING ? QUERY_NEVER_MS : passed_ms));
	assert_int_equal(block.rate != 0, is_limited && passed_ms < QUERY_NEVER_MS);
	if (is_blocked)
		assert_int_equal(!(rule_owners_now(&block.rule) & 1), by_list);
}

/* What is asked about a running filter. */
static void ask_filter(const struct kernel_filter *filter)
{
	const double fill = filter->config->used / (double)filter_slots(filter);
	const struct rule absent = rule_of("10.77.0.77");
	bool is_there;

	for (size_t i = 0; i < panel_count; i++) {
		struct abi_sample sample = { .captured = panel[i].length, .outcome = OUTCOME_DROP_RULE };
		struct sample_view view, sent;
		int best;

		memcpy(sample.frame, panel[i].bytes, panel[i].length);
		view = sample_view(&sample, store);
		best = rank(&view.packet, ~0ULL);
		assert_true(view.has_flow && !view.is_sent && view.flow.family == view.packet.family);
		assert_int_equal(view.flow.dport, view.packet.dport);
		assert_int_equal(view.packet.fields & RULE_NEW, rule_may_begin(&view.packet) ? RULE_NEW : 0);
		assert_int_equal(view.cause, best == 0 || best == 4 ? SAMPLE_UNKNOWN_RULE : SAMPLE_RULE);
		assert_int_equal(sample_view(&sample, NULL).cause, SAMPLE_UNKNOWN_RULE);
		assert_int_equal(query_matches(filter, &view.packet, &is_there), 0);
		if (is_there != (best < 4) && (filter->options.is_exact || best < 4))
			fail_msg("%s: %d, %d", panel[i].text, is_there, best);
		sample.outcome = OUTCOME_NO_RULE;
		sample.verdict = ABI_SAMPLE_SENT;
		sent = sample_view(&sample, store);
		assert_int_equal(sent.cause, SAMPLE_POLICY);
		assert_true(sent.is_sent && sent.packet.sport == view.packet.dport);
		assert_false(sent.packet.fields & RULE_NEW);
	}
	for (size_t i = 0; i < now.count; i++) {
		assert_int_equal(query_has_rule(filter, store, &now.rule[i], &is_there), 0);
		assert_true(is_there);
	}
	if (now.count && !query_has_rule(filter, store, &absent, &is_there) && !(rank(&absent, ~0ULL) < 4))
		assert_true(!is_there || !filter->options.is_exact);
	assert_true(query_fill(filter) == fill && fill > 0);
	for (enum flow_family family = 0; family < FLOW_FAMILIES; family++) {
		const struct abi_shape_list *list = abi_shapes(abi_active(filter->config), family);
		const double probes = query_mean_probes(filter, family);
		const double own = abi_active(filter->config)->used / (double)table_slots_of(filter_geometry(filter));
		const double one = table_false_positive_rate(filter->options.format, own) /
				   (filter->options.is_exact ? 1ULL << HASH_TAG_BITS : 1);
		bool is_exact = true;

		for (size_t i = 0; i < list->count; i++)
			is_exact &= !!(rule_shape_of_compiled(abi_shape_at(list, i), family).fields & RULE_ADDRESSES);
		assert_true(list->reads_hints ? probes < list->count : probes == list->count);
		assert_true(query_false_positive_rate(filter, family) == (is_exact ? 0 : probes * one));
	}
}

static int note_rule(const struct rule *rule, void *context)
{
	struct model *model = context;

	if (rule->timeout_ms >= 0)
		model->rule[model->count++] = *rule;
	return 0;
}

static void draw_rules(uint64_t *seed, const char *first, const char *second)
{
	const char *lines[10] = { first, second };
	char text[8][128];

	for (size_t i = 0; i < COUNT(text); i++) {
		snprintf(text[i], sizeof(text[i]), "add %s", rules[random_below(seed, COUNT(rules))]);
		lines[2 + i] = text[i];
	}
	plain_change(lines, COUNT(lines));
}

/* A key in the part of a table where no shape is looked up is there, and matches nothing. */
TEST(test_a_key_in_the_other_part)
{
	const struct rule rule = rule_of("10.77.0.1");
	struct rule_key key[RULE_KEYS_MAX];
	struct session session;
	bool is_there = true;

	fill_panel();
	load(true, true, 1, 1, 1);
	plain_change(LINES("add 10.77.0.1")); /* for its hints */
	open_session(&session);
	assert_int_equal(rule_keys(&rule, key), 1);
	assert_int_equal(filter_delete(&session.filters[0], key), 0);
	assert_int_equal(filter_insert(&session.filters[0], key, 1 << 30), 0);
	assert_int_equal(judge_frame(&panel[0]), 2);
	assert_int_equal(query_matches(&session.filters[0].kernel, &rule, &is_there), 0);
	assert_false(is_there);
	session_close(&session);
}

TEST(test_questions)
{
	fill_panel();
	for (uint64_t number = 0, seed = seed_of_run(); number < environment_number("QUERY_STORES", 40); number++) {
		struct session session;

		load(true, number % 2, number % 4 == 3, seed, 1);
		draw_rules(&seed, number % 3 ? "policy no-rule pass" : "policy no-rule drop", "list a");
		draw_rules(&seed, "pending", "hand");
		if (number % 2)
			plain_change(LINES("policy no-rule pass"));
		if (number % 4)
			pass_time(4000);
		open_session(&session);
		store = session.store;
		now.count = undone.count = 0;
		assert_int_equal(store_settings(store, &settings[0]), 0);
		assert_int_equal(store_undone_settings(store, &settings[1]), 0);
		store_each(store, note_rule, &now);
		for (size_t i = 0; i < COUNT(rules); i++) {
			struct rule rule = rule_of(rules[i]);
			bool is_known = false;

			for (size_t k = 0; k < undone.count; k++)
				is_known |= keys_same_rule(&undone.rule[k], &rule);
			if (!is_known && !store_get_undone(store, &rule))
				note_rule(&rule, &undone);
		}
		for (size_t i = 0; i < COUNT(questions); i++) {
			const struct rule asked = rule_of(questions[i]);

			for (enum query_packets packets = QUERY_RECEIVED; packets <= QUERY_SENT; packets++)
				ask(&asked, packets);
			ask_blocks(&asked, false);
			ask_blocks(&asked, true);
		}
		ask_filter(&session.filters[0].kernel);
		session_close(&session);
	}
}

TEST_MAIN(setup_all, teardown_all)
#endif
