// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "tool/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/output.h"
#include "base/suggest.h"

extern const struct command command_add, command_del, command_test;

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

static void answer(struct batch_line *line, enum batch_answer what, const char *detail)
{
	free(line->detail);
	line->answer = what;
	line->status = what < BATCH_TESTED                  ? answers[what].status :
		       what - BATCH_TESTED >= QUERY_BLOCKED ? STATUS_DONE :
							      STATUS_NO;
	line->detail = detail ? strdup(detail) : NULL;
}

static int change(struct batch_line *line, struct session *session, const struct batch_request *request,
		  struct reason *reason)
{
	const char *list = *request->list ? request->list : NULL;
	const bool is_added = request->verb == BATCH_ADD;
	enum batch_answer best = BATCH_NO_SUCH_RULE, what;
	enum store_deleted deleted;
	enum store_added added;
	char text[RULE_TEXT_BYTES] = "";
	struct rule pass;
	int error = is_added ? change_open_list(session, list, NULL, reason) : change_find_list(session, list, reason);

	/* A list that does not exist has no rule. */
	if (error && (is_added || error != -ESRCH))
		return error;
	for (size_t i = 0; i < request->rules.count && error != -ESRCH; i++) {
		const struct rule *rule = &request->rules.rule[i];

		error = is_added ? change_add(session, rule, &added, reason) :
			list     ? change_give_up(session, rule, &deleted, reason) :
				   change_del(session, rule, &deleted, reason);
		if (error)
			return error;
		if (is_added)
			what = added == STORE_ADDED     ? BATCH_ADDED :
			       added == STORE_UNCHANGED ? BATCH_ALREADY_THERE :
							  BATCH_UPDATED;
		else
			what = deleted == STORE_DELETED      ? BATCH_DELETED :
			       deleted == STORE_STILL_WANTED ? BATCH_LEFT_TO_OTHERS :
							       BATCH_NO_SUCH_RULE;
		best = what < best ? what : best;
		if (is_added && !*text && query_is_passed(session->store, rule, &pass))
			rule_format(&pass, text);
	}
	answer(line, best, *text ? text : NULL);
	return 0;
}

int batch_line_run(struct batch_line *line, struct session *session, const struct batch_request *request,
		   struct reason *reason)
{
	const struct rule *flow = request->rules.rule;
	struct query_finding found;
	char text[RULE_TEXT_BYTES];
	struct rule rule;
	int error;

	if (request->verb != BATCH_TEST)
		return change(line, session, request, reason);
	if (!*request->list) {
		error = query_decide(session->store, flow, QUERY_BEGINNING, &found);
		if (error)
			return store_unread_reason(error, reason);
		answer(line, BATCH_TESTED + found.decision, found.is_listed ? rule_format(&found.rule, text) : NULL);
		return 0;
	}
	error = change_find_list(session, request->list, reason);
	if (error && error != -ESRCH)
		return error;
	if (!error)
		error = query_test_owned(session->store, session->owner, flow, QUERY_BEGINNING, &rule);
	if (error && error != -ENOENT && error != -ESRCH)
		return store_unread_reason(error, reason);
	answer(line, error ? BATCH_NOT_LISTED : BATCH_LISTED, error ? NULL : rule_format(&rule, text));
	return 0;
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
	const bool is_passed = line->answer <= BATCH_ALREADY_THERE; /* if it has a detail */
	char text[RULE_TEXT_BYTES + REASON_BYTES];
	json_t *row = NULL;

	if (line->answer == BATCH_ERROR)
		snprintf(text, sizeof(text), "error: %.200s:%llu: %s", name, line->number, detail);
	else
		snprintf(text, sizeof(text), "%s%s%s", said, !line->detail ? "" : is_passed ? ", but passed by " : " by ", detail);
	if (output_is_json() && line->answer == BATCH_ERROR)
		row = json_pack("{s:I, s:o}", "line", line->number, said, output_string(detail));
	else if (output_is_json())
		row = json_pack("{s:I, s:s, s:s*}", "line", line->number, "answer", said, is_passed ? "passed_by" : "rule",
				line->detail);
	if (line->answer <= BATCH_NO_SUCH_RULE)
		json_object_set_new(row, "changed", json_boolean(line->status == STATUS_DONE));
	output_answer(row, text);
}

void batch_line_close(struct batch_line *line)
{
	free(line->detail);
	line->detail = NULL;
}
