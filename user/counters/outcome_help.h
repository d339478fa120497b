/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Words of outcome_words.h and what they mean, in lines as help has them, and in one. */
#ifndef XDP_CUCKOO_EXPLAIN_H
#define XDP_CUCKOO_EXPLAIN_H

#include <stdio.h>

/* Of all outcomes; as operands, of those that have policies. */
void explain_outcomes(FILE *to);
void explain_policies(FILE *to);

/* All outcomes and verdicts on one line, cut to fit. */
#define EXPLAIN_LINE_BYTES 1280
void explain_line(char line[EXPLAIN_LINE_BYTES]);

#endif
