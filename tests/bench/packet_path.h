/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One program of lookup.bpf.c, loaded on its own, fed with the flows that its settings choose and timed by
 * BPF_PROG_TEST_RUN. Ends the benchmark where something fails.
 */
#ifndef XDP_CUCKOO_BENCH_PACKET_PATH_H
#define XDP_CUCKOO_BENCH_PACKET_PATH_H

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>

#include "bench/lookup.h"
#include "bench/timing.h"
#include "unit/raw_filter.h"
#include "bench/random.h"

#define PACKET_PATH_OBJECT XDP_CUCKOO_BUILD "/tests/bench/lookup.bpf.o"
#define PACKET_PATH_SETTINGS "lookup_settings"
#define PACKET_PATH_PRESSURE "lookup_pressure"
#define PACKET_PATH_DESTINATION 0xc6336407 /* 198.51.100.7 */
#define PACKET_PATH_NETWORK6 0x20010db8    /* 2001:db8:: */
#define PACKET_PATH_SPORT 1111
#define PACKET_PATH_DPORT 53

struct packet_path_frame {
	struct ethhdr ethernet;
	struct iphdr ip;
	struct udphdr udp;
	__u8 padding[22];
} __attribute__((packed));

__attribute__((noreturn)) static inline void die(const char *what, int error)
{
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, strerror(error < 0 ? -error : error));
	exit(1);
}

struct packet_path_frame6 {
	struct ethhdr ethernet;
	struct ipv6hdr ip;
	struct udphdr udp;
	__u8 padding[2];
} __attribute__((packed));

static inline struct packet_path_frame packet_path_frame(void)
{
	return (struct packet_path_frame){
		.ethernet.h_proto = htons(ETH_P_IP),
		.ip = { .version = 4,
			.ihl = 5,
			.ttl = 64,
			.protocol = IPPROTO_UDP,
			.tot_len = htons(sizeof(struct packet_path_frame) - sizeof(struct ethhdr)),
			.daddr = htonl(PACKET_PATH_DESTINATION) },
		.udp = { .source = htons(PACKET_PATH_SPORT), .dest = htons(PACKET_PATH_DPORT) },
	};
}

static inline struct packet_path_frame6 packet_path_frame6(void)
{
	const __be32 network = htonl(PACKET_PATH_NETWORK6), host = htonl(PACKET_PATH_DESTINATION);
	struct packet_path_frame6 frame = {
		.ethernet.h_proto = htons(ETH_P_IPV6),
		.ip.version = 6,
		.ip.hop_limit = 64,
		.ip.nexthdr = IPPROTO_UDP,
		.ip.payload_len = htons(sizeof(frame) - sizeof(frame.ethernet) - sizeof(frame.ip)),
		.udp.source = htons(PACKET_PATH_SPORT),
		.udp.dest = htons(PACKET_PATH_DPORT),
	};

	memcpy(&frame.ip.saddr, &network, sizeof(network));
	memcpy(&frame.ip.daddr, &network, sizeof(network));
	memcpy((__u8 *)&frame.ip.daddr + 12, &host, sizeof(host));
	return frame;
}

/* The 5-tuple of the packets that have this source; in IPv6 it is the last four bytes. */
static inline struct rule packet_path_rule(enum flow_family family, __u32 source)
{
	struct rule rule = {
		.family = family,
		.fields = RULE_PROTO | RULE_SPORT | RULE_DPORT,
		.port_kind = FLOW_PORTS,
		.src_len = 32,
		.dst_len = 32,
		.proto = IPPROTO_UDP,
		.src.v4 = htonl(source),
		.dst.v4 = htonl(PACKET_PATH_DESTINATION),
		.sport = htons(PACKET_PATH_SPORT),
		.dport = htons(PACKET_PATH_DPORT),
	};
	const __be32 network = htonl(PACKET_PATH_NETWORK6);

	if (family == FLOW_IPV4)
		return rule;
	rule.src_len = rule.dst_len = 128;
	memcpy(rule.src.byte + 12, &rule.src.v4, sizeof(network));
	memcpy(rule.dst.byte + 12, &rule.dst.v4, sizeof(network));
	rule.src.v4 = rule.dst.v4 = network;
	return rule;
}

static inline struct bpf_map *packet_path_map(const struct raw_filter *filter, const char *name)
{
	struct bpf_map *map = bpf_object__find_map_by_name(filter->object, name);

	if (!map)
		die(name, ENOENT);
	return map;
}

/* Loads what raw_filter_prepare() has opened with only this program: the others would take longer than to run it. */
static inline int packet_path_load(struct raw_filter *filter, const char *name)
{
	struct bpf_program *program;
	int error;

	bpf_object__for_each_program(program, filter->object)
		bpf_program__set_autoload(program, !strcmp(bpf_program__name(program), name));
	error = raw_filter_load(filter);
	if (error)
		die(name, error);
	return bpf_program__fd(bpf_object__find_program_by_name(filter->object, name));
}

static inline void packet_path_choose(const struct raw_filter *filter, const struct lookup_parameters *parameters)
{
	const __u32 zero = 0;

	if (bpf_map_update_elem(bpf_map__fd(packet_path_map(filter, PACKET_PATH_SETTINGS)), &zero, parameters, 0))
		die("set flows", errno);
}

/*
 * ns a packet. By the time of this thread, since the kernel's figure is a whole number. On one CPU: a run that has to
 * wait may go on on another, of which the program's place in its flows is another.
 */
static inline double packet_path_run_family(int program, enum flow_family family, __u32 packets, __u32 *verdict)
{
	struct packet_path_frame frame = packet_path_frame();
	struct packet_path_frame6 frame6 = packet_path_frame6();
	const bool is_ipv4 = family == FLOW_IPV4;
	char out[sizeof(frame6)];
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = is_ipv4 ? (void *)&frame : (void *)&frame6,
		    .data_size_in = is_ipv4 ? sizeof(frame) : sizeof(frame6), .data_out = out,
		    .data_size_out = sizeof(out), .repeat = packets);
	cpu_set_t usable, this;
	double start, seconds;

	CPU_ZERO(&this);
	CPU_SET(sched_getcpu(), &this);
	if (sched_getaffinity(0, sizeof(usable), &usable) || sched_setaffinity(0, sizeof(this), &this))
		die("sched_setaffinity", errno);
	start = thread_seconds();
	if (bpf_prog_test_run_opts(program, &options))
		die("BPF_PROG_TEST_RUN", errno);
	seconds = thread_seconds() - start;
	sched_setaffinity(0, sizeof(usable), &usable);
	*verdict = options.retval;
	return seconds * 1e9 / packets;
}

static inline double packet_path_run(int program, __u32 packets, __u32 *verdict)
{
	return packet_path_run_family(program, FLOW_IPV4, packets, verdict);
}

/* ---- under pressure ---- */

/* Of an object that is not loaded yet: its programs read other memory, and time what they do behind that. */
static inline int packet_path_press(const struct raw_filter *filter)
{
	__u32 *is_pressed = raw_filter_constant(filter->object, "lookup_is_pressed");

	if (!is_pressed)
		return -ENOENT;
	*is_pressed = 1;
	return bpf_map__set_max_entries(packet_path_map(filter, PACKET_PATH_PRESSURE), LOOKUP_PRESSURE_LINES);
}

/* Fills the other memory with random words. */
static inline void packet_path_fill_pressure(const struct raw_filter *filter)
{
	const size_t bytes = LOOKUP_PRESSURE_LINES * sizeof(struct lookup_block);
	struct lookup_block *line = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
					 bpf_map__fd(packet_path_map(filter, PACKET_PATH_PRESSURE)), 0);
	uint64_t seed = 0;

	if (line == MAP_FAILED)
		die("mmap", errno);
	for (__u32 i = 0; i < LOOKUP_PRESSURE_LINES; i++)
		line[i].word[0] = random_next(&seed);
	munmap(line, bytes);
}

/* The sum of the first words of so many lines. */
static inline __u64 packet_path_pressure_sum(__u32 lines)
{
	uint64_t seed = 0, sum = 0;

	while (lines--)
		sum += random_next(&seed);
	return sum;
}

/* Of all processors. */
static inline struct lookup_state packet_path_state(const struct raw_filter *filter)
{
	struct lookup_state each[libbpf_num_possible_cpus()], all = { 0 };
	const __u32 zero = 0;

	if (bpf_map_lookup_elem(bpf_map__fd(packet_path_map(filter, "lookup_states")), &zero, each))
		die("lookup_states", errno);
	for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++) {
		all.lines += each[i].lines;
		all.sum += each[i].sum;
		all.ns += each[i].ns;
	}
	return all;
}

/* What the program says of these packets; `lines` of other memory were chosen to be read before each. */
static inline struct lookup_state packet_path_run_pressed(const struct raw_filter *filter, int program, __u32 lines,
							  __u32 packets)
{
	const struct lookup_state before = packet_path_state(filter);
	struct lookup_state since;
	__u32 verdict;

	packet_path_run(program, packets, &verdict);
	since = packet_path_state(filter);
	since.lines -= before.lines;
	since.sum -= before.sum;
	since.ns -= before.ns;
	/* Had any of them not been read, or been read twice, the sum of random words would be another. */
	if (since.lines != (__u64)lines * packets || since.sum != packets * packet_path_pressure_sum(lines))
		die("memory read between packets", EPROTO);
	return since;
}

/* How many packets the filter's one exit has counted so. */
static inline __u64 packet_path_counted(const struct raw_filter *filter, enum abi_outcome outcome,
					enum abi_verdict verdict)
{
	struct abi_counter counted[ABI_COUNTERS];
	const int error = raw_filter_count(filter, counted);

	if (error)
		die("counters", error);
	return counted[outcome * VERDICTS + verdict].packets;
}

/* What the kernel says a map takes, in MiB: the line "memlock" of its descriptor's fdinfo. */
static inline double packet_path_mib(const struct raw_filter *filter, const char *name)
{
	char path[64], line[128];
	unsigned long long bytes = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", bpf_map__fd(packet_path_map(filter, name)));
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "memlock: %llu", &bytes) == 1)
			break;
	if (file)
		fclose(file);
	return bytes / 1048576.0;
}

/* Of a table of these options. */
static inline double packet_path_table_mib(const struct raw_filter *filter, const struct abi_options *options)
{
	return packet_path_mib(filter, ABI_BUCKETS_MAP) +
	       (options->is_exact && !options->has_addresses ? packet_path_mib(filter, ABI_RECORDS_MAP) : 0) +
	       (options->has_counts ? packet_path_mib(filter, ABI_COUNTS_MAP) : 0);
}

#endif
