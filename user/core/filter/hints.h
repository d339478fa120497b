/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The hints of a table: sets them, and decides whether packets read them. include/shape.h explains
 * hints and shortcuts.
 */
#ifndef XDP_CUCKOO_HINTS_H
#define XDP_CUCKOO_HINTS_H

#include <stdbool.h>
#include <stddef.h>

#include "abi.h"
#include "rule/rule.h"
#include "rule/shapes.h"

/* Plain memory of ABI_HINTS(shift) bytes, which readers may read at the same time. */
struct hints {
	__u8 *byte;
	__u32 shift;
};

/* The hint of a flow. */
__u8 *hints_at(struct hints hints, enum flow_family family, const struct flow_key *key);

/* The shift of a table for rules of these shapes. */
__u32 hints_shift_for(const struct shape_list *shapes);

/*
 * Sets the bit `hint` for all flows that the key can match. Call this before the key is published. Does
 * nothing for ABI_HINT_ALWAYS.
 */
void hints_mark(struct hints hints, const struct rule_key *key, __u64 hint);

/* Whether a packet with the key's source address looks up shapes with this hint bit. */
bool hints_allow(struct hints hints, const struct rule_key *key, __u64 hint);

/* Adds all bits of `more`, but no shortcuts. */
void hints_add(struct hints hints, const __u8 *more);

/* Sets the hints of a table in use to `wanted`, which must have all bits that its keys need. */
void hints_replace(struct hints hints, const __u8 *wanted);

/*
 * Whether keys of the shape can have shortcuts, if they never end: drop rules with only an IPv4 source, which is not
 * longer than an index, and perhaps `state new`.
 */
bool hints_can_shorten(const struct rule_shape *shape, __u32 shift);

/*
 * Sets or clears the shortcuts of all flows that the key matches, if keys of its shape can have shortcuts.
 * Call set after the key is in the table. Clear also clears shortcuts that another key has set.
 */
void hints_set_shortcuts(struct hints hints, const struct rule_key *key);
void hints_clear_shortcuts(struct hints hints, const struct rule_key *key);
void hints_clear_all_shortcuts(struct hints hints);

/*
 * Chooses the hint bit of a new shape. `taken` has the bits of the `count` other shapes. The result is the
 * bit that the fewest others have, or ABI_HINT_ALWAYS if the source prefix is too short to tell indexes
 * apart.
 */
__u64 hints_choose(const __u64 *taken, size_t count, const struct rule_shape *shape);

/* Computes all members of the list that follow from `count` and `shape`. */
void hints_compile(struct abi_shape_list *list, enum flow_family family, bool has_counts, __u32 shift);

/* The set of shapes in a compiled list that a packet with this hint looks up. */
__u64 hints_leave(const struct abi_shape_list *list, __u32 hint);

/* How many shapes of a compiled list a packet looks up if it reads hints: the mean over all indexes, or over many. */
double hints_mean_probes(struct hints hints, const struct abi_shape_list *list, enum flow_family family);

/* Whether hints save more than it costs to read them. */
bool hints_pay(struct hints hints, const struct abi_shape_list *list, enum flow_family family);

#endif
