// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What messages advise to pass, so that this host keeps what a rule would block. */
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/advice.h"
#include "base/safe_text.h"
#include "host/host.h"

#define LET_IN_BYTES 320 /* the longest commands of ADVICE_LET_IN, one for each family */

/*
 * The narrowest rule that lets the flow pass, at the next login too:
 * - packets to this host: none, since its lists must go on holding there;
 * - a connection that the peer begins: the peer and the service, from any port;
 * - an address of this host as source: only to multicast, as guard_own() guards it;
 * - the rest: the source, and its type of ICMPv6 or the port of its service. Never all of fe80::/10: a host there may be
 *   blocked.
 */
static struct rule keeper_of(const struct rule *flow)
{
	struct rule keeper = rule_without_details(flow);

	if (flow->fields & RULE_NEW || (flow->dst_len && flow->dst_len <= HOST_MULTICAST_LEN_MAX)) {
		keeper.fields &= ~RULE_SPORT;
		keeper.sport = 0;
	} else {
		keeper.dst_len = 0;
		keeper.dst = (union flow_addr){};
	}
	if (keeper.fields & RULE_SPORT) {
		keeper.fields &= ~RULE_DPORT;
		keeper.dport = 0;
	}
	/* A name server answers by UDP and TCP. One pass rule is enough for both. */
	if (keeper.port_kind == FLOW_PORTS && keeper.sport == htons(53)) {
		keeper.fields = RULE_SPORT;
		keeper.proto = 0;
	}
	return keeper;
}

bool guard_lets_in(const struct rule *pass)
{
	return pass->fields & RULE_DPORT && !(pass->fields & (RULE_SPORT | RULE_DETAILS)) &&
	       pass->proto == IPPROTO_TCP && pass->dport != htons(HOST_BGP_PORT);
}

void guard_advise(struct guard_advice *advice, const struct guard_flow *flow)
{
	const struct rule keeper = keeper_of(&flow->flow);
	size_t kept = 0;

	if (!keeper.src_len) {
		advice->own[keeper.family] = flow;
		return;
	}
	for (size_t i = 0; i < advice->count; i++)
		if (rule_covers(&advice->keeper[i], &keeper))
			return;
	for (size_t i = 0; i < advice->count; i++)
		if (!rule_covers(&keeper, &advice->keeper[i]))
			advice->keeper[kept++] = advice->keeper[i];
	advice->count = kept;
	if (kept < GUARD_ADVICE_MAX)
		advice->keeper[advice->count++] = keeper;
}

/* Without a session to keep, only the operator knows who must come in. */
const char *guard_advice_text(const struct guard_advice *advice, const char *option, char text[GUARD_ADVICE_BYTES])
{
	struct rule own;
	char rule[RULE_TEXT_BYTES], pass[RULE_TEXT_BYTES + 128];
	bool lets_in[FLOW_FAMILIES] = {};

	*text = '\0';
	for (size_t i = 0; i < advice->count; i++) {
		snprintf(pass, sizeof(pass), "%s" ADVICE_PASS, i ? " && " : "", option,
			 rule_format(&advice->keeper[i], rule));
		/* A command that is cut could pass more: `src 192.0.2.5` for 192.0.2.53. */
		if (strlen(text) + strlen(pass) + LET_IN_BYTES > GUARD_ADVICE_BYTES)
			break;
		text_append(text, GUARD_ADVICE_BYTES, "%s", pass);
		lets_in[advice->keeper[i].family] |= guard_lets_in(&advice->keeper[i]);
	}
	for (enum flow_family family = 0; family < FLOW_FAMILIES; family++) {
		if (!advice->own[family] || lets_in[family])
			continue;
		own = rule_without_details(&advice->own[family]->flow);
		text_append(text, GUARD_ADVICE_BYTES, "%s" ADVICE_LET_IN, *text ? " && " : "", option,
			    rule_format(&own, rule));
	}
	return text;
}
