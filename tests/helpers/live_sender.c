// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Sends packets out of one end of a veth pair, as fast as one processor sends and receives them: from
 * random listed sources, and some from random others. Says how long a packet took, how many came in at the
 * other end, and how many of them its stack was given: they are for no address of that host, which must
 * not forward, so it drops and counts them once it knows. --list prints the listed sources instead.
 */
#include <arpa/inet.h>
#include <getopt.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/sockios.h>
#include <linux/udp.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "bench/timing.h"
#include "helpers/live_end.h"
#include "helpers/live_sender.h"
#include "bench/random.h"

#define OBJECT XDP_CUCKOO_BUILD "/tests/helpers/live_sender.bpf.o"
#define DESTINATION 0xc6336407 /* 198.51.100.7 */
#define ARRIVAL_SECONDS_MAX 30 /* for what a receiver has queued, however busy its processor is */
#define TEXT_BYTES 8192

struct options {
	const char *from, *to; /* NETNS:IFACE */
	struct live_plan plan;
	uint64_t seed;
	int thread; /* the process id of the receiver's thread, which has a processor of its own; or 0 */
	bool is_program_timed;
};

struct frame {
	struct ethhdr ethernet;
	struct iphdr ip;
	struct udphdr udp;
	__u8 padding[18];
} __attribute__((packed));

struct sender {
	struct bpf_object *object;
	struct frame frame;
	int program, progress, ifindex;
};

/* Files of the receiver's namespace, and its XDP program, or less than 0. */
struct receiver {
	const char *iface;
	int devices, counters, program, statistics;
	int schedule, state; /* of its thread */
};

struct tally {
	__u64 sent, innocent, ns, arrived, delivered, program_ns, program_runs, thread_ns;
};

/* ---- the receiving end ---- */

/* Without XDP a veth takes frames that were put before it, rather than sent, only where it has GRO. */
static void prepare_interface(const char *place, __u8 mac[ETH_ALEN])
{
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ethtool_value gro = { .cmd = ETHTOOL_SGRO, .data = 1 };
	struct ifreq request = {};

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", strchr(place, ':') + 1);
	if (fd < 0 || ioctl(fd, SIOCGIFHWADDR, &request))
		live_die(place, errno);
	memcpy(mac, request.ifr_hwaddr.sa_data, ETH_ALEN);
	request.ifr_data = (void *)&gro;
	if (ioctl(fd, SIOCETHTOOL, &request))
		live_die("GRO", errno);
	close(fd);
}

static int open_file(const char *path)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		live_die(path, errno);
	return fd;
}

static void open_receiver(const struct options *options, struct receiver *receiver, __u8 mac[ETH_ALEN])
{
	const int ifindex = live_enter(options->to);
	char schedule[64], state[64];
	__u32 id = 0;

	prepare_interface(options->to, mac);
	*receiver = (struct receiver){
		.iface = strchr(options->to, ':') + 1,
		.devices = open_file("/proc/self/net/dev"),
		.counters = open_file("/proc/self/net/snmp"),
		.program = -1,
		.statistics = -1,
		.schedule = -1,
		.state = -1,
	};
	if (options->thread) {
		snprintf(schedule, sizeof(schedule), "/proc/%d/schedstat", options->thread);
		snprintf(state, sizeof(state), "/proc/%d/stat", options->thread);
		receiver->schedule = open_file(schedule);
		receiver->state = open_file(state);
	}
	if (!options->is_program_timed || bpf_xdp_query_id(ifindex, 0, &id) || !id)
		return;
	receiver->program = bpf_prog_get_fd_by_id(id);
	receiver->statistics = bpf_enable_stats(BPF_STATS_RUN_TIME);
	if (receiver->program < 0 || receiver->statistics < 0)
		live_die("statistics of the program", errno);
}

static char *read_text(int fd, char text[TEXT_BYTES])
{
	ssize_t length = 0, more;

	while ((more = pread(fd, text + length, TEXT_BYTES - 1 - length, length)) > 0)
		length += more;
	if (more < 0)
		live_die("counters", errno);
	text[length] = '\0';
	return text;
}

/* Packets received: the second number behind the interface's name. */
static __u64 count_arrived(const struct receiver *receiver)
{
	const size_t length = strlen(receiver->iface);
	char text[TEXT_BYTES], *rest = read_text(receiver->devices, text);
	__u64 packets;

	for (char *line; (line = strsep(&rest, "\n"));) {
		line += strspn(line, " ");
		if (!strncmp(line, receiver->iface, length) && line[length] == ':' &&
		    sscanf(line + length + 1, "%*u %llu", &packets) == 1)
			return packets;
	}
	live_die(receiver->iface, ENODEV);
	return 0;
}

/* How long its thread has run: the first number. */
static __u64 count_thread_ns(const struct receiver *receiver)
{
	char text[TEXT_BYTES];

	return receiver->schedule < 0 ? 0 : strtoull(read_text(receiver->schedule, text), NULL, 10);
}

/* It sleeps only while no packet is queued for it. Its state is the letter behind its name in parentheses. */
static bool is_thread_asleep(const struct receiver *receiver)
{
	char text[TEXT_BYTES];
	const char *name_end = strrchr(read_text(receiver->state, text), ')');

	return name_end && !strncmp(name_end, ") S", 3);
}

/* A line of names, then one of numbers. */
static __u64 count_delivered(const struct receiver *receiver)
{
	char text[TEXT_BYTES], *rest = read_text(receiver->counters, text);
	char *names = strsep(&rest, "\n"), *numbers = strsep(&rest, "\n");

	while (names && numbers) {
		const char *name = strsep(&names, " "), *number = strsep(&numbers, " ");

		if (number && !strcmp(name, "InAddrErrors"))
			return strtoull(number, NULL, 10);
	}
	live_die("InAddrErrors", ENOENT);
	return 0;
}

/* ---- the sending end ---- */

static __u32 sum_words(const void *data, size_t bytes)
{
	__u32 sum = 0;

	for (size_t i = 0; i < bytes; i += sizeof(__u16)) {
		__u16 word;

		memcpy(&word, (const char *)data + i, sizeof(word));
		sum += word;
	}
	return sum;
}

static void build_frame(struct frame *frame, const __u8 mac[ETH_ALEN])
{
	*frame = (struct frame){
		.ethernet.h_proto = htons(ETH_P_IP),
		.ip = { .version = 4,
			.ihl = 5,
			.ttl = 64,
			.protocol = IPPROTO_UDP,
			.tot_len = htons(sizeof(*frame) - sizeof(frame->ethernet)),
			.daddr = htonl(DESTINATION) },
		.udp = { .source = htons(1111),
			 .dest = htons(53),
			 .len = htons(sizeof(*frame) - sizeof(frame->ethernet) - sizeof(frame->ip)) },
	};
	memcpy(frame->ethernet.h_dest, mac, ETH_ALEN);
}

static void open_sender(struct options *options, const __u8 mac[ETH_ALEN], struct sender *sender)
{
	struct live_progress progress = {};
	const __u32 zero = 0;

	*sender = (struct sender){ .ifindex = live_enter(options->from) };
	build_frame(&sender->frame, mac);
	options->plan.header_sum = sum_words(&sender->frame.ip, sizeof(sender->frame.ip));
	sender->object = bpf_object__open_file(OBJECT, NULL);
	if (!sender->object ||
	    bpf_map__set_initial_value(bpf_object__find_map_by_name(sender->object, ".rodata"), &options->plan,
				       sizeof(options->plan)) ||
	    bpf_object__load(sender->object))
		live_die(OBJECT, errno);
	sender->program = bpf_program__fd(bpf_object__find_program_by_name(sender->object, "live_send"));
	sender->progress = bpf_map__fd(bpf_object__find_map_by_name(sender->object, ".bss"));
	while (!progress.random)
		progress.random = random_next(&options->seed);
	if (bpf_map_update_elem(sender->progress, &zero, &progress, 0))
		live_die("seed", errno);
}

static void send_packets(const struct sender *sender, __u32 packets)
{
	struct xdp_md context = { .data_end = sizeof(sender->frame), .ingress_ifindex = sender->ifindex };
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = &sender->frame, .data_size_in = sizeof(sender->frame),
		    .ctx_in = &context, .ctx_size_in = sizeof(context), .repeat = packets,
		    .flags = BPF_F_TEST_XDP_LIVE_FRAMES);

	if (bpf_prog_test_run_opts(sender->program, &options))
		live_die("sending live frames", errno);
}

/* ---- both ---- */

/* Where the receiver has no thread, its NAPI runs where the sender runs: one processor does it all. */
static void stay_on_one_processor(bool is_first)
{
	cpu_set_t usable, one;
	int cpu = is_first ? 0 : CPU_SETSIZE - 1;

	if (sched_getaffinity(0, sizeof(usable), &usable))
		live_die("sched_getaffinity", errno);
	while (!CPU_ISSET(cpu, &usable))
		cpu += is_first ? 1 : -1;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		live_die("sched_setaffinity", errno);
}

static struct tally count(const struct sender *sender, const struct receiver *receiver)
{
	struct bpf_prog_info info = {};
	__u32 zero = 0, bytes = sizeof(info);
	struct live_progress progress;

	if (bpf_map_lookup_elem(sender->progress, &zero, &progress) ||
	    (receiver->program >= 0 && bpf_obj_get_info_by_fd(receiver->program, &info, &bytes)))
		live_die("counters", errno);
	return (struct tally){
		.sent = progress.sent,
		.innocent = progress.innocent,
		.ns = progress.finish_ns - progress.begin_ns,
		.arrived = count_arrived(receiver),
		.delivered = count_delivered(receiver),
		.program_ns = info.run_time_ns,
		.program_runs = info.run_cnt,
		.thread_ns = count_thread_ns(receiver),
	};
}

/*
 * Since `before`, of all that was sent: waits until the receiver has taken everything. On the sender's processor every
 * packet arrives. A receiver with a thread loses those for which its queue has no room, and has taken the rest once the
 * thread sleeps; the counters are read after that.
 */
static struct tally count_since(const struct sender *sender, const struct receiver *receiver,
				const struct tally *before)
{
	const bool has_thread = receiver->state >= 0;
	const double end = seconds() + ARRIVAL_SECONDS_MAX;
	bool has_taken_all;
	struct tally now;

	do {
		has_taken_all = has_thread && is_thread_asleep(receiver);
		now = count(sender, receiver);
		now.arrived -= before->arrived;
		if (!has_thread)
			has_taken_all = now.arrived >= now.sent;
	} while (!has_taken_all && seconds() < end);
	if (!has_taken_all)
		live_die(receiver->iface, ETIMEDOUT);
	now.delivered -= before->delivered;
	now.program_ns -= before->program_ns;
	now.program_runs -= before->program_runs;
	now.thread_ns -= before->thread_ns;
	return now;
}

static void report(const struct tally *tally, __u64 packets_timed)
{
	printf("packets %llu\ninnocent %llu\narrived %llu\ndelivered %llu\nns %.2f\n", tally->sent, tally->innocent,
	       tally->arrived, tally->delivered, (double)tally->ns / packets_timed);
	if (tally->program_runs)
		printf("program_ns %.2f\n", (double)tally->program_ns / tally->program_runs);
	if (tally->thread_ns)
		printf("thread_ns %.2f\n", (double)tally->thread_ns / tally->arrived);
}

static int run(struct options *options)
{
	struct tally before, since;
	struct receiver receiver;
	struct sender sender;
	__u8 mac[ETH_ALEN];

	open_receiver(options, &receiver, mac);
	open_sender(options, mac, &sender);
	stay_on_one_processor(options->thread);
	before = count(&sender, &receiver);
	send_packets(&sender, options->plan.finish + 1);
	since = count_since(&sender, &receiver, &before);
	report(&since, options->plan.finish - options->plan.begin);
	bpf_object__close(sender.object);
	/* A receiver with a thread is timed with what has room in its queue. */
	return options->thread ? !since.thread_ns : since.arrived != since.sent;
}

static int list(const struct live_plan *plan)
{
	for (__u32 i = 0; i < plan->count; i++) {
		const __u32 source = live_address(plan->first, i);

		printf("%u.%u.%u.%u\n", source >> 24, source >> 16 & 255, source >> 8 & 255, source & 255);
	}
	return fflush(stdout) ? 1 : 0;
}

int main(int argc, char **argv)
{
	static const struct option names[] = {
		{ .name = "from", .has_arg = required_argument, .val = 'f' },
		{ .name = "to", .has_arg = required_argument, .val = 't' },
		{ .name = "first", .has_arg = required_argument, .val = 'a' },
		{ .name = "count", .has_arg = required_argument, .val = 'n' },
		{ .name = "innocent", .has_arg = required_argument, .val = 'i' },
		{ .name = "packets", .has_arg = required_argument, .val = 'p' },
		{ .name = "warm-up", .has_arg = required_argument, .val = 'w' },
		{ .name = "seed", .has_arg = required_argument, .val = 's' },
		{ .name = "thread", .has_arg = required_argument, .val = 'r' },
		{ .name = "program", .val = 'o' },
		{ .name = "list", .val = 'l' },
		{ 0 },
	};
	const char *value[UINT8_MAX + 1] = {
		['a'] = "16.0.0.0", ['n'] = "1", ['i'] = "0", ['p'] = "1", ['w'] = "0", ['s'] = "1", ['r'] = "0"
	};
	struct options options;
	struct in_addr first;
	int option;

	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1 && option != '?')
		value[option] = optarg ? optarg : "";
	if (option == '?' || optind != argc || (!value['l'] && (!value['f'] || !value['t'])) ||
	    inet_pton(AF_INET, value['a'], &first) != 1) {
		fputs("usage: live_sender --from NETNS:IFACE --to NETNS:IFACE [--first SOURCE] "
		      "[--count N] [--innocent PERCENT]\n"
		      "                   [--packets N] [--warm-up PACKETS] [--seed N] [--thread PID] [--program]\n"
		      "       live_sender --list [--first SOURCE] [--count N]\n",
		      stderr);
		return 2;
	}
	options = (struct options){
		.from = value['f'],
		.to = value['t'],
		.plan = { .first = ntohl(first.s_addr),
			  .count = strtoul(value['n'], NULL, 10),
			  .innocent_percent = strtoul(value['i'], NULL, 10),
			  .begin = strtoull(value['w'], NULL, 10) },
		.seed = strtoull(value['s'], NULL, 0),
		.thread = atoi(value['r']),
		.is_program_timed = value['o'],
	};
	options.plan.finish = options.plan.begin + strtoull(value['p'], NULL, 10);
	return value['l'] ? list(&options.plan) : run(&options);
}
