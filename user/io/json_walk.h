/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Walks JSON as text, value by value. So errors have line numbers, and a long list needs no more memory than
 * its text. This module checks only the structure; jansson checks each value that is read.
 */
#ifndef XDP_CUCKOO_JSON_WALK_H
#define XDP_CUCKOO_JSON_WALK_H

#include <jansson.h>
#include <linux/types.h>

#define JSON_WALK_KEY_BYTES 24 /* a longer key is passed as "" */

/* A piece of the text, without NUL bytes, and the number of its first line. */
struct json_span {
	const char *at, *end;
	__u64 line;
};

/*
 * Call `take` for each member of an object, or each element of an array, until it returns non-zero; return
 * that value. Return 0 at the end, or -EBADMSG with the rest of the text at *bad.
 */
typedef int json_take_member(const char *key, const struct json_span *value, void *context);
typedef int json_take_element(const struct json_span *value, void *context);
int json_walk_object(const struct json_span *object, json_take_member *take, void *context, struct json_span *bad);
int json_walk_array(const struct json_span *array, json_take_element *take, void *context, struct json_span *bad);

/*
 * The same for the object at the start of a text. Afterwards the text starts after the object and white
 * space.
 */
int json_walk_next(struct json_span *text, json_take_member *take, void *context, struct json_span *bad);

/* The value of a piece; NULL: it is not a value. */
json_t *json_walk_value(const struct json_span *span);

#endif
