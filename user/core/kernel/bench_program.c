// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Loads and runs the program of bpf/bench.bpf.c, which measures what a filter costs. */
#include <errno.h>
#include <sys/mman.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>

#include "bench_abi.h"
#include "kernel/internal.h"
#include "bench.skel.h"

static const struct kernel_built_in bench_object = { "bench", bench__elf_bytes };

#define PROGRAM "bench_packet" /* in bpf/bench.bpf.c, as the names below */

__u64 kernel_bench_bytes(unsigned int workers)
{
	return BENCH_FLOWS * (sizeof(struct bench_flow_ipv4) + sizeof(struct bench_flow_ipv6)) +
	       (__u64)workers * BENCH_SLICES * sizeof(__u64);
}

/* The arrays that the program shares, and where they go in struct kernel_bench. */
static const struct {
	const char *name;
	size_t at;
} shared[] = {
	{ "bench_ipv4", offsetof(struct kernel_bench, ipv4) },
	{ "bench_ipv6", offsetof(struct kernel_bench, ipv6) },
	{ "bench_stamps", offsetof(struct kernel_bench, stamps) },
};

/* Maps the arrays into memory; `is_on` false: unmaps those that are mapped. 0 or -errno. */
static int map_shared(struct kernel_bench *bench, bool is_on)
{
	for (size_t i = 0; i < sizeof(shared) / sizeof(shared[0]); i++) {
		const struct bpf_map *map = bpf_object__find_map_by_name(bench->object, shared[i].name);
		const size_t bytes = (size_t)bpf_map__max_entries(map) * bpf_map__value_size(map);
		void **memory = (void **)((char *)bench + shared[i].at);

		if (!is_on && *memory)
			munmap(*memory, bytes);
		*memory = is_on ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0) : NULL;
		if (*memory == MAP_FAILED) {
			*memory = NULL;
			return -errno;
		}
	}
	return 0;
}

int kernel_bench_open(const struct kernel_filter *filter, unsigned int workers, struct kernel_bench *bench,
		      struct reason *reason)
{
	struct bpf_object *object = kernel_open_object(&bench_object, &filter->options, reason);
	int error;

	*bench = (struct kernel_bench){ .object = object };
	if (!object)
		return -ENOMEM;
	error = bpf_program__set_autoload(bpf_object__find_program_by_name(object, PROGRAM), true);
	if (!error)
		error = bpf_map__set_max_entries(bpf_object__find_map_by_name(object, "bench_stamps"),
						 workers * BENCH_SLICES);
	if (!error)
		error = kernel_reuse_maps(filter, object);
	if (!error)
		error = bpf_object__load(object);
	if (!error)
		error = map_shared(bench, true);
	if (!error)
		return 0;
	kernel_bench_close(bench);
	return kernel_refuse(reason, error, "cannot load the program to measure with", "");
}

void kernel_bench_close(struct kernel_bench *bench)
{
	if (bench->object)
		map_shared(bench, false);
	bpf_object__close(bench->object);
	*bench = (struct kernel_bench){};
}

int kernel_bench_run(const struct kernel_bench *bench, void *frame, size_t bytes, __u32 packets, __u32 *ns,
		     struct reason *reason)
{
	const struct bench_head *head = frame;
	const __u32 next = head->next;
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .data_size_in = bytes, .data_out = frame,
		    .data_size_out = bytes, .repeat = packets);

	if (bpf_prog_test_run_opts(bpf_program__fd(bpf_object__find_program_by_name(bench->object, PROGRAM)), &options))
		return kernel_refuse(reason, -errno, "cannot run the program to measure with", "");
	if (ns)
		*ns = options.duration;
	if (options.retval != XDP_ABORTED && head->next == next + packets)
		return 0;
	return reason_set(reason, -EPROTO, "the program to measure with did not find its flows");
}
