// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a store keeps, in which order, and what a transaction changes. */
#include "store_fixture.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void has_comment(struct fixture *f, const char *text, const char *comment)
{
	struct rule rule = rule_of(text);

	assert_int_equal(store_get(f->store, &rule), 0);
	assert_string_equal(rule.comment, comment);
}

static void test_put_get_delete(void **state)
{
	struct fixture *f = *state;

	open_store(f, STORE_WRITE);
	holds(f, 0, 0, 0);
	add(f, "192.0.2.1 comment \"a b\"");
	has_comment(f, "192.0.2.1", "a b");
	assert_false(has(f, "192.0.2.2"));
	assert_false(has(f, "192.0.2.1 action pass"));

	assert_int_equal(store_begin(f->store), 0);
	assert_int_equal(put(f, "192.0.2.1 comment other"), -EEXIST);
	assert_int_equal(put(f, "2001:db8::/32"), 0);
	assert_true(has(f, "2001:db8::/32"));
	assert_int_equal(del(f, "192.0.2.9"), -ENOENT);
	assert_int_equal(store_commit(f->store), 0);
	has_comment(f, "192.0.2.1", "a b");
	has_comment(f, "2001:db8::/32", "");
	holds(f, 2, 2, 2);

	assert_int_equal(store_begin(f->store), 0);
	assert_int_equal(del(f, "192.0.2.1"), 0);
	assert_false(has(f, "192.0.2.1"));
	assert_int_equal(store_commit(f->store), 0);
	holds(f, 3, 1, 1);
}

static void test_reopen_keeps_all(void **state)
{
	struct fixture *f = *state;
	struct store_info before, after;
	char text[RULE_TEXT_BYTES], comment[RULE_COMMENT_BYTES];

	memset(comment, 'x', sizeof(comment) - 1);
	comment[sizeof(comment) - 1] = '\0';
	snprintf(text, sizeof(text), "192.0.2.1 comment %s", comment);
	open_store(f, STORE_WRITE);
	add(f, text);
	add(f, "proto udp dport 53 comment dns");
	before = info_of(f);
	assert_true(before.id[0] || before.id[1]);

	for (enum store_mode mode = STORE_READ; mode <= STORE_WRITE; mode++) {
		close_store(f);
		open_store(f, mode);
		after = info_of(f);
		assert_memory_equal(&before, &after, sizeof(before));
		has_comment(f, "192.0.2.1", comment);
		has_comment(f, "proto udp dport 53", "dns");
	}
}

static void test_ids_differ(void **state)
{
	struct fixture *f = *state;
	struct store_info one, other;

	open_store(f, STORE_WRITE);
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

static void test_each_in_order(void **state)
{
	static const char *const texts[] = {
		"203.0.113.7",
		"10.0.0.0/8",
		"2001:db8::1 comment six",
		"dport 53 proto udp",
		"10.0.0.1",
		"dst 10.0.0.1",
		"10.0.0.1 action pass",
		"2001:db8::/32 comment six",
	};
	struct fixture *f = *state;
	struct walk walk = { .f = f };
	size_t visits = 0;

	open_store(f, STORE_WRITE);
	assert_int_equal(store_begin(f->store), 0);
	for (size_t i = 0; i < COUNT(texts); i++)
		assert_int_equal(put(f, texts[i]), 0);
	assert_int_equal(store_each(f->store, stop_at_once, &visits), 7);
	assert_int_equal(visits, 1);
	assert_int_equal(store_commit(f->store), 0);
	assert_int_equal(store_each(f->store, walk_in_order, &walk), 0);
	assert_int_equal(walk.visits, COUNT(texts));
}

static void test_clear(void **state)
{
	struct fixture *f = *state;
	size_t visits = 0;

	open_store(f, STORE_WRITE);
	add(f, "192.0.2.1");
	add(f, "proto udp dport 53");
	assert_int_equal(store_begin(f->store), 0);
	assert_int_equal(store_clear(f->store), 0);
	assert_int_equal(put(f, "192.0.2.3"), 0);
	assert_int_equal(store_clear(f->store), 0);
	assert_int_equal(store_commit(f->store), 0);
	holds(f, 3, 0, 0);
	assert_int_equal(store_each(f->store, stop_at_once, &visits), 0);
	assert_int_equal(visits, 0);
	add(f, "192.0.2.1");
	holds(f, 4, 1, 1);
}

static void test_generation_counts_changes(void **state)
{
	struct fixture *f = *state;

	open_store(f, STORE_WRITE);
	add(f, "192.0.2.1");
	assert_int_equal(store_begin(f->store), 0);
	assert_int_equal(store_commit(f->store), 0);
	assert_int_equal(store_begin(f->store), 0);
	assert_int_equal(put(f, "192.0.2.1"), -EEXIST);
	assert_int_equal(del(f, "192.0.2.2"), -ENOENT);
	assert_int_equal(store_commit(f->store), 0);
	holds(f, 1, 1, 1);

	assert_int_equal(store_begin(f->store), 0);
	assert_int_equal(del(f, "192.0.2.1"), 0);
	assert_int_equal(store_commit(f->store), 0);
	assert_int_equal(store_begin(f->store), 0);
	assert_int_equal(store_clear(f->store), 0);
	assert_int_equal(store_commit(f->store), 0);
	holds(f, 2, 0, 0);
}

static void test_abort_changes_nothing(void **state)
{
	struct fixture *f = *state;

	open_store(f, STORE_WRITE);
	add(f, "192.0.2.1 comment kept");
	assert_int_equal(store_begin(f->store), 0);
	assert_int_equal(store_begin(f->store), -EBUSY);
	assert_int_equal(store_clear(f->store), 0);
	assert_int_equal(put(f, "proto udp dport 53"), 0);
	holds(f, 1, 1, 2);
	store_abort(f->store);
	has_comment(f, "192.0.2.1", "kept");
	holds(f, 1, 1, 1);
	add(f, "192.0.2.2");
	holds(f, 2, 2, 2);

	assert_int_equal(store_begin(f->store), 0);
	assert_int_equal(put(f, "192.0.2.3"), 0);
	close_store(f);
	open_store(f, STORE_READ);
	holds(f, 2, 2, 2);
	assert_int_not_equal(store_begin(f->store), 0);
}

/* Shapes. */

static void test_shapes_in_use(void **state)
{
	struct rule_shape shapes[2 * ABI_SHAPES_MAX];
	__u64 keys[2 * ABI_SHAPES_MAX];
	struct fixture *f = *state;
	size_t count;

	open_store(f, STORE_WRITE);
	add(f, "192.0.2.1");
	add(f, "192.0.2.2");
	add(f, "proto udp dport 53");
	add(f, "2001:db8::1 action pass");
	assert_int_equal(store_shapes(f->store, shapes, keys, &count), 0);
	assert_int_equal(count, 4);
	holds(f, 4, 4, 5);
	assert_int_equal(shapes[0].action, RULE_PASS);
	assert_int_equal(shapes[0].family, FLOW_IPV6);
	for (size_t i = 0; i < count; i++) {
		bool is_host = shapes[i].family == FLOW_IPV4 && shapes[i].src_len == 32;

		assert_int_equal(keys[i], is_host ? 2 : 1);
		assert_int_equal(shapes[i].action, i ? RULE_DROP : RULE_PASS);
	}
}

/* Prefix lengths 1 to 32, each a shape. */
static void fill_shapes(struct fixture *f, const char *prefix)
{
	char text[32];

	for (unsigned int length = 1; length <= ABI_SHAPES_MAX; length++) {
		snprintf(text, sizeof(text), "%s/%u", prefix, length);
		assert_int_equal(put(f, text), 0);
	}
}

static void test_33rd_shape(void **state)
{
	struct fixture *f = *state;

	open_store(f, STORE_WRITE);
	assert_int_equal(store_begin(f->store), 0);
	fill_shapes(f, "8000::");
	assert_int_equal(put(f, "8000::/33"), -E2BIG);
	assert_int_equal(put(f, "8000::/16 action pass"), -E2BIG);
	assert_int_equal(put(f, "4000::/2"), 0); /* of a shape that is there */

	/* It would fit IPv4. */
	assert_int_equal(put(f, "proto udp dport 53"), -E2BIG);
	assert_false(has(f, "proto udp dport 53"));
	fill_shapes(f, "128.0.0.0");
	assert_int_equal(put(f, "proto tcp 128.0.0.0/8"), -E2BIG);
	assert_int_equal(store_commit(f->store), 0);
	holds(f, 1, 65, 65);

	close_store(f);
	open_store(f, STORE_WRITE);
	assert_int_equal(store_begin(f->store), 0);
	assert_int_equal(put(f, "8000::/33"), -E2BIG);
	assert_int_equal(del(f, "8000::/2"), 0);
	assert_int_equal(put(f, "8000::/33"), -E2BIG); /* 4000::/2 keeps the place */
	assert_int_equal(del(f, "4000::/2"), 0);
	assert_int_equal(put(f, "8000::/33"), 0);
	assert_int_equal(del(f, "8000::/7"), 0);
	assert_int_equal(del(f, "128.0.0.0/7"), 0);
	assert_int_equal(put(f, "proto udp dport 53"), 0);
	assert_int_equal(store_commit(f->store), 0);
	holds(f, 2, 63, 64);
	assert_int_equal(store_begin(f->store), 0);
	assert_int_equal(del(f, "proto udp dport 53"), 0);
	assert_int_equal(store_commit(f->store), 0);
	holds(f, 3, 62, 62);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_TEST(test_put_get_delete),
		STORE_TEST(test_reopen_keeps_all),
		STORE_TEST(test_ids_differ),
		STORE_TEST(test_each_in_order),
		STORE_TEST(test_clear),
		STORE_TEST(test_generation_counts_changes),
		STORE_TEST(test_abort_changes_nothing),
		STORE_TEST(test_shapes_in_use),
		STORE_TEST(test_33rd_shape),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
