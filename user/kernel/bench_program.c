// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "kernel/bench_program.h"

#include <errno.h>
#include <sys/mman.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>

#include "bench.skel.h"
#include "kernel/internal.h"

__u64 kernel_bench_bytes(unsigned int workers)
{
	return BENCH_FLOWS * (sizeof(struct bench_flow_ipv4) + sizeof(struct bench_flow_ipv6)) +
	       (__u64)workers * BENCH_SLICES * sizeof(__u64);
}

static size_t map_bytes(const struct bpf_map *map)
{
	return (size_t)bpf_map__max_entries(map) * bpf_map__value_size(map);
}

/* 0 or -errno. */
static int map_memory(const struct bpf_map *map, void **memory)
{
	*memory = mmap(NULL, map_bytes(map), PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);
	if (*memory != MAP_FAILED)
		return 0;
	*memory = NULL;
	return -errno;
}

int kernel_bench_open(const struct kernel_filter *filter, unsigned int workers, struct kernel_bench *bench,
		      struct reason *reason)
{
	struct bench *program;
	int error;

	kernel_listen();
	program = bench__open();
	*bench = (struct kernel_bench){ .program = program };
	if (!program)
		return kernel_refuse(reason, -errno, "cannot open the built-in BPF object", "");
	kernel_set_constants(&filter->options, &program->rodata->xc_options, program->rodata->xc_prefixes);
	/* The object also has the filter's own programs. Do not load them. */
	bpf_program__set_autoload(program->progs.xdp_cuckoo, false);
	bpf_program__set_autoload(program->progs.xdp_cuckoo_frags, false);
	error = bpf_map__set_max_entries(program->maps.bench_stamps, workers * BENCH_SLICES);
	if (!error)
		error = kernel_reuse_maps(filter, program->obj);
	if (!error)
		error = bench__load(program);
	if (!error)
		error = map_memory(program->maps.bench_ipv4, (void **)&bench->ipv4);
	if (!error)
		error = map_memory(program->maps.bench_ipv6, (void **)&bench->ipv6);
	if (!error)
		error = map_memory(program->maps.bench_stamps, (void **)&bench->stamps);
	if (!error)
		return 0;
	kernel_bench_close(bench);
	return kernel_refuse(reason, error, "cannot load the program to measure with", "");
}

void kernel_bench_close(struct kernel_bench *bench)
{
	if (bench->ipv4)
		munmap(bench->ipv4, map_bytes(bench->program->maps.bench_ipv4));
	if (bench->ipv6)
		munmap(bench->ipv6, map_bytes(bench->program->maps.bench_ipv6));
	if (bench->stamps)
		munmap(bench->stamps, map_bytes(bench->program->maps.bench_stamps));
	bench__destroy(bench->program);
	*bench = (struct kernel_bench){};
}

int kernel_bench_run(const struct kernel_bench *bench, void *frame, size_t bytes, __u32 packets, __u32 *ns,
		     struct reason *reason)
{
	const struct bench_head *head = frame;
	const __u32 next = head->next;
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .data_size_in = bytes, .data_out = frame,
		    .data_size_out = bytes, .repeat = packets);

	if (bpf_prog_test_run_opts(bpf_program__fd(bench->program->progs.bench_packet), &options))
		return kernel_refuse(reason, -errno, "cannot run the program to measure with", "");
	if (ns)
		*ns = options.duration;
	if (options.retval != XDP_ABORTED && head->next == next + packets)
		return 0;
	return reason_set(reason, -EPROTO, "the program to measure with did not find its flows");
}
