/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The samples of what a filter drops (struct abi_sample), and the lease by which there are any: held by one
 * listener, who is known by a number. Knows neither packets nor rules.
 */
#ifndef XDP_CUCKOO_KERNEL_SAMPLES_H
#define XDP_CUCKOO_KERNEL_SAMPLES_H

#include "kernel/kernel.h"

#define KERNEL_LEASE_MS 5000 /* to be renewed well before */
#define KERNEL_RATE_MAX 1000000

/* Who listens, and to how much. */
struct kernel_listener {
	__u32 id;     /* at random, not 0 */
	__u32 every;  /* one packet in so many; 1: each */
	__u32 credit; /* see kernel_sample_credit() */
};

struct ring_buffer; /* libbpf's */

struct kernel_samples {
	__u32 ring_id; /* of the map, by which the filter is known: a new table brings another config */
	bool is_there; /* for whoever looks for filters again */
	struct kernel_map config, sampling;
	struct abi_sampling before; /* counted when they were opened */
	__u64 since_ns;             /* when that was: older samples were somebody else's */
	int ring_fd;
	struct ring_buffer *ring;
	int (*visit)(const struct abi_sample *sample, void *context); /* of the read under way */
	void *context;
	unsigned int left; /* samples of it */
};

/* What the config wants for so many samples a second, 1 to KERNEL_RATE_MAX, on each CPU. 0; -errno. */
int kernel_sample_credit(__u32 rate, __u32 *credit, struct reason *reason);

/* Its descriptors are its own: the filter may be closed. It must not move. On failure it is closed. -errno. */
int kernel_samples_open(const struct kernel_filter *filter, struct kernel_samples *samples, struct reason *reason);
void kernel_samples_close(struct kernel_samples *samples);

/* Goes on in another table, which has taken the place of the one that they were opened on. -errno. */
int kernel_samples_follow(const struct kernel_filter *filter, struct kernel_samples *samples, struct reason *reason);

/* Takes the lease, or puts it off to KERNEL_LEASE_MS from now. -EBUSY: another listener has it; other -errno. */
int kernel_samples_renew(const struct kernel_samples *samples, const struct kernel_listener *listener,
			 struct reason *reason);

/* The lease as it stands: another number each time that it is put off by a good part of a second. */
__u64 kernel_samples_lease(const struct kernel_samples *samples);

/* Gives the lease up, if it is this listener's; also of samples that are closed. */
void kernel_samples_release(const struct kernel_samples *samples, const struct kernel_listener *listener);

/* Readable where there are samples. */
int kernel_samples_fd(const struct kernel_samples *samples);

/* Hands over what there is, or the first thousands of it, until `visit` returns -errno: that, or 0. */
int kernel_samples_read(struct kernel_samples *samples, int (*visit)(const struct abi_sample *sample, void *context),
			void *context);

/* The sum over all CPUs since they were opened; credit and refilled say nothing. */
int kernel_samples_count(const struct kernel_samples *samples, struct abi_sampling *sum, struct reason *reason);

#endif
