/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A flow to measure with: at random, or such that a rule matches it. Knows rules and nothing else. */
#ifndef XDP_CUCKOO_BENCH_FLOW_H
#define XDP_CUCKOO_BENCH_FLOW_H

#include <stdint.h>

#include "rule/rule.h"

/* A packet. In IPv4 the addresses are in .v4. */
struct bench_flow {
	union flow_addr src, dst;
	__u8 ports[4]; /* as behind the IP header */
	__u8 proto;
	__u8 outcome;      /* enum abi_outcome that it must have */
	__u8 wrong_probes; /* look-ups of which each, met by chance, leads to another */
	__u8 reserved;
};

/* A flow of the family at random; and one that the rule matches, false where no plain frame can be so. */
struct bench_flow bench_flow_random(enum flow_family family, uint64_t *random);
bool bench_flow_of_rule(const struct rule *rule, enum flow_family family, uint64_t *random, struct bench_flow *flow);

/* The rule that names just this flow: what to ask store and table about. */
struct rule bench_flow_query(const struct bench_flow *flow, enum flow_family family);

#endif
