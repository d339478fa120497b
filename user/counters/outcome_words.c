// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "counters/counters.h"

const struct outcome_words outcome_words[OUTCOMES] = {
	[OUTCOME_NO_RULE] = { "no-rule", "parsed completely, no rule matched" },
	[OUTCOME_LATER_FRAGMENT] = { "later-fragment",
				     "not the first fragment: it has no ports; only rules without ports apply" },
	[OUTCOME_NOT_IP] = { "not-ip", "neither IPv4 nor IPv6, behind VLAN tags or not" },
	[OUTCOME_TRUNCATED] = { "truncated", "a header runs past the frame or past the length that IP states" },
	[OUTCOME_MALFORMED] = { "malformed", "a header contradicts itself" },
	[OUTCOME_TOO_MANY_HEADERS] = { "too-many-headers",
				       "more than 64 VLAN tags or 182 IPv6 extension headers, or a first fragment "
				       "without all of them" },
	[OUTCOME_UNSETTLED] = { "unsettled", "the table moved during every look-up of a key" },
	[OUTCOME_DROP_RULE] = { "drop-rule", "a drop rule matched" },
	[OUTCOME_PASS_RULE] = { "pass-rule", "a pass rule matched" },
	[OUTCOME_MONITOR_RULE] = { "monitor-rule", "a monitor rule matched; no other rule decided" },
	[OUTCOME_NOT_SET_UP] = { "not-set-up", "the program was loaded but no table was set up yet" },
	[OUTCOME_PANIC] = { "panic", "everything passes: `panic`" },
	[OUTCOME_UNCONFIRMED] = { "unconfirmed", "everything passes: `confirm` did not come in time" },
};

const struct verdict_words verdict_words[VERDICTS] = {
	[VERDICT_PASS] = { "pass", "passed", "passed to the kernel" },
	[VERDICT_DROP] = { "drop", "dropped", "dropped, before the kernel spends anything on it" },
	[VERDICT_WOULD_DROP] = { "would-drop", "would_drop",
				 "passed only because of `monitor-only` or of a monitor rule" },
};

void explain_outcomes(FILE *to)
{
	for (int i = 0; i < OUTCOMES; i++)
		fprintf(to, "  %-18s %s\n", outcome_words[i].name, outcome_words[i].meaning);
}

void explain_policies(FILE *to)
{
	for (int i = 0; i < OUTCOME_POLICIES; i++)
		fprintf(to, "  %-18s %s\n", outcome_words[i].name, outcome_words[i].meaning);
}

bool outcome_can_have(enum abi_outcome outcome, enum abi_verdict verdict)
{
	if (outcome < OUTCOME_POLICIES)
		return true;
	if (outcome == OUTCOME_DROP_RULE)
		return verdict != VERDICT_PASS;
	return verdict == (outcome == OUTCOME_MONITOR_RULE ? VERDICT_WOULD_DROP : VERDICT_PASS);
}
