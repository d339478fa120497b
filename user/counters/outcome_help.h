/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Explains the words of outcome_words.h, for help and for one-line descriptions. */
#ifndef XDP_CUCKOO_EXPLAIN_H
#define XDP_CUCKOO_EXPLAIN_H

#include <stdio.h>

/* Print one line for each outcome; for each operand of `policy`. */
void explain_outcomes(FILE *to);
void explain_policies(FILE *to);

/* All outcomes and verdicts on one line, cut to fit. */
#define EXPLAIN_LINE_BYTES 1280
void explain_line(char line[EXPLAIN_LINE_BYTES]);

#endif
