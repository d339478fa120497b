// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What `lists` and `status` say of the flows of BGP. */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "tool/internal.h"
#include "base/safe_text.h"
#include "counters/counters.h"
#include "io/output.h"
#include "lists/flow_report.h"

#define REPORT_LATE_S 60 /* a report so much older than its list is called old; to write many flows takes seconds */

json_t *command_flows(const struct flow_report *report)
{
	json_t *refused = json_object(), *peers = json_array(), *sessions = json_object();
	json_int_t count = 0;

	for (enum refusal i = REFUSAL_NONE + 1; i < REFUSALS; i++) {
		count += report->flows[i];
		if (report->flows[i])
			json_object_set_new(refused, refusal_names[i], json_integer(report->flows[i]));
	}
	for (size_t i = 0; i < report->peers; i++)
		json_array_append_new(peers,
				      json_pack("{s:s, s:s, s:o, s:I}", "peer", report->peer[i].address, "session",
						peer_state_names[report->peer[i].state], "since",
						report->peer[i].since_s ? output_time(report->peer[i].since_s, -1) :
									  json_null(),
						"held", (json_int_t)report->peer[i].flows));
	for (enum peer_state state = 0; state < PEER_STATES; state++)
		json_object_set_new(sessions, peer_state_names[state], json_integer(report->sessions[state]));
	return json_pack("{s:I, s:I, s:I, s:o, s:o, s:o, s:o}", "announced",
			 (json_int_t)report->flows[REFUSAL_NONE] + count, "held",
			 (json_int_t)report->flows[REFUSAL_NONE], "of_unnamed_peers", (json_int_t)report->unnamed,
			 "refused", refused, "sessions", sessions, "peers", peers, "at",
			 output_time(report->second, -1));
}

static void add_flow_values(const char *list, const struct flow_report *report, json_t *flows, json_t *down,
			    json_t *not_fed)
{
	json_t *values = command_flows(report), *peer;
	size_t i;

	json_object_set_new(values, "list", json_string(list));
	json_array_append_new(flows, values);
	json_array_foreach(json_object_get(values, "peers"), i, peer)
	{
		if (report->peer[i].state == PEER_DOWN)
			json_array_append_new(down, json_pack("{s:s, s:O, s:O}", "list", list, "peer",
							      json_object_get(peer, "peer"), "since",
							      json_object_get(peer, "since")));
	}
	if (report->sessions[PEER_DOWN] && !report->sessions[PEER_UP])
		json_array_append_new(not_fed,
				      json_pack("{s:s, s:b, s:n}", "list", list, "not_fed", true, "not_fed_s"));
}

void command_add_flows(const char *dir, const struct store_list *list, const struct store_feed *feed, json_t *flows,
		       json_t *down, json_t *not_fed)
{
	unsigned long long announced = 0, named = 0;
	struct flow_report report;
	char why[256] = "";

	if (flow_report_read(dir, list, feed, &report, NULL) || !report.second)
		return;
	if (output_is_json()) {
		add_flow_values(list->name, &report, flows, down, not_fed);
		return;
	}
	for (enum refusal i = 0; i < REFUSALS; i++) {
		announced += report.flows[i];
		if (i != REFUSAL_NONE && report.flows[i])
			text_append(why, sizeof(why), "%s%llu %s",
				    *why ? ", " : "; refused: ", (unsigned long long)report.flows[i], refusal_names[i]);
	}
	if (list->imported_s > report.second + REPORT_LATE_S)
		text_append(why, sizeof(why), "; %lld s ago: flowspec could not write it since",
			    (long long)(list->imported_s - report.second));
	json_array_append_new(flows, json_sprintf("%s: %llu of %llu are held%s", list->name,
						  (unsigned long long)report.flows[REFUSAL_NONE], announced, why));
	for (size_t i = 0; i < report.peers; i++) {
		const struct flow_peer *peer = &report.peer[i];
		json_t *since = output_time(peer->since_s, -1);

		if (peer->state == PEER_DOWN && peer->since_s)
			json_array_append_new(down, json_sprintf("%s: %s since %s", list->name, peer->address,
								 json_string_value(since)));
		else if (peer->state == PEER_DOWN)
			json_array_append_new(down, json_sprintf("%s: %s, was never up", list->name, peer->address));
		named += peer->state == PEER_DOWN;
		json_decref(since);
	}
	if (report.sessions[PEER_DOWN] > named)
		json_array_append_new(down,
				      json_sprintf("%s: %llu more", list->name, report.sessions[PEER_DOWN] - named));
	if (report.sessions[PEER_DOWN] && !report.sessions[PEER_UP])
		json_array_append_new(not_fed, json_sprintf("%s: no BGP session is up", list->name));
}

struct flows_view {
	struct flow_visitor visitor;
	const struct rule_counts *counts; /* NULL: no filter counts by rule */
	struct abi_counter sum;           /* of the rules visited since the last flow, */
	json_int_t rules;                 /* and their number */
	json_t *rows;
};

static int sum_rule(struct flow_visitor *visitor, const struct rule *rule)
{
	struct flows_view *view = (struct flows_view *)visitor;
	const struct abi_counter count = view->counts ? rule_counts_of(view->counts, rule) : (struct abi_counter){};

	view->sum.packets += count.packets;
	view->sum.bytes += count.bytes;
	view->rules++;
	return 0;
}

static int show_flow(struct flow_visitor *visitor, enum refusal refusal, const char *peer, const char *name)
{
	struct flows_view *view = (struct flows_view *)visitor;
	const bool is_known = view->counts && view->rules;
	json_t *const unknown = output_is_json() || !view->rules ? json_null() : json_string("unknown");

	json_array_append_new(view->rows,
			      json_pack("{s:o, s:o, s:I, s:o, s:o, s:s}", "packets",
					is_known ? json_integer(view->sum.packets) : json_incref(unknown), "bytes",
					is_known ? json_integer(view->sum.bytes) : json_incref(unknown), "rules",
					view->rules, "refused",
					refusal == REFUSAL_NONE ? json_null() : json_string(refusal_names[refusal]),
					"peer", strcmp(peer, "-") ? output_string(peer) : json_null(), "flow", name));
	view->sum = (struct abi_counter){};
	view->rules = 0;
	json_decref(unknown);
	return 0;
}

/* A flow's packets are the sum over its rules, since each came into the filter. A shared rule counts for each flow. */
enum command_status command_list_flows(const struct invocation *invocation, const char *name)
{
	struct flows_view view = { .visitor = { sum_rule, show_flow }, .rows = json_array() };
	struct rule_counts counts = {};
	struct flow_report report = {};
	struct store_lists lists = {};
	struct store_feeds feeds = {};
	struct store *store = NULL;
	struct reason reason;
	char dir[PATH_MAX];
	unsigned int number = 0;
	int error = command_open_store(invocation, &store, &reason);

	if (!error && store) {
		error = store_lists(store, &lists);
		if (!error)
			error = store_feeds(store, &lists, &feeds);
		if (error)
			store_unread_reason(error, &reason);
		else
			number = store_lists_find(&lists, name);
	}
	if (number) {
		if (!rule_counts_open(&counts, invocation->name, &reason) && !store_shapes(store, &counts.shapes))
			view.counts = &counts;
		error = session_state_dir(invocation->state, invocation->name, dir, sizeof(dir));
		if (!error)
			error = flow_report_read(dir, &lists.list[number], &feeds.feed[number], &report, &view.visitor);
		reason_set(&reason, error, "cannot read what is known of the flows: %s", strerror(-error));
	}
	rule_counts_close(&counts);
	store_close(store);
	if (error || report.second)
		return command_answer(error, &reason, view.rows);
	json_decref(view.rows);
	return command_fail(STATUS_NO,
			    "no flows are known of a list '%s': flowspec does not keep it now; see xdp-cuckoo lists",
			    name);
}
