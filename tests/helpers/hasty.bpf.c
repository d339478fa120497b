// SPDX-License-Identifier: GPL-2.0-only
/* The filter with two tries a look-up: with as many as it has, none ends without an answer, however often entries move. */
#define ABI_SEQUENCE_TRIES 2

#include "xdp_cuckoo.bpf.c"
