/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Samples of the packets that a filter drops (struct abi_sample). There are samples only while a listener
 * has the lease. A listener is known by a number. Knows neither packets nor rules.
 */
#ifndef XDP_CUCKOO_KERNEL_SAMPLES_H
#define XDP_CUCKOO_KERNEL_SAMPLES_H

#include "kernel/kernel.h"

#define KERNEL_LEASE_MS 5000 /* renew the lease well before its end */
#define KERNEL_RATE_MAX 1000000

/* The listener, and how many samples it wants. */
struct kernel_listener {
	__u32 id;     /* random, not 0 */
	__u32 every;  /* take each `every`th packet */
	__u32 credit; /* see kernel_sample_credit() */
};

struct ring_buffer; /* libbpf's */

struct kernel_samples {
	__u32 ring_id; /* of the map of samples; it identifies the filter, because a new table has another config */
	bool is_there; /* for a caller that searches for filters again */
	struct abi_config *config; /* mapped; NULL: the samples are closed */
	__u32 config_id;
	int sampling_fd;
	struct abi_sampling before; /* counts when the samples were opened */
	__u64 since_ns;             /* when the samples were opened; older samples were for another listener */
	int ring_fd;
	struct ring_buffer *ring;
	int (*visit)(const struct abi_sample *sample, void *context); /* of kernel_samples_read() */
	void *context;
	unsigned int left; /* samples that this read may still take */
};

/* The credit for `rate` samples per second on each CPU; `rate` is 1 to KERNEL_RATE_MAX. 0 or -errno. */
int kernel_sample_credit(__u32 rate, __u32 *credit, struct reason *reason);

/* Duplicates descriptors, so `filter` may be closed. *samples must not move. 0 or -errno: closed. */
int kernel_samples_open(const struct kernel_filter *filter, struct kernel_samples *samples, struct reason *reason);
void kernel_samples_close(struct kernel_samples *samples);

/* Continues with `filter`, which replaced the filter of the samples. 0 or -errno. */
int kernel_samples_follow(const struct kernel_filter *filter, struct kernel_samples *samples, struct reason *reason);

/* Takes the lease, or renews it to KERNEL_LEASE_MS. 0; -EBUSY: another listener has it; other -errno. */
int kernel_samples_renew(const struct kernel_samples *samples, const struct kernel_listener *listener,
			 struct reason *reason);

/* The present lease. Each renewal gives it another value, unless the last renewal was a moment before. */
__u64 kernel_samples_lease(const struct kernel_samples *samples);

/* Gives the lease up if this listener has it. Does nothing for closed samples. */
void kernel_samples_release(const struct kernel_samples *samples, const struct kernel_listener *listener);

/* A descriptor that is readable while there are samples. */
int kernel_samples_fd(const struct kernel_samples *samples);

/* Visits samples, at most some thousands, until `visit` returns -errno. Returns that, or 0. */
int kernel_samples_read(struct kernel_samples *samples, int (*visit)(const struct abi_sample *sample, void *context),
			void *context);

/* The counts of all CPUs since the samples were opened. `credit` and `refilled` have no meaning. */
int kernel_samples_count(const struct kernel_samples *samples, struct abi_sampling *sum, struct reason *reason);

#endif
