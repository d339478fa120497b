// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "base/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

__u64 memory_available_kib(void)
{
	unsigned long long available_kib = 0;
	FILE_CLOSED FILE *file = fopen("/proc/meminfo", "re");
	char line[128];

	while (file && fgets(line, sizeof(line), file) && sscanf(line, "MemAvailable: %llu kB", &available_kib) != 1)
		;
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

int array_grow(void *array, size_t count, size_t each)
{
	void *grown;

	/* A room of 1, 2, 4, ... elements is full. */
	if (count & (count - 1))
		return 0;
	memcpy(&grown, array, sizeof(grown));
	/* cppcheck-suppress memleakOnRealloc ; `array` still holds the old pointer */
	grown = reallocarray(grown, count ? 2 * count : 1, each);
	if (!grown)
		return -ENOMEM;
	memcpy(array, &grown, sizeof(grown));
	return 0;
}

void memory_free(void *variable)
{
	void *memory;

	memcpy(&memory, variable, sizeof(memory));
	free(memory);
}

void memory_close_fd(const int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

void memory_close_file(FILE **file)
{
	if (*file)
		fclose(*file);
}

int random_draw(void *bytes, size_t count)
{
	/* getrandom() may return after 256 bytes. */
	for (size_t done = 0; done < count;) {
		const ssize_t drawn = getrandom((char *)bytes + done, count - done, 0);

		if (drawn < 0 && errno != EINTR)
			return -errno;
		done += drawn > 0 ? drawn : 0;
	}
	return 0;
}
