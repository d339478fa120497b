/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Makes the lists of this host equal to those of a fleet. A list of the fleet is a named list of the store. Its source
 * names the fleet and the position, so that rules and position change in one transaction:
 *
 *   fleet NAME ID POSITION refused N
 *
 * Rules that this host must not have are left out and counted as refused. apply_retry_refused() tries them again.
 */
#ifndef XDP_CUCKOO_APPLY_H
#define XDP_CUCKOO_APPLY_H

#include "change/change.h"
#include "fleet/follow_internal.h"
#include "host/host.h"
#include "rule/rule_set.h"

#define APPLY_REFUSED_KEPT 1000 /* refused rules of a list that are tried again; others are only counted */

struct apply_refused {
	__u8 name[RULE_ENCODED_BYTES]; /* of rule_encode(), which costs too much for a look at each */
	struct rule rule;              /* a negative timeout: it was to be deleted */
	__s64 ended_ms;                /* by fleet_now_ms(): when the rule ends; 0: never */
};

struct apply_list {
	char name[ABI_NAME_BYTES];
	struct fleet_position at; /* its position in the store */
	__u64 rules;              /* in the store */
	bool is_stored;           /* the store had it when this process began */
	bool is_moved;            /* another command has changed `at`; the reader must start there */
	bool is_taken;            /* the store has a list of this name that is not from the fleet */

	/*
	 * What has come since the last commit. A negative timeout: delete the rule. is_whole: `changes` is the whole state;
	 * is_complete: its end has come.
	 */
	struct rule_set changes;
	struct fleet_position changes_at;
	bool has_changes, is_whole, is_complete;
	bool is_older; /* the whole state is older than what the host has */
	bool is_over;  /* these are more rules than the host takes, and were dropped */

	struct apply_refused *refused;
	size_t refused_kept;
	__u64 refused_count;
	struct fleet_position refused_at; /* of the last refusal since this process began */
	struct reason why;                /* of the last refusal, or why it is held or taken */
	bool is_held;                     /* the last change was refused: it would delete too many rules */
	__s64 accepted_ms;                /* until then, by the broker's clock, it may delete any number */

	/* By the log, within an hour: how many rules it has deleted more than added, of how many, and since when. */
	__s64 shrunk, shrunk_of, shrunk_ms;
};

struct apply {
	const struct fleet_options *options;
	const char *fleet, *state, *name; /* `state` and `name` of the filter: see session_open() */
	char id[FLEET_ID_BYTES];          /* of the fleet; "": no contact yet */
	__s64 offset_ms;                  /* the broker's clock minus fleet_now_ms() */
	__u32 stale_s;                    /* of the lists: see struct store_list */
	bool is_accepted;                 /* a whole state may delete any number of rules */
	struct apply_list lists[FOLLOW_LISTS_MAX];
	size_t count;
	__u64 changed;          /* rules added or deleted so far */
	struct reason undone;   /* what became of a change that was not confirmed in time; "": there was none */
	struct session session; /* paused between changes, or closed */
};

/* Reads positions from the store; there may be none yet. */
int apply_open(struct apply *apply, struct reason *reason);
void apply_close(struct apply *apply);

/* Closes what stays open between changes. Call it before a fork(), and if no change may come for long. */
void apply_let_go(struct apply *apply);

/* Take what the reader sends, or drop it. 0; -ENOMEM. apply_begin(): a whole state follows. */
int apply_lines(struct apply *apply, struct apply_list *list, char *lines, size_t bytes);
void apply_begin(struct apply_list *list);
void apply_forget(struct apply_list *list);

/*
 * Applies what has come, each list as one change. *failed: the lists that failed, as bits. 0; -errno of the last of them,
 * with its reason: see apply_change_list().
 */
int apply_commit(struct apply *apply, __u64 *failed, struct reason *reason);

/*
 * Checks whether the store still has each list at its position. -ESTALE: another command has changed or deleted a list,
 * which now has is_moved; other -errno.
 */
int apply_look(struct apply *apply, struct reason *reason);

/* Tries the refused rules again: the host's addresses may have changed. Errors as apply_look(). */
int apply_retry_refused(struct apply *apply, struct reason *reason);

/* ---- only for apply.c and apply_change.c ---- */

struct apply_source {
	char id[FLEET_ID_BYTES]; /* of the fleet */
	struct fleet_position at;
	__u64 refused;
};

/* Whether the text is the source of a list of this fleet. */
bool apply_read_source(const struct apply *apply, const char *text, struct apply_source *source);

/*
 * -ESTALE, with list->is_moved: the store has another position than list->at, which is updated; -EEXIST, with
 * list->is_taken and list->why.
 */
int apply_check_position(const struct apply *apply, const struct store_lists *lists, struct apply_list *list,
			 struct reason *reason);

/* Notes a rule that is left out. `rule` NULL: a line that cannot be read. */
void apply_refuse(struct apply_list *list, const struct rule *rule);

/* Applies list->changes. -ESTALE, with list->is_moved: another command has changed the list; other -errno. */
int apply_change_list(struct apply *apply, struct session *session, struct apply_list *list, struct reason *reason);

/*
 * Makes one change of the rules: a whole state, entries of the log, or again rules that were refused. What is left out becomes
 * refused. 0; -EBADE: too many rules would go; -EDQUOT: there would be too many; other -errno.
 */
int apply_rules(struct apply *apply, struct session *session, struct apply_list *list, struct rule_set *rules,
		bool is_again, struct reason *reason);

#endif
