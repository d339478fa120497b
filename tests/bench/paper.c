// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The tables and figures of Fan, Andersen, Kaminsky, Mitzenmacher, "Cuckoo Filter: Practically Better
 * Than Bloom", CoNEXT 2014, measured again with this engine and with filters after their own papers:
 * `paper [--quick | --full] [--mebibytes N]`. Tables go to stdout, data and plots under build/bench.
 */
#include <getopt.h>

#include "paper_output.h"
#include "paper_filters.h"
#include "paper_space.h"
#include "paper_speed.h"

struct scale {
	const char *directory;
	struct space_scale space;
	struct speed_scale speed;
};

/* Some minutes; seconds, to try whether all of it works; hours, at the paper's size. */
static const struct scale scale_default = {
	.directory = XDP_CUCKOO_BUILD "/bench",
	.space = { .bits_runs = 10, .bits_buckets_log2 = { 15, 18 }, .runs = 3, .slots_log2 = 20, .absent = 2000000 },
	.speed = { .runs = 3, .bytes = 24 << 20, .lookups = 125000, .absent = 4000000 },
};
static const struct scale scale_quick = {
	.directory = XDP_CUCKOO_BUILD "/bench/quick",
	.space = { .bits_runs = 2, .bits_buckets_log2 = { 10, 12 }, .runs = 2, .slots_log2 = 16, .absent = 200000 },
	.speed = { .runs = 1, .bytes = 768 << 10, .lookups = 20000, .absent = 200000 },
};
static const struct scale scale_full = {
	.directory = XDP_CUCKOO_BUILD "/bench/full",
	.space = { .bits_runs = 10,
		   .bits_buckets_log2 = { 15, 20, 25 },
		   .runs = 10,
		   .slots_log2 = 22,
		   .absent = 4000000 },
	.speed = { .runs = 3, .bytes = 192 << 20, .lookups = 1000000, .absent = 10000000 },
};

static struct scale scale_of(int argc, char **argv)
{
	static const struct option options[] = {
		{ "quick", no_argument, NULL, 'q' },
		{ "full", no_argument, NULL, 'f' },
		{ "mebibytes", required_argument, NULL, 'm' },
		{},
	};
	struct scale scale = scale_default;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'q')
			scale = scale_quick;
		else if (option == 'f')
			scale = scale_full;
		else if (option == 'm' && atoi(optarg) > 0)
			scale.speed.bytes = (size_t)atoi(optarg) << 20;
		else
			die("usage: paper [--quick | --full] [--mebibytes N]");
	}
	return scale;
}

int main(int argc, char **argv)
{
	const struct scale scale = scale_of(argc, argv);

	output_open(scale.directory);
	printf("Fan, Andersen, Kaminsky, Mitzenmacher, \"Cuckoo Filter: Practically Better Than "
	       "Bloom\", CoNEXT 2014,\non this engine. An insert searches breadth first over at most "
	       "%d buckets; the paper's walks at\nrandom for 500 kicks. A fingerprint lies in 8 or 16 "
	       "bits, a semi-sorted bucket in 64: `bits` are those of\nthe memory, `packed` those that "
	       "the paper's tables take. Each operation hashes its key. Full is %d %% of the\nslots of "
	       "a cuckoo filter (CF; ss: semi-sorted; PCF: perfect, of IPv4 addresses), %d %% of a quotient filter "
	       "(QF), %d %% of a d-left "
	       "counting\nBloom filter (dlCBF), and %d bits an item of a Bloom filter (BF) and a blocked "
	       "one (BBF).\n\n",
	       TABLE_SEARCH_NODES, CUCKOO_FULL_PERCENT, QUOTIENT_FULL_PERCENT, DLEFT_FULL_PERCENT, BLOOM_BITS_PER_ITEM);
	space_print(&scale.space);
	speed_print(&scale.speed);
	output_plot();
	return 0;
}
