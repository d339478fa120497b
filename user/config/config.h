/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A configuration file: what a filter is to be like, in the words of the command line's options. Reads and checks;
 * brings nothing about. The syntax is that of xdp-cuckoo.conf(5).
 */
#ifndef XDP_CUCKOO_CONFIG_H
#define XDP_CUCKOO_CONFIG_H

#include "commands/command.h"
#include "lists/import.h"

#define CONFIG_DIR "/etc/xdp-cuckoo"
#define CONFIG_INTERFACES_MAX 64

struct config_list {
	struct import_options import;
	char *name, *file, *format;
	unsigned int line; /* where its section starts */
};

struct config {
	struct invocation load; /* as `load` would be called: mode, capacity, table */
	bool has_monitor_only;  /* it says whether load.is_monitor_only */
	bool detaches_on_stop;
	__s64 wait_ms; /* for interfaces that are not there yet */
	char *interfaces[CONFIG_INTERFACES_MAX];
	size_t interfaces_count;
	__u8 policy[OUTCOME_POLICIES]; /* enum abi_verdict, where has_policy */
	bool has_policy[OUTCOME_POLICIES];
	bool is_forced; /* policies that may lock this host out are meant */
	struct config_list list[STORE_LISTS_MAX];
	size_t lists_count;
};

/*
 * Reads the file at `path`. Each thing that is wrong with it is told to `refuse`, in one line with file and line: then
 * -EINVAL. -EPERM: others may write to it; other -errno, with the reason. The invocations have name and state of
 * `invocation`. config_close() accepts a zeroed one, and what failed to open.
 */
int config_open(struct config *config, const char *path, const struct invocation *invocation,
		void (*refuse)(const char *text), struct reason *reason);
void config_close(struct config *config);

#endif
