// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The check that a change does not lock this host out. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "change/internal.h"
#include "host/host.h"

int change_record_blocked(struct session *session)
{
	const struct guard *guard = session->guard;
	struct flow_was_blocked *was;
	struct query_block block;
	int error = 0;

	if (!guard)
		return 0;
	was = calloc(guard->count + 1, sizeof(*was));
	session->change->was_blocked = was;
	if (!was)
		return -ENOMEM;
	for (size_t i = 0; i < guard->count && !error; i++) {
		error = query_blocks(session->store, &guard->flows[i].flow, &block);
		was[i].now_ms = block.in_ms;
		was[i].rate = block.rate;
		if (!error)
			error = query_blocks_undone(session->store, &guard->flows[i].flow, &block);
		was[i].undone_ms = block.in_ms;
	}
	return error;
}

static int say_refused(const struct session *session, const struct guard_flow *flow, struct query_block *block,
		       bool is_undone, struct reason *reason)
{
	const char *option = session_name_option(session->name);
	const char *insist = session->guard->insist ? session->guard->insist : "say --force";
	const char *separator = *insist ? ", or " : "";
	char text[RULE_TEXT_BYTES], who[RULE_TEXT_BYTES + 2] = "the policy 'no-rule drop'";
	char time[RULE_TIME_BYTES], when[RULE_TIME_BYTES + 64] = "";
	struct rule pass = rule_without_details(&flow->flow);

	/* A name server answers by UDP and TCP. One pass rule is enough for both. */
	if (pass.fields == (RULE_PROTO | RULE_SPORT) && pass.port_kind == FLOW_PORTS && pass.sport == htons(53)) {
		pass.fields = RULE_SPORT;
		pass.proto = 0;
	}
	if (block->by == QUERY_RULE) {
		block->rule.comment[0] = '\0';
		snprintf(who, sizeof(who), "'%s'", rule_format(&block->rule, text));
	}
	if (block->in_ms)
		snprintf(when, sizeof(when), " when the pass rule for it ends, in %s",
			 rule_time_format(block->in_ms, time));
	if (is_undone)
		return reason_set(reason, -ECANCELED,
				  "%s would block %s once the pending change is undone%s; "
				  "nothing was changed; %s%sfirst: xdp-cuckoo%s confirm",
				  who, flow->what, block->in_ms ? " and a pass rule has ended" : "", insist, separator,
				  option);
	return reason_set(reason, -ECANCELED,
			  "%s would block %s%s; nothing was changed; %s%sfirst: xdp-cuckoo%s add %s action pass", who,
			  flow->what, when, insist, separator, option, rule_format(&pass, text));
}

/*
 * Finds what blocks flow number `flow` of the guard sooner than before the change. *is_undone: only if the pending
 * change is undone. 0; -errno: the store cannot be read. A new rate blocks nothing, but session->limited reports it.
 */
static int newly_blocks(struct session *session, size_t flow, struct query_block *block, bool *is_undone)
{
	const struct rule *query = &session->guard->flows[flow].flow;
	const struct flow_was_blocked was = session->change ?
						    session->change->was_blocked[flow] :
						    (struct flow_was_blocked){ QUERY_NEVER_MS, QUERY_NEVER_MS, 0 };
	char text[RULE_RATE_BYTES];
	int error = query_blocks(session->store, query, block);

	if (!error && block->rate && block->rate != was.rate)
		reason_set(&session->limited, 0, "a rate of %s now limits %s", rule_rate_format(block->rate, text),
			   session->guard->flows[flow].what);
	*is_undone = block->in_ms >= was.now_ms;
	if (error || !*is_undone)
		return error;
	error = query_blocks_undone(session->store, query, block);
	if (block->in_ms >= was.undone_ms)
		block->by = QUERY_NOTHING;
	return error;
}

int change_check_guard(struct session *session, struct reason *reason)
{
	const struct guard *guard = session->guard;
	struct query_block block;
	bool is_undone;

	for (size_t i = 0; guard && i < guard->count; i++) {
		const int error = newly_blocks(session, i, &block, &is_undone);

		if (error)
			return store_unread_reason(error, reason);
		if (block.by != QUERY_NOTHING)
			return say_refused(session, &guard->flows[i], &block, is_undone, reason);
	}
	return 0;
}

/*
 * Stops at a rule that session->owner does not have, or that is too wide. Then change_check_guard() refuses the change.
 */
int change_give_up_blockers(struct session *session, struct change_left_out *left_out, struct reason *reason)
{
	const struct guard *guard = session->guard;
	char text[RULE_TEXT_BYTES];
	enum store_deleted deleted;
	struct query_block block;
	bool is_undone;
	int error;

	for (size_t i = 0; guard && i < guard->count; i++) {
		/* A rule wider than any network of such hosts is a mistake, and the list may have more mistakes. */
		while (!(error = newly_blocks(session, i, &block, &is_undone)) && block.by == QUERY_RULE &&
		       (block.rule.src_len >= LEFT_OUT_PREFIX_MIN || block.rule.dst_len >= LEFT_OUT_PREFIX_MIN)) {
			error = change_give_up(session, &block.rule, &deleted, reason);
			if (error || deleted == STORE_NO_SUCH_RULE)
				return error;
			block.rule.comment[0] = '\0';
			if (!left_out->count++)
				reason_set(&left_out->why, 0, "'%s' would block %s", rule_format(&block.rule, text),
					   guard->flows[i].what);
		}
		if (error)
			return store_unread_reason(error, reason);
	}
	return 0;
}
