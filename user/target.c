// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A filter that runs: opened, kept equal to the store in place, its shapes published. */
#include "target.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "grace.h"
#include "target_internal.h"

int target_full(const struct target *target, __u64 keys, struct reason *reason)
{
	const struct kernel_attachment *held = kernel_held_attachment(&target->filter);

	if (held)
		return reason_set(
			reason, -ENOSPC,
			"table full: %llu keys do not fit into %llu slots, and on '%s' libxdp's dispatcher "
			"holds the filter; take it off (xdp-loader unload %s -i %u), then load it "
			"with --capacity %llu or more", (unsigned long long)keys,
			(unsigned long long)table_slots(&target->table), held->interface,
			held->interface, held->prog_id, 2 * (unsigned long long)keys);
	return reason_set(reason, -ENOSPC,
			  "table full: %llu keys do not fit into %llu slots, and a table holds at most %llu",
			  (unsigned long long)keys, (unsigned long long)table_slots(&target->table),
			  (1ULL << ABI_SLOTS_MAX_LOG2) * TABLE_LOAD_PERCENT / 100);
}

int target_store_failed(int error, struct reason *reason)
{
	return reason_set(reason, error, "cannot read the store: %s", strerror(-error));
}

/* ---- shapes ---- */

/* Fills the idle copy, flips, and waits until no program run uses the copy that was active. */
static int publish_family(struct abi_shape_set *set, const struct abi_shape_list *wanted)
{
	__u64 active = set->active & 1;

	if (!memcmp(&set->list[active], wanted, sizeof(*wanted)))
		return 0;
	set->list[!active] = *wanted;
	__atomic_store_n(&set->active, !active, __ATOMIC_RELEASE);
	return grace_wait();
}

int target_publish(struct target *target, struct store *store, struct reason *reason)
{
	struct rule_shape shapes[FLOW_FAMILIES * ABI_SHAPES_MAX];
	__u64 keys[FLOW_FAMILIES * ABI_SHAPES_MAX];
	struct abi_shape_list wanted[FLOW_FAMILIES] = {};
	size_t count;
	int error = store_shapes(store, shapes, keys, &count);

	if (error)
		return target_store_failed(error, reason);
	for (size_t i = 0; i < count; i++) {
		struct abi_shape_list *list = &wanted[shapes[i].family];

		rule_shape_compile(&shapes[i], &list->shape[list->count++]);
	}
	for (int family = 0; family < FLOW_FAMILIES && !error; family++)
		error = publish_family(&target->filter.config->shapes[family], &wanted[family]);
	if (!error)
		return 0;
	return reason_set(reason, error, "cannot wait for the packets under way: %s",
			  strerror(-error));
}

/* ---- entries ---- */

static void find_old_number(const struct target_keys *keys, const struct rule_key *key, __u32 *number)
{
	const struct target *old = keys->predecessor;
	struct siphash_value value = rule_hash(key, &old->filter.config->key);

	if (!table_find(&old->table, &value, number) || *number >= table_slots(&old->table))
		*number = TARGET_NO_NUMBER;
}

int target_collect_key(struct target_keys *keys, const struct rule_key *key)
{
	/* The store is locked: more keys than its shape counts say means that it is damaged. */
	if (keys->count == keys->room)
		return -EBADMSG;
	if (keys->predecessor)
		find_old_number(keys, key, &keys->old_number[keys->count]);
	keys->value[keys->count++] = rule_hash(key, keys->secret);
	return 0;
}

int target_collect_rule(const struct rule *rule, void *keys)
{
	struct rule_key key[RULE_KEYS_MAX];
	size_t count = rule_keys(rule, key);
	int error = 0;

	for (size_t i = 0; i < count && !error; i++)
		error = target_collect_key(keys, &key[i]);
	return error;
}

static int reconcile(struct target *target, struct store *store, __u64 count,
		     struct table_difference *difference, struct reason *reason)
{
	struct target_keys keys = { .secret = &target->filter.config->key, .room = count };
	int error;

	keys.value = malloc(count * sizeof(*keys.value) + 1);
	if (!keys.value)
		return reason_set(reason, -ENOMEM, "no memory to fill the table");
	error = store_each(store, target_collect_rule, &keys);
	if (error)
		target_store_failed(error, reason);
	else
		error = table_reconcile(&target->table, keys.value, keys.count, difference);
	free(keys.value);
	if (error == -ENOSPC)
		return target_full(target, count, reason);
	if (error == -ENOMEM)
		return reason_set(reason, error, "no memory to fill the table");
	return error;
}

int target_fill(struct target *target, struct store *store, struct table_difference *difference,
		struct reason *reason)
{
	struct abi_config *config = target->filter.config;
	struct table_difference ignored;
	struct store_info info;
	int error = store_info(store, &info);

	if (error)
		return target_store_failed(error, reason);
	config->generation = ABI_GENERATION_DIRTY;
	error = reconcile(target, store, info.keys, difference ? difference : &ignored, reason);
	if (!error)
		error = target_publish(target, store, reason);
	if (error)
		return error;
	target_note_counts(target);
	__atomic_store_n(&config->generation, info.generation, __ATOMIC_RELEASE);
	return 0;
}

void target_note_counts(struct target *target)
{
	struct abi_config *config = target->filter.config;

	config->used = target->table.used;
	config->moves += target->table.moves;
	target->table.moves = 0;
	if (config->longest_path < target->table.longest_path)
		config->longest_path = target->table.longest_path;
}

/* ---- a filter's life ---- */

static bool has_room(const struct target *target, __u64 keys)
{
	return keys <= table_slots(&target->table) * TABLE_LOAD_PERCENT / 100;
}

bool target_has_reached_limit(const struct target *target)
{
	return !has_room(target, target->table.used + 1);
}

__u64 target_slots_to_grow_to(const struct target *target, __u64 keys)
{
	__u64 wanted = table_slots_for(keys + keys / 2), slots = table_slots(&target->table);

	if (has_room(target, keys))
		return slots;
	return wanted <= 1ULL << ABI_SLOTS_MAX_LOG2 ? wanted : table_slots_for(keys);
}

static int grow(struct target *target, struct store *store, const struct store_info *info,
		struct reason *reason)
{
	__u64 slots = target_slots_to_grow_to(target, info->keys);
	int error;

	if (kernel_held_attachment(&target->filter))
		return target_full(target, info->keys, reason);
	error = target_rebuild(target, store, slots, NULL, 0, reason);
	if (!error)
		target->filter.config->generation = info->generation;
	return error;
}

/* Magic last: it makes the program look, and the table must be whole before. */
static int set_up(struct target *target, struct store *store, const char *name,
		  const struct store_info *info, struct reason *reason)
{
	struct target_source source = { .store = store };
	struct abi_config *config = target->filter.config;
	int error;

	config->version = ABI_VERSION;
	config->options = target->filter.options;
	config->geometry = target->table.geometry;
	memcpy(config->store_id, info->id, sizeof(config->store_id));
	strncpy(config->name, name, sizeof(config->name) - 1);
	if (!has_room(target, info->keys))
		return grow(target, store, info, reason);
	error = target_build(target, &source, reason);
	target_source_close(&source);
	if (!error)
		error = target_publish(target, store, reason);
	if (error)
		return error;
	config->generation = info->generation;
	__atomic_store_n(&config->magic, ABI_MAGIC, __ATOMIC_RELEASE);
	return 0;
}

static int repair(struct target *target, struct store *store, const struct store_info *info,
		  struct reason *reason)
{
	int error = target_fill(target, store, NULL, reason);

	return error == -ENOSPC ? grow(target, store, info, reason) : error;
}

int target_update(struct target *target, struct store *store, const char *name,
		  struct reason *reason)
{
	const struct abi_config *config = target->filter.config;
	struct store_info info;
	int error = store_info(store, &info);

	if (error)
		return target_store_failed(error, reason);
	if (!config->magic) {
		target->state = TARGET_SET_UP;
		return set_up(target, store, name, &info, reason);
	}
	if (memcmp(config->store_id, info.id, sizeof(info.id)))
		return reason_set(
			reason, -EEXIST,
			"the filter '%s' on %s is filled from another store; give the --state "
			"it was loaded with, or unload it first",
			name, target->filter.attachments[0].interface);
	target->state = config->generation == info.generation ? TARGET_UP_TO_DATE : TARGET_REPAIRED;
	if (target->state == TARGET_REPAIRED)
		return repair(target, store, &info, reason);
	target->table.used = config->used;
	return 0;
}

/* ---- opening ---- */

struct bucket_geometry target_geometry(const struct kernel_filter *filter)
{
	if (filter->config->geometry.buckets)
		return filter->config->geometry;
	return table_geometry((__u64)filter->map[KERNEL_BUCKETS].entries * BUCKET_SLOTS);
}

int target_open_table(const struct kernel_filter *filter, struct table *table)
{
	const struct abi_options *options = &filter->options;
	const struct bucket_geometry geometry = target_geometry(filter);
	const struct table_memory memory = {
		.bucket = filter->map[KERNEL_BUCKETS].memory,
		.record = options->is_exact ? filter->map[KERNEL_RECORDS].memory : NULL,
		.rule = options->has_counts ? filter->map[KERNEL_RULES].memory : NULL,
		.sequence = &filter->config->sequence,
		.next_number = &filter->config->next_number,
	};

	*table = (struct table){};
	if (options->format >= BUCKET_FORMATS ||
	    table_bucket_bytes(options->format, geometry) > filter->map[KERNEL_BUCKETS].bytes ||
	    (memory.record && table_slots_of(geometry) > filter->map[KERNEL_RECORDS].entries) ||
	    (memory.rule && table_slots_of(geometry) > filter->map[KERNEL_RULES].entries))
		return -EINVAL;
	return table_open(table, options->format, geometry, &memory);
}

int target_open(struct target *target, struct kernel_filter *filter, struct reason *reason)
{
	int error;

	*target = (struct target){ .filter = *filter };
	*filter = (struct kernel_filter){};
	error = target_open_table(&target->filter, &target->table);
	if (!error)
		return 0;
	reason_set(reason, error, "cannot use a table of %u map elements: %s",
		   target->filter.map[KERNEL_BUCKETS].entries, strerror(-error));
	target_close(target);
	return error;
}

void target_close(struct target *target)
{
	table_close(&target->table);
	kernel_close(&target->filter);
}
