// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rules with a timeout: which of them have ended, in which order, and what the store keeps of their time. */
#include "unit/clock_fixture.h"

#define RUNS 200
#define MANY 20000

/* ---- one rule ---- */

TIME_TEST(test_a_rule_put_again_gets_the_new_timeout)
{
	begin(f);
	assert_int_equal(put_for(f, "192.0.2.1 comment first", CLOCK_HOUR), 0);
	assert_int_equal(put_for(f, "192.0.2.1", 2 * CLOCK_HOUR), STORE_NEW_END);
	is_as(f, "192.0.2.1", 2 * CLOCK_HOUR, "first");
	assert_int_equal(put_for(f, "192.0.2.1 comment second", CLOCK_SECOND), STORE_NEW_END);
	is_as(f, "192.0.2.1", CLOCK_SECOND, "second");
	assert_int_equal(info_of(f).timed, 1);
	end(f);
	holds(f, 1, 1, 1);

	/* A rule that has ended can be found, too. */
	clock_advance(CLOCK_HOUR);
	begin(f);
	is_as(f, "192.0.2.1", CLOCK_SECOND - CLOCK_HOUR, "second");
	assert_int_equal(put_for(f, "192.0.2.1", CLOCK_DAY), STORE_NEW_END);
	is_as(f, "192.0.2.1", CLOCK_DAY, "second");

	/* It is permanent now, and stays so. */
	assert_int_equal(put_for(f, "192.0.2.1", 0), STORE_NEW_END);
	is_as(f, "192.0.2.1", 0, "second");
	assert_int_equal(info_of(f).timed, 0);
	assert_int_equal(put_for(f, "192.0.2.1 comment third", CLOCK_HOUR), STORE_UNCHANGED);
	assert_int_equal(put_for(f, "192.0.2.1 comment third", 0), STORE_UNCHANGED);
	is_as(f, "192.0.2.1", 0, "second");
	end(f);
	assert_int_equal(info_of(f).timed, 0);
	holds(f, 2, 1, 1);
}

TIME_TEST(test_delete_and_clear)
{
	add_for(f, "192.0.2.1", CLOCK_SECOND);
	add_for(f, "192.0.2.2", CLOCK_SECOND);
	add_for(f, "proto udp dport 53", CLOCK_SECOND);
	add(f, "192.0.2.3");
	assert_int_equal(info_of(f).timed, 3);
	begin(f);
	assert_int_equal(del(f, "192.0.2.2"), 0);
	assert_int_equal(del(f, "192.0.2.2"), STORE_NO_SUCH_RULE);
	assert_int_equal(info_of(f).timed, 2);
	store_abort(f->store);
	assert_int_equal(info_of(f).timed, 3);

	begin(f);
	assert_int_equal(store_clear(f->store), 0);
	assert_int_equal(info_of(f).timed, 0);
	end(f);
	clock_advance(CLOCK_HOUR);
	begin(f);
	assert_int_equal(store_each_expired(f->store, never, NULL), 0);
	assert_int_equal(put_for(f, "192.0.2.1", CLOCK_SECOND), 0);
	end(f);
	assert_int_equal(info_of(f).timed, 1);
}

/* A rule that is refused because of its shape leaves no deadline behind. */
TIME_TEST(test_refused_leaves_no_deadline)
{
	char text[RULE_TEXT_BYTES];

	begin(f);
	for (unsigned int n = 0; n < ABI_SHAPES_MAX; n++)
		assert_int_equal(put_for(f, kind_of_rule(n, text), CLOCK_HOUR), 0);
	assert_int_equal(put_for(f, "192.0.2.1 action monitor", CLOCK_HOUR), -E2BIG);
	assert_int_equal(put_for(f, "proto udp dport 53", CLOCK_HOUR), -E2BIG);
	assert_int_equal(info_of(f).timed, ABI_SHAPES_MAX);
	end(f);
	assert_false(has(f, "192.0.2.1 action monitor"));
	assert_false(has(f, "proto udp dport 53"));
	holds(f, 1, ABI_SHAPES_MAX, ABI_SHAPES_MAX);
}

/* ---- many rules, against a model ---- */

/* One of every kind: each family and none, each field, prefixes, both actions. */
static const char *const kinds[] = {
	"192.0.2.1",
	"192.0.2.2 action pass",
	"10.0.0.0/8",
	"10.0.0.0/9",
	"dst 192.0.2.1",
	"src 192.0.2.1 dst 198.51.100.0/24",
	"proto tcp 192.0.2.1",
	"proto tcp 192.0.2.1 sport 80",
	"proto udp 192.0.2.1 dport 53",
	"proto tcp src 192.0.2.1 sport 1 dst 192.0.2.9 dport 2",
	"proto icmp type 8",
	"proto icmp 192.0.2.1 type 3 code 4",
	"src 0.0.0.0/0",
	"proto gre src 0.0.0.0/0",
	"2001:db8::1",
	"2001:db8::/32 action pass",
	"dst 2001:db8::1",
	"proto icmpv6 type 128",
	"proto tcp src 2001:db8::1 sport 1 dst 2001:db8::9 dport 2",
	"src ::/0",
	"proto udp dport 53",
	"proto udp dport 53 action pass",
	"sport 80",
	"proto 89",
};

#define KINDS COUNT(kinds)

struct model {
	__s64 now_ms; /* since the test began */
	struct {
		bool is_there;
		__s64 end_ms; /* 0: never */
		char comment[RULE_COMMENT_BYTES];
	} of[KINDS];
};

static __s64 model_left(const struct model *model, size_t kind)
{
	const __s64 end_ms = model->of[kind].end_ms;

	return !end_ms ? 0 : end_ms == model->now_ms ? -1 : end_ms - model->now_ms;
}

static size_t kind_of(const struct rule *rule)
{
	__u8 bytes[2][RULE_ENCODED_BYTES];
	const size_t length = rule_encode(rule, bytes[0]);

	for (size_t kind = 0; kind < KINDS; kind++) {
		struct rule other = rule_of(kinds[kind]);

		if (rule_encode(&other, bytes[1]) == length && !memcmp(bytes[0], bytes[1], length))
			return kind;
	}
	fail_msg("a rule that was never put");
	return 0;
}

struct visits {
	const struct model *model;
	size_t count, timed;
	bool is_seen[KINDS];
	__s64 last_left_ms;
	__u8 last[RULE_ENCODED_BYTES]; /* zero-padded */
};

static void visit(struct visits *visits, const struct rule *rule)
{
	const size_t kind = kind_of(rule);

	assert_true(visits->model->of[kind].is_there);
	assert_false(visits->is_seen[kind]);
	assert_int_equal(rule->timeout_ms, model_left(visits->model, kind));
	assert_string_equal(rule->comment, visits->model->of[kind].comment);
	visits->is_seen[kind] = true;
	visits->count++;
	visits->timed += rule->timeout_ms != 0;
}

static int visit_any(const struct rule *rule, void *context)
{
	visit(context, rule);
	return 0;
}

/* Sorted by deadline, and rules of one deadline by their encoded form. */
static int visit_expired(const struct rule *rule, void *context)
{
	struct visits *visits = context;
	__u8 bytes[RULE_ENCODED_BYTES] = {};

	visit(visits, rule);
	rule_encode(rule, bytes);
	assert_true(rule->timeout_ms < 0);
	if (visits->count > 1)
		assert_true(
			rule->timeout_ms > visits->last_left_ms ||
			(rule->timeout_ms == visits->last_left_ms && memcmp(visits->last, bytes, sizeof(bytes)) < 0));
	visits->last_left_ms = rule->timeout_ms;
	memcpy(visits->last, bytes, sizeof(bytes));
	return 0;
}

static void agrees(struct fixture *f, const struct model *model)
{
	struct visits all = { .model = model }, ended = { .model = model };
	size_t rules = 0, timed = 0, expired = 0;

	for (size_t kind = 0; kind < KINDS; kind++) {
		const bool is_there = model->of[kind].is_there;

		rules += is_there;
		timed += is_there && model->of[kind].end_ms;
		expired += is_there && model_left(model, kind) < 0;
		assert_int_equal(has(f, kinds[kind]), is_there);
		if (is_there)
			is_as(f, kinds[kind], model_left(model, kind), model->of[kind].comment);
	}
	assert_int_equal(info_of(f).rules, rules);
	assert_int_equal(info_of(f).timed, timed);
	assert_int_equal(store_each(f->store, visit_any, &all), 0);
	assert_int_equal(all.count, rules);
	assert_int_equal(all.timed, timed);
	assert_int_equal(store_each_expired(f->store, visit_expired, &ended), 0);
	assert_int_equal(ended.count, expired);
}

static void put_random(struct fixture *f, struct model *model)
{
	const size_t kind = below(KINDS);
	struct rule rule = rule_of(kinds[kind]);
	bool was_there = model->of[kind].is_there;
	int expected = !was_there ? 0 : model->of[kind].end_ms ? STORE_NEW_END : STORE_UNCHANGED;

	/* Few different deadlines, so that many rules share one. */
	if (below(3))
		rule.timeout_ms = CLOCK_SECOND * (1 + below(20));
	if (below(2))
		snprintf(rule.comment, sizeof(rule.comment), "%0*u", (int)below(RULE_COMMENT_BYTES), 7U);
	assert_int_equal(put_rule(f->store, &rule), expected);
	if (expected == STORE_UNCHANGED)
		return;
	model->of[kind].is_there = true;
	model->of[kind].end_ms = rule.timeout_ms ? model->now_ms + rule.timeout_ms : 0;
	if (rule.comment[0] || !was_there)
		strcpy(model->of[kind].comment, rule.comment);
}

static void del_random(struct fixture *f, struct model *model)
{
	const size_t kind = below(KINDS);

	assert_int_equal(del(f, kinds[kind]), model->of[kind].is_there ? 0 : STORE_NO_SUCH_RULE);
	model->of[kind].is_there = false;
}

struct expiring {
	struct fixture *f;
	struct model *model;
	struct visits visits;
};

/* The visitor deletes most rules. In every second case the visit must continue after a rule that stays. */
static int expire_random(const struct rule *rule, void *context)
{
	struct expiring *expiring = context;

	visit_expired(rule, &expiring->visits);
	if (below(4)) {
		assert_int_equal(del_rule(expiring->f->store, rule), 0);
		expiring->model->of[kind_of(rule)].is_there = false;
	}
	return 0;
}

static void expire(struct fixture *f, struct model *model)
{
	const struct model before = *model;
	struct expiring expiring = { .f = f, .model = model, .visits = { .model = &before } };
	size_t ended = 0;

	for (size_t kind = 0; kind < KINDS; kind++)
		ended += before.of[kind].is_there && model_left(&before, kind) < 0;
	assert_int_equal(store_each_expired(f->store, expire_random, &expiring), 0);
	assert_int_equal(expiring.visits.count, ended);
}

static void change_random(struct fixture *f, struct model *model)
{
	switch (below(24)) {
	case 0:
		assert_int_equal(store_clear(f->store), 0);
		memset(model->of, 0, sizeof(model->of));
		break;
	case 1 ... 3:
		expire(f, model);
		break;
	case 4 ... 9:
		del_random(f, model);
		break;
	default:
		put_random(f, model);
	}
}

static void advance(struct model *model)
{
	const __s64 ms = CLOCK_SECOND * below(5);

	clock_advance(ms);
	model->now_ms += ms;
}

TIME_TEST(test_random_timeouts_match_a_model)
{
	struct model model = {}, before;

	for (int run = 0; run < RUNS; run++) {
		before = model;
		advance(&model);
		begin(f);
		for (int i = below(6); i >= 0; i--)
			change_random(f, &model);
		agrees(f, &model);
		if (below(5)) {
			end(f);
		} else {
			before.now_ms = model.now_ms;
			model = before;
			store_abort(f->store);
		}
		agrees(f, &model);
		if (below(10))
			continue;
		close_store(f);
		advance(&model);
		open_store(f, STORE_READ);
		agrees(f, &model);
		reopen(f, STORE_WRITE);
	}
}

/* ---- more than a page has room for ---- */

struct sweep {
	struct fixture *f;
	__s64 last_left_ms;
	size_t count, left; /* visited; of them not deleted */
};

static int sweep_rule(const struct rule *rule, void *context)
{
	struct sweep *sweep = context;

	if (sweep->count++)
		assert_true(rule->timeout_ms >= sweep->last_left_ms);
	sweep->last_left_ms = rule->timeout_ms;
	assert_true(rule->timeout_ms < 0);
	if (!below(16))
		sweep->left++;
	else
		assert_int_equal(del_rule(sweep->f->store, rule), 0);
	return 0;
}

/* Pages of the database are merged or vanish during the visit. */
TIME_TEST(test_many_are_deleted_while_visited)
{
	struct sweep sweep = { .f = f };
	struct rule rule = rule_of("10.0.0.0 comment \"long enough to fill pages with\"");
	size_t ended = 0;

	begin(sweep.f);
	for (size_t i = 0; i < MANY; i++) {
		rule.src.byte[2] = i >> 8;
		rule.src.byte[3] = i;
		rule.timeout_ms = 1 + below(2 * CLOCK_HOUR);
		ended += rule.timeout_ms <= CLOCK_HOUR;
		assert_int_equal(put_rule(sweep.f->store, &rule), 0);
	}
	end(sweep.f);
	clock_advance(CLOCK_HOUR);
	for (int round = 0; round < 3; round++) {
		begin(sweep.f);
		assert_int_equal(store_each_expired(sweep.f->store, sweep_rule, &sweep), 0);
		assert_int_equal(sweep.count, ended);
		assert_int_equal(info_of(sweep.f).timed, info_of(sweep.f).rules);
		end(sweep.f);
		ended = sweep.left;
		sweep.left = sweep.count = 0;
	}
}

static int stop(const struct rule *rule, void *context)
{
	(void)rule;
	return *(int *)context;
}

TIME_TEST(test_a_visit_ends_as_the_visitor_says)
{
	static int results[] = { 7, -EIO, -ENOENT };

	add_for(f, "192.0.2.1", CLOCK_SECOND);
	clock_advance(CLOCK_DAY);
	for (size_t i = 0; i < COUNT(results); i++) {
		begin(f);
		assert_int_equal(store_each_expired(f->store, stop, &results[i]), results[i]);
		assert_int_equal(store_each(f->store, stop, &results[i]), results[i]);
		end(f);
		assert_int_equal(store_each_expired(f->store, stop, &results[i]), results[i]);
	}
}

TEST_MAIN(seed, NULL)
