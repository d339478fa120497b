/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The keyed permutation of IPv4 prefixes. A hash forgets, and so has collisions. A permutation does not: bucket, side and
 * remainder of a permuted prefix (fingerprint.h) ARE the prefix. The idea: Reviriego and Pontarelli, "Perfect Cuckoo
 * Filters", CoNEXT 2021.
 *
 * A prefix is a number of 33 bits: the bits of the address, then a 1, then zeros. The permutation is a Feistel network
 * of four rounds over halves of 17 and 16 bits. A round computes factor * half + offset, modulo 2^64, of one half. The
 * top bits of that change the other half, by exclusive-or (Dietzfelbinger, "Universal Hashing and k-Wise Independent
 * Random Variables via Integer Arithmetic without Primes", STACS 1996). All factors and offsets are random; together
 * they are the secret.
 *
 * The promise: it is a bijection for every secret, because each round can be undone. Two different prefixes of an
 * attacker's choice share the first 17 + t bits of their numbers with a probability of at most 2^-(17+t) + 2^-34.
 *
 * The proof: values of a round at two different halves are independent and uniform. Call the halves of the two numbers
 * after round i Li, Ri and Li', Ri'. Rounds 1 and 3 change L (17 bits), rounds 2 and 4 change R. If R2 = R2', then
 * L1 and L1' differ, because not all can be equal, and so do L3 and L3'. Otherwise round 3 makes L3 = L3' with probability
 * 2^-17. Then round 4 changes R and R' alike: the numbers differ by R2 ^ R2', which is not 0. Where L1 and L1' differ, round 2
 * makes this difference uniform, and its first t bits are 0 with probability 2^-t. L1 = L1' has probability 2^-17.
 *
 * What follows: without the secret, nobody can choose prefixes that share a bucket more often than random ones do. Runs
 * of neighbours and every n-th address are as good as random: tests/unit/packets/test_permute.c.
 *
 * The limit: this holds for pairs, as in hash.h, and it is no pseudorandom permutation. But the verdicts of a table without
 * false positives reveal nothing about the secret. If too many prefixes share buckets, the table gets a new secret.
 */
#ifndef XDP_CUCKOO_PERMUTE_H
#define XDP_CUCKOO_PERMUTE_H

#include <linux/types.h>

#include "flow.h"

#define PERMUTE_BITS 33
#define PERMUTE_RIGHT_BITS 16
#define PERMUTE_RIGHT ((1ULL << PERMUTE_RIGHT_BITS) - 1)
#define PERMUTE_ROUNDS 4

struct permute_secret {
	__u64 round[PERMUTE_ROUNDS][2]; /* factor and offset */
};

/* The number of a prefix. `mask` is that of its length, 1 to 32 bits, and not of 0. Both are numbers of the host. */
FLOW_INLINE __u64 permute_number(__u32 address, __u32 mask)
{
	return (__u64)(address & mask) << 1 | (__u32)-mask;
}

/* The top bits of the round function: 17 for the left half in rounds 0 and 2, 16 for the right half. */
FLOW_INLINE __u64 permute_round(const struct permute_secret *secret, unsigned int round, __u64 half)
{
	const unsigned int bits = round % 2 ? PERMUTE_RIGHT_BITS : PERMUTE_BITS - PERMUTE_RIGHT_BITS;

	return (half * secret->round[round][0] + secret->round[round][1]) >> (64 - bits);
}

FLOW_INLINE __u64 permute(const struct permute_secret *secret, __u64 number)
{
	__u64 left = number >> PERMUTE_RIGHT_BITS, right = number & PERMUTE_RIGHT;

	left ^= permute_round(secret, 0, right);
	right ^= permute_round(secret, 1, left);
	left ^= permute_round(secret, 2, right);
	right ^= permute_round(secret, 3, left);
	return left << PERMUTE_RIGHT_BITS | right;
}

/* The number that permute() makes this of. */
FLOW_INLINE __u64 permute_back(const struct permute_secret *secret, __u64 permuted)
{
	__u64 left = permuted >> PERMUTE_RIGHT_BITS, right = permuted & PERMUTE_RIGHT;

	right ^= permute_round(secret, 3, left);
	left ^= permute_round(secret, 2, right);
	right ^= permute_round(secret, 1, left);
	left ^= permute_round(secret, 0, right);
	return left << PERMUTE_RIGHT_BITS | right;
}

_Static_assert(sizeof(struct permute_secret) == 64, "secret layout");

#endif
