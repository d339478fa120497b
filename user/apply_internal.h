/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What apply.c and apply_change.c share; nobody else includes it. */
#ifndef XDP_CUCKOO_APPLY_INTERNAL_H
#define XDP_CUCKOO_APPLY_INTERNAL_H

#include "apply.h"

/* Frees what a change remembers until its commit; also where there is none. */
void apply_forget_change(struct apply *apply);

#endif
