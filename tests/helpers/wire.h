/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The two ends of a veth pair or of a cable, each in its own network namespace, as packet sockets; and how long
 * the XDP program between them runs. Prints why something failed, since only test programs use it.
 */
#ifndef XDP_CUCKOO_TESTS_WIRE_H
#define XDP_CUCKOO_TESTS_WIRE_H

#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "frame.h"

#define WIRE_RECEIVE_BYTES (16 << 20)
#define WIRE_FRAME_BYTES (FRAME_BYTES_MAX + FRAME_PAYLOAD_MAX)
#define WIRE_BATCH_FRAMES 128 /* with the marker less than the 256 that a veth queue holds */

struct wire_end {
	int fd;
	int ifindex;
	uint8_t mac[ETH_ALEN];
};

struct wire_timing {
	int stats_fd; /* statistics are on while it is open */
	int prog_fd;
	uint64_t run_ns, runs;
};

struct wire_batch {
	uint8_t frame[WIRE_BATCH_FRAMES + 1][WIRE_FRAME_BYTES];
	struct iovec part[WIRE_BATCH_FRAMES + 1];
	struct mmsghdr message[WIRE_BATCH_FRAMES + 1];
	unsigned int count;
};

/* Prints what failed and why; returns -errno. */
static int wire_failed(const char *what)
{
	const int error = errno ? errno : EIO;

	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, strerror(error));
	return -error;
}

static int wire_enter(const char *netns)
{
	char path[256];
	int fd, error = 0;

	snprintf(path, sizeof(path), "/run/netns/%s", netns);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return wire_failed(path);
	if (setns(fd, CLONE_NEWNET))
		error = wire_failed(path);
	close(fd);
	return error;
}

static int wire_identify(const char *iface, struct wire_end *end)
{
	struct ifreq request = { 0 };

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", iface);
	if (ioctl(end->fd, SIOCGIFHWADDR, &request))
		return wire_failed(iface);
	memcpy(end->mac, request.ifr_hwaddr.sa_data, sizeof(end->mac));
	if (ioctl(end->fd, SIOCGIFINDEX, &request))
		return wire_failed(iface);
	end->ifindex = request.ifr_ifindex;
	return 0;
}

static int wire_configure(int fd, uint16_t protocol)
{
	const int bytes = WIRE_RECEIVE_BYTES, one = 1;

	if (protocol)
		return setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes));
	/* Past the queueing discipline the queue follows from the CPU: one queue, so order holds. */
	return setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof(one));
}

/* Opens NETNS:IFACE and stays in the namespace; `protocol` 0 makes an end that only sends. */
static int wire_open(const char *place, uint16_t protocol, struct wire_end *end)
{
	struct sockaddr_ll address = { .sll_family = AF_PACKET, .sll_protocol = htons(protocol) };
	char netns[64] = "";
	const char *iface = strchr(place, ':');
	int error;

	if (iface)
		snprintf(netns, sizeof(netns), "%.*s", (int)(iface - place), place);
	error = wire_enter(netns);
	if (error)
		return error;
	end->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (end->fd < 0)
		return wire_failed("packet socket");
	error = wire_identify(iface + 1, end);
	if (error)
		return error;
	address.sll_ifindex = end->ifindex;
	if (wire_configure(end->fd, protocol) || bind(end->fd, (const struct sockaddr *)&address, sizeof(address)))
		return wire_failed(place);
	return 0;
}

/* Keeps this thread on its CPU: the sender's CPU picks the queue of the veth. */
static int wire_pin_cpu(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	return sched_setaffinity(0, sizeof(set), &set) ? wire_failed("sched_setaffinity") : 0;
}

/* The next free frame of the batch; wire_add() takes it with its length. */
static uint8_t *wire_frame(struct wire_batch *batch)
{
	return batch->frame[batch->count];
}

static void wire_add(struct wire_batch *batch, size_t bytes)
{
	struct iovec *part = &batch->part[batch->count];

	*part = (struct iovec){ .iov_base = wire_frame(batch), .iov_len = bytes };
	batch->message[batch->count++] = (struct mmsghdr){
		.msg_hdr = { .msg_iov = part, .msg_iovlen = 1 },
	};
}

/* Sends the batch and empties it. */
static int wire_send(const struct wire_end *from, struct wire_batch *batch)
{
	unsigned int sent = 0;

	while (sent < batch->count) {
		const int count = sendmmsg(from->fd, batch->message + sent, batch->count - sent, 0);

		if (count < 0)
			return wire_failed("sending");
		sent += (unsigned int)count;
	}
	batch->count = 0;
	return 0;
}

/* Whether the message holds a frame that came in, whole; then its trailer. Cards pad shorter frames to ETH_ZLEN. */
static bool wire_trailer(const struct mmsghdr *message, struct frame_trailer *trailer)
{
	const struct sockaddr_ll *from = message->msg_hdr.msg_name;
	const uint8_t *frame = message->msg_hdr.msg_iov->iov_base;
	size_t end = message->msg_len;

	if (from->sll_pkttype == PACKET_OUTGOING || message->msg_hdr.msg_flags & MSG_TRUNC)
		return false;
	do {
		if (end < sizeof(*trailer))
			return false;
		memcpy(trailer, frame + end - sizeof(*trailer), sizeof(*trailer));
	} while (trailer->magic != FRAME_TRAILER_MAGIC && message->msg_len == ETH_ZLEN && !frame[--end]);
	return trailer->magic == FRAME_TRAILER_MAGIC;
}

/* Waits for frames and reads what has come. Returns how many trailers, at most WIRE_BATCH_FRAMES, or -errno. */
static int wire_receive(const struct wire_end *to, int timeout_ms, struct frame_trailer *trailers)
{
	static struct wire_batch batch;
	static struct sockaddr_ll from[WIRE_BATCH_FRAMES];
	struct pollfd ready = { .fd = to->fd, .events = POLLIN };
	int messages, count = 0;

	batch.count = 0;
	for (unsigned int i = 0; i < WIRE_BATCH_FRAMES; i++) {
		wire_add(&batch, WIRE_FRAME_BYTES);
		batch.message[i].msg_hdr.msg_name = &from[i];
		batch.message[i].msg_hdr.msg_namelen = sizeof(from[i]);
	}
	messages = poll(&ready, 1, timeout_ms);
	if (messages > 0)
		messages = recvmmsg(to->fd, batch.message, batch.count, MSG_DONTWAIT, NULL);
	else if (messages == 0)
		return -ETIMEDOUT;
	if (messages <= 0)
		return wire_failed("receiving");
	for (int i = 0; i < messages; i++)
		count += wire_trailer(&batch.message[i], &trailers[count]);
	return count;
}

static inline bool wire_runs(const struct wire_timing *timing, uint64_t *run_ns, uint64_t *runs)
{
	struct bpf_prog_info info = { 0 };
	__u32 bytes = sizeof(info);

	if (timing->stats_fd < 0 || timing->prog_fd < 0 || bpf_obj_get_info_by_fd(timing->prog_fd, &info, &bytes))
		return false;
	*run_ns = info.run_time_ns;
	*runs = info.run_cnt;
	return true;
}

/* Starts timing the XDP program of `end`, in whose namespace the caller is. */
static inline struct wire_timing wire_timing_start(const struct wire_end *end)
{
	struct wire_timing timing = { .prog_fd = -1 };
	LIBBPF_OPTS(bpf_xdp_query_opts, query);

	timing.stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
	if (!bpf_xdp_query(end->ifindex, 0, &query) && query.prog_id)
		timing.prog_fd = bpf_prog_get_fd_by_id(query.prog_id);
	wire_runs(&timing, &timing.run_ns, &timing.runs);
	return timing;
}

/* Nanoseconds a packet since the start, or less than 0 where the kernel does not tell. */
static inline double wire_timing_stop(const struct wire_timing *timing)
{
	uint64_t run_ns, runs;
	double ns = -1;

	if (wire_runs(timing, &run_ns, &runs) && runs > timing->runs)
		ns = (double)(run_ns - timing->run_ns) / (double)(runs - timing->runs);
	if (timing->stats_fd >= 0)
		close(timing->stats_fd);
	if (timing->prog_fd >= 0)
		close(timing->prog_fd);
	return ns;
}

#endif
