// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The check that a change does not lock this host out. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "change/change.h"
#include "change/internal.h"
#include "host/host.h"

int change_note_blocked(struct session *session)
{
	const struct guard *guard = session->guard;
	struct flow_was_blocked *was;
	struct rule rule;

	if (!guard)
		return 0;
	was = calloc(guard->count + 1, sizeof(*was));
	session->change->was_blocked = was;
	if (!was)
		return -ENOMEM;
	for (size_t i = 0; i < guard->count; i++) {
		const struct rule *flow = &guard->flows[i].flow;

		was[i].now = query_blocks(session->store, flow, &rule) != QUERY_NOTHING;
		was[i].undone = query_blocks_undone(session->store, flow, &rule) != QUERY_NOTHING;
	}
	return 0;
}

static int say_refused(const struct session *session, const struct guard_flow *flow, enum query_blocker blocker,
		       struct rule *rule, bool is_undone, struct reason *reason)
{
	const bool is_named = strcmp(session->name, SESSION_NAME_DEFAULT);
	const char *option = is_named ? " --name " : "", *name = is_named ? session->name : "";
	const char *insist = session->guard->insist ? session->guard->insist : "say --force";
	const char *separator = *insist ? ", or " : "";
	char text[RULE_TEXT_BYTES], who[RULE_TEXT_BYTES + 2] = "the policy 'no-rule drop'";
	struct rule pass = flow->flow;

	/* A name server answers by UDP and TCP. One pass rule is enough for both. */
	if (pass.fields == (RULE_PROTO | RULE_SPORT) && pass.port_kind == FLOW_PORTS) {
		pass.fields = RULE_SPORT;
		pass.proto = 0;
	}
	if (blocker == QUERY_RULE) {
		rule->comment[0] = '\0';
		snprintf(who, sizeof(who), "'%s'", rule_format(rule, text));
	}
	if (is_undone)
		return reason_set(reason, -ECANCELED,
				  "%s would block %s once the pending change is undone; "
				  "nothing was changed; %s%sfirst: xdp-cuckoo%s%s confirm",
				  who, flow->what, insist, separator, option, name);
	return reason_set(reason, -ECANCELED,
			  "%s would block %s; nothing was changed; %s%sfirst: xdp-cuckoo%s%s add %s action pass", who,
			  flow->what, insist, separator, option, name, rule_format(&pass, text));
}

/* What newly blocks the guard's flow of this number; *is_undone: it would once the pending change is undone. */
static enum query_blocker newly_blocks(const struct session *session, size_t flow, struct rule *rule, bool *is_undone)
{
	const struct rule *query = &session->guard->flows[flow].flow;
	const struct flow_was_blocked was = session->change ? session->change->was_blocked[flow] :
							      (struct flow_was_blocked){};
	const enum query_blocker blocker = was.now ? QUERY_NOTHING : query_blocks(session->store, query, rule);

	*is_undone = blocker == QUERY_NOTHING;
	return !*is_undone ? blocker : was.undone ? QUERY_NOTHING : query_blocks_undone(session->store, query, rule);
}

int change_check_guard(struct session *session, struct reason *reason)
{
	const struct guard *guard = session->guard;
	enum query_blocker blocker;
	struct rule rule;
	bool is_undone;

	for (size_t i = 0; guard && i < guard->count; i++) {
		blocker = newly_blocks(session, i, &rule, &is_undone);
		if (blocker != QUERY_NOTHING)
			return say_refused(session, &guard->flows[i], blocker, &rule, is_undone, reason);
	}
	return 0;
}

/* Wider than any network of hosts like this one, a rule is a mistake, and the list may have more of them. */
static bool is_narrow(const struct rule *rule)
{
	return rule->src_len >= LEFT_OUT_PREFIX_MIN || rule->dst_len >= LEFT_OUT_PREFIX_MIN;
}

/* Ends with the first rule that session->owner does not have, or that is too wide: change_check_guard() refuses it. */
int change_leave_out(struct session *session, struct change_left_out *left_out, struct reason *reason)
{
	const struct guard *guard = session->guard;
	char text[RULE_TEXT_BYTES];
	enum store_deleted deleted;
	struct rule rule;
	bool is_undone;
	int error;

	for (size_t i = 0; guard && i < guard->count; i++) {
		while (newly_blocks(session, i, &rule, &is_undone) == QUERY_RULE && is_narrow(&rule)) {
			error = change_give_up(session, &rule, &deleted, reason);
			if (error || deleted == STORE_NO_SUCH_RULE)
				return error;
			rule.comment[0] = '\0';
			if (!left_out->count++)
				reason_set(&left_out->why, 0, "'%s' would block %s", rule_format(&rule, text),
					   guard->flows[i].what);
		}
	}
	return 0;
}
