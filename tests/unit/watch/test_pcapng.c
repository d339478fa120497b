// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reads written files block by block: blocks are whole at any time, padded, and cut if too long. */
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit/test.h"
#include "watch/pcapng.h"

#define SNAP_BYTES 64
#define PACKETS 300 /* more than are written at once */

/* A whole file in memory, and the position in it. */
struct reading {
	__u8 *bytes;
	size_t size, at;
};

static struct reading read_all(int fd)
{
	struct reading reading = {};
	struct stat status;

	assert_int_equal(fstat(fd, &status), 0);
	reading.size = status.st_size;
	reading.bytes = mmap(NULL, reading.size, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(reading.bytes, MAP_FAILED);
	return reading;
}

static __u32 number_at(const __u8 *bytes)
{
	__u32 number;

	memcpy(&number, bytes, sizeof(number));
	return number;
}

/* The next block, NULL at the end. Checks that its length is at both ends. */
static const __u8 *next_block(struct reading *reading)
{
	const __u8 *block = reading->bytes + reading->at;
	__u32 bytes;

	if (reading->at == reading->size)
		return NULL;
	assert_true(reading->size - reading->at >= 12);
	bytes = number_at(block + 4);
	assert_int_equal(bytes % 4, 0);
	assert_true(bytes >= 12 && bytes <= reading->size - reading->at);
	assert_int_equal(number_at(block + bytes - 4), bytes);
	reading->at += bytes;
	return block;
}

static void assert_padding(const __u8 *end)
{
	static const __u8 zeroes[4];

	assert_memory_equal(end, zeroes, -(uintptr_t)end % 4);
}

/* Compares the block of a packet with the packet, up to the limits. */
static void assert_packet(const __u8 *block, const struct pcapng_packet *packet, __u32 number)
{
	const __u32 captured = packet->captured < SNAP_BYTES ? packet->captured : SNAP_BYTES;
	const size_t length = strnlen(packet->comment, PCAPNG_TEXT_BYTES_MAX);
	const __u8 *data = block + 28, *comment = data + (captured + 3) / 4 * 4;

	assert_int_equal(number_at(block), 6);
	assert_int_equal(number_at(block + 8), number);
	assert_int_equal((__u64)number_at(block + 12) << 32 | number_at(block + 16), packet->time_ns);
	assert_int_equal(number_at(block + 20), captured);
	assert_int_equal(number_at(block + 24), packet->length);
	assert_memory_equal(data, packet->data, captured);
	assert_padding(data + captured);
	assert_int_equal(number_at(comment), 1 | length << 16);
	assert_memory_equal(comment + 4, packet->comment, length);
	assert_padding(comment + 4 + length);
	comment += 4 + (length + 3) / 4 * 4;
	/* epb_flags: 1 is inbound, 2 outbound. */
	assert_int_equal(number_at(comment), 2 | 4 << 16);
	assert_int_equal(number_at(comment + 4), packet->is_sent ? 2 : 1);
	comment += 8;
	assert_int_equal(number_at(comment), 0);
	assert_int_equal(number_at(block + 4), comment + 8 - block);
}

static const __u8 bytes[2 * SNAP_BYTES] = "as many bytes as there are, and more than may be written of a packet by far";

static char comment[PCAPNG_TEXT_BYTES_MAX + 100];

/* Lengths with every remainder modulo 4, and lengths that are too long. */
static struct pcapng_packet packet_at(size_t i)
{
	return (struct pcapng_packet){ .interface = i % 3 ? 7 : 9000000,
				       .time_ns = 1700000000123456789 + i,
				       .length = 1500 + i,
				       .is_sent = i % 2,
				       .data = bytes,
				       .captured = i % sizeof(bytes),
				       .comment = comment + sizeof(comment) - 1 - i * 37 % sizeof(comment) };
}

/* After each packet the file has whole blocks. */
static void write_packets(struct pcapng *pcapng)
{
	for (size_t i = 0; i < PACKETS; i++) {
		const struct pcapng_packet packet = packet_at(i);
		struct reading reading;

		assert_int_equal(pcapng_add(pcapng, &packet), 0);
		reading = read_all(pcapng->fd);
		while (next_block(&reading))
			;
		munmap(reading.bytes, reading.size);
	}
}

static void assert_packets(struct reading *reading)
{
	for (size_t i = 0; i < PACKETS; i++) {
		const struct pcapng_packet packet = packet_at(i);
		const __u8 *block = next_block(reading);

		assert_non_null(block);
		assert_packet(block, &packet, i % 3 ? 0 : 1);
	}
	assert_null(next_block(reading));
}

TEST(test_blocks)
{
	const int fd = memfd_create("pcapng", MFD_CLOEXEC);
	const struct pcapng_packet packet = packet_at(0);
	struct pcapng pcapng;
	struct reading reading;
	const __u8 *block;

	memset(comment, 'c', sizeof(comment));
	comment[sizeof(comment) - 1] = '\0';
	assert_int_equal(pcapng_open(&pcapng, fd, SNAP_BYTES), 0);
	assert_int_equal(pcapng_add(&pcapng, &packet), -ENODEV);
	assert_int_equal(pcapng_add_interface(&pcapng, 7, "seven"), 0);
	assert_int_equal(pcapng_add_interface(&pcapng, 9000000, ""), 0);
	assert_int_equal(pcapng_add_interface(&pcapng, 7, "again"), 0);
	write_packets(&pcapng);
	assert_int_equal(pcapng_flush(&pcapng), 0);
	reading = read_all(fd);
	assert_int_equal(number_at(next_block(&reading)), 0x0a0d0d0a);
	for (int i = 0; i < 2; i++) {
		block = next_block(&reading);
		assert_int_equal(number_at(block), 1);
		assert_int_equal(number_at(block + 12), SNAP_BYTES);
	}
	assert_packets(&reading);
	munmap(reading.bytes, reading.size);
	pcapng_close(&pcapng);
	close(fd);
}

/* A failed write is reported. */
TEST(test_full)
{
	struct pcapng pcapng;

	assert_int_equal(pcapng_open(&pcapng, -1, SNAP_BYTES), -EBADF);
	pcapng_close(&pcapng);
}

TEST_MAIN(NULL, NULL)
