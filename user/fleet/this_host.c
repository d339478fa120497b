// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "fleet/follow_internal.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "counters/counters.h"
#include "filter/filter.h"

/* The panic of the fleet is the fleet's own affair: its status says so elsewhere. */
static const char *why_it_passes_all(const struct kernel_filter *filter)
{
	const __u32 run = filter->config->run;

	if (!(run & ABI_RUN_SET_UP))
		return "the filter of this host is not set up";
	if (run_is_confirm_late(filter))
		return "nobody has confirmed a change on this host in time, so its filter passes everything";
	if ((run & (ABI_RUN_PANIC | ABI_RUN_FLEET)) == ABI_RUN_PANIC)
		return "an operator has set a panic on this host";
	return run & ABI_RUN_MONITOR ? "the filter of this host is monitor-only: it drops nothing" : NULL;
}

void host_filter_look(const char *name, struct kernel_filter **filters, size_t *count, struct host_filter *found)
{
	struct abi_counter counters[ABI_COUNTERS], verdicts[VERDICTS] = {};
	const __u32 both = ABI_RUN_PANIC | ABI_RUN_FLEET;
	struct tally tally = {};
	struct reason ignored;
	int error = kernel_find_filters((struct kernel_wish){ .must_see = name, .keeps_pins = true }, filters, count,
					&ignored);

	*found = (struct host_filter){};
	for (size_t i = 0; i < *count; i++) {
		const struct kernel_filter *filter = &(*filters)[i];

		if (!kernel_may_be_named(filter->config, name))
			continue;
		tally_add(&tally, filter, &ignored);
		found->is_panic |= (filter->config->run & both) == both;
		if (!found->passes_all)
			found->passes_all = why_it_passes_all(filter);
	}
	if (tally.filters) {
		tally_sum(&tally, TALLY_ALL, TALLY_ALL, counters);
		tally_verdicts(counters, verdicts);
	} else {
		found->passes_all = error ? "this host cannot see whether a filter is loaded" :
					    "no filter is loaded on this host";
	}
	tally_close(&tally);
	found->drops = verdicts[VERDICT_DROP].packets;
}

bool host_panic_is_due(const char *name, struct kernel_filter **filters, size_t *count, bool is_on)
{
	struct reason ignored;
	bool is_due = false;

	kernel_find_filters((struct kernel_wish){ .must_see = name, .keeps_pins = true }, filters, count, &ignored);
	for (size_t i = 0; i < *count; i++) {
		const __u32 run = (*filters)[i].config->run;

		is_due |= kernel_may_be_named((*filters)[i].config, name) &&
			  panic_next(run, PANIC_BY_FLEET, is_on) != run;
	}
	return is_due;
}

void service_notify(const char *format, ...)
{
	const char *path = secure_getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char text[1024];
	va_list arguments;
	int fd;

	if (!path || !strchr("/@", *path) || strlen(path) >= sizeof(address.sun_path))
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	strcpy(address.sun_path, path);
	/* "@" stands for the 0 byte of an abstract name. */
	if (*path == '@')
		address.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	sendto(fd, text, strlen(text), MSG_NOSIGNAL, (const struct sockaddr *)&address,
	       offsetof(struct sockaddr_un, sun_path) + strlen(path));
	close(fd);
}
