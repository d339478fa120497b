// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Checks that the filter decides as the rules say, times it on one CPU and on all at once, and makes the figures. */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>

#include "bench/bench.h"
#include "bench/random.h"

#define SLICES_MIN 16         /* a program with fewer slices gets no figure */
#define SECONDS_MIN 0.1       /* of a run: enough for several turns of each program */

#define BENCH_FRAME_BYTES_MAX 64
#define BENCH_SERIES_ROOM (1 << 20)

const char *const bench_family_names[FLOW_FAMILIES] = { [FLOW_IPV4] = "ipv4", [FLOW_IPV6] = "ipv6" };

const char *const bench_traffic_names[] = { [BENCH_HIT] = "hit", [BENCH_HALF] = "half", [BENCH_MISS] = "miss" };

unsigned int bench_cpus(void)
{
	cpu_set_t cpus;

	return sched_getaffinity(0, sizeof(cpus), &cpus) ? 0 : CPU_COUNT(&cpus);
}

__u64 bench_bytes(void)
{
	return kernel_bench_bytes(bench_cpus()) + (__u64)BENCH_PROGRAMS * BENCH_SERIES_ROOM * sizeof(float);
}

/* ---- worker threads: run the program of bench on several CPUs at once, and collect the times of its slices ---- */

/* The times of slices, in ns per packet; a random sample if there are too many. */
struct bench_series {
	float *ns;    /* BENCH_SERIES_ROOM */
	__u64 slices; /* of all, in the sample or not */
};

struct bench_run {
	const struct kernel_bench *bench;
	__u8 frame[BENCH_FRAME_BYTES_MAX]; /* to start with */
	size_t frame_bytes;
	__u32 packets; /* of each thread: at most BENCH_SLICES whole slices */
};

struct workers {
	const struct bench_run *run;
	struct worker *worker;
	unsigned int count;
	pthread_mutex_t gate;      /* locked until all threads exist */
	bool is_called_off;        /* a thread could not be started */
	pthread_barrier_t barrier; /* makes all threads start at the same time */
};

struct worker {
	struct workers *all;
	pthread_t thread;
	__u8 frame[BENCH_FRAME_BYTES_MAX];
	int error;
	struct reason reason;
};

static void *work(void *context)
{
	struct worker *worker = context;
	struct workers *all = worker->all;
	bool is_called_off;

	pthread_mutex_lock(&all->gate);
	is_called_off = all->is_called_off;
	pthread_mutex_unlock(&all->gate);
	if (is_called_off)
		return NULL;
	pthread_barrier_wait(&all->barrier);
	worker->error = kernel_bench_run(all->run->bench, worker->frame, all->run->frame_bytes, all->run->packets, NULL,
					 &worker->reason);
	return NULL;
}

/* The threads start at different flows, so that none finds in the cache what another has just fetched. */
static int start_on(int cpu, struct workers *all, unsigned int number)
{
	struct worker *worker = &all->worker[number];
	struct bench_head *head = (struct bench_head *)worker->frame;
	pthread_attr_t attributes;
	cpu_set_t cpus;
	int error = pthread_attr_init(&attributes);

	if (error)
		return -error;
	worker->all = all;
	memcpy(worker->frame, all->run->frame, sizeof(worker->frame));
	head->next += (size_t)number * BENCH_FLOWS / all->count & -BENCH_SLICE;
	head->worker = number;
	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	error = pthread_attr_setaffinity_np(&attributes, sizeof(cpus), &cpus);
	if (!error)
		error = pthread_create(&worker->thread, &attributes, work, worker);
	pthread_attr_destroy(&attributes);
	return -error;
}

static __u64 time_of(__u64 stamp)
{
	return stamp & ~BENCH_STAMP_PROGRAM;
}

/*
 * Adds the slices that ran while all threads were at work. A slice ends where the next one starts, so the last
 * slice has no known end.
 */
static void collect(const struct workers *all, struct bench_series series[BENCH_PROGRAMS],
		    __u64 packets[BENCH_PROGRAMS + 1])
{
	const __u64 *stamps = all->run->bench->stamps;
	const unsigned int slices = all->run->packets / BENCH_SLICE;
	static uint64_t random = 1;
	__u64 start = 0, end = ~0ULL;

	for (unsigned int i = 0; i < all->count; i++) {
		const __u64 *stamp = stamps + (size_t)i * BENCH_SLICES;

		start = MAX(start, time_of(stamp[0]));
		end = MIN(end, time_of(stamp[slices - 1]));
	}
	for (unsigned int i = 0; i < all->count; i++)
		for (unsigned int slice = 0; slice < slices; slice++) {
			const __u64 *stamp = stamps + (size_t)i * BENCH_SLICES + slice;
			const enum bench_program program = *stamp & BENCH_STAMP_PROGRAM;
			__u64 seen, at;

			packets[program] += BENCH_SLICE;
			if (program >= BENCH_PROGRAMS || slice + 1 == slices || time_of(*stamp) < start ||
			    time_of(stamp[1]) > end)
				continue;
			/* Reservoir sampling, as in traffic.c. */
			seen = series[program].slices++;
			at = seen < BENCH_SERIES_ROOM ? seen : random_below(&random, seen + 1);
			if (at < BENCH_SERIES_ROOM)
				series[program].ns[at] = (time_of(stamp[1]) - time_of(*stamp)) / (double)BENCH_SLICE;
		}
}

/*
 * Runs a thread on each of `cpus`. Adds the slices that ran while all threads were at work to series[program], and
 * the number of all packets, also of the warm-up, to packets[program]. 0 or -errno.
 */
static int bench_run_on(const cpu_set_t *cpus, const struct bench_run *run, struct bench_series series[BENCH_PROGRAMS],
		 __u64 packets[BENCH_PROGRAMS + 1], struct reason *reason)
{
	struct workers all = { .run = run, .count = CPU_COUNT(cpus), .gate = PTHREAD_MUTEX_INITIALIZER };
	unsigned int started = 0;
	int error = -pthread_barrier_init(&all.barrier, NULL, all.count);

	if (error)
		return reason_set(reason, error, "cannot start threads: %s", strerror(-error));
	all.worker = calloc(all.count, sizeof(*all.worker));
	if (!all.worker)
		error = -ENOMEM;
	pthread_mutex_lock(&all.gate);
	for (int cpu = 0; cpu < CPU_SETSIZE && !error; cpu++) {
		if (!CPU_ISSET(cpu, cpus))
			continue;
		error = start_on(cpu, &all, started);
		started += !error;
	}
	all.is_called_off = error;
	pthread_mutex_unlock(&all.gate);
	for (unsigned int i = 0; i < started; i++)
		pthread_join(all.worker[i].thread, NULL);
	if (error)
		reason_set(reason, error, "cannot run a thread on each CPU: %s", strerror(-error));
	for (unsigned int i = 0; i < all.count && !error; i++) {
		error = all.worker[i].error;
		if (error)
			*reason = all.worker[i].reason;
	}
	if (!error)
		collect(&all, series, packets);
	free(all.worker);
	pthread_barrier_destroy(&all.barrier);
	return error;
}

/* ---- what is measured ---- */

/* One kind of traffic. The map that the programs read has its flows. */
struct scene {
	const struct kernel_filter *filter;
	enum flow_family family;
	enum bench_traffic traffic;
	struct bench_expected expected;
	struct bench_run run;
};

struct ipv4_frame {
	struct bench_head head;
	struct iphdr ip;
	__u8 payload[BENCH_IPV4_PAYLOAD];
} __attribute__((packed));

struct ipv6_frame {
	struct bench_head head;
	struct ipv6hdr ip;
	__u8 payload[BENCH_IPV6_PAYLOAD];
} __attribute__((packed));

_Static_assert(sizeof(struct ipv6_frame) <= BENCH_FRAME_BYTES_MAX, "frame");

/* ---- checks: the programs must do the work that is timed ---- */

/* The packets that were counted under the outcome and its right verdict. */
static __u64 counted(const struct scene *scene, const struct abi_counter *counters, enum abi_outcome outcome)
{
	enum abi_verdict verdict = VERDICT_PASS;

	if (outcome == OUTCOME_DROP_RULE)
		verdict = VERDICT_DROP;
	else if (outcome < OUTCOME_POLICIES)
		verdict = abi_policy(abi_active(scene->filter->config), outcome);
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

/*
 * Checks the counts of a run against the rules. `packets`: how many each timed program ran; NULL: each flow of the
 * list ran once. In a compact table, chance finds a rule for some packets that have none, but never the other way round.
 */
static int check_counts(const struct scene *scene, const struct abi_counter *counters, const __u64 *packets,
			struct reason *reason)
{
	const __u64 parsed = packets ? packets[BENCH_PARSE] : BENCH_FLOWS;
	const __u64 filtered = packets ? packets[BENCH_FILTER] + packets[BENCH_WARM_UP] : BENCH_FLOWS;
	__u64 right = 0, missed = 0, wrong;

	for (enum abi_outcome outcome = 0; outcome < OUTCOME_NOT_SET_UP; outcome++) {
		const __u64 count = counted(scene, counters, outcome);
		const __u64 most = scene->expected.packets[outcome];
		const __u64 expected = packets && most ? count : MIN(count, most);

		right += expected;
		missed += outcome == OUTCOME_NO_RULE ? count - expected : 0;
	}
	if (counted(scene, counters, OUTCOME_NOT_SET_UP) != parsed || right > filtered)
		return reason_set(reason, -EPROTO, "%s: nothing is measured",
				  packets ? "packets were not counted once each" :
					    "the parser did not read every packet");
	wrong = scene->filter->options.is_exact ? filtered - right : missed;
	if (!wrong)
		return 0;
	return reason_set(reason, -EPROTO,
			  "the filter and the rules disagree about %llu of %llu packets (%s %s): nothing is measured; "
			  "see xdp-cuckoo check",
			  (unsigned long long)wrong, (unsigned long long)filtered,
			  bench_family_names[scene->family], bench_traffic_names[scene->traffic]);
}

/* Runs each flow once and checks the counts. *ns: the rough cost of a packet. */
static int check(const struct scene *scene, double ns[BENCH_PROGRAMS], struct reason *reason)
{
	struct abi_counter before[ABI_COUNTERS], counters[ABI_COUNTERS];
	int error = read_counters(scene, before, NULL, reason);

	for (enum bench_program program = BENCH_PARSE; program < BENCH_PROGRAMS && !error; program++) {
		struct bench_run run = scene->run;
		struct bench_head *head = (struct bench_head *)run.frame;
		__u32 whole_ns;

		head->worker = BENCH_NO_WORKER;
		head->program = program;
		error = kernel_bench_run(run.bench, run.frame, run.frame_bytes, BENCH_FLOWS, &whole_ns, reason);
		ns[program] = whole_ns + 1;
	}
	if (!error)
		error = read_counters(scene, counters, before, reason);
	if (error)
		return error;
	ns[BENCH_DROP] = ns[BENCH_PARSE];
	return check_counts(scene, counters, NULL, reason);
}

/* ---- timing ---- */

static int compare(const void *a, const void *b)
{
	const float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

static int time_on(struct scene *scene, const cpu_set_t *cpus, __u64 slices,
		   struct bench_figure figures[BENCH_PROGRAMS], struct reason *reason)
{
	float *all = malloc(sizeof(*all) * BENCH_PROGRAMS * BENCH_SERIES_ROOM);
	struct abi_counter before[ABI_COUNTERS], counters[ABI_COUNTERS];
	struct bench_series series[BENCH_PROGRAMS] = {};
	__u64 packets[BENCH_PROGRAMS + 1] = {};
	int error;

	if (!all)
		return reason_set(reason, -ENOMEM, "no memory for what is measured");
	for (enum bench_program program = 0; program < BENCH_PROGRAMS; program++)
		series[program].ns = all + (size_t)program * BENCH_SERIES_ROOM;
	error = read_counters(scene, before, NULL, reason);
	while (slices && !error) {
		const __u64 now = MIN(slices, BENCH_SLICES); /* of one run */

		scene->run.packets = now * BENCH_SLICE;
		error = bench_run_on(cpus, &scene->run, series, packets, reason);
		slices -= now;
	}
	if (!error)
		error = read_counters(scene, counters, before, reason);
	if (!error)
		error = check_counts(scene, counters, packets, reason);
	for (enum bench_program program = 0; program < BENCH_PROGRAMS && !error; program++) {
		const size_t count = MIN(series[program].slices, BENCH_SERIES_ROOM);
		float *ns = series[program].ns;

		if (count < SLICES_MIN) {
			error = reason_set(reason, -EPROTO,
					   "the CPUs were too busy to run the test at the same time; try again, or "
					   "with more --seconds");
			break;
		}
		qsort(ns, count, sizeof(*ns), compare);
		figures[program] = (struct bench_figure){ .median = (ns[(count - 1) / 2] + ns[count / 2]) / 2,
							  .lower_quartile = ns[(count - 1) / 4],
							  .upper_quartile = ns[count - 1 - (count - 1) / 4] };
	}
	free(all);
	return error;
}

/* Spends half of the time on one CPU and half on all. */
static int measure(struct scene *scene, double seconds, struct bench_result *result, struct reason *reason)
{
	const struct ipv4_frame ipv4 = {
		.head = { .ethertype = htons(ETH_P_IP) },
		.ip = { .version = 4, .ihl = 5, .ttl = 64, .tot_len = htons(sizeof(ipv4) - sizeof(ipv4.head)) },
		.payload = { [13] = FLOW_TCP_SYN },
	};
	const struct ipv6_frame ipv6 = {
		.head = { .ethertype = htons(ETH_P_IPV6) },
		.ip = { .version = 6, .hop_limit = 64, .payload_len = htons(sizeof(ipv6.payload)) },
	};
	const void *frame = scene->family == FLOW_IPV4 ? (const void *)&ipv4 : (const void *)&ipv6;
	double ns[BENCH_PROGRAMS];
	cpu_set_t all, one;
	double turn_ns;
	__u64 slices;
	int error;

	scene->run.frame_bytes = scene->family == FLOW_IPV4 ? sizeof(ipv4) : sizeof(ipv6);
	memcpy(scene->run.frame, frame, scene->run.frame_bytes);
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
			.filter = filter, .family = result->family, .traffic = result->traffic, .run.bench = &bench
		};

		bench_lists_write(lists, result->family, result->traffic,
				  result->family == FLOW_IPV4 ? (void *)bench.ipv4 :
								(void *)bench.ipv6,
				  &scene.expected);
		error = measure(&scene, seconds, result, reason);
	}
	kernel_bench_close(&bench);
	return error;
}
