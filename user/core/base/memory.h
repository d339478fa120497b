/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Memory: whether there is enough, arrays that grow, random bytes. */
#ifndef XDP_CUCKOO_MEMORY_H
#define XDP_CUCKOO_MEMORY_H

#include <stddef.h>
#include <stdio.h>

#include <linux/types.h>

#include "base/error_reason.h"

/* MemAvailable of /proc/meminfo; 0 if the kernel does not report it. */
__u64 memory_available_kib(void);

/*
 * Call this before a large allocation, because the kernel is slow to refuse it and may kill other processes. 0;
 * -ENOMEM with the reason "`what` needs ...; `advice`".
 */
int memory_check(__u64 bytes, const char *what, const char *advice, struct reason *reason);

/*
 * Makes room for one element more in an array that grows only by this, one at a time. *array is from malloc(), or NULL
 * if `count` is 0; `each` is the size of an element. The room doubles, so it is not stored. 0; -ENOMEM: all stays.
 */
int array_grow(void *array, size_t count, size_t each);

/*
 * A variable that a function closes, or free() frees, where its block ends. Set it where it is
 * declared; it may be NULL, and a descriptor negative.
 */
#define CLOSED_BY(function) __attribute__((cleanup(function)))
#define FREED CLOSED_BY(memory_free)
#define FILE_CLOSED CLOSED_BY(memory_close_file)
#define FD_CLOSED CLOSED_BY(memory_close_fd)
void memory_free(void *variable);
void memory_close_fd(const int *fd);
void memory_close_file(FILE **file);

/* Fills with random bytes from the kernel; waits until it has some. 0; -errno. */
int random_draw(void *bytes, size_t count);

#endif
