/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sends a sample of a dropped packet to the listener, which is `xdp-cuckoo monitor`: see include/sample.h. Usually
 * there is no listener, so this is not inline.
 */
#ifndef XDP_CUCKOO_SEND_SAMPLE_H
#define XDP_CUCKOO_SEND_SAMPLE_H

#include "lookup_key.h"
#include "maps.h"
#include "packet.h"

#define SAMPLE_PASSED_MAX 0xffff /* the most jiffies that earn credit; more than ABI_SAMPLE_BURST */

/* Pays for one sample from a token bucket. False if the credit is too low. */
static __always_inline int sample_pay(const struct abi_config *config, struct abi_sampling *sampling)
{
	const __u64 a_jiffy = READ_ONCE(config->sample_credit), now = bpf_jiffies64();
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

/* Copies the first bytes of the frame, from all its buffers. False: there is nothing to copy. */
static __always_inline int sample_copy(packet_context *ctx, struct abi_sample *sample, __u32 bytes, __u32 verdict)
{
	if (bytes > ABI_SAMPLE_BYTES)
		bytes = ABI_SAMPLE_BYTES;
	bytes--;
	hide_from_compiler(bytes);
	bytes = (bytes & (ABI_SAMPLE_BYTES - 1)) + 1;
	sample->captured = bytes;
	return !packet_sample(ctx, sample, bytes, verdict);
}

static __always_inline void sample_send(packet_context *ctx, struct abi_sampling *sampling, __u32 outcome,
					__u32 verdict, __u32 bytes)
{
	struct abi_sample *sample = bpf_ringbuf_reserve(&xc_samples, sizeof(*sample), 0);

	if (!sample) {
		sampling->lost++;
		return;
	}
	sample->time_ns = bpf_ktime_get_ns();
	sample->ifindex = packet_ifindex(ctx);
	sample->bytes = bytes;
	sample->outcome = outcome;
	sample->verdict = verdict;
	if (sample_copy(ctx, sample, bytes, verdict)) {
		bpf_ringbuf_submit(sample, 0);
		return;
	}
	sampling->lost++;
	bpf_ringbuf_discard(sample, 0);
}

/* Called only if there is a lease. `verdict`: with marks, see include/sample.h. */
RARE_FUNCTION int sample_packet(packet_context *ctx, __u32 outcome, __u32 verdict, __u32 bytes)
{
	struct abi_sampling *sampling = maps_sampling();
	struct abi_config *config = maps_config();
	__u64 lease;

	if (!sampling || !config)
		return 0;
	lease = READ_ONCE(config->listener);
	if (maps_tick() >= (__u32)lease) {
		/* The listener may extend the lease at the same time. */
		__sync_val_compare_and_swap(&config->listener, lease, 0);
		return 0;
	}
	if (sampling->seen++ % READ_ONCE(config->sample_every))
		return 0;
	if (sample_pay(config, sampling))
		sample_send(ctx, sampling, outcome, verdict, bytes);
	else
		sampling->limited++;
	return 0;
}

#endif
