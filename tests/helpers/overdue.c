// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* `overdue DIR`: the time to confirm the pending change of the store DIR is over: the next writer undoes the change. */
#include <stdio.h>
#include <string.h>

#include "store/store.h"

int main(int argc, char **argv)
{
	struct store *store = NULL;
	struct reason reason;
	int error = -1;

	if (argc == 2 && !store_open(argv[1], STORE_WRITE, &store, &reason))
		error = store_begin(store);
	if (!error)
		error = store_extend_deadline(store, 0);
	if (!error)
		error = store_commit(store);
	store_close(store);
	if (error)
		fprintf(stderr, "overdue: %s\n", error == -1 ? "no store" : strerror(-error));
	return error != 0;
}
