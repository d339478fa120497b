/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whole rtnetlink dumps, and single questions, also of generic netlink. Knows how to ask, not what is in the answers. */
#ifndef XDP_CUCKOO_NETLINK_H
#define XDP_CUCKOO_NETLINK_H

#include <stddef.h>

#include <libmnl/libmnl.h>
#include <linux/types.h>

/*
 * Asks for all objects of a type (RTM_GETLINK, ...) and family, and calls `visit` for each; the type's
 * own header has `header_bytes`. 0; -EINTR: they changed meanwhile, so that some may have been missed
 * or come twice; other -errno, that of `visit` too.
 */
int netlink_dump(__u16 type, __u8 family, size_t header_bytes, mnl_cb_t visit, void *context);

/* Sends one request, and calls `visit` for the answer. 0; -errno, the kernel's and that of `visit` too. */
int netlink_ask(struct nlmsghdr *request, mnl_cb_t visit, void *context);

/*
 * Sends a generic netlink family's command about the object that one attribute, a number, names. The answer's own
 * header is a struct genlmsghdr. 0; -ENOENT: this kernel has no such family; other -errno, as netlink_ask().
 */
int netlink_ask_generic(const char *family, __u8 command, __u16 attribute, __u32 number, mnl_cb_t visit, void *context);

#endif
