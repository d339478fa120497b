/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The values that the command line and the configuration file have in common. */
#ifndef XDP_CUCKOO_OPTION_VALUES_H
#define XDP_CUCKOO_OPTION_VALUES_H

#include <stdbool.h>

#include "kernel/kernel.h"

/* How to load a filter. */
struct load_options {
	enum kernel_mode mode;
	__u64 capacity; /* in rules; 0: not given */
	bool is_compact, has_no_counters, has_no_spare;
	unsigned int fingerprint_bits; /* 0: not given */
	bool is_monitor_only;
};

/* Reads a decimal number, 1 or more. 0; -EINVAL. */
int number_parse(const char *text, __u64 *number);

/* Read "auto", "native" or "skb", and "8", "16", "17" or "32". 0; -EINVAL. */
int load_mode_parse(const char *word, enum kernel_mode *mode);
int load_fingerprint_parse(const char *word, unsigned int *bits);

/* The table that the options describe. */
struct abi_options load_table(const struct load_options *load);

/* Whether the options say anything about the kind of table. */
bool load_describes_table(const struct load_options *load);

/* The outcome with this name, in upper or lower case; OUTCOME_POLICIES: no outcome with a policy has it. */
enum abi_outcome policy_outcome_named(const char *word);

/* How dropping these packets can lock the operator out, whatever the rules are; NULL: it cannot. */
const char *policy_danger(enum abi_outcome outcome);

#endif
