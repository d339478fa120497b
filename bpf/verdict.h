/* SPDX-License-Identifier: GPL-2.0-only */
/* From a frame to a verdict: tuple-space search over the active shapes, then policy. */
#ifndef XDP_CUCKOO_VERDICT_H
#define XDP_CUCKOO_VERDICT_H

#include "hint.h"
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
 * The value, of which the verifier no longer knows anything. Without this it would check the whole
 * search again for every way through the parser, and give up at a million instructions; a call of a
 * global function, which also hides, costs a return, and that is dear where returns are mitigated.
 */
static __always_inline __u64 verdict_hide(const struct abi_config *config, __u64 value)
{
	return value | PROBE_READ_ONCE(config->zero);
}

/* Of the hints to read, those of shapes that cannot match the flow. */
static __always_inline __u32 verdict_useless(__u32 hints, enum flow_family family,
					     const struct flow_key *flow)
{
	const __u8 *byte = maps_hint(family * ABI_HINT_INDEXES +
				     hint_index(family, hint_head(family, flow)));

	return byte ? hints & (__u8)~PROBE_READ_ONCE(*byte) : 0;
}

/*
 * Probes once for each shape that hints leave; shapes that pass come first, so the first hit
 * decides. Returns `otherwise` where no rule matches. `family` is a constant at every call.
 */
static __always_inline struct verdict_match verdict_search(const struct abi_config *config,
							   enum flow_family family,
							   const struct flow_key *flow,
							   enum abi_outcome otherwise)
{
	const struct abi_shape_list *list = abi_shapes(config, family);
	__u32 count = PROBE_READ_ONCE(list->count);
	__u32 hints = PROBE_READ_ONCE(list->hints);
	__u64 useless = hints ? verdict_useless(hints, family, flow) : 0;

	if (hints && useless == hints)
		return (struct verdict_match){ otherwise, 0 };
	useless = verdict_hide(config, useless);
	for (__u32 i = 0; i < ABI_SHAPES_MAX; i++) {
		const struct abi_shape *shape = &list->shape[i];
		struct siphash_state state;
		struct probe_answer answer;

		if (i >= count)
			break;
		if (shape->hint & useless)
			continue;
		state = key_hash(config, shape, flow, family);
		answer = probe(config, &state);
		if (answer.result == PROBE_HIT)
			return (struct verdict_match){ verdict_rule(shape), answer.number };
		/* Hidden, or Linux 6.1 would check what follows again for this one value. */
		if (answer.result == PROBE_UNSETTLED)
			otherwise = verdict_hide(config, OUTCOME_UNSETTLED);
	}
	return (struct verdict_match){ otherwise, 0 };
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

/*
 * The outcome of every packet where none is looked up; OUTCOMES where they are. A global function:
 * rare, and what the common way keeps in registers it leaves there.
 */
__attribute__((noinline)) __u32 verdict_at_rest(const struct abi_config *config)
{
	__u32 run = config ? PROBE_READ_ONCE(config->run) : 0;

	if (!(run & ABI_RUN_SET_UP))
		return OUTCOME_NOT_SET_UP;
	if (run & ABI_RUN_PANIC)
		return OUTCOME_PANIC;
	if (run & ABI_RUN_UNCONFIRMED && maps_tick() >= PROBE_READ_ONCE(config->confirm_by))
		return OUTCOME_UNCONFIRMED;
	return OUTCOMES;
}

/* Read again, since a value kept from the start would be one more for the verifier to follow. */
static __always_inline enum abi_verdict verdict_drop(const struct abi_config *config)
{
	return PROBE_READ_ONCE(config->run) & ABI_RUN_MONITOR ? VERDICT_WOULD_DROP : VERDICT_DROP;
}

/*
 * Of a packet that no rule matched. Masked after the barrier, since compilers may check the bound of one
 * register and index by a copy of it, of which Linux 6.1 then knows none.
 */
#define VERDICT_POLICY_MASK 7
_Static_assert(OUTCOME_POLICIES <= VERDICT_POLICY_MASK + 1, "policy mask");

static __always_inline enum abi_verdict verdict_policy(const struct abi_config *config,
						       enum abi_outcome outcome)
{
	__u32 at = outcome;

	barrier_var(at);
	if (config->policy[at & VERDICT_POLICY_MASK] == VERDICT_DROP)
		return verdict_drop(config);
	return VERDICT_PASS;
}

static __always_inline struct verdict verdict_of(const void *data, const void *end)
{
	const struct abi_config *config = maps_config();
	struct verdict_match match;

	if (!config)
		return (struct verdict){ OUTCOME_NOT_SET_UP, VERDICT_PASS, 0 };
	if (PROBE_READ_ONCE(config->run) != ABI_RUN_SET_UP) {
		match.outcome = (enum abi_outcome)verdict_at_rest(config);
		if (match.outcome != OUTCOMES)
			return (struct verdict){ match.outcome, VERDICT_PASS, 0 };
	}
	match = verdict_outcome(config, data, end);
	if (match.outcome == OUTCOME_DROP_RULE)
		return (struct verdict){ match.outcome, verdict_drop(config), match.number };
	if (match.outcome == OUTCOME_PASS_RULE)
		return (struct verdict){ match.outcome, VERDICT_PASS, match.number };
	return (struct verdict){ match.outcome, verdict_policy(config, match.outcome), 0 };
}

#endif
