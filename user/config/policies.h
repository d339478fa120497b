/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Policies as the command line and the configuration file name them. */
#ifndef XDP_CUCKOO_POLICIES_H
#define XDP_CUCKOO_POLICIES_H

#include "abi.h"

/* The outcome with this name, in upper or lower case; OUTCOME_POLICIES: no outcome with a policy has it. */
enum abi_outcome policy_outcome_named(const char *word);

/* How dropping these packets can lock the operator out, whatever the rules are; NULL: it cannot. */
const char *policy_danger(enum abi_outcome outcome);

#endif
