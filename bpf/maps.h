/* SPDX-License-Identifier: GPL-2.0-only */
/* The maps, as the object declares them. Layouts: include/abi.h. Nothing is pinned by name. */
#ifndef XDP_CUCKOO_MAPS_H
#define XDP_CUCKOO_MAPS_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "abi.h"
#include "bucket.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct abi_config);
} xc_config SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, (1 << ABI_SLOTS_DEFAULT_LOG2) / BUCKET_SLOTS);
	__type(key, __u32);
	__type(value, __u64);
} xc_buckets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, OUTCOMES * VERDICTS);
	__type(key, __u32);
	__type(value, struct abi_counter);
} xc_counters SEC(".maps");

#endif
