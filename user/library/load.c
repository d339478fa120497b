// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The public functions that load and unload the filter, and set its mode. */
#include <errno.h>
#include <string.h>

#include "library/internal.h"

_Static_assert((int)XDP_CUCKOO_AUTO == KERNEL_AUTO && (int)XDP_CUCKOO_NATIVE == KERNEL_NATIVE &&
		       (int)XDP_CUCKOO_SKB == KERNEL_SKB,
	       "modes");

static int load(struct xdp_cuckoo_filter *kernel, const char *interface, enum kernel_mode mode)
{
	/* Always an exact table, as large as its rules need. Only the tool makes other tables. */
	const struct abi_options options = { .format = BUCKET_16, .is_exact = true, .has_counts = true };
	struct filter *filter = kernel->session.filters;
	int error;

	if (session_attachment_on(&kernel->session, interface))
		return 0;
	error = change_check_guard(&kernel->session, &kernel->reason);
	if (!error && !kernel->session.filters_count)
		error = session_load(&kernel->session, &options, 0, &filter, &kernel->reason);
	return error ? error : kernel_attach(&filter->kernel, interface, mode, &kernel->reason);
}

int xdp_cuckoo_load(struct xdp_cuckoo_filter *kernel, const char *interface, enum xdp_cuckoo_mode mode)
{
	int error = public_enter_alone(kernel);

	if (!error && (unsigned int)mode > XDP_CUCKOO_SKB)
		error = reason_set(&kernel->reason, -EINVAL, "mode %u does not exist", (unsigned int)mode);
	if (!error) {
		error = public_open_apply(kernel);
		if (!error)
			error = load(kernel, interface, (enum kernel_mode)mode);
		public_close_session(kernel);
	}
	return public_leave(kernel, error);
}

/* Adds the number of detached interfaces to *done. `interface` NULL: all. */
static int unload_from(struct xdp_cuckoo_filter *kernel, const struct kernel_filter *running, const char *interface,
		       size_t *done)
{
	int error = 0;

	for (size_t i = 0; i < running->attachments_count && !error; i++) {
		if (interface && !interfaces_are_one(running->attachments[i].interface, interface))
			continue;
		error = kernel_detach(running, &running->attachments[i], &kernel->reason);
		*done += !error;
	}
	return error;
}

static int unload(struct xdp_cuckoo_filter *kernel, const char *interface)
{
	struct kernel_filter *running;
	size_t count, done = 0;
	int error = kernel_find_all(kernel->name, &running, &count, &kernel->reason);

	for (size_t i = 0; i < count && !error; i++)
		if (public_is_running(kernel, &running[i]))
			error = unload_from(kernel, &running[i], interface, &done);
	kernel_filters_free(running, count);
	if (error || done)
		return error;
	return reason_set(&kernel->reason, -ENODEV, "'%.40s' runs no filter '%s'", interface ? interface : "this host",
			  kernel->name);
}

int xdp_cuckoo_unload(struct xdp_cuckoo_filter *kernel, const char *interface)
{
	int error = public_enter_alone(kernel);

	return public_leave(kernel, error ? error : unload(kernel, interface));
}

int xdp_cuckoo_set_monitor_only(struct xdp_cuckoo_filter *kernel, bool is_on)
{
	int error = public_enter_alone(kernel);

	if (!error) {
		error = public_open_apply(kernel);
		if (!error)
			error = change_set_monitor_only(&kernel->session, is_on, &kernel->reason);
		public_close_session(kernel);
	}
	return public_leave(kernel, error);
}
