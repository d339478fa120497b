/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The words for outcomes, verdicts and counters. All output, help and the man page take them from here. */
#ifndef XDP_CUCKOO_OUTCOME_WORDS_H
#define XDP_CUCKOO_OUTCOME_WORDS_H

#include <stdio.h>

#include "abi.h"

struct outcome_words {
	const char *name;    /* "no rule" */
	const char *word;    /* the same as an operand: "no-rule" */
	const char *meaning; /* one line */
};

struct verdict_words {
	const char *name; /* "drop" */
	const char *done; /* the start of a column name: "dropped" */
	const char *meaning;
};

extern const struct outcome_words outcome_words[OUTCOMES];
extern const struct verdict_words verdict_words[VERDICTS];

/* The meaning of the two counters that do not count packets. */
extern const char outcome_retries[], outcome_stopped[];

/* Print a line for each outcome; a line for each operand of `policy`; all outcomes and verdicts on one line. */
void explain_outcomes(FILE *to);
void explain_policies(FILE *to);
void explain_words(FILE *to);

#endif
