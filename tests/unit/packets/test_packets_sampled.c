// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What packets meet besides maps: a listener to samples, the pace of counting, and sockets. On the host, where a test has them. */
#include "unit/packets_fixture.h"

#include "steps/host_bpf.h"

enum { NOW = 100 << ABI_TICK_SHIFT };

static int open_at(void **state)
{
	int error;

	host_world.is_forced = true;
	host_world.jiffies = NOW;
	error = scene_open_exact(state);
	build_frames();
	return error;
}

/* The first row of UDP without tags, of this family. */
static size_t udp_of(enum flow_family family)
{
	size_t i = 0;

	while (packets[i].result != PARSE_OK || packets[i].flow.family != family ||
	       packets[i].flow.proto != IPPROTO_UDP || packets[i].flow.port_kind != FLOW_PORTS ||
	       frames[i].byte[ETH_HLEN - 2] != (family == FLOW_IPV4 ? 8 : 0x86))
		i++;
	return i;
}

static struct abi_sampling *sampling_of(const struct scene *scene)
{
	static struct abi_sampling sampling[RAW_FILTER_CPUS_MAX];
	const int map = bpf_object__find_map_fd_by_name(scene->filter.object, ABI_SAMPLING_MAP);
	const __u32 zero = 0;

	assert_int_equal(bpf_map_lookup_elem(map, &zero, sampling), 0);
	for (int cpu = 1; cpu < libbpf_num_possible_cpus(); cpu++)
		if (sampling[cpu].seen || sampling[cpu].pace.jiffy)
			sampling[0] = sampling[cpu];
	return sampling;
}

/* Drops everything by policy. A listener has a lease until this tick, of one sample in `every`, by this credit a jiffy. */
static void hear(struct scene *scene, __u32 until, __u32 every, __u32 credit)
{
	scene_set_up(scene);
	scene->filter.config->table[0].drops = ~0;
	scene->filter.config->listener = 7ULL << ABI_LISTENER_SHIFT | until;
	scene->filter.config->sample_every = every;
	scene->filter.config->sample_credit = credit;
	host_world.jiffies += NOW; /* all credit that there can be */
	host_world.samples = host_world.discarded = 0;
	memset(&host_world.sample, 0, sizeof(host_world.sample));
}

static void send_some(struct scene *scene, size_t packet, unsigned int count)
{
	while (count--)
		check(!raw_filter_run(&scene->filter, 0, frames[packet].byte, frames[packet].length).error, "run",
		      "error", 0);
}

SCENE_TEST(test_samples)
{
	const struct abi_sample *sample = &host_world.sample;

	for (size_t i = 0; i < PACKETS; i++) {
		const size_t length = frames[i].length,
			     captured = length < ABI_SAMPLE_BYTES ? length : ABI_SAMPLE_BYTES;
		struct raw_filter_run run;

		if (length < RAW_FILTER_RUN_MIN)
			continue;
		hear(scene, ~0U, 1, ABI_SAMPLE_PRICE);
		run = raw_filter_run(&scene->filter, RAW_FILTER_FRAGS, frames[i].byte, length);
		check(host_world.samples == 1, packets[i].name, "samples", host_world.samples);
		check(sample->bytes == length && sample->captured == captured, packets[i].name, "captured",
		      sample->captured);
		check(!memcmp(sample->frame, frames[i].byte, captured), packets[i].name, "frame", 0);
		check(sample->outcome == run.outcome && sample->verdict == VERDICT_DROP, packets[i].name, "verdict",
		      sample->verdict);
		check(sample->ifindex == 1 && sample->time_ns, packets[i].name, "ifindex", sample->ifindex);
	}
}

SCENE_TEST(test_who_is_sampled)
{
	const size_t packet = udp_of(FLOW_IPV4);
	__u64 lost, limited;

	/* What passes has no sample; what would drop has one. */
	hear(scene, ~0U, 1, ABI_SAMPLE_PRICE);
	scene->filter.config->table[0].drops = 0;
	send_some(scene, packet, 3);
	assert_int_equal(host_world.samples, 0);
	hear(scene, ~0U, 1, ABI_SAMPLE_PRICE);
	scene->filter.config->run |= ABI_RUN_MONITOR;
	send_some(scene, packet, 1);
	assert_int_equal(host_world.samples, 1);
	assert_int_equal(host_world.sample.verdict, VERDICT_WOULD_DROP);
	/* One in three. */
	hear(scene, ~0U, 3, ABI_SAMPLE_PRICE);
	send_some(scene, packet, 9);
	assert_int_equal(host_world.samples, 3);
	/* As many as the credit of 256 jiffies pays; then one more for each price that is earned. */
	hear(scene, ~0U, 1, ABI_SAMPLE_PRICE / 64);
	limited = sampling_of(scene)->limited;
	send_some(scene, packet, 10);
	assert_int_equal(host_world.samples, 4);
	assert_int_equal(sampling_of(scene)->limited - limited, 6);
	host_world.jiffies += 63;
	send_some(scene, packet, 1);
	assert_int_equal(host_world.samples, 4);
	host_world.jiffies++;
	send_some(scene, packet, 2);
	assert_int_equal(host_world.samples, 5);
	/* The lowest rate still has the credit for one. */
	hear(scene, ~0U, 1, 1);
	host_world.jiffies += 0x10000;
	send_some(scene, packet, 2);
	assert_int_equal(host_world.samples, 0);
	/* A ring without room loses samples, and says so. */
	hear(scene, ~0U, 1, ABI_SAMPLE_PRICE);
	lost = sampling_of(scene)->lost;
	host_world.ring_is_full = true;
	send_some(scene, packet, 2);
	host_world.ring_is_full = false;
	assert_int_equal(sampling_of(scene)->lost - lost, 2);
	/* The lease ends at its tick, and is given back. */
	hear(scene, ((host_world.jiffies + NOW) >> ABI_TICK_SHIFT) + 1, 1, ABI_SAMPLE_PRICE);
	send_some(scene, packet, 1);
	assert_int_equal(host_world.samples, 1);
	host_world.jiffies += 1 << ABI_TICK_SHIFT;
	send_some(scene, packet, 1);
	assert_int_equal(host_world.samples, 1);
	assert_int_equal(scene->filter.config->listener, 0);
}

/* A datagram that a socket waits for is no new one: one of a connected socket, or at a port for clients. */
SCENE_TEST(test_sockets)
{
	static const struct {
		__u16 first, last; /* ports for clients; 0: around the packet's, by what `state` adds */
		bool is_there, is_connected, is_answer;
	} rows[] = {
		{ 0, 0, false, false, false }, { 0, 0, true, true, true },           { 0, 65535, true, false, true },
		{ 0, 1, true, false, false },  { 65534, 65535, true, false, false },
	};

	for (enum flow_family family = 0; family < FLOW_FAMILIES; family++) {
		const size_t packet = udp_of(family), bytes = family == FLOW_IPV4 ? 4 : 16;
		const struct flow *flow = &packets[packet].flow;
		const struct rule rule = parse_rule("proto udp state new");
		const struct bpf_sock_tuple *asked = &host_world.asked;

		for (size_t i = 0; i < COUNT(rows) + 4; i++) {
			const __u16 port = bpf_ntohs(flow->dport);
			const bool is_edge = i >= COUNT(rows);
			struct raw_filter_run run;

			scene_set_up(scene);
			raw_filter_add(&scene->filter, &rule);
			/* The ends of the range, and one beside them. */
			scene->filter.config->ephemeral_first = is_edge ? port + (i == COUNT(rows) + 1) : rows[i].first;
			scene->filter.config->ephemeral_last =
				is_edge ? (i > COUNT(rows) + 1 ? port - (i == COUNT(rows) + 3) : 65535) : rows[i].last;
			if (i > COUNT(rows) + 1)
				scene->filter.config->ephemeral_first = 1;
			host_world.socket.state = is_edge || rows[i].is_there;
			host_world.socket.dst_port = !is_edge && rows[i].is_connected ? 9 : 0;
			run = raw_filter_run(&scene->filter, 0, frames[packet].byte, frames[packet].length);
			check((run.outcome != OUTCOME_DROP_RULE) ==
				      (is_edge ? i == COUNT(rows) || i == COUNT(rows) + 2 : rows[i].is_answer),
			      packets[packet].name, "outcome of row", i);
		}
		check(host_world.asked_bytes == (family == FLOW_IPV4 ? sizeof(asked->ipv4) : sizeof(asked->ipv6)),
		      packets[packet].name, "asked bytes", host_world.asked_bytes);
		if (family == FLOW_IPV4)
			check(asked->ipv4.saddr == flow->src.v4 && asked->ipv4.daddr == flow->dst.v4 &&
				      asked->ipv4.sport == flow->sport && asked->ipv4.dport == flow->dport,
			      packets[packet].name, "asked", 0);
		else
			check(!memcmp(asked->ipv6.saddr, &flow->src, bytes) &&
				      !memcmp(asked->ipv6.daddr, &flow->dst, bytes) &&
				      asked->ipv6.sport == flow->sport && asked->ipv6.dport == flow->dport,
			      packets[packet].name, "asked", 0);
	}
}

/* What a DHCP server sends to its client begins nothing, though no socket waits: at the ports of the family, both of them. */
SCENE_TEST(test_leases)
{
	static const __u16 ports[][2] = { { 67, 68 },   { 547, 546 }, { 67, 67 },   { 68, 68 },  { 68, 67 },
					  { 547, 547 }, { 546, 546 }, { 546, 547 }, { 67, 546 }, { 547, 68 } };
	const struct rule rule = parse_rule("proto udp state new");

	for (enum flow_family family = 0; family < FLOW_FAMILIES; family++) {
		const size_t packet = udp_of(family), header = ETH_HLEN + (family == FLOW_IPV4 ? 20 : 40);

		for (size_t i = 0; i < COUNT(ports); i++) {
			const __be16 both[2] = { bpf_htons(ports[i][0]), bpf_htons(ports[i][1]) };
			__u8 frame[sizeof(frames[packet].byte)];
			struct raw_filter_run run;

			memcpy(frame, frames[packet].byte, frames[packet].length);
			memcpy(frame + header, both, sizeof(both));
			scene_set_up(scene);
			raw_filter_add(&scene->filter, &rule);
			run = raw_filter_run(&scene->filter, 0, frame, frames[packet].length);
			check((run.outcome != OUTCOME_DROP_RULE) == (i == family), packets[packet].name,
			      "outcome of row", i);
		}
	}
}

/* A flood of more than ABI_PACE_RATE packets a jiffy is counted at that pace, on average as often as it came. */
SCENE_TEST(test_pace)
{
	enum { EACH = 16 * ABI_PACE_RATE, JIFFIES = 400 };
	const size_t packet = udp_of(FLOW_IPV4);
	const struct rule rule = parse_rule("proto udp");
	struct abi_counter *counter;
	__u64 before;

	scene_set_up(scene);
	raw_filter_add(&scene->filter, &rule);
	counter = &scene->filter.table.memory.counter[scene->filter.slot[0]];
	memset(counter, 0, sizeof(*counter));
	for (int jiffy = 0; jiffy < JIFFIES; jiffy++) {
		LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frames[packet].byte,
			    .data_size_in = frames[packet].length, .repeat = EACH);

		host_world.jiffies++;
		before = counter->packets;
		assert_int_equal(bpf_prog_test_run_opts(scene->filter.program[0], &opts), 0);
		/* What it has saved is spent after the first few. */
		if (jiffy > 20)
			check((counter->packets - before) % 16 == 0, "pace",
			      "counted one by one:", counter->packets - before);
		if (jiffy < 3)
			check(counter->packets - before == EACH, "pace",
			      "counted of the credit:", counter->packets - before);
	}
	check(counter->packets > EACH * JIFFIES * 97 / 100 && counter->packets < EACH * JIFFIES * 103ULL / 100, "pace",
	      "counted", counter->packets);
	raw_filter_count(&scene->filter, scene->filter.counted);
	/* After a pause there is credit again. */
	host_world.jiffies += ABI_PACE_BURST;
	before = counter->packets;
	send_some(scene, packet, 5);
	assert_int_equal(counter->packets - before, 5);
}

int main(void)
{
	return cmocka_run_group_tests(tests, open_at, scene_close);
}
