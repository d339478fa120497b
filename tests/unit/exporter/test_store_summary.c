// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* store_summary_read() reaps only its own children. */
#include "unit/test.h"
#include "exporter/metrics.h"

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

TEST_MAIN(NULL, NULL)
