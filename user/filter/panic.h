/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Panic: running filters pass everything, whatever their rules are. */
#ifndef XDP_CUCKOO_PANIC_H
#define XDP_CUCKOO_PANIC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error_reason.h"

/*
 * Sets or ends the panic of every running filter of the name; NULL: of all. Works while other commands change the
 * filters. *meant: how many filters there are. -EPROTO, -EPERM: some filters cannot be seen or used; all others are in
 * that state. -EAGAIN: another command keeps replacing tables.
 */
int filter_panic(const char *name, bool is_on, size_t *meant, struct reason *reason);

#endif
