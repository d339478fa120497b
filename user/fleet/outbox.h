/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The changes of one list that a publisher has made, on disk until enough replicas have them. A change is written
 * here before it is sent, so a killed publisher sends it again; its counter tells the broker that it is the same one.
 * Knows no broker.
 *
 * The file is text: a first line with the publisher's random name, then records, each ended by a line of its own:
 *
 *   entry COUNTER EXPECTED BYTES     and that many bytes of lines, then: end COUNTER
 *   sent COUNTER                     the broker has answered all up to this one
 *   refused COUNTER                  the broker refuses this one
 *   done COUNTER                     enough replicas have all up to this one
 */
#ifndef XDP_CUCKOO_OUTBOX_H
#define XDP_CUCKOO_OUTBOX_H

#include "base/error_reason.h"
#include "fleet/fleet.h"

#define OUTBOX_NAME_BYTES 33

/* What the broker did with the entries up to `counter`; OUTBOX_REFUSED: with this one alone. */
enum outbox_mark {
	OUTBOX_SENT,    /* it has answered them */
	OUTBOX_REFUSED, /* the entry leaves the outbox */
	OUTBOX_DONE,    /* enough replicas have them: they leave the outbox */
};

struct outbox_entry {
	__u64 counter;
	bool has_expected; /* the broker refuses it unless the last entry of the list is `expected` */
	bool is_sent;
	bool may_be_seen; /* it was sent before, perhaps by an earlier process: the broker may have it */
	struct fleet_position expected;
	char *lines; /* separated by '\n' */
	size_t bytes;
};

struct outbox {
	int fd; /* -1: closed */
	char path[4096];
	char publisher[OUTBOX_NAME_BYTES];
	__u64 counter; /* the last one used */
	struct outbox_entry *entries;
	size_t count;
};

/*
 * Opens the outbox of the list in the directory `dir`, and makes both if necessary. Waits while another process has it.
 * A record that was not written to its end is dropped: it was never sent. 0; -EBADMSG: the file is damaged; other
 * -errno. outbox_close() accepts a struct whose fd is -1, and shortens the file if nothing waits.
 */
int outbox_open(struct outbox *outbox, const char *dir, const char *list, struct reason *reason);
void outbox_close(struct outbox *outbox);

/* Appends an entry in memory and in the file. outbox_sync() makes it durable; only then may it be sent. */
int outbox_add(struct outbox *outbox, const char *lines, size_t bytes, const struct fleet_position *expected,
	       struct reason *reason);
int outbox_sync(struct outbox *outbox, struct reason *reason);

/* Marks entries in memory and in the file. */
int outbox_mark(struct outbox *outbox, enum outbox_mark mark, __u64 counter, struct reason *reason);

#endif
