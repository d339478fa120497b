/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the soak knows: the rules that the filter was told, the flows they are about, and what must become of
 * a packet of each at a moment. Knows neither the tool nor the wire, and shares no code with the packet path.
 *
 * A change announces itself before its first step (an odd epoch) and is settled by what the tool acknowledged
 * (the next even one). A verdict is certain where epochs are even and the same before the packet is sent and
 * after its fate is known, and where what they say is the same at both moments: rules with a timeout end
 * in between.
 */
#ifndef XDP_CUCKOO_SOAK_MODEL_H
#define XDP_CUCKOO_SOAK_MODEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "helpers/frame.h"

#define MODEL_NS_PER_S 1000000000ULL
#define MODEL_TEXT_BYTES 160
#define MODEL_LATE_NS (3 * MODEL_NS_PER_S / 2) /* two ticks at 100 Hz, after which a rule has ended */
#define MODEL_RULES 2                          /* of a unit at most: a drop rule, and a pass rule in it */
#define MODEL_FLOWS 3

enum model_presence { MODEL_ABSENT, MODEL_PRESENT, MODEL_UNKNOWN };

struct model_rule {
	enum model_presence presence; /* without a timeout; MODEL_UNKNOWN: its writer was killed */
	bool is_timed;                /* then it is there before, and gone after: */
	uint64_t until_ns, after_ns;
};

/* Rules that are about the same flows. One writer at a time. */
struct model_unit {
	_Atomic uint32_t epoch;
	struct model_rule rule[MODEL_RULES];
};

enum model_policy { MODEL_NO_RULE, MODEL_FRAGMENT, MODEL_TRUNCATED, MODEL_MALFORMED, MODEL_HEADERS, MODEL_POLICIES };

static const char *const model_policy_words[MODEL_POLICIES] = { "no-rule", "later-fragment", "truncated", "malformed",
								"too-many-headers" };

/* How the filter runs. */
struct model_run {
	_Atomic uint32_t epoch;
	bool is_loaded, is_monitor_only, is_panicking;
	bool ends_by_tool; /* a compact table: rules that have ended drop until a command takes them out */
	bool drops[MODEL_POLICIES];
};

enum model_part {
	MODEL_INNOCENT, /* no rule is about it */
	MODEL_DROPPED,  /* by the first rule of its unit */
	MODEL_EXCEPTED, /* by the first, unless the second lets it pass */
};

struct model_flow {
	uint32_t unit;
	uint8_t kind; /* of its unit, or MODEL_KINDS for one that only a policy is about */
	uint8_t part; /* enum model_part */
	uint8_t policy;
	char text[MODEL_TEXT_BYTES]; /* for frame_parse() */
};

enum model_verdict { MODEL_PASS, MODEL_DROP, MODEL_UNCERTAIN };

struct model {
	struct model_run run;
	struct model_unit *unit;
	struct model_flow *flow;
	uint32_t units, flows;
};

static inline uint64_t model_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * MODEL_NS_PER_S + now.tv_nsec;
}

/* ---- kinds of units ---- */

/* In each text: 1 and 2 are the unit's bytes, 3 its number in hexadecimal, 4 a prefix length, 5 a port. */
struct model_kind {
	const char *name;
	const char *rule[MODEL_RULES];
	const char *flow[MODEL_FLOWS]; /* by enum model_part */
};

#define UDP4(source) "proto udp src " source " dst 198.18.0.1 sport 1 dport 2"
#define UDP6(source) "proto udp src " source " dst 2001:db8:f::1 sport 1 dport 2"

static const struct model_kind model_kinds[] = {
	{ "address4", { "src 20.0.%1$u.%2$u" }, { UDP4("20.1.%1$u.%2$u"), UDP4("20.0.%1$u.%2$u") } },
	{ "net4",
	  { "src 21.%1$u.%2$u.0/24", "src 21.%1$u.%2$u.9 action pass" },
	  { UDP4("22.%1$u.%2$u.8"), UDP4("21.%1$u.%2$u.8"), UDP4("21.%1$u.%2$u.9") } },
	{ "tuple4",
	  { "proto tcp src 23.0.%1$u.%2$u sport %5$u dst 198.18.0.1 dport 443" },
	  { "proto tcp src 23.0.%1$u.%2$u sport %5$u dst 198.18.0.1 dport 444",
	    "proto tcp src 23.0.%1$u.%2$u sport %5$u dst 198.18.0.1 dport 443" } },
	{ "port4",
	  { "proto udp src 24.0.%1$u.%2$u dport 53", "proto udp src 24.0.%1$u.%2$u sport 9 dport 53 action pass" },
	  { "proto udp src 24.0.%1$u.%2$u dst 198.18.0.1 sport 9 dport 54 vlan 7",
	    "proto udp src 24.0.%1$u.%2$u dst 198.18.0.1 sport 8 dport 53 vlan 7",
	    "proto udp src 24.0.%1$u.%2$u dst 198.18.0.1 sport 9 dport 53 vlan 7 vlan 8" } },
	{ "address6",
	  { "src 2001:db8:1::%3$x" },
	  { UDP6("2001:db8:2::%3$x"), UDP6("2001:db8:1::%3$x") " fragment later" } },
	{ "net6",
	  { "src 2001:db8:3:%3$x::/64", "src 2001:db8:3:%3$x::9 action pass" },
	  { UDP6("2001:db8:4:%3$x::8"), UDP6("2001:db8:3:%3$x::8"), UDP6("2001:db8:3:%3$x::9") } },
	{ "tuple6",
	  { "proto tcp src 2001:db8:5::%3$x sport %5$u dst 2001:db8:f::1 dport 443" },
	  { "proto tcp src 2001:db8:5::%3$x sport %5$u dst 2001:db8:f::1 dport 80",
	    "proto tcp src 2001:db8:5::%3$x sport %5$u dst 2001:db8:f::1 dport 443" } },
	{ "lengths4", { "src 25.%1$u.%2$u.0/%4$u" }, { UDP4("26.%1$u.%2$u.1"), UDP4("25.%1$u.%2$u.1") } },
	{ "icmp4",
	  { "proto icmp src 27.%1$u.%2$u.0/24 type 8 code 0" },
	  { "proto icmp src 27.%1$u.%2$u.5 dst 198.18.0.1 type 0 code 0",
	    "proto icmp src 27.%1$u.%2$u.5 dst 198.18.0.1 type 8 code 0" } },
	{ "target4",
	  { "dst 198.19.%1$u.%2$u" },
	  { "proto udp src 28.0.0.1 dst 198.20.%1$u.%2$u sport 1 dport 2",
	    "proto udp src 28.0.0.1 dst 198.19.%1$u.%2$u sport 1 dport 2" } },
};

#define MODEL_KINDS (sizeof(model_kinds) / sizeof(model_kinds[0]))
#define MODEL_UNITS_MAX (MODEL_KINDS * 250 * 256)

/* The unit's numbers in the places of `pattern` that name them: %N$u, or %N$x, as of printf(). */
static inline void model_print(char text[MODEL_TEXT_BYTES], const char *pattern, uint32_t unit)
{
	const unsigned int number = unit / MODEL_KINDS;
	const unsigned int numbers[] = { number / 250, number % 250 + 1, number + 1, 25 + number % 7, 1000 + number };
	size_t length = 0;

	for (; *pattern && length < MODEL_TEXT_BYTES - 1; pattern++) {
		if (*pattern != '%') {
			text[length++] = *pattern;
			continue;
		}
		length += snprintf(text + length, MODEL_TEXT_BYTES - length, pattern[3] == 'x' ? "%x" : "%u",
				   numbers[pattern[1] - '1']);
		pattern += 3;
	}
	text[length] = '\0';
}

/* The rule as the tool lists it. False where the unit has no such rule. */
static inline bool model_rule_text(uint32_t unit, int rule, char text[MODEL_TEXT_BYTES])
{
	const char *format = model_kinds[unit % MODEL_KINDS].rule[rule];

	if (format)
		model_print(text, format, unit);
	return format;
}

/* ---- flows ---- */

static const struct {
	enum model_policy policy;
	const char *text;
} model_policy_flows[] = {
	{ MODEL_FRAGMENT, UDP4("29.0.0.1") " fragment later" },
	{ MODEL_FRAGMENT, UDP6("2001:db8:6::1") " fragment later" },
	{ MODEL_TRUNCATED, UDP4("29.0.0.2") " broken truncated" },
	{ MODEL_MALFORMED, UDP4("29.0.0.3") " broken malformed" },
	{ MODEL_MALFORMED, UDP6("2001:db8:6::2") " broken malformed" },
	{ MODEL_HEADERS, UDP6("2001:db8:6::3") " broken headers" },
	{ MODEL_NO_RULE, UDP4("29.0.0.4") " fragment first" },
};

#define MODEL_POLICY_FLOWS (sizeof(model_policy_flows) / sizeof(model_policy_flows[0]))
#define MODEL_POLICY_COPIES 64 /* so that they are as often on the wire as others */

/* What a policy decides about a flow where no rule does: of a later fragment, that one. */
static inline uint8_t model_policy_of(const char *flow)
{
	return strstr(flow, "fragment later") ? MODEL_FRAGMENT : MODEL_NO_RULE;
}

static inline void model_add_flows(struct model *model, uint32_t unit)
{
	const struct model_kind *kind = &model_kinds[unit % MODEL_KINDS];

	for (uint8_t part = 0; part < MODEL_FLOWS; part++) {
		struct model_flow *flow = &model->flow[model->flows];

		if (!kind->flow[part])
			continue;
		*flow = (struct model_flow){ .unit = unit,
					     .kind = (uint8_t)(unit % MODEL_KINDS),
					     .part = part,
					     .policy = model_policy_of(kind->flow[part]) };
		model_print(flow->text, kind->flow[part], unit);
		model->flows++;
	}
}

static inline void model_add_policy_flows(struct model *model)
{
	for (size_t i = 0; i < MODEL_POLICY_FLOWS * MODEL_POLICY_COPIES; i++) {
		struct model_flow *flow = &model->flow[model->flows++];

		*flow = (struct model_flow){
			.kind = MODEL_KINDS,
			.part = MODEL_INNOCENT,
			.policy = (uint8_t)model_policy_flows[i % MODEL_POLICY_FLOWS].policy,
		};
		snprintf(flow->text, sizeof(flow->text), "%s", model_policy_flows[i % MODEL_POLICY_FLOWS].text);
	}
}

/* All rules absent, nothing loaded; `units` is at least 1. Ends the program where memory is short. */
static inline void model_open(struct model *model, uint32_t units)
{
	*model = (struct model){ .units = units };
	model->unit = calloc(units, sizeof(*model->unit));
	model->flow = calloc(units * MODEL_FLOWS + MODEL_POLICY_FLOWS * MODEL_POLICY_COPIES, sizeof(*model->flow));
	if (!model->unit || !model->flow)
		abort();
	for (uint32_t unit = 0; unit < units; unit++)
		model_add_flows(model, unit);
	model_add_policy_flows(model);
	model->run.drops[MODEL_HEADERS] = true; /* by default */
}

/* ---- changes ---- */

static inline void model_begin(_Atomic uint32_t *epoch)
{
	atomic_fetch_add(epoch, 1);
	atomic_thread_fence(memory_order_seq_cst);
}

static inline void model_settle(_Atomic uint32_t *epoch)
{
	atomic_thread_fence(memory_order_seq_cst);
	atomic_fetch_add(epoch, 1);
}

static inline void model_set(struct model_unit *unit, const struct model_rule rules[MODEL_RULES])
{
	model_begin(&unit->epoch);
	memcpy(unit->rule, rules, sizeof(unit->rule));
	model_settle(&unit->epoch);
}

/* ---- what must be ---- */

static inline enum model_presence model_presence_at(const struct model_rule *rule, uint64_t ns)
{
	if (!rule->is_timed || rule->presence != MODEL_PRESENT)
		return rule->presence;
	if (ns < rule->until_ns)
		return MODEL_PRESENT;
	return ns > rule->after_ns ? MODEL_ABSENT : MODEL_UNKNOWN;
}

/* At both moments, and therefore between. */
static inline enum model_presence model_presence_between(const struct model_rule *rule, uint64_t from_ns,
							 uint64_t to_ns)
{
	const enum model_presence presence = model_presence_at(rule, from_ns);

	return presence == model_presence_at(rule, to_ns) ? presence : MODEL_UNKNOWN;
}

/* In the table, where a rule may be after it has ended. */
static inline enum model_presence model_presence_in(const struct model_run *run, const struct model_rule *rule,
						    uint64_t ns)
{
	const enum model_presence presence = model_presence_at(rule, ns);

	return run->ends_by_tool && presence != rule->presence ? MODEL_UNKNOWN : presence;
}

static inline enum model_verdict model_by_rules(const struct model *model, const struct model_flow *flow, uint64_t ns)
{
	const enum model_verdict otherwise = model->run.drops[flow->policy] ? MODEL_DROP : MODEL_PASS;
	const struct model_rule *rule = model->unit[flow->unit].rule;
	enum model_presence pass = MODEL_ABSENT, drop;

	if (flow->part == MODEL_INNOCENT)
		return otherwise;
	if (flow->part == MODEL_EXCEPTED)
		pass = model_presence_in(&model->run, &rule[1], ns);
	drop = model_presence_in(&model->run, &rule[0], ns);
	if (pass == MODEL_PRESENT)
		return MODEL_PASS;
	if (pass == MODEL_UNKNOWN || drop == MODEL_UNKNOWN)
		return MODEL_UNCERTAIN;
	return drop == MODEL_PRESENT ? MODEL_DROP : otherwise;
}

/* As far as epochs say that it may be relied on. */
static inline enum model_verdict model_verdict_at(const struct model *model, const struct model_flow *flow, uint64_t ns)
{
	if (!model->run.is_loaded || model->run.is_panicking || model->run.is_monitor_only)
		return MODEL_PASS;
	return model_by_rules(model, flow, ns);
}

#endif
