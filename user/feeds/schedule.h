/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* When a list by URL is to be fetched, and how. Knows no clock: `now_s` is the time, `random` any number. */
#ifndef XDP_CUCKOO_FEED_SCHEDULE_H
#define XDP_CUCKOO_FEED_SCHEDULE_H

#include "config/config.h"
#include "store/store.h"

#define FEED_RETRY_MIN_S 60
#define FEED_RETRY_MAX_S (6 * 3600)

/* Stands for URL and options of a list: struct store_feed. Never 0. */
__u64 feed_config_hash(const struct config_list *list);

/* What the store and messages call the source of the list: its URL without what comes after '?', which may be secret. */
const char *feed_source(const struct config_list *list, char text[CONFIG_URL_BYTES]);

/* Whether a fetch is due. Another configuration is due at once, and so is a time that a wrong clock has set. */
bool feed_is_due(const struct store_feed *feed, const struct config_list *list, __s64 now_s);

/*
 * How long the publisher forbids another fetch, in seconds; 0: it does not. The list has a preset with a shortest time, or
 * the server has asked to wait.
 */
__s64 feed_forbidden_s(const struct store_feed *feed, const struct config_list *list, __s64 now_s);

/*
 * Whether this host has what the publisher's ETag stands for: nobody has changed the list since, and the rules' timeouts
 * need not start again yet.
 */
bool feed_is_level(const struct store_feed *feed, const struct config_list *list, const struct store_list *stored,
		   __s64 now_s);

/* A fetch succeeded: the next is in `every` and up to a tenth more, so that hosts do not come all at once. */
void feed_note_success(struct store_feed *feed, const struct config_list *list, __s64 now_s, __u32 random);

/*
 * A fetch failed. The next is in a minute, then in two, four, ..., but in six hours at most; half of this time is random.
 * Not before the server wants.
 */
void feed_note_failure(struct store_feed *feed, const struct config_list *list, const char *why, __s64 retry_after_s,
		       __s64 now_s, __u32 random);

#endif
