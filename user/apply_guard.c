// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a change must leave unblocked. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apply.h"
#include "apply_internal.h"
#include "guard.h"

int apply_note_blocked(struct apply *apply)
{
	const struct guard *guard = apply->guard;
	struct rule rule;

	if (!guard)
		return 0;
	apply->touched->was_blocked = calloc(guard->count + 1, sizeof(bool));
	if (!apply->touched->was_blocked)
		return -ENOMEM;
	for (size_t i = 0; i < guard->count; i++)
		apply->touched->was_blocked[i] =
			apply_blocks(apply->store, &guard->flows[i].flow, &rule) != APPLY_NOTHING;
	return 0;
}

static int refuse(const struct apply *apply, const struct rule *rule, enum apply_blocker blocker,
		  const struct guard_flow *flow, struct reason *reason)
{
	const bool is_named = strcmp(apply->name, APPLY_NAME_DEFAULT);
	char text[RULE_TEXT_BYTES], who[RULE_TEXT_BYTES + 2] = "the policy 'no-rule drop'";
	struct rule bare = *rule;

	bare.comment[0] = '\0';
	if (blocker == APPLY_RULE)
		snprintf(who, sizeof(who), "'%s'", rule_format(&bare, text));
	return reason_set(reason, -ECANCELED, "%s would block %s; nothing was changed; say --force, or first: "
			  "xdp-cuckoo%s%s add %s action pass", who, flow->what, is_named ? " --name " : "",
			  is_named ? apply->name : "", rule_format(&flow->flow, text));
}

int apply_check_guard(struct apply *apply, struct reason *reason)
{
	const struct guard *guard = apply->guard;
	struct rule rule;

	for (size_t i = 0; guard && i < guard->count; i++) {
		enum apply_blocker blocker;

		if (apply->touched && apply->touched->was_blocked[i])
			continue;
		blocker = apply_blocks(apply->store, &guard->flows[i].flow, &rule);
		if (blocker != APPLY_NOTHING)
			return refuse(apply, &rule, blocker, &guard->flows[i], reason);
	}
	return 0;
}
