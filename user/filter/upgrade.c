// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Replaces a running filter of another version by one of this version, filled from the store. */
#include <errno.h>
#include <string.h>

#include "filter/internal.h"

int filter_take_over(struct filter *filter, struct kernel_filter *kernel, struct store *store, struct reason *reason)
{
	const struct kernel_attachment *held = kernel_held_attachment(kernel);
	const struct abi_config *old = kernel->config;
	__u64 slots = table_slots_of(old->geometry);
	char name[ABI_NAME_BYTES];
	struct abi_config *config;
	struct store_info info;
	int error = store_info(store, &info);

	if (error)
		return store_unread_reason(error, reason);
	if (memcmp(old->store_id, info.id, sizeof(info.id)))
		return filter_other_store_reason(kernel, reason);
	if (held)
		return kernel_held_reason(kernel, held, "", -EBUSY, reason,
					  "the filter is of another version of xdp-cuckoo");
	if (slots < 1ULL << ABI_SLOTS_MIN_LOG2 || slots > 1ULL << ABI_SLOTS_MAX_LOG2)
		slots = 1ULL << ABI_SLOTS_DEFAULT_LOG2; /* the old config makes no sense */
	error = filter_create(filter, &kernel->options, slots, info.keys, reason);
	if (error)
		return error;
	config = filter->kernel.config;
	memcpy(name, old->name, sizeof(name));
	config->confirm_by = old->confirm_by;
	config->pending_id = old->pending_id;
	config->run = old->run & ABI_RUN_UNCONFIRMED;
	error = filter_update(filter, store, name, reason);
	/* The update may have replaced the new filter by a larger one. */
	config = filter->kernel.config;
	if (!error) {
		filter_start(filter);
		filter_inherit_panic(config, old);
		error = kernel_replace(kernel, &filter->kernel, reason);
	}
	if (error) {
		filter_close(filter);
		return error;
	}
	filter_settle_panic(config, old);
	filter->state = FILTER_TAKEN_OVER;
	return 0;
}
