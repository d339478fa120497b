/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A whole program of bpf/, with its maps, compiled for the host: host_bpf.c runs it where the kernel loads no BPF for us.
 * A file defines ON_HOST, includes this, then a file of bpf/, and then says HOST_OBJECT(). Stands in for libbpf's helpers.
 */
#ifndef XDP_CUCKOO_STEPS_HOST_BPF_H
#define XDP_CUCKOO_STEPS_HOST_BPF_H

#include <stdbool.h>
#include <string.h>

#include <linux/bpf.h>

#include "sample.h"

#define HOST_MAPS 12
#define HOST_PROGRAMS 4

struct host_map {
	const char *name;
	const void *variable; /* of the program */
	char *memory;
	__u32 entries, bytes; /* of one element, on one processor */
	int fd;               /* of the memory */
	bool is_per_cpu;
};

struct host_object {
	struct host_map map[HOST_MAPS];
	struct {
		const char *name;
		int (*run)(void *context);
	} program[HOST_PROGRAMS];
	const volatile void *options, *prefixes;
};

/* The frame that a program runs on, in all its buffers, and the clock. */
struct host_frame {
	const char *byte;
	__u32 bytes;
	__u64 jiffies;
};
extern struct host_frame host_frame;

/* What packets meet besides maps. */
struct host_world {
	bool is_forced;         /* the next object is loaded here, also where the kernel would load it */
	__u64 jiffies;          /* the clock stands there; 0: it runs */
	struct bpf_sock socket; /* the only one; without a state, there is none */
	struct bpf_sock_tuple asked;
	__u32 asked_bytes;
	struct abi_sample sample; /* the last one */
	bool ring_is_full;
	unsigned int samples, discarded;
};
extern struct host_world host_world;
extern struct host_object host_xdp, host_tc;

#ifdef ON_HOST /* in a file with a program */

#include "steps/as_bpf.h"

#define __uint(name, value) int(*name)[value]
#define __type(name, value) __typeof__(value) *name

static struct host_object *const host_object;

#define bpf_map_lookup_elem host_lookup
static inline void *host_lookup(const void *variable, const __u32 *key)
{
	const struct host_map *map = host_object->map;

	while (map->variable != variable)
		map++;
	return *key < map->entries ? map->memory + (size_t)*key * map->bytes : NULL;
}

static inline __u64 bpf_jiffies64(void)
{
	return host_frame.jiffies;
}

static inline long host_load(__u32 offset, void *to, __u32 bytes)
{
	if (offset > host_frame.bytes || bytes > host_frame.bytes - offset)
		return -1;
	memcpy(to, host_frame.byte + offset, bytes);
	return 0;
}

#define bpf_xdp_load_bytes(frame, offset, to, bytes) ((void)(frame), host_load(offset, to, bytes))
#define bpf_xdp_get_buff_len(frame) ((void)(frame), (__u64)host_frame.bytes)
#define bpf_skb_load_bytes(skb, offset, to, bytes) ((void)(skb), host_load(offset, to, bytes))
#define bpf_skb_load_bytes_relative(skb, offset, to, bytes, start) ((void)(skb), host_load((offset) + 14, to, bytes))
#define bpf_skb_pull_data(skb, bytes) ((void)(skb), 0L)

static inline struct bpf_sock *bpf_sk_lookup_udp(void *ctx, struct bpf_sock_tuple *tuple, __u32 bytes, __u64 netns,
						 __u64 flags)
{
	memcpy(&host_world.asked, tuple, bytes);
	host_world.asked_bytes = bytes;
	return host_world.socket.state ? &host_world.socket : NULL;
}

#define bpf_ringbuf_reserve(ring, bytes, flags) (host_world.ring_is_full ? NULL : (void *)&host_world.sample)
#define bpf_ringbuf_submit(sample, flags) ((void)(sample), host_world.samples++)
#define bpf_ringbuf_discard(sample, flags) ((void)(sample), host_world.discarded++)

#define HOST_MAP(of) \
	{ \
		.name = #of, .variable = &of \
	}
#define HOST_PROGRAM(of) \
	{ \
#of, (int (*)(void *))(of) \
	}
#define HOST_OBJECT(object, ...) \
	struct host_object object = { \
		.map = { HOST_MAP(xc_config), HOST_MAP(xc_buckets), HOST_MAP(xc_records), HOST_MAP(xc_counts), \
			 HOST_MAP(xc_hints), HOST_MAP(xc_counters), HOST_MAP(xc_rates), HOST_MAP(xc_rate_credits), \
			 HOST_MAP(xc_sampling) }, \
		.program = { __VA_ARGS__ }, \
		.options = &xc_options, \
		.prefixes = xc_prefixes, \
	}; \
	static struct host_object *const host_object = &object

#endif
#endif
