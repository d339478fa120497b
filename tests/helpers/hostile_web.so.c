// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Stands for libmicrohttpd, taken over by a client. HOSTILE_WEB says what it does once it is to serve: "flood" asks 4096
 * times at once and writes how many answers come in 3 seconds; "deaf" asks without end and reads no answer; "grow" takes
 * memory, and writes "grew" if it got a gigabyte.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define GROW_BYTES (1 << 30)
#define PIECE_BYTES (1 << 20)
#define FLOOD_S 3

/* clang-format off */
#define FUNCTIONS(X) X(get_connection_info) X(create_response_from_buffer) X(add_response_header) X(queue_response) \
	X(destroy_response) X(start_daemon) X(get_timeout) X(run)
/* clang-format on */
#define DEFINE(name) \
	long MHD_##name(void); \
	long MHD_##name(void) \
	{ \
		return 1; \
	}
FUNCTIONS(DEFINE)

static void flood(int fd)
{
	struct {
		uint32_t status;
		size_t bytes;
	} answer;
	struct timespec start, now;
	unsigned int answers = 0;
	char byte;

	clock_gettime(CLOCK_MONOTONIC, &start);
	while (recv(fd, &answer, sizeof(answer), MSG_WAITALL) == sizeof(answer)) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (now.tv_sec - start.tv_sec > FLOOD_S)
			break;
		answers++;
		while (answer.bytes-- && recv(fd, &byte, 1, 0) == 1)
			;
	}
	fprintf(stderr, "answers %u\n", answers);
}

/* The tool calls it before its first poll. It has one file other than the standard ones, and the listener behind it. */
void *MHD_get_daemon_info(void);
void *MHD_get_daemon_info(void)
{
	const char *what = getenv("HOSTILE_WEB");
	static const char bytes[4096];
	size_t grown = 0;
	int fd = STDERR_FILENO + 1;

	while (send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL) < 0)
		fd++;
	while (!strcmp(what, "deaf"))
		send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL);
	if (!strcmp(what, "flood"))
		flood(fd);
	/* cppcheck-suppress leakReturnValNotUsed ; the limit of memory ends it */
	while (!strcmp(what, "grow") && grown < GROW_BYTES && malloc(PIECE_BYTES))
		grown += PIECE_BYTES;
	if (grown == GROW_BYTES)
		fputs("grew\n", stderr);
	_exit(1);
}
