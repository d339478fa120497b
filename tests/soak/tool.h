/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The tool run as a process, from any thread: what it is given to read, what it writes, killed or not. */
#ifndef XDP_CUCKOO_SOAK_TOOL_H
#define XDP_CUCKOO_SOAK_TOOL_H

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "model.h"

#define TOOL_WORDS 16

struct tool_place {
	const char *path, *state;
};

/* A text that grows; `bytes` is NULL where it is empty. */
struct tool_text {
	char *bytes;
	size_t length, room;
};

struct tool_run {
	int status; /* exit status; -1: killed */
	uint64_t begin_ns, end_ns;
	char *out, *err; /* what it wrote, whole */
};

extern char **environ;

static inline void tool_die(const char *what)
{
	perror(what);
	exit(2);
}

__attribute__((format(printf, 2, 3))) static inline void tool_print(struct tool_text *text, const char *format, ...)
{
	va_list arguments;
	int length;

	if (text->room - text->length < 2 * MODEL_TEXT_BYTES) {
		text->room = 2 * text->room + 8192;
		text->bytes = realloc(text->bytes, text->room);
		if (!text->bytes)
			tool_die("memory");
	}
	va_start(arguments, format);
	length = vsnprintf(text->bytes + text->length, text->room - text->length, format, arguments);
	va_end(arguments);
	text->length += (size_t)length;
}

static inline int tool_file(const struct tool_text *text)
{
	const int fd = memfd_create("soak", MFD_CLOEXEC);
	size_t done = 0;

	if (fd < 0)
		tool_die("memfd_create");
	while (text && done < text->length) {
		const ssize_t written = write(fd, text->bytes + done, text->length - done);

		if (written < 0)
			tool_die("memfd");
		done += (size_t)written;
	}
	lseek(fd, 0, SEEK_SET);
	return fd;
}

/* Closes the file. */
static inline char *tool_read(int fd)
{
	struct stat file;
	char *text;
	ssize_t length;

	if (fstat(fd, &file))
		tool_die("memfd");
	text = malloc((size_t)file.st_size + 1);
	if (!text)
		tool_die("memory");
	length = pread(fd, text, (size_t)file.st_size, 0);
	text[length > 0 ? length : 0] = '\0';
	close(fd);
	return text;
}

static inline pid_t tool_spawn(const struct tool_place *place, const char *const *words, const int fds[3])
{
	char *argv[TOOL_WORDS + 4] = { (char *)place->path, "--state", (char *)place->state };
	posix_spawn_file_actions_t actions;
	size_t count = 3;
	pid_t pid;
	int error;

	while (*words && count < TOOL_WORDS + 3)
		argv[count++] = (char *)*words++;
	posix_spawn_file_actions_init(&actions);
	for (int fd = 0; fd < 3; fd++)
		posix_spawn_file_actions_adddup2(&actions, fds[fd], fd);
	error = posix_spawn(&pid, place->path, &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	errno = error;
	if (error)
		tool_die(place->path);
	return pid;
}

/* Runs it with `input` to read, and kills it after so long, where it still runs; 0: never. */
static inline void tool_run(const struct tool_place *place, const char *const *words, const struct tool_text *input,
			    uint64_t kill_after_ns, struct tool_run *run)
{
	const int fds[3] = { tool_file(input), tool_file(NULL), tool_file(NULL) };
	const struct timespec delay = { (time_t)(kill_after_ns / MODEL_NS_PER_S),
					(long)(kill_after_ns % MODEL_NS_PER_S) };
	int status;
	pid_t pid;

	run->begin_ns = model_now_ns();
	pid = tool_spawn(place, words, fds);
	if (kill_after_ns) {
		nanosleep(&delay, NULL);
		kill(pid, SIGKILL);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			tool_die("waitpid");
	run->end_ns = model_now_ns();
	run->status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	close(fds[0]);
	run->out = tool_read(fds[1]);
	run->err = tool_read(fds[2]);
}

static inline void tool_done(struct tool_run *run)
{
	free(run->out);
	free(run->err);
	run->out = run->err = NULL;
}

/* The line that `text` starts with, ended; moves on. NULL at the end, and of a line that is not whole. */
static inline char *tool_line(char **text)
{
	char *line = *text, *end = strchr(line, '\n');

	if (!end)
		return NULL;
	*end = '\0';
	*text = end + 1;
	return line;
}

#endif
