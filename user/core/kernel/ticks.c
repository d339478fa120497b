// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Ticks: the clock by which the packet path ends rules (include/abi.h). Converts timeouts to ticks, and back. */
#include <errno.h>
#include <time.h>
#include <unistd.h>

#include <linux/if_ether.h>

#include <bpf/bpf.h>

#include "base/clock.h"
#include "kernel/internal.h"

#define NS_PER_S 1000000000L

/* return bpf_jiffies64() >> ABI_TICK_SHIFT; in C it would need an object and a skeleton of its own. */
static const struct bpf_insn tick_program[] = {
	{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_jiffies64 },
	{ .code = BPF_ALU64 | BPF_RSH | BPF_K, .dst_reg = BPF_REG_0, .imm = ABI_TICK_SHIFT },
	{ .code = BPF_JMP | BPF_EXIT },
};

/* CLOCK_MONOTONIC_COARSE has a resolution of one jiffy. */
long ticks_jiffies(void)
{
	struct timespec jiffy = {};

	return clock_getres(CLOCK_MONOTONIC_COARSE, &jiffy) || !jiffy.tv_nsec ?
		       0 :
		       (NS_PER_S + jiffy.tv_nsec / 2) / jiffy.tv_nsec;
}

int kernel_tick(__u32 *tick, double *ticks_per_second, struct reason *reason)
{
	__u8 frame[ETH_HLEN] = {}; /* the shortest frame that the kernel accepts */
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .data_size_in = sizeof(frame));
	int program, error = 0;

	kernel_catch_messages();
	program = bpf_prog_load(BPF_PROG_TYPE_XDP, "xc_tick", "GPL", tick_program,
				sizeof(tick_program) / sizeof(tick_program[0]), NULL);
	if (program < 0 || bpf_prog_test_run_opts(program, &options))
		error = -errno;
	if (program >= 0)
		close(program);
	*tick = options.retval;
	if (!error && !ticks_jiffies())
		error = -ENOTSUP;
	if (error)
		return kernel_refuse(reason, error, "cannot read the kernel's clock", "");
	*ticks_per_second = (double)ticks_jiffies() / (1 << ABI_TICK_SHIFT);
	return 0;
}

/*
 * Each thread asks the kernel once. After that CLOCK_MONOTONIC tells the tick, because jiffies run with it.
 */
static _Thread_local struct {
	bool is_known;
	__u32 tick;
	double per_second, second; /* second: CLOCK_MONOTONIC just before the tick was read */
} base;

/* The present tick, with its fraction. */
static int now(double *tick, struct reason *reason)
{
	/* The clock first, then the tick: any delay between them makes rules end later, not earlier. */
	if (!base.is_known) {
		int error;

		base.second = clock_seconds();
		error = kernel_tick(&base.tick, &base.per_second, reason);
		if (error)
			return error;
		base.is_known = true;
	}
	*tick = base.tick + (clock_seconds() - base.second) * base.per_second;
	return 0;
}

/*
 * Adds two ticks, because both the present tick and the last one may be nearly over. So a rule ends less
 * than two ticks late, but never early.
 */
int ticks_at(__s64 timeout_ms, __u32 *tick, struct reason *reason)
{
	double at;
	int error;

	*tick = 0;
	if (!timeout_ms)
		return 0;
	error = now(&at, reason);
	if (error)
		return error;
	at += timeout_ms / 1000. * base.per_second + 2;
	if (at < 0xffffffff)
		*tick = at < 1 ? 1 : (__u32)at;
	return 0;
}

int ticks_now(__u32 *tick, struct reason *reason)
{
	double at;
	const int error = now(&at, reason);

	*tick = !error && at > 2 ? (__u32)(at - 2) : 0;
	return error;
}

int ticks_left(__u32 tick, __s64 *left_ms, struct reason *reason)
{
	double at;
	int error = now(&at, reason);

	if (!error)
		*left_ms = (tick - at) / base.per_second * 1000;
	return error;
}
