// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A whole new table: in the memory of a filter that no packet looks at yet, and, with the programs that
 * look at it, in the place of one that runs.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "target.h"
#include "target_internal.h"

/*
 * Keys that met in too few buckets do not under another hash key, but for a chance in millions; one
 * table more that stays too full has other reasons.
 */
#define BUILD_TRIES 4

/* ---- from the store to a table ---- */

static int collect_all(struct target_source *source)
{
	int error;

	source->keys.count = 0;
	error = store_each(source->store, target_collect_rule, &source->keys);
	for (size_t i = 0; i < source->extra_count && !error; i++)
		error = target_collect_key(&source->keys, &source->extra[i]);
	return error;
}

static void clear(struct target *target)
{
	static const enum kernel_map_name maps[] = { KERNEL_BUCKETS, KERNEL_RULES };

	for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++)
		memset(target->filter.map[maps[i]].memory, 0, target->filter.map[maps[i]].bytes);
	target->table.used = 0;
}

static int build_once(struct target *target, struct target_source *source, struct reason *reason)
{
	struct abi_config *config = target->filter.config;
	const bool is_new = target->filter.programs && !target->table.used;
	int error;

	if (getrandom(&config->key, sizeof(config->key), 0) != sizeof(config->key))
		return reason_set(reason, -EIO, "cannot draw a random hash key");
	error = collect_all(source);
	if (error)
		return target_store_failed(error, reason);
	/* The kernel has cleared what it has just made; clearing it again would take as long. */
	if (!is_new)
		clear(target);
	error = table_build(&target->table, source->keys.value, source->keys.count);
	return error ? reason_set(reason, error, "cannot fill a new table: %s", strerror(-error)) : 0;
}

static int make_room(struct target_source *source, struct reason *reason)
{
	struct target_keys *keys = &source->keys;
	struct store_info info;
	int error = store_info(source->store, &info);

	if (error)
		return target_store_failed(error, reason);
	keys->room = info.keys + source->extra_count;
	keys->value = malloc(keys->room * sizeof(*keys->value) + 1);
	keys->predecessor = source->predecessor;
	if (keys->predecessor)
		keys->old_number = malloc(keys->room * sizeof(*keys->old_number) + 1);
	if (keys->value && (keys->old_number || !keys->predecessor))
		return 0;
	return reason_set(reason, -ENOMEM, "no memory to fill a new table");
}

int target_build(struct target *target, struct target_source *source, struct reason *reason)
{
	int error = make_room(source, reason);

	source->keys.secret = &target->filter.config->key;
	if (!error)
		error = build_once(target, source, reason);
	for (int i = 1; i < BUILD_TRIES && error == -ENOSPC; i++)
		error = build_once(target, source, reason);
	target_note_counts(target);
	return error == -ENOSPC ? target_full(target, source->keys.count, reason) : error;
}

void target_source_close(struct target_source *source)
{
	free(source->keys.value);
	free(source->keys.old_number);
}

/* ---- a new filter ---- */

/* Asked before the kernel is: an allocation of gigabytes that fails is slow and may kill others. */
static int check_memory(__u64 bytes, struct reason *reason)
{
	unsigned long long available_kb = 0;
	FILE *file = fopen("/proc/meminfo", "re");
	char line[128];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "MemAvailable: %llu kB", &available_kb) == 1)
			break;
	if (file)
		fclose(file);
	if (!available_kb || bytes / 1024 < available_kb)
		return 0;
	return reason_set(reason, -ENOMEM,
			  "a table of that size needs %llu MiB and %llu MiB are available; choose a "
			  "smaller one, --no-counters or --compact",
			  (unsigned long long)bytes >> 20, available_kb >> 10);
}

/* `keys`: how many it will be filled with, which takes memory of this process meanwhile. */
static int create(struct target *target, const struct abi_options *options, __u64 slots, __u64 keys,
		  const struct kernel_filter *predecessor, struct reason *reason)
{
	const struct bucket_geometry geometry = table_geometry(slots);
	const struct kernel_plan plan = {
		.options = *options,
		.slots = table_slots_of(geometry),
		.bucket_bytes = table_bucket_bytes(options->format, geometry),
		.predecessor = predecessor,
	};
	struct kernel_filter filter;
	int error = check_memory(kernel_plan_bytes(&plan) +
					 keys * (sizeof(struct siphash_value) + sizeof(__u32)),
				 reason);

	*target = (struct target){};
	if (!error)
		error = kernel_create(&plan, &filter, reason);
	if (error)
		return error;
	filter.config->geometry = geometry;
	return target_open(target, &filter, reason);
}

int target_create(struct target *target, const struct abi_options *options, __u64 slots, __u64 keys,
		  struct reason *reason)
{
	return create(target, options, slots, keys, NULL, reason);
}

/* ---- in the place of another ---- */

/* All but what belongs to the table itself. A filter that is set up hands its shapes on. */
static void inherit(struct abi_config *config, const struct abi_config *old)
{
	struct bucket_geometry geometry = config->geometry;

	memcpy(config, old, sizeof(*config));
	config->magic = 0;
	config->geometry = geometry;
	config->sequence = config->next_number = 0;
	config->moves = config->longest_path = 0;
}

static void add_count(struct abi_counter *to, const struct abi_counter *from)
{
	__atomic_fetch_add(&to->packets, from->packets, __ATOMIC_RELAXED);
	__atomic_fetch_add(&to->bytes, from->bytes & ~ABI_RULE_TAKEN, __ATOMIC_RELAXED);
}

/* By atomic additions: the new table's packets are being counted meanwhile. */
static void carry_counts(const struct target *from, const struct target *to,
			 const struct target_source *source)
{
	__u32 number;

	for (__u64 i = 0; source->predecessor && i < to->table.used; i++)
		if (source->keys.old_number[i] != TARGET_NO_NUMBER &&
		    table_find(&to->table, &source->keys.value[i], &number))
			add_count(&to->table.memory.rule[number],
				  &from->table.memory.rule[source->keys.old_number[i]]);
}

static int fill_and_replace(struct target *old, struct target *new, struct target_source *source,
			    struct reason *reason)
{
	struct abi_config *config = new->filter.config;
	int error;

	inherit(config, old->filter.config);
	error = target_build(new, source, reason);
	if (!error && !old->filter.config->magic)
		error = target_publish(new, source->store, reason);
	if (error)
		return error;
	__atomic_store_n(&config->magic, ABI_MAGIC, __ATOMIC_RELEASE);
	error = kernel_replace(&old->filter, &new->filter, reason);
	if (!error)
		carry_counts(old, new, source);
	return error;
}

int target_rebuild(struct target *target, struct store *store, __u64 slots,
		   const struct rule_key *extra, size_t extra_count, struct reason *reason)
{
	struct target_source source = { .store = store, .extra = extra, .extra_count = extra_count };
	struct store_info info;
	struct target new;
	int error = store_info(store, &info);

	if (error)
		return target_store_failed(error, reason);
	error = create(&new, &target->filter.options, slots, info.keys + extra_count,
		       &target->filter, reason);
	if (error)
		return error;
	if (target->filter.options.has_counts && target->filter.config->magic)
		source.predecessor = target;
	error = fill_and_replace(target, &new, &source, reason);
	target_source_close(&source);
	if (error) {
		target_close(&new);
		return error;
	}
	new.state = target->state;
	new.slots_before = table_slots(&target->table);
	target_close(target);
	*target = new;
	return 0;
}
