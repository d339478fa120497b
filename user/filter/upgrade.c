// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Replaces a running filter of another version by one of this version, filled from the store. */
#include <errno.h>
#include <string.h>

#include "filter/filter.h"
#include "filter/internal.h"

/* Makes the new filter: as many slots as the old one, if its config makes sense, and the store's rules. */
static int make(struct target *target, const struct kernel_filter *filter, struct store *store,
		const struct store_info *info, struct reason *reason)
{
	const struct abi_config *old = filter->config;
	const __u64 slots = table_slots_of(old->geometry);
	const bool is_sound = slots >= 1ULL << ABI_SLOTS_MIN_LOG2 && slots <= 1ULL << ABI_SLOTS_MAX_LOG2;
	char name[ABI_NAME_BYTES];
	int error = target_create(target, &filter->options, is_sound ? slots : 1ULL << ABI_SLOTS_DEFAULT_LOG2,
				  info->keys, reason);

	if (error)
		return error;
	memcpy(name, old->name, sizeof(name));
	target->filter.config->confirm_by = old->confirm_by;
	target->filter.config->pending_id = old->pending_id;
	target->filter.config->run = old->run & ABI_RUN_UNCONFIRMED;
	error = target_update(target, store, name, reason);
	if (error)
		target_close(target);
	return error;
}

int target_take_over(struct target *target, struct kernel_filter *filter, struct store *store, struct reason *reason)
{
	const struct kernel_attachment *held = kernel_held_attachment(filter);
	struct store_info info;
	int error = store_info(store, &info);

	if (error)
		return target_say_store_unread(error, reason);
	if (memcmp(filter->config->store_id, info.id, sizeof(info.id)))
		return target_say_other_store(filter, reason);
	if (held)
		return reason_set(reason, -EBUSY,
				  "on '%s' libxdp's dispatcher holds a filter of another version of "
				  "xdp-cuckoo, which cannot be exchanged there; take it off (xdp-loader unload %s -i %u) "
				  "and load it again",
				  held->interface, held->interface, held->prog_id);
	error = make(target, filter, store, &info, reason);
	if (error)
		return error;
	target_make_heir(target->filter.config, filter->config);
	error = kernel_replace(filter, &target->filter, reason);
	if (error) {
		target_close(target);
		return error;
	}
	target_settle_heir(target->filter.config, filter->config);
	target->state = TARGET_TAKEN_OVER;
	return 0;
}
