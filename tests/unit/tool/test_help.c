// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Checks help: the examples of each command can be typed, and its options are those of the table. */
#include <getopt.h>

#include "unit/test.h"
#include "command/options.h"
#include "io/output.h"

/* clang-format off */
#define COMMANDS(X) \
	X(load) X(unload) X(status) X(stats) X(top) X(add) X(del) X(test) X(list) X(flush) X(import) X(export) X(backup) \
	X(restore) X(lists) X(refresh) X(batch) X(flowspec) X(crowdsec) X(expire) X(monitor) X(policy) X(monitor_only) \
	X(panic) X(confirm) X(fleet) X(publish) X(follow) X(up) X(resize) X(object) X(check) \
	X(bench) X(metrics) X(exporter)
#define DECLARE(name) extern const struct command command_##name;
#define NAME(name) &command_##name,
COMMANDS(DECLARE)

/* All programs as one. */
static const struct command *const commands[] = { COMMANDS(NAME) NULL };
static const struct help_text texts[] = {
#include "help-tool.h"
#include "help-watch.h"
#include "help-feed.h"
#include "help-fleet.h"
#include "help-exporter.h"
#include "help-bench.h"
	{ NULL, NULL },
};
/* clang-format on */
static const struct program all_programs = { PROGRAM_TOOL, commands, texts };

#define WORDS_MAX 32
#define LINE_BYTES 256
#define EXAMPLES_MIN 2
#define TOOL "xdp-cuckoo"

/* ---- lines of shell ---- */

struct words {
	char text[LINE_BYTES];
	char *word[WORDS_MAX + 1]; /* ends with NULL */
	int count;
};

/* Cuts the next word out of *rest, without its quotes. NULL at the end. */
static char *next_word(char **rest)
{
	char *word = *rest + strspn(*rest, " "), *end = word;

	if (!*word)
		return NULL;
	if (*word == '\'' || *word == '"') {
		end = strchr(word + 1, *word);
		word++;
	} else {
		end += strcspn(word, " ");
	}
	assert_non_null(end);
	*rest = *end ? end + 1 : end;
	*end = '\0';
	return word;
}

static struct words *split(const char *line, size_t length, struct words *words)
{
	char *rest = words->text, *word;

	assert_in_range(length, 1, LINE_BYTES - 1);
	memcpy(words->text, line, length);
	words->text[length] = '\0';
	words->count = 0;
	while ((word = next_word(&rest))) {
		assert_in_range(words->count, 0, WORDS_MAX - 1);
		words->word[words->count++] = word;
	}
	words->word[words->count] = NULL;
	return words;
}

static bool is_joint(const char *word)
{
	return !strcmp(word, "|") || !strcmp(word, "&&");
}

/* ---- examples ---- */

/* Reads the words as main() does, and a rule as its command does. argv[0] is the tool. */
static const struct command *parse(int argc, char **argv)
{
	struct options_arguments arguments = { .invocation = { .name = SESSION_NAME_DEFAULT } };
	const struct command_row *row;
	const struct command *command;
	struct reason reason;
	struct rules rules;

	optind = 0;
	assert_int_equal(options_read(argc, argv, &arguments), STATUS_DONE);
	output_use_json(false);
	assert_in_range(optind, 1, argc - 1);
	row = command_find(argv[optind]);
	assert_non_null(row);
	command = program_command(row);
	assert_non_null(command);
	arguments.invocation.operands = argv + optind + 1;
	arguments.invocation.count = argc - optind - 1;
	assert_int_equal(options_check(command, &arguments), STATUS_DONE);
	if (strncmp(command->usage, "RULE", 4))
		return command;
	if (rules_parse(&rules, (const char *const *)arguments.invocation.operands, arguments.invocation.count, false,
			&reason))
		fail_msg("%s", reason.text);
	rules_free(&rules);
	return command;
}

/* How often the line runs this command; | and && join commands. Every run of the tool in the line must parse. */
static int uses(const struct command *command, struct words *words)
{
	int used = 0;

	for (int first = 0, next; first < words->count; first = next + 1) {
		char *joint;

		for (next = first; next < words->count && !is_joint(words->word[next]);)
			next++;
		joint = words->word[next];
		words->word[next] = NULL;
		if (next > first && !strcmp(words->word[first], TOOL))
			used += parse(next - first, words->word + first) == command;
		words->word[next] = joint;
	}
	return used;
}

static bool is_example(const char *line, size_t length)
{
	const char *tool = memmem(line, length, TOOL " ", strlen(TOOL " "));

	return length > 2 && line[0] == ' ' && line[1] == ' ' && tool &&
	       (tool == line + 2 || memchr(line, '|', tool - line));
}

static void check_examples(const struct command *command)
{
	const char *help = command_help_text(command);
	struct words words;
	int examples = 0;

	assert_true(*help);
	for (const char *line = help; *line; line += strcspn(line, "\n") + 1) {
		const size_t length = strcspn(line, "\n");

		assert_int_equal(line[length], '\n');
		if (is_example(line, length))
			examples += uses(command, split(line, length, &words)) > 0;
	}
	if (examples < EXAMPLES_MIN)
		fail_msg("%s: %d examples of it", command->name, examples);
}

TEST(test_examples)
{
	for (const struct command_row *known = command_table; known->name; known++) {
		print_message("%s\n", known->name);
		check_examples(program_command(known));
	}
}

/* ---- options ---- */

static const struct option_row *find_option(const char *name)
{
	for (const struct option_row *row = options_table; row->name; row++)
		if (!strcmp(row->name, name))
			return row;
	return NULL;
}

static bool has_choice(const char *choices, const char *choice)
{
	const size_t length = strlen(choice);

	for (; *choices; choices += strcspn(choices, "|") + 1) {
		if (strcspn(choices, "|") == length && !memcmp(choices, choice, length))
			return true;
		if (!choices[strcspn(choices, "|")])
			return false;
	}
	return false;
}

/* The value in the usage must be that of the table, or some of its choices. */
static void check_value(const struct command *command, const struct option_row *row, char *value)
{
	char *choice;

	while ((choice = strsep(&value, "|")))
		if (!has_choice(row->value, choice))
			fail_msg("%s: --%s cannot be %s", command->name, row->name, choice);
}

static __u64 check_usage(const struct command *command)
{
	char text[2 * LINE_BYTES], *rest = text, *word;
	__u64 shown = 0;

	snprintf(text, sizeof(text), "%s", command->usage);
	while ((word = strsep(&rest, " []|"))) {
		const struct option_row *row = strncmp(word, "--", 2) || !word[2] ? NULL : find_option(word + 2);

		if (!row && !strncmp(word, "--", 2) && word[2])
			fail_msg("%s: its usage has %s, the table has not", command->name, word);
		if (!row)
			continue;
		shown |= 1ULL << (row - options_table);
		if (row->value) {
			word = strsep(&rest, " ]");
			assert_non_null(word);
			check_value(command, row, word);
		}
	}
	return shown;
}

TEST(test_usage_has_the_options_of_the_command)
{
	for (const struct command_row *known = command_table; known->name; known++) {
		const __u64 shown = check_usage(program_command(known));

		for (const struct option_row *row = options_table; row->name; row++) {
			const bool is_shown = shown & 1ULL << (row - options_table);

			if (!row->is_common && is_shown != options_are_of(row, program_command(known)))
				fail_msg("%s: --%s is in its usage: %d", known->name, row->name, is_shown);
		}
	}
}

TEST(test_every_option_is_some_command_s)
{
	for (const struct option_row *row = options_table; row->name; row++) {
		bool is_taken = false;

		for (const struct command_row *known = command_table; known->name; known++)
			is_taken |= options_are_of(row, program_command(known));
		if (!is_taken)
			fail_msg("--%s", row->name);
		assert_non_null(row->meaning);
	}
}

static int run_all_programs(void **state)
{
	(void)state;
	program = &all_programs;
	return 0;
}

TEST_MAIN(run_all_programs, NULL)
