// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * help, --version. Help is made from the tables of commands and options. It is prose, so it is printed here and
 * not by io/output.c.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command/command.h"
#include "command/options.h"
#include "lists/list.h"
#include "io/output.h"
#include "base/safe_text.h"
#include "base/version.h"
#include "commit.h"
#include "io/whole_file.h"

static const char *const titles[COMMAND_TOOL] = {
	[COMMAND_RUN] = "Run it:",
	[COMMAND_RULES] = "Rules:",
	[COMMAND_LOOK] = "See what it does:",
	[COMMAND_FLEET] = "Many hosts:",
};

static const char *text_named(const char *name)
{
	for (const struct help_text *row = program->texts; row->name; row++)
		if (!strcmp(row->name, name))
			return row->text;
	return "";
}

const char *command_help_text(const struct command *command)
{
	return text_named(command->name);
}

/* The help text, with the line "@" replaced by what .explain writes. The caller frees it. NULL: no memory. */
static char *help_of(const struct command *command)
{
	const char *help = command_help_text(command), *at = command->explain ? strstr(help, "@\n") : NULL;
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	if (!to)
		return NULL;
	fprintf(to, "%.*s", at ? (int)(at - help) : 0, help);
	if (at)
		command->explain(to);
	fputs(at ? at + strlen("@\n") : help, to);
	return fclose(to) ? NULL : text;
}

/* The usage, its lines broken before an option in brackets so that they fit 80 columns; the summary; the other names. */
static void print_head(const struct command *command)
{
	const char *aliases, *name, *word;
	bool has_one = false;
	size_t column = printf("usage: xdp-cuckoo %s", command->name);
	const size_t indent = column;
	const char *part = command->usage;

	while (*part) {
		const char *next = strstr(part + 1, " [");
		size_t length = next ? (size_t)(next - part) : strlen(part);

		if (column + 1 + length > 79 && column > indent)
			column = printf("\n%*s", (int)indent, "") - 1;
		/* A long choice of words goes on in the next line. */
		for (const char *bar; column + 1 + length > 79 && (bar = memrchr(part, '|', 78 - column));) {
			printf(" %.*s\n%*s", (int)(bar + 1 - part), part, (int)indent, "");
			column = indent;
			length -= bar + 1 - part;
			part = bar + 1;
		}
		column += printf(" %.*s", (int)length, part);
		part += length + (next != NULL);
	}
	printf("\n%s\n\n", command_find(command->name)->summary);
	for (size_t i = 0; (aliases = command_aliases(i, &name, &word)); i++) {
		if (strcmp(name, command->name))
			continue;
		printf("%s", has_one ? ", " : "Other names: ");
		for (const char *c = aliases; *c; c++)
			printf("%.*s", *c == '|' ? 2 : 1, *c == '|' ? ", " : c);
		if (word)
			printf(" (%s)", word);
		has_one = true;
	}
	if (has_one)
		printf("\n\n");
}

/*
 * Breaks lines longer than 80 columns at a blank, and a longer word anywhere. The rest starts below the text after the first
 * gap: a table.
 */
static void print_wrapped(const char *text)
{
	while (*text) {
		size_t length = strcspn(text, "\n");
		const char *gap = memmem(text + 2, length > 2 ? length - 2 : 0, "  ", 2);
		const size_t indent = gap ? gap - text + strspn(gap, " ") : 0;

		for (size_t column = 0; column + length > 80; column = indent) {
			const size_t least = column ? 0 : indent;
			size_t cut = 80 - column;

			while (cut > least && text[cut] != ' ')
				cut--;
			cut = cut > least ? cut : 80 - column;
			printf("%.*s\n%*s", (int)cut, text, (int)indent, "");
			cut += text[cut] == ' ';
			text += cut;
			length -= cut;
		}
		printf("%.*s\n", (int)length, text);
		text += length + (text[length] == '\n');
	}
}

/* The commands of every day, each with its summary; the others by name. It fits a terminal of 24 lines. */
static void print_all(void)
{
	char line[256];

	fputs(text_named("_introduction"), stdout);
	for (const struct command_row *row = command_table; row->name; row++)
		if (row->is_daily)
			printf("  %-13s %s\n", row->name, row->summary);
	for (enum command_group group = 0; group < COMMAND_TOOL; group++) {
		const char *comma = "";

		snprintf(line, sizeof(line), "%-17s  ", titles[group]);
		for (const struct command_row *row = command_table; row->name; row++)
			if (row->group == group && !row->is_daily) {
				text_append(line, sizeof(line), "%s%s", comma, row->name);
				comma = ", ";
			}
		print_wrapped(line);
	}
	fputs(text_named("_ending"), stdout);
}

static void explain_options(FILE *to)
{
	char option[64];

	for (const struct option_row *row = options_table; row->name; row++) {
		snprintf(option, sizeof(option), "--%s%s%s%s%c", row->name, row->value ? " " : "",
			 row->value ? row->value : "", row->letter ? ", -" : "", row->letter);
		if (row->is_common)
			fprintf(to, "  %-13s  %s\n", option, row->meaning);
	}
}

static json_t *describe_command(const struct command *command)
{
	char *help = help_of(command);
	json_t *options = json_array();
	json_t *description = json_pack("{s:s, s:s, s:s, s:s, s:o}", "command", command->name, "usage", command->usage,
					"summary", command_find(command->name)->summary, "help", help ? help : "",
					"options", options);

	for (const struct option_row *row = options_table; row->name; row++)
		if (options_are_of(row, command))
			json_array_append_new(options, json_pack("{s:s, s:s?, s:s}", "option", row->name, "value",
								 row->value, "meaning", row->meaning));
	free(help);
	return description;
}

/* Those of the other programs too, as far as they are installed. */
static json_t *describe_all(void)
{
	json_t *rows = json_array(), *of[PROGRAMS] = {}, *description;
	const struct command *command;
	size_t next[PROGRAMS] = {};

	for (const struct command_row *row = command_table; row->name; row++) {
		command = program_command(row);
		if (row->group == COMMAND_HIDDEN ||
		    (program->number != PROGRAM_TOOL && row->program != program->number))
			continue;
		if (!command && !of[row->program])
			of[row->program] = program_help(row->program);
		description = command ? describe_command(command) :
					json_incref(json_array_get(of[row->program], next[row->program]++));
		json_array_append_new(rows, description);
	}
	for (size_t i = 0; i < PROGRAMS; i++)
		json_decref(of[i]);
	return rows;
}

static enum command_status run_help(const struct invocation *invocation)
{
	const char *word = invocation->count ? invocation->operands[0] : NULL;
	const struct command_row *row = NULL;
	const struct command *command;
	char *help;

	/* Words of rules are explained by `add`, formats of lists by `import`. */
	if (word)
		row = command_find(!strcasecmp(word, "rules") || !strcasecmp(word, "rule") || rule_keyword_of(word) ?
					   "add" :
				   list_format_named(word) ? "import" :
							     word);
	if (word && !row)
		return command_fail_unknown(word);
	command = row ? program_command(row) : NULL;
	if (row && !command)
		return program_start(row, NULL);
	if (command && output_is_json()) {
		output_print(describe_command(command));
	} else if (command) {
		help = help_of(command);
		if (!help)
			return command_fail(STATUS_FULL, "no memory for the help");
		print_head(command);
		print_wrapped(help + (*help == '\n'));
		free(help);
	} else if (output_is_json()) {
		output_print(describe_all());
	} else {
		print_all();
	}
	return STATUS_DONE;
}

static enum command_status run_version(const struct invocation *invocation)
{
	(void)invocation;
	output_print(json_pack("{s:s, s:s*, s:i, s:i}", "xdp-cuckoo", VERSION, "commit", *COMMIT ? COMMIT : NULL,
			       "table_version", ABI_VERSION, "store_schema", STORE_SCHEMA));
	return STATUS_DONE;
}

const struct command command_help = {
	.name = "help",
	.usage = "[COMMAND|rules]",
	.explain = explain_options,
	.max = 1,
	.run = run_help,
};

const struct command command_version = {
	.name = "version",
	.usage = "",
	.run = run_version,
};
