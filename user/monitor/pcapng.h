/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writes packets in the format that tcpdump and Wireshark read: draft-ietf-opsawg-pcapng. Interfaces have
 * names, packets a time in nanoseconds, their whole length, and a comment. Whole blocks are handed on, so that
 * what has been written can be read at any time.
 */
#ifndef XDP_CUCKOO_PCAPNG_H
#define XDP_CUCKOO_PCAPNG_H

#include <stddef.h>

#include <linux/types.h>

#define PCAPNG_SNAP_BYTES_MAX 16384
#define PCAPNG_TEXT_BYTES_MAX 1024 /* of comments and names: the rest is cut off */

struct pcapng {
	int fd;
	__u32 snap_bytes;
	__u32 *interface; /* the kernel's indexes of those that have been described, in that order */
	size_t interfaces;
	__u8 *bytes; /* not yet written: whole blocks */
	size_t used;
};

struct pcapng_packet {
	__u32 interface; /* the kernel's index of it */
	__u64 time_ns;   /* since 1970 */
	__u32 length;    /* on the wire */
	const void *data;
	__u32 captured;      /* bytes there */
	const char *comment; /* UTF-8 */
};

/*
 * Writes to `fd`, which stays the caller's. Of a packet at most `snap_bytes` are written, which is at most
 * PCAPNG_SNAP_BYTES_MAX. 0; -errno.
 */
int pcapng_open(struct pcapng *pcapng, int fd, __u32 snap_bytes);
void pcapng_close(struct pcapng *pcapng); /* accepts a zeroed one */

/*
 * Each interface comes before its packets; one that was there before is left out. 0; -errno, of a packet -ENODEV
 * where its interface has not come. What is not flushed is written when there is much of it.
 */
int pcapng_add_interface(struct pcapng *pcapng, __u32 interface, const char *name);
int pcapng_add(struct pcapng *pcapng, const struct pcapng_packet *packet);
int pcapng_flush(struct pcapng *pcapng);

#endif
