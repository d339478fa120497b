// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Opens store and running filters together; loads, resizes and checks filters. */
#include "change/change.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "change/internal.h"

#define SLOTS_LEAST (1ULL << 14) /* of an exact table, where no capacity is given */
#define ROOM_MOST (1ULL << 20)   /* for keys to come */

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

static int open_target(struct apply *apply, struct kernel_filter *filter, struct reason *reason)
{
	struct target *target = &apply->targets[apply->targets_count];
	int error = filter->is_other_version ? target_take_over(target, filter, apply->store, reason) :
					       target_open(target, filter, reason);

	if (error)
		return error;
	apply->targets_count++;
	return target->state == TARGET_TAKEN_OVER ? 0 : target_update(target, apply->store, apply->name, reason);
}

/* Opens the filters that have, or get, the rules of this store. */
static int open_targets(struct apply *apply, struct kernel_filter *filters, size_t count, struct reason *reason)
{
	int error = 0;

	/* One more than there are, for apply_load(). */
	apply->targets = calloc(count + 1, sizeof(*apply->targets));
	if (!apply->targets)
		return reason_set(reason, -ENOMEM, "no memory for the list of filters");
	for (size_t i = 0; i < count && !error; i++) {
		const struct abi_config *config = filters[i].config;

		if (!config->magic || !strncmp(config->name, apply->name, sizeof(apply->name)))
			error = open_target(apply, &filters[i], reason);
	}
	return error;
}

void apply_unlock(struct apply *apply)
{
	store_close(apply->store);
	apply->store = NULL;
}

void apply_close(struct apply *apply)
{
	apply_forget_change(apply);
	for (size_t i = 0; i < apply->targets_count; i++)
		target_close(&apply->targets[i]);
	free(apply->targets);
	store_close(apply->store);
	*apply = (struct apply){};
}

const struct kernel_attachment *apply_attachment_on(const struct apply *apply, const char *interface)
{
	for (size_t i = 0; i < apply->targets_count; i++) {
		const struct kernel_filter *filter = &apply->targets[i].filter;

		for (size_t k = 0; k < filter->attachments_count; k++)
			if (interfaces_are_one(filter->attachments[k].interface, interface))
				return &filter->attachments[k];
	}
	return NULL;
}

/* `unseen`: see apply_open_to_load(); NULL: a program that cannot be inspected is an error. */
static int open_in(enum store_mode mode, struct apply *apply, const char *state, const char *name,
		   struct reason *unseen, struct reason *reason)
{
	struct kernel_filter *filters = NULL;
	size_t count = 0;
	char dir[PATH_MAX];
	int error;

	*apply = (struct apply){};
	strncpy(apply->name, name, sizeof(apply->name) - 1);
	error = apply_state_dir(state, name, dir, sizeof(dir));
	if (error)
		return reason_set(reason, error, "--state '%.40s...': too long a name for a directory", state);
	error = store_open(dir, mode, &apply->store, reason);
	if (!error) {
		error = kernel_find_all(name, &filters, &count, reason);
		if (error == -EPERM && unseen) {
			*unseen = *reason;
			error = 0;
		}
	}
	if (!error)
		error = open_targets(apply, filters, count, reason);
	if (!error)
		apply_undo_overdue(apply);
	kernel_filters_free(filters, count);
	if (error)
		apply_close(apply);
	return error;
}

int apply_open(struct apply *apply, const char *state, const char *name, struct reason *reason)
{
	return open_in(STORE_WRITE, apply, state, name, NULL, reason);
}

int apply_open_to_load(struct apply *apply, const char *state, const char *name, struct reason *unseen,
		       struct reason *reason)
{
	unseen->text[0] = '\0';
	return open_in(STORE_WRITE, apply, state, name, unseen, reason);
}

int apply_try_open(struct apply *apply, const char *state, const char *name, struct reason *reason)
{
	return open_in(STORE_TRY, apply, state, name, NULL, reason);
}

/*
 * The size if no capacity is given. A small exact table stays in the CPU caches, and grows when needed. A
 * compact table is larger: its free slots are cheap, and make false positives rare.
 */
static __u64 default_slots(const struct store_info *info, const struct abi_options *options)
{
	const __u64 room = info->keys / 2 < ROOM_MOST ? info->keys / 2 : ROOM_MOST;
	const __u64 least = options->is_exact ? SLOTS_LEAST : 1ULL << ABI_SLOTS_DEFAULT_LOG2;
	const __u64 slots = table_slots_for(info->keys + (options->is_exact ? room : 0));

	return slots < least ? least : slots;
}

/* Refuses a capacity (0: not given) that is too small for the store, and a table that is too large. */
static int check_slots(const struct store_info *info, __u64 capacity, __u64 slots, struct reason *reason)
{
	if (capacity && info->keys > capacity)
		return reason_set(reason, -ENOSPC,
				  "the store holds %llu keys: more than the capacity of %llu; ask for more, or delete rules",
				  (unsigned long long)info->keys, (unsigned long long)capacity);
	if (slots <= 1ULL << ABI_SLOTS_MAX_LOG2)
		return 0;
	return reason_set(reason, -EINVAL, "a table holds at most %llu rules",
			  (1ULL << ABI_SLOTS_MAX_LOG2) * TABLE_LOAD_PERCENT / 100);
}

static int read_info(struct apply *apply, struct store_info *info, struct reason *reason)
{
	int error = store_info(apply->store, info);

	return error ? apply_say_unread(error, reason) : 0;
}

static int expire(struct apply *apply, void *count, struct reason *reason)
{
	return apply_expire(apply, count, reason);
}

int apply_load(struct apply *apply, const struct abi_options *options, __u64 capacity, struct target **target,
	       struct reason *reason)
{
	struct target *new = &apply->targets[apply->targets_count];
	struct store_info info;
	__u64 slots = 0, ended;
	/* For the reason at forget_ended(). */
	int error = options->is_exact ? 0 : apply_change(apply, expire, &ended, reason);

	if (!error)
		error = read_info(apply, &info, reason);
	if (!error) {
		slots = capacity ? table_slots_for(capacity) : default_slots(&info, options);
		error = check_slots(&info, capacity, slots, reason);
	}
	if (!error)
		error = target_create(new, options, slots, info.keys, reason);
	if (error)
		return error;
	apply->targets_count++;
	*target = new;
	error = target_update(new, apply->store, apply->name, reason);
	new->state = TARGET_UP_TO_DATE; /* nobody else has loaded it */
	return error;
}

int apply_resize(struct apply *apply, __u64 capacity, struct reason *reason)
{
	const __u64 slots = table_slots_for(capacity);
	struct store_info info;
	int error = read_info(apply, &info, reason);

	if (!error)
		error = check_slots(&info, capacity, slots, reason);
	for (size_t i = 0; i < apply->targets_count && !error; i++)
		error = target_rebuild(&apply->targets[i], apply->store, slots, reason);
	return error;
}

/* Renews one filter, unless it has what is asked for; `least` is in slots. */
static int renew(struct apply *apply, struct target *target, const struct abi_options *options, __u64 least,
		 size_t *renewed, struct reason *reason)
{
	const __u64 slots = table_slots(&target->table);
	bool is_own;
	int error = kernel_runs_own_programs(&target->filter, &is_own, reason);

	if (error || (is_own && !memcmp(options, &target->filter.options, sizeof(*options)) && slots >= least))
		return error;
	error = target_rebuild_as(target, apply->store, options, slots < least ? least : slots, reason);
	*renewed += !error;
	return error;
}

/* A compact table stores no ends: rules that have ended would match again. */
static int forget_ended(struct apply *apply, const struct abi_options *options, struct reason *reason)
{
	__u64 ended;

	for (size_t i = 0; i < apply->targets_count; i++)
		if (apply->targets[i].filter.options.is_exact && !options->is_exact)
			return apply_change(apply, expire, &ended, reason);
	return 0;
}

int apply_renew(struct apply *apply, const struct abi_options *options, __u64 capacity, size_t *renewed,
		struct reason *reason)
{
	const __u64 least = capacity ? table_slots_for(capacity) : 0;
	struct store_info info;
	int error = forget_ended(apply, options, reason);

	*renewed = 0;
	if (!error)
		error = read_info(apply, &info, reason);
	if (!error)
		error = check_slots(&info, 0, least, reason);
	for (size_t i = 0; i < apply->targets_count && !error; i++)
		error = renew(apply, &apply->targets[i], options, least, renewed, reason);
	return error;
}

int apply_check(struct apply *apply, struct target *target, struct table_difference *difference, struct reason *reason)
{
	return target_fill(target, apply->store, difference, reason);
}
