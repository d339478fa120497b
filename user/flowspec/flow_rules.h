/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The components of a flow (RFC 8955 section 4.2, RFC 8956 section 3) as rules that match the same packets. */
#ifndef XDP_CUCKOO_FLOW_RULES_H
#define XDP_CUCKOO_FLOW_RULES_H

#include <jansson.h>

#include "rule/rule_set.h"

/*
 * `components`: the array that gobgp prints. Adds the rules to `rules`. 0; -EINVAL: rules cannot match exactly these
 * packets, or need more than `most` rules; -ENOMEM.
 */
int flow_rules(const json_t *components, enum rule_action action, size_t most, struct rule_set *rules,
	       struct reason *reason);

/* Names the flow by its prefixes and the kinds of its other components. */
void flow_name(const json_t *components, char *name, size_t size);

/* The type of the component with this name; 0: none. flow_kind_is_prefix(): destination or source. */
unsigned int flow_kind(const char *name, size_t length);
bool flow_kind_is_prefix(unsigned int kind);

/* The text of a prefix, if it has only characters of prefixes and fits into RULE_PREFIX_BYTES; else NULL. */
const char *flow_prefix(const json_t *value);

#endif
