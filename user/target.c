// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A filter that runs: opened, kept equal to the store in place, its shapes published. */
#include "target.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hints.h"
#include "target_internal.h"
#include "ticks.h"

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
			  "table full: %llu keys do not fit into %llu slots, and a table holds at most %llu; "
			  "delete rules first",
			  (unsigned long long)keys, (unsigned long long)table_slots(&target->table),
			  (1ULL << ABI_SLOTS_MAX_LOG2) * TABLE_LOAD_PERCENT / 100);
}

int target_store_failed(int error, struct reason *reason)
{
	return reason_set(reason, error, "cannot read the store: %s", strerror(-error));
}

int target_of_another_store(const struct kernel_filter *filter, struct reason *reason)
{
	return reason_set(reason, -EEXIST, "the filter '%s' on %s is filled from another store; give the --state it was "
			  "loaded with, or unload it first", filter->config->name, filter->attachments[0].interface);
}

void target_defer(struct target *target, enum target_cause cause)
{
	target->is_deferred = true;
	if (!target->cause)
		target->cause = cause;
}

/* ---- entries ---- */

int target_tick(const struct store *store, __s64 timeout_ms, __u32 *tick, struct reason *reason)
{
	const __s64 left_ms = timeout_ms ? timeout_ms - store_lag_ms(store) : 0;

	/* What ends just now is not what never ends. */
	return ticks_at(timeout_ms && !left_ms ? -1 : left_ms, tick, reason);
}

static void set_shortcuts(struct target *target, const struct rule_key *key,
			  const struct hash_value *value)
{
	__u32 number;

	if (hints_can_shorten(&key->shape) && table_find(&target->table, value, &number))
		hints_set_shortcuts(target_hints(target), key, number);
}

static void clear_shortcuts(struct target *target, const struct rule_key *key)
{
	if (hints_can_shorten(&key->shape))
		hints_clear_shortcuts(target_hints(target), key);
}

int target_insert(struct target *target, const struct rule_key *key, __u32 expires)
{
	const struct hash_value value = rule_hash(key, &target->filter.config->secret);
	__u64 hint;
	int error = target_hint(target, &key->shape, &hint);

	if (error)
		return error;
	hints_mark(target_hints(target), key, hint);
	error = table_insert(&target->table, &value, expires);
	if (!error && !expires)
		set_shortcuts(target, key, &value);
	return error;
}

int target_delete(struct target *target, const struct rule_key *key)
{
	const struct hash_value value = rule_hash(key, &target->filter.config->secret);

	clear_shortcuts(target, key);
	return table_delete(&target->table, &value);
}

int target_set_expires(struct target *target, const struct rule_key *key, __u32 expires)
{
	const struct hash_value value = rule_hash(key, &target->filter.config->secret);
	int error;

	if (!target->filter.options.is_exact)
		return 0;
	if (expires)
		clear_shortcuts(target, key);
	error = table_set_expires(&target->table, &value, expires);
	if (!error && !expires)
		set_shortcuts(target, key, &value);
	return error;
}

/*
 * The hints are collected beside those in use, which keep their bits until no entry is left that needs
 * them; new entries are marked in both before they are in the table. Shortcuts go before any entry can.
 */
static int reconcile_keys(struct target *target, struct target_keys *keys,
			  struct table_difference *difference, struct reason *reason)
{
	__u32 *in_use = target_hints(target), *wanted = calloc(ABI_HINTS, sizeof(*wanted));
	int error;

	if (!wanted)
		return reason_set(reason, -ENOMEM, "no memory for hints");
	keys->hints = wanted;
	error = target_keys_collect(keys, reason);
	if (!error) {
		hints_clear_all_shortcuts(in_use);
		hints_add(in_use, wanted);
		error = table_reconcile(&target->table, keys->entry, keys->count, difference);
		if (error == -ENOSPC)
			target_full(target, keys->count, reason);
		else if (error)
			reason_set(reason, error, "no memory to fill the table");
	}
	if (!error) {
		hints_replace(in_use, wanted);
		target_keys_shorten(keys);
	}
	free(wanted);
	return error;
}

static int reconcile(struct target *target, struct store *store,
		     struct table_difference *difference, struct reason *reason)
{
	struct target_keys keys;
	int error = target_keys_open(&keys, target, store, NULL, reason);

	if (!error)
		error = reconcile_keys(target, &keys, difference, reason);
	target_keys_close(&keys);
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
	/* Entries go in no order: where all do, none is in force by then, so that no exception goes before its rule. */
	error = info.rules ? 0 : target_publish(target, store, reason);
	if (!error)
		error = reconcile(target, store, difference ? difference : &ignored, reason);
	if (!error)
		error = target_publish(target, store, reason);
	if (error)
		return error;
	config->plan = info.plan;
	target_set_generation(target, info.generation);
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

void target_set_generation(struct target *target, __u64 generation)
{
	target_note_counts(target);
	__atomic_store_n(&target->filter.config->generation, generation, __ATOMIC_RELEASE);
}

/* ---- a filter's life ---- */

static bool holds(const struct target *target, __u64 keys)
{
	return keys <= table_slots(&target->table) * TABLE_LOAD_PERCENT / 100;
}

bool target_has_room(const struct target *target, __u64 keys)
{
	return holds(target, target->table.used + keys);
}

__u64 target_slots_to_grow_to(const struct target *target, __u64 keys)
{
	__u64 wanted = table_slots_for(keys + keys / 2), slots = table_slots(&target->table);

	if (holds(target, keys))
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
	error = target_rebuild(target, store, slots, reason);
	if (!error)
		target->filter.config->generation = info->generation;
	return error;
}

static int fill_new(struct target *target, struct store *store, struct reason *reason)
{
	struct target_keys keys;
	int error = target_keys_open(&keys, target, store, NULL, reason);

	if (!error)
		error = target_build(target, &keys, reason);
	if (!error)
		error = target_publish(target, store, reason);
	target_keys_close(&keys);
	return error;
}

/* ABI_RUN_SET_UP last: it makes the program look, and the table must be whole before. */
static int set_up(struct target *target, struct store *store, const char *name,
		  const struct store_info *info, struct reason *reason)
{
	struct abi_config *config = target->filter.config;
	int error;

	config->version = ABI_VERSION;
	config->program = ABI_PROGRAM;
	config->options = target->filter.options;
	config->geometry = target->table.geometry;
	config->plan = info->plan;
	memcpy(config->store_id, info->id, sizeof(config->store_id));
	strncpy(config->name, name, sizeof(config->name) - 1);
	error = target_configure(target, store, reason);
	if (error)
		return error;
	if (!holds(target, info->keys))
		return grow(target, store, info, reason);
	error = fill_new(target, store, reason);
	if (error)
		return error;
	config->generation = info->generation;
	config->magic = ABI_MAGIC;
	__atomic_fetch_or(&config->run, ABI_RUN_SET_UP, __ATOMIC_RELEASE);
	return 0;
}

/*
 * In place, where the targets of shapes are what they were; else entries would go before others take
 * their place.
 */
static int repair(struct target *target, struct store *store, const struct store_info *info,
		  struct reason *reason)
{
	const bool is_same_plan = target->filter.config->plan == info->plan;
	int error;

	if (!is_same_plan && !kernel_held_attachment(&target->filter))
		return grow(target, store, info, reason);
	error = target_fill(target, store, NULL, reason);
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
	/* A tool that died between the two has left it passing everything. */
	if (!config->magic || !(config->run & ABI_RUN_SET_UP)) {
		target->state = TARGET_SET_UP;
		return set_up(target, store, name, &info, reason);
	}
	if (memcmp(config->store_id, info.id, sizeof(info.id)))
		return target_of_another_store(&target->filter, reason);
	target->state = config->generation == info.generation ? TARGET_UP_TO_DATE : TARGET_REPAIRED;
	target->table.used = config->used;
	error = target->state == TARGET_REPAIRED ? repair(target, store, &info, reason) : 0;
	return error ? error : target_configure(target, store, reason);
}

/* ---- how it runs ---- */

static void set_run(struct abi_config *config, __u32 bit, bool is_set)
{
	if (is_set)
		__atomic_fetch_or(&config->run, bit, __ATOMIC_RELEASE);
	else
		__atomic_fetch_and(&config->run, ~bit, __ATOMIC_RELEASE);
}

static void set_unconfirmed(struct abi_config *config, __u64 pending_id, __u32 tick)
{
	config->pending_id = pending_id;
	__atomic_store_n(&config->confirm_by, tick, __ATOMIC_RELEASE);
	set_run(config, ABI_RUN_UNCONFIRMED, true);
}

int target_set_unconfirmed(struct target *target, __u64 pending_id, __s64 left_ms, struct reason *reason)
{
	__u32 tick;
	int error = ticks_at(left_ms ? left_ms : -1, &tick, reason);

	if (error)
		return error;
	set_unconfirmed(target->filter.config, pending_id, tick);
	if (target->successor)
		set_unconfirmed(target_successor_config(target), pending_id, tick);
	return 0;
}

void target_confirm(struct target *target)
{
	set_run(target->filter.config, ABI_RUN_UNCONFIRMED, false);
	target->filter.config->pending_id = 0;
}

/* Three VLAN tags are too many headers for an older program: until it is replaced it drops no more than before. */
void target_set_policies(struct abi_config *config, const struct store_settings *settings)
{
	const bool passes = config->program < ABI_PROGRAM && config->policy[OUTCOME_TOO_MANY_HEADERS] == VERDICT_PASS;

	for (size_t i = 0; i < OUTCOME_POLICIES; i++)
		if (i != OUTCOME_TOO_MANY_HEADERS || !passes)
			config->policy[i] = settings->policy[i];
}

int target_configure(struct target *target, struct store *store, struct reason *reason)
{
	struct abi_config *config = target->filter.config;
	struct store_settings settings;
	struct store_pending pending;
	int error = store_settings(store, &settings);

	if (!error)
		error = store_pending(store, &pending);
	if (error)
		return target_store_failed(error, reason);
	target_set_policies(config, &settings);
	set_run(config, ABI_RUN_MONITOR, settings.is_monitor_only);
	set_run(config, ABI_RUN_HEIR, false); /* of a tool that died as one */
	if (pending.id)
		return target_set_unconfirmed(target, pending.id, pending.left_ms, reason);
	/* Of a change that was confirmed, undone or never stored by a tool that died then. */
	if (config->pending_id)
		target_confirm(target);
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
		.has_counts = options->is_exact && options->has_counts,
		.sequence = &filter->config->sequence,
		.next_number = &filter->config->next_number,
	};

	*table = (struct table){};
	if (options->format >= BUCKET_FORMATS ||
	    table_bucket_bytes(options->format, geometry) > filter->map[KERNEL_BUCKETS].bytes ||
	    (memory.record && table_slots_of(geometry) > filter->map[KERNEL_RECORDS].entries))
		return -EINVAL;
	return table_open(table, options->format, geometry, &memory);
}

int target_open(struct target *target, struct kernel_filter *filter, struct reason *reason)
{
	int error;

	*target = (struct target){ .filter = *filter };
	*filter = (struct kernel_filter){};
	error = target_open_table(&target->filter, &target->table);
	if (!error) {
		target_begin(target);
		return 0;
	}
	/* Commands take -EINVAL for bad input, which this is not. */
	error = reason_set(reason, error == -EINVAL ? -EPROTO : error,
			   "cannot use a table of %u map elements: %s",
			   target->filter.map[KERNEL_BUCKETS].entries, strerror(-error));
	target_close(target);
	return error;
}

void target_close(struct target *target)
{
	target_drop_successor(target);
	table_close(&target->table);
	kernel_close(&target->filter);
}
