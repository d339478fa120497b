// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Asks the program of the running filter about random packets, by BPF_PROG_TEST_RUN, and compares each
 * verdict, and in the end its counters, with what the references of lpm.h make of the same list. Half
 * of the packets come from anywhere, half from the edges and the inside of the list's prefixes.
 * Status 0: none differs; 1: some do.
 */
#include <getopt.h>
#include <inttypes.h>

#include <bpf/libbpf.h>

#include "helpers/frame.h"
#include "helpers/lpm.h"
#include "hint.h"
#include "filter/hints.h"
#include "kernel/kernel.h"
#include "filter/filter.h"

#define SHOWN_MAX 10 /* packets that differ */

struct check {
	struct lpm_list list;
	struct lpm_reference reference;
	struct kernel_filter *filters;
	size_t filters_count;
	int program;
	bool allows_false_positives;
	uint64_t random;
	uint64_t expected[LPM_VERDICTS], dropped, differing, false_positives;
	unsigned int most_probes;
};

__attribute__((noreturn)) static void die(const char *what, int error)
{
	fprintf(stderr, "lpm_check: %s: %s\n", what, strerror(error < 0 ? -error : error));
	exit(2);
}

static void open_program(struct check *check)
{
	struct reason reason;
	const int error =
		kernel_find_filters((struct kernel_wish){ 0 }, &check->filters, &check->filters_count, &reason);

	if (error)
		die(reason.text, error);
	if (check->filters_count != 1)
		die("one filter must run here", ENOENT);
	check->program = bpf_prog_get_fd_by_id(check->filters->attachments->prog_id);
	if (check->program < 0)
		die("the filter's program", check->program);
}

/* An enum lpm_verdict has no part in it: the counters tell a pass rule from no rule. */
static bool is_dropped(const struct check *check, const struct lpm_flow *flow)
{
	static const uint8_t mac[2][ETH_ALEN] = { { 2, 0, 0, 0, 0, 1 }, { 2, 0, 0, 0, 0, 2 } };
	const struct frame_trailer trailer = { 0 };
	const struct lpm_key src = lpm_key_of(flow->family, flow->src, 0);
	const struct lpm_key dst = lpm_key_of(flow->family, flow->dst, 0);
	struct frame_flow packet = {
		.family = flow->family == LPM_IPV4 ? AF_INET : AF_INET6,
		.proto = IPPROTO_UDP,
		.port = { 1, flow->dport },
	};
	uint8_t frame[FRAME_BYTES_MAX];
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .repeat = 1);
	int error;

	memcpy(packet.src, src.address, sizeof(packet.src));
	memcpy(packet.dst, dst.address, sizeof(packet.dst));
	options.data_size_in = frame_build(&packet, mac, &trailer, frame);
	error = bpf_prog_test_run_opts(check->program, &options);
	if (error)
		die("BPF_PROG_TEST_RUN", error);
	return options.retval == XDP_DROP;
}

/* The shapes that the hints leave for a packet from this source. */
static unsigned int probes_of(const struct check *check, const struct lpm_flow *flow)
{
	const enum flow_family family = flow->family == LPM_IPV4 ? FLOW_IPV4 : FLOW_IPV6;
	const struct abi_shape_list *list = abi_shapes(abi_active(check->filters->config), family);
	const struct hints hints = filter_hints_of(check->filters);
	const struct lpm_key src = lpm_key_of(flow->family, flow->src, 0);
	struct flow_key key = {};
	__u32 hint;

	memcpy(key.word, src.address, sizeof(src.address));
	hint = *hints_at(hints, family, &key);
	return __builtin_popcountll(hints_leave(list, list->reads_hints ? hint : ABI_HINT_ALL));
}

static void show(const struct lpm_flow *flow, enum lpm_verdict expected)
{
	static const char *const words[LPM_VERDICTS] = {
		[LPM_IS_DROPPED] = "drop",
		[LPM_IS_PASSED] = "pass",
		[LPM_NO_RULE] = "no rule",
	};
	const int family = flow->family == LPM_IPV4 ? AF_INET : AF_INET6;
	const struct lpm_key src = lpm_key_of(flow->family, flow->src, 0);
	const struct lpm_key dst = lpm_key_of(flow->family, flow->dst, 0);
	char text[2][INET6_ADDRSTRLEN];

	printf("differs, expected %s: src %s dst %s dport %u\n", words[expected],
	       inet_ntop(family, src.address, text[0], sizeof(text[0])),
	       inet_ntop(family, dst.address, text[1], sizeof(text[1])), flow->dport);
}

static void judge(struct check *check, const struct lpm_flow *flow)
{
	const enum lpm_verdict expected = lpm_verdict(&check->reference, flow, false);
	const bool was_dropped = is_dropped(check, flow);
	const unsigned int probes = probes_of(check, flow);

	if (lpm_verdict(&check->reference, flow, true) != expected) {
		show(flow, expected);
		die("the kernel's trie says otherwise than the sorted intervals", EPROTO);
	}
	check->expected[expected]++;
	check->dropped += was_dropped;
	if (check->most_probes < probes)
		check->most_probes = probes;
	if (was_dropped == (expected == LPM_IS_DROPPED))
		return;
	if (check->allows_false_positives && was_dropped && expected == LPM_NO_RULE)
		check->false_positives++;
	else if (check->differing++ < SHOWN_MAX)
		show(flow, expected);
}

static struct abi_counter counted(const struct check *check, int outcome, int verdict)
{
	struct abi_counter counters[ABI_COUNTERS];
	struct reason reason;
	const int error = kernel_counters(check->filters, counters, &reason);

	if (error)
		die(reason.text, error);
	return counters[outcome * VERDICTS + verdict];
}

static uint64_t dropped_by_rule(const struct check *check)
{
	return counted(check, OUTCOME_DROP_RULE, VERDICT_DROP).packets;
}

static uint64_t passed_by_rule(const struct check *check)
{
	return counted(check, OUTCOME_PASS_RULE, VERDICT_PASS).packets;
}

static void judge_all(struct check *check, uint64_t packets)
{
	const uint64_t dropped = dropped_by_rule(check), passed = passed_by_rule(check);

	for (uint64_t i = 0; i < packets; i++) {
		const struct lpm_flow flow = i % 2 && check->list.count ?
						     lpm_flow_near(&check->list, &check->random) :
						     lpm_flow_anywhere(&check->list, &check->random);

		judge(check, &flow);
	}
	if (check->allows_false_positives || check->differing)
		return;
	if (dropped_by_rule(check) - dropped != check->expected[LPM_IS_DROPPED] ||
	    passed_by_rule(check) - passed != check->expected[LPM_IS_PASSED])
		die("the filter's counters do not tell of the packets", EPROTO);
}

static void print(const struct check *check, uint64_t packets)
{
	const struct abi_config *config = check->filters->config;

	printf("packets:         %" PRIu64 "\n", packets);
	printf("in a drop rule:  %" PRIu64 "\n", check->expected[LPM_IS_DROPPED]);
	printf("in a pass rule:  %" PRIu64 "\n", check->expected[LPM_IS_PASSED]);
	printf("differing:       %" PRIu64 "\n", check->differing);
	printf("false positives: %" PRIu64 "\n", check->false_positives);
	printf("most probes:     %u\n", check->most_probes);
	printf("shapes ipv4:     %u\n", abi_shapes(abi_active(config), FLOW_IPV4)->count);
	printf("shapes ipv6:     %u\n", abi_shapes(abi_active(config), FLOW_IPV6)->count);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ .name = "packets", .has_arg = required_argument, .val = 'p' },
		{ .name = "seed", .has_arg = required_argument, .val = 's' },
		{ .name = "allow-false-positives", .val = 'f' },
		{ 0 },
	};
	const char *value[UINT8_MAX + 1] = { ['p'] = "1000000", ['s'] = "1" };
	struct check check = { 0 };
	uint64_t packets;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1 && option != '?')
		value[option] = optarg ? optarg : "";
	if (option == '?' || optind + 1 != argc) {
		fputs("usage: lpm_check [--packets N] [--seed N] [--allow-false-positives] LIST\n", stderr);
		return 2;
	}
	packets = strtoull(value['p'], NULL, 0);
	check.random = strtoull(value['s'], NULL, 0);
	check.allows_false_positives = value['f'];
	if (lpm_read(argv[optind], &check.list) || lpm_open(&check.list, &check.reference))
		return 2;
	open_program(&check);
	judge_all(&check, packets);
	print(&check, packets);
	kernel_filters_free(check.filters, check.filters_count);
	return check.differing ? 1 : 0;
}
