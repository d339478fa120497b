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
