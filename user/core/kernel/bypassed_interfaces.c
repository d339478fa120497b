// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Finds interfaces whose packets do not reach the filter that they run. Compares the driver's count of
 * received packets with the filter's own count. Only a filter that counts nothing at all is proof, because
 * some drivers count before XDP and others after it. Some drivers update their count only every 1 or 2 s,
 * so a burst from before the watch may show late. Therefore packets count as proof only after LATE_MS in
 * which the filter has counted nothing.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "kernel/internal.h"

#define LATE_MS 2500
#define WATCH_MS 4500
#define PROOF 8 /* packets after LATE_MS; the filter may be about to count the first few */

struct watched {
	const struct kernel_filter *filter;
	struct kernel_attachment *attachment;
	__u64 counted;  /* by the filter, at the start */
	__u64 received; /* by the interface, at the start; later at LATE_MS */
	enum { WATCH_BEGUN, WATCH_QUIET, WATCH_SUSPECT, WATCH_LATE, WATCH_OVER } state;
};

/* The interfaces were listed before the counters are read, so the counters include the packets listed. */
static void watch_one(struct watched *watched, const struct interface *interfaces, size_t count, __s64 ms,
		      __s64 quiet_ms)
{
	const struct kernel_attachment *attachment = watched->attachment;
	const struct interface *interface = NULL;
	struct reason ignored;
	__u64 counted;

	for (size_t i = 0; i < count; i++)
		if (interfaces[i].index == attachment->ifindex &&
		    interfaces[i].prog_id[attachment->mode] == attachment->prog_id)
			interface = &interfaces[i];

	if (!interface || kernel_counted_on(watched->filter, attachment, interfaces, count, &counted, &ignored) ||
	    (watched->state != WATCH_BEGUN &&
	     (counted != watched->counted || interface->received < watched->received))) {
		watched->state = WATCH_OVER;
		return;
	}
	switch (watched->state) {
	case WATCH_BEGUN:
		watched->counted = counted;
		watched->received = interface->received;
		watched->state = WATCH_QUIET;
		break;
	case WATCH_QUIET:
		if (interface->received != watched->received)
			watched->state = WATCH_SUSPECT;
		else if (ms >= quiet_ms)
			watched->state = WATCH_OVER;
		break;
	case WATCH_SUSPECT:
		if (ms >= LATE_MS) {
			watched->received = interface->received;
			watched->state = WATCH_LATE;
		}
		break;
	case WATCH_LATE:
		watched->attachment->is_bypassed = interface->received - watched->received >= PROOF;
		if (watched->attachment->is_bypassed || ms >= WATCH_MS)
			watched->state = WATCH_OVER;
		break;
	case WATCH_OVER:
		break;
	}
}

void kernel_watch(struct kernel_filter *filters, size_t count, unsigned int quiet_ms)
{
	const __s64 start_ms = clock_ms(CLOCK_MONOTONIC);
	size_t attachments = 0, watched_count = 0, interfaces_count;
	struct interface *interfaces;
	struct watched *watched;
	bool continues;

	for (size_t i = 0; i < count; i++)
		attachments += filters[i].attachments_count;
	watched = calloc(attachments + 1, sizeof(*watched));
	for (size_t i = 0; i < count && watched; i++)
		for (size_t k = 0; k < filters[i].attachments_count; k++) {
			struct kernel_attachment *attachment = &filters[i].attachments[k];

			if (!filters[i].is_other_version && attachment->has_ethernet &&
			    attachment->mode < INTERFACE_OFFLOAD && attachment->root_id == attachment->prog_id)
				watched[watched_count++] =
					(struct watched){ .filter = &filters[i], .attachment = attachment };
		}
	continues = watched_count;
	while (continues) {
		const __s64 ms = clock_ms(CLOCK_MONOTONIC) - start_ms;

		continues = false;
		if (interfaces_list(&interfaces, &interfaces_count))
			break;
		for (size_t i = 0; i < watched_count; i++) {
			if (watched[i].state != WATCH_OVER)
				watch_one(&watched[i], interfaces, interfaces_count, ms, quiet_ms);
			continues |= watched[i].state != WATCH_OVER;
		}
		free(interfaces);
		if (continues)
			clock_pause(ms < quiet_ms ? 1 + ms / 4 : 100);
	}
	free(watched);
}
