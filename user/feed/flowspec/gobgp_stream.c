// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "feed/flowspec/internal.h"

#include <errno.h>
#include <stdlib.h>

int route_stream_open(struct route_stream *stream)
{
	*stream = (struct route_stream){ .route = malloc(ROUTE_STREAM_BYTES), .line = 1 };
	return stream->route ? 0 : -ENOMEM;
}

void route_stream_close(struct route_stream *stream)
{
	free(stream->route);
	*stream = (struct route_stream){};
}

/* The rest of the line is skipped. `c`: the character at fault. */
static int refuse(struct route_stream *stream, char c, struct reason *reason, const char *what)
{
	reason_set(reason, -EBADMSG, "line %llu of the input %s", (unsigned long long)stream->line, what);
	stream->depth = 0;
	stream->is_in_array = stream->has_content = stream->is_in_string = stream->is_escaped = false;
	stream->is_skipping = c != '\n';
	stream->line += c == '\n';
	return -EBADMSG;
}

/* Takes a character of a route. Returns whether it was the last one. */
static bool take_inside(struct route_stream *stream, char c)
{
	stream->route[stream->used++] = c;
	if (stream->is_in_string) {
		if (!stream->is_escaped && c == '"')
			stream->is_in_string = false;
		stream->is_escaped = !stream->is_escaped && c == '\\';
		return false;
	}
	stream->is_in_string = c == '"';
	stream->depth += c == '{' || c == '[';
	stream->depth -= c == '}' || c == ']';
	return !stream->depth;
}

/*
 * Takes a character between routes. A line is a route, or an array of routes; after `]` nothing may follow but the end of the
 * line.
 */
static int take_between(struct route_stream *stream, char c, struct reason *reason)
{
	switch (c) {
	case ' ':
	case '\t':
	case '\r':
		return 0;
	case '\n':
		if (stream->is_in_array)
			return refuse(stream, c, reason, "ends within an array");
		if (!stream->has_content)
			return refuse(stream, c, reason,
				      "is empty: gobgp could not print what has changed; read its text from a "
				      "socket: see xdp-cuckoo-flowspec(7)");
		stream->line++;
		stream->has_content = false;
		return 0;
	case '[':
		if (stream->has_content)
			break;
		stream->is_in_array = stream->has_content = true;
		return 0;
	case ']':
		if (!stream->is_in_array)
			break;
		stream->is_in_array = false;
		return 0;
	case ',':
		if (!stream->is_in_array)
			break;
		return 0;
	case '{':
		if (stream->has_content && !stream->is_in_array)
			break;
		stream->has_content = true;
		stream->used = 0;
		take_inside(stream, c);
		return 0;
	}
	return refuse(stream, c, reason, "is not an array of routes");
}

int route_stream_take(struct route_stream *stream, const char *bytes, size_t length, size_t *taken,
		      struct reason *reason)
{
	for (*taken = 0; *taken < length;) {
		const char c = bytes[(*taken)++];
		int error = 0;

		if (stream->is_skipping) {
			stream->is_skipping = c != '\n';
			stream->line += c == '\n';
		} else if (!stream->depth)
			error = take_between(stream, c, reason);
		else if (c == '\n')
			error = refuse(stream, c, reason, "ends within a route");
		else if (stream->used + 2 > ROUTE_STREAM_BYTES) /* this character, and a 0 behind the route */
			error = refuse(stream, c, reason, "has a route of more than 256 KiB");
		else if (take_inside(stream, c)) {
			stream->route[stream->used] = '\0';
			return 1;
		}
		if (error)
			return error;
	}
	return 0;
}

bool route_stream_is_whole(const struct route_stream *stream)
{
	return !stream->depth && !stream->has_content && !stream->is_skipping;
}
