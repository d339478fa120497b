// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Where a filter should run, and in which order programs go; ticks. The calls of the kernel are this test's. */
#include <bpf/bpf.h>

#include "unit/test.h"
#include "kernel/internal.h"

#define TICK 1000

static int refused; /* -errno of the next program */

#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* the linker calls them */

int __wrap_bpf_prog_load(void)
{
	errno = -refused;
	return refused ? refused : dup(STDERR_FILENO);
}

int __wrap_bpf_prog_test_run_opts(int program, struct bpf_test_run_opts *opts)
{
	(void)program;
	opts->retval = TICK;
	return 0;
}

static size_t places(const struct abi_config *config)
{
	size_t count = 0;

	for (size_t i = 0; i < ABI_RECEIVED; i++)
		count += config->received[i] != 0;
	return count;
}

TEST(test_received_packets)
{
	struct abi_config config = {};
	struct kernel_attachment on[] = { { .ifindex = 3 }, { .ifindex = 5 } };
	struct kernel_filter filter = { .config = &config, .attachments = on, .attachments_count = 2 };
	int index = 100;

	config.received[0] = 3; /* by an older tool */
	for (int again = 0; again < 2; again++)
		kernel_want_received(&filter, 65536 + 3, true);
	assert_int_equal(places(&config), 1);
	assert_false(kernel_is_wanted(&filter, &on[0])); /* a stranger of the same 16 bits */
	kernel_want_received(&filter, 65536 + 3, false);
	kernel_want_received(&filter, 3, true);
	assert_true(kernel_is_wanted(&filter, &on[0]) && !kernel_is_wanted(&filter, &on[1]));
	while (places(&config) < ABI_RECEIVED)
		kernel_want_received(&filter, index++, true);
	assert_int_equal(index, 100 + ABI_RECEIVED - 1);
	assert_false(config.forgot_received);
	kernel_want_received(&filter, 5, true); /* in the place of one that it is not on */
	assert_true(config.forgot_received);
	assert_true(kernel_is_wanted(&filter, &on[0]) && kernel_is_wanted(&filter, &on[1]));
	kernel_want_received(&filter, 99, false);
	assert_int_equal(places(&config), ABI_RECEIVED);
	assert_false(kernel_has_lost_interface(&filter, 1, 0, 100));
	assert_false(kernel_has_lost_interface(&filter, 1, 0, 3));
	assert_true(kernel_has_lost_interface(&filter, 1, 0, 101));
	filter.is_other_version = true;
	assert_false(kernel_has_lost_interface(&filter, 1, 0, 101));
	filter.is_other_version = false;
	assert_true(kernel_misses_interface(&filter));
	kernel_want_received(&filter, 101, false);
	assert_false(kernel_has_lost_interface(&filter, 1, 0, 101));
	assert_int_equal(places(&config), ABI_RECEIVED - 1);
	config = (struct abi_config){ .received = { [2] = 3, [5] = 5 } };
	assert_false(kernel_misses_interface(&filter));
	on[0].ifindex += 65536; /* one of these takes the filter for that of an older tool */
	assert_false(kernel_misses_interface(&filter));
	config.received_upper[2] = 1;
	assert_true(kernel_misses_interface(&filter));
}

/* Of lo and one that is not there. */
TEST(test_gone_interfaces)
{
	struct abi_config config = { .received = { [1] = 65535, [4] = if_nametoindex("lo") } };
	struct kernel_attachment on[] = { { .ifindex = 70 }, { .ifindex = 71, .mode = INTERFACE_TC_SENT } };
	struct kernel_filter filter = { .config = &config, .attachments = on };

	assert_int_equal(kernel_gone_interfaces(&filter, 1, 0), 1);
	filter.attachments_count = 2;
	assert_int_equal(kernel_gone_interfaces(&filter, 1, 0), 0); /* one has moved, and is back */
	on[0].ifindex = 1;
	assert_int_equal(kernel_gone_interfaces(&filter, 1, 0), 1);
	filter.is_other_version = true;
	kernel_forget_gone(&filter);
	assert_int_equal(kernel_gone_interfaces(&filter, 1, 0), 0);
	assert_int_equal(places(&config), 2);
	filter.is_other_version = false;
	kernel_forget_gone(&filter);
	assert_int_equal(places(&config), 1);
	assert_true(kernel_misses_interface(&filter)); /* it may run elsewhere */
	kernel_want_received(&filter, 65535, true);
	on[0].ifindex = 70; /* may be one that was forgotten */
	assert_int_equal(kernel_gone_interfaces(&filter, 1, 0), 1);
}

TEST(test_sent_packets)
{
	struct abi_config config = {};
	struct kernel_attachment on[] = { { .ifindex = 3 },
					  { .ifindex = 5 },
					  { .ifindex = 5, .mode = INTERFACE_TC_SENT },
					  { .ifindex = 3 + ABI_COUNTER_SENT, .mode = INTERFACE_TC_SENT } };
	struct kernel_filter filter = { .config = &config, .attachments = on, .attachments_count = 3 };

	assert_ptr_equal(kernel_other_direction(&filter, &on[1]), &on[2]);
	assert_null(kernel_other_direction(&filter, &on[0]));
	assert_true(kernel_goes_with_another(&filter, &on[2]) && !kernel_goes_with_another(&filter, &on[1]));
	assert_false(kernel_is_wanted(&filter, &on[2]));
	kernel_want_outgoing(&filter, &on[2], true);
	assert_true(kernel_is_wanted(&filter, &on[2]));
	assert_false(kernel_has_lost_direction(&filter, &on[0]) || kernel_has_lost_direction(&filter, &on[1]));
	kernel_want_outgoing(&filter, &on[0], true);
	assert_true(kernel_has_lost_direction(&filter, &on[0]));
	kernel_want_outgoing(&filter, &on[0], false);
	assert_false(kernel_has_lost_direction(&filter, &on[0]));
	kernel_want_outgoing(&filter, &on[0], true);
	filter.attachments_count = 4; /* an interface of the same bit */
	assert_false(kernel_has_lost_direction(&filter, &on[0]));
	assert_true(kernel_has_lost_direction(&filter, &on[3]));
	kernel_want_outgoing(&filter, &on[0], false);
	filter.attachments_count = 3;
	assert_true(kernel_has_lost_direction(&filter, &on[0]));
	filter.is_other_version = true;
	assert_false(kernel_has_lost_direction(&filter, &on[0]));
}

/* Each before those below it: a VLAN, a bond, its bridge. The ends of a veth pair are no order. */
TEST(test_order)
{
	struct interface all[] = { { .index = 1 },
				   { .index = 2, .master = 4, .prog_id[INTERFACE_NATIVE] = 1 },
				   { .index = 3, .link = 2, .prog_id[INTERFACE_TC] = 1 },
				   { .index = 4, .master = 5, .prog_id[INTERFACE_SKB] = 1 },
				   { .index = 5, .prog_id[INTERFACE_SKB] = 1 },
				   { .index = 6, .link = 7, .prog_id[INTERFACE_OFFLOAD] = 1 },
				   { .index = 7, .link = 6, .prog_id[INTERFACE_TC_SENT] = 1 } };
	size_t count = COUNT(all), at[8] = {};

	interfaces_keep_running(all, &count);
	assert_int_equal(count, 6);
	for (size_t i = 0; i < count; i++) {
		at[all[i].index] = i + 1;
		assert_int_equal(all[i].is_below, all[i].index == 2 || all[i].index == 4);
	}
	assert_true(!at[1] && at[6] && at[7] && at[2] > at[3] && at[2] > at[4] && at[4] > at[5]);
}

TEST(test_ticks)
{
	const double per_second = (double)ticks_jiffies() / (1 << ABI_TICK_SHIFT);
	struct reason reason = {};
	__s64 left_ms;
	__u32 tick, later;

	assert_int_equal(ticks_at(0, &tick, &reason), 0);
	assert_int_equal(tick, 0);
	refused = -EPERM;
	assert_int_equal(ticks_at(1000, &tick, &reason), -EPERM);
	assert_non_null(strstr(reason.text, "cannot read the kernel's clock"));
	assert_int_equal(ticks_now(&tick, &reason), -EPERM);
	assert_int_equal(ticks_left(9, &left_ms, &reason), -EPERM);
	refused = 0;
	assert_int_equal(ticks_at(3600000, &tick, &reason), 0);
	assert_in_range(tick, TICK + 3600 * per_second + 1, TICK + 3660 * per_second + 2);
	assert_int_equal(ticks_left(tick, &left_ms, &reason), 0);
	assert_in_range(left_ms, 3600000 - 60000, 3600000 + 2000 / per_second);
	assert_int_equal(ticks_at(-1000000000, &tick, &reason), 0);
	assert_int_equal(tick, 1); /* long over, but not never */
	assert_int_equal(ticks_at(1LL << 60, &tick, &reason), 0);
	assert_int_equal(tick, 0); /* never */
	refused = -EPERM;          /* the clock is known */
	assert_int_equal(ticks_now(&tick, &reason), 0);
	assert_in_range(tick, TICK - 2, TICK + 60 * per_second);
	assert_int_equal(ticks_at(1, &later, &reason), 0);
	assert_true(later >= tick + 3);
}

static int see_tc(void **state)
{
	(void)state;
	return !become_root();
}

TEST_MAIN(see_tc, NULL)
