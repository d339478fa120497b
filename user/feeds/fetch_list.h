/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fetches a list by URL, and reads it. An attacker may have made the list, so a process without privileges does both.
 * It sends the rules in their canonical text. The caller must read this text strictly.
 */
#ifndef XDP_CUCKOO_FETCH_LIST_H
#define XDP_CUCKOO_FETCH_LIST_H

#include "base/unprivileged.h"
#include "config/config.h"
#include "feeds/feed_message.h"

#define FETCH_BYTES_MAX (128 << 20) /* of a list, unpacked */

struct fetch_request {
	const struct config_list *list;
	const char *etag, *modified; /* of what this host has; "": fetch it in any case */
};

/* The process that fetches a list. It sends its message by `deadline_ms`, or it hangs. */
struct fetch {
	struct unprivileged process;
	__s64 deadline_ms; /* as fetch_now_ms() counts */
};

__s64 fetch_now_ms(void);

/* Starts the process. 0; -errno: there is none. fetch_end() and unprivileged_stop() end it. */
int fetch_start(struct fetch *fetch, const struct fetch_request *request, struct reason *reason);

/*
 * Call it when the process has sent something, or at the deadline. Always fills `message`; its outcome is FEED_FAILED with
 * a reason if anything fails. *text is a file in memory with the rules, which the caller closes; -1: there is none.
 */
void fetch_end(struct fetch *fetch, struct feed_message *message, int *text);

/* In the process without privileges: makes rules of the bytes of a list. 0; -errno. The caller frees *rules. */
struct fetch_rules {
	char *text; /* one rule per line, sorted */
	size_t bytes, count;
	__u64 bad_lines;
	struct reason first_bad;
};
int fetch_read_rules(const struct config_list *list, char *bytes, size_t count, struct fetch_rules *rules,
		     struct reason *reason);

#define FETCH_SHA256_HEX 64

/* Finds the hash in the page of sha256-url: "HASH", "HASH  NAME" or "SHA256 (NAME) = HASH". NULL: there is none. */
const char *fetch_find_sha256(const char *text);

#endif
