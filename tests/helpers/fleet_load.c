// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * fleet_load BROKER REPORT|- HOSTS RATE SECONDS: so many hosts follow the list "bad" of the fleet "load", and RATE changes a
 * second are published. Each host is the reader of a follower (reader_process.c) in a thread, with a connection of its own; its
 * applier is a function here, which applies nothing. Prints how long changes took until all hosts had them, and what the
 * main threads of the servers did meanwhile.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "fleet/broker.h"
#include "fleet/publisher.h"
#include "fleet/follow_internal.h"

#define FLEET "load"
#define STACK_BYTES (320 << 10) /* a connection reads 64 KB at once */
#define ENTRIES_MAX 100000
#define SETTLE_MS 14000 /* hosts count each other again after 10 s */
#define LATE_MS 30000

struct host {
	struct fleet_options options;
	struct log_reader_start start;
	char name[32];
	struct fleet_position at;
	bool has_answered;
};

struct entry {
	__s64 published_ms, level_ms;
	size_t hosts; /* that have it */
};

static struct host *hosts;
static size_t hosts_count, ready, lost; /* lost: connections */
static struct entry entries[ENTRIES_MAX];
static const struct broker_secrets no_secrets;

static void fail(const char *text)
{
	fprintf(stderr, "fleet_load: %s\n", text);
	exit(1);
}

/* ---- the hosts ---- */

static void take_entry(struct host *host, struct fleet_position at)
{
	for (__u64 seq = host->at.epoch == at.epoch ? host->at.seq + 1 : 0; seq <= at.seq && seq < ENTRIES_MAX; seq++)
		if (__atomic_add_fetch(&entries[seq].hosts, 1, __ATOMIC_SEQ_CST) == hosts_count)
			__atomic_store_n(&entries[seq].level_ms, clock_ms(CLOCK_MONOTONIC), __ATOMIC_SEQ_CST);
	host->at = at;
}

/*
 * The linker puts these in place of those in fleet.c. They are the applier: what the reader sends is applied at
 * once, and its answer is at hand.
 */
int __wrap_follow_send(int fd, const struct follow_message *message, const char *text);
int __wrap_follow_receive(int fd, struct follow_message *message, char *text);

int __wrap_follow_send(int fd, const struct follow_message *message, const char *text)
{
	(void)text;
	if (message->kind == FOLLOW_ENTRY || message->kind == FOLLOW_END)
		take_entry(&hosts[fd], message->at);
	if (message->kind == FOLLOW_LOST)
		__atomic_add_fetch(&lost, 1, __ATOMIC_SEQ_CST);
	return 0;
}

int __wrap_follow_receive(int fd, struct follow_message *message, char *text)
{
	struct host *host = &hosts[fd];
	char position[FLEET_POSITION_BYTES];

	*message = (struct follow_message){ .kind = FOLLOW_DONE };
	message->bytes =
		sprintf(text,
			"at:bad %s\nlists bad\nversion load\nstate level\nrules %llu\nrefused 0\npanic 0\nwhy  "
			"\nseen %lld\nskew 0\ndropped 0\n",
			fleet_position_format(host->at, position), (unsigned long long)host->at.seq,
			(long long)clock_ms(CLOCK_REALTIME));
	if (!host->has_answered)
		__atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
	host->has_answered = true;
	return 0;
}

static void *run_host(void *context)
{
	struct host *host = context;

	log_reader_run(&host->start, host - hosts);
	return NULL;
}

/* Returns when each host has answered once. */
static void start_hosts(const char *broker, const char *report, size_t count)
{
	pthread_attr_t attributes;
	pthread_t thread;

	hosts_count = count;
	hosts = calloc(count, sizeof(*hosts));
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	for (size_t i = 0; hosts && i < count; i++) {
		struct host *host = &hosts[i];

		sprintf(host->name, "sim%zu", i);
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
		if (pthread_create(&thread, &attributes, run_host, host))
			fail("cannot start so many threads");
		if (i % 100 == 99)
			clock_pause(50);
	}
	while (__atomic_load_n(&ready, __ATOMIC_SEQ_CST) < count)
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

	if (connection_ask(&server->connection, &reply, &reason, "INFO cpu"))
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
	struct fleet_position at;
	struct reason reason;
	redisReply *reply;
	char line[64];

	sprintf(line, "+ 0 src 10.%llu.%llu.%llu", (unsigned long long)counter / 65536,
		(unsigned long long)counter / 256 % 256, (unsigned long long)counter % 256);
	if (connection_ask(&broker->connection, &reply, &reason,
			   "FCALL xc_publish 2 xc:" FLEET ":L:bad:meta xc:" FLEET ":L:bad:log load %llu %s %s",
			   (unsigned long long)counter, "", line))
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
	open_server(&broker, argv[1]);
	open_server(&own, argv[1]);
	if (report)
		open_server(&reports, report);
	if (functions_load(&broker, FLEET, 10000, id, &reason))
		fail(reason.text);
	publish(&broker, 1);
	started_ms = clock_ms(CLOCK_MONOTONIC);
	start_hosts(argv[1], report, atoi(argv[3]));
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("%zu hosts are connected after %lld ms\n", hosts_count,
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
		entries[seq].published_ms = due_ms;
	}
	start_s = clock_seconds() - start_s;
	printf("%zu changes in %.1f s: the broker's main thread worked %.0f %%", count, start_s,
	       (main_thread_s(&own) - work_s) * 100 / start_s);
	if (report)
		printf(", that of reports %.0f %%", (main_thread_s(&reports) - reports_work_s) * 100 / start_s);
	started_ms = clock_ms(CLOCK_MONOTONIC);
	for (size_t i = 0; i < count; i++) {
		const struct entry *entry = &entries[i + 2];

		while (!__atomic_load_n(&entry->level_ms, __ATOMIC_ACQUIRE)) {
			if (clock_ms(CLOCK_MONOTONIC) - started_ms > LATE_MS)
				fail("not all hosts are level after 30 s");
			clock_pause(10);
		}
		took_ms[i] = entry->level_ms - entry->published_ms;
	}
	qsort(took_ms, count, sizeof(*took_ms), compare);
	printf("; %zu connections were lost", lost);
	printf("\nall hosts had a change after %lld ms (median), %lld ms (99 %%), %lld ms (slowest)\n",
	       (long long)took_ms[count / 2], (long long)took_ms[count * 99 / 100], (long long)took_ms[count - 1]);
	fflush(stdout);
	_exit(0);
}
