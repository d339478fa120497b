// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The keys of a change, collected in plain memory until the change is complete. */
#include "change/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hash.h"

/* ---- added keys ---- */

/* How many words an added key takes: its own, of which the last has the tag of the shape; its details; its timeout. */
static size_t words_of(enum flow_family family)
{
	return flow_key_last(family) + 3;
}

int pending_keys_add(struct pending_keys *keys, const struct rule_key *key, __s64 timeout_ms)
{
	const size_t count = words_of(key->shape.family);
	struct added_words *words = &keys->added[key->shape.action][key->shape.family];

	if (words->used + count > words->room) {
		const size_t room = 2 * words->room + 64 * count;
		__u64 *grown = realloc(words->word, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		words->word = grown;
		words->room = room;
	}
	memcpy(words->word + words->used, key->key.word, (count - 2) * sizeof(__u64));
	words->used += count;
	words->word[words->used - 2] = key->key.word[FLOW_KEY_DETAILS];
	words->word[words->used - 1] = timeout_ms;
	keys->added_count++;
	keys->added_addresses += filter_is_address(&key->shape) && !timeout_ms;
	return 0;
}

bool pending_keys_next(const struct pending_keys *keys, enum rule_action action, struct added_key *added)
{
	const struct added_words *words = &keys->added[action][added->family];
	size_t count;

	while (added->at == words->used) {
		if (++added->family == FLOW_FAMILIES)
			return false;
		added->at = 0;
		words++;
	}
	count = words_of(added->family);
	added->key = (struct rule_key){};
	memcpy(added->key.key.word, words->word + added->at, (count - 2) * sizeof(__u64));
	added->key.key.word[FLOW_KEY_DETAILS] = words->word[added->at + count - 2];
	added->key.shape =
		rule_shape_of_id(added->key.key.word[count - 3], added->key.key.word[FLOW_KEY_DETAILS], added->family);
	added->timeout_ms = words->word[added->at + count - 1];
	added->at += count;
	return true;
}

/* ---- touched keys ---- */

/*
 * The place of the key, or the free place for it. The words of a key include the tag of the shape, and unused words are
 * 0. The hash needs no secret: an attacker neither sees the order nor chooses the rules.
 */
static size_t find_place(const struct pending_keys *keys, const struct rule_key *key)
{
	__u64 hash = 0;
	size_t at;

	for (unsigned int i = 0; i < FLOW_KEY_WORDS_MAX; i++)
		hash = hash_mix(hash ^ key->key.word[i]);
	for (at = hash & (keys->places - 1); keys->place[at]; at = (at + 1) & (keys->places - 1)) {
		const struct rule_key *other = &keys->touched[keys->place[at] - 1].key;

		if (other->shape.family == key->shape.family && !memcmp(&other->key, &key->key, sizeof(key->key)))
			break;
	}
	return at;
}

struct touched_key *pending_keys_touched(const struct pending_keys *keys, const struct rule_key *key)
{
	const __u32 number = keys->touched_count ? keys->place[find_place(keys, key)] : 0;

	return number ? &keys->touched[number - 1] : NULL;
}

int pending_keys_touch(struct pending_keys *keys, const struct rule_key *key, bool gains)
{
	size_t at;

	/* At most half of the places are in use. */
	if (keys->touched_count == keys->touched_room) {
		const size_t room = keys->touched_room ? 2 * keys->touched_room : 64;
		struct touched_key *touched = realloc(keys->touched, room * sizeof(*touched));
		__u32 *place = calloc(2 * room, sizeof(*place));

		if (touched)
			keys->touched = touched;
		if (!touched || !place || room > 1U << 31) {
			free(place);
			return -ENOMEM;
		}
		free(keys->place);
		keys->place = place;
		keys->places = 2 * room;
		keys->touched_room = room;
		for (size_t i = 0; i < keys->touched_count; i++)
			keys->place[find_place(keys, &keys->touched[i].key)] = i + 1;
	}
	at = find_place(keys, key);
	if (!keys->place[at]) {
		keys->touched[keys->touched_count] = (struct touched_key){ .key = *key };
		keys->place[at] = ++keys->touched_count;
	}
	keys->touched[keys->place[at] - 1].gains |= gains;
	keys->any_gains |= gains;
	return 0;
}

void pending_keys_close(struct pending_keys *keys)
{
	for (enum rule_action action = 0; action < RULE_ACTIONS; action++)
		for (enum flow_family family = 0; family < FLOW_FAMILIES; family++)
			free(keys->added[action][family].word);
	free(keys->touched);
	free(keys->place);
	*keys = (struct pending_keys){};
}
