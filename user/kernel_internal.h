/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What kernel.c and kernel_find.c share; nobody else includes it. */
#ifndef XDP_CUCKOO_KERNEL_INTERNAL_H
#define XDP_CUCKOO_KERNEL_INTERNAL_H

#include "kernel.h"

/* From here on the kernel's words, which libbpf would print, are kept for kernel_refused(). */
void kernel_listen(void);

/* The message for a refused system call: what was being done, to what. Returns `error`. */
int kernel_refused(struct reason *reason, int error, const char *what, const char *subject);

/* Maps config and buckets of a filter whose descriptors are open. */
int kernel_map(struct kernel_filter *filter, struct reason *reason);

int kernel_add_attachment(struct kernel_filter *filter, const struct kernel_attachment *attachment);

#endif
