/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The sources that send most into one network rule, from samples of dropped packets. Memory is bounded however many
 * sources there are: Space-Saving (Metwally, Agrawal, El Abbadi, 2005) counts a new source in the place of the rarest.
 */
#ifndef XDP_CUCKOO_TOP_SOURCES_H
#define XDP_CUCKOO_TOP_SOURCES_H

#include <arpa/inet.h>

#include "rule/rule.h"

#define TOP_SOURCES 256

struct top_source {
	__u8 family;
	union flow_addr address;
	double samples; /* may count those of rarer sources too, at most 1 / TOP_SOURCES of all */
};

struct top_sources {
	struct rule network; /* the rule; its source is not one address */
	bool has_network;
	struct top_source source[TOP_SOURCES]; /* after top_sources_age(): most samples first */
	size_t count;
	double samples; /* of all sources */
};

/* Whether a rule has many sources: its source is a prefix, or it names none. */
bool top_sources_many(const struct rule *rule);

/* The network to look at. Forgets the sources of another one. */
void top_sources_choose(struct top_sources *sources, const struct rule *network);

/* Counts the source of a dropped packet if the network covers its flow. */
void top_sources_add(struct top_sources *sources, const struct rule *flow);

/* At the end of an interval: sorts, and lets what was seen long ago count less. */
void top_sources_age(struct top_sources *sources);

/* The text of source i, and its share of the samples, 0 to 1. */
const char *top_sources_text(const struct top_sources *sources, size_t i, char text[INET6_ADDRSTRLEN]);
double top_sources_share(const struct top_sources *sources, size_t i);

#endif
