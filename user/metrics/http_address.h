/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where a server listens: an address and a port as an operator writes them, and the TCP socket for it. */
#ifndef XDP_CUCKOO_HTTP_ADDRESS_H
#define XDP_CUCKOO_HTTP_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>

struct http_address {
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	};
	socklen_t bytes;
};

/* Reads 192.0.2.1:9917 or [2001:db8::1]:9917, [fe80::1%eth0]:9917 too; no names of hosts. 0; -EINVAL. */
int http_address_parse(const char *text, struct http_address *address);

/* Whether only processes of this host reach it. */
bool http_address_is_loopback(const struct http_address *address);

/* A socket that listens and does not block. [::] is all addresses, of IPv4 too. -errno. */
int http_address_listen(const struct http_address *address);

#endif
