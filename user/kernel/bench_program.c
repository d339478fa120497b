// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "kernel/kernel.h"

#include <errno.h>
#include <sys/mman.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>

#include "bench_abi.h"
#include "bench.skel.h"
#include "bench_5_10.skel.h"
#include "kernel/internal.h"

static const struct kernel_built_in bench_object = { "bench", bench__elf_bytes, bench_5_10__elf_bytes };

/* Names in bpf/bench.bpf.c. */
#define PROGRAM "bench_packet"
#define FLOWS_IPV4 "bench_ipv4"
#define FLOWS_IPV6 "bench_ipv6"
#define STAMPS "bench_stamps"

__u64 kernel_bench_bytes(unsigned int workers)
{
	return BENCH_FLOWS * (sizeof(struct bench_flow_ipv4) + sizeof(struct bench_flow_ipv6)) +
	       (__u64)workers * BENCH_SLICES * sizeof(__u64);
}

static size_t map_bytes(const struct kernel_bench *bench, const char *name)
{
	const struct bpf_map *map = bpf_object__find_map_by_name(bench->object, name);

	return (size_t)bpf_map__max_entries(map) * bpf_map__value_size(map);
}

/* 0 or -errno. */
static int map_memory(const struct kernel_bench *bench, const char *name, void **memory)
{
	*memory = mmap(NULL, map_bytes(bench, name), PROT_READ | PROT_WRITE, MAP_SHARED,
		       bpf_object__find_map_fd_by_name(bench->object, name), 0);
	if (*memory != MAP_FAILED)
		return 0;
	*memory = NULL;
	return -errno;
}

static void unmap_memory(const struct kernel_bench *bench, const char *name, void *memory)
{
	if (memory)
		munmap(memory, map_bytes(bench, name));
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
		error = bpf_map__set_max_entries(bpf_object__find_map_by_name(object, STAMPS), workers * BENCH_SLICES);
	if (!error)
		error = kernel_reuse_maps(filter, object);
	if (!error)
		error = bpf_object__load(object);
	if (!error)
		error = map_memory(bench, FLOWS_IPV4, (void **)&bench->ipv4);
	if (!error)
		error = map_memory(bench, FLOWS_IPV6, (void **)&bench->ipv6);
	if (!error)
		error = map_memory(bench, STAMPS, (void **)&bench->stamps);
	if (!error)
		return 0;
	kernel_bench_close(bench);
	return kernel_refuse(reason, error, "cannot load the program to measure with", "");
}

void kernel_bench_close(struct kernel_bench *bench)
{
	unmap_memory(bench, FLOWS_IPV4, bench->ipv4);
	unmap_memory(bench, FLOWS_IPV6, bench->ipv6);
	unmap_memory(bench, STAMPS, bench->stamps);
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
