// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "target.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "grace.h"

int target_full(const struct target *target, __u64 keys, struct reason *reason)
{
	return reason_set(
		reason, -ENOSPC,
		"table full: %llu keys do not fit into %llu slots; unload it, then load it "
		"again with --capacity %llu or more",
		(unsigned long long)keys, (unsigned long long)table_slots(&target->table),
		2 * (unsigned long long)keys);
}

static int store_failed(int error, struct reason *reason)
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
		return store_failed(error, reason);
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

struct hash_list {
	const struct siphash_key *secret;
	__u64 *hashes;
	size_t count, room;
};

static int collect_hashes(const struct rule *rule, void *context)
{
	struct hash_list *list = context;
	struct rule_key keys[RULE_KEYS_MAX];
	size_t count = rule_keys(rule, keys);

	/* The store is locked: more keys than its shape counts say means that it is damaged. */
	if (list->count + count > list->room)
		return -EBADMSG;
	for (size_t i = 0; i < count; i++)
		list->hashes[list->count++] = rule_hash(&keys[i], list->secret);
	return 0;
}

static int fill_table(struct target *target, struct store *store, __u64 keys, struct reason *reason)
{
	struct hash_list list = { .secret = &target->filter.config->key, .room = keys };
	struct table_difference difference;
	int error;

	list.hashes = malloc(keys * sizeof(*list.hashes) + 1);
	if (!list.hashes)
		return reason_set(reason, -ENOMEM, "no memory to fill the table");
	error = store_each(store, collect_hashes, &list);
	if (error)
		store_failed(error, reason);
	else
		error = table_reconcile(&target->table, list.hashes, list.count, &difference);
	free(list.hashes);
	if (error == -ENOSPC)
		return target_full(target, keys, reason);
	if (error == -ENOMEM)
		return reason_set(reason, error, "no memory to fill the table");
	return error;
}

int target_fill(struct target *target, struct store *store, struct reason *reason)
{
	struct abi_config *config = target->filter.config;
	struct store_info info;
	int error = store_info(store, &info);

	if (error)
		return store_failed(error, reason);
	config->generation = ABI_GENERATION_DIRTY;
	error = fill_table(target, store, info.keys, reason);
	if (!error)
		error = target_publish(target, store, reason);
	if (error)
		return error;
	config->used = target->table.used;
	__atomic_store_n(&config->generation, info.generation, __ATOMIC_RELEASE);
	return 0;
}

/* ---- a filter's life ---- */

/* Magic last: it makes the program look, and the table must be whole before. */
static int set_up(struct target *target, struct store *store, const char *name,
		  const struct store_info *info, struct reason *reason)
{
	struct abi_config *config = target->filter.config;
	int error;

	if (info->keys > table_slots(&target->table) * TABLE_LOAD_PERCENT / 100)
		return target_full(target, info->keys, reason);
	if (getrandom(&config->key, sizeof(config->key), 0) != sizeof(config->key))
		return reason_set(reason, -EIO, "cannot draw a random hash key");
	config->version = ABI_VERSION;
	config->bucket_mask = target->table.bucket_mask;
	config->step_shift = target->table.step_shift;
	memcpy(config->store_id, info->id, sizeof(config->store_id));
	strncpy(config->name, name, sizeof(config->name) - 1);
	error = target_fill(target, store, reason);
	if (!error)
		__atomic_store_n(&config->magic, ABI_MAGIC, __ATOMIC_RELEASE);
	return error;
}

int target_update(struct target *target, struct store *store, const char *name,
		  struct reason *reason)
{
	const struct abi_config *config = target->filter.config;
	struct store_info info;
	int error = store_info(store, &info);

	if (error)
		return store_failed(error, reason);
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
		return target_fill(target, store, reason);
	target->table.used = config->used;
	return 0;
}

int target_open(struct target *target, struct kernel_filter *filter, struct reason *reason)
{
	int error;

	*target = (struct target){ .filter = *filter };
	*filter = (struct kernel_filter){};
	error = table_open(&target->table, target->filter.bucket, target->filter.buckets,
			   &target->filter.config->sequence);
	if (!error)
		return 0;
	reason_set(reason, error, "cannot use a table of %llu buckets: %s",
		   (unsigned long long)target->filter.buckets, strerror(-error));
	target_close(target);
	return error;
}

void target_close(struct target *target)
{
	table_close(&target->table);
	kernel_close(&target->filter);
}
