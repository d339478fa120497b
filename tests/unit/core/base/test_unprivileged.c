// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a process without privileges may still do, as it and the kernel see it. */
#include "unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <linux/capability.h>

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
	(void)context, (void)fd;
	raise(SIGSEGV);
}

__attribute__((noreturn)) static void handle(int number)
{
	_exit(number);
}

/* What a handler of the starter says would be about the starter's files. */
TEST(test_a_crash_is_not_handled_as_the_starters)
{
	void (*const before)(int) = signal(SIGSEGV, handle);
	struct unprivileged process;
	struct reason reason = {};
	int status;

	assert_int_equal(unprivileged_start(&process, crash, NULL, MEMORY, &reason), 0);
	assert_int_equal(waitpid(process.pid, &status, 0), process.pid);
	signal(SIGSEGV, before);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	process.pid = 0;
	unprivileged_stop(&process);
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

static void call_bpf(const void *context, int fd)
{
	(void)context, (void)fd;
	syscall(__NR_bpf, 0, NULL, 0);
}

static void open_sockets(const void *context, int fd)
{
	const int families[] = { AF_UNIX, AF_INET, AF_INET6, AF_NETLINK, AF_PACKET };
	char answers[sizeof(families) / sizeof(families[0])];

	(void)context;
	for (size_t i = 0; i < sizeof(answers); i++)
		answers[i] = socket(families[i], SOCK_DGRAM, 0) < 0 ? errno : 0;
	(void)!write(fd, answers, sizeof(answers));
}

/* The kernel kills it at a call that it never needs. Of sockets it can open those that libraries need. */
TEST(test_calls_that_are_forbidden)
{
	static void (*const calls[])(const void *context, int fd) = { run_a_program, call_bpf };
	const char wanted[] = { 0, 0, 0, 0, EAFNOSUPPORT };
	char answers[sizeof(wanted)];
	struct unprivileged process;
	struct reason reason;
	int status;

	if (prctl(PR_GET_SECCOMP) < 0)
		skip();
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(unprivileged_start(&process, calls[i], NULL, MEMORY, &reason), 0);
		assert_int_equal(waitpid(process.pid, &status, 0), process.pid);
		process.pid = 0;
		unprivileged_stop(&process);
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), SIGSYS);
	}
	assert_int_equal(unprivileged_start(&process, open_sockets, NULL, MEMORY, &reason), 0);
	assert_int_equal(read(process.fd, answers, sizeof(answers)), sizeof(answers));
	assert_memory_equal(answers, wanted, sizeof(answers));
	unprivileged_stop(&process);
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

#define FILE_TO_CHANGE "/tmp/unprivileged.%d"
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
	char path[64];

	if (prctl(PR_GET_SECCOMP) < 0)
		skip();
	snprintf(path, sizeof(path), FILE_TO_CHANGE, getpid());
	file = open(path, O_CREAT | O_EXCL | O_RDWR, 0666);
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
