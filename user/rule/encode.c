// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The bytes by which a store keeps a rule: database key, sorted by family, source and destination. */
#include <errno.h>
#include <string.h>

#include "rule/rule.h"

__u64 rule_owners_now(const struct rule *rule)
{
	const struct rule_owners *owners = &rule->owners;

	return owners->permanent | (owners->timed_ms > 0 ? owners->timed : 0);
}

size_t rule_encode(const struct rule *rule, __u8 bytes[RULE_ENCODED_BYTES])
{
	const size_t width = rule_address_bits(rule->family) / 8;
	__u8 *to = bytes;

	*to++ = rule->family;
	to = mempcpy(to, rule->src.byte, width);
	*to++ = rule->src_len;
	to = mempcpy(to, rule->dst.byte, width);
	*to++ = rule->dst_len;
	*to++ = rule->fields;
	*to++ = rule->proto;
	*to++ = rule->port_kind;
	to = mempcpy(to, &rule->sport, 2);
	to = mempcpy(to, &rule->dport, 2);
	*to++ = rule->action;
	return to - bytes;
}

/* Bytes of an encoded rule without its two addresses. */
#define ENCODED_FIXED_BYTES 11

size_t rule_encoded_bytes(enum flow_family family)
{
	return ENCODED_FIXED_BYTES + rule_address_bits(family) / 4;
}

int rule_decode(const __u8 *bytes, size_t length, struct rule *rule)
{
	const __u8 *from = bytes;
	size_t width;

	if (length < ENCODED_FIXED_BYTES || bytes[0] > FLOW_NO_FAMILY || length != rule_encoded_bytes(bytes[0]))
		return -EBADMSG;
	width = rule_address_bits(bytes[0]) / 8;
	memset(rule, 0, offsetof(struct rule, comment));
	rule->comment[0] = '\0';
	rule->family = *from++;
	memcpy(rule->src.byte, from, width);
	from += width;
	rule->src_len = *from++;
	memcpy(rule->dst.byte, from, width);
	from += width;
	rule->dst_len = *from++;
	rule->fields = *from++;
	rule->proto = *from++;
	rule->port_kind = *from++;
	memcpy(&rule->sport, from, 2);
	memcpy(&rule->dport, from + 2, 2);
	rule->action = from[4];
	if (rule->src_len > 8 * width || rule->dst_len > 8 * width || rule->action >= RULE_ACTIONS ||
	    rule->port_kind > FLOW_ICMP || rule->fields >= RULE_FIELDS)
		return -EBADMSG;
	return 0;
}
