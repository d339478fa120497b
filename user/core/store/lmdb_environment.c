// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Runs an LMDB environment safely: opens it even with little address space or few permissions, converts
 * LMDB's statuses to -errno, and handles full disks. Knows nothing of rules.
 */
#include <byteswap.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "store/internal.h"

/* These limit address space, not memory or disk: the file grows with the rules. */
#define ENVIRONMENT_MAP_BYTES (32ULL << 30)
#define ENVIRONMENT_MAP_BYTES_MIN (1ULL << 30)
#define ENVIRONMENT_DATABASES 12
#define ENVIRONMENT_WRITE_BYTES (64 * 4096) /* MDB_COMMIT_PAGES of mdb.c */
#define ENVIRONMENT_READERS 1022            /* processes; a process whose output nobody reads may stay for long */
#define ENVIRONMENT_LOCK_BYTES 65536        /* size of lock.mdb for so many readers, by mdb.c */
#define ENVIRONMENT_MAGIC 0xBEEFC0DE        /* MDB_MAGIC of mdb.c */

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
	case MDB_CURSOR_FULL:
	case MDB_PAGE_FULL:
	case MDB_BAD_TXN:
	case MDB_BAD_VALSIZE:
	case MDB_VERSION_MISMATCH:
	case MDB_INCOMPATIBLE:
		return -EBADMSG;
	default:
		return status < 0 ? -EIO : -status;
	}
}

/* A page begins with its number. */
static const char *page_of(MDB_env *env, const MDB_val *key, size_t *bytes, size_t *number)
{
	const char *page = key->mv_data;
	MDB_stat tree = { .ms_psize = 4096 };

	mdb_env_stat(env, &tree);
	page -= (size_t)page % tree.ms_psize;
	memcpy(number, page, sizeof(*number));
	*bytes = tree.ms_psize;
	return page;
}

void environment_find_map(MDB_env *env, const MDB_val *key)
{
	size_t bytes, number;
	const char *page = page_of(env, key, &bytes, &number);

	mdb_env_set_userctx(env, (void *)(page - number * bytes));
}

bool environment_is_own_page(MDB_env *env, const MDB_val *key)
{
	const char *map = mdb_env_get_userctx(env);
	const size_t offset = (const char *)key->mv_data - map;
	size_t bytes, number;

	if (!map || offset >= ENVIRONMENT_MAP_BYTES)
		return true;
	page_of(env, key, &bytes, &number);
	return number == offset / bytes;
}

void environment_forget_pages(MDB_env *env)
{
	MDB_envinfo info;
	MDB_stat tree;

	if (mdb_env_get_userctx(env) && !mdb_env_info(env, &info) && !mdb_env_stat(env, &tree))
		madvise(mdb_env_get_userctx(env), (info.me_last_pgno + 1) * tree.ms_psize, MADV_DONTNEED);
}

/*
 * LMDB reports a short write as EIO. That is the first sign of a full disk or of a limit of file sizes. To
 * find out, this allocates room for LMDB's longest write after the end of the file, where no page is.
 */
int environment_write_error(MDB_env *env, int status)
{
	struct stat file;
	int fd, error;

	if (status != EIO || mdb_env_get_fd(env, &fd) || fstat(fd, &file))
		return environment_error(status);
	error = posix_fallocate(fd, file.st_size, ENVIRONMENT_WRITE_BYTES);
	return error == EFBIG ? -EFBIG : error == ENOSPC || error == EDQUOT ? -ENOSPC : -EIO;
}

/* No snapshot reaches beyond the newest one, so no reader needs these pages. */
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
	/* A failure costs space but does no harm. */
	if (fstat(fd, &file) == 0 && file.st_size > end && ftruncate(fd, end))
		return;
}

/*
 * Makes the files with the right mode. Call it before the environment is open: closing a descriptor of the
 * lock file drops this process's record locks on it. Returns an errno.
 */
static int files_make(const char *dir)
{
	FD_CLOSED const int dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	FD_CLOSED int lock_fd = -1, data_fd = -1;
	struct stat file;
	int error;

	if (dir_fd < 0)
		return errno;
	error = store_dir_open_file(dir_fd, "lock.mdb", &lock_fd);
	if (error)
		return -error;
	/* LMDB maps its lock file with holes. On a full disk the first write to a hole would raise SIGBUS. */
	if (fstat(lock_fd, &file))
		return errno;
	if (file.st_blocks * 512 < ENVIRONMENT_LOCK_BYTES)
		error = -posix_fallocate(lock_fd, 0, ENVIRONMENT_LOCK_BYTES);
	return -(error ? error : store_dir_open_file(dir_fd, "data.mdb", &data_fd));
}

/*
 * LMDB calls a file of another machine damaged if that machine has another byte order or word size. The magic number
 * follows the header of the first page. The header has 8 bytes and one word.
 */
static bool is_of_other_machine(const char *dir)
{
	FD_CLOSED int fd = -1;
	__u32 header[5] = { 0 };
	char path[64];
	ssize_t length;

	snprintf(path, sizeof(path), "%s/data.mdb", dir);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	length = fd < 0 ? 0 : read(fd, header, sizeof(header));
	for (size_t at = 3; at <= 4 && length == sizeof(header); at++) {
		const bool is_own_word = at * sizeof(*header) == 8 + sizeof(size_t);

		if (bswap_32(header[at]) == ENVIRONMENT_MAGIC || (header[at] == ENVIRONMENT_MAGIC && !is_own_word))
			return true;
	}
	return false;
}

/* A page is damaged. LMDB would print the text and abort; a page that cannot be read raises this signal, too. */
static void assertion_failed(MDB_env *env, const char *text)
{
	(void)env;
	(void)text;
	raise(SIGBUS);
}

static int environment_try(const char *dir, unsigned int flags, size_t bytes, MDB_env **env)
{
	int fd, status = mdb_env_create(env);

	if (status)
		return status;
	mdb_env_set_assert(*env, assertion_failed);
	mdb_env_set_maxdbs(*env, ENVIRONMENT_DATABASES);
	mdb_env_set_maxreaders(*env, ENVIRONMENT_READERS);
	mdb_env_set_mapsize(*env, bytes);
	/* MDB_NOTLS: a transaction that ends gives up its place among the readers, even if the environment stays open. */
	status = mdb_env_open(*env, dir, flags | MDB_NOTLS, 0600);
	if (!status)
		status = mdb_env_get_fd(*env, &fd);
	/* LMDB 0.9 leaves data.mdb open on exec. */
	if (!status && fcntl(fd, F_SETFD, FD_CLOEXEC))
		status = errno;
	if (status) {
		mdb_env_close(*env);
		*env = NULL;
	}
	return status;
}

/* With as much address space as there is. */
static int environment_try_sizes(const char *path, unsigned int flags, MDB_env **env)
{
	size_t bytes = ENVIRONMENT_MAP_BYTES;
	int status;

	while ((status = environment_try(path, flags, bytes, env)) == ENOMEM && bytes > ENVIRONMENT_MAP_BYTES_MIN)
		bytes /= 2;
	return status;
}

int environment_copy(MDB_env **env)
{
	FD_CLOSED const int fd = memfd_create("xdp-cuckoo", MFD_CLOEXEC);
	int status = fd < 0 ? errno : mdb_env_copyfd(*env, fd);
	char path[32];

	mdb_env_close(*env);
	*env = NULL;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!status)
		status = environment_try_sizes(path, MDB_NOSUBDIR | MDB_NOLOCK, env);
	return environment_error(status);
}

int environment_open(const char *dir, bool is_read_only, MDB_env **env)
{
	int status = is_read_only ? 0 : files_make(dir);

	if (!status)
		status = environment_try_sizes(dir, is_read_only ? MDB_RDONLY : 0, env);
	/* Readers use LMDB's lock file, unless they have no permission to write it. */
	if (is_read_only && (status == EACCES || status == EROFS))
		status = environment_try_sizes(dir, MDB_RDONLY | MDB_NOLOCK, env);
	switch (status) {
	case EBADF: /* the file is empty: LMDB would initialise it, but it is open for reading only */
		return -ENOENT;
	case EISDIR:
		return -EBADMSG;
	case MDB_INVALID:
		return is_of_other_machine(dir) ? -ENOEXEC : -EBADMSG;
	default:
		return environment_error(status);
	}
}

/*
 * ---- each store once in this process ----
 *
 * LMDB allows a process to open each store only once. It detects other users by record locks, which do not work between
 * threads and vanish when any descriptor of the file is closed. So threads wait for each other here, also for reading.
 */

struct open_once {
	dev_t device;
	ino_t inode;
	pthread_t thread;
	struct open_once *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t released = PTHREAD_COND_INITIALIZER;
static struct open_once *first;
static pid_t process;

int open_once_begin(int dir_fd, bool waits, struct open_once **opened)
{
	const struct open_once *other;
	struct open_once *new;
	struct stat status;
	int error = 0;

	*opened = NULL;
	if (fstat(dir_fd, &status))
		return -errno;
	new = calloc(1, sizeof(*new));
	if (!new)
		return -ENOMEM;
	*new = (struct open_once){ status.st_dev, status.st_ino, pthread_self(), NULL };
	pthread_mutex_lock(&lock);
	/* After fork(), the child has none of its parent's stores open. */
	if (process != getpid())
		first = NULL;
	process = getpid();
	other = first;
	while (other && !error) {
		if (other->device != new->device || other->inode != new->inode) {
			other = other->next;
			continue;
		}
		error = pthread_equal(other->thread, new->thread) ? -EDEADLK : waits ? 0 : -EBUSY;
		if (!error)
			pthread_cond_wait(&released, &lock);
		other = first; /* `other` may be gone */
	}
	if (!error) {
		new->next = first;
		first = new;
		*opened = new;
	}
	pthread_mutex_unlock(&lock);
	if (error)
		free(new);
	return error;
}

void open_once_end(struct open_once *opened)
{
	struct open_once **place = &first;

	if (!opened)
		return;
	pthread_mutex_lock(&lock);
	while (*place && *place != opened)
		place = &(*place)->next;
	if (*place)
		*place = opened->next;
	pthread_cond_broadcast(&released);
	pthread_mutex_unlock(&lock);
	free(opened);
}
