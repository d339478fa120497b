// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a process without privileges may still do, as it and the kernel see it. */
#include "unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/privileges.h"
#include "base/unprivileged.h"

#define PRIVATE_FILE "/etc/shadow"
#define MEMORY (64 << 20)
#define PIECE_BYTES (1 << 20)

/* What the process tells of itself. */
struct told {
	uid_t real, effective, saved;
	int groups, no_new_privileges, is_dumpable;
	pid_t session, pid;
	int files; /* other than the standard ones and the socket */
	bool can_read_private_file, has_capabilities;
	rlim_t core_max;
	char context[16];
};

static void tell(const void *context, int fd)
{
	struct told told = { .pid = getpid(), .session = getsid(0) };
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct now[_LINUX_CAPABILITY_U32S_3], none[_LINUX_CAPABILITY_U32S_3] = {};
	struct rlimit core;
	int opened;

	assert_int_equal(getresuid(&told.real, &told.effective, &told.saved), 0);
	told.groups = getgroups(0, NULL);
	told.no_new_privileges = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
	told.is_dumpable = prctl(PR_GET_DUMPABLE);
	assert_int_equal(syscall(SYS_capget, &header, now), 0);
	told.has_capabilities = memcmp(now, none, sizeof(none)) != 0;
	for (int i = STDERR_FILENO + 1; i < 256; i++)
		told.files += i != fd && fcntl(i, F_GETFD) >= 0;
	getrlimit(RLIMIT_CORE, &core);
	told.core_max = core.rlim_max;
	opened = open(PRIVATE_FILE, O_RDONLY);
	told.can_read_private_file = opened >= 0;
	snprintf(told.context, sizeof(told.context), "%s", (const char *)context);
	(void)!write(fd, &told, sizeof(told));
	pause();
}

static struct told start(struct unprivileged *process)
{
	struct reason reason = {};
	struct told told = {};

	if (unprivileged_start(process, tell, "context", MEMORY, &reason))
		fail_msg("%s", reason.text);
	assert_int_equal(read(process->fd, &told, sizeof(told)), sizeof(told));
	return told;
}

TEST(test_nothing_is_left)
{
	const int open_here = open("/dev/null", O_RDONLY);
	struct unprivileged process;
	struct told told = start(&process);

	assert_string_equal(told.context, "context");
	assert_int_equal(told.pid, process.pid);
	assert_int_equal(told.session, process.pid);
	assert_int_equal(told.no_new_privileges, 1);
	assert_int_equal(told.is_dumpable, 0);
	assert_false(told.has_capabilities);
	assert_int_equal(told.files, 0);
	assert_int_equal(told.core_max, 0);
	if (privileges_has(CAP_SETUID)) {
		const struct passwd *user = getpwnam(UNPRIVILEGED_USER);
		const uid_t wanted = user ? user->pw_uid : 65534;

		assert_int_equal(told.real, wanted);
		assert_int_equal(told.effective, wanted);
		assert_int_equal(told.saved, wanted);
		assert_int_equal(told.groups, 0);
		assert_false(told.can_read_private_file);
	}
	unprivileged_stop(&process);
	assert_int_equal(kill(told.pid, 0), -1);
	assert_int_equal(process.pid, 0);
	unprivileged_stop(&process);
	close(open_here);
}

static void crash(const void *context, int fd)
{
	(void)fd;
	raise(*(const int *)context);
}

__attribute__((noreturn)) static void handle(int number)
{
	_exit(number);
}

/* What a handler of the starter says would be about the starter's files. */
TEST(test_a_crash_is_not_handled_as_the_starters)
{
	static const int numbers[] = { SIGSEGV, SIGBUS };

	for (size_t i = 0; i < COUNT(numbers); i++) {
		void (*const before)(int) = signal(numbers[i], handle);
		struct unprivileged process;
		struct reason reason = {};
		int status;

		assert_int_equal(unprivileged_start(&process, crash, &numbers[i], MEMORY, &reason), 0);
		assert_int_equal(waitpid(process.pid, &status, 0), process.pid);
		signal(numbers[i], before);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == numbers[i]);
		process.pid = 0;
		unprivileged_stop(&process);
	}
}

/* Without the capability to change users it stays the same user, and is started all the same. */
TEST(test_a_starter_with_few_capabilities)
{
	const pid_t child = fork();
	int status;

	if (!child) {
		struct unprivileged process;
		struct told told;

		if (privileges_keep(0))
			_exit(2);
		told = start(&process);
		unprivileged_stop(&process);
		_exit(told.real != getuid() || told.has_capabilities);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* It does not outlive its starter. */
TEST(test_it_ends_with_its_starter)
{
	int ends[2];
	char byte;
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	if (!child) {
		struct unprivileged process;

		/* The write end as standard output: only then does the process keep it. */
		dup2(ends[1], STDOUT_FILENO);
		start(&process);
		_exit(0);
	}
	close(ends[1]);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(read(ends[0], &byte, 1), 0);
	close(ends[0]);
}

/* A socket takes few bytes at once. */
TEST(test_a_message_arrives_whole)
{
	unsigned char *sent = malloc(PIECE_BYTES), *got = malloc(PIECE_BYTES);
	int fds[2], status;
	pid_t child;

	assert_int_equal(random_draw(sent, PIECE_BYTES), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	assert_int_equal(unprivileged_receive(fds[0], got, 1, 0), -ETIMEDOUT);
	assert_int_equal(unprivileged_send(fds[1], sent, PIECE_BYTES, "", 0, 0), -ETIMEDOUT);
	close(fds[0]);
	close(fds[1]);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	child = fork();
	if (!child)
		_exit(unprivileged_send(fds[1], sent, 8, sent + 8, PIECE_BYTES - 8, UNPRIVILEGED_NO_DEADLINE) != 0);
	close(fds[1]);
	assert_int_equal(unprivileged_receive(fds[0], got, PIECE_BYTES, UNPRIVILEGED_NO_DEADLINE), 0);
	assert_memory_equal(got, sent, PIECE_BYTES);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(unprivileged_receive(fds[0], got, 1, UNPRIVILEGED_NO_DEADLINE), -ECONNRESET);
	assert_int_equal(unprivileged_send(fds[0], sent, 1, "", 0, UNPRIVILEGED_NO_DEADLINE), -ECONNRESET);
	close(fds[0]);
	free(sent);
	free(got);
}

TEST_MAIN(NULL, NULL)

static void run_a_program(const void *context, int fd)
{
	(void)context, (void)fd;
	execl("/bin/true", "true", NULL);
}

/* Signals and slows down its starter, as if that were another of its kind; then it may still abort(). */
static void touch_another(const void *context, int fd)
{
	const struct f_owner_ex owner = { F_OWNER_PID, getppid() };
	struct rlimit limit;

	(void)context;
	if (kill(getppid(), SIGSTOP) && fcntl(fd, F_SETOWN_EX, &owner) &&
	    syscall(SYS_tgkill, getppid(), getppid(), 0) && prlimit(getppid(), RLIMIT_CORE, NULL, &limit) &&
	    !getrlimit(RLIMIT_CORE, &limit))
		abort();
}

static void call_bpf(const void *context, int fd)
{
	(void)context, (void)fd;
	syscall(__NR_bpf, 0, NULL, 0);
}

static void *return_nothing(void *nothing)
{
	return nothing;
}

/* What it starts would outlive it, but for a thread. */
static void start_another(const void *context, int fd)
{
	pthread_t thread;

	(void)context, (void)fd;
	if (fork() < 0 && syscall(__NR_clone3, NULL, 0) < 0 && errno == ENOSYS &&
	    !pthread_create(&thread, NULL, return_nothing, NULL) && !pthread_join(thread, NULL))
		abort();
}

/* The kernel kills it at a call that it never needs. */
TEST(test_calls_that_are_forbidden)
{
	static void (*const calls[])(const void *context, int fd) = { run_a_program, call_bpf,
								      touch_another, start_another };
	struct unprivileged process;
	struct reason reason;
	int status;

	if (prctl(PR_GET_SECCOMP) < 0)
		skip();
	for (size_t i = 0; i < COUNT(calls); i++) {
		assert_int_equal(unprivileged_start(&process, calls[i], NULL, MEMORY, &reason), 0);
		assert_int_equal(waitpid(process.pid, &status, 0), process.pid);
		process.pid = 0;
		unprivileged_stop(&process);
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), i < 2 ? SIGSYS : SIGABRT);
	}
}

/* Its starter's memory does not count. */
static void grow(const void *context, int fd)
{
	__u32 pieces = 0;

	(void)context;
	/* cppcheck-suppress leakReturnValNotUsed ; the limit of memory ends it */
	while (pieces < 4 * MEMORY / PIECE_BYTES && malloc(PIECE_BYTES))
		pieces++;
	(void)!write(fd, &pieces, sizeof(pieces));
}

TEST(test_memory_is_limited)
{
	struct unprivileged process;
	struct reason reason;
	char *own = calloc(2, MEMORY);
	__u32 pieces;

	assert_non_null(own);
	assert_int_equal(unprivileged_start(&process, grow, NULL, MEMORY, &reason), 0);
	assert_int_equal(read(process.fd, &pieces, sizeof(pieces)), sizeof(pieces));
	unprivileged_stop(&process);
	free(own);
#ifdef __SANITIZE_ADDRESS__
	skip(); /* the limit is left out: tests/full/sanitizers.c */
#endif
	assert_in_range(pieces, MEMORY / PIECE_BYTES / 2, MEMORY / PIECE_BYTES);
}

#define CHANGES 9

static void change_files(const void *context, int fd)
{
	const char *path = context;
	struct stat ignored;
	int answers[CHANGES + 2] = {
		open(path, O_WRONLY),
		open(path, O_RDWR),
		open(path, O_RDONLY | O_TRUNC),
		open("/tmp/unprivileged.new", O_RDONLY | O_CREAT, 0600),
		open("/tmp", O_TMPFILE | O_RDWR, 0600),
		creat(path, 0600),
		truncate(path, 0),
		unlink(path),
		mkdir("/tmp/unprivileged.new", 0700),
		-1 - open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC),
		-1 - stat(path, &ignored),
	};

	(void)!write(fd, answers, sizeof(answers));
}

/* It can read a file that anybody may change, and not change it. */
TEST(test_files_cannot_be_changed)
{
	struct unprivileged process;
	int answers[CHANGES + 2], file;
	struct reason reason;
	char path[] = "/tmp/unprivileged.XXXXXX";

	if (prctl(PR_GET_SECCOMP) < 0)
		skip();
	file = mkstemp(path);
	assert_true(file >= 0);
	assert_int_equal(fchmod(file, 0666), 0);
	close(file);
	assert_int_equal(unprivileged_start(&process, change_files, path, MEMORY, &reason), 0);
	assert_int_equal(read(process.fd, answers, sizeof(answers)), sizeof(answers));
	unprivileged_stop(&process);
	assert_int_equal(unlink(path), 0);
	for (size_t i = 0; i < CHANGES; i++)
		assert_int_equal(answers[i], -1);
	assert_true(answers[CHANGES] < -1);
	assert_int_equal(answers[CHANGES + 1], -1);
}

/* ---- a kernel that answers as told, in place of the calls that need root ---- */

enum call { CLOSE_RANGE, SET_SID, SET_GROUPS, SET_GROUP, SET_USER, SET_LIMIT, KEEP, GAIN_NONE, PRCTL };

static struct {
	bool is_on, may_change_user, is_orphan, dies, cannot_fork, is_interrupted;
	size_t failing; /* the call that fails, from 1; 0: none does */
	const char *passwd, *statm;
	/* poll() waits as long as it is told, or until the peer sends. */
	__s64 now_ms;
	int poll_ms, polls, peer;
	short events;
} pretended;

/* What the process has called; both see it. */
static struct {
	size_t count, length;
	struct {
		enum call call;
		long first, second;
	} calls[32];
	bool has_run;
	struct sock_filter filter[512];
} * log_of_calls;

static int noted(enum call call, long first, long second)
{
	const size_t i = log_of_calls->count++;

	if (pretended.dies)
		_exit(1);
	log_of_calls->calls[i].call = call;
	log_of_calls->calls[i].first = first;
	log_of_calls->calls[i].second = second;
	if (i + 1 != pretended.failing)
		return 0;
	errno = EXDEV;
	return -1;
}

#define WRAPPED(type, name, parameters, arguments, ...) \
	type __real_##name parameters; \
	type __wrap_##name parameters; \
	type __wrap_##name parameters \
	{ \
		return pretended.is_on ? (__VA_ARGS__) : __real_##name arguments; \
	}

static int noted_prctl(int option, unsigned long first, unsigned long second)
{
	const struct sock_fprog *program = (void *)second; /* the kernel's interface */

	if (option == PR_SET_SECCOMP) {
		log_of_calls->length = program->len;
		memcpy(log_of_calls->filter, program->filter, program->len * sizeof(program->filter[0]));
	}
	return noted(PRCTL, option, first);
}

static FILE *pretended_file(const char *path)
{
	const char *text = strcmp(path, "/etc/passwd") ? pretended.statm : pretended.passwd;

	return text ? fmemopen((void *)text, strlen(text), "r") : NULL;
}

static int pretended_poll(const struct pollfd *file, int ms)
{
	assert_true(pretended.polls++ < 9);
	pretended.poll_ms = ms;
	pretended.events = file->events;
	if (pretended.peer) {
		assert_int_equal(send(pretended.peer, "xy", 2, 0), 2);
		pretended.peer = 0;
		return 1;
	}
	pretended.now_ms += ms;
	return 0;
}

/* A signal interrupts it once. */
static bool is_interrupted(void)
{
	const bool is = pretended.is_interrupted;

	pretended.is_interrupted = false;
	errno = EINTR;
	return is;
}

WRAPPED(int, close_range, (unsigned int first, unsigned int last, int flags), (first, last, flags),
	noted(CLOSE_RANGE, first, last))
WRAPPED(pid_t, setsid, (void), (), noted(SET_SID, 0, 0))
WRAPPED(int, setgroups, (size_t count, const gid_t *groups), (count, groups), noted(SET_GROUPS, count, !groups))
WRAPPED(int, setresgid, (gid_t a, gid_t b, gid_t c), (a, b, c), noted(SET_GROUP, a, b == a && c == a))
WRAPPED(int, setresuid, (uid_t a, uid_t b, uid_t c), (a, b, c), noted(SET_USER, a, b == a && c == a))
WRAPPED(int, setrlimit, (int what, const struct rlimit *limit), (what, limit),
	noted(SET_LIMIT, what, limit->rlim_cur == limit->rlim_max ? (long)limit->rlim_max : -1))
WRAPPED(int, prctl, (int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d),
	(option, a, b, c, d), noted_prctl(option, a, b))
WRAPPED(bool, privileges_has, (int capability), (capability), capability == CAP_SETUID && pretended.may_change_user)
WRAPPED(int, privileges_keep, (unsigned int needs), (needs), noted(KEEP, needs, 0) ? -EXDEV : 0)
WRAPPED(int, privileges_gain_none, (void), (), noted(GAIN_NONE, 0, 0) ? -EXDEV : 0)
WRAPPED(FILE *, fopen, (const char *path, const char *mode), (path, mode), pretended_file(path))
WRAPPED(pid_t, getppid, (void), (), pretended.is_orphan ? 1 : __real_getppid())
WRAPPED(pid_t, fork, (void), (), pretended.cannot_fork ? (errno = EAGAIN, -1) : __real_fork())
WRAPPED(int, socketpair, (int family, int type, int protocol, int fds[2]), (family, type, protocol, fds),
	pretended.failing == 99 ? (errno = EMFILE, -1) : __real_socketpair(family, type, protocol, fds))
WRAPPED(int, poll, (struct pollfd * file, nfds_t count, int ms), (file, count, ms), pretended_poll(file, ms))
WRAPPED(__s64, clock_ms, (clockid_t clock), (clock), pretended.now_ms)
WRAPPED(ssize_t, recv, (int fd, void *bytes, size_t count, int flags), (fd, bytes, count, flags),
	is_interrupted() ? -1 : __real_recv(fd, bytes, count, flags))
/* -1 and 0 would end more than the process. */
WRAPPED(int, kill, (pid_t pid, int number), (pid, number), pid > 0 ? __real_kill(pid, number) : (abort(), -1))

static void note_run(const void *context, int fd)
{
	(void)context;
	log_of_calls->has_run = true;
	(void)!write(fd, "", 1);
}

static unsigned int open_files(void)
{
	unsigned int count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

/* Starts a process as pretended; what it has called is in the log. No file of it stays open here. */
static int start_pretending(struct reason *reason)
{
	const unsigned int files = open_files();
	struct unprivileged process = { .fd = 99 };
	char byte;
	int error;

	if (!log_of_calls)
		log_of_calls =
			mmap(NULL, sizeof(*log_of_calls), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	memset(log_of_calls, 0, sizeof(*log_of_calls));
	pretended.is_on = true;
	error = unprivileged_start(&process, note_run, NULL, MEMORY, reason);
	if (!error)
		assert_int_equal(read(process.fd, &byte, 1), !pretended.is_orphan);
	else
		assert_true(!process.pid && process.fd == -1);
	unprivileged_stop(&process);
	pretended.is_on = false;
	assert_true(!process.pid && process.fd == -1);
	assert_int_equal(open_files(), files);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	return error;
}

static void call_is(size_t i, enum call call, long first, long second)
{
	assert_int_equal(log_of_calls->calls[i].call, call);
	assert_int_equal(log_of_calls->calls[i].first, first);
	assert_int_equal(log_of_calls->calls[i].second, second);
}

#define CALLS 13 /* of a process that changes its user */
#define PASSWD "root:x:0:0::/:\nxdp-cuckoo:x:%s::/:\nzoe:x:1000:1000::/:\n"

TEST(test_what_is_given_up_in_which_order)
{
	static const struct {
		const char *passwd;
		long user, group;
	} rows[] = {
		{ "xdp-cuckoo:x:321:123::/:\nzoe:x:1000:1000::/:\n", 321, 123 },
		{ "root:x:0:0::/:\n", 65534, 65534 },
		{ "xdp-cuckoo:x:0:123::/:\n", 65534, 65534 },
		{ "xdp-cuckoo:x:321:0::/:\n", 65534, 65534 },
		{ NULL, 65534, 65534 },
	};
	struct reason reason;

	for (size_t i = 0; i < COUNT(rows); i++) {
		memset(&pretended, 0, sizeof(pretended));
		pretended.passwd = rows[i].passwd;
		pretended.statm = "9 8 7 6 5 3 2\n";
		pretended.may_change_user = true;
		/* With descriptor 3 taken, there is one to close before the process's own. */
		assert_int_equal(start_pretending(&reason), 0);
		assert_true(log_of_calls->has_run);
		assert_int_equal(log_of_calls->count, CALLS - (log_of_calls->calls[1].call != CLOSE_RANGE));
		call_is(log_of_calls->count - 10, SET_GROUPS, 0, 1);
		call_is(log_of_calls->count - 9, SET_GROUP, rows[i].group, 1);
		call_is(log_of_calls->count - 8, SET_USER, rows[i].user, 1);
		call_is(log_of_calls->count - 7, SET_LIMIT, RLIMIT_CORE, 0);
		call_is(log_of_calls->count - 6, SET_LIMIT, RLIMIT_DATA, MEMORY + 3 * sysconf(_SC_PAGESIZE));
		call_is(log_of_calls->count - 5, KEEP, 0, 0);
		call_is(log_of_calls->count - 4, GAIN_NONE, 0, 0);
		call_is(log_of_calls->count - 3, PRCTL, PR_SET_PDEATHSIG, SIGKILL);
		call_is(log_of_calls->count - 2, PRCTL, PR_SET_DUMPABLE, 0);
		call_is(log_of_calls->count - 1, PRCTL, PR_SET_SECCOMP, SECCOMP_MODE_FILTER);
	}
	for (int has_file = 0; has_file < 2; has_file++) {
		memset(&pretended, 0, sizeof(pretended));
		pretended.statm = has_file ? "nonsense" : NULL;
		assert_int_equal(start_pretending(&reason), 0);
		call_is(log_of_calls->count - 6, SET_LIMIT, RLIMIT_DATA, MEMORY);
		call_is(log_of_calls->count - 8, SET_SID, 0, 0);
	}
}

/* A process that could not give up everything does not run. */
TEST(test_each_call_may_fail)
{
	const int taken = open("/dev/null", O_RDONLY);
	struct reason reason;

	for (size_t failing = 1; failing <= CALLS; failing++) {
		memset(&pretended, 0, sizeof(pretended));
		pretended.may_change_user = true;
		pretended.failing = failing;
		assert_int_equal(start_pretending(&reason), -EXDEV);
		assert_non_null(strstr(reason.text, strerror(EXDEV)));
		assert_int_equal(log_of_calls->count, failing);
		assert_false(log_of_calls->has_run);
	}
	call_is(0, CLOSE_RANGE, 3, log_of_calls->calls[1].first - 2);
	pretended.failing = 99;
	assert_int_equal(start_pretending(&reason), -EMFILE);
	pretended.failing = 0;
	pretended.cannot_fork = true;
	assert_int_equal(start_pretending(&reason), -EAGAIN);
	pretended.cannot_fork = false;
	pretended.dies = true;
	assert_int_equal(start_pretending(&reason), -ECONNRESET);
	pretended.dies = false;
	pretended.is_orphan = true;
	assert_int_equal(start_pretending(&reason), 0);
	assert_false(log_of_calls->has_run);
	close(taken);
}

static __u32 judged(const struct seccomp_data *data)
{
	__u32 loaded = 0;

	for (size_t i = 0; i < log_of_calls->length; i++) {
		const struct sock_filter *at = &log_of_calls->filter[i];

		if (at->code == (BPF_RET | BPF_K))
			return at->k;
		if (at->code == (BPF_LD | BPF_W | BPF_ABS))
			memcpy(&loaded, (const char *)data + at->k, sizeof(loaded));
		else if (at->code == (BPF_JMP | BPF_JEQ | BPF_K))
			i += loaded == at->k ? at->jt : at->jf;
		else if (at->code == (BPF_JMP | BPF_JGE | BPF_K))
			i += loaded >= at->k ? at->jt : at->jf;
		else if (at->code == (BPF_JMP | BPF_JSET | BPF_K))
			i += loaded & at->k ? at->jt : at->jf;
		else
			fail_msg("code %#x", at->code);
	}
	fail_msg("the filter has no end");
	return 0;
}

#ifdef __x86_64__
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#define ARCH 0
#endif
#define DENIED (SECCOMP_RET_ERRNO | EACCES)

TEST(test_the_filter_of_calls)
{
	static const struct {
		__u64 first, third; /* and second; the kernel looks at the low half */
		int number;
		__u32 judged;
	} rows[] = {
		{ 0, 0, __NR_read, SECCOMP_RET_ALLOW },
		{ 0, 0, __NR_execve, SECCOMP_RET_KILL_PROCESS },
		{ 0, 0, __NR_open_by_handle_at, SECCOMP_RET_KILL_PROCESS },
		{ 0, 0, __NR_openat2, DENIED },
		{ 0, 0, __NR_fchownat, DENIED },
		{ 0, O_CLOEXEC | 1ULL << 32, __NR_openat, SECCOMP_RET_ALLOW },
		{ 1, O_WRONLY, __NR_openat, DENIED },
		{ 0, O_RDWR, __NR_openat, DENIED },
		{ 0, O_CREAT, __NR_openat, DENIED },
		{ 0, O_TRUNC, __NR_openat, DENIED },
		{ AF_UNIX | 1ULL << 32, 0, __NR_socket, SECCOMP_RET_ALLOW },
		{ AF_NETLINK, 3, __NR_socket, SECCOMP_RET_ALLOW },
		{ AF_PACKET, 0, __NR_socket, SECCOMP_RET_ERRNO | EAFNOSUPPORT },
		{ 1, 0, __NR_kill, DENIED },
		{ 1, 0, __NR_tgkill, DENIED },
		{ 1, 0, __NR_prlimit64, DENIED },
		{ 1ULL << 32, 0, __NR_prlimit64, SECCOMP_RET_ALLOW },
		{ 0, F_SETOWN, __NR_fcntl, DENIED },
		{ 0, F_SETFL, __NR_fcntl, SECCOMP_RET_ALLOW },
		{ 0, SIOCSPGRP, __NR_ioctl, DENIED },
		{ CLONE_VM | CLONE_THREAD, 0, __NR_clone, SECCOMP_RET_ALLOW },
		{ CLONE_VM | CLONE_VFORK, 0, __NR_clone, DENIED },
		{ CLONE_THREAD, 0, __NR_clone3, SECCOMP_RET_ERRNO | ENOSYS },
		{ 0, 0, 0x40000000, SECCOMP_RET_KILL_PROCESS },
		{ 0, 0, 0x3fffffff, SECCOMP_RET_ALLOW },
	};
	unsigned int killed = 0, denied = 0, allowed = 0;
	struct reason reason;

	memset(&pretended, 0, sizeof(pretended));
	assert_int_equal(start_pretending(&reason), 0);
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_int_equal(judged(&(struct seccomp_data){ .nr = rows[i].number,
								.arch = ARCH,
								.args = { rows[i].first, rows[i].third, rows[i].third } }),
				 rows[i].judged);
	for (int number = 0; number < 1000; number++) {
		killed += judged(&(struct seccomp_data){ .nr = number, .arch = ARCH }) == SECCOMP_RET_KILL_PROCESS;
		denied += judged(&(struct seccomp_data){ .nr = number, .arch = ARCH }) == DENIED;
	}
	assert_int_equal(killed, 22);
	for (__u64 family = 0; family < 64; family++)
		allowed += judged(&(struct seccomp_data){ .nr = __NR_socket, .arch = ARCH, .args = { family } }) ==
			   SECCOMP_RET_ALLOW;
	assert_int_equal(allowed, 4);
#ifdef __NR_open
	assert_int_equal(denied, 38);
#else
	assert_int_equal(denied, 24);
#endif
	if (ARCH)
		assert_int_equal(judged(&(struct seccomp_data){ .nr = __NR_read, .arch = ARCH + 1 }),
				 SECCOMP_RET_KILL_PROCESS);
}

TEST(test_files_that_a_child_keeps)
{
	for (int kept = 3; kept < 6; kept++) {
		const pid_t child = fork();
		int status;

		if (!child) {
			int wrong = 0;

			for (int fd = 3; fd < 9; fd++)
				wrong += dup2(STDIN_FILENO, fd) != fd;
			wrong += unprivileged_close_others(kept) != 0;
			for (int fd = 0; fd < 9; fd++)
				wrong += (fcntl(fd, F_GETFD) >= 0) != (fd < 3 || fd == kept);
			_exit(wrong);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
}

/* A signal does not end a wait; without a deadline it is as long as can be. */
TEST(test_a_wait_for_bytes)
{
	char got[2] = {};
	int fds[2];

	memset(&pretended, 0, sizeof(pretended));
	assert_int_equal(unprivileged_receive(-1, got, 1, 0), -EBADF);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	pretended.peer = fds[1];
	pretended.now_ms = 1000;
	pretended.is_on = pretended.is_interrupted = true;
	assert_int_equal(unprivileged_receive(fds[0], got, 2, UNPRIVILEGED_NO_DEADLINE), 0);
	assert_memory_equal(got, "xy", 2);
	assert_true(pretended.poll_ms == INT_MAX && pretended.events == POLLIN);
	assert_int_equal(unprivileged_receive(fds[0], got, 1, 1020), -ETIMEDOUT);
	assert_true(pretended.poll_ms == 20 && pretended.now_ms == 1020 && pretended.polls == 2);
	assert_int_equal(unprivileged_receive(fds[0], got, 1, 1020), -ETIMEDOUT);
	assert_int_equal(pretended.polls, 2);
	pretended.is_on = false;
	close(fds[0]);
	close(fds[1]);
	assert_string_equal(unprivileged_failure(-ETIMEDOUT), "hangs");
	assert_string_equal(unprivileged_failure(-EPROTO), "sent nonsense");
	assert_string_equal(unprivileged_failure(-ECONNRESET), "has ended early");
	assert_string_equal(unprivileged_failure(-EIO), strerror(EIO));
}
