// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The pending change: a change that is stored and in force, and is undone unless somebody confirms it in time.
 *
 * While it waits, each thing that it touched has two values: in force, and as undone. A later change is applied to both.
 * What it did not touch has one. Of a rule, database "undo" has the value as undone: a byte 0 if there is no rule, or a
 * byte 1 and the value. Of who added that rule, "undo_added" has it. lists.c and settings.c do the same with theirs.
 */
#include <errno.h>
#include <string.h>

#include "store/internal.h"

bool store_has_earlier_pending(const struct store *store)
{
	return store->meta.pending_id && !store->makes_pending && !store->is_undoing;
}

unsigned int store_worlds(const struct store *store)
{
	return store_has_earlier_pending(store) ? WORLD_NOW | WORLD_UNDONE : WORLD_NOW;
}

/* ---- the value of a rule as undone ---- */

/* Takes the first byte off an entry of database "undo". 1; 0: no rule; -EBADMSG. */
static int undone_value(const MDB_val *entry, MDB_val *value)
{
	const __u8 *exists = entry->mv_data;

	if (!entry->mv_size || *exists > 1)
		return -EBADMSG;
	*value = (MDB_val){ entry->mv_size - 1, (void *)(exists + 1) };
	return *exists;
}

/* The bytes must live as long as the entry. */
static MDB_val undone_write(const struct store_value *value, __u8 bytes[1 + STORE_VALUE_BYTES])
{
	MDB_val rest = { 0, NULL };

	bytes[0] = store_owners_all(&value->owners) != 0;
	if (bytes[0])
		rest = store_value_write(value, bytes + 1);
	return (MDB_val){ 1 + rest.mv_size, bytes };
}

static int copy_addition(struct store *store, MDB_dbi from, MDB_dbi to, const MDB_val *rule)
{
	struct store_addition addition;
	MDB_val there, value = { sizeof(addition), &addition };
	int error = environment_error(mdb_get(store->write, from, (MDB_val *)rule, &there));

	if (error || there.mv_size != sizeof(addition))
		return error == -ENOENT ? 0 : error;
	memcpy(&addition, there.mv_data, sizeof(addition));
	return store_pair_put(store, to, rule, &value, 0);
}

int store_keep_undone(struct store *store, const MDB_val *rule, const struct store_value *value)
{
	__u8 bytes[1 + STORE_VALUE_BYTES];
	MDB_val entry = undone_write(value, bytes);
	int error = store->makes_pending ? store_pair_put(store, store->undo_db, rule, &entry, MDB_NOOVERWRITE) :
					   -EEXIST;

	if (!error)
		error = copy_addition(store, store->added_db, store->undo_added_db, rule);
	return error == -EEXIST ? 0 : error;
}

int store_undo_addition(struct store *store, const MDB_val *rule)
{
	return copy_addition(store, store->undo_added_db, store->added_db, rule);
}

int store_change_undone(struct store *store, const MDB_val *key, const struct store_edit *edit)
{
	__u8 bytes[1 + STORE_VALUE_BYTES];
	struct store_value before = {}, after;
	MDB_val entry, value;
	int error = store_has_earlier_pending(store) ?
			    environment_error(mdb_get(store->write, store->undo_db, (MDB_val *)key, &entry)) :
			    -ENOENT;

	if (error)
		return error == -ENOENT ? (int)store_worlds(store) : error;
	error = undone_value(&entry, &value);
	if (error > 0)
		error = store_value_read(store, &value, &before);
	if (error)
		return error;
	after = before;
	if (store_value_change(store, edit, &after)) {
		error = store_note_owners(store, WORLD_UNDONE, key, &before.owners, &after.owners);
		entry = undone_write(&after, bytes);
		if (!error)
			error = store_pair_put(store, store->undo_db, key, &entry, 0);
	}
	/* Both values are gone: the rule is as if it had never been touched. */
	if (!error && !edit->put && edit->gives_up == STORE_ALL_OWNERS) {
		store->has_exact_rates = false;
		error = store_pair_del(store, store->undo_db, key);
	}
	return error ? error : WORLD_NOW;
}

int store_undo_clear(struct store *store)
{
	return store_has_earlier_pending(store) ? store_pairs_drop(store, store->undo_db) : 0;
}

struct replacing {
	struct store *store;
	__u64 owner;
	const struct rule_set *wanted;
	size_t next; /* in `wanted` */
};

/* Entries and wanted rules are sorted alike, so each call goes on in `wanted` where the last one ended. */
static int replace_entry(const struct store_pair *entry, void *context)
{
	struct replacing *replacing = context;
	struct store_edit edit = { NULL, replacing->owner, replacing->owner };
	__u8 bytes[RULE_ENCODED_BYTES];
	MDB_val key = { entry->key.mv_size, bytes };
	struct rule rule;
	int order = 1, error = rule_decode(entry->key.mv_data, entry->key.mv_size, &rule);

	if (error)
		return error;
	for (; replacing->next < replacing->wanted->count; replacing->next++) {
		order = rule_set_compare(replacing->wanted, replacing->next, &rule);
		if (order >= 0)
			break;
	}
	if (!order) {
		rule_set_get(replacing->wanted, replacing->next, &rule);
		edit.put = &rule;
	}
	/* A copy, because the key is in a page that a write may change. */
	memcpy(bytes, entry->key.mv_data, key.mv_size);
	error = store_change_undone(replacing->store, &key, &edit);
	return error < 0 ? error : 0;
}

int store_replace_undone(struct store *store, unsigned int owner, bool is_alone, const struct rule_set *wanted)
{
	store->has_exact_rates = false;
	if (is_alone || !store_has_earlier_pending(store))
		return store_undo_clear(store);
	return store_pairs_each(store->write, store->undo_db, replace_entry,
				&(struct replacing){ store, 1ULL << owner, wanted, 0 });
}

/* ---- what the undo would bring back ---- */

static int count_undone_rate(const struct store_pair *entry, void *context)
{
	struct store *store = context;
	MDB_val value;
	struct rule rule;
	const int existed = undone_value(&entry->value, &value);
	int error;

	if (existed <= 0)
		return existed;
	error = rule_decode(entry->key.mv_data, entry->key.mv_size, &rule);
	if (error || !(rule.fields & RULE_RATE))
		return error;
	error = environment_error(mdb_get(store->write, store->rates_db, (MDB_val *)&entry->key, &value));
	store->rates_most += error == -ENOENT;
	return error == -ENOENT ? 0 : error;
}

int store_undo_count_rates(struct store *store)
{
	return store_has_earlier_pending(store) ?
		       store_pairs_each(store->write, store->undo_db, count_undone_rate, store) :
		       0;
}

int store_get_undone(struct store *store, struct rule *rule)
{
	__u8 bytes[RULE_ENCODED_BYTES];
	MDB_val key = { rule_encode(rule, bytes), bytes }, entry, value;
	struct store_meta meta;
	STORE_VIEW view = store_meta_view(store, &meta);
	int error = view.error, existed;

	if (error)
		return error;
	error = meta.pending_id ? environment_error(mdb_get(view.txn, store->undo_db, &key, &entry)) : -ENOENT;
	if (error)
		return error == -ENOENT ? store_get(store, rule) : error;
	existed = undone_value(&entry, &value);
	return existed > 0 ? store_value_to_rule(store, &value, rule) : existed ? existed : -ENOENT;
}

/* ---- the pending change ---- */

int store_pending(struct store *store, struct store_pending *pending)
{
	struct store_meta meta;
	MDB_stat undo = {};
	STORE_VIEW view = store_meta_view(store, &meta);
	int error = view.error;

	if (error)
		return error;
	*pending = (struct store_pending){};
	if (meta.pending_id)
		error = environment_error(mdb_stat(view.txn, store->undo_db, &undo));
	if (!error && meta.pending_id)
		*pending = (struct store_pending){ meta.pending_id,
						   meta.pending_ms - store->clock.now_ms - store_lag_ms(store),
						   undo.ms_entries };
	return error;
}

int store_set_pending(struct store *store, __s64 timeout_ms)
{
	if (store->meta.pending_id)
		return -EBUSY;
	store->meta.pending_id = ++store->meta.last_pending_id;
	store->meta.pending_ms = store->clock.now_ms + timeout_ms;
	store->makes_pending = store->is_changed = true;
	store_lists_part(store);
	return store_shapes_keep(store);
}

int store_extend_deadline(struct store *store, __s64 timeout_ms)
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
	error = store_pairs_drop(store, store->undo_db);
	if (!error)
		error = store_pairs_drop(store, store->undo_added_db);
	if (!error)
		error = store_shapes_forget_kept(store);
	return error ? error : store_lists_join(store);
}

struct undoing {
	struct store *store;
	bool is_back; /* true in the second pass, which brings rules back */
	int (*visit)(const struct rule *rule, bool is_back, void *context);
	void *context;
};

static int undo_rule(const struct store_pair *entry, void *context)
{
	const struct undoing *undoing = context;
	MDB_val value;
	struct rule rule;
	const int existed = undone_value(&entry->value, &value);
	int error;

	if (existed < 0 || (!existed && undoing->is_back))
		return existed;
	error = rule_decode(entry->key.mv_data, entry->key.mv_size, &rule);
	if (!error && !rule_is_canonical(&rule))
		error = -EBADMSG;
	/*
	 * The entry of a rule that did not exist has no value to read. If the rule's fields name a rate,
	 * store_value_to_rule() would report the entry as damaged.
	 */
	if (!error && existed)
		error = store_value_to_rule(undoing->store, &value, &rule);
	return error ? error : undoing->visit(&rule, undoing->is_back, undoing->context);
}

/*
 * Goes through the database twice. The first pass deletes every rule that the change touched. The second pass adds the
 * rules that existed before the change, with their old owners. Each rule is deleted first, because it would keep the
 * owners that the change gave it. There are two passes because the number of shapes is limited: deleted rules must give
 * up theirs before others come back. Then the settings come back. A list must exist while it has rules. So lists that
 * the change deleted are restored before the passes, and lists that it made are deleted after the passes.
 *
 * is_undoing lasts until the transaction ends. The visitor deletes rules by the usual functions. With is_undoing they
 * leave "undo" alone, and do not mark lists as edited.
 */
int store_undo_each(struct store *store, int (*visit)(const struct rule *rule, bool is_back, void *context),
		    void *context)
{
	struct undoing undoing = { .store = store, .visit = visit, .context = context };
	struct store_settings settings;
	int result = store_lists_undo(store);

	store->is_undoing = true;
	if (!result)
		result = store_pairs_each(store->write, store->undo_db, undo_rule, &undoing);
	undoing.is_back = true;
	if (!result)
		result = store_pairs_each(store->write, store->undo_db, undo_rule, &undoing);
	if (!result)
		result = store_undone_settings(store, &settings);
	if (!result)
		result = store_set_settings(store, &settings);
	if (!result)
		store_lists_undone(store);
	return result;
}
