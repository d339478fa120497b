/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The process that fetches a list by URL sends this to the process that imports it: a struct feed_message, then rules
 * in their canonical text, one per line. The sender has read hostile bytes, so the receiver trusts nothing.
 */
#ifndef XDP_CUCKOO_FEED_MESSAGE_H
#define XDP_CUCKOO_FEED_MESSAGE_H

#include "store/store.h"

#define FEED_TEXT_MAX (256ULL << 20)
#define FEED_WAIT_MAX_S 86400 /* the longest that a server can ask this host to stay away */

enum feed_outcome { FEED_FETCHED, FEED_UNMODIFIED, FEED_FAILED, FEED_OUTCOMES };

struct feed_message {
	__u32 outcome;
	__u32 bad_lines; /* that were left out */
	__u64 bytes;     /* of the text that follows */
	__s64 retry_after_s;
	char etag[STORE_ETAG_BYTES], modified[STORE_MODIFIED_BYTES];
	char why[STORE_WHY_BYTES]; /* why the fetch failed; "": it did not */
	char first_bad[STORE_WHY_BYTES];
};

/* Sends the message, then message->bytes of `text`. 0; -errno. */
int feed_send(int fd, const struct feed_message *message, const char *text);

/* Whether the message is one that feed_send() could have sent. Shortens times that are too long. */
bool feed_message_is_sound(struct feed_message *message);

/*
 * Receives a message. Writes the text to *text, a file in memory that the caller closes; -1: there is none. 0; -EPROTO:
 * not sound; -ETIMEDOUT: not here by `deadline_ms` of CLOCK_MONOTONIC; -ECONNRESET; other -errno.
 */
int feed_receive(int fd, __s64 deadline_ms, struct feed_message *message, int *text);

#endif
