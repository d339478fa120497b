/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of the log reader share; nobody else includes it. */
#ifndef XDP_CUCKOO_LOG_READER_INTERNAL_H
#define XDP_CUCKOO_LOG_READER_INTERNAL_H

#include "fleet/log_reader.h"
#include "fleet/report.h"
#include "fleet/snapshot.h"

#define LINES_BYTES 60000 /* of a message with lines of a state */

struct list {
	const char *name;
	struct fleet_position at;        /* sent to the applier */
	struct fleet_position committed; /* applied */
	struct fleet_position seen;      /* `at` when the log was last seen to have more */
	bool was_read;                   /* the log was read since then */
	enum follow_state state;
	bool must_resync;
	bool was_resynced;   /* since the last flush */
	__s64 wait_until_ms; /* the list is not read before */
	bool is_refused;     /* the applier did not apply what was sent last */
	bool is_accepted;    /* a publisher has accepted that it deletes many rules */

	/* A whole state that the applier did not apply is read again after a pause, which grows. */
	__s64 pause_ms;                 /* the last one; 0: the last state was applied */
	struct list_head head, refused; /* of the broker: when it was last seen; when that state was read */
};

struct log_reader {
	const struct log_reader_start *start;
	int fd;
	struct broker broker;
	struct list lists[FOLLOW_LISTS_MAX];
	size_t count;
	char ctl_last[FLEET_POSITION_BYTES]; /* the last entry read of ctl */
	__s64 checked_ms, clock_ms, panic_ms;
	__s64 next_read_ms; /* the logs are not read before: see log_read_streams() */
	__s64 stopped_ms;   /* since when the applier follows only panic; 0: it follows all */
	bool is_awaited;    /* a publisher waits for the report of what was read */
	struct report report;
	char text[FOLLOW_BYTES_MAX + 1]; /* the last message of the applier */
	char lines[LINES_BYTES + 4096];
	size_t lines_bytes;
	__u32 lines_of;
};

/*
 * Messages to the applier: about a list; about all lists; how the reader sees a list whose log ends with `last`.
 * 0; -ECANCELED: the applier is gone, and this process ends.
 */
int log_tell_list(struct log_reader *reader, enum follow_kind kind, size_t list, __s64 number, const char *text,
		  size_t bytes);
int log_tell(struct log_reader *reader, enum follow_kind kind, __s64 number, const char *text);
int log_tell_state(struct log_reader *reader, size_t i, struct fleet_position last);

/* Plans to read the whole list. If history was lost, a publisher gets time to send it again. */
void log_plan_resync(struct log_reader *reader, struct list *list, enum follow_state why);

/* Waits for new entries of the logs, and sends them. 0; -errno with the reason: this broker is followed no more. */
int log_read_streams(struct log_reader *reader, struct reason *reason);

#endif
