// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The programs at XDP: see host_bpf.h. */
#define ON_HOST
#include "steps/host_bpf.h"

#include "xdp_cuckoo.bpf.c"

HOST_OBJECT(host_xdp, HOST_PROGRAM(xdp_cuckoo), HOST_PROGRAM(xdp_cuckoo_frags));
