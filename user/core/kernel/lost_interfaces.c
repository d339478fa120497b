// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Remembers in the filter's config on which interfaces it should be, so that one is noticed from which another tool has
 * taken the filter. `received` and `received_upper` have 24 bits of the index of each interface; `outgoing` has a bit for
 * several interfaces.
 */
#include <string.h>

#include <net/if.h>

#include "kernel/internal.h"

static __u64 outgoing_bit(const struct kernel_attachment *attachment)
{
	return 1ULL << abi_counter_row(attachment->ifindex);
}

static __u8 upper_bits(int ifindex)
{
	return (ifindex >> 16) % 255 + 1;
}

/* Whether this place is of this interface. */
static bool is_place_of(const struct abi_config *config, size_t place, int ifindex)
{
	const __u8 upper = config->received_upper[place];

	return config->received[place] && config->received[place] == (__u16)ifindex &&
	       (!upper || upper == upper_bits(ifindex));
}

/* The place of this interface among those that the filter should be on; ABI_RECEIVED: it should not. */
static size_t place_of(const struct abi_config *config, int ifindex)
{
	size_t place = 0;

	while (place < ABI_RECEIVED && !is_place_of(config, place, ifindex))
		place++;
	return place;
}

/* Whether the filter is on the interface of this place. */
static bool is_there(const struct kernel_filter *filter, size_t place)
{
	for (size_t i = 0; i < filter->attachments_count; i++)
		if (is_place_of(filter->config, place, filter->attachments[i].ifindex))
			return true;
	return false;
}

/* If there is no room, an interface that the filter is not on gives its place to the new one. */
void kernel_want_received(const struct kernel_filter *filter, int ifindex, bool is_wanted)
{
	struct abi_config *config = filter->config;
	size_t place = place_of(config, ifindex);

	for (size_t i = 0; i < ABI_RECEIVED && is_wanted && place == ABI_RECEIVED; i++)
		if (!config->received[i])
			place = i;
	config->forgot_received |= is_wanted && place == ABI_RECEIVED;
	for (size_t i = 0; i < ABI_RECEIVED && is_wanted && place == ABI_RECEIVED; i++)
		if (!is_there(filter, i))
			place = i;
	if (place == ABI_RECEIVED)
		return;
	config->received_upper[place] = is_wanted ? upper_bits(ifindex) : 0;
	__atomic_store_n(&config->received[place], is_wanted ? (__u16)ifindex : 0, __ATOMIC_RELAXED);
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
		for (size_t k = 0; k < filters[i].attachments_count; k++)
			if (filters[i].attachments[k].ifindex == ifindex)
				return false;
	return !filters[at].is_other_version && place_of(filters[at].config, ifindex) < ABI_RECEIVED &&
	       !kernel_may_be_unseen(ifindex);
}

bool kernel_misses_interface(const struct kernel_filter *filter)
{
	bool misses = !filter->is_other_version && filter->config->forgot_received;

	for (size_t i = 0; i < ABI_RECEIVED && !filter->is_other_version; i++)
		misses |= filter->config->received[i] && !is_there(filter, i);
	return misses;
}

/* How many places are of interfaces that are not here. With `forgets`, they are free again. */
static size_t count_gone(struct abi_config *config, bool forgets)
{
	struct if_nameindex *there = if_nameindex();
	size_t count = 0;

	for (size_t i = 0; there && i < ABI_RECEIVED; i++) {
		const struct if_nameindex *at = there;

		while (at->if_index && !is_place_of(config, i, (int)at->if_index))
			at++;
		if (at->if_index || !config->received[i])
			continue;
		count++;
		if (!forgets)
			continue;
		/* It may run on elsewhere: see kernel_misses_interface(). */
		config->forgot_received = true;
		__atomic_store_n(&config->received[i], 0, __ATOMIC_RELEASE);
		config->received_upper[i] = 0;
	}
	if (there)
		if_freenameindex(there);
	return count;
}

void kernel_forget_gone(const struct kernel_filter *filter)
{
	if (!filter->is_other_version)
		count_gone(filter->config, true);
}

/*
 * An interface that left and came back has another index, and still runs the filter, or another
 * one with its rules. If interfaces were forgotten, one without a place need not be such a one.
 */
size_t kernel_gone_interfaces(const struct kernel_filter *filters, size_t count, size_t at)
{
	struct abi_config *config = filters[at].config;
	size_t back = 0, gone = filters[at].is_other_version ? 0 : count_gone(config, false);

	for (size_t i = 0; i < count && gone && !config->forgot_received; i++)
		for (size_t k = 0; k < filters[i].attachments_count; k++)
			back += !kernel_is_outgoing(&filters[i].attachments[k]) &&
				!memcmp(filters[i].config->store_id, config->store_id, sizeof(config->store_id)) &&
				place_of(config, filters[i].attachments[k].ifindex) == ABI_RECEIVED;
	return gone > back ? gone - back : 0;
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
						place_of(filter->config, attachment->ifindex) < ABI_RECEIVED;
}
