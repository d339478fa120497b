// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "explain.h"

#include "outcomes.h"

static void explain_word(FILE *to, const char *word, const char *meaning)
{
	fprintf(to, "  %-18s %s\n", word, meaning);
}

void explain_outcomes(FILE *to)
{
	for (enum abi_outcome outcome = 0; outcome < OUTCOMES; outcome++)
		explain_word(to, outcome_words[outcome].name, outcome_words[outcome].meaning);
}

void explain_policies(FILE *to)
{
	for (enum abi_outcome outcome = 0; outcome < OUTCOME_POLICIES; outcome++)
		explain_word(to, outcome_words[outcome].word, outcome_words[outcome].meaning);
}

void explain_verdicts(FILE *to)
{
	for (enum abi_verdict verdict = 0; verdict < VERDICTS; verdict++)
		explain_word(to, verdict_words[verdict].name, verdict_words[verdict].meaning);
}
