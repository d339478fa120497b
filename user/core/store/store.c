// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Opens and closes a store; transactions; read views; the numbers of struct store_info. */

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/internal.h"
#include "base/memory.h"
#include "base/waiting.h"

/* ---- opening ---- */

static const struct {
	const char *name;
	size_t member; /* of struct store */
	bool is_late;  /* older stores lack it: see store_begin() */
} databases[] = {
	{ "rules", offsetof(struct store, rules_db), false },
	{ "shapes", offsetof(struct store, shapes_db), false },
	{ "deadlines", offsetof(struct store, deadlines_db), false },
	{ "undo", offsetof(struct store, undo_db), false },
	{ "lists", offsetof(struct store, lists_db), false },
	{ "undo_lists", offsetof(struct store, undo_lists_db), false },
	{ "added", offsetof(struct store, added_db), true },
	{ "undo_added", offsetof(struct store, undo_added_db), true },
	{ "rates", offsetof(struct store, rates_db), true },
	{ "feeds", offsetof(struct store, feeds_db), true },
	{ "owner_ends", offsetof(struct store, owner_ends_db), true },
};

/* Opens the databases that are late, or the others. An LMDB status. */
static int handles_open(struct store *store, MDB_txn *txn, bool is_late, unsigned int flags)
{
	int status = 0;

	for (size_t i = 0; i < sizeof(databases) / sizeof(databases[0]) && !status; i++)
		if (databases[i].is_late == is_late)
			status = mdb_dbi_open(txn, databases[i].name, flags,
					      (MDB_dbi *)((char *)store + databases[i].member));
	return status;
}

static int databases_open(struct store *store, MDB_txn *txn, enum store_mode mode, bool is_new)
{
	struct store_meta meta = {};
	const unsigned int flags = is_new ? MDB_CREATE : 0;
	int error, status = mdb_dbi_open(txn, "meta", flags, &store->meta_db);

	if (!status && is_new)
		status = store_meta_create(store, txn);
	error = status ? environment_write_error(store->env, status) : store_meta_read(store, txn, &meta);
	store->tool = error ? 0 : store_tool(store, txn);
	if (mode != STORE_READ && store->tool > store_this_tool())
		error = -EPROTONOSUPPORT;
	if (!error)
		error = store_clock_set(&store->clock, &meta);
	return error ? error : environment_write_error(store->env, handles_open(store, txn, false, flags));
}

/* An environment without a database is left from a process that died early. It counts as no store. */
static int databases_attach(struct store *store, enum store_mode mode)
{
	MDB_val name = {}, record;
	MDB_cursor *cursor;
	MDB_stat root = {};
	MDB_txn *txn;
	MDB_dbi dbi;
	int error, status = mdb_txn_begin(store->env, NULL, mode == STORE_READ ? MDB_RDONLY : 0, &txn);

	if (status)
		return environment_error(status);
	/* Not mdb_env_stat(), which may describe a newer state than this transaction's. */
	status = mdb_dbi_open(txn, NULL, 0, &dbi);
	if (!status)
		status = mdb_stat(txn, dbi, &root);
	if (!status && root.ms_entries)
		status = mdb_cursor_open(txn, dbi, &cursor);
	if (!status && root.ms_entries) {
		status = mdb_cursor_get(cursor, &name, &record, MDB_FIRST);
		if (!status)
			environment_find_map(store->env, &name);
		mdb_cursor_close(cursor);
	}
	if (status)
		error = environment_error(status);
	else if (!root.ms_entries)
		error = mode == STORE_READ ? -ENOENT : databases_open(store, txn, mode, true);
	else
		error = databases_open(store, txn, mode, false);
	if (!error)
		return environment_write_error(store->env, mdb_txn_commit(txn));
	mdb_txn_abort(txn);
	return error == -ENOENT && root.ms_entries ? -EBADMSG : error;
}

/* The lock is not held by a writer of xdp-cuckoo: these take writer.lock first. */
static void describe_others(int fd, struct reason *text)
{
	(void)fd;
	reason_set(text, 0,
		   "waiting for the store: another program has locked its LMDB environment (fuser lock.mdb, in its "
		   "directory, shows which), or the disk is slow");
}

/* LMDB's locks are in shared memory: a process that is stopped while it has one blocks the others. */
static int environment_attach(struct store *store, int dir_fd, enum store_mode mode)
{
	struct stat lock_mdb = {};
	char path[32];
	int error;

	/* By descriptor, so that no other directory can take its place. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", dir_fd);
	waiting_begin(describe_others, -1);
	error = environment_open(path, mode == STORE_READ || mode == STORE_COPY, &store->env);
	if (error == -ENOENT && access(path, F_OK))
		error = -ENOTSUP; /* /proc is missing */
	if (!error && mode == STORE_COPY)
		error = environment_copy(&store->env);
	if (!error) {
		/* Forget readers that were killed: they keep old pages from being used again. */
		mdb_reader_check(store->env, NULL);
		error = databases_attach(store, mode);
		fstatat(dir_fd, "lock.mdb", &lock_mdb, AT_SYMLINK_NOFOLLOW);
		store->lock_mdb = lock_mdb.st_ino;
	}
	waiting_end();
	return error;
}

void store_record(struct store *store, const char *name, const void *entry, size_t bytes)
{
	MDB_val key = store_key(name), value = { bytes, (void *)entry };
	MDB_txn *txn;

	if (mdb_txn_begin(store->env, NULL, 0, &txn))
		return;
	if (mdb_put(txn, store->meta_db, &key, &value, 0))
		mdb_txn_abort(txn);
	else if (!mdb_txn_commit(txn))
		return;
	environment_give_back(store->env);
}

/* With STORE_COPY, opens the copy. */
static int open_in_mode(const char *dir, enum store_mode mode, struct store **store, struct reason *reason)
{
	const bool waits = mode != STORE_TRY;
	struct store *new = calloc(1, sizeof(*new));
	FD_CLOSED int dir_fd = -1;
	int error = -ENOMEM;

	*store = NULL;
	if (new) {
		new->lock = -1;
		new->is_copy = mode == STORE_COPY;
		error = store_dir_open(dir, mode != STORE_READ && mode != STORE_COPY, &dir_fd);
	}
	if (!error)
		error = open_once_begin(dir_fd, waits, &new->opened);
	if (!error && mode != STORE_READ)
		error = store_dir_lock(dir_fd, mode == STORE_COPY, waits, &new->lock);
	if (!error)
		error = environment_attach(new, dir_fd, mode);
	/* From now on older versions refuse to write. */
	if (!error && mode != STORE_READ && mode != STORE_TRIAL && new->tool < store_this_tool())
		store_record_tool(new);
	if (error) {
		store_close(new);
		return store_dir_explain(error, dir, reason);
	}
	*store = new;
	return 0;
}

int store_open(const char *dir, enum store_mode mode, struct store **store, struct reason *reason)
{
	const int error = open_in_mode(dir, mode == STORE_COPY ? STORE_WRITE : mode, store, reason);
	struct reason why;
	int copied;

	if (error != -EROFS || mode != STORE_COPY)
		return error;
	copied = open_in_mode(dir, STORE_COPY, store, &why);
	if (copied == -ENOENT)
		return error;
	if (copied)
		*reason = why;
	return copied;
}

bool store_is_copy(const struct store *store)
{
	return store->is_copy;
}

void store_close(struct store *store)
{
	if (!store)
		return;
	store_abort(store);
	mdb_txn_abort(store->read);
	if (store->env)
		mdb_env_close(store->env);
	waiting_unlock(store->lock); /* last: the next writer must find the environment closed */
	open_once_end(store->opened);
	free(store);
}

/* ---- pausing ---- */

void store_pause(struct store **store)
{
	struct store *paused = *store;
	unsigned int flags;

	if (!paused)
		return;
	if (mdb_env_get_flags(paused->env, &flags) || flags & MDB_RDONLY) {
		store_close(paused);
		*store = NULL;
		return;
	}
	store_abort(paused);
	mdb_txn_abort(paused->read);
	paused->read = NULL;
	waiting_unlock(paused->lock);
	paused->lock = -1;
}

/* At what others may have written meanwhile. */
static int look_again(struct store *store, enum store_mode mode)
{
	struct store_meta meta;
	STORE_VIEW view = store_meta_view(store, &meta);

	if (view.error)
		return view.error;
	store->tool = store_tool(store, view.txn);
	return mode != STORE_READ && store->tool > store_this_tool() ? -EPROTONOSUPPORT :
								       store_clock_set(&store->clock, &meta);
}

int store_resume(const char *dir, enum store_mode mode, struct store **store, struct reason *reason)
{
	struct stat own, data, lock;
	FD_CLOSED int dir_fd = -1;
	int fd, error;
	bool is_same;

	if (!*store)
		return store_open(dir, mode, store, reason);
	error = store_dir_open(dir, mode != STORE_READ, &dir_fd);
	if (!error && mode != STORE_READ)
		error = store_dir_lock(dir_fd, false, mode != STORE_TRY, &(*store)->lock);
	/* Whether the directory still has the files of the store, not others of their names. */
	is_same = !error && !mdb_env_get_fd((*store)->env, &fd) && !fstat(fd, &own) &&
		  !fstatat(dir_fd, "data.mdb", &data, AT_SYMLINK_NOFOLLOW) &&
		  !fstatat(dir_fd, "lock.mdb", &lock, AT_SYMLINK_NOFOLLOW) && own.st_dev == data.st_dev &&
		  own.st_ino == data.st_ino && (*store)->lock_mdb == lock.st_ino;
	if (is_same) {
		/* What environment_attach() does, except opening. */
		waiting_begin(describe_others, -1);
		mdb_reader_check((*store)->env, NULL);
		error = look_again(*store, mode);
		waiting_end();
	}
	if (!error && is_same)
		return 0;
	store_close(*store);
	*store = NULL;
	return error ? store_dir_explain(error, dir, reason) : store_open(dir, mode, store, reason);
}

/* ---- transactions ---- */

int store_begin(struct store *store)
{
	int status, error;

	if (store->write || store->readers)
		return -EBUSY;
	waiting_begin(describe_others, -1);
	status = mdb_txn_begin(store->env, NULL, 0, &store->write);
	waiting_end();
	if (status)
		return environment_error(status);
	store->is_changed = store->has_new_shape = store->has_exact_rates = false;
	store->rates_most = SIZE_MAX / 2;
	store->is_pushed = store->makes_pending = store->is_undoing = false;
	error = environment_write_error(store->env, handles_open(store, store->write, true, MDB_CREATE));
	store->appending = NULL;
	if (!error)
		error = environment_error(mdb_cursor_open(store->write, store->rules_db, &store->appending));
	if (!error)
		error = store_meta_read(store, store->write, &store->meta);
	if (!error)
		error = store_shapes_read(store, store->write, &store->shapes);
	if (!error)
		error = store_lists_begin(store);
	if (!error)
		error = store_clock_set(&store->clock, &store->meta);
	if (error)
		store_abort(store);
	return error;
}

void store_abort(struct store *store)
{
	if (!store->write)
		return;
	mdb_txn_abort(store->write);
	store->write = NULL;
	environment_give_back(store->env);
	store_clock_tick(&store->clock);
}

int store_commit(struct store *store)
{
	const bool is_stale = store_clock_moved(&store->clock, &store->meta);
	int error = 0;

	/* No store has the generation of a changed copy: the first command that can write makes the filter equal again. */
	if (store->is_changed)
		store->meta.generation = store->is_copy ? store->meta.generation | 1ULL << 63 : store->meta.generation + 1;
	if (store->is_changed || store->lists.is_changed || store->is_pushed || is_stale) {
		store_clock_record(&store->clock, &store->meta);
		error = environment_write_error(store->env, store_meta_save(store, store->write, &store->meta));
	}
	if (!error && store->is_changed)
		error = store_shapes_save(store);
	if (!error && store->lists.is_changed)
		error = store_lists_save(store);
	if (error) {
		store_abort(store);
		return error;
	}
	error = environment_write_error(store->env, mdb_txn_commit(store->write));
	store->write = NULL;
	if (error == -ENOSPC || error == -EFBIG)
		environment_give_back(store->env);
	store_clock_tick(&store->clock);
	return error;
}

bool store_is_changed(const struct store *store)
{
	return store->is_changed;
}

/* ---- views ---- */

int store_read_begin(struct store *store)
{
	int status = 0;

	if (store->write)
		return 0;
	if (store->readers == 0)
		status = store->read ? mdb_txn_renew(store->read) :
				       mdb_txn_begin(store->env, NULL, MDB_RDONLY, &store->read);
	store->readers += !status;
	return environment_error(status);
}

void store_read_end(struct store *store)
{
	if (!store->write && --store->readers == 0)
		mdb_txn_reset(store->read);
}

struct store_view store_view(struct store *store)
{
	const int error = store_read_begin(store);

	return (struct store_view){ store, error ? NULL : store->write ? store->write : store->read, error };
}

void store_view_end(const struct store_view *view)
{
	if (view->txn)
		store_read_end(view->store);
}

struct store_view store_meta_view(struct store *store, struct store_meta *meta)
{
	struct store_view view = store_view(store);

	if (view.txn && view.txn == store->write)
		*meta = store->meta;
	else if (view.txn)
		view.error = store_meta_read(store, view.txn, meta);
	return view;
}

int store_late_get(struct store *store, const char *name, const MDB_val *key, void *entry, size_t bytes)
{
	STORE_VIEW view = store_view(store);
	MDB_val value = {};
	int error = view.error;
	MDB_dbi db;

	/* A handle from a reading transaction ends with it. */
	if (!error)
		error = environment_error(mdb_dbi_open(view.txn, name, 0, &db));
	if (!error)
		error = environment_error(mdb_get(view.txn, db, (MDB_val *)key, &value));
	if (!error && value.mv_size != bytes)
		error = -EBADMSG;
	if (!error)
		memcpy(entry, value.mv_data, bytes);
	return error;
}

void store_forget_pages(struct store *store)
{
	environment_forget_pages(store->env);
}

/* ---- entries of a database ---- */

/* After so many entries their pages are unmapped, or the process would map a whole large store. */
#define FORGOTTEN_ENTRIES (1 << 20)

int store_pair_put(struct store *store, MDB_dbi db, const MDB_val *key, MDB_val *value, unsigned int flags)
{
	return environment_write_error(store->env, mdb_put(store->write, db, (MDB_val *)key, value, flags));
}

int store_pair_del(struct store *store, MDB_dbi db, const MDB_val *key)
{
	const int status = mdb_del(store->write, db, (MDB_val *)key, NULL);

	return status == MDB_NOTFOUND ? 0 : environment_write_error(store->env, status);
}

int store_pairs_drop(struct store *store, MDB_dbi db)
{
	return environment_write_error(store->env, mdb_drop(store->write, db, 0));
}

int store_pairs_each(MDB_txn *txn, MDB_dbi db, int (*visit)(const struct store_pair *entry, void *context),
		     void *context)
{
	__u8 before[STORE_KEY_BYTES] __attribute__((aligned(8)));
	MDB_val last = { 0, before };
	struct store_pair entry = {};
	MDB_stat all = {};
	size_t visited = 0;
	int result = 0, status = mdb_stat(txn, db, &all);

	if (!status)
		status = mdb_cursor_open(txn, db, &entry.cursor);
	if (status)
		return environment_error(status);
	for (; !result && !(status = mdb_cursor_get(entry.cursor, &entry.key, &entry.value, MDB_NEXT)); visited++) {
		if (entry.key.mv_size > sizeof(before) || !environment_is_own_page(mdb_txn_env(txn), &entry.key) ||
		    (visited && mdb_cmp(txn, db, &last, &entry.key) >= 0)) {
			result = -EBADMSG;
			break;
		}
		last.mv_size = entry.key.mv_size;
		memcpy(before, entry.key.mv_data, last.mv_size);
		if (all.ms_entries >= FORGOTTEN_ENTRIES && visited % FORGOTTEN_ENTRIES == 0)
			environment_forget_pages(mdb_txn_env(txn));
		result = visit(&entry, context);
	}
	mdb_cursor_close(entry.cursor);
	if (result || (status && status != MDB_NOTFOUND))
		return result ? result : environment_error(status);
	return visited == all.ms_entries ? 0 : -EBADMSG;
}

int store_unread_reason(int error, struct reason *reason)
{
	return error ? reason_set(reason, error, "cannot read the store: %s", reason_of_write(error)) : 0;
}

/* ---- store_info() ---- */

int store_info(struct store *store, struct store_info *info)
{
	struct shape_list shapes;
	struct store_meta meta;
	MDB_stat rules = {}, timed = {};
	STORE_VIEW view = store_meta_view(store, &meta);
	int error = view.error;

	if (!error)
		error = environment_error(mdb_stat(view.txn, store->rules_db, &rules));
	if (!error)
		error = environment_error(mdb_stat(view.txn, store->deadlines_db, &timed));
	if (!error)
		error = store_shapes(store, &shapes);
	if (error)
		return error;
	*info = (struct store_info){
		.id = { meta.id[0], meta.id[1] },
		.generation = meta.generation,
		.plan = meta.plan,
		.rules = rules.ms_entries,
		.keys = shape_list_keys(&shapes),
		.timed = timed.ms_entries,
	};
	return 0;
}
