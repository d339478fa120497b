// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "config/policies.h"

#include <string.h>

#include "counters/outcome_words.h"

enum abi_outcome policy_outcome_named(const char *word)
{
	enum abi_outcome outcome = 0;

	while (outcome < OUTCOME_POLICIES && strcasecmp(outcome_words[outcome].word, word))
		outcome++;
	return outcome;
}

const char *policy_danger(enum abi_outcome outcome)
{
	switch (outcome) {
	case OUTCOME_NO_RULE:
		return "drops everything that no pass rule names: your session, and the answers to this host's "
		       "own connections; add pass rules for these first";
	case OUTCOME_NOT_IP:
		return "drops ARP: this host and its gateway no longer find each other over IPv4, unless "
		       "their neighbour entries are permanent";
	default:
		return NULL;
	}
}
