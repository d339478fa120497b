// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "table/semisort.h"

#define PREFIXES (1 << BUCKET_SORTED_PREFIX_BITS)

static __u16 prefixes[BUCKET_SORTED_CODES];

__attribute__((constructor)) static void make_prefixes(void)
{
	__u32 p[BUCKET_SLOTS];

	for (p[3] = 0; p[3] < PREFIXES; p[3]++)
		for (p[2] = 0; p[2] <= p[3]; p[2]++)
			for (p[1] = 0; p[1] <= p[2]; p[1]++)
				for (p[0] = 0; p[0] <= p[1]; p[0]++)
					prefixes[semisort_code(p)] = p[0] | p[1] << 4 | p[2] << 8 | p[3] << 12;
}

const __u16 *semisort_prefixes(void)
{
	return prefixes;
}
