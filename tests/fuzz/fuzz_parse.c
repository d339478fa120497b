// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Fuzzes the packet parser: input is a frame. What is told of it makes sense in itself, the short way says what the long
 * way says, so does the way through several buffers, and a frame that is cut is truncated or means what the whole frame
 * means.
 */
#include "fuzz.h"

#include "unit/packets.h"

#define FRAME_BYTES_MAX 4096
#define CUTS_ALL 96 /* frames up to that length are cut at every length, longer ones at as many */

struct parsed {
	enum parse_result result;
	struct flow flow;
};

/* By the words that are looked up: what stands behind an IPv4 address in its place says nothing. */
static bool flow_equal(const struct flow *a, const struct flow *b)
{
	struct flow_key a_key = {}, b_key = {};

	if (a->family != b->family)
		return false;
	if (a->family == FLOW_NO_FAMILY)
		return true;
	flow_pack(a, &a_key);
	flow_pack(b, &b_key);
	return !memcmp(&a_key, &b_key, sizeof(a_key));
}

static size_t address_bytes(const struct flow *flow)
{
	return flow->family == FLOW_IPV4 ? 4 : 16;
}

/* A first fragment that ends before the flags of TCP, but has the ports. */
static bool lacks_flags(const struct parsed *parsed)
{
	return parsed->result == PARSE_TOO_MANY_HEADERS && parsed->flow.port_kind == FLOW_PORTS &&
	       parsed->flow.proto == IPPROTO_TCP && parsed->flow.fragment == FLOW_FRAGMENT_FIRST &&
	       !parsed->flow.tcp_flags;
}

static void check_family(const struct parsed *parsed)
{
	const struct flow *flow = &parsed->flow;
	const bool has_family = flow->family < FLOW_FAMILIES;

	fuzz_check(flow->family <= FLOW_NO_FAMILY, "family %d", flow->family);
	switch (parsed->result) {
	case PARSE_OK:
	case PARSE_LATER_FRAGMENT:
		fuzz_check(has_family, "no family, result %d", parsed->result);
		break;
	case PARSE_TOO_MANY_HEADERS:
		fuzz_check(flow->family != FLOW_IPV4 || lacks_flags(parsed), "family %d", flow->family);
		break;
	case PARSE_NOT_IP:
		fuzz_check(!has_family, "family %d", flow->family);
		break;
	default:
		fuzz_check(parsed->result == PARSE_TRUNCATED || parsed->result == PARSE_MALFORMED, "result %d",
			   parsed->result);
	}
	if (!has_family)
		fuzz_check(!flow->src.v4 && !flow->dst.v4 && !flow->proto, "fields without a family");
}

static void check_ports(const struct parsed *parsed)
{
	const struct flow *flow = &parsed->flow;
	const bool is_icmp = flow->proto == IPPROTO_ICMP || flow->proto == IPPROTO_ICMPV6;
	const enum flow_port_kind kind = parsed->result != PARSE_OK && !lacks_flags(parsed) ? FLOW_NO_PORTS :
					 is_icmp                     ? FLOW_ICMP :
					 rule_has_ports(flow->proto) ? FLOW_PORTS :
								       FLOW_NO_PORTS;

	fuzz_check(flow->port_kind == kind, "result %d, protocol %d, ports %d", parsed->result, flow->proto,
		   flow->port_kind);
	if (kind == FLOW_NO_PORTS)
		fuzz_check(!flow->sport && !flow->dport, "ports where there are none");
	if (kind == FLOW_ICMP)
		fuzz_check(bpf_ntohs(flow->sport) < 256 && bpf_ntohs(flow->dport) < 256, "ICMP type or code");
}

static void check_same(const char *way, const struct parsed *parsed, const struct parsed *other)
{
	fuzz_check(other->result == parsed->result && flow_equal(&other->flow, &parsed->flow) &&
			   other->flow.tcp_flags == parsed->flow.tcp_flags,
		   "%s: results %d and %d", way, parsed->result, other->result);
}

/* In memory of exactly `size` bytes, so that a sanitizer sees what is read beyond. */
static struct parsed parse(const uint8_t *data, size_t size)
{
	__u8 *room = malloc(size + PACKET_ALIGN), *frame = room + PACKET_ALIGN;
	__u8 header[PARSE_HEADER_BYTES];
	struct parsed parsed, plain, gathered;

	memcpy(frame, data, size);
	memset(&parsed, 0xa5, sizeof(parsed));
	memset(&plain, 0xa5, sizeof(plain));
	memset(&gathered, 0xa5, sizeof(gathered));
	parsed.result = parse_any(frame, frame + size, &parsed.flow);
	if (parse_plain(frame, frame + size, &plain.flow))
		fuzz_check(parsed.result == PARSE_OK && flow_equal(&plain.flow, &parsed.flow),
			   "the short way differs, result %d", parsed.result);
	plain.result = parse_frame(frame, frame + size, &plain.flow);
	check_same("whichever way is shorter", &parsed, &plain);
	gathered.result = parse_buffers(&(struct packet_bytes){ frame, size }, size, packet_load, packet_walk, header, 0,
					&gathered.flow);
	check_same("several buffers", &parsed, &gathered);
	free(room);
	check_family(&parsed);
	check_ports(&parsed);
	return parsed;
}

static void check_cut(const struct parsed *whole, const struct parsed *cut, size_t length)
{
	struct flow read = cut->flow;

	/* The flags of TCP come after the ports, and may be cut off. */
	if (!read.tcp_flags)
		read.tcp_flags = whole->flow.tcp_flags;
	/* A cut in the extension headers of a first fragment makes them too many. */
	if (cut->result != PARSE_TRUNCATED &&
	    (cut->result != PARSE_TOO_MANY_HEADERS || cut->flow.family == FLOW_NO_FAMILY)) {
		fuzz_check(cut->result == whole->result && flow_equal(&read, &whole->flow),
			   "cut at %zu: result %d, of the whole %d", length, cut->result, whole->result);
		return;
	}
	if (cut->flow.family != FLOW_NO_FAMILY)
		fuzz_check(cut->flow.family == whole->flow.family &&
				   !memcmp(&cut->flow.src, &whole->flow.src, address_bytes(&cut->flow)) &&
				   !memcmp(&cut->flow.dst, &whole->flow.dst, address_bytes(&cut->flow)),
			   "cut at %zu: other addresses", length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct parsed whole, cut;
	size_t step;

	if (size > FRAME_BYTES_MAX)
		return 0;
	whole = parse(data, size);
	step = size / CUTS_ALL + 1;
	for (size_t length = 0; length < size; length += step) {
		cut = parse(data, length);
		check_cut(&whole, &cut, length);
	}
	return 0;
}
