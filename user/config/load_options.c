// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "config/load_options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int load_mode_parse(const char *word, enum kernel_mode *mode)
{
	static const char *const modes[] = {
		[KERNEL_AUTO] = "auto",
		[KERNEL_NATIVE] = "native",
		[KERNEL_SKB] = "skb",
	};

	for (*mode = KERNEL_AUTO; *mode <= KERNEL_SKB; ++*mode)
		if (!strcmp(modes[*mode], word))
			return 0;
	return -EINVAL;
}

int load_fingerprint_parse(const char *word, unsigned int *bits)
{
	static const char *const widths[] = { "8", "16", "17", "32" };

	for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++)
		if (!strcmp(widths[i], word)) {
			*bits = strtoul(word, NULL, 10);
			return 0;
		}
	return -EINVAL;
}

struct abi_options load_table(const struct load_options *load)
{
	static const enum bucket_format formats[] = {
		[0] = BUCKET_16, [8] = BUCKET_8, [16] = BUCKET_16, [17] = BUCKET_17, [32] = BUCKET_32,
	};

	return (struct abi_options){
		.format = formats[load->fingerprint_bits],
		.is_exact = !load->is_compact,
		.has_counts = !load->is_compact && !load->has_no_counters,
		.is_alone = load->has_no_spare,
	};
}

bool load_describes_table(const struct load_options *load)
{
	return load->is_compact || load->fingerprint_bits || load->has_no_counters || load->has_no_spare;
}
