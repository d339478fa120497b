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
};

/*
 * Probes once for each shape; shapes that pass come first, so the first hit decides. Returns
 * `otherwise` where no rule matches. `words` is a constant at every call.
 */
static __always_inline enum abi_outcome verdict_search(const struct abi_config *config,
						       enum flow_family family,
						       const struct flow_key *flow,
						       unsigned int words,
						       enum abi_outcome otherwise)
{
	const struct abi_shape_set *set = &config->shapes[family];
	const struct abi_shape_list *list = &set->list[PROBE_READ_ONCE(set->active) & 1];
	__u64 count = PROBE_READ_ONCE(list->count);

	for (__u32 i = 0; i < ABI_SHAPES_MAX; i++) {
		const struct abi_shape *shape = &list->shape[i];
		enum probe_result result;

		if (i >= count)
			break;
		result = probe(config, key_hash(config, shape, flow, words));
		if (result == PROBE_HIT)
			return shape->tag & ABI_TAG_PASS ? OUTCOME_PASS_RULE : OUTCOME_DROP_RULE;
		if (result == PROBE_UNSETTLED)
			otherwise = OUTCOME_UNSETTLED;
	}
	return otherwise;
}

/*
 * Global functions, one for each family: the verifier checks each once, for any key, and not again
 * for every way through the parser (inlined, the program passes a million instructions). The kernel
 * asks for the NULL checks. `key` has been written whole for its family.
 */
__noinline int verdict_search_ipv4(const struct abi_config *config, const struct flow_key *key,
				   int otherwise)
{
	if (!config || !key)
		return otherwise;
	return verdict_search(config, FLOW_IPV4, key, FLOW_KEY_WORDS_IPV4,
			      (enum abi_outcome)otherwise);
}

__noinline int verdict_search_ipv6(const struct abi_config *config, const struct flow_key *key,
				   int otherwise)
{
	if (!config || !key)
		return otherwise;
	return verdict_search(config, FLOW_IPV6, key, FLOW_KEY_WORDS_IPV6,
			      (enum abi_outcome)otherwise);
}

/* Rules about addresses hold for every packet that has them, whole or not; policy sees the rest. */
static __always_inline enum abi_outcome verdict_outcome(const struct abi_config *config,
							const void *data, const void *end)
{
	struct flow flow;
	struct flow_key key = {};
	enum parse_result result = parse_frame(data, end, &flow);

	if (flow.family == FLOW_NO_FAMILY)
		return (enum abi_outcome)result;
	flow_pack(&flow, &key);
	if (flow.family == FLOW_IPV4)
		return verdict_search_ipv4(config, &key, result);
	return verdict_search_ipv6(config, &key, result);
}

static __always_inline struct verdict verdict_of(const void *data, const void *end)
{
	__u32 zero = 0;
	const struct abi_config *config = bpf_map_lookup_elem(&xc_config, &zero);
	enum abi_outcome outcome;

	if (!config || PROBE_READ_ONCE(config->magic) != ABI_MAGIC)
		return (struct verdict){ OUTCOME_NOT_SET_UP, VERDICT_PASS };
	outcome = verdict_outcome(config, data, end);
	if (outcome == OUTCOME_DROP_RULE)
		return (struct verdict){ outcome, VERDICT_DROP };
	/* Unsigned, so that the verifier knows the range of what a global function returned. */
	if ((unsigned int)outcome >= OUTCOME_POLICIES)
		return (struct verdict){ OUTCOME_PASS_RULE, VERDICT_PASS };
	return (struct verdict){ outcome, config->policy[outcome] == VERDICT_DROP };
}

#endif
