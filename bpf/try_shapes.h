/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tries the shapes of a flow's family. The flow's hint says which shapes can match. For each of them, try_shapes()
 * makes the flow's key (the flow's words under the shape's mask) and looks it up. Shapes of pass rules come first
 * and those of monitor rules last, so the first hit decides. This is a tuple-space search. include/abi.h defines
 * shapes and hints.
 */
#ifndef XDP_CUCKOO_TRY_SHAPES_H
#define XDP_CUCKOO_TRY_SHAPES_H

#include "abi.h"
#include "count_by_rule.h"
#include "hint.h"
#include "lookup_key.h"
#include "new_only.h"

/*
 * A monitor rule matched. The lower bits of the outcome say what had happened without it: if a policy drops such
 * packets, it drops this packet too. So a monitor rule never lets a packet pass.
 */
#define SHAPE_MONITORED 64

struct shape_match {
	__u32 outcome; /* enum abi_outcome, maybe with SHAPE_MONITORED */
	__u32 slot;    /* see struct lookup_answer */
};

/*
 * Returns the value unchanged, but hides it from the verifier. If the verifier knew the value, it would check all
 * shapes again for every path through the parser, and give up at its limit of a million instructions. A global
 * function hides a value too, but its return is slow on processors with mitigations for returns.
 */
static __always_inline __u64 hide_from_verifier(const struct abi_config *config, __u64 value)
{
	return value ^ READ_ONCE(config->zero);
}

/* The hint of a flow, or a hint for all shapes if the table does not use hints. */
static __always_inline __u32 read_hint(const struct abi_table *table, const struct abi_shape_list *list,
				       enum flow_family family, const struct flow_key *flow)
{
	const __u8 *hint;

	if (!READ_ONCE(list->reads_hints))
		return ABI_HINT_ALL;
	hint = maps_hint(READ_ONCE(table->first_hint[family]) +
			 hint_index(family, hint_head(family, flow), READ_ONCE(table->hint_shift)));
	return hint ? READ_ONCE(*hint) : ABI_HINT_ALL;
}

/* The input of the hash for a flow under a shape. hash_of() masks each word, so no key is built in memory. */
FLOW_INLINE struct hash_input shape_key(const struct abi_table *table, const struct abi_shape *shape,
					const struct flow_key *flow, enum flow_family family)
{
	return (struct hash_input){
		.secret = &table->secret, .word = flow->word, .mask = shape->mask, .last = shape->tag, .family = family
	};
}

/* `otherwise`: the outcome if the shape had not matched. */
static __always_inline __u32 shape_outcome(const struct abi_shape *shape, __u32 otherwise)
{
	if (shape->tag & ABI_TAG_MONITOR)
		return otherwise | SHAPE_MONITORED;
	return shape->tag & ABI_TAG_PASS ? OUTCOME_PASS_RULE : OUTCOME_DROP_RULE;
}

/*
 * Returns the outcome of the first shape that hits. If no shape hits: OUTCOME_UNSETTLED if a look-up was unsettled,
 * else `otherwise`. If the hint has a shortcut, a drop rule surely matches: then few shapes are looked up, and if
 * none of them hits, the outcome is OUTCOME_DROP_RULE. `family` and `kind` are constants at
 * every call. Rules with `state new` are not for sent packets.
 */
static __always_inline struct shape_match try_shapes(packet_context *ctx, const struct abi_config *config,
						     const struct abi_table *table, enum flow_family family,
						     const struct flow_key *flow, enum abi_outcome otherwise, int kind)
{
	const struct abi_shape_list *list = abi_shapes(table, family);
	__u32 hint = read_hint(table, list, family, flow);
	__u32 candidates;
	struct shape_match fallback = { otherwise, LOOKUP_NO_SLOT };
	__u64 unsettled = OUTCOME_UNSETTLED;
	__u32 place = 0, drawn = 0;

	if (hint == ABI_HINT_ALL) {
		/*
		 * Here `place` is the constant 0. So a processor that predicts this branch can read the first shape
		 * before it has `candidates`.
		 */
		candidates = READ_ONCE(list->all);
	} else {
		candidates = READ_ONCE(list->candidates[hint & ABI_HINT_ALL]);
		/* The shortcut may be that of a rule with `state new`. */
		if (family == FLOW_IPV4 && hint & ABI_HINT_SHORTCUT &&
		    (!READ_ONCE(list->new_only) ||
		     (!packet_is_sent(kind) && new_only_surely_begins(family, flow, otherwise)))) {
			/* Under a flood few packets are counted by rule, and only these need to know their rule. */
			if (xc_options.has_counts)
				drawn = count_draw();
			candidates &= drawn == LOOKUP_NO_SLOT ? READ_ONCE(list->passing) :
								READ_ONCE(list->behind_shortcut);
			/* A drop rule matches this flow, so the packet is dropped even if a look-up is unsettled. */
			unsettled = OUTCOME_DROP_RULE;
			fallback.outcome = hide_from_verifier(config, unsettled);
		}
		place = abi_shape_place(candidates);
	}
	if (READ_ONCE(list->new_only) && (packet_is_sent(kind) || new_only_continues(family, flow, otherwise))) {
		candidates &= ~READ_ONCE(list->new_only);
		place = abi_shape_place(candidates);
	}
	for (__u32 i = 0; i < ABI_SHAPES_MAX; i++) {
		const struct abi_shape *shape = &list->shape[place];
		struct lookup_answer answer;
		struct hash_input input;

		/* This test is not in the loop's condition: clang 14 would make a loop of it that Linux 6.1 rejects. */
		if (!candidates)
			break;
		candidates &= candidates - 1;
		place = abi_shape_place(candidates);
		input = shape_key(table, shape, flow, family);
		answer = lookup_key(table, hash_of(&input), &input);
		if (answer.result == LOOKUP_HIT) {
			if (packet_is_sent(kind) || !(shape->tag & ABI_TAG_NEW) ||
			    !new_only_is_answer(ctx, family, flow))
				return (struct shape_match){ shape_outcome(shape, fallback.outcome),
							     answer.slot | drawn };
			/* If the loop went on here, the verifier would check it four times as long. */
			if (xc_options.format == BUCKET_17)
				return fallback;
			candidates &= ~READ_ONCE(list->new_only);
			place = abi_shape_place(candidates);
			continue;
		}
		/* If the verifier of Linux 6.1 knew this value, it would check all further shapes again for it. */
		if (answer.result == LOOKUP_UNSETTLED)
			fallback.outcome = hide_from_verifier(config, unsettled);
	}
	return fallback;
}

#endif
