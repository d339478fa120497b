// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* store_summary_read() reaps only its own children, and gives a summary also if the counts are late. */
#include "unit/test.h"
#include "exporter/metrics.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

TEST(test_other_children_are_not_waited_for)
{
	struct store_summary summary;
	struct reason reason;
	siginfo_t ended;
	int status;
	const pid_t child = fork();

	if (!child)
		_exit(7);
	assert_true(child > 0);
	/* The other child has ended, and its parent can still reap it. */
	assert_int_equal(0, waitid(P_PID, child, &ended, WEXITED | WNOWAIT));
	assert_int_equal(-ENOENT, store_summary_read("/nonexistent/store", "default", &summary, &reason));
	assert_int_equal(child, waitpid(child, &status, 0));
	assert_int_equal(7, WEXITSTATUS(status));
	assert_int_equal(-1, waitpid(-1, NULL, WNOHANG));
	assert_int_equal(ECHILD, errno);
}

int __wrap_rule_counts_open(struct rule_counts *counts, const char *name, struct reason *reason);
int __wrap_rule_counts_open(struct rule_counts *counts, const char *name, struct reason *reason)
{
	(void)counts, (void)name, (void)reason;
	return 0;
}

static bool is_disk_bad;

/* It takes too long, or meets a bad disk. */
int __wrap_list_counts_read(struct store *store, struct rule_counts *counts, struct list_counts *sums);
int __wrap_list_counts_read(struct store *store, struct rule_counts *counts, struct list_counts *sums)
{
	(void)store, (void)counts, (void)sums;
	return is_disk_bad ? raise(SIGBUS) : pause();
}

int __real_unprivileged_receive(int fd, void *bytes, size_t count, __s64 deadline_ms);
int __wrap_unprivileged_receive(int fd, void *bytes, size_t count, __s64 deadline_ms);

int __wrap_unprivileged_receive(int fd, void *bytes, size_t count, __s64 deadline_ms)
{
	if (!is_disk_bad && count == sizeof(struct list_counts))
		deadline_ms = 0;
	return __real_unprivileged_receive(fd, bytes, count, deadline_ms);
}

TEST(test_late_counts_cost_nothing_else)
{
	char dir[] = "/tmp/summary.XXXXXX", command[64];
	struct store_summary summary;
	struct reason reason;
	struct store *store;

	assert_non_null(mkdtemp(dir));
	assert_int_equal(0, store_open(dir, STORE_WRITE, &store, &reason));
	store_close(store);
	assert_int_equal(0, store_summary_read(dir, "default", &summary, &reason));
	assert_false(summary.has_counts);
	is_disk_bad = true;
	assert_int_equal(-EIO, store_summary_read(dir, "default", &summary, &reason));
	snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(0, system(command));
}

TEST_MAIN(NULL, NULL)
