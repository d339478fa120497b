// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The owners of a rule: who wants it, permanently or until a deadline. */
#include "store/internal.h"

__u64 store_claims_owners(const struct store_claims *claims)
{
	return claims->for_good | claims->timed;
}

__s64 store_claims_end(const struct store_claims *claims)
{
	return claims->for_good ? 0 : claims->deadline_ms;
}

/* Removes the owners whose deadline has passed. */
static void drop_ended(struct store_claims *claims, __s64 now_ms)
{
	if (claims->timed && claims->deadline_ms > now_ms)
		return;
	claims->timed = 0;
	claims->deadline_ms = 0;
}

struct store_claims store_claims_with(struct store_claims claims, __u64 owner, __s64 deadline_ms, __s64 now_ms)
{
	drop_ended(&claims, now_ms);
	if (claims.for_good & owner)
		return claims;
	claims.timed &= ~owner;
	if (!claims.timed)
		claims.deadline_ms = 0;
	if (!deadline_ms) {
		claims.for_good |= owner;
		return claims;
	}
	claims.timed |= owner;
	if (claims.deadline_ms < deadline_ms)
		claims.deadline_ms = deadline_ms;
	return claims;
}

struct store_claims store_claims_without(struct store_claims claims, __u64 owner, __s64 now_ms)
{
	claims.for_good &= ~owner;
	claims.timed &= ~owner;
	drop_ended(&claims, now_ms);
	return claims;
}
