/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The network interfaces of this namespace and the programs on them, read with one rtnetlink dump. A
 * query per interface would take time in the square of their number. Knows netlink; tc.c knows programs at tc.
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
	INTERFACE_XDP_MODES,
	INTERFACE_TC = INTERFACE_XDP_MODES, /* at tc, where XDP finds no packet: received packets */
	INTERFACE_TC_SENT,                  /* packets that this host sends */
	INTERFACE_MODES,
};

#define INTERFACE_NAME_BYTES 128 /* an alternative name with its 0: ALTIFNAMSIZ of <linux/if.h> */

struct interface {
	char name[IF_NAMESIZE];
	int index;
	bool has_ethernet; /* headers; the loopback interface has them; tunnels, PPP and some modems do not */
	bool has_ip;       /* no other header: packets start with that of IP */
	__u32 prog_id[INTERFACE_MODES]; /* 0: no program. At tc: no program that may be ours */
	bool is_behind[INTERFACE_MODES]; /* at tc, another program is before that one */
	int master;                     /* index of its bond, bridge, ...; 0: it has no master */
	int link;                       /* index of the interface that a VLAN, a macvlan, ... is on; 0: none here */
	bool is_below;                  /* set by interfaces_keep_running(): one right above it runs a program, too */
	__u32 mtu;
	bool is_tap;
	bool is_virtio_net; /* as its bus says */
	__u64 received;     /* packets, counted by the driver: maybe only every 2 s, and maybe without what XDP drops */
	__u64 lost; /* packets that the card had no room for, so that nobody saw them: also by the driver's count */
};

/* "native", "skb", "offload", "tc". */
const char *interface_mode_name(enum interface_mode mode);

/*
 * An interface's name may have any character but slash, colon and white space. Replaces control characters and
 * what is not UTF-8 by '?', for terminals, JSON and Prometheus.
 */
void interface_clean_name(char *name);

/*
 * All interfaces, in the kernel's order, in an array for free(). 0; -EAGAIN: interfaces come and go all the time;
 * other -errno. On failure *interfaces is NULL.
 */
int interfaces_list(struct interface **interfaces, size_t *count);

/*
 * Keeps only interfaces that run programs, each before those below it. While an interface runs a program, the kernel
 * takes none off the ports of a bridge, the slaves of a bond, or what carries a VLAN or macvlan.
 */
void interfaces_keep_running(struct interface *interfaces, size_t *count);

/* Visits all names of all interfaces, also alternative names. Ignores errors: the names are for suggestions. */
void interfaces_names(void (*visit)(const char *name, void *context), void *context);

/* Finds an interface by its own or an alternative name (altname), also a long one. 0; -ENODEV; other -errno. */
int interfaces_find(const char *name, struct interface *interface);

/* The index of the interface that has this name; 0: there is none. if_nametoindex() does not know long names. */
int interfaces_index(const char *name);

/*
 * Whether the driver says that it supports native XDP with frames in several buffers (xdp-features, Linux 6.3).
 * `if_unknown`: the result if the kernel does not say.
 */
bool interfaces_takes_frags(int index, bool if_unknown);

/* Whether both names are names of the same interface. */
bool interfaces_are_one(const char *name, const char *other);

/* ---- requests by netlink ---- */

struct nlmsghdr;

/* Gets each answer. Returns MNL_CB_OK to go on; MNL_CB_ERROR, with errno set, ends the request with that error. */
typedef int (*netlink_visit)(const struct nlmsghdr *message, void *context);

/*
 * Asks for all objects of a type (RTM_GETLINK, ...). `bus` is NETLINK_ROUTE, ...; `header` is the type's own header, which
 * chooses objects. Calls `visit` for each object. 0; -EINTR: the objects changed meanwhile, so some may be missing or
 * come twice; other -errno, also of `visit`. For sockets (NETLINK_SOCK_DIAG) the kernel walks through its whole table of
 * connections, 0.2 ms here.
 */
int netlink_dump(int bus, __u16 type, const void *header, size_t header_bytes, netlink_visit visit, void *context);

/* Sends one request, and calls `visit` for the answer. 0; -errno, of the kernel or of `visit`. */
int netlink_ask(struct nlmsghdr *request, netlink_visit visit, void *context);

#endif
