// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "base/available_memory.h"

#include <errno.h>
#include <stdio.h>

__u64 memory_available_kib(void)
{
	unsigned long long available_kib = 0;
	FILE *file = fopen("/proc/meminfo", "re");
	char line[128];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "MemAvailable: %llu kB", &available_kib) == 1)
			break;
	if (file)
		fclose(file);
	return available_kib;
}

int memory_check(__u64 bytes, const char *what, const char *advice, struct reason *reason)
{
	const __u64 available_kib = memory_available_kib();

	if (!available_kib || bytes / 1024 < available_kib)
		return 0;
	return reason_set(reason, -ENOMEM, "%s needs %llu MiB and %llu MiB are available; %s", what,
			  (unsigned long long)(bytes + (1 << 20) - 1) >> 20, (unsigned long long)available_kib >> 10,
			  advice);
}
