/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The hints of a table (abi.h says what they are), as memory: setting them, and whether they are worth
 * reading. Plain memory that readers may be looking at; knows neither kernel nor store.
 */
#ifndef XDP_CUCKOO_HINTS_H
#define XDP_CUCKOO_HINTS_H

#include <stdbool.h>
#include <stddef.h>

#include "abi.h"
#include "rule.h"

/*
 * Sets `hint`, one bit, for all flows that the key can match: before the key is published. Nothing to do
 * for ABI_HINT_ALWAYS. `hints`: ABI_HINT_ELEMENTS words.
 */
void hints_mark(__u64 *hints, const struct rule_key *key, __u64 hint);

/* Whether a flow of the key's source address would be probed for a shape with this bit. */
bool hints_allow(const __u64 *hints, const struct rule_key *key, __u64 hint);

/* Adds all bits of `more`. */
void hints_add(__u64 *hints, const __u64 *more);

/* Makes the hints of a table under packets equal to `wanted`, which has all bits that keys in it need. */
void hints_replace(__u64 *hints, const __u64 *wanted);

/*
 * The hint bit for a new shape beside `count` others that have the bits `taken`: ABI_HINT_ALWAYS without a
 * source prefix that tells one index from another, else the bit that fewest have.
 */
__u64 hints_choose(const __u64 *taken, size_t count, const struct rule_shape *shape);

/* The shapes of `list` that a flow has to be probed for by its hints, as a mean over all indexes. */
double hints_mean_probes(const __u64 *hints, const struct abi_shape_list *list, enum flow_family family);

/* What list->hints is to be: 0 where reading them would cost more than it saves. */
__u32 hints_to_read(const __u64 *hints, const struct abi_shape_list *list, enum flow_family family);

#endif
