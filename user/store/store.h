/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The durable truth: every rule, in an LMDB environment of its own directory. Only the files of
 * store/ know LMDB. The kernel's table is derived from it. Knows rules, not tables.
 *
 * Databases: "meta" (magic, schema version, id, generation, clock, settings, what waits to be confirmed),
 * "rules" (encoded rule -> deadline, owners and comment), "shapes" (struct rule_shape -> number of keys, target),
 * "deadlines" (deadline, encoded rule -> nothing), "lists" (name -> struct list_value), "undo" and "undo_lists"
 * (encoded rule, or name -> what it was).
 *
 * Time: a rule's timeout is kept as a deadline by the store's own clock. Within one boot that runs with
 * CLOCK_BOOTTIME, so that setting the wall clock changes nothing; after a reboot it goes on by the wall
 * clock, less what that was set by in the boot before, and never backwards.
 */
#ifndef XDP_CUCKOO_STORE_H
#define XDP_CUCKOO_STORE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error_reason.h"
#include "rule/rule.h"
#include "rule/shapes.h"

#define STORE_MAGIC 0x6b63756378647031ULL /* "1pdxcuck" */
#define STORE_SCHEMA 3 /* a store of an older one is read, and becomes one of this when it is changed */

/* Owners of rules, by number: a bit each of struct rule_owners. The others are lists. */
#define STORE_BY_HAND 0
#define STORE_LISTS_MAX 63
#define STORE_SOURCE_BYTES 256 /* with the final 0 */

struct store;

struct store_info {
	__u64 id[2];      /* random, drawn when the store is made */
	__u64 generation; /* committed write transactions that changed something */
	__u64 plan;       /* counts the times that all targets were chosen anew */
	__u64 rules;      /* those that have ended and wait for store_expired() included */
	__u64 keys;       /* of all rules after expansion: at least what the table holds */
	__u64 timed;      /* rules with a timeout */
};

/* How every filter of the store runs; kept with the rules. */
struct store_settings {
	__u8 policy[OUTCOME_POLICIES]; /* enum abi_verdict: VERDICT_PASS or VERDICT_DROP */
	__u8 is_monitor_only;
};

/* Of a store in which nothing was set. */
extern const struct store_settings store_settings_default;

/* A list of rules that is kept up to date for itself: by name. */
struct store_list {
	char name[ABI_NAME_BYTES]; /* "" where no list has the number */
	__u64 rules;               /* that it holds, alone or with others */
	__s64 imported_s;          /* when that was last done, by the wall clock */
	char source[STORE_SOURCE_BYTES];
};

struct store_lists {
	struct store_list list[1 + STORE_LISTS_MAX]; /* by number; that of STORE_BY_HAND is none */
};

/* A change that undoes itself unless it is confirmed. */
struct store_pending {
	__u64 id;      /* 0: none; else another for each */
	__s64 left_ms; /* until it is undone; 0 or less: it is to be undone */
	__u64 rules;   /* that it has added, removed or timed anew */
};

enum store_mode {
	STORE_READ,  /* -ENOENT where there is none; takes no lock */
	STORE_WRITE, /* makes the directory (0700) where missing; waits for the writer's lock */
	STORE_TRY,   /* the same, without waiting: -EBUSY */
};

/*
 * Opens DIR. STORE_WRITE holds an exclusive lock of the whole store from here to store_close(), so
 * that a command is alone with store and table; it goes when the process does. 0; -ENOENT; -EACCES;
 * -EBADMSG (foreign or damaged: magic); -EPROTO (another schema version); other -errno. On failure
 * *store is NULL. store_close() accepts NULL and aborts an open transaction.
 *
 * A process has each store open once: other threads wait, and -EDEADLK is what the same thread gets. A store belongs to
 * the thread that opened it.
 */
int store_open(const char *dir, enum store_mode mode, struct store **store, struct reason *reason);
void store_close(struct store *store);

/*
 * One transaction at a time. Without store_begin() reads see the last committed state. Commit
 * is durable (fsync) when it returns, and increments the generation where something changed.
 * store_begin() is -EBUSY within a transaction or a visit of store_each(). A failed commit is an
 * abort; -ENOSPC leaves the store as it was, ready for the next transaction.
 *
 * The time by which timeouts are told stands still from store_begin(), and else from store_open() or the
 * last transaction's end, to the next of these; store_lag_ms() says how long it has stood still.
 */
int store_begin(struct store *store);
int store_commit(struct store *store);
void store_abort(struct store *store);
__s64 store_lag_ms(const struct store *store);

/*
 * Within a transaction. store_put_for(): `owner` wants the rule. 0; -EEXIST where it had it for good: it stays so,
 * with its comment; -EALREADY where the rule was there with a timeout, or had ended: it has this one's now, or
 * none, but ends no sooner than others want it; -EUSERS where others have it for good: its owner too, now or until
 * then; -E2BIG where its shape would be one too many for its family. store_put(): by hand.
 *
 * store_give_up(): `owner` wants it no more. 0: so it is deleted; -EALREADY: others do, and it ends when they
 * want it to, but those who want it for a time have one end in common, the latest that any of them has asked for, also
 * when that one gives it up; -ENOENT: the owner has no such rule. store_del() deletes it whoever has it: 0; -ENOENT.
 * store_del_ended() is for one that store_expired() visits: where a change is undone that made it end sooner, it is
 * there again. store_put_back() puts a rule that is not there, with its owners: those that there still are, or
 * -ENOENT. store_clear() removes all rules.
 *
 * While another transaction's change waits to be confirmed, all but store_put_back() and store_del_ended() hold as
 * well for what undoing it will bring back, whatever they return. store_give_up_all() is for that alone: `owner`
 * wants none of these rules, or with is_alone nobody does.
 */
int store_put(struct store *store, const struct rule *rule);
int store_put_for(struct store *store, const struct rule *rule, unsigned int owner);
int store_put_back(struct store *store, const struct rule *rule);
int store_give_up(struct store *store, const struct rule *rule, unsigned int owner);
int store_del(struct store *store, const struct rule *rule);
int store_del_ended(struct store *store, const struct rule *rule);
int store_clear(struct store *store);
int store_give_up_all(struct store *store, unsigned int owner, bool is_alone);

/*
 * The lists. store_lists_find(): the number of a name, or 0. Within a transaction: store_list_open() makes the
 * list where there is none of the name, and notes that it is imported now, from `source`; -EUSERS: there are too
 * many. store_list_delete(): -ENOTEMPTY where it still has rules.
 */
int store_lists(struct store *store, struct store_lists *lists);
unsigned int store_lists_find(const struct store_lists *lists, const char *name);
int store_list_open(struct store *store, const char *name, const char *source, unsigned int *number);
int store_list_delete(struct store *store, unsigned int number);

/* Looks the rule up, one that has ended too, and fills in timeout, comment and owners. 0; -ENOENT. */
int store_get(struct store *store, struct rule *rule);

/* The same, of the rules that there would be were the change undone that waits to be confirmed; if none: that are. */
int store_get_undone(struct store *store, struct rule *rule);

int store_info(struct store *store, struct store_info *info);

/*
 * Calls `visit` for each rule in encoded order, those that have ended too, until it returns non-zero; returns
 * that, 0, or -errno. store_expired(): only those that have ended, the first to end first; within a
 * transaction `visit` may delete the rule it is given, and no other.
 */
int store_each(struct store *store, int (*visit)(const struct rule *rule, void *context), void *context);
int store_expired(struct store *store, int (*visit)(const struct rule *rule, void *context), void *context);

/* The shapes in use and their targets. store_plan(), within a transaction: shape_list_plan() on them. */
int store_shapes(struct store *store, struct shape_list *list);
int store_plan(struct store *store);

/* Within a transaction: its list, and whether anything, or a shape that was not there, has come. */
const struct shape_list *store_shape_list(const struct store *store);
bool store_is_changed(const struct store *store);
bool store_has_new_shape(const struct store *store);

int store_settings(struct store *store, struct store_settings *settings);
/* Within a transaction. */
int store_set_settings(struct store *store, const struct store_settings *settings);

/*
 * What waits to be confirmed; pending->id is 0 where nothing does. Within a transaction: store_push_pending() makes
 * the time that is left `timeout_ms` from this moment on, which is no change; -ENOENT where nothing waits.
 * store_set_pending() makes this transaction's changes of rules, from here on, such that store_undo_each() visits
 * each rule as it was before, until store_forget_pending(), in a later transaction; -EBUSY where something waits
 * already. Visited is each first as one to delete, where it is there, and when all have been, with `is_back` each
 * that was there before, as one to put back: so that there is room for them. Lists become what they were by
 * store_undo_each() itself.
 */
int store_pending(struct store *store, struct store_pending *pending);
int store_set_pending(struct store *store, __s64 timeout_ms);
int store_push_pending(struct store *store, __s64 timeout_ms);
int store_undo_each(struct store *store, int (*visit)(const struct rule *rule, bool is_back, void *context),
		    void *context);
int store_forget_pending(struct store *store);

#endif
