// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "fleet/host_drops.h"

#include "counters/tally.h"

__u32 host_newest_filter(const char *name, struct kernel_filter **filters, size_t *count)
{
	struct reason ignored;
	__u32 newest = 0;

	kernel_look_again(name, filters, count, &ignored);
	for (size_t i = 0; i < *count; i++)
		if (tally_is_named(&(*filters)[i], name) && (*filters)[i].map[KERNEL_CONFIG].id > newest)
			newest = (*filters)[i].map[KERNEL_CONFIG].id;
	return newest;
}

__u64 host_drops(const char *name, struct kernel_filter **filters, size_t *count)
{
	struct abi_counter counters[ABI_COUNTERS], verdicts[VERDICTS] = {};
	struct tally tally = {};
	struct reason ignored;

	kernel_look_again(name, filters, count, &ignored);
	for (size_t i = 0; i < *count; i++)
		if (tally_is_named(&(*filters)[i], name))
			tally_add(&tally, &(*filters)[i], &ignored);
	if (tally.filters) {
		tally_sum(&tally, TALLY_ALL, TALLY_ALL, counters);
		tally_verdicts(counters, verdicts);
	}
	tally_close(&tally);
	return verdicts[VERDICT_DROP].packets;
}
