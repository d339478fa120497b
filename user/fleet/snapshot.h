/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reads the whole state of a list while publishers change it: notes the last entry, reads all buckets, then reads the
 * log from the noted entry on. A rule that was changed meanwhile may come with its old or new value from its bucket; its
 * last line from the log then decides.
 */
#ifndef XDP_CUCKOO_SNAPSHOT_H
#define XDP_CUCKOO_SNAPSHOT_H

#include "fleet/broker.h"

/* The end of a list at the broker. */
struct list_head {
	struct fleet_position last; /* 0-0: there is no list */
	__u64 rules, buckets;
};

int list_head_read(struct broker *broker, const char *fleet, const char *list, struct list_head *head,
		   struct reason *reason);

/* In two steps, for many lists at once. The reply is that of list_head_put(). */
void list_head_put(struct broker *broker, const char *fleet, const char *list);
/* 0; -EBADMSG. */
int list_head_of(const redisReply *reply, struct list_head *head, struct reason *reason);

/* One entry of a log, out of a reply of XRANGE or XREAD. The texts belong to the reply. */
struct log_entry {
	struct fleet_position at, base;
	bool has_base, is_awaited; /* a publisher waits for the reports of hosts */
	const char *rules;         /* lines; NULL: none */
	size_t rules_bytes;
};

/* 0; -EPROTO: fleet.lua does not write it. Then `at` is its id, if that is two numbers. */
int log_entry_of(const redisReply *reply, struct log_entry *entry);

/*
 * Calls `take` for each line of the list (see log_line_parse()), without the line's end but with a final 0. *at is the
 * position that these lines lead to; 0-0: there is no such list. A line that is too long to be a rule comes as another
 * one that nobody can read. Calls `between`, unless it is NULL, when no reply is due: it may ask the broker. 0;
 * -ESTALE: the log was cut or has forked meanwhile: begin anew; -EBADMSG: a key of the list is not what a fleet has;
 * -EREMOTEIO: the broker does not read it; the error of `take` or `between`, or another -errno, with the reason.
 */
typedef int snapshot_take(char *line, size_t length, void *context);
typedef int snapshot_between(void *context, struct reason *reason);

int snapshot_read(struct broker *broker, const char *fleet, const char *list, snapshot_take *take,
		  snapshot_between *between, void *context, struct fleet_position *at, struct reason *reason);

#endif
