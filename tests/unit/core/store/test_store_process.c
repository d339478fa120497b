// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Several processes at one store, and writers that are killed. Every process opens the store after
 * its fork(): LMDB environments do not survive one.
 */
#include "unit/lmdb_fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>

#define WRITERS 8
#define READERS 200
#define RULES_EACH 50
#define KILLS 25
#define ACKNOWLEDGED_MAX 60      /* before the kill */
#define KILL_DELAY_MAX_NS 400000 /* some commits take that long */
#define WATCHDOG_S 60            /* a writer that waits for a dead one never ends */
#define COMMITS_MAX (KILLS * (ACKNOWLEDGED_MAX + KILL_DELAY_MAX_NS / 1000 + 2))
#define HOUR_MS 3600000

static struct rule rule_number(unsigned int n)
{
	char text[32];

	snprintf(text, sizeof(text), "10.%u.%u.%u", n >> 16 & 255, n >> 8 & 255, n & 255);
	return rule_of(text);
}

/* Every third rule is permanent. */
static int put_number(struct store *store, unsigned int n)
{
	struct rule rule = rule_number(n);

	if (n % 3)
		rule.timeout_ms = HOUR_MS * (n + 1LL);
	snprintf(rule.comment, sizeof(rule.comment), "number %u", n);
	return put_rule(store, &rule);
}

static int commit_number(struct store *store, unsigned int n)
{
	int error = store_begin(store);

	if (!error)
		error = put_number(store, n);
	return error ? error : store_commit(store);
}

/* Every commit added one rule, and the rules are those from 0 on. */
static void holds_numbers(struct fixture *f, unsigned int count)
{
	holds(f, count, count, count);
	assert_int_equal(info_of(f).timed, count - (count + 2) / 3);
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

STORE_TEST(test_writer_is_alone)
{
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

/* Meanwhile a reader sees only whole committed states. */
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

DIRECTORY_TEST(test_writers_take_turns)
{
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

/*
 * Commit number n changes every database: it adds a rule, gives another one a new timeout or adds it again,
 * and deletes one. Some commits are pending changes, which later commits confirm.
 */
static int change(struct store *store, unsigned int n)
{
	struct rule again = rule_number(n / 2), gone = rule_number(n / 4);
	int error;

	if (n % 8 == 6)
		error = store_set_pending(store, HOUR_MS);
	else
		error = n % 8 == 7 ? store_forget_pending(store) : 0;
	if (!error)
		error = put_number(store, n);
	if (error || n % 4 == 0)
		return error;
	again.timeout_ms = HOUR_MS;
	error = put_rule(store, &again);
	if (error < 0)
		return error;
	error = n % 4 == 3 ? del_rule(store, &gone) : 0;
	return error < 0 ? error : 0;
}

static int commit_change(struct store *store, unsigned int n)
{
	int error = store_begin(store);

	if (!error)
		error = change(store, n);
	return error ? error : store_commit(store);
}

/* The same in memory: the state after `commits` commits. */
static struct {
	bool is_there, is_timed;
} model[COMMITS_MAX];

static void replay(unsigned int commits)
{
	memset(model, 0, sizeof(model));
	for (unsigned int n = 0; n < commits; n++) {
		model[n].is_there = true;
		model[n].is_timed = n % 3;
		if (n % 4 == 0)
			continue;
		if (!model[n / 2].is_there)
			model[n / 2].is_there = model[n / 2].is_timed = true;
		if (n % 4 == 3)
			model[n / 4].is_there = false;
	}
}

/*
 * After commit 6 of every eight, a change is pending. It keeps the new rule for the undo, and the rule with a new
 * timeout unless that was permanent.
 */
static void holds_pending(struct fixture *f, unsigned int commits)
{
	struct store_pending pending;

	assert_int_equal(store_pending(f->store, &pending), 0);
	assert_int_equal(pending.id != 0, commits % 8 == 7);
	if (pending.id)
		assert_in_range(pending.rules, 1, 2);
	else
		assert_int_equal(pending.rules, 0);
}

static void holds_changes(struct fixture *f, unsigned int commits)
{
	struct store_info info = info_of(f);
	unsigned int rules = 0, timed = 0;

	assert_true(commits < COMMITS_MAX);
	replay(commits);
	for (unsigned int n = 0; n < commits; n++) {
		struct rule rule = rule_number(n);
		const bool is_timed = model[n].is_there && model[n].is_timed;

		assert_int_equal(store_get(f->store, &rule), model[n].is_there ? 0 : -ENOENT);
		assert_int_equal(rule.timeout_ms > 0, is_timed);
		rules += model[n].is_there;
		timed += is_timed;
	}
	assert_int_equal(info.rules, rules);
	assert_int_equal(info.keys, rules);
	assert_int_equal(info.timed, timed);
	holds_pending(f, commits);
}

/* A value with a deadline: byte 1, the deadline, the comment. Database "deadlines" has the bytes reversed. */
static void has_deadline(MDB_txn *txn, MDB_val key, MDB_val value, void *context)
{
	const __u8 *bytes = value.mv_data;
	__u8 deadline[sizeof(__u64) + RULE_ENCODED_BYTES];
	MDB_val ends = { sizeof(__u64) + key.mv_size, deadline }, nothing;
	MDB_dbi dbi;

	if (!value.mv_size || bytes[0] != 1)
		return;
	for (size_t i = 0; i < sizeof(__u64); i++)
		deadline[i] = bytes[sizeof(__u64) - i];
	memcpy(deadline + sizeof(__u64), key.mv_data, key.mv_size);
	assert_int_equal(mdb_dbi_open(txn, "deadlines", 0, &dbi), 0);
	assert_int_equal(mdb_get(txn, dbi, &ends, &nothing), 0);
	++*(size_t *)context;
}

/* Every rule with a timeout has its deadline in the database, and there are no others. */
static void databases_agree(struct fixture *f)
{
	MDB_txn *txn = lmdb_begin(f);
	size_t timed = 0;

	lmdb_each(txn, "rules", has_deadline, &timed);
	assert_int_equal(lmdb_entries(txn, "deadlines"), timed);
	lmdb_commit(txn);
}

/* Commits number `n` and all following, and acknowledges each, until it is killed. */
static void write_until_killed(struct fixture *f, unsigned int n, int acknowledge)
{
	if (store_open(f->dir, STORE_WRITE, &f->store, &f->reason))
		return;
	while (commit_change(f->store, n) == 0 && write(acknowledge, "", 1) == 1)
		n++;
}

/* Returns how many commits the writer acknowledged. */
static unsigned int run_and_kill_writer(struct fixture *f, unsigned int first)
{
	struct timespec delay = { .tv_nsec = below(KILL_DELAY_MAX_NS) };
	unsigned int until = below(ACKNOWLEDGED_MAX), acknowledged = 0;
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
	nanosleep(&delay, NULL); /* random, so that the kill hits every part of a commit */
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
	unsigned int commits = 0;

	alarm(WATCHDOG_S);
	for (int i = 0; i < KILLS; i++) {
		unsigned int acknowledged = run_and_kill_writer(f, commits);
		unsigned int found;

		assert_false(is_locked(f));
		open_store(f, STORE_WRITE);
		found = info_of(f).generation;
		assert_in_range(found, commits + acknowledged, commits + acknowledged + 1);
		holds_changes(f, found);
		close_store(f);
		databases_agree(f);
		open_store(f, STORE_WRITE);
		assert_int_equal(commit_change(f->store, found), 0);
		close_store(f);
		commits = found + 1;
	}
	alarm(0);
}

DIRECTORY_TEST(test_killed_writers)
{
	kill_writers(f);
}

/* ---- a store that is paused ---- */

static void resume(struct fixture *f, enum store_mode mode)
{
	int error = store_resume(f->dir, mode, &f->store, &f->reason);

	if (error)
		fail_msg("store_resume: %d: %s", error, f->reason.text);
	assert_int_equal(is_locked(f), mode != STORE_READ);
}

/* By another process, which must not have to wait. */
static void add_elsewhere(struct fixture *f, unsigned int n)
{
	struct store *own = f->store;
	int status;
	pid_t pid = fork();

	assert_int_not_equal(pid, -1);
	if (pid == 0)
		_exit(store_open(f->dir, STORE_TRY, &f->store, &f->reason) || commit_number(f->store, n));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_ptr_equal(f->store, own);
}

static int note_reader(const char *text, void *readers)
{
	*(bool *)readers |= strchr(text, '\n') && !strstr(text, "no active readers") && !strstr(text, "thread");
	return 0;
}

/* Asked in another process, since LMDB allows a process to open each environment only once. */
static bool has_readers(struct fixture *f)
{
	bool readers = false;
	MDB_txn *txn;
	int status;
	pid_t pid = fork();

	assert_int_not_equal(pid, -1);
	if (pid == 0) {
		txn = lmdb_begin(f);
		mdb_reader_list(mdb_txn_env(txn), note_reader, &readers);
		_exit(readers);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

STORE_TEST(test_others_write_while_a_store_is_paused)
{
	assert_int_equal(commit_number(f->store, 0), 0);
	holds_numbers(f, 1);
	assert_true(has_readers(f));
	for (unsigned int n = 1; n < 20; n += 2) {
		store_pause(&f->store);
		assert_false(is_locked(f));
		assert_false(has_readers(f));
		add_elsewhere(f, n);
		resume(f, STORE_READ);
		holds_numbers(f, n + 1);
		store_pause(&f->store);
		resume(f, n % 3 ? STORE_WRITE : STORE_TRY);
		assert_int_equal(commit_number(f->store, n + 1), 0);
		holds_numbers(f, n + 2);
	}
	store_pause(&f->store);
	close_store(f);
	resume(f, STORE_READ);
	store_pause(&f->store);
	assert_null(f->store);
}

/* Files that are gone must not be changed: nobody would see the change. */
STORE_TEST(test_the_files_of_a_paused_store_are_replaced)
{
	char path[64];

	assert_int_equal(commit_number(f->store, 0), 0);
	store_pause(&f->store);
	snprintf(path, sizeof(path), "%s/moved", f->top);
	assert_int_equal(rename(f->dir, path), 0);
	assert_int_equal(store_resume(f->dir, STORE_READ, &f->store, &f->reason), -ENOENT);
	assert_null(f->store);
	assert_int_equal(rename(path, f->dir), 0);
	resume(f, STORE_WRITE);
	holds_numbers(f, 1);
	for (int file = 0; file < 2; file++) {
		store_pause(&f->store);
		snprintf(path, sizeof(path), "%s/%s", f->dir, file ? "data.mdb" : "lock.mdb");
		assert_int_equal(unlink(path), 0);
		add_elsewhere(f, !file);
		resume(f, STORE_WRITE);
		holds_numbers(f, 2 - file);
	}
}

/* ---- many readers ---- */

/* Opens the store, says so, and keeps it open until its end of the pipe is closed. */
static int stay_open(struct fixture *f, int ready, int until)
{
	char byte;

	if (store_open(f->dir, STORE_READ, &f->store, &f->reason) || write(ready, "", 1) != 1)
		return 1;
	return read(until, &byte, 1) == 0 ? 0 : 1;
}

/* Processes that keep the store open. */
struct readers {
	int until; /* closing it ends them */
	unsigned int count;
};

static struct readers start_readers(struct fixture *f, unsigned int count)
{
	int ready[2], until[2];
	char byte;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	assert_int_equal(pipe2(until, O_CLOEXEC), 0);
	for (unsigned int i = 0; i < count; i++) {
		const pid_t pid = fork();

		assert_int_not_equal(pid, -1);
		if (pid == 0) {
			close(until[1]);
			_exit(stay_open(f, ready[1], until[0]));
		}
	}
	close(ready[1]);
	close(until[0]);
	for (unsigned int i = 0; i < count; i++)
		assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return (struct readers){ until[1], count };
}

static void end_readers(struct readers *readers)
{
	int status;

	close(readers->until);
	while (readers->count--) {
		assert_int_not_equal(wait(&status), -1);
		assert_int_equal(status, 0);
	}
}

/* If nobody has the store open, LMDB makes its locks again; here it must recover them. */
STORE_TEST(test_killed_writers_beside_a_reader)
{
	struct readers readers;

	close_store(f);
	readers = start_readers(f, 1);
	kill_writers(f);
	end_readers(&readers);
}

/* For example lists whose output nobody reads. */
STORE_TEST(test_many_readers)
{
	struct readers readers;

	close_store(f);
	alarm(WATCHDOG_S);
	readers = start_readers(f, READERS);
	alarm(0);
	open_store(f, STORE_WRITE);
	assert_int_equal(commit_number(f->store, 0), 0);
	holds_numbers(f, 1);
	close_store(f);
	end_readers(&readers);
}

TEST_MAIN(seed, NULL)
