// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The rules of a store. The value of a rule is its comment; of one with a timeout, a byte that no
 * comment starts with and the deadline come before. Database "deadlines" has those in order of time.
 */
#include <errno.h>
#include <string.h>

#include "store_internal.h"

#define VALUE_TIMED 0x01
#define VALUE_TIMED_BYTES (1 + sizeof(__u64))
#define VALUE_BYTES (VALUE_TIMED_BYTES + RULE_COMMENT_BYTES)
#define DEADLINE_KEY_BYTES (sizeof(__u64) + RULE_ENCODED_BYTES)

/* ---- bytes ---- */

/* The bytes must live as long as the key. */
static MDB_val rule_bytes(const struct rule *rule, __u8 bytes[RULE_ENCODED_BYTES])
{
	return (MDB_val){ rule_encode(rule, bytes), bytes };
}

/* `deadline_ms` 0: never. */
static MDB_val value_bytes(const char *comment, __s64 deadline_ms, __u8 bytes[VALUE_BYTES])
{
	__u8 *to = bytes;

	if (deadline_ms) {
		*to++ = VALUE_TIMED;
		to = mempcpy(to, &deadline_ms, sizeof(deadline_ms));
	}
	to = mempcpy(to, comment, strlen(comment));
	return (MDB_val){ to - bytes, bytes };
}

static int value_read(const MDB_val *value, __s64 *deadline_ms, const char **comment, size_t *length)
{
	const __u8 *bytes = value->mv_data;
	const bool is_timed = value->mv_size && bytes[0] == VALUE_TIMED;
	const size_t head = is_timed ? VALUE_TIMED_BYTES : 0;

	*deadline_ms = 0;
	if (value->mv_size < head || value->mv_size - head >= RULE_COMMENT_BYTES)
		return -EBADMSG;
	if (is_timed)
		memcpy(deadline_ms, bytes + 1, sizeof(*deadline_ms));
	*comment = (const char *)bytes + head;
	*length = value->mv_size - head;
	return is_timed && (*deadline_ms <= 0 || *deadline_ms > STORE_TIME_MAX_MS) ? -EBADMSG : 0;
}

/*
 * 0 means never, so what ends this very millisecond has ended a millisecond ago. No rule that was put here lasts
 * longer than a rule can.
 */
static __s64 left_ms(const struct store *store, __s64 deadline_ms)
{
	const __s64 left = deadline_ms - store->clock.now_ms;

	if (!deadline_ms)
		return 0;
	return left > RULE_TIMEOUT_MAX_S * 1000LL ? RULE_TIMEOUT_MAX_S * 1000LL : left ? left : -1;
}

static int value_to_rule(const struct store *store, const MDB_val *value, struct rule *rule)
{
	const char *comment;
	__s64 deadline_ms;
	size_t length;
	int error = value_read(value, &deadline_ms, &comment, &length);

	if (error)
		return error;
	rule->timeout_ms = left_ms(store, deadline_ms);
	*(char *)mempcpy(rule->comment, comment, length) = '\0';
	if (!length)
		return 0;
	return strlen(rule->comment) == length && rule_is_plain(rule->comment) &&
	       rule_is_utf8(rule->comment) ? 0 : -EBADMSG;
}

int store_rule_read(const struct store *store, const MDB_val *key, const MDB_val *value,
		    struct rule *rule)
{
	int error = rule_decode(key->mv_data, key->mv_size, rule);

	if (!error && !rule_is_canonical(rule))
		error = -EBADMSG;
	return error ? error : value_to_rule(store, value, rule);
}

/* ---- deadlines ---- */

/* Most significant byte first: LMDB sorts by bytes. */
static MDB_val deadline_bytes(__s64 deadline_ms, const MDB_val *rule, __u8 bytes[DEADLINE_KEY_BYTES])
{
	const __u64 big_endian = __builtin_bswap64(deadline_ms);

	memcpy(bytes, &big_endian, sizeof(big_endian));
	memcpy(bytes + sizeof(big_endian), rule->mv_data, rule->mv_size);
	return (MDB_val){ sizeof(big_endian) + rule->mv_size, bytes };
}

static int deadline_put(struct store *store, __s64 deadline_ms, const MDB_val *rule)
{
	__u8 bytes[DEADLINE_KEY_BYTES];
	MDB_val key = deadline_bytes(deadline_ms, rule, bytes), nothing = { 0, NULL };

	if (!deadline_ms)
		return 0;
	return mdb_put(store->write, store->deadlines_db, &key, &nothing, 0);
}

static int deadline_del(struct store *store, __s64 deadline_ms, const MDB_val *rule)
{
	__u8 bytes[DEADLINE_KEY_BYTES];
	MDB_val key = deadline_bytes(deadline_ms, rule, bytes);
	int status = deadline_ms ? mdb_del(store->write, store->deadlines_db, &key, NULL) : 0;

	return status == MDB_NOTFOUND ? 0 : status;
}

/* ---- adding ---- */

/* All of the rule's keys or none. */
static int add_shapes(struct store *store, const struct rule *rule)
{
	struct rule_key keys[RULE_KEYS_MAX];
	const size_t count = rule_keys(rule, keys), before = store->shapes.count;

	for (size_t i = 0; i < count; i++) {
		int error = shape_list_add(&store->shapes, &keys[i].shape, 1);

		if (error) {
			while (i--)
				shape_list_remove(&store->shapes, &keys[i].shape);
			return error;
		}
	}
	store->has_new_shape |= store->shapes.count > before;
	return 0;
}

static __s64 deadline_of(const struct store *store, const struct rule *rule)
{
	return rule->timeout_ms ? store->clock.now_ms + rule->timeout_ms : 0;
}

/* The rule is there, as `old` says, until `old_ms`: it gets this one's time, and comment if that has one. */
static int retime(struct store *store, const struct rule *rule, const MDB_val *key, const MDB_val *old,
		  __s64 old_ms)
{
	const __s64 deadline_ms = deadline_of(store, rule);
	__u8 bytes[VALUE_BYTES], old_bytes[VALUE_BYTES];
	/* Pages may move under what was read, as soon as something is written. */
	MDB_val before = { old->mv_size, memcpy(old_bytes, old->mv_data, old->mv_size) }, value;
	struct rule now = *rule;
	int status, error = now.comment[0] ? 0 : value_to_rule(store, &before, &now);

	if (!error)
		error = store_keep_undo(store, key, &before);
	if (error)
		return error;
	value = value_bytes(now.comment, deadline_ms, bytes);
	status = deadline_del(store, old_ms, key);
	if (!status)
		status = deadline_put(store, deadline_ms, key);
	if (!status)
		status = mdb_put(store->write, store->rules_db, (MDB_val *)key, &value, 0);
	store->is_changed = true;
	return status ? environment_write_error(store->env, status) : -EALREADY;
}

static int put_again(struct store *store, const struct rule *rule, const MDB_val *key,
		     const MDB_val *old)
{
	const char *comment;
	__s64 old_ms;
	size_t length;
	int error = value_read(old, &old_ms, &comment, &length);

	if (error)
		return error;
	return old_ms ? retime(store, rule, key, old, old_ms) : -EEXIST;
}

int store_put(struct store *store, const struct rule *rule)
{
	const __s64 deadline_ms = deadline_of(store, rule);
	__u8 bytes[RULE_ENCODED_BYTES], value_room[VALUE_BYTES];
	MDB_val key = rule_bytes(rule, bytes);
	MDB_val value = value_bytes(rule->comment, deadline_ms, value_room);
	int status = mdb_put(store->write, store->rules_db, &key, &value, MDB_NOOVERWRITE);
	int error;

	if (status == MDB_KEYEXIST)
		return put_again(store, rule, &key, &value);
	if (status)
		return environment_write_error(store->env, status);
	/* After the rule: one that is there has its shapes there. */
	error = add_shapes(store, rule);
	status = error ? mdb_del(store->write, store->rules_db, &key, NULL) :
			 deadline_put(store, deadline_ms, &key);
	if (status || error)
		return status ? environment_write_error(store->env, status) : error;
	store->is_changed = true;
	return store_keep_undo(store, &key, NULL);
}

/* ---- deleting ---- */

static int del_value(struct store *store, const MDB_val *key, const MDB_val *value)
{
	const char *comment;
	__s64 deadline_ms;
	size_t length;
	int error = value_read(value, &deadline_ms, &comment, &length);

	if (!error)
		error = store_keep_undo(store, key, value);
	if (!error)
		error = environment_write_error(store->env, deadline_del(store, deadline_ms, key));
	if (!error)
		error = environment_write_error(store->env,
						mdb_del(store->write, store->rules_db,
							(MDB_val *)key, NULL));
	return error;
}

int store_del(struct store *store, const struct rule *rule)
{
	__u8 bytes[RULE_ENCODED_BYTES], copy[VALUE_BYTES];
	MDB_val key = rule_bytes(rule, bytes), value;
	struct rule_key keys[RULE_KEYS_MAX];
	const size_t count = rule_keys(rule, keys);
	int error = environment_error(mdb_get(store->write, store->rules_db, &key, &value));

	if (error)
		return error;
	if (value.mv_size > sizeof(copy))
		return -EBADMSG;
	/* Before anything is written, as in retime(). */
	value.mv_data = memcpy(copy, value.mv_data, value.mv_size);
	error = del_value(store, &key, &value);
	if (error)
		return error;
	store->is_changed = true;
	for (size_t i = 0; i < count && !error; i++)
		error = shape_list_remove(&store->shapes, &keys[i].shape) ? -EBADMSG : 0;
	return error;
}

static int keep_for_undo(const struct rule *rule, void *context)
{
	struct store *store = context;
	__u8 bytes[RULE_ENCODED_BYTES], value_room[VALUE_BYTES];
	MDB_val key = rule_bytes(rule, bytes);
	MDB_val value = value_bytes(rule->comment, deadline_of(store, rule), value_room);

	return store_keep_undo(store, &key, &value);
}

int store_clear(struct store *store)
{
	MDB_stat rules;
	int status = mdb_stat(store->write, store->rules_db, &rules);
	int error;

	if (status || rules.ms_entries == 0)
		return environment_error(status);
	error = store->keeps_undo ? store_each(store, keep_for_undo, store) : 0;
	if (error)
		return error;
	status = mdb_drop(store->write, store->rules_db, 0);
	if (!status)
		status = mdb_drop(store->write, store->deadlines_db, 0);
	if (status)
		return environment_write_error(store->env, status);
	store->shapes.count = 0;
	store->is_changed = true;
	return 0;
}

/* ---- reading ---- */

int store_get(struct store *store, struct rule *rule)
{
	__u8 bytes[RULE_ENCODED_BYTES];
	MDB_val key = rule_bytes(rule, bytes), value;
	MDB_txn *txn;
	int error = store_view_begin(store, &txn);

	if (error)
		return error;
	error = environment_error(mdb_get(txn, store->rules_db, &key, &value));
	if (!error)
		error = value_to_rule(store, &value, rule);
	store_view_end(store);
	return error;
}

static int each_visit(const struct store *store, MDB_cursor *cursor,
		      int (*visit)(const struct rule *rule, void *context), void *context)
{
	MDB_val key, value;
	struct rule rule;
	int result;

	do {
		result = environment_error(mdb_cursor_get(cursor, &key, &value, MDB_NEXT));
		if (result)
			return result == -ENOENT ? 0 : result;
		result = store_rule_read(store, &key, &value, &rule);
		if (!result)
			result = visit(&rule, context);
	} while (!result);
	return result;
}

int store_each(struct store *store, int (*visit)(const struct rule *rule, void *context),
	       void *context)
{
	MDB_cursor *cursor;
	MDB_txn *txn;
	int result = store_view_begin(store, &txn);

	if (result)
		return result;
	result = environment_error(mdb_cursor_open(txn, store->rules_db, &cursor));
	if (!result) {
		result = each_visit(store, cursor, visit, context);
		mdb_cursor_close(cursor);
	}
	store_view_end(store);
	return result;
}

/*
 * The first deadline behind `last`, which is changed to it; -ENOENT where no more have passed. Looked up
 * anew each time: the last one may have been deleted.
 */
static int next_expired(struct store *store, MDB_cursor *cursor, __u8 last[DEADLINE_KEY_BYTES],
			size_t *length, struct rule *rule)
{
	MDB_val key = { *length, last }, nothing;
	__u64 big_endian;
	int error = environment_error(mdb_cursor_get(cursor, &key, &nothing,
						     *length ? MDB_SET_RANGE : MDB_FIRST));

	if (!error && key.mv_size == *length && !memcmp(key.mv_data, last, *length))
		error = environment_error(mdb_cursor_get(cursor, &key, &nothing, MDB_NEXT));
	if (error)
		return error;
	if (key.mv_size <= sizeof(big_endian) || key.mv_size > DEADLINE_KEY_BYTES)
		return -EBADMSG;
	*length = key.mv_size;
	memcpy(last, key.mv_data, key.mv_size);
	memcpy(&big_endian, last, sizeof(big_endian));
	if ((__s64)__builtin_bswap64(big_endian) > store->clock.now_ms)
		return -ENOENT;
	error = rule_decode(last + sizeof(big_endian), *length - sizeof(big_endian), rule);
	if (error || !rule_is_canonical(rule) || store_get(store, rule))
		return -EBADMSG;
	/* It is listed under a deadline that it does not have. */
	return rule->timeout_ms < 0 ? 0 : -EBADMSG;
}

static int expired_visit(struct store *store, MDB_cursor *cursor,
			 int (*visit)(const struct rule *rule, void *context), void *context)
{
	__u8 last[DEADLINE_KEY_BYTES];
	size_t length = 0;
	struct rule rule;
	int result;

	do {
		result = next_expired(store, cursor, last, &length, &rule);
		if (result)
			return result == -ENOENT ? 0 : result;
		result = visit(&rule, context);
	} while (!result);
	return result;
}

int store_expired(struct store *store, int (*visit)(const struct rule *rule, void *context),
		  void *context)
{
	MDB_cursor *cursor;
	MDB_txn *txn;
	int result = store->has_schema_2 ? store_view_begin(store, &txn) : 0;

	if (result || !store->has_schema_2)
		return result;
	result = environment_error(mdb_cursor_open(txn, store->deadlines_db, &cursor));
	if (!result) {
		result = expired_visit(store, cursor, visit, context);
		mdb_cursor_close(cursor);
	}
	store_view_end(store);
	return result;
}
