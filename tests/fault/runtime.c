// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Linked into a tool whose files are compiled with -fsanitize=thread, in the place of that sanitizer's own
 * runtime: the compiler then calls in here at the start and end of every function and before every access
 * to memory. With the calls of the system, which also the libraries make through here, these are the tool's
 * steps, in program order. At one of them it kills itself, or a call fails; what the environment says:
 *
 *   FAULT_AT=N       at the step number N of these kinds
 *   FAULT_KINDS=...  letters, see kind_letters
 *   FAULT_ERRNO=E    calls and allocations fail with E; without it: SIGKILL
 *   FAULT_LASTS=1    and so do all later ones
 *   FAULT_RUN=C      runs the shell command C at that step, and goes on
 *   FAULT_JSON=1     allocations of jansson are steps too
 *   FAULT_MAP=B      LMDB may use so many bytes of address space
 *   FAULT_COUNT=F    writes to F at the end how many steps of each kind there were
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <jansson.h>
#include <lmdb.h>

enum kind {
	FUNCTION, /* starts or ends */
	STORE,    /* into memory that others see: the maps */
	DISK,
	KERNEL, /* bpf(2), membarrier(2), by syscall(2) */
	NETLINK,
	MAPPING,
	PROCESS,
	ALLOCATION, /* by the tool itself */
	KINDS,
};

static const char kind_letters[KINDS + 1] = "fsdknmpa";

#define REGIONS_MAX 64

static struct {
	bool is_ready, is_off;
	bool is_wanted[KINDS];
	unsigned long at, steps, seen[KINDS];
	int error;
	const char *command;
	bool lasts;
	struct {
		const char *start, *end;
	} region[REGIONS_MAX]; /* shared memory */
	size_t regions;
} fault;

static void prepare(void)
{
	const char *at = getenv("FAULT_AT"), *kinds = getenv("FAULT_KINDS");
	const char *error = getenv("FAULT_ERRNO");

	fault.is_ready = true;
	fault.at = at ? strtoul(at, NULL, 10) : 0;
	fault.error = error ? atoi(error) : 0;
	fault.lasts = getenv("FAULT_LASTS");
	fault.command = getenv("FAULT_RUN");
	for (int kind = 0; kind < KINDS; kind++)
		fault.is_wanted[kind] = !kinds || strchr(kinds, kind_letters[kind]);
}

__attribute__((destructor)) static void report(void)
{
	const char *path = getenv("FAULT_COUNT");
	FILE *file = path && !fault.is_off ? fopen(path, "we") : NULL;

	if (!file)
		return;
	for (int kind = 0; kind < KINDS; kind++)
		fprintf(file, "%c %lu\n", kind_letters[kind], fault.seen[kind]);
	fclose(file);
}

/* Steps of what it takes to run that are none. */
static void run(const char *command)
{
	fault.is_off = true;
	unsetenv("LD_PRELOAD");
	if (system(command) == -1)
		perror("FAULT_RUN");
	fault.is_off = false;
}

/* That of base/waiting.c does nothing in any order. */
static bool is_other_thread(void)
{
	static __thread bool is_known, is_other;

	if (!is_known)
		is_other = gettid() != getpid();
	is_known = true;
	return is_other;
}

/* Whether the call that is about to be made shall fail; errno says how. */
static bool step(enum kind kind)
{
	if (!fault.is_ready)
		prepare();
	if (fault.is_off || is_other_thread())
		return false;
	fault.seen[kind]++;
	if (!fault.is_wanted[kind] || !fault.at)
		return false;
	fault.steps++;
	if (fault.steps != fault.at && !(fault.lasts && fault.steps > fault.at))
		return false;
	if (fault.command)
		run(fault.command);
	else if (!fault.error)
		kill(getpid(), SIGKILL);
	errno = fault.error;
	return fault.error;
}

/* ---- calls ---- */

/* What the program would have called, were this not in the way. */
#define REAL(name) \
	({ \
		static __typeof__(&name) real_##name; \
		if (!real_##name) \
			real_##name = (__typeof__(&name))dlsym(RTLD_NEXT, #name); \
		real_##name; \
	})

/* Steps before and after it; a call that fails is not made. */
#define AROUND(kind, failed, call) \
	({ \
		__typeof__(call) result_ = (__typeof__(call))(failed); \
		if (!step(kind)) { \
			result_ = (call); \
			after(kind); \
		} \
		result_; \
	})

/* In the program's order one step more; where calls are to fail there is none. */
static void after(enum kind kind)
{
	const int error = errno;

	if (!fault.error)
		step(kind);
	errno = error;
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t at)
{
	return AROUND(DISK, -1, REAL(pwrite)(fd, bytes, length, at));
}

ssize_t write(int fd, const void *bytes, size_t length)
{
	return AROUND(DISK, -1, REAL(write)(fd, bytes, length));
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
	return AROUND(DISK, -1, REAL(writev)(fd, parts, count));
}

int fdatasync(int fd)
{
	return AROUND(DISK, -1, REAL(fdatasync)(fd));
}

int fsync(int fd)
{
	return AROUND(DISK, -1, REAL(fsync)(fd));
}

int ftruncate(int fd, off_t length)
{
	return AROUND(DISK, -1, REAL(ftruncate)(fd, length));
}

int posix_fallocate(int fd, off_t at, off_t length)
{
	return AROUND(DISK, errno, REAL(posix_fallocate)(fd, at, length));
}

int mkdir(const char *path, mode_t mode)
{
	return AROUND(DISK, -1, REAL(mkdir)(path, mode));
}

int rename(const char *from, const char *to)
{
	return AROUND(DISK, -1, REAL(rename)(from, to));
}

int unlink(const char *path)
{
	return AROUND(DISK, -1, REAL(unlink)(path));
}

int flock(int fd, int operation)
{
	return AROUND(DISK, -1, REAL(flock)(fd, operation));
}

static mode_t mode_of(int flags, va_list arguments)
{
	return flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
}

int open(const char *path, int flags, ...)
{
	va_list arguments;
	mode_t mode;

	va_start(arguments, flags);
	mode = mode_of(flags, arguments);
	va_end(arguments);
	return AROUND(DISK, -1, REAL(open)(path, flags, mode));
}

int open64(const char *path, int flags, ...) __attribute__((alias("open")));

int openat(int dir, const char *path, int flags, ...)
{
	va_list arguments;
	mode_t mode;

	va_start(arguments, flags);
	mode = mode_of(flags, arguments);
	va_end(arguments);
	return AROUND(DISK, -1, REAL(openat)(dir, path, flags, mode));
}

/* Six arguments, whatever the call takes: the rest is not looked at. */
long syscall(long number, ...)
{
	long word[6];
	va_list arguments;

	va_start(arguments, number);
	for (int i = 0; i < 6; i++)
		word[i] = va_arg(arguments, long);
	va_end(arguments);
	return AROUND(KERNEL, -1, REAL(syscall)(number, word[0], word[1], word[2], word[3], word[4], word[5]));
}

int socket(int family, int type, int protocol)
{
	return AROUND(NETLINK, -1, REAL(socket)(family, type, protocol));
}

int bind(int fd, const struct sockaddr *address, socklen_t length)
{
	return AROUND(NETLINK, -1, REAL(bind)(fd, address, length));
}

ssize_t send(int fd, const void *bytes, size_t length, int flags)
{
	return AROUND(NETLINK, -1, REAL(send)(fd, bytes, length, flags));
}

ssize_t sendto(int fd, const void *bytes, size_t length, int flags, const struct sockaddr *to, socklen_t to_length)
{
	return AROUND(NETLINK, -1, REAL(sendto)(fd, bytes, length, flags, to, to_length));
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	return AROUND(NETLINK, -1, REAL(recvmsg)(fd, message, flags));
}

pid_t setsid(void)
{
	return AROUND(PROCESS, -1, REAL(setsid)());
}

/* The process that undoes a change is not the one whose steps are counted. */
pid_t fork(void)
{
	pid_t pid;

	if (step(PROCESS))
		return -1;
	pid = REAL(fork)();
	fault.is_off |= !pid;
	after(PROCESS);
	return pid;
}

/* The least that LMDB takes is of its own choosing. */
int mdb_env_set_mapsize(MDB_env *env, size_t bytes)
{
	const char *least = getenv("FAULT_MAP");

	return REAL(mdb_env_set_mapsize)(env, least ? strtoul(least, NULL, 10) : bytes);
}

/* ---- memory ---- */

static void *note_region(void *start, size_t length, int protection, int flags)
{
	if (start != MAP_FAILED && flags & MAP_SHARED && protection & PROT_WRITE && fault.regions < REGIONS_MAX) {
		fault.region[fault.regions].start = start;
		fault.region[fault.regions++].end = (char *)start + length;
	}
	return start;
}

void *mmap(void *at, size_t length, int protection, int flags, int fd, off_t offset)
{
	void *start = AROUND(MAPPING, MAP_FAILED, REAL(mmap)(at, length, protection, flags, fd, offset));

	return note_region(start, length, protection, flags);
}

void *mmap64(void *at, size_t length, int protection, int flags, int fd, off_t offset) __attribute__((alias("mmap")));

/* Of a table several were mapped, part by part. */
static void forget_regions(const char *start, size_t length)
{
	for (size_t i = fault.regions; i-- > 0;)
		if (fault.region[i].start >= start && fault.region[i].start < start + length)
			fault.region[i] = fault.region[--fault.regions];
}

int munmap(void *start, size_t length)
{
	forget_regions(start, length);
	return AROUND(MAPPING, -1, REAL(munmap)(start, length));
}

/* The linker's --wrap: of the tool's own files only. */
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);

void *__wrap_malloc(size_t bytes)
{
	return step(ALLOCATION) ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
	return step(ALLOCATION) ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
	return step(ALLOCATION) ? NULL : __real_realloc(memory, bytes);
}

/* And with FAULT_JSON those of jansson, of which --wrap sees nothing. */
__attribute__((constructor)) static void take_allocations_of_json(void)
{
	if (getenv("FAULT_JSON"))
		json_set_alloc_funcs(__wrap_malloc, free);
}

/* ---- what the compiler calls ---- */

static void store(const void *to)
{
	for (size_t i = 0; i < fault.regions; i++)
		if ((const char *)to >= fault.region[i].start && (const char *)to < fault.region[i].end) {
			step(STORE);
			return;
		}
}

void __tsan_init(void);
void __tsan_func_entry(void *caller);
void __tsan_func_exit(void);

void __tsan_init(void)
{
}

void __tsan_func_entry(void *caller)
{
	(void)caller;
	step(FUNCTION);
}

void __tsan_func_exit(void)
{
	step(FUNCTION);
}

#define PLAIN(bytes) \
	void __tsan_read##bytes(void *at); \
	void __tsan_write##bytes(void *at); \
	void __tsan_volatile_read##bytes(void *at); \
	void __tsan_volatile_write##bytes(void *at); \
	void __tsan_unaligned_read##bytes(void *at); \
	void __tsan_unaligned_write##bytes(void *at); \
	void __tsan_read##bytes(void *at) \
	{ \
		(void)at; \
	} \
	void __tsan_volatile_read##bytes(void *at) \
	{ \
		(void)at; \
	} \
	void __tsan_unaligned_read##bytes(void *at) \
	{ \
		(void)at; \
	} \
	void __tsan_write##bytes(void *at) \
	{ \
		store(at); \
	} \
	void __tsan_volatile_write##bytes(void *at) \
	{ \
		store(at); \
	} \
	void __tsan_unaligned_write##bytes(void *at) \
	{ \
		store(at); \
	}

PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)

void __tsan_read_range(void *at, size_t bytes);
void __tsan_write_range(void *at, size_t bytes);

void __tsan_read_range(void *at, size_t bytes)
{
	(void)at, (void)bytes;
}

void __tsan_write_range(void *at, size_t bytes)
{
	(void)bytes;
	store(at);
}

/* The strongest order is right for every one that is asked for. */
#define CHANGE(bits, name) \
	__UINT##bits##_TYPE__ __tsan_atomic##bits##_##name(__UINT##bits##_TYPE__ *at, __UINT##bits##_TYPE__ value, \
							   int order); \
	__UINT##bits##_TYPE__ __tsan_atomic##bits##_##name(__UINT##bits##_TYPE__ *at, __UINT##bits##_TYPE__ value, \
							   int order) \
	{ \
		(void)order; \
		store(at); \
		return __atomic_##name(at, value, __ATOMIC_SEQ_CST); \
	}

#define ATOMIC(bits) \
	__UINT##bits##_TYPE__ __tsan_atomic##bits##_load(const __UINT##bits##_TYPE__ *at, int order); \
	void __tsan_atomic##bits##_store(__UINT##bits##_TYPE__ *at, __UINT##bits##_TYPE__ value, int order); \
	__UINT##bits##_TYPE__ __tsan_atomic##bits##_load(const __UINT##bits##_TYPE__ *at, int order) \
	{ \
		(void)order; \
		return __atomic_load_n(at, __ATOMIC_SEQ_CST); \
	} \
	void __tsan_atomic##bits##_store(__UINT##bits##_TYPE__ *at, __UINT##bits##_TYPE__ value, int order) \
	{ \
		(void)order; \
		store(at); \
		__atomic_store_n(at, value, __ATOMIC_SEQ_CST); \
	} \
	int __tsan_atomic##bits##_compare_exchange_strong(__UINT##bits##_TYPE__ *at, __UINT##bits##_TYPE__ *expected, \
							  __UINT##bits##_TYPE__ value, int order, int otherwise); \
	int __tsan_atomic##bits##_compare_exchange_strong(__UINT##bits##_TYPE__ *at, __UINT##bits##_TYPE__ *expected, \
							  __UINT##bits##_TYPE__ value, int order, int otherwise) \
	{ \
		(void)order, (void)otherwise; \
		store(at); \
		return __atomic_compare_exchange_n(at, expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
	} \
	CHANGE(bits, fetch_add) \
	CHANGE(bits, fetch_sub) \
	CHANGE(bits, fetch_and) \
	CHANGE(bits, fetch_or)

ATOMIC(8)
ATOMIC(16)
ATOMIC(32)
ATOMIC(64)
