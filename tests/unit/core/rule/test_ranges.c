// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The prefixes cover exactly the range, and no fewer prefixes could. */
#include "bench/random.h"
#include "unit/rule_fixture.h"
#include "rule/internal.h"

typedef unsigned __int128 wide;

static wide number_of(enum flow_family family, const union flow_addr *address)
{
	wide number = 0;

	for (unsigned int i = 0; i < (family == FLOW_IPV4 ? 4 : 16); i++)
		number = number << 8 | address->byte[i];
	return number;
}

static union flow_addr address_of(enum flow_family family, wide number)
{
	union flow_addr address = {};

	for (unsigned int i = family == FLOW_IPV4 ? 4 : 16; i-- > 0; number >>= 8)
		address.byte[i] = number;
	return address;
}

/* Counts the fewest prefixes for a range in another way: by halving the address space. */
static unsigned int fewest(wide first, wide last, wide from, unsigned int bits)
{
	const wide to = bits == 128 ? ~(wide)0 : from + (((wide)1 << bits) - 1);
	const wide middle = bits ? from + ((wide)1 << (bits - 1)) : from;

	if (last < from || first > to)
		return 0;
	if (first <= from && to <= last)
		return 1;
	return fewest(first, last, from, bits - 1) + fewest(first, last, middle, bits - 1);
}

static void check(enum flow_family family, wide first, wide last)
{
	const unsigned int bits = family == FLOW_IPV4 ? 32 : 128;
	struct rule_range range = { family, address_of(family, first), address_of(family, last) };
	union flow_addr address, network;
	unsigned int length, count = 0;
	wide next = first;
	bool is_over = false;

	while (rule_range_next(&range, &address, &length)) {
		network = rule_network(&address, length);
		assert_memory_equal(&network, &address, sizeof(network));
		assert_false(is_over);
		assert_true(number_of(family, &address) == next);
		next += length || bits < 128 ? (wide)1 << (bits - length) : 0;
		is_over = next - 1 == last;
		count++;
	}
	assert_true(next - 1 == last);
	assert_int_equal(count, fewest(first, last, 0, bits));
}

TEST(test_edges)
{
	const wide all4 = 0xffffffff, all6 = ~(wide)0;

	check(FLOW_IPV4, 0, all4);
	check(FLOW_IPV4, 0, 0);
	check(FLOW_IPV4, all4, all4);
	check(FLOW_IPV4, 1, all4 - 1);
	check(FLOW_IPV4, 0, all4 - 1);
	check(FLOW_IPV4, 1, all4);
	check(FLOW_IPV4, 0x7fffffff, 0x80000000);
	check(FLOW_IPV6, 0, all6);
	check(FLOW_IPV6, 0, 0);
	check(FLOW_IPV6, all6, all6);
	check(FLOW_IPV6, 1, all6 - 1);
	check(FLOW_IPV6, 1, all6);
	check(FLOW_IPV6, (wide)1 << 127, all6);
	check(FLOW_IPV6, ((wide)1 << 64) - 1, (wide)1 << 64);
}

TEST(test_random_ranges)
{
	uint64_t seed = seed_of_run();

	for (int i = 0; i < 20000; i++) {
		const enum flow_family family = random_below(&seed, 2);
		const unsigned int bits = family == FLOW_IPV4 ? 32 : 128;
		/* Ranges of all sizes. */
		const wide mask = ((wide)1 << random_below(&seed, bits)) - 1;
		wide first = (wide)random_next(&seed) << 64 | random_next(&seed);
		wide last = first + (((wide)random_next(&seed) << 64 | random_next(&seed)) & mask);

		if (family == FLOW_IPV4) {
			first = (__u32)first;
			last = (__u32)last;
		}
		check(family, first < last ? first : last, first < last ? last : first);
	}
}

TEST(test_texts)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{ "192.0.2.1", "not a range" },
		{ "::1-::ffff:192.0.2.9", "write it as IPv4" },
		{ "::ffff:192.0.2.1-::ffff:192.0.2.9", "write it as IPv4" },
		{ "192.0.2.1-", "not a range" },
		{ "-192.0.2.1", "not a range" },
		{ "192.0.2.1-192.0.2.300", "not a range" },
		{ "192.0.2.9-192.0.2.1", "ends before it starts" },
		{ "192.0.2.1-2001:db8::1", "of IPv4 or of IPv6" },
		{ "192.0.2.1-192.0.2.2-192.0.2.3", "not a range" },
		{ "192.0.2.0/24-192.0.3.0/24", "not a range" },
		{ "2001:db8::2-2001:db8::1", "ends before it starts" },
		{ "11111111111111111111111111111111111111111111111111111111111-192.0.2.1", "not a range" },
	};
	struct rule_range range;
	struct reason reason;

	assert_int_equal(rule_range_parse("192.0.2.1-192.0.2.1", &range, &reason), 0);
	assert_int_equal(rule_range_parse("2001:db8::1-2001:db8::ff", &range, &reason), 0);
	for (size_t i = 0; i < COUNT(bad); i++) {
		assert_int_equal(rule_range_parse(bad[i].text, &range, &reason), -22);
		if (!strstr(reason.text, bad[i].says))
			fail_msg("'%s' says: %s", bad[i].text, reason.text);
	}
}

TEST_MAIN(NULL, NULL)
