// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "reader.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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
	if (error)
		reader_close(reader);
	else
		reader->bytes_total = S_ISREG(status.st_mode) ? status.st_size : 0;
	return error;
}

void reader_close(struct reader *reader)
{
	if (reader->file && reader->file != stdin)
		fclose(reader->file);
	free(reader->line);
	*reader = (struct reader){};
}

static void strip_comment(char *line)
{
	bool is_quoted = false;

	for (; *line; line++) {
		if (*line == '"')
			is_quoted = !is_quoted;
		if (!is_quoted && (*line == '#' || *line == ';'))
			*line = '\0';
		if (!*line)
			return;
	}
}

static void trim(char *line)
{
	size_t start = strspn(line, " \t\r\n\v\f"), length;

	memmove(line, line + start, strlen(line + start) + 1);
	for (length = strlen(line); length && isspace((unsigned char)line[length - 1]); length--)
		line[length - 1] = '\0';
}

/* Without its line end and, in the first line, without a byte order mark. */
static void cut_ends(struct reader *reader, size_t length)
{
	static const char byte_order_mark[] = "\xef\xbb\xbf";
	char *line = reader->line;

	if (length && line[length - 1] == '\n')
		line[--length] = '\0';
	if (length && line[length - 1] == '\r')
		line[--length] = '\0';
	if (reader->number == 1 && !strncmp(line, byte_order_mark, 3))
		memmove(line, line + 3, length - 2);
}

/* A signal may end the wait for input. */
static int read_error(const struct reader *reader)
{
	return !ferror(reader->file) ? 0 : errno == EINTR ? -EINTR : -EIO;
}

int reader_line(struct reader *reader)
{
	ssize_t length;

	if (reader->is_kept) {
		reader->is_kept = false;
		return 1;
	}
	length = getline(&reader->line, &reader->room, reader->file);
	if (length < 0)
		return read_error(reader);
	reader->number++;
	reader->bytes_read += length;
	if (memchr(reader->line, '\0', length))
		return -EILSEQ;
	cut_ends(reader, length);
	return 1;
}

void reader_keep(struct reader *reader)
{
	reader->is_kept = true;
}

int reader_next(struct reader *reader)
{
	int got;

	while ((got = reader_line(reader)) > 0) {
		strip_comment(reader->line);
		trim(reader->line);
		if (*reader->line)
			break;
	}
	return got;
}

static int read_on(struct reader *reader, char **text, size_t *length)
{
	size_t room = *length + REST_BYTES_FIRST, got = 1;

	while (got) {
		char *grown = realloc(*text, room + 1);

		if (!grown)
			return -ENOMEM;
		*text = grown;
		got = fread(*text + *length, 1, room - *length, reader->file);
		*length += got;
		reader->bytes_read += got;
		if (*length == room)
			room *= 2;
	}
	(*text)[*length] = '\0';
	return read_error(reader);
}

int reader_rest(struct reader *reader, char **text, size_t *length)
{
	const int kept = reader->is_kept ? asprintf(text, "%s\n", reader->line) : 0;
	int error;

	if (kept < 0)
		return -ENOMEM;
	if (!kept)
		*text = NULL;
	*length = kept;
	reader->is_kept = false;
	error = read_on(reader, text, length);
	if (!error && memchr(*text, '\0', *length))
		error = -EILSEQ;
	if (!error)
		return 0;
	free(*text);
	*text = NULL;
	return error;
}
