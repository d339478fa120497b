/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of the store share; nobody else includes it. */
#ifndef XDP_CUCKOO_STORE_INTERNAL_H
#define XDP_CUCKOO_STORE_INTERNAL_H

#include "environment.h"
#include "store.h"

/*
 * Times that a store may hold, and those that its clock may tell, 35,000 years: with less in the clock than in
 * what is kept, nothing that is made of both overflows, or is refused when it is read.
 */
#define STORE_TIME_MAX_MS (1LL << 60)
#define STORE_CLOCK_MAX_MS (1LL << 50)

#define STORE_BOOT_ID_BYTES 40 /* of the text in /proc, padded with 0 */

struct store_meta {
	__u64 magic;
	__u32 schema, reserved;
	__u64 id[2];
	__u64 generation;
	/* Schema 1 ends here. */
	__u64 plan;   /* which choice of targets it is: counts them */
	char boot_id[STORE_BOOT_ID_BYTES]; /* of the boot that `clock_ms` holds for */
	__s64 clock_ms; /* the store's time less CLOCK_BOOTTIME */
	__s64 wall_ms;	/* the wall clock less the store's time, when that was last looked at */
	__s64 seen_ms;	/* the store's time then */
	struct store_settings settings;
	__u64 pending_id; /* 0: nothing waits */
	__u64 last_pending_id;
	__s64 pending_ms; /* the store's time at which it is undone */
};

#define STORE_META_BYTES_1 40 /* of schema 1 */

_Static_assert(__builtin_offsetof(struct store_meta, id) == 16, "meta layout");
_Static_assert(__builtin_offsetof(struct store_meta, plan) == STORE_META_BYTES_1, "meta layout");
_Static_assert(sizeof(struct store_settings) == 8, "meta layout");
_Static_assert(sizeof(struct store_meta) == 144, "meta layout");

/* How a store's time is told within one process. */
struct store_clock {
	char boot_id[STORE_BOOT_ID_BYTES]; /* of this boot */
	__s64 ahead_ms; /* the store's time less CLOCK_BOOTTIME */
	__s64 now_ms;	/* stands still: see store_begin() */
};

struct store {
	struct store_claim *claim;
	int lock; /* file descriptor of writer.lock, or -1 */
	MDB_env *env;
	MDB_dbi meta_db, rules_db, shapes_db;
	MDB_dbi deadlines_db, undo_db; /* a store of schema 1 that is only read has none */
	bool has_schema_2;
	MDB_txn *read;	      /* reset while nobody reads */
	unsigned int readers; /* nested reads that share it */
	MDB_txn *write;	      /* NULL outside of a transaction */
	struct store_clock clock;
	/* Of the transaction; they go to the database with its commit. */
	struct store_meta meta;
	struct shape_list shapes;
	bool is_changed, has_new_shape;
	bool keeps_undo;
};

/* The open transaction, or the last committed state, which stays the same until store_view_end(). */
int store_view_begin(struct store *store, MDB_txn **txn);
void store_view_end(struct store *store);

/* ---- store_meta.c ---- */

int store_meta_create(struct store *store, MDB_txn *txn);
int store_meta_load(const struct store *store, MDB_txn *txn, struct store_meta *meta);
int store_meta_save(const struct store *store, MDB_txn *txn, const struct store_meta *meta);

/* The transaction's, or that of a view. */
int store_meta_get(const struct store *store, MDB_txn *txn, struct store_meta *meta);

/* -EBADMSG where it would tell what no clock tells. */
int store_clock_set(struct store_clock *clock, const struct store_meta *meta);
void store_clock_tick(struct store_clock *clock); /* lets it go on to now */

/* Whether what the meta says of the clock is to be brought up to date, and that. */
bool store_clock_moved(const struct store_clock *clock, const struct store_meta *meta);
void store_clock_note(const struct store_clock *clock, struct store_meta *meta);

/* ---- store_shapes.c ---- */

int store_shapes_load(const struct store *store, MDB_txn *txn, struct shape_list *list);
int store_shapes_save(const struct store *store); /* an LMDB status */

/* ---- store_undo.c ---- */

/* Before a rule is changed: keeps what it was, where the transaction is to be undone. `value` NULL: absent. */
int store_keep_undo(struct store *store, const MDB_val *rule, const MDB_val *value);

/* ---- store_rules.c ---- */

/* A rule from its two halves in the database; -EBADMSG. */
int store_rule_read(const struct store *store, const MDB_val *key, const MDB_val *value,
		    struct rule *rule);

#endif
