// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a list of networks costs in the packet path, beside a BPF LPM trie with the same list. The tables
 * are those that `load` makes: the tool's own store, choice of shapes and hints. BPF_PROG_TEST_RUN in
 * short interleaved slices, each behind a round of all sources, so that the caches hold what the variant
 * needs and not what another one left; medians. Every variant's verdicts are checked before it is timed.
 * `cidr [--capacity N] [LIST...]`; without a LIST those of $LISTS and a generated one.
 */
#include <ftw.h>
#include <getopt.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "change/change.h"
#include "bench/packet_path.h"
#include "bench/report.h"
#include "helpers/lpm.h"
#include "hint.h"
#include "filter/hints.h"

#define SLICES 21
#define QUICK_SLICES 7
#define PACKETS_A_SLICE 100000
#define GENERATED "generated"
#define GENERATED_NETWORKS 20000
#define FILTER_NAME "bench"
#define LPM_MAP "lookup_lpm"
#define SEED 1

enum variant { PARSE, COUNTING, EXACT, BITS_16, TRIE, VARIANTS };

static const struct {
	const char *name, *program;
	struct abi_options options;
	bool has_table;
} variants[VARIANTS] = {
	[PARSE] = { .name = "parse only", .program = "lookup_parse" },
	[COUNTING] = { "counting", "lookup_cuckoo", { .is_exact = 1, .has_counts = 1 }, true },
	[EXACT] = { "exact", "lookup_cuckoo", { .is_exact = 1 }, true },
	[BITS_16] = { "16 bits", "lookup_cuckoo", { .format = BUCKET_16 }, true },
	[TRIE] = { .name = "LPM trie", .program = "lookup_lpm_trie" },
};

enum packets { UNIFORM, INSIDE, HALF_HALF, PACKETS };

static const char *const packets_names[PACKETS] = {
	[UNIFORM] = "from anywhere",
	[INSIDE] = "from listed networks",
	[HALF_HALF] = "half of each",
};

struct bench {
	struct lpm_list list;
	struct lpm_intervals sorted;
	char state[32]; /* the directory of the store */
	struct raw_filter filter[VARIANTS];
	int program[VARIANTS];
	__u64 capacity;
	struct lookup_sources sources[LOOKUP_SOURCES / LOOKUP_SOURCES_A_LINE];
	__u32 listed; /* of the sources, those that the list has */
};

/* ---- lists ---- */

/* Networks of 9 to 32 bits: of those up to 15 one each, as in real lists, of the others as many of each. */
static void generate_list(struct lpm_list *list)
{
	uint64_t random = SEED;

	*list = (struct lpm_list){ 0 };
	for (unsigned int i = 0; i < GENERATED_NETWORKS; i++) {
		const unsigned int bits = i < 7 ? 9 + i : 16 + i % 17;
		const uint32_t address = random_next(&random);
		const struct lpm_rule rule = {
			.family = LPM_IPV4,
			.src = lpm_prefix_of(LPM_IPV4, address, bits),
			.dst = { { 0, ~(lpm_address)0 }, 0 },
			.dport = -1,
		};

		lpm_append(list, &rule);
	}
}

static struct rule rule_of(const struct lpm_rule *listed)
{
	return (struct rule){ .family = FLOW_IPV4,
			      .src_len = listed->src.length,
			      .src.v4 = htonl(listed->src.range.first) };
}

static int add_all(struct session *session, const struct lpm_list *list, struct reason *reason)
{
	enum store_added ignored;
	int error = 0;

	for (size_t i = 0; i < list->count && !error; i++) {
		const struct rule rule = rule_of(&list->rule[i]);

		error = change_add(session, &rule, &ignored, reason);
	}
	return error;
}

static struct session open_store(const struct bench *bench)
{
	struct session session;
	struct reason reason;
	const int error = session_open(&session, bench->state, FILTER_NAME, &reason);

	if (error)
		die(reason.text, error);
	return session;
}

static void store_list(struct bench *bench)
{
	struct session session;
	struct reason reason;
	int error;

	strcpy(bench->state, "/tmp/xdp-cuckoo-bench.XXXXXX");
	if (!mkdtemp(bench->state))
		die(bench->state, errno);
	session = open_store(bench);
	error = change_begin(&session, &reason);
	if (!error)
		error = change_end(&session, add_all(&session, &bench->list, &reason), &reason);
	if (error)
		die(reason.text, error);
	session_close(&session);
}

static int remove_one(const char *path, const struct stat *file, int type, struct FTW *walk)
{
	(void)file, (void)type, (void)walk;
	return remove(path);
}

/* ---- filters ---- */

/* The maps of a filter that the tool has just loaded become those of the benchmark's program. */
static void take_maps(struct raw_filter *filter, const struct kernel_filter *loaded)
{
	static const enum kernel_map_name from[RAW_FILTER_MAPS] = {
		[RAW_FILTER_CONFIG] = KERNEL_CONFIG,   [RAW_FILTER_BUCKETS] = KERNEL_BUCKETS,
		[RAW_FILTER_RECORDS] = KERNEL_RECORDS, [RAW_FILTER_COUNTS] = KERNEL_COUNTS,
		[RAW_FILTER_HINTS] = KERNEL_HINTS,
	};

	for (enum raw_filter_map map = 0; map < RAW_FILTER_MAPS; map++) {
		const int error = bpf_map__reuse_fd(raw_filter_find_map(filter, map), loaded->map[from[map]].fd);

		if (error)
			die(raw_filter_map_names[map], error);
	}
}

static void prepare(struct raw_filter *filter, const struct abi_options *options, struct bucket_geometry geometry)
{
	const int error = raw_filter_prepare(PACKET_PATH_OBJECT, options, geometry, filter);

	if (error)
		die(PACKET_PATH_OBJECT, error);
}

static void open_table(struct bench *bench, enum variant variant)
{
	struct raw_filter *filter = &bench->filter[variant];
	struct session session = open_store(bench);
	struct filter *own;
	struct reason reason;
	const int error = session_load(&session, &variants[variant].options, bench->capacity, &own, &reason);

	if (error)
		die(reason.text, error);
	prepare(filter, &variants[variant].options, filter_geometry(&own->kernel));
	take_maps(filter, &own->kernel);
	session_close(&session);
}

static void open_variant(struct bench *bench, enum variant variant)
{
	struct raw_filter *filter = &bench->filter[variant];
	int error = 0;

	if (variants[variant].has_table)
		open_table(bench, variant);
	else
		prepare(filter, &variants[variant].options, table_geometry(0));
	if (variant == TRIE)
		error = bpf_map__set_max_entries(packet_path_map(filter, LPM_MAP), bench->list.count);
	if (error)
		die(LPM_MAP, error);
	bench->program[variant] = packet_path_load(filter, variants[variant].program);
	packet_path_choose(filter, &(struct lookup_parameters){ 0 });
	if (variant == TRIE)
		error = lpm_fill(bpf_map__fd(packet_path_map(filter, LPM_MAP)), &bench->list, LPM_IPV4, LPM_DROP);
	if (error)
		die(LPM_MAP, error);
}

static void open_bench(struct bench *bench)
{
	if (bench->list.count_of[LPM_IPV6])
		die("a list of IPv4 networks is wanted", EINVAL);
	bench->sorted = lpm_sort(&bench->list, LPM_IPV4, LPM_DROP);
	store_list(bench);
	for (enum variant variant = 0; variant < VARIANTS; variant++)
		open_variant(bench, variant);
}

static void close_bench(struct bench *bench)
{
	for (enum variant variant = 0; variant < VARIANTS; variant++)
		raw_filter_close(&bench->filter[variant]);
	nftw(bench->state, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(bench->sorted.range);
	free(bench->list.rule);
}

/* ---- packets ---- */

static uint32_t draw_source(const struct bench *bench, bool is_listed, uint64_t *random)
{
	const struct lpm_rule *rule = &bench->list.rule[random_below(random, bench->list.count)];

	return is_listed ? lpm_random_in(&rule->src.range, random) : random_next(random);
}

static void choose_sources(struct bench *bench, enum packets packets)
{
	uint64_t random = SEED;

	bench->listed = 0;
	for (__u32 i = 0; i < LOOKUP_SOURCES; i++) {
		const bool is_listed = packets == INSIDE || (packets == HALF_HALF && random_below(&random, 2));
		const uint32_t source = draw_source(bench, is_listed, &random);

		bench->sources[i / LOOKUP_SOURCES_A_LINE].source[i % LOOKUP_SOURCES_A_LINE] = htonl(source);
		bench->listed += lpm_search(&bench->sorted, source);
	}
	for (enum variant variant = 0; variant < VARIANTS; variant++) {
		const int map = bpf_map__fd(packet_path_map(&bench->filter[variant], "lookup_listed"));

		for (__u32 line = 0; line < LOOKUP_SOURCES / LOOKUP_SOURCES_A_LINE; line++)
			if (bpf_map_update_elem(map, &line, &bench->sources[line], 0))
				die("set sources", errno);
	}
}

/* As the program does: the shapes that the hint names, in order, until one has the packet's key. */
static unsigned int probes_of(const struct raw_filter *filter, __be32 source)
{
	const struct abi_shape_list *list = abi_shapes(abi_active(filter->config), FLOW_IPV4);
	const struct flow flow = { .src.v4 = source,
				   .dst.v4 = htonl(PACKET_PATH_DESTINATION),
				   .sport = htons(PACKET_PATH_SPORT),
				   .dport = htons(PACKET_PATH_DPORT),
				   .proto = IPPROTO_UDP,
				   .port_kind = FLOW_PORTS };
	const struct hints hints = raw_filter_hints(filter);
	struct rule_key packet = {};
	unsigned int probes = 0;
	__u64 candidates = list->candidates[ABI_HINT_ALL];

	flow_pack(&flow, &packet.key);
	if (list->reads_hints)
		candidates = hints_leave(list, *hints_at(hints, FLOW_IPV4, &packet.key));
	for (; candidates; candidates &= candidates - 1) {
		const struct abi_shape *shape = &list->shape[abi_shape_place(candidates)];
		struct rule_key key = {};
		struct hash_value value;

		probes++;
		for (unsigned int k = 0; k < FLOW_KEY_WORDS_MAX; k++)
			key.key.word[k] = packet.key.word[k] & shape->mask[k];
		key.key.word[flow_key_last(FLOW_IPV4)] |= shape->id;
		value = rule_hash(&key, &abi_active(filter->config)->secret);
		if (table_find(&filter->table, &value, NULL))
			break;
	}
	return probes;
}

static double mean_probes(const struct bench *bench)
{
	__u64 probes = 0;

	for (__u32 i = 0; i < LOOKUP_SOURCES; i++)
		probes += probes_of(&bench->filter[EXACT],
				    bench->sources[i / LOOKUP_SOURCES_A_LINE].source[i % LOOKUP_SOURCES_A_LINE]);
	return (double)probes / LOOKUP_SOURCES;
}

/* ---- measuring ---- */

/* Every source once: of an exact table and of the trie as many are dropped as the intervals say. */
static void check_variant(const struct bench *bench, enum variant variant)
{
	const struct raw_filter *filter = &bench->filter[variant];
	const __u64 before = packet_path_counted(filter, OUTCOME_DROP_RULE, VERDICT_DROP);
	double false_positives = 0;
	__u64 dropped;
	__u32 verdict;

	packet_path_run(bench->program[variant], LOOKUP_SOURCES, &verdict);
	dropped = packet_path_counted(filter, OUTCOME_DROP_RULE, VERDICT_DROP) - before;
	if (variant == PARSE)
		return;
	if (!variants[variant].options.is_exact && variants[variant].has_table)
		false_positives =
			10 + 2. * LOOKUP_SOURCES * SHAPE_LIST_PROBES * table_false_positive_rate(BUCKET_16, 1);
	if (dropped < bench->listed || dropped > bench->listed + false_positives)
		die(variants[variant].name, EPROTO);
}

static int slices(void)
{
	return report_slices(SLICES, QUICK_SLICES);
}

static void measure(const struct bench *bench, double result[VARIANTS])
{
	double ns[VARIANTS][SLICES];
	__u32 verdict;

	for (enum variant variant = 0; variant < VARIANTS; variant++)
		check_variant(bench, variant);
	for (int slice = 0; slice < slices(); slice++)
		for (enum variant variant = 0; variant < VARIANTS; variant++) {
			packet_path_run(bench->program[variant], LOOKUP_SOURCES, &verdict);
			ns[variant][slice] = packet_path_run(bench->program[variant], PACKETS_A_SLICE, &verdict);
		}
	for (enum variant variant = 0; variant < VARIANTS; variant++)
		result[variant] = median(ns[variant], slices());
}

static void print_head(const struct bench *bench, const char *name)
{
	const struct raw_filter *filter = &bench->filter[COUNTING];

	printf("\n%s: %zu networks; %u shapes, %llu keys in %llu slots\n", name, bench->list.count,
	       abi_shapes(abi_active(filter->config), FLOW_IPV4)->count, (unsigned long long)filter->config->used,
	       (unsigned long long)table_slots(&filter->table));
	printf("  %-20s  %10s", "", variants[PARSE].name);
	for (enum variant variant = PARSE + 1; variant < VARIANTS; variant++)
		printf("  %10s", variants[variant].name);
	printf("  %13s  %10s  %6s\n", "counting/trie", "exact/trie", "probes");
}

static void print_row(const struct bench *bench, enum packets packets, const double ns[VARIANTS])
{
	printf("  %-20s  %10.1f", packets_names[packets], ns[PARSE]);
	for (enum variant variant = PARSE + 1; variant < VARIANTS; variant++)
		printf("  %10.1f", ns[variant] - ns[PARSE]);
	for (enum variant variant = COUNTING; variant <= EXACT; variant++)
		printf("  %*.2f", variant == COUNTING ? 13 : 10, (ns[variant] - ns[PARSE]) / (ns[TRIE] - ns[PARSE]));
	printf("  %6.2f\n", mean_probes(bench));
	fflush(stdout);
}

static void report(const struct bench *bench, const char *list, enum packets packets, const double ns[VARIANTS])
{
	for (enum variant variant = 0; variant < VARIANTS; variant++)
		report_json("\"bench\": \"cidr\", \"list\": \"%s\", \"networks\": %zu, "
			    "\"traffic\": \"%s\", \"variant\": \"%s\", \"unit\": \"ns\", "
			    "\"median\": %.2f, \"over_floor\": %.2f",
			    list, bench->list.count, packets_names[packets], variants[variant].name, ns[variant],
			    ns[variant] - ns[PARSE]);
}

/* bench->list is filled. */
static void bench_list(struct bench *bench, const char *name)
{
	open_bench(bench);
	print_head(bench, name);
	for (enum packets packets = 0; packets < PACKETS; packets++) {
		double ns[VARIANTS];

		choose_sources(bench, packets);
		measure(bench, ns);
		print_row(bench, packets, ns);
		report(bench, name, packets, ns);
	}
	close_bench(bench);
}

static void bench_file(struct bench *bench, const char *path)
{
	const char *slash = strrchr(path, '/');

	if (lpm_read(path, &bench->list))
		exit(1);
	bench_list(bench, slash ? slash + 1 : path);
}

/* Those of the usual lists that are there; the first alone where it is quick. */
static void bench_usual(struct bench *bench)
{
	static const char *const usual[] = { "firehol_level1.netset", "country_us.netset", "firehol_level4.netset",
					     "spamhaus_drop.netset" };
	const char *lists = getenv("LISTS");
	char path[4096];

	for (size_t i = 0; i < (report_is_quick() ? 1 : sizeof(usual) / sizeof(usual[0])); i++) {
		snprintf(path, sizeof(path), "%s/%s", lists ? lists : "../shared/blocklists", usual[i]);
		if (access(path, R_OK))
			printf("\n%s: not there; LISTS=DIR says where\n", path);
		else
			bench_file(bench, path);
	}
	generate_list(&bench->list);
	bench_list(bench, GENERATED);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ .name = "capacity", .has_arg = required_argument, .val = 'c' },
		{ 0 },
	};
	static struct bench bench;
	struct utsname kernel;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) == 'c')
		bench.capacity = strtoull(optarg, NULL, 10);
	if (option == '?') {
		fputs("usage: cidr [--capacity N] [LIST...]\n", stderr);
		return 2;
	}
	libbpf_set_print(NULL);
	uname(&kernel);
	printf("lists of networks in the packet path, another source each packet; ns a packet beyond those "
	       "of\n\"%s\"; median of %d slices of %d packets; Linux %s\n",
	       variants[PARSE].name, slices(), PACKETS_A_SLICE, kernel.release);
	if (optind == argc)
		bench_usual(&bench);
	for (int i = optind; i < argc; i++)
		bench_file(&bench, argv[i]);
	return 0;
}
