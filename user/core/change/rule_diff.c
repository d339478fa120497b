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

/* Notes the rule as its owner has it, so that it can be put back. Without the owner, or ended: a negative timeout. */
static int note(struct rule_diff *diff, const struct rule *present, bool is_obsolete, bool is_updated)
{
	const struct rule_owners *owners = &present->owners;
	const bool is_pass = present->action == RULE_PASS;
	struct rule own = *present;
	int error = 0;

	if (!diff->is_alone)
		own.timeout_ms = owners->permanent & diff->owner ? 0 :
				 owners->timed & diff->owner     ? owners->timed_ms :
								   -1;
	if (is_obsolete)
		error = rule_set_add(&diff->obsolete, &own);
	if (!error && diff->keeps_before && own.timeout_ms >= 0 && (is_pass ? is_obsolete : is_updated))
		error = rule_set_add(is_pass ? &diff->passes : &diff->before, &own);
	return error;
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
	/* The guard may want a pass rule back that ends sooner now. */
	is_obsolete |= !diff->is_alone && present->action == RULE_PASS && wanted.timeout_ms &&
		       all_owners(present) & diff->owner;
	return note(diff, present, is_obsolete, true);
}

/* The stored rule is not wanted. */
static int remove_present(struct rule_diff *diff, const struct rule *present)
{
	const __u64 others = rule_owners_now(present) & ~diff->owner;

	if (!diff->is_alone && !(all_owners(present) & diff->owner))
		return 0;
	diff->removed += present->timeout_ms >= 0 && (diff->is_alone || !others);
	diff->left += !diff->is_alone && others;
	return note(diff, present, true, false);
}

int rule_diff_visit(const struct rule *present, void *context)
{
	struct rule_diff *diff = context;
	int order = 1;

	while (diff->next < diff->wanted->count) {
		order = rule_set_compare(diff->wanted, diff->next, present);
		if (order >= 0)
			break;
		diff->added++;
		keep_wanted(diff);
	}
	if (diff->next < diff->wanted->count && !order)
		return compare(diff, present);
	return remove_present(diff, present);
}

int rule_diff_entry(struct rule_diff *diff, const struct rule *present, bool is_renewed)
{
	struct rule wanted;
	int error;

	rule_set_get(diff->wanted, diff->next, &wanted);
	if (wanted.timeout_ms >= 0 && present && !is_renewed)
		return compare(diff, present);
	if (wanted.timeout_ms < 0) {
		diff->next++;
		error = present ? remove_present(diff, present) : 0;
		return !error && is_renewed ? rule_set_add(&diff->obsolete, &wanted) : error;
	}
	diff->added += !present || present->timeout_ms < 0;
	diff->updated += present && present->timeout_ms >= 0;
	keep_wanted(diff);
	return !is_renewed ? 0 : present ? note(diff, present, true, true) : rule_set_add(&diff->obsolete, &wanted);
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
	rule_set_close(&diff->passes);
	rule_set_close(&diff->before);
	*diff = (struct rule_diff){};
}
