// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The clock by which a store counts timeouts: steps, reboots, and when it stands still. */
#include "unit/clock_fixture.h"

#define REBOOTS 100

/* The clock stands still within a transaction, and between two transactions. */
TIME_TEST(test_time_stands_still)
{
	add_for(f, "192.0.2.1", CLOCK_HOUR);
	clock_advance(CLOCK_SECOND);
	is_as(f, "192.0.2.1", CLOCK_HOUR, "");
	begin(f);
	is_as(f, "192.0.2.1", CLOCK_HOUR - CLOCK_SECOND, "");
	assert_int_equal(store_lag_ms(f->store), 0);
	clock_advance(CLOCK_SECOND);
	is_as(f, "192.0.2.1", CLOCK_HOUR - CLOCK_SECOND, "");
	assert_int_equal(store_lag_ms(f->store), CLOCK_SECOND);
	assert_int_equal(put_for(f, "192.0.2.2", CLOCK_HOUR), 0);
	end(f);
	assert_int_equal(store_lag_ms(f->store), 0);
	is_as(f, "192.0.2.1", CLOCK_HOUR - 2 * CLOCK_SECOND, "");
	is_as(f, "192.0.2.2", CLOCK_HOUR - CLOCK_SECOND, "");
	begin(f);
	clock_advance(CLOCK_SECOND);
	store_abort(f->store);
	is_as(f, "192.0.2.2", CLOCK_HOUR - 2 * CLOCK_SECOND, "");
	close_store(f);
	clock_advance(CLOCK_SECOND);
	open_store(f, STORE_READ);
	is_as(f, "192.0.2.2", CLOCK_HOUR - 3 * CLOCK_SECOND, "");

	/* Exact to the millisecond. At its deadline a rule has ended. */
	close_store(f);
	clock_advance(CLOCK_HOUR - 3 * CLOCK_SECOND - 1);
	open_store(f, STORE_READ);
	is_as(f, "192.0.2.2", 1, "");
	close_store(f);
	clock_advance(1);
	open_store(f, STORE_READ);
	is_as(f, "192.0.2.2", -1, "");
}

/* Two clocks are never read at the same time: what lies between the readings does not change a rule's end. */
TIME_TEST(test_a_rule_ends_at_one_moment)
{
	static const __s64 steps[] = { 1, -2, CLOCK_SECOND, -CLOCK_SECOND, CLOCK_SECOND + 3, -CLOCK_DAY };
	__s64 end_ms;

	add_for(f, "192.0.2.1", CLOCK_HOUR);
	end_ms = store_wall_ms(f->store) + CLOCK_HOUR;
	assert_int_equal(end_ms, fake_clock.wall_ms + CLOCK_HOUR);
	for (size_t i = 0; i < COUNT(steps); i++) {
		const __s64 wall_ms = fake_clock.wall_ms;
		const bool is_set = llabs(steps[i]) > CLOCK_SECOND;

		clock_advance(7);
		fake_clock.wall_ms += steps[i];
		reopen(f, i % 2 ? STORE_READ : STORE_WRITE);
		assert_int_equal(store_wall_ms(f->store) + get(f, "192.0.2.1").timeout_ms,
				 end_ms + (is_set ? steps[i] : 0));
		fake_clock.wall_ms = wall_ms + 7;
	}
}

static const char *const clocked = "192.0.2.1";

/* Opens the store as another process would. */
static __s64 left(struct fixture *f, enum store_mode mode)
{
	__s64 left_ms;

	reopen(f, mode);
	left_ms = get(f, clocked).timeout_ms;
	return left_ms;
}

static void is_left(struct fixture *f, __s64 left_ms)
{
	assert_int_equal(left(f, STORE_READ), left_ms);
	assert_int_equal(left(f, STORE_WRITE), left_ms);
}

static void start_clock(struct fixture *f)
{
	add_for(f, clocked, 365 * CLOCK_DAY);
}

TIME_TEST(test_wall_clock_steps_change_nothing)
{
	static const __s64 steps[] = { CLOCK_SECOND, -CLOCK_SECOND, 400 * CLOCK_DAY, -9000 * CLOCK_DAY };
	__s64 left_ms = 365 * CLOCK_DAY;

	start_clock(f);
	for (size_t i = 0; i < COUNT(steps); i++) {
		clock_step(steps[i]);
		clock_advance(CLOCK_HOUR);
		left_ms -= CLOCK_HOUR;
		is_left(f, left_ms);
		commit_nothing(f);
		is_left(f, left_ms);
	}
	holds(f, 1, 1, 1);
}

TIME_TEST(test_reboot_goes_on_by_the_wall_clock)
{
	start_clock(f);
	clock_advance(CLOCK_HOUR);
	clock_reboot(CLOCK_DAY);
	is_left(f, 364 * CLOCK_DAY - CLOCK_HOUR);
	clock_advance(CLOCK_HOUR);
	is_left(f, 364 * CLOCK_DAY - 2 * CLOCK_HOUR);
	commit_nothing(f);
	clock_step(CLOCK_DAY); /* from now on the new boot's clock counts */
	is_left(f, 364 * CLOCK_DAY - 2 * CLOCK_HOUR);
	clock_reboot(400 * CLOCK_DAY);
	assert_true(left(f, STORE_READ) < 0);
}

/* A writer has seen the step, so the store's clock excludes it. */
TIME_TEST(test_reboot_after_a_step)
{
	static const __s64 steps[] = { 400 * CLOCK_DAY, -9000 * CLOCK_DAY, CLOCK_HOUR };
	__s64 left_ms = 365 * CLOCK_DAY;

	start_clock(f);
	for (size_t i = 0; i < COUNT(steps); i++) {
		clock_step(steps[i]);
		commit_nothing(f);
		clock_advance(CLOCK_HOUR);
		clock_reboot(CLOCK_HOUR);
		left_ms -= 2 * CLOCK_HOUR;
		is_left(f, left_ms);
		commit_nothing(f);
	}
}

/*
 * A host without a battery clock starts in 1970. Then the store's time continues from where it was last
 * seen.
 */
TIME_TEST(test_reboot_in_1970)
{
	const __s64 wall_ms = clock_start.wall_ms + CLOCK_DAY;

	start_clock(f);
	clock_advance(CLOCK_HOUR);
	commit_nothing(f);
	commit_nothing(f);
	add(f, "192.0.2.2");
	clock_reboot(0);
	fake_clock.wall_ms = fake_clock.boot_ms;
	is_left(f, 365 * CLOCK_DAY - CLOCK_HOUR);

	/* The clock is set right before anybody writes: then nothing was wrong. */
	fake_clock.wall_ms = wall_ms;
	is_left(f, 364 * CLOCK_DAY);

	/* The clock is set right after a write. */
	fake_clock.wall_ms = fake_clock.boot_ms;
	left(f, STORE_WRITE);
	commit_nothing(f);
	clock_advance(CLOCK_HOUR);
	is_left(f, 365 * CLOCK_DAY - 2 * CLOCK_HOUR);
	fake_clock.wall_ms = wall_ms;
	is_left(f, 365 * CLOCK_DAY - 2 * CLOCK_HOUR);
	commit_nothing(f);
	clock_reboot(CLOCK_HOUR);
	is_left(f, 365 * CLOCK_DAY - 3 * CLOCK_HOUR);
}

/* A wrong clock is used for a write, and is set right before the host goes down again. */
TIME_TEST(test_reboot_after_a_dead_clock)
{
	const __s64 dead_ms = 978307200 * CLOCK_SECOND; /* 2001 */

	start_clock(f);
	clock_reboot(0);
	fake_clock.wall_ms = dead_ms;
	for (int i = 0; i < 2; i++) {
		left(f, STORE_WRITE);
		commit_nothing(f);
		clock_advance(CLOCK_HOUR);
		is_left(f, 365 * CLOCK_DAY - (i + 1) * CLOCK_HOUR);
	}
	add(f, "192.0.2.2");

	/* Nobody writes until the next boot. */
	fake_clock.wall_ms = clock_start.wall_ms + 3 * CLOCK_HOUR;
	clock_reboot(CLOCK_HOUR);
	is_left(f, 365 * CLOCK_DAY - 4 * CLOCK_HOUR);
	commit_nothing(f);

	/* From now on all is normal: a step during a boot is on purpose. */
	clock_step(-9000 * CLOCK_DAY);
	commit_nothing(f);
	clock_reboot(CLOCK_HOUR);
	is_left(f, 365 * CLOCK_DAY - 5 * CLOCK_HOUR);
}

TIME_TEST(test_never_backwards)
{
	start_clock(f);
	clock_advance(CLOCK_DAY);
	add(f, "192.0.2.2");
	clock_reboot(-CLOCK_HOUR);
	is_left(f, 364 * CLOCK_DAY);
}

static int setup_without_boot_id(void **state)
{
	fake_clock = clock_start;
	fake_clock.boot = 0;
	return setup_store(state);
}

TEST_WITH(test_without_a_boot_id, struct fixture *f, setup_without_boot_id, teardown)
{
	start_clock(f);
	clock_advance(CLOCK_HOUR);
	is_left(f, 365 * CLOCK_DAY - CLOCK_HOUR);
	commit_nothing(f);
	fake_clock.boot_ms = 0;
	is_left(f, 365 * CLOCK_DAY - CLOCK_HOUR);
	clock_step(-CLOCK_HOUR);
	assert_true(left(f, STORE_READ) <= 365 * CLOCK_DAY);
}

/*
 * If some writer sees each step, and the wall clock runs while the host is off, the store's time is the
 * time that has passed.
 */
TIME_TEST(test_time_is_what_passes)
{
	__s64 left_ms = 365 * CLOCK_DAY, ms;

	start_clock(f);
	for (int i = 0; i < REBOOTS; i++) {
		clock_step(2 * CLOCK_SECOND * ((__s64)below(500000) - 250000));
		reopen(f, STORE_WRITE);
		commit_nothing(f);
		ms = below(CLOCK_HOUR);
		clock_advance(ms);
		left_ms -= ms;
		is_left(f, left_ms);
		if (below(2))
			continue;
		ms = below(CLOCK_DAY);
		clock_reboot(ms);
		left_ms -= ms;
		is_left(f, left_ms);
		commit_nothing(f);
	}
}

/* However the clocks are set and whoever sees it: time may stand still, but never goes back. */
TIME_TEST(test_time_never_goes_back)
{
	__s64 left_ms = 365 * CLOCK_DAY, seen_ms = left_ms, now_ms;

	start_clock(f);
	for (int i = 0; i < REBOOTS; i++) {
		bool is_new_boot = !below(3);

		fake_clock.wall_ms = below(2 * clock_start.wall_ms);
		fake_clock.boot_ms += below(CLOCK_HOUR);
		if (is_new_boot)
			clock_reboot(0);
		now_ms = left(f, STORE_WRITE);
		/* What the last writer noted. Later times were seen by readers only. */
		assert_true(now_ms <= seen_ms);
		if (below(2))
			continue;
		begin(f);
		put_for(f, "192.0.2.2", 1 + below(CLOCK_HOUR));
		end(f);
		seen_ms = now_ms;
	}
}

TEST_MAIN(seed, NULL)
