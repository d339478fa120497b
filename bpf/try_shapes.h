/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tries the shapes of a flow's family. The flow's hint says which shapes can match. For each of them, try_shapes()
 * makes the flow's key (the flow's words under the shape's mask) and looks it up. Shapes of pass rules come first, then
 * those of drop rules, of rules with a rate, and of monitor rules. So the first hit decides, unless the packet is
 * within the rate of its rule, or is an answer and its rule has `state new`. This is a tuple-space search.
 * include/abi.h defines shapes and hints.
 */
#ifndef XDP_CUCKOO_TRY_SHAPES_H
#define XDP_CUCKOO_TRY_SHAPES_H

#include "abi.h"
#include "count_by_rule.h"
#include "hint.h"
#include "limit_rate.h"
#include "lookup_key.h"
#include "new_only.h"

/*
 * A monitor rule matched. The lower bits are the outcome without that rule: if a policy drops such packets, it drops
 * this packet too. So a monitor rule never lets a packet pass.
 */
#define SHAPE_MONITORED 64

struct shape_match {
	__u32 outcome; /* enum abi_outcome, maybe with SHAPE_MONITORED */
	__u32 slot;    /* see struct lookup_answer */
};

/* The hint of a flow, or a hint for all shapes if the table does not use hints. */
static __always_inline __u32 read_hint(const struct abi_table *table, const struct abi_shape_list *list,
				       enum flow_family family, const struct flow_key *flow)
{
	const __u32 reads_hints = READ_ONCE(list->reads_hints);
	const __u32 after = lookup_after(reads_hints); /* a list does not meet a shortcut that ended before it came */
	const __u8 *hint;

	if (!reads_hints)
		return ABI_HINT_ALL;
	hint = maps_hint(READ_ONCE(table->first_hint[family]) + after +
			 hint_index(family, hint_head(family, flow), READ_ONCE(table->hint_shift)));
	return hint ? READ_ONCE(*hint) : ABI_HINT_ALL;
}

/* The input of the hash for a flow under a shape. hash_of() masks each word, so no key is built in memory. */
FLOW_INLINE struct hash_input shape_key(const struct abi_table *table, const struct abi_shape *shape,
					const struct flow_key *flow, enum flow_family family)
{
	return (struct hash_input){
		.secret = &table->secret, .word = flow->word, .mask = shape->mask, .last = shape->id, .family = family
	};
}

/* `otherwise`: the outcome without this shape. */
static __always_inline __u32 shape_outcome(const struct abi_shape *shape, __u32 otherwise)
{
	if (shape->id & ABI_SHAPE_MONITOR)
		return otherwise | SHAPE_MONITORED;
	return shape->id & ABI_SHAPE_PASS ? OUTCOME_PASS_RULE : OUTCOME_DROP_RULE;
}

/* A search of one flow among the shapes of its family. */
struct shape_search {
	union {
		struct flow parsed; /* until it is packed */
		struct {
			packet_context *ctx;
			const struct abi_table *table;
			const struct abi_shape_list *list;
			__u64 candidates;         /* the shapes that are still to be looked up */
			struct shape_match match; /* the answer, if no further shape hits */
			__u32 drawn;              /* see count_draw(), or 0 */
			__u32 meters;             /* see bpf/limit_rate.h */
			__u8 unsettled;           /* the outcome after an unsettled look-up, if no shape hits */
			__u8 kind;                /* enum packet_kind */
			__u8 tries;               /* unsettled ones, of the first candidate */
		};
	};
	struct flow_key flow;
};

/* Whether the meters of the key agree that the packet passes. `is_often`: see rate_ask(). */
static __always_inline int shape_agrees(struct shape_search *search, const struct abi_shape *shape, __u64 hash,
					int is_often)
{
	const __u32 before = search->meters;
	__u32 meters =
		rate_ask(search->ctx, search->kind, READ_ONCE(search->table->first_rate_line), hash, before, is_often);

	if (meters == RATE_EXCEEDED)
		return 0;
	if (shape->id & ABI_SHAPE_MONITOR)
		meters += ((meters >> RATE_COUNT_SHIFT) - (before >> RATE_COUNT_SHIFT)) << RATE_TRIALS_SHIFT;
	search->meters = meters;
	return 1;
}

/* Two loads, because one load of what two stores wrote has to wait for them. */
static __always_inline struct shape_match shape_answer(const struct shape_search *search)
{
	return (struct shape_match){ READ_ONCE(search->match.outcome), READ_ONCE(search->match.slot) };
}

/*
 * The packet pays the meters that have agreed, unless a rule drops it. If a monitor rule would drop it, it pays only
 * those of drop rules.
 */
static __always_inline struct shape_match shape_pays(struct shape_search *search)
{
	const struct shape_match match = shape_answer(search);
	const __u32 paid = match.outcome & SHAPE_MONITORED ? ~0U : (1U << RATE_TRIALS_SHIFT) - 1;

	if (search->meters && match.outcome != OUTCOME_DROP_RULE)
		rate_pay(search->ctx, search->kind, search->meters & paid);
	return match;
}

enum shape_result {
	SHAPE_MISSES,
	SHAPE_DECIDES,
	SHAPE_AGREES, /* the packet is within the rate: the next shapes decide, and then it pays */
};

/* The shape has a key that matches the flow, in `slot`. */
static __always_inline enum shape_result shape_hits(struct shape_search *search, enum flow_family family,
						    const struct abi_shape *shape, __u64 hash, __u32 slot, int kind,
						    int is_often)
{
	if (kind & PACKET_IS_SENT || !(shape->id & ABI_SHAPE_NEW) ||
	    !new_only_is_answer(search->ctx, family, &search->flow)) {
		if (shape->id & ABI_SHAPE_RATE && shape_agrees(search, shape, hash, is_often))
			return SHAPE_AGREES;
		/* If the packet is not drawn to be counted, `drawn` is LOOKUP_NO_SLOT, all bits 1. */
		search->match =
			(struct shape_match){ shape_outcome(shape, search->match.outcome), slot | search->drawn };
		return SHAPE_DECIDES;
	}
	search->candidates &= ~READ_ONCE(search->list->new_only);
	return SHAPE_MISSES;
}

static __always_inline void shape_is_unsettled(struct shape_search *search)
{
	search->match.outcome = hide_from_verifier(READ_ONCE(search->table->zero), search->unsettled);
}

/* Looks up the first of the candidates, which is list->shape[*place]. Without a candidate, what was found before decides. */
static __always_inline enum shape_result try_next_shape(struct shape_search *search, enum flow_family family, int kind,
							__u64 *place)
{
	const struct abi_shape *shape = &search->list->shape[*place];
	struct lookup_answer answer;
	struct hash_input input;
	__u64 hash;

	if (!search->candidates)
		return SHAPE_DECIDES;
	search->candidates &= search->candidates - 1;
	*place = abi_shape_place(search->candidates);
	hide_from_compiler(*place);
	input = shape_key(search->table, shape, &search->flow, family);
	hash = lookup_hash_of(search->table, &input);
	answer = lookup_key(search->table, hash, &input);
	if (answer.result == LOOKUP_HIT) {
		const enum shape_result result =
			shape_hits(search, family, shape, hash, answer.slot, kind, family == FLOW_IPV4);

		if (result != SHAPE_MISSES)
			return result;
		*place = abi_shape_place(search->candidates);
	}
	if (answer.result == LOOKUP_UNSETTLED)
		shape_is_unsettled(search);
	return SHAPE_MISSES;
}

/*
 * The first shapes are looked up inline. For the others, and for all behind a rate that the packet is within, bpf_loop()
 * calls a function. A call is slow on processors with mitigations for returns, so each call tries several shapes. It
 * only skips shapes that surely miss. At the first shape that may match, it calls lookup_once() and returns. If that
 * look-up is unsettled, the next call begins with the same shape.
 */
#define SHAPES_INLINE 8
#define SHAPES_A_CALL 4
/* Calls that only skip shapes, and calls that end with a look-up: each shape has at most ABI_SEQUENCE_TRIES of these. */
#define SHAPES_CALLS ((ABI_SHAPES_MAX - SHAPES_INLINE) / SHAPES_A_CALL + ABI_SHAPES_MAX * ABI_SEQUENCE_TRIES)

static __always_inline long try_some_shapes(struct shape_search *search, enum flow_family family)
{
	KEEP_LOOP
	for (int i = 0; i < SHAPES_A_CALL && search->candidates; i++) {
		const struct abi_shape *shape = &search->list->shape[abi_shape_place(search->candidates)];
		struct hash_input input = shape_key(search->table, shape, &search->flow, family);
		__u64 hash = lookup_hash_of(search->table, &input);
		struct lookup_answer answer;

		if (lookup_lacks(search->table, hash, &input)) {
			search->candidates &= search->candidates - 1;
			continue;
		}
		answer = lookup_once(search->table, hash, &input);
		if (answer.result == LOOKUP_UNSETTLED) {
			maps_count(ABI_COUNTER_RETRIES, 1);
			if (++search->tries < ABI_SEQUENCE_TRIES)
				return 0;
			shape_is_unsettled(search);
		}
		search->tries = hide_from_verifier(READ_ONCE(search->table->zero), 0);
		search->candidates = hide_from_verifier(READ_ONCE(search->table->zero),
							search->candidates & (search->candidates - 1));
		return answer.result == LOOKUP_HIT &&
		       shape_hits(search, family, shape, hash, answer.slot, search->kind, 0) == SHAPE_DECIDES;
	}
	search->candidates = hide_from_verifier(READ_ONCE(search->table->zero), search->candidates);
	return !search->candidates;
}

static long try_some_ipv4(__u32 call, struct shape_search *search)
{
	(void)call;
	return try_some_shapes(search, FLOW_IPV4);
}

static long try_some_ipv6(__u32 call, struct shape_search *search)
{
	(void)call;
	return try_some_shapes(search, FLOW_IPV6);
}

/* What few packets need. Not inline: beside it, the code of the others is a tenth slower. */
static __attribute__((noinline)) int shape_rest(struct shape_search *search, enum flow_family family)
{
	if (search->candidates) {
		search->candidates = hide_from_verifier(READ_ONCE(search->table->zero), search->candidates);
		bpf_loop(SHAPES_CALLS, family == FLOW_IPV4 ? (void *)try_some_ipv4 : (void *)try_some_ipv6, search, 0);
	}
	shape_pays(search);
	return 0;
}

static __always_inline struct shape_match try_all_shapes(struct shape_search *search, enum flow_family family, int kind,
							 __u64 place)
{
	KEEP_LOOP
	for (int i = 0; i < SHAPES_INLINE; i++) {
		const enum shape_result result = try_next_shape(search, family, kind, &place);

		if (result == SHAPE_DECIDES)
			return shape_answer(search);
		if (result == SHAPE_AGREES)
			break;
	}
	shape_rest(search, family);
	return shape_answer(search);
}

/*
 * Returns the outcome of the first shape that hits. If no shape hits: OUTCOME_UNSETTLED if a look-up was unsettled,
 * else `otherwise`. If the hint has a shortcut that holds for this packet, a drop rule matches: then few shapes are
 * looked up, and if none of them hits, the outcome is OUTCOME_DROP_RULE. `family` and `kind` are constants at every
 * call. Rules with `state new` are not for sent packets. The caller sets search->flow only.
 */
static __always_inline struct shape_match try_shapes(packet_context *ctx, __u64 zero, const struct abi_table *table,
						     enum flow_family family, enum abi_outcome otherwise, int kind,
						     struct shape_search *search)
{
	const struct flow_key *flow = &search->flow;
	const struct abi_shape_list *list = abi_shapes(table, family);
	__u32 hint = read_hint(table, list, family, flow);
	__u64 unsettled = OUTCOME_UNSETTLED;
	__u64 candidates, place = 0;
	__u32 outcome = otherwise, drawn = 0;

	if (hint == ABI_HINT_ALL) {
		/*
		 * Here `place` is the constant 0. So a processor that predicts this branch can read the first shape
		 * before it has `candidates`.
		 */
		candidates = READ_ONCE(list->all);
	} else {
		candidates = READ_ONCE(list->candidates[hint & ABI_HINT_ALL]);
		/* The shortcut may be that of a rule with `state new`, which does not match every packet. */
		if (family == FLOW_IPV4 && hint & ABI_HINT_SHORTCUT &&
		    (!READ_ONCE(list->new_only) ||
		     (!(kind & PACKET_IS_SENT) && new_only_surely_begins(family, flow, otherwise)))) {
			/* Under a flood few packets are counted by rule, and only these need to know their rule. */
			if (xc_options.has_counts)
				drawn = count_draw();
			candidates &= drawn == LOOKUP_NO_SLOT ? READ_ONCE(list->passing) :
								READ_ONCE(list->behind_shortcut);
			/* A drop rule matches this flow, so the packet is dropped even if a look-up is unsettled. */
			unsettled = OUTCOME_DROP_RULE;
			outcome = hide_from_verifier(zero, unsettled);
		}
		place = abi_shape_place(candidates);
	}
	if (READ_ONCE(list->new_only) && ((kind & PACKET_IS_SENT) || new_only_continues(family, flow, otherwise))) {
		candidates &= ~READ_ONCE(list->new_only);
		place = abi_shape_place(candidates);
	}
	if (!candidates)
		return (struct shape_match){ outcome, LOOKUP_NO_SLOT };
	search->ctx = ctx;
	search->table = table;
	search->list = list;
	search->candidates = candidates;
	search->match = (struct shape_match){ outcome, LOOKUP_NO_SLOT };
	search->drawn = drawn;
	search->unsettled = unsettled;
	search->kind = kind;
	search->tries = zero;
	search->meters = zero;
	return try_all_shapes(search, family, kind, place);
}

#endif
