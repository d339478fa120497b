/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Runs the tool, with a fault or without, and keeps what it said. Knows no rules. */
#ifndef XDP_CUCKOO_TESTS_MACHINE_H
#define XDP_CUCKOO_TESTS_MACHINE_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MACHINE_WORDS 24
#define MACHINE_OUTPUT_BYTES (1 << 18)
#define MACHINE_LIMIT_S 60 /* a command that takes longer has hung */

struct machine {
	const char *tool;    /* as it is installed */
	const char *faulty;  /* the same with tests/fault/runtime.c */
	const char *shift;   /* tests/helpers/clock_shift.so.c */
	const char *scratch; /* a directory; the stores are below it */
};

/* Where and how a command is to fail; all zero: not at all. */
struct machine_fault {
	unsigned long at; /* step of these kinds */
	const char *kinds;
	int error;           /* 0: it is killed */
	bool lasts;          /* and later steps fail too */
	const char *command; /* of the shell: it is run at the step, and that is all */
	const char *count;   /* a file for the numbers of steps */
	long kill_ns;        /* killed from outside, when this time has passed; 0: not */
};

struct machine_run {
	int status; /* of exit; -1: by a signal */
	int signal;
	long ns;
	char out[MACHINE_OUTPUT_BYTES], err[MACHINE_OUTPUT_BYTES];
};

static inline long machine_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000L + now.tv_nsec;
}

static inline void machine_set(const char *name, unsigned long value)
{
	char text[24];

	snprintf(text, sizeof(text), "%lu", value);
	setenv(name, text, 1);
}

/* In the child. */
static inline void machine_set_fault(const struct machine_fault *fault)
{
	if (fault->at)
		machine_set("FAULT_AT", fault->at);
	if (fault->error)
		machine_set("FAULT_ERRNO", fault->error);
	if (fault->lasts)
		machine_set("FAULT_LASTS", 1);
	if (fault->command)
		setenv("FAULT_RUN", fault->command, 1);
	if (fault->kinds)
		setenv("FAULT_KINDS", fault->kinds, 1);
	if (fault->count)
		setenv("FAULT_COUNT", fault->count, 1);
}

static inline bool machine_is_faulty(const struct machine_fault *fault)
{
	return fault && (fault->at || fault->count);
}

/* "hours 2" as the first two words: the clocks are ahead by so much. Returns how many were taken. */
static inline int machine_shift(const struct machine *machine, const char *const *words)
{
	if (strcmp(words[0], "hours"))
		return 0;
	machine_set("CLOCK_SHIFT_S", 3600 * strtoul(words[1], NULL, 10));
	machine_set("BOOT_SHIFT_S", 3600 * strtoul(words[1], NULL, 10));
	setenv("LD_PRELOAD", machine->shift, 1);
	return 2;
}

__attribute__((noreturn)) static void machine_exec(const struct machine *machine, const struct machine_fault *fault,
						   const char *const *words)
{
	char state[256];
	const char *arguments[MACHINE_WORDS + 4] = { NULL, "--state", state };
	int i = 3;

	snprintf(state, sizeof(state), "%s/store", machine->scratch);
	arguments[0] = machine_is_faulty(fault) ? machine->faulty : machine->tool;
	words += machine_shift(machine, words);
	for (; *words && i < MACHINE_WORDS + 3; words++)
		arguments[i++] = *words;
	if (fault)
		machine_set_fault(fault);
	alarm(MACHINE_LIMIT_S);
	/* Another program may stand first: `ip`, for what the tool does not do itself. */
	if (!strcmp(arguments[3], "ip"))
		execvp("ip", (char **)arguments + 3);
	execv(arguments[0], (char **)arguments);
	_exit(127);
}

static inline int machine_file(const struct machine *machine, const char *name, int flags)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", machine->scratch, name);
	return open(path, flags | O_CLOEXEC, 0600);
}

static inline void machine_read(int fd, char text[MACHINE_OUTPUT_BYTES])
{
	const ssize_t length = pread(fd, text, MACHINE_OUTPUT_BYTES - 1, 0);

	text[length > 0 ? length : 0] = '\0';
	close(fd);
}

static inline void machine_wait(pid_t pid, const struct machine_fault *fault, struct machine_run *run)
{
	const struct timespec delay = { .tv_nsec = fault ? fault->kill_ns : 0 };
	int status;

	if (delay.tv_nsec) {
		nanosleep(&delay, NULL);
		kill(pid, SIGKILL);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	run->status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	run->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* `fault` may be NULL. */
static inline void machine_run(const struct machine *machine, const struct machine_fault *fault,
			       const char *const *words, struct machine_run *run)
{
	const int out = machine_file(machine, "out", O_RDWR | O_CREAT | O_TRUNC);
	const int err = machine_file(machine, "err", O_RDWR | O_CREAT | O_TRUNC);
	const long start = machine_ns();
	pid_t pid;

	if (out < 0 || err < 0 || (pid = fork()) < 0) {
		perror("faults");
		exit(2);
	}
	if (!pid) {
		dup2(out, STDOUT_FILENO);
		dup2(err, STDERR_FILENO);
		machine_exec(machine, fault, words);
	}
	machine_wait(pid, fault, run);
	run->ns = machine_ns() - start;
	machine_read(out, run->out);
	machine_read(err, run->err);
}

/* ---- batch: a few lines, their answers, the next few ---- */

/* Appends lines to run->out, until `wanted` are there or the end. How many there are. */
static inline size_t machine_read_answers(int fd, size_t wanted, struct machine_run *run)
{
	size_t answers = 0, length = 0;

	for (; run->out[length]; length++)
		answers += run->out[length] == '\n';
	while (answers < wanted && length + 1 < sizeof(run->out) && read(fd, run->out + length, 1) == 1)
		answers += run->out[length++] == '\n';
	run->out[length] = '\0';
	return answers;
}

/* Feeds `lines`, `count` of them, `group` at a time. Returns how many were answered. */
static inline size_t machine_feed(const struct machine *machine, const struct machine_fault *fault,
				  const char *const *words, const char *const *lines, size_t count, size_t group,
				  struct machine_run *run)
{
	const int err = machine_file(machine, "err", O_RDWR | O_CREAT | O_TRUNC);
	const long start = machine_ns();
	size_t answered = 0, asked = 0;
	int to[2], from[2];
	pid_t pid;

	if (err < 0 || pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC) || (pid = fork()) < 0) {
		perror("faults");
		exit(2);
	}
	if (!pid) {
		dup2(to[0], STDIN_FILENO);
		dup2(from[1], STDOUT_FILENO);
		dup2(err, STDERR_FILENO);
		machine_exec(machine, fault, words);
	}
	close(to[0]);
	close(from[1]);
	run->out[0] = '\0';
	/* It may be killed between an answer and the next line, which then nobody reads. */
	for (bool is_read = true; is_read && asked < count && answered == asked;) {
		for (size_t i = 0; i < group && asked < count && is_read; i++) {
			is_read = dprintf(to[1], "%s\n", lines[asked]) > 0;
			asked += is_read;
		}
		answered = machine_read_answers(from[0], asked, run);
	}
	close(to[1]);
	machine_wait(pid, fault && fault->at ? NULL : fault, run);
	close(from[0]);
	run->ns = machine_ns() - start;
	machine_read(err, run->err);
	return answered;
}

#endif
