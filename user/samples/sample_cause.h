/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finds the flow of a sampled packet, and the rule or policy that dropped it. */
#ifndef XDP_CUCKOO_SAMPLE_CAUSE_H
#define XDP_CUCKOO_SAMPLE_CAUSE_H

#include "abi.h"
#include "rule/rule.h"
#include "store/store.h"

enum sample_cause {
	SAMPLE_RULE,         /* a stored rule */
	SAMPLE_UNKNOWN_RULE, /* a rule that is deleted or has ended, or a false positive of a compact table */
	SAMPLE_POLICY,       /* the policy for the sample's outcome */
};

struct sample_view {
	bool has_flow;
	struct rule flow; /* the flow of the packet, if has_flow */
	enum sample_cause cause;
	struct rule rule; /* with SAMPLE_RULE */
};

/* Uses the captured bytes of the frame, and the rules that are stored now. `store` may be NULL. */
struct sample_view sample_view(const struct abi_sample *sample, struct store *store);

#endif
