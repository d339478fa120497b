/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the filter of this host does, for the host's status and for the panic of the fleet; and what the service manager
 * hears of `follow`.
 */
#ifndef XDP_CUCKOO_THIS_HOST_H
#define XDP_CUCKOO_THIS_HOST_H

#include "kernel/kernel.h"

struct host_filter {
	__u64 drops;            /* packets, by rules and policies, since the filter of this name was loaded */
	const char *passes_all; /* why no packet meets the rules; NULL: they do */
	bool is_panic;          /* the panic of the fleet is on here */
};

/* *filters, *count: see kernel_find_filters(). */
void host_filter_look(const char *name, struct kernel_filter **filters, size_t *count, struct host_filter *found);

/* Whether a filter of this name has yet to be told that the panic of the fleet is on, or off. */
bool host_panic_is_due(const char *name, struct kernel_filter **filters, size_t *count, bool is_on);

/* sd_notify(3), without its library: lines like "READY=1". Does nothing if no service manager listens. */
__attribute__((format(printf, 1, 2))) void service_notify(const char *format, ...);

#endif
