/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What it takes to run an LMDB environment safely: opening one in whatever address space and with
 * whatever permission there is, LMDB's status as -errno, full disks. Knows nothing of rules.
 */
#ifndef XDP_CUCKOO_ENVIRONMENT_H
#define XDP_CUCKOO_ENVIRONMENT_H

#include <stdbool.h>

#include <lmdb.h>

/*
 * Opens the environment in DIR. 0; -ENOENT where there is none to read; -EBADMSG where its file is
 * foreign or damaged; other -errno. On failure *env is NULL.
 */
int environment_open(const char *dir, bool is_read_only, MDB_env **env);

/* The -errno of an LMDB status. */
int environment_error(int status);

/* The same for operations that may write to the file: tells a full disk, and a limit of file sizes (-EFBIG), from a
 * broken disk. */
int environment_write_error(MDB_env *env, int status);

/*
 * Cuts off what a failed transaction wrote behind the last committed page: on a full disk that is
 * all the space there was. For the only writer, without a transaction.
 */
void environment_give_back(MDB_env *env);

#endif
