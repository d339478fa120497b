/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One line of `batch`: parses it, runs it within a change, and keeps its answer until the change is durable.
 * Knows no other lines.
 */
#ifndef XDP_CUCKOO_BATCH_LINE_H
#define XDP_CUCKOO_BATCH_LINE_H

#include "change/change.h"
#include "commands/command.h"

#define BATCH_WHITE " \t\r\v\f" /* white space around words */

enum batch_verb { BATCH_ADD, BATCH_DEL, BATCH_TEST };

struct batch_request {
	enum batch_verb verb;
	struct rules rules;        /* or one, the flow to test */
	char list[ABI_NAME_BYTES]; /* "": none */
};

enum batch_answer {
	BATCH_ADDED,
	BATCH_UPDATED,
	BATCH_ALREADY_THERE,
	BATCH_DELETED,
	BATCH_LEFT_TO_OTHERS,
	BATCH_NO_SUCH_RULE,
	BATCH_LISTED,
	BATCH_NOT_LISTED,
	BATCH_ERROR,
	BATCH_TESTED, /* + enum query_decision */
};

struct batch_line {
	__u64 number;
	size_t text; /* offset of its text in the buffer of the caller */
	int unread;  /* 0; -errno: it could not be read */
	enum batch_answer answer;
	enum command_status status;
	char *detail; /* the rule that decides, or the error; NULL: no detail, or no memory */
};

/* Cuts the comment off: a # after white space starts it, unless it is quoted. Returns the first word. */
char *batch_line_trim(char *line);

/*
 * Parses the text; `list` (NULL: none) is for a line without the words `list NAME`. `is_strict`: refuses host bits. 0,
 * and the caller frees request->rules; -EINVAL or -ENOMEM with the reason.
 */
int batch_line_parse(const char *text, const char *list, bool is_strict, struct batch_request *request,
		     struct reason *reason);

/*
 * The same for a line that is an address or prefix, with `timeout TIME` or without, and nothing else: a program that
 * writes what others have sent cannot ask for another rule than `add src ADDRESS`.
 */
int batch_address_parse(const char *text, const char *list, bool is_strict, struct batch_request *request,
			struct reason *reason);

/*
 * Runs the request within a change and keeps the answer. Earlier lines of the change already count. Of the answers for
 * several rules, the first in enum batch_answer is kept. 0; -errno with the reason: then the change must end.
 */
int batch_line_run(struct batch_line *line, struct session *session, const struct batch_request *request,
		   struct reason *reason);

/* Keeps the error as the answer. */
void batch_line_fail(struct batch_line *line, int error, const struct reason *reason);

/* Prints the answer; `name` names the input. */
void batch_line_print(const struct batch_line *line, const char *name);
void batch_line_close(struct batch_line *line);

#endif
