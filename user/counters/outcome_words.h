/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The words for outcomes, verdicts and counters. Everything that shows them (stats, policy, metrics, help,
 * the man page) takes them from here.
 */
#ifndef XDP_CUCKOO_OUTCOMES_H
#define XDP_CUCKOO_OUTCOMES_H

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

#endif
