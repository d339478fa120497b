// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Fuzzes what lines of batch do: lines of text, all of them one change of a store without a running filter. Each
 * answer, and what is stored in the end, is as a list of rules without any index says.
 */
#include <netinet/in.h>

#include "fuzz_dir.h"

#include "tool/internal.h"

#define RULES_MAX 64

struct change {
	const char *text;             /* lines, ended by 0 */
	struct rule rules[RULES_MAX]; /* what is to be stored */
	size_t count;
	size_t seen; /* of them, in the store */
};

/* ---- a list of rules ---- */

static struct rule *find(struct change *change, const struct rule *like)
{
	for (size_t i = 0; i < change->count; i++)
		if (fuzz_same_flows(&change->rules[i], like))
			return &change->rules[i];
	return NULL;
}

static bool has_prefix(const union flow_addr *address, unsigned int length, const union flow_addr *prefix,
		       unsigned int prefix_length)
{
	for (unsigned int bit = 0; bit < prefix_length; bit++)
		if ((address->byte[bit / 8] ^ prefix->byte[bit / 8]) & 0x80 >> bit % 8)
			return false;
	return length >= prefix_length;
}

/* Whether the rule matches every flow that `query` names. */
static bool covers(const struct rule *rule, const struct rule *query)
{
	if (rule->family != FLOW_NO_FAMILY && rule->family != query->family)
		return false;
	if (rule->port_kind != FLOW_NO_PORTS && rule->port_kind != query->port_kind)
		return false;
	if (rule->fields & ~query->fields || (rule->fields & RULE_PROTO && rule->proto != query->proto))
		return false;
	if ((rule->fields & RULE_SPORT && rule->sport != query->sport) ||
	    (rule->fields & RULE_DPORT && rule->dport != query->dport))
		return false;
	return has_prefix(&query->src, query->src_len, &rule->src, rule->src_len) &&
	       has_prefix(&query->dst, query->dst_len, &rule->dst, rule->dst_len);
}

/* Whether packets can have this protocol, and this kind of port. */
static bool may_have(const struct rule *rule, enum flow_port_kind kind)
{
	if (!(rule->fields & RULE_PROTO) || kind == FLOW_NO_PORTS)
		return true;
	return kind == FLOW_PORTS ? rule_has_ports(rule->proto) :
				    rule->proto == IPPROTO_ICMP || rule->proto == IPPROTO_ICMPV6;
}

/* Whether some flow that `query` names is one of the rule's. */
static bool overlaps(const struct rule *rule, const struct rule *query)
{
	const unsigned int both = rule->fields & query->fields;

	if (rule->family != query->family && rule->family != FLOW_NO_FAMILY && query->family != FLOW_NO_FAMILY)
		return false;
	if ((rule->port_kind && query->port_kind && rule->port_kind != query->port_kind) ||
	    !may_have(rule, query->port_kind) || !may_have(query, rule->port_kind))
		return false;
	if ((both & RULE_PROTO && rule->proto != query->proto) || (both & RULE_SPORT && rule->sport != query->sport) ||
	    (both & RULE_DPORT && rule->dport != query->dport))
		return false;
	return (has_prefix(&query->src, query->src_len, &rule->src, rule->src_len) ||
		has_prefix(&rule->src, rule->src_len, &query->src, query->src_len)) &&
	       (has_prefix(&query->dst, query->dst_len, &rule->dst, rule->dst_len) ||
		has_prefix(&rule->dst, rule->dst_len, &query->dst, query->dst_len));
}

static enum batch_answer expected_test(const struct change *change, const struct rule *query)
{
	static const enum query_decision decisions[RULE_ACTIONS] = { QUERY_BLOCKED, QUERY_PASSED, QUERY_MONITORED };
	unsigned int rank = RULE_RANKS;
	enum batch_answer answer = BATCH_TESTED + QUERY_NO_RULE;

	for (size_t i = 0; i < change->count; i++) {
		const enum rule_action action = change->rules[i].action;

		if (!covers(&change->rules[i], query) || rule_rank(action, change->rules[i].fields) >= rank)
			continue;
		rank = rule_rank(action, change->rules[i].fields);
		answer = BATCH_TESTED + decisions[action];
	}
	for (size_t i = 0; i < change->count && answer == BATCH_TESTED + QUERY_BLOCKED; i++)
		if (change->rules[i].action == RULE_PASS && overlaps(&change->rules[i], query))
			answer = BATCH_TESTED + QUERY_PARTLY;
	return answer;
}

static enum batch_answer expected_add(struct change *change, const struct rule *rule)
{
	struct rule *there = find(change, rule);

	if (!there) {
		change->rules[change->count++] = *rule;
		return BATCH_ADDED;
	}
	if (!there->timeout_ms)
		return BATCH_ALREADY_THERE;
	there->timeout_ms = rule->timeout_ms;
	return BATCH_UPDATED;
}

static enum batch_answer expected_del(struct change *change, const struct rule *rule)
{
	struct rule *there = find(change, rule);

	if (!there)
		return BATCH_NO_SUCH_RULE;
	*there = change->rules[--change->count];
	return BATCH_DELETED;
}

static enum batch_answer expected(struct change *change, const struct batch_request *request)
{
	enum batch_answer best = BATCH_NO_SUCH_RULE;

	if (request->verb == BATCH_TEST)
		return expected_test(change, request->rules.rule);
	for (size_t i = 0; i < request->rules.count; i++) {
		const enum batch_answer one =
			(request->verb == BATCH_ADD ? expected_add : expected_del)(change, &request->rules.rule[i]);

		best = one < best ? one : best;
	}
	return best;
}

/* ---- the lines ---- */

static void run_line(const char *text, struct change *change, struct session *session)
{
	struct batch_request request;
	struct batch_line line = { 0 };
	enum batch_answer answer;
	struct reason reason;

	if (batch_line_parse(text, NULL, false, &request, &reason))
		return;
	if (*request.list || change->count + request.rules.count > RULES_MAX) {
		rules_free(&request.rules);
		return;
	}
	fuzz_check(!batch_line_run(&line, session, &request, &reason), "%s: %s", text, reason.text);
	answer = expected(change, &request);
	fuzz_check(line.answer == answer, "%s: %d, not %d", text, line.answer, answer);
	fuzz_check(!line.detail == (answer <= BATCH_TESTED + QUERY_NO_RULE), "%s", text);
	batch_line_close(&line);
	rules_free(&request.rules);
}

static void run_lines(struct session *session, struct change *change)
{
	char *text = strdup(change->text), *rest = text, *line;

	while ((line = strsep(&rest, "\n")))
		run_line(line, change, session);
	free(text);
}

static int see(const struct rule *rule, void *context)
{
	struct change *change = context;
	const struct rule *there = find(change, rule);

	fuzz_check_rule(rule);
	fuzz_check(there && !there->timeout_ms == !rule->timeout_ms, "another rule");
	change->seen++;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	struct change change = { .text = text };
	struct session session = { .name = "fuzz" };
	struct reason reason;

	memcpy(text, data, size);
	text[size] = 0;
	fuzz_make_dir();
	fuzz_check(!store_open(fuzz_dir, STORE_WRITE, &session.store, &reason), "%s", reason.text);
	fuzz_check(!change_begin(&session, &reason), "%s", reason.text);
	run_lines(&session, &change);
	fuzz_check(!change_commit(&session, &reason), "%s", reason.text);
	fuzz_check(!store_each(session.store, see, &change), "not read");
	fuzz_check(change.seen == change.count, "%zu rules, not %zu", change.seen, change.count);
	store_close(session.store);
	fuzz_remove_dir();
	free(text);
	return 0;
}
