// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "io/line_file.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/safe_text.h"

#define REST_BYTES_FIRST 65536

int reader_open(struct reader *reader, const char *path)
{
	bool is_stdin = !strcmp(path, "-");
	struct stat status;
	int error;

	*reader = (struct reader){ .name = is_stdin ? "standard input" : path };
	reader->file = is_stdin ? stdin : fopen(path, "re");
	if (!reader->file)
		return -errno;
	error = fstat(fileno(reader->file), &status) ? -errno : S_ISDIR(status.st_mode) ? -EISDIR : 0;
	if (error) {
		reader_close(reader);
		return error;
	}
	reader->bytes_total = S_ISREG(status.st_mode) ? status.st_size : 0;
	reader->modified = status.st_mtim;
	return 0;
}

void reader_peek(struct reader *reader, char *text, size_t room)
{
	size_t length = 0;
	int c = 0;

	while (length + 1 < room && !reader->is_cut && (c = getc(reader->file)) != EOF)
		text[length++] = c;
	text[length] = '\0';
	while (length)
		ungetc((unsigned char)text[--length], reader->file);
}

bool reader_begins(struct reader *reader, const char *text)
{
	char start[32];

	reader_peek(reader, start, strlen(text) + 1);
	return !strcmp(start, text);
}

bool reader_is_changed(const struct reader *reader)
{
	struct stat now;

	return !fstat(fileno(reader->file), &now) && S_ISREG(now.st_mode) &&
	       ((__u64)now.st_size != reader->bytes_total || now.st_mtim.tv_sec != reader->modified.tv_sec ||
		now.st_mtim.tv_nsec != reader->modified.tv_nsec);
}

void reader_close(struct reader *reader)
{
	if (reader->file && reader->file != stdin)
		fclose(reader->file);
	free(reader->line);
	*reader = (struct reader){};
}

/* EINTR: a signal ended the wait for input. */
static int read_error(const struct reader *reader)
{
	return !ferror(reader->file) ? 0 : errno == EINTR ? -EINTR : -EIO;
}

int reader_line(struct reader *reader)
{
	const char *text;
	size_t length = 0;
	int c = 0;

	if (reader->is_kept || reader->is_cut) {
		reader->is_kept = false;
		return reader->is_cut ? -EMSGSIZE : 1;
	}
	if (!reader->line)
		reader->line = malloc(READER_LINE_BYTES + 2);
	if (!reader->line)
		return -ENOMEM;
	/* Up to the end of the line, or one byte more than a line may have. */
	while (length <= READER_LINE_BYTES && c != '\n' && (c = getc_unlocked(reader->file)) != EOF)
		reader->line[length++] = c;
	reader->line[length] = '\0';
	if (!length)
		return read_error(reader);
	reader->number++;
	reader->bytes_read += length;
	reader->is_cut = length > READER_LINE_BYTES && reader->line[length - 1] != '\n';
	if (memchr(reader->line, '\0', length))
		return -EILSEQ;
	if (length && reader->line[length - 1] == '\n')
		reader->line[--length] = '\0';
	if (length && reader->line[length - 1] == '\r')
		reader->line[--length] = '\0';
	text = reader->number == 1 ? text_behind_mark(reader->line) : reader->line;
	if (text > reader->line)
		memmove(reader->line, text, strlen(text) + 1);
	return reader->is_cut ? -EMSGSIZE : 1;
}

/* "192.0.2.1;192.0.2.2" and "192.0.2.1;dport=22" have no comment: something would be lost without a word. */
static bool begins_comment(const char *line, const char *at)
{
	return *at == '#' || (*at == ';' && (at == line || isspace((unsigned char)at[-1]) || !at[1] ||
					     isspace((unsigned char)at[1])));
}

int reader_next(struct reader *reader)
{
	int got;

	while ((got = reader_line(reader)) > 0) {
		char *start = reader->line, *end = start;
		bool is_quoted = false;

		for (; *end && (is_quoted || !begins_comment(reader->line, end)); end++)
			is_quoted ^= *end == '"';
		while (start < end && isspace((unsigned char)*start))
			start++;
		while (end > start && isspace((unsigned char)end[-1]))
			end--;
		*end = '\0';
		if (start > reader->line)
			memmove(reader->line, start, end - start + 1);
		if (end > start)
			break;
	}
	return got;
}

int reader_rest(struct reader *reader, char **text, size_t *length)
{
	const int kept = reader->is_kept ? asprintf(text, "%s%s", reader->line, reader->is_cut ? "" : "\n") : 0;
	size_t room = kept + REST_BYTES_FIRST, got = 1;
	int error = kept < 0 ? -ENOMEM : 0;

	if (kept <= 0)
		*text = NULL;
	*length = kept;
	reader->is_kept = reader->is_cut = false;
	while (!error && got) {
		char *grown = realloc(*text, room + 1);

		if (!grown) {
			error = -ENOMEM;
			break;
		}
		*text = grown;
		got = fread(*text + *length, 1, room - *length, reader->file);
		if (memchr(*text + *length, '\0', got))
			error = -EILSEQ;
		*length += got;
		reader->bytes_read += got;
		(*text)[*length] = '\0';
		if (*length == room)
			room *= 2;
	}
	if (!error)
		error = read_error(reader);
	if (!error)
		return 0;
	free(*text);
	*text = NULL;
	return error;
}
