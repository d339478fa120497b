/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Words of outcomes.h and what they mean, in lines as help has them. */
#ifndef XDP_CUCKOO_EXPLAIN_H
#define XDP_CUCKOO_EXPLAIN_H

#include <stdio.h>

/* Of all outcomes; as operands, of those that have policies; of the verdicts. */
void explain_outcomes(FILE *to);
void explain_policies(FILE *to);
void explain_verdicts(FILE *to);

#endif
