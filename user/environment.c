// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "environment.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

/* Address space, neither memory nor disk: the file grows as rules come. */
#define ENVIRONMENT_MAP_BYTES (32ULL << 30)
#define ENVIRONMENT_MAP_BYTES_MIN (1ULL << 30)
#define ENVIRONMENT_DATABASES 8

int environment_error(int status)
{
	switch (status) {
	case MDB_NOTFOUND:
		return -ENOENT;
	case MDB_KEYEXIST:
		return -EEXIST;
	case MDB_MAP_FULL:
	case EDQUOT:
		return -ENOSPC;
	case MDB_MAP_RESIZED:
		return -ENOMEM;
	case MDB_READERS_FULL:
		return -EAGAIN;
	case MDB_INVALID:
	case MDB_CORRUPTED:
	case MDB_PAGE_NOTFOUND:
	case MDB_PANIC:
	case MDB_VERSION_MISMATCH:
	case MDB_INCOMPATIBLE:
		return -EBADMSG;
	default:
		return status < 0 ? -EIO : -status;
	}
}

/*
 * LMDB reports a short write as EIO, and that is how a disk that fills up shows first. What a write
 * of our own behind the end says is the truth; nothing refers to the byte.
 */
int environment_write_error(MDB_env *env, int status)
{
	const char byte = 0;
	struct stat file;
	int fd;

	if (status != EIO || mdb_env_get_fd(env, &fd) || fstat(fd, &file))
		return environment_error(status);
	if (pwrite(fd, &byte, sizeof(byte), file.st_size) < 0)
		return errno == ENOSPC || errno == EDQUOT ? -ENOSPC : -EIO;
	return -EIO;
}

/* Snapshots never reach behind the newest one, so no reader misses these pages. */
void environment_give_back(MDB_env *env)
{
	MDB_envinfo info;
	struct stat file;
	MDB_stat tree;
	off_t end;
	int fd;

	if (mdb_env_info(env, &info) || mdb_env_stat(env, &tree) || mdb_env_get_fd(env, &fd))
		return;
	end = (off_t)(info.me_last_pgno + 1) * tree.ms_psize;
	/* Where the cut fails, it costs space and harms nothing. */
	if (fstat(fd, &file) == 0 && file.st_size > end && ftruncate(fd, end))
		return;
}

static int environment_try(const char *dir, unsigned int flags, size_t bytes, MDB_env **env)
{
	int status = mdb_env_create(env);

	if (status)
		return status;
	mdb_env_set_maxdbs(*env, ENVIRONMENT_DATABASES);
	mdb_env_set_mapsize(*env, bytes);
	status = mdb_env_open(*env, dir, flags, 0600);
	if (status) {
		mdb_env_close(*env);
		*env = NULL;
	}
	return status;
}

int environment_open(const char *dir, bool is_read_only, MDB_env **env)
{
	unsigned int flags = is_read_only ? MDB_RDONLY : 0;
	size_t bytes = ENVIRONMENT_MAP_BYTES;
	int status;

	while ((status = environment_try(dir, flags, bytes, env)) == ENOMEM &&
	       bytes > ENVIRONMENT_MAP_BYTES_MIN)
		bytes /= 2;
	/* Readers share LMDB's lock file, unless they may not write it. */
	if (is_read_only && (status == EACCES || status == EROFS))
		status = environment_try(dir, MDB_RDONLY | MDB_NOLOCK, bytes, env);
	switch (status) {
	case EBADF: /* LMDB would initialise an empty file that it opened to read */
		return -ENOENT;
	case EISDIR:
		return -EBADMSG;
	default:
		return environment_error(status);
	}
}
