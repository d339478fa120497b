/* SPDX-License-Identifier: GPL-2.0-only */
/* From a frame to a verdict: tuple-space search over the active shapes, then policy. */
#ifndef XDP_CUCKOO_VERDICT_H
#define XDP_CUCKOO_VERDICT_H

#include "gather.h"
#include "hint.h"
#include "key.h"
#include "parse.h"
#include "probe.h"

struct verdict {
	enum abi_outcome outcome;
	enum abi_verdict verdict;
	__u32 slot;     /* of the rule's key that decided, in an exact table; else PROBE_NO_SLOT */
	__u64 listener; /* of the config, for what is dropped, or would be; else 0 */
};

struct verdict_match {
	enum abi_outcome outcome;
	__u32 slot;
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

/* What there is to look for: see abi.h. Without a hint, all shapes. */
static __always_inline __u32 verdict_hint(const struct abi_table *table, const struct abi_shape_list *list,
					  enum flow_family family, const struct flow_key *flow)
{
	const __u8 *hint;

	if (!PROBE_READ_ONCE(list->reads_hints))
		return ABI_HINT_ALL;
	hint = maps_hint(PROBE_READ_ONCE(table->first_hint) + family * ABI_HINT_INDEXES +
			 hint_index(family, hint_head(family, flow)));
	return hint ? PROBE_READ_ONCE(*hint) : ABI_HINT_ALL;
}

/*
 * Probes once for each shape that the hint leaves; shapes that pass come first, so the first hit
 * decides. A shortcut leaves few, and is what happens where none of them matches. Returns
 * `otherwise` where no rule matches. `family` is a constant at every call.
 */
static __always_inline struct verdict_match verdict_search(const struct abi_config *config,
							   const struct abi_table *table, enum flow_family family,
							   const struct flow_key *flow, enum abi_outcome otherwise)
{
	const struct abi_shape_list *list = abi_shapes(table, family);
	__u32 hint = verdict_hint(table, list, family, flow);
	__u32 candidates;
	struct verdict_match miss = { otherwise, PROBE_NO_SLOT };
	__u64 unsettled = OUTCOME_UNSETTLED;
	__u32 place = 0;

	if (hint == ABI_HINT_ALL) {
		/* The first stands at place 0, which a processor guesses rather than waits for. */
		candidates = PROBE_READ_ONCE(list->all);
	} else {
		candidates = PROBE_READ_ONCE(list->candidates[hint & ABI_HINT_ALL]);
		if (family == FLOW_IPV4 && hint & ABI_HINT_SHORTCUT) {
			candidates &= PROBE_READ_ONCE(list->behind_shortcut);
			/* Also where it is not settled whether a rule passes the packet: this one is in the table. */
			unsettled = OUTCOME_DROP_RULE;
			miss.outcome = verdict_hide(config, unsettled);
		}
		place = abi_shape_place(candidates);
	}
	for (__u32 i = 0; i < ABI_SHAPES_MAX; i++) {
		const struct abi_shape *shape = &list->shape[place];
		struct probe_answer answer;
		struct hash_input input;

		/* Not in the head of the loop, or clang 14 enters it where Linux 6.1 sees no loop allowed. */
		if (!candidates)
			break;
		candidates &= candidates - 1;
		place = abi_shape_place(candidates);
		input = key_input(table, shape, flow, family);
		answer = probe(table, hash_of(&input), &input);
		if (answer.result == PROBE_HIT)
			return (struct verdict_match){ verdict_rule(shape), answer.slot };
		/* Hidden, or Linux 6.1 would check what follows again for this one value. */
		if (answer.result == PROBE_UNSETTLED)
			miss.outcome = verdict_hide(config, unsettled);
	}
	return miss;
}

/* Rules about addresses hold for every packet that has them, whole or not; policy sees the rest. */
static __always_inline struct verdict_match verdict_outcome(const struct abi_config *config, const void *data,
							    const void *end, struct xdp_md *frame)
{
	const struct abi_table *table = abi_active(config);
	struct flow flow;
	struct flow_key key;
	enum abi_outcome result = (enum abi_outcome)parse_frame(data, end, &flow);

	if (frame && gather_may_help(frame, result)) {
		struct flow gathered = {};

		result = (enum abi_outcome)gather_flow(frame, &gathered);
		flow = gathered;
	}
	if (flow.family == FLOW_NO_FAMILY)
		return (struct verdict_match){ result, PROBE_NO_SLOT };
	flow_pack(&flow, &key);
	result = verdict_hide(config, result);
	if (flow.family == FLOW_IPV4) {
		key.word[1] = verdict_hide(config, key.word[1]);
		return verdict_search(config, table, FLOW_IPV4, &key, result);
	}
	key.word[4] = verdict_hide(config, key.word[4]);
	return verdict_search(config, table, FLOW_IPV6, &key, result);
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

/*
 * Not passed. `run` is read again, since a value kept from the start would be one more for the verifier to
 * follow; who listens is read here alone, so that packets that pass need not know.
 */
static __always_inline struct verdict verdict_drop(const struct abi_config *config, struct verdict_match match)
{
	return (struct verdict){
		.outcome = match.outcome,
		.verdict = PROBE_READ_ONCE(config->run) & ABI_RUN_MONITOR ? VERDICT_WOULD_DROP : VERDICT_DROP,
		.slot = match.slot,
		.listener = PROBE_READ_ONCE(config->listener),
	};
}

static __always_inline struct verdict verdict_pass(struct verdict_match match)
{
	return (struct verdict){ match.outcome, VERDICT_PASS, match.slot, 0 };
}

/*
 * Of a packet that no rule matched. Masked after the barrier, since compilers may check the bound of one
 * register and index by a copy of it, of which Linux 6.1 then knows none.
 */
#define VERDICT_POLICY_MASK 7
_Static_assert(OUTCOME_POLICIES <= VERDICT_POLICY_MASK + 1, "policy mask");

static __always_inline struct verdict verdict_policy(const struct abi_config *config, struct verdict_match match)
{
	__u32 at = match.outcome;

	barrier_var(at);
	match.slot = PROBE_NO_SLOT;
	if (config->policy[at & VERDICT_POLICY_MASK] == VERDICT_DROP)
		return verdict_drop(config, match);
	return verdict_pass(match);
}

/* `frame`: NULL where it is all in [data, end). */
static __always_inline struct verdict verdict_of(const void *data, const void *end, struct xdp_md *frame)
{
	const struct abi_config *config = maps_config();
	struct verdict_match match = { OUTCOME_NOT_SET_UP, PROBE_NO_SLOT };

	if (!config)
		return verdict_pass(match);
	if (PROBE_READ_ONCE(config->run) != ABI_RUN_SET_UP) {
		match.outcome = (enum abi_outcome)verdict_at_rest(config);
		if (match.outcome != OUTCOMES)
			return verdict_pass(match);
	}
	match = verdict_outcome(config, data, end, frame);
	if (match.outcome == OUTCOME_DROP_RULE)
		return verdict_drop(config, match);
	if (match.outcome == OUTCOME_PASS_RULE)
		return verdict_pass(match);
	return verdict_policy(config, match);
}

#endif
