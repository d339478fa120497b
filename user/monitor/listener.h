/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Listens to what the filters of a name drop, whatever becomes of them meanwhile: a table that takes another's
 * place is followed, a filter that comes is joined. Knows neither packets nor rules.
 */
#ifndef XDP_CUCKOO_LISTENER_H
#define XDP_CUCKOO_LISTENER_H

#include "kernel/samples.h"

#define LISTENER_RENEW_MS 1000 /* how often listener_renew() is to be called */

struct listener {
	const char *name; /* of the filters */
	struct kernel_listener kernel;
	struct kernel_samples **samples; /* of each filter */
	size_t count;
	struct abi_sampling gone;             /* what has been seen of filters that are gone */
	struct kernel_attachment *interfaces; /* that the filters run on */
	size_t interfaces_count;
	int fd; /* readable where there are samples */
};

/*
 * 0; -ENOENT, without a reason: no such filter runs; -EBUSY: somebody else listens. Where whoever listened last has died this waits
 * until the kernel notices too: KERNEL_LEASE_MS at most. On failure it is closed. listener_close() accepts a
 * zeroed one.
 */
int listener_open(struct listener *listener, const char *name, __u32 every, __u32 rate, struct reason *reason);
void listener_close(struct listener *listener);

/* Looks for new tables and filters, and goes on listening to all. -EBUSY: somebody else does; other -errno. */
int listener_renew(struct listener *listener, struct reason *reason);

/* No more samples come: when this returns all are there to be read. */
void listener_stop(struct listener *listener);

/* Hands over the samples that there are, until `visit` returns -errno: that, or 0. */
int listener_read(struct listener *listener, int (*visit)(const struct abi_sample *sample, void *context),
		  void *context);

/* What was seen since listener_open(), of all filters. */
int listener_count(const struct listener *listener, struct abi_sampling *sum, struct reason *reason);

#endif
