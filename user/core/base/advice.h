/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * All advice of messages to pass, to detach or to delete something; tests/namespace/test_advice.sh follows each, and finds
 * any that is not here. None may switch off what runs, or void a list. The first %s is of session_name_option().
 */
#ifndef XDP_CUCKOO_ADVICE_H
#define XDP_CUCKOO_ADVICE_H

/* A rule of struct guard_advice, or one that voids no list: see change_find_void(). */
#define ADVICE_PASS "xdp-cuckoo%s add %s action pass"

/* The destination: an address of this host, which stays closed to all others. */
#define ADVICE_LET_IN "xdp-cuckoo%s add proto tcp src YOUR-ADDRESS %s dport 22 action pass"

/* An interface, twice: only for a damaged or unknown filter, whose rules cannot be changed. */
#define ADVICE_RELOAD "ip link set dev %s xdp off && xdp-cuckoo load %s"

/* A list that nothing feeds, or NAME. */
#define ADVICE_DELETE_LIST "xdp-cuckoo%s lists delete %s"

#endif
