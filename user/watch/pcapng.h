/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writes packets in the pcapng format of tcpdump and Wireshark (draft-ietf-opsawg-pcapng). Writes only whole blocks,
 * so that the file is readable at any time.
 */
#ifndef XDP_CUCKOO_PCAPNG_H
#define XDP_CUCKOO_PCAPNG_H

#include <stdbool.h>
#include <stddef.h>

#include <linux/types.h>

#define PCAPNG_SNAP_BYTES_MAX 16384
#define PCAPNG_TEXT_BYTES_MAX 1024 /* longer comments and names are cut */

struct pcapng {
	int fd;
	__u32 snap_bytes;
	__u32 *interface; /* kernel indexes of the interfaces described so far, in order */
	size_t interfaces;
	__u8 *bytes; /* whole blocks, not yet written */
	size_t used;
};

struct pcapng_packet {
	__u32 interface; /* kernel index */
	__u64 time_ns;   /* since 1970 */
	__u32 length;    /* on the wire */
	const void *data;
	__u32 captured;      /* bytes in `data` */
	bool is_sent;        /* else received */
	const char *comment; /* UTF-8 */
};

/* Writes to `fd`, which the caller closes; of each packet at most `snap_bytes`, up to PCAPNG_SNAP_BYTES_MAX. -errno. */
int pcapng_open(struct pcapng *pcapng, int fd, __u32 snap_bytes);
void pcapng_close(struct pcapng *pcapng); /* accepts a zeroed struct */

/*
 * Call pcapng_add_interface() before pcapng_add() of its packets, and pcapng_flush() to write the buffered blocks.
 * 0; -ENODEV: the interface was not added; other -errno.
 */
int pcapng_add_interface(struct pcapng *pcapng, __u32 interface, const char *name);
int pcapng_add(struct pcapng *pcapng, const struct pcapng_packet *packet);
int pcapng_flush(struct pcapng *pcapng);

#endif
