// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "change/key_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The words of a key and one for its timeout. The last word of the key has the tag of its shape. */
static size_t words_of(enum flow_family family)
{
	return flow_key_last(family) + 2;
}

int key_list_add(struct key_list *list, const struct rule_key *key, __s64 timeout_ms)
{
	const size_t count = words_of(key->shape.family);
	struct key_list_words *words = &list->of[key->shape.family];

	if (words->used + count > words->room) {
		const size_t room = 2 * words->room + 64 * count;
		__u64 *grown = realloc(words->word, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		words->word = grown;
		words->room = room;
	}
	memcpy(words->word + words->used, key->key.word, (count - 1) * sizeof(__u64));
	words->used += count;
	words->word[words->used - 1] = timeout_ms;
	list->count++;
	return 0;
}

int key_list_each(const struct key_list *list,
		  int (*visit)(const struct rule_key *key, __s64 timeout_ms, void *context), void *context)
{
	int result = 0;

	for (enum flow_family family = 0; family < FLOW_FAMILIES; family++) {
		const struct key_list_words *words = &list->of[family];
		const size_t count = words_of(family);

		for (size_t at = 0; at < words->used && !result; at += count) {
			struct rule_key key = {};

			memcpy(key.key.word, words->word + at, (count - 1) * sizeof(__u64));
			key.shape = rule_shape_of_tag(key.key.word[count - 2], family);
			result = visit(&key, words->word[at + count - 1], context);
		}
	}
	return result;
}

void key_list_close(struct key_list *list)
{
	for (enum flow_family family = 0; family < FLOW_FAMILIES; family++)
		free(list->of[family].word);
	*list = (struct key_list){};
}
