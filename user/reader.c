// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "reader.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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

int reader_next(struct reader *reader)
{
	static const char byte_order_mark[] = "\xef\xbb\xbf";
	ssize_t length;

	while ((length = getline(&reader->line, &reader->room, reader->file)) >= 0) {
		reader->number++;
		reader->bytes_read += length;
		if (strlen(reader->line) != (size_t)length)
			return -EILSEQ;
		if (reader->number == 1 && !strncmp(reader->line, byte_order_mark, 3))
			memmove(reader->line, reader->line + 3, length - 2);
		strip_comment(reader->line);
		trim(reader->line);
		if (*reader->line)
			return 1;
	}
	return ferror(reader->file) ? -EIO : 0;
}
