/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shapes and hints as the packet path reads them. abi.h defines the words "shape", "key" and "hint"; hint.h
 * finds the hint of an address. A table holds these structs: see struct abi_table.
 */
#ifndef XDP_CUCKOO_SHAPE_H
#define XDP_CUCKOO_SHAPE_H

#include <linux/types.h>

#include "flow.h"

#define ABI_SHAPES_MAX 64 /* active shapes of one family */

/*
 * Hints: one byte for each family and each value of hint_index().
 *
 * The lower bits say which shapes to look up. Each shape has one hint bit; several shapes may share a bit. The bit is
 * clear if no key of these shapes can match a flow with this index. It is set before the first key that needs it is
 * published. A bit that is set without need only costs a look-up. A shape without a source prefix has ABI_HINT_ALWAYS
 * instead, which is no bit of the byte.
 *
 * The top bit is a shortcut. It says that the table has a drop rule that never ends and that matches every flow of this
 * index. Then only shapes of pass rules are looked up. If the packet is counted by rule, shapes of rules that can have
 * shortcuts are looked up, too. A shortcut is set after its key is in the table. It is cleared before the key is
 * deleted or gets an end. A missing shortcut only costs look-ups. Only IPv4 has shortcuts. If any rule has `state new`,
 * shortcuts count only for packets that surely begin something: see bpf/new_only.h.
 *
 * An index has 16 to 24 bits: the more prefixes, the more bits, so that few shapes meet at one index. An index of IPv4
 * is the number of a /16 to /24 network. A table stores 32 - bits, as `hint_shift`.
 */
#define ABI_HINT_SHIFT_LEAST 8
#define ABI_HINT_SHIFT_MOST 16
#define ABI_HINT_BITS 7
#define ABI_HINT_ALL ((1U << ABI_HINT_BITS) - 1)
#define ABI_HINT_SHORTCUT (1U << ABI_HINT_BITS)
#define ABI_HINT_ALWAYS (2U << ABI_HINT_BITS)
#define ABI_HINT_INDEXES(shift) (1U << (32 - (shift)))             /* of one family */
#define ABI_HINTS(shift) (FLOW_FAMILIES * ABI_HINT_INDEXES(shift)) /* of one table */

/*
 * Word i of a key is word i of the flow & mask[i]. The id goes into the last word. The id and the upper half of the
 * details (flow.h) say which shape it is, so keys of different shapes are never equal.
 */
struct abi_shape {
	__u64 mask[FLOW_KEY_WORDS_MAX];
	__u64 id;
	__u64 hint; /* one hint bit, or ABI_HINT_ALWAYS */
};

/*
 * The bits of an id. If the shape has no protocol, the id has 255 in the place of the protocol; so no rule
 * may name protocol 255, which is reserved. The two prefix lengths are one number, src * (bits + 1) + dst,
 * where `bits` is 32 or 128. This takes 11 bits in IPv4 and 15 in IPv6.
 */
#define ABI_SHAPE_NO_PROTO (0xffULL << FLOW_KEY_PROTO_SHIFT)
#define ABI_SHAPE_PASS (1ULL << FLOW_KEY_SHAPE_SHIFT)          /* the shape of pass rules */
#define ABI_SHAPE_MONITOR (1ULL << (FLOW_KEY_SHAPE_SHIFT + 1)) /* the shape of monitor rules */
#define ABI_SHAPE_SPORT (1ULL << (FLOW_KEY_SHAPE_SHIFT + 2))
#define ABI_SHAPE_DPORT (1ULL << (FLOW_KEY_SHAPE_SHIFT + 3))
#define ABI_SHAPE_NEW (1ULL << (FLOW_KEY_SHAPE_SHIFT + 4)) /* the shape of rules with `state new` */
#define ABI_SHAPE_LENGTHS_SHIFT (FLOW_KEY_SHAPE_SHIFT + 5)
#define ABI_SHAPE_LENGTHS_BITS 15
#define ABI_SHAPE_RATE \
	(1ULL << (ABI_SHAPE_LENGTHS_SHIFT + ABI_SHAPE_LENGTHS_BITS)) /* the shape of rules with a rate: rate.h */

/* IPv4 only, whose lengths take fewer bits: the shape is looked up in the addresses of the table. */
#define ABI_SHAPE_ADDRESSES (1ULL << (ABI_SHAPE_LENGTHS_SHIFT + ABI_SHAPE_LENGTHS_BITS - 1))

/* The upper half of the details (flow.h) in the mask of a shape. */
#define ABI_DETAILS_FLAGS_SHIFT 32    /* the mask of the TCP flags */
#define ABI_DETAILS_FRAGMENT_SHIFT 40 /* the mask of the fragment */
#define ABI_DETAILS_LENGTH_SHIFT 42   /* how many of the upper bits of the length are compared */
#define ABI_DETAILS_SPORT_SHIFT 47    /* how many of the lower bits of a port are not compared */
#define ABI_DETAILS_DPORT_SHIFT 51

/*
 * All shapes of one family. In a set of shapes, shape i is bit i. Shapes of pass rules come first, those of
 * monitor rules last.
 */
struct abi_shape_list {
	__u32 count;
	__u32 reads_hints;     /* 0 if hints do not pay: then every shape is looked up */
	__u64 passing;         /* the shapes of pass rules */
	__u64 behind_shortcut; /* the shapes to look up if the hint has a shortcut */
	__u64 all;             /* all shapes */
	__u64 new_only;        /* the shapes of rules with `state new`: see bpf/new_only.h */
	__u64 reserved[3];
	struct abi_shape shape[ABI_SHAPES_MAX]; /* shape i is at abi_shape_place(1ULL << i) */
	__u64 candidates[ABI_HINT_ALL + 1];     /* the shapes to look up, by the lower bits of a hint */
};

/*
 * The place of the lowest shape of a set. BPF cannot count trailing zeroes, so shapes are stored where one
 * multiplication with de Bruijn's sequence leads: Leiserson, Prokop, Randall, "Using de Bruijn Sequences to Index a 1
 * in a Computer Word", 1998.
 */
FLOW_INLINE __u64 abi_shape_place(__u64 shapes)
{
	return (shapes & -shapes) * 0x03f79d71b4cb0a89ULL >> 58;
}

FLOW_INLINE const struct abi_shape *abi_shape_at(const struct abi_shape_list *list, __u32 i)
{
	return &list->shape[abi_shape_place(1ULL << i)];
}

_Static_assert(sizeof(struct abi_shape) == 64, "shape layout");
_Static_assert(sizeof(struct abi_shape_list) == 64 + 64 * ABI_SHAPES_MAX + 8 * 128, "shape list layout");

#endif
