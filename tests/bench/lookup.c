// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a look-up costs in the packet path, by kind of table, beside a BPF hash map with the same
 * keys: IPv4 5-tuples, one shape, another flow each packet. BPF_PROG_TEST_RUN in short interleaved
 * slices; medians. Each variant's verdicts are checked before it is timed. `lookup [RULES...]`
 */
#include <math.h>
#include <sys/utsname.h>

#include "bench/packet_path.h"

#define SLICES 31
#define PACKETS_A_SLICE 200000
#define PACKETS_CHECKED 2000
#define BASE_LISTED 0x0a000000U /* 10.0.0.0 */
#define BASE_OTHER 0x50000000U
#define BATCH 65536
#define HASH_MAP "lookup_hash"

enum variant { DROP, PARSE, BITS_8, BITS_16, BITS_17, BITS_32, EXACT, COUNTING, HASH, VARIANTS };

/* Those without a table have the smallest. */
static const struct {
	const char *name, *program;
	struct abi_options options;
	bool has_table;
} variants[VARIANTS] = {
	[DROP] = { "bare drop", "lookup_drop" },
	[PARSE] = { "parse only", "lookup_parse" },
	[BITS_8] = { "8 bits", "lookup_cuckoo", { .format = BUCKET_8 }, true },
	[BITS_16] = { "16 bits", "lookup_cuckoo", { .format = BUCKET_16 }, true },
	[BITS_17] = { "17 bits", "lookup_cuckoo", { .format = BUCKET_17 }, true },
	[BITS_32] = { "32 bits", "lookup_cuckoo", { .format = BUCKET_32 }, true },
	[EXACT] = { "exact", "lookup_cuckoo", { .is_exact = 1 }, true },
	[COUNTING] = { "counting", "lookup_cuckoo", { .is_exact = 1, .has_counts = 1 }, true },
	[HASH] = { "hash map", "lookup_hash_map" },
};

struct bench {
	struct filter filter[VARIANTS];
	int program[VARIANTS];
	__u32 rules;
};

static struct rule_key key_of(__u32 source)
{
	struct rule rule = {
		.family = FLOW_IPV4, .fields = RULE_PROTO | RULE_SPORT | RULE_DPORT,
		.port_kind = FLOW_PORTS, .src_len = 32, .dst_len = 32, .proto = IPPROTO_UDP,
		.src.v4 = htonl(source), .dst.v4 = htonl(PACKET_PATH_DESTINATION),
		.sport = htons(PACKET_PATH_SPORT), .dport = htons(PACKET_PATH_DPORT),
	};
	struct rule_key keys[RULE_KEYS_MAX];

	rule_keys(&rule, keys);
	return keys[0];
}

static void open_variant(struct bench *bench, enum variant variant)
{
	struct filter *filter = &bench->filter[variant];
	__u64 slots = variants[variant].has_table ? table_slots_for(bench->rules) : 1024;
	int error = filter_prepare(PACKET_PATH_OBJECT, &variants[variant].options,
				   table_geometry(slots), filter);

	if (!error && variant == HASH)
		error = bpf_map__set_max_entries(packet_path_map(filter, HASH_MAP), bench->rules);
	if (error)
		die(variants[variant].name, error);
	bench->program[variant] = packet_path_load(filter, variants[variant].program);
}

static struct table_entry *make_entries(const struct filter *filter, __u32 rules)
{
	struct table_entry *entries = calloc(rules, sizeof(*entries));

	for (__u32 i = 0; entries && i < rules; i++) {
		struct rule_key key = key_of(BASE_LISTED + i);

		entries[i].key = rule_hash(&key, &filter->config->secret);
	}
	if (!entries)
		die("entries", ENOMEM);
	return entries;
}

/* Every filter has the same secret, so the same entries. */
static void fill_table(struct filter *filter, const struct table_entry *entries, __u32 rules)
{
	struct rule_key key = key_of(0);
	int error;

	filter_add_shape(filter, &key.shape);
	error = table_build(&filter->table, entries, rules);
	if (error)
		die("table_build", error);
}

static void fill_hash(const struct filter *filter, __u32 rules)
{
	int map = bpf_map__fd(packet_path_map(filter, HASH_MAP));
	__u64 (*keys)[LOOKUP_KEY_WORDS] = calloc(BATCH, sizeof(*keys));
	__u64 *values = calloc(BATCH, sizeof(*values));

	for (__u32 done = 0; done < rules;) {
		__u32 count = rules - done < BATCH ? rules - done : BATCH;

		for (__u32 i = 0; i < count; i++) {
			struct rule_key key = key_of(BASE_LISTED + done + i);

			/* The hash map is keyed by the flow, without the shape's tag. */
			keys[i][0] = key.key.word[0];
			keys[i][1] = key.key.word[1] & ((1ULL << FLOW_KEY_TAG_SHIFT) - 1);
		}
		done += count;
		if (bpf_map_update_batch(map, keys, values, &count, NULL))
			die("bpf_map_update_batch", errno);
	}
	free(keys);
	free(values);
}

static void open_bench(struct bench *bench, __u32 rules)
{
	struct table_entry *entries = NULL;

	*bench = (struct bench){ .rules = rules };
	for (int variant = 0; variant < VARIANTS; variant++) {
		struct filter *filter = &bench->filter[variant];

		open_variant(bench, variant);
		filter_set_up(filter);
		if (!entries)
			entries = make_entries(filter, rules);
		if (variants[variant].has_table)
			fill_table(filter, entries, rules);
	}
	fill_hash(&bench->filter[HASH], rules);
	free(entries);
}

static void close_bench(struct bench *bench)
{
	for (int variant = 0; variant < VARIANTS; variant++)
		filter_close(&bench->filter[variant]);
}

static void choose_flows(struct bench *bench, __u32 base)
{
	const struct lookup_parameters parameters = { .flows = bench->rules, .base = base };

	for (int variant = 0; variant < VARIANTS; variant++)
		packet_path_choose(&bench->filter[variant], &parameters);
}

/* Of innocent flows, as many may be dropped as meet a fingerprint, give or take. */
static double wrong_allowed(const struct bench *bench, enum variant variant, bool is_listed)
{
	const struct abi_options *options = &variants[variant].options;
	double load = (double)bench->rules / table_slots(&bench->filter[variant].table);

	if (is_listed || options->is_exact || !variants[variant].has_table)
		return 0;
	return 10 + 2 * PACKETS_CHECKED * table_false_positive_rate(options->format, load);
}

/* By what the one exit counted; the floor does not leave there. */
static void check_variant(const struct bench *bench, enum variant variant, bool is_listed)
{
	const struct filter *filter = &bench->filter[variant];
	const bool is_dropped = is_listed || variant == PARSE;
	const enum abi_outcome outcome = is_dropped ? OUTCOME_DROP_RULE : OUTCOME_NO_RULE;
	const enum abi_verdict expected = is_dropped ? VERDICT_DROP : VERDICT_PASS;
	const __u64 before = packet_path_counted(filter, outcome, expected);
	__u32 verdict;
	bool is_right;

	packet_path_run(bench->program[variant], PACKETS_CHECKED, &verdict);
	is_right = packet_path_counted(filter, outcome, expected) - before +
			   wrong_allowed(bench, variant, is_listed) >=
		   PACKETS_CHECKED;
	if (variant == DROP)
		is_right = verdict == XDP_DROP;
	if (!is_right)
		die(variants[variant].name, EPROTO);
}

/* Before timing: each variant does what it is timed for, and the rules' counters say so. */
static void check(const struct bench *bench, bool is_listed)
{
	const struct abi_counter *counter = bench->filter[COUNTING].map[FILTER_RULES];
	__u64 counted = 0;

	for (int variant = 0; variant < VARIANTS; variant++)
		check_variant(bench, variant, is_listed);
	for (__u64 i = 0; i < table_slots(&bench->filter[COUNTING].table); i++)
		counted += counter[i].packets;
	if (is_listed && counted != PACKETS_CHECKED)
		die("packets counted by rule", EPROTO);
}

static void measure(const struct bench *bench, bool is_listed, double result[VARIANTS])
{
	double ns[VARIANTS][SLICES];
	__u32 verdict;

	check(bench, is_listed);
	for (int slice = 0; slice < SLICES; slice++)
		for (int variant = 0; variant < VARIANTS; variant++)
			ns[variant][slice] = packet_path_run(bench->program[variant],
							     PACKETS_A_SLICE, &verdict);
	for (int variant = 0; variant < VARIANTS; variant++)
		result[variant] = median(ns[variant], SLICES);
}

static double memory_mib(const struct bench *bench, enum variant variant)
{
	const struct filter *filter = &bench->filter[variant];

	if (variant == HASH)
		return packet_path_mib(filter, HASH_MAP);
	return packet_path_table_mib(filter, &variants[variant].options);
}

static void print_row(__u32 rules, const char *what, const double value[VARIANTS], int decimals)
{
	printf("%9u  %-4s", rules, what);
	for (int variant = 0; variant < VARIANTS; variant++) {
		if (isnan(value[variant]))
			printf("  %10s", "");
		else
			printf("  %10.*f", decimals, value[variant]);
	}
	printf("\n");
	fflush(stdout);
}

static void bench_rules(__u32 rules)
{
	double value[VARIANTS];
	struct bench bench;

	open_bench(&bench, rules);
	for (int is_listed = 1; is_listed >= 0; is_listed--) {
		choose_flows(&bench, is_listed ? BASE_LISTED : BASE_OTHER);
		measure(&bench, is_listed, value);
		for (int variant = PARSE + 1; variant < VARIANTS; variant++)
			value[variant] -= value[PARSE];
		print_row(rules, is_listed ? "hit" : "miss", value, 0);
	}
	value[DROP] = value[PARSE] = NAN;
	for (int variant = PARSE + 1; variant < VARIANTS; variant++)
		value[variant] = memory_mib(&bench, variant);
	print_row(rules, "MiB", value, 1);
	close_bench(&bench);
}

int main(int argc, char **argv)
{
	static const __u32 usual[] = { 1000, 100000, 990000, 10000000 };
	struct utsname kernel;

	libbpf_set_print(NULL);
	uname(&kernel);
	printf("look-up in the packet path, IPv4 5-tuples, one shape, another flow each packet; ns a "
	       "packet,\nfrom the third column on beyond those of \"%s\"; median of %d slices of %d "
	       "packets; Linux %s\n\n", variants[PARSE].name, SLICES, PACKETS_A_SLICE,
	       kernel.release);
	printf("%9s  %-4s", "rules", "");
	for (int variant = 0; variant < VARIANTS; variant++)
		printf("  %10s", variants[variant].name);
	printf("\n");
	if (argc < 2)
		for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
			bench_rules(usual[i]);
	for (int i = 1; i < argc; i++)
		bench_rules(strtoul(argv[i], NULL, 10));
	return 0;
}
