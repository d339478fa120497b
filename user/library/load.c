// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The public functions that load and unload the filter, and set its mode. */
#include <errno.h>
#include <string.h>

#include "library/internal.h"

_Static_assert((int)XDP_CUCKOO_AUTO == KERNEL_AUTO && (int)XDP_CUCKOO_NATIVE == KERNEL_NATIVE &&
		       (int)XDP_CUCKOO_SKB == KERNEL_SKB,
	       "modes");

static int load(struct xdp_cuckoo_filter *filter, const char *interface, enum kernel_mode mode)
{
	/* Always an exact table, as large as its rules need. Only the tool makes other tables. */
	const struct abi_options options = { .format = BUCKET_16, .is_exact = true, .has_counts = true };
	struct target *target = filter->apply.targets;
	int error;

	if (apply_attachment_on(&filter->apply, interface))
		return 0;
	error = apply_check_guard(&filter->apply, &filter->reason);
	if (!error && !filter->apply.targets_count)
		error = apply_load(&filter->apply, &options, 0, &target, &filter->reason);
	return error ? error : kernel_attach(&target->filter, interface, mode, &filter->reason);
}

int xdp_cuckoo_load(struct xdp_cuckoo_filter *filter, const char *interface, enum xdp_cuckoo_mode mode)
{
	int error = public_enter_alone(filter);

	if (!error && (unsigned int)mode > XDP_CUCKOO_SKB)
		error = reason_set(&filter->reason, -EINVAL, "mode %u does not exist", (unsigned int)mode);
	if (!error) {
		error = public_open_apply(filter);
		if (!error)
			error = load(filter, interface, (enum kernel_mode)mode);
		public_close_apply(filter);
	}
	return public_leave(filter, error);
}

/* Adds the number of detached interfaces to *done. `interface` NULL: all. */
static int unload_from(struct xdp_cuckoo_filter *filter, const struct kernel_filter *running, const char *interface,
		       size_t *done)
{
	int error = 0;

	for (size_t i = 0; i < running->attachments_count && !error; i++) {
		if (interface && !interfaces_are_one(running->attachments[i].interface, interface))
			continue;
		error = kernel_detach(running, &running->attachments[i], &filter->reason);
		*done += !error;
	}
	return error;
}

static int unload(struct xdp_cuckoo_filter *filter, const char *interface)
{
	struct kernel_filter *running;
	size_t count, done = 0;
	int error = kernel_find_all(filter->name, &running, &count, &filter->reason);

	for (size_t i = 0; i < count && !error; i++)
		if (public_is_running(filter, &running[i]))
			error = unload_from(filter, &running[i], interface, &done);
	kernel_filters_free(running, count);
	if (error || done)
		return error;
	return reason_set(&filter->reason, -ENODEV, "'%.40s' runs no filter '%s'", interface ? interface : "this host",
			  filter->name);
}

int xdp_cuckoo_unload(struct xdp_cuckoo_filter *filter, const char *interface)
{
	int error = public_enter_alone(filter);

	return public_leave(filter, error ? error : unload(filter, interface));
}

int xdp_cuckoo_set_monitor_only(struct xdp_cuckoo_filter *filter, bool is_on)
{
	int error = public_enter_alone(filter);

	if (!error) {
		error = public_open_apply(filter);
		if (!error)
			error = apply_set_monitor_only(&filter->apply, is_on, &filter->reason);
		public_close_apply(filter);
	}
	return public_leave(filter, error);
}
