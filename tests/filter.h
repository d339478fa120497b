/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The BPF object on its own, without the tool: loaded with any options, its maps mmapped, its
 * programs run by BPF_PROG_TEST_RUN. Config and entries are written by hand, one rule at a time, so
 * that a test says where an entry stands. Knows maps and rules, not packets.
 */
#ifndef XDP_CUCKOO_TESTS_FILTER_H
#define XDP_CUCKOO_TESTS_FILTER_H

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "abi.h"
#include "bucket.h"
#include "filter/hints.h"
#include "bench/random.h"
#include "rule/rule.h"
#include "table/semisort.h"
#include "table/table.h"
#include "table/publish_order.h"

#define FILTER_CPUS_MAX 1024
#define FILTER_RUN_MIN ETH_HLEN /* BPF_PROG_TEST_RUN refuses shorter frames */
#define FILTER_NUMBERS 64       /* keys of one test at most */
#define FILTER_NO_NUMBER FILTER_NUMBERS

static const char *const filter_program_names[] = { "xdp_cuckoo", "xdp_cuckoo_frags" };
#define FILTER_FRAGS 1 /* of them, the one for frames of several buffers */
#define FILTER_PROGRAMS (sizeof(filter_program_names) / sizeof(filter_program_names[0]))

enum filter_map {
	FILTER_CONFIG,
	FILTER_BUCKETS,
	FILTER_RECORDS,
	FILTER_COUNTS,
	FILTER_HINTS,
	FILTER_MAPS,
};

static const char *const filter_map_names[FILTER_MAPS] = {
	[FILTER_CONFIG] = ABI_CONFIG_MAP, [FILTER_BUCKETS] = ABI_BUCKETS_MAP, [FILTER_RECORDS] = ABI_RECORDS_MAP,
	[FILTER_COUNTS] = ABI_COUNTS_MAP, [FILTER_HINTS] = ABI_HINTS_MAP,
};

struct filter {
	struct bpf_object *object;
	int program[FILTER_PROGRAMS];
	int counters;
	struct abi_options options;
	bool reads_hints; /* of shapes that are added from now on */
	__u32 end;        /* of entries that are added from now on */
	void *map[FILTER_MAPS];
	size_t bytes[FILTER_MAPS];
	struct abi_config *config;                /* map[FILTER_CONFIG] */
	struct table table;                       /* over the maps */
	__u32 numbers;                            /* given to keys since filter_set_up(), from 0 on */
	__u32 slot[FILTER_NUMBERS];               /* of these keys */
	struct abi_counter counted[ABI_COUNTERS]; /* after the last run, of all CPUs */
};

/* Where filter_add() puts an entry. */
struct filter_place {
	bool second; /* of its two buckets */
	unsigned int slot;
};

/* What one run did. */
struct filter_run {
	int error; /* -errno; -EPROTO where action and counters do not tell of one packet */
	enum abi_outcome outcome;
	enum abi_verdict verdict;
	__u32 number; /* of the key that was counted, or FILTER_NO_NUMBER */
};

static inline void filter_close(struct filter *filter)
{
	table_close(&filter->table);
	for (int i = 0; i < FILTER_MAPS; i++)
		if (filter->map[i])
			munmap(filter->map[i], filter->bytes[i]);
	bpf_object__close(filter->object);
	*filter = (struct filter){ 0 };
}

/* Where a constant of the program stands until the object is loaded; NULL where there is none. */
static inline void *filter_constant(const struct bpf_object *object, const char *name)
{
	const struct btf *btf = bpf_object__btf(object);
	int id = btf__find_by_name_kind(btf, ".rodata", BTF_KIND_DATASEC);
	const struct btf_type *section = btf__type_by_id(btf, id < 0 ? 0 : id);
	const struct bpf_map *map = bpf_object__find_map_by_name(object, ".rodata");
	size_t bytes;

	for (int i = 0; map && id > 0 && i < btf_vlen(section); i++) {
		const struct btf_var_secinfo *at = &btf_var_secinfos(section)[i];
		const struct btf_type *variable = btf__type_by_id(btf, at->type);

		if (!strcmp(btf__name_by_offset(btf, variable->name_off), name))
			return (char *)bpf_map__initial_value((struct bpf_map *)map, &bytes) + at->offset;
	}
	return NULL;
}

static inline struct bpf_map *filter_find_map(const struct filter *filter, enum filter_map map)
{
	return bpf_object__find_map_by_name(filter->object, filter_map_names[map]);
}

static inline int filter_resize(const struct filter *filter, struct bucket_geometry geometry)
{
	const struct abi_options *options = &filter->options;
	__u64 slots = table_slots_of(geometry);
	__u32 bucket_bytes = options->format == BUCKET_32 ? 16 : 8;
	struct bpf_map *buckets = filter_find_map(filter, FILTER_BUCKETS);
	int error = bpf_map__set_value_size(buckets, bucket_bytes);

	if (!error)
		error = bpf_map__set_max_entries(buckets, table_bucket_bytes(options->format, geometry) / bucket_bytes);
	if (!error)
		error = bpf_map__set_max_entries(filter_find_map(filter, FILTER_RECORDS),
						 options->is_exact ? slots : 1);
	if (!error)
		error = bpf_map__set_max_entries(filter_find_map(filter, FILTER_COUNTS),
						 options->has_counts ? slots : 1);
	return error;
}

/* Opens the object and gives it options and sizes; not yet loaded. 0 or -errno. */
static inline int filter_prepare(const char *path, const struct abi_options *options, struct bucket_geometry geometry,
				 struct filter *filter)
{
	void *constants, *prefixes;

	*filter = (struct filter){ .object = bpf_object__open_file(path, NULL),
				   .options = *options,
				   .table.geometry = geometry };
	if (!filter->object)
		return -errno;
	constants = filter_constant(filter->object, "xc_options");
	prefixes = filter_constant(filter->object, "xc_prefixes");
	if (!constants || !prefixes)
		return -ENOENT;
	memcpy(constants, options, sizeof(*options));
	if (options->format == BUCKET_17)
		memcpy(prefixes, semisort_prefixes(), BUCKET_SORTED_CODES * sizeof(__u16));
	return filter_resize(filter, geometry);
}

static inline int filter_map_all(struct filter *filter)
{
	for (int i = 0; i < FILTER_MAPS; i++) {
		const struct bpf_map *map = filter_find_map(filter, i);
		void *memory;

		filter->bytes[i] = (size_t)bpf_map__max_entries(map) * bpf_map__value_size(map);
		memory = mmap(NULL, filter->bytes[i], PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);
		if (memory == MAP_FAILED)
			return -errno;
		filter->map[i] = memory;
	}
	filter->config = filter->map[FILTER_CONFIG];
	return 0;
}

static inline int filter_open_table(struct filter *filter)
{
	struct table_memory memory = { .bucket = filter->map[FILTER_BUCKETS],
				       .sequence = &filter->config->table[0].sequence };

	if (filter->options.is_exact)
		memory.record = filter->map[FILTER_RECORDS];
	if (filter->options.has_counts)
		memory.counter = filter->map[FILTER_COUNTS];
	return table_open(&filter->table, filter->options.format, filter->table.geometry, &memory);
}

/* 0; -EPERM where the kernel refuses BPF to us; other -errno. */
static inline int filter_load(struct filter *filter)
{
	int error = bpf_object__load(filter->object);

	if (!error)
		error = filter_map_all(filter);
	filter->counters = bpf_object__find_map_fd_by_name(filter->object, ABI_COUNTERS_MAP);
	return error ? error : filter_open_table(filter);
}

static inline int filter_find_programs(struct filter *filter)
{
	for (size_t i = 0; i < FILTER_PROGRAMS; i++) {
		const struct bpf_program *program =
			bpf_object__find_program_by_name(filter->object, filter_program_names[i]);

		filter->program[i] = program ? bpf_program__fd(program) : -ENOENT;
		if (filter->program[i] < 0)
			return filter->program[i];
	}
	return 0;
}

/* filter_prepare(), filter_load(), and the programs to run. */
static inline int filter_open(const char *path, const struct abi_options *options, struct bucket_geometry geometry,
			      struct filter *filter)
{
	int error = filter_prepare(path, options, geometry, filter);

	if (!error)
		error = filter_load(filter);
	if (!error)
		error = filter_find_programs(filter);
	if (error)
		filter_close(filter);
	return error;
}

/* As when another loader has just loaded the object; records without a fingerprint say nothing. */
static inline void filter_clear(struct filter *filter)
{
	memset(filter->map[FILTER_BUCKETS], 0, filter->bytes[FILTER_BUCKETS]);
	memset(filter->map[FILTER_HINTS], 0, filter->bytes[FILTER_HINTS]);
	memset(filter->config, 0, sizeof(*filter->config));
	filter->numbers = 0;
	filter->end = 0;
}

/* Set up, without rules. The secret is fixed, so that every run of a test is the same. */
static inline void filter_set_up(struct filter *filter)
{
	uint64_t random = 1;

	filter_clear(filter);
	filter->config->version = ABI_VERSION;
	random_fill(&random, &filter->config->table[0].secret, sizeof(filter->config->table[0].secret));
	filter->config->table[0].geometry = filter->table.geometry;
	filter->config->options = filter->options;
	filter->config->magic = ABI_MAGIC;
	filter->config->run = ABI_RUN_SET_UP;
}

static inline struct abi_shape_list *filter_shapes(const struct filter *filter, enum flow_family family)
{
	struct abi_table *table = &filter->config->table[0];

	return &table->shapes[family][table->shapes_active[family]];
}

static inline __u64 filter_choose_hint(const struct abi_shape_list *list, const struct rule_shape *shape)
{
	__u64 taken[ABI_SHAPES_MAX];

	for (__u32 i = 0; i < list->count; i++)
		taken[i] = abi_shape_at(list, i)->hint;
	return hints_choose(taken, list->count, shape);
}

static inline struct abi_shape *filter_shape_at(struct abi_shape_list *list, __u32 i)
{
	return &list->shape[abi_shape_place(1U << i)];
}

/* Makes the shape active, once; shapes that pass come first. */
static inline void filter_add_shape(struct filter *filter, const struct rule_shape *shape)
{
	struct abi_shape_list *list = filter_shapes(filter, shape->family);
	struct abi_shape compiled = { .hint = filter_choose_hint(list, shape) };
	__u32 at = 0;

	rule_shape_compile(shape, &compiled);
	for (__u32 i = 0; i < list->count; i++)
		if (abi_shape_at(list, i)->tag == compiled.tag)
			return;
	if (shape->action != RULE_PASS)
		at = list->count;
	for (__u32 i = list->count++; i > at; i--)
		*filter_shape_at(list, i) = *filter_shape_at(list, i - 1);
	*filter_shape_at(list, at) = compiled;
	hints_compile(list, shape->family, filter->options.has_counts);
	list->reads_hints = filter->reads_hints;
}

static inline struct bucket_layout filter_layout(const struct filter *filter)
{
	struct bucket_layout layout = bucket_layout(filter->options.format);

	layout.has_records = filter->options.is_exact;
	return layout;
}

/* Semi-sorted buckets choose the slot by themselves. */
static inline void filter_add_value(struct filter *filter, const struct hash_value *value, struct filter_place place)
{
	struct bucket_layout layout = filter_layout(filter);
	struct bucket_pair pair = bucket_pair(value->hash, filter->table.geometry, layout);
	struct table_place at = { place.second ? pair.second : pair.first, place.slot };

	if (filter->numbers < FILTER_NUMBERS)
		filter->slot[filter->numbers++] = table_slot(layout, at);
	table_publish(&filter->table, layout, at, pair.fingerprint, abi_record(value->tag, filter->end));
}

static inline void filter_add_key(struct filter *filter, const struct rule_key *key, struct filter_place place)
{
	const struct abi_shape_list *list = filter_shapes(filter, key->shape.family);
	struct hash_value value = rule_hash(key, &filter->config->table[0].secret);
	struct abi_shape compiled;

	rule_shape_compile(&key->shape, &compiled);
	for (__u32 i = 0; i < list->count; i++)
		if (abi_shape_at(list, i)->tag == compiled.tag)
			hints_mark(filter->map[FILTER_HINTS], key, abi_shape_at(list, i)->hint);
	filter_add_value(filter, &value, place);
}

static inline void filter_add_at(struct filter *filter, const struct rule *rule, struct filter_place place)
{
	struct rule_key keys[RULE_KEYS_MAX];
	size_t count = rule_keys(rule, keys);

	for (size_t i = 0; i < count; i++) {
		filter_add_shape(filter, &keys[i].shape);
		filter_add_key(filter, &keys[i], place);
	}
}

static inline void filter_add(struct filter *filter, const struct rule *rule)
{
	filter_add_at(filter, rule, (struct filter_place){ 0 });
}

/* Reads the counters, summed over interfaces and CPUs. */
static inline int filter_count(const struct filter *filter, struct abi_counter counted[ABI_COUNTERS])
{
	static struct abi_counter value[ABI_COUNTER_ROWS * FILTER_CPUS_MAX][ABI_COUNTERS];
	int cpus = libbpf_num_possible_cpus();
	__u32 keys[ABI_COUNTER_ROWS], next, count = ABI_COUNTER_ROWS;

	if (cpus < 1 || cpus > FILTER_CPUS_MAX)
		return -E2BIG;
	if (bpf_map_lookup_batch(filter->counters, NULL, &next, keys, value, &count, NULL) < 0)
		return -errno;
	memset(counted, 0, ABI_COUNTERS * sizeof(*counted));
	for (__u32 row = 0; row < count * cpus; row++)
		for (int i = 0; i < ABI_COUNTERS; i++) {
			counted[i].packets += value[row][i].packets;
			counted[i].bytes += value[row][i].bytes;
		}
	return 0;
}

/* Which of `count` moved by one packet of `bytes`; `count`: none; -EPROTO: anything else. */
static inline int filter_moved(const struct abi_counter *before, const struct abi_counter *after, int count,
			       size_t bytes)
{
	int moved = count;

	for (int i = 0; i < count; i++) {
		struct abi_counter by = { after[i].packets - before[i].packets, after[i].bytes - before[i].bytes };

		if (!by.packets && !by.bytes)
			continue;
		if (moved < count || by.packets != 1 || by.bytes != bytes)
			return -EPROTO;
		moved = i;
	}
	return moved;
}

/* Sends one frame through a program; the frame stays as it was. A counted retry is an error. */
static inline struct filter_run filter_run_opts(struct filter *filter, size_t program, struct bpf_test_run_opts *opts)
{
	const int numbers = filter->options.has_counts ? filter->numbers : 0;
	struct abi_counter before[ABI_COUNTERS], before_rule[FILTER_NUMBERS], rule[FILTER_NUMBERS];
	struct filter_run run = {};
	int moved, number;

	memcpy(before, filter->counted, sizeof(before));
	for (int i = 0; i < numbers; i++)
		before_rule[i] = filter->table.memory.counter[filter->slot[i]];
	run.error = bpf_prog_test_run_opts(filter->program[program], opts);
	if (!run.error)
		run.error = filter_count(filter, filter->counted);
	if (run.error)
		return run;
	moved = filter_moved(before, filter->counted, ABI_COUNTER_STOPPED, opts->data_size_in);
	for (int i = 0; i < numbers; i++)
		rule[i] = filter->table.memory.counter[filter->slot[i]];
	number = filter_moved(before_rule, rule, numbers, opts->data_size_in);
	run.outcome = moved / VERDICTS;
	run.verdict = moved % VERDICTS;
	run.number = number == numbers ? FILTER_NO_NUMBER : (__u32)number;
	if (moved < 0 || moved >= ABI_COUNTER_RETRIES || number < 0 ||
	    opts->retval != (run.verdict == VERDICT_DROP ? XDP_DROP : XDP_PASS))
		run.error = -EPROTO;
	return run;
}

static inline struct filter_run filter_run(struct filter *filter, size_t program, const void *frame, size_t length)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame, .data_size_in = length, .repeat = 1);

	return filter_run_opts(filter, program, &opts);
}

/* Of the frame, `first` bytes are in the first buffer, the others in more. -EINVAL: not all kernels do that. */
static inline struct filter_run filter_run_split(struct filter *filter, const void *frame, size_t length, size_t first)
{
	struct xdp_md context = { .data_end = first };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame, .data_size_in = length, .ctx_in = &context,
		    .ctx_size_in = sizeof(context), .repeat = 1);

	return filter_run_opts(filter, FILTER_FRAGS, &opts);
}

#endif
