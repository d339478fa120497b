// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Remembers in the filter's config on which interfaces it should be, so that one is noticed from which another tool has
 * taken the filter. `received` has 16 bits of the index of each interface; `outgoing` has a bit for several interfaces.
 */
#include <net/if.h>

#include "kernel/internal.h"

static __u64 outgoing_bit(const struct kernel_attachment *attachment)
{
	return 1ULL << abi_counter_row(attachment->ifindex);
}

/* The place of this interface among those that the filter should be on; NULL: it should not. */
static __u16 *received_place(const struct kernel_filter *filter, int ifindex)
{
	for (size_t i = 0; i < ABI_RECEIVED; i++)
		if (filter->config->received[i] && filter->config->received[i] == (__u16)ifindex)
			return &filter->config->received[i];
	return NULL;
}

static bool is_on_interface(const struct kernel_filter *filter, __u16 low_bits)
{
	for (size_t i = 0; i < filter->attachments_count; i++)
		if ((__u16)filter->attachments[i].ifindex == low_bits)
			return true;
	return false;
}

/* If there is no room, an interface that the filter is not on gives its place to the new one. */
void kernel_want_received(const struct kernel_filter *filter, int ifindex, bool is_wanted)
{
	__u16 *place = received_place(filter, ifindex);

	for (size_t i = 0; i < ABI_RECEIVED && is_wanted && !place; i++)
		if (!filter->config->received[i])
			place = &filter->config->received[i];
	for (size_t i = 0; i < ABI_RECEIVED && is_wanted && !place; i++)
		if (!is_on_interface(filter, filter->config->received[i]))
			place = &filter->config->received[i];
	if (place)
		__atomic_store_n(place, is_wanted ? (__u16)ifindex : 0, __ATOMIC_RELAXED);
}

bool kernel_may_be_unseen(int ifindex)
{
	struct interface interface;
	char name[IF_NAMESIZE];

	/* kernel_attach() puts it at tc where it finds no Ethernet header. */
	return !kernel_sees_tc() &&
	       (!if_indextoname(ifindex, name) || interfaces_find(name, &interface) || !interface.has_ethernet);
}

bool kernel_has_lost_interface(const struct kernel_filter *filters, size_t count, size_t at, int ifindex)
{
	for (size_t i = 0; i < count; i++)
		if (is_on_interface(&filters[i], (__u16)ifindex))
			return false;
	return !filters[at].is_other_version && received_place(&filters[at], ifindex) && !kernel_may_be_unseen(ifindex);
}

bool kernel_misses_interface(const struct kernel_filter *filter)
{
	bool misses = false;

	for (size_t i = 0; i < ABI_RECEIVED && !filter->is_other_version; i++)
		misses |= filter->config->received[i] && !is_on_interface(filter, filter->config->received[i]);
	return misses;
}

/* If another interface with both directions has the same bit, the bit says nothing about this one. */
bool kernel_has_lost_direction(const struct kernel_filter *filter, const struct kernel_attachment *attachment)
{
	if (filter->is_other_version || kernel_other_direction(filter, attachment) || !kernel_sees_tc())
		return false;
	for (size_t i = 0; i < filter->attachments_count && !kernel_is_outgoing(attachment); i++)
		if (kernel_is_outgoing(&filter->attachments[i]) &&
		    outgoing_bit(&filter->attachments[i]) == outgoing_bit(attachment))
			return false;
	return kernel_is_outgoing(attachment) || filter->config->outgoing & outgoing_bit(attachment);
}

/* A bit that another interface with both directions shares stays. */
void kernel_want_outgoing(const struct kernel_filter *filter, const struct kernel_attachment *attachment,
			  bool is_wanted)
{
	for (size_t i = 0; i < filter->attachments_count; i++)
		is_wanted |= filter->attachments[i].ifindex != attachment->ifindex &&
			     kernel_is_outgoing(&filter->attachments[i]) &&
			     outgoing_bit(&filter->attachments[i]) == outgoing_bit(attachment);
	if (is_wanted)
		__atomic_or_fetch(&filter->config->outgoing, outgoing_bit(attachment), __ATOMIC_RELAXED);
	else
		__atomic_and_fetch(&filter->config->outgoing, ~outgoing_bit(attachment), __ATOMIC_RELAXED);
}

bool kernel_is_wanted(const struct kernel_filter *filter, const struct kernel_attachment *attachment)
{
	return kernel_is_outgoing(attachment) ? filter->config->outgoing & outgoing_bit(attachment) :
						received_place(filter, attachment->ifindex) != NULL;
}
