// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "bench/worker_threads.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "bench/random.h"

struct crew {
	const struct bench_shift *shift;
	struct worker *workers;
	unsigned int count;
	pthread_mutex_t gate;      /* locked until all threads exist */
	bool is_called_off;        /* a thread could not be started */
	pthread_barrier_t barrier; /* after the gate, so that all start closely together */
};

struct worker {
	struct crew *crew;
	pthread_t thread;
	__u8 frame[BENCH_FRAME_BYTES_MAX];
	int error;
	struct reason reason;
};

/* ---- one thread ---- */

static void *work(void *context)
{
	struct worker *worker = context;
	struct crew *crew = worker->crew;
	const struct bench_shift *shift = crew->shift;
	bool is_called_off;

	pthread_mutex_lock(&crew->gate);
	is_called_off = crew->is_called_off;
	pthread_mutex_unlock(&crew->gate);
	if (is_called_off)
		return NULL;
	pthread_barrier_wait(&crew->barrier);
	worker->error = kernel_bench_run(shift->bench, worker->frame, shift->frame_bytes, shift->packets, NULL,
					 &worker->reason);
	return NULL;
}

/* Threads start at different flows, so that none finds in the cache what another has just fetched. */
static void prepare(struct worker *worker, struct crew *crew)
{
	const size_t number = worker - crew->workers;
	struct bench_head *head = (struct bench_head *)worker->frame;

	worker->crew = crew;
	memcpy(worker->frame, crew->shift->frame, sizeof(worker->frame));
	head->next += number * BENCH_FLOWS / crew->count & -BENCH_SLICE;
	head->worker = number;
}

static int start_on(struct worker *worker, int cpu)
{
	pthread_attr_t attributes;
	cpu_set_t cpus;
	int error = pthread_attr_init(&attributes);

	if (error)
		return -error;
	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	error = pthread_attr_setaffinity_np(&attributes, sizeof(cpus), &cpus);
	if (!error)
		error = pthread_create(&worker->thread, &attributes, work, worker);
	pthread_attr_destroy(&attributes);
	return -error;
}

/* ---- all threads ---- */

static int run_workers(struct crew *crew, const cpu_set_t *cpus)
{
	unsigned int started = 0;
	int error = 0;

	pthread_mutex_lock(&crew->gate);
	for (int cpu = 0; cpu < CPU_SETSIZE && !error; cpu++) {
		if (!CPU_ISSET(cpu, cpus))
			continue;
		prepare(&crew->workers[started], crew);
		error = start_on(&crew->workers[started], cpu);
		started += !error;
	}
	crew->is_called_off = error;
	pthread_mutex_unlock(&crew->gate);
	for (unsigned int i = 0; i < started; i++)
		pthread_join(crew->workers[i].thread, NULL);
	return error;
}

/* ---- times of slices ---- */

static __u64 time_of(__u64 stamp)
{
	return stamp & ~BENCH_STAMP_PROGRAM;
}

/* Algorithm R, as in traffic.c. */
static void add(struct bench_series *series, double ns)
{
	static uint64_t random = 1;
	const __u64 seen = series->slices++;
	const __u64 at = seen < BENCH_SERIES_ROOM ? seen : random_below(&random, seen + 1);

	if (at < BENCH_SERIES_ROOM)
		series->ns[at] = ns;
}

/* A slice ends where the next one starts, so the last slice has no known end. */
static void collect(const struct crew *crew, struct bench_series series[BENCH_PROGRAMS],
		    __u64 packets[BENCH_PROGRAMS + 1])
{
	const unsigned int slices = crew->shift->packets / BENCH_SLICE;
	__u64 start = 0, end = ~0ULL;

	for (unsigned int i = 0; i < crew->count; i++) {
		const __u64 *stamp = crew->shift->bench->stamps + (size_t)i * BENCH_SLICES;

		if (start < time_of(stamp[0]))
			start = time_of(stamp[0]);
		if (end > time_of(stamp[slices - 1]))
			end = time_of(stamp[slices - 1]);
	}
	for (unsigned int i = 0; i < crew->count; i++)
		for (unsigned int slice = 0; slice < slices; slice++) {
			const __u64 *stamp = crew->shift->bench->stamps + (size_t)i * BENCH_SLICES + slice;
			const enum bench_program program = *stamp & BENCH_STAMP_PROGRAM;

			packets[program] += BENCH_SLICE;
			if (program < BENCH_PROGRAMS && slice + 1 < slices && time_of(*stamp) >= start &&
			    time_of(stamp[1]) <= end)
				add(&series[program], (time_of(stamp[1]) - time_of(*stamp)) / (double)BENCH_SLICE);
		}
}

int bench_crew_run(const struct bench_shift *shift, const cpu_set_t *cpus, struct bench_series series[BENCH_PROGRAMS],
		   __u64 packets[BENCH_PROGRAMS + 1], struct reason *reason)
{
	struct crew crew = { .shift = shift, .count = CPU_COUNT(cpus), .gate = PTHREAD_MUTEX_INITIALIZER };
	int error = -pthread_barrier_init(&crew.barrier, NULL, crew.count);

	if (error)
		return reason_set(reason, error, "cannot start threads: %s", strerror(-error));
	crew.workers = calloc(crew.count, sizeof(*crew.workers));
	error = crew.workers ? run_workers(&crew, cpus) : -ENOMEM;
	if (error)
		reason_set(reason, error, "cannot run a thread on each CPU: %s", strerror(-error));
	for (unsigned int i = 0; i < crew.count && !error; i++) {
		error = crew.workers[i].error;
		if (error)
			*reason = crew.workers[i].reason;
	}
	if (!error)
		collect(&crew, series, packets);
	free(crew.workers);
	pthread_barrier_destroy(&crew.barrier);
	return error;
}
