// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Many processes of the tool at once, of all commands that change or read rules. Each of its threads runs one after
 * the other and owns rules of its own; others they change against each other. In the end store, table and
 * packets are what the acknowledged changes make, one after the other.
 */
#include <getopt.h>
#include <pthread.h>

#include "soak/feeder.h"
#include "soak/stream.h"
#include "soak/watch.h"

#define WORKERS_MAX 512
#define FEEDER_EACH 10 /* so many workers, one is a process that stays */
#define LAST_ROUNDS 2
#define CONTENDED "src 32.0.0.1"

/* What all change. Of each rule and group: how often it came, by the answers. */
struct contended {
	_Atomic int64_t added, deleted; /* CONTENDED */
	_Atomic int64_t to[2];          /* a group in the place of the other */
};

struct crowd {
	struct tool_place place;
	struct journal journal;
	struct model model;
	struct stream stream;
	struct changes_tally tally;
	struct course course;
	pthread_rwlock_t lock; /* nobody's, for the course wants one */
	struct contended contended;
	_Atomic bool is_stopping;
};

struct worker {
	struct crowd *crowd;
	struct changer changer;
	struct watch watch;
	pthread_t thread;
	char name[24];
	bool is_feeder;
};

/* ---- what all change ---- */

/* One rule that everybody adds and deletes. */
static void contend_rule(struct worker *worker)
{
	struct changer *changer = &worker->changer;
	const bool is_add = changes_percent(changer, 50);
	struct tool_run run;

	changes_run(changer, (const char *[]){ is_add ? "add" : "del", CONTENDED, NULL }, NULL, 0, &run);
	if (run.status > 1)
		changes_failed(changer, CONTENDED, &run);
	if (run.status == 0 && is_add)
		worker->crowd->contended.added++;
	else if (run.status == 0)
		worker->crowd->contended.deleted++;
	tool_done(&run);
}

/* All lines of one change saw the same state: those of its first half went, or were gone. */
static void contend_group(struct worker *worker)
{
	struct changer *changer = &worker->changer;
	const unsigned int group = (unsigned int)changes_below(changer, 2);
	struct tool_text lines = { 0 };
	struct tool_run run;
	uint64_t deleted, added;

	course_print_group(&lines, !group, "del ");
	course_print_group(&lines, group, "add ");
	changes_run(changer, (const char *[]){ "batch", "-", "--strict", NULL }, &lines, 0, &run);
	deleted = changes_count_text(run.out, changes_answers[CHANGES_DELETED]);
	added = changes_count_text(run.out, changes_answers[CHANGES_ADDED]);
	if (run.status > 1)
		changes_failed(changer, "batch --strict", &run);
	else if (deleted != added || (added && added != COURSE_GROUP))
		journal_wrong(changer->journal, "%s: of a group %lu were deleted, and of the other %lu added",
			      changer->name, deleted, added);
	if (added)
		worker->crowd->contended.to[group]++;
	tool_done(&run);
	free(lines.bytes);
}

/* What the changes of all, in any order that each of them can have seen, must have led to. */
static void contended_judge(struct crowd *crowd)
{
	const struct contended *contended = &crowd->contended;
	const int64_t there = contended->added - contended->deleted, group = contended->to[1] - contended->to[0];
	struct tool_run run;

	if (there != 0 && there != 1)
		journal_wrong(&crowd->journal, CONTENDED ": added %ld times and deleted %ld times", contended->added,
			      contended->deleted);
	if (group != 0 && group != 1)
		journal_wrong(&crowd->journal, "the groups: %ld times the one and %ld times the other",
			      contended->to[0], contended->to[1]);
	crowd->course.group = group == 1;
	changes_run(&crowd->course.changer, (const char *[]){ "del", CONTENDED, NULL }, NULL, 0, &run);
	if (run.status != (there == 1 ? 0 : 1))
		changes_failed(&crowd->course.changer, CONTENDED, &run);
	tool_done(&run);
}

/* ---- the crowd ---- */

static void work_next(struct worker *worker)
{
	const uint64_t choice = changes_below(&worker->changer, 100);

	if (choice < 15)
		contend_rule(worker);
	else if (choice < 30)
		contend_group(worker);
	else if (choice < 45)
		watch_next(&worker->watch);
	else
		changes_next(&worker->changer);
}

static void *work_on(void *context)
{
	struct worker *worker = context;
	struct feeder feeder;

	if (worker->is_feeder)
		feeder_open(&feeder, worker->changer.place);
	do
		if (worker->is_feeder)
			feeder_next(&feeder, &worker->changer);
		else
			work_next(worker);
	while (!atomic_load(&worker->crowd->is_stopping));
	if (worker->is_feeder)
		feeder_close(&feeder, &worker->changer);
	return NULL;
}

static struct changer changer_of(struct crowd *crowd, const char *name, uint32_t first, uint32_t step, uint64_t seed)
{
	return (struct changer){
		.place = &crowd->place,
		.model = &crowd->model,
		.journal = &crowd->journal,
		.tally = &crowd->tally,
		.name = name,
		.first = first,
		.step = step,
		.random = seed + first,
	};
}

static void workers_run(struct crowd *crowd, struct worker *workers, uint32_t count, uint64_t seconds, uint64_t seed)
{
	const struct timespec time = { .tv_sec = (time_t)seconds };

	for (uint32_t i = 0; i < count; i++) {
		struct worker *worker = &workers[i];

		snprintf(worker->name, sizeof(worker->name), "worker-%u", i);
		worker->crowd = crowd;
		worker->changer = changer_of(crowd, worker->name, i, count, seed);
		worker->watch.changer = &worker->changer;
		worker->is_feeder = i % FEEDER_EACH == FEEDER_EACH - 1;
		errno = pthread_create(&worker->thread, NULL, work_on, worker);
		if (errno)
			tool_die("pthread_create");
	}
	nanosleep(&time, NULL);
	atomic_store(&crowd->is_stopping, true);
	for (uint32_t i = 0; i < count; i++)
		pthread_join(workers[i].thread, NULL);
}

/* Packets of all flows, when nothing changes any more but what ends by itself. */
static void look_at_packets(struct crowd *crowd)
{
	const struct timespec pause = { .tv_nsec = 10000000 };
	pthread_t thread;

	errno = pthread_create(&thread, NULL, stream_flow, &crowd->stream);
	if (errno)
		tool_die("pthread_create");
	while (atomic_load(&crowd->stream.rounds) < LAST_ROUNDS)
		nanosleep(&pause, NULL);
	atomic_store(&crowd->stream.is_stopping, true);
	pthread_join(thread, NULL);
}

static int crowd_report(const struct crowd *crowd, const struct worker *workers, uint32_t count)
{
	const double seconds = (double)(model_now_ns() - crowd->journal.start_ns) / MODEL_NS_PER_S;
	const struct stream_tally total = stream_total(&crowd->stream);
	uint64_t fewest = UINT64_MAX, slowest_ns = 0, looks = 0;

	for (uint32_t i = 0; i < count; i++) {
		const struct changer *changer = &workers[i].changer;

		fewest = changer->processes < fewest ? changer->processes : fewest;
		slowest_ns = changer->slowest_ns > slowest_ns ? changer->slowest_ns : slowest_ns;
		looks += workers[i].watch.looks;
	}
	stream_print(&crowd->stream);
	printf("%.0f s, %u at once, %lu commands, %lu changes acknowledged, %lu looks of readers\n", seconds, count,
	       crowd->tally.processes, crowd->tally.changes, looks);
	printf("contended: %ld and %ld of a rule, %ld and %ld of a group\n", crowd->contended.added,
	       crowd->contended.deleted, crowd->contended.to[0], crowd->contended.to[1]);
	printf("the slowest command took %.3f s, the slowest worker got %lu done\n",
	       (double)slowest_ns / MODEL_NS_PER_S, fewest);
	printf("wrong: %lu\n", crowd->journal.wrong);
	return crowd->journal.wrong || !total.dropped || !total.passed || !fewest ? 1 : 0;
}

static int crowd_run(struct crowd *crowd, uint32_t count, uint64_t seconds, uint64_t seed)
{
	static struct worker workers[WORKERS_MAX];

	pthread_rwlock_init(&crowd->lock, NULL);
	crowd->course =
		(struct course){ .changer = changer_of(crowd, "course", count, count, seed), .lock = &crowd->lock };
	course_start(&crowd->course);
	workers_run(crowd, workers, count, seconds, seed);
	contended_judge(crowd);
	course_verify(&crowd->course);
	look_at_packets(crowd);
	return crowd_report(crowd, workers, count);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ .name = "from", .has_arg = required_argument, .val = 'f' },
		{ .name = "to", .has_arg = required_argument, .val = 't' },
		{ .name = "tool", .has_arg = required_argument, .val = 'x' },
		{ .name = "state", .has_arg = required_argument, .val = 's' },
		{ .name = "journal", .has_arg = required_argument, .val = 'j' },
		{ .name = "workers", .has_arg = required_argument, .val = 'w' },
		{ .name = "seconds", .has_arg = required_argument, .val = 'n' },
		{ .name = "units", .has_arg = required_argument, .val = 'u' },
		{ .name = "seed", .has_arg = required_argument, .val = 'r' },
		{ 0 },
	};
	const char *value[UINT8_MAX + 1] = { ['w'] = "50", ['n'] = "60", ['u'] = "3000", ['r'] = "1" };
	static struct crowd crowd;
	uint32_t workers, units;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1 && option != '?')
		value[option] = optarg;
	workers = (uint32_t)strtoul(value['w'], NULL, 10);
	units = (uint32_t)strtoul(value['u'], NULL, 10);
	if (option == '?' || optind != argc || !value['f'] || !value['t'] || !value['x'] || !value['s'] ||
	    !value['j'] || !workers || workers > WORKERS_MAX || units < workers || units > MODEL_UNITS_MAX) {
		fputs("usage: crowd --from NETNS:IFACE --to NETNS:" COURSE_IFACE " --tool PATH --state DIR "
		      "--journal FILE [--workers N] [--seconds N] [--units N] [--seed N]\n",
		      stderr);
		return 2;
	}
	crowd.place = (struct tool_place){ value['x'], value['s'] };
	journal_open(&crowd.journal, value['j']);
	model_open(&crowd.model, units);
	if (stream_open(&crowd.stream, &crowd.model, &crowd.journal, value['f'], value['t']))
		return 2;
	return crowd_run(&crowd, workers, strtoull(value['n'], NULL, 10), strtoull(value['r'], NULL, 0));
}
