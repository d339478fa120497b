// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The counts of a filter's programs, by row of interfaces and by CPU. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>

#include "kernel/kernel.h"
#include "kernel/internal.h"

/* Room for an element of the map; the counters of CPU c start at ABI_COUNTERS * c. NULL: no memory. */
static struct abi_counter *element_alloc(void)
{
	int cpus = libbpf_num_possible_cpus();

	return cpus > 0 ? calloc(cpus, ABI_COUNTERS * sizeof(struct abi_counter)) : NULL;
}

static int say_no_element(struct reason *reason)
{
	if (kernel_cpus() > 0)
		return kernel_refuse(reason, -ENOMEM, "cannot read the counters", "");
	return reason_set(reason, -ENOTSUP,
			  "cannot tell how many CPUs there are: /sys is not mounted here; mount it (mount "
			  "-t sysfs sysfs /sys)");
}

static int read_element(const struct kernel_filter *filter, __u32 element, struct abi_counter *counters)
{
	return bpf_map_lookup_elem(filter->map[KERNEL_COUNTERS].fd, &element, counters) ? -errno : 0;
}

int kernel_cpus(void)
{
	return libbpf_num_possible_cpus();
}

/*
 * Reads the counts of the last reset first. If a reset comes in between, the next reading shows it. In the
 * other order this reading would show negative counts.
 */
int kernel_row_counters(const struct kernel_filter *filter, __u32 row, struct abi_counter *counters,
			struct reason *reason)
{
	struct abi_counter *base = element_alloc();
	const int count = kernel_cpus() * ABI_COUNTERS;
	int error;

	if (!base)
		return say_no_element(reason);
	error = read_element(filter, ABI_COUNTER_ROWS + row, base);
	if (!error)
		error = read_element(filter, row, counters);
	for (int i = 0; i < count && !error; i++) {
		counters[i].packets -= base[i].packets;
		counters[i].bytes -= base[i].bytes;
	}
	free(base);
	return error ? kernel_refuse(reason, error, "cannot read the counters", "") : 0;
}

int kernel_counters(const struct kernel_filter *filter, struct abi_counter counters[ABI_COUNTERS],
		    struct reason *reason)
{
	struct abi_counter *row = element_alloc();
	const int count = kernel_cpus() * ABI_COUNTERS;
	int error = 0;

	memset(counters, 0, ABI_COUNTERS * sizeof(*counters));
	if (!row)
		return say_no_element(reason);
	for (__u32 r = 0; r < ABI_COUNTER_ROWS && !error; r++) {
		error = kernel_row_counters(filter, r, row, reason);
		for (int i = 0; i < count && !error; i++) {
			counters[i % ABI_COUNTERS].packets += row[i].packets;
			counters[i % ABI_COUNTERS].bytes += row[i].bytes;
		}
	}
	free(row);
	return error;
}

int kernel_reset_counters(const struct kernel_filter *filter, struct reason *reason)
{
	const int fd = filter->map[KERNEL_COUNTERS].fd;
	struct abi_counter *counters = element_alloc();
	int error = counters ? 0 : -ENOMEM;

	for (__u32 row = 0; row < ABI_COUNTER_ROWS && !error; row++) {
		const __u32 base = ABI_COUNTER_ROWS + row;

		error = read_element(filter, row, counters);
		if (!error && bpf_map_update_elem(fd, &base, counters, BPF_ANY))
			error = -errno;
	}
	free(counters);
	return error ? kernel_refuse(reason, error, "cannot reset the counters", "") : 0;
}
