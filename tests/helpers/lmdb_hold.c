// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* lmdb_hold DIR: holds the writer's lock of an LMDB environment, as a program that is not xdp-cuckoo may do, until it is killed. */
#include <stdio.h>
#include <unistd.h>

#include <lmdb.h>

int main(int argc, char **argv)
{
	MDB_env *env;
	MDB_txn *txn;

	if (argc != 2 || mdb_env_create(&env) || mdb_env_open(env, argv[1], 0, 0600) ||
	    mdb_txn_begin(env, NULL, 0, &txn))
		return 1;
	puts("held");
	fflush(stdout);
	pause();
	return 0;
}
