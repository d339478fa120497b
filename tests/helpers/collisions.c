// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What an attacker who had read the hash key of the running filter in this network namespace would do:
 * prints N IPv4 addresses whose rules share both buckets and the fingerprint, one a line, after a line
 * with the hash key. Two buckets of four slots hold eight such entries.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernel/kernel.h"
#include "rule/rule.h"

#define FIRST_ADDRESS 0x0b000000U /* 11.0.0.0; upwards from there */
#define ADDRESSES_MAX (1U << 30)
#define IDENTITIES (1U << 20) /* that are counted: few enough for a processor's cache */

struct search {
	const struct abi_config *config;
	struct bucket_layout layout;
	struct rule_key key; /* of the rule `src 0.0.0.0/32` */
	uint8_t *count;      /* by identity: how many addresses have been seen of it */
};

static struct rule_key key_without_address(void)
{
	const struct rule rule = { .family = FLOW_IPV4, .action = RULE_DROP, .src_len = 32 };
	struct rule_key keys[RULE_KEYS_MAX];

	rule_keys(&rule, keys);
	return keys[0];
}

/* The source is the low half of an IPv4 key's first word. */
static struct bucket_pair pair_of(const struct search *search, uint32_t address)
{
	struct rule_key key = search->key;

	key.key.word[0] |= htonl(address);
	return bucket_pair(rule_hash(&key, &abi_active(search->config)->secret).hash,
			   abi_active(search->config)->geometry, search->layout);
}

/* What entries have in common that can stand in no other place than each other's. */
static uint64_t identity_of(const struct search *search, const struct bucket_pair *pair)
{
	const uint32_t low = pair->first < pair->second ? pair->first : pair->second;

	return (uint64_t)pair->fingerprint * abi_active(search->config)->geometry.buckets + low;
}

/* The first address that makes `wanted` of its identity; 0: there is none. */
static uint32_t find_last(struct search *search, unsigned int wanted)
{
	for (uint32_t address = FIRST_ADDRESS; address < FIRST_ADDRESS + ADDRESSES_MAX; address++) {
		const struct bucket_pair pair = pair_of(search, address);
		const uint64_t identity = identity_of(search, &pair);

		if (pair.first != pair.second && identity < IDENTITIES && ++search->count[identity] == wanted)
			return address;
	}
	return 0;
}

static void print_all(const struct search *search, uint32_t last)
{
	const struct bucket_pair found = pair_of(search, last);
	const uint64_t identity = identity_of(search, &found);

	for (uint32_t address = FIRST_ADDRESS; address <= last; address++) {
		const struct bucket_pair pair = pair_of(search, address);

		if (identity_of(search, &pair) == identity)
			printf("%u.%u.%u.%u\n", address >> 24, address >> 16 & 0xff, address >> 8 & 0xff,
			       address & 0xff);
	}
}

static int attack(const struct kernel_filter *filter, unsigned int wanted)
{
	const __u64 *offset = abi_active(filter->config)->secret.ipv4_offset;
	struct search search = {
		.config = filter->config,
		.layout = bucket_layout(filter->options.format),
		.key = key_without_address(),
	};
	uint32_t last;

	printf("# secret %016" PRIx64 " %016" PRIx64 " ...\n", (uint64_t)offset[0], (uint64_t)offset[1]);
	if (!wanted)
		return 0;
	search.count = calloc(IDENTITIES, sizeof(*search.count));
	last = search.count ? find_last(&search, wanted) : 0;
	free(search.count);
	if (last)
		print_all(&search, last);
	else
		fputs("collisions: the table is too large to search\n", stderr);
	return !last;
}

int main(int argc, char **argv)
{
	struct kernel_filter *filters = NULL;
	struct reason reason;
	size_t count = 0;
	int status;

	if (argc != 2) {
		fputs("usage: collisions N\n", stderr);
		return 2;
	}
	if (kernel_find_filters((struct kernel_wish){ 0 }, &filters, &count, &reason) || count != 1) {
		fputs("collisions: there must be one running filter\n", stderr);
		return 2;
	}
	status = attack(filters, strtoul(argv[1], NULL, 10));
	kernel_filters_free(filters, count);
	return status;
}
