// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* To be preloaded: no driver says that it has frames in several buffers (NETDEV_XDP_ACT_RX_SG of <linux/netdev.h>). */
#include <dlfcn.h>
#include <stdint.h>

#include <libmnl/libmnl.h>

uint64_t mnl_attr_get_u64(const struct nlattr *attribute)
{
	uint64_t (*next)(const struct nlattr *) =
		(uint64_t(*)(const struct nlattr *))dlsym(RTLD_NEXT, "mnl_attr_get_u64");

	return next(attribute) & ~(uint64_t)(1 << 5);
}
