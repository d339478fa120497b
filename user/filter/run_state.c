// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "filter/run_state.h"

#include "kernel/ticks.h"

bool run_is_unconfirmed(const struct kernel_filter *filter)
{
	return filter->config->run & ABI_RUN_UNCONFIRMED;
}

__s64 run_confirm_left_ms(const struct kernel_filter *filter)
{
	struct reason ignored;
	__s64 left_ms;

	if (!run_is_unconfirmed(filter) || ticks_left(filter->config->confirm_by, &left_ms, &ignored))
		return 0;
	return left_ms > 0 ? left_ms : 0;
}

bool run_is_confirm_late(const struct kernel_filter *filter)
{
	return run_is_unconfirmed(filter) && !run_confirm_left_ms(filter);
}

bool run_is_filtering(const struct kernel_filter *filter)
{
	const __u32 run = filter->config->run;

	return (run & ABI_RUN_SET_UP) && !(run & (ABI_RUN_PANIC | ABI_RUN_MONITOR)) && !run_is_confirm_late(filter);
}
