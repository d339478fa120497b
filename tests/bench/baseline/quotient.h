/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Quotient filter: Bender et al., "Don't Thrash: How to Cache Your Hash on Flash", VLDB 2012: linear
 * probing where a slot holds a remainder and three bits by which the quotients are told. A fingerprint
 * that comes twice is stored twice, so that each can be deleted.
 */
#ifndef BASELINE_QUOTIENT_H
#define BASELINE_QUOTIENT_H

#include "memory.h"

#define QUOTIENT_OCCUPIED 1     /* some remainder of this quotient is stored, here or further on */
#define QUOTIENT_CONTINUATION 2 /* not the first of its run, the remainders of one quotient */
#define QUOTIENT_SHIFTED 4      /* not at its quotient */
#define QUOTIENT_META_BITS 3
#define QUOTIENT_META ((1 << QUOTIENT_META_BITS) - 1)

struct quotient {
	unsigned char *memory;
	__u64 mask; /* slots - 1 */
	__u64 used;
	unsigned int quotient_bits, remainder_bits;
};

struct quotient_key {
	__u64 quotient, remainder;
};

static inline int quotient_open(struct quotient *filter, unsigned int quotient_bits, unsigned int remainder_bits)
{
	const __u64 slots = 1ULL << quotient_bits;
	const size_t bytes = slots * (remainder_bits + QUOTIENT_META_BITS) / 8 + 8;

	*filter = (struct quotient){
		.memory = baseline_allocate(bytes),
		.mask = slots - 1,
		.quotient_bits = quotient_bits,
		.remainder_bits = remainder_bits,
	};
	return filter->memory ? 0 : -ENOMEM;
}

static inline void quotient_close(struct quotient *filter)
{
	free(filter->memory);
	*filter = (struct quotient){};
}

static inline struct quotient_key quotient_key(const struct quotient *filter, __u64 hash)
{
	return (struct quotient_key){
		.quotient = hash >> (64 - filter->quotient_bits),
		.remainder = hash & ((1ULL << filter->remainder_bits) - 1),
	};
}

static inline __u64 quotient_get(const struct quotient *filter, __u64 slot)
{
	const unsigned int width = filter->remainder_bits + QUOTIENT_META_BITS;

	return baseline_get(filter->memory, slot * width, width);
}

static inline void quotient_set(struct quotient *filter, __u64 slot, __u64 value)
{
	const unsigned int width = filter->remainder_bits + QUOTIENT_META_BITS;

	baseline_set(filter->memory, slot * width, width, value);
}

static inline bool quotient_is(const struct quotient *filter, __u64 slot, __u64 flag)
{
	return quotient_get(filter, slot) & flag;
}

static inline __u64 quotient_next(const struct quotient *filter, __u64 slot)
{
	return (slot + 1) & filter->mask;
}

/* The next quotient that has a run. */
static inline __u64 quotient_next_run(const struct quotient *filter, __u64 quotient)
{
	do
		quotient = quotient_next(filter, quotient);
	while (!quotient_is(filter, quotient, QUOTIENT_OCCUPIED));
	return quotient;
}

/* Where the run of an occupied quotient starts, or has to start. */
static inline __u64 quotient_run(const struct quotient *filter, __u64 quotient)
{
	__u64 at = quotient, slot;

	while (quotient_is(filter, at, QUOTIENT_SHIFTED))
		at = (at - 1) & filter->mask;
	for (slot = at; at != quotient; at = quotient_next_run(filter, at))
		do
			slot = quotient_next(filter, slot);
		while (quotient_is(filter, slot, QUOTIENT_CONTINUATION));
	return slot;
}

/* In a run that is there, the first slot whose remainder is not smaller, or the one behind the run. */
static inline __u64 quotient_seek(const struct quotient *filter, __u64 slot, __u64 remainder)
{
	do {
		if (quotient_get(filter, slot) >> QUOTIENT_META_BITS >= remainder)
			break;
		slot = quotient_next(filter, slot);
	} while (quotient_is(filter, slot, QUOTIENT_CONTINUATION));
	return slot;
}

/* *slot is one that holds the key, and *run where its run starts. */
static inline bool quotient_find(const struct quotient *filter, struct quotient_key key, __u64 *run, __u64 *slot)
{
	if (!quotient_is(filter, key.quotient, QUOTIENT_OCCUPIED))
		return false;
	*run = quotient_run(filter, key.quotient);
	*slot = quotient_seek(filter, *run, key.remainder);
	return quotient_get(filter, *slot) >> QUOTIENT_META_BITS == key.remainder &&
	       (*slot == *run || quotient_is(filter, *slot, QUOTIENT_CONTINUATION));
}

static inline bool quotient_contains(const struct quotient *filter, __u64 hash)
{
	__u64 run, slot;

	return quotient_find(filter, quotient_key(filter, hash), &run, &slot);
}

/* Writes `value` at a slot and moves what is there and behind it by one; occupied bits stay. */
static inline void quotient_push(struct quotient *filter, __u64 slot, __u64 value)
{
	__u64 old;

	do {
		old = quotient_get(filter, slot);
		quotient_set(filter, slot, value | (old & QUOTIENT_OCCUPIED));
		value = (old & ~(__u64)QUOTIENT_OCCUPIED) | QUOTIENT_SHIFTED;
		slot = quotient_next(filter, slot);
	} while (old & QUOTIENT_META);
}

static inline int quotient_insert(struct quotient *filter, __u64 hash)
{
	const struct quotient_key key = quotient_key(filter, hash);
	const __u64 home = quotient_get(filter, key.quotient);
	__u64 value = key.remainder << QUOTIENT_META_BITS, run, slot;

	if (filter->used == filter->mask)
		return -ENOSPC;
	filter->used++;
	quotient_set(filter, key.quotient, home | QUOTIENT_OCCUPIED);
	if (!(home & QUOTIENT_META)) {
		quotient_set(filter, key.quotient, value | QUOTIENT_OCCUPIED);
		return 0;
	}
	run = slot = quotient_run(filter, key.quotient);
	if (home & QUOTIENT_OCCUPIED) {
		slot = quotient_seek(filter, run, key.remainder);
		if (slot == run)
			quotient_set(filter, run, quotient_get(filter, run) | QUOTIENT_CONTINUATION);
		else
			value |= QUOTIENT_CONTINUATION;
	}
	if (slot != key.quotient)
		value |= QUOTIENT_SHIFTED;
	quotient_push(filter, slot, value);
	return 0;
}

/* Frees a slot of a quotient's run: what is behind it in the cluster moves back; occupied bits stay. */
static inline void quotient_pull(struct quotient *filter, __u64 slot, __u64 quotient)
{
	for (;;) {
		const __u64 next = quotient_next(filter, slot);
		const __u64 occupied = quotient_get(filter, slot) & QUOTIENT_OCCUPIED;
		__u64 value = quotient_get(filter, next) & ~(__u64)QUOTIENT_OCCUPIED;

		if (!(value & QUOTIENT_SHIFTED))
			break;
		if (!(value & QUOTIENT_CONTINUATION)) {
			quotient = quotient_next_run(filter, quotient);
			if (quotient == slot)
				value &= ~(__u64)QUOTIENT_SHIFTED;
		}
		quotient_set(filter, slot, value | occupied);
		slot = next;
	}
	quotient_set(filter, slot, 0);
}

static inline int quotient_delete(struct quotient *filter, __u64 hash)
{
	const struct quotient_key key = quotient_key(filter, hash);
	__u64 run, slot, next;
	bool is_first, has_more;

	if (!quotient_find(filter, key, &run, &slot))
		return -ENOENT;
	next = quotient_next(filter, slot);
	is_first = slot == run;
	has_more = quotient_is(filter, next, QUOTIENT_CONTINUATION);
	quotient_pull(filter, slot, key.quotient);
	if (is_first && has_more)
		quotient_set(filter, slot,
			     quotient_get(filter, slot) &
				     ~(__u64)(QUOTIENT_CONTINUATION | (slot == key.quotient ? QUOTIENT_SHIFTED : 0)));
	else if (is_first)
		quotient_set(filter, key.quotient, quotient_get(filter, key.quotient) & ~(__u64)QUOTIENT_OCCUPIED);
	filter->used--;
	return 0;
}

#endif
