/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whole rtnetlink dumps, and single questions. Knows how to ask, not what is in the answers. */
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

#endif
