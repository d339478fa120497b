// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "metrics/store_summary.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define READ_MS 5000
#define HUNG_MAX 16

/* Killed children that still hang in the kernel; 0: free place. */
static pid_t hung[HUNG_MAX];

struct answer {
	int error;
	struct store_summary summary;
	struct reason reason;
};

_Static_assert(sizeof(struct answer) <= 4096, "a pipe takes an answer whole: PIPE_BUF");

__attribute__((noreturn)) static void bus_error(int signal_number)
{
	(void)signal_number;
	_exit(1);
}

/* Runs in the child. The end of the process frees its memory. */
__attribute__((noreturn)) static void read_in_child(const char *dir, int to)
{
	const struct sigaction on_bus_error = { .sa_handler = bus_error };
	struct answer answer = {};
	struct store_summary *summary = &answer.summary;
	struct store_lists lists;
	struct store *store;

	sigaction(SIGBUS, &on_bus_error, NULL);
	answer.error = store_open(dir, STORE_READ, &store, &answer.reason);
	if (!answer.error)
		answer.error = store_info(store, &summary->info);
	if (!answer.error)
		answer.error = store_lists(store, &lists);
	for (size_t i = 1; i <= STORE_LISTS_MAX && !answer.error; i++) {
		const struct store_list *list = &lists.list[i];
		struct store_summary_list *to_list = &summary->list[summary->lists];

		if (!list->name[0])
			continue;
		memcpy(to_list->name, list->name, sizeof(to_list->name));
		to_list->rules = list->rules;
		to_list->imported_s = list->imported_s;
		summary->lists++;
	}
	if (answer.error && !*answer.reason.text)
		store_say_unread(answer.error, &answer.reason);
	store_close(store);
	_exit(write(to, &answer, sizeof(answer)) == sizeof(answer) ? 0 : 1);
}

static int await_answer(int from, struct answer *answer, struct reason *reason)
{
	struct pollfd file = { .fd = from, .events = POLLIN };

	if (poll(&file, 1, READ_MS) <= 0)
		return reason_set(reason, -ETIMEDOUT, "the store was not read in %d seconds: its disk hangs",
				  READ_MS / 1000);
	if (read(from, answer, sizeof(*answer)) != sizeof(*answer))
		return reason_set(reason, -EIO,
				  "the store cannot be read: its data.mdb has been cut short, or the disk fails");
	*reason = answer->reason;
	return answer->error;
}

/* Reaps hung children that have ended, and no other children. Returns a free place; NULL: too many hang. */
static pid_t *reap_hung(void)
{
	pid_t *place = NULL;

	for (pid_t *child = hung; child < hung + HUNG_MAX; child++) {
		if (*child && waitpid(*child, NULL, WNOHANG))
			*child = 0;
		if (!*child)
			place = child;
	}
	return place;
}

int store_summary_read(const char *dir, struct store_summary *summary, struct reason *reason)
{
	pid_t child, *place = reap_hung();
	struct answer answer = {};
	int ends[2], error;

	if (!place)
		return reason_set(reason, -ETIMEDOUT, "%d processes that were to read a store hang: its disk hangs",
				  HUNG_MAX);
	if (pipe2(ends, O_CLOEXEC))
		return reason_set(reason, -errno, "cannot make a pipe: %s", strerror(errno));
	child = fork();
	if (!child)
		read_in_child(dir, ends[1]);
	error = child < 0 ? -errno : 0;
	close(ends[1]);
	if (error)
		reason_set(reason, error, "cannot start a process to read the store: %s", strerror(-error));
	else
		error = await_answer(ends[0], &answer, reason);
	close(ends[0]);
	if (child > 0) {
		kill(child, SIGKILL);
		if (!waitpid(child, NULL, error == -ETIMEDOUT ? WNOHANG : 0))
			*place = child;
	}
	*summary = answer.summary;
	return error;
}
