// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The pending change: one that is undone unless it is confirmed. Database "undo" has an entry for
 * each rule that the change touched: a byte 0 if the rule did not exist before, or a byte 1 and its old value.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/internal.h"

#define UNDO_ABSENT 0
#define UNDO_PRESENT 1

int store_keep_undo(struct store *store, const MDB_val *rule, const MDB_val *value)
{
	__u8 bytes[1 + STORE_VALUE_BYTES];
	MDB_val kept = { 1, bytes };
	int error;

	if (!store->keeps_undo)
		return 0;
	bytes[0] = value ? UNDO_PRESENT : UNDO_ABSENT;
	if (value && value->mv_size >= sizeof(bytes))
		return -EBADMSG;
	if (value) {
		memcpy(bytes + 1, value->mv_data, value->mv_size);
		kept.mv_size += value->mv_size;
	}
	/* Only at the first touch of a rule is this the value from before the change: never overwrite it. */
	error = store_entry_put(store, store->undo_db, rule, &kept, MDB_NOOVERWRITE);
	return error == -EEXIST ? 0 : error;
}

/* ---- what is kept of one rule ---- */

struct kept {
	struct store_owners owners; /* none: the rule did not exist before */
	char comment[RULE_COMMENT_BYTES];
};

/* The old value of a rule. -ENOENT: it did not exist; -EBADMSG. */
static int kept_value(const MDB_val *kept, MDB_val *value)
{
	const __u8 *head = kept->mv_data;

	if (!kept->mv_size || *head > UNDO_PRESENT)
		return -EBADMSG;
	*value = (MDB_val){ kept->mv_size - 1, (void *)(head + 1) };
	return *head == UNDO_ABSENT ? -ENOENT : 0;
}

static int kept_read(const struct store *store, const MDB_val *bytes, struct kept *kept)
{
	struct store_value value;
	MDB_val rest;
	int error = kept_value(bytes, &rest);

	*kept = (struct kept){};
	if (error)
		return error == -ENOENT ? 0 : error;
	if (store_value_read(store, &rest, &value))
		return -EBADMSG;
	kept->owners = value.owners;
	memcpy(kept->comment, value.comment, value.length);
	return 0;
}

/* `bytes` must live as long as the result. */
static MDB_val kept_write(const struct kept *kept, __u8 bytes[1 + STORE_VALUE_BYTES])
{
	const bool existed = store_owners_all(&kept->owners);
	MDB_val value = { 0, NULL };

	bytes[0] = existed ? UNDO_PRESENT : UNDO_ABSENT;
	if (existed)
		value = store_value_write(&kept->owners, kept->comment, bytes + 1);
	return (MDB_val){ 1 + value.mv_size, bytes };
}

/* -ENOENT: nothing is kept of this rule, or no change of an earlier transaction is pending. */
static int kept_find(struct store *store, const MDB_val *rule, struct kept *kept)
{
	MDB_val bytes;
	int error;

	if (!store_is_later(store))
		return -ENOENT;
	error = environment_error(mdb_get(store->write, store->undo_db, (MDB_val *)rule, &bytes));
	return error ? error : kept_read(store, &bytes, kept);
}

static int kept_change(struct store *store, const MDB_val *rule, const struct kept *kept)
{
	__u8 bytes[1 + STORE_VALUE_BYTES];
	MDB_val value = kept_write(kept, bytes);

	return store_entry_put(store, store->undo_db, rule, &value, 0);
}

/* ---- other changes while one is pending ---- */

bool store_is_later(const struct store *store)
{
	return store->meta.pending_id && !store->keeps_undo && !store->is_undoing;
}

int store_kept_put(struct store *store, const MDB_val *rule, __u64 owner, __s64 deadline_ms, const char *comment)
{
	struct kept kept;
	int error = kept_find(store, rule, &kept);

	if (error || kept.owners.permanent & owner)
		return error == -ENOENT ? 0 : error;
	if (*comment && !kept.owners.permanent)
		strcpy(kept.comment, comment);
	kept.owners = store_owners_with(kept.owners, owner, deadline_ms, store->clock.now_ms);
	return kept_change(store, rule, &kept);
}

int store_kept_give_up(struct store *store, const MDB_val *rule, __u64 owner)
{
	struct kept kept;
	int error = kept_find(store, rule, &kept);

	if (error || !(store_owners_all(&kept.owners) & owner))
		return error == -ENOENT ? 0 : error;
	kept.owners = store_owners_without(kept.owners, owner, store->clock.now_ms);
	return kept_change(store, rule, &kept);
}

/* The rule is deleted, and an undo must not bring it back. So its entry is deleted as well. */
int store_kept_del(struct store *store, const MDB_val *rule)
{
	return store_is_later(store) ? store_entry_del(store, store->undo_db, rule) : 0;
}

int store_kept_clear(struct store *store)
{
	return store_is_later(store) ? store_entries_drop(store, store->undo_db) : 0;
}

struct giving_up {
	struct store *store;
	__u64 owner;
};

/* Copies the key before it changes the value: the key is in the page that the write changes. */
static int give_up_entry(const struct store_entry *entry, void *context)
{
	const struct giving_up *giving_up = context;
	struct store *store = giving_up->store;
	__u8 key_room[RULE_ENCODED_BYTES], room[1 + STORE_VALUE_BYTES];
	MDB_val key = { entry->key.mv_size, key_room }, value;
	struct kept kept;
	int error = key.mv_size > sizeof(key_room) ? -EBADMSG : kept_read(store, &entry->value, &kept);

	if (error || !(store_owners_all(&kept.owners) & giving_up->owner))
		return error;
	memcpy(key_room, entry->key.mv_data, key.mv_size);
	kept.owners = store_owners_without(kept.owners, giving_up->owner, store->clock.now_ms);
	value = kept_write(&kept, room);
	return environment_write_error(store->env, mdb_cursor_put(entry->cursor, &key, &value, MDB_CURRENT));
}

int store_give_up_all(struct store *store, unsigned int owner, bool is_alone)
{
	if (is_alone || !store_is_later(store))
		return store_kept_clear(store);
	return store_entries_each(store->write, store->undo_db, give_up_entry,
				  &(struct giving_up){ store, 1ULL << owner });
}

/* ---- store_get_undone() ---- */

int store_get_undone(struct store *store, struct rule *rule)
{
	__u8 bytes[RULE_ENCODED_BYTES];
	MDB_val key = { rule_encode(rule, bytes), bytes }, kept, value;
	struct store_meta meta;
	MDB_txn *txn;
	int error = store_meta_view(store, &txn, &meta);

	if (error)
		return error;
	error = -ENOENT;
	if (meta.pending_id && store->schema > 1)
		error = environment_error(mdb_get(txn, store->undo_db, &key, &kept));
	if (error == -ENOENT) {
		error = store_get(store, rule);
	} else if (!error) {
		error = kept_value(&kept, &value);
		if (!error)
			error = store_value_to_rule(store, &value, rule);
	}
	store_view_end(store);
	return error;
}

/* ---- the pending change ---- */

int store_pending(struct store *store, struct store_pending *pending)
{
	struct store_meta meta;
	MDB_stat undo = {};
	MDB_txn *txn;
	int error = store_meta_view(store, &txn, &meta);

	if (error)
		return error;
	*pending = (struct store_pending){};
	/* Another process may have converted the store from schema 1 since this one opened it. */
	if (meta.pending_id && store->schema > 1)
		error = environment_error(mdb_stat(txn, store->undo_db, &undo));
	store_view_end(store);
	if (!error && meta.pending_id)
		*pending = (struct store_pending){ meta.pending_id, meta.pending_ms - store->clock.now_ms,
						   undo.ms_entries };
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

int store_push_pending(struct store *store, __s64 timeout_ms)
{
	if (!store->meta.pending_id)
		return -ENOENT;
	store->meta.pending_ms = store->clock.now_ms + store_lag_ms(store) + timeout_ms;
	store->is_pushed = true;
	return 0;
}

int store_forget_pending(struct store *store)
{
	int error;

	if (!store->meta.pending_id)
		return -ENOENT;
	store->meta.pending_id = 0;
	store->is_changed = true;
	error = store_entries_drop(store, store->undo_db);
	return error ? error : store_lists_forget_undo(store);
}

struct undoing {
	struct store *store;
	bool is_back;
	int (*visit)(const struct rule *rule, bool is_back, void *context);
	void *context;
};

static int undo_rule(const struct store_entry *entry, void *context)
{
	const struct undoing *undoing = context;
	MDB_val value;
	struct rule rule;
	int error = kept_value(&entry->value, &value);

	if (error == -ENOENT && undoing->is_back)
		return 0;
	if (error && error != -ENOENT)
		return error;
	error = store_rule_read(undoing->store, &entry->key, &value, &rule);
	return error ? error : undoing->visit(&rule, undoing->is_back, undoing->context);
}

/* Restores deleted lists before it restores their rules. Deletes new lists after it has deleted their rules. */
int store_undo_each(struct store *store, int (*visit)(const struct rule *rule, bool is_back, void *context),
		    void *context)
{
	int result = store_lists_undo(store, false);

	store->is_undoing = true;
	for (int is_back = false; is_back <= true && !result; is_back++)
		result = store_entries_each(store->write, store->undo_db, undo_rule,
					    &(struct undoing){ store, is_back, visit, context });
	return result ? result : store_lists_undo(store, true);
}
