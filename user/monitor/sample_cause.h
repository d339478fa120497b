/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a sample says: whose packet it was, and what dropped it. */
#ifndef XDP_CUCKOO_SAMPLE_VIEW_H
#define XDP_CUCKOO_SAMPLE_VIEW_H

#include "abi.h"
#include "rule/rule.h"
#include "store/store.h"

enum sample_cause {
	SAMPLE_RULE,         /* one that is stored */
	SAMPLE_UNKNOWN_RULE, /* deleted since, ended, or a false positive of a compact table */
	SAMPLE_POLICY,       /* of the sample's outcome */
};

struct sample_view {
	bool has_flow;
	struct rule flow; /* all that the packet says, where it has addresses */
	enum sample_cause cause;
	struct rule rule; /* with SAMPLE_RULE */
};

/*
 * By the first bytes of the frame, and by the rules as they are stored now; `store` may be NULL. Headers beyond
 * those bytes are not seen.
 */
struct sample_view sample_view(const struct abi_sample *sample, struct store *store);

#endif
