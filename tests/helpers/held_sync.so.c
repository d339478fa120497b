// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Preloaded: as on a slow disk, fsync() of a file whose path has the text $HELD_FILE lasts as long as the file $HELD_WHILE
 * exists. Meanwhile the file $HELD_WHILE.now exists.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int fsync(int fd)
{
	const char *name = getenv("HELD_FILE"), *hold = getenv("HELD_WHILE");
	char link[32], path[PATH_MAX] = "", now[PATH_MAX];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (!name || !hold || readlink(link, path, sizeof(path) - 1) < 0 || !strstr(path, name))
		return (int)syscall(SYS_fsync, fd);
	snprintf(now, sizeof(now), "%s.now", hold);
	close(open(now, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	while (!access(hold, F_OK))
		usleep(10000);
	unlink(now);
	return (int)syscall(SYS_fsync, fd);
}
