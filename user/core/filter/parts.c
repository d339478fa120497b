// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The two parts of a table: in which one a key belongs, by which hash it is there, and in which
 * slot it is. Changes nothing.
 *
 * Each table has a part with records. A second part, for addresses, has the keys of drop rules that
 * name an IPv4 source prefix and nothing else, and never end: the bulk of every blocklist. Such a
 * key takes two bytes and no record (include/permute.h).
 *
 * The end of a key decides in which part it belongs, and it may change: one_key.c. A shape of such
 * rules is published with RULE_ADDRESSES. As long as the store has rules with an end, it is
 * published as it is, too.
 */
#include <arpa/inet.h>

#include "filter/internal.h"

bool filter_is_address(const struct rule_shape *shape)
{
	return shape->family == FLOW_IPV4 && shape->action == RULE_DROP && !(shape->fields & ~RULE_ADDRESSES) &&
	       shape->src_len && !shape->dst_len;
}

enum filter_part filter_part_of(const struct filter *filter, const struct rule_shape *shape, bool is_timed)
{
	return filter->tables.part[FILTER_ADDRESSES].search && filter_is_address(shape) && !is_timed ? FILTER_ADDRESSES :
												      FILTER_RECORDS;
}

struct rule_shape filter_shape_in(const struct rule_shape *shape, enum filter_part part)
{
	struct rule_shape looked_up = *shape;

	if (part == FILTER_ADDRESSES)
		looked_up.fields |= RULE_ADDRESSES;
	return looked_up;
}

struct hash_value filter_hash(const struct abi_table *in_config, const struct rule_key *key, enum filter_part part)
{
	__u64 x;

	if (part == FILTER_RECORDS)
		return rule_hash(key, &in_config->secret);
	x = permute(&in_config->addresses.secret,
		    permute_number(ntohl((__be32)key->key.word[0]), ~0U << (32 - key->shape.src_len)));
	return (struct hash_value){ x, x << ABI_END_BITS };
}

/* ---- reading ---- */

bool filter_find(const struct abi_table *in_config, const struct filter_tables *tables, const struct rule_key *key,
		 enum filter_part part, __u32 *slot)
{
	struct hash_value value;

	if (part == FILTER_ADDRESSES && !(tables->part[part].search && filter_is_address(&key->shape)))
		return false;
	value = filter_hash(in_config, key, part);
	if (!table_find(&tables->part[part], &value, slot))
		return false;
	*slot += part == FILTER_ADDRESSES ? table_slots(&tables->part[FILTER_RECORDS]) : 0;
	return true;
}

struct abi_counter *filter_counter(const struct filter_tables *tables, __u64 slot)
{
	const __u64 records = table_slots(&tables->part[FILTER_RECORDS]);

	return slot < records ? &tables->part[FILTER_RECORDS].memory.counter[slot] :
				&tables->part[FILTER_ADDRESSES].memory.counter[slot - records];
}

__u64 filter_tag(const struct filter_tables *tables, __u64 slot)
{
	const struct table *table = tables->part;
	const __u64 records = table_slots(&table[FILTER_RECORDS]);

	return slot < records ? abi_record_tag(table[FILTER_RECORDS].memory.record[slot]) :
				table_address(&table[FILTER_ADDRESSES], slot - records) << ABI_END_BITS;
}

void filter_tags(const struct kernel_filter *kernel, const struct rule_key *key, __u64 tags[FILTER_PARTS])
{
	const bool may_be_address = kernel->options.has_addresses && filter_is_address(&key->shape);

	for (enum filter_part part = 0; part < FILTER_PARTS; part++)
		tags[part] = filter_hash(abi_active(kernel->config), key, may_be_address ? part : FILTER_RECORDS).tag;
}
