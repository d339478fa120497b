// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Watches two lists change places: asks the program on an interface, without end, about a flow that
 * only the one blocks and a flow that only the other blocks, until SIGTERM. Prints how often it saw
 * the one, the other, and what is neither; that must never be. Each time the program is looked up
 * anew.
 */
#include <errno.h>
#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "frame.h"

static volatile sig_atomic_t is_over;

static void stop(int signal_number)
{
	(void)signal_number;
	is_over = 1;
}

static size_t build(char *text, uint8_t frame[FRAME_BYTES_MAX])
{
	static const uint8_t mac[2][ETH_ALEN];
	const struct frame_trailer trailer = {};
	struct frame_flow flow;

	return frame_parse(text, &flow) ? 0 : frame_build(&flow, mac, &trailer, frame);
}

/* XDP_PASS, XDP_DROP; -errno. A program may go between its look-up and its opening. */
static int ask(int ifindex, const uint8_t *frame, size_t length)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame, .data_size_in = length, .repeat = 1);
	__u32 id;
	int fd, error;

	do {
		error = bpf_xdp_query_id(ifindex, 0, &id);
		if (error)
			return error;
		fd = id ? bpf_prog_get_fd_by_id(id) : -ESRCH;
	} while (fd == -ENOENT);
	if (fd < 0)
		return fd;
	error = bpf_prog_test_run_opts(fd, &opts);
	close(fd);
	return error ? error : (int)opts.retval;
}

int main(int argc, char **argv)
{
	uint8_t one[FRAME_BYTES_MAX], other[FRAME_BYTES_MAX];
	unsigned long seen_one = 0, seen_other = 0, neither = 0;
	size_t one_bytes, other_bytes;
	int ifindex;

	if (argc != 4)
		return fputs("usage: switch_watch IFACE FLOW FLOW\n", stderr), 2;
	ifindex = if_nametoindex(argv[1]);
	one_bytes = build(argv[2], one);
	other_bytes = build(argv[3], other);
	if (!ifindex || !one_bytes || !other_bytes)
		return fputs("switch_watch: no such interface, or not a flow\n", stderr), 2;
	signal(SIGTERM, stop);
	while (!is_over) {
		/* Where the first answer is the last one too, nothing has changed between. */
		const int first = ask(ifindex, one, one_bytes);
		const int between = ask(ifindex, other, other_bytes);
		const int last = ask(ifindex, one, one_bytes);

		if (first < 0 || between < 0 || last < 0)
			return fputs("switch_watch: cannot run the program\n", stderr), 2;
		if (first != last)
			continue;
		seen_one += first == XDP_DROP && between == XDP_PASS;
		seen_other += first == XDP_PASS && between == XDP_DROP;
		neither += first == between;
	}
	printf("one %lu other %lu neither %lu\n", seen_one, seen_other, neither);
	return neither ? 1 : 0;
}
