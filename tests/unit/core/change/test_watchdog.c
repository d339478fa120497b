// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The process that undoes what nobody confirms, run in the test's own: fork() is here the start of that process, _exit() its
 * end, and each time it sleeps the test's clock goes on and something may happen.
 */
#include "unit/test.h"

#ifndef __x86_64__
TEST(test_watchdog)
{
	fprintf(stderr, "skipped: steps/changes.h needs x86-64\n");
	skip();
}

TEST_MAIN(NULL, NULL)
#else
#include <setjmp.h>

#include "base/clock.h"
#include "steps/changes.h"

#define SECOND 1000
#define NOBODY 0x80000000u /* a deadline of another load */

static jmp_buf over;
static unsigned int sleeps, failing_detachments;
static unsigned int logged;
static const char *called;
static __s64 ended_ms;        /* after the start of the watchdog */
static void (*asleep)(void);  /* at each sleep, or NULL */
static bool takes_off_others; /* what was lost, as the detachment is told */

/* ---- in place of the C library and of kernel/ ---- */

#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* the linker calls them */

static bool no_processes;

pid_t __wrap_fork(void)
{
	errno = EAGAIN;
	return no_processes ? -1 : 0;
}

pid_t __wrap_setsid(void)
{
	return 1;
}

int __wrap_dup2(int from, int to)
{
	(void)from;
	return to;
}

int __wrap_close_range(unsigned int first, unsigned int last, int flags)
{
	(void)first, (void)last, (void)flags;
	return 0;
}

int __wrap_sigaction(int signal, const struct sigaction *action, struct sigaction *old)
{
	(void)signal, (void)action, (void)old;
	return 0;
}

void __wrap_waiting_be_called(const char *name)
{
	called = name;
}

int __wrap_clock_pause(__s64 ms)
{
	sleeps++;
	pass_time(ms);
	if (asleep)
		asleep();
	return 0;
}

int __wrap_clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left)
{
	(void)clock, (void)flags, (void)left;
	return __wrap_clock_pause(time->tv_sec * 1000 + time->tv_nsec / 1000000 - fake_clock.boot_ms);
}

void __wrap_syslog(int priority, const char *format, ...)
{
	(void)priority, (void)format;
	logged++;
}

void __wrap___syslog_chk(int priority, int flag, const char *format, ...)
{
	(void)priority, (void)flag, (void)format;
	logged++;
}

__attribute__((noreturn)) void __wrap__exit(int status)
{
	longjmp(over, 1 + status);
}

int kernel_detach_direction(const struct kernel_filter *filter, const struct kernel_attachment *attachment,
			    struct reason *reason)
{
	(void)filter;
	if (failing_detachments) {
		failing_detachments--;
		return reason_set(reason, -EIO, "the test refuses");
	}
	takes_off_others |= attachment->was_lost;
	memory.interface[attachment->ifindex - 1].program = 0;
	return 0;
}

/* ---- what is asked ---- */

static struct abi_config *config_of(size_t interface)
{
	assert_true(memory_path(interface));
	return path.config;
}

static void watch(const struct watchdog *watchdog, void (*at_sleep)(void))
{
	const __s64 start_ms = fake_clock.boot_ms;
	struct reason reason;
	int status;

	sleeps = logged = 0;
	waiting_is_over = 1;
	called = "";
	asleep = at_sleep;
	status = setjmp(over);
	if (!status)
		watchdog_start(watchdog, &reason);
	assert_int_equal(status, 1);
	assert_string_equal(called, "undo of what was not confirmed"); /* others that wait for it see this */
	assert_int_equal(waiting_is_over, 0); /* it waits, though the parent got a signal */
	ended_ms = fake_clock.boot_ms - start_ms;
}

static bool drops(size_t interface, size_t frame)
{
	return memory_path(interface) && judge_frame(&panel[frame]) == 0;
}

/* 10.77.0.1, the first frame, drops, and 10.77.0.2, the fourth, would by a change that waits. */
static struct watchdog change_that_waits(void)
{
	struct watchdog watchdog = { .state = state_dir, .name = NAME };
	struct session session;

	fill_panel();
	load(true, true, 0, 1, 1);
	plain_change(LINES("add 10.77.0.1"));
	plain_change(LINES("pending", "add 10.77.0.2"));
	open_session(&session);
	watchdog_take_pending(&watchdog, session.store);
	session_close(&session);
	assert_int_not_equal(watchdog.pending_id, 0);
	assert_in_range(watchdog.deadline_ms, fake_clock.boot_ms + CONFIRM_MS - SECOND,
			fake_clock.boot_ms + CONFIRM_MS + SECOND);
	return watchdog;
}

static void confirm_at_third(void)
{
	if (sleeps == 3)
		plain_change(LINES("confirm"));
}

static void confirm_and_change_at_third(void)
{
	confirm_at_third();
	if (sleeps == 3)
		plain_change(LINES("pending", "add 10.77.0.129"));
}

static char hidden[sizeof(state_dir) + 8];

/* The store cannot be opened from the deadline on, for so many tries. */
static unsigned int tries_without_store;

static void hide_store(void)
{
	if (!sleeps || fake_clock.boot_ms < clock_start.boot_ms + CONFIRM_MS)
		return;
	snprintf(hidden, sizeof(hidden), "%s.hid", state_dir);
	if (tries_without_store && access(hidden, F_OK)) {
		assert_int_equal(rename(state_dir, hidden), 0);
		close(open(state_dir, O_CREAT | O_WRONLY, 0600)); /* a file is no directory */
	} else if (tries_without_store && !--tries_without_store) {
		assert_int_equal(unlink(state_dir), 0);
		assert_int_equal(rename(hidden, state_dir), 0);
	}
}

TEST(test_nobody_confirms_a_change)
{
	struct watchdog watchdog = change_that_waits();

	watch(&watchdog, NULL);
	assert_in_range(ended_ms, CONFIRM_MS - SECOND, CONFIRM_MS + SECOND);
	assert_true(drops(0, 0));
	assert_false(drops(0, 3));
	assert_int_equal(logged, 0);
	assert_int_equal(watchdog_left(watchdog.deadline_ms + 7), watchdog.deadline_ms + 7 - fake_clock.boot_ms);
}

TEST(test_a_change_is_confirmed)
{
	struct watchdog watchdog = change_that_waits();

	watch(&watchdog, confirm_at_third);
	assert_in_range(ended_ms, 15 * SECOND, 20 * SECOND);
	assert_true(drops(0, 3));
	watchdog = change_that_waits();
	watch(&watchdog, confirm_and_change_at_third);
	assert_in_range(ended_ms, 15 * SECOND, 20 * SECOND);
	pass_time(2 * SECOND);
	assert_true(drops(0, 3) && drops(0, 6));
}

TEST(test_no_process)
{
	struct watchdog watchdog = change_that_waits();
	struct reason reason;

	no_processes = true;
	assert_int_equal(watchdog_start(&watchdog, &reason), -EAGAIN);
	no_processes = false;
}

/* It goes by its own time, and one that begins later is not its own to undo, also where it has not looked since. */
TEST(test_another_change_at_the_deadline)
{
	struct watchdog watchdog = change_that_waits(), none = { .deadline_ms = 5 };
	struct session session;

	watchdog.deadline_ms = fake_clock.boot_ms;
	watch(&watchdog, NULL);
	assert_true(drops(0, 0) && !drops(0, 3));
	open_session(&session);
	watchdog_take_pending(&none, session.store);
	assert_int_equal(none.deadline_ms, 5);
	session_close(&session);
	watchdog = change_that_waits();
	plain_change(LINES("confirm"));
	plain_change(LINES("pending", "add 10.77.0.129"));
	watchdog.deadline_ms = fake_clock.boot_ms;
	watch(&watchdog, NULL);
	assert_true(drops(0, 3) && drops(0, 6));
}

TEST(test_an_undo_is_tried_again)
{
	struct watchdog watchdog = change_that_waits();

	tries_without_store = 3;
	watch(&watchdog, hide_store);
	assert_int_equal(logged, 0);
	assert_in_range(ended_ms, CONFIRM_MS, CONFIRM_MS + 5 * SECOND);
	assert_false(drops(0, 3));
	watchdog = change_that_waits();
	tries_without_store = 8;
	watch(&watchdog, hide_store);
	assert_int_equal(logged, 1);
	assert_in_range(ended_ms, CONFIRM_MS + 25 * SECOND, CONFIRM_MS + 45 * SECOND);
	assert_true(drops(0, 0));
	assert_false(drops(0, 3));
}

static void upgrade_at_third(void)
{
	if (sleeps == 3)
		config_of(0)->version = ABI_VERSION + 1;
}

/* ---- loads ---- */

static struct kernel_attachment new_attachments[2];

/* A filter on two interfaces, the later `attachments` of which the load has made. */
static struct watchdog load_that_waits(size_t attachments)
{
	struct watchdog watchdog = { .state = state_dir, .name = NAME, .attachments = attachments };
	struct reason reason;
	struct session session;

	fill_panel();
	load(true, true, 0, 1, 2);
	plain_change(LINES("add 10.77.0.1"));
	open_session(&session);
	assert_int_equal(filter_set_unconfirmed(&session.filters[0], 0, CONFIRM_MS, &reason), 0);
	watchdog.confirm_by = session.filters[0].kernel.config->confirm_by;
	session_close(&session);
	watchdog.deadline_ms = watchdog_deadline(CONFIRM_MS);
	for (size_t i = 0; i < attachments; i++)
		new_attachments[i] = memory_attachment(2 - attachments + i);
	watchdog.attachment = new_attachments;
	return watchdog;
}

static __u32 run_of(size_t interface)
{
	assert_true(memory_path(interface));
	return path.config->run;
}

/* Where the filter ran before, it filters on. */
TEST(test_nobody_confirms_a_load)
{
	struct watchdog watchdog = load_that_waits(1);

	new_attachments[0].was_lost = true;
	takes_off_others = false;
	failing_detachments = 2;
	watch(&watchdog, NULL);
	assert_in_range(ended_ms, CONFIRM_MS + 2 * SECOND, CONFIRM_MS + 3 * SECOND);
	assert_true(takes_off_others);
	assert_false(memory_path(1));
	assert_false(run_of(0) & ABI_RUN_UNCONFIRMED);
	assert_true(drops(0, 0));
	watchdog = load_that_waits(2);
	watch(&watchdog, NULL);
	assert_false(memory_path(0) || memory_path(1));
	/* What has moved to another network namespace passes everything. */
	assert_true(((struct abi_config *)memory.filters[0].filter.map[KERNEL_CONFIG].memory)->run &
		    ABI_RUN_UNCONFIRMED);
}

static void keep_at_third(void)
{
	struct session session;
	struct reason reason;

	if (sleeps != 3)
		return;
	open_session(&session);
	assert_int_equal(session_keep(&session, "m1", false, &reason), 0);
	assert_int_equal(change_set_monitor_only(&session, true, &reason), 0);
	session_close(&session);
}

/* Later commands want one of its interfaces, and monitor-only. Only the other interface is taken off. */
TEST(test_what_later_commands_want)
{
	struct watchdog watchdog = load_that_waits(2);

	plain_change(LINES("monitor-only on"));
	watchdog.sets_monitor_only = true;
	watch(&watchdog, keep_at_third);
	assert_false(memory_path(0));
	assert_int_equal(run_of(1) & (ABI_RUN_UNCONFIRMED | ABI_RUN_MONITOR), ABI_RUN_MONITOR);
}

static void confirm_load_at_third(void)
{
	if (sleeps != 3)
		return;
	memory_path(0);
	path.config->run &= ~ABI_RUN_UNCONFIRMED;
}

TEST(test_a_load_is_confirmed)
{
	struct watchdog watchdog = load_that_waits(2);

	watch(&watchdog, confirm_load_at_third);
	assert_in_range(ended_ms, 15 * SECOND, 20 * SECOND);
	assert_true(drops(0, 0) && drops(1, 0));
	/* Another load waits. */
	watchdog = load_that_waits(2);
	watchdog.confirm_by ^= NOBODY;
	watchdog.deadline_ms = fake_clock.boot_ms;
	watch(&watchdog, NULL);
	assert_true(memory_path(0) && memory_path(1));
	assert_true(run_of(0) & ABI_RUN_UNCONFIRMED);
}

/* The load has set monitor-only, for the interface where the filter ran before, too. */
TEST(test_nobody_confirms_monitor_only)
{
	struct watchdog watchdog = load_that_waits(1);

	plain_change(LINES("monitor-only on"));
	watchdog.sets_monitor_only = true;
	tries_without_store = 3;
	watch(&watchdog, hide_store);
	assert_in_range(ended_ms, CONFIRM_MS + 2 * SECOND, CONFIRM_MS + 5 * SECOND);
	assert_false(memory_path(1));
	assert_int_equal(run_of(0) & (ABI_RUN_UNCONFIRMED | ABI_RUN_MONITOR), 0);
	assert_true(drops(0, 0));
	watchdog = load_that_waits(1);
	plain_change(LINES("monitor-only on"));
	watchdog.sets_monitor_only = true;
	watchdog.confirm_by ^= NOBODY;
	watchdog.deadline_ms = fake_clock.boot_ms;
	watch(&watchdog, NULL);
	assert_true(run_of(0) & ABI_RUN_MONITOR);
}

/* What waits in a store ends with it; a load is undone without it. No directory is made anew. */
TEST(test_a_store_that_is_gone)
{
	snprintf(hidden, sizeof(hidden), "%s.hid", state_dir);
	for (int is_load = 0; is_load < 2; is_load++) {
		struct watchdog watchdog = is_load ? load_that_waits(1) : change_that_waits();

		watchdog.sets_monitor_only = is_load;
		watchdog.deadline_ms = fake_clock.boot_ms;
		assert_int_equal(rename(state_dir, hidden), 0);
		watch(&watchdog, NULL);
		assert_int_equal(ended_ms, 0);
		assert_true(access(state_dir, F_OK));
		assert_int_equal(rename(hidden, state_dir), 0);
	}
	assert_false(memory_path(1));
}

/* A newer version has taken the filter over: the load is taken off, and what stays passes everything, and says so. */
TEST(test_an_upgrade_and_monitor_only)
{
	struct watchdog watchdog = load_that_waits(1);

	plain_change(LINES("monitor-only on"));
	watchdog.sets_monitor_only = true;
	watch(&watchdog, upgrade_at_third);
	assert_false(memory_path(1));
	assert_true(run_of(0) & ABI_RUN_UNCONFIRMED);
}

TEST_MAIN(setup_all, teardown_all)
#endif
