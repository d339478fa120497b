// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "exporter/metrics.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/unprivileged.h"

#define READ_MS 5000
#define HUNG_MAX 16

/* Killed children that still hang in the kernel; 0: free place. */
static pid_t hung[HUNG_MAX];

struct answer {
	int error;
	struct store_summary summary;
	struct reason reason;
};

__attribute__((noreturn)) static void bus_error(int signal_number)
{
	(void)signal_number;
	_exit(1);
}

/*
 * Runs in the child. The end of the process frees its memory. The summary comes first: the counts
 * take a look-up for each key of each rule in each filter, and may be late.
 */
__attribute__((noreturn)) static void read_in_child(const char *dir, const char *name, struct answer *answer, int to)
{
	const struct sigaction on_bus_error = { .sa_handler = bus_error };
	struct store_summary *summary = &answer->summary;
	struct rule_counts counts = {};
	struct reason ignored;
	struct store *store;

	/* The listening socket of the exporter is one of them. */
	if (unprivileged_close_others(to))
		_exit(1);
	sigaction(SIGBUS, &on_bus_error, NULL);
	sigaction(SIGSEGV, &on_bus_error, NULL);
	answer->error = store_open(dir, STORE_READ, &store, &answer->reason);
	if (!answer->error)
		answer->error = store_in_force(store, &summary->info, &summary->lists);
	if (!answer->error)
		answer->error = store_feeds(store, &summary->lists, &summary->feeds);
	for (size_t i = 1; i <= STORE_LISTS_MAX && !answer->error; i++)
		if (*summary->lists.list[i].name &&
		    flow_report_read(dir, &summary->lists.list[i], &summary->feeds.feed[i], &summary->flows[i], NULL))
			summary->flows[i].second = 0;
	if (answer->error && !*answer->reason.text)
		store_unread_reason(answer->error, &answer->reason);
	unprivileged_send(to, answer, sizeof(*answer), NULL, 0, UNPRIVILEGED_NO_DEADLINE);
	if (!answer->error && summary->info.rules <= STORE_SUMMARY_RULES_MAX &&
	    !rule_counts_open(&counts, name, &ignored) &&
	    !list_counts_read(store, &counts, &summary->counts))
		unprivileged_send(to, &summary->counts, sizeof(summary->counts), NULL, 0,
				  UNPRIVILEGED_NO_DEADLINE);
	store_close(store);
	_exit(0);
}

int store_summary_read(const char *dir, const char *name, struct store_summary *summary, struct reason *reason)
{
	static struct answer answer; /* too large for the stack */
	const __s64 deadline_ms = clock_ms(CLOCK_MONOTONIC) + READ_MS;
	pid_t child, *place = NULL;
	int ends[2], error, late = 0, status = 0;

	/* Reaps hung children that have ended, and no other children. */
	for (pid_t *hangs = hung; hangs < hung + HUNG_MAX; hangs++) {
		if (*hangs && waitpid(*hangs, NULL, WNOHANG))
			*hangs = 0;
		if (!*hangs)
			place = hangs;
	}
	if (!place)
		return reason_set(reason, -ETIMEDOUT, "%d processes that were to read a store hang: its disk hangs",
				  HUNG_MAX);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return reason_set(reason, -errno, "cannot make a pair of sockets: %s", strerror(errno));
	memset(&answer, 0, sizeof(answer));
	child = fork();
	if (!child)
		read_in_child(dir, name, &answer, ends[1]);
	error = child < 0 ? -errno : 0;
	close(ends[1]);
	if (error) {
		reason_set(reason, error, "cannot start a process to read the store: %s", strerror(-error));
	} else {
		error = late = unprivileged_receive(ends[0], &answer, sizeof(answer), deadline_ms);
		if (error == -ETIMEDOUT)
			reason_set(&answer.reason, 0, "the store was not read in %d seconds: its disk hangs",
				   READ_MS / 1000);
		else if (error)
			error = reason_set(&answer.reason, -EIO, "cannot read the store: " REASON_DAMAGED);
		else
			error = answer.error;
		if (!error)
			late = unprivileged_receive(ends[0], &answer.summary.counts,
						    sizeof(answer.summary.counts), deadline_ms);
		answer.summary.has_counts = !error && !late;
		*reason = answer.reason;
	}
	close(ends[0]);
	if (child > 0) {
		kill(child, SIGKILL);
		if (!waitpid(child, &status, late == -ETIMEDOUT ? WNOHANG : 0))
			*place = child;
		/* After the summary, it met a bad disk while it counted. */
		if (!error && late == -ECONNRESET && WEXITSTATUS(status))
			error = reason_set(reason, -EIO, "cannot read the store: " REASON_DAMAGED);
	}
	*summary = answer.summary;
	return error;
}
