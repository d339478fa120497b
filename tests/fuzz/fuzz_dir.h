/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The store of a fuzz target: its directory, one a process, without a store to begin with. */
#ifndef XDP_CUCKOO_TESTS_FUZZ_DIR_H
#define XDP_CUCKOO_TESTS_FUZZ_DIR_H

#include "fuzz.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

static char fuzz_dir[256];

/* fuzz_make_dir() has been called. */
static inline void fuzz_remove_store(void)
{
	static const char *const names[] = { "data.mdb", "lock.mdb", "writer.lock" };
	char path[sizeof(fuzz_dir) + 16];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", fuzz_dir, names[i]);
		unlink(path);
	}
}

/* Where TMPDIR says: an input takes several syncs, and a target that is killed leaves it behind. */
static inline void fuzz_make_dir(void)
{
	const char *top = getenv("TMPDIR");

	if (!*fuzz_dir)
		snprintf(fuzz_dir, sizeof(fuzz_dir), "%s/xdp-cuckoo-fuzz.%d", top ? top : "/tmp", getpid());
	fuzz_check(!mkdir(fuzz_dir, 0700) || errno == EEXIST, "%s: %s", fuzz_dir, strerror(errno));
	fuzz_remove_store();
}

static inline void fuzz_remove_dir(void)
{
	fuzz_remove_store();
	rmdir(fuzz_dir);
}

#endif
