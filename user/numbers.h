/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The numbers of the keys of an exact table: element n of the rules map counts the key with number
 * n, and its ABI_RULE_TAKEN says that there is one. Without a rules map every key has number 0.
 */
#ifndef XDP_CUCKOO_NUMBERS_H
#define XDP_CUCKOO_NUMBERS_H

#include "table.h"

/*
 * Takes a number that is free and sets its counts to 0. 0; -ENOSPC: none is free. The search goes
 * on where the last one ended, so that a number rests as long as possible: a reader that found the
 * key it belonged to may count under it for a moment yet, which harms nobody before it is taken
 * again.
 */
int numbers_take(const struct table *table, __u32 *number);

/* Takes 0 to count - 1 of a rules map that is all free. */
void numbers_take_first(const struct table *table, __u64 count);

/* Counts stay readable; readers add to them atomically, so the bit alone changes. */
void numbers_free(const struct table *table, __u32 number);

/* Makes those numbers taken, and no other, that have a bit in `used`; their counts stay. */
void numbers_repair(const struct table *table, const __u64 *used);

#endif
