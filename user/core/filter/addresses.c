// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The part of a table for addresses. It has the keys of drop rules that name an IPv4 source prefix and nothing else, and
 * never end: the bulk of every blocklist. Such a key takes two bytes and no record (include/permute.h).
 *
 * The end of a key decides in which part it is, and it may change. A shape of such rules is published with RULE_ADDRESSES. As
 * long as the store has rules with an end, it is published as it is, too.
 *
 * Of a part of 2.3 MiB, few lines stay in the caches, so packets that match nothing wait longer than for a small table with
 * records. So only a table with many such keys has this part.
 */
#include <arpa/inet.h>
#include <errno.h>

#include "filter/internal.h"
#include "table/publish_order.h"

#define SLOTS_LEAST (1ULL << 14) /* of the part with records */

__u64 filter_addresses_least = 500000;

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

int filter_read_need(struct store *store, struct filter_need *need)
{
	struct filter_parts *keys = &need->keys;
	double addresses = 0, factor, most = 1, timed;
	int error = store_info(store, &need->info);

	if (!error)
		error = store_shapes(store, &need->shapes);
	for (size_t i = 0; !error && i < need->shapes.count; i++) {
		const struct shape_list_entry *entry = &need->shapes.entry[i];

		if (!filter_is_address(&entry->shape))
			continue;
		factor = rule_expansion_factor(&entry->shape, &entry->probed_as);
		addresses += entry->keys * factor;
		most = factor > most ? factor : most;
	}
	if (error)
		return error;
	/* Nobody counts the timed ones of these rules alone. */
	timed = need->info.timed * most;
	keys->addresses = addresses;
	keys->both = timed < addresses ? timed : addresses;
	keys->records = need->info.keys - keys->addresses + keys->both;
	return 0;
}

/*
 * With the part, the shapes of these rules count twice, and there must be room for that. A part
 * that is there stays: the table gets no smaller, and with records it would take much more memory.
 */
static bool is_wanted(const struct filter_need *need, bool has_now)
{
	const __u64 addresses = need->keys.addresses, timed = need->info.timed;
	struct rule_shape probed[ABI_SHAPES_MAX];

	return (has_now || (addresses > timed && addresses - timed >= filter_addresses_least)) &&
	       shape_list_probed(&need->shapes, FLOW_IPV4, probed) <= ABI_SHAPES_MAX / 2;
}

/* A part that takes the keys stays as large as it is. */
static __u64 grown(__u64 slots, __u64 keys)
{
	return keys <= slots * TABLE_LOAD_PERCENT / 100 ? slots : table_slots_for(keys + keys / 2);
}

/*
 * Makes the part larger that is full. If there is none, or that is not enough, both get the same
 * share of the free slots, as far as the room of the maps goes if that takes the keys. Beyond it,
 * there are at least `slots`.
 */
static struct filter_parts share_slots(struct filter_parts keys, __u64 slots,
				       const struct filter_parts *room,
				       const struct filter_parts *present)
{
	const struct filter_parts least = { .records = table_slots_for(keys.records),
					    .addresses = table_slots_for(keys.addresses) };
	const bool fits = least.records <= room->records && least.addresses <= room->addresses;
	double share = slots / (double)table_slots_for(keys.records + keys.addresses);
	struct filter_parts plan = { .records = grown(present->records, keys.records),
				     .addresses = grown(present->addresses, keys.addresses) };

	share = share > 1 ? share : 1;
	if (!present->records || plan.records + plan.addresses < slots)
		plan = (struct filter_parts){ .records = share * least.records,
					      .addresses = share * least.addresses };
	plan.records = plan.records > SLOTS_LEAST ? plan.records : SLOTS_LEAST;
	plan.records = table_slots_of(table_geometry(plan.records));
	plan.addresses = table_address_slots(plan.addresses);
	if (fits && slots <= room->records + room->addresses) {
		plan.records = plan.records < room->records ? plan.records : room->records;
		plan.addresses = plan.addresses < room->addresses ? plan.addresses : room->addresses;
		return plan.records + plan.addresses < slots ? *room : plan;
	}
	while (plan.records + plan.addresses < slots && plan.addresses < 1ULL << ABI_SLOTS_MAX_LOG2)
		plan.addresses = table_address_slots(plan.addresses + 1);
	return plan;
}

struct filter_parts filter_plan_parts(const struct filter_need *need, const struct filter *present, __u64 slots,
				      struct abi_options *options)
{
	const bool has_now = present && present->kernel.options.has_addresses;
	/* Else the operator makes it smaller. */
	const bool stays = has_now && slots >= filter_slots(&present->kernel);
	const struct filter_parts none = {}, room = has_now ? filter_room_of_parts(&present->kernel) : none;
	const struct filter_parts now = stays ? filter_slots_of_parts(&present->kernel) : none;

	options->has_addresses = options->is_exact && is_wanted(need, stays);
	if (present && kernel_held_attachment(&present->kernel))
		options->has_addresses = has_now;
	if (options->has_addresses)
		return share_slots(need->keys, slots, &room, &now);
	return (struct filter_parts){ .records = slots };
}

/* ---- a key that changes its part ---- */

/* Whether the part has the key: 1, 0 or -ENOMEM. */
static int find_in(struct filter *filter, const struct rule_key *key, enum filter_part part, __u32 *slot)
{
	const struct hash_value value = filter_hash(filter_abi_table(filter), key, part);
	struct table *table = &filter->tables.part[part];

	return table_reach_all(table) ? -ENOMEM : table_find(table, &value, slot);
}

/* What the key has counted in a slot of one part goes to its slot of the other. */
static void move_count(struct filter *filter, const struct rule_key *key, enum filter_part part, __u32 slot)
{
	const struct table_memory *from = &filter->tables.part[part].memory, *to = &filter->tables.part[!part].memory;
	__u32 to_slot;

	if (!from->counter || !from->counter[slot].packets || find_in(filter, key, !part, &to_slot) <= 0)
		return;
	/* For hits_step(). No packet looks for the key here, so this waits for none, as table_announce() may. */
	__atomic_fetch_add(to->sequence, 1, __ATOMIC_RELEASE);
	table_move_word(&from->counter[slot].packets, &to->counter[to_slot].packets);
	table_move_word(&from->counter[slot].bytes, &to->counter[to_slot].bytes);
}

void filter_join_counts(struct filter *filter, const struct rule_key *key, enum filter_part part)
{
	__u32 slot;

	if (filter_part_of(filter, &key->shape, false) && find_in(filter, key, !part, &slot) > 0)
		move_count(filter, key, !part, slot);
}

/* Takes the key out of a part after it has come to the other. Its count goes with it. */
static int take_from(struct filter *filter, const struct rule_key *key, enum filter_part part, __u32 slot, bool is_new,
		     struct reason *reason)
{
	const struct hash_value value = filter_hash(filter_abi_table(filter), key, part);
	int error = is_new ? filter_wait_for_packets(filter, reason) : 0;

	if (error)
		return error;
	error = table_delete(&filter->tables.part[part], &value);
	if (!error)
		move_count(filter, key, part, slot);
	return error;
}

int filter_move_end(struct filter *filter, const struct rule_key *key, __u32 tick, bool *is_later,
		    struct reason *reason)
{
	const struct hash_value record = filter_hash(filter_abi_table(filter), key, FILTER_RECORDS);
	const enum filter_part part = filter_part_of(filter, &key->shape, tick), other = !part;
	__u32 slot, other_slot;
	const int is_there = find_in(filter, key, part, &slot), was_there = find_in(filter, key, other, &other_slot);
	int error = 0;

	if (is_there < 0 || was_there < 0)
		return -ENOMEM;
	if (!is_there && !was_there)
		return -ENOENT;
	if (is_later)
		*is_later = !was_there;
	else if (tick)
		hints_clear_shortcuts(filter_hints(filter), key);
	if (!is_there)
		error = filter_insert(filter, key, tick);
	else if (tick)
		error = table_set_end(&filter->table, &record, filter_end(filter, tick), was_there ? NULL : is_later);
	if (!error && !tick)
		hints_set_shortcuts(filter_hints(filter), key);
	return !error && was_there && !is_later ? take_from(filter, key, other, other_slot, !is_there, reason) : error;
}

int filter_delete(struct filter *filter, const struct rule_key *key)
{
	int error = -ENOENT;

	hints_clear_shortcuts(filter_hints(filter), key);
	for (enum filter_part part = 0; part <= filter_part_of(filter, &key->shape, false); part++) {
		const struct hash_value value = filter_hash(filter_abi_table(filter), key, part);
		const int error_here = table_delete(&filter->tables.part[part], &value);

		if (error == -ENOENT || error_here == -ENOMEM)
			error = error_here;
	}
	return error;
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
