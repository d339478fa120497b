// SPDX-License-Identifier: GPL-2.0-only
/*
 * The XDP programs. Each finds a verdict and counts it once, at its only exit. `xdp_cuckoo` is for frames in one
 * buffer; `xdp_cuckoo_frags` is for frames in several buffers (jumbo MTU). Both have the metadata that libxdp's
 * dispatcher needs to run them together with other programs.
 */
#include "count_by_rule.h"
#include "maps.h"
#include "send_sample.h"
#include "verdict.h"

#define RUN_CONFIG SEC(".xdp_run_config")
#define RUN_PRIORITY 10

struct {
	__uint(priority, RUN_PRIORITY);
	__uint(XDP_PASS, 1);
} _xdp_cuckoo RUN_CONFIG;

/* A missing counter never changes a verdict. */
static __always_inline int count(const struct xdp_md *ctx, struct verdict verdict, __u64 bytes)
{
	struct abi_counter *counters = maps_counters(abi_counter_row(ctx->ingress_ifindex));
	__u32 number = verdict.outcome * VERDICTS + verdict.verdict;

	if (counters && number < ABI_COUNTERS) {
		counters[number].packets++;
		counters[number].bytes += bytes;
	}
	if (xc_options.has_counts && verdict.slot != LOOKUP_NO_SLOT)
		count_rule(verdict.slot, 1, bytes);
	return verdict.verdict == VERDICT_DROP ? XDP_DROP : XDP_PASS;
}

static __always_inline int finish(struct xdp_md *ctx, struct verdict verdict, __u64 bytes)
{
	if (verdict.listener)
		sample_packet(ctx, verdict.outcome, verdict.verdict, bytes);
	return count(ctx, verdict, bytes);
}

static __always_inline int filter_one_buffer(struct xdp_md *ctx)
{
	const void *data = (const void *)(long)ctx->data;
	const void *end = (const void *)(long)ctx->data_end;
	__u64 bytes = end - data;

	hide_from_compiler(bytes);
	return finish(ctx, verdict_of(ctx, data, end, 0), bytes);
}

SEC("xdp")
int xdp_cuckoo(struct xdp_md *ctx)
{
	return filter_one_buffer(ctx);
}

struct {
	__uint(priority, RUN_PRIORITY);
	__uint(XDP_PASS, 1);
} _xdp_cuckoo_frags RUN_CONFIG;

SEC("xdp.frags")
int xdp_cuckoo_frags(struct xdp_md *ctx)
{
	const void *data = (const void *)(long)ctx->data;
	const void *end = (const void *)(long)ctx->data_end;

	return finish(ctx, verdict_of(ctx, data, end, PACKET_HAS_BUFFERS), bpf_xdp_get_buff_len(ctx));
}

char LICENSE[] SEC("license") = "GPL";
