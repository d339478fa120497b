// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The lists of a store, in memory and in the database; and what is known of their fetches by URL. While a change is pending,
 * each list has two records (WORLD_NOW, WORLD_UNDONE), and a number stays taken even if neither is a list any more: rules
 * as undone may have it.
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

static MDB_val list_write(const struct store_list *list, size_t number, __u8 bytes[LIST_VALUE_BYTES])
{
	const struct list_value value = { .rules = list->rules,
					  .imported_s = list->imported_s,
					  .number = number,
					  .is_deleted = !list->name[0],
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

/*
 * An entry of database "undo_lists": a byte of these bits, and the list and the feed that they name. A list without an entry
 * is the same in both worlds.
 */
#define KEPT_LIST 1
#define KEPT_FEED 2
#define KEPT_FEED_STAYS 4 /* the feed is the same in both worlds */
#define KEPT_BYTES (1 + LIST_VALUE_BYTES + sizeof(struct store_feed))

static int list_load(const struct store_pair *entry, void *context)
{
	struct store_lists_state *state = context;
	struct list_value value;
	struct store_list list;

	if (list_read(&entry->key, &entry->value, &value, &list) || state->known & BIT(value.number))
		return -EBADMSG;
	strcpy(state->name[value.number], list.name);
	state->known |= BIT(value.number);
	if (!value.is_deleted)
		state->now.list[value.number] = list;
	return 0;
}

static unsigned int number_of(const struct store_lists_state *state, const MDB_val *name)
{
	for (unsigned int i = 1; i <= STORE_LISTS_MAX; i++)
		if (strlen(state->name[i]) == name->mv_size && !memcmp(state->name[i], name->mv_data, name->mv_size))
			return name->mv_size ? i : 0;
	return 0;
}

static int undone_load(const struct store_pair *entry, void *context)
{
	struct store *store = context;
	const __u8 *kept = entry->value.mv_data;
	const size_t bytes = entry->value.mv_size;
	const size_t feed_bytes = bytes && *kept & KEPT_FEED ? sizeof(struct store_feed) : 0;
	const unsigned int number = number_of(&store->lists, &entry->key);
	struct undone_feed *feed = &store->undone_feed[number];
	struct store_list *list = &store->lists.undone.list[number];
	MDB_val value = { bytes - 1 - feed_bytes, (void *)(kept + 1) };
	struct list_value ignored;

	if (!number || bytes < 1 + feed_bytes || *kept >= 2 * KEPT_FEED_STAYS)
		return -EBADMSG;
	feed->is_kept = !(*kept & KEPT_FEED_STAYS);
	feed->is_there = feed_bytes != 0;
	memcpy(&feed->feed, kept + bytes - feed_bytes, feed_bytes);
	if (*kept & KEPT_LIST)
		return list_read(&entry->key, &value, &ignored, list);
	*list = (struct store_list){};
	return 0;
}

static int lists_read(const struct store *store, MDB_txn *txn, struct store_lists_state *state)
{
	*state = (struct store_lists_state){};
	return store_pairs_each(txn, store->lists_db, list_load, state);
}

int store_lists_begin(struct store *store)
{
	int error = lists_read(store, store->write, &store->lists);

	if (error || !store->meta.pending_id)
		return error;
	store_lists_part(store);
	return store_pairs_each(store->write, store->undo_lists_db, undone_load, store);
}

void store_lists_part(struct store *store)
{
	store->lists.undone = store->lists.now;
	memset(store->undone_feed, 0, sizeof(store->undone_feed));
}

static int save_undone(struct store *store, unsigned int number)
{
	const struct undone_feed *feed = &store->undone_feed[number];
	struct store_list list = store->lists.undone.list[number];
	__u8 room[KEPT_BYTES] = { list.name[0] ? KEPT_LIST : 0 };
	MDB_val name = store_key(store->lists.name[number]), entry = { 1, room };

	list.rules = store->lists.now.list[number].rules;
	if (!feed->is_kept && !memcmp(&list, &store->lists.now.list[number], sizeof(list)))
		return store_pair_del(store, store->undo_lists_db, &name);
	if (*room)
		entry.mv_size += list_write(&list, number, room + 1).mv_size;
	if (!feed->is_kept) {
		*room |= KEPT_FEED_STAYS;
	} else if (feed->is_there) {
		*room |= KEPT_FEED;
		memcpy(room + entry.mv_size, &feed->feed, sizeof(feed->feed));
		entry.mv_size += sizeof(feed->feed);
	}
	return store_pair_put(store, store->undo_lists_db, &name, &entry, 0);
}

int store_lists_save(struct store *store)
{
	const struct store_lists_state *state = &store->lists;
	int error = store_pairs_drop(store, store->lists_db);

	for (size_t i = 1; i <= STORE_LISTS_MAX && !error; i++) {
		__u8 room[LIST_VALUE_BYTES];
		MDB_val name = store_key(state->name[i]), bytes;

		if (!(state->known & BIT(i)))
			continue;
		bytes = list_write(&state->now.list[i], i, room);
		error = store_pair_put(store, store->lists_db, &name, &bytes, 0);
		if (!error && store->meta.pending_id)
			error = save_undone(store, i);
	}
	return error;
}

int store_lists(struct store *store, struct store_lists *lists)
{
	STORE_VIEW view = store_view(store);
	struct store_lists_state state;
	int error = view.error;

	if (!error && view.txn != store->write)
		error = lists_read(store, view.txn, &state);
	if (!error)
		*lists = view.txn == store->write ? store->lists.now : state.now;
	return error;
}

unsigned int store_lists_find(const struct store_lists *lists, const char *name)
{
	for (size_t i = 1; i <= STORE_LISTS_MAX && *name; i++)
		if (!strcmp(lists->list[i].name, name))
			return i;
	return 0;
}

/* ---- their rules ---- */

/* Of the worlds, as bits, the next one in which the list exists. NULL: there is none. */
static struct store_list *next_record(struct store *store, unsigned int *worlds, unsigned int number)
{
	while (*worlds) {
		struct store_lists *lists = *worlds & WORLD_NOW ? &store->lists.now : &store->lists.undone;

		*worlds &= *worlds - 1;
		if (lists->list[number].name[0])
			return &lists->list[number];
	}
	return NULL;
}

/* Rules of these lists, as bits, come or go. Neither an import nor an undo edits a list. */
static void edit(struct store *store, unsigned int worlds, __u64 lists)
{
	struct store_list *list;
	__u64 left = store->is_undoing ? 0 : lists & ~store->lists.imported & ~BIT(STORE_BY_HAND);

	for (; left; left &= left - 1)
		for (unsigned int in = worlds; (list = next_record(store, &in, __builtin_ctzll(left)));)
			store->lists.is_changed = list->is_edited = true;
}

void store_lists_count(struct store *store, unsigned int worlds, const struct store_owners *before,
		       const struct store_owners *now)
{
	const __u64 more = store_owners_all(now), changed = (store_owners_all(before) ^ more) & ~BIT(STORE_BY_HAND);

	edit(store, worlds, changed & (more | store_owners_now(before, store->clock.now_ms)));
	for (__u64 left = worlds & WORLD_NOW ? changed : 0; left; left &= left - 1) {
		struct store_list *list = &store->lists.now.list[__builtin_ctzll(left)];
		const bool is_more = more & left & -left;

		if (is_more || list->rules)
			list->rules += is_more ? 1 : -1;
		store->lists.is_changed = true;
	}
}

__u64 store_lists_now(const struct store *store)
{
	__u64 lists = 0;

	for (unsigned int i = 1; i <= STORE_LISTS_MAX; i++)
		lists |= store->lists.now.list[i].name[0] ? BIT(i) : 0;
	return lists;
}

void store_lists_clear(struct store *store)
{
	const __u64 known = store->lists.known;

	for (unsigned int i = 1; i <= STORE_LISTS_MAX; i++) {
		edit(store, WORLD_NOW, store->lists.now.list[i].rules ? BIT(i) : 0);
		store->lists.now.list[i].rules = 0;
	}
	/* Of a list as undone nobody counts the rules. */
	edit(store, store_worlds(store) & WORLD_UNDONE, known);
	store->lists.is_changed |= known != 0;
}

/* ---- changing them ---- */

static void list_begin(struct store_list *list, const char *name, const char *source)
{
	if (list->name[0] && !source)
		return;
	*list = (struct store_list){ .rules = list->rules, .imported_s = source && time(NULL) > 0 ? time(NULL) : 0 };
	strncpy(list->name, name, sizeof(list->name) - 1);
	if (source && strlen(source) < sizeof(list->source) && rule_is_plain(source) && rule_is_utf8(source))
		strcpy(list->source, source);
}

int store_list_open(struct store *store, const char *name, const char *source, unsigned int *number)
{
	struct store_lists_state *state = &store->lists;
	const MDB_val key = store_key(name);

	*number = number_of(state, &key);
	for (unsigned int i = 1; i <= STORE_LISTS_MAX && !*number; i++)
		if (!(state->known & BIT(i)))
			*number = i;
	if (!*number)
		return -EUSERS;
	state->is_changed |= source || !state->now.list[*number].name[0];
	state->imported |= source ? BIT(*number) : 0;
	state->known |= BIT(*number);
	strncpy(state->name[*number], name, sizeof(state->name[0]) - 1);
	list_begin(&state->now.list[*number], name, source);
	if (store_has_earlier_pending(store))
		list_begin(&state->undone.list[*number], name, source);
	return 0;
}

int store_list_put(struct store *store, const struct store_list *list, unsigned int *number)
{
	unsigned int worlds = store_worlds(store);
	struct store_list *to;
	int error = store_list_open(store, list->name, list->source, number);

	while (!error && (to = next_record(store, &worlds, *number))) {
		to->imported_s = list->imported_s;
		to->is_edited = list->is_edited;
	}
	return error;
}

void store_list_expect(struct store *store, unsigned int number, __s64 stale_s)
{
	unsigned int worlds = store_worlds(store);
	struct store_list *list;

	while ((list = next_record(store, &worlds, number)))
		list->stale_s = stale_s < ~0U ? stale_s : ~0U;
	store->lists.is_changed = true;
}

static void free_number(struct store_lists_state *state, unsigned int number)
{
	state->known &= ~BIT(number);
	state->name[number][0] = '\0';
}

int store_list_delete(struct store *store, unsigned int number)
{
	struct store_lists_state *state = &store->lists;
	int error;

	if (state->now.list[number].rules)
		return -ENOTEMPTY;
	error = store_feed_forget(store, state->name[number]);
	if (error)
		return error;
	state->now.list[number] = (struct store_list){};
	if (store_has_earlier_pending(store))
		state->undone.list[number] = (struct store_list){};
	if (!store->meta.pending_id)
		free_number(state, number);
	state->is_changed = true;
	return 0;
}

/* ---- undoing that ---- */

int store_lists_undo(struct store *store)
{
	int error = 0;

	for (unsigned int i = 1; i <= STORE_LISTS_MAX && !error; i++) {
		struct store_list *now = &store->lists.now.list[i], *undone = &store->lists.undone.list[i];
		struct undone_feed *feed = &store->undone_feed[i];
		const MDB_val name = store_key(store->lists.name[i]);
		MDB_val value = { sizeof(feed->feed), &feed->feed };

		undone->rules = now->rules;
		if (undone->name[0])
			*now = *undone;
		if (feed->is_kept)
			error = feed->is_there ? store_pair_put(store, store->feeds_db, &name, &value, 0) :
						 store_pair_del(store, store->feeds_db, &name);
	}
	return error;
}

void store_lists_undone(struct store *store)
{
	for (unsigned int i = 1; i <= STORE_LISTS_MAX; i++) {
		struct store_list *now = &store->lists.now.list[i];

		if (store->lists.undone.list[i].name[0])
			continue;
		/* It may have rules that were added later, one by one. */
		*now = (struct store_list){ .rules = now->rules, .is_edited = now->is_edited };
		if (now->rules)
			strcpy(now->name, store->lists.name[i]);
	}
}

int store_lists_join(struct store *store)
{
	for (unsigned int i = 1; i <= STORE_LISTS_MAX; i++)
		if (!store->lists.now.list[i].name[0])
			free_number(&store->lists, i);
	store->lists.is_changed = true;
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

__u64 store_list_left_out(const struct store_list *list, const struct store_feed *feed)
{
	const struct store_source source = store_source_parse(list->source);
	unsigned long long bad = 0;

	if (source.kind == STORE_SOURCE_CROWDSEC || source.kind == STORE_SOURCE_FLEET)
		return source.refused;
	sscanf(list->source, STORE_BAD_LINES, &bad);
	/* After an import by hand, the feed has the number of an older one. */
	return bad || feed->imported_s != list->imported_s ? bad : feed->left_out;
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
	const MDB_val key = store_key(list);
	int error = store_late_get(store, "feeds", &key, feed, sizeof(*feed));

	if (!error && !store_feed_is_sound(feed))
		error = -EBADMSG;
	if (error)
		*feed = (struct store_feed){};
	return error;
}

/* Before a feed changes in force. */
static void keep_feed(struct store *store, const MDB_val *list)
{
	const unsigned int number = number_of(&store->lists, list);
	struct undone_feed *undone = &store->undone_feed[number];

	if (!number || !store->meta.pending_id)
		return;
	if (store->makes_pending && !undone->is_kept)
		undone->is_there = !store_feed(store, store->lists.name[number], &undone->feed);
	undone->is_kept = store->makes_pending;
	store->lists.is_changed = true;
}

int store_feed_put(struct store *store, const char *list, const struct store_feed *feed)
{
	const MDB_val key = store_key(list);
	MDB_val value = { sizeof(*feed), (void *)feed };

	keep_feed(store, &key);
	return store_pair_put(store, store->feeds_db, &key, &value, 0);
}

int store_feed_forget(struct store *store, const char *list)
{
	const MDB_val key = store_key(list);

	keep_feed(store, &key);
	return store_pair_del(store, store->feeds_db, &key);
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
