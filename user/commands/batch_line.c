// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "commands/batch_line.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/output.h"
#include "base/suggest.h"

#define LINE_TEXT_BYTES (2 * RULE_TEXT_BYTES)

static const struct {
	const char *text;
	enum command_status status;
} answers[] = {
	[BATCH_ADDED] = { "added", STATUS_DONE },
	[BATCH_UPDATED] = { "updated", STATUS_DONE },
	[BATCH_ALREADY_THERE] = { "already there", STATUS_NO },
	[BATCH_DELETED] = { "deleted", STATUS_DONE },
	[BATCH_LEFT_TO_OTHERS] = { "left to others", STATUS_DONE },
	[BATCH_NO_SUCH_RULE] = { "no such rule", STATUS_NO },
	[BATCH_LISTED] = { "listed", STATUS_DONE },
	[BATCH_NOT_LISTED] = { "not listed", STATUS_NO },
	[BATCH_ERROR] = { "error", STATUS_USAGE },
};

static int parse_rule(const char *text, const char *list, struct batch_request *request, struct reason *reason)
{
	const char *words[RULE_WORDS_MAX];
	char copy[LINE_TEXT_BYTES];
	size_t count;
	int error;

	if (strlen(text) >= sizeof(copy))
		return reason_set(reason, -EINVAL, "'%.20s...' is too long for a rule", text);
	strcpy(copy, text);
	error = rule_split(copy, words, &count, reason);
	if (!error)
		error = command_take_list(words, &count, &list, reason);
	if (!error)
		error = rule_parse_words(words, count, &request->rule, reason);
	snprintf(request->list, sizeof(request->list), "%s", list ? list : "");
	return error;
}

int batch_line_parse(const char *text, const char *list, struct batch_request *request, struct reason *reason)
{
	static const char *const verbs[] = {
		[BATCH_ADD] = "add",
		[BATCH_DEL] = "del",
		[BATCH_TEST] = "test",
	};
	size_t length = strcspn(text, BATCH_WHITE);
	char near[SUGGEST_TEXT_BYTES];
	struct suggest suggest;

	for (request->verb = BATCH_ADD; request->verb <= BATCH_TEST; request->verb++) {
		const char *verb = verbs[request->verb];

		if (strlen(verb) == length && !memcmp(verb, text, length))
			return parse_rule(text + length, list, request, reason);
	}
	suggest = suggest_for_part(text, length);
	suggest_offer_choices(&suggest, "add|del|test");
	return reason_set(reason, -EINVAL, "'%.*s': a line starts with add, del or test%s",
			  length < 40 ? (int)length : 40, text, suggest_text(&suggest, NULL, near));
}

static void answer(struct batch_line *line, enum batch_answer what, const char *detail)
{
	free(line->detail);
	line->answer = what;
	line->status = what < BATCH_TESTED                  ? answers[what].status :
		       what - BATCH_TESTED >= QUERY_BLOCKED ? STATUS_DONE :
							      STATUS_NO;
	line->detail = detail ? strdup(detail) : NULL;
}

static const char *list_of(const struct batch_request *request)
{
	return *request->list ? request->list : NULL;
}

static int add(struct batch_line *line, struct session *session, const struct batch_request *request,
	       struct reason *reason)
{
	enum store_added added;
	int error = change_open_list(session, list_of(request), NULL, reason);

	if (!error)
		error = change_add(session, &request->rule, &added, reason);
	if (!error)
		answer(line,
		       added == STORE_ADDED     ? BATCH_ADDED :
		       added == STORE_UNCHANGED ? BATCH_ALREADY_THERE :
						  BATCH_UPDATED,
		       NULL);
	return error;
}

/* A list that does not exist has no rule. */
static int del(struct batch_line *line, struct session *session, const struct batch_request *request,
	       struct reason *reason)
{
	enum store_deleted deleted = STORE_NO_SUCH_RULE;
	int error = change_find_list(session, list_of(request), reason);

	if (!error)
		error = *request->list ? change_give_up(session, &request->rule, &deleted, reason) :
					 change_del(session, &request->rule, &deleted, reason);
	if (!error || error == -ESRCH)
		answer(line,
		       deleted == STORE_NO_SUCH_RULE ? BATCH_NO_SUCH_RULE :
		       deleted == STORE_STILL_WANTED ? BATCH_LEFT_TO_OTHERS :
						       BATCH_DELETED,
		       NULL);
	return error == -ESRCH ? 0 : error;
}

static int test_list(struct batch_line *line, struct session *session, const struct batch_request *request,
		     struct reason *reason)
{
	char text[RULE_TEXT_BYTES];
	struct rule rule;
	int error = change_find_list(session, request->list, reason);

	if (error && error != -ESRCH)
		return error;
	if (!error)
		error = query_test_owned(session->store, session->owner, &request->rule, &rule);
	if (error && error != -ENOENT && error != -ESRCH)
		return store_say_unread(error, reason);
	answer(line, error ? BATCH_NOT_LISTED : BATCH_LISTED, error ? NULL : rule_format(&rule, text));
	return 0;
}

static int test(struct batch_line *line, struct session *session, const struct rule *flow, struct reason *reason)
{
	enum query_decision decision;
	char text[RULE_TEXT_BYTES];
	struct rule rule;
	bool is_listed;
	int error = query_decide(session->store, flow, &rule, &is_listed, &decision);

	if (error)
		return store_say_unread(error, reason);
	answer(line, BATCH_TESTED + decision, is_listed ? rule_format(&rule, text) : NULL);
	return 0;
}

int batch_line_run(struct batch_line *line, struct session *session, const struct batch_request *request,
		   struct reason *reason)
{
	switch (request->verb) {
	case BATCH_ADD:
		return add(line, session, request, reason);
	case BATCH_DEL:
		return del(line, session, request, reason);
	default:
		return *request->list ? test_list(line, session, request, reason) :
					test(line, session, &request->rule, reason);
	}
}

void batch_line_fail(struct batch_line *line, int error, const struct reason *reason)
{
	answer(line, BATCH_ERROR, reason->text);
	line->status = command_status_of(error);
}

void batch_line_print(const struct batch_line *line, const char *name)
{
	const char *said = line->answer < BATCH_TESTED ? answers[line->answer].text :
							 query_decision_words[line->answer - BATCH_TESTED];
	const char *detail = line->detail ? line->detail : "";
	char text[RULE_TEXT_BYTES + REASON_BYTES];
	json_t *row = NULL;

	if (line->answer == BATCH_ERROR)
		snprintf(text, sizeof(text), "error: %.200s:%llu: %s", name, line->number, detail);
	else
		snprintf(text, sizeof(text), "%s%s%s", said, line->detail ? " by " : "", detail);
	if (output_is_json() && line->answer == BATCH_ERROR)
		row = json_pack("{s:I, s:o}", "line", line->number, said, output_string(detail));
	else if (output_is_json())
		row = json_pack("{s:I, s:s, s:s*}", "line", line->number, "answer", said, "rule", line->detail);
	output_answer(row, text);
}

void batch_line_close(struct batch_line *line)
{
	free(line->detail);
	line->detail = NULL;
}
