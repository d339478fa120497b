// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a store keeps, in which order, and what a transaction changes. */
#include <arpa/inet.h>

#include "unit/store_fixture.h"
#include "store/internal.h"

STORE_TEST(test_put_get_delete)
{
	holds(f, 0, 0, 0);
	add(f, "192.0.2.1 comment \"a b\"");
	is_as(f, "192.0.2.1", 0, "a b");
	assert_false(has(f, "192.0.2.2"));
	assert_false(has(f, "192.0.2.1 action pass"));

	begin(f);
	assert_int_equal(put(f, "192.0.2.1 comment other"), STORE_UNCHANGED);
	assert_int_equal(put(f, "2001:db8::/32"), 0);
	assert_true(has(f, "2001:db8::/32"));
	assert_int_equal(del(f, "192.0.2.9"), STORE_NO_SUCH_RULE);
	end(f);
	is_as(f, "192.0.2.1", 0, "a b");
	is_as(f, "2001:db8::/32", 0, "");
	holds(f, 2, 2, 2);

	begin(f);
	assert_int_equal(del(f, "192.0.2.1"), 0);
	assert_false(has(f, "192.0.2.1"));
	end(f);
	holds(f, 3, 1, 1);
}

STORE_TEST(test_reopen_keeps_all)
{
	struct store_info before, after;
	char text[RULE_TEXT_BYTES], comment[RULE_COMMENT_BYTES];

	memset(comment, 'x', sizeof(comment) - 1);
	comment[sizeof(comment) - 1] = '\0';
	snprintf(text, sizeof(text), "192.0.2.1 comment %s", comment);
	add(f, text);
	add(f, "proto udp dport 53 comment dns");
	before = info_of(f);
	assert_true(before.id[0] || before.id[1]);

	for (enum store_mode mode = STORE_READ; mode <= STORE_WRITE; mode++) {
		reopen(f, mode);
		after = info_of(f);
		assert_memory_equal(&before, &after, sizeof(before));
		is_as(f, "192.0.2.1", 0, comment);
		is_as(f, "proto udp dport 53", 0, "dns");
	}
}

STORE_TEST(test_ids_differ)
{
	struct store_info one, other;

	one = info_of(f);
	close_store(f);
	snprintf(f->dir, sizeof(f->dir), "%s/other", f->top);
	open_store(f, STORE_WRITE);
	other = info_of(f);
	assert_memory_not_equal(one.id, other.id, sizeof(one.id));
}

struct walk {
	struct fixture *f;
	__u8 last[RULE_ENCODED_BYTES];
	size_t length, visits;
};

static int walk_in_order(const struct rule *rule, void *context)
{
	__u8 bytes[RULE_ENCODED_BYTES];
	size_t length = rule_encode(rule, bytes);
	struct walk *walk = context;
	size_t common = length < walk->length ? length : walk->length;
	int order = memcmp(walk->last, bytes, common);
	struct rule again = *rule;

	assert_true(order < 0 || (order == 0 && walk->length < length));
	assert_string_equal(rule->comment, rule->family == FLOW_IPV6 ? "six" : "");
	assert_int_equal(store_get(walk->f->store, &again), 0); /* reads nest */
	memcpy(walk->last, bytes, length);
	walk->length = length;
	walk->visits++;
	return 0;
}

static int stop_at_once(const struct rule *rule, void *context)
{
	(void)rule;
	++*(size_t *)context;
	return 7;
}

STORE_TEST(test_each_in_order)
{
	static const char *const texts[] = {
		"203.0.113.7", "10.0.0.0/8",   "2001:db8::1 comment six", "dport 53 proto udp",
		"10.0.0.1",    "dst 10.0.0.1", "10.0.0.1 action pass",    "2001:db8::/32 comment six",
	};
	struct walk walk = { .f = f };
	size_t visits = 0;

	begin(f);
	for (size_t i = 0; i < COUNT(texts); i++)
		assert_int_equal(put(f, texts[i]), 0);
	assert_int_equal(store_each(f->store, stop_at_once, &visits), 7);
	assert_int_equal(visits, 1);
	end(f);
	assert_int_equal(store_each(f->store, walk_in_order, &walk), 0);
	assert_int_equal(walk.visits, COUNT(texts));
}

static int follows(const struct rule *rule, void *context)
{
	__u32 *last = context;

	assert_true(ntohl(rule->src.v4) > *last);
	*last = ntohl(rule->src.v4);
	return 0;
}

/* Each new rule sorts after all others, while other rules are changed and deleted. */
STORE_TEST(test_rules_that_come_in_order)
{
	unsigned int there = 0;
	char text[512];
	__u32 last = 0;

	begin(f);
	for (unsigned int i = 0; i < 3000; i++) {
		snprintf(text, sizeof(text), "10.0.%u.%u timeout 1h", i / 256, i % 256);
		assert_int_equal(put(f, text), 0);
		there++;
		if (i % 50 < 25) /* grows where it is: pages split behind the end that was */
			snprintf(text, sizeof(text), "10.0.%u.%u comment %0200u", i / 256, i % 256, i);
		if (i % 50 < 25)
			assert_int_equal(put(f, text), STORE_NEW_END);
		snprintf(text, sizeof(text), "10.0.%u.%u", i / 256, i % 256);
		if (i % 50 > 40)
			assert_int_equal(del(f, text), 0);
		there -= i % 50 > 40;
		assert_int_equal(has(f, text), i % 50 <= 40);
	}
	assert_int_equal(put(f, "10.0.0.0"), STORE_UNCHANGED);
	assert_int_equal(store_each(f->store, follows, &last), 0);
	end(f);
	holds(f, 1, there, there);
	for (unsigned int i = 0; i < 3000; i++) {
		snprintf(text, sizeof(text), "10.0.%u.%u", i / 256, i % 256);
		assert_int_equal(has(f, text), i % 50 <= 40);
	}
}

struct rates {
	struct fixture *f;
	size_t count;
	const char *text[8];
};

/* Each rate that is visited is that of the stored rule. */
static int compare_rate(const struct rule *rule, void *context)
{
	struct rates *rates = context;
	struct rule stored = *rule;
	char text[RULE_TEXT_BYTES];

	assert_int_equal(store_get(rates->f->store, &stored), 0);
	assert_int_equal(rule->rate, stored.rate);
	assert_string_equal(rule_format(rule, text), rates->text[rates->count++]);
	return 0;
}

static void rates_are(struct fixture *f, const char *first, const char *second)
{
	struct rates rates = { .f = f, .text = { first, second } };

	assert_int_equal(store_each_rate(f->store, compare_rate, &rates), 0);
	assert_int_equal(rates.count, (first != NULL) + (second != NULL));
}

STORE_TEST(test_rates)
{
	struct rule rule;
	unsigned int list;
	size_t count;

	rates_are(f, NULL, NULL);
	begin(f);
	assert_int_equal(store_rates(f->store, 0, &count), 0);
	assert_int_equal(count, 0);
	assert_int_equal(put(f, "192.0.2.1 rate 1000/s comment kept"), 0);
	assert_int_equal(put(f, "192.0.2.1"), 0);
	assert_int_equal(put(f, "proto udp rate 8Mbit/s timeout 1h"), 0);
	assert_int_equal(store_rates(f->store, 0, &count), 0);
	assert_int_equal(count, 2);
	rates_are(f, "src 192.0.2.1 rate 1000/s", "proto udp rate 8Mbit/s");
	end(f);
	reopen(f, STORE_WRITE);
	rates_are(f, "src 192.0.2.1 rate 1000/s", "proto udp rate 8Mbit/s");
	begin(f);
	assert_int_equal(put(f, "192.0.2.1 rate 1000/s"), STORE_UNCHANGED);
	assert_int_equal(put(f, "192.0.2.1 rate 2000/s"), STORE_NEW_END);
	assert_int_equal(put(f, "proto udp rate 1bit/s timeout 2h"), STORE_NEW_END);
	rates_are(f, "src 192.0.2.1 rate 2000/s", "proto udp rate 1bit/s");
	rule = rule_of("192.0.2.1 rate 5/s");
	assert_int_equal(store_get(f->store, &rule), 0);
	assert_string_equal(rule.comment, "kept");
	/* Of the rates of several owners the lower stays; packets and bits are not compared. */
	assert_int_equal(store_list_open(f->store, "other", NULL, &list), 0);
	rule = rule_of("192.0.2.1 rate 3000/s");
	assert_int_equal(put_rule_for(f->store, &rule, list), STORE_NEW_OWNER);
	assert_int_equal(put_rule_for(f->store, &rule, list), STORE_UNCHANGED);
	assert_int_equal(put(f, "192.0.2.1 rate 8bit/s"), STORE_UNCHANGED);
	rates_are(f, "src 192.0.2.1 rate 2000/s", "proto udp rate 1bit/s");
	rule = rule_of("192.0.2.1 rate 1500/s");
	assert_int_equal(put_rule_for(f->store, &rule, list), STORE_NEW_END);
	rates_are(f, "src 192.0.2.1 rate 1500/s", "proto udp rate 1bit/s");
	assert_int_equal(give_up_rule(f->store, &rule, STORE_BY_HAND), STORE_STILL_WANTED);
	rule = rule_of("192.0.2.1 rate 8bit/s");
	assert_int_equal(put_rule_for(f->store, &rule, list), STORE_NEW_END);
	rates_are(f, "src 192.0.2.1 rate 8bit/s", "proto udp rate 1bit/s");
	end(f);
	begin(f);
	assert_int_equal(del(f, "192.0.2.1"), 0);
	assert_int_equal(del(f, "192.0.2.1"), STORE_NO_SUCH_RULE);
	assert_int_equal(del(f, "proto udp rate 7/s"), 0);
	rates_are(f, "src 192.0.2.1 rate 8bit/s", NULL);
	store_abort(f->store);
	rates_are(f, "src 192.0.2.1 rate 8bit/s", "proto udp rate 1bit/s");
	assert_int_equal(store_check(f->store), 0);
	begin(f);
	assert_int_equal(store_clear(f->store), 0);
	rates_are(f, NULL, NULL);
	end(f);
	rates_are(f, NULL, NULL);
}

STORE_TEST(test_clear)
{
	size_t visits = 0;

	add(f, "192.0.2.1");
	add(f, "proto udp dport 53");
	begin(f);
	assert_int_equal(store_clear(f->store), 0);
	assert_int_equal(put(f, "192.0.2.3"), 0);
	assert_int_equal(store_clear(f->store), 0);
	end(f);
	holds(f, 3, 0, 0);
	assert_int_equal(store_each(f->store, stop_at_once, &visits), 0);
	assert_int_equal(visits, 0);
	add(f, "192.0.2.1");
	holds(f, 4, 1, 1);
}

STORE_TEST(test_generation_counts_changes)
{
	add(f, "192.0.2.1");
	begin(f);
	end(f);
	begin(f);
	assert_int_equal(put(f, "192.0.2.1"), STORE_UNCHANGED);
	assert_int_equal(del(f, "192.0.2.2"), STORE_NO_SUCH_RULE);
	end(f);
	holds(f, 1, 1, 1);

	begin(f);
	assert_int_equal(del(f, "192.0.2.1"), 0);
	end(f);
	begin(f);
	assert_int_equal(store_clear(f->store), 0);
	end(f);
	holds(f, 2, 0, 0);
}

STORE_TEST(test_abort_changes_nothing)
{
	add(f, "192.0.2.1 comment kept");
	begin(f);
	assert_int_equal(store_begin(f->store), -EBUSY);
	assert_int_equal(store_clear(f->store), 0);
	assert_int_equal(put(f, "proto udp dport 53"), 0);
	holds(f, 1, 1, 2);
	store_abort(f->store);
	is_as(f, "192.0.2.1", 0, "kept");
	holds(f, 1, 1, 1);
	add(f, "192.0.2.2");
	holds(f, 2, 2, 2);

	begin(f);
	assert_int_equal(put(f, "192.0.2.3"), 0);
	reopen(f, STORE_READ);
	holds(f, 2, 2, 2);
	assert_int_not_equal(store_begin(f->store), 0);
}

/* ---- settings ---- */

static const struct store_settings settings_of_test = {
	.policy = { [OUTCOME_MALFORMED] = VERDICT_DROP, [OUTCOME_LATER_FRAGMENT] = VERDICT_DROP },
	.is_monitor_only = 1,
};

static void has_settings(struct fixture *f, const struct store_settings *expected)
{
	struct store_settings settings;

	memset(&settings, 0xff, sizeof(settings));
	assert_int_equal(store_settings(f->store, &settings), 0);
	assert_memory_equal(&settings, expected, sizeof(settings));
}

static void set_settings(struct fixture *f)
{
	assert_int_equal(store_set_settings(f->store, &settings_of_test), 0);
	has_settings(f, &settings_of_test);
}

STORE_TEST(test_settings_are_kept)
{
	static const struct store_settings defaults = { .policy = { [OUTCOME_TOO_MANY_HEADERS] = VERDICT_DROP } };

	assert_memory_equal(&store_settings_default, &defaults, sizeof(defaults));
	has_settings(f, &defaults);
	begin(f);
	set_settings(f);
	store_abort(f->store);
	has_settings(f, &defaults);
	begin(f);
	set_settings(f);
	end(f);
	has_settings(f, &settings_of_test);
	holds(f, 1, 0, 0);

	/* The same settings again are no change. */
	begin(f);
	set_settings(f);
	assert_false(store_is_changed(f->store));
	end(f);
	holds(f, 1, 0, 0);

	add(f, "192.0.2.1");
	begin(f);
	assert_int_equal(store_clear(f->store), 0);
	end(f);
	for (enum store_mode mode = STORE_READ; mode <= STORE_WRITE; mode++) {
		reopen(f, mode);
		has_settings(f, &settings_of_test);
	}
	begin(f);
	assert_int_equal(store_set_settings(f->store, &defaults), 0);
	end(f);
	has_settings(f, &defaults);
	holds(f, 4, 0, 0);
}

/* What a confirmed change had kept for its undo means nothing later, whatever number a change gets. */
STORE_TEST(test_old_settings_end_with_their_change)
{
	struct store_settings undone;

	begin_pending(f, 1000);
	set_settings(f);
	end(f);
	assert_int_equal(store_undone_settings(f->store, &undone), 0);
	assert_memory_equal(&undone, &store_settings_default, sizeof(undone));
	begin(f);
	assert_int_equal(store_forget_pending(f->store), 0);
	end(f);
	begin(f);
	f->store->meta.last_pending_id += 0xffff;
	assert_int_equal(store_set_pending(f->store, 1000), 0);
	end(f);
	assert_int_equal(store_undone_settings(f->store, &undone), 0);
	assert_memory_equal(&undone, &settings_of_test, sizeof(undone));
}

/* Older versions wrote 0 for the default and for an explicit "pass", which was the default then. */
DIRECTORY_TEST(test_a_policy_that_an_older_version_wrote)
{
	const __u8 drops[] = { VERDICT_PASS, VERDICT_DROP };

	for (size_t i = 0; i < 2; i++) {
		open_store(f, STORE_WRITE);
		begin(f);
		f->store->meta.settings = (struct store_settings){};
		f->store->meta.settings.policy[OUTCOME_TOO_MANY_HEADERS] = drops[i];
		f->store->is_changed = true;
		end(f);
		has_settings(f, &store_settings_default);
		close_store(f);
	}
}

/* ---- shapes ---- */

static struct shape_list shapes_of(struct fixture *f)
{
	struct shape_list list = {};

	assert_int_equal(store_shapes(f->store, &list), 0);
	return list;
}

static size_t targets_of(struct fixture *f, enum flow_family family)
{
	const struct shape_list list = shapes_of(f);
	struct rule_shape targets[ABI_SHAPES_MAX];

	return shape_list_probed(&list, family, targets);
}

static void same_shapes(const struct shape_list *a, const struct shape_list *b)
{
	assert_int_equal(a->count, b->count);
	for (size_t i = 0; i < a->count; i++) {
		assert_memory_equal(&a->entry[i].shape, &b->entry[i].shape, sizeof(a->entry[i].shape));
		assert_memory_equal(&a->entry[i].probed_as, &b->entry[i].probed_as, sizeof(a->entry[i].probed_as));
		assert_int_equal(a->entry[i].keys, b->entry[i].keys);
		assert_int_equal(a->entry[i].is_shared, b->entry[i].is_shared);
	}
}

STORE_TEST(test_shapes_in_use)
{
	struct shape_list list;

	add(f, "192.0.2.1");
	add(f, "192.0.2.2");
	add(f, "proto udp dport 53");
	add(f, "2001:db8::1 action pass");
	list = shapes_of(f);
	assert_int_equal(list.count, 4);
	holds(f, 4, 4, 5);
	assert_int_equal(list.entry[0].shape.action, RULE_PASS);
	assert_int_equal(list.entry[0].shape.family, FLOW_IPV6);
	for (size_t i = 0; i < list.count; i++) {
		const struct rule_shape *shape = &list.entry[i].shape;
		bool is_host = shape->family == FLOW_IPV4 && shape->src_len == 32;

		assert_int_equal(list.entry[i].keys, is_host ? 2 : 1);
		assert_int_equal(shape->action, i ? RULE_DROP : RULE_PASS);
		assert_memory_equal(&list.entry[i].probed_as, shape, sizeof(*shape));
	}
}

static void put_lengths(struct fixture *f, const char *prefix, int first, int last)
{
	const int step = first < last ? 1 : -1;
	char text[32];

	for (int length = first; length != last + step; length += step) {
		snprintf(text, sizeof(text), "%s/%d", prefix, length);
		assert_int_equal(put(f, text), 0);
	}
}

static __u8 target_length(struct fixture *f, const char *text)
{
	const struct shape_list list = shapes_of(f);
	struct rule rule = rule_of(text);
	struct rule_key keys[RULE_KEYS_MAX];
	const struct shape_list_entry *entry;

	rule_keys(&rule, keys);
	entry = shape_list_find(&list, &keys->shape);
	assert_non_null(entry);
	return entry->probed_as.src_len;
}

/*
 * Eight shapes are probed as themselves. After that, near ones join, and the store keeps which joined
 * which.
 */
STORE_TEST(test_the_9th_shape_joins_another)
{
	struct shape_list before, after;

	begin(f);
	put_lengths(f, "128.0.0.0", 24, 17);
	assert_int_equal(targets_of(f, FLOW_IPV4), SHAPE_LIST_PROBES);
	assert_int_equal(info_of(f).keys, SHAPE_LIST_PROBES);
	assert_int_equal(put(f, "128.0.0.0/11"), 0);
	assert_int_equal(target_length(f, "128.0.0.0/11"), 17);
	assert_int_equal(info_of(f).keys, SHAPE_LIST_PROBES + 64);
	assert_int_equal(put(f, "128.0.0.0/10"), 0); /* 2^7 keys: too far */
	assert_int_equal(target_length(f, "128.0.0.0/10"), 10);
	assert_int_equal(targets_of(f, FLOW_IPV4), SHAPE_LIST_PROBES + 1);
	assert_true(store_has_new_shape(f->store));
	end(f);

	before = shapes_of(f);
	for (enum store_mode mode = STORE_READ; mode <= STORE_WRITE; mode++) {
		reopen(f, mode);
		after = shapes_of(f);
		same_shapes(&before, &after);
		holds(f, 1, 10, SHAPE_LIST_PROBES + 64 + 1);
	}

	/* A probed shape stays when the shape that it was made for is gone. */
	begin(f);
	assert_int_equal(put(f, "192.0.0.0/11"), 0);
	assert_false(store_has_new_shape(f->store));
	assert_int_equal(del(f, "128.0.0.0/17"), 0);
	end(f);
	reopen(f, STORE_READ);
	assert_int_equal(target_length(f, "192.0.0.0/11"), 17);
	holds(f, 2, 10, 7 + 2 * 64 + 1);
}

STORE_TEST(test_a_65th_probed_shape_is_refused)
{
	char text[RULE_TEXT_BYTES];

	begin(f);
	for (unsigned int n = 0; n < ABI_SHAPES_MAX; n++)
		assert_int_equal(put(f, kind_of_rule(n, text)), 0);
	assert_int_equal(targets_of(f, FLOW_IPV4), ABI_SHAPES_MAX);
	assert_int_equal(put(f, "192.0.2.1 action monitor"), -E2BIG);
	assert_int_equal(put(f, "192.0.2.2"), 0); /* its shape is there */

	/* IPv6 has room for it, and that is not enough. */
	assert_int_equal(put(f, "proto udp dport 53"), -E2BIG);
	assert_false(has(f, "proto udp dport 53"));
	assert_int_equal(targets_of(f, FLOW_IPV6), 0);
	end(f);
	holds(f, 1, ABI_SHAPES_MAX + 1, ABI_SHAPES_MAX + 1);

	reopen(f, STORE_WRITE);
	begin(f);
	assert_int_equal(put(f, "192.0.2.1 action monitor"), -E2BIG);
	assert_int_equal(del(f, "192.0.2.1"), 0);
	assert_int_equal(put(f, "192.0.2.1 action monitor"), -E2BIG); /* 192.0.2.2 still has the place */
	assert_int_equal(del(f, "192.0.2.2"), 0);
	assert_int_equal(put(f, "proto udp dport 53"), 0);
	assert_int_equal(targets_of(f, FLOW_IPV6), 1);
	end(f);
	holds(f, 2, ABI_SHAPES_MAX, ABI_SHAPES_MAX + 1);
}

STORE_TEST(test_plan_makes_room)
{
	struct shape_list planned, after;
	struct store_info before;

	begin(f);
	put_lengths(f, "8000::", 1, ABI_SHAPES_MAX);
	end(f);
	before = info_of(f);
	assert_int_equal(before.plan, 0);

	begin(f);
	assert_int_equal(put(f, "8000::/65"), 0);
	assert_true(store_shape_list(f->store)->must_plan);
	assert_int_equal(store_plan(f->store), 0);
	assert_true(store_is_changed(f->store));
	assert_true(targets_of(f, FLOW_IPV6) <= SHAPE_LIST_PROBES);
	assert_int_equal(info_of(f).plan, 1);
	store_abort(f->store);
	assert_int_equal(info_of(f).plan, 0);
	assert_int_equal(targets_of(f, FLOW_IPV6), ABI_SHAPES_MAX);

	begin(f);
	assert_int_equal(store_plan(f->store), 0);
	end(f);
	planned = shapes_of(f);
	reopen(f, STORE_READ);
	after = shapes_of(f);
	same_shapes(&planned, &after);
	assert_int_equal(info_of(f).plan, 1);
	assert_int_equal(info_of(f).generation, before.generation + 1);
	assert_int_equal(info_of(f).rules, ABI_SHAPES_MAX);
	assert_int_equal(info_of(f).keys, shape_list_keys(&planned));
	assert_true(info_of(f).keys > ABI_SHAPES_MAX);
}

TEST_MAIN(NULL, NULL)
