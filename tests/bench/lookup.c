// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a look-up costs in the packet path, by kind of table, beside what else BPF has with the same rules:
 * IPv4 5-tuples, one shape, another flow each packet; and the same under cache pressure, where other memory is
 * read before each packet, as the rest of a busy host would. `lookup [--full] [RULES...]`
 */
#include <getopt.h>
#include <math.h>
#include <sys/utsname.h>

#include "bench/contest.h"

#define FLOOR 1    /* the variant over which the others are told */
#define HASH_MAP 5 /* and the one of which they are a share */

#define TABLE(NAME, ...) \
	{ \
		.name = NAME, .program = "lookup_cuckoo", .rival = RIVAL_TABLE, .options = { __VA_ARGS__ } \
	}

static const struct contender_kind kinds[] = {
	{ .name = "bare drop", .program = "lookup_drop" },
	{ .name = "parse only", .program = "lookup_parse" },
	TABLE("16 bits", .format = BUCKET_16),
	TABLE("exact", .is_exact = 1),
	TABLE("counting", .is_exact = 1, .has_counts = 1),
	{ .name = "hash map", .program = "lookup_hash_map", .rival = RIVAL_HASH },
	{ .name = "LRU map", .program = "lookup_lru_map", .rival = RIVAL_LRU, .lost = 0.02 },
	{ .name = "LPM trie", .program = "lookup_lpm_trie", .rival = RIVAL_LPM },
	/* The kernel's has 5 hashes; the other two have the fewest wrong that their size allows, or nearly. */
	{ .name = "Bloom map", .program = "lookup_bloom_map", .rival = RIVAL_BLOOM_MAP, .wrong = 0.05 },
	{ .name = "Bloom", .program = "lookup_bloom", .rival = RIVAL_BLOOM, .wrong = 0.005 },
	{ .name = "blocked", .program = "lookup_blocked_bloom", .rival = RIVAL_BLOCKED_BLOOM, .wrong = 0.01 },
	/* Sources, as the LPM trie. */
	TABLE("addresses", .is_exact = 1, .has_addresses = 1),
	TABLE("counted", .is_exact = 1, .has_counts = 1, .has_addresses = 1),
	TABLE("32 bits", .format = BUCKET_32),
	/* With --full. */
	TABLE("8 bits", .format = BUCKET_8),
	TABLE("17 bits", .format = BUCKET_17),
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))
#define KINDS_USUAL (KINDS - 2)
#define KINDS_PRESSED_QUICK (HASH_MAP + 1)

static struct contest contest;

static void print_row(const char *what, double (*value)(size_t i), int decimals)
{
	printf("%10u  %-10s", contest.rules, what);
	for (size_t i = 0; i < contest.count; i++) {
		const double number = value(i);

		if (isnan(number))
			printf("  %10s", "");
		else
			printf("  %10.*f", decimals, number);
	}
	printf("\n");
	fflush(stdout);
}

static double time_of(size_t i)
{
	return i <= FLOOR ? contest.contender[i].result.median : contest_over(&contest, i, FLOOR);
}

static double quartiles_of(size_t i)
{
	const struct spread *result = &contest.contender[i].result;

	return (result->high - result->low) / 2;
}

static double memory_of(size_t i)
{
	return i <= FLOOR ? NAN : contest.contender[i].map_mib;
}

static double available_of(size_t i)
{
	return i <= FLOOR ? NAN : contest.contender[i].available_mib;
}

static double share_of(size_t i)
{
	return i <= FLOOR ? NAN : contest_over(&contest, i, FLOOR) / contest_over(&contest, HASH_MAP, FLOOR);
}

static double wrong_of(size_t i)
{
	return i <= FLOOR ? NAN : 100 * contest.contender[i].false_positives;
}

static void bench_rules(__u32 rules, size_t count)
{
	contest_open(&contest, kinds, count, rules);
	for (enum contest_traffic traffic = CONTEST_HIT; traffic <= CONTEST_HALF; traffic++) {
		contest_measure(&contest, traffic);
		contest_report(&contest, "\"bench\": \"lookup\"", traffic, FLOOR);
		print_row(contest_traffic_names[traffic], time_of, 1);
		print_row("  +-", quartiles_of, 1);
	}
	print_row("wrong %", wrong_of, 2);
	print_row("MiB", memory_of, 1);
	if (rules >= 500000)
		print_row("free MiB", available_of, 0);
	contest_close(&contest);
}

/* ---- under cache pressure ---- */

static void bench_pressure(enum contest_traffic traffic, __u32 lines)
{
	const unsigned int kib = lines * sizeof(struct lookup_block) / 1024;
	char what[64];

	contest.lines = lines;
	contest_measure(&contest, traffic);
	snprintf(what, sizeof(what), "\"bench\": \"pressure\", \"kib\": %u", kib);
	contest_report(&contest, what, traffic, FLOOR);
	snprintf(what, sizeof(what), "%s %u", contest_traffic_names[traffic], kib);
	print_row(what, time_of, 1);
	print_row("  / hash", share_of, 2);
}

static void bench_pressed_rules(__u32 rules, size_t count)
{
	static const enum contest_traffic traffics[] = { CONTEST_HIT, CONTEST_MISS, CONTEST_MIXED };
	struct contender_kind pressed[KINDS];

	for (size_t i = 0; i < count; i++) {
		pressed[i] = kinds[i];
		pressed[i].is_pressed = true;
	}
	contest_open(&contest, pressed, count, rules);
	for (size_t i = 0; i < sizeof(traffics) / sizeof(traffics[0]); i++)
		for (__u32 share = 0; share <= 4; share = share ? 4 * share : 1)
			bench_pressure(traffics[i], LOOKUP_PRESSURE_LINES / 4 * share);
	contest_close(&contest);
}

/* ---- all of it ---- */

static void print_columns(size_t count)
{
	printf("%10s  %-10s", "rules", "");
	for (size_t i = 0; i < count; i++)
		printf("  %10s", kinds[i].name);
	printf("\n");
}

static void print_head(size_t count)
{
	struct utsname kernel;

	uname(&kernel);
	printf("look-up in the packet path, IPv4 5-tuples (LPM trie, addresses: sources), one shape, another flow each "
	       "packet; ns a packet,\nfrom the third column on beyond those of \"%s\"; median, and half of "
	       "what is between the quartiles;\nMiB: as the maps' info says; free MiB: by how much "
	       "MemAvailable fell, maps of 1 MiB beside; Linux %s\n\n",
	       kinds[FLOOR].name, kernel.release);
	print_columns(count);
}

static void print_pressed_head(size_t count)
{
	printf("\nunder cache pressure: before each packet so many KiB of other memory are read, a word of each "
	       "line, in no order;\nns a packet behind that, no two packets at once, and its share of the hash "
	       "map's; mixed: 90 %% of the packets have no rule\n\n");
	print_columns(count);
}

static void bench_pressed(int given, char **rules, size_t count)
{
	print_pressed_head(count);
	for (int i = 0; i < given; i++)
		bench_pressed_rules(strtoul(rules[i], NULL, 10), count);
	if (!given) {
		bench_pressed_rules(100000, count);
		bench_pressed_rules(1000000, count);
	}
}

int main(int argc, char **argv)
{
	static const __u32 usual[] = { 1000, 100000, 990000, 10000000 };
	const bool is_full = argc > 1 && !strcmp(argv[1], "--full");
	const size_t count = is_full ? KINDS : KINDS_USUAL;

	libbpf_set_print(NULL);
	print_head(count);
	for (int i = 1 + is_full; i < argc; i++)
		bench_rules(strtoul(argv[i], NULL, 10), count);
	if (argc == 1 + is_full)
		for (size_t i = 0; i < (is_full ? 4 : 3); i++)
			bench_rules(usual[i], count);
	bench_pressed(argc - 1 - is_full, argv + 1 + is_full, is_full ? KINDS : KINDS_PRESSED_QUICK);
	return 0;
}
