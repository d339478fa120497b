// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Several processes at one store, and writers that are killed. Every process opens the store after
 * its fork(): LMDB environments do not survive one.
 */
#include "store_fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <time.h>

#define WRITERS 8
#define RULES_EACH 50
#define KILLS 25
#define ACKNOWLEDGED_MAX 60	 /* before the kill */
#define KILL_DELAY_MAX_NS 400000 /* some commits take that long */
#define WATCHDOG_S 60		 /* a writer that waits for a dead one never ends */

static __u64 random_state;

static __u64 random_below(__u64 bound)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (random_state >> 16) % bound;
}

static int seed(void **state)
{
	const char *text = getenv("SEED");

	(void)state;
	if (text)
		random_state = strtoull(text, NULL, 0);
	else if (getrandom(&random_state, sizeof(random_state), 0) != sizeof(random_state))
		return -1;
	random_state |= 1;
	fprintf(stderr, "# SEED=%llu\n", random_state);
	return 0;
}

static struct rule rule_number(unsigned int n)
{
	char text[32];

	snprintf(text, sizeof(text), "10.%u.%u.%u", n >> 16 & 255, n >> 8 & 255, n & 255);
	return rule_of(text);
}

static int commit_number(struct store *store, unsigned int n)
{
	struct rule rule = rule_number(n);
	int error = store_begin(store);

	if (!error)
		error = store_put(store, &rule);
	return error ? error : store_commit(store);
}

/* Every commit added one rule, and the rules are those from 0 on. */
static void holds_numbers(struct fixture *f, unsigned int count)
{
	holds(f, count, count, count);
	for (unsigned int n = 0; n < count; n++) {
		struct rule rule = rule_number(n);

		assert_int_equal(store_get(f->store, &rule), 0);
	}
}

static bool is_locked(struct fixture *f)
{
	char path[64];
	bool is_free;
	int fd;

	snprintf(path, sizeof(path), "%s/writer.lock", f->dir);
	fd = open(path, O_RDWR);
	if (fd < 0) {
		assert_int_equal(errno, ENOENT);
		return false;
	}
	is_free = flock(fd, LOCK_EX | LOCK_NB) == 0;
	close(fd);
	return !is_free;
}

static void test_writer_is_alone(void **state)
{
	struct fixture *f = *state;

	open_store(f, STORE_WRITE);
	assert_true(is_locked(f));
	add(f, "192.0.2.1");
	assert_true(is_locked(f));
	close_store(f);
	assert_false(is_locked(f));
	open_store(f, STORE_READ);
	assert_false(is_locked(f));
}

static int write_each_in_a_store_of_its_own(struct fixture *f, unsigned int first)
{
	for (unsigned int n = first; n < first + RULES_EACH; n++) {
		int error = store_open(f->dir, STORE_WRITE, &f->store, &f->reason);

		if (!error)
			error = commit_number(f->store, n);
		store_close(f->store);
		if (error)
			return 1;
	}
	return 0;
}

/* What a reader sees meanwhile is some committed state, whole. */
static void look(struct fixture *f)
{
	int error = store_open(f->dir, STORE_READ, &f->store, &f->reason);
	struct store_info info;

	if (error == -ENOENT)
		return;
	assert_int_equal(error, 0);
	info = info_of(f);
	assert_int_equal(info.rules, info.generation);
	assert_int_equal(info.keys, info.generation);
	close_store(f);
}

static void test_writers_take_turns(void **state)
{
	struct fixture *f = *state;
	int status, ended = 0;
	pid_t pid;

	for (unsigned int i = 0; i < WRITERS; i++) {
		pid = fork();
		assert_int_not_equal(pid, -1);
		if (pid == 0)
			_exit(write_each_in_a_store_of_its_own(f, i * RULES_EACH));
	}
	while (ended < WRITERS) {
		look(f);
		pid = waitpid(-1, &status, WNOHANG);
		assert_int_not_equal(pid, -1);
		if (pid == 0)
			continue;
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
		ended++;
	}
	open_store(f, STORE_READ);
	holds_numbers(f, WRITERS * RULES_EACH);
}

/* Adds rules from `n` on, one a commit, and acknowledges each, until it is killed. */
static void write_until_killed(struct fixture *f, unsigned int n, int acknowledge)
{
	if (store_open(f->dir, STORE_WRITE, &f->store, &f->reason))
		return;
	while (commit_number(f->store, n) == 0 && write(acknowledge, "", 1) == 1)
		n++;
}

/* Returns how many rules the writer acknowledged. */
static unsigned int run_and_kill_writer(struct fixture *f, unsigned int first)
{
	struct timespec delay = { .tv_nsec = random_below(KILL_DELAY_MAX_NS) };
	unsigned int until = random_below(ACKNOWLEDGED_MAX), acknowledged = 0;
	int pipe_fd[2], status;
	char byte;
	pid_t pid;

	assert_int_equal(pipe2(pipe_fd, O_CLOEXEC), 0);
	pid = fork();
	assert_int_not_equal(pid, -1);
	if (pid == 0) {
		write_until_killed(f, first, pipe_fd[1]);
		_exit(1);
	}
	close(pipe_fd[1]);
	while (acknowledged < until && read(pipe_fd[0], &byte, 1) == 1)
		acknowledged++;
	nanosleep(&delay, NULL); /* to hit every part of a commit, not to wait for anything */
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	while (read(pipe_fd[0], &byte, 1) == 1)
		acknowledged++;
	close(pipe_fd[0]);
	return acknowledged;
}

static void kill_writers(struct fixture *f)
{
	unsigned int rules = 0;

	alarm(WATCHDOG_S);
	for (int i = 0; i < KILLS; i++) {
		unsigned int acknowledged = run_and_kill_writer(f, rules);
		unsigned int found;

		assert_false(is_locked(f));
		open_store(f, STORE_WRITE);
		found = info_of(f).rules;
		assert_in_range(found, rules + acknowledged, rules + acknowledged + 1);
		holds_numbers(f, found);
		assert_int_equal(commit_number(f->store, found), 0);
		close_store(f);
		rules = found + 1;
	}
	alarm(0);
}

static void test_killed_writers(void **state)
{
	kill_writers(*state);
}

/* Opens the store, says so, and keeps it open until its end of the pipe is closed. */
static int stay_open(struct fixture *f, int ready, int until)
{
	char byte;

	if (store_open(f->dir, STORE_READ, &f->store, &f->reason) || write(ready, "", 1) != 1)
		return 1;
	return read(until, &byte, 1) == 0 ? 0 : 1;
}

/* LMDB makes its locks anew where nobody has the store open; here it must recover them. */
static void test_killed_writers_beside_a_reader(void **state)
{
	struct fixture *f = *state;
	int ready[2], until[2], status;
	char byte;
	pid_t pid;

	open_store(f, STORE_WRITE);
	close_store(f);
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	assert_int_equal(pipe2(until, O_CLOEXEC), 0);
	pid = fork();
	assert_int_not_equal(pid, -1);
	if (pid == 0) {
		close(until[1]);
		_exit(stay_open(f, ready[1], until[0]));
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	kill_writers(f);
	close(until[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(ready[0]);
	close(until[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_TEST(test_writer_is_alone),
		STORE_TEST(test_writers_take_turns),
		STORE_TEST(test_killed_writers),
		STORE_TEST(test_killed_writers_beside_a_reader),
	};

	return cmocka_run_group_tests(tests, seed, NULL);
}
