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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rule/internal.h"
#include "base/memory.h"

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

	for (size_t i = 0; i < PROTOCOLS; i++)
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
#define LINE_BYTES 512

struct service {
	char *name;
	size_t order; /* in the file: the first port of a name counts */
	__u16 port;
};

static struct {
	pthread_once_t once;
	struct service *service; /* sorted by name */
	size_t count;
} services = { .once = PTHREAD_ONCE_INIT };

static int compare_names(const void *a, const void *b)
{
	return strcasecmp(((const struct service *)a)->name, ((const struct service *)b)->name);
}

static int compare_services(const void *a, const void *b)
{
	const int names = compare_names(a, b);

	return names ? names : ((const struct service *)a)->order < ((const struct service *)b)->order ? -1 : 1;
}

static void read_services(void)
{
	char line[LINE_BYTES];
	FILE *file = fopen(SERVICES, "re");

	/* "https  443/tcp  alias ...  # comment" */
	while (file && fgets(line, sizeof(line), file)) {
		char *rest = NULL, *name, *number;
		__u16 port;

		line[strcspn(line, "#\n")] = '\0';
		name = strtok_r(line, " \t", &rest);
		number = strtok_r(NULL, " \t", &rest);
		if (!number || sscanf(number, "%hu/", &port) != 1)
			continue;
		/* Without memory the name is not known. */
		for (; name; name = strtok_r(NULL, " \t", &rest)) {
			const size_t count = services.count;

			if (array_grow(&services.service, count, sizeof(*services.service)))
				break;
			services.service[count] = (struct service){ strdup(name), count, port };
			services.count += services.service[count].name != NULL;
		}
	}
	if (file)
		fclose(file);
	if (services.count)
		qsort(services.service, services.count, sizeof(*services.service), compare_services);
}

bool rule_service_port(const char *name, __u16 *port)
{
	const struct service wanted = { .name = (char *)name }, *found = NULL;

	if (!isalpha((unsigned char)*name))
		return false;
	pthread_once(&services.once, read_services);
	if (services.count)
		found = bsearch(&wanted, services.service, services.count, sizeof(wanted), compare_names);
	if (!found)
		return false;
	while (found > services.service && !compare_names(found - 1, &wanted))
		found--;
	*port = found->port;
	return true;
}
