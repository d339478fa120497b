/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sends requests by rtnetlink and generic netlink. Knows how to ask, but not what the answers mean. */
#ifndef XDP_CUCKOO_NETLINK_H
#define XDP_CUCKOO_NETLINK_H

#include <stddef.h>

#include <libmnl/libmnl.h>
#include <linux/types.h>

/*
 * Asks for all objects of a type (RTM_GETLINK, ...) and family. `header_bytes` is the size of the type's
 * own header. Calls `visit` for each object. 0; -EINTR: the objects changed meanwhile, so some may be
 * missing or come twice; other -errno, also of `visit`.
 */
int netlink_dump(__u16 type, __u8 family, size_t header_bytes, mnl_cb_t visit, void *context);

/* Sends one request, and calls `visit` for the answer. 0; -errno, of the kernel or of `visit`. */
int netlink_ask(struct nlmsghdr *request, mnl_cb_t visit, void *context);

/*
 * Sends a command of a generic netlink family about the object that a numeric attribute names. The answer
 * starts with a struct genlmsghdr. 0; -ENOENT: the kernel has no such family; other -errno as from
 * netlink_ask().
 */
int netlink_ask_generic(const char *family, __u8 command, __u16 attribute, __u32 number, mnl_cb_t visit, void *context);

#endif
