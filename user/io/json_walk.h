/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Walks JSON in its text, value by value, so that a line number can be told and a long list takes
 * no more memory than its text. Structure only: jansson looks at what is made a value of.
 */
#ifndef XDP_CUCKOO_JSON_WALK_H
#define XDP_CUCKOO_JSON_WALK_H

#include <jansson.h>
#include <linux/types.h>

#define JSON_WALK_KEY_BYTES 24 /* a longer key is given as "" */

/* A piece of the text, which holds no NUL byte, and the number of the line it starts in. */
struct json_span {
	const char *at, *end;
	__u64 line;
};

/*
 * Call `take` for each member of an object, each element of an array, until it returns non-zero,
 * and return that; else 0, or -EBADMSG with what is left of the text at *bad.
 */
typedef int json_take_member(const char *key, const struct json_span *value, void *context);
typedef int json_take_element(const struct json_span *value, void *context);
int json_walk_object(const struct json_span *object, json_take_member *take, void *context, struct json_span *bad);
int json_walk_array(const struct json_span *array, json_take_element *take, void *context, struct json_span *bad);

/* The same of the object at the front of a text; then the text is what comes behind it and white space. */
int json_walk_next(struct json_span *text, json_take_member *take, void *context, struct json_span *bad);

/* The value of a piece; NULL where it is none. */
json_t *json_walk_value(const struct json_span *span);

#endif
