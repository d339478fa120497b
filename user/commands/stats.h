/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What stats.c and stats_by_rule.c share; nobody else includes it. */
#ifndef XDP_CUCKOO_COMMAND_STATS_H
#define XDP_CUCKOO_COMMAND_STATS_H

#include "commands/command.h"

enum stats_by { STATS_BY_OUTCOME, STATS_BY_INTERFACE, STATS_BY_CPU, STATS_BY_RULE, STATS_BY_PREFIX };

/* Bits of the prefixes that are summed by. */
struct stats_prefix {
	unsigned int length[FLOW_FAMILIES];
};

/* "prefix", "prefix=24", "prefix=24,48". 0; -EINVAL. */
int stats_prefix_parse(const char *text, struct stats_prefix *prefix);

/* Prints the rules that matched most, or with `prefix` the prefixes of their sources. */
enum command_status stats_by_rule(const struct invocation *invocation, const struct stats_prefix *prefix);

#endif
