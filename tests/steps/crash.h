/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A crash at a step of a change: crash_at() forks. In the child the process that made the change is dead. A new one opens a
 * copy of its store, beside maps and interfaces as they are at this step. crash_point() is called at each store and before and
 * after each call that writes to the disk. After a reboot the disk has what was synced, and no filter runs.
 */
#ifndef XDP_CUCKOO_STEPS_CRASH_H
#define XDP_CUCKOO_STEPS_CRASH_H

#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "steps/changes.h"

enum crash_way { CRASH_NEXT, CRASH_LOAD, CRASH_OVERDUE, CRASH_WAYS };

#define CRASH_FATES 256 /* bytes: what became of each frame of the panel, and at the end of the store */
#define CRASH_VERDICTS (CRASH_FATES - 8)
#define CRASH_OUTCOMES 64 /* unlike ones of one change */

/* Written by the children. */
struct crash_seen {
	uint64_t crashes;
	size_t count;
	struct crash_outcome {
		enum crash_way way;
		uint64_t step;
		char fates[CRASH_FATES];
	} outcome[CRASH_OUTCOMES];
	char met[CRASH_FATES]; /* fates of a frame while the next command repairs the filter: a bit for each */
	char error[512];
};

static struct {
	struct crash_seen *seen;
	/* Ends as the process that comes next would. Writes the fates that its filter has given packets. */
	void (*recover)(enum crash_way way, struct crash_seen *seen, char fates[CRASH_FATES]);
	char data[128], synced[128], copy[128]; /* the file of the store; what a power cut leaves of it; a directory */
	uint64_t step, every;                   /* a crash at each of so many steps; 0: at none */
} crash;

static inline void crash_copy_file(const char *from, const char *to)
{
	const int in = open(from, O_RDONLY | O_CLOEXEC), out = open(to, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	while (sendfile(out, in, NULL, 1 << 30) > 0)
		;
	close(in);
	close(out);
}

static inline void crash_child(enum crash_way way)
{
	char file[160], fates[CRASH_FATES] = {};
	sigset_t none;
	size_t i = 0;

	every_store.is_on = false;
	crash.every = 0;
	disk_is_full = false;
	memory.step = NULL;
	signal(SIGSEGV, SIG_DFL);
	signal(SIGTRAP, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL); /* the crash may be in a handler */
	every_store_protect((uintptr_t)memory.start, memory.used, EVERY_STORE_FREE);
	snprintf(file, sizeof(file), "%s/lock.mdb", crash.copy);
	unlink(file);
	snprintf(file, sizeof(file), "%s/data.mdb", crash.copy);
	unlink(file);
	crash_copy_file(way == CRASH_LOAD ? crash.synced : crash.data, file);
	crash.recover(way, crash.seen, fates);
	while (i < crash.seen->count &&
	       (crash.seen->outcome[i].way != way || memcmp(crash.seen->outcome[i].fates, fates, sizeof(fates))))
		i++;
	if (i == crash.seen->count && i < CRASH_OUTCOMES) {
		crash.seen->outcome[i].way = way;
		crash.seen->outcome[i].step = crash.step;
		memcpy(crash.seen->outcome[i].fates, fates, sizeof(fates));
		crash.seen->count++;
	}
	_exit(0);
}

static inline void crash_at(enum crash_way way)
{
	const pid_t pid = fork();
	int status;

	if (!pid)
		crash_child(way);
	crash.seen->crashes++;
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		abort();
	if (status && !*crash.seen->error)
		snprintf(crash.seen->error, sizeof(crash.seen->error), "after a crash at step %llu, way %d: status %#x",
			 (unsigned long long)crash.step, way, status);
}

static inline void crash_point(void)
{
	crash.step++;
	if (crash.every && !(crash.step % crash.every))
		for (enum crash_way way = 0; way < CRASH_WAYS; way++)
			crash_at(way);
}

/* ---- in place of the C library's, for LMDB ---- */

/* What is written in this way is on the disk at once. */
static inline bool crash_is_synced(int fd)
{
	return fcntl(fd, F_GETFL) & O_DSYNC;
}

static inline ssize_t crash_write(long call, int fd, const void *data, size_t count, off_t offset)
{
	ssize_t written;

	if (disk_is_full || memory_fails())
		return disk_refused();
	if (!crash.every)
		return syscall(call, fd, data, count, offset);
	crash_point();
	written = syscall(call, fd, data, count, offset);
	if (call == SYS_pwrite64 && written > 0 && crash_is_synced(fd)) {
		const int synced = open(crash.synced, O_WRONLY | O_CLOEXEC);

		if (syscall(call, synced, data, count, offset) != written || close(synced))
			abort();
	}
	crash_point();
	return written;
}

ssize_t pwrite(int fd, const void *data, size_t count, off_t offset)
{
	return crash_write(SYS_pwrite64, fd, data, count, offset);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
	return crash_write(SYS_writev, fd, parts, count, 0);
}

int fdatasync(int fd)
{
	int error;

	if (memory_fails())
		return disk_refused();
	if (!crash.every)
		return syscall(SYS_fdatasync, fd);
	crash_point();
	error = syscall(SYS_fdatasync, fd);
	crash_copy_file(crash.data, crash.synced);
	crash_point();
	return error;
}

static inline void crash_begin(uint64_t every)
{
	if (!crash.seen)
		crash.seen = mmap(NULL, sizeof(*crash.seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	memset(crash.seen, 0, sizeof(*crash.seen));
	crash_copy_file(crash.data, crash.synced);
	crash.step = 0;
	crash.every = every;
}

#endif
