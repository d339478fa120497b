/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of apply share; nobody else includes it. */
#ifndef XDP_CUCKOO_APPLY_INTERNAL_H
#define XDP_CUCKOO_APPLY_INTERNAL_H

#include "apply.h"

/* Forgets the change under way, if any. */
void apply_forget_change(struct apply *apply);

/* Undoes a change that was to be confirmed and was not in time. 0, also where there is none. */
int apply_undo_overdue(struct apply *apply, struct reason *reason);

#endif
