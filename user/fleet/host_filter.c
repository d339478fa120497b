// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "fleet/host_filter.h"

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
	return (run & (ABI_RUN_PANIC | ABI_RUN_FLEET)) == ABI_RUN_PANIC ? "an operator has set a panic on this host" :
									  NULL;
}

void host_filter_look(const char *name, struct kernel_filter **filters, size_t *count, struct host_filter *found)
{
	struct abi_counter counters[ABI_COUNTERS], verdicts[VERDICTS] = {};
	const __u32 both = ABI_RUN_PANIC | ABI_RUN_FLEET;
	struct tally tally = {};
	struct reason ignored;

	*found = (struct host_filter){};
	kernel_find_filters((struct kernel_wish){ .must_see = name, .keeps_pins = true }, filters, count, &ignored);
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
		found->passes_all = "no filter is loaded on this host";
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
