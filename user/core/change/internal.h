/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the files of change/ share; no other folder includes this. From the lowest file to the highest: each calls only those
 * before it.
 */
#ifndef XDP_CUCKOO_CHANGE_INTERNAL_H
#define XDP_CUCKOO_CHANGE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "change/change.h"
#include "rule/rule.h"

/* ---- pending_keys.c: the keys of a change, until it is complete; in plain memory ---- */

/*
 * A key that is in the tables, or is an added key that the same change changes again. After the commit the store says
 * whether it stays, and until when.
 */
struct touched_key {
	struct rule_key key;
	bool gains;     /* a rule, or another end. If that is later, its entries get it before the commit */
	bool is_done;   /* they have it in all tables: nothing is left to do after the commit */
	bool is_absent; /* an added key whose rules were deleted again: it enters no table */
};

struct pending_keys {
	/* Keys that are in no table yet: 24 bytes for IPv4, 48 for IPv6. pending_keys_next() reads them. */
	struct added_words {
		__u64 *word;
		size_t used, room; /* words */
	} added[RULE_ACTIONS][FLOW_FAMILIES];
	size_t added_count, added_addresses; /* of all, those that belong to the addresses of a table */
	struct touched_key *touched; /* in the order of touching */
	size_t touched_count, touched_room;
	bool any_gains;    /* of any touched key */
	__u32 *place;      /* open addressing: an index into `touched` + 1, or 0 */
	size_t places;     /* a power of two */
};

/* Adds a key. 0; -ENOMEM: nothing has changed. */
int pending_keys_add(struct pending_keys *keys, const struct rule_key *key, __s64 timeout_ms);

/* An added key. Zeroed, it is before the first. */
struct added_key {
	struct rule_key key;
	__s64 timeout_ms;
	enum flow_family family;
	size_t at;
};

/* Goes to the next added key of the action: IPv4 first, each family in the order of adding. False: no key is left. */
bool pending_keys_next(const struct pending_keys *keys, enum rule_action action, struct added_key *added);

/* Touches a key, or notes that a touched one gains, too. 0; -ENOMEM. */
int pending_keys_touch(struct pending_keys *keys, const struct rule_key *key, bool gains);

/* NULL: the key is not touched. The pointer is valid until the next pending_keys_touch(). */
struct touched_key *pending_keys_touched(const struct pending_keys *keys, const struct rule_key *key);

/* Frees the memory. Accepts a zeroed struct. */
void pending_keys_close(struct pending_keys *keys);

/* ---- the change ---- */

/* After how many ms a flow of the guard is blocked by the rules from before the change: see struct query_block. */
#define GUARD_VIEWS 4
struct flow_was_blocked {
	__s64 in_ms[GUARD_VIEWS]; /* in each view of lockout.c */
	__u64 rate;               /* that limited it; 0: none */
};

struct open_change {
	struct pending_keys keys;             /* the added ones enter the tables when the change is allowed */
	struct flow_was_blocked *was_blocked; /* for each flow of the guard */
	bool was_void;                        /* change_find_void() */
	bool is_cleared;                      /* in place; a refill is the way out if keys or kinds lack room */
	__u64 steps;                          /* rules that the change has added or deleted so far */
	struct shape_list shapes;             /* as committed */
};

/* ---- names.c ---- */

/* Sets the reason: the store cannot be written. Returns `error`. */
int change_unwritten_reason(int error, struct reason *reason);

/* ---- filter_change.c ---- */

void filter_change_begin(struct filter *filter);
void filter_change_refill(struct filter *filter);
void filter_change_replace(struct filter *filter, enum filter_cause cause);
void filter_change_keys_in(struct filter *filter);

/*
 * When prefix lengths are joined anew, no running table fits, and all are replaced. change_can_replace_all(): whether
 * that is possible. Where it is not, change_replace_all() has the table refilled in place.
 */
bool change_can_replace_all(const struct session *session);
void change_replace_all(struct session *session);

/* ---- entries.c ---- */

/* Whether any table takes the keys of the change before the commit. */
bool any_table_takes_keys(const struct session *session);

/*
 * Within a change, while its rules change in the store; no table changes. entries_hold() keeps a new key. entries_touch()
 * notes a key that is in the tables: it gains a rule or another end, or it loses a rule.
 */
int entries_hold(struct session *session, const struct rule_key *key, __s64 timeout_ms, struct reason *reason);
int entries_touch(struct session *session, const struct rule_key *key, bool gains, struct reason *reason);

/*
 * Before the commit: entries_insert() publishes the new shapes and puts the held keys into all tables, those of pass rules
 * first. Here packets see a change first. entries_take_back() deletes the keys again from a table in which nothing else
 * has changed. Not 0: some are left.
 */
int entries_insert(struct session *session, struct reason *reason);
int entries_take_back(const struct session *session, struct filter *filter);

/*
 * After the commit: sets the policies, and deletes the keys that no rule has any more, those of drop rules before those of
 * pass rules. Then takes the old shapes away.
 */
int entries_finish(struct session *session, struct filter *filter, struct reason *reason);

/* ---- pending.c ---- */

/*
 * Moves the deadline of a pending change on, so that it is not undone while its next step runs. ..._by_rule()
 * does so only now and then, since a rule is a small step.
 */
int change_extend_deadline(struct session *session, struct reason *reason);
int change_extend_deadline_by_rule(struct session *session, struct reason *reason);

/* The change is complete: starts the time to confirm. If that fails, the operator only gets more time. */
void change_start_pending(struct session *session);

/* All filters filter again. Returns whether one of them waited for `confirm`. */
bool change_confirm_filters(struct session *session);

/* ---- lockout.c ---- */

/* Before a change: notes which flows of the guard are blocked. 0; -errno. */
int change_record_blocked(struct session *session);

/* Notes that a rule is left out: it is not added, or stays as it was. *count, if not NULL, had counted it. */
void change_leave_out(struct change_equal *equal, struct rule rule, __u64 *count, const struct reason *why);

/*
 * For change_make_equal(), when all else is done. What stays blocked makes change_check_guard() refuse the change. A trial
 * finds the pass rules that must stay; what it takes back may come again.
 */
int change_leave_out_blockers(struct session *session, struct change_equal *equal, bool is_trial,
			      struct reason *reason);

/* ---- commit.c ---- */

/* Ends the current change, if any: frees its keys and the new tables that were not used. */
void change_forget(struct session *session);

/* ---- whole_changes.c ---- */

/* Undoes the pending change if its time is over. session->undone has the result. */
void change_undo_overdue(struct session *session);

#endif
