/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Decides when a list by URL is fetched. Reads no clock: `now_s` is the time, `random` any number. */
#ifndef XDP_CUCKOO_FEED_SCHEDULE_H
#define XDP_CUCKOO_FEED_SCHEDULE_H

#include "config/config.h"
#include "store/store.h"

#define FEED_RETRY_MIN_S 60
#define FEED_RETRY_MAX_S (6 * 3600)

/* A hash of the URL and options of a list, which struct store_feed keeps. Never 0. */
__u64 feed_config_hash(const struct config_list *list);

/* The source of the list in the store and in messages: its URL up to '?'. The rest may be secret. */
const char *feed_source(const struct config_list *list, char text[CONFIG_URL_BYTES]);

/* A list whose last fetch that succeeded is older counts as not fed. */
__s64 feed_stale_s(const struct config_list *list);

/* Whether a fetch is due. It is due at once if the configuration has changed, or if a wrong clock set the next time. */
bool feed_is_due(const struct store_feed *feed, const struct config_list *list, __s64 now_s);

/*
 * How long the list's provider forbids another fetch, in seconds; 0: it does not. The preset may have a shortest time,
 * or the server has asked to wait.
 */
__s64 feed_forbidden_s(const struct store_feed *feed, const struct config_list *list, __s64 now_s);

/*
 * Whether this host still has the version of the list that the stored ETag names: nobody has changed the list since.
 * Also false if the timeouts of the rules must start again soon.
 */
bool feed_is_level(const struct store_feed *feed, const struct config_list *list, const struct store_list *stored,
		   __s64 now_s);

/* A fetch succeeded. The next is due after `every` and up to a tenth more, so that not all hosts fetch at once. */
void feed_note_success(struct store_feed *feed, const struct config_list *list, __s64 now_s, __u32 random);

/*
 * A fetch failed. The next is due after a minute, then after two, four, ..., at most six hours. Half of this time is
 * random. If the server asks for a longer wait, the next is due after that.
 */
void feed_note_failure(struct store_feed *feed, const struct config_list *list, const char *why, __s64 retry_after_s,
		       __s64 now_s, __u32 random);

#endif
