// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Databases "deadlines", of rules with a timeout, and "owner_ends", of permanent rules with owners of a timeout; by time. */
#include <errno.h>
#include <string.h>

#include "store/internal.h"

#define DEADLINE_KEY_BYTES (sizeof(__u64) + RULE_ENCODED_BYTES)

/* The most significant byte comes first, because LMDB sorts by bytes. */
static MDB_val deadline_bytes(__s64 deadline_ms, const MDB_val *rule, __u8 bytes[DEADLINE_KEY_BYTES])
{
	const __u64 big_endian = __builtin_bswap64(deadline_ms);

	memcpy(bytes, &big_endian, sizeof(big_endian));
	memcpy(bytes + sizeof(big_endian), rule->mv_data, rule->mv_size);
	return (MDB_val){ sizeof(big_endian) + rule->mv_size, bytes };
}

int store_deadline_move(struct store *store, MDB_dbi db, const MDB_val *rule, __s64 before_ms, __s64 now_ms)
{
	__u8 bytes[DEADLINE_KEY_BYTES];
	MDB_val key, nothing = { 0, NULL };
	int error = 0;

	if (before_ms == now_ms)
		return 0;
	if (before_ms) {
		key = deadline_bytes(before_ms, rule, bytes);
		error = store_pair_del(store, db, &key);
	}
	if (!error && now_ms) {
		key = deadline_bytes(now_ms, rule, bytes);
		error = store_pair_put(store, db, &key, &nothing, 0);
	}
	return error;
}

/*
 * Finds the first deadline after `last` and writes it to `last`. 1; 2: not so any more; 0: no other deadline has passed; -errno.
 * Looks `last` up again each time, because the visitor may have deleted it.
 */
static int next_expired(struct store *store, MDB_cursor *cursor, __u8 last[DEADLINE_KEY_BYTES], size_t *length,
			bool is_of_owners, struct rule *rule)
{
	MDB_val key = { *length, last }, nothing;
	__u64 big_endian;
	__s64 end_ms;
	int error = environment_error(mdb_cursor_get(cursor, &key, &nothing, *length ? MDB_SET_RANGE : MDB_FIRST));

	if (!error && key.mv_size == *length && !memcmp(key.mv_data, last, *length))
		error = environment_error(mdb_cursor_get(cursor, &key, &nothing, MDB_NEXT));
	if (error)
		return error == -ENOENT ? 0 : error;
	if (key.mv_size <= sizeof(big_endian) || key.mv_size > DEADLINE_KEY_BYTES)
		return -EBADMSG;
	*length = key.mv_size;
	memcpy(last, key.mv_data, key.mv_size);
	memcpy(&big_endian, last, sizeof(big_endian));
	end_ms = __builtin_bswap64(big_endian);
	if (end_ms > store->clock.now_ms)
		return 0;
	error = rule_decode(last + sizeof(big_endian), *length - sizeof(big_endian), rule);
	if (error || !rule_is_canonical(rule))
		return -EBADMSG;
	error = store_get(store, rule);
	/* The rule must have the deadline that it is sorted by. Versions that do not know "owner_ends" leave what has gone there. */
	if (!is_of_owners)
		return !error && rule->timeout_ms < 0 ? 1 : -EBADMSG;
	return !error && !rule->timeout_ms && store->clock.now_ms + rule->owners.timed_ms == end_ms ? 1 : 2;
}

static int each_ended(struct store *store, bool is_of_owners, int (*visit)(const struct rule *rule, void *context),
		      void *context)
{
	__u8 last[DEADLINE_KEY_BYTES];
	MDB_cursor *cursor = NULL;
	size_t length = 0;
	struct rule rule = {};
	STORE_VIEW view = store_view(store);
	int error = view.error, found = 1, result = 0;
	MDB_dbi db;

	if (!error)
		error = environment_error(mdb_dbi_open(view.txn, is_of_owners ? "owner_ends" : "deadlines", 0, &db));
	if (!error)
		error = environment_error(mdb_cursor_open(view.txn, db, &cursor));
	while (!error && found > 0 && !result) {
		found = next_expired(store, cursor, last, &length, is_of_owners, &rule);
		if (found == 1)
			result = visit(&rule, context);
	}
	mdb_cursor_close(cursor);
	return error == -ENOENT ? 0 : error ? error : found < 0 ? found : result;
}

int store_each_expired(struct store *store, int (*visit)(const struct rule *rule, void *context), void *context)
{
	const int result = each_ended(store, false, visit, context);

	return result ? result : each_ended(store, true, visit, context);
}

struct in_force {
	struct store_info *info;
	struct store_lists *lists;
};

static int leave_out(const struct rule *rule, void *context)
{
	const struct in_force *in_force = context;

	in_force->info->rules -= !rule->owners.permanent;
	in_force->info->timed -= !rule->owners.permanent;
	for (__u64 left = rule->owners.timed & ~(1ULL << STORE_BY_HAND); left; left &= left - 1)
		in_force->lists->list[__builtin_ctzll(left)].rules--;
	return 0;
}

int store_in_force(struct store *store, struct store_info *info, struct store_lists *lists)
{
	STORE_VIEW view = store_view(store);
	int error = view.error ? view.error : store_info(store, info);

	if (!error)
		error = store_lists(store, lists);
	return error ? error : store_each_expired(store, leave_out, &(struct in_force){ info, lists });
}
