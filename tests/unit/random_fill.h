/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef XDP_CUCKOO_RANDOM_FILL_H
#define XDP_CUCKOO_RANDOM_FILL_H

#include <string.h>

#include "bench/random.h"

/* Fills memory with reproducible random bytes. */
static inline void random_fill(uint64_t *state, void *memory, size_t bytes)
{
	for (size_t done = 0; done < bytes; done += sizeof(uint64_t)) {
		const uint64_t word = random_next(state);

		memcpy((char *)memory + done, &word, bytes - done < sizeof(word) ? bytes - done : sizeof(word));
	}
}

#endif
