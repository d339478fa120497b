// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Converts rules between the public and the internal form. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/safe_text.h"
#include "library/internal.h"

_Static_assert(XDP_CUCKOO_COMMENT_BYTES == RULE_COMMENT_BYTES, "comments");
_Static_assert(XDP_CUCKOO_TEXT_BYTES == RULE_TEXT_BYTES, "texts");
_Static_assert((int)XDP_CUCKOO_PROTO == RULE_PROTO && (int)XDP_CUCKOO_SPORT == RULE_SPORT &&
		       (int)XDP_CUCKOO_DPORT == RULE_DPORT && (int)XDP_CUCKOO_NEW == RULE_NEW &&
		       (int)XDP_CUCKOO_DETAILS == RULE_DETAILS,
	       "fields");
/* NOLINTNEXTLINE(misc-redundant-expression): two headers say it. */
_Static_assert(XDP_CUCKOO_RATE_BITS == RULE_RATE_BITS, "rates");
_Static_assert((int)XDP_CUCKOO_DROP == RULE_DROP && (int)XDP_CUCKOO_PASS == RULE_PASS &&
		       (int)XDP_CUCKOO_MONITOR == RULE_MONITOR,
	       "actions");
_Static_assert(sizeof(struct xdp_cuckoo_rule) == 312, "layout of the library's rules");

#define PORTS (RULE_SPORT | RULE_DPORT)

/* ---- from ---- */

static enum flow_family family_of(const struct xdp_cuckoo_rule *from)
{
	if (from->family == AF_INET || (!from->family && from->proto == IPPROTO_ICMP))
		return FLOW_IPV4;
	if (from->family == AF_INET6 || (!from->family && from->proto == IPPROTO_ICMPV6))
		return FLOW_IPV6;
	return from->family == AF_UNSPEC ? FLOW_NO_FAMILY : FLOW_NO_FAMILY + 1;
}

static bool is_zero(const __u8 *bytes, size_t count)
{
	while (count && !bytes[count - 1])
		count--;
	return !count;
}

static unsigned int detail(const struct xdp_cuckoo_rule *from, enum xdp_cuckoo_detail shift)
{
	return from->details >> shift & 3;
}

int public_read_rule(const struct xdp_cuckoo_filter *filter, const struct xdp_cuckoo_rule *from, struct rule *rule,
		     struct reason *reason)
{
	const unsigned int fragment = detail(from, XDP_CUCKOO_FRAGMENT), block = detail(from, XDP_CUCKOO_LENGTH_BLOCK);
	const size_t address = from->family == AF_INET ? sizeof(__be32) : sizeof(from->src);

	if (!memchr(from->comment, '\0', RULE_COMMENT_BYTES))
		return reason_set(reason, -EINVAL, "the comment has no end");
	if (!rule_is_plain(from->comment) || !rule_is_utf8(from->comment))
		return reason_set(reason, -EINVAL, "the comment is not UTF-8 without quotes and control characters");
	memset(rule, 0, sizeof(*rule));
	rule->family = family_of(from);
	rule->action = from->action;
	rule->fields = from->fields & ~(XDP_CUCKOO_FRAGMENTS | XDP_CUCKOO_RATE);
	rule->fields |= from->fields & XDP_CUCKOO_RATE ? RULE_RATE : 0;
	rule->src_len = from->src_bits;
	rule->dst_len = from->dst_bits;
	rule->proto = from->proto;
	rule->port_kind = !(from->fields & PORTS) ? FLOW_NO_PORTS : rule_is_icmp(rule) ? FLOW_ICMP : FLOW_PORTS;
	memcpy(rule->src.byte, from->src, sizeof(from->src));
	memcpy(rule->dst.byte, from->dst, sizeof(from->dst));
	rule->sport = htons(from->sport);
	rule->dport = htons(from->dport);
	rule->flags = from->tcp_flags;
	rule->fragment = fragment;
	rule->length = from->length;
	rule->details = (struct rule_details){
		.flags_mask = from->tcp_flags_mask,
		.fragment_mask = fragment ? FLOW_FRAGMENT_MASK : 0,
		.length_bits = from->length || block ? RULE_PORT_BITS - RULE_BLOCK_BITS * block : 0,
		.sport_free = RULE_BLOCK_BITS * detail(from, XDP_CUCKOO_SPORT_BLOCK),
		.dport_free = RULE_BLOCK_BITS * detail(from, XDP_CUCKOO_DPORT_BLOCK),
	};
	if (from->fields & XDP_CUCKOO_FRAGMENTS)
		rule->fragment |= rule->details.fragment_mask = FLOW_FRAGMENT_ANY;
	rule->rate = filter && rule->fields & RULE_RATE ? filter->rate : 0;
	rule->timeout_ms = from->timeout_ms;
	strcpy(rule->comment, from->comment);
	text_clean(rule->comment);
	if (from->timeout_ms < 0 || from->timeout_ms > RULE_TIMEOUT_MAX_S * 1000LL)
		return reason_set(reason, -EINVAL, "a timeout of %lld ms: must be 0 to 68 years",
				  (long long)from->timeout_ms);
	/* rule_is_canonical() cannot see the bytes behind an address of IPv4. */
	if (!is_zero(from->src + address, sizeof(from->src) - address) ||
	    !is_zero(from->dst + address, sizeof(from->dst) - address) || !rule_is_canonical(rule))
		return reason_set(reason, -EINVAL,
				  "this is no rule: fields contradict each other, name nothing, or "
				  "what is not used, or lies behind a prefix, is not 0");
	return 0;
}

int public_check_rate(const struct rule *rule, struct reason *reason)
{
	return rule_has_sound_rate(rule) ?
		       0 :
		       reason_set(reason, -EINVAL, "a rule with XDP_CUCKOO_RATE: first call xdp_cuckoo_set_rate()");
}

uint64_t xdp_cuckoo_rate(const struct xdp_cuckoo_filter *filter)
{
	return filter->rate;
}

int xdp_cuckoo_set_rate(struct xdp_cuckoo_filter *filter, uint64_t rate)
{
	const struct rule rule = { .fields = RULE_RATE, .rate = rate };

	if (!rule_has_sound_rate(&rule))
		return reason_set(&filter->reason, -EINVAL, "a rate must be 1 to 10^12 packets or bits a second");
	filter->rate = rate;
	return 0;
}

/* ---- to ---- */

void public_write_rule(struct xdp_cuckoo_filter *filter, const struct rule *from, struct xdp_cuckoo_rule *rule)
{
	const struct rule_details *details = &from->details;

	memset(rule, 0, sizeof(*rule));
	rule->family = from->family == FLOW_IPV4 ? AF_INET : from->family == FLOW_IPV6 ? AF_INET6 : AF_UNSPEC;
	rule->action = from->action;
	rule->fields = (from->fields & ~RULE_RATE) | (from->fields & RULE_RATE ? XDP_CUCKOO_RATE : 0);
	if (filter && from->rate)
		filter->rate = from->rate;
	if (details->fragment_mask == FLOW_FRAGMENT_ANY)
		rule->fields |= XDP_CUCKOO_FRAGMENTS;
	rule->details = (details->fragment_mask == FLOW_FRAGMENT_MASK ? from->fragment : 0) << XDP_CUCKOO_FRAGMENT |
			details->sport_free / RULE_BLOCK_BITS << XDP_CUCKOO_SPORT_BLOCK |
			details->dport_free / RULE_BLOCK_BITS << XDP_CUCKOO_DPORT_BLOCK |
			(details->length_bits ? RULE_PORT_BITS - details->length_bits : 0) / RULE_BLOCK_BITS
				<< XDP_CUCKOO_LENGTH_BLOCK;
	rule->tcp_flags = from->flags;
	rule->tcp_flags_mask = details->flags_mask;
	rule->length = from->length;
	rule->proto = from->proto;
	rule->src_bits = from->src_len;
	rule->dst_bits = from->dst_len;
	rule->sport = ntohs(from->sport);
	rule->dport = ntohs(from->dport);
	memcpy(rule->src, from->src.byte, sizeof(rule->src));
	memcpy(rule->dst, from->dst.byte, sizeof(rule->dst));
	rule->timeout_ms = from->timeout_ms;
	strcpy(rule->comment, from->comment);
}

/* ---- text ---- */

/* Does not call public_enter(): it may be used within a visit, and its errors do not end a change. */
int xdp_cuckoo_parse(struct xdp_cuckoo_filter *filter, const char *text, struct xdp_cuckoo_rule *rule)
{
	struct reason ignored = {}, *reason = filter ? &filter->reason : &ignored;
	struct rule parsed;
	int error;

	reason->text[0] = '\0';
	error = rule_parse(text, &parsed, reason);
	if (!error)
		public_write_rule(filter, &parsed, rule);
	return error;
}

int xdp_cuckoo_format(const struct xdp_cuckoo_rule *rule, char *text, size_t size)
{
	char whole[RULE_TEXT_BYTES];
	struct reason ignored;
	struct rule read;
	int error = public_read_rule(NULL, rule, &read, &ignored);

	if (size)
		snprintf(text, size, "%s", error ? "" : rule_format(&read, whole));
	return error;
}
