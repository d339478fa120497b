/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Explains a sample: the flow of the packet, and what dropped it. */
#ifndef XDP_CUCKOO_SAMPLE_VIEW_H
#define XDP_CUCKOO_SAMPLE_VIEW_H

#include "abi.h"
#include "rule/rule.h"
#include "store/store.h"

enum sample_cause {
	SAMPLE_RULE,         /* a stored rule */
	SAMPLE_UNKNOWN_RULE, /* it was deleted or has ended, or a compact table had a false positive */
	SAMPLE_POLICY,       /* the policy for the sample's outcome */
};

struct sample_view {
	bool has_flow;
	struct rule flow; /* the flow of the packet, if has_flow */
	enum sample_cause cause;
	struct rule rule; /* with SAMPLE_RULE */
};

/*
 * Uses the captured bytes of the frame, and the rules stored now; `store` may be NULL. Headers beyond the
 * captured bytes are not seen.
 */
struct sample_view sample_view(const struct abi_sample *sample, struct store *store);

#endif
