// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/clock.h"
#include "kernel/internal.h"

#define SAMPLES_AT_ONCE 4096 /* most samples of one read; without a limit it might never end */

int kernel_sample_credit(__u32 rate, __u32 *credit, struct reason *reason)
{
	double ticks_per_second, jiffies_per_second;
	__u32 tick;
	int error = kernel_tick(&tick, &ticks_per_second, reason);

	if (error)
		return error;
	jiffies_per_second = ticks_per_second * (1 << ABI_TICK_SHIFT);
	*credit = (__u32)(rate * (double)ABI_SAMPLE_PRICE / jiffies_per_second) + 1;
	return 0;
}

/* ---- opening ---- */

/* The memory stays mapped when `filter` is closed. 0 or -errno. */
static int map_config(const struct kernel_filter *filter, struct kernel_samples *samples)
{
	const struct kernel_map *map = &filter->map[KERNEL_CONFIG];
	void *memory = mmap(NULL, sizeof(*samples->config), PROT_READ | PROT_WRITE, MAP_SHARED, map->fd, 0);

	if (memory == MAP_FAILED)
		return -errno;
	if (samples->config)
		munmap(samples->config, sizeof(*samples->config));
	samples->config = memory;
	samples->config_id = map->id;
	return 0;
}

static int hand_over(void *context, void *data, size_t size)
{
	struct kernel_samples *samples = context;
	const struct abi_sample *sample = data;
	int result;

	if (size < sizeof(*sample) || sample->captured > ABI_SAMPLE_BYTES || sample->time_ns < samples->since_ns)
		return 0;
	result = samples->visit(sample, samples->context);
	if (!result && !--samples->left)
		return -EAGAIN;
	return result;
}

/* Adds up all CPUs since the filter was loaded. 0 or -errno. */
static int count(const struct kernel_samples *samples, struct abi_sampling *sum)
{
	const int cpus = libbpf_num_possible_cpus();
	struct abi_sampling *values = cpus > 0 ? calloc(cpus, sizeof(*values)) : NULL;
	const __u32 zero = 0;
	int error = values ? 0 : cpus < 0 ? cpus : -ENOMEM;

	*sum = (struct abi_sampling){};
	if (!error && bpf_map_lookup_elem(samples->sampling_fd, &zero, values))
		error = -errno;
	for (int cpu = 0; cpu < cpus && !error; cpu++) {
		sum->seen += values[cpu].seen;
		sum->limited += values[cpu].limited;
		sum->lost += values[cpu].lost;
	}
	free(values);
	return error;
}

int kernel_samples_open(const struct kernel_filter *filter, struct kernel_samples *samples, struct reason *reason)
{
	int error;

	kernel_catch_messages();
	*samples = (struct kernel_samples){};
	samples->ring_id = filter->map[KERNEL_SAMPLES].id;
	samples->sampling_fd = fcntl(filter->map[KERNEL_SAMPLING].fd, F_DUPFD_CLOEXEC, 0);
	samples->ring_fd = fcntl(filter->map[KERNEL_SAMPLES].fd, F_DUPFD_CLOEXEC, 0);
	error = samples->sampling_fd < 0 || samples->ring_fd < 0 ? -errno : map_config(filter, samples);
	if (!error) {
		samples->ring = ring_buffer__new(samples->ring_fd, hand_over, samples, NULL);
		error = samples->ring ? count(samples, &samples->before) : -errno;
	}
	samples->since_ns = clock_ns(CLOCK_MONOTONIC);
	if (!error)
		return 0;
	kernel_samples_close(samples);
	return kernel_refuse(reason, error, "cannot read the samples of the filter on ",
			     filter->attachments[0].interface);
}

void kernel_samples_close(struct kernel_samples *samples)
{
	ring_buffer__free(samples->ring);
	if (samples->ring_fd > 0)
		close(samples->ring_fd);
	if (samples->sampling_fd > 0)
		close(samples->sampling_fd);
	if (samples->config)
		munmap(samples->config, sizeof(*samples->config));
	*samples = (struct kernel_samples){};
}

int kernel_samples_switch(const struct kernel_filter *filter, struct kernel_samples *samples, struct reason *reason)
{
	const int error = map_config(filter, samples);

	return error ? kernel_refuse(reason, error, "cannot follow the filter on ", filter->attachments[0].interface) :
		       0;
}

/*
 * ---- the lease ----
 *
 * abi_config.listener is one word: the id of the listener and the tick at which its lease ends. 0: nobody listens. The
 * listeners of several processes want the word at the same time, so each takes it by compare-and-exchange: only the
 * process that replaces the very word that it has judged becomes the listener. If the word has changed meanwhile, the
 * exchange fails and gives the new word, which is judged in its turn.
 */

static bool is_mine(__u64 lease, const struct kernel_listener *listener)
{
	return lease >> ABI_LISTENER_SHIFT == listener->id;
}

__u64 kernel_samples_lease(const struct kernel_samples *samples)
{
	return __atomic_load_n(&samples->config->listener, __ATOMIC_ACQUIRE);
}

int kernel_samples_renew(const struct kernel_samples *samples, const struct kernel_listener *listener,
			 struct reason *reason)
{
	struct abi_config *config = samples->config;
	__u64 lease = kernel_samples_lease(samples);
	struct reason ignored;
	__s64 left_ms;
	__u32 until;
	int error = ticks_at(KERNEL_LEASE_MS, &until, reason);

	if (error)
		return error;
	/* Tries while the lease is free, this listener's, or over. */
	while (!lease || is_mine(lease, listener) || (!ticks_left((__u32)lease, &left_ms, &ignored) && left_ms < 0)) {
		if (!__atomic_compare_exchange_n(&config->listener, &lease,
						 (__u64)listener->id << ABI_LISTENER_SHIFT | until, false,
						 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			continue;
		/*
		 * Programs read these two only as a rate. A packet between the exchange and the stores is sampled at the
		 * rate of the listener before, so they need no order.
		 */
		__atomic_store_n(&config->sample_every, listener->every, __ATOMIC_RELAXED);
		__atomic_store_n(&config->sample_credit, listener->credit, __ATOMIC_RELAXED);
		return 0;
	}
	return reason_set(reason, -EBUSY, "somebody else listens to this filter");
}

void kernel_samples_release(const struct kernel_samples *samples, const struct kernel_listener *listener)
{
	struct abi_config *config = samples->config;
	__u64 lease = config ? kernel_samples_lease(samples) : 0;

	/* Ends when the exchange succeeds, or when somebody else has taken the lease over. */
	while (is_mine(lease, listener) &&
	       !__atomic_compare_exchange_n(&config->listener, &lease, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		;
}

/* ---- reading ---- */

int kernel_samples_fd(const struct kernel_samples *samples)
{
	return ring_buffer__epoll_fd(samples->ring);
}

int kernel_samples_read(struct kernel_samples *samples, int (*visit)(const struct abi_sample *sample, void *context),
			void *context)
{
	int result;

	samples->visit = visit;
	samples->context = context;
	samples->left = SAMPLES_AT_ONCE;
	result = ring_buffer__consume(samples->ring);
	return result == -EAGAIN || result > 0 ? 0 : result;
}

int kernel_samples_count(const struct kernel_samples *samples, struct abi_sampling *sum, struct reason *reason)
{
	const struct abi_sampling *before = &samples->before;
	int error = count(samples, sum);

	sum->seen -= before->seen;
	sum->limited -= before->limited;
	sum->lost -= before->lost;
	return error ? kernel_refuse(reason, error, "cannot read what was seen", "") : 0;
}
