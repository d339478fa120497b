// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The counts of a filter's programs, by row of interfaces and by CPU. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>

#include "base/memory.h"
#include "kernel/internal.h"

#define ALL_ROWS (~0ULL)

int kernel_cpus(void)
{
	return libbpf_num_possible_cpus();
}

/*
 * Allocates room for an element of the map: *count counters. Those of CPU c start at ABI_COUNTERS * c. The caller
 * frees *counters. 0 or -errno.
 */
static int make_room(struct abi_counter **counters, int *count, struct reason *reason)
{
	*count = kernel_cpus() * ABI_COUNTERS;
	if (*count <= 0)
		return reason_set(reason, -ENOTSUP,
				  "cannot tell how many CPUs there are: /sys is not mounted here; mount it (mount "
				  "-t sysfs sysfs /sys)");
	*counters = calloc(*count, sizeof(**counters));
	return *counters ? 0 : reason_set(reason, -ENOMEM, "cannot read the counters: not enough memory");
}

static int read_element(const struct kernel_filter *filter, __u32 element, struct abi_counter *counters)
{
	return bpf_map_lookup_elem(filter->map[KERNEL_COUNTERS].fd, &element, counters) ? -errno : 0;
}

/*
 * Reads the counts of the last reset first. If a reset comes in between, the next reading shows it. In the
 * other order this reading would show negative counts.
 */
int kernel_row_counters(const struct kernel_filter *filter, __u32 row, struct abi_counter *counters,
			struct reason *reason)
{
	FREED struct abi_counter *base = NULL;
	int count, error = make_room(&base, &count, reason);

	if (error)
		return error;
	error = read_element(filter, ABI_COUNTER_ROWS + row, base);
	if (!error)
		error = read_element(filter, row, counters);
	for (int i = 0; i < count && !error; i++) {
		counters[i].packets -= base[i].packets;
		counters[i].bytes -= base[i].bytes;
	}
	return error ? kernel_refuse(reason, error, "cannot read the counters", "") : 0;
}

/* Adds up all CPUs, and all rows or those of received packets that are bits of `rows`. */
static int add_rows(const struct kernel_filter *filter, __u64 rows, struct abi_counter counters[ABI_COUNTERS],
		    struct reason *reason)
{
	FREED struct abi_counter *row = NULL;
	int count, error = make_room(&row, &count, reason);

	memset(counters, 0, ABI_COUNTERS * sizeof(*counters));
	for (__u32 r = 0; r < ABI_COUNTER_ROWS && !error; r++) {
		if (rows != ALL_ROWS && (r >= ABI_COUNTER_SENT || !(rows >> r & 1)))
			continue;
		error = kernel_row_counters(filter, r, row, reason);
		for (int i = 0; i < count && !error; i++) {
			counters[i % ABI_COUNTERS].packets += row[i].packets;
			counters[i % ABI_COUNTERS].bytes += row[i].bytes;
		}
	}
	return error;
}

int kernel_counters(const struct kernel_filter *filter, struct abi_counter counters[ABI_COUNTERS],
		    struct reason *reason)
{
	return add_rows(filter, ALL_ROWS, counters, reason);
}

/* A bond runs the program on its slaves, so their rows belong to it. */
int kernel_counted_on(const struct kernel_filter *filter, const struct kernel_attachment *attachment,
		      const struct interface *interfaces, size_t interfaces_count, __u64 *packets,
		      struct reason *reason)
{
	__u64 rows = 1ULL << abi_counter_row(attachment->ifindex);
	struct abi_counter counters[ABI_COUNTERS];
	int error;

	for (size_t i = 0; i < interfaces_count; i++)
		if (interfaces[i].master == attachment->ifindex)
			rows |= 1ULL << abi_counter_row(interfaces[i].index);
	error = add_rows(filter, rows, counters, reason);
	*packets = 0;
	for (int i = 0; i < OUTCOMES * VERDICTS; i++)
		*packets += counters[i].packets;
	return error;
}

int kernel_reset_counters(const struct kernel_filter *filter, struct reason *reason)
{
	FREED struct abi_counter *counters = NULL;
	int count, error = make_room(&counters, &count, reason);

	for (__u32 row = 0; row < ABI_COUNTER_ROWS && !error; row++) {
		const __u32 base = ABI_COUNTER_ROWS + row;

		error = read_element(filter, row, counters);
		if (!error && bpf_map_update_elem(filter->map[KERNEL_COUNTERS].fd, &base, counters, BPF_ANY))
			error = -errno;
		if (error)
			error = kernel_refuse(reason, error, "cannot reset the counters", "");
	}
	return error;
}
