// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "io/whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Opens the file at the path, after links. -errno; -ELOOP: a link of /proc leads to an open file of a
 * process. Does not follow links that the kernel forbids (fs.protected_symlinks).
 */
static int open_old(const char *path)
{
	const struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_MAGICLINKS };
	const int fd = syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

bool whole_file_is_output(const char *path)
{
	struct stat named, output;
	int fd;

	if (!strcmp(path, "-"))
		return true;
	fd = open_old(path);
	if (fd >= 0)
		close(fd);
	return fd == -ELOOP && !stat(path, &named) && !fstat(STDOUT_FILENO, &output) && named.st_dev == output.st_dev &&
	       named.st_ino == output.st_ino;
}

/* 1: replace the file; its path and mode are set. 0: write it directly. -errno. */
static int find_place(const char *path, struct whole_file *file, struct stat *old)
{
	const int fd = open_old(path);
	int error;

	if (fd == -ENOENT && lstat(path, old)) {
		old->st_mode = 0;
		return snprintf(file->path, PATH_MAX, "%s", path) < PATH_MAX ? 1 : -ENAMETOOLONG;
	}
	if (fd < 0)
		return fd == -ENOENT || fd == -ELOOP ? 0 : fd;
	error = fstat(fd, old) ? -errno : 0;
	if (!error && S_ISREG(old->st_mode)) {
		char link[32];
		ssize_t length;

		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		length = readlink(link, file->path, PATH_MAX);
		if (length >= 0 && length < PATH_MAX)
			file->path[length] = '\0';
		else
			error = length < 0 ? -errno : -ENAMETOOLONG;
	}
	close(fd);
	return error ? error : S_ISREG(old->st_mode);
}

int whole_file_open(struct whole_file *file, const char *path)
{
	struct stat old;
	const int is_replaced = find_place(path, file, &old);
	mode_t mask, mode;
	int fd, error;

	file->to = NULL;
	file->temporary[0] = '\0';
	if (is_replaced < 0)
		return is_replaced;
	if (!is_replaced) {
		file->to = fopen(path, "we");
		return file->to ? 0 : -errno;
	}
	/* The file beside the old one that will replace it, with its owner and mode. Only root may change the owner. */
	if (snprintf(file->temporary, PATH_MAX, "%s.XXXXXX", file->path) >= PATH_MAX)
		return -ENAMETOOLONG;
	fd = mkostemp(file->temporary, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	mode = old.st_mode & 0777;
	/* A new file gets the usual mode. */
	if (!old.st_mode) {
		mask = umask(0);
		umask(mask);
		mode = 0666 & ~mask;
	}
	if ((!old.st_mode || !fchown(fd, old.st_uid, old.st_gid) || errno == EPERM) && !fchmod(fd, mode))
		file->to = fdopen(fd, "w");
	if (file->to)
		return 0;
	error = -errno;
	close(fd);
	unlink(file->temporary);
	return error;
}

/* Puts the new name on the disk, where the file system can do so for directories. */
static int sync_directory_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	char directory[PATH_MAX] = ".";
	int fd, error = 0;

	if (slash)
		snprintf(directory, sizeof(directory), "%.*s", (int)(slash - path) + 1, path);
	fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno == EACCES ? 0 : -errno; /* a directory that we may write but not read */
	if (fsync(fd) && errno != EINVAL)
		error = -errno;
	close(fd);
	return error;
}

int whole_file_close(struct whole_file *file, int error)
{
	/* The text must be on the disk, or with the reader of a pipe, before the new file replaces the old one. */
	if (!error && fflush(file->to))
		error = -errno;
	if (!error && ferror(file->to))
		error = -EIO;
	if (!error && *file->temporary && fsync(fileno(file->to)))
		error = -errno;
	if (fclose(file->to) && !error)
		error = -errno;
	if (!error && *file->temporary && rename(file->temporary, file->path))
		error = -errno;
	if (error && *file->temporary)
		unlink(file->temporary);
	return error || !*file->temporary ? error : sync_directory_of(file->path);
}

/* ---- all bytes ---- */

int io_write_all(int fd, const void *bytes, size_t count)
{
	for (const char *next = bytes; count;) {
		const ssize_t put = write(fd, next, count);

		if (put < 0 && errno != EINTR)
			return -errno;
		next += put > 0 ? put : 0;
		count -= put > 0 ? put : 0;
	}
	return 0;
}

int io_read_whole(int fd, size_t most, char **text, size_t *length)
{
	struct stat status;
	ssize_t got = 1;
	int error = 0;

	*text = NULL;
	*length = 0;
	if (fstat(fd, &status))
		return -errno;
	if (!S_ISREG(status.st_mode))
		return -EINVAL;
	if ((size_t)status.st_size > most)
		return -EFBIG;
	*text = malloc(status.st_size + 1);
	if (!*text)
		return -ENOMEM;
	while (*length < (size_t)status.st_size && got > 0) {
		got = pread(fd, *text + *length, status.st_size - *length, *length);
		*length += got > 0 ? got : 0;
		error = got < 0 ? -errno : got ? 0 : -EIO;
	}
	(*text)[*length] = '\0';
	if (!error)
		return 0;
	free(*text);
	*text = NULL;
	return error;
}

#define SECRET_BYTES (4 << 20) /* all certificates of a system are 300 KB */

int io_read_secret(const char *what, const char *path, mode_t forbidden, char **text, struct reason *reason)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat status;
	size_t length = 0;
	int error;

	*text = NULL;
	if (fd < 0)
		return reason_set(reason, -errno, "%s = '%s': %s", what, path, strerror(errno));
	if (fstat(fd, &status))
		error = -errno;
	else if (status.st_mode & forbidden || (forbidden & S_IRGRP && status.st_uid && status.st_uid != geteuid()))
		error = reason_set(reason, -EACCES, "%s = '%s': others can read or change it; %s it", what, path,
				   forbidden & S_IRGRP ? "chown root and chmod go-rwx" : "chmod o-rwx,g-w");
	else
		error = io_read_whole(fd, SECRET_BYTES, text, &length);
	if (*text && strlen(*text) < length) {
		explicit_bzero(*text, length);
		free(*text);
		*text = NULL;
		error = reason_set(reason, -EBADMSG, "%s = '%s': it has a NUL byte", what, path);
	} else if (error == -EINVAL || error == -EFBIG)
		reason_set(reason, error, "%s = '%s': no file of at most %d bytes", what, path, SECRET_BYTES);
	else if (error && error != -EACCES)
		reason_set(reason, error, "%s = '%s': %s", what, path, strerror(-error));
	close(fd);
	return error;
}
