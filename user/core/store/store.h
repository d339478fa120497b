/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The durable rules: every rule, in an LMDB environment in its own directory. The kernel's tables are filled from
 * it. Only the files of store/ know LMDB. The store knows rules, but no tables.
 *
 * Databases: "meta" (magic, schema version, id, generation, clock, settings, the pending change, where it is in use), "rules" (encoded
 * rule -> rate, deadline, owners and comment), "rates" (encoded rule with a rate -> rate), "shapes" (struct
 * rule_shape -> number of keys, and the shape that packets are looked up by: the "probed" shape), "deadlines"
 * (deadline and encoded rule -> nothing), "owner_ends" (the same of owners of permanent rules), "lists" (name -> struct list_value), "undo" (encoded rule -> its value
 * as undone), "undo_lists" (name -> the list and its feed as undone), "feeds" (name of a list
 * -> struct store_feed), "added" (who added a rule, and when) and "undo_added" (the same, as undone).
 *
 * Time: the store keeps a timeout as a deadline by its own clock. Within one boot this clock runs with
 * CLOCK_BOOTTIME, so setting the wall clock changes nothing. After a reboot, this clock has advanced as far as the
 * wall clock. If the wall clock was set during the boot before, that step does not count. It never runs backwards.
 *
 * An owner of a rule is the operator or a list. A change is pending from store_set_pending() until it is confirmed or undone.
 * Meanwhile each rule, list, setting and addition that it touched has two values: in force, and as undone (in "undo",
 * "undo_lists", "meta", "undo_added"). A later change is applied to both. store_undo_each() puts the second in force;
 * store_forget_pending() drops it.
 */
#ifndef XDP_CUCKOO_STORE_H
#define XDP_CUCKOO_STORE_H

#include <stdbool.h>

#include "base/error_reason.h"
#include "rule/rule.h"
#include "rule/rule_set.h"
#include "rule/shapes.h"

#define STORE_MAGIC 0x6b63756378647031ULL /* "1pdxcuck" */
#define STORE_SCHEMA 3                    /* no released version wrote an older one */

/* Owners have numbers: bits of struct rule_owners. STORE_BY_HAND is the operator; other numbers are lists. */
#define STORE_BY_HAND 0
#define STORE_LISTS_MAX 63
#define STORE_SOURCE_BYTES 256 /* with the final 0 */

/*
 * What a program notes in the source of a list that it keeps: `flowspec` the announced flows, and how many of them have no rules;
 * `crowdsec` the decisions (`flows`), how many of them ask for no rule, and the rules that would lock this host out or found
 * no room; `follow` the fleet, its broker, how far this host has read, and the rules that it left out. STORE_SOURCE_OTHER: plain
 * text.
 */
#define STORE_BAD_LINES "bad lines: %llu; " /* begins the source of a list by file that had some */

struct store_source {
	enum { STORE_SOURCE_OTHER, STORE_SOURCE_FLOWSPEC, STORE_SOURCE_CROWDSEC, STORE_SOURCE_FLEET } kind;
	unsigned long long flows, refused, unreadable, left_out;
	char fleet[ABI_NAME_BYTES], broker[33], position[44];
};
struct store_source store_source_parse(const char *text);
void store_source_format(const struct store_source *source, char text[STORE_SOURCE_BYTES]); /* not STORE_SOURCE_OTHER */

struct store;

struct store_info {
	__u64 id[2];      /* random, drawn when the store is made */
	__u64 generation; /* number of committed transactions that changed something */
	__u64 plan;       /* number of times that all probed shapes were chosen again */
	__u64 rules;      /* with those that have ended and still wait for store_each_expired() */
	__u64 keys;       /* of all rules, expanded (rule/shapes.h); the table holds at most so many */
	__u64 timed;      /* rules with a timeout */
};

/* Settings of all filters of the store; kept with the rules. */
struct store_settings {
	__u8 policy[OUTCOME_POLICIES]; /* enum abi_verdict: VERDICT_PASS or VERDICT_DROP */
	__u8 is_monitor_only;
};

/* The settings of a new store; and those that change nothing: see store_set_settings(). */
#define STORE_SETTING_KEPT 0xff
extern const struct store_settings store_settings_default, store_settings_kept;

/* A named list of rules. It is imported again when it changes, or fed rule by rule, or both. */
struct store_list {
	char name[ABI_NAME_BYTES]; /* "": no list has this number */
	__u64 rules;               /* of the list; other owners may want them, too */
	__s64 imported_s;          /* time of the last import, by the wall clock; 0: never imported */
	bool is_edited;            /* since the last import something else has added or deleted rules */
	__u32 stale_s;             /* the longest time between two imports that is normal; 0: any time */
	char source[STORE_SOURCE_BYTES];
};

#define STORE_ETAG_BYTES 160
#define STORE_MODIFIED_BYTES 64
#define STORE_WHY_BYTES 512

/* What is known of the fetches of a list by URL. Times are seconds of the wall clock; 0: never. All 0: no feed. */
struct store_feed {
	__s64 tried_s, fetched_s; /* the last fetch, and the last that succeeded */
	__s64 next_s;             /* no fetch is due before */
	__s64 wait_until_s;       /* the server has asked not to come before */
	__s64 imported_s;         /* that of struct store_list after the last import from this URL, */
	__u64 rules;              /* and its rules: while both are the same, nobody else has changed the list */
	__u64 config;             /* a hash of URL and options: another one means another feed */
	__u32 failures;           /* fetches since the last that succeeded */
	__u32 left_out;           /* of the last import: bad lines, and rules that would lock this host out */
	char etag[STORE_ETAG_BYTES], modified[STORE_MODIFIED_BYTES]; /* as the server sent them */
	char why[STORE_WHY_BYTES];                                   /* the last fetch failed; "": it did not */
};

struct store_lists {
	struct store_list list[1 + STORE_LISTS_MAX]; /* by number; list[STORE_BY_HAND] is not used */
};

/* A change that is undone unless somebody confirms it in time. */
struct store_pending {
	__u64 id;      /* 0: no change is pending; each change has another id */
	__s64 left_ms; /* from now until it is undone; 0 or less: its time has ended */
	__u64 rules;   /* rules that it added, removed or gave another timeout */
};

enum store_mode {
	STORE_READ,  /* -ENOENT where there is no store; takes no lock */
	STORE_WRITE, /* makes the directory (0700) if necessary; waits for the writer's lock */
	STORE_TRY,   /* like STORE_WRITE, but does not wait: -EBUSY */
	STORE_COPY, /* like STORE_WRITE; but on a read-only file system it opens a copy in memory, and store_is_copy() is true */
	STORE_TRIAL, /* like STORE_WRITE, but nothing will be committed, so an older version may go on to write it */
};

/*
 * Opens the store in DIR. With STORE_WRITE or STORE_TRY, the caller has an exclusive lock until store_close(), so no
 * other command changes the store or its tables meanwhile. The lock ends with the process. 0; -ENOENT; -EACCES; -EBADMSG:
 * not a store, or damaged; -EPROTO: its schema is unknown; -EPROTONOSUPPORT: a newer version has written it, so this one
 * may only read it; -ENOEXEC: a machine of another byte order or word size wrote it; other -errno. On failure *store is
 * NULL. store_close() accepts NULL, and aborts an open transaction.
 *
 * A process can have each store open only once. If another thread has it open, store_open() waits; if the same
 * thread has it open, it returns -EDEADLK. Only the thread that opened a store may use it.
 */
int store_open(const char *dir, enum store_mode mode, struct store **store, struct reason *reason);
void store_close(struct store *store);
bool store_is_copy(const struct store *store);

/*
 * Where the filters of the store run: the network namespace in which somebody last opened it to write, in this boot, as
 * long as its file is no copy. STORE_HOME_NEW: nobody has noted one yet. store_take_home() notes this one,
 * and gives a copy an id of its own, unless a filter uses it here: the filter of the first store is none of the copy.
 */
enum store_home { STORE_HOME_NEW, STORE_HOME_HERE, STORE_HOME_ELSEWHERE };
enum store_home store_home(struct store *store);
void store_take_home(struct store *store, bool is_in_use);

/* Deletes the files and the directory. An open store stays usable; others cannot open it any more. */
void store_unlink(const char *dir);

/*
 * store_pause() gives up the lock, but keeps the files open, so that store_resume() is faster than store_open() and does
 * the same. It closes a store that was opened to read: then *store is NULL. Both accept *store NULL. store_resume()
 * opens the store anew if DIR has other files now. A paused store keeps no old state alive. Close it before a fork().
 */
void store_pause(struct store **store);
int store_resume(const char *dir, enum store_mode mode, struct store **store, struct reason *reason);

/* Sets the reason if `error` (0 or -errno of a function below) says that the store cannot be read. Returns `error`. */
int store_unread_reason(int error, struct reason *reason);

/*
 * A store has one transaction at a time. Without store_begin(), reads see the last committed state. store_commit() has
 * written the change to the disk (fsync) when it returns. It increments the generation if something changed. If it
 * fails, the transaction is aborted; after -ENOSPC the store is as before and ready for the next transaction.
 * store_begin() returns -EBUSY within a transaction or within a visit of store_each().
 *
 * The clock by which timeouts are counted stands still between the calls that set it. These are store_open(),
 * store_begin() and the end of a transaction. store_lag_ms() is the time since the last of them. store_wall_ms() is the
 * wall clock at that time. It ignores steps of up to a second, so that the moment at which a rule ends is always shown
 * the same.
 */
int store_begin(struct store *store);
int store_commit(struct store *store);
void store_abort(struct store *store);
__s64 store_lag_ms(const struct store *store);
__s64 store_wall_ms(const struct store *store);

/*
 * Changes of rules, within a transaction. `owner` is a number, `owners` are bits. The owners with a timeout share one
 * deadline: the latest that any of them asked for. It stays even when that owner gives the rule up.
 *
 * store_put(): `owner` wants the rule. -E2BIG: the family has no room for another shape. If other owners want the rule,
 * too, the lower rate stays. What these owners wanted before counts for nothing: 0 of them; `owner`, which gets exactly this
 * end, rate and comment then; or STORE_ALL_OWNERS. store_put_back() adds a missing rule again, with those of its owners
 * that still exist; if none exists, it changes nothing. store_restore(): a rule that was there before the transaction is as
 * it was, for all its owners, and the value as undone is.
 *
 * store_give_up(): these owners no longer want the rule, nor do those whose time is over; with 0, only these, of a rule that
 * store_each_expired() visits. store_clear() deletes all rules.
 *
 * All but store_put_back(), and store_give_up() of none, change both values of a rule. store_replace_undone() changes those
 * as undone: after it, `wanted`, which is sorted, is all that `owner` has there; with is_alone, rules as undone are those in
 * force. Call it before a comparison with the rules in force, of which those that stay are not put again.
 */
#define STORE_ALL_OWNERS (~0ULL)

enum store_added {
	STORE_ADDED,     /* the rule is new */
	STORE_UNCHANGED, /* the owner has the rule permanently already; rule and comment stay as they are */
	/*
	 * The rule had a timeout, or had ended. Now it has the new timeout or no timeout, but does not end before
	 * other owners want it to. Or it had another rate.
	 */
	STORE_NEW_END,
	STORE_NEW_OWNER, /* other owners want the rule permanently; `owner` is now an owner, too. Or the comment is new. */
};

enum store_deleted {
	STORE_DELETED,
	STORE_NO_SUCH_RULE, /* or the owner does not have it */
	STORE_STILL_WANTED, /* by other owners; the rule ends when they want it to */
};

int store_put(struct store *store, const struct rule *rule, unsigned int owner, __u64 owners, enum store_added *added);
int store_put_back(struct store *store, const struct rule *rule, enum store_added *added);
int store_give_up(struct store *store, const struct rule *rule, __u64 owners, enum store_deleted *deleted);
int store_restore(struct store *store, const struct rule *rule, enum store_added *added);
int store_clear(struct store *store);
int store_replace_undone(struct store *store, unsigned int owner, bool is_alone, const struct rule_set *wanted);

/* Within a transaction: whether the change of an earlier one is pending. */
bool store_has_earlier_pending(const struct store *store);

/*
 * store_lists_find(): the number of a list by its name, or 0. Within a transaction: store_list_open() makes
 * the list if there is none of that name, and notes that it is imported now from `source` (NULL: it is not
 * imported); -EUSERS: there are too many lists. store_list_delete(): -ENOTEMPTY while the list has rules.
 */
int store_lists(struct store *store, struct store_lists *lists);
unsigned int store_lists_find(const struct store_lists *lists, const char *name);
int store_list_open(struct store *store, const char *name, const char *source, unsigned int *number);
int store_list_delete(struct store *store, unsigned int number);

/* Within a transaction: makes the list equal to `list`, except its rules, or makes a new list. Errors as above. */
int store_list_put(struct store *store, const struct store_list *list, unsigned int *number);

/* Within a transaction: sets stale_s of a list. store_list_open() with a source has set it to 0. */
void store_list_expect(struct store *store, unsigned int number, __s64 stale_s);

/* By the number of the list. */
struct store_feeds {
	bool is_any;
	struct store_feed feed[1 + STORE_LISTS_MAX];
};

/*
 * The feed of a list: 0; -ENOENT; -EBADMSG; other -errno. Within a transaction: store_feed_put(), store_feed_forget().
 * store_feeds(): those of all lists.
 */
int store_feed(struct store *store, const char *list, struct store_feed *feed);
int store_feeds(struct store *store, const struct store_lists *lists, struct store_feeds *feeds);
int store_feed_put(struct store *store, const char *list, const struct store_feed *feed);
int store_feed_forget(struct store *store, const char *list);

/*
 * Who added a rule by hand, and when: known of rules of `add` and `batch`, until the operator is no owner any more. The
 * undo of a pending change brings it back. A restored rule has none. store_addition_put() is for within a transaction. store_addition(): 0; -ENOENT; other
 * -errno.
 */
struct store_addition {
	__s64 second; /* since the epoch */
	__u32 user;   /* uid */
	__u32 unused; /* 0 */
};

int store_addition(struct store *store, const struct rule *rule, struct store_addition *addition);
int store_addition_put(struct store *store, const struct rule *rule, const struct store_addition *addition);

/* Lines that the last import of a list left out as bad; of a list by URL also rules that would lock this host out. */
__u64 store_list_left_out(const struct store_list *list, const struct store_feed *feed);

/* How long the source of a list has been silent, if that is longer than stale_s; since 1970: always. 0: it is not. */
__s64 store_list_silent_s(const struct store_list *list, const struct store_feed *feed);

/* Whether times and texts are as they must be. */
bool store_feed_is_sound(const struct store_feed *feed);

/* Finds the rule, even if it has ended, and fills in timeout, comment and owners. 0; -ENOENT. */
int store_get(struct store *store, struct rule *rule);

/* store_get() as if the pending change were undone. If no change is pending, it is the same as store_get(). */
int store_get_undone(struct store *store, struct rule *rule);

int store_info(struct store *store, struct store_info *info);

/* store_info() and store_lists(), without the rules that have ended. They wait for a change that deletes them. */
int store_in_force(struct store *store, struct store_info *info, struct store_lists *lists);

/* All reads between these two calls see the same state. 0; -errno: there is nothing to end. */
int store_read_begin(struct store *store);
void store_read_end(struct store *store);

/* Unmaps what was read so far. It stays in the page cache, and is mapped again when it is read. */
void store_forget_pages(struct store *store);

/*
 * Calls `visit` for each rule, sorted by encoded form, until it returns non-zero. Returns that value, 0 or -errno.
 * store_each() includes rules that have ended. store_each_expired() visits only those that have ended, sorted by
 * deadline, and then permanent rules whose owners with a timeout have ended. Within a transaction, its `visit` may call
 * store_give_up() with the rule that it gets, but change no other. store_each_under() visits
 * those whose encoded form begins with the same bits as that of `first`, which sorts before all of them.
 */
int store_each(struct store *store, int (*visit)(const struct rule *rule, void *context), void *context);
int store_each_under(struct store *store, const struct rule *first, unsigned int bits,
		     int (*visit)(const struct rule *rule, void *context), void *context);

/* Reads every page in use. -EBADMSG: one is damaged; other -errno. */
int store_check(struct store *store);

/*
 * store_each_rate(): like store_each(), for each rule with a rate, without timeout, comment and owners. store_rates(),
 * within a transaction: how many there are, with those that the undo of the pending change would bring back. *count may
 * be too high, but not above `enough`.
 */
int store_rates(struct store *store, size_t enough, size_t *count);
int store_each_rate(struct store *store, int (*visit)(const struct rule *rule, void *context), void *context);

int store_each_expired(struct store *store, int (*visit)(const struct rule *rule, void *context), void *context);

/*
 * The shapes in use. store_undone_shapes(): of all rules that there are, or would be if the pending change were undone;
 * perhaps more. Only the member `shape` of its entries counts. store_plan(), within a transaction, calls
 * shape_list_plan() on them. */
int store_shapes(struct store *store, struct shape_list *list);
int store_undone_shapes(struct store *store, struct shape_list *list);
int store_plan(struct store *store);

/* Within a transaction: its shapes; whether it has changed anything; whether a new shape has come. */
const struct shape_list *store_shape_list(const struct store *store);
bool store_is_changed(const struct store *store);
bool store_has_new_shape(const struct store *store);

int store_settings(struct store *store, struct store_settings *settings);
/* As if the pending change were undone. */
int store_undone_settings(struct store *store, struct store_settings *settings);
/*
 * Within a transaction: sets all but STORE_SETTING_KEPT. What is set while the change of an earlier transaction is pending
 * outlasts its undo, even if it was set already.
 */
int store_set_settings(struct store *store, const struct store_settings *settings);

/*
 * store_pending(): pending->id is 0 if no change is pending. The other functions are for a transaction.
 *
 * store_set_pending(): all later changes of rules in this transaction are the pending change; -EBUSY: there is one
 * already. store_extend_deadline() sets the deadline of the pending change to `timeout_ms` from now. This does not
 * count as a change of the store. -ENOENT: no change is pending. store_forget_pending(): the change is confirmed,
 * or was undone.
 *
 * store_undo_each() is for a later transaction. It visits each rule of the pending change as the rule was before
 * that change. First every rule is visited with `is_back` false: delete it if it is there. Then each rule that
 * existed before is visited with `is_back` true: put it back. This order makes room first. Lists and settings are
 * restored without a visit.
 */
int store_pending(struct store *store, struct store_pending *pending);
int store_set_pending(struct store *store, __s64 timeout_ms);
int store_extend_deadline(struct store *store, __s64 timeout_ms);
int store_undo_each(struct store *store, int (*visit)(const struct rule *rule, bool is_back, void *context),
		    void *context);
int store_forget_pending(struct store *store);

#endif
