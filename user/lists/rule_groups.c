// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Divides rules into groups that a set of ipset or nft can hold. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lists/internal.h"
#include "base/memory.h"

/* NULL: no memory. */
static struct list_group *group_of(struct list_groups *groups, const struct list_kind *kind)
{
	size_t i = 0;

	while (i < groups->count && memcmp(&groups->group[i].kind, kind, sizeof(*kind)))
		i++;
	if (i < groups->count)
		return &groups->group[i];
	if (array_grow(&groups->group, i, sizeof(*groups->group)))
		return NULL;
	groups->group[groups->count++] = (struct list_group){ .kind = *kind };
	return &groups->group[i];
}

int list_groups_make(struct list_groups *groups, const struct rule_set *rules, list_kind_of *kind_of, void *context)
{
	*groups = (struct list_groups){ .rules = rules, .number = calloc(rules->count + 1, sizeof(*groups->number)) };
	if (!groups->number)
		return -ENOMEM;
	for (size_t i = 0; i < rules->count; i++) {
		struct list_kind kind = {};
		struct list_group *group;
		struct rule rule;
		unsigned int bits;

		rule_set_get(rules, i, &rule);
		if (!kind_of(&rule, &kind, context))
			continue;
		group = group_of(groups, &kind);
		if (!group)
			return -ENOMEM;
		groups->number[i] = group - groups->group + 1;
		bits = rule_address_bits(rule.family);
		group->rules++;
		group->without_prefix += !rule.src_len && !rule.dst_len;
		group->has_prefix |= (kind.src_len && rule.src_len != bits) || (kind.dst_len && rule.dst_len != bits);
		group->is_timed |= rule.timeout_ms != 0;
		group->is_commented |= rule.comment[0];
	}
	return 0;
}

void list_groups_close(struct list_groups *groups)
{
	free(groups->group);
	free(groups->number);
}

bool list_groups_next(const struct list_groups *groups, const struct list_group *group, size_t *i, struct rule *rule)
{
	const __u32 number = group - groups->group + 1;

	while (*i < groups->rules->count && groups->number[*i] != number)
		++*i;
	if (*i == groups->rules->count)
		return false;
	rule_set_get(groups->rules, (*i)++, rule);
	return true;
}
