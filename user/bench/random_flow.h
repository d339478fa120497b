/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Makes random flows to measure with: any flow, or a flow that a rule matches. */
#ifndef XDP_CUCKOO_BENCH_RANDOM_FLOW_H
#define XDP_CUCKOO_BENCH_RANDOM_FLOW_H

#include <stdint.h>

#include "rule/rule.h"

/* The addresses of IPv4 are in .v4. */
struct bench_flow {
	union flow_addr src, dst;
	__u8 ports[4]; /* the bytes after the IP header */
	__u8 proto;
	__u8 outcome;      /* the expected enum abi_outcome */
	__u8 wrong_probes; /* look-ups where a false positive would give another outcome */
	__u8 reserved;
};

struct bench_flow bench_flow_random(enum flow_family family, uint64_t *random);

/* Makes a flow that the rule matches. False: no plain frame can match the rule. */
bool bench_flow_of_rule(const struct rule *rule, enum flow_family family, uint64_t *random, struct bench_flow *flow);

/* The rule that names exactly this flow, to look the flow up in store and table. */
struct rule bench_flow_query(const struct bench_flow *flow, enum flow_family family);

#endif
