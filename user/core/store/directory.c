// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The directory of a store; the lock that lets only one process write; error texts. Does not call LMDB. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/version.h"
#include "base/waiting.h"
#include "store/internal.h"

#define STORE_DIR_LOCK "writer.lock"
#define HOLDER_NAME_BYTES 128
#define HOLDER_NAME_LENGTH "127"
#define HOLDER_BYTES (HOLDER_NAME_BYTES + 64)

/* ---- whose it is ---- */

/* Root could change the file in any case. */
static bool is_trusted(const struct stat *status)
{
	return status->st_uid == geteuid() || status->st_uid == 0;
}

static bool is_open_to_others(const struct stat *status)
{
	return status->st_mode & (S_IWGRP | S_IWOTH);
}

static const char *const files[] = { "data.mdb", "lock.mdb", STORE_DIR_LOCK };

static int check_files(int dir_fd)
{
	struct stat status;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		if (fstatat(dir_fd, files[i], &status, AT_SYMLINK_NOFOLLOW)) {
			if (errno != ENOENT)
				return -errno;
			continue;
		}
		/* A FIFO would block the process; a link would lead elsewhere. LMDB itself refuses a directory. */
		if (S_ISLNK(status.st_mode))
			return -ELOOP;
		if (!S_ISDIR(status.st_mode) && (!S_ISREG(status.st_mode) || status.st_nlink != 1 ||
						 !is_trusted(&status) || is_open_to_others(&status)))
			return -EMLINK;
	}
	return 0;
}

/* ---- opening ---- */

static void close_fd(int *fd)
{
	memory_close_fd(fd);
	*fd = -1;
}

/*
 * A descriptor of a directory that is no link and that others cannot write to; -errno. In a sticky directory
 * like /tmp, nobody but the owner renames or deletes a file.
 */
static int open_dir_at(int parent_fd, const char *name, bool may_be_sticky)
{
	int fd = openat(parent_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), error = 0;
	struct stat status;

	if (fd < 0) {
		error = -errno;
		return error == -ENOTDIR && !fstatat(parent_fd, name, &status, AT_SYMLINK_NOFOLLOW) &&
				       S_ISLNK(status.st_mode) ?
			       -ELOOP :
			       error;
	}
	if (fstat(fd, &status))
		error = -errno;
	else if (!is_trusted(&status) || (is_open_to_others(&status) && !(may_be_sticky && status.st_mode & S_ISVTX)))
		error = -EPERM;
	if (!error)
		return fd;
	close(fd);
	return error;
}

/* Adds the bits that the umask took: a library must not change the umask. */
static int widen(int fd, mode_t mode)
{
	char path[32];
	struct stat status;

	if (fstat(fd, &status))
		return -errno;
	if ((status.st_mode & mode) == mode)
		return 0;
	/* By its path in /proc, because fchmod() does not accept O_PATH. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!chmod(path, mode))
		return 0;
	return errno == ENOENT ? -ENOTSUP : -errno;
}

/* An existing directory keeps its mode. */
static int make_dir_at(int parent_fd, const char *name)
{
	FD_CLOSED int fd = -1;

	if (mkdirat(parent_fd, name, 0700))
		return errno == EEXIST ? 0 : -errno;
	fd = openat(parent_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : widen(fd, 0700);
}

int store_dir_open(const char *dir, bool makes, int *fd)
{
	char path[PATH_MAX], last[PATH_MAX], *slash, *name;
	FD_CLOSED int parent_fd = -1;
	int error = 0;

	*fd = -1;
	if (strlen(dir) >= sizeof(path))
		return -ENAMETOOLONG;
	slash = strcpy(path, dir);
	while (makes && !error && *slash && (slash = strchr(slash + 1, '/'))) {
		*slash = '\0';
		error = make_dir_at(AT_FDCWD, path);
		*slash = '/';
	}
	if (error)
		return error;
	name = basename(strcpy(last, dir));
	if (!*dir || *name == '/')
		return -ENOENT;
	parent_fd = open_dir_at(AT_FDCWD, dirname(path), true);
	error = parent_fd < 0 ? parent_fd : makes ? make_dir_at(parent_fd, name) : 0;
	if (error)
		return error;
	*fd = open_dir_at(parent_fd, name, false);
	error = *fd < 0 ? *fd : check_files(*fd);
	if (error)
		close_fd(fd);
	return error;
}

void store_unlink(const char *dir)
{
	char path[PATH_MAX];

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
		unlink(path);
	}
	rmdir(dir);
}

int store_dir_open_file(int dir_fd, const char *name, int *fd)
{
	int error = 0;

	*fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (*fd >= 0)
		error = widen(*fd, 0600);
	else if (errno == EEXIST)
		*fd = openat(dir_fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (*fd < 0)
		return -errno;
	if (error)
		close_fd(fd);
	return error;
}

/* ---- the lock ---- */

static unsigned long long pid_namespace(void)
{
	struct stat status;

	return stat("/proc/self/ns/pid", &status) ? 0 : status.st_ino;
}

/* Whether a signal has stopped the process, for example after ^Z in a terminal. */
static bool is_stopped(int pid)
{
	char path[32], text[128], *end;
	FILE_CLOSED FILE *file = NULL;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "re");
	end = file && fgets(text, sizeof(text), file) ? strrchr(text, ')') : NULL;
	return end && end[1] && (end[2] == 'T' || end[2] == 't');
}

static void describe_holder(int fd, struct reason *text)
{
	char name[HOLDER_NAME_BYTES], for_s[64] = "", stopped[64] = "", line[HOLDER_BYTES] = "";
	const long long now_ms = clock_ms(CLOCK_BOOTTIME);
	unsigned long long pids = 0;
	long long since_ms;
	int pid;
	const bool is_known = pread(fd, line, sizeof(line) - 1, 0) > 0 &&
			      sscanf(line, "%d %llu %lld %" HOLDER_NAME_LENGTH "[^\n]", &pid, &pids, &since_ms, name) ==
				      4;
	const bool is_here = is_known && pids && pids == pid_namespace();

	if (!is_known || (is_here && kill(pid, 0) && errno == ESRCH)) {
		reason_set(text, 0, "waiting for another process that is changing the rules");
		return;
	}
	if (since_ms <= now_ms)
		snprintf(for_s, sizeof(for_s), " for %lld s", (now_ms - since_ms) / 1000);
	if (is_here && is_stopped(pid))
		snprintf(stopped, sizeof(stopped), "; it is stopped: kill -CONT %d continues it", pid);
	reason_set(text, 0, "waiting for \"%s\" (process %d%s), which has been changing the rules%s%s", name, pid,
		   is_here ? "" : " of another container", for_s, stopped);
}

int store_dir_lock(int dir_fd, bool is_read_only, bool waits, int *fd)
{
	char text[HOLDER_BYTES];
	int length, error = 0;

	/* It may be read-only only here. Where no lock was ever made, nobody writes, and the directory itself is locked. */
	if (is_read_only) {
		*fd = openat(dir_fd, STORE_DIR_LOCK, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		if (*fd < 0 && errno == ENOENT)
			*fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		error = *fd < 0 ? -errno : 0;
	} else {
		error = store_dir_open_file(dir_fd, STORE_DIR_LOCK, fd);
	}
	if (error)
		return error;
	if (flock(*fd, LOCK_EX | LOCK_NB))
		error = errno == EWOULDBLOCK ? -EBUSY : -errno;
	if (error == -EBUSY && waits)
		error = waiting_lock(*fd, LOCK_EX, describe_holder);
	if (error)
		close_fd(fd);
	if (error || is_read_only)
		return error;
	/*
	 * Tells others which process has the lock: its pid; the namespace of the pid, or 0; since when, by CLOCK_BOOTTIME;
	 * its name. If the file cannot be written, the lock works all the same. The file is not emptied first, because ext4
	 * would free its block, and write another when the file is closed.
	 */
	length = snprintf(text, sizeof(text), "%d %llu %lld %.*s\n", getpid(), pid_namespace(),
			  (long long)clock_ms(CLOCK_BOOTTIME), HOLDER_NAME_BYTES - 1, waiting_name());
	if (ftruncate(*fd, pwrite(*fd, text, length, 0) == length ? length : 0))
		return 0; /* what is behind the line does no harm */
	return 0;
}

/* ---- words ---- */

int store_dir_explain(int error, const char *dir, struct reason *reason)
{
	static const struct {
		int error;
		const char *what, *cure;
	} known[] = {
		{ -ENOENT, "no rules are there", "add one, or name another directory with --state" },
		{ -EBADMSG, "data.mdb is damaged or not of xdp-cuckoo",
		  "put a copy in its place, or move it away and load the rules again" },
		{ -ENOEXEC, "data.mdb is of a machine with another byte order or word size",
		  "there, write the rules to a file with export; here, move data.mdb away and import that file" },
		{ -ENOTSUP, "it is opened through /proc, which is not mounted here",
		  "mount it: mount -t proc proc /proc" },
		{ -EPROTO, "this version does not know its schema",
		  "use the version of xdp-cuckoo that wrote it; if there is none, data.mdb is damaged: put a copy in "
		  "its place" },
		{ -EPROTONOSUPPORT, "a newer version than " VERSION " of xdp-cuckoo has written it",
		  "use that version, or go back: there, write a file with backup, and unload; here, move data.mdb "
		  "away, restore that file, and load" },
		{ -EACCES, "permission denied", "run as its owner, or name a directory of your own with --state" },
		{ -EPERM, "it, or the directory above, belongs to another user, or others can write to it",
		  "give it to the user that runs this, with mode 0700 (chown, chmod)" },
		{ -ELOOP, "it, or a file in it, is a symbolic link", "name the directory itself with --state" },
		{ -EMLINK,
		  "a file in it is no plain file, has a second hard link, belongs to another user, or "
		  "others can write to it",
		  "see who put it there, and move it away" },
		{ -ENOMEM, "no memory or address space for it",
		  "raise the limit; if there is none, data.mdb is damaged: put a copy in its place" },
		{ -EFBIG, "the limit of file sizes is reached", "raise it (ulimit -f, LimitFSIZE= of a service)" },
		{ -ENOSPC, "no space left on the disk", "free some" },
		{ -EROFS, "Read-only file system",
		  "make it writable, or copy this directory elsewhere and name the place with --state" },
		{ -EAGAIN, "too many commands have it open", "wait until some of them end" },
		{ -EBUSY, "somebody else is changing it", "try again when that has ended" },
		{ -EINTR, "interrupted while somebody else is changing it", "run this again" },
		{ -EDEADLK, "this thread has it open", "end its open change or reading first" },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (known[i].error == error)
			return reason_set(reason, error, "store %s: %s: %s", dir, known[i].what, known[i].cure);
	}
	return reason_set(reason, error, "store %s: %s: name another directory with --state", dir, strerror(-error));
}
