// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "bench/bench.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "bench/random.h"

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

int bench_run_on(const cpu_set_t *cpus, const struct bench_run *run, struct bench_series series[BENCH_PROGRAMS],
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
