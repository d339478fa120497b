// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a look-up costs in the packet path, by kind of table, beside what else BPF has with the same rules:
 * IPv4 5-tuples, one shape, another flow each packet. `lookup [--full] [RULES...]`
 */
#include <getopt.h>
#include <math.h>
#include <sys/utsname.h>

#include "bench/contest.h"

#define FLOOR 1 /* the variant over which the others are told */

#define TABLE(NAME, ...)                                                                           \
	{                                                                                          \
		.name = NAME, .program = "lookup_cuckoo", .rival = RIVAL_TABLE, .options = {       \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}

static const struct contender_kind kinds[] = {
	{ .name = "bare drop", .program = "lookup_drop" },
	{ .name = "parse only", .program = "lookup_parse" },
	TABLE("16 bits", .format = BUCKET_16),
	TABLE("32 bits", .format = BUCKET_32),
	TABLE("exact", .is_exact = 1),
	TABLE("counting", .is_exact = 1, .has_counts = 1),
	{ .name = "hash map", .program = "lookup_hash_map", .rival = RIVAL_HASH },
	{ .name = "LRU map", .program = "lookup_lru_map", .rival = RIVAL_LRU, .lost = 0.02 },
	{ .name = "LPM trie", .program = "lookup_lpm_trie", .rival = RIVAL_LPM },
	/* The kernel's has 5 hashes; the other two have the fewest wrong that their size allows, or nearly. */
	{ .name = "Bloom map", .program = "lookup_bloom_map", .rival = RIVAL_BLOOM_MAP, .wrong = 0.05 },
	{ .name = "Bloom", .program = "lookup_bloom", .rival = RIVAL_BLOOM, .wrong = 0.005 },
	{ .name = "blocked", .program = "lookup_blocked_bloom", .rival = RIVAL_BLOCKED_BLOOM, .wrong = 0.01 },
	/* With --full. */
	TABLE("8 bits", .format = BUCKET_8),
	TABLE("17 bits", .format = BUCKET_17),
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))
#define KINDS_USUAL (KINDS - 2)

static struct contest contest;

static void print_row(const char *what, double (*value)(size_t i), int decimals)
{
	printf("%10u  %-8s", contest.rules, what);
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

static double wrong_of(size_t i)
{
	return i <= FLOOR ? NAN : 100 * contest.contender[i].false_positives;
}

static void bench_rules(__u32 rules, size_t count)
{
	contest_open(&contest, kinds, count, rules);
	for (enum contest_traffic traffic = 0; traffic < CONTEST_TRAFFICS; traffic++) {
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

static void print_head(size_t count)
{
	struct utsname kernel;

	uname(&kernel);
	printf("look-up in the packet path, IPv4 5-tuples (LPM trie: sources), one shape, another flow each "
	       "packet; ns a packet,\nfrom the third column on beyond those of \"%s\"; median, and half of "
	       "what is between the quartiles;\nMiB: as the maps' info says; free MiB: by how much "
	       "MemAvailable fell, maps of 1 MiB beside; Linux %s\n\n", kinds[FLOOR].name, kernel.release);
	printf("%10s  %-8s", "rules", "");
	for (size_t i = 0; i < count; i++)
		printf("  %10s", kinds[i].name);
	printf("\n");
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
	return 0;
}
