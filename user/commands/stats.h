/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by stats.c and stats_by_rule.c only. */
#ifndef XDP_CUCKOO_COMMAND_STATS_H
#define XDP_CUCKOO_COMMAND_STATS_H

#include "commands/command.h"

enum stats_by { STATS_BY_OUTCOME, STATS_BY_INTERFACE, STATS_BY_CPU, STATS_BY_RULE, STATS_BY_LIST, STATS_BY_PREFIX };

/* Lengths of the source prefixes to sum by. */
struct stats_prefix {
	unsigned int length[FLOW_FAMILIES];
};

/* Reads "prefix", "prefix=24" or "prefix=24,48". 0; -EINVAL. */
int stats_prefix_parse(const char *text, struct stats_prefix *prefix);

/* Prints the lists whose rules matched most packets. */
enum command_status stats_by_list(const struct invocation *invocation);

/* Prints the rules that matched most packets; if `prefix` is not NULL, the prefixes of their sources. */
enum command_status stats_by_rule(const struct invocation *invocation, const struct stats_prefix *prefix);

#endif
