// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "watch/pcapng.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/version.h"
#include "io/whole_file.h"

#define ROOM_BYTES 65536
#define BLOCK_BYTES_MAX (PCAPNG_SNAP_BYTES_MAX + PCAPNG_TEXT_BYTES_MAX + 64) /* with headers and padding */

enum block_type { BLOCK_SECTION = 0x0a0d0d0a, BLOCK_INTERFACE = 1, BLOCK_PACKET = 6 };

enum option {
	OPTION_END = 0,
	OPTION_COMMENT = 1,
	OPTION_USER_APPLICATION = 4, /* of a section */
	OPTION_NAME = 2,             /* of an interface */
	OPTION_FLAGS = 2,            /* of a packet: its direction */
	OPTION_RESOLUTION = 9,       /* of an interface's times: a negative power of ten */
};

#define BYTE_ORDER_MAGIC 0x1a2b3c4d
#define LINK_ETHERNET 1
#define FLAG_RECEIVED 1
#define FLAG_SENT 2
#define NANOSECONDS 9
#define UNKNOWN_LENGTH (~0ULL) /* the section extends to the end of the file */

static void put(struct pcapng *pcapng, const void *data, size_t bytes)
{
	memcpy(pcapng->bytes + pcapng->used, data, bytes);
	pcapng->used += bytes;
}

static void put_u16(struct pcapng *pcapng, __u16 value)
{
	put(pcapng, &value, sizeof(value));
}

static void put_u32(struct pcapng *pcapng, __u32 value)
{
	put(pcapng, &value, sizeof(value));
}

/* Pads to a multiple of four bytes. */
static void put_padded(struct pcapng *pcapng, const void *data, size_t bytes)
{
	put(pcapng, data, bytes);
	put(pcapng, "\0\0\0", -bytes % 4);
}

static void put_option(struct pcapng *pcapng, enum option option, const void *data, size_t bytes)
{
	put_u16(pcapng, option);
	put_u16(pcapng, bytes);
	put_padded(pcapng, data, bytes);
}

static void put_text(struct pcapng *pcapng, enum option option, const char *text)
{
	put_option(pcapng, option, text, strnlen(text, PCAPNG_TEXT_BYTES_MAX));
}

/* Returns the start of the block, for end_block(). */
static size_t begin_block(struct pcapng *pcapng, enum block_type type)
{
	const size_t start = pcapng->used;

	put_u32(pcapng, type);
	put_u32(pcapng, 0);
	return start;
}

/* A block has its length at both ends. */
static void end_block(struct pcapng *pcapng, size_t start)
{
	__u32 bytes;

	put_option(pcapng, OPTION_END, "", 0);
	bytes = pcapng->used - start + sizeof(bytes);
	memcpy(pcapng->bytes + start + sizeof(__u32), &bytes, sizeof(bytes));
	put_u32(pcapng, bytes);
}

/* The number of an interface in the file is its index in pcapng->interface. */
static size_t find_interface(const struct pcapng *pcapng, __u32 interface)
{
	size_t number = 0;

	while (number < pcapng->interfaces && pcapng->interface[number] != interface)
		number++;
	return number;
}

int pcapng_open(struct pcapng *pcapng, int fd, __u32 snap_bytes)
{
	const __u64 length = UNKNOWN_LENGTH;
	size_t start;

	*pcapng = (struct pcapng){ .fd = fd, .bytes = malloc(ROOM_BYTES), .snap_bytes = snap_bytes };
	if (!pcapng->bytes)
		return -ENOMEM;
	start = begin_block(pcapng, BLOCK_SECTION);
	put_u32(pcapng, BYTE_ORDER_MAGIC);
	put_u16(pcapng, 1); /* the version of the format: 1.0 */
	put_u16(pcapng, 0);
	put(pcapng, &length, sizeof(length));
	put_text(pcapng, OPTION_USER_APPLICATION, "xdp-cuckoo " VERSION);
	end_block(pcapng, start);
	return pcapng_flush(pcapng);
}

void pcapng_close(struct pcapng *pcapng)
{
	free(pcapng->bytes);
	free(pcapng->interface);
	*pcapng = (struct pcapng){};
}

int pcapng_flush(struct pcapng *pcapng)
{
	int error = io_write_all(pcapng->fd, pcapng->bytes, pcapng->used);

	pcapng->used = error ? pcapng->used : 0;
	return error;
}

static int make_room(struct pcapng *pcapng)
{
	return pcapng->used + BLOCK_BYTES_MAX > ROOM_BYTES ? pcapng_flush(pcapng) : 0;
}

int pcapng_add_interface(struct pcapng *pcapng, __u32 interface, const char *name)
{
	const __u8 resolution = NANOSECONDS;
	size_t start;
	int error;

	if (find_interface(pcapng, interface) < pcapng->interfaces)
		return 0;
	error = array_grow(&pcapng->interface, pcapng->interfaces, sizeof(*pcapng->interface));
	if (!error)
		error = make_room(pcapng);
	if (error)
		return error;
	pcapng->interface[pcapng->interfaces++] = interface;
	start = begin_block(pcapng, BLOCK_INTERFACE);
	put_u16(pcapng, LINK_ETHERNET);
	put_u16(pcapng, 0);
	put_u32(pcapng, pcapng->snap_bytes);
	put_text(pcapng, OPTION_NAME, name);
	put_option(pcapng, OPTION_RESOLUTION, &resolution, sizeof(resolution));
	end_block(pcapng, start);
	return 0;
}

int pcapng_add(struct pcapng *pcapng, const struct pcapng_packet *packet)
{
	const __u32 captured = packet->captured < pcapng->snap_bytes ? packet->captured : pcapng->snap_bytes;
	const size_t number = find_interface(pcapng, packet->interface);
	const __u32 flags = packet->is_sent ? FLAG_SENT : FLAG_RECEIVED;
	size_t start;
	int error = number < pcapng->interfaces ? make_room(pcapng) : -ENODEV;

	if (error)
		return error;
	start = begin_block(pcapng, BLOCK_PACKET);
	put_u32(pcapng, number);
	put_u32(pcapng, packet->time_ns >> 32);
	put_u32(pcapng, packet->time_ns);
	put_u32(pcapng, captured);
	put_u32(pcapng, packet->length);
	put_padded(pcapng, packet->data, captured);
	put_text(pcapng, OPTION_COMMENT, packet->comment);
	put_option(pcapng, OPTION_FLAGS, &flags, sizeof(flags));
	end_block(pcapng, start);
	return 0;
}
