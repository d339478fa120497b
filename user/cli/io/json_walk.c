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
			for (span->at++; span->at < span->end && *span->at != '"'; span->at++)
				span->at += *span->at == '\\' && span->at + 1 < span->end;
			if (!take_char(span, '"'))
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

int json_walk_next(struct json_walk *walk)
{
	struct json_span *rest = &walk->rest, key;
	const bool is_first = !walk->value.at;
	size_t length;

	if (is_first && !take_char(rest, walk->open))
		return -EBADMSG;
	if (is_first || !take_char(rest, ',')) {
		if (take_char(rest, walk->open == '{' ? '}' : ']')) {
			skip_space(rest);
			return 0;
		}
		if (!is_first)
			return -EBADMSG;
	}
	if (walk->open == '{') {
		if (!take_value(rest, &key) || *key.at != '"')
			return -EBADMSG;
		length = key.end - key.at - 2;
		length = length < JSON_WALK_KEY_BYTES ? length : 0;
		*(char *)mempcpy(walk->key, key.at + 1, length) = '\0';
		if (!take_char(rest, ':'))
			return -EBADMSG;
	}
	return take_value(rest, &walk->value) ? 1 : -EBADMSG;
}
