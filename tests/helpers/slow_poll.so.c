// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Preloaded: makes poll() of two files return 15 ms late, as on a busy machine: meanwhile more input comes. */
#include <dlfcn.h>
#include <poll.h>
#include <unistd.h>

int poll(struct pollfd *files, nfds_t count, int timeout_ms)
{
	int (*real)(struct pollfd *, nfds_t, int) = (int (*)(struct pollfd *, nfds_t, int))dlsym(RTLD_NEXT, "poll");
	const int got = real(files, count, timeout_ms);

	if (count == 2)
		usleep(15000);
	return got;
}
