// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Blocklists are not random: they have neighbours, every 256th address, one address with all its ports. A
 * table of such keys must fill as far, and have as few false positives, as one of random keys. The hash
 * promises less than that.
 */
#include <arpa/inet.h>
#include <netinet/in.h>

#include "rule/rule.h"
#include "unit/table_fixture.h"
#include "unit/random_fill.h"

#define SECRETS 12
#define SLOTS (1 << 14)
#define LOOKUPS 100000
#define FULL_PERCENT 95

static struct rule base_rule(enum flow_family family)
{
	struct rule rule = { .family = family, .src_len = family == FLOW_IPV4 ? 32 : 128 };

	if (family == FLOW_IPV4)
		rule.src.v4 = htonl(0x0a000000);
	else
		rule.src.word[0] = htobe64(0x20010db800000000);
	return rule;
}

static struct rule neighbour(__u64 i)
{
	struct rule rule = base_rule(FLOW_IPV4);

	rule.src.v4 = htonl(0x0a000000 + i);
	return rule;
}

static struct rule every_256th(__u64 i)
{
	struct rule rule = base_rule(FLOW_IPV4);

	rule.src.v4 = htonl(i << 8);
	rule.src_len = 24;
	return rule;
}

/* 5-tuples of one address to one port of another, from all ports, with every protocol that has some. */
static struct rule all_ports(__u64 i)
{
	struct rule rule = base_rule(FLOW_IPV4);

	rule.fields = RULE_PROTO | RULE_SPORT | RULE_DPORT;
	rule.port_kind = FLOW_PORTS;
	rule.dst_len = 32;
	rule.dst.v4 = htonl(0xc6336407);
	rule.sport = htons(i);
	rule.dport = htons(443);
	rule.proto = i >> 16 & 1 ? IPPROTO_UDP : IPPROTO_TCP;
	return rule;
}

static struct rule source_and_destination(__u64 i)
{
	struct rule rule = all_ports(7);

	rule.src.v4 = htonl(0x0a000000 + (i >> 8));
	rule.dst.v4 = htonl(0xc6330000 + (i & 0xff));
	return rule;
}

static struct rule neighbour6(__u64 i)
{
	struct rule rule = base_rule(FLOW_IPV6);

	rule.src.word[1] = htobe64(i);
	return rule;
}

static struct rule network6(__u64 i)
{
	struct rule rule = base_rule(FLOW_IPV6);

	rule.src.word[0] = htobe64(0x20010db800000000 + (i << 16));
	rule.src_len = 48;
	return rule;
}

static const struct {
	const char *name;
	struct rule (*rule)(__u64 i);
} sets[] = {
	{ "neighbours", neighbour },       { "every 256th", every_256th },
	{ "all ports", all_ports },        { "sources to destinations", source_and_destination },
	{ "IPv6 neighbours", neighbour6 }, { "IPv6 networks", network6 },
};

static struct hash_value value_of(size_t set, __u64 i, const struct hash_secret *secret)
{
	const struct rule rule = sets[set].rule(i);
	struct rule_key keys[RULE_KEYS_MAX];

	assert_int_equal(rule_keys(&rule, keys), 1);
	return rule_hash(&keys[0], secret);
}

static size_t fill(struct table *table, size_t set, const struct hash_secret *secret)
{
	size_t count = 0;
	struct hash_value key;

	do
		key = value_of(set, count, secret);
	while (!table_insert(table, &key, 0) && ++count);
	return count;
}

TEST(test_regular_keys_fill_a_table)
{
	uint64_t random = seed_of_run();

	for (size_t set = 0; set < COUNT(sets); set++) {
		size_t least = SLOTS;

		for (int i = 0; i < SECRETS; i++) {
			struct hash_secret secret;
			struct fixture f;
			size_t count;

			random_fill(&random, &secret, sizeof(secret));
			fixture_open(&f, KIND_COMPACT, SLOTS);
			count = fill(&f.table, set, &secret);
			least = count < least ? count : least;
			fixture_close(&f);
		}
		print_message("# %s: full at %.1f %% or more\n", sets[set].name, 100.0 * least / SLOTS);
		assert_true(least * 100 >= (size_t)SLOTS * FULL_PERCENT);
	}
}

/* With fingerprints of 8 bits there are enough false positives to count, if enough keys are probed. */
TEST(test_regular_keys_have_few_false_positives)
{
	const struct table_kind *kind = &table_kinds[0];
	const size_t count = SLOTS * 9 / 10;
	uint64_t random = seed_of_run();
	double expected;

	while (kind->options.format != BUCKET_8)
		kind++;
	expected = LOOKUPS * table_false_positive_rate(BUCKET_8, (double)count / SLOTS);
	for (size_t set = 0; set < COUNT(sets); set++) {
		size_t most = 0;

		for (int i = 0; i < SECRETS; i++) {
			struct hash_secret secret;
			struct hash_value key;
			struct fixture f;
			size_t found = 0;

			random_fill(&random, &secret, sizeof(secret));
			fixture_open(&f, kind, SLOTS);
			for (size_t k = 0; k < count; k++) {
				key = value_of(set, k, &secret);
				assert_int_equal(table_insert(&f.table, &key, 0), 0);
			}
			for (size_t k = count; k < count + LOOKUPS; k++) {
				key = value_of(set, k, &secret);
				found += table_find(&f.table, &key, NULL);
			}
			most = found > most ? found : most;
			fixture_close(&f);
		}
		print_message("# %s: at most %zu of %d, expected %.0f\n", sets[set].name, most, LOOKUPS, expected);
		assert_true(most < expected * 5 / 4);
	}
}

TEST_MAIN(NULL, NULL)
