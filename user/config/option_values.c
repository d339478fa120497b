// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Values that both a configuration and the command line have. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "counters/counters.h"

int count_parse(const char *text, __u64 *number)
{
	char *end;

	errno = 0;
	*number = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end && !errno && *number ? 0 : -EINVAL;
}

int mode_parse(const char *word, enum kernel_mode *mode)
{
	static const char *const modes[] = {
		[KERNEL_AUTO] = "auto",
		[KERNEL_NATIVE] = "native",
		[KERNEL_SKB] = "skb",
	};

	/* The names of ip link and xdp-filter. */
	if (!strcmp(word, "generic"))
		word = "skb";
	if (!strcmp(word, "driver") || !strcmp(word, "drv"))
		word = "native";
	for (*mode = KERNEL_AUTO; *mode <= KERNEL_SKB; ++*mode)
		if (!strcmp(modes[*mode], word))
			return 0;
	return -EINVAL;
}

int fingerprint_parse(const char *word, unsigned int *bits)
{
	static const char *const widths[] = { "8", "16", "17", "32" };

	for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++)
		if (!strcmp(widths[i], word)) {
			*bits = strtoul(word, NULL, 10);
			return 0;
		}
	return -EINVAL;
}

struct abi_options table_options_of(const struct load_options *load)
{
	static const enum bucket_format formats[] = {
		[0] = BUCKET_16, [8] = BUCKET_8, [16] = BUCKET_16, [17] = BUCKET_17, [32] = BUCKET_32,
	};

	return (struct abi_options){
		.format = formats[load->fingerprint_bits],
		.is_exact = !load->is_compact,
		.has_counts = !load->is_compact && !load->has_no_counters,
		.is_alone = load->has_no_spare,
		.orders_loads = !ABI_LOADS_IN_ORDER,
	};
}

bool table_options_are_given(const struct load_options *load)
{
	return load->is_compact || load->fingerprint_bits || load->has_no_counters || load->has_no_spare;
}

enum abi_outcome policy_outcome_named(const char *word)
{
	enum abi_outcome outcome = 0;

	/* The word of firewalls for packets that no rule decides about. */
	if (!strcasecmp(word, "default"))
		return OUTCOME_NO_RULE;
	while (outcome < OUTCOME_POLICIES && strcasecmp(outcome_words[outcome].name, word))
		outcome++;
	return outcome;
}

const char *policy_danger(enum abi_outcome outcome)
{
	switch (outcome) {
	case OUTCOME_NO_RULE:
		return "drops everything that no pass rule names: your session, and the answers to this host's "
		       "own connections; add pass rules for these first";
	case OUTCOME_NOT_IP:
		return "drops ARP: this host and its gateway no longer find each other over IPv4, unless "
		       "their neighbour entries are permanent";
	default:
		return NULL;
	}
}
