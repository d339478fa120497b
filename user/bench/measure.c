// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "bench/measure.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>

#include "bench/worker_threads.h"

#define SLICES_MIN 16         /* of a program; fewer give no figure */
#define SECONDS_MIN 0.1       /* of a run: enough for all turns several times */
#define STANDARD_DEVIATIONS 6 /* tolerance for the chance errors of a compact table: exceeded once in 10^9 */

const char *const bench_family_names[FLOW_FAMILIES] = { [FLOW_IPV4] = "ipv4", [FLOW_IPV6] = "ipv6" };

const char *const bench_traffic_names[BENCH_TRAFFICS] = {
	[BENCH_HIT] = "hit",
	[BENCH_HALF] = "half",
	[BENCH_MISS] = "miss",
};

unsigned int bench_cpus(void)
{
	cpu_set_t cpus;

	return sched_getaffinity(0, sizeof(cpus), &cpus) ? 0 : CPU_COUNT(&cpus);
}

__u64 bench_bytes(void)
{
	return kernel_bench_bytes(bench_cpus()) + (__u64)BENCH_PROGRAMS * BENCH_SERIES_ROOM * sizeof(float);
}

/* One kind of traffic. Its list is in the map that the programs read. */
struct scene {
	const struct kernel_filter *filter;
	enum flow_family family;
	enum bench_traffic traffic;
	struct bench_expected expected;
	struct bench_shift shift;
};

/* ---- frames ---- */

/* The shortest Ethernet frame: 64 bytes with its checksum. */
struct ipv4_frame {
	struct bench_head head;
	struct iphdr ip;
	__u8 payload[26];
} __attribute__((packed));

/* The shortest IPv6 frame with UDP. */
struct ipv6_frame {
	struct bench_head head;
	struct ipv6hdr ip;
	__u8 payload[8];
} __attribute__((packed));

_Static_assert(sizeof(struct ipv6_frame) <= BENCH_FRAME_BYTES_MAX, "frame");

static void make_frame(enum flow_family family, struct bench_shift *shift)
{
	const struct ipv4_frame ipv4 = {
		.head = { .ethertype = htons(ETH_P_IP) },
		.ip = { .version = 4, .ihl = 5, .ttl = 64, .tot_len = htons(sizeof(ipv4) - sizeof(ipv4.head)) },
	};
	const struct ipv6_frame ipv6 = {
		.head = { .ethertype = htons(ETH_P_IPV6) },
		.ip = { .version = 6, .hop_limit = 64, .payload_len = htons(sizeof(ipv6.payload)) },
	};

	shift->frame_bytes = family == FLOW_IPV4 ? sizeof(ipv4) : sizeof(ipv6);
	memcpy(shift->frame, family == FLOW_IPV4 ? (const void *)&ipv4 : (const void *)&ipv6, shift->frame_bytes);
}

/* ---- checks: the programs must do the work that is timed ---- */

/* How many packets were counted under the outcome, with the verdict that it must have. */
static __u64 counted(const struct scene *scene, const struct abi_counter *counters, enum abi_outcome outcome)
{
	enum abi_verdict verdict = VERDICT_PASS;

	if (outcome == OUTCOME_DROP_RULE)
		verdict = VERDICT_DROP;
	else if (outcome < OUTCOME_POLICIES)
		verdict = scene->filter->config->policy[outcome];
	return counters[outcome * VERDICTS + verdict].packets;
}

static int read_counters(const struct scene *scene, struct abi_counter counters[ABI_COUNTERS],
			 const struct abi_counter *before, struct reason *reason)
{
	int error = kernel_counters(scene->filter, counters, reason);

	for (int i = 0; before && i < ABI_COUNTERS; i++)
		counters[i].packets -= before[i].packets;
	return error;
}

static __u64 least(__u64 a, __u64 b)
{
	return a < b ? a : b;
}

/* Whether chance explains so many wrong packets, after the list has run `times` times. */
static bool is_chance(const struct bench_expected *expected, double wrong, double times)
{
	const double more = wrong / times - expected->wrong - STANDARD_DEVIATIONS * expected->together;

	return more <= 0 || more * more <= STANDARD_DEVIATIONS * STANDARD_DEVIATIONS * expected->wrong_variance;
}

static int say_wrong_verdicts(const struct scene *scene, __u64 wrong, __u64 packets, struct reason *reason)
{
	return reason_set(reason, -EPROTO,
			  "the filter and the rules disagree about %llu of %llu packets (%s %s; by chance it would be "
			  "%.0f in %u): nothing is measured; see xdp-cuckoo check",
			  (unsigned long long)wrong, (unsigned long long)packets, bench_family_names[scene->family],
			  bench_traffic_names[scene->traffic], scene->expected.wrong, BENCH_FLOWS);
}

/* After each flow of the list ran once: the counts must be as expected. */
static int check_counts(const struct scene *scene, const struct abi_counter *counters, struct reason *reason)
{
	__u64 right = 0;

	for (enum abi_outcome outcome = 0; outcome < OUTCOME_NOT_SET_UP; outcome++)
		right += least(counted(scene, counters, outcome), scene->expected.packets[outcome]);
	if (counted(scene, counters, OUTCOME_NOT_SET_UP) != BENCH_FLOWS)
		return reason_set(reason, -EPROTO, "the parser did not read every packet: nothing is measured");
	if (is_chance(&scene->expected, BENCH_FLOWS - right, 1))
		return 0;
	return say_wrong_verdicts(scene, BENCH_FLOWS - right, BENCH_FLOWS, reason);
}

/* *ns: the rough cost of a packet. */
static int check(const struct scene *scene, double ns[BENCH_PROGRAMS], struct reason *reason)
{
	struct abi_counter before[ABI_COUNTERS], counters[ABI_COUNTERS];
	int error = read_counters(scene, before, NULL, reason);

	for (enum bench_program program = BENCH_PARSE; program < BENCH_PROGRAMS && !error; program++) {
		struct bench_shift shift = scene->shift;
		struct bench_head *head = (struct bench_head *)shift.frame;
		__u32 whole_ns;

		head->worker = BENCH_NO_WORKER;
		head->program = program;
		error = kernel_bench_run(shift.bench, shift.frame, shift.frame_bytes, BENCH_FLOWS, &whole_ns, reason);
		ns[program] = whole_ns + 1;
	}
	if (!error)
		error = read_counters(scene, counters, before, reason);
	if (error)
		return error;
	ns[BENCH_DROP] = ns[BENCH_PARSE];
	return check_counts(scene, counters, reason);
}

/* After timing: every packet must be counted once, and only under outcomes that the list has. */
static int check_timed(const struct scene *scene, const struct abi_counter *counters,
		       const __u64 packets[BENCH_PROGRAMS + 1], struct reason *reason)
{
	const __u64 filtered = packets[BENCH_FILTER] + packets[BENCH_WARM_UP];
	__u64 right = 0;

	for (enum abi_outcome outcome = 0; outcome < OUTCOME_NOT_SET_UP; outcome++)
		if (scene->expected.packets[outcome])
			right += counted(scene, counters, outcome);
	if (counted(scene, counters, OUTCOME_NOT_SET_UP) != packets[BENCH_PARSE] || right > filtered)
		return reason_set(reason, -EPROTO, "packets were not counted once each: nothing is measured");
	/* Each CPU may have stopped within the list. */
	if (is_chance(&scene->expected, filtered - right, filtered / (double)BENCH_FLOWS + bench_cpus()))
		return 0;
	return say_wrong_verdicts(scene, filtered - right, filtered, reason);
}

/* ---- timing ---- */

static int compare(const void *a, const void *b)
{
	const float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

static struct bench_figure figure_of(const struct bench_series *series)
{
	const size_t count = series->slices < BENCH_SERIES_ROOM ? series->slices : BENCH_SERIES_ROOM;
	const float *ns = series->ns;

	qsort(series->ns, count, sizeof(*ns), compare);
	return (struct bench_figure){ .median = (ns[(count - 1) / 2] + ns[count / 2]) / 2,
				      .lower_quartile = ns[(count - 1) / 4],
				      .upper_quartile = ns[count - 1 - (count - 1) / 4] };
}

/* Each run has at most BENCH_SLICES slices. */
static int run_counted(struct scene *scene, const cpu_set_t *cpus, __u64 slices,
		       struct bench_series series[BENCH_PROGRAMS], struct reason *reason)
{
	struct abi_counter before[ABI_COUNTERS], counters[ABI_COUNTERS];
	__u64 packets[BENCH_PROGRAMS + 1] = {};
	int error = read_counters(scene, before, NULL, reason);

	while (slices && !error) {
		const __u64 run = least(slices, BENCH_SLICES);

		scene->shift.packets = run * BENCH_SLICE;
		error = bench_crew_run(&scene->shift, cpus, series, packets, reason);
		slices -= run;
	}
	if (!error)
		error = read_counters(scene, counters, before, reason);
	return error ? error : check_timed(scene, counters, packets, reason);
}

static int read_series(const struct bench_series series[BENCH_PROGRAMS], struct bench_figure figures[BENCH_PROGRAMS],
		       struct reason *reason)
{
	for (enum bench_program program = 0; program < BENCH_PROGRAMS; program++) {
		if (series[program].slices < SLICES_MIN)
			return reason_set(reason, -EPROTO,
					  "the CPUs were too busy to run the test at the same "
					  "time; try again, or with more --seconds");
		figures[program] = figure_of(&series[program]);
	}
	return 0;
}

static int time_on(struct scene *scene, const cpu_set_t *cpus, __u64 slices,
		   struct bench_figure figures[BENCH_PROGRAMS], struct reason *reason)
{
	float *ns = malloc(sizeof(*ns) * BENCH_PROGRAMS * BENCH_SERIES_ROOM);
	struct bench_series series[BENCH_PROGRAMS] = {};
	int error;

	if (!ns)
		return reason_set(reason, -ENOMEM, "no memory for what is measured");
	for (enum bench_program program = 0; program < BENCH_PROGRAMS; program++)
		series[program].ns = ns + (size_t)program * BENCH_SERIES_ROOM;
	error = run_counted(scene, cpus, slices, series, reason);
	if (!error)
		error = read_series(series, figures, reason);
	free(ns);
	return error;
}

/* ---- all kinds of traffic ---- */

/* Spends half of the time on one CPU, half on all. */
static int measure(struct scene *scene, double seconds, struct bench_result *result, struct reason *reason)
{
	double ns[BENCH_PROGRAMS];
	cpu_set_t all, one;
	double turn_ns;
	__u64 slices;
	int error;

	make_frame(scene->family, &scene->shift);
	error = check(scene, ns, reason);
	if (error)
		return error;
	if (sched_getaffinity(0, sizeof(all), &all))
		return reason_set(reason, -errno, "cannot tell the CPUs: %s", strerror(errno));
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	seconds = seconds / 2 > SECONDS_MIN ? seconds / 2 : SECONDS_MIN;
	turn_ns = seconds * 1e9 / BENCH_TURNS;
	slices = (turn_ns / ns[BENCH_DROP] + turn_ns / ns[BENCH_PARSE] +
		  BENCH_TURNS_FILTER * turn_ns / ns[BENCH_FILTER]) /
		 BENCH_SLICE;
	error = time_on(scene, &one, slices, result->one_cpu, reason);
	return error ? error : time_on(scene, &all, slices, result->all_cpus, reason);
}

int bench_measure(const struct kernel_filter *filter, const struct bench_lists *lists, double seconds,
		  struct bench_results *results, struct reason *reason)
{
	struct kernel_bench bench;
	int error = kernel_bench_open(filter, bench_cpus(), &bench, reason);

	*results = (struct bench_results){};
	if (error)
		return error;
	for (enum flow_family family = 0; family < FLOW_FAMILIES; family++)
		for (enum bench_traffic traffic = 0; traffic < BENCH_TRAFFICS; traffic++)
			if (bench_lists_has(lists, family, traffic))
				results->result[results->count++] =
					(struct bench_result){ .family = family, .traffic = traffic };
	seconds /= results->count;
	for (size_t i = 0; i < results->count && !error; i++) {
		struct bench_result *result = &results->result[i];
		struct scene scene = {
			.filter = filter, .family = result->family, .traffic = result->traffic, .shift.bench = &bench
		};

		bench_lists_write(lists, filter, result->family, result->traffic,
				  result->family == FLOW_IPV4 ? (void *)bench.ipv4 : (void *)bench.ipv6,
				  &scene.expected);
		error = measure(&scene, seconds, result, reason);
	}
	kernel_bench_close(&bench);
	return error;
}
