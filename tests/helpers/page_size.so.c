// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Preloaded: the memory pages of the machine have PAGE_BYTES bytes, for whoever asks. So LMDB makes its files. */
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

long sysconf(int name)
{
	long (*next)(int) = (long (*)(int))dlsym(RTLD_NEXT, "sysconf");
	const char *bytes = getenv("PAGE_BYTES");

	return name == _SC_PAGESIZE && bytes ? atol(bytes) : next(name);
}

int getpagesize(void)
{
	return (int)sysconf(_SC_PAGESIZE);
}
