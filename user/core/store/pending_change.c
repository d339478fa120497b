// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The pending change: a change that is stored and in force, and is undone unless somebody confirms it in time.
 *
 * Database "undo" has an entry for each rule that the change touched. The key is the rule; the value is a byte 0 if the
 * rule did not exist before the change, or a byte 1 and the value that the rule had. A rule has owners, as bits: one
 * for each list, and one for the rules added by hand. An owner has a rule permanently or until a time.
 *
 * Other changes may be made while one is pending. What they add or delete must outlast the undo, so they change the old
 * values in "undo" as well (store_undo_put() and the functions after it).
 */
#include <errno.h>
#include <string.h>

#include "store/internal.h"

#define BY_HAND (1ULL << STORE_BY_HAND)

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

int store_save_old_value(struct store *store, const MDB_val *rule, const MDB_val *value)
{
	__u8 bytes[1 + STORE_VALUE_BYTES] = { value != NULL };
	MDB_val entry = { 1, bytes };
	int error;

	if (!store->makes_pending)
		return 0;
	if (value && value->mv_size >= sizeof(bytes))
		return -EBADMSG;
	if (value) {
		memcpy(bytes + 1, value->mv_data, value->mv_size);
		entry.mv_size += value->mv_size;
	}
	/* An existing entry stays: it has the value from before the change. `value` may be from the change itself. */
	error = store_pair_put(store, store->undo_db, rule, &entry, MDB_NOOVERWRITE);
	if (!error && value)
		error = copy_addition(store, store->added_db, store->undo_added_db, rule);
	return error == -EEXIST ? 0 : error;
}

int store_undo_addition(struct store *store, const MDB_val *rule)
{
	return copy_addition(store, store->undo_added_db, store->added_db, rule);
}

/* ---- entries of database "undo" ---- */

struct old_rule {
	struct store_owners owners; /* none: the rule did not exist before */
	__u64 rate;
	char comment[RULE_COMMENT_BYTES];
};

/* The value that a rule had before the change. 1; 0: the rule did not exist; -EBADMSG. */
static int old_value(const MDB_val *entry, MDB_val *value)
{
	const __u8 *existed = entry->mv_data;

	if (!entry->mv_size || *existed > 1)
		return -EBADMSG;
	*value = (MDB_val){ entry->mv_size - 1, (void *)(existed + 1) };
	return *existed;
}

static int old_rule_read(const struct store *store, const MDB_val *bytes, struct old_rule *old)
{
	struct store_value value;
	MDB_val rest;
	const int existed = old_value(bytes, &rest);

	*old = (struct old_rule){};
	if (existed <= 0)
		return existed;
	if (store_value_read(store, &rest, &value))
		return -EBADMSG;
	old->owners = value.owners;
	old->rate = value.rate;
	memcpy(old->comment, value.comment, value.length);
	return 0;
}

/* `bytes` must live as long as the result. */
static MDB_val old_rule_write(const struct old_rule *old, __u8 bytes[1 + STORE_VALUE_BYTES])
{
	MDB_val value = { 0, NULL };

	bytes[0] = store_owners_all(&old->owners) != 0;
	if (bytes[0])
		value = store_value_write(&old->owners, old->rate, old->comment, bytes + 1);
	return (MDB_val){ 1 + value.mv_size, bytes };
}

/*
 * 1: found, *old is filled; 0: the pending change has not touched the rule, or store_has_earlier_pending() is false;
 * -errno.
 */
static int old_rule_find(struct store *store, const MDB_val *rule, struct old_rule *old)
{
	MDB_val bytes;
	int error;

	if (!store_has_earlier_pending(store))
		return 0;
	*old = (struct old_rule){};
	error = environment_error(mdb_get(store->write, store->undo_db, (MDB_val *)rule, &bytes));
	if (!error)
		error = old_rule_read(store, &bytes, old);
	return error == -ENOENT ? 0 : error ? error : 1;
}

static int old_rule_change(struct store *store, const MDB_val *rule, const struct old_rule *old)
{
	__u8 bytes[1 + STORE_VALUE_BYTES];
	MDB_val value = old_rule_write(old, bytes);

	return store_pair_put(store, store->undo_db, rule, &value, 0);
}

/* ---- other changes while one is pending ---- */

bool store_has_earlier_pending(const struct store *store)
{
	return store->meta.pending_id && !store->makes_pending && !store->is_undoing;
}

static __u64 old_rate_with(const struct store *store, const struct old_rule *old, __u64 owner, __u64 wanted)
{
	return store_rate_with(old->rate, &old->owners, owner, wanted, store->clock.now_ms);
}

static void old_rule_add(const struct store *store, struct old_rule *old, __u64 owner, const struct rule *rule)
{
	if (store_owners_take_comment(&old->owners, owner, rule->comment, store->clock.now_ms))
		strcpy(old->comment, rule->comment);
	old->rate = old_rate_with(store, old, owner, rule->rate);
	old->owners = store_owners_with(old->owners, owner, store_deadline_of(store, rule), store->clock.now_ms);
}

int store_undo_put(struct store *store, const MDB_val *key, __u64 owner, const struct rule *rule)
{
	struct old_rule old;
	const int found = old_rule_find(store, key, &old);

	if (found <= 0 || (old.owners.permanent & owner && old.rate == old_rate_with(store, &old, owner, rule->rate)))
		return found < 0 ? found : 0;
	store_lists_edit(store, owner & ~store_owners_now(&old.owners, store->clock.now_ms));
	old_rule_add(store, &old, owner, rule);
	return old_rule_change(store, key, &old);
}

int store_undo_give_up(struct store *store, const MDB_val *key, __u64 owner)
{
	struct old_rule old;
	int error, found = old_rule_find(store, key, &old);

	if (found <= 0 || !(store_owners_all(&old.owners) & owner))
		return found < 0 ? found : 0;
	store_lists_edit(store, owner);
	old.owners = store_owners_without(old.owners, owner, store->clock.now_ms);
	error = old_rule_change(store, key, &old);
	return error || owner != BY_HAND ? error : store_pair_del(store, store->undo_added_db, key);
}

/* Deletes the entry of a deleted rule, or the undo would bring the rule back. */
int store_undo_del(struct store *store, const MDB_val *key)
{
	struct old_rule old;
	const int found = old_rule_find(store, key, &old);

	if (found <= 0)
		return found;
	store->has_exact_rates = false;
	store_lists_edit(store, store_owners_all(&old.owners));
	return store_pair_del(store, store->undo_db, key);
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

/*
 * Changes one old value to what it would be if the owner's rules had been replaced before the pending change. Entries
 * and wanted rules are sorted alike. So each call goes on in `wanted` where the last one ended.
 */
static int replace_entry(const struct store_pair *entry, void *context)
{
	struct replacing *replacing = context;
	struct store *store = replacing->store;
	__u8 key_room[RULE_ENCODED_BYTES], room[1 + STORE_VALUE_BYTES];
	MDB_val key = { entry->key.mv_size, key_room }, value;
	struct old_rule old;
	struct rule rule;
	int order = 1, error = rule_decode(entry->key.mv_data, key.mv_size, &rule);

	if (!error)
		error = old_rule_read(store, &entry->value, &old);
	if (error)
		return error;
	while (replacing->next < replacing->wanted->count) {
		order = rule_set_compare(replacing->wanted, replacing->next, &rule);
		if (order >= 0)
			break;
		replacing->next++;
	}
	if (order && !(store_owners_all(&old.owners) & replacing->owner))
		return 0;
	if (!order) {
		rule_set_get(replacing->wanted, replacing->next, &rule);
		/*
		 * The owner has the rule already, permanently and with the wanted rate (and comment, if it is the only
		 * owner): nothing to do. change/rule_diff.c decides in the same way.
		 */
		if (old.owners.permanent & replacing->owner && !rule.timeout_ms &&
		    old.rate == old_rate_with(store, &old, replacing->owner, rule.rate) &&
		    (store_owners_now(&old.owners, store->clock.now_ms) != replacing->owner ||
		     !strcmp(old.comment, rule.comment)))
			return 0;
	}
	/* A copy, because the key is in a page that a write may change. */
	memcpy(key_room, entry->key.mv_data, key.mv_size);
	store_lists_edit(store, replacing->owner);
	if (replacing->owner == BY_HAND)
		error = store_pair_del(store, store->undo_added_db, &key);
	if (error)
		return error;
	old.owners = store_owners_without(old.owners, replacing->owner, store->clock.now_ms);
	/* Without owners there is no comment and no rate. */
	if (!store_owners_all(&old.owners)) {
		*old.comment = '\0';
		old.rate = 0;
	}
	if (!order)
		old_rule_add(store, &old, replacing->owner, &rule);
	value = old_rule_write(&old, room);
	return environment_write_error(store->env, mdb_cursor_put(entry->cursor, &key, &value, MDB_CURRENT));
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
	const int existed = old_value(&entry->value, &value);
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
	MDB_txn *txn;
	int error = store_meta_view(store, &txn, &meta);

	if (error)
		return error;
	error = -ENOENT;
	if (meta.pending_id && store->schema > 1)
		error = environment_error(mdb_get(txn, store->undo_db, &key, &entry));
	if (error == -ENOENT) {
		error = store_get(store, rule);
	} else if (!error) {
		const int existed = old_value(&entry, &value);

		error = existed > 0 ? store_value_to_rule(store, &value, rule) : existed ? existed : -ENOENT;
	}
	store_read_end(store);
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
	/* With schema 1 undo_db is not open; another process may have converted the store since. */
	if (meta.pending_id && store->schema > 1)
		error = environment_error(mdb_stat(txn, store->undo_db, &undo));
	store_read_end(store);
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
	return error ? error : store_lists_forget_undo(store);
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
	const int existed = old_value(&entry->value, &value);
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
	int result = store_lists_undo(store, false);

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
	return result ? result : store_lists_undo(store, true);
}
