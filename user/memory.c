// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "memory.h"

#include <errno.h>
#include <stdio.h>

int memory_check(__u64 bytes, const char *what, const char *advice, struct reason *reason)
{
	unsigned long long available_kb = 0;
	FILE *file = fopen("/proc/meminfo", "re");
	char line[128];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "MemAvailable: %llu kB", &available_kb) == 1)
			break;
	if (file)
		fclose(file);
	if (!available_kb || bytes / 1024 < available_kb)
		return 0;
	return reason_set(reason, -ENOMEM, "%s needs %llu MiB and %llu MiB are available; %s", what,
			  (unsigned long long)bytes >> 20, available_kb >> 10, advice);
}
