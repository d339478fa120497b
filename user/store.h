/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The durable truth: every rule, in an LMDB environment of its own directory. Only store.c and
 * environment.c know LMDB. The kernel's table is derived from it. Knows rules, not tables.
 *
 * Databases: "meta" (magic, schema version, id, generation), "rules" (encoded rule -> comment),
 * "shapes" (struct rule_shape -> number of keys of that shape).
 */
#ifndef XDP_CUCKOO_STORE_H
#define XDP_CUCKOO_STORE_H

#include <stdbool.h>
#include <stddef.h>

#include "reason.h"
#include "rule.h"

#define STORE_MAGIC 0x6b63756378647031ULL /* "1pdxcuck" */
#define STORE_SCHEMA 1

struct store;

struct store_info {
	__u64 id[2];      /* random, drawn when the store is made */
	__u64 generation; /* committed write transactions that changed something */
	__u64 rules;
	__u64 keys;       /* of all rules, what the table holds */
};

enum store_mode {
	STORE_READ,  /* -ENOENT where there is none; takes no lock */
	STORE_WRITE, /* makes the directory (0700) where missing; waits for the writer's lock */
};

/*
 * Opens DIR. STORE_WRITE holds an exclusive lock of the whole store from here to store_close(), so
 * that a command is alone with store and table; it goes when the process does. 0; -ENOENT; -EACCES;
 * -EBADMSG (foreign or damaged: magic); -EPROTO (another schema version); other -errno. On failure
 * *store is NULL. store_close() accepts NULL and aborts an open transaction.
 */
int store_open(const char *dir, enum store_mode mode, struct store **store, struct reason *reason);
void store_close(struct store *store);

/*
 * One transaction at a time. Without store_begin() reads see the last committed state. Commit
 * is durable (fsync) when it returns, and increments the generation where something changed.
 * store_begin() is -EBUSY within a transaction or a visit of store_each(). A failed commit is an
 * abort; -ENOSPC leaves the store as it was, ready for the next transaction.
 */
int store_begin(struct store *store);
int store_commit(struct store *store);
void store_abort(struct store *store);

/*
 * Within a transaction. store_put(): 0, -EEXIST where the rule is there (its comment stays),
 * -E2BIG where it would be the 33rd shape of a family. store_del(): 0, -ENOENT. store_clear()
 * removes all rules.
 */
int store_put(struct store *store, const struct rule *rule);
int store_del(struct store *store, const struct rule *rule);
int store_clear(struct store *store);

/* Looks the rule up and fills in its comment. 0; -ENOENT. */
int store_get(struct store *store, struct rule *rule);

int store_info(struct store *store, struct store_info *info);

/* Calls `visit` for each rule in encoded order until it returns non-zero; returns that, 0, or -errno. */
int store_each(struct store *store, int (*visit)(const struct rule *rule, void *context), void *context);

/*
 * The shapes in use, those that pass first, with their number of keys; `shapes` and `keys` have room
 * for 2 * ABI_SHAPES_MAX. *count is how many.
 */
int store_shapes(struct store *store, struct rule_shape *shapes, __u64 *keys, size_t *count);

#endif
