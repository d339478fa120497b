// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Makes look-ups in the running filter of this network namespace end without an answer, now and then:
 * increments its sequence without end, as a writer does that moves entries, and takes each bucket out of
 * the other processors' caches, so that there is time for that between two reads. Changes no entry. Says
 * when it starts.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "kernel/kernel.h"

#define CACHE_LINE_WORDS 8
#define LONGEST_S 600

int main(void)
{
	struct kernel_filter *filters = NULL;
	struct reason reason;
	size_t count = 0, words;
	__u64 *word;

	/* Nothing here ends by itself: it goes with the test that started it. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(LONGEST_S);
	if (kernel_find_filters((struct kernel_wish){ 0 }, &filters, &count, &reason) || count != 1) {
		fputs("unsettle: there must be one running filter\n", stderr);
		return 2;
	}
	if (kernel_map_part(&filters->map[KERNEL_BUCKETS], 0, filters->map[KERNEL_BUCKETS].bytes)) {
		fputs("unsettle: the buckets cannot be mapped\n", stderr);
		return 2;
	}
	puts("started");
	fflush(stdout);
	word = filters->map[KERNEL_BUCKETS].memory;
	words = filters->map[KERNEL_BUCKETS].bytes / sizeof(*word);
	for (size_t i = 0;; i = (i + CACHE_LINE_WORDS) % words) {
		__atomic_fetch_or(&word[i], 0, __ATOMIC_RELAXED);
		__atomic_fetch_add(&filters->config->table[filters->config->active % ABI_TABLES].sequence, 1,
				   __ATOMIC_RELEASE);
	}
}
