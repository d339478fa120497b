/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The maps and constants of the programs, and the functions that read the maps. include/abi.h has the layouts. The
 * sizes here fit the default options; the tool changes both together. No map is pinned by name.
 *
 * A test on the host replaces this file: it defines XDP_CUCKOO_MAPS_H, xc_options, maps_prefixes(), maps_bucket(),
 * maps_record(), maps_touch_count(), maps_tick() and maps_count(), and then includes lookup_key.h.
 */
#ifndef XDP_CUCKOO_MAPS_H
#define XDP_CUCKOO_MAPS_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "abi.h"
#include "bucket.h"
#include "verifier.h"

const volatile struct abi_options xc_options = {
	.format = BUCKET_16,
	.is_exact = 1,
	.has_counts = 1,
	.orders_loads = !ABI_LOADS_IN_ORDER,
};

/* For bucket_get(). The tool fills this if the format is BUCKET_17. */
const volatile __u16 xc_prefixes[BUCKET_SORTED_CODES] = {};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct abi_config);
} xc_config SEC(".maps");

/* An element is one bucket, or two buckets of BUCKET_8. The tool sets value_size to 16 for BUCKET_32. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, (1 << ABI_SLOTS_DEFAULT_LOG2) / BUCKET_SLOTS);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u64));
} xc_buckets SEC(".maps");

/* One record for each slot: see abi_record(). */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1 << ABI_SLOTS_DEFAULT_LOG2);
	__type(key, __u32);
	__type(value, __u64);
} xc_records SEC(".maps");

/* One counter for each slot, if rules are counted. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1 << ABI_SLOTS_DEFAULT_LOG2);
	__type(key, __u32);
	__type(value, struct abi_counter);
} xc_counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, ABI_COUNTER_ELEMENTS);
	__type(key, __u32);
	__type(value, struct abi_counter[ABI_COUNTERS]);
} xc_counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, ABI_TABLES *ABI_HINTS(ABI_HINT_SHIFT_MOST) / sizeof(__u64));
	__type(key, __u32);
	__type(value, __u64);
} xc_hints SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct abi_rates);
} xc_rates SEC(".maps");

/* One element for each meter of xc_rates. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, ABI_RATES);
	__type(key, __u32);
	__type(value, struct abi_rate_credit);
} xc_rate_credits SEC(".maps");

/* A ring of struct abi_sample. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, ABI_SAMPLES_BYTES);
} xc_samples SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct abi_sampling);
} xc_sampling SEC(".maps");

/* For bucket_get(). The barrier stops compilers from using the zeroes above as constants. */
FLOW_INLINE const __u16 *maps_prefixes(void)
{
	const __u16 *prefixes = (const __u16 *)xc_prefixes;

	hide_from_compiler(prefixes);
	return prefixes;
}

/* The clock for the ends of entries. The kernel inlines the helper: two loads, no call. */
FLOW_INLINE __u32 maps_tick(void)
{
	return bpf_jiffies64() >> ABI_TICK_SHIFT;
}

/* The next functions return an element, or NULL if the map has no such element. */

FLOW_INLINE struct abi_config *maps_config(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&xc_config, &zero);
}

FLOW_INLINE struct abi_sampling *maps_sampling(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&xc_sampling, &zero);
}

FLOW_INLINE const void *maps_bucket(__u32 element)
{
	return bpf_map_lookup_elem(&xc_buckets, &element);
}

FLOW_INLINE const __u64 *maps_record(__u32 slot)
{
	return bpf_map_lookup_elem(&xc_records, &slot);
}

/* The counter of the key in `slot`. */
FLOW_INLINE struct abi_counter *maps_count_of(__u32 slot)
{
	return bpf_map_lookup_elem(&xc_counts, &slot);
}

#define MAPS_TOUCH_SHIFT_MOST 1

/*
 * Loads the counter of the key in `slot` into the cache, if this CPU counts at least every second packet: see struct abi_pace.
 * In a faster flood the counters of packets that are not counted would drive other lines out of the cache.
 */
FLOW_INLINE void maps_touch_count(__u32 slot)
{
	const struct abi_sampling *sampling = maps_sampling();
	const struct abi_counter *counter;

	if (!sampling || sampling->pace.shift > MAPS_TOUCH_SHIFT_MOST)
		return;
	counter = maps_count_of(slot);
	if (counter)
		(void)READ_ONCE(counter->packets);
}

/* An element has eight hints, because elements of an array have at least 8 bytes. */
FLOW_INLINE const __u8 *maps_hint(__u32 hint)
{
	__u32 element = hint / sizeof(__u64);
	const __u8 *hints = bpf_map_lookup_elem(&xc_hints, &element);

	return hints ? hints + hint % sizeof(__u64) : hints;
}

FLOW_INLINE struct abi_rates *maps_rates(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&xc_rates, &zero);
}

FLOW_INLINE struct abi_rate_credit *maps_rate_credit(__u32 number)
{
	return bpf_map_lookup_elem(&xc_rate_credits, &number);
}

/* A row of ABI_COUNTERS counters. */
FLOW_INLINE struct abi_counter *maps_counters(__u32 row)
{
	return bpf_map_lookup_elem(&xc_counters, &row);
}

/* Counts a rare event. `number` is a constant: ABI_COUNTER_RETRIES or later. */
FLOW_INLINE void maps_count(__u32 number, __u64 times)
{
	struct abi_counter *counters = maps_counters(0);

	if (counters)
		counters[number].packets += times;
}

#endif
