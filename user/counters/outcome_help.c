// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "counters/outcome_help.h"

#include <stdbool.h>

#include "counters/outcome_words.h"

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

/* Appends " name (meaning),"; after the last one, a full stop. */
static size_t append(char *line, size_t used, const char *name, const char *meaning, bool is_last)
{
	if (used < EXPLAIN_LINE_BYTES)
		used += snprintf(line + used, EXPLAIN_LINE_BYTES - used, " %s (%s)%s", name, meaning,
				 is_last ? "." : ",");
	return used;
}

void explain_line(char line[EXPLAIN_LINE_BYTES])
{
	size_t used = snprintf(line, EXPLAIN_LINE_BYTES, "Outcomes:");

	for (int outcome = 0; outcome < OUTCOMES; outcome++)
		used = append(line, used, outcome_words[outcome].name, outcome_words[outcome].meaning,
			      outcome == OUTCOMES - 1);
	if (used < EXPLAIN_LINE_BYTES)
		used += snprintf(line + used, EXPLAIN_LINE_BYTES - used, " Verdicts:");
	for (int verdict = 0; verdict < VERDICTS; verdict++)
		used = append(line, used, verdict_words[verdict].name, verdict_words[verdict].meaning,
			      verdict == VERDICTS - 1);
}
