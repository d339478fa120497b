// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "io/json_walk.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

static void skip_space(struct json_span *span)
{
	for (; span->at < span->end && strchr(" \t\r\n", *span->at); span->at++)
		span->line += *span->at == '\n';
}

static bool take_char(struct json_span *span, char wanted)
{
	skip_space(span);
	if (span->at == span->end || *span->at != wanted)
		return false;
	span->at++;
	return true;
}

static bool skip_string(struct json_span *span)
{
	for (span->at++; span->at < span->end && *span->at != '"'; span->at++)
		span->at += *span->at == '\\' && span->at + 1 < span->end;
	return take_char(span, '"');
}

/*
 * Takes the text of one value off the front. Only counts brackets: jansson checks the values that are read.
 */
static bool take_value(struct json_span *span, struct json_span *value)
{
	size_t depth = 0;

	skip_space(span);
	*value = *span;
	do {
		skip_space(span);
		if (span->at == span->end)
			return false;
		depth += *span->at == '{' || *span->at == '[';
		if ((*span->at == '}' || *span->at == ']') && !depth--)
			return false;
		if (*span->at == '"') {
			if (!skip_string(span))
				return false;
		} else {
			span->at++;
			while (!depth && span->at < span->end && !strchr(",:]}[{\" \t\r\n", *span->at))
				span->at++;
		}
	} while (depth);
	value->end = span->at;
	return true;
}

json_t *json_walk_value(const struct json_span *span)
{
	json_error_t ignored;

	return json_loadb(span->at, span->end - span->at, JSON_DECODE_ANY, &ignored);
}

static int failed(const struct json_span *at, struct json_span *bad)
{
	*bad = *at;
	return -EBADMSG;
}

static bool take_key(struct json_span *object, char key[JSON_WALK_KEY_BYTES])
{
	struct json_span span;
	size_t length;

	if (!take_value(object, &span) || *span.at != '"')
		return false;
	length = span.end - span.at - 2;
	if (length >= JSON_WALK_KEY_BYTES)
		length = 0;
	*(char *)mempcpy(key, span.at + 1, length) = '\0';
	return take_char(object, ':');
}

int json_walk_next(struct json_span *text, json_take_member *take, void *context, struct json_span *bad)
{
	struct json_span value;
	char key[JSON_WALK_KEY_BYTES];
	int error = 0;

	if (!take_char(text, '{'))
		return failed(text, bad);
	if (!take_char(text, '}')) {
		do {
			if (!take_key(text, key) || !take_value(text, &value))
				return failed(text, bad);
			error = take(key, &value, context);
		} while (!error && take_char(text, ','));
		if (!error && !take_char(text, '}'))
			return failed(text, bad);
	}
	skip_space(text);
	return error;
}

int json_walk_object(const struct json_span *object, json_take_member *take, void *context, struct json_span *bad)
{
	struct json_span rest = *object;

	return json_walk_next(&rest, take, context, bad);
}

int json_walk_array(const struct json_span *array, json_take_element *take, void *context, struct json_span *bad)
{
	struct json_span rest = *array, value;
	int error = 0;

	if (!take_char(&rest, '['))
		return failed(&rest, bad);
	if (take_char(&rest, ']'))
		return 0;
	do {
		if (!take_value(&rest, &value))
			return failed(&rest, bad);
		error = take(&value, context);
	} while (!error && take_char(&rest, ','));
	return error ? error : take_char(&rest, ']') ? 0 : failed(&rest, bad);
}
