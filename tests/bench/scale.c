// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * How the cost of a look-up grows: with rules, as packets that follow each other (look-ups overlap) and
 * with every flow depending on the look-up before (what one packet pays); with processors, and what is
 * written to memory that they share; and a model of the processors that a link needs. IPv4 5-tuples.
 * `scale [--full] [RULES...]`
 */
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <sys/utsname.h>

#include "bench/contest.h"

#define PROCESSORS_MAX 64
#define PROCESSORS_RULES 990000
#define HASH_MAP_RULES_MAX 10000000 /* beyond that its memory is too much beside the others' */
#define DRIVER_NS 42 /* see print_model() */

static struct contest contest;

/* ---- with rules ---- */

#define EXACT_OPTIONS { .is_exact = 1 }

static const struct contender_kind kinds[] = {
	{ .name = "parse", .program = "lookup_parse" },
	{ .name = "parse, dep.", .program = "lookup_dependent_parse" },
	{ .name = "16 bits", .program = "lookup_cuckoo", .rival = RIVAL_TABLE },
	{ .name = "16 bits, dep.", .program = "lookup_dependent_cuckoo", .rival = RIVAL_TABLE },
	{ .name = "exact", .program = "lookup_cuckoo", .rival = RIVAL_TABLE, .options = EXACT_OPTIONS },
	/* It looks at the first fingerprint that matches, and no further. */
	{ .name = "exact, dep.",
	  .program = "lookup_dependent_cuckoo",
	  .rival = RIVAL_TABLE,
	  .options = EXACT_OPTIONS,
	  .lost = 0.001 },
	{ .name = "hash map", .program = "lookup_hash_map", .rival = RIVAL_HASH },
	{ .name = "hash map, dep.", .program = "lookup_dependent_hash_map", .rival = RIVAL_HASH },
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))
#define HASH_MAPS 2 /* of them, the last */

static void bench_rules(__u32 rules)
{
	contest_open(&contest, kinds, rules > HASH_MAP_RULES_MAX ? KINDS - HASH_MAPS : KINDS, rules);
	for (enum contest_traffic traffic = CONTEST_HIT; traffic <= CONTEST_MISS; traffic++) {
		contest_measure(&contest, traffic);
		contest_report(&contest, "\"bench\": \"scale\"", traffic, 0);
		printf("%10u  %-4s", rules, contest_traffic_names[traffic]);
		for (size_t i = 0; i < contest.count; i++)
			printf("  %14.1f", i < 2 ? contest.contender[i].result.median :
						   contest_over(&contest, i, i % 2));
		printf("\n");
		fflush(stdout);
	}
	contest_close(&contest);
}

static void bench_growth(int argc, char **argv, bool is_full)
{
	static const __u32 usual[] = { 1000, 100000, 990000, 10000000, 100000000 };

	printf("ns a packet, from the third column on beyond those of parsing; dep.: the look-up alone, and "
	       "each flow depends on the one before\n(of a hash map's misses it does not: that there is "
	       "nothing is no value to wait for)\n\n%10s  %-4s", "rules", "");
	for (size_t i = 0; i < KINDS; i++)
		printf("  %14s", kinds[i].name);
	printf("\n");
	for (int i = 1 + is_full; i < argc; i++)
		bench_rules(strtoul(argv[i], NULL, 10));
	if (argc == 1 + is_full)
		for (size_t i = 0; i < (is_full ? 5 : 3); i++)
			bench_rules(usual[i]);
}

/* ---- with processors ---- */

static const struct contender_kind shared_kinds[] = {
	{ .name = "bare drop", .program = "lookup_drop" },
	{ .name = "16 bits", .program = "lookup_cuckoo", .rival = RIVAL_TABLE },
	{ .name = "exact", .program = "lookup_cuckoo", .rival = RIVAL_TABLE, .options = EXACT_OPTIONS },
	{ .name = "counting",
	  .program = "lookup_cuckoo",
	  .rival = RIVAL_TABLE,
	  .options = { .is_exact = 1, .has_counts = 1 } },
	{ .name = "hash map", .program = "lookup_hash_map", .rival = RIVAL_HASH },
};

#define SHARED_KINDS (sizeof(shared_kinds) / sizeof(shared_kinds[0]))

struct runner {
	pthread_t thread;
	pthread_barrier_t *start;
	const struct contender *contender;
	int cpu;
	double ns[CONTEST_SLICES];
};

static void *run_on(void *context)
{
	struct runner *runner = context;
	cpu_set_t set;
	__u32 verdict;

	CPU_ZERO(&set);
	CPU_SET(runner->cpu, &set);
	if (pthread_setaffinity_np(pthread_self(), sizeof(set), &set))
		die("pthread_setaffinity_np", EINVAL);
	for (int i = 0; i < contest_slices(); i++) {
		pthread_barrier_wait(runner->start);
		runner->ns[i] = packet_path_run(runner->contender->program, contest_packets(), &verdict);
	}
	return NULL;
}

/* The processors this process may use; how many. */
static int find_processors(int cpus[PROCESSORS_MAX])
{
	cpu_set_t usable;
	int count = 0;

	if (sched_getaffinity(0, sizeof(usable), &usable))
		die("sched_getaffinity", errno);
	for (int cpu = 0; cpu < CPU_SETSIZE && count < PROCESSORS_MAX; cpu++)
		if (CPU_ISSET(cpu, &usable))
			cpus[count++] = cpu;
	return count;
}

/* ns a packet of a processor, while `count` of them do the same. */
static double run_at_once(const struct contender *contender, const int *cpus, int count)
{
	struct runner runner[PROCESSORS_MAX];
	pthread_barrier_t start;
	double all = 0;

	pthread_barrier_init(&start, NULL, count);
	for (int i = 0; i < count; i++) {
		runner[i] = (struct runner){ .start = &start, .contender = contender, .cpu = cpus[i] };
		if (pthread_create(&runner[i].thread, NULL, run_on, &runner[i]))
			die("pthread_create", EAGAIN);
	}
	for (int i = 0; i < count; i++) {
		pthread_join(runner[i].thread, NULL);
		all += spread_of(runner[i].ns, contest_slices()).median;
	}
	pthread_barrier_destroy(&start);
	return all / count;
}

static void print_at_once(const char *what, const int *cpus, int count)
{
	for (int together = 0; together < 2; together++) {
		printf("  %-28s  %4d", what, together ? count : 1);
		for (size_t i = 0; i < contest.count; i++) {
			const double ns = run_at_once(&contest.contender[i], cpus, together ? count : 1);

			printf("  %10.1f", ns);
			report_json("\"bench\": \"processors\", \"rules\": %u, \"traffic\": \"%s\", "
				    "\"processors\": %d, \"variant\": \"%s\", \"unit\": \"ns\", "
				    "\"median\": %.2f", contest.rules, what, together ? count : 1,
				    contest.contender[i].kind->name, ns);
		}
		printf("\n");
	}
}

static void check_all(enum contest_traffic traffic)
{
	for (size_t i = 0; i < contest.count; i++)
		contest_check(&contest, &contest.contender[i], traffic);
}

/* Which of a filter's shared maps packets have written to: compared byte by byte. */
static void print_written(const struct contender *contender)
{
	const struct filter *filter = &contender->filter;
	__u32 verdict;
	int written = 0;

	printf("  %-10s", contender->kind->name);
	for (int map = 0; map < FILTER_MAPS; map++) {
		char *before = malloc(filter->bytes[map]);

		if (!before)
			die("memory", ENOMEM);
		memcpy(before, filter->map[map], filter->bytes[map]);
		packet_path_run(contender->program, CONTEST_PACKETS, &verdict);
		if (memcmp(before, filter->map[map], filter->bytes[map])) {
			printf(" %s", filter_map_names[map]);
			written++;
		}
		free(before);
	}
	printf("%s\n", written ? "" : " nothing");
}

/* ---- the model ---- */

static const struct {
	unsigned int gigabits;
	double packets; /* a second: 64-byte frames, each 84 bytes with preamble and gap */
} links[] = { { 10, 14.88e6 }, { 25, 37.2e6 }, { 100, 148.8e6 }, { 400, 595.2e6 } };

/*
 * What is measured here, over a bare drop, and on top of a driver that drops 24 M packets a second on a core:
 * Hoiland-Jorgensen et al., "The eXpress Data Path", CoNEXT 2018 (Mellanox ConnectX-5).
 */
static void print_model(enum contest_traffic traffic)
{
	contest_measure(&contest, traffic);
	contest_report(&contest, "\"bench\": \"model\"", traffic, 0);
	for (size_t i = 0; i < contest.count; i++) {
		const double over = contest_over(&contest, i, 0);

		printf("  %-10s  %-4s  %8.1f", contest.contender[i].kind->name,
		       contest_traffic_names[traffic], over);
		for (size_t l = 0; l < sizeof(links) / sizeof(links[0]); l++)
			printf("  %8.1f", links[l].packets * (DRIVER_NS + over) / 1e9);
		printf("\n");
	}
}

static void bench_processors(void)
{
	const struct lookup_parameters one_flow = { .flows = 1, .base = RIVALS_LISTED };
	int cpus[PROCESSORS_MAX];
	const int count = find_processors(cpus);

	contest_open(&contest, shared_kinds, SHARED_KINDS, PROCESSORS_RULES);
	printf("\n%u rules, ns a packet on each processor, alone and at the same time\n\n  %-28s  %4s",
	       contest.rules, "", "CPUs");
	for (size_t i = 0; i < SHARED_KINDS; i++)
		printf("  %10s", shared_kinds[i].name);
	printf("\n");
	contest_choose(&contest, CONTEST_HIT);
	check_all(CONTEST_HIT);
	print_at_once("hits of all rules", cpus, count);
	for (size_t i = 0; i < contest.count; i++)
		packet_path_choose(&contest.contender[i].filter, &one_flow);
	check_all(CONTEST_HIT);
	print_at_once("hits of one rule", cpus, count);
	contest_choose(&contest, CONTEST_MISS);
	check_all(CONTEST_MISS);
	print_at_once("misses", cpus, count);
	contest_choose(&contest, CONTEST_HALF);
	printf("\nmaps that processors share and packets wrote to (half of them hits)\n\n");
	for (size_t i = 0; i < contest.count; i++)
		if (contest.contender[i].kind->rival == RIVAL_TABLE)
			print_written(&contest.contender[i]);
	printf("\na model: processors for a link full of 64-byte frames, if the driver takes %d ns a packet "
	       "and the filter what it takes\nhere over a bare drop; memory bandwidth and the NIC set no "
	       "bound in it\n\n  %-10s  %-4s  %8s", DRIVER_NS, "", "", "ns over");
	for (size_t l = 0; l < sizeof(links) / sizeof(links[0]); l++)
		printf("  %3u Gb/s", links[l].gigabits);
	printf("\n");
	print_model(CONTEST_HIT);
	print_model(CONTEST_MISS);
	contest_close(&contest);
}

int main(int argc, char **argv)
{
	const bool is_full = argc > 1 && !strcmp(argv[1], "--full");

	libbpf_set_print(NULL);
	bench_growth(argc, argv, is_full);
	bench_processors();
	return 0;
}
