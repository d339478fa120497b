// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The packets: a row each, with what the parser must say of it. Included by packets.h. To add a
 * packet, add a row; every test runs over all rows, and over every truncation of each.
 */

/* clang-format off */

/* A row overrides the defaults of a piece: version, header words. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"

/* Pieces. Arguments in ... are designated members of struct packet_piece. */
#define PIECE(how, names, size, ...) \
	{ .build = packet_##how, .number = (names), .bytes = (size), __VA_ARGS__ }
#define ETH PIECE(ethernet, 0, 14)
#define VLAN(tpid) PIECE(vlan, tpid, 4)
#define PPPOE(protocol) PIECE(pppoe, ETH_P_PPP_SES, 8, .first = (protocol))
#define PPPOE_SHORT(protocol) PIECE(pppoe, ETH_P_PPP_SES, 7, .first = (protocol))
#define RAW(names, size) PIECE(raw, names, size)
#define IP4(...) \
	{ .build = packet_ipv4, .number = ETH_P_IP, .version = 4, .words = 5, ##__VA_ARGS__ }
#define IP6(...) { .build = packet_ipv6, .number = ETH_P_IPV6, .version = 6, ##__VA_ARGS__ }
#define EXT(type, size, ...) PIECE(extension, type, size, __VA_ARGS__)
#define FRAGMENT(units, more) EXT(IPPROTO_FRAGMENT, 8, .fragment = (units) << 3 | (more))
#define HEADER(type, size, sport, dport, ...) \
	PIECE(ports, type, size, .first = (sport), .second = (dport), ##__VA_ARGS__)
#define UDP(sport, dport) HEADER(IPPROTO_UDP, 8, sport, dport)
#define TCP(sport, dport) HEADER(IPPROTO_TCP, 20, sport, dport)
#define ICMP(type, code) PIECE(icmp, IPPROTO_ICMP, 8, .first = (type), .second = (code))
#define ICMP6(type, code) PIECE(icmp, IPPROTO_ICMPV6, 8, .first = (type), .second = (code))
#define PAD(size) PIECE(padding, 0, size)
#define LACKS(size) PIECE(missing, 0, size)
#define STATED(n) .stated = PACKET_STATED(n)

/* Flows. */
#define V4(protocol, ...) { .family = FLOW_IPV4, .proto = (protocol), \
	.src.v4 = bpf_htonl(PACKET_SRC_IPV4), .dst.v4 = bpf_htonl(PACKET_DST_IPV4), ##__VA_ARGS__ }
#define V6(protocol, ...) { .family = FLOW_IPV6, .proto = (protocol), \
	.src.byte = PACKET_SRC_IPV6, .dst.byte = PACKET_DST_IPV6, ##__VA_ARGS__ }
#define NO_FLOW { .family = FLOW_NO_FAMILY }
#define PAIR(kind, a, b) .port_kind = (kind), .sport = bpf_htons(a), .dport = bpf_htons(b)
#define PORTS(sport, dport) PAIR(FLOW_PORTS, sport, dport)
#define TYPE(type, code) PAIR(FLOW_ICMP, type, code)
#define DNS4 V4(IPPROTO_UDP, PORTS(1234, 53))
#define DNS6 V6(IPPROTO_UDP, PORTS(1234, 53))

/* Rows that differ in one number. */
#define WITH_IHL(n) \
	{ "ipv4, ihl " #n, { ETH, IP4(.words = n), UDP(1234, 53) }, PARSE_OK, DNS4 }
#define IHL_TOO_SMALL(n) \
	{ "ipv4, ihl " #n, { ETH, IP4(.words = n), UDP(1234, 53) }, PARSE_MALFORMED, NO_FLOW }
#define BEHIND(type) \
	{ "ipv6, " #type, { ETH, IP6(), EXT(type, 16), UDP(1234, 53) }, PARSE_OK, DNS6 }
#define TAGS(n) PIECE(vlan, ETH_P_8021Q, 4, .times = n)
#define OPTIONS(n) EXT(IPPROTO_DSTOPTS, 8, .times = n)
#define CHAIN(n) \
	{ "ipv6, " #n " extension headers", { ETH, IP6(), CHAIN_##n, UDP(1234, 53) }, \
	  PARSE_OK, DNS6 }
#define NO_PORTS4(type) \
	{ "ipv4, " #type, { ETH, IP4(), RAW(type, 24) }, PARSE_OK, V4(type) }
#define NO_PORTS6(type) \
	{ "ipv6, " #type, { ETH, IP6(), RAW(type, 24) }, PARSE_OK, V6(type) }
#define HAS_PORTS(type) \
	{ "ipv4, " #type, { ETH, IP4(), HEADER(type, 20, 5060, 443) }, \
	  PARSE_OK, V4(type, PORTS(5060, 443)) }, \
	{ "ipv6, " #type, { ETH, IP6(), HEADER(type, 20, 5060, 443) }, \
	  PARSE_OK, V6(type, PORTS(5060, 443)) }
#define CHAIN_1 EXT(IPPROTO_HOPOPTS, 8)
#define CHAIN_2 CHAIN_1, EXT(IPPROTO_DSTOPTS, 16)
#define CHAIN_3 CHAIN_2, EXT(IPPROTO_ROUTING, 24)
#define CHAIN_4 CHAIN_3, FRAGMENT(0, 1)
#define CHAIN_5 CHAIN_4, EXT(IPPROTO_AH, 24)
#define CHAIN_6 CHAIN_5, EXT(IPPROTO_DSTOPTS, 8)
#define CHAIN_7 CHAIN_6, EXT(PARSE_PROTO_MOBILITY, 8)
#define CHAIN_8 CHAIN_7, EXT(PARSE_PROTO_SHIM6, 8)

static const struct packet packets[] = {
	/* Ethernet. */
	{ "empty frame", { }, PARSE_TRUNCATED, NO_FLOW },
	{ "runt of 13 bytes", { ETH, LACKS(1) }, PARSE_TRUNCATED, NO_FLOW },
	{ "ethernet header alone", { ETH, RAW(ETH_P_IP, 0) }, PARSE_TRUNCATED, NO_FLOW },
	{ "arp", { ETH, RAW(ETH_P_ARP, 28) }, PARSE_NOT_IP, NO_FLOW },
	{ "arp in a vlan", { ETH, VLAN(ETH_P_8021Q), RAW(ETH_P_ARP, 28) }, PARSE_NOT_IP, NO_FLOW },
	{ "mpls", { ETH, RAW(ETH_P_MPLS_UC, 60) }, PARSE_NOT_IP, NO_FLOW },
	{ "llc, length 38", { ETH, RAW(38, 38) }, PARSE_NOT_IP, NO_FLOW },
	{ "llc, length 0", { ETH, RAW(0, 46) }, PARSE_NOT_IP, NO_FLOW },
	{ "llc, greatest length",
	  { ETH, RAW(PACKET_ETHERTYPE_MIN - 1, 60) }, PARSE_NOT_IP, NO_FLOW },

	/* VLAN tags. */
	{ "ipv4 in 802.1q", { ETH, VLAN(ETH_P_8021Q), IP4(), UDP(1234, 53) }, PARSE_OK, DNS4 },
	{ "ipv4 in 802.1ad", { ETH, VLAN(ETH_P_8021AD), IP4(), UDP(1234, 53) }, PARSE_OK, DNS4 },
	{ "ipv4 in qinq", { ETH, VLAN(ETH_P_8021AD), VLAN(ETH_P_8021Q), IP4(), UDP(1234, 53) },
	  PARSE_OK, DNS4 },
	{ "ipv4 in two 802.1q", { ETH, VLAN(ETH_P_8021Q), VLAN(ETH_P_8021Q), IP4(), UDP(1234, 53) },
	  PARSE_OK, DNS4 },
	{ "ipv6 in 802.1q", { ETH, VLAN(ETH_P_8021Q), IP6(), UDP(1234, 53) }, PARSE_OK, DNS6 },
	{ "ipv6 in qinq", { ETH, VLAN(ETH_P_8021AD), VLAN(ETH_P_8021Q), IP6(), UDP(1234, 53) },
	  PARSE_OK, DNS6 },
	{ "ipv4 behind three tags",
	  { ETH, VLAN(ETH_P_8021AD), VLAN(ETH_P_8021Q), VLAN(ETH_P_8021Q), IP4(), UDP(1234, 53) },
	  PARSE_OK, DNS4 },
	{ "ipv4 behind 7 tags", { ETH, TAGS(7), IP4(), UDP(1234, 53) }, PARSE_OK, DNS4 },
	{ "ipv4 behind 64 tags", { ETH, TAGS(64), IP4(), UDP(1234, 53) }, PARSE_OK, DNS4 },
	{ "ipv6 behind 64 tags", { ETH, TAGS(63), VLAN(ETH_P_8021AD), IP6(), UDP(1234, 53) }, PARSE_OK, DNS6 },
	{ "arp behind 64 tags", { ETH, TAGS(64), RAW(ETH_P_ARP, 28) }, PARSE_NOT_IP, NO_FLOW },
	{ "ipv4 behind 65 tags", { ETH, TAGS(65), IP4(), UDP(1234, 53) }, PARSE_TOO_MANY_HEADERS, NO_FLOW },
	{ "ipv6 behind 65 tags", { ETH, TAGS(64), VLAN(ETH_P_8021AD), IP6(), UDP(1234, 53) },
	  PARSE_TOO_MANY_HEADERS, NO_FLOW },
	{ "llc behind a tag", { ETH, VLAN(ETH_P_8021Q), RAW(38, 38) }, PARSE_NOT_IP, NO_FLOW },

	/* PPPoE. */
	{ "ipv4 in pppoe", { ETH, PPPOE(PARSE_PPP_IP), IP4(), UDP(1234, 53) }, PARSE_OK, DNS4 },
	{ "ipv6 in pppoe", { ETH, PPPOE(PARSE_PPP_IPV6), IP6(), CHAIN_3, UDP(1234, 53) }, PARSE_OK, DNS6 },
	{ "ipv4 in pppoe in 802.1q",
	  { ETH, VLAN(ETH_P_8021Q), PPPOE(PARSE_PPP_IP), IP4(.words = 9), UDP(1234, 53) }, PARSE_OK, DNS4 },
	{ "ipv6 in pppoe in qinq",
	  { ETH, VLAN(ETH_P_8021AD), VLAN(ETH_P_8021Q), PPPOE(PARSE_PPP_IPV6), IP6(), UDP(1234, 53) },
	  PARSE_OK, DNS6 },
	{ "ipv4 in pppoe behind 64 tags",
	  { ETH, TAGS(64), PPPOE(PARSE_PPP_IP), IP4(), UDP(1234, 53) }, PARSE_OK, DNS4 },
	{ "ipv4 in pppoe, protocol of one byte",
	  { ETH, PPPOE_SHORT(PARSE_PPP_IP), IP4(), UDP(1234, 53) }, PARSE_OK, DNS4 },
	{ "ipv6 in pppoe, protocol of one byte",
	  { ETH, VLAN(ETH_P_8021Q), PPPOE_SHORT(PARSE_PPP_IPV6), IP6(), UDP(1234, 53) }, PARSE_OK, DNS6 },
	{ "lcp in pppoe", { ETH, PPPOE(0xc021), RAW(0, 40) }, PARSE_NOT_IP, NO_FLOW },
	{ "ipcp in pppoe", { ETH, PPPOE(0x8021), RAW(0, 40) }, PARSE_NOT_IP, NO_FLOW },
	{ "other protocols that end in 0x21", { ETH, PPPOE(0x0221), RAW(0, 40) }, PARSE_NOT_IP, NO_FLOW },
	{ "pppoe discovery", { ETH, RAW(ETH_P_PPP_DISC, 40) }, PARSE_NOT_IP, NO_FLOW },

	/* Transport protocols. */
	HAS_PORTS(IPPROTO_TCP),
	HAS_PORTS(IPPROTO_UDP),
	HAS_PORTS(IPPROTO_UDPLITE),
	HAS_PORTS(IPPROTO_SCTP),
	HAS_PORTS(IPPROTO_DCCP),
	{ "ipv4, ports 0", { ETH, IP4(), UDP(0, 0) }, PARSE_OK, V4(IPPROTO_UDP, PORTS(0, 0)) },
	{ "ipv6, ports 0", { ETH, IP6(), UDP(0, 0) }, PARSE_OK, V6(IPPROTO_UDP, PORTS(0, 0)) },
	{ "ipv4, ports 65535", { ETH, IP4(), TCP(65535, 65535) },
	  PARSE_OK, V4(IPPROTO_TCP, PORTS(65535, 65535)) },
	{ "ipv4, echo request",
	  { ETH, IP4(), ICMP(8, 0) }, PARSE_OK, V4(IPPROTO_ICMP, TYPE(8, 0)) },
	{ "ipv4, echo reply", { ETH, IP4(), ICMP(0, 0) }, PARSE_OK, V4(IPPROTO_ICMP, TYPE(0, 0)) },
	{ "ipv4, port unreachable",
	  { ETH, IP4(), ICMP(3, 3) }, PARSE_OK, V4(IPPROTO_ICMP, TYPE(3, 3)) },
	{ "ipv6, echo request", { ETH, IP6(), ICMP6(128, 0) },
	  PARSE_OK, V6(IPPROTO_ICMPV6, TYPE(128, 0)) },
	{ "ipv6, administratively prohibited", { ETH, IP6(), ICMP6(1, 1) },
	  PARSE_OK, V6(IPPROTO_ICMPV6, TYPE(1, 1)) },
	{ "icmp in ipv6", { ETH, IP6(), ICMP(8, 0) }, PARSE_OK, V6(IPPROTO_ICMP, TYPE(8, 0)) },
	{ "icmpv6 in ipv4",
	  { ETH, IP4(), ICMP6(128, 0) }, PARSE_OK, V4(IPPROTO_ICMPV6, TYPE(128, 0)) },
	NO_PORTS4(IPPROTO_GRE), NO_PORTS4(IPPROTO_ESP), NO_PORTS4(IPPROTO_AH),
	NO_PORTS4(IPPROTO_IGMP), NO_PORTS4(IPPROTO_IPIP), NO_PORTS4(IPPROTO_IPV6),
	NO_PORTS4(IPPROTO_RAW), NO_PORTS4(IPPROTO_IP), NO_PORTS4(IPPROTO_FRAGMENT),
	NO_PORTS6(IPPROTO_GRE), NO_PORTS6(IPPROTO_ESP), NO_PORTS6(IPPROTO_NONE),
	NO_PORTS6(IPPROTO_IPIP), NO_PORTS6(IPPROTO_IPV6), NO_PORTS6(IPPROTO_RAW),
	{ "ipv4, empty gre", { ETH, IP4(), RAW(IPPROTO_GRE, 0) }, PARSE_OK, V4(IPPROTO_GRE) },
	{ "ipv6, no next header, no payload", { ETH, IP6(), RAW(IPPROTO_NONE, 0), PAD(6) },
	  PARSE_OK, V6(IPPROTO_NONE) },

	/* IPv4: options, fragments. */
	WITH_IHL(5), WITH_IHL(6), WITH_IHL(7), WITH_IHL(8), WITH_IHL(9), WITH_IHL(10), WITH_IHL(11),
	WITH_IHL(12), WITH_IHL(13), WITH_IHL(14), WITH_IHL(15),
	{ "ipv4, options, icmp", { ETH, IP4(.words = 15), ICMP(8, 0) },
	  PARSE_OK, V4(IPPROTO_ICMP, TYPE(8, 0)) },
	{ "ipv4, options, igmp", { ETH, IP4(.words = 6), RAW(IPPROTO_IGMP, 8) },
	  PARSE_OK, V4(IPPROTO_IGMP) },
	{ "ipv4, options past the frame, igmp",
	  { ETH, IP4(.words = 15), RAW(IPPROTO_IGMP, 0), LACKS(1) },
	  PARSE_TRUNCATED, V4(IPPROTO_IGMP) },
	{ "ipv4, do not fragment",
	  { ETH, IP4(.fragment = PACKET_DF), UDP(1234, 53) }, PARSE_OK, DNS4 },
	{ "ipv4, first fragment",
	  { ETH, IP4(.fragment = PACKET_MF), UDP(1234, 53) }, PARSE_OK, DNS4 },
	{ "ipv4, first fragment, 3 bytes",
	  { ETH, IP4(.fragment = PACKET_MF), HEADER(IPPROTO_TCP, 3, 1, 2) },
	  PARSE_TRUNCATED, V4(IPPROTO_TCP) },
	{ "ipv4, first fragment, empty",
	  { ETH, IP4(.fragment = PACKET_MF), HEADER(IPPROTO_TCP, 0, 1, 2) },
	  PARSE_TRUNCATED, V4(IPPROTO_TCP) },
	{ "ipv4, first fragment, 4 bytes",
	  { ETH, IP4(.fragment = PACKET_MF), HEADER(IPPROTO_TCP, 4, 1, 2) },
	  PARSE_TOO_MANY_HEADERS, V4(IPPROTO_TCP, PORTS(1, 2)) },
	{ "ipv4, first fragment of tcp, its flags in the unit that Linux cuts off",
	  { ETH, IP4(.fragment = PACKET_MF), HEADER(IPPROTO_TCP, 15, 1, 2) },
	  PARSE_TOO_MANY_HEADERS, V4(IPPROTO_TCP, PORTS(1, 2)) },
	{ "ipv4, first fragment of udp, 8 bytes",
	  { ETH, IP4(.fragment = PACKET_MF), HEADER(IPPROTO_UDP, 8, 1, 2) },
	  PARSE_OK, V4(IPPROTO_UDP, PORTS(1, 2)) },
	{ "ipv6, first fragment of tcp, 8 bytes",
	  { ETH, IP6(), FRAGMENT(0, 1), HEADER(IPPROTO_TCP, 8, 1, 2) },
	  PARSE_TOO_MANY_HEADERS, V6(IPPROTO_TCP, PORTS(1, 2)) },
	{ "ipv4, fragment at 8", { ETH, IP4(.fragment = PACKET_MF | 1), UDP(1234, 53) },
	  PARSE_LATER_FRAGMENT, V4(IPPROTO_UDP) },
	{ "ipv4, later fragment like dns", { ETH, IP4(.fragment = PACKET_MF | 185), UDP(1234, 53) },
	  PARSE_LATER_FRAGMENT, V4(IPPROTO_UDP) },
	{ "ipv4, later fragment like ports 0", { ETH, IP4(.fragment = PACKET_MF | 185), UDP(0, 0) },
	  PARSE_LATER_FRAGMENT, V4(IPPROTO_UDP) },
	{ "ipv4, last fragment", { ETH, IP4(.fragment = 0x1fff), TCP(1234, 53) },
	  PARSE_LATER_FRAGMENT, V4(IPPROTO_TCP) },
	{ "ipv4, last fragment, 1 byte",
	  { ETH, IP4(.fragment = 370), HEADER(IPPROTO_UDP, 1, 0, 0), PAD(25) },
	  PARSE_LATER_FRAGMENT, V4(IPPROTO_UDP) },
	{ "ipv4, later fragment, df", { ETH, IP4(.fragment = PACKET_DF | 1), ICMP(8, 0) },
	  PARSE_LATER_FRAGMENT, V4(IPPROTO_ICMP) },
	{ "ipv4, later fragment, options", { ETH, IP4(.words = 8, .fragment = 185), UDP(1234, 53) },
	  PARSE_LATER_FRAGMENT, V4(IPPROTO_UDP) },
	{ "ipv4, later fragment, options past the frame",
	  { ETH, IP4(.words = 8, .fragment = 185), HEADER(IPPROTO_UDP, 0, 0, 0), LACKS(4) },
	  PARSE_TRUNCATED, V4(IPPROTO_UDP) },
	{ "ipv4, reserved flag", { ETH, IP4(.fragment = 0x8000), UDP(1234, 53) }, PARSE_OK, DNS4 },

	/* IPv4: what contradicts itself, and lengths. */
	IHL_TOO_SMALL(0), IHL_TOO_SMALL(1), IHL_TOO_SMALL(4),
	{ "ipv4, version 6", { ETH, IP4(.version = 6), UDP(1234, 53) }, PARSE_MALFORMED, NO_FLOW },
	{ "ipv4, version 0", { ETH, IP4(.version = 0), UDP(1234, 53) }, PARSE_MALFORMED, NO_FLOW },
	{ "ipv4, total length 0", { ETH, IP4(STATED(0)), UDP(1234, 53) }, PARSE_OK, DNS4 },
	{ "ipv4, total length 1", { ETH, IP4(STATED(1)), UDP(1234, 53) }, PARSE_MALFORMED, V4(IPPROTO_UDP) },
	{ "ipv4, total length 19", { ETH, IP4(STATED(19)), UDP(1234, 53) },
	  PARSE_MALFORMED, V4(IPPROTO_UDP) },
	{ "ipv4, total length within options", { ETH, IP4(.words = 10, STATED(39)), UDP(1234, 53) },
	  PARSE_MALFORMED, V4(IPPROTO_UDP) },
	{ "ipv4, total length 0, later fragment",
	  { ETH, IP4(.fragment = 1, STATED(0)), UDP(1234, 53) },
	  PARSE_LATER_FRAGMENT, V4(IPPROTO_UDP) },
	{ "ipv4, total length ends at the header", { ETH, IP4(STATED(20)), UDP(1234, 53) },
	  PARSE_TRUNCATED, V4(IPPROTO_UDP) },
	{ "ipv4, total length ends in the ports", { ETH, IP4(STATED(23)), UDP(1234, 53) },
	  PARSE_TRUNCATED, V4(IPPROTO_UDP) },
	{ "ipv4, total length ends behind the ports", { ETH, IP4(STATED(24)), UDP(1234, 53) },
	  PARSE_OK, DNS4 },
	{ "ipv4, total length ends behind the icmp type", { ETH, IP4(STATED(21)), ICMP(8, 0) },
	  PARSE_TRUNCATED, V4(IPPROTO_ICMP) },
	{ "ipv4, total length ends behind the icmp code", { ETH, IP4(STATED(22)), ICMP(8, 0) },
	  PARSE_OK, V4(IPPROTO_ICMP, TYPE(8, 0)) },
	{ "ipv4, padding like ports", { ETH, IP4(STATED(20)), UDP(1234, 53), PAD(18) },
	  PARSE_TRUNCATED, V4(IPPROTO_UDP) },
	{ "ipv4, padding", { ETH, IP4(), UDP(1234, 53), PAD(18) }, PARSE_OK, DNS4 },
	{ "ipv4, total length past the frame", { ETH, IP4(STATED(65535)), UDP(1234, 53) },
	  PARSE_OK, DNS4 },
	{ "ipv4, header alone, udp", { ETH, IP4(), UDP(1234, 53), LACKS(8) },
	  PARSE_TRUNCATED, V4(IPPROTO_UDP) },

	/* IPv6. */
	{ "ipv6, version 4", { ETH, IP6(.version = 4), UDP(1234, 53) }, PARSE_MALFORMED, NO_FLOW },
	{ "ipv6, version 15",
	  { ETH, IP6(.version = 15), UDP(1234, 53) }, PARSE_MALFORMED, NO_FLOW },
	{ "ipv6, payload length 0 (BIG TCP)", { ETH, IP6(STATED(0)), TCP(1234, 53), PAD(1400) },
	  PARSE_OK, V6(IPPROTO_TCP, PORTS(1234, 53)) },
	{ "ipv6, payload length 0, no next header", { ETH, IP6(STATED(0)), RAW(IPPROTO_NONE, 0), PAD(6) },
	  PARSE_OK, V6(IPPROTO_NONE) },
	{ "ipv6, payload length ends in the ports", { ETH, IP6(STATED(3)), UDP(1234, 53) },
	  PARSE_TRUNCATED, V6(IPPROTO_UDP) },
	{ "ipv6, payload length ends behind the ports", { ETH, IP6(STATED(4)), UDP(1234, 53) },
	  PARSE_OK, DNS6 },
	{ "ipv6, payload length ends behind the icmp type", { ETH, IP6(STATED(1)), ICMP6(128, 0) },
	  PARSE_TRUNCATED, V6(IPPROTO_ICMPV6) },
	{ "ipv6, payload length past the frame", { ETH, IP6(STATED(65535)), UDP(1234, 53) },
	  PARSE_OK, DNS6 },
	{ "ipv6, padding", { ETH, IP6(), UDP(1234, 53), PAD(6) }, PARSE_OK, DNS6 },
	{ "ipv6, padding like ports",
	  { ETH, IP6(STATED(8)), EXT(IPPROTO_HOPOPTS, 8), UDP(1234, 53) },
	  PARSE_TRUNCATED, V6(IPPROTO_UDP) },
	{ "ipv6, jumbogram", { ETH, IP6(STATED(0)), EXT(IPPROTO_HOPOPTS, 8), UDP(1234, 53) },
	  PARSE_OK, DNS6 },
	{ "ipv6, payload length 0, no hop-by-hop",
	  { ETH, IP6(STATED(0)), EXT(IPPROTO_DSTOPTS, 8), UDP(1234, 53) }, PARSE_OK, DNS6 },

	/* IPv6: extension headers. */
	BEHIND(IPPROTO_HOPOPTS), BEHIND(IPPROTO_ROUTING), BEHIND(IPPROTO_DSTOPTS),
	BEHIND(IPPROTO_AH),
	BEHIND(PARSE_PROTO_MOBILITY), BEHIND(PARSE_PROTO_HIP), BEHIND(PARSE_PROTO_SHIM6),
	{ "ipv6, ah of 12 bytes",
	  { ETH, IP6(), EXT(IPPROTO_AH, 12), UDP(1234, 53) }, PARSE_OK, DNS6 },
	{ "ipv6, ah of 1028 bytes", { ETH, IP6(), EXT(IPPROTO_AH, 1028), UDP(1234, 53) },
	  PARSE_OK, DNS6 },
	{ "ipv6, extension header of 2048 bytes",
	  { ETH, IP6(), EXT(IPPROTO_DSTOPTS, 2048), TCP(1234, 53) },
	  PARSE_OK, V6(IPPROTO_TCP, PORTS(1234, 53)) },
	{ "ipv6, esp behind hop-by-hop",
	  { ETH, IP6(), EXT(IPPROTO_HOPOPTS, 8), RAW(IPPROTO_ESP, 24) },
	  PARSE_OK, V6(IPPROTO_ESP) },
	{ "ipv6, no next header behind options",
	  { ETH, IP6(), EXT(IPPROTO_DSTOPTS, 8), RAW(IPPROTO_NONE, 0) },
	  PARSE_OK, V6(IPPROTO_NONE) },
	{ "ipv6, icmpv6 behind hop-by-hop", { ETH, IP6(), EXT(IPPROTO_HOPOPTS, 8), ICMP6(143, 0) },
	  PARSE_OK, V6(IPPROTO_ICMPV6, TYPE(143, 0)) },
	CHAIN(1), CHAIN(2), CHAIN(3), CHAIN(4), CHAIN(5), CHAIN(6), CHAIN(7), CHAIN(8),
	{ "ipv6, 8 extension headers, esp", { ETH, IP6(), CHAIN_8, RAW(IPPROTO_ESP, 8) },
	  PARSE_OK, V6(IPPROTO_ESP) },
	{ "ipv6, 8 extension headers in qinq",
	  { ETH, VLAN(ETH_P_8021AD), VLAN(ETH_P_8021Q), IP6(), CHAIN_8, UDP(1234, 53) },
	  PARSE_OK, DNS6 },
	{ "ipv6, 9 extension headers",
	  { ETH, IP6(), CHAIN_8, EXT(PARSE_PROTO_HIP, 8), UDP(1234, 53) }, PARSE_OK, DNS6 },
	{ "ipv6, 181 extension headers, 1500 bytes", { ETH, IP6(), OPTIONS(181), HEADER(IPPROTO_UDP, 12, 1234, 53) },
	  PARSE_OK, DNS6 },
	{ "ipv6, 182 extension headers", { ETH, TAGS(64), IP6(), OPTIONS(182), UDP(1234, 53) }, PARSE_OK, DNS6 },
	{ "ipv6, 183 extension headers", { ETH, IP6(), OPTIONS(182), EXT(PARSE_PROTO_HIP, 8), UDP(1234, 53) },
	  PARSE_TOO_MANY_HEADERS, V6(PARSE_PROTO_HIP) },
	{ "ipv6, 183 extension headers, payload ends in the 182nd",
	  { ETH, IP6(STATED(1450)), OPTIONS(182), EXT(PARSE_PROTO_HIP, 8), UDP(1234, 53) },
	  PARSE_TRUNCATED, V6(PARSE_PROTO_HIP) },
	{ "ipv6, extension header past the frame",
	  { ETH, IP6(), EXT(IPPROTO_ROUTING, 16, STATED(4)), UDP(1234, 53) },
	  PARSE_TRUNCATED, V6(IPPROTO_ROUTING) },
	{ "ipv6, second extension header past the frame",
	  { ETH, IP6(), EXT(IPPROTO_HOPOPTS, 8), EXT(IPPROTO_DSTOPTS, 8, STATED(255)), UDP(1, 2) },
	  PARSE_TRUNCATED, V6(IPPROTO_DSTOPTS) },
	{ "ipv6, ah past the frame",
	  { ETH, IP6(), EXT(IPPROTO_AH, 24, STATED(255)), UDP(1234, 53) },
	  PARSE_TRUNCATED, V6(IPPROTO_AH) },
	{ "ipv6, extension header past the payload, udp",
	  { ETH, IP6(STATED(8)), EXT(IPPROTO_HOPOPTS, 16), UDP(1234, 53) },
	  PARSE_TRUNCATED, V6(IPPROTO_UDP) },
	{ "ipv6, extension header past the payload, esp",
	  { ETH, IP6(STATED(8)), EXT(IPPROTO_HOPOPTS, 16), RAW(IPPROTO_ESP, 24) },
	  PARSE_TRUNCATED, V6(IPPROTO_ESP) },
	{ "ipv6, extension header past the payload, no next header",
	  { ETH, IP6(STATED(23)), CHAIN_2, RAW(IPPROTO_NONE, 0), PAD(8) },
	  PARSE_TRUNCATED, V6(IPPROTO_NONE) },
	{ "ipv6, padding like an extension header",
	  { ETH, IP6(STATED(8)), EXT(IPPROTO_HOPOPTS, 8), EXT(IPPROTO_DSTOPTS, 8), UDP(1234, 53) },
	  PARSE_TRUNCATED, V6(IPPROTO_UDP) },

	/* IPv6: fragments. */
	{ "ipv6, first fragment", { ETH, IP6(), FRAGMENT(0, 1), UDP(1234, 53) }, PARSE_OK, DNS6 },
	{ "ipv6, atomic fragment", { ETH, IP6(), FRAGMENT(0, 0), UDP(1234, 53) }, PARSE_OK, DNS6 },
	{ "ipv6, first fragment, 3 bytes",
	  { ETH, IP6(), FRAGMENT(0, 1), HEADER(IPPROTO_TCP, 3, 1, 2) },
	  PARSE_TOO_MANY_HEADERS, V6(IPPROTO_TCP) },
	{ "ipv6, first fragment, empty",
	  { ETH, IP6(), FRAGMENT(0, 1), HEADER(IPPROTO_TCP, 0, 1, 2) },
	  PARSE_TOO_MANY_HEADERS, V6(IPPROTO_TCP) },
	{ "ipv6, fragment at 8", { ETH, IP6(), FRAGMENT(1, 1), UDP(1234, 53) },
	  PARSE_LATER_FRAGMENT, V6(IPPROTO_UDP) },
	{ "ipv6, later fragment like dns", { ETH, IP6(), FRAGMENT(181, 1), UDP(1234, 53) },
	  PARSE_LATER_FRAGMENT, V6(IPPROTO_UDP) },
	{ "ipv6, last fragment", { ETH, IP6(), FRAGMENT(0x1fff, 0), TCP(0, 0) },
	  PARSE_LATER_FRAGMENT, V6(IPPROTO_TCP) },
	{ "ipv6, later fragment of icmpv6", { ETH, IP6(), FRAGMENT(181, 0), ICMP6(128, 0) },
	  PARSE_LATER_FRAGMENT, V6(IPPROTO_ICMPV6) },
	{ "ipv6, later fragment behind options",
	  { ETH, IP6(), CHAIN_3, FRAGMENT(181, 0), UDP(1234, 53) },
	  PARSE_LATER_FRAGMENT, V6(IPPROTO_UDP) },
	{ "ipv6, later fragment of options",
	  { ETH, IP6(), FRAGMENT(181, 0), CHAIN_2, UDP(1234, 53) },
	  PARSE_LATER_FRAGMENT, V6(IPPROTO_HOPOPTS) },
	{ "ipv6, later fragment in the 8th header",
	  { ETH, IP6(), CHAIN_7, FRAGMENT(181, 0), UDP(1234, 53) },
	  PARSE_LATER_FRAGMENT, V6(IPPROTO_UDP) },
	{ "ipv6, later fragment in the 182nd header",
	  { ETH, IP6(), OPTIONS(181), FRAGMENT(181, 0), UDP(1234, 53) },
	  PARSE_LATER_FRAGMENT, V6(IPPROTO_UDP) },
	{ "ipv6, first fragment lacks the second options, padding like them",
	  { ETH, IP6(STATED(16)), FRAGMENT(0, 1), OPTIONS(2), UDP(1234, 53) },
	  PARSE_TOO_MANY_HEADERS, V6(IPPROTO_UDP) },
	{ "ipv6, first fragment ends in options",
	  { ETH, IP6(), FRAGMENT(0, 1), EXT(IPPROTO_DSTOPTS, 8, STATED(1)) },
	  PARSE_TOO_MANY_HEADERS, V6(IPPROTO_DSTOPTS) },
	{ "ipv6, first fragment lacks the transport header",
	  { ETH, IP6(), FRAGMENT(0, 1), OPTIONS(1), HEADER(IPPROTO_UDP, 0, 1, 2) },
	  PARSE_TOO_MANY_HEADERS, V6(IPPROTO_UDP) },
	{ "ipv6, atomic fragment lacks the second options",
	  { ETH, IP6(STATED(16)), FRAGMENT(0, 0), OPTIONS(2), UDP(1234, 53) },
	  PARSE_TRUNCATED, V6(IPPROTO_UDP) },
	{ "ipv6, later fragment, payload ends in its header",
	  { ETH, IP6(STATED(7)), FRAGMENT(181, 0), UDP(1234, 53) },
	  PARSE_TRUNCATED, V6(IPPROTO_UDP) },
};

#pragma GCC diagnostic pop
/* clang-format on */
