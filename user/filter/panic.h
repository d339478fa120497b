/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Panic: running filters pass everything, whatever their rules are. */
#ifndef XDP_CUCKOO_PANIC_H
#define XDP_CUCKOO_PANIC_H

#include <stdbool.h>
#include <stddef.h>

#include <linux/types.h>

#include "base/error_reason.h"

enum panic_by { PANIC_BY_OPERATOR, PANIC_BY_FLEET };

/* What sets or ends a panic makes this of the bits of abi_config.run. See panic.c. */
__u32 panic_next(__u32 run, enum panic_by by, bool is_on);

/*
 * Sets or ends the panic of every running filter of the name; NULL: of all. Works while other commands change the
 * filters. *meant: how many filters there are. -EPROTO, -EPERM: some filters cannot be seen or used; all others are in
 * that state. -EAGAIN: another command keeps replacing tables.
 */
int filter_panic(const char *name, enum panic_by by, bool is_on, size_t *meant, struct reason *reason);

#endif
