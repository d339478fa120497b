/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reads and writes a store's LMDB environment directly. The store must be closed meanwhile. */
#ifndef XDP_CUCKOO_TEST_LMDB_FIXTURE_H
#define XDP_CUCKOO_TEST_LMDB_FIXTURE_H

#include <lmdb.h>

#include "unit/store_fixture.h"

static inline MDB_txn *lmdb_begin(struct fixture *f)
{
	MDB_txn *txn;
	MDB_env *env;

	mkdir(f->dir, 0700);
	assert_int_equal(mdb_env_create(&env), 0);
	assert_int_equal(mdb_env_set_maxdbs(env, 8), 0);
	assert_int_equal(mdb_env_open(env, f->dir, 0, 0600), 0);
	assert_int_equal(mdb_txn_begin(env, NULL, 0, &txn), 0);
	return txn;
}

static inline void lmdb_commit(MDB_txn *txn)
{
	MDB_env *env = mdb_txn_env(txn);

	assert_int_equal(mdb_txn_commit(txn), 0);
	mdb_env_close(env);
}

static inline void lmdb_put_in(MDB_txn *txn, const char *database, MDB_val key, MDB_val value)
{
	MDB_dbi dbi;

	assert_int_equal(mdb_dbi_open(txn, database, MDB_CREATE, &dbi), 0);
	assert_int_equal(mdb_put(txn, dbi, &key, &value, 0), 0);
}

static inline void lmdb_delete(struct fixture *f, const char *database, MDB_val key)
{
	MDB_txn *txn = lmdb_begin(f);
	MDB_dbi dbi;

	assert_int_equal(mdb_dbi_open(txn, database, 0, &dbi), 0);
	assert_int_equal(mdb_del(txn, dbi, &key, NULL), 0);
	lmdb_commit(txn);
}

static inline void lmdb_put(struct fixture *f, const char *database, const char *name, MDB_val value)
{
	MDB_txn *txn = lmdb_begin(f);

	lmdb_put_in(txn, database, (MDB_val){ strlen(name), (void *)name }, value);
	lmdb_commit(txn);
}

static inline size_t lmdb_entries(MDB_txn *txn, const char *database)
{
	MDB_stat stat;
	MDB_dbi dbi;
	int status = mdb_dbi_open(txn, database, 0, &dbi);

	if (status == MDB_NOTFOUND)
		return 0;
	assert_int_equal(status, 0);
	assert_int_equal(mdb_stat(txn, dbi, &stat), 0);
	return stat.ms_entries;
}

/* Visits every entry of a database. */
static inline void lmdb_each(MDB_txn *txn, const char *database,
			     void (*visit)(MDB_txn *txn, MDB_val key, MDB_val value, void *context), void *context)
{
	MDB_cursor *cursor;
	MDB_val key, value;
	MDB_dbi dbi;

	assert_int_equal(mdb_dbi_open(txn, database, 0, &dbi), 0);
	assert_int_equal(mdb_cursor_open(txn, dbi, &cursor), 0);
	while (!mdb_cursor_get(cursor, &key, &value, MDB_NEXT))
		visit(txn, key, value, context);
	mdb_cursor_close(cursor);
}

#endif
