// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* newer DIR: marks the store in DIR as if version 255.0.0 of the tool had opened it to write. */
#include <stddef.h>

#include <linux/types.h>
#include <lmdb.h>

int main(int argc, char **argv)
{
	__u32 tool = 0xff0000;
	MDB_val key = { 4, (void *)"tool" }, value = { sizeof(tool), &tool };
	MDB_env *env;
	MDB_txn *txn;
	MDB_dbi dbi;

	if (argc != 2 || mdb_env_create(&env) || mdb_env_set_maxdbs(env, 1) || mdb_env_open(env, argv[1], 0, 0600) ||
	    mdb_txn_begin(env, NULL, 0, &txn) || mdb_dbi_open(txn, "meta", 0, &dbi) ||
	    mdb_put(txn, dbi, &key, &value, 0) || mdb_txn_commit(txn))
		return 1;
	mdb_env_close(env);
	return 0;
}
