/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Cuts what `gobgp monitor global rib --current -j` prints into routes. gobgp prints one line per event: an array of
 * routes. The first line has all present routes and may have any length, so only one route is kept in memory. gobgp
 * prints an empty line for routes that JSON cannot say, as a rate that is no number.
 */
#ifndef XDP_CUCKOO_ROUTE_STREAM_H
#define XDP_CUCKOO_ROUTE_STREAM_H

#include <stdbool.h>
#include <stddef.h>

#include <linux/types.h>

#include "base/error_reason.h"

/* A route fits into one BGP message, of 4,096 bytes. JSON needs up to 25 bytes for each of these, twice. */
#define ROUTE_STREAM_BYTES (256 << 10)

struct route_stream {
	char *route; /* the text of a route, with a final 0 */
	size_t used;
	unsigned int depth; /* of brackets within the route; 0: between routes */
	bool is_in_array;
	bool has_content; /* of this line */
	bool is_in_string, is_escaped;
	bool is_skipped; /* the rest of the line */
	__u64 line;      /* of the input, from 1 */
};

/* 0; -ENOMEM. route_stream_close() accepts a zeroed struct. */
int route_stream_open(struct route_stream *stream);
void route_stream_close(struct route_stream *stream);

/*
 * Takes bytes up to the end of the next route; *taken is their number. 1: stream->route has a route, or an object that
 * stands alone; 0: all bytes were taken; -EBADMSG: the rest of this line is skipped, because gobgp prints no such line.
 */
int route_stream_take(struct route_stream *stream, const char *bytes, size_t length, size_t *taken,
		      struct reason *reason);

/* Whether the input may end here. */
bool route_stream_is_whole(const struct route_stream *stream);

#endif
