/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The hints of a table (abi.h says what they are), as memory: setting them, and whether they are worth
 * reading. Plain memory that readers may be looking at, ABI_HINTS bytes; knows neither kernel nor store.
 */
#ifndef XDP_CUCKOO_HINTS_H
#define XDP_CUCKOO_HINTS_H

#include <stdbool.h>
#include <stddef.h>

#include "abi.h"
#include "rule/rule.h"

/*
 * Sets `hint`, one bit, for all flows that the key can match: before the key is published. Nothing to do
 * for ABI_HINT_ALWAYS.
 */
void hints_mark(__u8 *hints, const struct rule_key *key, __u64 hint);

/* Whether a flow of the key's source address would be probed for a shape with this bit. */
bool hints_allow(const __u8 *hints, const struct rule_key *key, __u64 hint);

/* Adds all bits of `more`, which has no shortcuts. */
void hints_add(__u8 *hints, const __u8 *more);

/* Makes the hints of a table under packets equal to `wanted`, which has all bits that keys in it need. */
void hints_replace(__u8 *hints, const __u8 *wanted);

/* Whether keys of the shape, if they never end, may have shortcuts: of whole /16 and more, by source alone. */
bool hints_can_shorten(const struct rule_shape *shape);

/*
 * Sets the shortcuts of all flows that a key of such a shape matches, which is in the table. Clears them, whichever key
 * they stand for; and all.
 */
void hints_set_shortcuts(__u8 *hints, const struct rule_key *key);
void hints_clear_shortcuts(__u8 *hints, const struct rule_key *key);
void hints_clear_all_shortcuts(__u8 *hints);

/*
 * The hint bit for a new shape beside `count` others that have the bits `taken`: ABI_HINT_ALWAYS without a
 * source prefix that tells one index from another, else the bit that fewest have.
 */
__u64 hints_choose(const __u64 *taken, size_t count, const struct rule_shape *shape);

/* Sets the members of the list that follow from its shapes: which to look for by which hints. */
void hints_compile(struct abi_shape_list *list, enum flow_family family, bool has_counts);

/* The shapes of a compiled list, as a set, that a flow with this hint is probed for. */
__u32 hints_leave(const struct abi_shape_list *list, __u32 hint);

/* The shapes of a compiled list that a flow has to be probed for by its hints, as a mean over all indexes. */
double hints_mean_probes(const __u8 *hints, const struct abi_shape_list *list, enum flow_family family);

/* Whether that is worth more than reading them costs. */
bool hints_pay(const __u8 *hints, const struct abi_shape_list *list, enum flow_family family);

#endif
