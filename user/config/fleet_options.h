/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How this host takes part in a fleet: the section [fleet] of a configuration. See xdp-cuckoo-fleet(7). */
#ifndef XDP_CUCKOO_FLEET_OPTIONS_H
#define XDP_CUCKOO_FLEET_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include <linux/types.h>

#define FLEET_BROKERS_MAX 8
#define FLEET_LISTS_MAX 16

/* Texts belong to the configuration. */
struct fleet_options {
	const char *brokers[FLEET_BROKERS_MAX]; /* HOST, HOST:PORT, [IPv6]:PORT, or the path of a socket */
	size_t brokers_count;
	const char *user, *password_file; /* NULL: no authentication */
	const char *ca;                   /* file of certificates; NULL: no TLS */
	const char *host;                 /* name of this host in the status; NULL: the kernel's */
	const char *lists[FLEET_LISTS_MAX];
	size_t lists_count;
	bool is_staged;             /* also follow the staged rules of the lists */
	bool may_pass;              /* accept pass rules */
	unsigned int prefix_min[2]; /* shortest prefix of IPv4 and of IPv6 */
	__u64 rules_max;            /* of all lists; 0: no limit */
	unsigned int shrink_max;    /* percent of a list that a resync may drop */
	unsigned int replicas;      /* that must have a change before the publisher forgets it */
	__s64 jitter_ms;            /* a resync waits a random part of this */
};

#endif
