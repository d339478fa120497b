// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What the kernel makes of the programs in an object: `verify OBJECT [PROGRAM]` loads each of them, or that one, on its own, for each
 * kind of table, and prints a line of words: table, program, instructions as compiled, instructions and
 * bytes of machine code as they run, instructions that the verifier looked at, states it kept at most,
 * stack of the program and of each function it calls, microseconds, and `ok` or why it was refused.
 * 0: all were taken; 1: not all; 2: there is nothing to say.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "unit/raw_filter.h"

#define LOG_STATISTICS 4 /* BPF_LOG_STATS of the kernel's bpf_verifier.h */
#define LOG_BYTES (1 << 16)
#define LOG_FIRST_FIGURE "verification time "

static const struct {
	const char *name;
	struct abi_options options;
} tables[] = {
	{ "compact-8", { .format = BUCKET_8 } },
	{ "compact-16", { .format = BUCKET_16 } },
	{ "compact-17", { .format = BUCKET_17 } },
	{ "compact-32", { .format = BUCKET_32 } },
	{ "exact", { .is_exact = 1 } },
	{ "exact-counting", { .is_exact = 1, .has_counts = 1 } },
	{ "addresses", { .is_exact = 1, .has_addresses = 1 } },
	{ "addresses-counting", { .is_exact = 1, .has_counts = 1, .has_addresses = 1 } },
};

#define TABLES (sizeof(tables) / sizeof(tables[0]))

static char kernel_log[LOG_BYTES];

/* What the kernel writes at the end of its log, also of a program that it refuses. */
struct cost {
	unsigned int processed, peak_states;
	unsigned long us;
	char stack[128]; /* "main+callee+callee" */
};

static int read_cost(const char *log, struct cost *cost)
{
	const char *time = strstr(log, LOG_FIRST_FIGURE);
	const char *stack = time ? strstr(time, "stack depth ") : NULL;
	const char *processed = time ? strstr(time, "\nprocessed ") : NULL;

	if (!stack || !processed || sscanf(time, LOG_FIRST_FIGURE "%lu", &cost->us) != 1 ||
	    sscanf(stack, "stack depth %127s", cost->stack) != 1 ||
	    sscanf(processed,
		   "\nprocessed %u insns (limit %*u) max_states_per_insn %*u total_states %*u "
		   "peak_states %u",
		   &cost->processed, &cost->peak_states) != 2)
		return -EPROTO;
	return 0;
}

/* The last line before the figures says why a program is refused. Cuts the log. */
static const char *refusal(char *log, int error)
{
	char *end = strstr(log, LOG_FIRST_FIGURE);
	const char *line;

	if (end)
		*end = '\0';
	for (end = log + strlen(log); end > log && end[-1] == '\n';)
		*--end = '\0';
	line = strrchr(log, '\n');
	line = line ? line + 1 : log;
	return *line ? line : strerror(-error);
}

/* Opens the object; of its programs only this one will be loaded. NULL and -errno in `error`. */
static struct bpf_program *prepare(const char *path, const struct abi_options *options, const char *name,
				   struct raw_filter *filter, int *error)
{
	struct bpf_program *program, *only = NULL;

	*error = raw_filter_prepare(path, options, table_geometry(1ULL << ABI_SLOTS_MIN_LOG2), filter);
	if (*error)
		return NULL;
	bpf_object__for_each_program(program, filter->object)
	{
		const bool is_it = !strcmp(bpf_program__name(program), name);

		bpf_program__set_autoload(program, is_it);
		if (is_it)
			only = program;
	}
	*error = only ? bpf_program__set_log_level(only, LOG_STATISTICS) : -ENOENT;
	if (!*error)
		*error = bpf_program__set_log_buf(only, kernel_log, sizeof(kernel_log));
	return *error ? NULL : only;
}

/* The kernel tells the one figure that counts in two ways: a log of another form is noticed. */
static int ask_kernel(const struct bpf_program *program, const struct cost *cost, struct bpf_prog_info *info)
{
	__u32 bytes = sizeof(*info);
	int error = bpf_obj_get_info_by_fd(bpf_program__fd(program), info, &bytes);

	if (error)
		return error;
	return info->verified_insns == cost->processed ? 0 : -EPROTO;
}

/* 0 taken, 1 refused, -errno. */
static int report(const char *table, struct bpf_program *program, struct bpf_object *object)
{
	struct bpf_prog_info info = {};
	struct cost cost = { .stack = "0" };
	const int refused = bpf_object__load(object);
	int error = read_cost(kernel_log, &cost);

	/* Without a word from the verifier it is something else that failed. */
	if (refused)
		error = *kernel_log ? 0 : refused;
	else if (!error)
		error = ask_kernel(program, &cost, &info);
	if (error)
		return error;
	printf("%s %s %zu %zu %u %u %u %s %lu %s\n", table, bpf_program__name(program), bpf_program__insn_cnt(program),
	       info.xlated_prog_len / sizeof(struct bpf_insn), info.jited_prog_len, cost.processed, cost.peak_states,
	       cost.stack, cost.us, refused ? refusal(kernel_log, refused) : "ok");
	return refused != 0;
}

static int verify(const char *path, size_t table, const char *name)
{
	struct bpf_program *program;
	struct raw_filter filter;
	int result;

	kernel_log[0] = '\0';
	program = prepare(path, &tables[table].options, name, &filter, &result);
	if (program)
		result = report(tables[table].name, program, filter.object);
	raw_filter_close(&filter);
	return result;
}

int main(int argc, char **argv)
{
	bool is_refused = false;
	unsigned int count = 0;
	struct bpf_object *object;
	struct bpf_program *program;

	if (argc != 2 && argc != 3)
		return fputs("usage: verify OBJECT [PROGRAM]\n", stderr), 2;
	libbpf_set_print(NULL);
	object = bpf_object__open_file(argv[1], NULL);
	for (size_t table = 0; object && table < TABLES; table++) {
		bpf_object__for_each_program(program, object)
		{
			const char *name = bpf_program__name(program);
			int result;

			if (argc == 3 && strcmp(name, argv[2]))
				continue;
			result = verify(argv[1], table, name);
			if (result < 0) {
				fprintf(stderr, "verify: %s: %s, %s: %s\n", argv[1], tables[table].name, name,
					strerror(-result));
				return 2;
			}
			is_refused |= result;
			count++;
		}
	}
	bpf_object__close(object);
	if (!count)
		return fputs("verify: the object has none of the programs\n", stderr), 2;
	return is_refused;
}
