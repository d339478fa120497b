// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Panic: running filters pass everything, whatever their rules are. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "filter/filter.h"

#define PANIC_ROUNDS 1000   /* each writer that interferes costs one round */
#define PANIC_SETTLE_MS 100 /* a writer replaces a table and starts the new one within this time */

/*
 * An operator and the fleet do not undo what the other one has done. The bits are in the filter, so they end with it:
 *
 *   ABI_RUN_PANIC  ABI_RUN_FLEET
 *   -              -              no panic
 *   set            -              an operator has set it: the fleet leaves it alone
 *   set            set            the fleet has set it, and will end it
 *   -              set            an operator has ended it here: the fleet does not set it again until its own panic ends
 */
__u32 panic_next(__u32 run, enum panic_by by, bool is_on)
{
	const __u32 both = ABI_RUN_PANIC | ABI_RUN_FLEET;

	if (by == PANIC_BY_OPERATOR)
		return is_on ? (run & ~both) | ABI_RUN_PANIC : run & ~ABI_RUN_PANIC;
	if (is_on)
		return run & both ? run : run | both;
	return run & ABI_RUN_FLEET ? run & ~both : run;
}

/*
 * Clears ABI_RUN_REPLACING with the change, so that no writer overrides it. Returns whether the filter was in this state
 * before. What an operator wants does not depend on the old state, so there the bit goes in any case.
 */
static bool set_panic(__u32 *run, enum panic_by by, bool is_on)
{
	__u32 before = __atomic_load_n(run, __ATOMIC_SEQ_CST), next;

	do {
		next = panic_next(before, by, is_on);
		if (next == before && by == PANIC_BY_FLEET)
			return true;
	} while (!__atomic_compare_exchange_n(run, &before, next & ~ABI_RUN_REPLACING, false, __ATOMIC_SEQ_CST,
					      __ATOMIC_SEQ_CST));
	return next == before;
}

/*
 * Repeats until a fresh look finds every filter in the wanted state, since a writer may replace a table meanwhile.
 * Counts the filters in *meant. -EPROTO, -EPERM: some filters cannot be seen or used; all others are in that state.
 */
static int panic_until_all(const char *name, enum panic_by by, bool is_on, size_t *meant, struct reason *reason)
{
	size_t count, changed = 1;
	int error = 0;

	for (int round = 0; round < PANIC_ROUNDS && changed; round++) {
		struct kernel_filter *filters;

		error = kernel_find_all(name, &filters, &count, reason);
		if (error && error != -EPROTO && error != -EPERM)
			return error;
		*meant = changed = 0;
		for (size_t i = 0; i < count; i++) {
			struct abi_config *config = filters[i].config;

			/* A filter that is not set up passes everything, but a writer may be about to set it up. */
			if (name && config->magic && strncmp(config->name, name, sizeof(config->name)))
				continue;
			++*meant;
			changed += !set_panic(&config->run, by, is_on);
		}
		kernel_filters_free(filters, count);
	}
	if (!changed)
		return error;
	return reason_set(reason, -EAGAIN,
			  "another command keeps replacing tables; stop it, or take the filter off (xdp-cuckoo unload)");
}

int filter_panic(const char *name, enum panic_by by, bool is_on, size_t *meant, struct reason *reason)
{
	const struct timespec settle = { .tv_nsec = PANIC_SETTLE_MS * 1000000 };
	int error = panic_until_all(name, by, is_on, meant, reason);

	if ((error && error != -EPROTO && error != -EPERM) || !*meant)
		return error;
	/* A writer may have had a new table ready. Wait until it has started it. */
	nanosleep(&settle, NULL);
	return panic_until_all(name, by, is_on, meant, reason);
}
