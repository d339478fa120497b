// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The limits of lists from elsewhere. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "lists/internal.h"
#include "rule/shapes.h"

/*
 * Addresses that are not public: private, shared, loopback, link-local, for benchmarks, multicast and reserved ones.
 * IPv6 is public where IANA has given it to a registry, of which hosts have addresses (its ipv6-unicast-address-assignments of
 * 2025-10-10). Single networks of IPv4 for documentation do not matter to a share. The numbers are IPv4 addresses, or
 * the first halves of IPv6 addresses.
 */
static const struct range {
	__u64 first, last;
} not_public[FLOW_FAMILIES][14] = {
	[FLOW_IPV4] = { { 0x00000000, 0x00ffffff },
			{ 0x0a000000, 0x0affffff },
			{ 0x64400000, 0x647fffff },
			{ 0x7f000000, 0x7fffffff },
			{ 0xa9fe0000, 0xa9feffff },
			{ 0xac100000, 0xac1fffff },
			{ 0xc0a80000, 0xc0a8ffff },
			{ 0xc6120000, 0xc613ffff },
			{ 0xe0000000, 0xffffffff } },
	[FLOW_IPV6] = { { 0, 0x200101ffffffffff }, /* 2001:200::/23 to 2001:e00::/23 */
			{ 0x2001100000000000, 0x200111ffffffffff },
			{ 0x20014e0000000000, 0x20014fffffffffff }, /* 2001:5000::/20 */
			{ 0x2001600000000000, 0x20017fffffffffff }, /* 2001:8000::/19 to 2001:b000::/20 */
			{ 0x2001c00000000000, 0x2002ffffffffffff }, /* 2003::/18 */
			{ 0x2003400000000000, 0x23ffffffffffffff }, /* 2400::/11 */
			{ 0x2420000000000000, 0x25ffffffffffffff }, /* 2600::/12, 2610::/23, 2620::/23, 2630::/12 */
			{ 0x2610020000000000, 0x261fffffffffffff },
			{ 0x2620020000000000, 0x262fffffffffffff },
			{ 0x2640000000000000, 0x27ffffffffffffff }, /* 2800::/12 */
			{ 0x2810000000000000, 0x29ffffffffffffff }, /* 2a00::/11 */
			{ 0x2a20000000000000, 0x2bffffffffffffff }, /* 2c00::/12 */
			{ 0x2c10000000000000, ~0ULL } },
};

#define RANGES (sizeof(not_public[0]) / sizeof(not_public[0][0]))

static double count_public(enum flow_family family, __u64 first, __u64 last)
{
	double count = last - first + 1.;

	for (size_t i = 0; i < RANGES && not_public[family][i].last; i++) {
		const struct range *other = &not_public[family][i];
		const __u64 from = first > other->first ? first : other->first;
		const __u64 to = last < other->last ? last : other->last;

		count -= from <= to ? to - from + 1. : 0;
	}
	return count;
}

/* Each kind of rule costs packets a look-up. Prefix lengths are joined, so an honest list has few. */
static int check_kinds(const struct rule_set *set, struct reason *reason)
{
	const size_t kinds_max = ABI_SHAPES_MAX - 8, rates_max = ABI_RATES_MAX / 2;
	struct rule_shape probed[ABI_SHAPES_MAX];
	struct rule_key keys[RULE_KEYS_MAX];
	struct shape_list kinds = {};
	size_t rates = 0;
	int error = 0;

	for (size_t i = 0; i < set->count && !error; i++) {
		struct rule rule;

		rule_set_get(set, i, &rule);
		rates += (rule.fields & RULE_RATE) != 0;
		for (size_t k = rule_keys(&rule, keys); k-- > 0 && !error;)
			error = shape_list_add(&kinds, &keys[k].shape, 1);
	}
	if (rates > rates_max)
		return reason_set(reason, -EINVAL, "more than %zu of its rules have a rate", rates_max);
	if (!error)
		error = shape_list_plan(&kinds);
	for (enum flow_family family = 0; family < FLOW_FAMILIES && !error; family++)
		error = shape_list_probed(&kinds, family, probed) > kinds_max ? -E2BIG : 0;
	return !error ? 0 :
			reason_set(reason, -EINVAL, "it has more than %zu kinds of rule (fields and prefix lengths)",
				   kinds_max);
}

/* One line of a list with up to so much max-space has at most so much of the public addresses: an IPv4 /9, an IPv6 /18. */
#define SPACE_OF_LINES 5
#define LINE_PERCENT_MAX 0.25

/*
 * One pass. In a sorted set, the rules of a family without a source come first, sorted by destination. The others are
 * sorted by source. A prefix is either within the one counted before, or behind it.
 */
int list_check_share(const struct rule_set *set, unsigned int space_max, struct reason *reason)
{
	static const char *const names[] = { [FLOW_IPV4] = "IPv4", [FLOW_IPV6] = "IPv6" };
	double covered[2 * FLOW_FAMILIES] = {}, line, most = 0;
	const double all[] = { count_public(FLOW_IPV4, 0, ~0U), count_public(FLOW_IPV6, 0, ~0ULL) };
	char widest[RULE_TEXT_BYTES];
	unsigned int before = 0;
	__u64 next = 0;

	for (size_t i = 0; i < set->count; i++) {
		struct rule rule;
		unsigned int width, length, kind;
		__u64 first, last;

		rule_set_get(set, i, &rule);
		if (!rule.src_len && !rule.dst_len)
			continue; /* list_unfit() */
		kind = 2 * rule.family + (rule.src_len != 0);
		width = rule.family == FLOW_IPV4 ? 32 : 64;
		length = rule.src_len ? rule.src_len : rule.dst_len;
		first = be64toh(rule.src_len ? rule.src.word[0] : rule.dst.word[0]) >> (64 - width);
		last = first | (length < width ? ~0ULL >> (64 - width + length) : 0);
		if (kind == before && first < next)
			continue;
		line = count_public(rule.family, first, last);
		covered[kind] += line;
		if (100 * line / all[rule.family] > most) {
			most = 100 * line / all[rule.family];
			rule_format(&rule, widest);
		}
		before = kind;
		next = last + 1;
	}
	for (unsigned int kind = 0; kind < 2 * FLOW_FAMILIES; kind++) {
		const double share = 100 * covered[kind] / all[kind / 2];

		if (share > space_max)
			return reason_set(reason, -EINVAL,
					  "it covers %.3g%% of the public %s addresses, more than max-space = %u%%",
					  share, names[kind / 2], space_max);
	}
	if (most > LINE_PERCENT_MAX && space_max <= SPACE_OF_LINES)
		return reason_set(reason, -EINVAL,
				  "'%s' alone is %.3g%% of the public addresses, and one line may have %g%% unless "
				  "max-space is above %d%%",
				  widest, most, LINE_PERCENT_MAX, SPACE_OF_LINES);
	return check_kinds(set, reason);
}

const char *list_unfit(const struct list_limits *limits, const struct rule *rule)
{
	const unsigned int least = limits->prefix_min[rule->family == FLOW_IPV6];

	if (rule->action == RULE_PASS && !limits->may_pass)
		return "a pass rule, which would open the filter; to allow it: action = pass";
	if (!rule->src_len && !rule->dst_len && limits->space_max < 100)
		return "it names no address, so it holds for all; to allow it: max-space = 100%";
	if ((rule->src_len && rule->src_len < least) || (rule->dst_len && rule->dst_len < least))
		return "its prefix is shorter than min-prefix";
	return NULL;
}
