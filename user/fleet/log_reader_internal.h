/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of the log reader share; nobody else includes it. */
#ifndef XDP_CUCKOO_LOG_READER_INTERNAL_H
#define XDP_CUCKOO_LOG_READER_INTERNAL_H

#include "fleet/follow_internal.h"
#include "fleet/snapshot.h"

/*
 * ---- report.c ----
 *
 * What a host reports: the hash host:HOST, and for each list the host's place in the sorted sets L:LIST:hosts and
 * L:LIST:refused, by which `publish --wait` counts hosts.
 *
 * Thousands of hosts must not keep the broker busy with reports. So a report is sent only if it says something new, and
 * at most once in REPORT_MS, or more rarely if hosts are many. After a pause, three may follow each other. If a
 * publisher waits for a report, it is sent at once.
 */

#define REPORT_MS 1000

struct report {
	char sent[REPORT_BYTES]; /* the last report; "": none yet by this connection */
	__s64 sent_ms, counted_ms;
	__s64 credit_ms, credited_ms; /* of time; each report takes a part of it */
	__s64 due_ms;                 /* a report waits until then; 0: none */
	__u64 hosts;                  /* that report on the same list */
	char run[17];                 /* a random name of this process */
	unsigned int others; /* looks in a row at which another process had reported by the name of this host */
	bool is_refused;     /* and this was noted */
	struct reason noted; /* what the log of this host should say; "": nothing */
};

/* Call it for each new connection to a broker. */
void report_begin(struct report *report);

/*
 * Sends the report if it is due. `lines`: `FIELD VALUE` lines of the host's status; those from "seen" on change all the
 * time. 0, also if the report is refused; -errno: the connection of `broker` is lost.
 */
int report_send(struct report *report, struct broker *broker, const struct fleet_options *options, const char *fleet,
		char *lines, bool is_awaited, struct reason *reason);

/* ---- reader_process.c, read_logs.c ---- */

#define LINES_BYTES 60000 /* of a message with lines of a state */

/* log_list.c explains plan, pause and skip. */
struct list {
	const char *name;
	struct fleet_position at;        /* sent to the applier */
	struct fleet_position committed; /* applied */
	struct fleet_position behind_at; /* `at` when the log was last found to have more; 0-0: it had not */
	struct fleet_position skip;
	enum follow_state state; /* what the applier is told */
	enum follow_state plan;
	enum follow_state sent; /* the plan of the whole list that was sent since the last flush; FOLLOW_LEVEL: none */
	bool is_incomplete; /* the host has left out rules that it no longer knows: once level, read the whole list */
	bool is_broken;     /* what the broker has of it could not be read the last time */
	bool is_suspect;    /* its log made a reading of many logs fail, perhaps: it is read alone */
	bool is_refused;    /* the applier did not apply what was sent last */
	bool is_accepted;   /* a publisher has accepted that it deletes many rules */
	__s64 due_ms;       /* the list is not read before */
	__s64 pause_ms;     /* the last pause; 0: there was progress since */
	struct list_head head;    /* at the broker */
	struct list_head refused; /* `head` of what the applier has refused; 0-0: nothing */
};

struct log_reader {
	const struct log_reader_start *start;
	int fd;
	struct broker broker;
	struct list lists[FOLLOW_LISTS_MAX];
	size_t count;
	char ctl_last[FLEET_POSITION_BYTES]; /* the last entry read of ctl, by which the fleet's panic comes */
	bool is_ctl_suspect;                 /* the last reading of many logs, which has ctl, too, has failed */
	__s64 checked_ms, clock_ms, panic_ms;
	__s64 next_read_ms; /* the logs are not read before: see log_read_streams() */
	__s64 stopped_ms;   /* since when the applier follows only panic; 0: it follows all */
	size_t pending, deleted; /* lines that were sent since the last flush; those of them that delete a rule */
	__s64 first_ms;          /* when the first of them was sent */
	__s64 settled_ms;        /* they are not flushed before: more deletions may come; see note_lines() */
	bool has_accept; /* ctl says that a publisher has accepted something */
	bool is_awaited;    /* a publisher waits for the report of what was read */
	bool has_progress;  /* this connection has served */
	struct report report;
	char text[FOLLOW_BYTES_MAX + 1]; /* the last message of the applier */
	char lines[LINES_BYTES + 4096];
	size_t lines_bytes, lines_count; /* in `lines`; of the list that is being read */
	__u32 lines_of;
};

/* Whether the reader goes on with this broker. An error of one list is no end: log_fail() notes it. */
enum log_end {
	LOG_GOES_ON,
	LOG_LOST,       /* this broker is followed no more; the reason says why */
	LOG_ELSEWHERE,  /* the applier does not follow this broker; another one may be better */
	LOG_NO_APPLIER, /* the other process has ended, and so does this one */
};

/*
 * Sends the applier a message; `bytes` 0: the whole text. log_tell_state(): the state of a list whose log ends with
 * `last`. LOG_GOES_ON; LOG_NO_APPLIER.
 */
enum log_end log_tell(struct log_reader *reader, struct follow_message message, const char *text);
enum log_end log_tell_state(struct log_reader *reader, size_t i, struct fleet_position last, const char *text);

/* The list cannot be read now: tells the applier, and pauses the list. Results as above. */
enum log_end log_fail(struct log_reader *reader, size_t i, const char *why);

/* Waits for new entries of the logs if it may, and sends them. */
enum log_end log_read_streams(struct log_reader *reader, bool may_wait, struct reason *reason);

/* ---- log_list.c ---- */

/* Plans to read the whole list. If history was lost, a publisher gets time to send it again. */
void log_list_plan(struct log_reader *reader, struct list *list, enum follow_state why);

/* After a failure. */
void log_list_pause(struct log_reader *reader, struct list *list);

/* Whether the list has no pause, and the applier follows the lists of this broker. */
bool log_list_is_readable(const struct log_reader *reader, const struct list *list);

/* Decides by the end of the broker's log how the list is read. */
void log_list_judge(struct log_reader *reader, struct list *list, const struct list_head *head);

/* Whether the host's list becomes empty if the broker no longer has it. */
bool log_list_may_be_wiped(const struct log_reader *reader, const struct list *list);

/* The applier has applied, or refused, what was sent since the last flush. */
void log_list_applied(struct list *list);
void log_list_refused(struct log_reader *reader, struct list *list);

#endif
