/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Rules from text. */
#ifndef XDP_CUCKOO_TEST_RULE_FIXTURE_H
#define XDP_CUCKOO_TEST_RULE_FIXTURE_H

#include <arpa/inet.h>

#include "rule/rule.h"
#include "unit/test.h"

static inline struct rule parse(const char *text)
{
	struct reason reason = {};
	struct rule rule;

	if (rule_parse(text, &rule, &reason))
		fail_msg("'%s': %s", text, reason.text);
	return rule;
}

#endif
