// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Opens and closes a store; transactions; read views; the numbers of struct store_info. */
#include "store/store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/lmdb_environment.h"
#include "store/open_once.h"
#include "store/directory.h"
#include "store/internal.h"
#include "base/waiting.h"

/* ---- opening ---- */

static const struct {
	const char *name;
	size_t member; /* of struct store */
} databases[] = {
	{ "rules", offsetof(struct store, rules_db) },
	{ "shapes", offsetof(struct store, shapes_db) },
	/* New in schema 2. */
	{ "deadlines", offsetof(struct store, deadlines_db) },
	{ "undo", offsetof(struct store, undo_db) },
	/* New in schema 3. */
	{ "lists", offsetof(struct store, lists_db) },
	{ "undo_lists", offsetof(struct store, undo_lists_db) },
};

/* Number of databases by schema. */
static const size_t databases_count[] = { 0, 2, 4, 6 };

_Static_assert(sizeof(databases_count) / sizeof(databases_count[0]) == STORE_SCHEMA + 1, "a row each");

/* A writer adds the missing databases to an older store, so that it can be changed. */
static int databases_open_all(struct store *store, MDB_txn *txn, bool may_create, bool is_new)
{
	const size_t there = is_new ? 0 : databases_count[store->schema];
	int status = 0;

	if (may_create)
		store->schema = STORE_SCHEMA;
	for (size_t i = 0; i < databases_count[store->schema] && !status; i++) {
		MDB_dbi *dbi = (MDB_dbi *)((char *)store + databases[i].member);

		status = mdb_dbi_open(txn, databases[i].name, i >= there ? MDB_CREATE : 0, dbi);
	}
	return status;
}

static int databases_open(struct store *store, MDB_txn *txn, enum store_mode mode, bool is_new)
{
	struct store_meta meta = {};
	int status, error;

	status = mdb_dbi_open(txn, "meta", is_new ? MDB_CREATE : 0, &store->meta_db);
	if (!status && is_new)
		status = store_meta_create(store, txn);
	error = status ? environment_write_error(store->env, status) : store_meta_load(store, txn, &meta);
	if (!error)
		error = store_clock_set(&store->clock, &meta);
	if (error)
		return error;
	store->schema = meta.schema;
	status = databases_open_all(store, txn, mode != STORE_READ, is_new);
	return environment_write_error(store->env, status);
}

/* An environment without a database is left from a process that died early. It counts as no store. */
static int databases_attach_in(struct store *store, MDB_txn *txn, enum store_mode mode)
{
	MDB_stat root;
	MDB_dbi dbi;
	int status, error;

	/* Not mdb_env_stat(), which may describe a newer state than this transaction's. */
	status = mdb_dbi_open(txn, NULL, 0, &dbi);
	if (!status)
		status = mdb_stat(txn, dbi, &root);
	if (status)
		return environment_error(status);
	if (!root.ms_entries)
		return mode == STORE_READ ? -ENOENT : databases_open(store, txn, mode, true);
	error = databases_open(store, txn, mode, false);
	return error == -ENOENT ? -EBADMSG : error;
}

static int databases_attach(struct store *store, enum store_mode mode)
{
	MDB_txn *txn;
	int error;

	error = environment_error(mdb_txn_begin(store->env, NULL, mode == STORE_READ ? MDB_RDONLY : 0, &txn));
	if (error)
		return error;
	error = databases_attach_in(store, txn, mode);
	if (!error)
		return environment_write_error(store->env, mdb_txn_commit(txn));
	mdb_txn_abort(txn);
	return error;
}

/* By descriptor, so that no other directory can take its place. -ENOTSUP: /proc is missing. */
static int environment_open_at(int dir_fd, bool is_read_only, MDB_env **env)
{
	char path[32];
	int error;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", dir_fd);
	error = environment_open(path, is_read_only, env);
	return error == -ENOENT && access(path, F_OK) ? -ENOTSUP : error;
}

/* The owner of the lock is not xdp-cuckoo, whose writers wait for writer.lock before. */
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
	int error;

	waiting_begin(describe_others, -1);
	error = environment_open_at(dir_fd, mode == STORE_READ, &store->env);
	if (!error) {
		/* Forget readers that were killed: they keep old pages from being used again. */
		mdb_reader_check(store->env, NULL);
		error = databases_attach(store, mode);
	}
	waiting_end();
	return error;
}

static int store_attach(struct store *store, const char *dir, enum store_mode mode)
{
	const bool waits = mode != STORE_TRY;
	int dir_fd, error = store_dir_open(dir, mode != STORE_READ, &dir_fd);

	if (error)
		return error;
	error = open_once_begin(dir_fd, waits, &store->opened);
	if (!error && mode != STORE_READ)
		error = store_dir_lock(dir_fd, waits, &store->lock);
	if (!error)
		error = environment_attach(store, dir_fd, mode);
	close(dir_fd);
	return error;
}

int store_open(const char *dir, enum store_mode mode, struct store **store, struct reason *reason)
{
	struct store *new = calloc(1, sizeof(*new));
	int error = -ENOMEM;

	*store = NULL;
	if (new) {
		new->lock = -1;
		error = store_attach(new, dir, mode);
	}
	if (error) {
		store_close(new);
		return store_dir_explain(error, dir, reason);
	}
	*store = new;
	return 0;
}

void store_close(struct store *store)
{
	if (!store)
		return;
	store_abort(store);
	mdb_txn_abort(store->read);
	if (store->env)
		mdb_env_close(store->env);
	if (store->lock >= 0)
		close(store->lock); /* last: the next writer must find the environment closed */
	open_once_end(store->opened);
	free(store);
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
	store->is_changed = store->has_new_shape = false;
	store->is_pushed = store->keeps_undo = store->is_undoing = false;
	error = environment_error(mdb_cursor_open(store->write, store->rules_db, &store->appending));
	if (!error)
		error = store_meta_load(store, store->write, &store->meta);
	if (!error)
		error = store_shapes_load(store, store->write, &store->shapes);
	if (!error)
		error = store_lists_load(store, store->write, &store->lists);
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

static int store_save(struct store *store)
{
	int status;

	if (store->is_changed || store->lists.is_changed)
		store->meta.schema = STORE_SCHEMA;
	store->meta.generation += store->is_changed;
	store_clock_note(&store->clock, &store->meta);
	status = store_meta_save(store, store->write, &store->meta);
	if (!status && store->is_changed)
		status = store_shapes_save(store);
	if (!status && store->lists.is_changed)
		status = store_lists_save(store);
	return environment_write_error(store->env, status);
}

int store_commit(struct store *store)
{
	/* Schema 1 has neither timeouts nor a clock. */
	const bool is_stale = store->meta.schema > 1 && store_clock_moved(&store->clock, &store->meta);
	const bool is_to_save = store->is_changed || store->lists.is_changed || store->is_pushed || is_stale;
	int error = is_to_save ? store_save(store) : 0;

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

int store_view_begin(struct store *store, MDB_txn **txn)
{
	int status = 0;

	*txn = store->write;
	if (*txn)
		return 0;
	if (store->readers == 0) {
		status = store->read ? mdb_txn_renew(store->read) :
				       mdb_txn_begin(store->env, NULL, MDB_RDONLY, &store->read);
	}
	if (status)
		return environment_error(status);
	store->readers++;
	*txn = store->read;
	return 0;
}

void store_view_end(struct store *store)
{
	if (!store->write && --store->readers == 0)
		mdb_txn_reset(store->read);
}

/* ---- store_info() ---- */

int store_info(struct store *store, struct store_info *info)
{
	struct shape_list shapes;
	struct store_meta meta;
	MDB_stat rules, timed = {};
	MDB_txn *txn;
	int error = store_view_begin(store, &txn);

	if (error)
		return error;
	error = store_meta_get(store, txn, &meta);
	if (!error)
		error = environment_error(mdb_stat(txn, store->rules_db, &rules));
	if (!error && store->schema > 1)
		error = environment_error(mdb_stat(txn, store->deadlines_db, &timed));
	if (!error)
		error = store_shapes(store, &shapes);
	store_view_end(store);
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
