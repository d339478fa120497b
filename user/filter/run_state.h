/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whether a running filter enforces its rules at this moment. */
#ifndef XDP_CUCKOO_RUN_STATE_H
#define XDP_CUCKOO_RUN_STATE_H

#include <stdbool.h>

#include "kernel/kernel.h"

/* Whether it waits for `confirm`, or waited too long. */
bool run_is_unconfirmed(const struct kernel_filter *filter);

/* Milliseconds left to confirm it; 0: none, or it waits for nothing, or the kernel does not tell the time. */
__s64 run_confirm_left_ms(const struct kernel_filter *filter);

/* Whether it passes everything because nobody confirmed in time. */
bool run_is_confirm_late(const struct kernel_filter *filter);

/* Whether rules are in force: it is set up, and not in panic, not monitor-only and not unconfirmed too long. */
bool run_is_filtering(const struct kernel_filter *filter);

#endif
