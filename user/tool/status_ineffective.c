// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* status: whether a running filter sees and filters all packets that it should. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <net/if.h>

#include "tool/internal.h"
#include "config/config.h"
#include "counters/counters.h"
#include "filter/filter.h"
#include "io/output.h"

/* Fewer packets without IP are no sign of trouble: an idle interface gets ARP and the like. */
#define NOT_IP_PACKETS_MIN 500
#define LOST_SHARE 1000 /* one packet of so many; fewer losses are told only if they happen now */

/*
 * Whether the configuration of the filter names interfaces that are there, but where it is not, or only in one direction:
 * another tool may have taken it off. Notes each.
 */
static bool lacks_interfaces(const struct kernel_filter *filters, size_t count, size_t at, bool *wants_monitor_only)
{
	const struct kernel_filter *filter = &filters[at];
	struct config *config;
	struct reason reason;
	bool lacks = false;
	const int error = config_open(NULL, filter->config->name, NULL, &config, &reason);

	/* Without a configuration, the operator asked for it. */
	*wants_monitor_only = error ? error == -ENOENT || error == -EACCES : config->load.is_monitor_only;
	if (error) {
		if (error != -ENOENT && error != -EACCES)
			output_note("interfaces are not compared with the configuration, which has mistakes: xdp-cuckoo%s "
				    "up --dry-run",
				    session_name_option(filter->config->name));
		return error != -ENOENT && error != -EACCES;
	}
	for (size_t i = 0; i < config->interfaces_count; i++) {
		const int index = interfaces_index(config->interfaces[i]);
		size_t k = 0;

		while (k < filter->attachments_count && filter->attachments[k].ifindex != index)
			k++;
		if (!index) {
			lacks = true;
			output_note("there is no interface '%s', which the configuration names", config->interfaces[i]);
		}
		/* lost_interfaces() names an interface that was loaded. */
		if (!index || kernel_has_lost_interface(filters, count, at, index))
			continue;
		if (k == filter->attachments_count && kernel_may_be_unseen(index))
			continue;
		if (k < filter->attachments_count && (!config->load.is_outgoing || !kernel_sees_tc() ||
						      kernel_other_direction(filter, &filter->attachments[k]) ||
						      kernel_has_lost_direction(filter, &filter->attachments[k])))
			continue;
		lacks = true;
		output_note("the filter is not on '%s'%s, which its configuration names; to load it there: xdp-cuckoo%s "
			    "load %s%s",
			    config->interfaces[i], k < filter->attachments_count ? " in both directions" : "",
			    session_name_option(filter->config->name), config->interfaces[i],
			    config->load.is_outgoing ? " --outgoing" : "");
	}
	config_close(config);
	return lacks;
}

/* Whether the filter is taken off an interface, or one is gone, or it has left with one. Notes each. */
static bool lost_interfaces(const struct kernel_filter *filters, size_t count, size_t at)
{
	struct if_nameindex *there = if_nameindex();
	const char *name = session_name_option(filters[at].config->name);
	const size_t gone = kernel_gone_interfaces(filters, count, at);
	bool lost = gone;

	for (const struct if_nameindex *i = there; i && i->if_index; i++) {
		char interface[IF_NAMESIZE];

		if (!kernel_has_lost_interface(filters, count, at, (int)i->if_index))
			continue;
		lost = true;
		snprintf(interface, sizeof(interface), "%s", i->if_name);
		interface_clean_name(interface);
		output_note("another tool has taken the filter off '%s'; to put it back: xdp-cuckoo%s load %s; if it need not "
			    "be there: xdp-cuckoo unload %s",
			    interface, name, interface, interface);
	}
	if (there)
		if_freenameindex(there);
	if (kernel_misses_interface(&filters[at]) &&
	    kernel_runs_elsewhere(filters[at].config->store_id, filters, count)) {
		lost = true;
		output_note("a filter with these rules is on no interface here, so changes do not reach it: it runs in another "
			    "network namespace (move its interface back, or unload it there), or a pin holds it "
			    "(bpftool --bpffs prog show)");
	} else if (gone) {
		output_note("%zu of the interfaces that it was loaded on %s here any more: gone, or in another network namespace; "
			    "to put it on a new one, or to forget this: xdp-cuckoo%s load IFACE, also one where it runs",
			    gone, gone == 1 ? "is not" : "are not", name);
	}
	return lost;
}

bool status_is_missing(const char *name, bool has_rules)
{
	const char *option = session_name_option(name);
	size_t there = 0;
	struct config *config;
	struct reason reason;
	const int error = config_open(NULL, name, NULL, &config, &reason);

	if (error == -ENOENT && has_rules)
		output_note("no filter runs, and whether one should is not known: no configuration names interfaces; xdp-cuckoo%s "
			    "load IFACE runs one, and xdp-cuckoo.conf(5) keeps it",
			    option);
	if (error == -ENOENT || error == -EACCES)
		return false;
	for (size_t i = 0; !error && i < config->interfaces_count; i++)
		there += !interfaces_index(config->interfaces[i]) ||
			 !kernel_may_be_unseen(interfaces_index(config->interfaces[i]));
	config_close(config);
	if (error)
		output_note("no filter runs, and the configuration has mistakes: xdp-cuckoo%s up --dry-run", option);
	else if (there)
		output_note("no filter runs, though the configuration names interfaces; to load it: xdp-cuckoo%s up",
			    option);
	return error || there;
}

const char *status_ineffective(const struct kernel_filter *filters, size_t count, size_t at, const struct tally *tally,
			       const struct store_info *info, bool *is_off)
{
	const struct kernel_filter *filter = &filters[at];
	const char *why = command_report_bypass(filter) ? "NOT FILTERING: packets do not reach it" : NULL;
	bool wants_monitor_only;

	for (size_t i = 0; i < filter->attachments_count; i++) {
		struct kernel_attachment lost = filter->attachments[i];

		if (!kernel_has_lost_direction(filter, &lost))
			continue;
		interface_clean_name(lost.interface);
		output_note("another tool has taken the filter for %s packets off '%s'; to put it back: xdp-cuckoo%s load %s "
			    "--outgoing",
			    kernel_is_outgoing(&lost) ? "received" : "sent", lost.interface,
			    session_name_option(filter->config->name), lost.interface);
		if (!why && run_is_filtering(filter))
			why = "filters ONE DIRECTION only, though both were loaded";
	}
	for (size_t i = 0; i < filter->attachments_count && !why && run_is_filtering(filter); i++)
		if (filter->attachments[i].is_behind)
			why = "filters, but only what another tool's program at tc leaves to it";
	if (lost_interfaces(filters, count, at) && !why && run_is_filtering(filter))
		why = "filters, but NOT on all interfaces that it was loaded on";
	if (lacks_interfaces(filters, count, at, &wants_monitor_only) && !why && run_is_filtering(filter))
		why = "filters, but NOT all that its configuration names";
	*is_off = filter->config->run & ABI_RUN_PANIC || (filter->config->run & ABI_RUN_MONITOR && !wants_monitor_only);
	for (unsigned int row = 0; row < ABI_COUNTER_SENT && info->rules; row++) {
		struct abi_counter counters[ABI_COUNTERS], ip = {}, other = {};

		tally_sum(tally, row, TALLY_ALL, counters);
		for (int i = 0; i < OUTCOMES * VERDICTS; i++) {
			struct abi_counter *sum = i / VERDICTS == OUTCOME_NOT_IP ? &other : &ip;

			sum->packets += counters[i].packets;
			sum->bytes += counters[i].bytes;
		}
		if (!*tally->interfaces[row] || other.packets < NOT_IP_PACKETS_MIN || other.packets <= ip.packets ||
		    other.bytes <= ip.bytes)
			continue;
		output_note("%s: %.0f %% of the packets are no IP packets, so rules do not match them",
			    tally->interfaces[row], 100. * other.packets / (ip.packets + other.packets));
		if (!why && run_is_filtering(filter))
			why = "filters, but most packets are no IP packets: rules do not match them";
	}
	return why;
}

void status_report_losses(const struct kernel_filter *filters, size_t count)
{
	struct interface *interfaces;
	size_t interfaces_count;

	if (interfaces_list(&interfaces, &interfaces_count))
		return;
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < filters[i].attachments_count; k++) {
			struct kernel_attachment attachment = filters[i].attachments[k];
			const struct interface *now = interfaces, *end = interfaces + interfaces_count;

			while (now < end && now->index != attachment.ifindex)
				now++;
			if (now == end || kernel_is_outgoing(&attachment) ||
			    (now->lost <= attachment.lost && now->lost <= now->received / LOST_SHARE))
				continue;
			interface_clean_name(attachment.interface);
			output_note("the card of '%s' %s packets before the filter sees them: %llu so far, beside %llu "
				    "received; see \"Packets that the card loses\" in xdp-cuckoo-drivers(7)",
				    attachment.interface, now->lost > attachment.lost ? "loses" : "has lost",
				    (unsigned long long)now->lost, (unsigned long long)now->received);
		}
	free(interfaces);
}
