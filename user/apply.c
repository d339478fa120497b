// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "apply.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names ---- */

bool apply_is_name(const char *name)
{
	size_t length = strlen(name);

	if (!length || length >= ABI_NAME_BYTES || *name == '.' || *name == '-')
		return false;
	for (const char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("._-", *c))
			return false;
	return true;
}

int apply_state_dir(const char *state, const char *name, char *dir, size_t size)
{
	int length = snprintf(dir, size, "%s/%s", state ? state : APPLY_STATE_DEFAULT, name);

	return length < 0 || (size_t)length >= size ? -ENAMETOOLONG : 0;
}

/* ---- the targets of a store ---- */

static bool is_mine(const struct apply *apply, const struct kernel_filter *filter)
{
	return !filter->config->magic ||
	       !strncmp(filter->config->name, apply->name, sizeof(apply->name));
}

static int open_target(struct apply *apply, struct kernel_filter *filter, struct reason *reason)
{
	struct target *target = &apply->targets[apply->targets_count];
	int error = target_open(target, filter, reason);

	if (error)
		return error;
	apply->targets_count++;
	return target_update(target, apply->store, apply->name, reason);
}

/* Takes over from `filters` those that are, or shall be, filled from this store. */
static int open_targets(struct apply *apply, struct kernel_filter *filters, size_t count,
			struct reason *reason)
{
	int error = 0;

	/* One more, for apply_load(). */
	apply->targets = calloc(count + 1, sizeof(*apply->targets));
	if (!apply->targets)
		return reason_set(reason, -ENOMEM, "no memory for the list of filters");
	for (size_t i = 0; i < count && !error; i++)
		if (is_mine(apply, &filters[i]))
			error = open_target(apply, &filters[i], reason);
	return error;
}

int apply_open(struct apply *apply, const char *state, const char *name, struct reason *reason)
{
	struct kernel_filter *filters = NULL;
	size_t count = 0;
	char dir[PATH_MAX];
	int error;

	*apply = (struct apply){};
	strncpy(apply->name, name, sizeof(apply->name) - 1);
	error = apply_state_dir(state, name, dir, sizeof(dir));
	if (error)
		return reason_set(reason, error, "'%.40s...': the state directory's name is too long",
				  state);
	error = store_open(dir, STORE_WRITE, &apply->store, reason);
	if (!error)
		error = kernel_find(&filters, &count, reason);
	if (!error)
		error = open_targets(apply, filters, count, reason);
	kernel_filters_free(filters, count);
	if (error)
		apply_close(apply);
	return error;
}

/* Asked before the kernel is: an allocation of gigabytes that fails is slow and may kill others. */
static int check_memory(__u64 slots, struct reason *reason)
{
	__u64 bytes = slots / BUCKET_SLOTS * sizeof(__u64);
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
			  "the table needs %llu MiB and %llu MiB are available; choose a smaller "
			  "--capacity", (unsigned long long)bytes >> 20, available_kb >> 10);
}

static int choose_slots(struct apply *apply, __u64 capacity, __u64 *slots, struct reason *reason)
{
	struct store_info info;
	int error = store_info(apply->store, &info);

	if (error)
		return reason_set(reason, error, "cannot read the store: %s", strerror(-error));
	if (capacity && info.keys > capacity)
		return reason_set(reason, -ENOSPC,
				  "the store holds %llu keys: more than --capacity %llu",
				  (unsigned long long)info.keys, (unsigned long long)capacity);
	*slots = table_slots_for(capacity ? capacity : info.keys);
	if (!capacity && *slots < 1ULL << ABI_SLOTS_DEFAULT_LOG2)
		*slots = 1ULL << ABI_SLOTS_DEFAULT_LOG2;
	if (*slots > 1ULL << ABI_SLOTS_MAX_LOG2)
		return reason_set(reason, -EINVAL, "a table holds at most %llu rules",
				  (1ULL << ABI_SLOTS_MAX_LOG2) / 100 * TABLE_LOAD_PERCENT);
	return check_memory(*slots, reason);
}

int apply_load(struct apply *apply, __u64 capacity, struct target **target, struct reason *reason)
{
	struct kernel_filter filter;
	__u64 slots = 0;
	int error = choose_slots(apply, capacity, &slots, reason);

	if (!error)
		error = kernel_create(slots / BUCKET_SLOTS, &filter, reason);
	if (!error)
		error = open_target(apply, &filter, reason);
	if (error)
		return error;
	*target = &apply->targets[apply->targets_count - 1];
	return 0;
}

/* ---- changes ---- */

struct apply_deletions {
	struct rule_key *keys;
	size_t count, room;
};

static void forget_deletions(struct apply *apply)
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
		struct abi_config *config = apply->targets[i].filter.config;

		config->used = apply->targets[i].table.used;
		__atomic_store_n(&config->generation, generation, __ATOMIC_RELEASE);
	}
}

void apply_close(struct apply *apply)
{
	forget_deletions(apply);
	for (size_t i = 0; i < apply->targets_count; i++)
		target_close(&apply->targets[i]);
	free(apply->targets);
	store_close(apply->store);
	*apply = (struct apply){};
}

static int begin(struct apply *apply, struct reason *reason)
{
	int error;

	apply->inserted = 0;
	apply->deletions = calloc(1, sizeof(*apply->deletions));
	error = apply->deletions ? store_begin(apply->store) : -ENOMEM;
	if (!error)
		return 0;
	return reason_set(reason, error, "cannot write to the store: %s", strerror(-error));
}

/* From the first key on, and until the commit, the tables may hold more than the store. */
static int insert_key(struct apply *apply, const struct rule_key *key, struct reason *reason)
{
	if (!apply->inserted)
		set_generation(apply, ABI_GENERATION_DIRTY);
	for (size_t i = 0; i < apply->targets_count; i++) {
		struct target *target = &apply->targets[i];
		int error = table_insert(&target->table,
					 rule_hash(key, &target->filter.config->key));

		if (error == -ENOSPC)
			return target_full(target, target->table.used + 1, reason);
		if (error)
			return reason_set(reason, error, "cannot insert: %s", strerror(-error));
		apply->inserted++;
	}
	return 0;
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

static int delete_keys(struct apply *apply)
{
	for (size_t i = 0; i < apply->targets_count; i++) {
		struct target *target = &apply->targets[i];

		for (size_t k = 0; k < apply->deletions->count; k++) {
			int error = table_delete(&target->table,
						 rule_hash(&apply->deletions->keys[k],
							   &target->filter.config->key));

			if (error)
				return error;
		}
	}
	return 0;
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
	if (!apply->inserted && !store_info(apply->store, &info))
		set_generation(apply, info.generation);
	for (size_t i = 0; i < apply->targets_count && apply->inserted; i++)
		target_fill(&apply->targets[i], apply->store, &ignored);
}

/* What must wait for the commit: a rule that is still stored is never missing from a table. */
static int finish(struct apply *apply, struct reason *reason)
{
	struct store_info info;
	int error = delete_keys(apply);

	if (error)
		return reason_set(reason, error,
				  "a table lacked a deleted rule; the next command repairs it");
	error = publish_all(apply, reason);
	if (error)
		return error;
	error = store_info(apply->store, &info);
	if (error)
		return reason_set(reason, error, "cannot read the store: %s", strerror(-error));
	set_generation(apply, info.generation);
	return 0;
}

int apply_change(struct apply *apply,
		 int (*make)(struct apply *apply, void *context, struct reason *reason),
		 void *context, struct reason *reason)
{
	int error = begin(apply, reason);

	if (!error)
		error = make(apply, context, reason);
	if (!error) {
		error = store_commit(apply->store);
		if (error)
			reason_set(reason, error, "cannot write to the store: %s", strerror(-error));
	}
	if (error)
		undo(apply);
	else
		error = finish(apply, reason);
	forget_deletions(apply);
	return error;
}

/* ---- questions ---- */

int apply_test(struct store *store, const struct rule *query, struct rule *rule)
{
	struct rule_shape shapes[FLOW_FAMILIES * ABI_SHAPES_MAX];
	__u64 keys[FLOW_FAMILIES * ABI_SHAPES_MAX];
	size_t count;
	int error = store_shapes(store, shapes, keys, &count);

	for (size_t i = 0; i < count && !error; i++) {
		struct rule candidates[RULE_KEYS_MAX];
		size_t n = rule_generalise(query, &shapes[i], candidates);

		for (size_t k = 0; k < n; k++) {
			*rule = candidates[k];
			error = store_get(store, rule);
			if (error != -ENOENT)
				return error;
			error = 0;
		}
	}
	return error ? error : -ENOENT;
}

/* A rule of that shape which would match the flows has just the fingerprint that packets look for. */
static bool shape_matches(const struct kernel_filter *filter, const struct rule *query,
			  const struct rule_shape *shape)
{
	const struct abi_config *config = filter->config;
	struct rule rules[RULE_KEYS_MAX];
	struct rule_key keys[RULE_KEYS_MAX];
	struct bucket_pair pair;

	if (!rule_generalise(query, shape, rules))
		return false;
	rules->family = shape->family;
	rule_keys(rules, keys);
	pair = bucket_pair(rule_hash(keys, &config->key), config->bucket_mask, config->step_shift);
	return bucket_match(filter->bucket[pair.first], pair.fingerprint) ||
	       bucket_match(filter->bucket[pair.second], pair.fingerprint);
}

bool apply_matches(const struct kernel_filter *filter, const struct rule *query)
{
	if (!filter->config->magic)
		return false;
	for (enum flow_family family = 0; family < FLOW_FAMILIES; family++) {
		const struct abi_shape_list *list = abi_shapes(filter->config, family);

		for (size_t i = 0; i < list->count && i < ABI_SHAPES_MAX; i++) {
			struct rule_shape shape = rule_shape_of_tag(list->shape[i].tag, family);

			if (shape_matches(filter, query, &shape))
				return true;
		}
	}
	return false;
}

double apply_false_positive_rate(const struct kernel_filter *filter, enum flow_family family)
{
	double slots = (double)filter->buckets * BUCKET_SLOTS;
	double fingerprints = (1 << BUCKET_FINGERPRINT_BITS) - 1;
	double for_one_shape = 2 * BUCKET_SLOTS * (filter->config->used / slots) / fingerprints;

	return abi_shapes(filter->config, family)->count * for_one_shape;
}
