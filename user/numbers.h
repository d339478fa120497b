/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The numbers of the keys of an exact table: the counter beside slot n counts the key with number n,
 * and its ABI_RULE_TAKEN says that there is one. Where rules are not counted every key has number 0.
 */
#ifndef XDP_CUCKOO_NUMBERS_H
#define XDP_CUCKOO_NUMBERS_H

#include "table.h"

/*
 * Takes a number that is free and sets its counts to 0: that of `slot`, if it is. 0; -ENOSPC: none is. A
 * reader that found the key a number belonged to may count under it for a moment after it is free: a
 * packet more for the key that takes it then.
 */
int numbers_take(const struct table *table, __u64 slot, __u32 *number);

/* Counts stay readable; readers add to them atomically, so the bit alone changes. */
void numbers_free(const struct table *table, __u32 number);

/* Sets all counts to 0: what readers add meanwhile stays, or goes with them. */
void numbers_reset(const struct table *table);

/* Makes those numbers taken, and no other, that have a bit in `used`; their counts stay. */
void numbers_repair(const struct table *table, const __u64 *used);

#endif
