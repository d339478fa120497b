// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a look-up costs in the packet path, by kind of table, beside a BPF hash map with the same
 * keys: IPv4 5-tuples, one shape, another flow each packet. BPF_PROG_TEST_RUN in short interleaved
 * slices; medians. Each variant's verdicts are checked before it is timed. `lookup [RULES...]`
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/udp.h>

#include "bench/lookup.h"
#include "bench/timing.h"
#include "filter.h"

#define SLICES 31
#define PACKETS_A_SLICE 200000
#define PACKETS_CHECKED 2000
#define BASE_LISTED 0x0a000000U /* 10.0.0.0 */
#define BASE_OTHER 0x50000000U
#define BATCH 65536
#define OBJECT_FILE "build/tests/bench/lookup.bpf.o"
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

struct frame {
	struct ethhdr ethernet;
	struct iphdr ip;
	struct udphdr udp;
	__u8 padding[22];
} __attribute__((packed));

static void die(const char *what, int error)
{
	fprintf(stderr, "lookup: %s: %s\n", what, strerror(error < 0 ? -error : error));
	exit(1);
}

static struct frame make_frame(void)
{
	struct frame frame = {
		.ethernet.h_proto = htons(ETH_P_IP),
		.ip = { .version = 4, .ihl = 5, .ttl = 64, .protocol = IPPROTO_UDP,
			.tot_len = htons(sizeof(struct frame) - sizeof(struct ethhdr)),
			.daddr = htonl(0xc6336407) },
		.udp = { .source = htons(1111), .dest = htons(53) },
	};

	return frame;
}

static struct rule_key key_of(__u32 source)
{
	struct rule rule = {
		.family = FLOW_IPV4, .fields = RULE_PROTO | RULE_SPORT | RULE_DPORT,
		.port_kind = FLOW_PORTS, .src_len = 32, .dst_len = 32, .proto = IPPROTO_UDP,
		.src.v4 = htonl(source), .dst.v4 = htonl(0xc6336407),
		.sport = htons(1111), .dport = htons(53),
	};
	struct rule_key keys[RULE_KEYS_MAX];

	rule_keys(&rule, keys);
	return keys[0];
}

static struct bpf_map *find_map(const struct filter *filter, const char *name)
{
	struct bpf_map *map = bpf_object__find_map_by_name(filter->object, name);

	if (!map)
		die(name, ENOENT);
	return map;
}

/* Only its own program: to load the others takes longer than to run this. */
static int load_program(struct filter *filter, enum variant variant)
{
	struct bpf_program *program;

	bpf_object__for_each_program(program, filter->object)
		bpf_program__set_autoload(program, !strcmp(bpf_program__name(program),
							   variants[variant].program));
	return filter_load(filter);
}

static void open_variant(struct bench *bench, enum variant variant)
{
	struct filter *filter = &bench->filter[variant];
	__u64 slots = variants[variant].has_table ? table_slots_for(bench->rules) : 1024;
	int error = filter_prepare(OBJECT_FILE, &variants[variant].options, table_geometry(slots),
				   filter);

	if (!error && variant == HASH)
		error = bpf_map__set_max_entries(find_map(filter, HASH_MAP), bench->rules);
	if (!error)
		error = load_program(filter, variant);
	if (error)
		die(variants[variant].name, error);
	bench->program[variant] = bpf_program__fd(
		bpf_object__find_program_by_name(filter->object, variants[variant].program));
}

static struct siphash_value *make_values(const struct filter *filter, __u32 rules)
{
	struct siphash_value *values = calloc(rules, sizeof(*values));

	for (__u32 i = 0; values && i < rules; i++) {
		struct rule_key key = key_of(BASE_LISTED + i);

		values[i] = rule_hash(&key, &filter->config->key);
	}
	if (!values)
		die("values", ENOMEM);
	return values;
}

/* Every filter has the same secret, so the same values. */
static void fill_table(struct filter *filter, const struct siphash_value *values, __u32 rules)
{
	struct rule_key key = key_of(0);
	int error;

	filter_add_shape(filter, &key.shape);
	error = table_build(&filter->table, values, rules);
	if (error)
		die("table_build", error);
}

static void fill_hash(const struct filter *filter, __u32 rules)
{
	int map = bpf_map__fd(find_map(filter, HASH_MAP));
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
	struct siphash_value *values = NULL;

	*bench = (struct bench){ .rules = rules };
	for (int variant = 0; variant < VARIANTS; variant++) {
		struct filter *filter = &bench->filter[variant];

		open_variant(bench, variant);
		filter_set_up(filter);
		if (!values)
			values = make_values(filter, rules);
		if (variants[variant].has_table)
			fill_table(filter, values, rules);
	}
	fill_hash(&bench->filter[HASH], rules);
	free(values);
}

static void close_bench(struct bench *bench)
{
	for (int variant = 0; variant < VARIANTS; variant++)
		filter_close(&bench->filter[variant]);
}

static void choose_flows(struct bench *bench, __u32 base)
{
	struct lookup_parameters parameters = { bench->rules, base };
	__u32 zero = 0;

	for (int variant = 0; variant < VARIANTS; variant++) {
		int map = bpf_map__fd(find_map(&bench->filter[variant], "lookup_settings"));

		if (bpf_map_update_elem(map, &zero, &parameters, 0))
			die("set flows", errno);
	}
}

static double run(const struct bench *bench, enum variant variant, __u32 packets, __u32 *verdict)
{
	struct frame frame = make_frame(), out;
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = &frame, .data_size_in = sizeof(frame),
		    .data_out = &out, .data_size_out = sizeof(out), .repeat = packets);

	if (bpf_prog_test_run_opts(bench->program[variant], &options))
		die("BPF_PROG_TEST_RUN", errno);
	*verdict = options.retval;
	return options.duration;
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
	static const __u32 drop = OUTCOME_DROP_RULE * VERDICTS + VERDICT_DROP;
	static const __u32 pass = OUTCOME_NO_RULE * VERDICTS + VERDICT_PASS;
	const struct filter *filter = &bench->filter[variant];
	__u32 verdict, expected = is_listed || variant == PARSE ? drop : pass;
	struct abi_counter before[ABI_COUNTERS], after[ABI_COUNTERS];
	bool is_right;

	if (filter_count(filter, before))
		die("counters", EIO);
	run(bench, variant, PACKETS_CHECKED, &verdict);
	if (filter_count(filter, after))
		die("counters", EIO);
	is_right = after[expected].packets - before[expected].packets +
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
			ns[variant][slice] = run(bench, variant, PACKETS_A_SLICE, &verdict);
	for (int variant = 0; variant < VARIANTS; variant++)
		result[variant] = median(ns[variant], SLICES);
}

/* What the kernel says a map takes, in MiB: the line "memlock" of its descriptor's fdinfo. */
static double map_mib(const struct filter *filter, const char *name)
{
	char path[64], line[128];
	unsigned long long bytes = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", bpf_map__fd(find_map(filter, name)));
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "memlock: %llu", &bytes) == 1)
			break;
	if (file)
		fclose(file);
	return bytes / 1048576.0;
}

static double memory_mib(const struct bench *bench, enum variant variant)
{
	const struct filter *filter = &bench->filter[variant];
	const struct abi_options *options = &variants[variant].options;

	if (variant == HASH)
		return map_mib(filter, HASH_MAP);
	return map_mib(filter, ABI_BUCKETS_MAP) +
	       (options->is_exact ? map_mib(filter, ABI_RECORDS_MAP) : 0) +
	       (options->has_counts ? map_mib(filter, ABI_RULES_MAP) : 0);
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
