// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Preloaded: once the file SHORT_FILE is there, realloc() has no memory for a new block. It takes the file away: once. */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

void *realloc(void *block, size_t size)
{
	void *(*real)(void *, size_t) = (void *(*)(void *, size_t))dlsym(RTLD_NEXT, "realloc");
	const char *file = getenv("SHORT_FILE");
	const int before = errno;

	if (!block && file && !unlink(file)) {
		errno = ENOMEM;
		return NULL;
	}
	errno = before;
	return real(block, size);
}
