// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The check that a change does not lock this host out. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "change/change.h"
#include "change/internal.h"
#include "host/protected_flows.h"

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
				  "nothing was changed; say --force, or first: xdp-cuckoo%s%s confirm",
				  who, flow->what, option, name);
	return reason_set(reason, -ECANCELED,
			  "%s would block %s; nothing was changed; say --force, or first: "
			  "xdp-cuckoo%s%s add %s action pass",
			  who, flow->what, option, name, rule_format(&pass, text));
}

int change_check_guard(struct session *session, struct reason *reason)
{
	const struct guard *guard = session->guard;
	enum query_blocker blocker;
	struct rule rule;

	for (size_t i = 0; guard && i < guard->count; i++) {
		const struct guard_flow *flow = &guard->flows[i];
		const struct flow_was_blocked was = session->change ? session->change->was_blocked[i] :
								      (struct flow_was_blocked){};

		blocker = was.now ? QUERY_NOTHING : query_blocks(session->store, &flow->flow, &rule);
		if (blocker != QUERY_NOTHING)
			return say_refused(session, flow, blocker, &rule, false, reason);
		blocker = was.undone ? QUERY_NOTHING : query_blocks_undone(session->store, &flow->flow, &rule);
		if (blocker != QUERY_NOTHING)
			return say_refused(session, flow, blocker, &rule, true, reason);
	}
	return 0;
}
