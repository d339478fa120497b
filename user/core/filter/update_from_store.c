// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Makes a filter equal to its store: sets it up if it is new, repairs it if it differs, and gives it a larger table if
 * the rules do not fit. It differs if its generation (include/abi.h) is not that of the store. Decides which way is
 * taken; the ways themselves are in fill_in_place.c and new_table.c.
 */
#include <errno.h>
#include <string.h>

#include "filter/internal.h"

int filter_refill(struct filter *filter, struct store *store, struct reason *reason)
{
	struct filter_need need;
	int error = filter_read_need(store, &need);
	__u64 slots;

	if (error)
		return store_unread_reason(error, reason);
	slots = filter_slots_to_grow_to(filter, need.keys);
	error = need.info.rules && filter_can_build_successor(filter, slots) ?
			filter_rebuild(filter, store, NULL, slots, reason) :
			-ENOMEM;
	/* Without memory for a second table, or without the right to read the kernel's clock, this one is changed in place. */
	if (error)
		error = filter_fill_in_place(filter, store, NULL, reason);
	if (error == -ENOSPC)
		error = filter_rebuild(filter, store, NULL, slots, reason);
	if (!error)
		filter->kernel.config->generation = need.info.generation;
	return error;
}

/*
 * The filter passes every packet until filter_start(). If another loader made the maps, they have no layout yet, and
 * no part for addresses: they get two tables. If the keys fit into the whole room but not into half of it, one table
 * gets all of it.
 */
static int set_up(struct filter *filter, struct store *store, const char *name, struct reason *reason)
{
	const __u64 all = filter_all_slots(&filter->kernel);
	const struct bucket_geometry whole = table_geometry(all);
	struct abi_config *config = filter->kernel.config;
	struct filter_need need;
	const struct store_info *info = &need.info;
	int error = filter_read_need(store, &need);
	bool fits_whole;

	if (error)
		return store_unread_reason(error, reason);
	fits_whole = table_slots_of(whole) <= all && info->keys <= all * TABLE_LOAD_PERCENT / 100;
	if (!filter_abi_table(filter)->hint_shift) /* no layout yet */
		filter_lay_out(&filter->kernel, 1, (struct filter_parts){ .records = all });
	if (!filter->kernel.options.has_addresses && filter_tables(&filter->kernel) == 1 &&
	    2 * table_slots(&filter->table) <= all) {
		if (!filter_has_room(filter, need.keys) && fits_whole) {
			filter_tables_close(&filter->tables);
			error = filter_open_table_memory(filter, whole);
		} else if (filter->kernel.map[KERNEL_HINTS].bytes >= ABI_TABLES * ABI_HINTS(ABI_HINT_SHIFT_MOST)) {
			filter_lay_out(&filter->kernel, ABI_TABLES,
				       (struct filter_parts){ .records = all / ABI_TABLES });
		}
	}
	if (error)
		return reason_set(reason, error == -EINVAL ? -EPROTO : error, "cannot use all of the maps: %s",
				  strerror(-error));
	config->version = ABI_VERSION;
	config->options = filter->kernel.options;
	config->geometry = table_geometry(filter_tables_slots(&filter->tables));
	filter_abi_table(filter)->geometry = filter->table.geometry;
	filter_abi_table(filter)->plan = info->plan;
	memcpy(config->store_id, info->id, sizeof(config->store_id));
	strncpy(config->name, name, sizeof(config->name) - 1);
	error = filter_configure(filter, store, reason);
	if (error)
		return error;
	if (!filter_has_room(filter, need.keys)) {
		error = filter_rebuild(filter, store, NULL, filter_slots_to_grow_to(filter, need.keys), reason);
		if (!error)
			filter->kernel.config->generation = info->generation;
		return error;
	}
	error = filter_build(filter, store, &(struct filter_heirs){}, reason);
	if (!error)
		config->generation = info->generation;
	return error;
}

/* Notes the interfaces to which another tool, or an older version that noted none, attached the filter. */
static void note_interfaces(const struct kernel_filter *kernel)
{
	for (size_t i = 0; i < kernel->attachments_count; i++)
		if (!kernel_is_outgoing(&kernel->attachments[i]))
			kernel_want_received(kernel, kernel->attachments[i].ifindex, true);
}

void filter_start(struct filter *filter)
{
	struct abi_config *config = filter->kernel.config;

	if (filter->state != FILTER_SET_UP)
		return;
	config->magic = ABI_MAGIC;
	note_interfaces(&filter->kernel);
	__atomic_fetch_or(&config->run, ABI_RUN_SET_UP, __ATOMIC_RELEASE);
	filter_note_readers(filter);
}

int filter_update(struct filter *filter, struct store *store, const char *name, struct reason *reason)
{
	const struct abi_config *config = filter->kernel.config;
	struct store_info info;
	int error = store_info(store, &info);

	if (error)
		return store_unread_reason(error, reason);
	/* A tool that died during set-up leaves the magic or the flag unset. Until filter_start() everything passes. */
	if (!config->magic || !(config->run & ABI_RUN_SET_UP)) {
		filter->state = FILTER_SET_UP;
		return set_up(filter, store, name, reason);
	}
	if (memcmp(config->store_id, info.id, sizeof(info.id)))
		return filter_other_store_reason(&filter->kernel, reason);
	filter->state = config->generation == info.generation ? FILTER_UP_TO_DATE : FILTER_REPAIRED;
	filter_read_used(filter);
	if (filter->state == FILTER_REPAIRED) {
		/* Packets may still use what a process that died has just replaced. */
		error = filter_wait_for_packets(filter, reason);
		if (!error)
			error = filter_refill(filter, store, reason);
	}
	return error ? error : filter_configure(filter, store, reason);
}

/* ---- a running filter of another version is replaced by one of this version ---- */

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
	error = filter_create(filter, &kernel->options, slots, store, reason);
	if (error)
		return error;
	config = filter->kernel.config;
	memcpy(name, old->name, sizeof(name));
	config->confirm_by = old->confirm_by;
	config->pending_id = old->pending_id;
	if (old->version >= 8) { /* before, something else was there */
		config->outgoing = old->outgoing;
		config->kept = old->kept;
		config->keeps_monitor_only = old->keeps_monitor_only;
		config->forgot_received = old->forgot_received;
		memcpy(config->received, old->received, sizeof(config->received));
		memcpy(config->received_upper, old->received_upper, sizeof(config->received_upper));
	}
	config->run = old->run & ABI_RUN_UNCONFIRMED;
	error = filter_update(filter, store, name, reason);
	/* The update may have replaced the new filter by a larger one. */
	config = filter->kernel.config;
	if (!error) {
		filter_start(filter);
		filter_begin_replacing(config, old);
		error = kernel_replace(kernel, &filter->kernel, reason);
	}
	if (error) {
		filter_close(filter);
		return error;
	}
	filter_end_replacing(config, old);
	if (old->version < 15) /* some filters of version 14 noted none */
		note_interfaces(&filter->kernel);
	filter->state = FILTER_TAKEN_OVER;
	return 0;
}
