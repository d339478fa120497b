/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by the files of the store only. */
#ifndef XDP_CUCKOO_STORE_INTERNAL_H
#define XDP_CUCKOO_STORE_INTERNAL_H

#include <lmdb.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "store/store.h"

/*
 * Limits of the times in a store, and of its clock (35,000 years). The clock's limit is smaller, so a sum
 * of a stored time and the clock neither overflows nor is refused when it is read.
 */
#define STORE_TIME_MAX_MS (1LL << 60)
#define STORE_CLOCK_MAX_MS (1LL << 50)

#define STORE_BOOT_ID_BYTES 40 /* the text in /proc, and the time namespace: 0 in the first one */
#define STORE_BOOT_ID_TEXT 37

struct store_meta {
	__u64 magic;
	__u32 schema, flags; /* STORE_META_X; older versions keep flags that they do not know */
	__u64 id[2];
	__u64 generation;
	__u64 plan;                        /* as in struct store_info */
	char boot_id[STORE_BOOT_ID_BYTES]; /* the boot for which `clock_ms` is right */
	__s64 clock_ms;                    /* the store's time minus CLOCK_BOOTTIME */
	__s64 wall_ms;                     /* the wall clock minus the store's time, at the last commit */
	__s64 seen_ms;                     /* the store's time at the last commit */
	struct store_settings settings;
	__u64 pending_id; /* 0: no change is pending */
	__u64 last_pending_id;
	__s64 pending_ms; /* the store's time at which the pending change is undone */
};

/* The wall clock was behind when this boot began. So `wall_ms` is still from an earlier boot. */
#define STORE_META_WALL_BEHIND 1
/* The operator chose to pass packets with too many headers (for older versions: the default). */
#define STORE_META_PASSES_HEADERS 2

_Static_assert(__builtin_offsetof(struct store_meta, id) == 16, "meta layout");
_Static_assert(sizeof(struct store_settings) == 8, "meta layout");
_Static_assert(sizeof(struct store_meta) == 144, "meta layout");

/* The longest value of a rule: see rule_value.c. */
#define STORE_VALUE_BYTES (1 + 4 * sizeof(__u64) + RULE_COMMENT_BYTES)

/* Who wants a rule: like struct rule_owners, but with a deadline by the store's clock. */
struct store_owners {
	__u64 permanent, timed;
	__s64 deadline_ms; /* of the owners in `timed`; 0 if `timed` is 0 */
};

/* Without owners there is no rule. */
struct store_value {
	struct store_owners owners;
	__u64 rate; /* 0: the rule has none */
	char comment[RULE_COMMENT_BYTES];
};

/* A change of one rule: owners (bits) give it up, and then one puts it. With owner 0 it becomes `put`, owners and all. */
struct store_edit {
	const struct rule *put; /* NULL: nobody */
	__u64 owner, gives_up;  /* gives_up 0: without `put`, those whose time is over */
};

/*
 * What is in force, and what would be if the pending change were undone. What the pending change has not touched is one in
 * both. Bits.
 */
enum { WORLD_NOW = 1, WORLD_UNDONE = 2 };

/* The lists within a transaction, by number. One without a name does not exist. */
struct store_lists_state {
	struct store_lists now, undone;                 /* `undone` counts while a change is pending */
	char name[1 + STORE_LISTS_MAX][ABI_NAME_BYTES]; /* of the numbers that are taken */
	__u64 known, imported;                          /* taken numbers; imported in this transaction */
	bool is_changed;
};

struct undone_feed {
	bool is_kept, is_there; /* differs from that in force; there is one */
	struct store_feed feed;
};

/* The store's clock in this process. */
struct store_clock {
	char boot_id[STORE_BOOT_ID_BYTES]; /* of this boot */
	__s64 ahead_ms;                    /* the store's time minus CLOCK_BOOTTIME */
	__s64 now_ms;                      /* the store's time; stands still: see store_begin() */
	__s64 lead_ms;                     /* the wall clock minus the store's time */
};

struct store {
	struct open_once *opened;
	int lock; /* file descriptor of writer.lock, or -1 */
	MDB_env *env;
	ino_t lock_mdb; /* the file that `env` has locked */
	bool is_copy;   /* see STORE_COPY */
	MDB_dbi meta_db, rules_db, shapes_db, deadlines_db, undo_db, lists_db, undo_lists_db;
	/*
	 * Each transaction makes these if they are missing, and they are open only within it. Versions that do not know them
	 * leave them alone. Of struct store_addition, now and before the pending change; of store_each_rate(): the key is the
	 * rule, the value its rate.
	 */
	MDB_dbi added_db, undo_added_db, rates_db, feeds_db, owner_ends_db;
	MDB_txn *read;         /* reset while there are no readers */
	unsigned int readers;  /* nested reads that share `read` */
	MDB_txn *write;        /* NULL outside a transaction */
	MDB_cursor *appending; /* in rules_db, while all new rules sort after the others; else NULL. Ends with `write` */
	struct store_clock clock;
	__u32 tool; /* store_tool(), when it was opened */
	/* State of the transaction; the commit writes it to the database. */
	struct store_meta meta;
	struct shape_list shapes;
	struct store_lists_state lists;
	struct undone_feed undone_feed[1 + STORE_LISTS_MAX];
	bool is_changed, has_new_shape;
	bool is_pushed;     /* the pending change has another deadline */
	bool makes_pending; /* this transaction makes the pending change */
	bool is_undoing;    /* this transaction undoes the pending change */
	/* At most so many rules have a rate, now or after the undo; see store_rates(). */
	size_t rates_most;
	bool has_exact_rates;
};

/* ---- store.c ---- */

/* A text as a key, without its final 0. */
static inline MDB_val store_key(const char *text)
{
	return (MDB_val){ strlen(text), (void *)text };
}

/* Writes an entry of database "meta" in a transaction of its own. On a full disk the next process tries it again. */
void store_record(struct store *store, const char *name, const void *entry, size_t bytes);

/* What the open transaction, or else the last commit, has: until the block ends. */
struct store_view {
	struct store *store;
	MDB_txn *txn;
	int error;
};
#define STORE_VIEW CLOSED_BY(store_view_end) const struct store_view
struct store_view store_view(struct store *store);
void store_view_end(const struct store_view *view);

/* store_view(), and the meta of that transaction. */
struct store_view store_meta_view(struct store *store, struct store_meta *meta);

/*
 * Reads an entry of `bytes` bytes of a database that may not be there. 0; -ENOENT; -EBADMSG: it has another length;
 * other -errno.
 */
int store_late_get(struct store *store, const char *name, const MDB_val *key, void *entry, size_t bytes);

/*
 * Change a database within the transaction. store_pair_put(): -EEXIST if `flags` has MDB_NOOVERWRITE and the
 * key is there. store_pair_del(): 0 also where the key is missing. Other -errno.
 */
int store_pair_put(struct store *store, MDB_dbi db, const MDB_val *key, MDB_val *value, unsigned int flags);
int store_pair_del(struct store *store, MDB_dbi db, const MDB_val *key);
int store_pairs_drop(struct store *store, MDB_dbi db);

struct store_pair {
	MDB_cursor *cursor; /* at this entry */
	MDB_val key, value;
};

#define STORE_KEY_BYTES 511 /* of any database; LMDB's limit */

/*
 * Calls `visit` for all entries in order until it returns non-zero. Returns that value, 0 or -errno. -EBADMSG: the
 * keys are out of order, on a page of another number, or some are missing.
 */
int store_pairs_each(MDB_txn *txn, MDB_dbi db, int (*visit)(const struct store_pair *entry, void *context),
		     void *context);

/* ---- directory.c ---- */

/*
 * Opens DIR as a path (O_PATH). With `makes`, creates it and its missing parents first, with mode 0700. DIR
 * and its parent must belong to this user or root, must not be symbolic links, and nobody else may write
 * there. The files of a store in DIR must meet the same conditions and have only one hard link. 0; -EPERM,
 * -ELOOP, -EMLINK: a condition is not met; other -errno.
 */
int store_dir_open(const char *dir, bool makes, int *fd);

/*
 * Opens a file of a store for reading and writing. Creates it if necessary, with mode 0600 whatever the
 * umask is. 0; -errno, and *fd is -1.
 */
int store_dir_open_file(int dir_fd, const char *name, int *fd);

/*
 * Takes the exclusive lock of a directory; of a read-only one, by the directory itself. *fd holds it until it is closed, or the process ends. While it
 * waits, base/waiting.h reports which process has the lock. 0; -EBUSY: `waits` is false and another process
 * has it; other -errno. On failure *fd is -1.
 */
int store_dir_lock(int dir_fd, bool is_read_only, bool waits, int *fd);

/* Says why the store in DIR cannot be opened, and what to do. Returns `error`. */
int store_dir_explain(int error, const char *dir, struct reason *reason);

/* ---- lmdb_environment.c ---- */

/*
 * Opens the environment in DIR. 0; -ENOENT: no environment to read; -EBADMSG: its file is not LMDB's, or
 * damaged; -ENOEXEC: a machine of another kind wrote it; other -errno. On failure *env is NULL.
 */
int environment_open(const char *dir, bool is_read_only, MDB_env **env);

/* Makes a copy in memory, which can be written and ends with the process, take the place of *env. 0; -errno, *env NULL. */
int environment_copy(MDB_env **env);

/*
 * environment_find_map(): learns where the file begins in memory, by the key of an entry that no transaction has changed.
 * environment_is_own_page(): whether the page of a key has its own number. If not, the disk has written another page in
 * its place. Without environment_find_map(), and for pages that are not in the file yet: true.
 */
void environment_find_map(MDB_env *env, const MDB_val *key);
bool environment_is_own_page(MDB_env *env, const MDB_val *key);

/* Unmaps the pages that were read so far. They stay in the page cache, and come back when they are read again. */
void environment_forget_pages(MDB_env *env);

/* The -errno of an LMDB status. */
int environment_error(int status);

/*
 * environment_error() after an operation that may write to the file. Tells a full disk (-ENOSPC) and a limit of
 * file sizes (-EFBIG) from a broken disk.
 */
int environment_write_error(MDB_env *env, int status);

/*
 * Cuts off what a failed transaction wrote after the last committed page. On a full disk that may be all
 * the free space that there was. Only for the writer, outside a transaction.
 */
void environment_give_back(MDB_env *env);

/*
 * The stores that this process has open. Waits until no other thread has the store in that directory open. 0;
 * -EBUSY: another thread has it, and `waits` is false; -EDEADLK: this thread has it; other -errno.
 * open_once_end() accepts NULL.
 */
int open_once_begin(int dir_fd, bool waits, struct open_once **opened);
void open_once_end(struct open_once *opened);

/* ---- settings.c ---- */

/*
 * The newest version of this tool that opened the store to write, and this version: 0x000102 for 0.1.2. An older tool
 * must not write the store.
 */
__u32 store_tool(const struct store *store, MDB_txn *txn);
__u32 store_this_tool(void);
void store_record_tool(struct store *store);

int store_meta_create(struct store *store, MDB_txn *txn);
int store_meta_read(const struct store *store, MDB_txn *txn, struct store_meta *meta);
int store_meta_save(const struct store *store, MDB_txn *txn, const struct store_meta *meta); /* an LMDB status */

/* ---- deadline_clock.c ---- */

/* Starts the clock. -EBADMSG: the stored time is out of range. */
int store_clock_set(struct store_clock *clock, const struct store_meta *meta);
void store_clock_tick(struct store_clock *clock); /* sets the clock to the present time */

/* Whether the clock's entries in the meta are out of date; and brings them up to date. */
bool store_clock_moved(const struct store_clock *clock, const struct store_meta *meta);
void store_clock_record(const struct store_clock *clock, struct store_meta *meta);

/* ---- rules.c ---- */

/*
 * A rule had the owners `before` and gets `after`: counts for the lists, and forgets who added it when the operator no
 * longer wants it.
 */
int store_note_owners(struct store *store, unsigned int worlds, const MDB_val *key, const struct store_owners *before,
		      const struct store_owners *after);

/* ---- shapes.c ---- */

int store_shapes_read(const struct store *store, MDB_txn *txn, struct shape_list *list);
int store_shapes_save(struct store *store);

/* Keeps the shapes from before the pending change: store_undone_shapes(). */
int store_shapes_keep(struct store *store);
int store_shapes_forget_kept(struct store *store);

/* ---- pending_change.c ---- */

/* The worlds that the transaction changes. */
unsigned int store_worlds(const struct store *store);

/*
 * Call store_keep_undone() before this transaction changes the value of a rule in force: if it makes the pending change,
 * the value stays as undone, with its addition. store_undo_addition() brings the addition back.
 */
int store_keep_undone(struct store *store, const MDB_val *rule, const struct store_value *value);
int store_undo_addition(struct store *store, const MDB_val *rule);

/* Changes the value as undone, if the rule has one. Returns the worlds that the value in force stands for, or -errno. */
int store_change_undone(struct store *store, const MDB_val *key, const struct store_edit *edit);

/* Adds to store->rates_most the rules with a rate that only the undo of the pending change would bring back. */
int store_undo_count_rates(struct store *store);
int store_undo_clear(struct store *store);

/* ---- lists.c ---- */

/* Reads them for a transaction; writes them. */
int store_lists_begin(struct store *store);
int store_lists_save(struct store *store);

/*
 * Counts the rules of lists: a rule had the owners `before` and now has the owners `now`. A list that loses a rule because
 * its time has ended does not count as edited.
 */
void store_lists_count(struct store *store, unsigned int worlds, const struct store_owners *before,
		       const struct store_owners *now);

void store_lists_clear(struct store *store);

__u64 store_lists_now(const struct store *store); /* those in force, as bits */

/*
 * A change becomes pending: its lists have two records from now on. The undo calls store_lists_undo() before rules come
 * back, and store_lists_undone() after that: a list exists as long as it has rules. store_lists_join(): what is in force
 * stays.
 */
void store_lists_part(struct store *store);
int store_lists_undo(struct store *store);
void store_lists_undone(struct store *store);
int store_lists_join(struct store *store);

/* ---- deadlines.c ---- */

/* The rule, or what its owners with a timeout want, ended at `before_ms` and now ends at `now_ms`; 0: never. */
int store_deadline_move(struct store *store, MDB_dbi db, const MDB_val *rule, __s64 before_ms, __s64 now_ms);

/* ---- rule_value.c ---- */

/*
 * All owners, as bits; 0: nobody wants the rule. store_owners_now(): without those whose time is over; they count for
 * nothing. store_owners_end(): when the rule ends; 0: never.
 */
__u64 store_owners_all(const struct store_owners *owners);
__u64 store_owners_now(const struct store_owners *owners, __s64 now_ms);
__s64 store_owners_end(const struct store_owners *owners);

/*
 * Makes of a value what the change makes of it. false: it stays. If several want a rule, the lower rate counts, and the
 * first comment. Who gives a rule up takes those along whose time is over.
 */
bool store_value_change(const struct store *store, const struct store_edit *edit, struct store_value *value);

/* The bytes must live as long as the value. */
MDB_val store_value_write(const struct store_value *value, __u8 bytes[STORE_VALUE_BYTES]);

/* Within a transaction, all owners must exist. 0; -EBADMSG. */
int store_value_read(const struct store *store, const MDB_val *bytes, struct store_value *value);
int store_value_to_rule(const struct store *store, const MDB_val *bytes, struct rule *rule);

struct store_value store_value_from_rule(const struct store *store, const struct rule *rule);

/* A rule from its key and value in the database. 0; -EBADMSG. */
int store_rule_read(const struct store *store, const MDB_val *key, const MDB_val *value, struct rule *rule);

#endif
