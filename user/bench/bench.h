/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Measures what a filter costs per packet. command_bench.c makes a filter that no packet reaches, traffic.c the flows and
 * what the filter must do with them, measure.c runs the program of bpf/bench.bpf.c and makes the figures.
 */
#ifndef XDP_CUCKOO_BENCH_H
#define XDP_CUCKOO_BENCH_H

#include <stdint.h>

#include "bench_abi.h"
#include "change/change.h"

/* ---- random flows: any flow, or a flow that a rule matches ---- */

/* The addresses of IPv4 are in .v4. */
struct bench_flow {
	union flow_addr src, dst;
	__u8 ports[4]; /* the bytes after the IP header */
	__u8 proto;
	__u8 outcome; /* the expected enum abi_outcome */
	__u8 reserved[2];
};

struct bench_flow bench_flow_random(enum flow_family family, uint64_t *random);

/* Makes a flow that the rule matches. False: no plain frame can match the rule. */
bool bench_flow_of_rule(const struct rule *rule, enum flow_family family, uint64_t *random, struct bench_flow *flow);

/* The rule that names exactly this flow, to look the flow up in store and table. */
struct rule bench_flow_query(const struct bench_flow *flow, enum flow_family family);

/* ---- traffic: flows that rules match, flows that no rule matches, and what the filter must do ---- */

enum bench_traffic {
	BENCH_HIT,  /* each flow matches a rule; all rules are equally likely */
	BENCH_HALF, /* hits and misses in random order */
	BENCH_MISS, /* no rule matches */
	BENCH_TRAFFICS,
};

/* BENCH_FLOWS flows of each kind in random order. NULL: there is no such flow. */
struct bench_lists {
	struct bench_flow *hits[FLOW_FAMILIES], *misses[FLOW_FAMILIES];
};

/* What the filter must do with a list: packets by outcome. */
struct bench_expected {
	__u64 packets[OUTCOMES];
};

/* The memory that this process needs for the lists, at most. */
__u64 bench_lists_bytes(void);

/*
 * Makes lists for a filter whose table is filled from the store. Leaves out rules that have ended or end within
 * `lasts_ms`, and the flows that these rules match. 0; -EPROTO: the table lacks rules of the store; -ENOMEM;
 * other -errno. bench_lists_close() accepts zeroed lists.
 */
int bench_lists_open(struct bench_lists *lists, struct store *store, const struct kernel_filter *filter, __s64 lasts_ms,
		     struct reason *reason);
void bench_lists_close(struct bench_lists *lists);

/* Whether the rules allow this traffic. */
bool bench_lists_has(const struct bench_lists *lists, enum flow_family family, enum bench_traffic traffic);

/* Writes the traffic to `to`, BENCH_FLOWS flows of the family's type, and what the filter must do with it. */
void bench_lists_write(const struct bench_lists *lists, enum flow_family family,
		       enum bench_traffic traffic, void *to, struct bench_expected *expected);

/* The frames that are measured. */
#define BENCH_IPV4_PAYLOAD 26 /* the shortest Ethernet frame: 64 bytes with its checksum */
#define BENCH_IPV6_PAYLOAD 8  /* the shortest IPv6 frame with UDP */

/* ---- figures ---- */

/* ns per packet, over many slices. */
struct bench_figure {
	double median, lower_quartile, upper_quartile;
};

struct bench_result {
	enum flow_family family;
	enum bench_traffic traffic;
	struct bench_figure one_cpu[BENCH_PROGRAMS], all_cpus[BENCH_PROGRAMS];
};

struct bench_results {
	size_t count; /* kinds of traffic that the rules allow */
	struct bench_result result[FLOW_FAMILIES * BENCH_TRAFFICS];
};

/* The number of CPUs that this process may run on. 0: not known. */
unsigned int bench_cpus(void);

/* The memory that a measurement needs, in the kernel and in this process. */
__u64 bench_bytes(void);

/*
 * The kernel runs the filter on a list of flows for about `seconds`, first on one CPU, then on all at once. Before and
 * after, checks what it decides. No packet of the network may reach it. 0; -EPROTO: it did not decide as the rules say;
 * other -errno.
 */
int bench_measure(const struct kernel_filter *filter, const struct bench_lists *lists, double seconds,
		  struct bench_results *results, struct reason *reason);

/* "ipv4", "hit", ... */
extern const char *const bench_family_names[FLOW_FAMILIES];
extern const char *const bench_traffic_names[BENCH_TRAFFICS];

#endif
