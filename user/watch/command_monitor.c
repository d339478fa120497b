// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* monitor: shows packets as they are dropped, or would be. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "change/change.h"
#include "command/command.h"
#include "counters/counters.h"
#include "io/output.h"
#include "kernel/interfaces.h"
#include "watch/pcapng.h"
#include "io/signals.h"
#include "base/clock.h"

#define RATE_DEFAULT 1000
#define LINE_BYTES (2 * RULE_TEXT_BYTES + 128)
#define TIME_BYTES 40
#define NAME_BYTES 32 /* of an interface */
#define NS_PER_S 1000000000LL
#define MS_PER_S 1000

struct monitoring {
	const struct invocation *invocation;
	struct listener listener;
	struct signals signals;
	struct rule wanted;  /* show only such packets, if invocation->count */
	struct store *store; /* open for a short time; NULL: closed, or there is none */
	bool has_looked_for_store;
	__s64 wall_ns;          /* the wall clock when CLOCK_MONOTONIC was 0 */
	__s64 renew_ms, end_ms; /* by CLOCK_MONOTONIC; end_ms 0: never */
	__u64 shown, lost;      /* lost: as last reported */
	__u32 rate;
	bool has_reported_limit;
	bool is_over; /* --count is reached, a signal came, or the time is over */
	bool writes;  /* pcapng, not lines */
	int file;     /* where the lines or the pcapng go */
	struct pcapng pcapng;
};

/* ---- a packet in words ---- */

static const char *interface_name(const struct listener *listener, __u32 index, char name[NAME_BYTES])
{
	const char *found = NULL;

	for (size_t i = 0; i < listener->interfaces_count && !found; i++)
		if (listener->interfaces[i].ifindex == (int)index)
			found = listener->interfaces[i].interface;
	/* Packets of a bond carry the index of another interface than the program's. */
	if (found)
		snprintf(name, NAME_BYTES, "%s", found);
	else if (!if_indextoname(index, name))
		snprintf(name, NAME_BYTES, "if%u", index);
	interface_clean_name(name);
	return name;
}

static const char *format_cause(const struct abi_sample *sample, const struct sample_view *view, char text[LINE_BYTES])
{
	const char *verdict = (sample->verdict & ABI_SAMPLE_VERDICT) == VERDICT_DROP ? "dropped" : "would be dropped";
	char rule[RULE_TEXT_BYTES];

	if (view->cause == SAMPLE_RULE)
		snprintf(text, LINE_BYTES, "%s by rule %s", verdict, rule_format(&view->rule, rule));
	else if (view->cause == SAMPLE_POLICY)
		snprintf(text, LINE_BYTES, "%s by policy %s", verdict, outcome_words[sample->outcome].name);
	else
		snprintf(text, LINE_BYTES, "%s by a rule that is not stored (any more)", verdict);
	return text;
}

static void print_packet(const struct monitoring *monitoring, const struct abi_sample *sample,
			 const struct sample_view *view)
{
	const __s64 ns = monitoring->wall_ns + (__s64)sample->time_ns;
	const time_t second = ns / NS_PER_S;
	const int us = ns % NS_PER_S / 1000;
	char line[2 * LINE_BYTES], clock[TIME_BYTES], name[NAME_BYTES], flow[RULE_TEXT_BYTES], text[LINE_BYTES], *end;
	const char *words[RULE_WORDS_MAX];
	struct reason ignored;
	struct tm local;
	size_t count = 0;
	json_t *row;

	interface_name(&monitoring->listener, sample->ifindex, name);
	if (view->has_flow)
		rule_format(&view->flow, flow);
	if (!output_is_json()) {
		/* Local time for people, UTC for programs. */
		strftime(clock, sizeof(clock), "%H:%M:%S", localtime_r(&second, &local));
		snprintf(line, sizeof(line), "%s.%06d %s%s %s length %u: %s", clock, us, name,
			 view->is_sent ? " sent" : "", view->has_flow ? flow : "no addresses", sample->bytes,
			 format_cause(sample, view, text));
		output_answer(NULL, line);
		return;
	}
	row = json_pack("{s:o, s:s, s:s}", "time", output_time(second, us), "interface", name, "direction",
			view->is_sent ? "sent" : "received");
	/* The text of the flow consists of pairs of name and value. */
	if (view->has_flow && rule_split(flow, words, &count, &ignored))
		count = 0;
	for (size_t i = 0; i + 1 < count; i += 2) {
		const unsigned long number = strtoul(words[i + 1], &end, 10);

		json_object_set_new(row, words[i], *end ? json_string(words[i + 1]) : json_integer(number));
	}
	json_object_update_new(row, json_pack("{s:I, s:s}", "length", (json_int_t)sample->bytes, "verdict",
					      verdict_words[(sample->verdict & ABI_SAMPLE_VERDICT) % VERDICTS].name));
	if (view->cause == SAMPLE_POLICY)
		json_object_set_new(row, "policy", json_string(outcome_words[sample->outcome].name));
	else
		json_object_update_new(row,
				       json_pack("{s:s?}", "rule",
						 view->cause == SAMPLE_RULE ? rule_format(&view->rule, text) : NULL));
	output_answer(row, "");
}

/* ---- samples ---- */

static void close_store(struct monitoring *monitoring)
{
	store_close(monitoring->store);
	monitoring->store = NULL;
	monitoring->has_looked_for_store = false;
}

/* Passes on what is printed so far. -ETIMEDOUT: a signal came, and nobody reads. */
static int pass_on(struct monitoring *monitoring)
{
	int error = signals_await_room(&monitoring->signals, monitoring->file);

	if (error)
		return error;
	return monitoring->writes ? pcapng_flush(&monitoring->pcapng) : output_flush();
}

/* Ends the monitoring when --count is reached. Libbpf stops reading only after a negative value: -ECANCELED. */
static int show(const struct abi_sample *sample, void *context)
{
	struct monitoring *monitoring = context;
	const char *wanted = monitoring->invocation->interface;
	char name[NAME_BYTES], cause[LINE_BYTES];
	struct pcapng_packet packet;
	struct sample_view view;
	struct reason reason;
	bool is_enough;
	int error = 0;

	/* An open store does not see later changes, so renew() closes it soon. */
	if (!monitoring->has_looked_for_store &&
	    command_open_store(monitoring->invocation, &monitoring->store, &reason))
		output_note("cannot tell which rule it is: %s", reason.text);
	monitoring->has_looked_for_store = true;
	view = sample_view(sample, monitoring->store);

	if (wanted && strcmp(interface_name(&monitoring->listener, sample->ifindex, name), wanted))
		return 0;
	if (monitoring->invocation->count && (!view.has_flow || !rule_covers(&monitoring->wanted, &view.packet)))
		return 0;
	if (!monitoring->writes) {
		print_packet(monitoring, sample, &view);
	} else {
		packet = (struct pcapng_packet){ .interface = sample->ifindex,
						 .time_ns = monitoring->wall_ns + sample->time_ns,
						 .length = sample->bytes,
						 .data = sample->frame,
						 .captured = sample->captured,
						 .is_sent = view.is_sent,
						 .comment = format_cause(sample, &view, cause) };
		error = pcapng_add_interface(&monitoring->pcapng, sample->ifindex,
					     interface_name(&monitoring->listener, sample->ifindex, name));
		if (!error)
			error = pcapng_add(&monitoring->pcapng, &packet);
	}
	if (!error && (monitoring->pcapng.used >= PIPE_BUF / 2 || output_is_due()))
		error = pass_on(monitoring);
	if (error)
		return error;
	is_enough = ++monitoring->shown == monitoring->invocation->end_count;
	monitoring->is_over |= is_enough;
	return is_enough ? -ECANCELED : 0;
}

static int read_samples(struct monitoring *monitoring)
{
	int error = listener_read(&monitoring->listener, show, monitoring);
	int passed = error == -ETIMEDOUT ? error : pass_on(monitoring);

	return passed ? passed : error == -ECANCELED ? 0 : error;
}

/* ---- from second to second ---- */

static void set_clocks(struct monitoring *monitoring)
{
	monitoring->wall_ns = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);
	monitoring->renew_ms = clock_ms(CLOCK_MONOTONIC) + LISTENER_RENEW_MS;
}

static int renew(struct monitoring *monitoring, struct reason *reason)
{
	const size_t before = monitoring->listener.count;
	struct abi_sampling sum;
	struct reason ignored;
	int error = listener_renew(&monitoring->listener, reason);

	set_clocks(monitoring);
	close_store(monitoring);
	/* Reports the first packets beyond the rate, and every growth of the lost ones. The end reports the sums. */
	if (listener_count(&monitoring->listener, &sum, &ignored))
		sum = (struct abi_sampling){ .lost = monitoring->lost };
	if (sum.limited && !monitoring->has_reported_limit)
		output_note("more packets came than the rate of %u per second on each CPU allows to show: see "
			    "--every and --rate",
			    monitoring->rate);
	if (sum.lost != monitoring->lost)
		output_note("%llu packets were lost so far, since they were not read fast enough: --every and --rate "
			    "reduce them",
			    sum.lost);
	monitoring->has_reported_limit |= sum.limited > 0;
	monitoring->lost = sum.lost;
	if (!error && before && !monitoring->listener.count)
		output_note("no filter '%s' is running here any more; waiting for one", monitoring->invocation->name);
	return error;
}

/* A signal, or the end of --seconds, ends the monitoring. -EPIPE: nobody reads any more. */
static int wait_for_samples(struct monitoring *monitoring)
{
	struct pollfd files[] = {
		{ .fd = monitoring->signals.fd, .events = POLLIN },
		{ .fd = monitoring->listener.fd, .events = POLLIN },
		{ .fd = monitoring->file },
	};
	const bool ends_first = monitoring->end_ms && monitoring->end_ms < monitoring->renew_ms;
	const __s64 left_ms = (ends_first ? monitoring->end_ms : monitoring->renew_ms) - clock_ms(CLOCK_MONOTONIC);

	if (poll(files, 3, left_ms > 0 ? left_ms : 0) < 0)
		return errno == EINTR ? 0 : -errno;
	if (files[0].revents || (ends_first && clock_ms(CLOCK_MONOTONIC) >= monitoring->end_ms))
		monitoring->is_over = true;
	return files[2].revents && !monitoring->is_over ? -EPIPE : 0;
}

static int begin_file(struct monitoring *monitoring)
{
	const struct listener *listener = &monitoring->listener;
	int error = 0;

	if (!monitoring->writes)
		return 0;
	/* Pipes and terminals give EINVAL. */
	if (monitoring->file > STDERR_FILENO && ftruncate(monitoring->file, 0) && errno != EINVAL)
		return -errno;
	error = pcapng_open(&monitoring->pcapng, monitoring->file, ABI_SAMPLE_BYTES);
	for (size_t i = 0; i < listener->interfaces_count && !error; i++) {
		const __u32 index = listener->interfaces[i].ifindex;
		char name[NAME_BYTES];

		error = pcapng_add_interface(&monitoring->pcapng, index, interface_name(listener, index, name));
	}
	return error ? error : pcapng_flush(&monitoring->pcapng);
}

/* Shows what came until the end, and the sums. `error`: why monitoring ends. */
static int end(struct monitoring *monitoring, int error, struct reason *reason)
{
	const bool is_enough = monitoring->invocation->end_count &&
			       monitoring->shown == monitoring->invocation->end_count;
	struct abi_sampling sum;
	struct reason uncounted;
	char text[256];

	listener_stop(&monitoring->listener);
	if (!error && !is_enough)
		error = read_samples(monitoring);
	if (error == -EPIPE || error == -ETIMEDOUT)
		output_give_up();
	if (listener_count(&monitoring->listener, &sum, &uncounted)) {
		output_note("%s", uncounted.text);
	} else {
		snprintf(text, sizeof(text),
			 "%llu packets were seen: %llu shown, %llu beyond the rate, %llu lost because they were not "
			 "read in time",
			 sum.seen, (unsigned long long)monitoring->shown, (unsigned long long)sum.limited, sum.lost);
		output_summary(json_pack("{s:I, s:I, s:I, s:I}", "seen", sum.seen, "shown", monitoring->shown,
					 "limited", sum.limited, "lost", sum.lost),
			       text);
	}
	if (!error || error == -EPIPE || error == -ETIMEDOUT)
		return 0;
	if (*reason->text)
		return error;
	if (monitoring->writes)
		return reason_set(reason, -EIO, "cannot write '%s': %s", monitoring->invocation->write_path,
				  reason_of_write(error));
	/* main() reports a failure of standard output. */
	return ferror(stdout) ? 0 : reason_set(reason, -EIO, "cannot read packets: %s", strerror(-error));
}

static int monitor(struct monitoring *monitoring, struct reason *reason)
{
	const struct invocation *invocation = monitoring->invocation;
	const char *path = invocation->write_path;
	int error;

	/* Does not empty the file yet: another monitor may be writing to it, and begin_file() comes after the check for that. */
	monitoring->writes = path;
	monitoring->file = STDOUT_FILENO;
	if (path && strcmp(path, "-"))
		monitoring->file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	if (monitoring->file < 0)
		return reason_set(reason, -EIO, "cannot write '%s': %s", path, strerror(errno));
	/* The file is open, so the right to open it is needed no more. */
	error = privileges_keep(PRIVILEGE_KERNEL | PRIVILEGE_READ);
	if (error)
		return reason_set(reason, error, "cannot give up capabilities: %s", strerror(-error));
	error = listener_open(&monitoring->listener, invocation->name, invocation->every ? invocation->every : 1,
			      monitoring->rate, reason);
	if (error)
		return error;
	error = signals_take(&monitoring->signals);
	if (error)
		return reason_set(reason, error, "cannot wait for signals: %s", strerror(-error));
	set_clocks(monitoring);
	monitoring->end_ms = invocation->seconds ? clock_ms(CLOCK_MONOTONIC) + (__s64)invocation->seconds * MS_PER_S :
						   0;
	error = begin_file(monitoring);
	reason->text[0] = '\0';
	while (!error && !monitoring->is_over) {
		error = wait_for_samples(monitoring);
		if (!error && !monitoring->is_over)
			error = read_samples(monitoring);
		if (!error && !monitoring->is_over && clock_ms(CLOCK_MONOTONIC) >= monitoring->renew_ms)
			error = renew(monitoring, reason);
	}
	return end(monitoring, error, reason);
}

static enum command_status run_monitor(const struct invocation *words)
{
	struct invocation copy = *words;
	const struct invocation *invocation = &copy;
	struct monitoring monitoring = {
		.invocation = invocation,
		.rate = invocation->rate ? invocation->rate : RATE_DEFAULT,
	};
	struct reason reason = {};
	struct interface interface;
	int error;

	command_skip_dev(&copy);
	/* "monitor eth0", as tcpdump takes it with -i. */
	if (copy.count && !copy.interface && interfaces_index(copy.operands[0])) {
		copy.interface = copy.operands[0];
		copy.operands++;
		copy.count--;
	}
	if (invocation->count && command_read_rule(invocation, &monitoring.wanted, NULL))
		return STATUS_USAGE;
	if (invocation->interface && interfaces_find(invocation->interface, &interface)) {
		kernel_no_interface_reason(invocation->interface, &reason);
		return command_fail(STATUS_USAGE, "%s", reason.text);
	}
	/* The operator may have typed an alternative name. */
	if (invocation->interface) {
		interface_clean_name(interface.name);
		copy.interface = interface.name;
	}
	if (invocation->write_path && !strcmp(invocation->write_path, "-") && isatty(STDOUT_FILENO))
		return command_fail(STATUS_USAGE, "--write -: a terminal cannot show pcapng; pipe it to tcpdump -r - "
						  "or to a file");
	signal(SIGPIPE, SIG_IGN);
	output_hold();
	error = monitor(&monitoring, &reason);
	listener_close(&monitoring.listener);
	signals_give_back(&monitoring.signals);
	close_store(&monitoring);
	pcapng_close(&monitoring.pcapng);
	if (monitoring.file > STDERR_FILENO && close(monitoring.file) && !error)
		error = reason_set(&reason, -errno, "cannot write '%s': %s", copy.write_path, reason_of_write(-errno));
	if (error == -ENOENT && !*reason.text)
		return command_fail_not_running(invocation->name);
	return error ? command_fail_because(error, &reason) : STATUS_DONE;
}

const struct command command_monitor = {
	.name = "monitor",
	.usage = "[RULE] [--interface IFACE] [--every N] [--rate N] [--count N] [--seconds N] "
		 "[--write FILE|-] [--numeric]",
	.max = RULE_WORDS_MAX,
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ | PRIVILEGE_WRITE,
	.run = run_monitor,
};
