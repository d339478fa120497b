/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The components of a flow (RFC 8955 section 4.2, RFC 8956 section 3) as rules that match the same packets. */
#ifndef XDP_CUCKOO_FLOW_RULES_H
#define XDP_CUCKOO_FLOW_RULES_H

#include <jansson.h>

#include "rule/rule_set.h"

/*
 * `components`: the array of gobgp. Adds the rules to `rules`. 0; -EINVAL: no rules match just these packets, or they
 * would be more than `most`; -ENOMEM.
 */
int flow_rules(const json_t *components, enum rule_action action, size_t most, struct rule_set *rules,
	       struct reason *reason);

/* Names the flow by its prefixes and the kinds of its other components. */
void flow_name(const json_t *components, char *name, size_t size);

/* The text of a prefix; NULL: it is none. *has_colon: it is of IPv6. */
const char *flow_prefix(const json_t *value);

#endif
