// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A change to the rules, all of it or nothing: into the tables, into the store, out of the tables. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "apply.h"
#include "apply_internal.h"

struct apply_deletions {
	struct rule_key *keys;
	size_t count, room;
};

void apply_forget_change(struct apply *apply)
{
	if (apply->deletions)
		free(apply->deletions->keys);
	free(apply->deletions);
	apply->deletions = NULL;
}

static int remember_key(struct apply_deletions *deletions, const struct rule_key *key)
{
	if (deletions->count == deletions->room) {
		size_t room = deletions->room ? 2 * deletions->room : 16;
		struct rule_key *grown = realloc(deletions->keys, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		deletions->keys = grown;
		deletions->room = room;
	}
	deletions->keys[deletions->count++] = *key;
	return 0;
}

static int remember_rule(const struct rule *rule, void *deletions)
{
	struct rule_key keys[RULE_KEYS_MAX];
	size_t count = rule_keys(rule, keys);
	int error = 0;

	for (size_t i = 0; i < count && !error; i++)
		error = remember_key(deletions, &keys[i]);
	return error;
}

static void set_generation(struct apply *apply, __u64 generation)
{
	for (size_t i = 0; i < apply->targets_count; i++) {
		struct target *target = &apply->targets[i];

		target_note_counts(target);
		__atomic_store_n(&target->filter.config->generation, generation, __ATOMIC_RELEASE);
	}
}

static int begin(struct apply *apply, struct reason *reason)
{
	int error;

	apply->has_inserted = false;
	for (size_t i = 0; i < apply->targets_count; i++)
		apply->targets[i].is_outgrown = false;
	apply->deletions = calloc(1, sizeof(*apply->deletions));
	error = apply->deletions ? store_begin(apply->store) : -ENOMEM;
	if (!error)
		return 0;
	return reason_set(reason, error, "cannot write to the store: %s", strerror(-error));
}

/* Where another tool holds the filter it cannot be replaced: the table is used to its last slot. */
static int insert_into(struct target *target, const struct rule_key *key, struct reason *reason)
{
	const struct siphash_value value = rule_hash(key, &target->filter.config->key);
	const bool can_grow = !kernel_held_attachment(&target->filter);
	int error;

	target->is_outgrown |= can_grow && target_has_reached_limit(target);
	if (target->is_outgrown)
		return 0;
	error = table_insert(&target->table, &value);
	if (error == -ENOSPC && can_grow) {
		target->is_outgrown = true;
		return 0;
	}
	return error == -ENOSPC ? target_full(target, target->table.used + 1, reason) : error;
}

/* From the first key on, and until the commit, the tables may hold more than the store. */
static int insert_key(struct apply *apply, const struct rule_key *key, struct reason *reason)
{
	int error = 0;

	if (!apply->has_inserted)
		set_generation(apply, ABI_GENERATION_DIRTY);
	apply->has_inserted = true;
	for (size_t i = 0; i < apply->targets_count && !error; i++)
		error = insert_into(&apply->targets[i], key, reason);
	return error;
}

int apply_add(struct apply *apply, const struct rule *rule, struct reason *reason)
{
	struct rule_key keys[RULE_KEYS_MAX];
	char text[RULE_TEXT_BYTES];
	int error = store_put(apply->store, rule);
	size_t count = rule_keys(rule, keys);

	if (error == -EEXIST)
		return error;
	if (error == -E2BIG)
		return reason_set(reason, error,
				  "'%s': %d kinds of rule (fields and prefix lengths) are in use for its "
				  "family, and there is room for no more; use a prefix length that other "
				  "rules use", rule_format(rule, text), ABI_SHAPES_MAX);
	if (error)
		return reason_set(reason, error, "cannot write to the store: %s", strerror(-error));
	for (size_t i = 0; i < count && !error; i++)
		error = insert_key(apply, &keys[i], reason);
	return error;
}

int apply_del(struct apply *apply, const struct rule *rule, struct reason *reason)
{
	int error = store_del(apply->store, rule);

	if (error == -ENOENT)
		return error;
	if (!error)
		error = remember_rule(rule, apply->deletions);
	return error ? reason_set(reason, error, "cannot delete: %s", strerror(-error)) : 0;
}

int apply_clear(struct apply *apply, struct reason *reason)
{
	int error = store_each(apply->store, remember_rule, apply->deletions);

	if (!error)
		error = store_clear(apply->store);
	return error ? reason_set(reason, error, "cannot delete: %s", strerror(-error)) : 0;
}

static int grow_targets(struct apply *apply, struct reason *reason)
{
	const struct apply_deletions *deletions = apply->deletions;
	struct store_info info;
	int error = store_info(apply->store, &info);

	if (error)
		return reason_set(reason, error, "cannot read the store: %s", strerror(-error));
	for (size_t i = 0; i < apply->targets_count && !error; i++) {
		struct target *target = &apply->targets[i];
		__u64 slots = target_slots_to_grow_to(target, info.keys + deletions->count);

		if (target->is_outgrown)
			error = target_rebuild(target, apply->store, slots, deletions->keys,
					       deletions->count, reason);
	}
	return error;
}

static int delete_keys(const struct apply_deletions *deletions, struct target *target)
{
	int error = 0;

	for (size_t i = 0; i < deletions->count && !error; i++) {
		struct siphash_value value =
			rule_hash(&deletions->keys[i], &target->filter.config->key);

		error = table_delete(&target->table, &value);
	}
	return error;
}

static int delete_everywhere(struct apply *apply, struct reason *reason)
{
	int error = 0;

	for (size_t i = 0; i < apply->targets_count && !error; i++)
		error = delete_keys(apply->deletions, &apply->targets[i]);
	return error ? reason_set(reason, error,
				  "a table lacked a deleted rule; the next command repairs it") :
		       0;
}

static int publish_all(struct apply *apply, struct reason *reason)
{
	int error = 0;

	for (size_t i = 0; i < apply->targets_count && !error; i++)
		error = target_publish(&apply->targets[i], apply->store, reason);
	return error;
}

/* Tables go back to what the store holds: by filling them again only where the change got to them. */
static void undo(struct apply *apply)
{
	struct store_info info;
	struct reason ignored;

	store_abort(apply->store);
	if (!apply->has_inserted && !store_info(apply->store, &info))
		set_generation(apply, info.generation);
	for (size_t i = 0; i < apply->targets_count && apply->has_inserted; i++)
		target_fill(&apply->targets[i], apply->store, NULL, &ignored);
}

/* What must wait for the commit: a rule that is still stored is never missing from a table. */
static int finish(struct apply *apply, struct reason *reason)
{
	struct store_info info;
	int error = delete_everywhere(apply, reason);

	if (!error)
		error = publish_all(apply, reason);
	if (error)
		return error;
	error = store_info(apply->store, &info);
	if (error)
		return reason_set(reason, error, "cannot read the store: %s", strerror(-error));
	set_generation(apply, info.generation);
	return 0;
}

static int commit(struct apply *apply, struct reason *reason)
{
	int error = store_commit(apply->store);

	return error ? reason_set(reason, error, "cannot write to the store: %s", strerror(-error)) : 0;
}

int apply_change(struct apply *apply,
		 int (*make)(struct apply *apply, void *context, struct reason *reason),
		 void *context, struct reason *reason)
{
	int error = begin(apply, reason);

	if (!error)
		error = make(apply, context, reason);
	if (!error)
		error = grow_targets(apply, reason);
	if (!error)
		error = commit(apply, reason);
	if (error)
		undo(apply);
	else
		error = finish(apply, reason);
	apply_forget_change(apply);
	return error;
}
