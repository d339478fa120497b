// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The public functions that load and unload the filter, and set its mode. */
#include <errno.h>
#include <stdlib.h>

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
	struct filter *ignored;
	int error = public_enter_alone(handle);

	if (!error && (unsigned int)mode > XDP_CUCKOO_SKB)
		error = reason_set(&handle->reason, -EINVAL, "mode %u does not exist", (unsigned int)mode);
	if (error)
		return public_leave(handle, error);
	error = public_open_session(handle);
	if (!error && (!session_attachment_on(session, interface, false) ||
		       (is_outgoing && !session_attachment_on(session, interface, true))))
		error = change_check_guard(session, &handle->reason);
	if (!error && !session->filters_count)
		error = session_load(session, &options, 0, &ignored, &handle->reason);
	if (!error)
		error = session_attach(session, interface, (enum kernel_mode)mode, is_outgoing, &handle->reason);
	if (!error)
		error = session_keep(session, interface, is_outgoing, &handle->reason);
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
	char *const interfaces[] = { (char *)interface };
	const struct kernel_where where = { handle->name, interfaces, interface != NULL, .is_nameless_too = true };
	struct kernel_filter *running = NULL;
	struct kernel_taken *taken = NULL;
	size_t count = 0, done = 0;
	int error = public_enter_alone(handle);

	if (!error)
		error = kernel_find_filters((struct kernel_wish){ .must_see = handle->name,
								  .takes_other_versions = true },
					    &running, &count, &handle->reason);
	if (!error && kernel_take_off(running, count, &where, &taken, &done))
		error = reason_set(&handle->reason, -ENOMEM, "not enough memory");
	for (size_t i = 0; i < done && !error; i++)
		if ((error = taken[i].error))
			handle->reason = taken[i].reason;
	free(taken);
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
