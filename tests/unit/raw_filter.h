/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The BPF object on its own, without the tool: loaded with any options, its maps mmapped, its
 * programs run by BPF_PROG_TEST_RUN. Config and entries are written by hand, one rule at a time, so
 * that a test says where an entry stands. Knows maps and rules, not packets.
 */
#ifndef XDP_CUCKOO_TESTS_FILTER_H
#define XDP_CUCKOO_TESTS_FILTER_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <linux/pkt_cls.h>

#include "abi.h"
#include "bucket.h"
#include "filter/hints.h"
#include "kernel/kernel.h"
#include "unit/random_fill.h"
#include "rule/rule.h"
#include "table/semisort.h"
#include "table/table.h"
#include "table/publish_order.h"

#define RAW_FILTER_CPUS_MAX 1024
#define RAW_FILTER_RUN_MIN ETH_HLEN /* BPF_PROG_TEST_RUN refuses shorter frames */
#define RAW_FILTER_NUMBERS 64       /* keys of one test at most */
#define RAW_FILTER_NO_NUMBER RAW_FILTER_NUMBERS
#define RAW_FILTER_HINT_SHIFT (ABI_HINT_SHIFT_MOST - 1) /* for one table in the map of two */

static const char *const raw_filter_program_names[] = { "xdp_cuckoo", "xdp_cuckoo_frags" };
#define RAW_FILTER_FRAGS 1 /* of them, the one for frames of several buffers */
#define RAW_FILTER_PROGRAMS (sizeof(raw_filter_program_names) / sizeof(raw_filter_program_names[0]))

/* The programs of the object for tc. */
static const char *const raw_filter_tc_names[] = { "xdp_cuckoo_sent", "xdp_cuckoo_ip", "xdp_cuckoo_ips" };
#define RAW_FILTER_TC_PROGRAMS (sizeof(raw_filter_tc_names) / sizeof(raw_filter_tc_names[0]))

enum raw_filter_map {
	RAW_FILTER_CONFIG,
	RAW_FILTER_BUCKETS,
	RAW_FILTER_RECORDS,
	RAW_FILTER_COUNTS,
	RAW_FILTER_HINTS,
	RAW_FILTER_MAPS,
};

static const char *const raw_filter_map_names[RAW_FILTER_MAPS] = {
	[RAW_FILTER_CONFIG] = ABI_CONFIG_MAP,   [RAW_FILTER_BUCKETS] = ABI_BUCKETS_MAP,
	[RAW_FILTER_RECORDS] = ABI_RECORDS_MAP, [RAW_FILTER_COUNTS] = ABI_COUNTS_MAP,
	[RAW_FILTER_HINTS] = ABI_HINTS_MAP,
};

struct raw_filter {
	struct bpf_object *object;
	int program[RAW_FILTER_TC_PROGRAMS];
	__u32 drops, passes; /* what they return */
	size_t programs;     /* how many of them the object has */
	int counters;
	struct abi_options options;
	bool reads_hints; /* of shapes that are added from now on */
	__u32 end;        /* of entries that are added from now on */
	void *map[RAW_FILTER_MAPS];
	size_t bytes[RAW_FILTER_MAPS];
	struct abi_config *config;                /* map[RAW_FILTER_CONFIG] */
	struct table table;                       /* over the maps */
	__u32 numbers;                            /* given to keys since raw_filter_set_up(), from 0 on */
	__u32 slot[RAW_FILTER_NUMBERS];           /* of these keys */
	struct abi_counter counted[ABI_COUNTERS]; /* after the last run, of all CPUs */
};

/* Where raw_filter_add() puts an entry. */
struct raw_filter_place {
	bool second; /* of its two buckets */
	unsigned int slot;
};

/* What one run did. */
struct raw_filter_run {
	int error; /* -errno; -EPROTO where action and counters do not tell of one packet */
	enum abi_outcome outcome;
	enum abi_verdict verdict;
	__u32 number; /* of the key that was counted, or RAW_FILTER_NO_NUMBER */
};

static inline void raw_filter_close(struct raw_filter *filter)
{
	table_close(&filter->table);
	for (int i = 0; i < RAW_FILTER_MAPS; i++)
		if (filter->map[i])
			munmap(filter->map[i], filter->bytes[i]);
	bpf_object__close(filter->object);
	*filter = (struct raw_filter){ 0 };
}

/* Where a constant of the program stands until the object is loaded; NULL where there is none. */
static inline void *raw_filter_constant(const struct bpf_object *object, const char *name)
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

static inline struct bpf_map *raw_filter_find_map(const struct raw_filter *filter, enum raw_filter_map map)
{
	return bpf_object__find_map_by_name(filter->object, raw_filter_map_names[map]);
}

static inline int raw_filter_resize(const struct raw_filter *filter, struct bucket_geometry geometry)
{
	const struct abi_options *options = &filter->options;
	__u64 slots = table_slots_of(geometry);
	__u32 bucket_bytes = options->format == BUCKET_32 ? 16 : 8;
	struct bpf_map *buckets = raw_filter_find_map(filter, RAW_FILTER_BUCKETS);
	int error = bpf_map__set_value_size(buckets, bucket_bytes);

	if (!error)
		error = bpf_map__set_max_entries(buckets, table_bucket_bytes(options->format, geometry) / bucket_bytes);
	if (!error)
		error = bpf_map__set_max_entries(raw_filter_find_map(filter, RAW_FILTER_RECORDS),
						 options->is_exact ? slots : 1);
	if (!error)
		error = bpf_map__set_max_entries(raw_filter_find_map(filter, RAW_FILTER_COUNTS),
						 options->has_counts ? slots : 1);
	return error;
}

/* Opens the object and gives it options and sizes; not yet loaded. 0 or -errno. */
static inline int raw_filter_prepare(const char *path, const struct abi_options *options,
				     struct bucket_geometry geometry, struct raw_filter *filter)
{
	void *constants, *prefixes;

	*filter = (struct raw_filter){ .object = bpf_object__open_file(path, NULL),
				       .options = *options,
				       .table.geometry = geometry };
	if (!filter->object)
		return -errno;
	constants = raw_filter_constant(filter->object, "xc_options");
	prefixes = raw_filter_constant(filter->object, "xc_prefixes");
	if (!constants || !prefixes)
		return -ENOENT;
	memcpy(constants, options, sizeof(*options));
	if (options->format == BUCKET_17)
		memcpy(prefixes, semisort_prefixes(), BUCKET_SORTED_CODES * sizeof(__u16));
	return raw_filter_resize(filter, geometry);
}

static inline int raw_filter_map_all(struct raw_filter *filter)
{
	for (int i = 0; i < RAW_FILTER_MAPS; i++) {
		const struct bpf_map *map = raw_filter_find_map(filter, i);
		void *memory;

		filter->bytes[i] = (size_t)bpf_map__max_entries(map) * bpf_map__value_size(map);
		memory = mmap(NULL, filter->bytes[i], PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);
		if (memory == MAP_FAILED)
			return -errno;
		filter->map[i] = memory;
	}
	filter->config = filter->map[RAW_FILTER_CONFIG];
	return 0;
}

static inline int raw_filter_open_table(struct raw_filter *filter)
{
	struct table_memory memory = { .bucket = filter->map[RAW_FILTER_BUCKETS],
				       .sequence = &filter->config->table[0].sequence };

	if (filter->options.is_exact)
		memory.record = filter->map[RAW_FILTER_RECORDS];
	if (filter->options.has_counts)
		memory.counter = filter->map[RAW_FILTER_COUNTS];
	return table_open(&filter->table, filter->options.format, filter->table.geometry, &memory);
}

/* 0; -EPERM where the kernel refuses BPF to us; other -errno. */
static inline int raw_filter_load(struct raw_filter *filter)
{
	int error = bpf_object__load(filter->object);

	if (!error)
		error = raw_filter_map_all(filter);
	filter->counters = bpf_object__find_map_fd_by_name(filter->object, ABI_COUNTERS_MAP);
	return error ? error : raw_filter_open_table(filter);
}

static inline int raw_filter_find_programs(struct raw_filter *filter)
{
	for (size_t i = 0; i < RAW_FILTER_PROGRAMS; i++) {
		const struct bpf_program *program =
			bpf_object__find_program_by_name(filter->object, raw_filter_program_names[i]);

		if (!program)
			break;
		filter->program[i] = bpf_program__fd(program);
		filter->programs++;
	}
	filter->drops = XDP_DROP;
	filter->passes = XDP_PASS;
	for (size_t i = 0; i < RAW_FILTER_TC_PROGRAMS && (!i || filter->drops == TC_ACT_SHOT); i++) {
		const struct bpf_program *program =
			bpf_object__find_program_by_name(filter->object, raw_filter_tc_names[i]);

		if (!program)
			continue;
		filter->program[i] = bpf_program__fd(program);
		filter->programs++;
		filter->drops = TC_ACT_SHOT;
		filter->passes = TC_ACT_UNSPEC;
	}
	return filter->programs ? 0 : -ENOENT;
}

/* raw_filter_prepare(), raw_filter_load(), and the programs to run. */
static inline int raw_filter_open(const char *path, const struct abi_options *options, struct bucket_geometry geometry,
				  struct raw_filter *filter)
{
	int error = raw_filter_prepare(path, options, geometry, filter);

	if (!error)
		error = raw_filter_load(filter);
	if (!error)
		error = raw_filter_find_programs(filter);
	if (error)
		raw_filter_close(filter);
	return error;
}

/* As when another loader has just loaded the object; records without a fingerprint say nothing. */
static inline void raw_filter_clear(struct raw_filter *filter)
{
	memset(filter->map[RAW_FILTER_BUCKETS], 0, filter->bytes[RAW_FILTER_BUCKETS]);
	memset(filter->map[RAW_FILTER_HINTS], 0, filter->bytes[RAW_FILTER_HINTS]);
	memset(filter->config, 0, sizeof(*filter->config));
	filter->numbers = 0;
	filter->end = 0;
}

/* Set up, without rules. The secret is fixed, so that every run of a test is the same. */
static inline void raw_filter_set_up(struct raw_filter *filter)
{
	uint64_t random = 2;

	raw_filter_clear(filter);
	filter->config->version = ABI_VERSION;
	random_fill(&random, &filter->config->table[0].secret, sizeof(filter->config->table[0].secret));
	filter->config->table[0].geometry = filter->table.geometry;
	filter->config->table[0].hint_shift = RAW_FILTER_HINT_SHIFT;
	filter->config->table[0].first_hint[FLOW_IPV6] = ABI_HINT_INDEXES(RAW_FILTER_HINT_SHIFT);
	filter->config->options = filter->options;
	filter->config->magic = ABI_MAGIC;
	filter->config->run = ABI_RUN_SET_UP;
}

static inline struct hints raw_filter_hints(const struct raw_filter *filter)
{
	return (struct hints){ filter->map[RAW_FILTER_HINTS], filter->config->table[0].hint_shift };
}

static inline struct abi_shape_list *raw_filter_shapes(const struct raw_filter *filter, enum flow_family family)
{
	struct abi_table *table = &filter->config->table[0];

	return &table->shapes[family][table->shapes_active[family]];
}

static inline __u64 raw_filter_choose_hint(const struct abi_shape_list *list, const struct rule_shape *shape)
{
	__u64 taken[ABI_SHAPES_MAX];

	for (__u32 i = 0; i < list->count; i++)
		taken[i] = abi_shape_at(list, i)->hint;
	return hints_choose(taken, list->count, shape);
}

static inline struct abi_shape *raw_filter_shape_at(struct abi_shape_list *list, __u32 i)
{
	return &list->shape[abi_shape_place(1ULL << i)];
}

/* Makes the shape active, once, in the order of the actions. */
static inline void raw_filter_add_shape(struct raw_filter *filter, const struct rule_shape *shape)
{
	struct abi_shape_list *list = raw_filter_shapes(filter, shape->family);
	struct abi_shape compiled = { .hint = raw_filter_choose_hint(list, shape) };
	__u32 at = 0;

	rule_shape_compile(shape, &compiled);
	for (__u32 i = 0; i < list->count; i++)
		if (!memcmp(abi_shape_at(list, i), &compiled, offsetof(struct abi_shape, hint)))
			return;
	for (; at < list->count; at++) {
		const struct rule_shape there = rule_shape_of_compiled(abi_shape_at(list, at), shape->family);

		if (rule_rank(there.action, there.fields) > rule_rank(shape->action, shape->fields))
			break;
	}
	for (__u32 i = list->count++; i > at; i--)
		*raw_filter_shape_at(list, i) = *raw_filter_shape_at(list, i - 1);
	*raw_filter_shape_at(list, at) = compiled;
	hints_compile(list, shape->family, filter->options.has_counts, filter->config->table[0].hint_shift);
	list->reads_hints = filter->reads_hints;
}

static inline struct bucket_layout raw_filter_layout(const struct raw_filter *filter)
{
	struct bucket_layout layout = bucket_layout(filter->options.format);

	layout.has_records = filter->options.is_exact;
	return layout;
}

/* Semi-sorted buckets choose the slot by themselves. */
static inline void raw_filter_add_value(struct raw_filter *filter, const struct hash_value *value,
					struct raw_filter_place place)
{
	struct bucket_layout layout = raw_filter_layout(filter);
	struct bucket_pair pair = bucket_pair(value->hash, filter->table.geometry, layout);
	struct table_place at = { place.second ? pair.second : pair.first, place.slot };

	if (filter->numbers < RAW_FILTER_NUMBERS)
		filter->slot[filter->numbers++] = table_slot(layout, at);
	table_publish(&filter->table, layout, at, pair.fingerprint, abi_record(value->tag, filter->end));
}

static inline void raw_filter_add_key(struct raw_filter *filter, const struct rule_key *key,
				      struct raw_filter_place place)
{
	const struct abi_shape_list *list = raw_filter_shapes(filter, key->shape.family);
	struct hash_value value = rule_hash(key, &filter->config->table[0].secret);
	struct abi_shape compiled;

	rule_shape_compile(&key->shape, &compiled);
	for (__u32 i = 0; i < list->count; i++)
		if (!memcmp(abi_shape_at(list, i), &compiled, offsetof(struct abi_shape, hint)))
			hints_mark(raw_filter_hints(filter), key, abi_shape_at(list, i)->hint);
	raw_filter_add_value(filter, &value, place);
}

static inline void raw_filter_add_at(struct raw_filter *filter, const struct rule *rule, struct raw_filter_place place)
{
	struct rule_key keys[RULE_KEYS_MAX];
	size_t count = rule_keys(rule, keys);

	for (size_t i = 0; i < count; i++) {
		raw_filter_add_shape(filter, &keys[i].shape);
		raw_filter_add_key(filter, &keys[i], place);
	}
}

static inline void raw_filter_add(struct raw_filter *filter, const struct rule *rule)
{
	raw_filter_add_at(filter, rule, (struct raw_filter_place){ 0 });
}

/* Sums the counters over CPUs: of rare events, and of the interface lo, which BPF_PROG_TEST_RUN sends frames by. */
static inline int raw_filter_count(const struct raw_filter *filter, struct abi_counter counted[ABI_COUNTERS])
{
	static const __u32 rows[] = { 0, 1, 1 + ABI_COUNTER_SENT };
	static struct abi_counter value[RAW_FILTER_CPUS_MAX * ABI_COUNTERS];
	int cpus = libbpf_num_possible_cpus(), error = 0;

	if (cpus < 1 || cpus > RAW_FILTER_CPUS_MAX)
		return -E2BIG;
	memset(counted, 0, ABI_COUNTERS * sizeof(*counted));
	for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]) && !error; row++) {
		error = bpf_map_lookup_elem(filter->counters, &rows[row], value);
		for (int i = 0; i < ABI_COUNTERS * cpus; i++) {
			counted[i % ABI_COUNTERS].packets += value[i].packets;
			counted[i % ABI_COUNTERS].bytes += value[i].bytes;
		}
	}
	return error;
}

/* Which of `count` moved by one packet of `bytes`; `count`: none; -EPROTO: anything else. */
static inline int raw_filter_moved(const struct abi_counter *before, const struct abi_counter *after, int count,
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
static inline struct raw_filter_run raw_filter_run_opts(struct raw_filter *filter, size_t program,
							struct bpf_test_run_opts *opts)
{
	const int numbers = filter->options.has_counts ? filter->numbers : 0;
	struct abi_counter before[ABI_COUNTERS], before_rule[RAW_FILTER_NUMBERS], rule[RAW_FILTER_NUMBERS];
	struct raw_filter_run run = {};
	int moved, number;

	memcpy(before, filter->counted, sizeof(before));
	for (int i = 0; i < numbers; i++)
		before_rule[i] = filter->table.memory.counter[filter->slot[i]];
	run.error = bpf_prog_test_run_opts(filter->program[program], opts);
	if (!run.error)
		run.error = raw_filter_count(filter, filter->counted);
	if (run.error)
		return run;
	moved = raw_filter_moved(before, filter->counted, ABI_COUNTER_STOPPED, opts->data_size_in);
	for (int i = 0; i < numbers; i++)
		rule[i] = filter->table.memory.counter[filter->slot[i]];
	number = raw_filter_moved(before_rule, rule, numbers, opts->data_size_in);
	run.outcome = moved / VERDICTS;
	run.verdict = moved % VERDICTS;
	run.number = number == numbers ? RAW_FILTER_NO_NUMBER : (__u32)number;
	if (moved < 0 || moved >= ABI_COUNTER_RETRIES || number < 0 ||
	    opts->retval != (run.verdict == VERDICT_DROP ? filter->drops : filter->passes))
		run.error = -EPROTO;
	return run;
}

static inline struct raw_filter_run raw_filter_run(struct raw_filter *filter, size_t program, const void *frame,
						   size_t length)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame, .data_size_in = length, .repeat = 1);

	return raw_filter_run_opts(filter, program, &opts);
}

/* Of the frame, `first` bytes are in the first buffer, the others in more. -EINVAL: not all kernels do that. */
static inline struct raw_filter_run raw_filter_run_split(struct raw_filter *filter, const void *frame, size_t length,
							 size_t first)
{
	struct xdp_md context = { .data_end = first };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame, .data_size_in = length, .ctx_in = &context,
		    .ctx_size_in = sizeof(context), .repeat = 1);

	return raw_filter_run_opts(filter, RAW_FILTER_FRAGS, &opts);
}

#endif
