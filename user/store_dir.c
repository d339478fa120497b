// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "store_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

int store_dir_make(const char *dir)
{
	char path[PATH_MAX], *slash = path;
	size_t length = strlen(dir);

	while (length > 1 && dir[length - 1] == '/')
		length--;
	if (length >= sizeof(path))
		return -ENAMETOOLONG;
	*(char *)mempcpy(path, dir, length) = '\0';
	while (*slash && (slash = strchr(slash + 1, '/'))) {
		*slash = '\0';
		if (mkdir(path, 0755) && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	return mkdir(path, 0700) && errno != EEXIST ? -errno : 0;
}

static int lock_wait(int fd)
{
	while (flock(fd, LOCK_EX)) {
		if (errno != EINTR)
			return -errno;
	}
	return 0;
}

int store_dir_lock(const char *dir, int *fd)
{
	int dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int error;

	*fd = -1;
	if (dir_fd < 0)
		return -errno;
	*fd = openat(dir_fd, "writer.lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	error = *fd < 0 ? -errno : lock_wait(*fd);
	close(dir_fd);
	if (error && *fd >= 0) {
		close(*fd);
		*fd = -1;
	}
	return error;
}

int store_dir_explain(int error, const char *dir, struct reason *reason)
{
	static const struct {
		int error;
		const char *what, *cure;
	} known[] = {
		{ -ENOENT, "no rules are there",
		  "add one, or name another directory with --state" },
		{ -EBADMSG, "data.mdb is damaged or not of xdp-cuckoo",
		  "move it away and load the rules again" },
		{ -EPROTO, "its schema is another", "use the version of xdp-cuckoo that wrote it" },
		{ -EACCES, "permission denied",
		  "run as root, or name a directory of your own with --state" },
		{ -ENOMEM, "no memory or address space for it", "raise the limit" },
		{ -ENOSPC, "no space left on the disk", "free some" },
		{ -EAGAIN, "too many commands have it open", "wait until some of them end" },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (known[i].error == error)
			return reason_set(reason, error, "store %s: %s: %s", dir, known[i].what,
					  known[i].cure);
	}
	return reason_set(reason, error, "store %s: %s: name another directory with --state", dir,
			  strerror(-error));
}
