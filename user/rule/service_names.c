// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Ports by the names in /etc/services. The file is read directly, because getservbyname() may ask the network, and once
 * for each process, because a list may have a name, or a word that is none, in each line.
 */
#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rule/rule.h"
#include "base/memory.h"

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

/* Without memory the name is not known. */
static void add_service(const char *name, __u16 port)
{
	const size_t count = services.count;

	if (array_grow(&services.service, count, sizeof(*services.service)))
		return;
	services.service[count] = (struct service){ strdup(name), count, port };
	services.count += services.service[count].name != NULL;
}

static int compare_services(const void *a, const void *b)
{
	const struct service *one = a, *other = b;
	const int names = strcasecmp(one->name, other->name);

	return names ? names : one->order < other->order ? -1 : 1;
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
		for (; name; name = strtok_r(NULL, " \t", &rest))
			add_service(name, port);
	}
	if (file)
		fclose(file);
	if (services.count)
		qsort(services.service, services.count, sizeof(*services.service), compare_services);
}

int rule_service_port(const char *name, __u16 *port)
{
	size_t from = 0, to;

	if (!isalpha((unsigned char)*name))
		return -ENOENT;
	pthread_once(&services.once, read_services);
	/* The first service whose name is not before this one. */
	for (to = services.count; from < to;) {
		const size_t middle = from + (to - from) / 2;

		if (strcasecmp(services.service[middle].name, name) < 0)
			from = middle + 1;
		else
			to = middle;
	}
	if (from == services.count || strcasecmp(services.service[from].name, name))
		return -ENOENT;
	*port = services.service[from].port;
	return 0;
}
