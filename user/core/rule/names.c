// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * IP protocols by name and by number, and ports by the names in /etc/services. That file is read directly, because
 * getservbyname() may ask the network, and once for each process, because a list may have a name, or a word that is none,
 * in each line.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "rule/internal.h"

static const struct {
	const char *name;
	__u8 number;
} protocols[] = {
	/* Of several names for one number, the first is the canonical one. */
	{ "tcp", IPPROTO_TCP },         { "udp", IPPROTO_UDP },
	{ "icmp", IPPROTO_ICMP },       { "ipv6-icmp", IPPROTO_ICMPV6 },
	{ "icmpv6", IPPROTO_ICMPV6 },   { "icmp6", IPPROTO_ICMPV6 },
	{ "udplite", IPPROTO_UDPLITE }, { "sctp", IPPROTO_SCTP },
	{ "dccp", IPPROTO_DCCP },       { "igmp", IPPROTO_IGMP },
	{ "ipip", IPPROTO_IPIP },       { "ipv6", IPPROTO_IPV6 },
	{ "gre", IPPROTO_GRE },         { "esp", IPPROTO_ESP },
	{ "ah", IPPROTO_AH },           { "ospf", 89 },
	{ "pim", IPPROTO_PIM },         { "vrrp", 112 },
};

#define PROTOCOLS (sizeof(protocols) / sizeof(protocols[0]))

bool rule_has_leading_zero(const char *number)
{
	return number[0] == '0' && number[1] >= '0' && number[1] <= '9';
}

int rule_number_parse(const char *text, unsigned long max, unsigned long *number)
{
	char *end;

	if (!isdigit((unsigned char)*text) || rule_has_leading_zero(text))
		return -EINVAL;
	errno = 0;
	*number = strtoul(text, &end, 10);
	return *end || errno || *number > max ? -EINVAL : 0;
}

bool rule_protocol_number(const char *word, __u8 *number)
{
	unsigned long value;

	for (size_t i = 0; i < PROTOCOLS && !isdigit((unsigned char)*word); i++)
		if (!strcasecmp(protocols[i].name, word)) {
			*number = protocols[i].number;
			return true;
		}
	if (rule_number_parse(word, RULE_PROTO_MAX, &value))
		return false;
	*number = value;
	return true;
}

const char *rule_protocol_name(__u8 number)
{
	for (size_t i = 0; i < PROTOCOLS; i++)
		if (protocols[i].number == number)
			return protocols[i].name;
	return NULL;
}

bool rule_has_ports(__u8 proto)
{
	return proto == IPPROTO_TCP || proto == IPPROTO_UDP || proto == IPPROTO_UDPLITE || proto == IPPROTO_SCTP ||
	       proto == IPPROTO_DCCP;
}

bool rule_is_icmp(const struct rule *rule)
{
	return rule->fields & RULE_PROTO && (rule->proto == IPPROTO_ICMP || rule->proto == IPPROTO_ICMPV6);
}

/* ---- services ---- */

#define SERVICES "/etc/services"

struct service {
	__u16 port; /* 0: protocols have different ones */
	__u8 proto; /* 0: any */
	const char *name;
	char copy[]; /* that `name` points to, except in a service to search */
};

static pthread_once_t services_once = PTHREAD_ONCE_INIT;
static void *services; /* a tree: see tsearch(3) */

static int compare_services(const void *a, const void *b)
{
	const struct service *x = a, *y = b;

	return x->proto != y->proto ? x->proto - y->proto : strcasecmp(x->name, y->name);
}

/* The first port of a name and a protocol counts. Without memory the name is not known. */
static void add_service(const char *name, __u8 proto, __u16 port)
{
	struct service *service = malloc(sizeof(*service) + strlen(name) + 1), **found = NULL;

	if (service) {
		service->port = port;
		service->proto = proto;
		service->name = strcpy(service->copy, name);
		found = tsearch(service, &services, compare_services);
	}
	if (found && !proto && (*found)->port != port)
		(*found)->port = 0;
	if (!found || *found != service)
		free(service);
}

static void read_services(void)
{
	FILE_CLOSED FILE *file = fopen(SERVICES, "re");
	FREED char *line = NULL;
	size_t room = 0;

	/* "https  443/tcp  alias ...  # comment" */
	while (file && getline(&line, &room, file) > 0) {
		char *rest = NULL, *name, *number, protocol[16];
		unsigned int port;
		__u8 proto;

		line[strcspn(line, "#\n")] = '\0';
		name = strtok_r(line, " \t", &rest);
		number = strtok_r(NULL, " \t", &rest);
		if (!number || sscanf(number, "%u/%15s", &port, protocol) != 2 || port > 65535 ||
		    !rule_protocol_number(protocol, &proto) || !rule_has_ports(proto))
			continue;
		for (; name; name = strtok_r(NULL, " \t", &rest)) {
			add_service(name, proto, port);
			add_service(name, 0, port);
		}
	}
}

bool rule_service_port(const char *name, __u8 proto, __u16 *port)
{
	const struct service wanted = { .name = name, .proto = proto }, *const * found;

	if (!isalpha((unsigned char)*name))
		return false;
	pthread_once(&services_once, read_services);
	found = tfind(&wanted, &services, compare_services);
	if (found)
		*port = (*found)->port;
	return found && *port;
}
