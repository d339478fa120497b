// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Preloaded: the interface $LOSSY_CARD seems to have lost packets. The file $LOSSES has their number; with "+" after it, each
 * look adds one more.
 */
#include <dlfcn.h>
#include <libmnl/libmnl.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static __u64 losses(void)
{
	static __u64 looks;
	unsigned long long count = 0;
	FILE *file = fopen(getenv("LOSSES"), "r");
	char more = 0;

	if (!file || fscanf(file, "%llu%c", &count, &more) < 1)
		abort();
	fclose(file);
	return more == '+' ? count + looks++ : count;
}

ssize_t mnl_socket_recvfrom(const struct mnl_socket *socket, void *buffer, size_t bytes)
{
	ssize_t (*real)(const struct mnl_socket *, void *, size_t) =
		(__typeof__(real))dlsym(RTLD_NEXT, "mnl_socket_recvfrom");
	const ssize_t received = real(socket, buffer, bytes);
	int left = received;

	for (struct nlmsghdr *message = buffer; received > 0 && mnl_nlmsg_ok(message, left);
	     message = mnl_nlmsg_next(message, &left)) {
		const struct nlattr *attribute;
		struct rtnl_link_stats64 *counts = NULL;
		const char *name = "";
		const __u64 lost = losses();

		if (message->nlmsg_type != RTM_NEWLINK)
			continue;
		mnl_attr_for_each(attribute, message, sizeof(struct ifinfomsg)) {
			if (mnl_attr_get_type(attribute) == IFLA_IFNAME)
				name = mnl_attr_get_payload(attribute);
			else if (mnl_attr_get_type(attribute) == IFLA_STATS64)
				counts = mnl_attr_get_payload(attribute);
		}
		if (counts && !strcmp(name, getenv("LOSSY_CARD")))
			memcpy((char *)counts + offsetof(struct rtnl_link_stats64, rx_missed_errors), &lost,
			       sizeof(lost));
	}
	return received;
}
