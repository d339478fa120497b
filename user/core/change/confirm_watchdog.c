// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The process that waits for `confirm`: it looks now and then whether the change or load still waits, and undoes it when its
 * time is over. Between the deadline and the undo, and if nothing can undo, the filter passes everything by itself.
 */
#include "change/change.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/waiting.h"

/*
 * Tries to undo: first one a second, because memory or reader slots of LMDB may be short for a moment; then for a day,
 * because a disk may be full for hours. Until then everything passes.
 */
#define UNDO_SOON 5
#define UNDO_PAUSE_MS 10000
#define UNDO_TRIES (UNDO_SOON + 24 * 360)

#define LOOK_MS 5000 /* between two looks at whether the change still waits */
#define LOOKS 2      /* so many in a row must find nothing: a filter may be missing while it is replaced */

/* ---- undoing ---- */

static int open_store(const struct watchdog *watchdog, enum store_mode mode, struct store **store)
{
	struct reason ignored;

	*store = NULL;
	return session_open_store(watchdog->state, watchdog->name, mode, store, &ignored);
}

/* A newer version has taken the filter over, or the store. Its session_close() has started a process that undoes changes. */
static bool is_upgraded(int error)
{
	return error == -EPROTO || error == -EPROTONOSUPPORT;
}

static bool is_change_waiting(const struct watchdog *watchdog)
{
	struct store_pending pending = {};
	struct store *store;
	int error = open_store(watchdog, STORE_READ, &store);

	if (error == -ENOENT)
		return false;
	if (!error)
		error = store_pending(store, &pending);
	store_close(store);
	return error || pending.id == watchdog->pending_id;
}

static int undo_change(const struct watchdog *watchdog)
{
	struct store_pending pending;
	struct reason ignored;
	struct session session;
	int error;

	/* A session would make a directory that is gone anew, and fail where another store has a filter of this name. */
	if (!is_change_waiting(watchdog))
		return 0;
	error = session_open(&session, watchdog->state, watchdog->name, &ignored);
	if (error)
		return error;
	error = store_pending(session.store, &pending);
	if (!error && pending.id == watchdog->pending_id)
		error = change_undo(&session, &ignored);
	if (!error && session.undone.lost)
		syslog(LOG_WARNING,
		       "'%s': undid a change that was not confirmed in time, but could not restore %llu "
		       "rules: %s",
		       watchdog->name, (unsigned long long)session.undone.lost, session.undone.reason.text);
	session_close(&session);
	return error;
}

static bool is_mine(const struct watchdog *watchdog, const struct kernel_filter *filter)
{
	const struct abi_config *config = filter->config;

	return kernel_is_named(config, watchdog->name) && config->run & ABI_RUN_UNCONFIRMED &&
	       config->confirm_by == watchdog->confirm_by;
}

static bool is_load_waiting(const struct watchdog *watchdog)
{
	struct kernel_filter *filters = NULL;
	struct reason ignored;
	size_t count = 0;
	bool waits =
		kernel_find_filters((struct kernel_wish){ .must_see = watchdog->name, .takes_other_versions = true },
				    &filters, &count, &ignored);

	for (size_t i = 0; i < count; i++)
		waits |= is_mine(watchdog, &filters[i]);
	kernel_filters_free(filters, count);
	return waits;
}

/*
 * Takes the filter off where only this load wants it. Elsewhere it continues. If it ran nowhere else, it stays as it
 * is: on an interface that has moved to another network namespace it must keep passing everything.
 */
static int take_off(const struct watchdog *watchdog, struct kernel_filter *filter, bool may_continue)
{
	bool continues = false;
	struct reason ignored;
	int error = 0;

	for (size_t i = 0; i < filter->attachments_count && !error; i++) {
		struct kernel_attachment *attachment = &filter->attachments[i];
		bool is_new = false;

		for (size_t k = 0; k < watchdog->attachments; k++)
			if (kernel_place(&watchdog->attachment[k]) == kernel_place(attachment) &&
			    !(filter->config->kept & kernel_kept_bit(attachment))) {
				is_new = true;
				attachment->was_lost = watchdog->attachment[k].was_lost;
			}
		if (is_new)
			error = kernel_detach_direction(filter, attachment, &ignored);
		continues |= !is_new;
	}
	if (!error && continues && may_continue)
		__atomic_fetch_and(&filter->config->run, ~ABI_RUN_UNCONFIRMED, __ATOMIC_RELEASE);
	return error;
}

/* `is_off`: the filters are off their interfaces already. */
static int end_monitor_only(const struct watchdog *watchdog, bool is_off)
{
	struct session session;
	struct reason ignored;
	int error = session_open(&session, watchdog->state, watchdog->name, &ignored);
	bool is_waiting = is_off && !error && !session.filters_count;

	for (size_t i = 0; i < session.filters_count && !error; i++)
		is_waiting |= is_mine(watchdog, &session.filters[i].kernel) &&
			      !session.filters[i].kernel.config->keeps_monitor_only;
	if (is_waiting)
		error = change_set_monitor_only(&session, false, &ignored);
	session_close(&session);
	return error && !is_off && !is_load_waiting(watchdog) ? 0 : error;
}

/*
 * Takes the filters off with the writer's lock if it can get it, so that no `confirm` is half done.
 *
 * Monitor-only, which holds for all interfaces of the filter, ends before that: if it fails, status still says that nobody
 * has confirmed. On a read-only file system, or after an upgrade, it cannot end here: a filter that continues passes
 * everything till then.
 */
static int undo_load(const struct watchdog *watchdog)
{
	static bool is_off; /* an earlier try took the filters off, but could not write */
	struct store *store;
	const bool has_store = open_store(watchdog, STORE_READ, &store) != -ENOENT; /* a gone one is not made anew */
	struct kernel_filter *filters = NULL;
	struct reason ignored;
	size_t count = 0;
	bool is_kept;
	int error;

	store_close(store);
	store = NULL;
	error = has_store && watchdog->sets_monitor_only ? end_monitor_only(watchdog, is_off) : 0;
	is_kept = error == -EROFS || is_upgraded(error);
	if (error && !is_kept)
		return error;
	if (has_store)
		open_store(watchdog, STORE_WRITE, &store);
	error = kernel_find_filters((struct kernel_wish){ .must_see = watchdog->name, .takes_other_versions = true },
				    &filters, &count, &ignored);
	for (size_t i = 0; i < count && !error; i++)
		if (is_mine(watchdog, &filters[i]))
			error = take_off(watchdog, &filters[i], !is_kept);
	kernel_filters_free(filters, count);
	store_close(store);
	is_off |= is_kept && !error;
	return error || !is_kept ? error : -EROFS;
}

/* ---- waiting ---- */

static void sleep_until(__s64 ms)
{
	const struct timespec until = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	while (clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

/* ---- the process ---- */

/*
 * Leaves the parent's files, session and terminal: it must hold no lock, keep no pipe open, and get no SIGHUP. It keeps the
 * working directory, because --state may be relative. Forks again, so that nobody has to wait for the second process.
 */
static void leave_parent(void)
{
	static const int signals[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE };
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	sigset_t none;
	int null = open("/dev/null", O_RDWR);
	pid_t pid;

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &ignore, NULL);
	/* No wait for a lock ends by a signal of the parent, or by one that is blocked and pending. */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	waiting_is_over = 0;
	watchdog_wanted = NULL;
	if (null < 0 || setsid() < 0)
		_exit(errno);
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (dup2(null, fd) < 0)
			_exit(errno);
	if (close_range(STDERR_FILENO + 1, ~0U, 0))
		_exit(errno);
	pid = fork();
	if (pid)
		_exit(pid < 0 ? errno : 0);
	waiting_be_called("undo of what was not confirmed");
}

/* Until the deadline. False: it was confirmed. If this cannot find out whether the change or load still waits, it waits on. */
static bool wait_in_vain(const struct watchdog *watchdog)
{
	const __s64 deadline_ms = watchdog->deadline_ms;
	unsigned int looks = 0;
	bool waits;
	__s64 now;

	while ((now = clock_ms(CLOCK_BOOTTIME)) < deadline_ms - LOOK_MS) {
		sleep_until(now + LOOK_MS);
		waits = watchdog->pending_id ? is_change_waiting(watchdog) : is_load_waiting(watchdog);
		looks = waits ? 0 : looks + 1;
		if (looks == LOOKS)
			return false;
	}
	sleep_until(deadline_ms);
	return true;
}

__attribute__((noreturn)) static void run(const struct watchdog *watchdog)
{
	const struct sigaction end = { .sa_handler = SIG_DFL };

	leave_parent();
	if (!wait_in_vain(watchdog))
		_exit(0);
	for (int try = 0; try < UNDO_TRIES; try++) {
		if (!(watchdog->pending_id ? undo_change(watchdog) : undo_load(watchdog)))
			_exit(0);
		if (try == UNDO_SOON) {
			syslog(LOG_ERR,
			       "'%s': cannot undo what was not confirmed in time, and tries again for a day; everything "
			       "passes; see xdp-cuckoo%s status",
			       watchdog->name, session_name_option(watchdog->name));
			sigaction(SIGTERM, &end, NULL); /* a shutdown does not wait for a day */
		}
		clock_pause(try < UNDO_SOON ? 1000 : UNDO_PAUSE_MS);
	}
	syslog(LOG_ERR,
	       "'%s': gave up the undo of what was not confirmed in time; everything passes; see xdp-cuckoo%s status",
	       watchdog->name, session_name_option(watchdog->name));
	_exit(0);
}

void watchdog_ignore_hangup(void)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };

	sigaction(SIGHUP, &ignore, NULL);
	sigaction(SIGPIPE, &ignore, NULL);
}

int watchdog_start(const struct watchdog *watchdog, struct reason *reason)
{
	pid_t child = fork();
	int status = 0, error = 0;

	if (!child)
		run(watchdog);
	if (child < 0)
		error = -errno;
	while (!error && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (!error && WIFEXITED(status))
		error = -WEXITSTATUS(status);
	else if (!error)
		error = -EINTR; /* killed before it could start the second */
	if (!error)
		return 0;
	return reason_set(reason, error,
			  "cannot start the process that would undo it: %s; everything "
			  "passes when the time to confirm is over",
			  strerror(-error));
}
