/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A line of `batch`: what it asks for, doing it within a change, and its answer, which is kept until the
 * change is durable. Knows nothing of the lines around it.
 */
#ifndef XDP_CUCKOO_BATCH_LINE_H
#define XDP_CUCKOO_BATCH_LINE_H

#include "change/change.h"
#include "commands/command.h"

#define BATCH_WHITE " \t\r\v\f" /* what may stand around words */

enum batch_verb { BATCH_ADD, BATCH_DEL, BATCH_TEST };

struct batch_request {
	enum batch_verb verb;
	struct rule rule; /* or the flow to test */
};

enum batch_answer {
	BATCH_ADDED,
	BATCH_UPDATED,
	BATCH_ALREADY_THERE,
	BATCH_DELETED,
	BATCH_NO_SUCH_RULE,
	BATCH_BLOCKED,
	BATCH_BLOCKED_BY_POLICY,
	BATCH_PASSED,
	BATCH_NOT_BLOCKED,
	BATCH_ERROR,
};

struct batch_line {
	__u64 number;
	size_t text; /* where its text starts, in the caller's memory */
	int unread;  /* 0; -errno where it could not be read */
	enum batch_answer answer;
	enum command_status status;
	char *detail; /* the rule that decides, or what is wrong; NULL: nothing to say, or no memory */
};

/* What the text asks for. 0; -EINVAL with the reason. */
int batch_line_parse(const char *text, struct batch_request *request, struct reason *reason);

/*
 * Does it, within a change, by the rules as the change has left them so far, and keeps the answer. 0; -errno
 * with the reason: then the change must end.
 */
int batch_line_run(struct batch_line *line, struct apply *apply, const struct batch_request *request,
		   struct reason *reason);

/* Keeps as the answer that it could not be done. */
void batch_line_fail(struct batch_line *line, int error, const struct reason *reason);

/* Prints the answer; `name` is the input's. */
void batch_line_print(const struct batch_line *line, const char *name);
void batch_line_close(struct batch_line *line);

#endif
