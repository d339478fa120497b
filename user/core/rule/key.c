// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* From a rule to the keys that the table holds, from a shape to its mask, and back. */
#include <arpa/inet.h>
#include <endian.h>
#include <netinet/in.h>
#include <string.h>

#include "rule/rule.h"

static __u64 shape_id(const struct rule_shape *shape)
{
	__u64 lengths = shape->src_len * (rule_address_bits(shape->family) + 1) + shape->dst_len;

	return (shape->action == RULE_PASS ? ABI_SHAPE_PASS : 0) | (shape->action == RULE_MONITOR ? ABI_SHAPE_MONITOR : 0) |
	       (shape->fields & RULE_PROTO ? 0 : ABI_SHAPE_NO_PROTO) | (shape->fields & RULE_SPORT ? ABI_SHAPE_SPORT : 0) |
	       (shape->fields & RULE_DPORT ? ABI_SHAPE_DPORT : 0) | (shape->fields & RULE_NEW ? ABI_SHAPE_NEW : 0) |
	       (shape->fields & RULE_RATE ? ABI_SHAPE_RATE : 0) |
	       (shape->fields & RULE_ADDRESSES ? ABI_SHAPE_ADDRESSES : 0) |
	       (shape->fields & RULE_DETAILS ? FLOW_KEY_HAS_DETAILS : 0) | lengths << ABI_SHAPE_LENGTHS_SHIFT;
}

/* A mask of the upper `length` bits of a port or a length. */
static __u16 upper_bits(unsigned int length)
{
	return 0xffffU << (RULE_PORT_BITS - length);
}

/* The mask of the details. Its upper half is a copy of `details`, so that keys of different shapes differ. */
static __u64 details_mask(const struct rule_details *details)
{
	return (details->flags_mask ? FLOW_TCP_READ | details->flags_mask : 0) |
	       details->fragment_mask << FLOW_KEY_FRAGMENT_SHIFT |
	       (__u32)upper_bits(details->length_bits) << FLOW_KEY_LENGTH_SHIFT |
	       (__u64)details->flags_mask << ABI_DETAILS_FLAGS_SHIFT |
	       (__u64)details->fragment_mask << ABI_DETAILS_FRAGMENT_SHIFT |
	       (__u64)details->length_bits << ABI_DETAILS_LENGTH_SHIFT |
	       (__u64)details->sport_free << ABI_DETAILS_SPORT_SHIFT |
	       (__u64)details->dport_free << ABI_DETAILS_DPORT_SHIFT;
}

struct rule_shape rule_shape_of_id(__u64 id, __u64 details, enum flow_family family)
{
	__u64 lengths = id >> ABI_SHAPE_LENGTHS_SHIFT & ((1 << ABI_SHAPE_LENGTHS_BITS) - 1);
	const bool is_address = family == FLOW_IPV4 && id & ABI_SHAPE_ADDRESSES;
	unsigned int each = rule_address_bits(family) + 1;

	if (is_address)
		lengths &= ~(ABI_SHAPE_ADDRESSES >> ABI_SHAPE_LENGTHS_SHIFT);
	if (!(id & FLOW_KEY_HAS_DETAILS))
		details = 0;
	return (struct rule_shape){ .family = family,
				    .action = id & ABI_SHAPE_PASS    ? RULE_PASS :
					      id & ABI_SHAPE_MONITOR ? RULE_MONITOR :
								      RULE_DROP,
				    .fields = ((id & ABI_SHAPE_NO_PROTO) == ABI_SHAPE_NO_PROTO ? 0 : RULE_PROTO) |
					      (id & ABI_SHAPE_SPORT ? RULE_SPORT : 0) |
					      (id & ABI_SHAPE_DPORT ? RULE_DPORT : 0) |
					      (id & ABI_SHAPE_NEW ? RULE_NEW : 0) |
					      (id & ABI_SHAPE_RATE ? RULE_RATE : 0) |
					      (is_address ? RULE_ADDRESSES : 0) |
					      (id & FLOW_KEY_HAS_DETAILS ? RULE_DETAILS : 0),
				    .details = { .flags_mask = details >> ABI_DETAILS_FLAGS_SHIFT,
						 .fragment_mask = details >> ABI_DETAILS_FRAGMENT_SHIFT & 3,
						 .length_bits = details >> ABI_DETAILS_LENGTH_SHIFT & 31,
						 .sport_free = details >> ABI_DETAILS_SPORT_SHIFT & 15,
						 .dport_free = details >> ABI_DETAILS_DPORT_SHIFT & 15 },
				    .src_len = lengths / each,
				    .dst_len = lengths % each };
}

/* Fills the rest of the key, which has its shape. To copy ten bytes that were just written one by one would stall the processor. */
static void fill_key(struct rule_key *key, const struct flow *flow)
{
	const struct rule_shape *shape = &key->shape;

	key->key = (struct flow_key){};
	flow_pack(flow, &key->key);
	key->key.word[flow_key_last(shape->family)] |= shape_id(shape);
	key->key.word[FLOW_KEY_DETAILS] &= details_mask(&shape->details);
}

size_t rule_keys(const struct rule *rule, struct rule_key keys[RULE_KEYS_MAX])
{
	struct flow flow = {
		.src = rule->src,
		.dst = rule->dst,
		.sport = rule->sport,
		.dport = rule->dport,
		.proto = rule->proto,
		.port_kind = rule->port_kind,
		.fragment = rule->fragment,
		.tcp_flags = (rule->details.flags_mask ? FLOW_TCP_READ : 0) | rule->flags,
		.length = rule->length,
	};
	size_t count = 0;

	for (enum flow_family family = 0; family < FLOW_FAMILIES; family++) {
		if (rule->family != family && rule->family != FLOW_NO_FAMILY)
			continue;
		flow.family = family;
		keys[count].shape = (struct rule_shape){
			.family = family,
			.action = rule->action,
			.fields = rule->fields,
			.details = rule->details,
			.src_len = rule->src_len,
			.dst_len = rule->dst_len,
		};
		fill_key(&keys[count++], &flow);
	}
	return count;
}

struct hash_value rule_hash(const struct rule_key *key, const struct hash_secret *secret)
{
	static const __u64 whole[FLOW_KEY_WORDS_MAX] = { ~0ULL, ~0ULL, ~0ULL, ~0ULL, ~0ULL, ~0ULL };
	const struct hash_input input = {
		.secret = secret, .word = key->key.word, .mask = whole, .family = key->shape.family
	};
	const __u64 hash = hash_of(&input);

	return (struct hash_value){ hash, hash_tag(&input, hash) };
}

/* A mask of the first `length` bits of an address in memory order. */
static union flow_addr prefix_mask(unsigned int length)
{
	const __u64 first = length >= 64 ? ~0ULL : length ? ~0ULL << (64 - length) : 0;

	return (union flow_addr){ .word = { htobe64(first), length > 64 ? htobe64(~0ULL << (128 - length)) : 0 } };
}

static __be16 port_mask(unsigned int free)
{
	return htobe16(upper_bits(RULE_PORT_BITS - free));
}

/* flow_pack() packs masks and flows alike, so that they always match bit by bit. */
void rule_shape_compile(const struct rule_shape *shape, struct abi_shape *compiled)
{
	bool has_port = shape->fields & (RULE_SPORT | RULE_DPORT);
	struct flow mask = {
		.src = prefix_mask(shape->src_len),
		.dst = prefix_mask(shape->dst_len),
		.sport = shape->fields & RULE_SPORT ? port_mask(shape->details.sport_free) : 0,
		.dport = shape->fields & RULE_DPORT ? port_mask(shape->details.dport_free) : 0,
		.proto = shape->fields & RULE_PROTO ? 0xff : 0,
		.family = shape->family,
		.port_kind = has_port ? FLOW_PORT_KIND_MASK : 0,
	};
	struct flow_key key = {};

	flow_pack(&mask, &key);
	key.word[FLOW_KEY_DETAILS] = details_mask(&shape->details);
	memcpy(compiled->mask, key.word, sizeof(compiled->mask));
	compiled->id = shape_id(shape);
}

union flow_addr rule_network(const union flow_addr *address, unsigned int length)
{
	union flow_addr mask = prefix_mask(length);

	return (union flow_addr){ .word = { address->word[0] & mask.word[0], address->word[1] & mask.word[1] } };
}

bool rule_is_network_of(const union flow_addr *network, unsigned int length, const union flow_addr *address)
{
	const union flow_addr own = rule_network(address, length);

	return own.word[0] == network->word[0] && own.word[1] == network->word[1];
}

static unsigned int port_bits(__u8 fields, enum rule_field port, unsigned int free)
{
	return fields & port ? RULE_PORT_BITS - free : 0;
}

/* Whether the rule compares all that these fields and details compare. Neither addresses, protocols nor rates matter. */
static bool compares_all(const struct rule *rule, __u8 fields, const struct rule_details *details)
{
	const struct rule_details *own = &rule->details;

	return !(fields & ~(rule->fields | RULE_DETAILS | RULE_RATE)) && !(details->flags_mask & ~own->flags_mask) &&
	       !(details->fragment_mask & ~own->fragment_mask) && details->length_bits <= own->length_bits &&
	       port_bits(fields, RULE_SPORT, details->sport_free) <=
		       port_bits(rule->fields, RULE_SPORT, own->sport_free) &&
	       port_bits(fields, RULE_DPORT, details->dport_free) <=
		       port_bits(rule->fields, RULE_DPORT, own->dport_free);
}

size_t rule_under_shape(const struct rule *query, const struct rule_shape *shape, struct rule rules[RULE_KEYS_MAX])
{
	const struct rule_details *details = &shape->details;
	bool has_port = shape->fields & (RULE_SPORT | RULE_DPORT);
	struct rule rule = { .family = shape->family,
			     .action = shape->action,
			     .fields = shape->fields,
			     .details = shape->details,
			     .src_len = shape->src_len,
			     .dst_len = shape->dst_len };
	size_t count = 0;

	if ((query->family != FLOW_NO_FAMILY && query->family != shape->family) ||
	    !compares_all(query, shape->fields, details) || query->src_len < shape->src_len ||
	    query->dst_len < shape->dst_len)
		return 0;
	rule.src = rule_network(&query->src, shape->src_len);
	rule.dst = rule_network(&query->dst, shape->dst_len);
	rule.port_kind = has_port ? query->port_kind : FLOW_NO_PORTS;
	rule.proto = shape->fields & RULE_PROTO ? query->proto : 0;
	rule.sport = shape->fields & RULE_SPORT ? query->sport & port_mask(details->sport_free) : 0;
	rule.dport = shape->fields & RULE_DPORT ? query->dport & port_mask(details->dport_free) : 0;
	rule.flags = query->flags & details->flags_mask;
	rule.fragment = query->fragment & details->fragment_mask;
	rule.length = query->length & upper_bits(details->length_bits);
	if (query->family != FLOW_NO_FAMILY)
		rules[count++] = rule;
	if (!shape->src_len && !shape->dst_len) {
		rule.family = FLOW_NO_FAMILY;
		rules[count++] = rule;
	}
	return count;
}

static __be16 common_port_mask(__u8 a_free, __u8 b_free)
{
	return port_mask(a_free > b_free ? a_free : b_free);
}

/* Whether the values of both are equal, as far as both compare them. Addresses do not matter. */
static bool agree(const struct rule *a, const struct rule *b)
{
	const struct rule_details *x = &a->details, *y = &b->details;
	const __u8 both = a->fields & b->fields;

	return (!(both & RULE_PROTO) || a->proto == b->proto) &&
	       (!(both & RULE_SPORT) || !((a->sport ^ b->sport) & common_port_mask(x->sport_free, y->sport_free))) &&
	       (!(both & RULE_DPORT) || !((a->dport ^ b->dport) & common_port_mask(x->dport_free, y->dport_free))) &&
	       !((a->flags ^ b->flags) & x->flags_mask & y->flags_mask) &&
	       !((a->fragment ^ b->fragment) & x->fragment_mask & y->fragment_mask) &&
	       !((a->length ^ b->length) &
		 upper_bits(x->length_bits < y->length_bits ? x->length_bits : y->length_bits));
}

bool rule_covers(const struct rule *rule, const struct rule *flow)
{
	if ((rule->family != FLOW_NO_FAMILY && rule->family != flow->family) ||
	    !compares_all(flow, rule->fields, &rule->details) ||
	    (rule->port_kind != FLOW_NO_PORTS && rule->port_kind != flow->port_kind))
		return false;
	return agree(rule, flow) && rule->src_len <= flow->src_len &&
	       rule_is_network_of(&rule->src, rule->src_len, &flow->src) && rule->dst_len <= flow->dst_len &&
	       rule_is_network_of(&rule->dst, rule->dst_len, &flow->dst);
}

/* A flag that the rule does not name may be that of a SYN. */
bool rule_may_begin(const struct rule *rule)
{
	const __u32 flags = FLOW_TCP_READ | rule->flags | (FLOW_TCP_SYN & ~rule->details.flags_mask);

	if (rule->fragment == FLOW_FRAGMENT_LATER)
		return false;
	if (rule->port_kind == FLOW_ICMP)
		return !(rule->fields & RULE_SPORT) || !flow_continues(rule->family, FLOW_ICMP, ntohs(rule->sport), 0);
	if (rule->proto == IPPROTO_UDP && rule->fields & RULE_SPORT && rule->fields & RULE_DPORT &&
	    rule->family != FLOW_NO_FAMILY && !rule->details.sport_free && !rule->details.dport_free)
		return !flow_is_lease(rule->family, rule->sport, rule->dport);
	return !rule->details.flags_mask || !flow_continues(rule->family, FLOW_PORTS, 0, flags);
}

/*
 * Whether the ports of `a`, if it names some, go with the protocol of `b`; what later fragments lack with `b`; and
 * `state new` with `b`.
 */
static bool ports_go_with(const struct rule *a, const struct rule *b)
{
	return (a->port_kind != FLOW_PORTS || !(b->fields & RULE_PROTO) || rule_has_ports(b->proto)) &&
	       (b->fragment != FLOW_FRAGMENT_LATER || !rule_lacks_later_fragments(a)) &&
	       (!(a->fields & RULE_NEW) || rule_may_begin(b));
}

static bool prefixes_overlap(const union flow_addr *a, unsigned int a_len, const union flow_addr *b, unsigned int b_len)
{
	const unsigned int length = a_len < b_len ? a_len : b_len;
	const union flow_addr network = rule_network(a, length);

	return rule_is_network_of(&network, length, b);
}

bool rule_overlaps(const struct rule *a, const struct rule *b)
{
	if ((a->family != b->family && a->family != FLOW_NO_FAMILY && b->family != FLOW_NO_FAMILY) ||
	    (a->port_kind != b->port_kind && a->port_kind != FLOW_NO_PORTS && b->port_kind != FLOW_NO_PORTS) ||
	    !ports_go_with(a, b) || !ports_go_with(b, a))
		return false;
	return agree(a, b) && prefixes_overlap(&a->src, a->src_len, &b->src, b->src_len) &&
	       prefixes_overlap(&a->dst, a->dst_len, &b->dst, b->dst_len);
}

bool rule_intersect(const struct rule *a, const struct rule *b, struct rule *both)
{
	const struct rule_details *x = &a->details, *y = &b->details;
	const struct rule *src = a->src_len > b->src_len ? a : b, *dst = a->dst_len > b->dst_len ? a : b;
	const struct rule *sport =
		port_bits(a->fields, RULE_SPORT, x->sport_free) > port_bits(b->fields, RULE_SPORT, y->sport_free) ? a :
														    b;
	const struct rule *dport =
		port_bits(a->fields, RULE_DPORT, x->dport_free) > port_bits(b->fields, RULE_DPORT, y->dport_free) ? a :
														    b;
	const struct rule *length = x->length_bits > y->length_bits ? a : b;

	if (!rule_overlaps(a, b))
		return false;
	*both = (struct rule){ .family = a->family != FLOW_NO_FAMILY ? a->family : b->family,
			       .fields = a->fields | b->fields,
			       .port_kind = a->port_kind != FLOW_NO_PORTS ? a->port_kind : b->port_kind,
			       .proto = a->fields & RULE_PROTO ? a->proto : b->proto,
			       .sport = sport->sport,
			       .dport = dport->dport,
			       .details = { .flags_mask = x->flags_mask | y->flags_mask,
					    .fragment_mask = x->fragment_mask | y->fragment_mask,
					    .length_bits = length->details.length_bits,
					    .sport_free = sport->details.sport_free,
					    .dport_free = dport->details.dport_free },
			       .flags = a->flags | b->flags,
			       .fragment = a->fragment | b->fragment,
			       .length = length->length,
			       .src_len = src->src_len,
			       .src = src->src,
			       .dst_len = dst->dst_len,
			       .dst = dst->dst };
	rule_mark_details(&both->fields, &both->details);
	return true;
}

/* ---- prefix expansion ---- */

bool rule_can_expand(const struct rule_shape *from, const struct rule_shape *to)
{
	const struct rule_details *a = &from->details, *b = &to->details;

	/* A rate has its meter at one key: see struct abi_rates. */
	if (from->fields & RULE_RATE)
		return !memcmp(from, to, sizeof(*from));
	/* A rule without a prefix must not expand: a rule about ports alone would get 2^32 keys. */
	return from->family == to->family && from->action == to->action &&
	       !((from->fields ^ to->fields) & ~RULE_DETAILS) && a->flags_mask == b->flags_mask &&
	       a->fragment_mask == b->fragment_mask && a->length_bits <= b->length_bits &&
	       !a->length_bits == !b->length_bits && a->sport_free >= b->sport_free && a->dport_free >= b->dport_free &&
	       from->src_len <= to->src_len && from->dst_len <= to->dst_len && !from->src_len == !to->src_len &&
	       !from->dst_len == !to->dst_len;
}

unsigned int rule_expansion_bits(const struct rule_shape *from, const struct rule_shape *to)
{
	const struct rule_details *a = &from->details, *b = &to->details;

	return to->src_len - from->src_len + to->dst_len - from->dst_len + b->length_bits - a->length_bits +
	       a->sport_free - b->sport_free + a->dport_free - b->dport_free;
}

/* The flow from which a key was made: the inverse of flow_pack(). */
static struct flow flow_of_key(const struct rule_key *key)
{
	const enum flow_family family = key->shape.family;
	const __u64 *word = key->key.word, rest = word[flow_key_last(family)];
	struct flow flow = {
		.sport = rest,
		.dport = rest >> 16,
		.port_kind = rest >> FLOW_KEY_KIND_SHIFT & FLOW_PORT_KIND_MASK,
		.family = family,
		.fragment = word[FLOW_KEY_DETAILS] >> FLOW_KEY_FRAGMENT_SHIFT & FLOW_FRAGMENT_MASK,
		.tcp_flags = word[FLOW_KEY_DETAILS] & (FLOW_TCP_READ | 0xff),
		.length = word[FLOW_KEY_DETAILS] >> FLOW_KEY_LENGTH_SHIFT,
	};

	if (key->shape.fields & RULE_PROTO)
		flow.proto = rest >> FLOW_KEY_PROTO_SHIFT;
	if (family == FLOW_IPV4) {
		flow.src.v4 = word[0];
		flow.dst.v4 = word[0] >> 32;
		return flow;
	}
	flow.src = (union flow_addr){ .word = { word[0], word[1] } };
	flow.dst = (union flow_addr){ .word = { word[2], word[3] } };
	return flow;
}

/* Writes the low bits of `value` into bits `from` to `to` - 1 of an address. */
static void set_bits(union flow_addr *address, unsigned int from, unsigned int to, __u64 value)
{
	for (unsigned int bit = to; bit-- > from; value >>= 1)
		if (value & 1)
			address->byte[bit / 8] |= 0x80 >> bit % 8;
}

/* Takes the lowest `bits` bits off *index. */
static __u64 take_bits(__u64 *index, unsigned int bits)
{
	const __u64 taken = bits < 64 ? *index & ((1ULL << bits) - 1) : *index;

	*index = bits < 64 ? *index >> bits : 0;
	return taken;
}

struct rule_key rule_expand(const struct rule_key *key, const struct rule_shape *to, __u64 index)
{
	const struct rule_details *a = &key->shape.details, *b = &to->details;
	struct rule_key expanded = { .shape = *to };
	struct flow flow;

	if (!rule_expansion_bits(&key->shape, to))
		return *key;
	flow = flow_of_key(key);
	set_bits(&flow.dst, key->shape.dst_len, to->dst_len, take_bits(&index, to->dst_len - key->shape.dst_len));
	set_bits(&flow.src, key->shape.src_len, to->src_len, take_bits(&index, to->src_len - key->shape.src_len));
	flow.sport |= htobe16(take_bits(&index, a->sport_free - b->sport_free) << b->sport_free);
	flow.dport |= htobe16(take_bits(&index, a->dport_free - b->dport_free) << b->dport_free);
	flow.length |= take_bits(&index, b->length_bits - a->length_bits) << (RULE_PORT_BITS - b->length_bits);
	fill_key(&expanded, &flow);
	return expanded;
}

struct rule rule_of_key(const struct rule_key *key)
{
	const struct rule_shape *shape = &key->shape;
	const struct flow flow = flow_of_key(key);

	return (struct rule){ .family = shape->family,
			      .action = shape->action,
			      .fields = shape->fields,
			      .port_kind = flow.port_kind,
			      .src_len = shape->src_len,
			      .dst_len = shape->dst_len,
			      .proto = flow.proto,
			      .src = flow.src,
			      .dst = flow.dst,
			      .sport = flow.sport,
			      .dport = flow.dport,
			      .details = shape->details,
			      .flags = flow.tcp_flags,
			      .fragment = flow.fragment,
			      .length = flow.length };
}

struct rule rule_of_flow(const struct flow *flow)
{
	const bool has_ports = flow->port_kind != FLOW_NO_PORTS;
	struct rule_key key = { .shape = { .family = flow->family,
					   .fields = RULE_PROTO | (has_ports ? RULE_SPORT | RULE_DPORT : 0),
					   .src_len = rule_address_bits(flow->family),
					   .dst_len = rule_address_bits(flow->family) } };

	fill_key(&key, flow);
	return rule_of_key(&key);
}

struct rule rule_of_packet(const struct flow *flow)
{
	struct rule rule = rule_of_flow(flow);

	rule.details = (struct rule_details){ .flags_mask = flow->tcp_flags ? 0xff : 0,
					      .fragment_mask = flow->fragment ? FLOW_FRAGMENT_MASK : 0,
					      .length_bits = RULE_PORT_BITS };
	rule.fields |= RULE_DETAILS;
	rule.flags = flow->tcp_flags;
	rule.fragment = flow->fragment;
	rule.length = flow->length;
	return rule;
}

struct rule rule_without_details(const struct rule *rule)
{
	struct rule without = *rule;

	without.fields &= ~(RULE_NEW | RULE_RATE | RULE_DETAILS);
	without.rate = 0;
	without.details = (struct rule_details){};
	without.flags = without.fragment = without.length = 0;
	return without;
}

void rule_exchange(struct rule *rule)
{
	const struct rule sent = *rule;
	const __u32 type = ntohs(sent.sport);
	const __u8 *dst = sent.dst.byte;

	if (sent.family == FLOW_IPV4 ? (sent.dst_len >= 4 && (dst[0] & 0xf0) == 0xe0) || sent.dst.v4 == 0xffffffff :
				       sent.dst_len >= 8 && dst[0] == 0xff)
		return;
	rule->src = sent.dst;
	rule->src_len = sent.dst_len;
	rule->dst = sent.src;
	rule->dst_len = sent.src_len;
	if (sent.port_kind == FLOW_ICMP) {
		/* A rule without addresses is about both families. Their types that have a counterpart differ. */
		const bool is_ipv6 = sent.family == FLOW_IPV6 || (sent.family == FLOW_NO_FAMILY && type >= 128);

		if (sent.fields & RULE_SPORT)
			rule->sport = htons(flow_icmp_counterpart(is_ipv6 ? FLOW_IPV6 : FLOW_IPV4, type));
		return;
	}
	rule->sport = sent.dport;
	rule->dport = sent.sport;
	rule->details.sport_free = sent.details.dport_free;
	rule->details.dport_free = sent.details.sport_free;
	rule->fields &= ~(RULE_SPORT | RULE_DPORT);
	rule->fields |= (sent.fields & RULE_SPORT ? RULE_DPORT : 0) | (sent.fields & RULE_DPORT ? RULE_SPORT : 0);
}
