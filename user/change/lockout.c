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

/* Names what blocks, for a message. */
static const char *blocker_text(const struct rule *rule, enum query_blocker blocker, char text[RULE_TEXT_BYTES + 2])
{
	struct rule bare = *rule;
	char bare_text[RULE_TEXT_BYTES];

	if (blocker != QUERY_RULE)
		return "the policy 'no-rule drop'";
	bare.comment[0] = '\0';
	snprintf(text, RULE_TEXT_BYTES + 2, "'%s'", rule_format(&bare, bare_text));
	return text;
}

static int say_refused(const struct session *session, const char *who, bool is_undone, const struct guard_flow *flow,
		       struct reason *reason)
{
	const bool is_named = strcmp(session->name, SESSION_NAME_DEFAULT);
	const char *option = is_named ? " --name " : "", *name = is_named ? session->name : "";
	char text[RULE_TEXT_BYTES];

	if (is_undone)
		return reason_set(reason, -ECANCELED,
				  "%s would block %s once the pending change is undone; "
				  "nothing was changed; say --force, or first: xdp-cuckoo%s%s confirm",
				  who, flow->what, option, name);
	return reason_set(reason, -ECANCELED,
			  "%s would block %s; nothing was changed; say --force, or first: "
			  "xdp-cuckoo%s%s add %s action pass",
			  who, flow->what, option, name, rule_format(&flow->flow, text));
}

static int check_flow(struct session *session, const struct guard_flow *flow, struct flow_was_blocked was,
		      struct reason *reason)
{
	char text[RULE_TEXT_BYTES + 2];
	struct rule rule;
	enum query_blocker blocker = was.now ? QUERY_NOTHING : query_blocks(session->store, &flow->flow, &rule);

	if (blocker != QUERY_NOTHING)
		return say_refused(session, blocker_text(&rule, blocker, text), false, flow, reason);
	blocker = was.undone ? QUERY_NOTHING : query_blocks_undone(session->store, &flow->flow, &rule);
	if (blocker != QUERY_NOTHING)
		return say_refused(session, blocker_text(&rule, blocker, text), true, flow, reason);
	return 0;
}

int change_check_guard(struct session *session, struct reason *reason)
{
	static const struct flow_was_blocked was_not;
	const struct guard *guard = session->guard;
	int error = 0;

	for (size_t i = 0; guard && i < guard->count && !error; i++)
		error = check_flow(session, &guard->flows[i],
				   session->change ? session->change->was_blocked[i] : was_not, reason);
	return error;
}
