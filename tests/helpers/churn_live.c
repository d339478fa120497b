// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Live traffic of flows that are in a running filter's table all the time, while a writer changes that
 * table without pause: it exchanges all other entries at the highest load, or bounces the entry of one
 * flow between its two buckets. Says how many packets passed; none may.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/ip.h>
#include <linux/udp.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "helpers/live_end.h"
#include "helpers/live_source.h"
#include "kernel/kernel.h"
#include "bench/random.h"
#include "rule/rule.h"
#include "table/insert_delete.h"
#include "table/publish_order.h"
#include "filter/filter.h"

#define SOURCE_OBJECT XDP_CUCKOO_BUILD "/tests/helpers/live_source.bpf.o"
#define SLICE_PACKETS (1 << 16) /* between two looks at the counters */

struct options {
	const char *from, *to; /* NETNS:IFACE */
	struct live_source source;
	__u64 packets, seed;
	bool is_bounced;
};

struct churn {
	struct options options;
	cpu_set_t usable; /* processors */
	/* Where the packets come from, and where they must not get. */
	int program, ifindex, socket;
	__u64 arrived;
	/* What is looked up. */
	struct kernel_filter *filters;
	size_t filters_count;
	/* What the writer changes. */
	struct table table;
	struct hash_value bounced, *other;
	size_t others;
	__u64 next; /* of them, the next to go */
	uint64_t random;
	__u64 lost; /* entries that were not where they should be */
	bool is_stopping;
};

/* -ENOENT where the key is not there, or has no other bucket to go to. */
FLOW_INLINE int bounce(struct table *table, struct bucket_layout layout, const struct hash_value *key)
{
	const struct bucket_pair pair = core_pair(table, layout, key);
	struct table_place from, to;

	if (pair.first == pair.second || !core_find_key(table, layout, &pair, key->tag, &from) ||
	    !core_find_free(table, layout, from.bucket ^ pair.first ^ pair.second, &to))
		return -ENOENT;
	table_move(table, layout, from, to);
	return 0;
}

/* ---- the writer ---- */

static struct hash_value next_key(struct churn *churn)
{
	const __u64 hash = random_next(&churn->random);

	return (struct hash_value){ hash, abi_record_tag(random_next(&churn->random)) };
}

static void insert_other(struct churn *churn, size_t at)
{
	int error;

	do {
		churn->other[at] = next_key(churn);
		error = table_insert(&churn->table, &churn->other[at], 0);
	} while (error);
}

static void change(struct churn *churn)
{
	size_t at;

	if (churn->options.is_bounced) {
		churn->lost += !!CORE_CALL(bounce, &churn->table, &churn->bounced);
		return;
	}
	at = churn->next++ % churn->others;
	churn->lost += !!table_delete(&churn->table, &churn->other[at]);
	insert_other(churn, at);
}

/*
 * Runs this thread on the nth processor that the process may use: reader and writer that take turns on
 * one would see no half of a move.
 */
static void run_on(const cpu_set_t *usable, int n)
{
	cpu_set_t one;
	int cpu = 0;

	if (CPU_COUNT(usable) <= n)
		live_die("two processors are needed", ENODEV);
	for (; n || !CPU_ISSET(cpu, usable); cpu++)
		n -= !!CPU_ISSET(cpu, usable);
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		live_die("sched_setaffinity", errno);
}

static void *write_on(void *context)
{
	struct churn *churn = context;

	run_on(&churn->usable, 0);
	while (!__atomic_load_n(&churn->is_stopping, __ATOMIC_RELAXED))
		change(churn);
	return NULL;
}

/* Fills the table to its highest load with what comes and goes, or finds the flow to bounce. */
static void writer_open(struct churn *churn)
{
	const __u64 most = table_slots(&churn->table) * TABLE_LOAD_PERCENT / 100;

	if (churn->options.is_bounced)
		return;
	churn->others = most > churn->table.used ? most - churn->table.used : 0;
	churn->other = calloc(churn->others, sizeof(*churn->other));
	if (!churn->other || !churn->others)
		live_die("nothing can come and go in a full table", ENOSPC);
	for (size_t i = 0; i < churn->others; i++)
		insert_other(churn, i);
}

static void writer_close(struct churn *churn)
{
	for (size_t i = 0; i < churn->others; i++)
		churn->lost += !!table_delete(&churn->table, &churn->other[i]);
	free(churn->other);
	table_close(&churn->table);
}

/* The first flow of the traffic with two different buckets becomes all of it. */
static void choose_bounced(struct churn *churn)
{
	struct live_source *source = &churn->options.source;

	for (; source->count; source->first++, source->count--) {
		const struct rule rule = { .family = FLOW_IPV4, .src_len = 32, .src.v4 = htonl(source->first) };
		struct rule_key keys[RULE_KEYS_MAX];

		rule_keys(&rule, keys);
		churn->bounced = rule_hash(keys, &abi_active(churn->filters->config)->secret);
		if (CORE_CALL(bounce, &churn->table, &churn->bounced))
			continue;
		source->count = 1;
		return;
	}
	live_die("no flow of the traffic has an entry with room to bounce", ENOENT);
}

/* ---- the traffic ---- */

struct frame {
	struct ethhdr ethernet;
	struct iphdr ip;
	struct udphdr udp;
	__u8 padding[22];
} __attribute__((packed));

/* Runs the program that sends; what the other end has room for has met the filter when this returns. */
static void send_slice(const struct churn *churn)
{
	const struct frame frame = {
		.ethernet.h_proto = htons(ETH_P_IP),
		.ip = { .version = 4,
			.ihl = 5,
			.ttl = 64,
			.protocol = IPPROTO_UDP,
			.tot_len = htons(sizeof(frame) - sizeof(frame.ethernet)) },
	};
	struct xdp_md context = { .data_end = sizeof(frame), .ingress_ifindex = churn->ifindex };
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = &frame, .data_size_in = sizeof(frame), .ctx_in = &context,
		    .ctx_size_in = sizeof(context), .repeat = SLICE_PACKETS, .flags = BPF_F_TEST_XDP_LIVE_FRAMES);
	const int error = bpf_prog_test_run_opts(churn->program, &options);

	if (error)
		live_die("sending live frames", error);
}

/* Counted since the filter was loaded; `arrived` by its receiver. */
struct tally {
	__u64 sent, dropped, passed, unsettled, retries, arrived;
};

static struct tally count(struct churn *churn)
{
	struct abi_counter counters[ABI_COUNTERS];
	struct tpacket_stats statistics;
	socklen_t length = sizeof(statistics);
	struct tally tally = {};
	struct reason reason;
	int error = kernel_counters(churn->filters, counters, &reason);

	if (error)
		live_die(reason.text, error);
	for (int outcome = 0; outcome < OUTCOMES; outcome++)
		tally.passed += counters[outcome * VERDICTS + VERDICT_PASS].packets;
	for (int verdict = 0; verdict < VERDICTS; verdict++)
		tally.unsettled += counters[OUTCOME_UNSETTLED * VERDICTS + verdict].packets;
	tally.dropped = counters[OUTCOME_DROP_RULE * VERDICTS + VERDICT_DROP].packets;
	tally.retries = counters[ABI_COUNTER_RETRIES].packets;
	/* The kernel starts again from 0 with every answer. */
	if (getsockopt(churn->socket, SOL_PACKET, PACKET_STATISTICS, &statistics, &length))
		live_die("counting arrivals", errno);
	churn->arrived += statistics.tp_packets;
	tally.arrived = churn->arrived;
	return tally;
}

/* Sends until all packets are sent, or one has passed where that is what is waited for. */
static struct tally send_packets(struct churn *churn, __u64 packets)
{
	const struct tally before = count(churn);
	struct tally since = {};

	while (since.sent < packets) {
		struct tally now;

		send_slice(churn);
		now = count(churn);
		since = (struct tally){
			.sent = since.sent + SLICE_PACKETS,
			.dropped = now.dropped - before.dropped,
			.passed = now.passed - before.passed,
			.unsettled = now.unsettled - before.unsettled,
			.retries = now.retries - before.retries,
			.arrived = now.arrived - before.arrived,
		};
	}
	return since;
}

/* ---- the two ends ---- */

static void open_receiver(struct churn *churn)
{
	const struct sockaddr_ll address = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_IP),
		.sll_ifindex = live_enter(churn->options.to),
	};
	struct filter_tables tables;
	struct reason reason;
	int error = kernel_find_filters((struct kernel_wish){ 0 }, &churn->filters, &churn->filters_count, &reason);

	if (error)
		live_die(reason.text, error);
	if (churn->filters_count != 1)
		live_die("one running filter is needed", ENOENT);
	error = filter_open_tables(churn->filters, &tables);
	churn->table = tables.part[FILTER_RECORDS];
	if (error)
		live_die("the running filter's table", error);
	churn->table.used = churn->filters->config->used;
	churn->socket = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (churn->socket < 0 || bind(churn->socket, (const struct sockaddr *)&address, sizeof(address)))
		live_die("packet socket", errno);
}

static struct bpf_object *open_sender(struct churn *churn)
{
	struct bpf_object *object = bpf_object__open_file(SOURCE_OBJECT, NULL);
	const struct bpf_program *program = NULL;

	churn->ifindex = live_enter(churn->options.from);
	if (object) {
		bpf_map__set_initial_value(bpf_object__find_map_by_name(object, ".rodata"), &churn->options.source,
					   sizeof(churn->options.source));
		if (!bpf_object__load(object))
			program = bpf_object__find_program_by_name(object, "live_send");
	}
	if (!program)
		live_die(SOURCE_OBJECT, errno);
	churn->program = bpf_program__fd(program);
	return object;
}

/* ---- all together ---- */

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec * 1e-9;
}

static struct tally send_under_churn(struct churn *churn)
{
	pthread_t writer;
	struct tally tally;

	if (pthread_create(&writer, NULL, write_on, churn))
		live_die("pthread_create", EAGAIN);
	tally = send_packets(churn, churn->options.packets);
	__atomic_store_n(&churn->is_stopping, true, __ATOMIC_RELAXED);
	pthread_join(writer, NULL);
	return tally;
}

static void report(const struct tally *tally, __u64 moves, double duration)
{
	printf("packets sent        %llu\n"
	       "dropped by rule     %llu\n"
	       "passed              %llu\n"
	       "arrived             %llu\n"
	       "unsettled           %llu\n"
	       "look-up retries     %llu\n"
	       "moves               %llu\n"
	       "packets/s           %.0f\n"
	       "moves/s             %.0f\n",
	       tally->sent, tally->dropped, tally->passed, tally->arrived, tally->unsettled, tally->retries, moves,
	       (tally->dropped + tally->passed) / duration, moves / duration);
}

/* Every packet sent is a look-up, and has one of two ends. */
static bool is_whole(const struct tally *tally)
{
	return tally->dropped + tally->passed == tally->sent && tally->arrived == tally->passed;
}

static int run(struct churn *churn)
{
	struct bpf_object *object;
	struct tally tally;
	double start;
	__u64 moves;

	open_receiver(churn);
	if (churn->options.is_bounced)
		choose_bounced(churn);
	object = open_sender(churn);
	if (sched_getaffinity(0, sizeof(churn->usable), &churn->usable))
		live_die("sched_getaffinity", errno);
	run_on(&churn->usable, 1);
	tally = send_packets(churn, SLICE_PACKETS);
	if (tally.passed || !is_whole(&tally)) {
		fprintf(stderr,
			"churn_live: of %llu packets %llu dropped, %llu passed, %llu arrived, "
			"before anything changes\n",
			tally.sent, tally.dropped, tally.passed, tally.arrived);
		exit(2);
	}
	churn->random = churn->options.seed;
	writer_open(churn);
	moves = churn->table.moves;
	start = seconds();
	tally = send_under_churn(churn);
	report(&tally, churn->table.moves - moves, seconds() - start);
	writer_close(churn);
	bpf_object__close(object);
	kernel_filters_free(churn->filters, churn->filters_count);
	if (churn->lost)
		live_die("entries were lost", ENOENT);
	if (!is_whole(&tally))
		live_die("packets went elsewhere", EIO);
	return tally.passed ? 1 : 0;
}

int main(int argc, char **argv)
{
	static const struct option names[] = {
		{ .name = "from", .has_arg = required_argument, .val = 'f' },
		{ .name = "to", .has_arg = required_argument, .val = 't' },
		{ .name = "first", .has_arg = required_argument, .val = 'a' },
		{ .name = "flows", .has_arg = required_argument, .val = 'n' },
		{ .name = "packets", .has_arg = required_argument, .val = 'p' },
		{ .name = "seed", .has_arg = required_argument, .val = 's' },
		{ .name = "bounce", .val = 'b' },
		{ 0 },
	};
	const char *value[UINT8_MAX + 1] = { ['n'] = "1", ['p'] = "1", ['s'] = "1" };
	struct churn churn = {};
	struct in_addr first;
	int option;

	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1 && option != '?')
		value[option] = optarg ? optarg : "";
	if (option == '?' || optind != argc || !value['f'] || !value['t'] || !value['a'] ||
	    inet_pton(AF_INET, value['a'], &first) != 1) {
		fputs("usage: churn_live --from NETNS:IFACE --to NETNS:IFACE --first SOURCE [--flows N] "
		      "[--packets N] [--seed N] [--bounce]\n",
		      stderr);
		return 2;
	}
	churn.options = (struct options){
		.from = value['f'],
		.to = value['t'],
		.source = { ntohl(first.s_addr), strtoul(value['n'], NULL, 10) },
		.packets = strtoull(value['p'], NULL, 10),
		.seed = strtoull(value['s'], NULL, 0),
		.is_bounced = value['b'],
	};
	return run(&churn);
}
