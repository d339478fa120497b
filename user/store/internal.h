/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of the store share; nobody else includes it. */
#ifndef XDP_CUCKOO_STORE_INTERNAL_H
#define XDP_CUCKOO_STORE_INTERNAL_H

#include "store/lmdb_environment.h"
#include "store/store.h"

/*
 * Times that a store may hold, and those that its clock may tell, 35,000 years: with less in the clock than in
 * what is kept, nothing that is made of both overflows, or is refused when it is read.
 */
#define STORE_TIME_MAX_MS (1LL << 60)
#define STORE_CLOCK_MAX_MS (1LL << 50)

#define STORE_BOOT_ID_BYTES 40 /* of the text in /proc, padded with 0 */

struct store_meta {
	__u64 magic;
	__u32 schema, flags; /* STORE_META_X; versions that know none keep them */
	__u64 id[2];
	__u64 generation;
	/* Schema 1 ends here. */
	__u64 plan;                        /* which choice of targets it is: counts them */
	char boot_id[STORE_BOOT_ID_BYTES]; /* of the boot that `clock_ms` holds for */
	__s64 clock_ms;                    /* the store's time less CLOCK_BOOTTIME */
	__s64 wall_ms;                     /* the wall clock less the store's time, when that was last looked at */
	__s64 seen_ms;                     /* the store's time then */
	struct store_settings settings;
	__u64 pending_id; /* 0: nothing waits */
	__u64 last_pending_id;
	__s64 pending_ms; /* the store's time at which it is undone */
};

#define STORE_META_BYTES_1 40 /* of schema 1 */

/* The wall clock was behind when the boot began: `wall_ms` is of an earlier boot, until it no longer is. */
#define STORE_META_WALL_BEHIND 1
/* The operator lets packets with too many headers pass. Older versions, where that was the default, do not set it. */
#define STORE_META_PASSES_HEADERS 2

_Static_assert(__builtin_offsetof(struct store_meta, id) == 16, "meta layout");
_Static_assert(__builtin_offsetof(struct store_meta, plan) == STORE_META_BYTES_1, "meta layout");
_Static_assert(sizeof(struct store_settings) == 8, "meta layout");
_Static_assert(sizeof(struct store_meta) == 144, "meta layout");

/* How long the value of a rule is at most: see rule_value.c. */
#define STORE_VALUE_BYTES (1 + 3 * sizeof(__u64) + RULE_COMMENT_BYTES)

/* Who wants a rule: as struct rule_owners, with a time of the store for what is left. */
struct store_claims {
	__u64 for_good, timed;
	__s64 deadline_ms; /* of `timed`; 0 where that is */
};

struct store_value {
	struct store_claims claims;
	const char *comment; /* not ended by 0 */
	size_t length;
};

/* The lists of a transaction. */
struct store_lists_state {
	struct store_lists lists;
	/* Bits by number: those that have a name; of these, those deleted while a change waits to be undone. */
	__u64 known, deleted;
	bool is_changed;
};

/* How a store's time is told within one process. */
struct store_clock {
	char boot_id[STORE_BOOT_ID_BYTES]; /* of this boot */
	__s64 ahead_ms;                    /* the store's time less CLOCK_BOOTTIME */
	__s64 now_ms;                      /* stands still: see store_begin() */
};

struct store {
	struct store_claim *claim;
	int lock; /* file descriptor of writer.lock, or -1 */
	MDB_env *env;
	MDB_dbi meta_db, rules_db, shapes_db;
	MDB_dbi deadlines_db, undo_db;   /* from schema 2 on */
	MDB_dbi lists_db, undo_lists_db; /* from schema 3 on */
	unsigned int schema;             /* whose databases are open: a store that is only read has no newer ones */
	MDB_txn *read;                   /* reset while nobody reads */
	unsigned int readers;            /* nested reads that share it */
	MDB_txn *write;                  /* NULL outside of a transaction */
	MDB_cursor *appending; /* in its rules, while new ones come behind all others; else NULL. It goes with `write` */
	struct store_clock clock;
	/* Of the transaction; they go to the database with its commit. */
	struct store_meta meta;
	struct shape_list shapes;
	struct store_lists_state lists;
	bool is_changed, has_new_shape;
	bool is_pushed;  /* the time to confirm is another */
	bool keeps_undo; /* it makes the change that is to be confirmed */
	bool is_undoing; /* it undoes that */
};

/* The open transaction, or the last committed state, which stays the same until store_view_end(). */
int store_view_begin(struct store *store, MDB_txn **txn);
void store_view_end(struct store *store);

/* ---- settings.c ---- */

int store_meta_create(struct store *store, MDB_txn *txn);
int store_meta_load(const struct store *store, MDB_txn *txn, struct store_meta *meta);
int store_meta_save(const struct store *store, MDB_txn *txn, const struct store_meta *meta);

/* The transaction's, or that of a view. */
int store_meta_get(const struct store *store, MDB_txn *txn, struct store_meta *meta);

/* ---- deadline_clock.c ---- */

/* -EBADMSG where it would tell what no clock tells. */
int store_clock_set(struct store_clock *clock, const struct store_meta *meta);
void store_clock_tick(struct store_clock *clock); /* lets it go on to now */

/* Whether what the meta says of the clock is to be brought up to date, and that. */
bool store_clock_moved(const struct store_clock *clock, const struct store_meta *meta);
void store_clock_note(const struct store_clock *clock, struct store_meta *meta);

/* ---- shapes.c ---- */

int store_shapes_load(const struct store *store, MDB_txn *txn, struct shape_list *list);
int store_shapes_save(const struct store *store); /* an LMDB status */

/* ---- undo.c ---- */

/* Before a rule is changed: keeps what it was, where the transaction is to be undone. `value` NULL: absent. */
int store_keep_undo(struct store *store, const MDB_val *rule, const MDB_val *value);

/*
 * What transactions change while a change of an earlier one waits, they change in what is kept as well, where the
 * rule has something kept: undone is that change, and not theirs. As store_put_for() with a deadline, store_give_up(),
 * store_del() and store_clear(); 0 also where nothing is kept.
 */
bool store_is_later(const struct store *store);
int store_kept_put(struct store *store, const MDB_val *rule, __u64 owner, __s64 deadline_ms, const char *comment);
int store_kept_give_up(struct store *store, const MDB_val *rule, __u64 owner);
int store_kept_del(struct store *store, const MDB_val *rule);
int store_kept_clear(struct store *store);

/* ---- lists.c ---- */

int store_lists_load(const struct store *store, MDB_txn *txn, struct store_lists_state *state);
int store_lists_save(const struct store *store); /* an LMDB status */

/* The owners of a rule were these, and are those now. */
void store_lists_count(struct store *store, __u64 before, __u64 now);

/* All lists hold nothing. */
void store_lists_empty(struct store *store);

/* Lists become what they were before the change that waits; and after its rules have: those it made go. */
int store_lists_undo(struct store *store);
int store_lists_end_undo(struct store *store);

/* The change that waits is confirmed, or undone. An LMDB status. */
int store_lists_forget_undo(struct store *store);

/* ---- deadlines.c ---- */

/* The rule, encoded, ends then, or does so no more; 0: never. An LMDB status. */
int store_deadline_put(struct store *store, __s64 deadline_ms, const MDB_val *rule);
int store_deadline_del(struct store *store, __s64 deadline_ms, const MDB_val *rule);

/* ---- rule_owners.c ---- */

/* By whom, or at all, the rule is wanted; until when: 0: for good. */
__u64 store_claims_owners(const struct store_claims *claims);
__s64 store_claims_end(const struct store_claims *claims);

/* What becomes of them when `owner`, a bit, wants the rule until `deadline_ms` (0: for good), or not any more. */
struct store_claims store_claims_with(struct store_claims claims, __u64 owner, __s64 deadline_ms, __s64 now_ms);
struct store_claims store_claims_without(struct store_claims claims, __u64 owner, __s64 now_ms);

/* ---- rule_value.c ---- */

/* The bytes must live as long as the value. */
MDB_val store_value_write(const struct store_claims *claims, const char *comment, __u8 bytes[STORE_VALUE_BYTES]);

/* Within a transaction all owners must be known to it. -EBADMSG. */
int store_value_read(const struct store *store, const MDB_val *bytes, struct store_value *value);
int store_value_to_rule(const struct store *store, const MDB_val *bytes, struct rule *rule);

/* Claims with what is left of their time, and back. */
struct rule_owners store_owners_of(const struct store *store, const struct store_claims *claims);
struct store_claims store_claims_of(const struct store *store, const struct rule_owners *owners);

/* A rule from its two halves in the database; -EBADMSG. */
int store_rule_read(const struct store *store, const MDB_val *key, const MDB_val *value, struct rule *rule);

#endif
