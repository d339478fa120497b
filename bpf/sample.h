/* SPDX-License-Identifier: GPL-2.0-only */
/* A dropped packet for whoever listens: see struct abi_sample. Off the common way: nobody mostly does. */
#ifndef XDP_CUCKOO_SAMPLE_H
#define XDP_CUCKOO_SAMPLE_H

#include "maps.h"
#include "probe.h"

#define SAMPLE_PASSED_MAX 0xffff /* jiffies that are credited at most; more than ABI_SAMPLE_BURST */

/* Whether there is credit for one more, which it takes: a token bucket. */
static __always_inline int sample_pay(const struct abi_config *config, struct abi_sampling *sampling)
{
	const __u64 a_jiffy = PROBE_READ_ONCE(config->sample_credit), now = bpf_jiffies64();
	__u64 passed = now - sampling->refilled, most = a_jiffy * ABI_SAMPLE_BURST, credit;

	if (passed > SAMPLE_PASSED_MAX)
		passed = SAMPLE_PASSED_MAX;
	if (most < ABI_SAMPLE_PRICE)
		most = ABI_SAMPLE_PRICE;
	credit = sampling->credit + passed * a_jiffy;
	if (credit > most)
		credit = most;
	sampling->refilled = now;
	sampling->credit = credit < ABI_SAMPLE_PRICE ? credit : credit - ABI_SAMPLE_PRICE;
	return credit >= ABI_SAMPLE_PRICE;
}

/*
 * The first bytes, wherever they are: a frame of several buffers may have few in the first. That they are 1 to
 * ABI_SAMPLE_BYTES is so by arithmetic, since Linux 6.1 learns nothing of a number that is not 0. False: none.
 */
static __always_inline int sample_copy(struct xdp_md *ctx, struct abi_sample *sample, __u32 bytes)
{
	if (bytes > ABI_SAMPLE_BYTES)
		bytes = ABI_SAMPLE_BYTES;
	bytes--;
	barrier_var(bytes);
	bytes = (bytes & (ABI_SAMPLE_BYTES - 1)) + 1;
	sample->captured = bytes;
	return !bpf_xdp_load_bytes(ctx, 0, sample->frame, bytes);
}

static __always_inline void sample_send(struct xdp_md *ctx, struct abi_sampling *sampling, __u32 outcome, __u32 verdict,
					__u32 bytes)
{
	struct abi_sample *sample = bpf_ringbuf_reserve(&xc_samples, sizeof(*sample), 0);

	if (!sample) {
		sampling->lost++;
		return;
	}
	sample->time_ns = bpf_ktime_get_ns();
	sample->ifindex = ctx->ingress_ifindex;
	sample->bytes = bytes;
	sample->outcome = outcome;
	sample->verdict = verdict;
	if (sample_copy(ctx, sample, bytes))
		bpf_ringbuf_submit(sample, 0);
	else
		bpf_ringbuf_discard(sample, 0);
}

/*
 * Called where the listener's word is not 0. That word is cleared by exchange, since the listener may be
 * putting its lease off just now. A global function: rare, and verified once.
 */
__attribute__((noinline)) int sample_packet(struct xdp_md *ctx, __u32 outcome, __u32 verdict, __u32 bytes)
{
	struct abi_sampling *sampling = maps_sampling();
	struct abi_config *config = maps_config();
	__u64 lease;

	if (!sampling || !config)
		return 0;
	lease = PROBE_READ_ONCE(config->listener);
	if (maps_tick() >= (__u32)lease) {
		__sync_val_compare_and_swap(&config->listener, lease, 0);
		return 0;
	}
	if (sampling->seen++ % PROBE_READ_ONCE(config->sample_every))
		return 0;
	if (sample_pay(config, sampling))
		sample_send(ctx, sampling, outcome, verdict, bytes);
	else
		sampling->limited++;
	return 0;
}

#endif
