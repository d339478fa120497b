// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * How fast rules get into a filter in the kernel and out of it: the engine on the memory of the running
 * program's own maps, beside a BPF hash map with the same keys, by batches and one by one. What a store
 * and a command cost on top of that is measured by manage.sh. Ours is given the keys' hashes; the hash map computes its
 * own, as part of each call. `updates [RULES]`
 */
#include "bench/contest.h"

#define RULES 990000 /* at which a table of 2^20 slots is nearly full */
#define QUICK_RULES 247500
#define ROUNDS 5
#define QUICK_ROUNDS 3
#define BATCH 10000

enum task { BUILD, ADD, DELETE, TASKS };

static const char *const task_names[TASKS] = { "bulk", "add", "delete" };

struct bench {
	const char *name;
	const struct contender_kind *kind;
	void (*run)(const struct bench *bench, struct contender *contender, enum task task, double *rate);
	__u32 rules, batch;
	const struct table_entry *entries;
	__u64 (*keys)[LOOKUP_KEY_WORDS];
	__u64 *values;
};

/* ---- ours ---- */

static void run_table(const struct bench *bench, struct contender *contender, enum task task, double *rate)
{
	struct raw_filter *filter = &contender->filter;
	double start = seconds();
	int error = 0;

	if (task == BUILD)
		error = table_build(&filter->table, bench->entries, bench->rules);
	for (__u32 i = 0; task == ADD && i < bench->rules && !error; i++)
		error = table_insert(&filter->table, &bench->entries[i].key, 0);
	for (__u32 i = 0; task == DELETE && i < bench->rules && !error; i++)
		error = table_delete(&filter->table, &bench->entries[i].key);
	*rate = bench->rules / (seconds() - start);
	if (error)
		die(bench->name, error);
	if (table_count(&filter->table) != (task == DELETE ? 0 : bench->rules))
		die(task_names[task], EPROTO);
}

/* ---- the hash map ---- */

static int change_hash(const struct bench *bench, int map, enum task task, __u32 from, __u32 count)
{
	if (count == 1 && task == DELETE)
		return bpf_map_delete_elem(map, bench->keys[from]);
	if (count == 1)
		return bpf_map_update_elem(map, bench->keys[from], &bench->values[from], BPF_NOEXIST);
	if (task == DELETE)
		return bpf_map_delete_batch(map, bench->keys[from], &count, NULL);
	return bpf_map_update_batch(map, bench->keys[from], bench->values, &count, NULL);
}

static void run_hash(const struct bench *bench, struct contender *contender, enum task task, double *rate)
{
	const int map = bpf_map__fd(packet_path_map(&contender->filter, rival_maps[RIVAL_HASH]));
	const __u32 step = task == BUILD ? BATCH : bench->batch;
	const double start = seconds();
	__u64 value;

	for (__u32 from = 0; from < bench->rules; from += step)
		if (change_hash(bench, map, task, from, bench->rules - from < step ? bench->rules - from : step))
			die(bench->name, errno);
	*rate = bench->rules / (seconds() - start);
	if (!bpf_map_lookup_elem(map, bench->keys[bench->rules - 1], &value) != (task != DELETE))
		die(task_names[task], EPROTO);
}

/* ---- all of them ---- */

/* The hash map's keys are those of flows, without the tags of shapes. */
static void make_keys(struct bench *bench, struct table_entry *entries, const struct hash_secret *secret)
{
	for (__u32 i = 0; i < bench->rules; i++) {
		struct rule_key key = contest_key(bench->kind, i);

		entries[i].key = rule_hash(&key, secret);
		bench->keys[i][0] = key.key.word[0];
		bench->keys[i][1] = key.key.word[1] & ((1ULL << FLOW_KEY_SHAPE_SHIFT) - 1);
	}
}

/* What is built is deleted, and what is added as well; the second deletion is the one that counts. */
static void run_round(const struct bench *bench, struct contender *contender, double rate[TASKS])
{
	bench->run(bench, contender, BUILD, &rate[BUILD]);
	bench->run(bench, contender, DELETE, &rate[DELETE]);
	bench->run(bench, contender, ADD, &rate[ADD]);
	bench->run(bench, contender, DELETE, &rate[DELETE]);
}

static void report(const struct bench *bench, double rate[TASKS][ROUNDS], int rounds)
{
	printf("%-30s", bench->name);
	for (enum task task = 0; task < TASKS; task++) {
		const struct spread spread = spread_of(rate[task], rounds);

		printf("  %10.2f", spread.median / 1e6);
		report_json("\"bench\": \"updates\", \"rules\": %u, \"variant\": \"%s\", \"task\": \"%s\", "
			    "\"unit\": \"1/s\", \"median\": %.0f, \"low\": %.0f, \"high\": %.0f",
			    bench->rules, bench->name, task_names[task], spread.median, spread.low, spread.high);
	}
	printf("\n");
}

static const struct contender_kind compact = { .name = "16 bits", .program = "lookup_cuckoo", .rival = RIVAL_TABLE };
static const struct contender_kind exact = {
	.name = "exact", .program = "lookup_cuckoo", .rival = RIVAL_TABLE, .options.is_exact = 1
};
static const struct contender_kind counting = { .name = "counting",
						.program = "lookup_cuckoo",
						.rival = RIVAL_TABLE,
						.options = { .is_exact = 1, .has_counts = 1 } };
static const struct contender_kind hash = { .name = "hash map", .program = "lookup_hash_map", .rival = RIVAL_HASH };

static struct bench benches[] = {
	{ .name = "16 bits", .kind = &compact, .run = run_table },
	{ .name = "exact", .kind = &exact, .run = run_table },
	{ .name = "exact, counting", .kind = &counting, .run = run_table },
	{ .name = "hash map, batches of 10,000", .kind = &hash, .run = run_hash, .batch = BATCH },
	{ .name = "hash map, one by one", .kind = &hash, .run = run_hash, .batch = 1 },
};

#define BENCHES (sizeof(benches) / sizeof(benches[0]))

static void open_all(struct contender contender[BENCHES], __u32 rules)
{
	struct table_entry *entries = calloc(rules, sizeof(*entries));
	__u64(*keys)[LOOKUP_KEY_WORDS] = calloc(rules, sizeof(*keys));
	__u64 *values = calloc(rules, sizeof(*values));

	if (!entries || !keys || !values)
		die("keys", ENOMEM);
	for (size_t i = 0; i < BENCHES; i++) {
		contest_open_empty(&contender[i], benches[i].kind, rules);
		benches[i].rules = rules;
		benches[i].entries = entries;
		benches[i].keys = keys;
		benches[i].values = values;
	}
	/* Every filter of these has the same secret. */
	make_keys(&benches[0], entries, &contender[0].filter.config->table[0].secret);
}

int main(int argc, char **argv)
{
	const __u32 usual = report_is_quick() ? QUICK_RULES : RULES;
	const __u32 rules = argc > 1 ? strtoul(argv[1], NULL, 10) : usual;
	const int rounds = report_slices(ROUNDS, QUICK_ROUNDS);
	static double rate[BENCHES][TASKS][ROUNDS];
	struct contender contender[BENCHES];

	libbpf_set_print(NULL);
	open_all(contender, rules);
	for (int round = 0; round < rounds; round++)
		for (size_t i = 0; i < BENCHES; i++) {
			double one[TASKS];

			run_round(&benches[i], &contender[i], one);
			for (enum task task = 0; task < TASKS; task++)
				rate[i][task][round] = one[task];
		}
	printf("%u IPv4 5-tuples into a filter in the kernel, which they fill to %.0f %%, and out of it; M/s, "
	       "median of %d. Keys are hashed before ours is timed; a hash map hashes within.\n\n%-30s",
	       rules, 100.0 * rules / table_slots_for(rules), rounds, "");
	for (enum task task = 0; task < TASKS; task++)
		printf("  %10s", task_names[task]);
	printf("\n");
	for (size_t i = 0; i < BENCHES; i++) {
		report(&benches[i], rate[i], rounds);
		raw_filter_close(&contender[i].filter);
	}
	return 0;
}
