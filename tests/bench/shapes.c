// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What it costs that rules are of several shapes, that the family is IPv6, that rules end and are counted:
 * another flow each packet. Each shape is probed, but for the last table, which counts and has hints where
 * they pay. A BPF hash map in the place of the table has as many look-ups to do. `shapes [--full] [RULES...]`
 */
#include <math.h>
#include <sys/utsname.h>

#include "bench/contest.h"

static struct contest contest;

static const struct contender_kind floor4 = { .name = "parse only", .program = "lookup_parse" };
static const struct contender_kind floor6 = { .name = "parse only, IPv6",
					      .program = "lookup_parse6",
					      .family = FLOW_IPV6 };

/* What a column is; the rows are families and numbers of shapes. */
static const struct contender_kind columns[] = {
	{ .name = "16 bits", .program = "lookup_cuckoo", .rival = RIVAL_TABLE },
	{ .name = "exact", .program = "lookup_cuckoo", .rival = RIVAL_TABLE, .options.is_exact = 1 },
	{ .name = "exact, ending",
	  .program = "lookup_cuckoo",
	  .rival = RIVAL_TABLE,
	  .options.is_exact = 1,
	  .has_ends = true },
	{ .name = "counting",
	  .program = "lookup_cuckoo",
	  .rival = RIVAL_TABLE,
	  .options = { .is_exact = 1, .has_counts = 1 } },
	{ .name = "as by the tool",
	  .program = "lookup_cuckoo",
	  .rival = RIVAL_TABLE,
	  .options = { .is_exact = 1, .has_counts = 1 },
	  .has_hints = true },
	{ .name = "hash map", .program = "lookup_hash_shapes", .rival = RIVAL_HASH_SHAPES },
};

#define COLUMNS (sizeof(columns) / sizeof(columns[0]))

static const struct {
	enum flow_family family;
	unsigned int shapes;
	bool is_full; /* only with --full */
} rows[] = {
	{ FLOW_IPV4, 1, false }, { FLOW_IPV4, 2, true },  { FLOW_IPV4, 4, false },
	{ FLOW_IPV4, 8, false }, { FLOW_IPV4, 16, true }, { FLOW_IPV4, 32, true },
	{ FLOW_IPV6, 1, false }, { FLOW_IPV6, 4, true },  { FLOW_IPV6, 8, true },
};

static size_t make_kinds(size_t row, struct contender_kind *kinds)
{
	size_t count = 0;

	kinds[count++] = rows[row].family == FLOW_IPV4 ? floor4 : floor6;
	for (size_t column = 0; column < COLUMNS; column++) {
		struct contender_kind kind = columns[column];

		kind.family = rows[row].family;
		kind.shapes = rows[row].shapes;
		if (kind.rival == RIVAL_HASH_SHAPES && kind.family == FLOW_IPV6) {
			if (kind.shapes > 1)
				continue;
			kind.rival = RIVAL_HASH6;
			kind.program = "lookup_hash_map6";
		}
		kinds[count++] = kind;
	}
	return count;
}

static void report_row(size_t row, enum contest_traffic traffic)
{
	char what[128];

	snprintf(what, sizeof(what), "\"bench\": \"shapes\", \"family\": \"IPv%d\", \"shapes\": %u",
		 rows[row].family == FLOW_IPV4 ? 4 : 6, rows[row].shapes);
	contest_report(&contest, what, traffic, 0);
}

static void bench_row(size_t row, __u32 rules)
{
	struct contender_kind kinds[CONTEST_MAX];

	contest_open(&contest, kinds, make_kinds(row, kinds), rules);
	for (enum contest_traffic traffic = CONTEST_HIT; traffic <= CONTEST_MISS; traffic++) {
		contest_measure(&contest, traffic);
		report_row(row, traffic);
		printf("%10u  IPv%d  %6u  %-4s  %10.1f", rules, rows[row].family == FLOW_IPV4 ? 4 : 6, rows[row].shapes,
		       contest_traffic_names[traffic], contest.contender[0].result.median);
		for (size_t i = 1; i < contest.count; i++)
			printf("  %13.1f", contest_over(&contest, i, 0));
		printf("\n");
		fflush(stdout);
	}
	contest_close(&contest);
}

static void bench_rules(__u32 rules, bool is_full)
{
	for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++)
		if (is_full || !rows[row].is_full)
			bench_row(row, rules);
}

int main(int argc, char **argv)
{
	static const __u32 usual[] = { 1000, 100000, 990000 };
	const bool is_full = argc > 1 && !strcmp(argv[1], "--full");

	libbpf_set_print(NULL);
	printf("shapes and families in the packet path; ns a packet, from the second figure on beyond those "
	       "of parsing; median\n\n%10s  %4s  %6s  %-4s  %10s",
	       "rules", "", "shapes", "", floor4.name);
	for (size_t column = 0; column < COLUMNS; column++)
		printf("  %13s", columns[column].name);
	printf("\n");
	for (int i = 1 + is_full; i < argc; i++)
		bench_rules(strtoul(argv[i], NULL, 10), is_full);
	if (argc == 1 + is_full)
		for (size_t i = 0; i < (is_full ? 3 : report_is_quick() ? 1 : 2); i++)
			bench_rules(usual[i], is_full);
	return 0;
}
