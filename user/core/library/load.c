// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The public functions that load and unload the filter, and set its mode. */
#include <errno.h>

#include <net/if.h>

#include "library/internal.h"

_Static_assert((int)XDP_CUCKOO_AUTO == KERNEL_AUTO && (int)XDP_CUCKOO_NATIVE == KERNEL_NATIVE &&
		       (int)XDP_CUCKOO_SKB == KERNEL_SKB,
	       "modes");

static int load(struct xdp_cuckoo_filter *handle, const char *interface, enum xdp_cuckoo_mode mode, bool is_outgoing)
{
	/* Always an exact table, as large as its rules need. Only the tool makes other tables. */
	const struct abi_options options = { .format = BUCKET_16, .is_exact = true, .has_counts = true };
	struct session *session = &handle->session;
	struct kernel_attachment *attachment = NULL;
	struct kernel_filter *kernel = NULL;
	struct filter *filter;
	struct reason ignored;
	bool is_there;
	int error = public_enter_alone(handle);

	if (!error && (unsigned int)mode > XDP_CUCKOO_SKB)
		error = reason_set(&handle->reason, -EINVAL, "mode %u does not exist", (unsigned int)mode);
	if (error)
		return public_leave(handle, error);
	error = public_open_session(handle);
	filter = session->filters;
	if (!error)
		kernel = session_filter_on(session, interface, false, &attachment);
	is_there = kernel;
	is_outgoing = is_outgoing && !error && !session_attachment_on(session, interface, true);
	if (!error && (!is_there || is_outgoing))
		error = change_check_guard(session, &handle->reason);
	if (!error && !session->filters_count)
		error = session_load(session, &options, 0, &filter, &handle->reason);
	if (!error && !is_there) {
		kernel = &filter->kernel;
		error = kernel_attach(kernel, interface, (enum kernel_mode)mode, &handle->reason);
	}
	if (!error && is_outgoing) {
		error = kernel_attach_outgoing(kernel, interface, &handle->reason);
		if (error && !is_there)
			kernel_detach_direction(kernel, &kernel->attachments[kernel->attachments_count - 1], &ignored);
	}
	public_close_session(handle);
	return public_leave(handle, error);
}

int xdp_cuckoo_load(struct xdp_cuckoo_filter *handle, const char *interface, enum xdp_cuckoo_mode mode)
{
	return load(handle, interface, mode, false);
}

int xdp_cuckoo_load_outgoing(struct xdp_cuckoo_filter *handle, const char *interface, enum xdp_cuckoo_mode mode)
{
	return load(handle, interface, mode, true);
}

int xdp_cuckoo_unload(struct xdp_cuckoo_filter *handle, const char *interface)
{
	struct kernel_filter *running = NULL;
	size_t count = 0, done = 0;
	int error = public_enter_alone(handle);

	if (!error)
		error = kernel_find_filters((struct kernel_wish){ .must_see = handle->name,
								  .takes_other_versions = true },
					    &running, &count, &handle->reason);
	for (size_t i = 0; i < count && !error; i++) {
		const struct kernel_attachment *attachments = running[i].attachments;

		for (size_t k = 0; k < running[i].attachments_count && !error; k++) {
			if (!public_has_name(handle, &running[i]) ||
			    kernel_goes_with_another(&running[i], &attachments[k]) ||
			    (interface && !interfaces_are_one(attachments[k].interface, interface)))
				continue;
			error = kernel_detach(&running[i], &attachments[k], &handle->reason);
			done += !error;
		}
		/* Another tool may have been faster. */
		if (interface && public_has_name(handle, &running[i]) &&
		    kernel_has_lost_interface(running, count, i, interfaces_index(interface))) {
			kernel_want_received(&running[i], interfaces_index(interface), false);
			done++;
		}
	}
	kernel_filters_free(running, count);
	if (!error && !done)
		error = reason_set(&handle->reason, -ENODEV, "'%.40s' runs no filter '%s'",
				   interface ? interface : "this host", handle->name);
	return public_leave(handle, error);
}

int xdp_cuckoo_set_monitor_only(struct xdp_cuckoo_filter *handle, bool is_on)
{
	int error = public_enter_alone(handle);

	if (error)
		return public_leave(handle, error);
	error = public_open_session(handle);
	if (!error)
		error = change_set_monitor_only(&handle->session, is_on, &handle->reason);
	public_close_session(handle);
	return public_leave(handle, error);
}
