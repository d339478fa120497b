/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Makes the lists of this host what a fleet says. A list of the fleet is a named list of the store, beside rules by hand
 * and other lists. Its source names the fleet and the position, so that rules and position change in one transaction:
 *
 *   fleet NAME ID POSITION refused N
 *
 * Rules that this host must not have are left out and counted as refused. They are tried again now and then.
 */
#ifndef XDP_CUCKOO_APPLY_H
#define XDP_CUCKOO_APPLY_H

#include "change/change.h"
#include "fleet/follow_messages.h"
#include "host/protected_flows.h"
#include "rule/rule_set.h"

#define APPLY_REFUSED_KEPT 1000 /* refused rules of a list that are tried again; more are only counted */

struct apply_refused {
	struct rule rule;
	__s64 ended_ms; /* by fleet_now_ms(): when the rule ends; 0: never */
};

struct apply_list {
	char name[ABI_NAME_BYTES];
	struct fleet_position at; /* of the store */
	__u64 rules;              /* of the store */
	bool is_moved;            /* `at` is another than the reader believes */

	/* What came since the last apply. A negative timeout: the rule is to be deleted. */
	struct rule_set changes;
	struct fleet_position changes_at;
	bool has_changes, is_whole, is_complete; /* is_whole: `changes` is all that the list has */

	struct apply_refused *refused;
	size_t refused_kept;
	__u64 refused_count;
	struct reason why; /* of the last refusal */
	bool is_held;      /* the last whole state was refused: it would drop too much */
};

struct apply {
	const struct fleet_options *options;
	const char *fleet, *state, *name; /* `state` and `name` of the filter: see session_open() */
	char id[FLEET_ID_BYTES];          /* of the fleet; "": no contact yet */
	__s64 offset_ms;                  /* the broker's clock minus fleet_now_ms() */
	bool is_accepted;                 /* no limit to what a whole state drops */
	char broker[96];                  /* rule text of the broker's packets, which must stay; "": not known */
	struct apply_list lists[FOLLOW_LISTS_MAX];
	size_t count;
	__u64 changed;        /* rules added or deleted so far */
	struct reason undone; /* what became of an unconfirmed change whose time was over; "": nothing to say */
};

/* Reads positions from the store; there may be none yet. -EEXIST: a list of that name comes from elsewhere. */
int apply_open(struct apply *apply, struct reason *reason);
void apply_close(struct apply *apply);

/* Take what the reader sends. 0; -ENOMEM. apply_begin(): a whole state follows. */
int apply_lines(struct apply *apply, struct apply_list *list, char *lines, size_t bytes);
void apply_begin(struct apply_list *list);
void apply_forget(struct apply_list *list);

/*
 * Applies what came of all lists, each as one change. *failed: lists that were not applied, as bits; the reason is that
 * of the last one. 0; -errno: the store cannot be opened, nothing was applied.
 */
int apply_commit(struct apply *apply, __u64 *failed, struct reason *reason);

/*
 * Looks whether the store has the lists as believed: another command may have deleted one. -ESTALE: then at least one list
 * has is_moved; other -errno.
 */
int apply_look(struct apply *apply, struct reason *reason);

/* Tries the refused rules again. The host's addresses may have changed. */
int apply_retry_refused(struct apply *apply, struct reason *reason);

#endif
