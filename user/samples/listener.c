// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "samples/samples.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/waiting.h"
#include "base/memory.h"
#include "change/change.h"
#include "parse_packet.h"

#define RETRY_MS 100

static int no_memory_reason(struct reason *reason)
{
	return reason_set(reason, -ENOMEM, "not enough memory to listen");
}

static int join(struct listener *listener, const struct kernel_filter *filter, struct reason *reason)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct kernel_samples *samples;
	__u64 before;
	int error = array_grow(&listener->samples, listener->count, sizeof(struct kernel_samples *));

	samples = error ? NULL : calloc(1, sizeof(*samples));
	if (!samples)
		return no_memory_reason(reason);
	error = kernel_samples_open(filter, samples, reason);
	if (!error) {
		before = kernel_samples_lease(samples);
		error = kernel_samples_renew(samples, &listener->kernel, reason);
		/* Another listener has the lease. It may be dead: if it does not renew the lease, that ends. */
		while (error == -EBUSY && filter->config->magic && kernel_samples_lease(samples) == before) {
			clock_pause(RETRY_MS);
			error = kernel_samples_renew(samples, &listener->kernel, reason);
		}
	}
	if (!error && epoll_ctl(listener->fd, EPOLL_CTL_ADD, kernel_samples_fd(samples), &event))
		error = no_memory_reason(reason);
	samples->is_there = true;
	if (!error) {
		listener->samples[listener->count++] = samples;
		return 0;
	}
	kernel_samples_release(samples, &listener->kernel);
	kernel_samples_close(samples);
	free(samples);
	return error;
}

static void add(struct abi_sampling *sum, const struct abi_sampling *more)
{
	sum->seen += more->seen;
	sum->limited += more->limited;
	sum->lost += more->lost;
}

static int listen_to(struct listener *listener, const struct kernel_filter *filter, struct reason *reason)
{
	const size_t count = listener->interfaces_count + filter->attachments_count;
	struct kernel_samples *samples = NULL;
	struct kernel_attachment *grown;
	int error = 0;

	for (size_t i = 0; i < listener->count && !samples; i++)
		if (listener->samples[i]->ring_id == filter->map[KERNEL_SAMPLES].id)
			samples = listener->samples[i];
	/* A filter without a name may have got another name meanwhile. Then it belongs to another listener. */
	if (!kernel_may_be_named(filter->config, listener->name)) {
		if (samples)
			kernel_samples_release(samples, &listener->kernel);
		return 0;
	}
	if (samples) {
		/* A new table of a filter keeps the ring but has its own lease. */
		samples->is_there = true;
		if (samples->config_id != filter->map[KERNEL_CONFIG].id)
			error = kernel_samples_switch(filter, samples, reason);
		if (!error)
			error = kernel_samples_renew(samples, &listener->kernel, reason);
	} else {
		error = join(listener, filter, reason);
	}
	if (error == -EBUSY && !filter->config->magic)
		return 0;
	if (error == -EBUSY)
		reason_set(reason, error, "another monitor or program listens to the filter on '%s': one at a time",
			   filter->attachments[0].interface);
	if (error)
		return error;
	grown = realloc(listener->interfaces, (count + 1) * sizeof(*grown));
	if (!grown)
		return no_memory_reason(reason);
	memcpy(grown + listener->interfaces_count, filter->attachments, filter->attachments_count * sizeof(*grown));
	listener->interfaces = grown;
	listener->interfaces_count = count;
	return 0;
}

int listener_renew(struct listener *listener, struct reason *reason)
{
	struct kernel_filter *filters = NULL;
	size_t count = 0;
	int error = kernel_find_filters((struct kernel_wish){ .must_see = listener->name }, &filters, &count, reason);

	/* Leaves the filters that were missing twice in a row. Their rings have been read in between. */
	for (size_t i = error ? 0 : listener->count; i-- > 0;) {
		struct kernel_samples *samples = listener->samples[i];
		struct abi_sampling seen;
		struct reason ignored;

		if (samples->is_there) {
			samples->is_there = false;
			continue;
		}
		if (!kernel_samples_count(samples, &seen, &ignored))
			add(&listener->gone, &seen);
		kernel_samples_close(samples);
		free(samples);
		listener->samples[i] = listener->samples[--listener->count];
	}
	if (!error)
		listener->interfaces_count = 0;
	for (size_t i = 0; i < count && !error; i++)
		error = listen_to(listener, &filters[i], reason);
	kernel_filters_free(filters, count);
	return error;
}

int listener_open(struct listener *listener, const char *name, __u32 every, __u32 rate, struct reason *reason)
{
	int error;

	*listener = (struct listener){ .name = name, .kernel.every = every, .fd = epoll_create1(EPOLL_CLOEXEC) };
	error = kernel_sample_credit(rate, &listener->kernel.credit, reason);
	if (listener->fd < 0)
		error = no_memory_reason(reason);
	while (!error && !listener->kernel.id) {
		error = random_draw(&listener->kernel.id, sizeof(listener->kernel.id));
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
		kernel_samples_release(listener->samples[i], &listener->kernel);
	grace_wait();
}

void listener_close(struct listener *listener)
{
	for (size_t i = 0; i < listener->count; i++) {
		kernel_samples_release(listener->samples[i], &listener->kernel);
		kernel_samples_close(listener->samples[i]);
		free(listener->samples[i]);
	}
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
	int error = 0;

	for (size_t i = 0; i < listener->count && !error; i++) {
		/* The filter may just have got another name. */
		const bool is_ours = kernel_may_be_named(listener->samples[i]->config, listener->name);

		error = kernel_samples_read(listener->samples[i], is_ours ? visit : skip, context);
	}
	return error;
}

int listener_count(const struct listener *listener, struct abi_sampling *sum, struct reason *reason)
{
	int error = 0;

	*sum = listener->gone;
	for (size_t i = 0; i < listener->count && !error; i++) {
		struct abi_sampling seen;

		error = kernel_samples_count(listener->samples[i], &seen, reason);
		if (!error)
			add(sum, &seen);
	}
	return error;
}

/* ---- sample cause ---- */

struct sample_view sample_view(const struct abi_sample *sample, struct store *store)
{
	struct sample_view view = {};
	struct flow flow = {}; /* the parser sets only the 4 bytes of an IPv4 address */

	parse_frame(sample->frame, sample->frame + sample->captured, &flow);
	view.has_flow = flow.family != FLOW_NO_FAMILY;
	view.is_sent = sample->verdict & ABI_SAMPLE_SENT;
	if (view.has_flow) {
		view.flow = rule_of_flow(&flow);
		if (view.is_sent)
			flow_exchange(&flow);
		view.packet = rule_of_packet(&flow);
		if (!view.is_sent && flow.fragment != FLOW_FRAGMENT_LATER &&
		    !flow_continues(flow.family, flow.port_kind, bpf_ntohs(flow.sport), flow.tcp_flags))
			view.packet.fields |= RULE_NEW;
	}
	if (sample->outcome < OUTCOME_POLICIES)
		view.cause = SAMPLE_POLICY;
	else if (store && view.has_flow && !query_test(store, &view.packet, &view.rule) &&
		 view.rule.action != RULE_PASS)
		view.cause = SAMPLE_RULE;
	else
		view.cause = SAMPLE_UNKNOWN_RULE;
	return view;
}
