// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A long soak of one filter: packets of thousands of flows without end, while rules come, go and end, writers are
 * killed, and the filter grows, shrinks, panics, is unloaded and loaded. Every verdict that is certain is
 * checked at the receiver; none may be wrong. The journal says what was done, and when.
 */
#include <getopt.h>
#include <pthread.h>

#include "soak/stream.h"
#include "soak/watch.h"

#define CHANGERS 3
#define KILL_PERCENT 15
#define LAST_ROUNDS 3 /* of all flows, when everything is certain */

struct soak {
	struct tool_place place;
	struct journal journal;
	struct model model;
	struct stream stream;
	struct changes_tally tally;
	struct changer changer[CHANGERS], reader;
	struct course course;
	struct watch watch;
	pthread_rwlock_t lock;
	pthread_t threads[CHANGERS], stream_thread, watch_thread;
	_Atomic bool is_stopping;
	bool ends_when_wrong;
};

struct changing {
	struct soak *soak;
	struct changer *changer;
};

static struct changer changer_of(struct soak *soak, const char *name, uint32_t first, uint64_t seed)
{
	return (struct changer){
		.place = &soak->place,
		.model = &soak->model,
		.journal = &soak->journal,
		.tally = &soak->tally,
		.name = name,
		.first = first,
		.step = CHANGERS,
		.kill_percent = KILL_PERCENT,
		.random = seed + first,
	};
}

/* Writers wait for readers of the lock to leave, else steps that need it for themselves would never come. */
static void lock_open(pthread_rwlock_t *lock)
{
	pthread_rwlockattr_t attributes;

	pthread_rwlockattr_init(&attributes);
	pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(lock, &attributes);
	pthread_rwlockattr_destroy(&attributes);
}

static void *change_on(void *context)
{
	struct changing *changing = context;
	struct soak *soak = changing->soak;

	while (!atomic_load(&soak->is_stopping)) {
		pthread_rwlock_rdlock(&soak->lock);
		changes_next(changing->changer);
		pthread_rwlock_unlock(&soak->lock);
	}
	changes_resolve(changing->changer);
	return NULL;
}

static void start_thread(pthread_t *thread, void *(*run)(void *), void *context)
{
	errno = pthread_create(thread, NULL, run, context);
	if (errno)
		tool_die("pthread_create");
}

static void soak_open(struct soak *soak, uint32_t units, uint64_t seed)
{
	static const char *const names[CHANGERS] = { "changer-1", "changer-2", "changer-3" };

	model_open(&soak->model, units);
	lock_open(&soak->lock);
	for (uint32_t i = 0; i < CHANGERS; i++)
		soak->changer[i] = changer_of(soak, names[i], i, seed);
	soak->reader = changer_of(soak, "reader", CHANGERS, seed);
	soak->course =
		(struct course){ .changer = changer_of(soak, "course", CHANGERS + 1, seed), .lock = &soak->lock };
	soak->watch = (struct watch){ .changer = &soak->reader };
}

/* Until every flow has had so many packets more. */
static void await_rounds(const struct soak *soak, uint64_t rounds)
{
	const struct timespec pause = { .tv_nsec = 10000000 };
	const uint64_t until = atomic_load(&soak->stream.rounds) + rounds;

	while (atomic_load(&soak->stream.rounds) < until)
		nanosleep(&pause, NULL);
}

static int soak_report(const struct soak *soak)
{
	const double seconds = (double)(model_now_ns() - soak->journal.start_ns) / MODEL_NS_PER_S;
	const bool has_seen_all = stream_has_seen_all(&soak->stream);

	stream_print(&soak->stream);
	printf("%.0f s, %lu processes, %lu killed, %lu changes acknowledged, %lu tables outgrown, %lu repaired, "
	       "%lu programs seen\n",
	       seconds, soak->tally.processes, soak->tally.killed, soak->tally.changes, soak->tally.rebuilds,
	       soak->tally.repairs, soak->watch.programs);
	printf("%lu steps of the course, %lu times all rules compared, %lu looks of readers, %lu markers resent, "
	       "%lu frames late\n",
	       soak->course.steps, soak->course.verified, soak->watch.looks, soak->stream.resent, soak->stream.late);
	printf("wrong: %lu%s\n", soak->journal.wrong,
	       has_seen_all ? "" : "; and not every kind of flow was seen both dropped and passed");
	return soak->journal.wrong || !has_seen_all ? 1 : 0;
}

static void soak_run(struct soak *soak, uint64_t seconds)
{
	const uint64_t end_ns = model_now_ns() + seconds * MODEL_NS_PER_S;
	struct changing changing[CHANGERS];

	course_start(&soak->course);
	soak->course.changer.kill_percent = KILL_PERCENT;
	start_thread(&soak->stream_thread, stream_flow, &soak->stream);
	start_thread(&soak->watch_thread, watch_on, &soak->watch);
	for (int i = 0; i < CHANGERS; i++) {
		changing[i] = (struct changing){ soak, &soak->changer[i] };
		start_thread(&soak->threads[i], change_on, &changing[i]);
	}
	while (model_now_ns() < end_ns || soak->course.steps < COURSE_STEPS) {
		course_next(&soak->course);
		if (soak->ends_when_wrong && soak->journal.wrong)
			exit(soak_report(soak));
	}
	atomic_store(&soak->is_stopping, true);
	for (int i = 0; i < CHANGERS; i++)
		pthread_join(soak->threads[i], NULL);
	atomic_store(&soak->watch.is_stopping, true);
	pthread_join(soak->watch_thread, NULL);
	course_finish(&soak->course);
	await_rounds(soak, LAST_ROUNDS);
	atomic_store(&soak->stream.is_stopping, true);
	pthread_join(soak->stream_thread, NULL);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ .name = "from", .has_arg = required_argument, .val = 'f' },
		{ .name = "to", .has_arg = required_argument, .val = 't' },
		{ .name = "tool", .has_arg = required_argument, .val = 'x' },
		{ .name = "state", .has_arg = required_argument, .val = 's' },
		{ .name = "journal", .has_arg = required_argument, .val = 'j' },
		{ .name = "seconds", .has_arg = required_argument, .val = 'n' },
		{ .name = "units", .has_arg = required_argument, .val = 'u' },
		{ .name = "fillers", .has_arg = required_argument, .val = 'l' },
		{ .name = "until-wrong", .val = 'w' },
		{ .name = "seed", .has_arg = required_argument, .val = 'r' },
		{ 0 },
	};
	const char *value[UINT8_MAX + 1] = { ['n'] = "60", ['u'] = "3000", ['l'] = "120000", ['r'] = "1" };
	static struct soak soak;
	uint32_t units;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1 && option != '?')
		value[option] = optarg ? optarg : "";
	units = (uint32_t)strtoul(value['u'], NULL, 10);
	if (option == '?' || optind != argc || !value['f'] || !value['t'] || !value['x'] || !value['s'] ||
	    !value['j'] || units < CHANGERS || units > MODEL_UNITS_MAX) {
		fputs("usage: soak --from NETNS:IFACE --to NETNS:" COURSE_IFACE " --tool PATH --state DIR "
		      "--journal FILE [--seconds N] [--units N] [--fillers N] [--seed N] [--until-wrong]\n",
		      stderr);
		return 2;
	}
	soak.place = (struct tool_place){ value['x'], value['s'] };
	journal_open(&soak.journal, value['j']);
	soak_open(&soak, units, strtoull(value['r'], NULL, 0));
	soak.ends_when_wrong = value['w'];
	soak.course.fillers_most = (uint32_t)strtoul(value['l'], NULL, 10);
	if (stream_open(&soak.stream, &soak.model, &soak.journal, value['f'], value['t']))
		return 2;
	soak_run(&soak, strtoull(value['n'], NULL, 10));
	return soak_report(&soak);
}
