// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The public functions for samples of dropped packets. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "counters/counters.h"
#include "library/internal.h"
#include "base/clock.h"

#define RATE_DEFAULT 1000
#define NS_PER_S 1000000000LL

_Static_assert((int)XDP_CUCKOO_CAUSE_RULE == SAMPLE_RULE && (int)XDP_CUCKOO_CAUSE_POLICY == SAMPLE_POLICY &&
		       (int)XDP_CUCKOO_CAUSE_UNKNOWN_RULE == SAMPLE_UNKNOWN_RULE,
	       "causes");

/* ---- opening ---- */

static void close_samples(struct xdp_cuckoo_filter *filter)
{
	listener_close(&filter->listener);
	if (filter->renew_fd > 0)
		close(filter->renew_fd);
	filter->renew_fd = 0;
}

int xdp_cuckoo_samples_open(struct xdp_cuckoo_filter *filter, uint32_t every, uint32_t rate, int *fd)
{
	const struct itimerspec second = { { LISTENER_RENEW_MS / 1000, 0 }, { LISTENER_RENEW_MS / 1000, 0 } };
	struct epoll_event event = { .events = EPOLLIN };
	int error = public_enter(filter);

	*fd = -1;
	if (!error && filter->listener.fd)
		error = reason_set(&filter->reason, -EBUSY, "this handle samples already");
	if (!error && rate > LISTENER_RATE_MAX)
		error = reason_set(&filter->reason, -EINVAL, "a rate of %u per second: at most %d", rate,
				   LISTENER_RATE_MAX);
	if (!error)
		error = public_check_files(&filter->reason);
	if (error)
		return public_leave(filter, error);
	error = listener_open(&filter->listener, filter->name, every ? every : 1, rate ? rate : RATE_DEFAULT,
			      &filter->reason);
	if (error == -ENOENT)
		error = reason_set(&filter->reason, -ENODEV, "no filter '%s' is running here", filter->name);
	if (!error) {
		/* The timer and the samples are one descriptor for the caller: epoll descriptors nest. */
		filter->renew_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
		if (filter->renew_fd < 0 || timerfd_settime(filter->renew_fd, 0, &second, NULL) ||
		    epoll_ctl(filter->listener.fd, EPOLL_CTL_ADD, filter->renew_fd, &event))
			error = reason_set(&filter->reason, -errno, "cannot make a timer: %s", strerror(errno));
	}
	if (error)
		close_samples(filter);
	else
		*fd = filter->listener.fd;
	return public_leave(filter, error);
}

static int enter_sampling(struct xdp_cuckoo_filter *filter)
{
	int error = public_enter(filter);

	if (!error && !filter->listener.fd)
		error = reason_set(&filter->reason, -EINVAL, "this handle does not sample");
	return error;
}

int xdp_cuckoo_samples_close(struct xdp_cuckoo_filter *filter)
{
	int error = enter_sampling(filter);

	/* Closes also within a change that was refused, but returns the error of that. */
	if (error == filter->refused && filter->listener.fd)
		close_samples(filter);
	return public_leave(filter, error);
}

/* ---- reading ---- */

struct sample_reading {
	struct xdp_cuckoo_filter *filter;
	int (*visit)(const struct xdp_cuckoo_sample *sample, void *context);
	void *context;
	struct store *store;
	__s64 wall_ns; /* the wall clock when CLOCK_MONOTONIC was 0 */
	int ended;     /* the last result of the caller's function */
};

static int hand_over(const struct abi_sample *sample, void *context)
{
	struct sample_reading *reading = context;
	const struct sample_view view = sample_view(sample, reading->store);
	struct xdp_cuckoo_sample given = {
		.time_ns = reading->wall_ns + (__s64)sample->time_ns,
		.outcome = sample->outcome < OUTCOMES ? outcome_words[sample->outcome].name : "",
		.frame = sample->frame,
		.frame_bytes = sample->captured,
		.packet_bytes = sample->bytes,
		.interface = sample->ifindex,
		.cause = view.cause,
		.is_dropped = (sample->verdict & ABI_SAMPLE_VERDICT) == VERDICT_DROP,
		.is_sent = view.is_sent,
		.has_flow = view.has_flow,
	};

	if (view.has_flow) {
		const struct rule flow = rule_without_details(&view.packet);

		public_write_rule(NULL, &flow, &given.flow);
	}
	if (view.cause == SAMPLE_RULE)
		public_write_rule(reading->filter, &view.rule, &given.rule);
	reading->ended = reading->visit(&given, reading->context);
	return reading->ended ? -ECANCELED : 0;
}

int xdp_cuckoo_samples_read(struct xdp_cuckoo_filter *filter,
			    int (*visit)(const struct xdp_cuckoo_sample *sample, void *context), void *context)
{
	struct sample_reading reading = { .filter = filter, .visit = visit, .context = context };
	int renewed, error = enter_sampling(filter);
	__u64 times;

	if (error)
		return public_leave(filter, error);
	/* Before the timer has run out, nothing is renewed. What came before another listener took over is still read. */
	renewed = read(filter->renew_fd, &times, sizeof(times)) < 0 ?
			  0 :
			  listener_renew(&filter->listener, &filter->reason);
	if (renewed && renewed != -EBUSY)
		return public_leave(filter, renewed);
	error = public_open_store(filter, &reading.store);
	if (error)
		return public_leave(filter, error);
	reading.wall_ns = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);
	filter->is_visiting = true;
	error = listener_read(&filter->listener, hand_over, &reading);
	filter->is_visiting = false;
	public_close_store(filter, reading.store);
	if (reading.ended) {
		filter->reason.text[0] = '\0';
		error = reading.ended;
	} else if (error) {
		reason_set(&filter->reason, error, "cannot read the samples: %s", strerror(-error));
	}
	return public_leave(filter, error ? error : renewed);
}

int xdp_cuckoo_samples_counts(struct xdp_cuckoo_filter *filter, struct xdp_cuckoo_sampled *sampled)
{
	struct abi_sampling sum = {};
	int error = enter_sampling(filter);

	if (!error)
		error = listener_count(&filter->listener, &sum, &filter->reason);
	*sampled = (struct xdp_cuckoo_sampled){ sum.seen, sum.limited, sum.lost };
	return public_leave(filter, error);
}
