// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * complete: prints what the word being typed may become, for shells. The candidates come from the usage of
 * commands, the table of options and the words of rules. Prints no errors, and must be quick.
 */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "command/command.h"
#include "kernel/interfaces.h"
#include "command/options.h"
#include "counters/counters.h"
#include "io/output.h"

#define SPEC_BYTES 128
#define LINE_BYTES 512

struct completion {
	const char *word;                /* the word to complete */
	const char *start;               /* text before it to repeat in each candidate, like --mode= */
	const struct option_row *option; /* the word is its value; NULL: it is no value */
	const char *state, *name;        /* where the lists are */
	__u64 given;                     /* bit i: options_table[i] was given */
	const struct command *command;   /* NULL: not typed yet */
	bool is_lost;                    /* the typed command does not exist */
	bool has_options_ended;          /* after -- */
	char *const *words;              /* all words */
	int operand[RULE_WORDS_MAX];     /* indexes of the operands in `words` */
	int operands;
};

/* ---- candidates ---- */

static void print(const struct completion *completion, const char *word, const char *meaning)
{
	char line[LINE_BYTES];

	snprintf(line, sizeof(line), "%s%s%s%s", *word == ':' ? "" : completion->start, word, meaning ? "\t" : "",
		 meaning ? meaning : "");
	output_list_row(json_pack("{s:s, s:s?}", "word", word, "meaning", meaning), line);
}

static void offer(const struct completion *completion, const char *word, const char *meaning)
{
	if (word && !strncmp(word, completion->word, strlen(completion->word)))
		print(completion, word, meaning);
}

/* Offers only names without characters that are special to a shell. */
static void offer_interface(const char *name, void *completion)
{
	if (!name[strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")])
		offer(completion, name, NULL);
}

static bool is_running(const struct kernel_filter *filters, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(filters[i].config->name, name))
			return true;
	return false;
}

/* Each name once. */
static void offer_names(const struct completion *completion)
{
	DIR *state = opendir(completion->state ? completion->state : SESSION_STATE_DEFAULT);
	struct kernel_filter *filters = NULL;
	const struct dirent *entry;
	struct reason ignored;
	size_t count = 0;

	kernel_find_filters((struct kernel_wish){ .keeps_pins = true }, &filters, &count, &ignored);
	for (size_t i = 0; i < count; i++)
		if (session_is_name(filters[i].config->name) && !is_running(filters, i, filters[i].config->name))
			offer(completion, filters[i].config->name, "running");
	while (state && (entry = readdir(state)))
		if (session_is_name(entry->d_name) && (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN) &&
		    !is_running(filters, count, entry->d_name))
			offer(completion, entry->d_name, "stored");
	kernel_filters_free(filters, count);
	if (state)
		closedir(state);
}

static void offer_lists(const struct completion *completion)
{
	struct reason ignored;
	struct store_lists lists;
	struct store *store = NULL;

	if (*completion->word == '-' ||
	    session_open_store(completion->state, completion->name, STORE_READ, &store, &ignored) ||
	    store_lists(store, &lists))
		lists = (struct store_lists){};
	for (size_t i = 1; i <= STORE_LISTS_MAX; i++)
		if (*lists.list[i].name)
			offer(completion, lists.list[i].name, "list");
	store_close(store);
}

static void offer_spec(const struct completion *completion, const char *spec);

/* Offers values for the word before, or the words that the rule does not have yet. */
static void offer_rule(const struct completion *completion)
{
	const char *word, *value;
	unsigned int seen = 0;

	for (int i = 0; i < completion->operands; i++) {
		for (size_t index = 0; (word = rule_word(index, &value)); index++)
			if (!strcmp(word, completion->words[completion->operand[i]])) {
				seen |= 1U << index;
				break;
			}
		if (word && ++i == completion->operands) {
			offer_spec(completion, value);
			return;
		}
	}
	for (size_t index = 0; (word = rule_word(index, &value)); index++)
		if (!(seen & 1U << index))
			offer(completion, word, value);
}

/*
 * `spec`: placeholders in usage texts, options and rules, and words, joined by '|'; dots may follow. N, TIME and the like
 * have no candidates.
 */
static void offer_spec(const struct completion *completion, const char *spec)
{
	char copy[SPEC_BYTES], *rest = copy, *place;

	snprintf(copy, sizeof(copy), "%.*s", (int)strcspn(spec, " ]"), spec);
	while ((place = strsep(&rest, "|"))) {
		char *dots = strstr(place, "...");

		if (dots)
			*dots = '\0';
		if (!strcmp(place, "IFACE"))
			interfaces_names(offer_interface, (void *)completion);
		else if (!strcmp(place, "NAME") && completion->option && !strcmp(completion->option->name, "name"))
			offer_names(completion);
		else if (!strcmp(place, "NAME") || (!strcmp(place, "LIST") && !completion->operands))
			offer_lists(completion);
		else if (!strcmp(place, "COMMAND"))
			for (const struct command_row *row = command_table; row->name; row++)
				offer(completion, row->group == COMMAND_HIDDEN ? NULL : row->name, row->summary);
		else if (!strcmp(place, "OUTCOME"))
			for (enum abi_outcome outcome = 0; outcome < OUTCOME_POLICIES; outcome++)
				offer(completion, outcome_words[outcome].name, outcome_words[outcome].meaning);
		else if (!strcmp(place, "RULE") || !strcmp(place, "RULE-OR-FLOW"))
			offer_rule(completion);
		else if (!strcmp(place, "PROTOCOL"))
			for (int number = 0; number <= RULE_PROTO_MAX; number++)
				offer(completion, rule_protocol_name(number), NULL);
		else if (!strcmp(place, "FILE") && (*completion->word != '-' || completion->has_options_ended))
			print(completion, ":file", NULL);
		else if (!strcmp(place, "DIR"))
			print(completion, ":dir", NULL);
		else if (strncmp(place, "--", 2) && !strpbrk(place, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
			offer(completion, place, NULL);
	}
}

static void offer_options(const struct completion *completion)
{
	char option[SPEC_BYTES];

	for (const struct option_row *row = options_table; row->name; row++) {
		const bool is_given = completion->given & 1ULL << (row - options_table);

		if (is_given || (completion->command ? !options_are_of(row, completion->command) : !row->is_common))
			continue;
		snprintf(option, sizeof(option), "--%s", row->name);
		offer(completion, option, row->meaning);
	}
}

/* ---- the word to complete ---- */

static const struct option_row *find_option(const char *name, size_t length)
{
	for (const struct option_row *row = options_table; row->name; row++)
		if (strlen(row->name) == length && !memcmp(row->name, name, length))
			return row;
	return NULL;
}

/* The next word of a usage, cut off at blanks and brackets; NULL at its end. */
static const char *next_of_usage(const char *usage, const char *word)
{
	word = word ? word + strcspn(word, " ]") : usage;
	word += strspn(word, " []");
	return *word ? word : NULL;
}

/* The value that the option takes. The usage of the command may allow less than the table of options. */
static const char *value_of(const struct command *command, const struct option_row *row)
{
	const size_t length = strlen(row->name);

	for (const char *word = command ? next_of_usage(command->usage, NULL) : NULL; word;
	     word = next_of_usage(command->usage, word))
		if (!strncmp(word, "--", 2) && !strncmp(word + 2, row->name, length) && word[2 + length] == ' ')
			return next_of_usage(command->usage, word);
	return row->value;
}

/* The placeholder of the next operand in the usage; NULL: none. */
static const char *operand_of(const struct completion *completion)
{
	const char *usage = completion->command->usage;
	int place = 0;

	for (const char *word = next_of_usage(usage, NULL); word; word = next_of_usage(usage, word)) {
		const size_t length = strcspn(word, " ]");

		if (!strncmp(word, "--", 2)) {
			const struct option_row *row = find_option(word + 2, length - 2);

			if (row && row->value)
				word = next_of_usage(usage, word);
			continue;
		}
		if (place++ == completion->operands || memmem(word, length, "...", 3) || !strncmp(word, "RULE", 4))
			return word;
	}
	return NULL;
}

/* Reads the option at word `i`. Returns how many words it takes. Its value may be the word to complete. */
static int take_option(struct completion *completion, int i, int last)
{
	const char *name = completion->words[i] + 2, *value = strchr(name, '=');
	const struct option_row *row = find_option(name, value ? (size_t)(value - name) : strlen(name));
	int used = 1;

	if (!row)
		return 1;
	completion->given |= 1ULL << (row - options_table);
	if (!row->value || value)
		return 1;
	/* bash makes a word of '='. */
	if (!strcmp(completion->words[i + 1], "=") && i + 1 < last)
		used++;
	if (i + used >= last)
		completion->option = row;
	else if (!strcmp(row->name, "state"))
		completion->state = completion->words[i + used];
	else if (!strcmp(row->name, "name"))
		completion->name = completion->words[i + used];
	else if (!strcmp(row->name, "pins"))
		kernel_use_pins(completion->words[i + used]);
	return used + 1;
}

static enum command_status run_complete(const struct invocation *invocation)
{
	const int last = invocation->count - 1;
	struct completion completion = { .words = invocation->operands,
					 .state = invocation->state,
					 .name = invocation->name };
	const struct command_row *row;
	char start[SPEC_BYTES];
	const char *spec, *value;

	completion.word = last < 0 ? "" : completion.words[last];
	for (int i = 0; i < last;) {
		const char *word = completion.words[i];

		if (!completion.has_options_ended && !strncmp(word, "--", 2) && word[2]) {
			i += take_option(&completion, i, last);
			continue;
		}
		if (!strcmp(word, "--")) {
			completion.has_options_ended = true;
		} else if (!completion.command && !completion.is_lost) {
			row = command_find(word);
			completion.command = row ? program_command(row) : NULL;
			if (row && !completion.command)
				return program_start(row, NULL);
			completion.is_lost = !row;
		} else if (completion.operands < RULE_WORDS_MAX) {
			completion.operand[completion.operands++] = i;
		}
		i++;
	}
	/* Splits --mode=na into an option and its value; bash passes `=` as a word of its own. */
	value = strchr(completion.word, '=');
	completion.start = "";
	if (completion.option && !strcmp(completion.word, "=")) {
		completion.word = "";
	} else if (!completion.option && !completion.has_options_ended && !strncmp(completion.word, "--", 2) && value) {
		completion.option = find_option(completion.word + 2, value - completion.word - 2);
		snprintf(start, sizeof(start), "%.*s", (int)(value + 1 - completion.word), completion.word);
		completion.start = start;
		completion.word = value + 1;
	}
	output_list_begin();
	spec = completion.command ? operand_of(&completion) : "COMMAND";
	if (completion.option && completion.option->value)
		offer_spec(&completion, value_of(completion.command, completion.option));
	if (!completion.option && !completion.is_lost && spec)
		offer_spec(&completion, spec);
	if (!completion.option && !completion.is_lost && !completion.has_options_ended &&
	    (*completion.word == '-' || !spec))
		offer_options(&completion);
	output_list_end();
	return STATUS_DONE;
}

const struct command command_complete = {
	.name = "complete",
	.usage = "-- WORD...",
	.max = -1,
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ,
	.run = run_complete,
};
