// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_beside(struct whole_file *file)
{
	const mode_t mask = umask(0);
	int fd, error;

	umask(mask);
	if (snprintf(file->beside, PATH_MAX, "%s.XXXXXX", file->path) >= PATH_MAX)
		return -ENAMETOOLONG;
	fd = mkostemp(file->beside, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (!fchmod(fd, 0666 & ~mask))
		file->to = fdopen(fd, "w");
	if (file->to)
		return 0;
	error = -errno;
	close(fd);
	unlink(file->beside);
	return error;
}

int whole_file_open(struct whole_file *file, const char *path)
{
	struct stat status;

	file->to = NULL;
	file->path = path;
	file->beside[0] = '\0';
	if (stat(path, &status) || S_ISREG(status.st_mode))
		return open_beside(file);
	file->to = fopen(path, "we");
	return file->to ? 0 : -errno;
}

/* Whether all of it got to the disk, or to whoever reads it. */
static int finish(const struct whole_file *file)
{
	if (fflush(file->to))
		return -errno;
	if (ferror(file->to))
		return -EIO;
	return *file->beside && fsync(fileno(file->to)) ? -errno : 0;
}

int whole_file_close(struct whole_file *file, int error)
{
	const int finished = finish(file), closed = fclose(file->to) ? -errno : 0;

	if (!error)
		error = finished ? finished : closed;
	if (!error && *file->beside && rename(file->beside, file->path))
		error = -errno;
	if (error && *file->beside)
		unlink(file->beside);
	return error;
}
