// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The keys of rules whose shapes share targets, and what the store says about each key. The tests compare
 * this with a search that checks every rule against the key, bit by bit.
 */
#include "unit/clock_fixture.h"
#include "change/internal.h"
#include "filter/filter.h"

#define RUNS 12
#define RULES_MAX 160
#define CHANGES 40 /* of each run, before everything is checked */

struct world {
	struct fixture *f;
	struct shape_list shapes;
	struct rule rule[RULES_MAX]; /* what the store holds */
	size_t count;
};

/* ---- rules that overlap ---- */

/* Few addresses with many prefix lengths, and some other kinds of rules. */
static struct rule random_rule(void)
{
	static const char *const texts[] = {
		"10.0.0.0",
		"10.0.0.0",
		"10.0.0.0",
		"10.0.0.0 action pass",
		"10.0.0.0 proto udp",
		"dst 10.0.0.0",
		"2001:db8::",
		"2001:db8::",
		"src 10.0.0.0 dst 10.0.0.0 proto tcp dport 80",
		"dport 53 proto udp",
		"src 0.0.0.0/0",
		"src ::/0 proto udp dport 53",
	};
	struct rule rule = rule_of(texts[below(COUNT(texts))]);
	const unsigned int last = rule.family == FLOW_IPV4 ? 32 : 40;
	const unsigned int number = below(2) ? below(4) : below(65536);

	/* 10.0.0.0/20 to 10.255.255.255: at most 2^12 keys of a host's shape. */
	if (rule.src_len) {
		rule.src.byte[1] ^= number >> 8;
		rule.src.byte[2] ^= number;
		rule.src.byte[4 - (last == 32)] ^= below(256);
		rule.src_len = last - below(13);
		rule.src = rule_network(&rule.src, rule.src_len);
	}
	if (rule.dst_len && below(2)) {
		rule.dst.byte[2] ^= number >> 3;
		rule.dst_len = 24 - below(5);
		rule.dst = rule_network(&rule.dst, rule.dst_len);
	}
	if (below(3))
		rule.timeout_ms = CLOCK_SECOND * (1 + below(100));
	return rule;
}

static int collect(const struct rule *rule, void *context)
{
	struct world *world = context;

	assert_true(world->count < RULES_MAX);
	world->rule[world->count++] = *rule;
	return 0;
}

/* Adds and deletes rules and changes their timeouts. Sometimes chooses all targets again. */
static void change(struct world *world)
{
	struct store *store = world->f->store;

	clock_advance(below(2 * CLOCK_SECOND));
	assert_int_equal(store_begin(store), 0);
	for (int i = below(8); i >= 0; i--) {
		struct rule rule = random_rule();

		if (world->count && !below(3))
			del_rule(store, &world->rule[below(world->count)]);
		else if (world->count + 8 < RULES_MAX)
			put_rule(store, &rule);
	}
	if (!below(6))
		store_plan(store);
	assert_int_equal(store_commit(store), 0);
	world->count = 0;
	assert_int_equal(store_each(store, collect, world), 0);
	assert_int_equal(store_shapes(store, &world->shapes), 0);
}

/* ---- the same by a simple search ---- */

static bool bit(const union flow_addr *address, unsigned int at)
{
	return address->byte[at / 8] >> (7 - at % 8) & 1;
}

static bool covers(const union flow_addr *prefix, unsigned int length, const union flow_addr *address)
{
	for (unsigned int at = 0; at < length; at++)
		if (bit(prefix, at) != bit(address, at))
			return false;
	return true;
}

/* The target of the rule's shape in that family. */
static const struct rule_shape *target_of(const struct world *world, const struct rule *rule, enum flow_family family)
{
	for (size_t i = 0; i < world->shapes.count; i++) {
		const struct rule_shape *shape = &world->shapes.entry[i].shape;

		if (shape->family == family && shape->action == rule->action && shape->fields == rule->fields &&
		    shape->src_len == rule->src_len && shape->dst_len == rule->dst_len)
			return &world->shapes.entry[i].probed_as;
	}
	fail_msg("a rule without its shape");
	return NULL;
}

/* Whether the rule has the key. `flow` is the key as a rule. */
static bool has_key(const struct world *world, const struct rule *rule, const struct rule_key *key,
		    const struct rule *flow)
{
	if (rule->family != FLOW_NO_FAMILY && rule->family != key->shape.family)
		return false;
	return !memcmp(target_of(world, rule, key->shape.family), &key->shape, sizeof(key->shape)) &&
	       rule->proto == flow->proto && rule->port_kind == flow->port_kind && rule->sport == flow->sport &&
	       rule->dport == flow->dport && covers(&rule->src, rule->src_len, &flow->src) &&
	       covers(&rule->dst, rule->dst_len, &flow->dst);
}

static __s64 later(__s64 a, __s64 b)
{
	return !a || !b ? 0 : a > b ? a : b;
}

/* ---- compared ---- */

struct visits {
	const struct world *world;
	const struct rule *rule;
	struct pending_keys keys;
};

static void check_state(const struct world *world, const struct rule_key *key, bool is_shared)
{
	const struct rule flow = rule_of_key(key);
	struct key_rules state;
	unsigned int rules = 0, owners = 0;
	__s64 timeout_ms = 0;

	assert_int_equal(key_rules(world->f->store, &world->shapes, key, &state), 0);
	for (size_t i = 0; i < world->count; i++) {
		const struct rule *rule = &world->rule[i];

		if (!has_key(world, rule, key, &flow))
			continue;
		timeout_ms = rules++ ? later(timeout_ms, rule->timeout_ms) : rule->timeout_ms;
		owners += keys_same_rule(rule, &state.owner);
	}
	assert_int_equal(state.rules, rules);
	assert_int_equal(state.timeout_ms, timeout_ms);
	assert_int_equal(owners, 1);
	assert_true(rules == 1 || is_shared);
}

static int check_key(const struct rule_key *key, bool is_shared, void *context)
{
	struct visits *visits = context;
	const struct rule flow = rule_of_key(key);

	assert_true(has_key(visits->world, visits->rule, key, &flow));
	assert_int_equal(flow.src_len, key->shape.src_len);
	assert_int_equal(flow.dst_len, key->shape.dst_len);
	assert_null(pending_keys_touched(&visits->keys, key));
	assert_int_equal(pending_keys_touch(&visits->keys, key, false), 0);
	/* Checks some of many keys. */
	if (!below(visits->keys.touched_count / 8 + 1))
		check_state(visits->world, key, is_shared);
	return 0;
}

/* The rule has all keys of its target under its prefixes, each once. */
static void check_rule(const struct world *world, const struct rule *rule)
{
	struct visits visits = { .world = world, .rule = rule };
	size_t expected = 0;

	for (enum flow_family family = 0; family < FLOW_FAMILIES; family++) {
		const struct rule_shape *target;

		if (rule->family != family && rule->family != FLOW_NO_FAMILY)
			continue;
		target = target_of(world, rule, family);
		expected += 1ULL << (target->src_len - rule->src_len) << (target->dst_len - rule->dst_len);
	}
	assert_int_equal(keys_each(&world->shapes, rule, check_key, &visits), 0);
	assert_int_equal(visits.keys.touched_count, expected);
	pending_keys_close(&visits.keys);
}

TIME_TEST(test_against_rules_one_by_one)
{
	struct world *world = calloc(1, sizeof(*world));

	world->f = f;
	for (int run = 0; run < RUNS; run++) {
		for (int i = 0; i < CHANGES; i++)
			change(world);
		for (size_t i = 0; i < world->count; i++)
			check_rule(world, &world->rule[i]);
	}
	free(world);
}

/* ---- by example ---- */

struct seen {
	struct rule_key key[8];
	size_t count, stop_at;
};

static int note(const struct rule_key *key, bool is_shared, void *context)
{
	struct seen *seen = context;

	(void)is_shared;
	assert_true(seen->count < 8);
	seen->key[seen->count++] = *key;
	return seen->count == seen->stop_at ? 7 : 0;
}

/* The target of /22 is /24, because eight other lengths are looked up already. */
TIME_TEST(test_shared_by_two)
{
	struct shape_list shapes;
	struct seen seen = {}, other = {};
	struct key_rules key_state;
	struct rule wide = rule_of("192.0.0.0/22"), narrow = rule_of("192.0.2.0/24");
	char text[32];

	begin(f);
	for (int length = 24; length < 32; length++) {
		snprintf(text, sizeof(text), "192.0.2.0/%d", length);
		assert_int_equal(put(f, text), 0);
	}
	assert_int_equal(put_for(f, "192.0.0.0/22 comment wide", CLOCK_HOUR), 0);
	end(f);
	assert_int_equal(store_shapes(f->store, &shapes), 0);
	assert_int_equal(keys_each(&shapes, &wide, note, &seen), 0);
	assert_int_equal(seen.count, 4);
	assert_int_equal(keys_each(&shapes, &narrow, note, &other), 0);
	assert_int_equal(other.count, 1);
	assert_memory_equal(&other.key[0].key, &seen.key[2].key, sizeof(seen.key[2].key));

	/* The narrow rule never ends, so its key never ends. The other keys end with the wide rule. */
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(key_rules(f->store, &shapes, &seen.key[i], &key_state), 0);
		assert_int_equal(key_state.rules, i == 2 ? 2 : 1);
		assert_int_equal(key_state.timeout_ms, i == 2 ? 0 : CLOCK_HOUR);
		assert_true(keys_same_rule(&key_state.owner, &wide));
	}
	seen = (struct seen){ .stop_at = 2 };
	assert_int_equal(keys_each(&shapes, &wide, note, &seen), 7);
	assert_int_equal(seen.count, 2);

	/* After the wide rule is deleted, nothing has its other keys. */
	begin(f);
	assert_int_equal(del_rule(f->store, &wide), 0);
	assert_int_equal(key_rules(f->store, &shapes, &seen.key[0], &key_state), 0);
	assert_int_equal(key_state.rules, 0);
	assert_int_equal(key_rules(f->store, &shapes, &other.key[0], &key_state), 0);
	assert_int_equal(key_state.rules, 1);
	assert_int_equal(keys_each(store_shape_list(f->store), &wide, note, &seen), -EBADMSG);
	store_abort(f->store);
}

/* A rule for both families and a rule for IPv6 have one key in common. */
TIME_TEST(test_shared_by_families)
{
	struct rule both = rule_of("proto udp dport 53");
	struct shape_list shapes;
	struct seen seen = {};
	struct key_rules key_state;

	begin(f);
	assert_int_equal(put_rule(f->store, &both), 0);
	assert_int_equal(put_for(f, "proto udp dport 53 src ::/0", CLOCK_HOUR), 0);
	end(f);
	assert_int_equal(store_shapes(f->store, &shapes), 0);
	assert_int_equal(keys_each(&shapes, &both, note, &seen), 0);
	assert_int_equal(seen.count, 2);
	for (size_t i = 0; i < seen.count; i++) {
		assert_int_equal(key_rules(f->store, &shapes, &seen.key[i], &key_state), 0);
		assert_int_equal(key_state.rules, seen.key[i].shape.family == FLOW_IPV6 ? 2 : 1);
		assert_int_equal(key_state.timeout_ms, 0);
	}
}

TEST(test_same_rule)
{
	static const char *const others[] = {
		"192.0.2.2",          "192.0.2.1 action pass", "dst 192.0.2.1", "192.0.2.0/31",
		"2001:db8::1",        "192.0.2.1 proto udp",   "src 0.0.0.0/0", "192.0.2.1 proto udp dport 1",
		"proto udp dport 53",
	};
	struct rule rule = rule_of("192.0.2.1 comment one"), other = rule_of("192.0.2.1 comment two");

	other.timeout_ms = CLOCK_HOUR;
	assert_true(keys_same_rule(&rule, &other));
	for (size_t i = 0; i < COUNT(others); i++) {
		other = rule_of(others[i]);
		assert_false(keys_same_rule(&rule, &other));
		assert_true(keys_same_rule(&other, &other));
	}
}

TEST_MAIN(seed, NULL)
