/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The words of one line of `batch`, and of `publish batch`. */
#ifndef XDP_CUCKOO_BATCH_WORDS_H
#define XDP_CUCKOO_BATCH_WORDS_H

#include "command/command.h"

#define BATCH_WHITE " \t\r\v\f" /* white space around words */

enum batch_verb { BATCH_ADD, BATCH_DEL, BATCH_TEST };

struct batch_request {
	enum batch_verb verb;
	struct rules rules;        /* or one, the flow to test */
	char list[ABI_NAME_BYTES]; /* "": none */
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

#endif
