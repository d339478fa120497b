// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "base/waiting.h"

#include <errno.h>
#include <stdint.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/bpf.h>
#include <linux/membarrier.h>

volatile sig_atomic_t waiting_is_over;
static const struct waiting_watcher *watcher;
static const char *name;

void waiting_watch(const struct waiting_watcher *new)
{
	watcher = new;
}

void waiting_begin(waiting_describe describe, int fd)
{
	if (watcher)
		watcher->begin(describe, fd);
}

void waiting_end(void)
{
	if (watcher)
		watcher->end();
}

int waiting_lock(int fd, int operation, waiting_describe describe)
{
	int error, now;

	waiting_begin(describe, fd);
	do {
		now = waiting_is_over && operation & LOCK_EX ? LOCK_NB : 0;
		error = flock(fd, operation | now) ? -errno : 0;
	} while (error == -EINTR);
	waiting_end();
	return error == -EWOULDBLOCK && !(operation & LOCK_NB) ? -EINTR : error;
}

/* Closing is not enough: a child that this process has forked meanwhile holds the same lock. */
void waiting_unlock(int fd)
{
	if (fd < 0)
		return;
	flock(fd, LOCK_UN);
	close(fd);
}

void waiting_be_called(const char *what)
{
	name = what;
}

const char *waiting_name(void)
{
	return name ? name : program_invocation_short_name;
}

/* ---- grace periods ---- */

static int bpf_call(enum bpf_cmd command, union bpf_attr *attr)
{
	const int result = (int)syscall(SYS_bpf, command, attr, sizeof(*attr));

	return result < 0 ? -errno : result;
}

/*
 * MEMBARRIER_CMD_GLOBAL is synchronize_rcu(): it waits for every look-up, also of a preempted virtual processor. Kernels
 * with nohz_full CPUs refuse it, and so may a filter of system calls. But every kernel does the same before an update of
 * a map of maps returns: maybe_wait_bpf_programs(). So this updates one that nobody uses.
 */
int grace_wait(void)
{
	union bpf_attr inner = { .map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 8, .max_entries = 1 };
	union bpf_attr outer = { .map_type = BPF_MAP_TYPE_ARRAY_OF_MAPS, .key_size = 4, .value_size = 4, .max_entries = 1 };
	union bpf_attr update = {};
	const __u32 zero = 0;
	int value, map, error;

	if (!syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
		return 0;
	value = bpf_call(BPF_MAP_CREATE, &inner);
	if (value < 0)
		return value;
	outer.inner_map_fd = value;
	map = bpf_call(BPF_MAP_CREATE, &outer);
	update.map_fd = map;
	update.key = (__u64)(uintptr_t)&zero;
	update.value = (__u64)(uintptr_t)&value;
	error = map < 0 ? map : bpf_call(BPF_MAP_UPDATE_ELEM, &update);
	if (map >= 0)
		close(map);
	close(value);
	return error;
}
