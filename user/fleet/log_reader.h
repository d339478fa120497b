/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The half of a follower that talks to the broker: reads the logs of its lists, finds out when a log does not go on
 * where the host is, and then reads the whole list. Changes nothing on the host; it runs in a process of its own without
 * privileges, and sends what it reads as messages.
 */
#ifndef XDP_CUCKOO_LOG_READER_H
#define XDP_CUCKOO_LOG_READER_H

#include "fleet/broker.h"
#include "fleet/follow_messages.h"

struct log_reader_list {
	char name[ABI_NAME_BYTES];
	struct fleet_position at; /* what the host has; 0-0: nothing */
	bool is_incomplete;       /* the host left out rules that it no longer knows */
};

struct log_reader_start {
	const struct fleet_options *options;
	const struct broker_secrets *secrets;
	const char *fleet;
	struct log_reader_list lists[FOLLOW_LISTS_MAX];
	size_t count;
	bool is_accepted; /* follow lists that are gone, too: the host's become empty */
	bool is_once;     /* look often whether all is level */
};

/* Reads until the other end of `fd` is closed. */
void log_reader_run(const struct log_reader_start *start, int fd);

#endif
