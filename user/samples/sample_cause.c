// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "samples/sample_cause.h"

#include "change/change.h"
#include "parse_packet.h"

struct sample_view sample_view(const struct abi_sample *sample, struct store *store)
{
	struct sample_view view = {};
	struct flow flow;

	parse_frame(sample->frame, sample->frame + sample->captured, &flow);
	view.has_flow = flow.family != FLOW_NO_FAMILY;
	if (view.has_flow)
		view.flow = rule_of_flow(&flow);
	if (sample->outcome < OUTCOME_POLICIES)
		view.cause = SAMPLE_POLICY;
	else if (store && view.has_flow && !query_test(store, &view.flow, &view.rule) && view.rule.action != RULE_PASS)
		view.cause = SAMPLE_RULE;
	else
		view.cause = SAMPLE_UNKNOWN_RULE;
	return view;
}
