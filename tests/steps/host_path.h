/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The packet path of bpf/, compiled for the host: path_judge() says what becomes of a frame, by the maps in `path`. Stands in
 * for libbpf's helpers and for bpf/maps.h. A program has this file once.
 */
#ifndef XDP_CUCKOO_STEPS_HOST_PATH_H
#define XDP_CUCKOO_STEPS_HOST_PATH_H

#include <stdbool.h>
#include <string.h>

#include <linux/bpf.h>

#include "abi.h"
#include "table/semisort.h"

enum path_range { PATH_BUCKETS, PATH_ADDRESSES, PATH_RECORDS, PATH_HINTS, PATH_RATE_LINES, PATH_RANGES };

/* The maps of the filter whose program runs. A map has `count` elements. */
static struct path_maps {
	struct abi_options options;
	struct abi_config *config;
	const __u64 *bucket, *record, *hint;
	struct abi_counter *count;
	struct abi_rates *rates;
	struct abi_rate_credit *credits;
	size_t buckets, records, hints, counts;
	/* Of these maps, what belongs to the active table. The packet path may read nothing else of them. */
	struct {
		const char *start;
		size_t bytes;
	} range[PATH_RANGES];
} path;

static inline const void *path_checked(enum path_range range, const void *at)
{
	const char *start = path.range[range].start;

	if ((const char *)at < start || (const char *)at >= start + path.range[range].bytes)
		abort();
	return at;
}

static __u64 path_jiffies = 1 << 20;
/* Of all filters, as each has a map of its own. */
#define PATH_FILTERS 64
static struct abi_rate_credit path_credits[PATH_FILTERS][ABI_RATES];
static struct abi_counter path_counters[ABI_COUNTERS];

#pragma GCC diagnostic push
#include "steps/as_bpf.h"

/* ---- helpers of the kernel ---- */

static inline __u64 bpf_jiffies64(void)
{
	return path_jiffies;
}

static inline long bpf_xdp_load_bytes(const struct xdp_md *frame, __u32 offset, void *to, __u32 bytes)
{
	const char *data = (const char *)(long)frame->data;

	if (offset + bytes > frame->data_end - frame->data)
		return -1;
	memcpy(to, data + offset, bytes);
	return 0;
}

static inline __u64 bpf_xdp_get_buff_len(const struct xdp_md *frame)
{
	return frame->data_end - frame->data;
}

/* No socket waits for a datagram. */
#define bpf_sk_lookup_udp(ctx, tuple, bytes, netns, flags) ((struct bpf_sock *)NULL)

/* Nobody listens to samples. */
#define bpf_ringbuf_reserve(ring, bytes, flags) NULL
#define bpf_ringbuf_submit(sample, flags) ((void)(sample))
#define bpf_ringbuf_discard(sample, flags) ((void)(sample))

/* ---- the maps ---- */

#define XDP_CUCKOO_MAPS_H
#define xc_options path.options

static inline const __u16 *maps_prefixes(void)
{
	return semisort_prefixes();
}

static inline __u32 maps_tick(void)
{
	return bpf_jiffies64() >> ABI_TICK_SHIFT;
}

static inline struct abi_config *maps_config(void)
{
	return path.config;
}

static inline struct abi_sampling *maps_sampling(void)
{
	return NULL;
}

static inline const void *maps_bucket(__u32 element)
{
	const size_t words = path.options.format == BUCKET_32 ? 2 : 1;

	const __u64 *at = path.bucket + element * words;
	const bool is_address = path.range[PATH_ADDRESSES].bytes &&
				(const char *)at >= path.range[PATH_ADDRESSES].start;

	return element < path.buckets ? path_checked(is_address ? PATH_ADDRESSES : PATH_BUCKETS, at) : NULL;
}

static inline const __u64 *maps_record(__u32 slot)
{
	return slot < path.records ? path_checked(PATH_RECORDS, path.record + slot) : NULL;
}

static inline struct abi_counter *maps_count_of(__u32 slot)
{
	return slot < path.counts ? path.count + slot : NULL;
}

static inline void maps_touch_count(__u32 slot)
{
	(void)slot;
}

static inline const __u8 *maps_hint(__u32 hint)
{
	return hint < path.hints * sizeof(__u64) ? path_checked(PATH_HINTS, (const __u8 *)path.hint + hint) : NULL;
}

static inline struct abi_rates *maps_rates(void)
{
	return path.rates;
}

/* What the first use of a meter found, so that path_put_back() can undo what a frame costs. */
#define PATH_METERS 64
static struct path_used {
	__u32 number;
	__u64 spent;
	struct abi_rate_credit credit;
} path_used[PATH_METERS];
static unsigned int path_used_count;

static inline struct abi_rate_credit *maps_rate_credit(__u32 number)
{
	bool is_used = false;

	if (number >= ABI_RATES)
		return NULL;
	for (unsigned int i = 0; i < path_used_count; i++)
		is_used |= path_used[i].number == number;
	if (!is_used && path_used_count < PATH_METERS) {
		path_used[path_used_count].number = number;
		path_used[path_used_count].spent = path.rates->rate[number].spent;
		path_used[path_used_count++].credit = path.credits[number];
	}
	return &path.credits[number];
}

static inline void path_put_back(void)
{
	while (path_used_count) {
		const __u32 number = path_used[--path_used_count].number;

		path.rates->rate[number].spent = path_used[path_used_count].spent;
		path.credits[number] = path_used[path_used_count].credit;
	}
}

static inline struct abi_counter *maps_counters(__u32 row)
{
	(void)row;
	return path_counters;
}

static inline void maps_count(__u32 number, __u64 times)
{
	path_counters[number].packets += times;
}

#include "verifier.h"
#include "verdict.h"

#pragma GCC diagnostic pop

/* ---- one frame ---- */

/* The frame is below 4 GiB, where struct xdp_md can say where it is. */
static inline struct verdict path_judge(const void *frame, size_t bytes)
{
	struct xdp_md ctx = { .data = (__u32)(long)frame, .data_end = (__u32)(long)frame + bytes };

	return verdict_of(&ctx, frame, (const char *)frame + bytes, PACKET_HAS_BUFFERS);
}

#endif
