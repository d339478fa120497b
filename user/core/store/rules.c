// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Adds, changes, deletes, finds and visits the rules of a store. */
#include <errno.h>
#include <string.h>

#include "store/internal.h"

#define BY_HAND (1ULL << STORE_BY_HAND)

/* The bytes must live as long as the key. */
static MDB_val rule_bytes(const struct rule *rule, __u8 bytes[RULE_ENCODED_BYTES])
{
	return (MDB_val){ rule_encode(rule, bytes), bytes };
}

/* ---- finding ---- */

static int rule_check(const struct store *store, const MDB_val *key, const MDB_val *value)
{
	struct rule rule;

	return environment_is_own_page(store->env, key) ? store_rule_read(store, key, value, &rule) : -EBADMSG;
}

/*
 * Finds the value of a rule. On a damaged page LMDB may search in the wrong place. Such a search ends beside the entry
 * that misled it. So a rule counts as missing only if its two neighbours are sound and sort around it. 0; -ENOENT;
 * -EBADMSG; other -errno.
 */
static int find_value(const struct store *store, MDB_txn *txn, const MDB_val *key, MDB_val *value)
{
	MDB_val there = *key, before;
	MDB_cursor *cursor;
	MDB_stat all = {};
	bool is_after_all;
	int order = -1, error, status = mdb_stat(txn, store->rules_db, &all);

	*value = (MDB_val){ 0, "" };
	if (!status)
		status = mdb_cursor_open(txn, store->rules_db, &cursor);
	if (status)
		return environment_error(status);
	status = mdb_cursor_get(cursor, &there, value, MDB_SET_RANGE);
	is_after_all = status == MDB_NOTFOUND;
	error = is_after_all ? 0 : environment_error(status);
	if (!error && !is_after_all) {
		order = mdb_cmp(txn, store->rules_db, key, &there);
		error = order > 0 ? -EBADMSG : rule_check(store, &there, value);
	}
	if (!error && order) {
		status = mdb_cursor_get(cursor, &there, &before, is_after_all ? MDB_LAST : MDB_PREV);
		if (!status && mdb_cmp(txn, store->rules_db, &there, key) < 0)
			error = rule_check(store, &there, &before);
		else if (status != MDB_NOTFOUND || (is_after_all && all.ms_entries))
			error = -EBADMSG;
		error = error ? error : -ENOENT;
	}
	mdb_cursor_close(cursor);
	return error;
}

/* ---- adding ---- */

/* Call it before anything else moves the cursor: LMDB appends at the cursor's place without checking it. */
static void stop_appending(struct store *store)
{
	mdb_cursor_close(store->appending);
	store->appending = NULL;
}

/* Counts the shapes of all keys of the rule; after an error, of no key. */
static int add_shapes(struct store *store, const struct rule *rule)
{
	struct rule_key keys[RULE_KEYS_MAX];
	const size_t count = rule_keys(rule, keys), before = store->shapes.count;

	for (size_t i = 0; i < count; i++) {
		int error = shape_list_add(&store->shapes, &keys[i].shape, 1);

		/* The undo must bring back what there was, even if the rule needs more shapes than a new one may take. */
		if (error == -E2BIG && store->is_undoing) {
			const struct shape_list_entry entry = { keys[i].shape, keys[i].shape, false, 1 };
			struct shape_list planned = store->shapes;

			if (!shape_list_restore(&planned, &entry) && !shape_list_plan(&planned)) {
				store->shapes = planned;
				store->shapes.must_plan = true;
				error = 0;
			}
		}
		if (error) {
			while (i--)
				shape_list_remove(&store->shapes, &keys[i].shape);
			return error;
		}
	}
	store->has_new_shape |= store->shapes.count > before;
	return 0;
}

int store_rates(struct store *store, size_t enough, size_t *count)
{
	MDB_stat rates = {};
	int error = 0;

	/* The whole undo is read once, and again only if what has changed since then may be too much. */
	if (!store->has_exact_rates && store->rates_most > enough) {
		error = environment_error(mdb_stat(store->write, store->rates_db, &rates));
		store->rates_most = rates.ms_entries;
		store->has_exact_rates = true;
		if (!error)
			error = store_undo_count_rates(store);
	}
	*count = store->rates_most;
	return error;
}

int store_addition_put(struct store *store, const struct rule *rule, const struct store_addition *addition)
{
	__u8 bytes[RULE_ENCODED_BYTES];
	MDB_val key = rule_bytes(rule, bytes), value = { sizeof(*addition), (void *)addition };
	int error = store_pair_put(store, store->added_db, &key, &value, 0);

	return error || !store_has_earlier_pending(store) ?
		       error :
		       store_pair_put(store, store->undo_added_db, &key, &value, 0);
}

int store_addition(struct store *store, const struct rule *rule, struct store_addition *addition)
{
	__u8 bytes[RULE_ENCODED_BYTES];
	const MDB_val key = rule_bytes(rule, bytes);

	return store_late_get(store, "added", &key, addition, sizeof(*addition));
}

int store_note_owners(struct store *store, unsigned int worlds, const MDB_val *key, const struct store_owners *before,
		      const struct store_owners *after)
{
	const __u64 stay = store_owners_now(before, store->clock.now_ms) & store_owners_all(after);
	const MDB_dbi added = worlds & WORLD_NOW ? store->added_db : store->undo_added_db;

	store_lists_count(store, worlds, before, after);
	/* No longer wanted by hand, or anew. */
	return store_owners_all(before) & ~stay & BY_HAND ? store_pair_del(store, added, key) : 0;
}

/* Brings all that depends on the value of a rule up to date, except its shapes. */
static int record_change(struct store *store, unsigned int worlds, const MDB_val *key, const struct store_value *before,
			 const struct store_value *after)
{
	const struct store_owners *had = &before->owners, *has = &after->owners;
	MDB_val rate = { sizeof(after->rate), (void *)&after->rate };
	int error = store_keep_undone(store, key, before);

	store->is_changed = true;
	if (!error)
		error = store_note_owners(store, worlds, key, had, has);
	if (!error)
		error = store_deadline_move(store, store->deadlines_db, key, store_owners_end(had),
					    store_owners_end(has));
	if (!error)
		error = store_deadline_move(store, store->owner_ends_db, key, had->permanent ? had->deadline_ms : 0,
					    has->permanent ? has->deadline_ms : 0);
	if (error || before->rate == after->rate)
		return error;
	store->rates_most += after->rate != 0;
	store->has_exact_rates = false;
	return after->rate ? store_pair_put(store, store->rates_db, key, &rate, 0) :
			     store_pair_del(store, store->rates_db, key);
}

/* Gives a rule that is there another value, or none. */
static int change_value(struct store *store, unsigned int worlds, const struct rule *rule, const MDB_val *key,
			const struct store_value *before, const struct store_value *after)
{
	struct rule_key keys[RULE_KEYS_MAX];
	__u8 bytes[STORE_VALUE_BYTES];
	MDB_val value = store_value_write(after, bytes);
	int error = record_change(store, worlds, key, before, after);

	stop_appending(store);
	if (error || store_owners_all(&after->owners))
		return error ? error : store_pair_put(store, store->rules_db, key, &value, 0);
	error = store_pair_del(store, store->rules_db, key);
	for (size_t count = rule_keys(rule, keys), i = 0; i < count && !error; i++)
		error = shape_list_remove(&store->shapes, &keys[i].shape) ? -EBADMSG : 0;
	return error;
}

/*
 * Adds a rule. -EEXIST: it is there, and *there is its value. A rule that sorts after all others is appended without
 * a search. An import adds rules in order, and often to an empty store.
 */
static int put_new(struct store *store, unsigned int worlds, const struct rule *rule, const struct store_value *value,
		   MDB_val *key, MDB_val *there)
{
	static const struct store_value none;
	__u8 room[STORE_VALUE_BYTES];
	int error, undone, status = MDB_KEYEXIST; /* also if the rule does not sort after all others */

	*there = store_value_write(value, room);
	if (store->appending)
		status = mdb_cursor_put(store->appending, key, there, MDB_APPEND);
	if (status == MDB_KEYEXIST) {
		stop_appending(store);
		status = mdb_put(store->write, store->rules_db, key, there, MDB_NOOVERWRITE);
	}
	if (status)
		return environment_write_error(store->env, status);
	/* The shapes come after the rule: for a rule that was there, they are counted already. */
	error = add_shapes(store, rule);
	if (!error)
		return record_change(store, worlds, key, &none, value);
	stop_appending(store);
	undone = store_pair_del(store, store->rules_db, key);
	return undone ? undone : error;
}

static int put(struct store *store, const struct store_edit *edit, enum store_added *added)
{
	struct store_value before, after = {};
	__u8 bytes[RULE_ENCODED_BYTES];
	MDB_val key = rule_bytes(edit->put, bytes), there;
	const int worlds = store_change_undone(store, &key, edit);
	int error;

	if (worlds < 0)
		return worlds;
	*added = STORE_ADDED;
	store_value_change(store, edit, &after);
	error = put_new(store, worlds, edit->put, &after, &key, &there);
	if (error != -EEXIST)
		return error;
	error = store_value_read(store, &there, &before);
	if (error)
		return error;
	/* The owner may have the rule already; else it joins the others, or replaces an end or a rate. */
	after = before;
	*added = STORE_UNCHANGED;
	if (!store_value_change(store, edit, &after))
		return 0;
	*added = store_owners_end(&before.owners) || store_owners_end(&after.owners) || before.rate != after.rate ?
			 STORE_NEW_END :
			 STORE_NEW_OWNER;
	return change_value(store, worlds, edit->put, &key, &before, &after);
}

int store_put(struct store *store, const struct rule *rule, unsigned int owner, __u64 owners, enum store_added *added)
{
	return put(store, &(struct store_edit){ rule, 1ULL << owner, owners }, added);
}

int store_restore(struct store *store, const struct rule *rule, enum store_added *added)
{
	MDB_txn *const write = store->write;
	struct rule was = *rule, undone = *rule;
	__u8 bytes[RULE_ENCODED_BYTES];
	MDB_val key = rule_bytes(rule, bytes);
	int error, undone_error;

	store->write = NULL; /* these two see the last commit */
	error = store_get(store, &was);
	undone_error = store_get_undone(store, &undone);
	store->write = write;
	*added = STORE_UNCHANGED;
	if (undone_error == -ENOENT)
		undone = (struct rule){};
	else if (undone_error)
		return undone_error;
	error = error ? error : put(store, &(struct store_edit){ &was, 0, STORE_ALL_OWNERS }, added);
	if (!error || error == -ENOENT)
		error = store_change_undone(store, &key, &(struct store_edit){ &undone, 0, STORE_ALL_OWNERS });
	return error < 0 ? error : 0;
}

int store_put_back(struct store *store, const struct rule *rule, enum store_added *added)
{
	const struct store_edit unknown = { .gives_up = ~store_lists_now(store) & ~BY_HAND };
	struct store_value value = store_value_from_rule(store, rule);
	__u8 bytes[RULE_ENCODED_BYTES];
	MDB_val key = rule_bytes(rule, bytes), there;
	int error;

	*added = STORE_UNCHANGED;
	store_value_change(store, &unknown, &value);
	if (!store_owners_all(&value.owners))
		return 0;
	*added = STORE_ADDED;
	error = put_new(store, WORLD_NOW, rule, &value, &key, &there);
	return !error && store_owners_all(&value.owners) & BY_HAND ? store_undo_addition(store, &key) : error;
}

/* ---- deleting ---- */

int store_give_up(struct store *store, const struct rule *rule, __u64 owners, enum store_deleted *deleted)
{
	const struct store_edit edit = { .gives_up = owners };
	struct store_value before, after;
	__u8 bytes[RULE_ENCODED_BYTES];
	MDB_val key = rule_bytes(rule, bytes), there;
	const int worlds = owners ? store_change_undone(store, &key, &edit) : WORLD_NOW;
	int error = worlds < 0 ? worlds : find_value(store, store->write, &key, &there);

	*deleted = STORE_NO_SUCH_RULE;
	if (!error)
		error = store_value_read(store, &there, &before);
	if (error)
		return error == -ENOENT ? 0 : error;
	after = before;
	if (!store_value_change(store, &edit, &after))
		return 0;
	*deleted = store_owners_all(&after.owners) ? STORE_STILL_WANTED : STORE_DELETED;
	return change_value(store, worlds, rule, &key, &before, &after);
}

static int keep_undone(const struct rule *rule, void *context)
{
	struct store *store = context;
	const struct store_value value = store_value_from_rule(store, rule);
	__u8 bytes[RULE_ENCODED_BYTES];
	const MDB_val key = rule_bytes(rule, bytes);

	return store_keep_undone(store, &key, &value);
}

int store_clear(struct store *store)
{
	const MDB_dbi dropped[] = { store->rules_db, store->deadlines_db, store->rates_db, store->added_db,
				    store->owner_ends_db };
	MDB_stat rules;
	int error = store_undo_clear(store);

	store->has_exact_rates = false;
	if (!error)
		error = environment_error(mdb_stat(store->write, store->rules_db, &rules));
	if (error || (!rules.ms_entries && !store_has_earlier_pending(store)))
		return error;
	if (store->makes_pending)
		error = store_each(store, keep_undone, store);
	for (size_t i = 0; i < sizeof(dropped) / sizeof(dropped[0]) && !error; i++)
		error = store_pairs_drop(store, dropped[i]);
	if (error)
		return error;
	store_lists_clear(store);
	store->shapes.count = 0;
	store->is_changed = true;
	return 0;
}

/* ---- reading ---- */

int store_get(struct store *store, struct rule *rule)
{
	__u8 bytes[RULE_ENCODED_BYTES];
	MDB_val key = rule_bytes(rule, bytes), value;
	STORE_VIEW view = store_view(store);
	const int error = view.error ? view.error : find_value(store, view.txn, &key, &value);

	return error ? error : store_value_to_rule(store, &value, rule);
}

struct each {
	const struct store *store;
	int (*visit)(const struct rule *rule, void *context);
	void *context;
};

static int each_rule(const struct store_pair *entry, void *context)
{
	const struct each *each = context;
	struct rule rule;
	int error = store_rule_read(each->store, &entry->key, &entry->value, &rule);

	return error ? error : each->visit(&rule, each->context);
}

int store_each(struct store *store, int (*visit)(const struct rule *rule, void *context), void *context)
{
	struct each each = { store, visit, context };
	STORE_VIEW view = store_view(store);

	return view.error ? view.error : store_pairs_each(view.txn, store->rules_db, each_rule, &each);
}

static int each_rate(const struct store_pair *entry, void *context)
{
	const struct each *each = context;
	struct rule rule;
	int error = rule_decode(entry->key.mv_data, entry->key.mv_size, &rule);

	if (error || entry->value.mv_size != sizeof(rule.rate))
		return -EBADMSG;
	memcpy(&rule.rate, entry->value.mv_data, sizeof(rule.rate));
	return rule_is_canonical(&rule) && rule_has_sound_rate(&rule) ? each->visit(&rule, each->context) : -EBADMSG;
}

int store_each_rate(struct store *store, int (*visit)(const struct rule *rule, void *context), void *context)
{
	struct each each = { store, visit, context };
	STORE_VIEW view = store_view(store);
	int error = view.error;
	MDB_dbi db;

	if (!error)
		error = environment_error(mdb_dbi_open(view.txn, "rates", 0, &db));
	return error ? (error == -ENOENT ? 0 : error) : store_pairs_each(view.txn, db, each_rate, &each);
}

/* Whether two encoded rules begin with the same `bits` bits. */
static bool begin_alike(const MDB_val *a, const __u8 *b, unsigned int bits)
{
	const __u8 *at = a->mv_data;
	const size_t bytes = bits / 8;

	return a->mv_size > bytes && !memcmp(at, b, bytes) && !((at[bytes] ^ b[bytes]) & 0xff00 >> bits % 8 & 0xff);
}

int store_each_under(struct store *store, const struct rule *first, unsigned int bits,
		     int (*visit)(const struct rule *rule, void *context), void *context)
{
	struct each each = { store, visit, context };
	__u8 bytes[RULE_ENCODED_BYTES] = {};
	struct store_pair entry = { .key = rule_bytes(first, bytes) };
	MDB_cursor_op where = MDB_SET_RANGE;
	STORE_VIEW view = store_view(store);
	int result, status;

	if (view.error)
		return view.error;
	/* This says, too, whether a search for this place can be trusted. */
	result = find_value(store, view.txn, &entry.key, &entry.value);
	status = mdb_cursor_open(view.txn, store->rules_db, &entry.cursor);
	if (!result || result == -ENOENT)
		result = environment_error(status);
	for (; !result; where = MDB_NEXT) {
		status = mdb_cursor_get(entry.cursor, &entry.key, &entry.value, where);
		if (status == MDB_NOTFOUND || (!status && !begin_alike(&entry.key, bytes, bits)))
			break;
		result = status ? environment_error(status) : each_rule(&entry, &each);
	}
	mdb_cursor_close(entry.cursor);
	return result;
}

/* ---- checking ---- */

static int touch(const struct store_pair *entry, void *sum)
{
	for (size_t i = 0; i < entry->value.mv_size; i++)
		*(volatile __u8 *)sum += ((const __u8 *)entry->value.mv_data)[i];
	return 0;
}

static int ignore_rule(const struct rule *rule, void *context)
{
	(void)rule, (void)context;
	return 0;
}

int store_check(struct store *store)
{
	static const char *const late[] = { "feeds", "owner_ends", "undo_added", "rates", "added" };
	STORE_VIEW view = store_view(store);
	struct store_lists lists;
	int error = view.error;
	__u8 sum = 0;
	MDB_dbi db;

	/* They may not be there. */
	for (size_t i = 0; i < sizeof(late) / sizeof(late[0]) && !error; i++)
		mdb_dbi_open(view.txn, late[i], 0, &db);
	/* All databases of LMDB: their handles count up from 0, the list of free pages, until -EINVAL. */
	for (db = 0; !error; db++)
		error = store_pairs_each(view.txn, db, touch, &sum);
	error = error == -EINVAL ? 0 : error;
	if (!error)
		error = store_lists(store, &lists);
	return error ? error : store_each(store, ignore_rule, NULL);
}
