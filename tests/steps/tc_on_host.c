// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The programs at tc: see host_bpf.h. */
#define ON_HOST
/* The other program has maps of these names, too. */
#define xc_config tc_config
#define xc_buckets tc_buckets
#define xc_records tc_records
#define xc_counts tc_counts
#define xc_hints tc_hints
#define xc_counters tc_counters
#define xc_rates tc_rates
#define xc_rate_credits tc_rate_credits
#define xc_sampling tc_sampling
#define xc_samples tc_samples
#define xc_options tc_options
#define xc_prefixes tc_prefixes
#define LICENSE tc_license
#include "steps/host_bpf.h"

#include "xdp_cuckoo_tc.bpf.c"

HOST_OBJECT(host_tc, HOST_PROGRAM(xdp_cuckoo_sent), HOST_PROGRAM(xdp_cuckoo_ip), HOST_PROGRAM(xdp_cuckoo_ips));
