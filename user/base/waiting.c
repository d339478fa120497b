// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "base/waiting.h"

#include <errno.h>
#include <stddef.h>

static const struct waiting_watcher *watcher;
static const char *name;

void waiting_watch(const struct waiting_watcher *new)
{
	watcher = new;
}

void waiting_begin(waiting_describe describe, int fd)
{
	if (watcher)
		watcher->begin(describe, fd);
}

void waiting_end(void)
{
	if (watcher)
		watcher->end();
}

void waiting_be_called(const char *what)
{
	name = what;
}

const char *waiting_name(void)
{
	return name ? name : program_invocation_short_name;
}
