// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Asks the program on an interface about flows, once, and prints one letter for each: P where it passes the flow, D where
 * it drops it. tests/namespace/test_faults.sh runs this between the stores of a command.
 */
#include <net/if.h>
#include <stdio.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "frame.h"

int main(int argc, char **argv)
{
	static const uint8_t mac[2][ETH_ALEN];
	const struct frame_trailer trailer = {};
	char line[64] = "";
	__u32 id;
	int fd;

	if (argc < 3 || argc > 60 || bpf_xdp_query_id(if_nametoindex(argv[1]), 0, &id) || !id)
		return fputs("usage: verdicts IFACE FLOW...; a filter must run\n", stderr), 2;
	fd = bpf_prog_get_fd_by_id(id);
	for (int i = 2; i < argc; i++) {
		uint8_t frame[FRAME_BYTES_MAX];
		LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame, .repeat = 1);
		struct frame_flow flow;

		if (frame_parse(argv[i], &flow))
			return fprintf(stderr, "verdicts: not a flow: %s\n", argv[i]), 2;
		opts.data_size_in = frame_build(&flow, mac, &trailer, frame);
		if (bpf_prog_test_run_opts(fd, &opts))
			return perror("verdicts"), 2;
		line[i - 2] = opts.retval == XDP_DROP ? 'D' : 'P';
	}
	puts(line);
	return 0;
}
