// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The kernel's clock, by which entries of a table end. A BPF program reads it. */
#include <errno.h>
#include <time.h>
#include <unistd.h>

#include <linux/if_ether.h>

#include <bpf/bpf.h>

#include "kernel/kernel.h"
#include "kernel/internal.h"

#define NS_PER_S 1000000000L

/* return bpf_jiffies64() >> ABI_TICK_SHIFT; an object of its own would need another skeleton. */
static const struct bpf_insn tick_program[] = {
	{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_jiffies64 },
	{ .code = BPF_ALU64 | BPF_RSH | BPF_K, .dst_reg = BPF_REG_0, .imm = ABI_TICK_SHIFT },
	{ .code = BPF_JMP | BPF_EXIT },
};

/* 0 or -errno. */
static int run_program(int program, __u32 *result)
{
	__u8 frame[ETH_HLEN] = {}; /* the shortest frame that the kernel accepts */
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .data_size_in = sizeof(frame));

	if (bpf_prog_test_run_opts(program, &options))
		return -errno;
	*result = options.retval;
	return 0;
}

/* CLOCK_MONOTONIC_COARSE has a resolution of one jiffy. */
static double jiffies_per_second(void)
{
	struct timespec jiffy = {};
	long rounded;

	if (clock_getres(CLOCK_MONOTONIC_COARSE, &jiffy) || !jiffy.tv_nsec)
		return 0;
	rounded = (NS_PER_S + jiffy.tv_nsec / 2) / jiffy.tv_nsec;
	return rounded;
}

int kernel_tick(__u32 *tick, double *ticks_per_second, struct reason *reason)
{
	int program, error;

	kernel_listen();
	*ticks_per_second = jiffies_per_second() / (1 << ABI_TICK_SHIFT);
	program = bpf_prog_load(BPF_PROG_TYPE_XDP, "xc_tick", "GPL", tick_program,
				sizeof(tick_program) / sizeof(tick_program[0]), NULL);
	error = program < 0 ? -errno : run_program(program, tick);
	if (program >= 0)
		close(program);
	if (!error && !*ticks_per_second)
		error = -ENOTSUP;
	return error ? kernel_refuse(reason, error, "cannot read the kernel's clock", "") : 0;
}
