/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Lists by URL: when they are due, and what a process without privileges makes of them. */
#ifndef XDP_CUCKOO_FEEDS_H
#define XDP_CUCKOO_FEEDS_H

#include <jansson.h>

#include "base/unprivileged.h"
#include "config/config.h"
#include "feed/list_keeper.h"
#include "store/store.h"

/* Decides when a list by URL is fetched. Reads no clock: `now_s` is the time, `random` any number. */

#define FEED_RETRY_MIN_S 60
#define FEED_RETRY_MAX_S (6 * 3600)

/*
 * The source of the list in the store and in messages: its countries, its autonomous systems, or its URLs up to '?'. The
 * rest of a URL may be secret.
 */
const char *feed_source(const struct config_list *list, char text[CONFIG_URL_BYTES]);

/* If the last successful fetch of a list is older than this, the list counts as not fed. */
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

/*
 * The process that fetches a list by URL sends this to the process that imports it: a struct feed_message, then rules
 * in their canonical text, one per line. The sender has read hostile bytes, so the receiver trusts nothing.
 */

#define FEED_TEXT_MAX (256ULL << 20)
#define FEED_WAIT_MAX_S 86400 /* the longest that a server can ask this host to stay away */

enum feed_outcome { FEED_FETCHED, FEED_UNMODIFIED, FEED_FAILED, FEED_OUTCOMES };

struct feed_message {
	__u32 outcome;
	__u32 bad_lines; /* that were left out */
	__u64 bytes;     /* of the text that follows */
	__s64 retry_after_s;
	char etag[STORE_ETAG_BYTES], modified[STORE_MODIFIED_BYTES];
	char servers[HOST_SERVERS_BYTES]; /* for list_keeper_note_servers() */
	char why[STORE_WHY_BYTES]; /* why the fetch failed; "": it did not */
	char first_bad[STORE_WHY_BYTES];
};

/* Whether an honest process could have sent the message. Shortens times that are too long. */
bool feed_message_is_sound(struct feed_message *message);

/*
 * Receives a message. Writes the text to *text, a file in memory that the caller closes; -1: there is none. 0; -EPROTO:
 * not sound; -ETIMEDOUT: not here by `deadline_ms` of CLOCK_MONOTONIC; -ECONNRESET; other -errno.
 */
int feed_receive(int fd, __s64 deadline_ms, struct feed_message *message, int *text);

/*
 * Fetches a list by URL, and reads it. An attacker may have made the list, so a process without privileges does both.
 * It sends the rules in their canonical text. The caller must read this text strictly.
 */

#define FETCH_BYTES_MAX (128 << 20) /* of all parts of a list, unpacked */

struct fetch_request {
	const struct config_list *list;
	const char *etag, *modified; /* of what this host has; "": fetch it in any case */
};

/* The process that fetches a list. It sends its message by `deadline_ms`, or it hangs. */
struct fetch {
	struct unprivileged process;
	__s64 deadline_ms; /* of CLOCK_MONOTONIC */
};

/* Starts the process. 0; -errno: there is none. fetch_end() and unprivileged_stop() end it. */
int fetch_start(struct fetch *fetch, const struct fetch_request *request, struct reason *reason);

/*
 * Call it when the process has sent something, or at the deadline. Always fills `message`; its outcome is FEED_FAILED with
 * a reason if anything fails. *text is a file in memory with the rules, which the caller closes; -1: there is none.
 */
void fetch_end(struct fetch *fetch, struct feed_message *message, int *text);

#define FETCH_SHA256_HEX 64

/* Finds the hash in the page of sha256-url: "HASH", "HASH  NAME" or "SHA256 (NAME) = HASH". NULL: there is none. */
const char *fetch_find_sha256(const char *text);

/*
 * The reader of CrowdSec's decisions, for list_keeper.h. It asks the local API (LAPI) by HTTP, in a process without
 * privileges. The first answer has all decisions, and so has the one after an error, the one after many changes and one in an hour. Other answers
 * have what has changed. The LAPI remembers what it has sent: after a lost answer only a whole one is right.
 */

struct crowdsec_start {
	const struct crowdsec_options *options;
	/* Is called when the LAPI fails and when it answers again, and for decisions that do not become rules. */
	void (*note)(const char *text);
	char *ca, *cert, *cert_key, *headers; /* the texts of the files: see crowdsec_open() */
};

/* Reads the files that the options name: the reader is not allowed to. 0; -errno. Close it after an error as well. */
int crowdsec_open(struct crowdsec_start *start, const struct crowdsec_options *options, struct reason *reason);
void crowdsec_close(struct crowdsec_start *start);

/* For struct list_keeper, with a struct crowdsec_start as the context. */
void crowdsec_run(const void *start, int out);
bool crowdsec_may_add(const void *start, const struct rule *rule);
bool crowdsec_take_status(const char *line, char source[STORE_SOURCE_BYTES]);
void crowdsec_answer(const struct list_keeper *keeper, struct session *session, int to);

/* For these two sides only: the poller's line about its decisions, and the room for the origin of one. */
#define CROWDSEC_STATUS "# decisions %llu left-out %llu unreadable %llu"
#define CROWDSEC_ORIGIN_BYTES 64

/* Adds to the number of this name. */
void crowdsec_sum(json_t *sums, const char *key, json_int_t more);

#endif
