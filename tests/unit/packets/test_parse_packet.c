// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The parser on the host, with every packet of tests/unit/packets.c, whole and cut at every length. Also compares
 * its fast path with the whole parser.
 */
#include "unit/packets_fixture.h"

/*
 * Parses a copy on the heap that ends with the frame, so that a sanitizer sees reads beyond it. Parses it
 * again as a frame in several buffers; the result must be the same.
 */
static enum parse_result parse_copy(const struct packet_frame *frame, size_t length, struct flow *flow)
{
	__u8 *room = malloc(PACKET_ALIGN + length), *copy = room + PACKET_ALIGN;
	struct packet_bytes bytes = { copy, length };
	enum parse_result result, gathered;
	__u8 header[PARSE_HEADER_BYTES];
	struct flow again;

	memcpy(copy, frame->byte, length);
	memset(flow, PACKET_FILLER, sizeof(*flow));
	memset(&again, PACKET_FILLER, sizeof(again));
	result = parse_frame(copy, copy + length, flow);
	gathered = parse_buffers(&bytes, length, packet_load, packet_walk, header, 0, &again);
	free(room);
	check(gathered == result && flow_equal(&again, flow) && again.tcp_flags == flow->tcp_flags, "several buffers",
	      "parse result", gathered);
	return result;
}

FRAME_TEST(test_host_rows)
{
	for (size_t i = 0; i < PACKETS; i++) {
		struct flow flow;
		enum parse_result result = parse_copy(&frames[i], frames[i].length, &flow);

		check(result == packets[i].result, packets[i].name, "parse result", result);
		check(flow_equal(&flow, &packets[i].flow), packets[i].name, "flow, result", result);
	}
	print_message("%zu packets\n", PACKETS);
}

FRAME_TEST(test_host_truncations)
{
	for (size_t i = 0; i < PACKETS; i++) {
		for (size_t length = 0; length <= frames[i].length; length++) {
			struct flow flow, expected;
			enum parse_result result = parse_copy(&frames[i], length, &flow);

			check(result == packet_expect(&packets[i], &frames[i], length, &expected), packets[i].name,
			      "parse result, cut at", length);
			check(flow_equal(&flow, &expected), packets[i].name, "flow, cut at", length);
		}
	}
}

/* Up to 20 headers of 2 KiB in a frame of 64 KiB, as GRO makes them. Headers beyond 32 KiB are not read. */
TEST(test_host_long_headers)
{
	enum { BYTES = 65536, HEADER = 2048, IP = 14, FIRST = IP + 40 };
	__u8 *frame = calloc(1, BYTES);

	packet_put16(frame + 12, ETH_P_IPV6);
	frame[IP] = 0x60;
	frame[IP + 6] = IPPROTO_DSTOPTS;
	for (int headers = 1; headers <= 20; headers++) {
		__u8 *last = frame + FIRST + (headers - 1) * HEADER;
		const bool is_read = last + HEADER <= frame + PARSE_OFFSET_MASK;
		struct packet_bytes bytes = { frame, BYTES };
		__u8 header[PARSE_HEADER_BYTES];
		struct flow flow;

		last[0] = IPPROTO_UDP;
		last[1] = 255;
		packet_put16(last + HEADER + 2, 53);
		assert_int_equal(parse_frame(frame, frame + BYTES, &flow), is_read ? PARSE_OK : PARSE_TOO_MANY_HEADERS);
		assert_int_equal(flow.dport, is_read ? bpf_htons(53) : 0);
		assert_int_equal(parse_buffers(&bytes, BYTES, packet_load, packet_walk, header, 0, &flow),
				 is_read ? PARSE_OK : PARSE_TOO_MANY_HEADERS);
		last[0] = IPPROTO_DSTOPTS;
	}
	free(frame);
}

/* The flags are read where the frame, and the packet by IP's length, go on for so long. */
FRAME_TEST(test_host_tcp_flags)
{
	for (size_t i = 0; i < PACKETS; i++) {
		const struct packet_frame *frame = &frames[i];
		const bool is_tcp = packets[i].result == PARSE_OK && packets[i].flow.proto == IPPROTO_TCP;

		for (size_t length = 0; length <= frame->length; length++) {
			struct flow flow;

			parse_copy(frame, length, &flow);
			if (flow.tcp_flags & FLOW_TCP_READ)
				check(is_tcp && memchr(frame->byte, (__u8)flow.tcp_flags, length), packets[i].name,
				      "TCP flags, cut at", length);
			else
				check(!flow.tcp_flags, packets[i].name, "no TCP flags, cut at", length);
		}
	}
}

TEST(test_host_tcp_flags_of_every_value)
{
	static const __u8 headers[14 + 20 + 20] = { [12] = 8, [14] = 0x45, [17] = 40, [23] = IPPROTO_TCP };
	__u8 memory[PACKET_ALIGN + sizeof(headers)] __attribute__((aligned(4))), *frame = memory + PACKET_ALIGN;
	struct flow flow;

	memcpy(frame, headers, sizeof(headers));
	for (int flags = 0; flags < 256; flags++) {
		frame[14 + 20 + 13] = flags;
		assert_int_equal(parse_frame(frame, frame + sizeof(headers), &flow), PARSE_OK);
		assert_int_equal(flow.tcp_flags, FLOW_TCP_READ | flags);
		assert_int_equal(flow_continues(FLOW_IPV4, flow.port_kind, 0, flow.tcp_flags), (flags & 0x12) != 2);
	}
	/* Cut by the frame, and by IP's length. */
	assert_int_equal(parse_frame(frame, frame + 14 + 20 + 13, &flow), PARSE_OK);
	assert_int_equal(flow.tcp_flags, 0);
	frame[17] = 33;
	assert_int_equal(parse_frame(frame, frame + sizeof(headers), &flow), PARSE_OK);
	assert_int_equal(flow.tcp_flags, 0);
	assert_false(flow_continues(FLOW_IPV4, flow.port_kind, 0, flow.tcp_flags));
}

/* If parse_plain() accepts the frame, its flow is that of parse_any(). Returns whether it accepts. */
static bool check_plain(const struct packet_frame *frame, size_t length, const char *name)
{
	struct flow plain, any;
	bool is_plain;

	memset(&plain, PACKET_FILLER, sizeof(plain));
	memset(&any, PACKET_FILLER, sizeof(any));
	is_plain = parse_plain(frame->byte, frame->byte + length, &plain);
	if (is_plain) {
		check(parse_any(frame->byte, frame->byte + length, &any) == PARSE_OK, name,
		      "plain, and not to the whole parser, cut at", length);
		check(flow_equal(&plain, &any) && plain.tcp_flags == any.tcp_flags, name,
		      "flow of a plain frame, cut at", length);
	}
	return is_plain;
}

/* Only with hop-by-hop options may a packet of payload length 0 be longer than its header. */
FRAME_TEST(test_host_no_payload)
{
	for (size_t i = 0; i < PACKETS; i++) {
		const __u8 *ip = frames[i].byte + ETH_HLEN;
		struct flow flow;

		if (ip[-2] != 0x86 || ip[-1] != 0xdd || ip[0] >> 4 != 6 || ip[4] || ip[5])
			continue;
		parse_copy(&frames[i], frames[i].length, &flow);
		check(flow.length == (ip[6] ? 40 : 65535), packets[i].name, "length", flow.length);
	}
}

/* Every packet with random bytes changed, some of them cut. */
FRAME_TEST(test_host_plain_frames)
{
	enum { ROUNDS = 20000, CHANGES_MAX = 3 };
	uint64_t random = 1;
	size_t taken = 0;

	for (size_t i = 0; i < PACKETS; i++)
		for (int round = 0; round < ROUNDS; round++) {
			struct packet_frame frame = frames[i];
			size_t length = frame.length;

			for (uint64_t c = random_below(&random, CHANGES_MAX + 1); c; c--) {
				__u8 *byte = &frame.byte[random_below(&random, length)];

				*byte ^= random_below(&random, 2) ? random_next(&random) :
								    1ULL << random_below(&random, 8);
			}
			if (random_below(&random, 4) == 0)
				length = random_below(&random, length + 1);
			taken += check_plain(&frame, length, packets[i].name);
		}
	print_message("%zu of %zu frames are plain\n", taken, PACKETS * ROUNDS);
	assert_true(taken > ROUNDS);
}

int main(void)
{
	build_frames();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
