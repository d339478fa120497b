/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reads the address and port where a server listens, and makes the TCP socket for them. */
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

/* Reads 192.0.2.1:9917, [2001:db8::1]:9917 or [fe80::1%eth0]:9917, but no host names. 0; -EINVAL. */
int http_address_parse(const char *text, struct http_address *address);

/* Whether only processes of this host can connect. */
bool http_address_is_loopback(const struct http_address *address);

/* Returns a listening, non-blocking socket, or -errno. [::] means all addresses, of IPv4 too. */
int http_address_listen(const struct http_address *address);

#endif
