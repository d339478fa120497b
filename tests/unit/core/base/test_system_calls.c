// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What base/ asks the kernel for: memory, random bytes, pauses, locks, grace periods, capabilities. It answers as told here. */
#include "unit/test.h"

#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <linux/bpf.h>
#include <linux/membarrier.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/privileges.h"
#include "base/waiting.h"

#define CALLS_MAX 100

/* Each call takes the next answer; -errno is an error. */
static struct {
	long answers[CALLS_MAX];
	size_t count;
	struct call {
		long number, first, second;
	} calls[CALLS_MAX];
} kernel;

static void answer(const long *answers, size_t count)
{
	memset(&kernel, 0, sizeof(kernel));
	memcpy(kernel.answers, answers, count * sizeof(*answers));
}

#define ANSWER(...) answer((const long[]){ __VA_ARGS__ }, COUNT(((const long[]){ __VA_ARGS__ })))

static long called(long number, long first, long second)
{
	const long result = kernel.answers[kernel.count];

	assert_true(kernel.count < CALLS_MAX);
	kernel.calls[kernel.count++] = (struct call){ number, first, second };
	if (result >= 0)
		return result;
	errno = -result;
	return -1;
}

static void call_is(size_t i, long number, long first, long second)
{
	assert_int_equal(kernel.calls[i].number, number);
	assert_int_equal(kernel.calls[i].first, first);
	assert_int_equal(kernel.calls[i].second, second);
}

/* ---- memory ---- */

static const char *meminfo;

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode)
{
	if (strcmp(path, "/proc/meminfo"))
		return __real_fopen(path, mode);
	return meminfo ? fmemopen((void *)meminfo, strlen(meminfo), "r") : NULL;
}

void *__real_reallocarray(void *array, size_t count, size_t each);
void *__wrap_reallocarray(void *array, size_t count, size_t each);
void *__wrap_reallocarray(void *array, size_t count, size_t each)
{
	return called(0, count, each) < 0 ? NULL : __real_reallocarray(array, count, each);
}

static const void *freed; /* the last */

void __real_free(void *bytes);
void __wrap_free(void *bytes);
void __wrap_free(void *bytes)
{
	freed = bytes;
	__real_free(bytes);
}

ssize_t __wrap_getrandom(void *bytes, size_t count, unsigned int flags);
ssize_t __wrap_getrandom(void *bytes, size_t count, unsigned int flags)
{
	const ssize_t drawn = called(0, count, flags);

	if (drawn > 0)
		memset(bytes, kernel.count, drawn);
	return drawn;
}

TEST(test_is_there_enough_memory)
{
	struct reason reason;

	meminfo = NULL;
	assert_int_equal(memory_available_kib(), 0);
	assert_int_equal(memory_check(1ULL << 62, "x", "y", &reason), 0);
	meminfo = "MemTotal: 9999 kB\n";
	assert_int_equal(memory_available_kib(), 0);
	meminfo = "MemTotal: 9999 kB\nMemFree: 7 kB\nMemAvailable: 2048 kB\nBuffers: 5 kB\n";
	assert_int_equal(memory_available_kib(), 2048);
	assert_int_equal(memory_check((2 << 20) - 1, "x", "y", &reason), 0);
	assert_int_equal(memory_check(2 << 20, "x", "y", &reason), -ENOMEM);
	assert_string_equal(reason.text, "x needs 2 MiB and 2 MiB are available; y");
	assert_int_equal(memory_check((2 << 20) + 1, "x", "y", &reason), -ENOMEM);
	assert_string_equal(reason.text, "x needs 3 MiB and 2 MiB are available; y");
}

TEST(test_an_array_grows)
{
	int *array = NULL, *before;

	ANSWER(0, 0, 0, 0, -ENOMEM);
	for (int i = 0; i < 8; i++) {
		assert_int_equal(array_grow(&array, i, sizeof(*array)), 0);
		array[i] = i;
	}
	assert_int_equal(kernel.count, 4);
	for (size_t i = 0; i < 4; i++)
		call_is(i, 0, 1 << i, sizeof(*array));
	before = array;
	assert_int_equal(array_grow(&array, 8, sizeof(*array)), -ENOMEM);
	assert_ptr_equal(array, before);
	for (int i = 0; i < 8; i++)
		assert_int_equal(array[i], i);
	memory_free(&array);
	assert_ptr_equal(freed, before);
}

TEST(test_a_file_is_closed)
{
	FILE *file = NULL;
	int fd;

	memory_close_file(&file);
	file = fopen("/dev/null", "re");
	fd = fileno(file);
	memory_close_file(&file);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
}

TEST(test_random_bytes)
{
	__u8 bytes[301] = {};

	ANSWER(256, -EINTR, 44);
	assert_int_equal(random_draw(bytes, 300), 0);
	call_is(0, 0, 300, 0);
	call_is(1, 0, 44, 0);
	call_is(2, 0, 44, 0);
	assert_true(bytes[0] == 1 && bytes[255] == 1 && bytes[256] == 3 && bytes[299] == 3 && !bytes[300]);
	ANSWER(0, 300);
	assert_int_equal(random_draw(bytes, 300), 0);
	assert_int_equal(kernel.count, 2);
	ANSWER(-ENOSYS);
	assert_int_equal(random_draw(bytes, 300), -ENOSYS);
	assert_int_equal(random_draw(bytes, 0), 0);
	assert_int_equal(kernel.count, 1);
}

/* ---- clocks ---- */

int __wrap_nanosleep(const struct timespec *time, struct timespec *left);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
	assert_null(left);
	return called(0, time->tv_sec, time->tv_nsec);
}

TEST(test_clocks)
{
	struct timespec before, after;
	__s64 ns, ms;
	double seconds;

	clock_gettime(CLOCK_MONOTONIC, &before);
	ns = clock_ns(CLOCK_MONOTONIC);
	ms = clock_ms(CLOCK_MONOTONIC);
	seconds = clock_seconds();
	clock_gettime(CLOCK_MONOTONIC, &after);
	assert_in_range(ns, before.tv_sec * 1000000000LL + before.tv_nsec, after.tv_sec * 1000000000LL + after.tv_nsec);
	assert_in_range(ms, ns / 1000000, after.tv_sec * 1000 + after.tv_nsec / 1000000);
	assert_true(seconds >= 1e-9 * ns && seconds <= 1e-9 * clock_ns(CLOCK_MONOTONIC));
	ANSWER(0, -EINTR);
	assert_int_equal(clock_pause(-1) + clock_pause(0), 0);
	assert_int_equal(kernel.count, 0);
	assert_int_equal(clock_pause(2345), 0);
	assert_int_equal(clock_pause(1), -EINTR);
	call_is(0, 0, 2, 345000000);
	call_is(1, 0, 0, 1000000);
}

TEST(test_pauses)
{
	assert_int_equal(pause_longer(0, 5, 40), 5);
	assert_int_equal(pause_longer(5, 5, 40), 10);
	assert_int_equal(pause_longer(30, 5, 40), 40);
	assert_int_equal(pause_longer(0, 5, 4), 4);
	for (__u64 random = 0; random < 300; random++)
		assert_int_equal(pause_spread(100, random), 50 + random % 51);
	assert_int_equal(pause_spread(0, 9), 0);
}

/* ---- waits ---- */

static unsigned int begun, ended;

static void describe(int fd, struct reason *text)
{
	(void)fd, (void)text;
}

static void watch_begin(waiting_describe how, int fd)
{
	assert_ptr_equal(how, describe);
	assert_int_equal(fd, 7);
	assert_int_equal(begun++, ended);
}

static void watch_end(void)
{
	assert_int_equal(++ended, begun);
}

int __wrap_flock(int fd, int operation);
int __wrap_flock(int fd, int operation)
{
	assert_int_equal(begun - ended, operation != LOCK_UN && begun);
	return called(0, fd, operation);
}

TEST(test_locks)
{
	const struct waiting_watcher watcher = { watch_begin, watch_end };
	const int standard_input = dup(STDIN_FILENO);

	ANSWER(-EBADF);
	assert_int_equal(waiting_lock(3, LOCK_EX, describe), -EBADF);
	waiting_watch(&watcher);
	ANSWER(-EINTR, -EINTR, 0, -EWOULDBLOCK, 0);
	assert_int_equal(waiting_lock(7, LOCK_SH, describe), 0);
	assert_int_equal(kernel.count, 3);
	call_is(2, 0, 7, LOCK_SH);
	assert_int_equal(waiting_lock(7, LOCK_EX | LOCK_NB, describe), -EWOULDBLOCK);
	assert_int_equal(ended, 2);
	waiting_is_over = 1;
	ANSWER(0, -EWOULDBLOCK, 0);
	assert_int_equal(waiting_lock(7, LOCK_SH, describe), 0);
	call_is(0, 0, 7, LOCK_SH);
	assert_int_equal(waiting_lock(7, LOCK_EX, describe), -EINTR);
	call_is(1, 0, 7, LOCK_EX | LOCK_NB);
	waiting_is_over = 0;
	waiting_unlock(-1);
	assert_int_equal(kernel.count, 2);
	waiting_unlock(STDIN_FILENO);
	call_is(2, 0, STDIN_FILENO, LOCK_UN);
	assert_int_equal(fcntl(STDIN_FILENO, F_GETFD), -1);
	assert_int_equal(dup2(standard_input, STDIN_FILENO), STDIN_FILENO);
	close(standard_input);
	waiting_watch(NULL);
	assert_string_equal(waiting_name(), program_invocation_short_name);
	waiting_be_called("a test");
	assert_string_equal(waiting_name(), "a test");
}

/* ---- system calls by number ---- */

static struct __user_cap_data_struct capabilities[_LINUX_CAPABILITY_U32S_3];
static __u32 inner_map; /* what the maps of bpf() were made for, and updated with */
static struct {
	__u32 map, key, value;
} updated;

static void note_bpf(long command, const union bpf_attr *attr)
{
	if (command == BPF_MAP_CREATE) {
		inner_map = attr->inner_map_fd;
		return;
	}
	updated.map = attr->map_fd;
	memcpy(&updated.key, (const void *)(uintptr_t)attr->key, sizeof(updated.key));
	memcpy(&updated.value, (const void *)(uintptr_t)attr->value, sizeof(updated.value));
}

long __wrap_syscall(long number, long first, long second, long third);
long __wrap_syscall(long number, long first, long second, long third)
{
	const long result = called(number, first, third);
	void *data = (void *)second; /* the kernel's interface */

	if (number == SYS_bpf)
		note_bpf(first, data);
	else if (number == SYS_capget && !result)
		memcpy(data, capabilities, sizeof(capabilities));
	else if (number == SYS_capset && !result)
		memcpy(capabilities, data, sizeof(capabilities));
	return result;
}

/* Descriptors that bpf() gives. */
static long opened(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* Where membarrier() is refused, each failure of the other way is told, and no descriptor stays open. */
TEST(test_grace_periods)
{
	static const int errors[] = { -EPERM, -EMFILE, -E2BIG, 0, 0, 0 };

	ANSWER(0);
	assert_int_equal(grace_wait(), 0);
	assert_int_equal(kernel.count, 1);
	call_is(0, SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0);
	for (long failing = 0; failing < 6; failing++) {
		const int standard_input = dup(STDIN_FILENO);
		long inner, outer;

		/* A descriptor may be 0, too. */
		if (failing == 4)
			close(STDIN_FILENO);
		inner = opened();
		if (failing == 5)
			close(STDIN_FILENO);
		outer = opened();
		ANSWER(-EINVAL, failing == 0 ? -EPERM : inner, failing == 1 ? -EMFILE : outer,
		       failing == 2 ? -E2BIG : 0);
		updated.key = 9;
		assert_int_equal(grace_wait(), errors[failing]);
		assert_int_equal(kernel.count, failing < 3 ? 2 + failing : 4);
		assert_int_equal(fcntl(inner, F_GETFD) < 0, failing > 0);
		assert_int_equal(fcntl(outer, F_GETFD) < 0, failing > 1);
		assert_int_equal(dup2(standard_input, STDIN_FILENO), STDIN_FILENO);
		close(standard_input);
		call_is(1, SYS_bpf, BPF_MAP_CREATE, sizeof(union bpf_attr));
		if (failing < 3)
			continue;
		call_is(3, SYS_bpf, BPF_MAP_UPDATE_ELEM, sizeof(union bpf_attr));
		assert_int_equal(inner_map, inner);
		assert_true(updated.map == outer && !updated.key && updated.value == inner);
	}
}

/* ---- capabilities ---- */

int __wrap_prctl(int option, long first, long second);
int __wrap_prctl(int option, long first, long second)
{
	return called(option, first, second);
}

#define BIT(capability) (1ULL << (capability))
#define ALL (BIT(CAP_LAST_CAP + 1) - 1)
#define KERNEL (BIT(CAP_BPF) | BIT(CAP_NET_ADMIN) | BIT(CAP_PERFMON) | BIT(CAP_SYS_ADMIN))
#define WRITE (BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FOWNER) | BIT(CAP_CHOWN))
#define CHILD (BIT(CAP_SETUID) | BIT(CAP_SETGID) | BIT(CAP_KILL))
#define SSH (BIT(CAP_DAC_READ_SEARCH) | BIT(CAP_SYS_PTRACE))

static void have(__u64 set)
{
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		capabilities[i] = (struct __user_cap_data_struct){ set >> 32 * i, set >> 32 * i, set >> 32 * i };
}

static void has(__u64 set, __u64 inheritable)
{
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		assert_int_equal(capabilities[i].effective, (__u32)(set >> 32 * i));
		assert_int_equal(capabilities[i].permitted, (__u32)(set >> 32 * i));
		assert_int_equal(capabilities[i].inheritable, (__u32)(inheritable >> 32 * i));
	}
}

TEST(test_capabilities_that_stay)
{
	static const struct {
		unsigned int needs;
		__u64 kept;
	} rows[] = {
		{ 0, 0 },
		{ PRIVILEGE_KERNEL, KERNEL },
		{ PRIVILEGE_LOOK, BIT(CAP_SYS_ADMIN) },
		{ PRIVILEGE_READ | PRIVILEGE_WRITE, BIT(CAP_DAC_READ_SEARCH) | WRITE },
		{ PRIVILEGE_SSH, SSH },
		{ PRIVILEGE_CHILD, CHILD },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		__u64 dropped = 0;

		have(ALL);
		/* One answer for each capability that is dropped, and for the first that the kernel does not know. */
		memset(&kernel, 0, sizeof(kernel));
		kernel.answers[1 + CAP_LAST_CAP + 1 - __builtin_popcountll(rows[i].kept)] = -EINVAL;
		assert_int_equal(privileges_keep(rows[i].needs), 0);
		has(rows[i].kept, 0);
		for (size_t k = 0; k < kernel.count; k++)
			if (kernel.calls[k].number == PR_CAPBSET_DROP)
				dropped |= BIT(kernel.calls[k].first);
		assert_true(dropped == ((ALL & ~rows[i].kept) | BIT(CAP_LAST_CAP + 1)));
		call_is(kernel.count - 3, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0);
	}
	/* Without CAP_SETPCAP the bounding set stays. What is not there does not come back. */
	have(CHILD);
	ANSWER(0);
	assert_int_equal(privileges_keep(PRIVILEGE_KERNEL | PRIVILEGE_CHILD), 0);
	has(CHILD, 0);
	assert_int_equal(kernel.count, 4);
}

/* Any call may be refused: the error is told. */
TEST(test_capabilities_that_cannot_be_dropped)
{
	for (size_t failing = 1; failing < 5; failing++) {
		have(ALL);
		memset(&kernel, 0, sizeof(kernel));
		kernel.answers[2] = failing == 1 ? -EPERM : -EINVAL;
		kernel.answers[1 + failing] = failing == 1 ? -EPERM : -EIO;
		assert_int_equal(privileges_keep(0), failing == 1 ? -EPERM : -EIO);
	}
	ANSWER(-EIO);
	assert_false(privileges_has(CAP_KILL));
	ANSWER(-EACCES, 0);
	assert_int_equal(privileges_gain_none(), -EACCES);
	assert_int_equal(privileges_gain_none(), 0);
	call_is(1, PR_SET_NO_NEW_PRIVS, 1, 0);
	have(BIT(CAP_BPF));
	ANSWER(0);
	assert_true(privileges_has(CAP_BPF) && !privileges_has(CAP_BPF - 32) && !privileges_has(CAP_BPF - 1));
}

TEST(test_capabilities_that_are_passed_on)
{
	const __u64 passed = KERNEL | WRITE | CHILD | SSH | BIT(CAP_SETPCAP);

	have(ALL);
	ANSWER(0);
	assert_int_equal(privileges_pass_on(), 0);
	has(passed, passed);
	for (int i = 0; i < 64; i++)
		call_is(5 + i, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, i);
	assert_int_equal(kernel.count, 69);
	have(ALL);
	ANSWER(0, 0, 0, 0, -EPERM);
	assert_int_equal(privileges_pass_on(), 0);
	has(passed, 0);
	assert_int_equal(kernel.count, 5);
	for (size_t failing = 0; failing < 4; failing++) {
		have(ALL);
		memset(&kernel, 0, sizeof(kernel));
		kernel.answers[failing] = -EIO;
		assert_int_equal(privileges_pass_on(), failing < 3 ? -EIO : 0);
		assert_int_equal(kernel.count, failing + 1);
	}
}

TEST_MAIN(NULL, NULL)
