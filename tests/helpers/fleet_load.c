// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * fleet_load BROKER REPORT|- HOSTS RATE SECONDS: so many hosts follow the list "bad" of the fleet "load", and RATE changes a
 * second are published. Each host is the reader of a follower (log_reader.h) in a thread; one thread answers them all as
 * their appliers, and applies nothing. Prints how long changes took until all hosts had them, and what the main threads of
 * the servers did meanwhile.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "fleet/broker.h"
#include "fleet/functions.h"
#include "fleet/log_reader.h"

#define FLEET "load"
#define STACK_BYTES (320 << 10) /* a connection reads 64 KB at once */
#define ENTRIES_MAX 100000
#define SETTLE_MS 6000 /* hosts read how many they are at their second report */
#define LATE_MS 30000
#define HOSTS_EACH 2500 /* of a process; each host takes three files */

struct host {
	struct fleet_options options;
	struct log_reader_start start;
	char name[32];
	int fds[2];
	struct fleet_position at;
	bool has_answered;
};

struct entry {
	__s64 published_ms, level_ms;
	size_t hosts; /* that have it */
};

/* Several processes share the hosts, because one may have too few files for all. */
static struct shared {
	size_t hosts, ready;
	struct entry entries[ENTRIES_MAX];
} *shared;
static const struct broker_secrets no_secrets;

static void fail(const char *text)
{
	fprintf(stderr, "fleet_load: %s\n", text);
	exit(1);
}

/* ---- the hosts ---- */

static void *run_host(void *context)
{
	struct host *host = context;

	log_reader_run(&host->start, host->fds[1]);
	return NULL;
}

static void take_entry(struct host *host, struct fleet_position at)
{
	for (__u64 seq = host->at.epoch == at.epoch ? host->at.seq + 1 : 0; seq <= at.seq && seq < ENTRIES_MAX; seq++)
		if (__atomic_add_fetch(&shared->entries[seq].hosts, 1, __ATOMIC_SEQ_CST) == shared->hosts)
			shared->entries[seq].level_ms = clock_ms(CLOCK_MONOTONIC);
	host->at = at;
}

static void answer(struct host *host, char *text)
{
	struct follow_message done = { .kind = FOLLOW_DONE };
	char position[FLEET_POSITION_BYTES];

	done.bytes =
		sprintf(text,
			"at:bad %s\nlists bad\nversion load\nstate level\nrules %llu\nrefused 0\npanic 0\nwhy  \nseen "
			"%lld\nskew 0\ndropped 0\n",
			fleet_position_format(host->at, position), (unsigned long long)host->at.seq,
			(long long)clock_ms(CLOCK_REALTIME));
	if (follow_send(host->fds[0], &done, text))
		fail("a reader has ended");
	if (!host->has_answered)
		__atomic_add_fetch(&shared->ready, 1, __ATOMIC_SEQ_CST);
	host->has_answered = true;
}

/* All appliers. */
static void *run_appliers(void *context)
{
	static char text[FOLLOW_BYTES_MAX + 1];
	const int epoll = *(int *)context;
	struct epoll_event events[256];

	for (;;) {
		const int count = epoll_wait(epoll, events, 256, -1);

		for (int i = 0; i < count; i++) {
			struct host *host = events[i].data.ptr;
			struct follow_message message;

			if (follow_receive(host->fds[0], &message, text))
				fail("a reader has ended");
			if (message.kind == FOLLOW_ENTRY || message.kind == FOLLOW_END)
				take_entry(host, message.at);
			if (message.kind == FOLLOW_LOST)
				fprintf(stderr, "%s: %s\n", host->name, text);
			if (message.kind == FOLLOW_FLUSH)
				answer(host, text);
		}
	}
	return NULL;
}

static void start_hosts(const char *broker, const char *report, size_t first, size_t count)
{
	struct host *hosts = calloc(count, sizeof(*hosts));
	static int epoll;
	pthread_attr_t attributes;
	pthread_t thread;

	epoll = epoll_create1(0);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	if (!hosts || pthread_create(&thread, NULL, run_appliers, &epoll))
		fail("not enough memory");
	for (size_t i = 0; i < count; i++) {
		struct host *host = &hosts[i];
		struct epoll_event event = { .events = EPOLLIN, .data.ptr = host };

		sprintf(host->name, "sim%zu", first + i);
		host->options = (struct fleet_options){ .brokers = { broker },
							.brokers_count = 1,
							.host = host->name,
							.report = report,
							.jitter_ms = 1000 };
		host->start = (struct log_reader_start){ .options = &host->options,
							 .secrets = &no_secrets,
							 .fleet = FLEET,
							 .lists = { { .name = "bad" } },
							 .count = 1 };
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, host->fds) ||
		    epoll_ctl(epoll, EPOLL_CTL_ADD, host->fds[0], &event) ||
		    pthread_create(&thread, &attributes, run_host, host))
			fail(strerror(errno));
		if (i % 50 == 49)
			clock_pause(50);
	}
}

/* Returns when each host has answered once. */
static void start_processes(const char *broker, const char *report)
{
	for (size_t first = 0; first < shared->hosts; first += HOSTS_EACH)
		if (!fork()) {
			const size_t left = shared->hosts - first;

			prctl(PR_SET_PDEATHSIG, SIGKILL);
			start_hosts(broker, report, first, left < HOSTS_EACH ? left : HOSTS_EACH);
			for (;;)
				pause();
		}
	while (__atomic_load_n(&shared->ready, __ATOMIC_SEQ_CST) < shared->hosts)
		clock_pause(10);
}

/* ---- the servers ---- */

/* Seconds that the server's main thread has worked. */
static double main_thread_s(struct broker *server)
{
	static const char *const names[] = { "used_cpu_sys_main_thread:", "used_cpu_user_main_thread:" };
	struct reason reason;
	redisReply *reply;
	double seconds = 0;

	if (connection_ask(&server->connection, &reply, &reason, "INFO", "cpu", NULL))
		fail(reason.text);
	for (size_t i = 0; i < 2; i++) {
		const char *found = strstr(reply->str, names[i]);

		seconds += found ? atof(found + strlen(names[i])) : 0;
	}
	codec_free(reply);
	return seconds;
}

static void open_server(struct broker *server, const char *where)
{
	const struct fleet_options options = { .brokers = { where }, .brokers_count = 1 };
	struct reason reason;

	if (broker_open(server, &options, NULL, BROKER_WRITE, 10000, &reason))
		fail(reason.text);
}

static __u64 publish(struct broker *broker, __u64 counter)
{
	char number[24], line[64];
	struct fleet_position at;
	struct reason reason;
	redisReply *reply;

	sprintf(number, "%llu", (unsigned long long)counter);
	sprintf(line, "+ 0 src 10.%llu.%llu.%llu", (unsigned long long)counter / 65536,
		(unsigned long long)counter / 256 % 256, (unsigned long long)counter % 256);
	if (connection_ask(&broker->connection, &reply, &reason, "FCALL", "xc_publish", "2", "xc:" FLEET ":L:bad:meta",
			   "xc:" FLEET ":L:bad:log", "load", number, "", line, NULL))
		fail(reason.text);
	if (reply->elements != 4 || fleet_position_parse(reply->element[1]->str, &at) || at.seq >= ENTRIES_MAX)
		fail("the answer is not that of the function");
	codec_free(reply);
	return at.seq;
}

static int compare(const void *a, const void *b)
{
	return (*(const __s64 *)a > *(const __s64 *)b) - (*(const __s64 *)a < *(const __s64 *)b);
}

int main(int argc, char **argv)
{
	const char *report = argc > 2 && strcmp(argv[2], "-") ? argv[2] : NULL;
	const size_t rate = argc == 6 ? atoi(argv[4]) : 0, count = argc == 6 ? rate * atoi(argv[5]) : 0;
	static struct broker broker, own, reports;
	double work_s, reports_work_s = 0, start_s;
	static __s64 took_ms[ENTRIES_MAX];
	char id[FLEET_ID_BYTES];
	struct reason reason;
	__s64 started_ms;

	if (!count || count + 2 > ENTRIES_MAX)
		fail("usage: fleet_load BROKER REPORT|- HOSTS RATE SECONDS");
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		fail("not enough memory");
	shared->hosts = atoi(argv[3]);
	open_server(&broker, argv[1]);
	open_server(&own, argv[1]);
	if (report)
		open_server(&reports, report);
	if (functions_load(&broker, FLEET, 10000, id, &reason))
		fail(reason.text);
	publish(&broker, 1);
	started_ms = clock_ms(CLOCK_MONOTONIC);
	start_processes(argv[1], report);
	printf("%zu hosts are connected after %lld ms\n", shared->hosts,
	       (long long)(clock_ms(CLOCK_MONOTONIC) - started_ms));
	clock_pause(SETTLE_MS);
	work_s = main_thread_s(&own);
	reports_work_s = report ? main_thread_s(&reports) : 0;
	start_s = clock_seconds();
	started_ms = clock_ms(CLOCK_MONOTONIC);
	for (size_t i = 0; i < count; i++) {
		const __s64 due_ms = started_ms + (__s64)(i * 1000 / rate), now_ms = clock_ms(CLOCK_MONOTONIC);
		__u64 seq;

		if (due_ms > now_ms)
			clock_pause(due_ms - now_ms);
		seq = publish(&broker, i + 2);
		shared->entries[seq].published_ms = due_ms;
	}
	start_s = clock_seconds() - start_s;
	printf("%zu changes in %.1f s: the broker's main thread worked %.0f %%", count, start_s,
	       (main_thread_s(&own) - work_s) * 100 / start_s);
	if (report)
		printf(", that of reports %.0f %%", (main_thread_s(&reports) - reports_work_s) * 100 / start_s);
	started_ms = clock_ms(CLOCK_MONOTONIC);
	for (size_t i = 0; i < count; i++) {
		const struct entry *entry = &shared->entries[i + 2];

		while (!__atomic_load_n(&entry->level_ms, __ATOMIC_ACQUIRE)) {
			if (clock_ms(CLOCK_MONOTONIC) - started_ms > LATE_MS)
				fail("not all hosts are level after 30 s");
			clock_pause(10);
		}
		took_ms[i] = entry->level_ms - entry->published_ms;
	}
	qsort(took_ms, count, sizeof(*took_ms), compare);
	printf("\nall hosts had a change after %lld ms (median), %lld ms (99 %%), %lld ms (slowest)\n",
	       (long long)took_ms[count / 2], (long long)took_ms[count * 99 / 100], (long long)took_ms[count - 1]);
	fflush(stdout);
	_exit(0);
}
