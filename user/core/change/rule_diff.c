// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "change/change.h"

#include <stdlib.h>
#include <string.h>

void rule_diff_begin(struct rule_diff *diff, struct rule_set *wanted, __u64 owner, bool is_alone)
{
	*diff = (struct rule_diff){ .owner = owner, .is_alone = is_alone, .wanted = wanted };
}

static void keep_wanted(struct rule_diff *diff)
{
	diff->wanted->entries[diff->wanting++] = diff->wanted->entries[diff->next++];
}

static __u64 all_owners(const struct rule *present)
{
	return present->owners.permanent | present->owners.timed;
}

/* 0 is no end. */
static bool is_same_end(const struct rule_diff *diff, __s64 a_ms, __s64 b_ms)
{
	return a_ms == b_ms || (a_ms > 0 && b_ms > 0 && llabs(a_ms - b_ms) <= diff->near_ms);
}

/* The stored rule is wanted. */
static int compare(struct rule_diff *diff, const struct rule *present)
{
	const struct rule_owners *owners = &present->owners;
	const bool has_others = (diff->is_alone ? all_owners(present) : rule_owners_now(present)) & ~diff->owner;
	bool is_same, is_obsolete;
	struct rule wanted;

	rule_set_get(diff->wanted, diff->next, &wanted);
	if (!has_others) {
		/* Adding cannot give a permanent rule a timeout, nor change a comment: delete the rule first. */
		const bool has_same_comment = !strcmp(wanted.comment, present->comment);

		is_same = is_same_end(diff, present->timeout_ms, wanted.timeout_ms) && has_same_comment &&
			  wanted.rate == present->rate;
		is_obsolete = all_owners(present) & diff->owner && (present->timeout_ms <= 0 || !has_same_comment);
	} else {
		/* To change from permanent to a timeout, the owner must give the rule up first. */
		const bool is_permanent = owners->permanent & diff->owner;
		const bool is_timed = owners->timed & diff->owner;

		/* Of several owners' rates the lowest stays, and packets and bits are not compared: see store_put(). */
		const bool is_lower = wanted.rate < present->rate && !((wanted.rate ^ present->rate) & RULE_RATE_BITS);

		is_same = !diff->is_alone && !is_lower &&
			  (wanted.timeout_ms ? is_timed && is_same_end(diff, owners->timed_ms, wanted.timeout_ms) :
					       is_permanent);
		is_obsolete = is_permanent || diff->is_alone;
	}
	if (is_same) {
		diff->kept++;
		diff->next++;
		return 0;
	}
	diff->added += present->timeout_ms < 0;
	diff->updated += present->timeout_ms >= 0;
	keep_wanted(diff);
	return is_obsolete ? rule_set_add(&diff->obsolete, present) : 0;
}

int rule_diff_visit(const struct rule *present, void *context)
{
	struct rule_diff *diff = context;
	int order = 1;
	__u64 others;

	while (diff->next < diff->wanted->count) {
		order = rule_set_compare(diff->wanted, diff->next, present);
		if (order >= 0)
			break;
		diff->added++;
		keep_wanted(diff);
	}
	if (diff->next < diff->wanted->count && !order)
		return compare(diff, present);
	/* The stored rule is not wanted. */
	if (!diff->is_alone && !(all_owners(present) & diff->owner))
		return 0;
	others = rule_owners_now(present) & ~diff->owner;
	diff->removed += present->timeout_ms >= 0 && (diff->is_alone || !others);
	diff->left += !diff->is_alone && others;
	return rule_set_add(&diff->obsolete, present);
}

void rule_diff_end(struct rule_diff *diff)
{
	while (diff->next < diff->wanted->count) {
		diff->added++;
		keep_wanted(diff);
	}
	diff->wanted->count = diff->wanting;
	rule_set_fit(diff->wanted); /* frees memory before a new table is made */
}

void rule_diff_close(struct rule_diff *diff)
{
	rule_set_close(&diff->obsolete);
	*diff = (struct rule_diff){};
}
