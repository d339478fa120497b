/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The network interfaces of this namespace and the XDP programs on them, by one rtnetlink dump: a
 * query for each interface would cost the square of their number. Knows netlink, not BPF.
 */
#ifndef XDP_CUCKOO_INTERFACES_H
#define XDP_CUCKOO_INTERFACES_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>

#include <linux/types.h>

enum interface_mode {
	INTERFACE_NATIVE,
	INTERFACE_SKB,
	INTERFACE_OFFLOAD,
	INTERFACE_MODES,
};

#define INTERFACE_NAME_BYTES 128 /* of an alternative name, with its 0: ALTIFNAMSIZ of <linux/if.h> */

struct interface {
	char name[IF_NAMESIZE];
	int index;
	bool has_ethernet;              /* header, as the loopback interface has; tunnels, PPP, some modems have none */
	__u32 prog_id[INTERFACE_MODES]; /* 0 where none is attached */
	int master;                     /* index of the bond, bridge, ... that it is part of; 0: of none */
	__u32 mtu;
	__u64 received; /* packets, as its driver counts them: some do so every 2 s, and not all count what XDP drops */
};

/* "native", "skb", "offload". */
const char *interface_mode_name(enum interface_mode mode);

/*
 * Interfaces may be called anything but what has a slash, a colon or white space in it: puts '?' in the place of what
 * terminals obey, and of what is not UTF-8, which neither JSON nor Prometheus take.
 */
void interface_clean_name(char *name);

/*
 * All interfaces, in kernel order, as they were at one time. 0 and an array to free(); -EAGAIN: they come and go
 * without end; other -errno; then *interfaces is NULL.
 */
int interfaces_list(struct interface **interfaces, size_t *count);

/* Visits every name of every interface: its own and its alternative ones. Best effort, for suggestions. */
void interfaces_names(void (*visit)(const char *name, void *context), void *context);

/*
 * The interface that has this name, its own or an alternative one (`ip link property add ... altname`), as it is now.
 * if_nametoindex() finds no name longer than 15 bytes. 0; -errno, -ENODEV where there is none.
 */
int interfaces_find(const char *name, struct interface *interface);

/* Whether an interface has that name. */
bool interfaces_is_there(const char *name);

/*
 * Whether the driver says that it can do native XDP with frames of several buffers (xdp-features, Linux 6.3). True
 * also where the kernel does not tell.
 */
bool interfaces_may_take_frags(int index);

/* Whether two names are one interface's, which may have several. */
bool interfaces_are_one(const char *name, const char *other);

#endif
