/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Changes a list at the broker. Every change goes through the outbox: durable here, then sent, then kept until enough
 * replicas have it. After a lost connection the publisher finds the master again and sends the outbox anew.
 */
#ifndef XDP_CUCKOO_PUBLISHER_H
#define XDP_CUCKOO_PUBLISHER_H

#include "fleet/broker.h"
#include "fleet/outbox.h"
#include "rule/rule.h"

struct publisher {
	const struct fleet_options *options;
	const char *fleet, *list, *dir;
	struct broker broker;
	struct outbox outbox;
	char *lines; /* of the next entry */
	size_t bytes;
	unsigned int count;
	bool has_expected; /* the next entry is only for a list whose last entry is `expected` */
	struct fleet_position expected;
	struct fleet_position first,
		last;          /* the first entry of this process, 0-0: none yet; the last one of the list */
	bool is_awaited;       /* hosts report at once that they have the entries of this process */
	bool is_mixed;         /* somebody else has changed the list between entries of this process */
	__u64 changed, rules;  /* rules that the broker changed for this process; rules of the list */
	__s64 clock_ms;        /* when the broker's clock was read */
	__u64 resent;          /* entries of earlier processes */
	unsigned int replicas; /* that have the last entry */
	bool is_late;          /* the last WAIT ended with too few replicas */
};

/*
 * Opens the outbox in `dir`, finds the master, and sends what earlier processes left. 0; -errno with the reason.
 * publisher_close() accepts a half-opened struct.
 */
int publisher_open(struct publisher *publisher, const struct fleet_options *options, const char *fleet,
		   const char *list, const char *dir, struct reason *reason);
void publisher_close(struct publisher *publisher);

/*
 * For a publisher that waits for more changes: publisher_pause() lets other processes have the outbox.
 * publisher_resume() takes it back, and looks at the broker's clock again; call it before each group of changes.
 */
void publisher_pause(struct publisher *publisher);
int publisher_resume(struct publisher *publisher, struct reason *reason);

/*
 * publisher_put() queues a change of one rule, with the time that the rule has left. publisher_flush() makes all queued
 * changes durable, sends them, and waits for replicas. If it fails, they stay in the outbox. -ESTALE: somebody else has
 * changed the list since `expected`; nothing was changed.
 */
int publisher_put(struct publisher *publisher, const struct rule *rule, bool is_added, struct reason *reason);
int publisher_flush(struct publisher *publisher, struct reason *reason);

/*
 * Loads the functions of fleet.lua, in place of older ones, and makes the fleet if there is none. *id gets its id.
 * `log_entries`: how many entries the log of a list keeps. 0; -errno with the reason.
 */
int functions_load(struct broker *broker, const char *fleet, unsigned int log_entries, char id[FLEET_ID_BYTES],
		   struct reason *reason);

#endif
