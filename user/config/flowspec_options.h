/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which flows of BGP become rules: the section [flowspec] of a configuration. See xdp-cuckoo-flowspec(7). */
#ifndef XDP_CUCKOO_FLOWSPEC_OPTIONS_H
#define XDP_CUCKOO_FLOWSPEC_OPTIONS_H

#include "rule/rule.h"

#define FLOWSPEC_PREFIXES_MAX 64
#define FLOWSPEC_LIST_DEFAULT "flowspec"

struct flowspec_options {
	struct rule own[FLOWSPEC_PREFIXES_MAX]; /* the destination of a flow must be in one of these: `dst PREFIX` */
	size_t own_count;
	bool is_any;             /* flows may have any destination, or none */
	__u64 flows_max;         /* announced at a time */
	__u64 rules_max;         /* of all flows */
	__s64 stale_ms;          /* rules end so long after their source has gone, and at most a quarter later */
	bool takes_blackholes;   /* unicast routes with the community BLACKHOLE (RFC 7999) */
	enum rule_action action; /* RULE_DROP, or RULE_MONITOR for a trial */
	const char *list;        /* of the rules; NULL: not given */
};

#endif
