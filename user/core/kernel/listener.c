// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Receives samples of the packets that filters drop. include/sample.h explains samples and leases. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/waiting.h"
#include "kernel/internal.h"

#define LEASE_MS 5000 /* much longer than LISTENER_RENEW_MS */
#define RETRY_MS 100
#define SAMPLES_AT_ONCE 4096 /* most samples of one read; without a limit it might never end */

/* The samples of one filter. libbpf keeps a pointer to it. */
struct samples {
	__u32 ring_id; /* of the map of samples; it identifies the filter, because a new table has another config */
	bool is_there; /* for a search for filters */
	struct abi_config *config; /* mapped */
	__u32 config_id;
	int sampling_fd, ring_fd;
	struct abi_sampling before; /* counts when the samples were opened */
	__u64 since_ns;             /* when the samples were opened; older samples were for another listener */
	struct ring_buffer *ring;
	/* Of the present read. */
	int (*visit)(const struct abi_sample *sample, void *context);
	void *context;
	unsigned int left; /* samples that it may still take */
};

static int no_memory_reason(struct reason *reason)
{
	return reason_set(reason, -ENOMEM, "not enough memory to listen");
}

/* ---- counts ---- */

static void add(struct abi_sampling *sum, const struct abi_sampling *more)
{
	sum->seen += more->seen;
	sum->limited += more->limited;
	sum->lost += more->lost;
}

/* Adds up all CPUs, without the counts in `before`. 0 or -errno. `credit` and `refilled` have no meaning. */
static int count(const struct samples *samples, struct abi_sampling *sum)
{
	const int cpus = kernel_cpus();
	FREED struct abi_sampling *values = cpus > 0 ? calloc(cpus, sizeof(*values)) : NULL;
	const __u32 zero = 0;
	int error = values ? 0 : cpus < 0 ? cpus : -ENOMEM;

	*sum = (struct abi_sampling){ .seen = -samples->before.seen,
				      .limited = -samples->before.limited,
				      .lost = -samples->before.lost };
	if (!error && bpf_map_lookup_elem(samples->sampling_fd, &zero, values))
		error = -errno;
	for (int cpu = 0; cpu < cpus && !error; cpu++)
		add(sum, &values[cpu]);
	return error;
}

/*
 * ---- the lease ----
 *
 * abi_config.listener is one word: the id of the listener and the tick at which its lease ends. 0: nobody listens. The
 * listeners of several processes want the word at the same time, so each takes it by compare-and-exchange: only the
 * process that replaces the very word that it has judged becomes the listener. If the word has changed meanwhile, the
 * exchange fails and gives the new word, which is judged in its turn.
 */

static bool is_mine(__u64 lease, const struct listener *listener)
{
	return lease >> ABI_LISTENER_SHIFT == listener->id;
}

/* Each renewal gives the lease another value, unless the last renewal was a moment before. */
static __u64 lease_of(const struct samples *samples)
{
	return __atomic_load_n(&samples->config->listener, __ATOMIC_ACQUIRE);
}

/* Takes the lease, or renews it. 0; -EBUSY: another listener has it; other -errno. */
static int renew(const struct samples *samples, const struct listener *listener, struct reason *reason)
{
	struct abi_config *config = samples->config;
	__u64 lease = lease_of(samples);
	struct reason ignored;
	__s64 left_ms;
	__u32 until;
	int error = ticks_at(LEASE_MS, &until, reason);

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

static void release(const struct samples *samples, const struct listener *listener)
{
	__u64 lease = samples->config ? lease_of(samples) : 0;

	/* Ends when the exchange succeeds, or when somebody else has taken the lease over. */
	while (is_mine(lease, listener) && !__atomic_compare_exchange_n(&samples->config->listener, &lease, 0, false,
									__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		;
}

/* ---- the samples of one filter ---- */

static int hand_over(void *context, void *data, size_t size)
{
	struct samples *samples = context;
	const struct abi_sample *sample = data;
	int result;

	if (size < sizeof(*sample) || sample->captured > ABI_SAMPLE_BYTES || sample->time_ns < samples->since_ns)
		return 0;
	result = samples->visit(sample, samples->context);
	return !result && !--samples->left ? -EAGAIN : result;
}

/* The memory stays mapped when `filter` is closed. 0 or -errno. */
static int map_config(const struct kernel_filter *filter, struct samples *samples)
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

static void close_samples(struct samples *samples, const struct listener *listener)
{
	release(samples, listener);
	ring_buffer__free(samples->ring);
	if (samples->ring_fd > 0)
		close(samples->ring_fd);
	if (samples->sampling_fd > 0)
		close(samples->sampling_fd);
	if (samples->config)
		munmap(samples->config, sizeof(*samples->config));
	free(samples);
}

/* Duplicates descriptors, so `filter` may be closed. */
static int open_samples(const struct kernel_filter *filter, struct samples *samples, struct reason *reason)
{
	int error;

	kernel_catch_messages();
	samples->is_there = true;
	samples->ring_id = filter->map[KERNEL_SAMPLES].id;
	samples->sampling_fd = fcntl(filter->map[KERNEL_SAMPLING].fd, F_DUPFD_CLOEXEC, 0);
	samples->ring_fd = fcntl(filter->map[KERNEL_SAMPLES].fd, F_DUPFD_CLOEXEC, 0);
	error = samples->sampling_fd < 0 || samples->ring_fd < 0 ? -errno : map_config(filter, samples);
	if (!error) {
		samples->ring = ring_buffer__new(samples->ring_fd, hand_over, samples, NULL);
		error = samples->ring ? count(samples, &samples->before) : -errno;
	}
	samples->since_ns = clock_ns(CLOCK_MONOTONIC);
	return error ? kernel_refuse(reason, error, "cannot read the samples of the filter on ",
				     filter->attachments[0].interface) :
		       0;
}

/* ---- the filters of a listener ---- */

static int join(struct listener *listener, const struct kernel_filter *filter, struct reason *reason)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct samples *samples;
	__u64 before;
	int error = array_grow(&listener->samples, listener->count, sizeof(struct samples *));

	samples = error ? NULL : calloc(1, sizeof(*samples));
	if (!samples)
		return no_memory_reason(reason);
	error = open_samples(filter, samples, reason);
	if (!error) {
		before = lease_of(samples);
		error = renew(samples, listener, reason);
		/* Another listener has the lease. It may be dead: if it does not renew the lease, that ends. */
		while (error == -EBUSY && filter->config->magic && lease_of(samples) == before) {
			clock_pause(RETRY_MS);
			error = renew(samples, listener, reason);
		}
	}
	if (!error && epoll_ctl(listener->fd, EPOLL_CTL_ADD, ring_buffer__epoll_fd(samples->ring), &event))
		error = no_memory_reason(reason);
	if (error)
		close_samples(samples, listener);
	else
		listener->samples[listener->count++] = samples;
	return error;
}

static int listen_to(struct listener *listener, const struct kernel_filter *filter, struct reason *reason)
{
	const size_t interfaces = listener->interfaces_count + filter->attachments_count;
	const char *interface = filter->attachments[0].interface;
	struct kernel_attachment *grown;
	struct samples *samples = NULL;
	int error = 0;

	for (size_t i = 0; i < listener->count && !samples; i++)
		if (listener->samples[i]->ring_id == filter->map[KERNEL_SAMPLES].id)
			samples = listener->samples[i];
	/* A filter without a name may have got another name meanwhile. Then it belongs to another listener. */
	if (!kernel_may_be_named(filter->config, listener->name)) {
		if (samples)
			release(samples, listener);
		return 0;
	}
	if (samples) {
		/* A new table of a filter keeps the ring but has its own lease. */
		samples->is_there = true;
		if (samples->config_id != filter->map[KERNEL_CONFIG].id)
			error = map_config(filter, samples);
		error = error ? kernel_refuse(reason, error, "cannot follow the filter on ", interface) :
				renew(samples, listener, reason);
	} else {
		error = join(listener, filter, reason);
	}
	if (error == -EBUSY && !filter->config->magic)
		return 0;
	if (error == -EBUSY)
		reason_set(reason, error, "another monitor or program listens to the filter on '%s': one at a time",
			   interface);
	if (error)
		return error;
	grown = realloc(listener->interfaces, (interfaces + 1) * sizeof(*grown));
	if (!grown)
		return no_memory_reason(reason);
	memcpy(grown + listener->interfaces_count, filter->attachments, filter->attachments_count * sizeof(*grown));
	listener->interfaces = grown;
	listener->interfaces_count = interfaces;
	return 0;
}

int listener_renew(struct listener *listener, struct reason *reason)
{
	struct kernel_filter *filters = NULL;
	size_t filters_count = 0;
	int error = kernel_find_filters((struct kernel_wish){ .must_see = listener->name }, &filters, &filters_count,
					reason);

	/* Leaves the filters that were missing twice in a row. Their rings have been read in between. */
	for (size_t i = error ? 0 : listener->count; i-- > 0;) {
		struct samples *samples = listener->samples[i];
		struct abi_sampling seen;

		if (samples->is_there) {
			samples->is_there = false;
			continue;
		}
		if (!count(samples, &seen))
			add(&listener->gone, &seen);
		close_samples(samples, listener);
		listener->samples[i] = listener->samples[--listener->count];
	}
	if (!error)
		listener->interfaces_count = 0;
	for (size_t i = 0; i < filters_count && !error; i++)
		error = listen_to(listener, &filters[i], reason);
	kernel_filters_free(filters, filters_count);
	return error;
}

int listener_open(struct listener *listener, const char *name, __u32 every, __u32 rate, struct reason *reason)
{
	double ticks_per_second;
	__u32 ignored;
	int error;

	*listener = (struct listener){ .name = name, .every = every, .fd = epoll_create1(EPOLL_CLOEXEC) };
	error = kernel_tick(&ignored, &ticks_per_second, reason);
	if (!error)
		listener->credit = rate * (double)ABI_SAMPLE_PRICE / ticks_per_second / (1 << ABI_TICK_SHIFT) + 1;
	if (listener->fd < 0)
		error = no_memory_reason(reason);
	while (!error && !listener->id) {
		error = random_draw(&listener->id, sizeof(listener->id));
		if (error)
			reason_set(reason, error, "cannot draw a random number: %s", strerror(-error));
	}
	if (!error)
		error = listener_renew(listener, reason);
	if (!error && !listener->count)
		error = -ENOENT;
	if (error)
		listener_close(listener);
	return error;
}

void listener_stop(struct listener *listener)
{
	for (size_t i = 0; i < listener->count; i++)
		release(listener->samples[i], listener);
	grace_wait();
}

void listener_close(struct listener *listener)
{
	for (size_t i = 0; i < listener->count; i++)
		close_samples(listener->samples[i], listener);
	free(listener->samples);
	free(listener->interfaces);
	if (listener->fd > 0)
		close(listener->fd);
	*listener = (struct listener){};
}

static int skip(const struct abi_sample *sample, void *context)
{
	(void)sample, (void)context;
	return 0;
}

int listener_read(struct listener *listener, int (*visit)(const struct abi_sample *sample, void *context),
		  void *context)
{
	int result = 0;

	for (size_t i = 0; i < listener->count && (result >= 0 || result == -EAGAIN); i++) {
		struct samples *samples = listener->samples[i];

		/* The filter may just have got another name. */
		samples->visit = kernel_may_be_named(samples->config, listener->name) ? visit : skip;
		samples->context = context;
		samples->left = SAMPLES_AT_ONCE;
		result = ring_buffer__consume(samples->ring);
	}
	return result == -EAGAIN || result > 0 ? 0 : result;
}

int listener_count(const struct listener *listener, struct abi_sampling *sum, struct reason *reason)
{
	int error = 0;

	*sum = listener->gone;
	for (size_t i = 0; i < listener->count && !error; i++) {
		struct abi_sampling seen;

		error = count(listener->samples[i], &seen);
		if (!error)
			add(sum, &seen);
	}
	return error ? kernel_refuse(reason, error, "cannot read what was seen", "") : 0;
}
