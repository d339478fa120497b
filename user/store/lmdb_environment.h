/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Runs an LMDB environment safely: opens it even with little address space or few permissions, converts
 * LMDB's statuses to -errno, and handles full disks. Knows nothing of rules.
 */
#ifndef XDP_CUCKOO_ENVIRONMENT_H
#define XDP_CUCKOO_ENVIRONMENT_H

#include <stdbool.h>

#include <lmdb.h>

/*
 * Opens the environment in DIR. 0; -ENOENT: there is none to read; -EBADMSG: its file is not LMDB's, or
 * damaged; other -errno. On failure *env is NULL.
 */
int environment_open(const char *dir, bool is_read_only, MDB_env **env);

/* The -errno of an LMDB status. */
int environment_error(int status);

/*
 * The same after an operation that may write to the file. Tells a full disk (-ENOSPC) and a limit of file
 * sizes (-EFBIG) from a broken disk.
 */
int environment_write_error(MDB_env *env, int status);

/*
 * Cuts off what a failed transaction wrote after the last committed page. On a full disk that may be all
 * the free space that there was. Only for the writer, outside a transaction.
 */
void environment_give_back(MDB_env *env);

#endif
