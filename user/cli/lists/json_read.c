// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Reads the addresses of a JSON document that list->json names, or of several documents one after another. Walks the text once
 * for each path, as nft_read.c does: a long list needs no more memory than its text.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/safe_text.h"
#include "io/json_walk.h"
#include "lists/internal.h"

#define BETWEEN ", \t" /* two paths */
#define SHOWN_BYTES 60 /* of a value, in messages */
#define STEPS_MAX 32   /* of a path */

struct json_list {
	struct list_input *list;
	struct json_span rest; /* of the text */
	__u64 found;           /* values that the path names */
};

/* The name at the start of a path, behind its dot; 0: it starts with []. */
static size_t name_length(const char *path)
{
	return strcspn(path, ".[]\"" BETWEEN);
}

/* The path behind its first step, .NAME or [] or .[]; NULL: it does not start with one. */
static const char *behind_step(const char *path)
{
	const bool has_dot = *path == '.';
	const size_t length = has_dot ? name_length(path + 1) : 0;

	if (!length)
		return strncmp(path + has_dot, "[]", 2) ? NULL : path + has_dot + 2;
	return length < JSON_WALK_KEY_BYTES ? path + 1 + length : NULL;
}

static bool is_end(const char *path)
{
	return strchr(BETWEEN, *path);
}

bool list_is_json_path(const char *text)
{
	const char *path = text + strspn(text, BETWEEN);

	if (!*path)
		return false;
	while (*path) {
		if (*path != '.')
			return false;
		for (int steps = 0; path && !is_end(path) && steps <= STEPS_MAX; steps++)
			path = steps < STEPS_MAX ? behind_step(path) : NULL;
		if (!path)
			return false;
		path += strspn(path, BETWEEN);
	}
	return true;
}

static void refuse_value(struct json_list *in, const struct json_span *span)
{
	in->list->reader.number = span->line;
	list_refuse(in->list, "'%.*s': no text with an address",
		    (int)(span->end - span->at < SHOWN_BYTES ? span->end - span->at : SHOWN_BYTES), span->at);
}

/* An address, prefix or range. What is null is not there. */
static int take_value(struct json_list *in, const struct json_span *span)
{
	struct list_input *list = in->list;
	json_t *value = json_walk_value(span);
	struct list_row row;
	int error = 0;

	list->reader.number = span->line;
	in->found += !json_is_null(value);
	list_row_clear(&row);
	if (json_is_string(value)) {
		list_row_add(&row, "src", json_string_value(value));
		error = list_take(list, &row);
	} else if (!json_is_null(value)) {
		refuse_value(in, span);
	}
	json_decref(value);
	return error;
}

/* A count or a date beside the objects that the path leads through, as in {"total": 5, "1": {"ip": ...}}. An address is none. */
static bool is_beside(const struct json_walk *walk)
{
	json_t *value = walk->open == '{' ? json_walk_value(&walk->value) : NULL;
	const char *text = json_string_value(value);
	const bool is_beside = value && !(text && strpbrk(text, ".:") && list_is_rule(text));

	json_decref(value);
	return is_beside;
}

/*
 * Takes what the path names in a value. A path has at most STEPS_MAX steps, and so many calls nest. in->rest: behind the value, or
 * where it is not JSON.
 */
static int walk(struct json_list *in, const struct json_span *span, const char *path)
{
	struct json_walk walk_of = { .rest = *span, .open = span->at[strspn(span->at, " \t\r\n")] };
	const char *next = behind_step(path), *name = path + 1;
	const size_t length = *path == '.' ? name_length(name) : 0;
	int got = 0, error = list_go_on(in->list);

	while (!error && (got = json_walk_next(&walk_of)) > 0) {
		if (length &&
		    (walk_of.open != '{' || strlen(walk_of.key) != length || memcmp(walk_of.key, name, length)))
			continue;
		if (is_end(next))
			error = take_value(in, &walk_of.value);
		else if (strchr("{[", *walk_of.value.at))
			error = walk(in, &walk_of.value, next);
		else if (strncmp(walk_of.value.at, "null", 4) && !is_beside(&walk_of))
			refuse_value(in, &walk_of.value);
	}
	if (!error)
		in->rest = walk_of.rest;
	return error ? error : got;
}

static int read_path(struct json_list *in, const struct json_span *text, const char *path)
{
	struct list_input *list = in->list;
	int error = 0;

	in->rest = *text;
	in->found = 0;
	while (!error && in->rest.at < text->end)
		error = strchr("{[", in->rest.at[strspn(in->rest.at, " \t\r\n")]) ? walk(in, &in->rest, path) :
										    -EBADMSG;
	list->reader.number = in->rest.line;
	list->is_cut |= error == -EBADMSG || (!error && !in->found && !list->may_lack);
	if (error == -EBADMSG)
		return list_reject(list, "'%.*s': not JSON; not all of it was read", SHOWN_BYTES, in->rest.at);
	if (!error && !in->found && !list->may_lack)
		return list_reject(list, "'%.*s' leads to no value", (int)strcspn(path, BETWEEN), path);
	return error;
}

int list_read_json(struct list_input *list)
{
	struct json_list in = { .list = list };
	struct json_span span = { .line = 1 };
	const char *path = list->json ? list->json : "";
	size_t length;
	char *text;
	int error;

	if (!list->json)
		return list_refuse(list, "this is JSON; " LIST_NAME_JSON);
	error = reader_rest(&list->reader, &text, &length);
	if (error == -EILSEQ)
		return list_refuse(list, "a NUL byte; this is not a text file");
	if (error)
		return error;
	span.at = text_behind_mark(text);
	span.end = text + length;
	list->reader.number = 1;
	while (!error && *(path += strspn(path, BETWEEN))) {
		error = read_path(&in, &span, path);
		path += strcspn(path, BETWEEN);
	}
	free(text);
	/* What is wrong with the text has been refused. */
	return error == -EBADMSG || error == -EINVAL ? 0 : error;
}
