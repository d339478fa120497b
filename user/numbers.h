/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The numbers of the keys of an exact table: element n of the rules map counts the key with number
 * n, and its ABI_RULE_TAKEN says that there is one. Without a rules map every key has number 0.
 */
#ifndef XDP_CUCKOO_NUMBERS_H
#define XDP_CUCKOO_NUMBERS_H

#include "table.h"

/*
 * Takes a number that is free and sets its counts to 0. 0; -ENOSPC: none is free. If it can be, one of
 * the four of `home`, the key's first bucket, whose counts stand in one cache line: so a reader can ask
 * for that line before the record has told it the number. A reader that found the key a number belonged
 * to may count under it for a moment after it is free: a packet more for the key that takes it then.
 */
int numbers_take(const struct table *table, __u32 home, __u32 *number);

/* Counts stay readable; readers add to them atomically, so the bit alone changes. */
void numbers_free(const struct table *table, __u32 number);

/* Makes those numbers taken, and no other, that have a bit in `used`; their counts stay. */
void numbers_repair(const struct table *table, const __u64 *used);

#endif
