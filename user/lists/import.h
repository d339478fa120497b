/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The rules of a list file into store and filters, as one change: read, compared with what is there, changed, and
 * undone where nobody confirms it. Tells bad lines and what is seldom meant on stderr; the result is the caller's
 * to print.
 */
#ifndef XDP_CUCKOO_IMPORT_H
#define XDP_CUCKOO_IMPORT_H

#include <jansson.h>

#include "commands/command.h"

struct import_result {
	json_t *answer; /* the caller's; may be there also where it failed */
	__u64 bad_lines;
	__s64 deadline_ms; /* until when it is to be confirmed: see change/watchdog.h; 0: it need not be */
};

/*
 * As the options of the invocation say: --format, --replace, --dry-run, --strict, --timeout, --confirm, --list,
 * --force. `path` "-" is standard input. -EINVAL: the list is refused; -ESRCH: no list of the name; other -errno,
 * with the reason.
 */
int import_list(const struct invocation *invocation, const char *path, struct import_result *result,
		struct reason *reason);

/* Gives up the rules of the list that --list names, and deletes it. The invocation says --replace. */
int import_delete_list(const struct invocation *invocation, struct import_result *result, struct reason *reason);

#endif
