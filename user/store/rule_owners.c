// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The owners of a rule: who wants it, permanently or until a deadline. */
#include "store/internal.h"

__u64 store_owners_all(const struct store_owners *owners)
{
	return owners->permanent | owners->timed;
}

__s64 store_owners_end(const struct store_owners *owners)
{
	return owners->permanent ? 0 : owners->deadline_ms;
}

/* Removes the owners whose deadline has passed. */
static void drop_ended(struct store_owners *owners, __s64 now_ms)
{
	if (owners->timed && owners->deadline_ms > now_ms)
		return;
	owners->timed = 0;
	owners->deadline_ms = 0;
}

bool store_owners_take_comment(const struct store_owners *owners, __u64 owner, __s64 now_ms)
{
	const __u64 all = store_owners_all(owners);

	return !all || (store_owners_end(owners) && (!(all & ~owner) || owners->deadline_ms <= now_ms));
}

struct store_owners store_owners_with(struct store_owners owners, __u64 owner, __s64 deadline_ms, __s64 now_ms)
{
	drop_ended(&owners, now_ms);
	if (owners.permanent & owner)
		return owners;
	owners.timed &= ~owner;
	if (!owners.timed)
		owners.deadline_ms = 0;
	if (!deadline_ms) {
		owners.permanent |= owner;
		return owners;
	}
	owners.timed |= owner;
	if (owners.deadline_ms < deadline_ms)
		owners.deadline_ms = deadline_ms;
	return owners;
}

struct store_owners store_owners_without(struct store_owners owners, __u64 owner, __s64 now_ms)
{
	owners.permanent &= ~owner;
	owners.timed &= ~owner;
	drop_ended(&owners, now_ms);
	return owners;
}
