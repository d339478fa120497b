// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The keys of a rule, the rules of a key, and all entries that the rules of a store give to a table. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "filter/internal.h"
#include "hash.h"

/* ---- one rule, one key ---- */

int keys_each(const struct shape_list *list, const struct rule *rule,
	      int (*visit)(const struct rule_key *key, bool is_shared, void *context), void *context)
{
	struct rule_key keys[RULE_KEYS_MAX];
	const size_t count = rule_keys(rule, keys);
	int result = 0;

	for (size_t i = 0; i < count && !result; i++) {
		const struct shape_list_entry *entry = shape_list_find(list, &keys[i].shape);
		const unsigned int bits = entry ? rule_expansion_bits(&entry->shape, &entry->probed_as) : 64;

		if (bits >= 64)
			return -EBADMSG;
		for (__u64 n = 0; n < 1ULL << bits && !result; n++) {
			const struct rule_key expanded = rule_expand(&keys[i], &entry->probed_as, n);

			result = visit(&expanded, entry->is_shared, context);
		}
	}
	return result;
}

/* Counts one more rule of a key. */
static void add_rule(struct key_rules *state, const struct rule *rule)
{
	if (!state->rules)
		state->owner = *rule;
	if (!state->rules || !rule->timeout_ms || (state->timeout_ms && rule->timeout_ms > state->timeout_ms))
		state->timeout_ms = rule->timeout_ms;
	state->rules++;
}

/* Counts the rules of this shape that match the flows of the key. */
static int add_stored(struct store *store, const struct rule *query, const struct rule_shape *shape,
		      struct key_rules *state)
{
	struct rule rules[RULE_KEYS_MAX];
	const size_t count = rule_under_shape(query, shape, rules);

	for (struct rule *rule = rules; rule < rules + count; rule++) {
		const int error = store_get(store, rule);

		if (!error)
			add_rule(state, rule);
		else if (error != -ENOENT)
			return error;
	}
	return 0;
}

int key_rules(struct store *store, const struct shape_list *list, const struct rule_key *key, struct key_rules *state)
{
	const struct rule query = rule_of_key(key);
	int error = 0;

	state->rules = 0;
	state->timeout_ms = 0;
	for (size_t i = 0; i < list->count && !error; i++)
		if (rule_shape_equal(&list->entry[i].probed_as, &key->shape))
			error = add_stored(store, &query, &list->entry[i].shape, state);
	return error;
}

bool keys_same_rule(const struct rule *a, const struct rule *b)
{
	__u8 bytes[2][RULE_ENCODED_BYTES];
	const size_t length = rule_encode(a, bytes[0]);

	return rule_encode(b, bytes[1]) == length && !memcmp(bytes[0], bytes[1], length);
}

/* ---- keys that several rules have ---- */

#define SHARING_BITS 64 /* for each rule */

/*
 * Prefix lengths that are joined for look-up can give several rules the same key. A rule becomes up to 2^11 keys. To
 * ask the store about each of them, for each prefix length, takes long, and most have no other rule. So a Bloom filter
 * notes each rule's own keys, before expansion, by two bits. The store is asked only where both bits are set.
 */
struct sharing {
	__u64 bits;                  /* a power of two */
	struct rule_shape probed_as; /* of the last key */
	size_t count;
	struct rule_shape shape[SHAPE_LIST_MAX]; /* the shapes that are probed as probed_as */
	struct abi_shape compiled[SHAPE_LIST_MAX];
	__u64 noted[];
};

static __u64 hash_of_words(const __u64 *word, enum flow_family family)
{
	__u64 hash = word[FLOW_KEY_DETAILS];

	for (unsigned int i = 0; i <= flow_key_last(family); i++)
		hash = hash_mix(hash ^ word[i]);
	return hash;
}

static __u64 *word_of(struct sharing *sharing, __u64 hash)
{
	return &sharing->noted[(hash & (sharing->bits - 1)) / 64];
}

static int note_rule(const struct rule *rule, void *context)
{
	struct sharing *sharing = context;
	struct rule_key keys[RULE_KEYS_MAX];

	for (size_t i = rule_keys(rule, keys); i-- > 0;) {
		const __u64 hash = hash_of_words(keys[i].key.word, keys[i].shape.family);

		*word_of(sharing, hash) |= 1ULL << hash % 64;
		*word_of(sharing, hash >> 32) |= 1ULL << (hash >> 32) % 64;
	}
	return 0;
}

/* Whether a rule of this shape may have the key. */
static bool may_have(struct sharing *sharing, const struct abi_shape *compiled, const struct rule_key *key)
{
	const unsigned int last = flow_key_last(key->shape.family);
	__u64 word[FLOW_KEY_WORDS_MAX] = {}, hash;

	for (unsigned int i = 0; i <= last; i++)
		word[i] = key->key.word[i] & compiled->mask[i];
	word[last] |= compiled->id;
	word[FLOW_KEY_DETAILS] = (key->key.word[FLOW_KEY_DETAILS] | ~0ULL << 32) & compiled->mask[FLOW_KEY_DETAILS];
	hash = hash_of_words(word, key->shape.family);
	return *word_of(sharing, hash) >> hash % 64 & *word_of(sharing, hash >> 32) >> (hash >> 32) % 64 & 1;
}

/* key_rules() for a key of entries->rule. */
static int shared_state(const struct filter_entries *entries, const struct rule_key *key, struct key_rules *state)
{
	const struct rule query = rule_of_key(key), *own = entries->rule;
	struct sharing *sharing = entries->sharing;
	int error = 0;

	if (!sharing)
		return key_rules(entries->store, &entries->shapes, key, state);
	if (!sharing->count || memcmp(&sharing->probed_as, &key->shape, sizeof(key->shape))) {
		sharing->probed_as = key->shape;
		sharing->count = 0;
		for (size_t i = 0; i < entries->shapes.count; i++) {
			const struct shape_list_entry *entry = &entries->shapes.entry[i];

			if (memcmp(&entry->probed_as, &key->shape, sizeof(key->shape)))
				continue;
			sharing->shape[sharing->count] = entry->shape;
			rule_shape_compile(&entry->shape, &sharing->compiled[sharing->count++]);
		}
	}
	state->rules = 0;
	for (size_t i = 0; i < sharing->count && !error; i++) {
		const struct rule_shape *shape = &sharing->shape[i];

		/* Only without prefixes there may be another rule of this shape: one for both families. */
		if (shape->src_len == own->src_len && shape->dst_len == own->dst_len &&
		    !memcmp(&shape->details, &own->details, sizeof(own->details)) && (own->src_len || own->dst_len))
			add_rule(state, own);
		else if (may_have(sharing, &sharing->compiled[i], key))
			error = add_stored(entries->store, &query, shape, state);
	}
	return error;
}

/* ---- all entries ---- */

int filter_entries_open(struct filter_entries *entries, struct filter *filter, struct store *store, bool is_building,
			struct reason *reason)
{
	struct store_info info;
	bool is_shared = false;
	__u64 bits = 64;
	int error = store_info(store, &info);

	*entries = (struct filter_entries){ .filter = filter, .store = store, .hints = filter_hints(filter) };
	if (!error)
		error = store_shapes(store, &entries->shapes);
	for (size_t i = 0; i < entries->shapes.count && !error; i++)
		is_shared |= entries->shapes.entry[i].is_shared;
	while (is_shared && bits < SHARING_BITS * info.rules)
		bits *= 2;
	/* Without memory for this, the store is asked about every key. */
	entries->sharing = is_shared ? calloc(1, sizeof(*entries->sharing) + bits / 8) : NULL;
	if (entries->sharing) {
		entries->sharing->bits = bits;
		error = store_each(store, note_rule, entries->sharing);
	}
	if (error)
		return store_unread_reason(error, reason);
	entries->is_building = is_building;
	entries->expected = info.keys;
	entries->room = is_building && info.keys > FILTER_ENTRIES_AT_ONCE ? FILTER_ENTRIES_AT_ONCE : info.keys;
	for (enum filter_part part = 0; part < FILTER_PARTS; part++) {
		entries->part[part].entry = malloc(entries->room * sizeof(struct table_entry) + 1);
		if (!entries->part[part].entry)
			return reason_set(reason, -ENOMEM, "no memory to fill the table");
	}
	return 0;
}

void filter_entries_close(struct filter_entries *entries)
{
	for (enum filter_part part = 0; part < FILTER_PARTS; part++)
		free(entries->part[part].entry);
	free(entries->sharing);
	*entries = (struct filter_entries){};
}

/* Puts the entries that have been collected so far into the table, if it is being built. */
static int build(struct filter_entries *entries, enum filter_part part)
{
	struct filter_collected *collected = &entries->part[part];
	const size_t count = entries->is_building ? collected->count : 0;

	collected->count -= count;
	return count ? table_build(&entries->filter->tables.part[part], collected->entry, count) : 0;
}

static int collect_key(const struct rule_key *key, bool is_shared, void *context)
{
	struct filter_entries *entries = context;
	struct filter *filter = entries->filter;
	struct filter_collected *collected;
	enum filter_part part;
	struct rule_shape shape;
	__s64 timeout_ms = entries->rule->timeout_ms;
	struct key_rules state;
	__u32 tick = 0;
	__u64 hint;
	int error = 0;

	if (is_shared) {
		error = shared_state(entries, key, &state);
		if (error)
			return error;
		/* The present rule has the key, so a store that finds no rule is damaged. */
		if (!state.rules)
			return -EBADMSG;
		/* The first rule that has the key brings the entry. */
		if (state.rules > 1 && !keys_same_rule(&state.owner, entries->rule))
			return 0;
		timeout_ms = state.timeout_ms;
	}
	/* The store is locked. So more keys than its counts say mean that it is damaged. */
	if (entries->collected == entries->expected)
		return -EBADMSG;
	if (filter->kernel.options.is_exact && timeout_ms)
		error = filter_tick(entries->store, timeout_ms, &tick, entries->reason);
	part = filter_part_of(filter, &key->shape, tick);
	if (!error && !entries->is_building)
		filter_join_counts(filter, key, part);
	collected = &entries->part[part];
	shape = filter_shape_in(&key->shape, part);
	if (!error)
		error = filter_assign_hint(filter, &shape, &hint);
	if (error)
		return error;
	collected->entry[collected->count++] =
		(struct table_entry){ .key = filter_hash(filter_abi_table(filter), key, part),
				      .end = filter_end(filter, tick),
				      .turn = key->shape.action != RULE_PASS };
	hints_mark(entries->hints, key, hint);
	/* No packet reads these hints yet: either the table is being built, or the hints are a copy. */
	if (!tick)
		hints_set_shortcuts(entries->hints, key);
	entries->collected++;
	return collected->count == entries->room ? build(entries, part) : 0;
}

static int collect_rule(const struct rule *rule, void *context)
{
	struct filter_entries *entries = context;

	entries->rule = rule;
	return keys_each(&entries->shapes, rule, collect_key, entries);
}

int filter_entries_collect(struct filter_entries *entries, struct reason *reason)
{
	int error;

	entries->collected = 0;
	for (enum filter_part part = 0; part < FILTER_PARTS; part++)
		entries->part[part].count = 0;
	entries->reason = reason;
	reason->text[0] = '\0';
	error = store_each(entries->store, collect_rule, entries);
	for (enum filter_part part = 0; part < FILTER_PARTS && !error; part++)
		error = build(entries, part);
	if (error == -ENOSPC)
		return reason_set(reason, error, "cannot fill a new table: %s", strerror(-error));
	return error && !reason->text[0] ? store_unread_reason(error, reason) : error;
}
