// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Sets of ipset and nft: their columns, what the names of sets tell about them, and the rules that one set can hold. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lists/internal.h"
#include "base/memory.h"

bool list_columns_have(const struct list_columns *columns, const char *keyword)
{
	for (size_t i = 0; i < columns->count; i++)
		if (!strcmp(columns->keyword[i], keyword))
			return true;
	return false;
}

/* The keyword in the part of a name; a number may follow it. */
static const char *keyword_of(const char *part, size_t length)
{
	static const char *const keywords[] = { "proto", "src", "sport", "dst", "dport", "type", "code" };

	while (length && part[length - 1] >= '0' && part[length - 1] <= '9')
		length--;
	for (size_t i = 0; i < sizeof(keywords) / sizeof(keywords[0]); i++)
		if (strlen(keywords[i]) == length && !strncmp(keywords[i], part, length))
			return keywords[i];
	return NULL;
}

void list_columns_take_name(struct list_columns *columns, const char *name, char separator)
{
	const char start[] = { 'x', 'c', separator, '\0' }, end[] = { separator, '\0' };
	struct list_columns parsed = {};
	const char *part = name + 3;
	char action[16];

	if (strncmp(name, start, 3))
		return;
	snprintf(action, sizeof(action), "%.*s", (int)strcspn(part, end), part);
	part += strlen(action);
	if (rule_action_parse(action, &parsed.action) || *part != separator)
		return;
	for (part++;; part++) {
		const size_t length = strcspn(part, end);
		const char *keyword = keyword_of(part, length);

		if (!keyword) {
			parsed.family = !length ? 0 : part[length - 1] == '6' ? 6 : part[length - 1] == '4' ? 4 : 0;
			break;
		}
		if (parsed.count == LIST_COLUMNS_MAX)
			return;
		parsed.keyword[parsed.count++] = keyword;
		part += length;
		if (!*part)
			break;
	}
	if (parsed.count != columns->count)
		return;
	/* As in the other formats, "drop" is the action of rules that name none. */
	if (parsed.action == RULE_DROP)
		parsed.action = columns->action;
	*columns = parsed;
}

const char *list_columns_format(const struct list_columns *columns, char text[LIST_COLUMNS_BYTES])
{
	*text = '\0';
	for (size_t i = 0; i < columns->count; i++)
		strcat(strcat(text, columns->keyword[i]), ", ");
	return strcat(strcat(text, "action "), rule_action_name(columns->action));
}

/* ---- rules in groups that one set can hold ---- */

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
		size_t k = 0;

		rule_set_get(rules, i, &rule);
		if (!kind_of(&rule, &kind, context))
			continue;
		while (k < groups->count && memcmp(&groups->group[k].kind, &kind, sizeof(kind)))
			k++;
		if (k == groups->count) {
			if (array_grow(&groups->group, k, sizeof(*groups->group)))
				return -ENOMEM;
			groups->group[groups->count++] = (struct list_group){ .kind = kind };
		}
		group = &groups->group[k];
		groups->number[i] = k + 1;
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
