/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What stands before files of bpf/ that are compiled for the host: helpers of the kernel, and no warnings of their style. */
#ifndef XDP_CUCKOO_STEPS_AS_BPF_H
#define XDP_CUCKOO_STEPS_AS_BPF_H

#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#pragma GCC diagnostic ignored "-Wstrict-aliasing"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

#define __BPF_HELPERS__
#define SEC(name)
#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

static inline __u64 bpf_jiffies64(void);

static inline __u64 bpf_ktime_get_ns(void)
{
	return bpf_jiffies64() * 4000000;
}

static __always_inline long as_bpf_loop(__u32 turns, long (*turn)(__u32, void *), void *context)
{
	for (__u32 i = 0; i < turns; i++)
		if (turn(i, context))
			return i + 1;
	return turns;
}
#define bpf_loop(turns, turn, context, flags) as_bpf_loop(turns, (long (*)(__u32, void *))(turn), context)
#define bpf_sk_release(socket) ((void)(socket))

#endif
