// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "command/batch_words.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/suggest.h"

/* Puts a word before those of a rule. */
static int put_first(struct rule_words *words, const char *first, struct reason *reason)
{
	if (words->count == RULE_WORDS_MAX)
		return reason_set(reason, -EINVAL, "too many words for a rule");
	memmove(words->word + 1, words->word, words->count++ * sizeof(*words->word));
	words->word[0] = first;
	return 0;
}

int batch_address_parse(const char *text, const char *list, bool is_strict, struct batch_request *request,
			struct reason *reason)
{
	struct rule_words words;
	int error = rule_words_split(&words, text, reason);

	request->verb = BATCH_ADD;
	if (!error && words.count != 1 && (words.count != 3 || strcmp(words.word[1], "timeout")))
		error = reason_set(reason, -EINVAL,
				   "'%.60s': with --addresses a line is an address or prefix, and perhaps timeout TIME",
				   text);
	if (!error)
		error = put_first(&words, "src", reason);
	if (!error) /* not command_parse_rules(): "list timeout ADDRESS" would choose the list */
		error = rules_parse(&request->rules, words.word, words.count, is_strict, reason);
	snprintf(request->list, sizeof(request->list), "%s", list ? list : "");
	if (error || request->rules.count == 1)
		return error;
	rules_free(&request->rules);
	return reason_set(reason, -EINVAL, "'%.60s' is not one address or prefix", text);
}

char *batch_line_trim(char *line)
{
	bool is_quoted = false;

	line += strspn(line, BATCH_WHITE);
	for (char *c = line; *c; c++) {
		is_quoted ^= *c == '"';
		if (*c == '#' && !is_quoted && c > line && strchr(BATCH_WHITE, c[-1]))
			*c = '\0';
	}
	return line;
}

int batch_line_parse(const char *text, const char *list, bool is_strict, struct batch_request *request,
		     struct reason *reason)
{
	static const char *const verbs[] = { [BATCH_ADD] = "add", [BATCH_DEL] = "del", [BATCH_TEST] = "test" };
	const size_t length = strcspn(text, BATCH_WHITE);
	char verb[SUGGEST_WORD_BYTES], near[SUGGEST_TEXT_BYTES];
	const char *command;
	struct suggest suggest;
	struct rule_words words;
	int error;

	snprintf(verb, sizeof(verb), "%.*s", (int)(length < sizeof(verb) ? length : 0), text);
	command = command_find(verb) ? command_find(verb)->name : "";
	for (request->verb = BATCH_ADD; request->verb <= BATCH_TEST && strcmp(verbs[request->verb], command);
	     request->verb++)
		;
	if (request->verb > BATCH_TEST) {
		suggest = suggest_for_part(text, length);
		suggest_offer_choices(&suggest, "add|del|test");
		return reason_set(reason, -EINVAL, "'%.*s': a line starts with add, del or test%s",
				  length < 40 ? (int)length : 40, text, suggest_text(&suggest, NULL, near));
	}
	request->rules = (struct rules){};
	error = rule_words_split(&words, text + length, reason);
	if (!error && command_alias_word(verb))
		error = put_first(&words, command_alias_word(verb), reason);
	if (!error)
		error = command_parse_rules(&words, is_strict, &request->rules, &list, reason);
	snprintf(request->list, sizeof(request->list), "%s", list ? list : "");
	if (!error && request->verb == BATCH_ADD)
		error = command_check_sense(&request->rules, reason);
	else if (!error && request->verb == BATCH_TEST && request->rules.count != 1)
		error = reason_set(reason, -EINVAL, "these words mean %zu rules; test one at a time",
				   request->rules.count);
	if (error)
		rules_free(&request->rules);
	return error;
}
