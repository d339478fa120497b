// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "metrics/http_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernel/interfaces.h"

#define WAITING 64 /* connections that are not accepted yet */
#define HOST_BYTES (INET6_ADDRSTRLEN + 1 + INTERFACE_NAME_BYTES)

static int parse_port(const char *text, in_port_t *port)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);

	*port = htons(number);
	return *text >= '0' && *text <= '9' && !*end && number >= 1 && number <= 65535 ? 0 : -EINVAL;
}

int http_address_parse(const char *text, struct http_address *address)
{
	const char *colon = strrchr(text, ':');
	const bool is_v6 = *text == '[' && colon > text && colon[-1] == ']';
	const size_t length = colon ? colon - text - 2 * is_v6 : 0;
	struct interface interface;
	char host[HOST_BYTES], *zone;

	*address = (struct http_address){};
	if (!length || length >= sizeof(host))
		return -EINVAL;
	snprintf(host, sizeof(host), "%.*s", (int)length, text + is_v6);
	if (!is_v6) {
		address->v4.sin_family = AF_INET;
		address->bytes = sizeof(address->v4);
		return inet_pton(AF_INET, host, &address->v4.sin_addr) == 1 ?
			       parse_port(colon + 1, &address->v4.sin_port) :
			       -EINVAL;
	}
	zone = strchr(host, '%'); /* for example %eth0 */
	if (zone) {
		*zone++ = '\0';
		if (interfaces_find(zone, &interface))
			return -EINVAL;
		address->v6.sin6_scope_id = interface.index;
	}
	address->v6.sin6_family = AF_INET6;
	address->bytes = sizeof(address->v6);
	return inet_pton(AF_INET6, host, &address->v6.sin6_addr) == 1 ? parse_port(colon + 1, &address->v6.sin6_port) :
									-EINVAL;
}

bool http_address_is_loopback(const struct http_address *address)
{
	if (address->any.sa_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&address->v6.sin6_addr);
	return ntohl(address->v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

int http_address_listen(const struct http_address *address)
{
	const int yes = 1, no = 0;
	const int fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int error;

	if (fd < 0)
		return -errno;
	/* With SO_REUSEADDR a restarted server gets the address at once. Without V6ONLY, [::] includes IPv4. */
	if (!setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) &&
	    (address->any.sa_family != AF_INET6 || !setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no))) &&
	    !bind(fd, &address->any, address->bytes) && !listen(fd, WAITING))
		return fd;
	error = -errno;
	close(fd);
	return error;
}
