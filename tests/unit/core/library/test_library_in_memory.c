// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The library's calls for filters that run in memory: loading, unloading, samples; and each call when something fails below it. */
#include "unit/test.h"

#ifndef __x86_64__
TEST(test_library_in_memory)
{
	fprintf(stderr, "skipped: steps/changes.h needs x86-64\n");
	skip();
}

TEST_MAIN(NULL, NULL)
#else
#include <poll.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include "base/clock.h"
#include "counters/counters.h"
#include "library/internal.h"
#include "steps/changes.h"
#include "unit/library_fixture.h"

/* ---- what fails below the library ---- */

static struct {
	unsigned int until; /* the call that fails, from 1; 0: none does */
	bool has_failed;
} failure;

static bool fails(void)
{
	if (!failure.until || --failure.until)
		return false;
	return failure.has_failed = true;
}

#define FAILING(name, parameters, arguments, error) \
	int __real_##name parameters; \
	int __wrap_##name parameters; \
	int __wrap_##name parameters \
	{ \
		return fails() ? (error) : __real_##name arguments; \
	}

FAILING(store_lists, (struct store * store, struct store_lists *lists), (store, lists), -EIO)
FAILING(store_get, (struct store * store, struct rule *rule), (store, rule), -EIO)
FAILING(store_each, (struct store * store, int (*visit)(const struct rule *rule, void *context), void *context),
	(store, visit, context), -EIO)
FAILING(store_info, (struct store * store, struct store_info *info), (store, info), -EIO)
FAILING(store_settings, (struct store * store, struct store_settings *settings), (store, settings), -EIO)
FAILING(store_shapes, (struct store * store, struct shape_list *shapes), (store, shapes), -EIO)
FAILING(store_list_delete, (struct store * store, unsigned int number), (store, number), -EIO)
FAILING(rule_set_add, (struct rule_set * set, const struct rule *rule), (set, rule), -ENOMEM)
FAILING(query_decide,
	(struct store * store, const struct rule *asked, enum query_packets packets, struct query_finding *finding),
	(store, asked, packets, finding), -EIO)
FAILING(session_open_store,
	(const char *state, const char *name, enum store_mode mode, struct store **store, struct reason *why),
	(state, name, mode, store, why), reason_set(why, -EIO, "the test refuses"))
FAILING(tally_add, (struct tally * tally, const struct kernel_filter *filter, struct reason *why), (tally, filter, why),
	reason_set(why, -EIO, "the test refuses"))
FAILING(timerfd_create, (int clock, int flags), (clock, flags), (errno = EMFILE, -1))

/* By the compiler's flags one of these is called. */
#define FAILING_PRINT(name, parameters) \
	int __wrap_##name parameters; \
	int __wrap_##name parameters \
	{ \
		va_list arguments; \
		int length; \
\
		if (fails()) \
			return -1; \
		va_start(arguments, format); \
		length = vasprintf(text, format, arguments); \
		va_end(arguments); \
		return length; \
	}

FAILING_PRINT(asprintf, (char **text, const char *format, ...))
FAILING_PRINT(__asprintf_chk, (char **text, __attribute__((unused)) int flag, const char *format, ...))

/* What stands in place of this host, its kernel and its packets. */
static struct {
	unsigned int guards, checks, attached, attached_outgoing, closed, renewed;
	int lockout; /* the answer of change_check_guard() */
	enum kernel_mode mode;
	struct kernel_where where;
	struct kernel_wish wish; /* the last one */
	size_t running, taken;   /* filters, and the interfaces that they leave */
	int taken_errors[2];
	__u32 every, rate;
	int listens, renews, reads; /* the answers of the listener */
	bool is_no_epoll;
	const struct abi_sample *sample;
} host;

static bool is_silent; /* libbpf is */
static bool waits;     /* the last session that was opened */

void __wrap_kernel_catch_messages(void);
void __wrap_kernel_catch_messages(void)
{
	is_silent = true;
}

void __wrap_kernel_catch_no_messages(void);
void __wrap_kernel_catch_no_messages(void)
{
	is_silent = false;
}

int __real_session_open(struct session *session, const char *state, const char *name, struct reason *why);
int __wrap_session_open(struct session *session, const char *state, const char *name, struct reason *why);
int __wrap_session_open(struct session *session, const char *state, const char *name, struct reason *why)
{
	waits = true;
	return __real_session_open(session, state, name, why);
}

int __real_change_make_equal(struct session *session, struct change_equal *equal, struct reason *why);
int __wrap_change_make_equal(struct session *session, struct change_equal *equal, struct reason *why);
int __wrap_change_make_equal(struct session *session, struct change_equal *equal, struct reason *why)
{
	assert_true(equal->is_at_once);
	return __real_change_make_equal(session, equal, why);
}

int __real_kernel_find_filters(struct kernel_wish wish, struct kernel_filter **filters, size_t *count,
			       struct reason *why);
int __wrap_kernel_find_filters(struct kernel_wish wish, struct kernel_filter **filters, size_t *count,
			       struct reason *why);
int __wrap_kernel_find_filters(struct kernel_wish wish, struct kernel_filter **filters, size_t *count,
			       struct reason *why)
{
	host.wish = wish;
	assert_true(is_silent);
	if (fails())
		return reason_set(why, -EIO, "the test refuses");
	return __real_kernel_find_filters(wish, filters, count, why);
}

int __wrap_guard_open(struct guard *guard, const char *state, struct reason *why);
int __wrap_guard_open(struct guard *guard, const char *state, struct reason *why)
{
	(void)state;
	*guard = (struct guard){};
	host.guards++;
	return fails() ? reason_set(why, -EIO, "the test refuses") : 0;
}

int __wrap_change_check_guard(struct session *session, struct reason *why);
int __wrap_change_check_guard(struct session *session, struct reason *why)
{
	host.checks += session->guard != NULL;
	if (fails())
		return reason_set(why, -EIO, "the test refuses");
	return host.lockout ? reason_set(why, host.lockout, "the test says so") : 0;
}

int kernel_attach(struct kernel_filter *filter, const char *interface, enum kernel_mode wanted, struct reason *why)
{
	if (fails())
		return reason_set(why, -EIO, "the test refuses");
	memory_attach(filter, interface[1] - '0', false);
	host.mode = wanted;
	host.attached++;
	return 0;
}

int kernel_attach_outgoing(struct kernel_filter *filter, const char *interface, struct reason *why)
{
	(void)filter;
	if (fails())
		return reason_set(why, -EIO, "the test refuses");
	memory.interface[interface[1] - '0'].is_both = true;
	host.attached_outgoing++;
	return 0;
}

int kernel_take_off(const struct kernel_filter *filters, size_t count, const struct kernel_where *where,
		    struct kernel_taken **taken, size_t *taken_count)
{
	(void)filters;
	host.where = *where;
	host.running = count;
	if (fails())
		return -ENOMEM;
	*taken = calloc(3, sizeof(**taken));
	(*taken)[2].error = -EXDEV; /* it is none of them */
	*taken_count = host.taken;
	for (size_t i = 0; i < 2; i++) {
		(*taken)[i].error = host.taken_errors[i];
		snprintf((*taken)[i].reason.text, REASON_BYTES, "error %d", (*taken)[i].error);
	}
	return 0;
}

int listener_open(struct listener *listener, const char *name, __u32 every, __u32 rate, struct reason *why)
{
	assert_string_equal(name, NAME);
	host.every = every;
	host.rate = rate;
	if (fails())
		return reason_set(why, -EIO, "the test refuses");
	if (host.listens)
		return host.listens;
	listener->fd = host.is_no_epoll ? open("/dev/null", O_RDONLY) : epoll_create1(0);
	return 0;
}

void listener_close(struct listener *listener)
{
	if (listener->fd)
		close(listener->fd);
	*listener = (struct listener){};
	host.closed++;
}

int listener_renew(struct listener *listener, struct reason *why)
{
	(void)listener;
	host.renewed++;
	if (fails())
		return reason_set(why, -EIO, "the test refuses");
	return reason_set(why, host.renews, "%s", host.renews ? "the test says so" : "");
}

int listener_read(struct listener *listener, int (*visit)(const struct abi_sample *sample, void *context),
		  void *context)
{
	int error = fails() ? -EIO : host.reads;

	(void)listener;
	for (int i = 0; i < 2 && host.sample && !error; i++)
		error = visit(host.sample, context);
	return error;
}

int listener_count(const struct listener *listener, struct abi_sampling *sum, struct reason *why)
{
	(void)listener;
	*sum = (struct abi_sampling){ .seen = 7, .limited = 2, .lost = 1 };
	return fails() ? reason_set(why, -EIO, "the test refuses") : 0;
}

/* The timer of the samples runs out at once, and never again. */
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *time, struct itimerspec *before);
int __real_timerfd_settime(int fd, int flags, const struct itimerspec *time, struct itimerspec *before);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *time, struct itimerspec *before)
{
	const struct itimerspec at_once = { .it_value.tv_nsec = 1 };

	assert_true(time->it_value.tv_sec == 1 && time->it_interval.tv_sec == 1);
	if (!fails())
		return __real_timerfd_settime(fd, flags, &at_once, before);
	errno = EIO;
	return -1;
}

/* ---- filters ---- */

static struct xdp_cuckoo_filter *opened(unsigned int flags)
{
	struct xdp_cuckoo_filter *filter;

	waits = is_silent = false;
	assert_int_equal(xdp_cuckoo_open(NAME, state_dir, flags | XDP_CUCKOO_NO_WAIT, &filter), 0);
	assert_true(!waits && !is_silent);
	return filter;
}

/* A store, and a filter on this many interfaces. */
static struct xdp_cuckoo_filter *start(unsigned int interfaces)
{
	memset(&host, 0, sizeof(host));
	memset(&failure, 0, sizeof(failure));
	is_silent = true;
	load(true, true, 0, 1, interfaces);
	return opened(XDP_CUCKOO_CHANGE);
}

TEST(test_load)
{
	struct xdp_cuckoo_filter *filter = start(0), *forced = opened(XDP_CUCKOO_CHANGE | XDP_CUCKOO_FORCE);
	const struct abi_options *options;

	host.checks = host.guards = 0;
	is_told(filter, xdp_cuckoo_load(filter, "m0", XDP_CUCKOO_SKB + 1), -EINVAL);
	host.lockout = -ECANCELED;
	is_told(filter, xdp_cuckoo_load(filter, "m0", XDP_CUCKOO_SKB), -ECANCELED);
	assert_true(host.guards == 1 && host.checks == 1 && !host.attached);
	host.lockout = 0;
	is_told(filter, xdp_cuckoo_load(filter, "m0", XDP_CUCKOO_SKB), 0);
	assert_true(host.attached == 1 && host.mode == KERNEL_SKB && memory_path(0));
	options = &path.config->options;
	assert_true(options->format == BUCKET_16 && options->is_exact && options->has_counts);
	/* Only what is new is looked at, and a filter gets more interfaces. */
	host.lockout = -ECANCELED;
	is_told(filter, xdp_cuckoo_load(filter, "m0", XDP_CUCKOO_AUTO), 0);
	is_told(filter, xdp_cuckoo_load_outgoing(filter, "m0", XDP_CUCKOO_AUTO), -ECANCELED);
	host.lockout = 0;
	is_told(filter, xdp_cuckoo_load_outgoing(filter, "m0", XDP_CUCKOO_AUTO), 0);
	assert_int_equal(host.attached_outgoing, 1);
	host.lockout = -ECANCELED;
	is_told(filter, xdp_cuckoo_load_outgoing(filter, "m0", XDP_CUCKOO_AUTO), 0);
	is_told(filter, xdp_cuckoo_load_outgoing(filter, "m1", XDP_CUCKOO_AUTO), -ECANCELED);
	host.lockout = 0;
	host.checks = 0;
	is_told(forced, xdp_cuckoo_load_outgoing(forced, "m1", XDP_CUCKOO_NATIVE), 0);
	assert_true(host.attached == 2 && host.attached_outgoing == 2 && host.mode == KERNEL_NATIVE && !host.checks);
	assert_int_equal(memory.interface[1].program, memory.interface[0].program);
	is_told(filter, xdp_cuckoo_begin(filter), 0);
	is_told(filter, xdp_cuckoo_load(filter, "m2", XDP_CUCKOO_AUTO), -EBUSY);
	is_told(filter, xdp_cuckoo_abort(filter), 0);
	xdp_cuckoo_close(filter);
	xdp_cuckoo_close(forced);
}

TEST(test_unload)
{
	struct xdp_cuckoo_filter *filter = start(2);

	host.taken = 2;
	is_told(filter, xdp_cuckoo_unload(filter, "m1"), 0);
	assert_true(host.where.count == 1 && !host.where.is_except && host.where.is_nameless_too && host.running == 1);
	assert_true(host.wish.takes_other_versions && host.wish.must_see == filter->name);
	assert_string_equal(host.where.name, NAME);
	assert_string_equal(host.where.interfaces[0], "m1");
	is_told(filter, xdp_cuckoo_unload(filter, NULL), 0);
	assert_int_equal(host.where.count, 0);
	for (int first = 0; first < 2; first++) {
		host.taken_errors[first] = -EBUSY;
		host.taken_errors[!first] = 0;
		is_told(filter, xdp_cuckoo_unload(filter, NULL), -EBUSY);
		assert_string_equal(xdp_cuckoo_error(filter), "error -16");
	}
	host.taken = 0;
	failure.until = 2; /* the second call: the filters are found */
	is_told(filter, xdp_cuckoo_unload(filter, "m1"), -ENOMEM);
	is_told(filter, xdp_cuckoo_unload(filter, "m1"), -ENODEV);
	assert_string_equal(xdp_cuckoo_error(filter), "'m1' runs no filter 'default'");
	is_told(filter, xdp_cuckoo_unload(filter, NULL), -ENODEV);
	assert_string_equal(xdp_cuckoo_error(filter), "'this host' runs no filter 'default'");
	xdp_cuckoo_close(filter);
}

static unsigned int counted;

static int see_count(const struct xdp_cuckoo_rule *rule, const struct xdp_cuckoo_matched *matched, void *context)
{
	(void)rule, (void)matched, (void)context;
	return counted++;
}

TEST(test_what_runs)
{
	struct xdp_cuckoo_filter *filter = start(0), *other;
	const struct xdp_cuckoo_rule rule = parsed("192.0.2.1");
	struct xdp_cuckoo_info info;
	struct xdp_cuckoo_matched matched;
	struct xdp_cuckoo_count counts[OUTCOMES + 2] = {};
	char here[] = "/tmp/library.XXXXXX";
	size_t exist = 9;
	int before;

	memset(&info, 0xff, sizeof(info));
	is_told(filter, xdp_cuckoo_get_info(filter, &info), 0);
	assert_true(!info.interfaces && !info.slots && !info.used_slots && !info.rules && !info.is_panic);
	is_told(filter, xdp_cuckoo_counts(filter, counts, 1, &exist), -ENODEV);
	assert_int_equal(exist, 0);
	is_told(filter, xdp_cuckoo_add(filter, &rule), 0);
	is_told(filter, xdp_cuckoo_rule_counts(filter, &rule, &matched), -ENODEV);
	is_told(filter, xdp_cuckoo_each_counted(filter, NULL, see_count, NULL), -ENODEV);
	is_told(filter, xdp_cuckoo_load_outgoing(filter, "m0", XDP_CUCKOO_AUTO), 0);
	is_told(filter, xdp_cuckoo_load(filter, "m1", XDP_CUCKOO_AUTO), 0);
	assert_true(memory_path(0));
	path.config->run |= ABI_RUN_PANIC;
	is_told(filter, xdp_cuckoo_get_info(filter, &info), 0);
	assert_true(info.interfaces == 2 && info.used_slots == 1 && info.slots > 1 && info.is_panic);
	is_told(filter, xdp_cuckoo_counts(filter, counts, 1, &exist), 0);
	assert_true(exist == OUTCOMES + 1 && !strcmp(counts[0].outcome, "no-rule") && !counts[1].outcome);
	is_told(filter, xdp_cuckoo_counts(filter, counts, COUNT(counts), &exist), 0);
	assert_true(!strcmp(counts[OUTCOMES].outcome, "all") && !counts[OUTCOMES + 1].outcome);
	is_told(filter, xdp_cuckoo_each_counted(filter, XDP_CUCKOO_BY_HAND, see_count, NULL), 0);
	assert_int_equal(counted, 1);
	strcpy(path.config->name, "other");
	is_told(filter, xdp_cuckoo_get_info(filter, &info), 0);
	assert_true(!info.interfaces && !info.slots && !info.is_panic);
	is_told(filter, xdp_cuckoo_counts(filter, counts, 1, &exist), -ENODEV);
	/* The filter of another loader is not set up yet. */
	path.config->magic = 0;
	is_told(filter, xdp_cuckoo_get_info(filter, &info), 0);
	assert_true(info.interfaces == 2 && info.is_panic);
	xdp_cuckoo_close(filter);
	assert_int_equal(xdp_cuckoo_open(NAME, state_dir, XDP_CUCKOO_CHANGE | 1 << 3, &other), -EINVAL);
	assert_string_equal(xdp_cuckoo_error(other), "flags 0x8 do not exist");
	xdp_cuckoo_close(other);
	/* Not in another directory, where it lacks memory for the name of this one. */
	failure.until = 1;
	assert_int_equal(xdp_cuckoo_open(NAME, state_dir, XDP_CUCKOO_READ, &other), -ENOMEM);
	xdp_cuckoo_close(other);
	/* Relative to a directory that is gone. */
	before = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(mkdtemp(here) && !chdir(here) && !rmdir(here));
	assert_int_equal(xdp_cuckoo_open(NAME, "state", XDP_CUCKOO_READ, &other), -ENOENT);
	assert_non_null(strstr(xdp_cuckoo_error(other), "working directory"));
	xdp_cuckoo_close(other);
	assert_int_equal(fchdir(before), 0);
	close(before);
}

/* A filter has moved to another network namespace: the rule is stored, and does not reach it. */
TEST(test_a_change_that_reaches_not_all)
{
	struct xdp_cuckoo_filter *filter = start(1), *other;

	xdp_cuckoo_close(filter);
	memory.interface[0].program = 0;
	memory.runs_elsewhere = true;
	assert_int_equal(xdp_cuckoo_open(NAME, state_dir, XDP_CUCKOO_CHANGE, &other), 0);
	assert_int_equal(add_text(other, "10.77.0.1"), 0);
	assert_non_null(strstr(xdp_cuckoo_error(other), "changes do not reach every filter"));
	assert_non_null(strstr(xdp_cuckoo_error(other), "another network namespace"));
	memory.runs_elsewhere = false;
	is_told(other, add_text(other, "10.77.0.2"), 0);
	xdp_cuckoo_close(other);
}

/* ---- samples ---- */

static struct xdp_cuckoo_sample seen;
static struct xdp_cuckoo_filter *seen_by;
static int seen_result;
static unsigned int seen_times;

static int see(const struct xdp_cuckoo_sample *sample, void *context)
{
	assert_string_equal(context, "context");
	is_told(seen_by, xdp_cuckoo_expire(seen_by, NULL), -EBUSY);
	is_told(seen_by, xdp_cuckoo_samples_close(seen_by), -EBUSY);
	assert_true(seen_by->listener.fd > 0);
	seen = *sample;
	seen_times++;
	return seen_result;
}

static int read_samples(struct xdp_cuckoo_filter *filter)
{
	seen_by = filter;
	memset(&seen, 0, sizeof(seen));
	seen_times = 0;
	return xdp_cuckoo_samples_read(filter, see, "context");
}

TEST(test_samples_are_opened)
{
	struct xdp_cuckoo_filter *filter = start(1);
	struct pollfd file = { .events = POLLIN };
	struct xdp_cuckoo_sampled sampled;
	int fd, other, timer, error;

	other = dup(STDIN_FILENO);
	close(STDIN_FILENO);
	error = xdp_cuckoo_samples_open(filter, 1, 1, &fd);
	assert_int_equal(dup2(other, STDIN_FILENO), STDIN_FILENO);
	close(other);
	is_told(filter, error, -EINVAL);
	is_told(filter, read_samples(filter), -EINVAL);
	is_told(filter, xdp_cuckoo_samples_counts(filter, &sampled), -EINVAL);
	is_told(filter, xdp_cuckoo_samples_close(filter), -EINVAL);
	is_told(filter, xdp_cuckoo_samples_open(filter, 1, LISTENER_RATE_MAX + 1, &fd), -EINVAL);
	host.listens = -ENOENT;
	is_told(filter, xdp_cuckoo_samples_open(filter, 1, 1, &fd), -ENODEV);
	assert_int_equal(fd, -1);
	host.listens = 0;
	host.is_no_epoll = true;
	is_told(filter, xdp_cuckoo_samples_open(filter, 1, 1, &fd), -EINVAL);
	host.is_no_epoll = false;
	is_told(filter, xdp_cuckoo_samples_open(filter, 0, 0, &fd), 0);
	assert_true(host.every == 1 && host.rate == 1000);
	timer = filter->renew_fd;
	is_told(filter, xdp_cuckoo_samples_open(filter, 1, 1, &fd), -EBUSY);
	is_told(filter, xdp_cuckoo_samples_close(filter), 0);
	is_told(filter, xdp_cuckoo_samples_close(filter), -EINVAL);
	/* No descriptor stays open, and none that is no longer its own is closed. */
	assert_int_equal(fcntl(fd, F_GETFD) & fcntl(timer, F_GETFD), -1);
	other = fcntl(STDIN_FILENO, F_DUPFD, timer);
	host.listens = -ENOENT;
	is_told(filter, xdp_cuckoo_samples_open(filter, 1, 1, &error), -ENODEV);
	assert_int_equal(fcntl(other, F_GETFD), 0);
	close(other);
	host.listens = 0;
	is_told(filter, xdp_cuckoo_samples_open(filter, 5, LISTENER_RATE_MAX, &file.fd), 0);
	assert_true(host.every == 5 && host.rate == LISTENER_RATE_MAX);
	/* The timer makes it readable; then the lease is renewed, once. */
	assert_int_equal(poll(&file, 1, 5000), 1);
	host.closed = 0;
	is_told(filter, read_samples(filter), 0);
	is_told(filter, read_samples(filter), 0);
	assert_true(host.renewed == 1 && poll(&file, 1, 0) == 0);
	is_told(filter, xdp_cuckoo_samples_counts(filter, &sampled), 0);
	assert_true(sampled.seen == 7 && sampled.limited == 2 && sampled.lost == 1);
	xdp_cuckoo_close(filter);
	assert_true(host.closed == 1 && fcntl(file.fd, F_GETFD) == -1);
}

/* A handle whose lease must be renewed. */
static void reopen_samples(struct xdp_cuckoo_filter *filter)
{
	struct pollfd file = { .events = POLLIN };

	if (filter->listener.fd)
		is_told(filter, xdp_cuckoo_samples_close(filter), 0);
	is_told(filter, xdp_cuckoo_samples_open(filter, 1, 1, &file.fd), 0);
	assert_int_equal(poll(&file, 1, 5000), 1);
}

TEST(test_samples_that_another_gets)
{
	struct xdp_cuckoo_filter *filter = start(1);
	const struct abi_sample sample = { .outcome = OUTCOME_NOT_IP };

	host.sample = &sample;
	reopen_samples(filter);
	host.renews = -EBUSY;
	is_told(filter, read_samples(filter), -EBUSY);
	assert_string_equal(seen.outcome, "not-ip");
	reopen_samples(filter);
	host.renews = -EPERM;
	is_told(filter, read_samples(filter), -EPERM);
	assert_null(seen.outcome);
	reopen_samples(filter);
	host.renews = 0;
	for (seen_result = 5; seen_result >= 0; seen_result -= 5) {
		assert_int_equal(read_samples(filter), seen_result);
		assert_int_equal(seen_times, seen_result ? 1 : 2);
		assert_string_equal(xdp_cuckoo_error(filter), "");
	}
	seen_result = 0;
	/* The visit is over. */
	is_told(filter, xdp_cuckoo_expire(filter, NULL), 0);
	host.sample = NULL;
	host.reads = -EINTR;
	is_told(filter, read_samples(filter), -EINTR);
	xdp_cuckoo_close(filter);
}

TEST(test_a_sample)
{
	struct xdp_cuckoo_filter *filter = start(1);
	struct abi_sample sample = { .time_ns = 3000000000, .ifindex = 4, .bytes = 1500 };
	static const struct xdp_cuckoo_rule none;
	struct xdp_cuckoo_rule rule, flow;
	__s64 before, after;

	fill_panel();
	is_told(filter, add_text(filter, "10.77.0.1 rate 5/s comment \"a\""), -EINVAL);
	is_told(filter, xdp_cuckoo_parse(filter, "10.77.0.0/24 rate 5/s comment \"a\"", &rule), 0);
	is_told(filter, xdp_cuckoo_add(filter, &rule), 0);
	assert_int_equal(xdp_cuckoo_set_rate(filter, 9), 0);
	reopen_samples(filter);
	host.sample = &sample;
	memcpy(sample.frame, panel[0].bytes, panel[0].length);
	sample.captured = panel[0].length;
	sample.outcome = OUTCOME_DROP_RULE;
	sample.verdict = VERDICT_DROP;
	before = clock_ns(CLOCK_MONOTONIC);
	is_told(filter, read_samples(filter), 0);
	after = clock_ns(CLOCK_MONOTONIC);
	assert_in_range(clock_ns(CLOCK_REALTIME) + 3000000000 - seen.time_ns, before, after);
	assert_string_equal(seen.outcome, "drop-rule");
	assert_true(seen.interface == 4 && seen.packet_bytes == 1500 && seen.frame_bytes == panel[0].length);
	assert_memory_equal(seen.frame, panel[0].bytes, panel[0].length);
	assert_true(seen.cause == XDP_CUCKOO_CAUSE_RULE && seen.is_dropped && seen.has_flow && !seen.is_sent);
	flow = parsed("10.77.0.1 dst 198.51.100.7 proto udp sport 1111 dport 53");
	assert_memory_equal(&seen.flow, &flow, sizeof(flow));
	assert_memory_equal(&seen.rule, &rule, sizeof(rule));
	assert_int_equal(xdp_cuckoo_rate(filter), 5);
	/* One that only would be dropped, by the policy, of a packet that this host sends. */
	sample.outcome = OUTCOME_NO_RULE;
	sample.verdict = VERDICT_WOULD_DROP | ABI_SAMPLE_SENT;
	is_told(filter, read_samples(filter), 0);
	assert_true(seen.cause == XDP_CUCKOO_CAUSE_POLICY && !seen.is_dropped && seen.is_sent);
	flow = parsed("198.51.100.7 dst 10.77.0.1 proto udp sport 53 dport 1111");
	assert_memory_equal(&seen.flow, &flow, sizeof(flow));
	assert_memory_equal(&seen.rule, &none, sizeof(none));
	sample.outcome = OUTCOMES;
	sample.captured = 14;
	is_told(filter, read_samples(filter), 0);
	assert_string_equal(seen.outcome, "");
	assert_false(seen.has_flow);
	assert_int_equal(seen.cause, XDP_CUCKOO_CAUSE_UNKNOWN_RULE);
	assert_memory_equal(&seen.flow, &none, sizeof(none));
	xdp_cuckoo_close(filter);
}

/* ---- changes ---- */

/* Each kind of rule needs its own shape: at last there are too many, which ends the change. */
TEST(test_what_ends_a_change)
{
	struct xdp_cuckoo_filter *filter = start(1);
	const struct xdp_cuckoo_rule rule = parsed("192.0.2.1");
	enum xdp_cuckoo_answer answer;
	int error = 0, fd;

	is_told(filter, xdp_cuckoo_samples_open(filter, 1, 1, &fd), 0);
	for (int is_committed = 0; is_committed < 2; is_committed++) {
		is_told(filter, xdp_cuckoo_begin(filter), 0);
		error = 0;
		for (unsigned int kind = 1; kind < 96 && !error; kind++) {
			const struct xdp_cuckoo_rule next = { .family = AF_INET,
							      .fields = kind & 7,
							      .action = kind / 32,
							      .proto = kind & XDP_CUCKOO_PROTO ? IPPROTO_TCP : 0,
							      .src_bits = kind & 8 ? 32 : 0,
							      .dst_bits = kind & 16 ? 32 : 0 };

			error = xdp_cuckoo_add(filter, &next);
			error = error == -EINVAL ? 0 : error;
		}
		is_told(filter, error, -E2BIG);
		is_told(filter, xdp_cuckoo_add(filter, &rule), -E2BIG);
		is_told(filter, xdp_cuckoo_test(filter, &rule, &answer, NULL), -E2BIG);
		if (!is_committed) {
			is_told(filter, xdp_cuckoo_samples_close(filter), -E2BIG);
			assert_int_equal(fcntl(fd, F_GETFD), -1);
			is_told(filter, xdp_cuckoo_samples_close(filter), -E2BIG);
		}
		if (is_committed)
			is_told(filter, xdp_cuckoo_commit(filter), -E2BIG);
		else
			is_told(filter, xdp_cuckoo_abort(filter), 0);
		assert_int_equal(count_rules(filter), 0);
		is_told(filter, xdp_cuckoo_commit(filter), -EINVAL);
	}
	is_told(filter, xdp_cuckoo_add(filter, &rule), 0);
	xdp_cuckoo_close(filter);
}

/* ---- each call, whatever fails below it ---- */

enum call {
	ADD,
	LIST_ADD,
	EACH,
	LISTS,
	ASK,
	REPLACE,
	MONITOR_ONLY,
	BEGIN_AND_ABORT,
	LIST_DEL,
	LIST_DELETE,
	DEL,
	EXPIRE,
	OPEN_AGAIN,
	RULE_COUNTS,
	INFO,
	COUNTS,
	LOAD_OUTGOING,
	UNLOAD,
	SAMPLES_OPEN,
	SAMPLES_COUNTS,
	SAMPLES_READ,
};

static int open_again(struct xdp_cuckoo_filter *filter)
{
	struct xdp_cuckoo_filter *again;
	int error = xdp_cuckoo_open(NAME, state_dir, filter->flags & ~XDP_CUCKOO_NO_WAIT, &again);

	is_told(again, error, error);
	filter->reason = again->reason;
	assert_true(error || waits);
	xdp_cuckoo_close(again);
	return error;
}

static int do_call(struct xdp_cuckoo_filter *filter, enum call call)
{
	const struct xdp_cuckoo_rule rule = parsed("192.0.2.1");
	struct xdp_cuckoo_list list;
	struct xdp_cuckoo_matched matched;
	struct xdp_cuckoo_info info;
	struct xdp_cuckoo_count outcome;
	struct xdp_cuckoo_sampled sampled;
	enum xdp_cuckoo_answer answer;
	unsigned int visits = 0;
	size_t count;
	int fd, error;

	switch (call) {
	case ADD:
		return xdp_cuckoo_add(filter, &rule);
	case LIST_ADD:
		return xdp_cuckoo_list_add(filter, "a", &rule);
	case EACH:
		return xdp_cuckoo_list_each(filter, "a", count_one, &visits);
	case LISTS:
		return xdp_cuckoo_lists(filter, &list, 1, &count);
	case ASK:
		return xdp_cuckoo_test(filter, &rule, &answer, NULL);
	case REPLACE:
		return xdp_cuckoo_list_replace(filter, "a", NULL, &rule, 1, NULL);
	case MONITOR_ONLY:
		return xdp_cuckoo_set_monitor_only(filter, true);
	case BEGIN_AND_ABORT:
		error = xdp_cuckoo_begin(filter);
		return error ? error : xdp_cuckoo_abort(filter);
	case LIST_DEL:
		return xdp_cuckoo_list_del(filter, "a", &rule);
	case LIST_DELETE:
		return xdp_cuckoo_list_delete(filter, "a");
	case DEL:
		return xdp_cuckoo_del(filter, &rule);
	case EXPIRE:
		return xdp_cuckoo_expire(filter, NULL);
	case OPEN_AGAIN:
		return open_again(filter);
	case RULE_COUNTS:
		return xdp_cuckoo_rule_counts(filter, &rule, &matched);
	case INFO:
		return xdp_cuckoo_get_info(filter, &info);
	case COUNTS:
		return xdp_cuckoo_counts(filter, &outcome, 1, &count);
	case LOAD_OUTGOING:
		return xdp_cuckoo_load_outgoing(filter, "m1", XDP_CUCKOO_AUTO);
	case UNLOAD:
		host.taken = 1;
		return xdp_cuckoo_unload(filter, "m1");
	case SAMPLES_OPEN:
		return xdp_cuckoo_samples_open(filter, 1, 1, &fd);
	case SAMPLES_COUNTS:
		return xdp_cuckoo_samples_counts(filter, &sampled);
	case SAMPLES_READ:
		return read_samples(filter);
	}
	return -EINVAL;
}

/* Lets each call below it fail in turn: an error is told, and nothing stays locked or open. At least `most` can fail. */
static void fail_each(struct xdp_cuckoo_filter *filter, enum call call, unsigned int most)
{
	unsigned int failures = 0;
	int error;

	do {
		failure.until = ++failures;
		failure.has_failed = false;
		error = do_call(filter, call);
		if (failure.has_failed && !error)
			fail_msg("call %u: failure %u is not told", call, failures);
		is_told(filter, error, error);
		assert_false(is_silent);
	} while (failure.has_failed);
	failure.until = 0;
	/* A failure after the rules are durable leaves them. */
	if (error != -EEXIST && error != -ENOENT)
		is_told(filter, error, 0);
	assert_true(failures > most);
}

/* Below a change of a filter that runs, some errors have a way around: change/test_failures.c. */
TEST(test_each_call_when_something_fails)
{
	static const struct {
		enum call call;
		unsigned int most;
	} stored[] = {
		{ ADD, 3 },      { LIST_ADD, 3 }, { EACH, 2 },         { LISTS, 1 },    { ASK, 2 },
		{ REPLACE, 3 },  { INFO, 3 },     { MONITOR_ONLY, 2 }, { LIST_DEL, 3 }, { REPLACE, 3 },
		{ LIST_DELETE, 3 }, { DEL, 2 },   { EXPIRE, 1 },       { OPEN_AGAIN, 2 }, { BEGIN_AND_ABORT, 1 },
	}, running[] = {
		{ RULE_COUNTS, 3 }, { INFO, 3 },         { COUNTS, 2 },         { LOAD_OUTGOING, 2 },
		{ UNLOAD, 2 },      { SAMPLES_OPEN, 3 }, { SAMPLES_COUNTS, 1 }, { SAMPLES_READ, 1 },
	};
	struct xdp_cuckoo_filter *guarded = start(0), *filter = opened(XDP_CUCKOO_CHANGE | XDP_CUCKOO_FORCE);

	failure.until = 1;
	is_told(guarded, do_call(guarded, ADD), -EIO);
	xdp_cuckoo_close(guarded);
	for (size_t i = 0; i < COUNT(stored); i++)
		fail_each(filter, stored[i].call, stored[i].most);
	xdp_cuckoo_close(filter);
	filter = start(1);
	is_told(filter, do_call(filter, ADD), 0);
	for (size_t i = 0; i < COUNT(running); i++)
		fail_each(filter, running[i].call, running[i].most);
	xdp_cuckoo_close(filter);
}

TEST_MAIN(setup_all, teardown_all)
#endif
