// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The bytes by which a store keeps a rule: database key, sorted by family, source and destination. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "rule/rule.h"
#include "base/safe_text.h"

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
	if (rule->fields & RULE_DETAILS) {
		to = mempcpy(to, &rule->details, sizeof(rule->details));
		*to++ = rule->flags;
		*to++ = rule->fragment;
		*to++ = rule->length >> 8;
		*to++ = rule->length;
	}
	return to - bytes;
}

/* Bytes of an encoded rule without its two addresses and its details, and those of the details. */
#define ENCODED_FIXED_BYTES 11
#define ENCODED_DETAILS_BYTES (sizeof(struct rule_details) + 4)

size_t rule_encoded_bytes(const __u8 bytes[RULE_ENCODED_BYTES])
{
	const size_t addresses = rule_address_bits(bytes[0]) / 4;

	return ENCODED_FIXED_BYTES + addresses + (bytes[3 + addresses] & RULE_DETAILS ? ENCODED_DETAILS_BYTES : 0);
}

int rule_decode(const __u8 *bytes, size_t length, struct rule *rule)
{
	const __u8 *from = bytes;
	size_t width;

	if (length < ENCODED_FIXED_BYTES || bytes[0] > FLOW_NO_FAMILY)
		return -EBADMSG;
	width = rule_address_bits(bytes[0]) / 8;
	if (length < ENCODED_FIXED_BYTES + 2 * width || length != rule_encoded_bytes(bytes))
		return -EBADMSG;
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
	if (rule->fields & RULE_DETAILS) {
		memcpy(&rule->details, from + 5, sizeof(rule->details));
		from += 5 + sizeof(rule->details);
		rule->flags = from[0];
		rule->fragment = from[1];
		rule->length = from[2] << 8 | from[3];
	}
	if (rule->src_len > 8 * width || rule->dst_len > 8 * width || rule->action >= RULE_ACTIONS ||
	    rule->port_kind > FLOW_ICMP || rule->fields >= RULE_FIELDS)
		return -EBADMSG;
	return 0;
}

/* ---- checks of rules that others wrote: could rule_parse() have made them? ---- */

bool rule_is_plain(const char *text)
{
	for (; *text; text++)
		if (text_is_control(text) || *text == '"')
			return false;
	return true;
}

bool rule_is_utf8(const char *text)
{
	size_t bytes = 1;

	for (; *text && bytes; text += bytes)
		bytes = text_character_bytes(text);
	return bytes > 0;
}

/* A port that the rule does not have must be 0. */
static bool are_ports_canonical(const struct rule *rule)
{
	const __u8 named = rule->fields & (RULE_SPORT | RULE_DPORT);

	if ((!(rule->fields & RULE_SPORT) && rule->sport) || (!(rule->fields & RULE_DPORT) && rule->dport))
		return false;
	switch (rule->port_kind) {
	case FLOW_NO_PORTS:
		return !named;
	case FLOW_PORTS:
		return named && (!(rule->fields & RULE_PROTO) || rule_has_ports(rule->proto));
	case FLOW_ICMP:
		return named && rule_is_icmp(rule) && ntohs(rule->sport) < 256 && ntohs(rule->dport) < 256;
	default:
		return false;
	}
}

static bool is_block(__u16 first, unsigned int free)
{
	return free < RULE_PORT_BITS && !(free % RULE_BLOCK_BITS) && !(first & ((1U << free) - 1));
}

/* Masks of the details, and values under them, and nothing that no packet can have. */
static bool are_details_canonical(const struct rule *rule)
{
	const struct rule_details *details = &rule->details;
	const unsigned int length_free = RULE_PORT_BITS - details->length_bits;
	__u8 fields = rule->fields;

	rule_mark_details(&fields, details);
	if (fields != rule->fields || rule->flags & ~details->flags_mask ||
	    (details->length_bits ? !is_block(rule->length, length_free) : rule->length))
		return false;
	if (details->fragment_mask == FLOW_FRAGMENT_ANY ? rule->fragment != FLOW_FRAGMENT_ANY :
	    details->fragment_mask ? details->fragment_mask != FLOW_FRAGMENT_MASK || !rule->fragment ||
					     rule->fragment > FLOW_FRAGMENT_MASK :
				     rule->fragment)
		return false;
	if (details->flags_mask && (!(rule->fields & RULE_PROTO) || rule->proto != IPPROTO_TCP))
		return false;
	if ((details->sport_free || details->dport_free) && rule->port_kind != FLOW_PORTS)
		return false;
	return (!details->sport_free ||
		(rule->fields & RULE_SPORT && is_block(ntohs(rule->sport), details->sport_free))) &&
	       (!details->dport_free ||
		(rule->fields & RULE_DPORT && is_block(ntohs(rule->dport), details->dport_free))) &&
	       (rule->fragment != FLOW_FRAGMENT_LATER || !rule_lacks_later_fragments(rule));
}

/* The store checks millions of rules, and most have whole addresses, so these return early. */
static bool is_network(const struct rule *rule, const union flow_addr *address, unsigned int length)
{
	if (!length)
		return !(address->word[0] | address->word[1]);
	return length == rule_address_bits(rule->family) || rule_is_network_of(address, length, address);
}

bool rule_is_canonical(const struct rule *rule)
{
	const unsigned int bits = rule_address_bits(rule->family);

	if (rule->action >= RULE_ACTIONS || rule->fields >= RULE_FIELDS ||
	    (rule->fields & (RULE_NEW | RULE_RATE) && rule->action == RULE_PASS))
		return false;
	if (rule->fields & RULE_PROTO ? rule->proto > RULE_PROTO_MAX : rule->proto)
		return false;
	if (!are_ports_canonical(rule) || !are_details_canonical(rule))
		return false;
	if (rule->family > FLOW_NO_FAMILY || rule->src_len > bits || rule->dst_len > bits)
		return false;
	if (rule_is_icmp(rule) ? rule->family != (rule->proto == IPPROTO_ICMP ? FLOW_IPV4 : FLOW_IPV6) :
				 rule->family == FLOW_NO_FAMILY && !(rule->fields & ~RULE_RATE))
		return false;
	return is_network(rule, &rule->src, rule->src_len) && is_network(rule, &rule->dst, rule->dst_len);
}
