// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "commands/batch_line.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/output.h"
#include "base/suggest.h"

static const struct {
	const char *text;
	enum command_status status;
} answers[] = {
	[BATCH_ADDED] = { "added", STATUS_DONE },
	[BATCH_UPDATED] = { "updated", STATUS_DONE },
	[BATCH_ALREADY_THERE] = { "already there", STATUS_NO },
	[BATCH_DELETED] = { "deleted", STATUS_DONE },
	[BATCH_NO_SUCH_RULE] = { "no such rule", STATUS_NO },
	[BATCH_ERROR] = { "error", STATUS_USAGE },
};

int batch_line_parse(const char *text, struct batch_request *request, struct reason *reason)
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
			return rule_parse(text + length, &request->rule, reason);
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

static int add(struct batch_line *line, struct session *session, const struct rule *rule, struct reason *reason)
{
	enum store_added added;
	int error = change_add(session, rule, &added, reason);

	if (!error)
		answer(line,
		       added == STORE_ADDED     ? BATCH_ADDED :
		       added == STORE_UNCHANGED ? BATCH_ALREADY_THERE :
						  BATCH_UPDATED,
		       NULL);
	return error;
}

static int del(struct batch_line *line, struct session *session, const struct rule *rule, struct reason *reason)
{
	enum store_deleted deleted;
	int error = change_del(session, rule, &deleted, reason);

	if (!error)
		answer(line, deleted == STORE_NO_SUCH_RULE ? BATCH_NO_SUCH_RULE : BATCH_DELETED, NULL);
	return error;
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
		return add(line, session, &request->rule, reason);
	case BATCH_DEL:
		return del(line, session, &request->rule, reason);
	default:
		return test(line, session, &request->rule, reason);
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
