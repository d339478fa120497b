// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Replaces a running filter of another version by one of this version, filled from the store. */
#include <errno.h>
#include <string.h>

#include "filter/filter.h"
#include "filter/internal.h"

/* Makes the new filter: as many slots as the old one, if its config makes sense, and the store's rules. */
static int make(struct filter *filter, const struct kernel_filter *kernel, struct store *store,
		const struct store_info *info, struct reason *reason)
{
	const struct abi_config *old = kernel->config;
	const __u64 slots = table_slots_of(old->geometry);
	const bool is_sound = slots >= 1ULL << ABI_SLOTS_MIN_LOG2 && slots <= 1ULL << ABI_SLOTS_MAX_LOG2;
	char name[ABI_NAME_BYTES];
	int error = filter_create(filter, &kernel->options, is_sound ? slots : 1ULL << ABI_SLOTS_DEFAULT_LOG2,
				  info->keys, reason);

	if (error)
		return error;
	memcpy(name, old->name, sizeof(name));
	filter->kernel.config->confirm_by = old->confirm_by;
	filter->kernel.config->pending_id = old->pending_id;
	filter->kernel.config->run = old->run & ABI_RUN_UNCONFIRMED;
	error = filter_update(filter, store, name, reason);
	if (error)
		filter_close(filter);
	return error;
}

int filter_take_over(struct filter *filter, struct kernel_filter *kernel, struct store *store, struct reason *reason)
{
	const struct kernel_attachment *held = kernel_held_attachment(kernel);
	struct store_info info;
	int error = store_info(store, &info);

	if (error)
		return filter_say_unread(error, reason);
	if (memcmp(kernel->config->store_id, info.id, sizeof(info.id)))
		return filter_say_other_store(kernel, reason);
	if (held)
		return reason_set(reason, -EBUSY,
				  "on '%s' libxdp's dispatcher holds a filter of another version of "
				  "xdp-cuckoo, which cannot be exchanged there; take it off (xdp-loader unload %s -i %u) "
				  "and load it again",
				  held->interface, held->interface, held->prog_id);
	error = make(filter, kernel, store, &info, reason);
	if (error)
		return error;
	filter_make_heir(filter->kernel.config, kernel->config);
	error = kernel_replace(kernel, &filter->kernel, reason);
	if (error) {
		filter_close(filter);
		return error;
	}
	filter_settle_heir(filter->kernel.config, kernel->config);
	filter->state = FILTER_TAKEN_OVER;
	return 0;
}
