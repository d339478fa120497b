/* SPDX-License-Identifier: GPL-2.0-only */
/* From a frame to a verdict: parse the frame, try the shapes, and apply a policy if no rule matches. */
#ifndef XDP_CUCKOO_VERDICT_H
#define XDP_CUCKOO_VERDICT_H

#include "packet.h"
#include "try_shapes.h"

struct verdict {
	enum abi_outcome outcome;
	enum abi_verdict verdict;
	__u32 slot;     /* for count_rule(), maybe with LOOKUP_DRAWN; LOOKUP_NO_SLOT: nothing is counted by rule */
	__u64 listener; /* lease of the listener (abi_config) for a drop or would-be drop; else 0 */
};

/* The caller has packed the flow. */
static __always_inline struct shape_match verdict_of_flow(packet_context *ctx, const struct abi_config *config,
							  const struct abi_table *table, enum flow_family family,
							  enum abi_outcome result, int kind,
							  struct shape_search *search)
{
	const __u64 zero = READ_ONCE(config->zero);
	__u64 *last = &search->flow.word[flow_key_last(family)], *details = &search->flow.word[FLOW_KEY_DETAILS];

	if (kind & PACKET_IS_SENT && !flow_exchange(family, &search->flow))
		return (struct shape_match){ OUTCOME_PASS_RULE, LOOKUP_NO_SLOT };
	/* What differs on each path through the parser: in the key, protocol and kind of ports, and fragment and flags. */
	result = hide_from_verifier(zero, result);
	*details = hide_from_verifier(zero, *details);
	*last = hide_from_verifier(zero, *last);
	return try_shapes(ctx, zero, table, family, result, kind, search);
}

/*
 * A packet with addresses is compared with the rules even if the rest of it is damaged. If no rule matches, the
 * outcome is the parser's result or OUTCOME_UNSETTLED, and a policy decides. Sent packets whose two ends cannot be
 * exchanged pass. `kind`: enum packet_kind.
 */
static __always_inline struct shape_match verdict_outcome(packet_context *ctx, const struct abi_config *config,
							  const struct abi_table *table, const void *data,
							  const void *end, int kind)
{
	struct shape_search search;
	struct flow plain;
	enum abi_outcome result = OUTCOME_NO_RULE;
	__u32 family = FLOW_IPV4;

	if (packet_is_plain(ctx, data, end, kind, &plain)) {
		flow_pack(&plain, &search.flow);
	} else {
		result = (enum abi_outcome)packet_parse(data, end, kind, &search.parsed);
		keep_in_memory(search.parsed);
		family = search.parsed.family;
		if (packet_has_more(ctx, kind, result, &search.parsed)) {
			search.flow = (struct flow_key){};
			family = packet_gather(ctx, kind, &search.flow);
			result = (enum abi_outcome)(family >> PACKET_RESULT_SHIFT);
			family &= (1 << PACKET_RESULT_SHIFT) - 1;
		} else if (family != FLOW_NO_FAMILY) {
			flow_pack(&search.parsed, &search.flow);
		}
	}
	if (family == FLOW_IPV4)
		return verdict_of_flow(ctx, config, table, FLOW_IPV4, result, kind, &search);
	if (family == FLOW_IPV6)
		return verdict_of_flow(ctx, config, table, FLOW_IPV6, result, kind, &search);
	return (struct shape_match){ result, LOOKUP_NO_SLOT };
}

/*
 * A filter is at rest if it was never set up, is in a panic, or was not confirmed in time. It then passes every packet.
 * Returns the outcome that all packets get then, and OUTCOMES if the filter is not at rest.
 */
RARE_FUNCTION __u32 verdict_at_rest(const struct abi_config *config, __u32 run)
{
	const struct abi_config *after = (const void *)config + lookup_after(run);

	if (!config || !(run & ABI_RUN_SET_UP))
		return OUTCOME_NOT_SET_UP;
	if (run & ABI_RUN_PANIC)
		return OUTCOME_PANIC;
	if (run & ABI_RUN_UNCONFIRMED && maps_tick() >= READ_ONCE(after->confirm_by))
		return OUTCOME_UNCONFIRMED;
	return OUTCOMES;
}

/* Packets that pass do not need `listener`, so it is read here. */
static __always_inline struct verdict verdict_drop(const struct abi_config *config, struct shape_match match)
{
	return (struct verdict){
		.outcome = match.outcome,
		.verdict = READ_ONCE(config->run) & ABI_RUN_MONITOR ? VERDICT_WOULD_DROP : VERDICT_DROP,
		.slot = match.slot,
		.listener = READ_ONCE(config->listener),
	};
}

static __always_inline struct verdict verdict_pass(struct shape_match match)
{
	return (struct verdict){ match.outcome, VERDICT_PASS, match.slot, 0 };
}

/* Clears SHAPE_MONITORED. */
#define VERDICT_POLICY_MASK 7
_Static_assert(OUTCOME_POLICIES <= VERDICT_POLICY_MASK + 1, "policy mask");

/*
 * No rule decides: the policy of the same table does. If a monitor rule has matched, it gives the verdict (would drop)
 * only if the policy passes the packet.
 */
static __always_inline struct verdict verdict_policy(const struct abi_config *config, const struct abi_table *table,
						     struct shape_match match)
{
	if (abi_policy(table, match.outcome & VERDICT_POLICY_MASK) == VERDICT_DROP)
		return verdict_drop(config, (struct shape_match){ match.outcome & ~SHAPE_MONITORED, LOOKUP_NO_SLOT });
	if (match.outcome & SHAPE_MONITORED)
		return (struct verdict){ OUTCOME_MONITOR_RULE, VERDICT_WOULD_DROP, match.slot,
					 READ_ONCE(config->listener) };
	return verdict_pass((struct shape_match){ match.outcome, LOOKUP_NO_SLOT });
}

/* `kind`: enum packet_kind. */
static __always_inline struct verdict verdict_of(packet_context *ctx, const void *data, const void *end, int kind)
{
	const struct abi_config *config = maps_config();
	struct shape_match match = { OUTCOME_NOT_SET_UP, LOOKUP_NO_SLOT };
	const struct abi_table *table;
	__u32 run;
	__u64 after;

	if (!config)
		return verdict_pass(match);
	run = READ_ONCE(config->run);
	after = lookup_after(run); /* the rules are read after the filter is set up, or an unconfirmed change undone */
	if (run != ABI_RUN_SET_UP) {
		match.outcome = (enum abi_outcome)verdict_at_rest(config, run);
		if (match.outcome != OUTCOMES)
			return verdict_pass(match);
	}
	table = abi_active((const void *)config + after);
	match = verdict_outcome(ctx, config, table, data, end, kind);
	if (match.outcome == OUTCOME_DROP_RULE)
		return verdict_drop(config, match);
	if (match.outcome == OUTCOME_PASS_RULE)
		return verdict_pass(match);
	return verdict_policy(config, table, match);
}

#endif
