// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Many entries, each for itself, in few changes. equal.c is for rules that are one change together. */
#include "change/change.h"

/*
 * If a change stops at an entry, those before it are made without it, and then it is tried alone: the table may have room
 * now. If nothing tells the entry, the middle one is tried like that.
 */
void change_series(const struct change_series *series, size_t first, size_t end)
{
	while (first < end) {
		size_t stop = end, at;
		struct reason reason;
		int error;

		at = stop;
		error = series->make(series->context, first, &stop, &at, &reason);
		if (error &&
		    (stop - first == 1 || (series->is_at_fault && !series->is_at_fault(series->context, error)))) {
			series->fail(series->context, first, stop, error, &reason);
		} else if (error) {
			if (at >= stop)
				at = first + (stop - first) / 2 - 1;
			change_series(series, first, at);
			change_series(series, at, at + 1);
			stop = at + 1;
		}
		first = stop;
	}
}
