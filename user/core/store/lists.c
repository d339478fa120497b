// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The lists of a store, in memory and in the database; and what is known of their fetches by URL. A list that is deleted
 * while a change is pending is hidden and keeps its number, so that the deletion can be undone.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/safe_text.h"
#include "store/internal.h"

/* The value of a list in the database; the text of its source follows. */
struct list_value {
	__u64 rules;
	__s64 imported_s;
	__u8 number, is_deleted, is_edited, reserved;
	__u32 stale_s; /* 0 in lists of older versions */
};

#define LIST_VALUE_BYTES (sizeof(struct list_value) + STORE_SOURCE_BYTES)
#define BIT(number) (1ULL << (number))

_Static_assert(sizeof(struct list_value) == 24, "list value layout");

static MDB_val key_of(const char *list)
{
	return (MDB_val){ strlen(list), (void *)list };
}

static bool is_time(__s64 second)
{
	return second >= 0 && second <= STORE_TIME_MAX_MS;
}

/* ---- sources ---- */

#define FLOWSPEC_FORMAT "flowspec: %llu flows, %llu refused, %llu unreadable"
#define CROWDSEC_FORMAT "crowdsec: %llu decisions, %llu left out, %llu unreadable, %llu refused"

struct store_source store_source_parse(const char *text)
{
	struct store_source flows = { .kind = STORE_SOURCE_FLOWSPEC }, fleet = { .kind = STORE_SOURCE_FLEET };
	struct store_source bans = { .kind = STORE_SOURCE_CROWDSEC };

	if (sscanf(text, FLOWSPEC_FORMAT, &flows.flows, &flows.refused, &flows.unreadable) == 3)
		return flows;
	/* Earlier versions had no "refused". */
	if (sscanf(text, CROWDSEC_FORMAT, &bans.flows, &bans.left_out, &bans.unreadable, &bans.refused) >= 3)
		return bans;
	if (sscanf(text, "fleet %31s %32s %43s refused %llu", fleet.fleet, fleet.broker, fleet.position,
		   &fleet.refused) == 4)
		return fleet;
	return (struct store_source){};
}

void store_source_format(const struct store_source *source, char text[STORE_SOURCE_BYTES])
{
	if (source->kind == STORE_SOURCE_FLOWSPEC)
		snprintf(text, STORE_SOURCE_BYTES, FLOWSPEC_FORMAT, source->flows, source->refused, source->unreadable);
	else if (source->kind == STORE_SOURCE_CROWDSEC)
		snprintf(text, STORE_SOURCE_BYTES, CROWDSEC_FORMAT, source->flows, source->left_out, source->unreadable,
			 source->refused);
	else
		snprintf(text, STORE_SOURCE_BYTES, "fleet %s %s %s refused %llu", source->fleet, source->broker,
			 source->position, source->refused);
}

/* ---- bytes ---- */

static MDB_val list_write(const struct store_lists_state *state, size_t number, __u8 bytes[LIST_VALUE_BYTES])
{
	const struct store_list *list = &state->lists.list[number];
	const struct list_value value = { .rules = list->rules,
					  .imported_s = list->imported_s,
					  .number = number,
					  .is_deleted = state->deleted >> number & 1,
					  .is_edited = list->is_edited,
					  .stale_s = list->stale_s };
	__u8 *to = mempcpy(bytes, &value, sizeof(value));

	to = mempcpy(to, list->source, strlen(list->source));
	return (MDB_val){ to - bytes, bytes };
}

static int list_read(const MDB_val *name, const MDB_val *bytes, struct list_value *value, struct store_list *list)
{
	const size_t length = bytes->mv_size - sizeof(*value);

	*list = (struct store_list){};
	if (!name->mv_size || name->mv_size >= ABI_NAME_BYTES || bytes->mv_size < sizeof(*value) ||
	    length >= STORE_SOURCE_BYTES)
		return -EBADMSG;
	for (size_t i = 0; i < name->mv_size; i++)
		if (!isgraph(((const unsigned char *)name->mv_data)[i]))
			return -EBADMSG;
	memcpy(value, bytes->mv_data, sizeof(*value));
	memcpy(list->name, name->mv_data, name->mv_size);
	memcpy(list->source, (const __u8 *)bytes->mv_data + sizeof(*value), length);
	list->rules = value->rules;
	list->imported_s = value->imported_s;
	list->is_edited = value->is_edited;
	list->stale_s = value->stale_s;
	if (strlen(list->source) != length || !rule_is_plain(list->source) || !rule_is_utf8(list->source))
		return -EBADMSG;
	return value->number && value->number <= STORE_LISTS_MAX && value->is_deleted <= 1 && value->is_edited <= 1 &&
			       is_time(value->imported_s) ?
		       0 :
		       -EBADMSG;
}

/* ---- all of them ---- */

static int list_load(const struct store_pair *entry, void *context)
{
	struct store_lists_state *state = context;
	struct list_value value;
	struct store_list list;

	if (list_read(&entry->key, &entry->value, &value, &list) || state->known & BIT(value.number))
		return -EBADMSG;
	state->lists.list[value.number] = list;
	state->known |= BIT(value.number);
	state->deleted |= value.is_deleted ? BIT(value.number) : 0;
	state->was_edited |= list.is_edited ? BIT(value.number) : 0;
	return 0;
}

int store_lists_read(const struct store *store, MDB_txn *txn, struct store_lists_state *state)
{
	*state = (struct store_lists_state){};
	return store->schema < 3 ? 0 : store_pairs_each(txn, store->lists_db, list_load, state);
}

/* What is kept of a list for the undo: a byte of these bits, and if it existed its value, and its feed if it had one. */
#define KEPT_LIST 1
#define KEPT_FEED 2
#define KEPT_FEED_STAYS 4 /* a later transaction has changed the feed */
#define KEPT_BYTES (1 + LIST_VALUE_BYTES + sizeof(struct store_feed))

static int keep_undo(struct store *store, unsigned int number, bool existed)
{
	__u8 room[KEPT_BYTES] = { existed ? KEPT_LIST : 0 };
	const char *list = store->lists.lists.list[number].name;
	MDB_val name = key_of(list), entry = { 1, room };
	struct store_feed feed;
	int error;

	/* A later transaction changes this list, so the undo must not touch it any more. */
	if (store_has_earlier_pending(store))
		return store_pair_del(store, store->undo_lists_db, &name);
	if (!store->makes_pending)
		return 0;
	if (existed)
		entry.mv_size += list_write(&store->lists, number, room + 1).mv_size;
	room[1 + offsetof(struct list_value, is_edited)] = store->lists.was_edited >> number & 1;
	if (existed && !store_feed(store, list, &feed)) {
		*room |= KEPT_FEED;
		memcpy(room + entry.mv_size, &feed, sizeof(feed));
		entry.mv_size += sizeof(feed);
	}
	error = store_pair_put(store, store->undo_lists_db, &name, &entry, MDB_NOOVERWRITE);
	return error == -EEXIST ? 0 : error;
}

/* While a change of an earlier transaction is pending: sets bits in a byte of what is kept of a list, if it has that byte. */
static int mark_kept(struct store *store, const char *list, size_t at, __u8 bits)
{
	__u8 room[KEPT_BYTES];
	MDB_val name = key_of(list), there, entry = { 0, room };
	int error = store_has_earlier_pending(store) ?
			    environment_error(mdb_get(store->write, store->undo_lists_db, &name, &there)) :
			    -ENOENT;

	if (error || there.mv_size <= at || there.mv_size > sizeof(room))
		return error == -ENOENT ? 0 : error;
	entry.mv_size = there.mv_size;
	memcpy(room, there.mv_data, there.mv_size);
	room[at] |= bits;
	return store_pair_put(store, store->undo_lists_db, &name, &entry, 0);
}

/* A list whose rules the pending change edits was not edited before; but one that a later transaction edits stays edited. */
static int keep_edit(struct store *store, unsigned int number)
{
	return store_has_earlier_pending(store) ? mark_kept(store, store->lists.lists.list[number].name,
							    1 + offsetof(struct list_value, is_edited), true) :
						  keep_undo(store, number, true);
}

int store_lists_save(struct store *store)
{
	const struct store_lists_state *state = &store->lists;
	int error = store_pairs_drop(store, store->lists_db);

	for (size_t i = 1; i <= STORE_LISTS_MAX && !error; i++) {
		__u8 room[LIST_VALUE_BYTES];
		MDB_val name = key_of(state->lists.list[i].name), bytes;

		if (!(state->known & BIT(i)))
			continue;
		error = state->edited & BIT(i) ? keep_edit(store, i) : 0;
		if (error)
			break;
		bytes = list_write(state, i, room);
		error = store_pair_put(store, store->lists_db, &name, &bytes, 0);
	}
	return error;
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
		error = store_lists_read(store, txn, &state);
	store_read_end(store);
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

__u64 store_lists_edit(struct store *store, __u64 lists)
{
	const bool is_edit = !store->is_expiring && !store->is_undoing;
	const __u64 edited = is_edit ? lists & ~store->lists.imported & ~BIT(STORE_BY_HAND) : 0;

	store->lists.edited |= edited;
	store->lists.is_changed |= edited != 0;
	return edited;
}

void store_lists_count(struct store *store, const struct store_owners *before, const struct store_owners *now)
{
	const __u64 more = store_owners_all(now), changed = (store_owners_all(before) ^ more) & ~BIT(STORE_BY_HAND);
	const __u64 edited = store_lists_edit(store, changed & (more | store_owners_now(before, store->clock.now_ms)));

	for (__u64 left = changed; left; left &= left - 1) {
		struct store_list *list = &store->lists.lists.list[__builtin_ctzll(left)];
		const bool is_more = more & left & -left;

		if (is_more || list->rules)
			list->rules += is_more ? 1 : -1;
		list->is_edited |= edited & left & -left;
		store->lists.is_changed = true;
	}
}

/* ---- changing them ---- */

int store_list_open(struct store *store, const char *name, const char *source, unsigned int *number)
{
	struct store_lists_state *state = &store->lists;
	struct store_list *list;
	bool exists;
	int error;

	*number = store_lists_find(&state->lists, name);
	for (unsigned int i = 1; i <= STORE_LISTS_MAX && !*number; i++)
		if (!(state->known & BIT(i)))
			*number = i;
	if (!*number)
		return -EUSERS;
	list = &state->lists.list[*number];
	exists = state->known & ~state->deleted & BIT(*number);
	if (exists && !source)
		return 0;
	strncpy(list->name, name, sizeof(list->name) - 1);
	/* What the undo brings back of a deleted list stays as it was, with the rules that are added to it now. */
	error = source || !store_has_earlier_pending(store) ? keep_undo(store, *number, exists) : 0;
	if (error)
		return error;
	state->known |= BIT(*number);
	state->deleted &= ~BIT(*number);
	state->imported |= source ? BIT(*number) : 0;
	state->is_changed = true;
	list->is_edited = false;
	list->stale_s = 0;
	list->imported_s = source && time(NULL) > 0 ? time(NULL) : 0;
	memset(list->source, 0, sizeof(list->source));
	if (source && strlen(source) < sizeof(list->source) && rule_is_plain(source) && rule_is_utf8(source))
		strcpy(list->source, source);
	return 0;
}

int store_list_put(struct store *store, const struct store_list *list, unsigned int *number)
{
	int error = store_list_open(store, list->name, list->source, number);

	if (!error) {
		store->lists.lists.list[*number].imported_s = list->imported_s;
		store->lists.lists.list[*number].is_edited = list->is_edited;
	}
	return error;
}

void store_list_expect(struct store *store, unsigned int number, __s64 stale_s)
{
	store->lists.lists.list[number].stale_s = stale_s < ~0U ? stale_s : ~0U;
	store->lists.is_changed = true;
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
	if (!error)
		error = store_feed_forget(store, state->lists.list[number].name);
	if (error)
		return error;
	if (store->meta.pending_id)
		state->deleted |= BIT(number);
	else
		forget(state, number);
	state->is_changed = true;
	return 0;
}

/* ---- undoing that ---- */

/* Brings back what was known of fetches. `kept`: of the list, with the feed at its end. */
static int undo_feed(struct store *store, const struct store_pair *kept)
{
	const __u8 bits = *(const __u8 *)kept->value.mv_data;
	MDB_val name = kept->key, value = { sizeof(struct store_feed), NULL };
	struct store_feed feed;

	if (bits & KEPT_FEED_STAYS)
		return 0;
	if (!(bits & KEPT_FEED))
		return store_pair_del(store, store->feeds_db, &name);
	value.mv_data =
		memcpy(&feed, (const __u8 *)kept->value.mv_data + kept->value.mv_size - sizeof(feed), sizeof(feed));
	return store_pair_put(store, store->feeds_db, &name, &value, 0);
}

struct lists_undo {
	struct store *store;
	bool is_end;
};

static int undo_one(const struct store_pair *entry, void *context)
{
	const struct lists_undo *undo = context;
	struct store_lists_state *state = &undo->store->lists;
	const __u8 *kept = entry->value.mv_data;
	const bool existed = entry->value.mv_size && *kept & KEPT_LIST;
	const size_t feed_bytes = existed && *kept & KEPT_FEED ? sizeof(struct store_feed) : 0;
	struct store_list before, *list = NULL;
	struct list_value value;
	MDB_val bytes;

	for (size_t i = 1; i <= STORE_LISTS_MAX && !list; i++) {
		const MDB_val name = key_of(state->lists.list[i].name);

		if (name.mv_size == entry->key.mv_size && !memcmp(name.mv_data, entry->key.mv_data, name.mv_size))
			list = &state->lists.list[i];
	}
	if (entry->value.mv_size < 1 + feed_bytes || *kept >= 2 * KEPT_FEED_STAYS || !list)
		return -EBADMSG;
	if (undo->is_end && !existed && !list->rules) {
		forget(state, list - state->lists.list);
	} else if (undo->is_end && !existed) { /* rules were added later, one by one */
		list->imported_s = 0;
		list->stale_s = 0;
		memset(list->source, 0, sizeof(list->source));
		state->is_changed = true;
	}
	if (undo->is_end || !existed)
		return undo->is_end ? 0 : undo_feed(undo->store, entry);
	bytes = (MDB_val){ entry->value.mv_size - 1 - feed_bytes, (void *)(kept + 1) };
	if (list_read(&entry->key, &bytes, &value, &before))
		return -EBADMSG;
	before.rules = list->rules;
	*list = before;
	state->deleted &= ~BIT(list - state->lists.list);
	state->is_changed = true;
	return undo_feed(undo->store, entry);
}

int store_lists_undo(struct store *store, bool is_end)
{
	return store_pairs_each(store->write, store->undo_lists_db, undo_one, &(struct lists_undo){ store, is_end });
}

int store_lists_forget_undo(struct store *store)
{
	for (unsigned int i = 1; i <= STORE_LISTS_MAX; i++)
		if (store->lists.deleted & BIT(i))
			forget(&store->lists, i);
	return store_pairs_drop(store, store->undo_lists_db);
}

/* ---- what is known of their fetches by URL ---- */

_Static_assert(sizeof(struct store_feed) == 64 + STORE_ETAG_BYTES + STORE_MODIFIED_BYTES + STORE_WHY_BYTES,
	       "feed value layout");

bool store_feed_is_sound(const struct store_feed *feed)
{
	return is_time(feed->tried_s) && is_time(feed->fetched_s) && is_time(feed->next_s) &&
	       is_time(feed->wait_until_s) && is_time(feed->imported_s) &&
	       text_is_safe(feed->etag, sizeof(feed->etag)) && text_is_safe(feed->modified, sizeof(feed->modified)) &&
	       text_is_safe(feed->why, sizeof(feed->why));
}

__s64 store_list_silent_s(const struct store_list *list, const struct store_feed *feed)
{
	const __s64 last_s = feed->fetched_s > list->imported_s ? feed->fetched_s : list->imported_s;
	const __s64 silent_s = time(NULL) - last_s;

	/* A time far ahead is from a clock that was wrong. */
	if (list->stale_s && -silent_s > list->stale_s)
		return list->stale_s + 1LL;
	return list->stale_s && silent_s > list->stale_s ? silent_s : 0;
}

int store_feed(struct store *store, const char *list, struct store_feed *feed)
{
	const MDB_val key = key_of(list);
	int error = store_late_get(store, "feeds", &key, feed, sizeof(*feed));

	if (!error && !store_feed_is_sound(feed))
		error = -EBADMSG;
	if (error)
		*feed = (struct store_feed){};
	return error;
}

int store_feed_put(struct store *store, const char *list, const struct store_feed *feed)
{
	const MDB_val key = key_of(list);
	MDB_val value = { sizeof(*feed), (void *)feed };
	const int error = mark_kept(store, list, 0, KEPT_FEED_STAYS);

	return error ? error : store_pair_put(store, store->feeds_db, &key, &value, 0);
}

int store_feed_forget(struct store *store, const char *list)
{
	const MDB_val key = key_of(list);
	const int error = mark_kept(store, list, 0, KEPT_FEED_STAYS);

	return error ? error : store_pair_del(store, store->feeds_db, &key);
}

int store_feeds(struct store *store, const struct store_lists *lists, struct store_feeds *feeds)
{
	int error = 0;

	*feeds = (struct store_feeds){};
	for (size_t i = 1; i <= STORE_LISTS_MAX && !error; i++) {
		if (!lists->list[i].name[0])
			continue;
		error = store_feed(store, lists->list[i].name, &feeds->feed[i]);
		feeds->is_any |= !error;
		/* A damaged entry is forgotten by the next fetch. */
		if (error == -ENOENT || error == -EBADMSG)
			error = 0;
	}
	return error;
}
