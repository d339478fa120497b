/* SPDX-License-Identifier: GPL-2.0-only */
/* From a frame to a verdict: tuple-space search over the active shapes, then policy. */
#ifndef XDP_CUCKOO_VERDICT_H
#define XDP_CUCKOO_VERDICT_H

#include "key.h"
#include "parse.h"
#include "probe.h"

struct verdict {
	enum abi_outcome outcome;
	enum abi_verdict verdict;
	__u32 number; /* of the rule's key that decided, in an exact table; else 0 */
};

struct verdict_match {
	enum abi_outcome outcome;
	__u32 number;
};

static __always_inline enum abi_outcome verdict_rule(const struct abi_shape *shape)
{
	return shape->tag & ABI_TAG_PASS ? OUTCOME_PASS_RULE : OUTCOME_DROP_RULE;
}

/*
 * Probes once for each shape; shapes that pass come first, so the first hit decides. Returns
 * `otherwise` where no rule matches. `family` is a constant at every call.
 */
static __always_inline struct verdict_match verdict_search(const struct abi_config *config,
							   enum flow_family family,
							   const struct flow_key *flow,
							   enum abi_outcome otherwise)
{
	const struct abi_shape_list *list = abi_shapes(config, family);
	__u64 count = PROBE_READ_ONCE(list->count);

	for (__u32 i = 0; i < ABI_SHAPES_MAX; i++) {
		const struct abi_shape *shape = &list->shape[i];
		struct siphash_state state;
		struct probe_answer answer;

		if (i >= count)
			break;
		state = key_hash(config, shape, flow, family);
		answer = probe(config, &state);
		if (answer.result == PROBE_HIT)
			return (struct verdict_match){ verdict_rule(shape), answer.number };
		if (answer.result == PROBE_UNSETTLED)
			otherwise = OUTCOME_UNSETTLED;
	}
	return (struct verdict_match){ otherwise, 0 };
}

/*
 * The value, of which the verifier no longer knows anything. Without this it would check the whole
 * search again for every way through the parser, and give up at a million instructions; a call of a
 * global function, which also hides, costs a return, and that is dear where returns are mitigated.
 */
static __always_inline __u64 verdict_hide(const struct abi_config *config, __u64 value)
{
	return value | PROBE_READ_ONCE(config->zero);
}

/* Rules about addresses hold for every packet that has them, whole or not; policy sees the rest. */
static __always_inline struct verdict_match verdict_outcome(const struct abi_config *config,
							    const void *data, const void *end)
{
	struct flow flow;
	struct flow_key key = {};
	enum abi_outcome result = (enum abi_outcome)parse_frame(data, end, &flow);

	if (flow.family == FLOW_NO_FAMILY)
		return (struct verdict_match){ result, 0 };
	flow_pack(&flow, &key);
	result = verdict_hide(config, result);
	if (flow.family == FLOW_IPV4) {
		key.word[1] = verdict_hide(config, key.word[1]);
		return verdict_search(config, FLOW_IPV4, &key, result);
	}
	key.word[4] = verdict_hide(config, key.word[4]);
	return verdict_search(config, FLOW_IPV6, &key, result);
}

static __always_inline struct verdict verdict_of(const void *data, const void *end)
{
	const struct abi_config *config = maps_config();
	struct verdict_match match;

	if (!config || PROBE_READ_ONCE(config->magic) != ABI_MAGIC)
		return (struct verdict){ OUTCOME_NOT_SET_UP, VERDICT_PASS, 0 };
	match = verdict_outcome(config, data, end);
	if (match.outcome == OUTCOME_DROP_RULE)
		return (struct verdict){ match.outcome, VERDICT_DROP, match.number };
	/* As unsigned, which bounds the index below from both sides for the verifier. */
	if ((unsigned int)match.outcome >= OUTCOME_POLICIES)
		return (struct verdict){ OUTCOME_PASS_RULE, VERDICT_PASS, match.number };
	return (struct verdict){ match.outcome, config->policy[match.outcome] == VERDICT_DROP, 0 };
}

#endif
