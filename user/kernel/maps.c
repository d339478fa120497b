// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The maps of a filter as memory: mapping, sizes, closing. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernel/internal.h"

const char *const kernel_map_names[KERNEL_MAPS] = {
	[KERNEL_CONFIG] = ABI_CONFIG_MAP,   [KERNEL_BUCKETS] = ABI_BUCKETS_MAP,   [KERNEL_RECORDS] = ABI_RECORDS_MAP,
	[KERNEL_COUNTS] = ABI_COUNTS_MAP,   [KERNEL_COUNTERS] = ABI_COUNTERS_MAP, [KERNEL_HINTS] = ABI_HINTS_MAP,
	[KERNEL_SAMPLES] = ABI_SAMPLES_MAP, [KERNEL_SAMPLING] = ABI_SAMPLING_MAP,
};

int kernel_map_part(const struct kernel_map *map, size_t offset, size_t bytes)
{
	const size_t start = offset & ~((size_t)sysconf(_SC_PAGESIZE) - 1), end = offset + bytes;

	/* Reading a table opens the same part again and again. */
	if (map->part->start <= start && end <= map->part->end)
		return 0;
	if (mmap((char *)map->memory + start, end - start, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, map->fd,
		 start) == MAP_FAILED)
		return -errno;
	*map->part = (struct kernel_part){ start, end };
	return 0;
}

/* A table gets only an address range; kernel_map_part() maps parts of it. */
static int map_memory(struct kernel_map *map, bool is_table)
{
	void *memory = mmap(NULL, map->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		return -errno;
	map->memory = memory;
	map->part = calloc(1, sizeof(*map->part));
	if (!map->part)
		return -ENOMEM;
	return is_table ? 0 : kernel_map_part(map, 0, map->bytes);
}

int kernel_map_memory(struct kernel_filter *filter, struct reason *reason)
{
	int error = 0;

	for (enum kernel_map_name name = 0; name < KERNEL_MAPS && !error; name++)
		/* Per-CPU maps cannot be mapped. Whoever reads the ring maps it. */
		if (name != KERNEL_COUNTERS && name != KERNEL_SAMPLES && name != KERNEL_SAMPLING &&
		    !filter->map[name].memory && (name == KERNEL_CONFIG || !filter->is_other_version))
			error = map_memory(&filter->map[name],
					   name == KERNEL_BUCKETS || name == KERNEL_RECORDS || name == KERNEL_COUNTS);
	filter->config = filter->map[KERNEL_CONFIG].memory;
	return error ? kernel_refuse(reason, error, "cannot map the filter's table", "") : 0;
}

__u32 kernel_bucket_bytes(const struct abi_options *options)
{
	return options->format == BUCKET_32 ? 2 * sizeof(__u64) : sizeof(__u64);
}

__u64 kernel_sizes_entries(const struct kernel_sizes *plan, enum kernel_map_name name)
{
	switch (name) {
	case KERNEL_BUCKETS:
		return plan->tables * plan->bucket_bytes / kernel_bucket_bytes(&plan->options);
	case KERNEL_RECORDS:
		return plan->options.is_exact ? plan->tables * plan->slots : 1;
	case KERNEL_COUNTS:
		return plan->options.has_counts ? plan->tables * plan->slots : 1;
	case KERNEL_HINTS:
		return ABI_TABLES * ABI_HINTS / sizeof(__u64);
	default:
		return 1;
	}
}

/* The kernel rounds each element of an array up to 8 bytes, and a mapped array up to whole pages. */
void kernel_describe_map(const struct bpf_map_info *info, struct kernel_map *map)
{
	map->id = info->id;
	map->entries = info->max_entries;
	map->value_bytes = info->value_size;
	map->bytes = (size_t)info->max_entries * ((info->value_size + 7) & ~7U);
}

__u64 kernel_sizes_bytes(const struct kernel_sizes *plan)
{
	return plan->tables * plan->bucket_bytes + kernel_sizes_entries(plan, KERNEL_RECORDS) * sizeof(__u64) +
	       kernel_sizes_entries(plan, KERNEL_COUNTS) * sizeof(struct abi_counter) +
	       kernel_sizes_entries(plan, KERNEL_HINTS) * sizeof(__u64);
}

__u64 kernel_filter_bytes(const struct kernel_filter *filter)
{
	return filter->map[KERNEL_BUCKETS].bytes + filter->map[KERNEL_RECORDS].bytes +
	       filter->map[KERNEL_COUNTS].bytes + filter->map[KERNEL_HINTS].bytes;
}
