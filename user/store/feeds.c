// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What is known of the fetches of lists by URL. The database "feeds" is made with its first entry. Versions that do not
 * know it leave it alone, so it needs no schema of its own.
 */
#include <errno.h>
#include <string.h>

#include "base/safe_text.h"
#include "store/internal.h"

#define FEEDS "feeds"

_Static_assert(sizeof(struct store_feed) == 64 + STORE_ETAG_BYTES + STORE_MODIFIED_BYTES + STORE_WHY_BYTES,
	       "feed value layout");

static bool is_time(__s64 second)
{
	return second >= 0 && second <= STORE_TIME_MAX_MS;
}

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

	return list->stale_s && silent_s > list->stale_s ? silent_s : 0;
}

static MDB_val key_of(const char *list)
{
	return (MDB_val){ strlen(list), (void *)list };
}

int store_feed(struct store *store, const char *list, struct store_feed *feed)
{
	const MDB_val key = key_of(list);
	int error = store_late_get(store, FEEDS, &key, feed, sizeof(*feed));

	if (!error && !store_feed_is_sound(feed))
		error = -EBADMSG;
	if (error)
		*feed = (struct store_feed){};
	return error;
}

int store_feed_put(struct store *store, const char *list, const struct store_feed *feed)
{
	MDB_val key = key_of(list), value = { sizeof(*feed), (void *)feed };
	MDB_dbi db;
	int status = mdb_dbi_open(store->write, FEEDS, MDB_CREATE, &db);

	return status ? environment_write_error(store->env, status) : store_pair_put(store, db, &key, &value, 0);
}

int store_feed_forget(struct store *store, const char *list)
{
	MDB_val key = key_of(list);
	MDB_dbi db;
	int status = mdb_dbi_open(store->write, FEEDS, 0, &db);

	if (status == MDB_NOTFOUND)
		return 0;
	return status ? environment_write_error(store->env, status) : store_pair_del(store, db, &key);
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
