// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Ports by the names in /etc/services. The file is read directly: getservbyname() may ask the network. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "rule/rule.h"

#define SERVICES "/etc/services"
#define LINE_BYTES 512

int rule_service_port(const char *name, __u16 *port)
{
	char line[LINE_BYTES];
	FILE *file;
	bool found = false;

	if (!isalpha((unsigned char)*name))
		return -ENOENT;
	file = fopen(SERVICES, "re");
	/* "https  443/tcp  alias ...  # comment" */
	while (file && !found && fgets(line, sizeof(line), file)) {
		char *rest = NULL, *known, *number;

		line[strcspn(line, "#\n")] = '\0';
		known = strtok_r(line, " \t", &rest);
		number = strtok_r(NULL, " \t", &rest);
		if (!number || sscanf(number, "%hu/", port) != 1)
			continue;
		for (; known && !found; known = strtok_r(NULL, " \t", &rest))
			found = !strcasecmp(known, name);
	}
	if (file)
		fclose(file);
	return found ? 0 : -ENOENT;
}
