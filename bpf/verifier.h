/* SPDX-License-Identifier: GPL-2.0-only */
/* What the programs do for the verifier alone. */
#ifndef XDP_CUCKOO_VERIFIER_H
#define XDP_CUCKOO_VERIFIER_H

/* Begins a function that is rarely called. It is global, because the verifier checks a global function only once. */
#define RARE_FUNCTION __attribute__((noinline))

#endif
