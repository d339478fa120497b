/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Filters of a kernel in memory: steps/system_calls.h. Each test leaves no descriptor, no
 * memory and no mapping behind.
 */
#ifndef XDP_CUCKOO_TEST_FILTERS_FIXTURE_H
#define XDP_CUCKOO_TEST_FILTERS_FIXTURE_H

#include <bpf/bpf.h>

#include "steps/system_calls.h"

static struct kernel_filter filter, other; /* of each test */
static struct reason reason;

#define RUNS(text) assert_string_equal(world_runs(), text)

static inline void expect_words(const char *words)
{
	if (words && (*words ? !strstr(reason.text, words) : *reason.text))
		fail_msg("not \"%s\": %s", words, reason.text);
}

/* What a call returns, and words of its reason; "": it has none; NULL: any. */
#define EXPECT(error, words, call) \
	do { \
		reason.text[0] = '\0'; \
		assert_int_equal(call, error); \
		expect_words(words); \
	} while (0)

static const struct kernel_sizes small = {
	.options = { .format = BUCKET_16, .is_exact = 1, .has_counts = 1 },
	.tables = 1,
	.slots = 1024,
	.bucket_bytes = 2048,
	.hint_shift = ABI_HINT_SHIFT_MOST,
};

static inline void name_filter(struct kernel_filter *of, const char *name)
{
	of->config->magic = ABI_MAGIC;
	of->config->version = ABI_VERSION;
	of->config->options = of->options;
	strcpy(of->config->name, name);
}

static inline void make_filter(struct kernel_filter *of, const char *name)
{
	EXPECT(0, "", kernel_create(&small, of, &reason));
	name_filter(of, name);
}

/* A program of somebody else. */
static inline __u32 foreign_program(const char *name)
{
	struct world_object *program = world_add(WORLD_PROGRAM, 0);

	program->program.id = world.objects;
	strcpy(program->program.name, name);
	return world.objects;
}

static inline void close_filters(void)
{
	kernel_close(&filter);
	kernel_close(&other);
}

#define WORLD_TEST(name) \
	TEST_WITH(name, __attribute__((unused)) long *used, world_setup, world_teardown)

static inline int world_setup(void **state)
{
	static long used;

	world_reset();
	used = world_uses();
	*state = &used;
	return 0;
}

static inline int world_teardown(void **state)
{
	long more;

	close_filters();
	more = world_uses() - *(long *)*state;
	if (more)
		print_error("%ld descriptors, blocks and mappings (in thousands) are left\n", more);
	return more != 0;
}

/*
 * Each call of `act` fails, alone or with all behind it. After an error `before` runs, as if
 * nothing had happened; else `after`. Whatever happens, nothing stays open: `begin` makes what
 * `end` closes.
 */
struct steps {
	void (*begin)(void);
	int (*act)(void);
	void (*end)(void);
	const char *before, *after, *between; /* what an error may leave, too */
	bool begins_once;                     /* what `act` does changes nothing */
	bool undoes;                          /* by calls: only one may fail */
};

static inline void fail_each_call(const struct steps *steps)
{
	for (int all = 0; all < 2 - steps->undoes; all++) {
		unsigned long n = 0, calls;
		long used = 0;

		do {
			int error;

			if (!n || !steps->begins_once) {
				world_reset();
				used = world_uses();
				steps->begin();
			}
			if (steps->begins_once)
				used = world_uses();
			n++;
			world.error = -EIO;
			world.fails_on = all;
			calls = world.calls;
			world.until = calls + n;
			reason.text[0] = '\0';
			error = steps->act();
			calls = world.calls - calls;
			world.until = 0;
			if (strcmp(world_runs(), error ? steps->before : steps->after) &&
			    !(error && steps->between && !strcmp(world_runs(), steps->between)))
				fail_msg("call %lu fails: %d (%s), and %s", n, error, reason.text,
					 world_runs());
			if (error && !*reason.text)
				fail_msg("call %lu fails: %d has no reason", n, error);
			steps->end();
			if (world_uses() != used)
				fail_msg("call %lu fails: %ld is left", n, world_uses() - used);
		} while (calls >= n);
		if (steps->begins_once)
			close_filters();
	}
}

/*
 * The setup of all tests. If libbpf and libmnl do not call the functions of the test, the
 * kernel is the host's, and no test may run.
 */
static inline int world_warm_up(void **state)
{
	struct bpf_xdp_query_opts query = { .sz = sizeof(query) };
	unsigned long calls;

	(void)state;
	world_reset();
	bpf_map_get_fd_by_id(1);
	calls = world.calls;
	bpf_xdp_query(ETH0, 0, &query);
	if (calls != 1 || world.calls <= calls || interfaces_index("uplink") != ETH0) {
		fprintf(stderr, "the kernel is not the test's\n");
		return -1;
	}
	make_filter(&filter, "first");
	kernel_load_program(&filter, KERNEL_XDP, &reason);
	kernel_close(&filter);
	return 0;
}

#endif
