// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reads a configuration file: its lines, its sections, and what must not be missing. */
#include "config/config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/safe_text.h"
#include "change/change.h"
#include "config/internal.h"
#include "config/policies.h"

#define LINE_BYTES 4096

void config_refuse(struct config_reading *reading, unsigned int line, const char *format, ...)
{
	char what[REASON_BYTES], text[REASON_BYTES + 512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(what, sizeof(what), format, arguments);
	va_end(arguments);
	if (line)
		snprintf(text, sizeof(text), "%.300s:%u: %s", reading->path, line, what);
	else
		snprintf(text, sizeof(text), "%.300s: %s", reading->path, what);
	reading->is_refused = true;
	reading->refuse(text);
}

#define refuse(reading, ...) config_refuse(reading, (reading)->line, __VA_ARGS__)

char *config_copy(struct config_reading *reading, const char *text)
{
	char *copied = strdup(text);

	reading->is_out_of_memory |= !copied;
	return copied;
}

/* ---- sections ---- */

static void begin_list(struct config_reading *reading, const char *name)
{
	struct config *config = reading->config;
	struct config_list *list = &config->list[config->lists_count];

	for (size_t i = 0; i < config->lists_count; i++)
		if (config->list[i].name && !strcmp(config->list[i].name, name)) {
			refuse(reading, "[list %s] is there twice, first in line %u", name, config->list[i].line);
			return;
		}
	if (!session_is_name(name)) {
		refuse(reading,
		       "[list %s]: a list's name has 1 to %d letters, digits, '.', '_' or '-', and does not "
		       "start with '.' or '-'",
		       name, ABI_NAME_BYTES - 1);
		return;
	}
	if (config->lists_count == STORE_LISTS_MAX) {
		refuse(reading, "more than %d lists", STORE_LISTS_MAX);
		return;
	}
	config->lists_count++;
	reading->section = SECTION_LIST;
	list->line = reading->line;
	list->name = config_copy(reading, name);
}

static void begin_section(struct config_reading *reading, char *name)
{
	reading->given = 0;
	reading->section = SECTION_UNKNOWN;
	if (!strncmp(name, "list", 4) && strchr(" \t", name[4]) && name[4]) {
		begin_list(reading, name + 4 + strspn(name + 4, " \t"));
	} else if (!strcmp(name, "filter") && reading->filter_line) {
		refuse(reading, "[filter] is there twice, first in line %u", reading->filter_line);
	} else if (!strcmp(name, "filter")) {
		reading->section = SECTION_FILTER;
		reading->filter_line = reading->line;
	} else if (!strcmp(name, "policy") && reading->has_policy_section) {
		refuse(reading, "[policy] is there twice");
	} else if (!strcmp(name, "policy")) {
		reading->section = SECTION_POLICY;
		reading->has_policy_section = true;
	} else {
		refuse(reading, "unknown section [%s]; there are [filter], [policy] and [list NAME]", name);
	}
}

/* Whether libinih ignores the rest of a line: it is blank, or a comment. */
static bool is_ignored(const char *rest)
{
	const size_t spaces = strspn(rest, " \t\r\n");

	return !rest[spaces] || (spaces && strchr(";#", rest[spaces]));
}

/* Finds [NAME] by the same rules as libinih. */
static void look_for_section(struct config_reading *reading, const char *line)
{
	char name[256];
	size_t length;

	line += strspn(line, " \t\r\n");
	if (*line != '[')
		return;
	line += 1 + strspn(line + 1, " \t");
	length = strcspn(line, "]");
	if (!line[length]) {
		config_refuse(reading, reading->line, "a section ends with ]");
		reading->section = SECTION_UNKNOWN;
		return;
	}
	if (!is_ignored(line + length + 1)) {
		const char *rest = line + length + 1 + strspn(line + length + 1, " \t");

		config_refuse(reading, reading->line, "'%.*s' after ]: write it on a line of its own",
			      (int)strcspn(rest, "\r\n"), rest);
	}
	while (length && strchr(" \t", line[length - 1]))
		length--;
	snprintf(name, sizeof(name), "%.*s", (int)length, line);
	begin_section(reading, name);
}

/* ---- lines ---- */

static bool is_comment(const char *line)
{
	line += strspn(line, " \t\r\n");
	return !*line || strchr("#;[", *line);
}

/* KEY = VALUE by the rules of libinih: a comment may start before the `=`. */
static bool is_assignment(const char *line)
{
	const char *c = line;

	while (*c && !strchr("=:", *c) && !(c > line && isspace((unsigned char)c[-1]) && strchr(";#", *c)))
		c++;
	return *c == '=' || *c == ':';
}

/* Refuses lines that libinih would continue, cut in two, or reject without naming each. */
static bool is_line(struct config_reading *reading, const char *line, size_t size)
{
	const size_t length = strlen(line);
	int c;

	if (length + 1 < size && !(length && line[length - 1] == '\n') && !feof(reading->file)) {
		refuse(reading, "a NUL byte; this is not text");
		return false;
	}
	if (length + 1 == size && line[length - 1] != '\n') {
		refuse(reading, "the line is longer than %zu bytes", size - 2);
		while ((c = fgetc(reading->file)) != EOF && c != '\n')
			;
		return false;
	}
	if (is_comment(line) || is_assignment(line))
		return true;
	refuse(reading, "'%.*s' is neither [SECTION] nor KEY = VALUE", (int)strcspn(line, "\r\n"), line);
	return false;
}

/* Used by libinih in place of fgets(). Removes a byte order mark. A refused line becomes an empty line. */
static char *next_line(char *line, int size, void *context)
{
	struct config_reading *reading = context;

	if (!fgets(line, size, reading->file))
		return NULL;
	if (!reading->line++)
		memmove(line, text_behind_mark(line), strlen(text_behind_mark(line)) + 1);
	if (!is_line(reading, line, size))
		strcpy(line, "\n");
	look_for_section(reading, line);
	return line;
}

/* ---- the whole ---- */

static void check_filter(struct config_reading *reading)
{
	const struct config *config = reading->config;
	const struct load_options *load = &config->load;

	if (!reading->filter_line)
		config_refuse(reading, 0, "there is no [filter] section with interfaces = NAME...");
	else if (!config->interfaces_count)
		config_refuse(reading, reading->filter_line,
			      "[filter] names no interfaces; write interfaces = NAME...");
	if (load->fingerprint_bits && !load->is_compact)
		config_refuse(reading, reading->filter_line,
			      "fingerprint needs table = compact: an exact table has 16 bits and drops no "
			      "innocent packet");
}

static void check_policies(struct config_reading *reading)
{
	const struct config *config = reading->config;

	for (enum abi_outcome i = 0; i < OUTCOME_POLICIES; i++)
		if (config->has_policy[i] && config->policy[i] == VERDICT_DROP && !config->is_forced &&
		    policy_danger(i))
			config_refuse(reading, reading->policy_line[i],
				      "'drop' here %s; write force = yes in [policy] if you mean it", policy_danger(i));
}

/* The file tells root what to do, so nobody else may be able to write to it. */
static int check_file(FILE *file, const char *path, struct reason *reason)
{
	struct stat status;

	if (fstat(fileno(file), &status))
		return reason_set(reason, -errno, "cannot read '%s': %s", path, strerror(errno));
	if (!S_ISREG(status.st_mode))
		return reason_set(reason, -EINVAL, "'%s' is not a regular file; write the configuration into one",
				  path);
	if (status.st_uid && status.st_uid != geteuid())
		return reason_set(reason, -EPERM,
				  "other users can write to '%s': it must belong to root or to you; chown root", path);
	if (status.st_mode & (S_IWGRP | S_IWOTH))
		return reason_set(reason, -EPERM, "other users can write to '%s'; chmod go-w", path);
	return 0;
}

static int read_file(struct config_reading *reading, struct reason *reason)
{
	static char comments[] = ";#";
	int error_line;

	ini_allow_multiline = false;
	ini_inline_comment_prefixes = comments;
	ini_use_stack = false;
	ini_initial_alloc = ini_max_line = LINE_BYTES;
	error_line = ini_parse_stream(next_line, reading, config_take_key, reading);
	if (error_line < 0)
		reading->is_out_of_memory = true;
	/* libinih refused a line that is_line() accepted. */
	if (error_line > 0 && !reading->is_refused)
		config_refuse(reading, error_line, "this is neither [SECTION] nor KEY = VALUE");
	if (ferror(reading->file))
		return reason_set(reason, -EIO, "cannot read '%s'", reading->path);
	check_filter(reading);
	check_policies(reading);
	for (size_t i = 0; i < reading->config->lists_count; i++) {
		const struct config_list *list = &reading->config->list[i];

		if (!list->file)
			config_refuse(reading, list->line, "[list %s] names no file; write file = /PATH", list->name);
	}
	if (reading->is_out_of_memory)
		return reason_set(reason, -ENOMEM, "no memory for the configuration");
	return reading->is_refused ?
		       reason_set(reason, -EINVAL, "%s has mistakes; nothing was changed", reading->path) :
		       0;
}

static int say_cannot_open(const char *path, int error, struct reason *reason)
{
	const char *what_to_do = error == -ENOENT ? "; copy the example there, share/doc/xdp-cuckoo/default.conf under "
						    "/usr/local or /usr, and edit it, or name a FILE" :
				 error == -EACCES ? "; run it as root, or name a FILE" :
						    "";

	return reason_set(reason, error, "cannot read '%s': %s%s", path, strerror(-error), what_to_do);
}

int config_open(const char *path, const char *name, void (*refuse)(const char *text), struct config **config,
		struct reason *reason)
{
	struct config_reading reading = { .refuse = refuse };
	char default_path[PATH_MAX];
	int error, fd;

	*config = NULL;
	snprintf(default_path, sizeof(default_path), "%s/%s.conf", CONFIG_DIR, name);
	reading.path = path ? path : default_path;
	/* Does not wait for the writer of a FIFO, which check_file() refuses below. */
	fd = open(reading.path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return say_cannot_open(reading.path, -errno, reason);
	reading.config = calloc(1, sizeof(**config));
	reading.file = reading.config ? fdopen(fd, "r") : NULL;
	if (!reading.file) {
		close(fd);
		free(reading.config);
		return say_cannot_open(reading.path, -ENOMEM, reason);
	}
	error = check_file(reading.file, reading.path, reason);
	if (!error)
		error = read_file(&reading, reason);
	fclose(reading.file);
	if (error)
		config_close(reading.config);
	else
		*config = reading.config;
	return error;
}

void config_close(struct config *config)
{
	if (!config)
		return;
	for (size_t i = 0; i < config->interfaces_count; i++)
		free(config->interfaces[i]);
	for (size_t i = 0; i < config->lists_count; i++) {
		free(config->list[i].name);
		free(config->list[i].file);
		free(config->list[i].format);
	}
	free(config);
}

int config_check_list_file(const struct config_list *list, struct reason *reason)
{
	struct stat status;

	if (stat(list->file, &status) || !S_ISFIFO(status.st_mode))
		return 0;
	return reason_set(reason, -EINVAL, "'%s' is a FIFO; write the list into a file", list->file);
}
