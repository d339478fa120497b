// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Increments the sequence of the running filter in this network namespace, as a writer does that moves
 * entries, without moving any, until it is killed: look-ups that miss find no rest. Says when it starts.
 */
#include <stdio.h>

#include "kernel.h"

int main(void)
{
	struct kernel_filter *filters;
	struct reason reason;
	size_t count;

	if (kernel_find(&filters, &count, &reason) || count != 1) {
		fputs("unsettle: there must be one running filter\n", stderr);
		return 2;
	}
	puts("started");
	fflush(stdout);
	for (;;)
		__atomic_fetch_add(&filters->config->sequence, 1, __ATOMIC_RELEASE);
}
