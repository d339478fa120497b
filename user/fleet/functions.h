/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Puts the functions of fleet.lua on the broker, and the fleet's meta. */
#ifndef XDP_CUCKOO_FUNCTIONS_H
#define XDP_CUCKOO_FUNCTIONS_H

#include "fleet/broker.h"

/*
 * Loads the functions, in place of older ones, and makes the fleet if there is none. *id gets its id. `log_entries`: how
 * many entries the log of a list keeps. 0; -errno with the reason.
 */
int functions_load(struct broker *broker, const char *fleet, unsigned int log_entries, char id[FLEET_ID_BYTES],
		   struct reason *reason);

/* Deletes the list, and lets hosts delete theirs until that time of the broker. -ENOENT: there is none. */
int functions_delete(struct broker *broker, const char *fleet, const char *list, __s64 until_ms, __u64 *rules,
		     struct reason *reason);

/*
 * Lets hosts with staged = yes delete the list, or takes that back. -ENOENT: there is no list, or no deletion was staged.
 * functions_is_leaving(): whether it is staged. -EREMOTEIO: this user may not know.
 */
int functions_stage_deletion(struct broker *broker, const char *fleet, const char *list, bool is_on, __u64 *rules,
			     struct reason *reason);
int functions_is_leaving(struct broker *broker, const char *fleet, const char *list, bool *is_leaving,
			 struct reason *reason);

/* So many rules are about to be published: if the list is empty, makes room for them, which is faster than to grow. */
int functions_reserve(struct broker *broker, const char *fleet, const char *list, __u64 rules, struct reason *reason);

/* Passes or filters on all hosts of the fleet. */
int functions_panic(struct broker *broker, const char *fleet, bool is_on, struct reason *reason);

#endif
