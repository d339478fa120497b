// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "rule_diff.h"

#include <string.h>

void rule_diff_begin(struct rule_diff *diff, struct rule_set *wanted)
{
	*diff = (struct rule_diff){ .wanted = wanted };
}

static void keep_wanted(struct rule_diff *diff)
{
	diff->wanted->entries[diff->left++] = diff->wanted->entries[diff->next++];
}

/* A rule without a timeout gets none, and a comment does not change, unless it goes first. */
static int compare(struct rule_diff *diff, const struct rule *present)
{
	bool has_same_comment;
	struct rule rule;

	rule_set_get(diff->wanted, diff->next, &rule);
	has_same_comment = !strcmp(rule.comment, present->comment);
	if (present->timeout_ms == rule.timeout_ms && has_same_comment) {
		diff->kept++;
		diff->next++;
		return 0;
	}
	diff->added += present->timeout_ms < 0;
	diff->updated += present->timeout_ms >= 0;
	keep_wanted(diff);
	if (present->timeout_ms > 0 && has_same_comment)
		return 0;
	return rule_set_add(&diff->obsolete, present);
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
	diff->removed += present->timeout_ms >= 0;
	return rule_set_add(&diff->obsolete, present);
}

void rule_diff_end(struct rule_diff *diff)
{
	while (diff->next < diff->wanted->count) {
		diff->added++;
		keep_wanted(diff);
	}
	diff->wanted->count = diff->left;
}

void rule_diff_close(struct rule_diff *diff)
{
	rule_set_close(&diff->obsolete);
	*diff = (struct rule_diff){};
}
