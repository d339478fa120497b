// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The lists of a store, in memory and in the database. A list that is deleted while a change is pending
 * keeps its number, so that the deletion can be undone; until then it is hidden.
 */
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <time.h>

#include "store/internal.h"

/* The value of a list in the database; the text of its source follows. */
struct list_value {
	__u64 rules;
	__s64 imported_s;
	__u8 number, is_deleted;
	__u8 reserved[6];
};

#define LIST_VALUE_BYTES (sizeof(struct list_value) + STORE_SOURCE_BYTES)
#define BIT(number) (1ULL << (number))

_Static_assert(sizeof(struct list_value) == 24, "list value layout");

static struct store_list *find(struct store_lists *lists, const MDB_val *name)
{
	for (size_t i = 1; i <= STORE_LISTS_MAX; i++) {
		struct store_list *list = &lists->list[i];

		if (strlen(list->name) == name->mv_size && !memcmp(list->name, name->mv_data, name->mv_size))
			return list;
	}
	return NULL;
}

static MDB_val name_of(const struct store_list *list)
{
	return (MDB_val){ strlen(list->name), (void *)list->name };
}

/* ---- bytes ---- */

static MDB_val list_write(const struct store_lists_state *state, size_t number, __u8 bytes[LIST_VALUE_BYTES])
{
	const struct store_list *list = &state->lists.list[number];
	const struct list_value value = { .rules = list->rules,
					  .imported_s = list->imported_s,
					  .number = number,
					  .is_deleted = state->deleted >> number & 1 };
	__u8 *to = mempcpy(bytes, &value, sizeof(value));

	to = mempcpy(to, list->source, strlen(list->source));
	return (MDB_val){ to - bytes, bytes };
}

static bool is_name(const MDB_val *name)
{
	const unsigned char *c = name->mv_data;

	for (size_t i = 0; i < name->mv_size; i++)
		if (!isgraph(c[i]))
			return false;
	return name->mv_size && name->mv_size < ABI_NAME_BYTES;
}

static int list_read(const MDB_val *name, const MDB_val *bytes, struct list_value *value, struct store_list *list)
{
	const size_t length = bytes->mv_size - sizeof(*value);

	*list = (struct store_list){};
	if (!is_name(name) || bytes->mv_size < sizeof(*value) || length >= STORE_SOURCE_BYTES)
		return -EBADMSG;
	memcpy(value, bytes->mv_data, sizeof(*value));
	memcpy(list->name, name->mv_data, name->mv_size);
	memcpy(list->source, (const __u8 *)bytes->mv_data + sizeof(*value), length);
	list->rules = value->rules;
	list->imported_s = value->imported_s;
	if (strlen(list->source) != length || !rule_is_plain(list->source) || !rule_is_utf8(list->source))
		return -EBADMSG;
	return value->number && value->number <= STORE_LISTS_MAX && value->is_deleted <= 1 && value->imported_s >= 0 &&
			       value->imported_s <= STORE_TIME_MAX_MS ?
		       0 :
		       -EBADMSG;
}

/* ---- all of them ---- */

int store_lists_load(const struct store *store, MDB_txn *txn, struct store_lists_state *state)
{
	struct list_value value;
	struct store_list list;
	MDB_val name, bytes;
	MDB_cursor *cursor;
	int error;

	*state = (struct store_lists_state){};
	if (store->schema < 3)
		return 0;
	error = environment_error(mdb_cursor_open(txn, store->lists_db, &cursor));
	if (error)
		return error;
	while (!(error = environment_error(mdb_cursor_get(cursor, &name, &bytes, MDB_NEXT)))) {
		if (list_read(&name, &bytes, &value, &list) || state->known & BIT(value.number)) {
			error = -EBADMSG;
			break;
		}
		state->lists.list[value.number] = list;
		state->known |= BIT(value.number);
		state->deleted |= value.is_deleted ? BIT(value.number) : 0;
	}
	mdb_cursor_close(cursor);
	return error == -ENOENT ? 0 : error;
}

int store_lists_save(const struct store *store)
{
	const struct store_lists_state *state = &store->lists;
	int status = mdb_drop(store->write, store->lists_db, 0);

	for (size_t i = 1; i <= STORE_LISTS_MAX && !status; i++) {
		__u8 room[LIST_VALUE_BYTES];
		MDB_val name = name_of(&state->lists.list[i]), bytes;

		if (!(state->known & BIT(i)))
			continue;
		bytes = list_write(state, i, room);
		status = mdb_put(store->write, store->lists_db, &name, &bytes, 0);
	}
	return status;
}

int store_lists(struct store *store, struct store_lists *lists)
{
	struct store_lists_state state;
	MDB_txn *txn;
	int error = store_view_begin(store, &txn);

	if (error)
		return error;
	if (txn == store->write)
		state = store->lists;
	else
		error = store_lists_load(store, txn, &state);
	store_view_end(store);
	if (error)
		return error;
	*lists = state.lists;
	for (size_t i = 1; i <= STORE_LISTS_MAX; i++)
		if (state.deleted & BIT(i))
			lists->list[i] = (struct store_list){};
	return 0;
}

unsigned int store_lists_find(const struct store_lists *lists, const char *name)
{
	for (size_t i = 1; i <= STORE_LISTS_MAX && *name; i++)
		if (!strcmp(lists->list[i].name, name))
			return i;
	return 0;
}

/* ---- their rules ---- */

void store_lists_count(struct store *store, __u64 before, __u64 now)
{
	for (__u64 left = (before ^ now) & ~BIT(STORE_BY_HAND); left; left &= left - 1) {
		struct store_list *list = &store->lists.lists.list[__builtin_ctzll(left)];
		const bool is_more = now & left & -left;

		if (is_more || list->rules)
			list->rules += is_more ? 1 : -1;
		store->lists.is_changed = true;
	}
}

void store_lists_empty(struct store *store)
{
	for (size_t i = 1; i <= STORE_LISTS_MAX; i++)
		store->lists.lists.list[i].rules = 0;
	store->lists.is_changed |= store->lists.known;
}

/* ---- changing them ---- */

/* Keeps a list as it was before the pending change: 0 if it did not exist, else 1 and its value. */
static int keep_undo(struct store *store, unsigned int number, bool existed)
{
	__u8 room[1 + LIST_VALUE_BYTES] = { existed };
	MDB_val name = name_of(&store->lists.lists.list[number]), kept = { 1, room };
	int status;

	/* A later transaction changes this list, so the undo must not touch it any more. */
	if (store_is_later(store)) {
		status = mdb_del(store->write, store->undo_lists_db, &name, NULL);
		return status == MDB_NOTFOUND ? 0 : environment_write_error(store->env, status);
	}
	if (!store->keeps_undo)
		return 0;
	if (existed)
		kept.mv_size += list_write(&store->lists, number, room + 1).mv_size;
	status = mdb_put(store->write, store->undo_lists_db, &name, &kept, MDB_NOOVERWRITE);
	return status == MDB_KEYEXIST ? 0 : environment_write_error(store->env, status);
}

/* The number of the list with this name, else a free number; 0: there is none. */
static unsigned int number_for(struct store_lists_state *state, const char *name)
{
	unsigned int number = store_lists_find(&state->lists, name);

	for (unsigned int i = 1; i <= STORE_LISTS_MAX && !number; i++)
		if (!(state->known & BIT(i)))
			number = i;
	return number;
}

int store_list_open(struct store *store, const char *name, const char *source, unsigned int *number)
{
	struct store_lists_state *state = &store->lists;
	struct store_list *list;
	int error;

	*number = number_for(state, name);
	if (!*number)
		return -EUSERS;
	list = &state->lists.list[*number];
	strncpy(list->name, name, sizeof(list->name) - 1);
	error = keep_undo(store, *number, state->known & ~state->deleted & BIT(*number));
	if (error)
		return error;
	state->known |= BIT(*number);
	state->deleted &= ~BIT(*number);
	state->is_changed = true;
	list->imported_s = time(NULL) > 0 ? time(NULL) : 0;
	memset(list->source, 0, sizeof(list->source));
	if (strlen(source) < sizeof(list->source) && rule_is_plain(source) && rule_is_utf8(source))
		strcpy(list->source, source);
	return 0;
}

static void forget(struct store_lists_state *state, unsigned int number)
{
	state->lists.list[number] = (struct store_list){};
	state->known &= ~BIT(number);
	state->deleted &= ~BIT(number);
	state->is_changed = true;
}

int store_list_delete(struct store *store, unsigned int number)
{
	struct store_lists_state *state = &store->lists;
	int error;

	if (state->lists.list[number].rules)
		return -ENOTEMPTY;
	error = keep_undo(store, number, true);
	if (error)
		return error;
	if (!store->meta.pending_id) {
		forget(state, number);
		return 0;
	}
	state->deleted |= BIT(number);
	state->is_changed = true;
	return 0;
}

/* ---- undoing that ---- */

static int undo_one(struct store_lists_state *state, const MDB_val *name, const MDB_val *kept, bool is_end)
{
	const __u8 *existed = kept->mv_data;
	struct store_list before, *list = find(&state->lists, name);
	MDB_val bytes = { kept->mv_size - 1, kept->mv_size ? (void *)(existed + 1) : NULL };
	struct list_value value;

	if (!kept->mv_size || *existed > 1 || !list)
		return -EBADMSG;
	if (is_end && !*existed && !list->rules)
		forget(state, list - state->lists.list);
	if (is_end || !*existed)
		return 0;
	if (list_read(name, &bytes, &value, &before))
		return -EBADMSG;
	before.rules = list->rules;
	*list = before;
	state->deleted &= ~BIT(list - state->lists.list);
	state->is_changed = true;
	return 0;
}

int store_lists_undo(struct store *store, bool is_end)
{
	MDB_val name, kept;
	MDB_cursor *cursor;
	int error = environment_error(mdb_cursor_open(store->write, store->undo_lists_db, &cursor));

	if (error)
		return error;
	do {
		error = environment_error(mdb_cursor_get(cursor, &name, &kept, MDB_NEXT));
		if (!error)
			error = undo_one(&store->lists, &name, &kept, is_end);
	} while (!error);
	mdb_cursor_close(cursor);
	return error == -ENOENT ? 0 : error;
}

int store_lists_forget_undo(struct store *store)
{
	for (unsigned int i = 1; i <= STORE_LISTS_MAX; i++)
		if (store->lists.deleted & BIT(i))
			forget(&store->lists, i);
	return mdb_drop(store->write, store->undo_lists_db, 0);
}
