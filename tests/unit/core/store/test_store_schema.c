// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Stores of schemas 1 and 2 can be read unchanged; their first change converts them to the newest schema. */
#include "unit/clock_fixture.h"
#include "unit/lmdb_fixture.h"

#include <sys/wait.h>

#define GENERATION 41
#define META_BYTES 144
#define META_BYTES_1 40
#define SHAPE_BYTES 16 /* of a shape's value */
#define SHAPE_BYTES_1 8

static const struct {
	const char *text, *comment;
} rules[] = {
	{ "192.0.2.1", "one" },
	{ "192.0.2.2", "" },
	{ "10.0.0.0/8 action pass", "the office" },
	{ "2001:db8::1", "six" },
	{ "proto udp dport 53", "dns" },
};

#define RULES COUNT(rules)
#define KEYS (RULES + 1) /* the last one has a key in each family */

static const __u64 store_id[2] = { 0x0123456789abcdef, 0xfedcba9876543210 };

static void write_meta(MDB_txn *txn)
{
	const struct {
		__u64 magic;
		__u32 schema, reserved;
		__u64 id[2], generation;
	} meta = { STORE_MAGIC, 1, 0, { store_id[0], store_id[1] }, GENERATION };

	_Static_assert(sizeof(meta) == META_BYTES_1, "meta of schema 1");
	lmdb_put_in(txn, "meta", (MDB_val){ 5, "store" }, (MDB_val){ sizeof(meta), (void *)&meta });
}

static void write_rule(MDB_txn *txn, const struct rule *rule, const char *comment)
{
	__u8 bytes[RULE_ENCODED_BYTES];

	lmdb_put_in(txn, "rules", (MDB_val){ rule_encode(rule, bytes), bytes },
		    (MDB_val){ strlen(comment), (void *)comment });
}

/* Every shape of the rules has one key. Only the shape of the two hosts has two. */
#define PLAIN_SHAPE_BYTES 5

/* A shape without details, as all versions store it. */
static __u8 *plain_shape(const struct rule_shape *shape, __u8 bytes[PLAIN_SHAPE_BYTES])
{
	bytes[0] = shape->family;
	bytes[1] = shape->action;
	bytes[2] = shape->fields;
	bytes[3] = shape->src_len;
	bytes[4] = shape->dst_len;
	return bytes;
}

static void write_shapes(MDB_txn *txn, const struct rule *rule)
{
	__u8 shape[PLAIN_SHAPE_BYTES];
	struct rule_key keys[RULE_KEYS_MAX];
	const size_t count = rule_keys(rule, keys);

	for (size_t i = 0; i < count; i++) {
		const bool is_host = rule->family == FLOW_IPV4 && rule->src_len == 32;
		const __u64 number = is_host ? 2 : 1;

		lmdb_put_in(txn, "shapes", (MDB_val){ PLAIN_SHAPE_BYTES, plain_shape(&keys[i].shape, shape) },
			    (MDB_val){ sizeof(number), (void *)&number });
	}
}

static void write_schema_1(struct fixture *f)
{
	MDB_txn *txn = lmdb_begin(f);

	write_meta(txn);
	for (size_t i = 0; i < RULES; i++) {
		struct rule rule = rule_of(rules[i].text);

		write_rule(txn, &rule, rules[i].comment);
		write_shapes(txn, &rule);
	}
	lmdb_commit(txn);
}

static int setup_schema_1(void **state)
{
	int error = setup(state);

	fake_clock = clock_start;
	if (!error)
		write_schema_1(*state);
	return error;
}

#define SCHEMA_TEST(name) TEST_WITH(name, struct fixture *f, setup_schema_1, teardown)

static int count_visit(const struct rule *rule, void *context)
{
	assert_int_equal(rule->timeout_ms, 0);
	++*(size_t *)context;
	return 0;
}

static void holds_all(struct fixture *f, __u64 generation)
{
	const struct store_settings defaults = store_settings_default;
	const struct store_info info = info_of(f);
	struct store_settings settings;
	struct store_pending pending;
	size_t count = 0;

	holds(f, generation, RULES, KEYS);
	assert_memory_equal(info.id, store_id, sizeof(store_id));
	assert_int_equal(info.timed, 0);
	assert_int_equal(info.plan, 0);
	for (size_t i = 0; i < RULES; i++)
		is_as(f, rules[i].text, 0, rules[i].comment);
	assert_int_equal(store_each(f->store, count_visit, &count), 0);
	assert_int_equal(count, RULES);
	assert_int_equal(store_each_expired(f->store, never, NULL), 0);
	assert_int_equal(store_settings(f->store, &settings), 0);
	assert_memory_equal(&settings, &defaults, sizeof(settings));
	assert_int_equal(store_pending(f->store, &pending), 0);
	assert_int_equal(pending.id, 0);
}

static void has_length(MDB_txn *txn, MDB_val key, MDB_val value, void *context)
{
	static const char *const others[] = { "undo_shapes", "undo_settings",
					      "tool" }; /* of newer versions, in the database meta */

	(void)txn;
	for (size_t i = 0; i < COUNT(others); i++)
		if (key.mv_size == strlen(others[i]) && !memcmp(key.mv_data, others[i], key.mv_size))
			return;
	assert_int_equal(value.mv_size, *(const size_t *)context);
}

static void is_schema(struct fixture *f, unsigned int schema)
{
	size_t meta_bytes = schema == 1 ? META_BYTES_1 : META_BYTES;
	size_t shape_bytes = schema == 1 ? SHAPE_BYTES_1 : SHAPE_BYTES;
	MDB_txn *txn;

	close_store(f);
	txn = lmdb_begin(f);
	lmdb_each(txn, "meta", has_length, &meta_bytes);
	lmdb_each(txn, "shapes", has_length, &shape_bytes);
	lmdb_commit(txn);
}

SCHEMA_TEST(test_schema_1_is_read_unchanged)
{
	struct shape_list list;

	open_store(f, STORE_READ);
	holds_all(f, GENERATION);
	assert_int_equal(store_shapes(f->store, &list), 0);
	for (size_t i = 0; i < list.count; i++)
		assert_memory_equal(&list.entry[i].shape, &list.entry[i].probed_as, sizeof(list.entry[i].shape));
	is_schema(f, 1);
}

/* This holds although the clock has moved on since the store was written. */
SCHEMA_TEST(test_a_writer_that_changes_nothing_converts_nothing)
{
	open_store(f, STORE_WRITE);
	holds_all(f, GENERATION);
	begin(f);
	assert_int_equal(put(f, rules[0].text), STORE_UNCHANGED);
	assert_int_equal(put_for(f, rules[1].text, CLOCK_HOUR), STORE_UNCHANGED);
	assert_int_equal(del(f, "192.0.2.99"), STORE_NO_SUCH_RULE);
	assert_int_equal(store_each_expired(f->store, never, NULL), 0);
	end(f);
	begin(f);
	assert_int_equal(put_for(f, "192.0.2.3", CLOCK_HOUR), 0);
	assert_int_equal(store_set_pending(f->store, CLOCK_HOUR), 0);
	assert_int_equal(store_clear(f->store), 0);
	store_abort(f->store);
	holds_all(f, GENERATION);
	is_schema(f, 1);
	open_store(f, STORE_READ);
	holds_all(f, GENERATION);
}

SCHEMA_TEST(test_the_first_change_converts_the_store)
{
	open_store(f, STORE_WRITE);
	begin(f);
	assert_int_equal(put_for(f, "192.0.2.3 comment timed", CLOCK_HOUR), 0);
	end(f);
	clock_advance(CLOCK_SECOND);
	is_schema(f, STORE_SCHEMA);
	open_store(f, STORE_READ);
	holds(f, GENERATION + 1, RULES + 1, KEYS + 1);
	assert_memory_equal(info_of(f).id, store_id, sizeof(store_id));
	assert_int_equal(info_of(f).timed, 1);
	is_as(f, "192.0.2.3", CLOCK_HOUR - CLOCK_SECOND, "timed");
	for (size_t i = 0; i < RULES; i++)
		is_as(f, rules[i].text, 0, rules[i].comment);

	reopen(f, STORE_WRITE);
	begin(f);
	for (size_t i = 0; i < RULES; i++)
		assert_int_equal(del(f, rules[i].text), 0);
	end(f);
	holds(f, GENERATION + 2, 1, 1);
}

static size_t meta_entries(struct fixture *f)
{
	MDB_txn *txn = lmdb_begin(f);
	const size_t count = lmdb_entries(txn, "meta");

	lmdb_commit(txn);
	return count;
}

/* A dry run of a newer version does not keep an older one, which still runs, from writing. */
SCHEMA_TEST(test_a_trial_does_not_mark_the_store)
{
	const size_t before = meta_entries(f);

	open_store(f, STORE_TRIAL);
	begin(f);
	assert_int_equal(put(f, "192.0.2.77"), 0);
	store_abort(f->store);
	close_store(f);
	assert_int_equal(meta_entries(f), before);
	is_schema(f, 1);
	open_store(f, STORE_WRITE);
	close_store(f);
	assert_int_equal(meta_entries(f), before + 1);
}

/* Every change converts the store: one of settings, and a pending one, too. */
SCHEMA_TEST(test_any_first_change_converts_the_store)
{
	const struct store_settings settings = { .is_monitor_only = 1 };
	struct store_settings kept;
	struct store_pending pending;

	open_store(f, STORE_WRITE);
	begin_pending(f, CLOCK_HOUR);
	assert_int_equal(del(f, rules[0].text), 0);
	assert_int_equal(store_set_settings(f->store, &settings), 0);
	end(f);
	is_schema(f, STORE_SCHEMA);
	open_store(f, STORE_READ);
	assert_int_equal(store_settings(f->store, &kept), 0);
	assert_memory_equal(&kept, &settings, sizeof(kept));
	assert_int_equal(store_pending(f->store, &pending), 0);
	assert_int_equal(pending.rules, 1);
	assert_int_equal(pending.left_ms, CLOCK_HOUR);
}

static int refuse(const struct rule *rule, void *context)
{
	(void)rule, (void)context;
	return 1;
}

/* Opens the store, reports that, and on request checks what another process has made of it. */
static int read_before_and_after(struct fixture *f, int ready, int go)
{
	struct store_pending pending;
	struct store_info info;
	char byte;

	if (store_open(f->dir, STORE_READ, &f->store, &f->reason) || store_info(f->store, &info) ||
	    info.generation != GENERATION || write(ready, "", 1) != 1 || read(go, &byte, 1) != 0)
		return 1;
	if (store_info(f->store, &info) || info.generation != GENERATION + 1 || info.rules != RULES + 1)
		return 2;
	if (store_pending(f->store, &pending) || !pending.id || pending.rules > 1)
		return 3;
	if (store_each_expired(f->store, refuse, NULL))
		return 4;
	store_close(f->store);
	return 0;
}

SCHEMA_TEST(test_a_reader_from_before_the_change)
{
	int ready[2], go[2], status;
	char byte;
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	pid = fork();
	assert_int_not_equal(pid, -1);
	if (pid == 0) {
		close(go[1]);
		_exit(read_before_and_after(f, ready[1], go[0]));
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	open_store(f, STORE_WRITE);
	begin_pending(f, CLOCK_HOUR);
	assert_int_equal(put(f, "192.0.2.3"), 0);
	end(f);
	close(go[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(ready[0]);
	close(go[0]);
}

/* ---- schema 2 ---- */

#define META_SCHEMA_OFFSET 8

/* A value written by hand is the same since schema 2, which has no lists and no databases for them. */
static void make_schema_2(struct fixture *f)
{
	static const char *const newer[] = { "lists", "undo_lists" };
	MDB_txn *txn = lmdb_begin(f);
	MDB_val key = { 5, "store" }, value;
	const __u32 schema = 2;
	__u8 meta[META_BYTES];
	MDB_dbi dbi;

	for (size_t i = 0; i < COUNT(newer); i++) {
		assert_int_equal(mdb_dbi_open(txn, newer[i], 0, &dbi), 0);
		assert_int_equal(mdb_drop(txn, dbi, 1), 0);
	}
	assert_int_equal(mdb_dbi_open(txn, "meta", 0, &dbi), 0);
	assert_int_equal(mdb_get(txn, dbi, &key, &value), 0);
	assert_int_equal(value.mv_size, sizeof(meta));
	memcpy(meta, value.mv_data, sizeof(meta));
	memcpy(meta + META_SCHEMA_OFFSET, &schema, sizeof(schema));
	lmdb_put_in(txn, "meta", key, (MDB_val){ sizeof(meta), meta });
	lmdb_commit(txn);
}

static __u32 schema_of(struct fixture *f)
{
	MDB_val key = { 5, "store" }, value;
	MDB_txn *txn;
	__u32 schema;
	MDB_dbi dbi;

	close_store(f);
	txn = lmdb_begin(f);
	assert_int_equal(mdb_dbi_open(txn, "meta", 0, &dbi), 0);
	assert_int_equal(mdb_get(txn, dbi, &key, &value), 0);
	memcpy(&schema, (char *)value.mv_data + META_SCHEMA_OFFSET, sizeof(schema));
	lmdb_commit(txn);
	return schema;
}

TIME_TEST(test_schema_2)
{
	struct store_lists lists;
	struct rule rule;
	unsigned int number;

	add(f, "192.0.2.11 comment ours");
	add_for(f, "192.0.2.12", CLOCK_HOUR);
	close_store(f);
	make_schema_2(f);
	for (enum store_mode mode = STORE_READ; mode <= STORE_WRITE; mode++) {
		open_store(f, mode);
		assert_int_equal(store_lists(f->store, &lists), 0);
		assert_int_equal(store_lists_find(&lists, "a"), 0);
		rule = get(f, "192.0.2.12");
		assert_int_equal(rule_owners_now(&rule), 1ULL << STORE_BY_HAND);
		is_as(f, "192.0.2.11", 0, "ours");
		if (mode == STORE_READ)
			close_store(f);
	}
	/* Its clock is kept, but this does not convert it to schema 3. */
	clock_step(CLOCK_DAY);
	clock_reboot(CLOCK_SECOND);
	reopen(f, STORE_WRITE);
	commit_nothing(f);
	assert_int_equal(schema_of(f), 2);
	open_store(f, STORE_WRITE);
	begin(f);
	assert_int_equal(store_list_open(f->store, "a", "", &number), 0);
	end(f);
	assert_int_equal(schema_of(f), 3);
	open_store(f, STORE_READ);
	assert_int_equal(store_lists(f->store, &lists), 0);
	assert_int_equal(store_lists_find(&lists, "a"), number);
	is_as(f, "192.0.2.11", 0, "ours");
}

/* ---- shapes that cannot be ---- */

SCHEMA_TEST(test_damaged_shapes)
{
	static const struct {
		struct rule_shape shape;
		__u64 keys;
		__u8 src_len, dst_len; /* of the probed shape */
	} rows[] = {
		{ { .family = FLOW_IPV4, .src_len = 20 }, 0, 20, 0 },
		{ { .family = FLOW_NO_FAMILY }, 1, 0, 0 },
		{ { .family = FLOW_IPV4, .src_len = 20, .action = 3 }, 1, 20, 0 },
		{ { .family = FLOW_IPV4, .src_len = 20, .fields = RULE_FIELDS }, 1, 20, 0 },
		{ { .family = FLOW_IPV4, .src_len = 20 }, 1, 33, 0 },
		{ { .family = FLOW_IPV4, .src_len = 33 }, 1, 33, 0 },
		{ { .family = FLOW_IPV6, .dst_len = 64 }, 1, 0, 129 },
		{ { .family = FLOW_IPV4, .src_len = 20 }, 1, 19, 0 },
		{ { .family = FLOW_IPV4, .src_len = 20 }, 1, 24, 8 },
	};
	struct shape_list list;

	for (size_t i = 0; i < COUNT(rows); i++) {
		__u8 shape[PLAIN_SHAPE_BYTES];
		__u8 value[SHAPE_BYTES] = {};
		MDB_txn *txn = lmdb_begin(f);
		MDB_val key = { sizeof(shape), plain_shape(&rows[i].shape, shape) };

		memcpy(value, &rows[i].keys, sizeof(rows[i].keys));
		value[8] = rows[i].src_len;
		value[9] = rows[i].dst_len;
		lmdb_put_in(txn, "shapes", key, (MDB_val){ sizeof(value), value });
		lmdb_commit(txn);
		open_store(f, STORE_WRITE);
		assert_int_equal(store_shapes(f->store, &list), -EBADMSG);
		assert_int_equal(store_begin(f->store), -EBADMSG);
		close_store(f);
		lmdb_delete(f, "shapes", key);
	}
	open_store(f, STORE_WRITE);
	holds_all(f, GENERATION);
}

TEST_MAIN(NULL, NULL)
