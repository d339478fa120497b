// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a look-up costs in the packet path, beside a BPF hash map with the same keys: IPv4 5-tuples,
 * one shape, another flow each packet. BPF_PROG_TEST_RUN in short interleaved slices; medians. Each
 * variant's verdicts are checked before it is timed. `lookup [RULES...]`
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/udp.h>

#include "bench/lookup.h"
#include "rule.h"
#include "table.h"

#define SLICES 31
#define PACKETS_A_SLICE 200000
#define PACKETS_CHECKED 2000
#define BASE_LISTED 0x0a000000U /* 10.0.0.0 */
#define BASE_OTHER 0x50000000U
#define BATCH 65536
#define OBJECT_FILE "build/tests/bench/lookup.bpf.o"

enum variant { DROP, PARSE, CUCKOO, HASH_MAP, VARIANTS };

static const char *const program_names[VARIANTS] = {
	[DROP] = "lookup_drop",
	[PARSE] = "lookup_parse",
	[CUCKOO] = "lookup_cuckoo",
	[HASH_MAP] = "lookup_hash_map",
};

struct bench {
	struct bpf_object *object;
	int program[VARIANTS];
	struct abi_config *config;
	__u64 *bucket;
	__u64 buckets;
	struct table table;
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

static void *map_map(int fd, size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (memory == MAP_FAILED)
		die("mmap", errno);
	return memory;
}

static struct bpf_map *find_map(struct bpf_object *object, const char *name)
{
	struct bpf_map *map = bpf_object__find_map_by_name(object, name);

	if (!map)
		die(name, ENOENT);
	return map;
}

static void open_bench(struct bench *bench, __u64 rules)
{
	int error;

	*bench = (struct bench){ .buckets = table_slots_for(rules) / BUCKET_SLOTS };
	bench->object = bpf_object__open_file(OBJECT_FILE, NULL);
	if (!bench->object)
		die(OBJECT_FILE, errno);
	bpf_map__set_max_entries(find_map(bench->object, ABI_BUCKETS_MAP), bench->buckets);
	bpf_map__set_max_entries(find_map(bench->object, "lookup_hash"), rules);
	error = bpf_object__load(bench->object);
	if (error)
		die("load", error);
	for (int i = 0; i < VARIANTS; i++)
		bench->program[i] = bpf_program__fd(
			bpf_object__find_program_by_name(bench->object, program_names[i]));
	bench->config = map_map(bpf_map__fd(find_map(bench->object, ABI_CONFIG_MAP)),
				sizeof(*bench->config));
	bench->bucket = map_map(bpf_map__fd(find_map(bench->object, ABI_BUCKETS_MAP)),
				bench->buckets * sizeof(*bench->bucket));
	if (table_open(&bench->table, bench->bucket, bench->buckets, &bench->config->sequence))
		die("table_open", EINVAL);
}

static void close_bench(struct bench *bench)
{
	table_close(&bench->table);
	munmap(bench->config, sizeof(*bench->config));
	munmap(bench->bucket, bench->buckets * sizeof(*bench->bucket));
	bpf_object__close(bench->object);
}

static void set_up_config(struct bench *bench)
{
	struct abi_config *config = bench->config;
	struct rule_key key = key_of(0);

	config->version = ABI_VERSION;
	config->key = (struct siphash_key){ { 0x0706050403020100ULL, 0x0f0e0d0c0b0a0908ULL } };
	config->bucket_mask = bench->table.bucket_mask;
	config->step_shift = bench->table.step_shift;
	rule_shape_compile(&key.shape, &config->shapes[FLOW_IPV4].list[0].shape[0]);
	config->shapes[FLOW_IPV4].list[0].count = 1;
	config->magic = ABI_MAGIC;
}

static void fill(struct bench *bench, __u32 rules)
{
	int hash_fd = bpf_map__fd(find_map(bench->object, "lookup_hash"));
	__u64 (*keys)[LOOKUP_KEY_WORDS] = calloc(BATCH, sizeof(*keys));
	__u64 *values = calloc(BATCH, sizeof(*values));

	for (__u32 done = 0; done < rules;) {
		__u32 count = rules - done < BATCH ? rules - done : BATCH;

		for (__u32 i = 0; i < count; i++) {
			struct rule_key key = key_of(BASE_LISTED + done + i);

			if (table_insert(&bench->table, rule_hash(&key, &bench->config->key)))
				die("table_insert", ENOSPC);
			/* The hash map is keyed by the flow, without the shape's tag. */
			keys[i][0] = key.key.word[0];
			keys[i][1] = key.key.word[1] & ((1ULL << FLOW_KEY_TAG_SHIFT) - 1);
		}
		done += count;
		if (bpf_map_update_batch(hash_fd, keys, values, &count, NULL))
			die("bpf_map_update_batch", errno);
	}
	free(keys);
	free(values);
}

static void choose_flows(struct bench *bench, __u32 flows, __u32 base)
{
	struct bpf_map *map = find_map(bench->object, "lookup_settings");
	struct lookup_parameters parameters = { flows, base };
	__u32 zero = 0;

	if (bpf_map_update_elem(bpf_map__fd(map), &zero, &parameters, 0))
		die("set flows", errno);
}

static double run(struct bench *bench, enum variant variant, __u32 packets, __u32 *verdict)
{
	struct frame frame = make_frame(), out;
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = &frame, .data_size_in = sizeof(frame),
		    .data_out = &out, .data_size_out = sizeof(out), .repeat = packets);

	if (bpf_prog_test_run_opts(bench->program[variant], &options))
		die("BPF_PROG_TEST_RUN", errno);
	*verdict = options.retval;
	return options.duration;
}

static void check(struct bench *bench, bool is_listed)
{
	static const __u32 drop = 1, pass = 2; /* XDP_DROP, XDP_PASS */
	__u32 verdict, wrong[VARIANTS] = {};

	for (int i = 0; i < PACKETS_CHECKED; i++)
		for (int variant = 0; variant < VARIANTS; variant++) {
			bool looks_up = variant == CUCKOO || variant == HASH_MAP;

			run(bench, variant, 1, &verdict);
			wrong[variant] += verdict != (is_listed || !looks_up ? drop : pass);
		}
	/* Innocent flows may meet a fingerprint: 8 * 0.95 / 2^16 of 2,000 is 0.2. */
	if (wrong[DROP] || wrong[PARSE] || wrong[HASH_MAP] || wrong[CUCKOO] > (is_listed ? 0 : 5))
		die("wrong verdicts before timing", EPROTO);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void measure(struct bench *bench, bool is_listed, double median[VARIANTS])
{
	double ns[VARIANTS][SLICES];
	__u32 verdict;

	check(bench, is_listed);
	for (int slice = 0; slice < SLICES; slice++)
		for (int variant = 0; variant < VARIANTS; variant++)
			ns[variant][slice] = run(bench, variant, PACKETS_A_SLICE, &verdict);
	for (int variant = 0; variant < VARIANTS; variant++) {
		qsort(ns[variant], SLICES, sizeof(double), compare);
		median[variant] = ns[variant][SLICES / 2];
	}
}

/* What the kernel says a map takes, in MiB: the line "memlock" of its descriptor's fdinfo. */
static double map_mib(struct bench *bench, const char *name)
{
	char path[64], line[128];
	unsigned long long bytes = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d",
		 bpf_map__fd(find_map(bench->object, name)));
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "memlock: %llu", &bytes) == 1)
			break;
	if (file)
		fclose(file);
	return bytes / 1048576.0;
}

static void bench_rules(__u32 rules)
{
	struct bench bench;

	open_bench(&bench, rules);
	set_up_config(&bench);
	fill(&bench, rules);
	for (int is_listed = 1; is_listed >= 0; is_listed--) {
		double median[VARIANTS], ours, theirs;

		choose_flows(&bench, rules, is_listed ? BASE_LISTED : BASE_OTHER);
		measure(&bench, is_listed, median);
		ours = median[CUCKOO] - median[PARSE];
		theirs = median[HASH_MAP] - median[PARSE];
		printf("%9u  %-4s  %9.0f  %10.0f  %6.0f  %8.0f  %11.0f  %13.0f  %6.1f\n", rules,
		       is_listed ? "hit" : "miss", median[DROP], median[PARSE], median[CUCKOO],
		       median[HASH_MAP], ours, theirs, theirs / ours);
	}
	printf("%9u  memory: cuckoo %.1f MiB, hash map %.1f MiB\n", rules,
	       map_mib(&bench, ABI_BUCKETS_MAP), map_mib(&bench, "lookup_hash"));
	close_bench(&bench);
}

int main(int argc, char **argv)
{
	static const __u32 usual[] = { 1000, 100000, 990000, 10000000 };
	struct utsname kernel;

	uname(&kernel);
	printf("look-up in the packet path, IPv4 5-tuples, one shape, another flow each packet; ns a "
	       "packet,\nmedian of %d slices of %d packets; Linux %s\n\n", SLICES, PACKETS_A_SLICE,
	       kernel.release);
	printf("    rules        bare drop  parse only  cuckoo  hash map  cuckoo-parse  hash-parse  "
	       " ratio\n");
	if (argc < 2)
		for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
			bench_rules(usual[i]);
	for (int i = 1; i < argc; i++)
		bench_rules(strtoul(argv[i], NULL, 10));
	return 0;
}
