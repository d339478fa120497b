// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "change/key_set.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hash.h"

/* The hash needs no secret: an attacker neither sees the order nor chooses the rules. */
static size_t place_of(const struct key_set *set, const struct rule_key *key)
{
	__u64 hash = 0;

	for (unsigned int i = 0; i <= flow_key_last(key->shape.family); i++)
		hash = hash_mix(hash ^ key->key.word[i]);
	return hash & (set->places - 1);
}

/* The words include the tag of the shape, and unused words are 0. */
static bool same_key(const struct rule_key *a, const struct rule_key *b)
{
	return a->shape.family == b->shape.family && !memcmp(&a->key, &b->key, sizeof(a->key));
}

/* The place of the key, or the free place for it. */
static size_t find(const struct key_set *set, const struct rule_key *key)
{
	size_t at = place_of(set, key);

	while (set->place[at] && !same_key(&set->key[set->place[at] - 1], key))
		at = (at + 1) & (set->places - 1);
	return at;
}

bool key_set_has(const struct key_set *set, const struct rule_key *key)
{
	return set->count && set->place[find(set, key)];
}

/* At most half of the places are in use. */
static int grow(struct key_set *set)
{
	const size_t room = set->room ? 2 * set->room : 64;
	struct rule_key *key = realloc(set->key, room * sizeof(*key));
	__u32 *place = calloc(2 * room, sizeof(*place));

	if (key)
		set->key = key;
	if (!key || !place || room > 1U << 31) {
		free(place);
		return -ENOMEM;
	}
	free(set->place);
	set->place = place;
	set->places = 2 * room;
	set->room = room;
	for (size_t i = 0; i < set->count; i++)
		set->place[find(set, &set->key[i])] = i + 1;
	return 0;
}

int key_set_add(struct key_set *set, const struct rule_key *key)
{
	int error = set->count == set->room ? grow(set) : 0;
	size_t at;

	if (error)
		return error;
	at = find(set, key);
	if (set->place[at])
		return 0;
	set->key[set->count] = *key;
	set->place[at] = ++set->count;
	return 0;
}

void key_set_clear(struct key_set *set)
{
	if (set->count)
		memset(set->place, 0, set->places * sizeof(*set->place));
	set->count = 0;
}

void key_set_close(struct key_set *set)
{
	free(set->key);
	free(set->place);
	*set = (struct key_set){};
}
