// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A change that waits to be confirmed: database "undo" has, for each rule it touched, 0 where the rule was
 * not there before, or 1 and what was kept of it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store_internal.h"

#define UNDO_ABSENT 0
#define UNDO_PRESENT 1

int store_keep_undo(struct store *store, const MDB_val *rule, const MDB_val *value)
{
	__u8 bytes[1 + STORE_VALUE_BYTES];
	MDB_val kept = { 1, bytes };
	int status;

	if (!store->keeps_undo)
		return 0;
	bytes[0] = value ? UNDO_PRESENT : UNDO_ABSENT;
	if (value && value->mv_size >= sizeof(bytes))
		return -EBADMSG;
	if (value) {
		memcpy(bytes + 1, value->mv_data, value->mv_size);
		kept.mv_size += value->mv_size;
	}
	/* What it was before the change is what the first touch found. */
	status = mdb_put(store->write, store->undo_db, (MDB_val *)rule, &kept, MDB_NOOVERWRITE);
	return status == MDB_KEYEXIST ? 0 : environment_write_error(store->env, status);
}

static int pending_load(struct store *store, MDB_txn *txn, struct store_pending *pending)
{
	struct store_meta meta;
	MDB_stat undo = {};
	int error = store_meta_get(store, txn, &meta);

	*pending = (struct store_pending){};
	if (error || !meta.pending_id)
		return error;
	/* Since this process opened it, another may have made it one of schema 2. */
	if (store->schema > 1)
		error = environment_error(mdb_stat(txn, store->undo_db, &undo));
	pending->id = meta.pending_id;
	pending->left_ms = meta.pending_ms - store->clock.now_ms;
	pending->rules = undo.ms_entries;
	return error;
}

int store_pending(struct store *store, struct store_pending *pending)
{
	MDB_txn *txn;
	int error = store_view_begin(store, &txn);

	if (error)
		return error;
	error = pending_load(store, txn, pending);
	store_view_end(store);
	return error;
}

int store_set_pending(struct store *store, __s64 timeout_ms)
{
	if (store->meta.pending_id)
		return -EBUSY;
	store->meta.pending_id = ++store->meta.last_pending_id;
	store->meta.pending_ms = store->clock.now_ms + timeout_ms;
	store->keeps_undo = store->is_changed = true;
	return 0;
}

int store_forget_pending(struct store *store)
{
	int status;

	if (!store->meta.pending_id)
		return -ENOENT;
	store->meta.pending_id = 0;
	store->is_changed = true;
	status = mdb_drop(store->write, store->undo_db, 0);
	if (!status)
		status = store_lists_forget_undo(store);
	return environment_write_error(store->env, status);
}

static int undo_visit(const struct store *store, const MDB_val *key, const MDB_val *kept, bool is_back,
		      int (*visit)(const struct rule *rule, bool is_back, void *context), void *context)
{
	const __u8 *bytes = kept->mv_data;
	MDB_val value = { kept->mv_size - 1, kept->mv_size ? (void *)(bytes + 1) : NULL };
	struct rule rule;
	int error;

	if (!kept->mv_size || bytes[0] > UNDO_PRESENT)
		return -EBADMSG;
	if (is_back && bytes[0] == UNDO_ABSENT)
		return 0;
	error = store_rule_read(store, key, &value, &rule);
	return error ? error : visit(&rule, is_back, context);
}

static int undo_rules(struct store *store, bool is_back,
		      int (*visit)(const struct rule *rule, bool is_back, void *context), void *context)
{
	MDB_val key, kept;
	MDB_cursor *cursor;
	int status, result = environment_error(mdb_cursor_open(store->write, store->undo_db, &cursor));

	if (result)
		return result;
	do {
		status = mdb_cursor_get(cursor, &key, &kept, MDB_NEXT);
		if (!status)
			result = undo_visit(store, &key, &kept, is_back, visit, context);
	} while (!status && !result);
	mdb_cursor_close(cursor);
	return status && status != MDB_NOTFOUND ? environment_error(status) : result;
}

/* A list that is there again before its rules; one that was not goes after them. */
int store_undo_each(struct store *store,
		    int (*visit)(const struct rule *rule, bool is_back, void *context), void *context)
{
	int result = store_lists_undo(store);

	if (!result)
		result = undo_rules(store, false, visit, context);
	if (!result)
		result = undo_rules(store, true, visit, context);
	return result ? result : store_lists_end_undo(store);
}
