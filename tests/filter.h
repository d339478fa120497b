/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The BPF object on its own, without the tool: loaded, its maps mmapped, its programs run by
 * BPF_PROG_TEST_RUN. Config and table are written by hand, one rule at a time, so that a test says
 * where an entry stands. Knows maps and rules, not packets.
 */
#ifndef XDP_CUCKOO_TESTS_FILTER_H
#define XDP_CUCKOO_TESTS_FILTER_H

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "abi.h"
#include "bucket.h"
#include "rule.h"

#define FILTER_COUNTERS (OUTCOMES * VERDICTS)
#define FILTER_CPUS_MAX 1024
#define FILTER_RUN_MIN ETH_HLEN /* BPF_PROG_TEST_RUN refuses shorter frames */

static const char *const filter_program_names[] = { "xdp_cuckoo", "xdp_cuckoo_frags" };
#define FILTER_FRAGS 1 /* of them, the one for frames of several buffers */
#define FILTER_PROGRAMS (sizeof(filter_program_names) / sizeof(filter_program_names[0]))

struct filter {
	struct bpf_object *object;
	int program[FILTER_PROGRAMS];
	int counters;
	struct abi_config *config;
	__u64 *bucket;
	__u64 buckets;
	struct abi_counter counted[FILTER_COUNTERS]; /* after the last run, of all CPUs */
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
};

static inline void filter_close(struct filter *filter)
{
	if (filter->config)
		munmap(filter->config, sizeof(*filter->config));
	if (filter->bucket)
		munmap(filter->bucket, filter->buckets * sizeof(*filter->bucket));
	bpf_object__close(filter->object);
	*filter = (struct filter){ 0 };
}

static inline void *filter_mmap(struct bpf_object *object, const char *name, size_t bytes)
{
	int fd = bpf_object__find_map_fd_by_name(object, name);
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

static inline int filter_open_maps(struct filter *filter)
{
	struct bpf_map *buckets = bpf_object__find_map_by_name(filter->object, ABI_BUCKETS_MAP);

	if (!buckets)
		return -ENOENT;
	filter->buckets = bpf_map__max_entries(buckets);
	filter->bucket = filter_mmap(filter->object, ABI_BUCKETS_MAP,
				     filter->buckets * sizeof(*filter->bucket));
	filter->config = filter_mmap(filter->object, ABI_CONFIG_MAP, sizeof(*filter->config));
	filter->counters = bpf_object__find_map_fd_by_name(filter->object, ABI_COUNTERS_MAP);
	if (!filter->bucket || !filter->config || filter->counters < 0)
		return -errno;
	return 0;
}

/* 0; -EPERM where the kernel refuses BPF to us; other -errno. */
static inline int filter_open(const char *path, struct filter *filter)
{
	int error;

	*filter = (struct filter){ .object = bpf_object__open_file(path, NULL) };
	error = filter->object ? bpf_object__load(filter->object) : -errno;
	for (size_t i = 0; !error && i < FILTER_PROGRAMS; i++) {
		struct bpf_program *program =
			bpf_object__find_program_by_name(filter->object, filter_program_names[i]);

		filter->program[i] = program ? bpf_program__fd(program) : -ENOENT;
		error = filter->program[i] < 0 ? filter->program[i] : 0;
	}
	if (!error)
		error = filter_open_maps(filter);
	if (error)
		filter_close(filter);
	return error;
}

/* All zero, as when another loader has just loaded the object. */
static inline void filter_clear(struct filter *filter)
{
	memset(filter->bucket, 0, filter->buckets * sizeof(*filter->bucket));
	memset(filter->config, 0, sizeof(*filter->config));
}

/* Set up, without rules. The secret is fixed, so that every run of a test is the same. */
static inline void filter_set_up(struct filter *filter)
{
	filter_clear(filter);
	filter->config->version = ABI_VERSION;
	filter->config->key = (struct siphash_key){ { 0x0706050403020100, 0x0f0e0d0c0b0a0908 } };
	filter->config->bucket_mask = filter->buckets - 1;
	filter->config->step_shift = 64 - __builtin_ctzll(filter->buckets);
	filter->config->magic = ABI_MAGIC;
}

/* Makes the shape active, once; shapes that pass come first. */
static inline void filter_add_shape(struct filter *filter, const struct rule_shape *shape)
{
	struct abi_shape_set *set = &filter->config->shapes[shape->family];
	struct abi_shape_list *list = &set->list[set->active];
	struct abi_shape compiled;
	__u64 at = 0;

	rule_shape_compile(shape, &compiled);
	for (__u64 i = 0; i < list->count; i++)
		if (list->shape[i].tag == compiled.tag)
			return;
	if (shape->action != RULE_PASS)
		at = list->count;
	memmove(&list->shape[at + 1], &list->shape[at], (list->count - at) * sizeof(compiled));
	list->shape[at] = compiled;
	list->count++;
}

static inline void filter_add_key(struct filter *filter, const struct rule_key *key,
				  struct filter_place place)
{
	const struct abi_config *config = filter->config;
	struct bucket_pair pair =
		bucket_pair(rule_hash(key, &config->key), config->bucket_mask, config->step_shift);
	__u64 *bucket = &filter->bucket[place.second ? pair.second : pair.first];

	*bucket = bucket_set(*bucket, place.slot, pair.fingerprint);
}

static inline void filter_add_at(struct filter *filter, const struct rule *rule,
				 struct filter_place place)
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

/* Reads the counters, summed over the CPUs. */
static inline int filter_count(const struct filter *filter,
			       struct abi_counter counted[FILTER_COUNTERS])
{
	static struct abi_counter value[FILTER_COUNTERS * FILTER_CPUS_MAX];
	int cpus = libbpf_num_possible_cpus();
	__u32 keys[FILTER_COUNTERS], next, count = FILTER_COUNTERS;

	if (cpus < 1 || cpus > FILTER_CPUS_MAX)
		return -E2BIG;
	if (bpf_map_lookup_batch(filter->counters, NULL, &next, keys, value, &count, NULL) < 0 &&
	    errno != ENOENT)
		return -errno;
	memset(counted, 0, FILTER_COUNTERS * sizeof(*counted));
	for (__u32 i = 0; i < count * cpus; i++) {
		counted[keys[i / cpus]].packets += value[i].packets;
		counted[keys[i / cpus]].bytes += value[i].bytes;
	}
	return 0;
}

/* Which counter moved, by one packet of `bytes`; FILTER_COUNTERS where it is not exactly one. */
static inline __u32 filter_moved(const struct abi_counter before[FILTER_COUNTERS],
				 const struct abi_counter after[FILTER_COUNTERS], size_t bytes)
{
	__u32 moved = FILTER_COUNTERS;

	for (__u32 i = 0; i < FILTER_COUNTERS; i++) {
		struct abi_counter by = { after[i].packets - before[i].packets,
					  after[i].bytes - before[i].bytes };

		if (!by.packets && !by.bytes)
			continue;
		if (moved < FILTER_COUNTERS || by.packets != 1 || by.bytes != bytes)
			return FILTER_COUNTERS;
		moved = i;
	}
	return moved;
}

/* Sends one frame through a program; the frame stays as it was. */
static inline struct filter_run filter_run(struct filter *filter, size_t program, const void *frame,
					   size_t length)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame, .data_size_in = length, .repeat = 1);
	struct abi_counter before[FILTER_COUNTERS];
	struct filter_run run;
	__u32 moved;

	memcpy(before, filter->counted, sizeof(before));
	run.error = bpf_prog_test_run_opts(filter->program[program], &opts);
	if (!run.error)
		run.error = filter_count(filter, filter->counted);
	if (run.error)
		return run;
	moved = filter_moved(before, filter->counted, length);
	run.outcome = moved / VERDICTS;
	run.verdict = moved % VERDICTS;
	if (moved == FILTER_COUNTERS ||
	    opts.retval != (run.verdict == VERDICT_DROP ? XDP_DROP : XDP_PASS))
		run.error = -EPROTO;
	return run;
}

#endif
