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
#include <stdatomic.h>
#include <sys/utsname.h>

#include "bench/contest.h"

#define PROCESSORS_MAX 64
#define PROCESSORS_RULES 990000
#define HASH_MAP_RULES_MAX 10000000 /* beyond that its memory is too much beside the others' */
#define DRIVER_NS 42                /* see print_model() */
#define QUEUES 32                   /* see print_hot_model() */
#define AT_ONCE 0.75                /* of a slice the other processors have to be at it, too */
#define AT_ONCE_QUICK_SLICES 5
#define TRIES 2 /* of a slice for that; then any share will do, but none */

static struct contest contest;

/* ---- with rules ---- */

#define EXACT_OPTIONS \
	{ \
		.is_exact = 1 \
	}

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
			printf("  %14.1f",
			       i < 2 ? contest.contender[i].result.median : contest_over(&contest, i, i % 2));
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
	       "nothing is no value to wait for)\n\n%10s  %-4s",
	       "rules", "");
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
	{ .name = "hash, counted", .program = "lookup_hash_counted", .rival = RIVAL_HASH_COUNTED },
};

#define SHARED_KINDS (sizeof(shared_kinds) / sizeof(shared_kinds[0]))

struct helper {
	pthread_t thread;
	const struct contender *contender;
	int cpu;
	atomic_bool is_running, is_over;
};

static void stay_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("sched_setaffinity", errno);
}

/* Without a pause: the kernel makes a program's first run wait, but not those of a program that runs already. */
static void *keep_running(void *context)
{
	struct helper *helper = context;
	__u32 verdict;

	stay_on(helper->cpu);
	while (!helper->is_over) {
		packet_path_run(helper->contender->program, contest_packets(), &verdict);
		helper->is_running = true;
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

/* Of all helpers. */
static double helpers_seconds(const struct helper *helper, int count)
{
	double seconds = 0;
	clockid_t clock;

	for (int i = 1; i < count; i++)
		if (!pthread_getcpuclockid(helper[i].thread, &clock))
			seconds += clock_seconds(clock);
	return seconds;
}

/*
 * ns a packet of the first processor, while all `count` of them do the same; sets what share of that time the others
 * ran, whom other programs may have kept from it.
 */
static double run_at_once(const struct contender *contender, const int *cpus, int count, double *share)
{
	struct helper helper[PROCESSORS_MAX];
	double ns, start, before;
	__u32 verdict;

	for (int i = 1; i < count; i++) {
		helper[i] = (struct helper){ .contender = contender, .cpu = cpus[i] };
		if (pthread_create(&helper[i].thread, NULL, keep_running, &helper[i]))
			die("pthread_create", EAGAIN);
	}
	for (int i = 1; i < count; i++)
		while (!helper[i].is_running)
			sched_yield();
	start = seconds();
	before = helpers_seconds(helper, count);
	ns = packet_path_run(contender->program, contest_packets(), &verdict);
	*share = count > 1 ? (helpers_seconds(helper, count) - before) / (count - 1) / (seconds() - start) : 0;
	for (int i = 1; i < count; i++) {
		helper[i].is_over = true;
		pthread_join(helper[i].thread, NULL);
	}
	return ns;
}

/* Again where other programs kept the other processors from it. */
static double run_in_company(const struct contender *contender, const int *cpus, int count, double *share)
{
	for (int i = 0; i < 10 * TRIES; i++) {
		const double ns = run_at_once(contender, cpus, count, share);

		if (count == 1 || *share > (i < TRIES ? AT_ONCE : 0))
			return ns;
	}
	die("other processors", EBUSY);
}

/* What a contender takes alone, and with all processors at once; what share of the time that was. */
struct company {
	struct spread alone, together;
	double share;
};

static struct company measure_at_once(const struct contender *contender, const int *cpus, int count)
{
	double alone[CONTEST_SLICES], together[CONTEST_SLICES], share[CONTEST_SLICES];
	const int slices = report_slices(CONTEST_SLICES, AT_ONCE_QUICK_SLICES);
	cpu_set_t usable;
	__u32 verdict;

	if (sched_getaffinity(0, sizeof(usable), &usable))
		die("sched_getaffinity", errno);
	stay_on(cpus[0]);
	for (int i = 0; i < slices; i++) {
		packet_path_run(contender->program, contest_packets(), &verdict);
		alone[i] = packet_path_run(contender->program, contest_packets(), &verdict);
		together[i] = run_in_company(contender, cpus, count, &share[i]);
	}
	sched_setaffinity(0, sizeof(usable), &usable);
	return (struct company){ spread_of(alone, slices), spread_of(together, slices), median(share, slices) };
}

static void report_at_once(const char *what, const char *variant, int processors, const struct spread *ns, double share)
{
	report_json("\"bench\": \"processors\", \"rules\": %u, \"traffic\": \"%s\", \"processors\": %d, "
		    "\"variant\": \"%s\", \"unit\": \"ns\", \"median\": %.2f, \"low\": %.2f, "
		    "\"high\": %.2f, \"share\": %.2f",
		    contest.rules, what, processors, variant, ns->median, ns->low, ns->high, share);
}

static void print_at_once(const char *what, const int *cpus, int count, struct company company[CONTEST_MAX])
{
	printf("  %-18s  %5d", what, 1);
	for (size_t i = 0; i < contest.count; i++) {
		const char *name = contest.contender[i].kind->name;

		company[i] = measure_at_once(&contest.contender[i], cpus, count);
		report_at_once(what, name, 1, &company[i].alone, 0);
		report_at_once(what, name, count, &company[i].together, company[i].share);
		printf("  %13.1f", company[i].alone.median);
	}
	printf("\n  %-18s  %5d", "", count);
	for (size_t i = 0; i < contest.count; i++)
		printf("  %13.1f", company[i].together.median);
	printf("\n  %-18s  %5s", "", "ratio");
	for (size_t i = 0; i < contest.count; i++)
		printf("  %13.2f", company[i].together.median / company[i].alone.median);
	printf("\n  %-18s  %5s", "", "%");
	for (size_t i = 0; i < contest.count; i++)
		printf("  %13.0f", 100 * company[i].share);
	printf("\n");
	fflush(stdout);
}

static void check_all(enum contest_traffic traffic)
{
	for (size_t i = 0; i < contest.count; i++)
		contest_check(&contest, &contest.contender[i], traffic);
}

/* Which of a filter's shared maps packets have written to: compared byte by byte. */
static void print_written(const struct contender *contender)
{
	const struct raw_filter *filter = &contender->filter;
	__u32 verdict;
	int written = 0;

	printf("  %-10s", contender->kind->name);
	for (int map = 0; map < RAW_FILTER_MAPS; map++) {
		char *before = malloc(filter->bytes[map]);

		if (!before)
			die("memory", ENOMEM);
		memcpy(before, filter->map[map], filter->bytes[map]);
		packet_path_run(contender->program, CONTEST_PACKETS, &verdict);
		if (memcmp(before, filter->map[map], filter->bytes[map])) {
			printf(" %s", raw_filter_map_names[map]);
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

		printf("  %-13s  %-4s  %8.1f", contest.contender[i].kind->name, contest_traffic_names[traffic], over);
		for (size_t l = 0; l < sizeof(links) / sizeof(links[0]); l++)
			printf("  %8.1f", links[l].packets * (DRIVER_NS + over) / 1e9);
		printf("\n");
	}
}

static double slowed(const struct company *company)
{
	return company->together.median - company->alone.median;
}

/*
 * While several processors count at one rule, its cache line moves from one to the other. One move takes the time by
 * which two processors are slower than one, beyond what slows the same look-up without a count, which stands before it.
 * However many queues there are, they count no more than one packet in that time.
 */
static void print_hot_model(const struct company company[CONTEST_MAX])
{
	printf("\na model: %d queues, whose packets all match one rule: a packet takes the driver's %d ns and what the "
	       "filter takes over a bare drop,\nor as long as the rule's cache line needs to visit every queue, if "
	       "that is longer; it moves slower between distant processors\n\n  %-13s  %10s  %13s  %12s\n",
	       QUEUES, DRIVER_NS, "", "ns to next", "ns a packet", "M packets/s");
	for (size_t i = 0; i < contest.count; i++) {
		const struct contender_kind *kind = contest.contender[i].kind;
		const bool counts = kind->options.has_counts || kind->rival == RIVAL_HASH_COUNTED;
		const double to_next = counts ? fmax(0, slowed(&company[i]) - slowed(&company[i - 1])) : 0;
		const double over = company[i].together.median - company[0].together.median;
		const double ns = fmax(DRIVER_NS + over, QUEUES * to_next);

		printf("  %-13s  %10.1f  %13.1f  %12.1f\n", contest.contender[i].kind->name, to_next, ns,
		       QUEUES * 1e3 / ns);
		report_json("\"bench\": \"hot rule\", \"rules\": %u, \"queues\": %d, \"variant\": \"%s\", "
			    "\"unit\": \"ns\", \"median\": %.2f, \"to_next\": %.2f",
			    contest.rules, QUEUES, contest.contender[i].kind->name, ns, to_next);
	}
}

/* What the hash map has counted of the first rule. */
static __u64 hash_counted(const struct contender *contender)
{
	const struct rule_key key = contest_key(contender->kind, 0);
	const __u64 word[LOOKUP_KEY_WORDS] = { key.key.word[0], key.key.word[1] & ((1ULL << FLOW_KEY_SHAPE_SHIFT) - 1) };
	struct lookup_count count;

	if (bpf_map_lookup_elem(bpf_map__fd(packet_path_map(&contender->filter, rival_maps[RIVAL_HASH_COUNTED])), word,
				&count))
		die("count of a hash map", errno);
	return count.packets;
}

/* Every packet is of the one rule from here on. */
static void choose_one_rule(void)
{
	const struct lookup_parameters one_flow = { .flows = 1, .base = RIVALS_LISTED };
	const struct contender *counted = &contest.contender[contest.count - 1];
	__u64 before;

	for (size_t i = 0; i < contest.count; i++)
		packet_path_choose(&contest.contender[i].filter, &one_flow);
	before = hash_counted(counted);
	check_all(CONTEST_HIT);
	if (hash_counted(counted) - before != CONTEST_CHECKED)
		die(counted->kind->name, EPROTO);
}

static void print_links_head(void)
{
	printf("\na model: processors for a link full of 64-byte frames, if the driver takes %d ns a packet "
	       "and the filter what it takes\nhere over a bare drop; memory bandwidth and the NIC set no "
	       "bound in it\n\n  %-13s  %-4s  %8s",
	       DRIVER_NS, "", "", "ns over");
	for (size_t l = 0; l < sizeof(links) / sizeof(links[0]); l++)
		printf("  %3u Gb/s", links[l].gigabits);
	printf("\n");
}

static void bench_processors(__u32 rules)
{
	struct company company[CONTEST_MAX];
	int cpus[PROCESSORS_MAX];
	const int count = find_processors(cpus);

	contest_open(&contest, shared_kinds, SHARED_KINDS, rules);
	printf("\n%u rules, ns a packet on a processor, alone and with all at once, by turns; %%: of the time the "
	       "others really ran\n\n  %-18s  %5s",
	       contest.rules, "", "CPUs");
	for (size_t i = 0; i < SHARED_KINDS; i++)
		printf("  %13s", shared_kinds[i].name);
	printf("\n");
	contest_choose(&contest, CONTEST_HIT);
	check_all(CONTEST_HIT);
	print_at_once("hits of all rules", cpus, count, company);
	contest_choose(&contest, CONTEST_MISS);
	check_all(CONTEST_MISS);
	print_at_once("misses", cpus, count, company);
	choose_one_rule();
	print_at_once("hits of one rule", cpus, count, company);
	print_hot_model(company);
	contest_choose(&contest, CONTEST_HALF);
	printf("\nmaps that processors share and packets wrote to (half of them hits)\n\n");
	for (size_t i = 0; i < contest.count; i++)
		if (contest.contender[i].kind->rival == RIVAL_TABLE)
			print_written(&contest.contender[i]);
	print_links_head();
	print_model(CONTEST_HIT);
	print_model(CONTEST_MISS);
	contest_close(&contest);
}

int main(int argc, char **argv)
{
	const bool is_full = argc > 1 && !strcmp(argv[1], "--full");

	libbpf_set_print(NULL);
	bench_growth(argc, argv, is_full);
	bench_processors(argc > 1 + is_full ? strtoul(argv[1 + is_full], NULL, 10) : PROCESSORS_RULES);
	return 0;
}
