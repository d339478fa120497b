/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a host reports: the hash host:HOST, and for each list the host's place in the sorted sets L:LIST:hosts and
 * L:LIST:refused, by which `publish --wait` counts hosts.  *
 * Thousands of hosts must not keep the broker busy with reports. So a report is sent only if it says something new, and
 * at most once in REPORT_MS, or more rarely if hosts are many. After a pause, three may follow each other. If a
 * publisher waits for a report, it is sent at once.
 */
#ifndef XDP_CUCKOO_REPORT_H
#define XDP_CUCKOO_REPORT_H

#include "fleet/broker.h"

#define REPORT_MS 1000
#define REPORT_BYTES 16384

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

#endif
