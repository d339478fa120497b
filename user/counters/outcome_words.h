/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The words for outcomes, verdicts and counters. All output, help and the man page take them from here. */
#ifndef XDP_CUCKOO_OUTCOME_WORDS_H
#define XDP_CUCKOO_OUTCOME_WORDS_H

#include <stdbool.h>
#include <stdio.h>

#include "abi.h"

struct outcome_words {
	const char *name;    /* "no-rule": everywhere, in what is typed and in what is printed */
	const char *meaning; /* one line */
};

struct verdict_words {
	const char *name; /* "drop", "would-drop" */
	const char *done; /* the start of a column's name: "dropped", "would_drop" */
	const char *meaning;
};

extern const struct outcome_words outcome_words[OUTCOMES];
extern const struct verdict_words verdict_words[VERDICTS];

/* Print a line for each outcome; a line for each outcome that has a policy. */
void explain_outcomes(FILE *to);
void explain_policies(FILE *to);

/* Whether packets of this outcome can have this verdict. A policy, unlike a rule, may say either. */
bool outcome_can_have(enum abi_outcome outcome, enum abi_verdict verdict);

#endif
