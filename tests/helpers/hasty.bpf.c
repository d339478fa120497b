// SPDX-License-Identifier: GPL-2.0-only
/*
 * The filter with two tries for each look-up. With its usual number of tries no look-up ends unsettled, however
 * often entries move, so the policy for unsettled packets could not be tested.
 */
#define ABI_SEQUENCE_TRIES 2

#include "xdp_cuckoo.bpf.c"
