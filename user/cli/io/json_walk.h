/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Walks JSON as text, value by value. So errors have line numbers, and a long list needs no more memory than
 * its text. This module checks only the structure; jansson checks each value that is read.
 */
#ifndef XDP_CUCKOO_JSON_WALK_H
#define XDP_CUCKOO_JSON_WALK_H

#include <jansson.h>
#include <linux/types.h>

#define JSON_WALK_KEY_BYTES 64

/* A piece of the text, without NUL bytes, and the number of its first line. */
struct json_span {
	const char *at, *end;
	__u64 line;
};

/* A walk over the members of an object, or the elements of an array, at the start of a text. */
struct json_walk {
	struct json_span rest; /* of the text */
	char open;             /* '{' or '[' */
	struct json_span value;
	char key[JSON_WALK_KEY_BYTES]; /* of a member; "": it is longer */
};

/*
 * Takes the next member or element off the text. 1; 0 at the end: then `rest` starts after the object or array
 * and white space; -EBADMSG: `rest` starts where the text is not JSON.
 */
int json_walk_next(struct json_walk *walk);

/* The value of a piece; NULL: it is not a value. */
json_t *json_walk_value(const struct json_span *span);

#endif
