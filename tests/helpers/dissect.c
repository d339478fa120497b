// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What the parser says of frames, which come as hexadecimal digits, one a line: result, family, source,
 * destination, protocol, and ports or ICMP type and code, with "-" for what is not there.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit/packets.h"

#define FRAME_BYTES_MAX (1 << 19) /* BIG TCP */

static const char *const results[] = {
	[PARSE_OK] = "ok",
	[PARSE_LATER_FRAGMENT] = "later-fragment",
	[PARSE_NOT_IP] = "not-ip",
	[PARSE_TRUNCATED] = "truncated",
	[PARSE_MALFORMED] = "malformed",
	[PARSE_TOO_MANY_HEADERS] = "too-many-headers",
};

static void print_flow(const struct flow *flow)
{
	char src[INET6_ADDRSTRLEN], dst[INET6_ADDRSTRLEN];
	const int family = flow->family == FLOW_IPV4 ? AF_INET : AF_INET6;

	if (flow->family == FLOW_NO_FAMILY) {
		puts(" - - - - - -");
		return;
	}
	inet_ntop(family, &flow->src, src, sizeof(src));
	inet_ntop(family, &flow->dst, dst, sizeof(dst));
	printf(" %d %s %s %u", flow->family == FLOW_IPV4 ? 4 : 6, src, dst, flow->proto);
	if (flow->port_kind == FLOW_NO_PORTS)
		puts(" - -");
	else
		printf(" %u %u\n", ntohs(flow->sport), ntohs(flow->dport));
}

/* Returns how many bytes; -1 where the line is no frame. */
static long read_hex(const char *line, __u8 *bytes)
{
	long length = 0;
	unsigned int byte;

	for (; *line && *line != '\n'; line += 2) {
		if (length == FRAME_BYTES_MAX || sscanf(line, "%2x", &byte) != 1 || !line[1] || line[1] == '\n')
			return -1;
		bytes[length++] = byte;
	}
	return length;
}

int main(void)
{
	static _Alignas(4) __u8 place[PACKET_ALIGN + FRAME_BYTES_MAX];
	__u8 *frame = place + PACKET_ALIGN;
	char *line = NULL;
	size_t room = 0;

	while (getline(&line, &room, stdin) > 0) {
		const long length = read_hex(line, frame);
		struct flow flow;
		enum parse_result result;

		if (length < 0) {
			fprintf(stderr, "not a frame: %.60s\n", line);
			return 2;
		}
		result = parse_frame(frame, frame + length, &flow);
		printf("%s", results[result]);
		print_flow(&flow);
	}
	free(line);
	return 0;
}
