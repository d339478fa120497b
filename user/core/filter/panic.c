// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Panic: running filters pass everything, whatever their rules are. */
#include <errno.h>

#include "base/clock.h"
#include "filter/filter.h"

#define PANIC_ROUNDS 1000   /* each writer that interferes costs one round */
#define PANIC_WAIT_MS 100   /* a writer replaces a table and starts the new one within this time */

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
 * Returns whether the filter was in this state before. A command that replaces the filter may write the same word at
 * the same moment (filter_end_replacing() in run_state.c). So the new word takes the place only of the word that it was
 * made from. The exchange also clears ABI_RUN_REPLACING: from then on that command leaves the bits of this filter
 * alone. What an operator wants is newer than the copied bits even if they are equal, so ABI_RUN_REPLACING goes in any
 * case.
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

/* Repeats until a fresh search finds every filter in the wanted state, since a writer may replace a table meanwhile. */
static int panic_until_all(const char *name, enum panic_by by, bool is_on, size_t *meant, bool *is_changed,
			   enum kernel_seen *seen, struct reason *reason)
{
	const struct kernel_wish wish = { .must_see = name, .takes_other_versions = true, .seen = seen };
	bool is_elsewhere = false;
	size_t changed = 1;

	for (int round = 0; round < PANIC_ROUNDS && changed; round++) {
		struct kernel_filter *filters = NULL;
		size_t count = 0;
		int error = kernel_find_filters(wish, &filters, &count, reason);

		if (error)
			return error;
		*meant = changed = 0;
		is_elsewhere = false;
		for (size_t i = 0; i < count; i++) {
			struct abi_config *config = filters[i].config;

			/* A filter that is not set up passes everything, but a writer may be about to set it up. */
			if (name && !kernel_may_be_named(config, name))
				continue;
			++*meant;
			changed += !set_panic(&config->run, by, is_on);
			is_elsewhere |= by == PANIC_BY_OPERATOR && kernel_misses_interface(&filters[i]) &&
					kernel_runs_elsewhere(config->store_id, filters, count);
		}
		kernel_filters_free(filters, count);
		*is_changed |= changed;
	}
	if (changed)
		return reason_set(reason, -EAGAIN,
				  "another command keeps replacing tables; stop it, or take the filter off (xdp-cuckoo "
				  "unload)");
	/* kernel_seen_error() is worse: even here one may be left. */
	return !is_elsewhere || *seen != KERNEL_SEEN ?
		       0 :
		       reason_set(reason, -EREMOTE,
				  "done here, but a filter with these rules is on no interface here: it runs in another "
				  "network namespace (type the same there, or move its interface back), or a pin holds it "
				  "(bpftool --bpffs prog show)");
}

int filter_panic(const char *name, enum panic_by by, bool is_on, size_t *meant, bool *is_changed, struct reason *reason)
{
	enum kernel_seen seen;
	int error = panic_until_all(name, by, is_on, meant, is_changed, &seen, reason);

	if ((!error || error == -EREMOTE) && *meant) {
		/* A writer may have had a new table ready. Wait until it has started it. */
		clock_pause(PANIC_WAIT_MS);
		error = panic_until_all(name, by, is_on, meant, is_changed, &seen, reason);
	}
	return error ? error : kernel_seen_error(seen);
}
