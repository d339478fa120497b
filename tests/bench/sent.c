// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What the look-up of a sent packet costs beyond an empty program, over the table of the filter that runs in this network
 * namespace: sent [ROUNDS]. By turns; prints medians of ns a packet for flows that no rule is about, and for flows from
 * standard input, an IPv4 address a line.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/pkt_cls.h>

#include "bench/sent.h"
#include "kernel/internal.h"
#include "unit/raw_filter.h"

#define PACKETS_OF_A_RUN 500000
#define ROUNDS_DEFAULT 15
#define FRAME_BYTES 64

__attribute__((noreturn)) static void die(const char *what, int error)
{
	fprintf(stderr, "sent: %s: %s\n", what, strerror(error < 0 ? -error : error));
	exit(1);
}

static struct bpf_object *load(const struct kernel_filter *filter)
{
	struct bpf_object *object = bpf_object__open_file(XDP_CUCKOO_BUILD "/tests/bench/sent.bpf.o", NULL);
	struct bpf_program *program;
	int error = object ? 0 : -errno;

	if (error)
		die("the object", error);
	bpf_object__for_each_program(program, object)
	{
		bpf_program__set_autoload(program, !strncmp(bpf_program__name(program), "sent_", strlen("sent_")));
	}
	memcpy(raw_filter_constant(object, "xc_options"), &filter->options, sizeof(filter->options));
	for (size_t i = 0; i < KERNEL_MAPS && !error; i++)
		error = bpf_map__reuse_fd(bpf_object__find_map_by_name(object, kernel_map_names[i]), filter->map[i].fd);
	if (!error)
		error = bpf_object__load(object);
	if (error)
		die("loading", error);
	return object;
}

static double run(const struct bpf_object *object, const char *name, __u32 expected)
{
	static const __u8 frame[FRAME_BYTES] = {
		[12] = 8, [14] = 0x45, [17] = 50, [22] = 64, [23] = IPPROTO_UDP, [26] = 192, 0, 2, 1, [34] = 4, 1,
		0,        53,          0,         30
	};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame, .data_size_in = sizeof(frame),
		    .repeat = PACKETS_OF_A_RUN);
	const struct bpf_program *program = bpf_object__find_program_by_name(object, name);
	const int error = bpf_prog_test_run_opts(bpf_program__fd(program), &opts);

	if (error)
		die(name, error);
	if (opts.retval != expected)
		die("another action than expected", EPROTO);
	return opts.duration;
}

static int compare(const void *a, const void *b)
{
	return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

static void measure(const struct bpf_object *object, const char *what, unsigned int rounds, __u32 expected)
{
	double *empty = calloc(rounds, sizeof(*empty)), *filter = calloc(rounds, sizeof(*filter));

	for (unsigned int i = 0; i < rounds; i++) {
		empty[i] = run(object, "sent_empty", TC_ACT_UNSPEC);
		filter[i] = run(object, "sent_filter", expected);
	}
	qsort(empty, rounds, sizeof(*empty), compare);
	qsort(filter, rounds, sizeof(*filter), compare);
	printf("%s: empty %.0f ns, filter %.0f ns, more %.0f ns (quartiles of the filter %.0f to %.0f)\n", what,
	       empty[rounds / 2], filter[rounds / 2], filter[rounds / 2] - empty[rounds / 2], filter[rounds / 4],
	       filter[rounds * 3 / 4]);
	free(empty);
	free(filter);
}

int main(int argc, char **argv)
{
	const unsigned int rounds = argc > 1 ? atoi(argv[1]) : ROUNDS_DEFAULT;
	struct kernel_filter *filters = NULL;
	struct sent_flow *flows;
	struct bpf_object *object;
	struct reason reason;
	uint64_t random = 1;
	size_t count = 0, listed = 0;
	char line[64];
	int error = kernel_find_filters((struct kernel_wish){ 0 }, &filters, &count, &reason);

	if (error || count != 1)
		die(error ? reason.text : "one filter must run here", error ? error : ENOENT);
	object = load(filters);
	flows = mmap(NULL, SENT_FLOWS * sizeof(*flows), PROT_READ | PROT_WRITE, MAP_SHARED,
		     bpf_object__find_map_fd_by_name(object, "sent_flows"), 0);
	if (flows == MAP_FAILED)
		die("mmap", errno);
	/* Lists have other addresses. */
	for (size_t i = 0; i < SENT_FLOWS; i++) {
		__u32 number;

		random_fill(&random, &number, sizeof(number));
		flows[i].destination = htonl(100U << 24 | (number & 0xffffff));
	}
	measure(object, "no rule", rounds, TC_ACT_UNSPEC);
	while (listed < SENT_FLOWS && fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		if (inet_pton(AF_INET, line, &flows[listed].destination) != 1)
			die(line, EINVAL);
		listed++;
	}
	for (size_t i = listed; listed && i < SENT_FLOWS; i++)
		flows[i] = flows[i % listed];
	if (listed)
		measure(object, "drop rule", rounds, TC_ACT_SHOT);
	bpf_object__close(object);
	kernel_filters_free(filters, count);
	return 0;
}
