/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Keeps a named list equal to what a reader finds elsewhere. The reader runs in a process without privileges, and is not
 * trusted: a rule is added only if it has a timeout, the keeper's action, and may_add() allows it. The lines of the reader:
 *
 *   add RULE timeout TIME	the list has the rule, until then
 *   del RULE			the list has it no more
 *   # all			the lines `add` up to the line `# end` are the whole list. It replaces the present one.
 *   # end
 *   # servers ADDRESS PORT ...	which feed the list: see list_keeper_note_servers(); before a status
 *   # counts			asks the keeper to answer: see struct list_keeper
 *   #:...			of a report on flows, up to "#:end": see lists/flow_report.h
 *   # ...			for take_status(); it also shows that the reader is alive
 *
 * After a change that failed, or left out a line for want of room, and after another command has changed the list, the
 * keeper sends the byte KEEPER_WANTS_ALL: only the whole list is sure to be right. While that fails,
 * it sends the byte again after longer and longer pauses, or when there may be room again.
 */
#ifndef XDP_CUCKOO_LIST_KEEPER_H
#define XDP_CUCKOO_LIST_KEEPER_H

#include "base/error_reason.h"
#include "change/change.h"

#define KEEPER_WANTS_ALL '!'
#define KEEPER_SERVERS "# servers "

struct list_keeper {
	const char *state, *name; /* of the filter: see session_open() */
	const char *list;
	const char *source; /* of the list, before the first status */
	const char *reader; /* for messages: "the reader of flows" */
	void (*note)(const char *text);
	/* The reader, in the form of unprivileged_start(); with `memory` bytes, it writes its lines to `out`. */
	void (*read)(const void *context, int out);
	const void *context; /* of these functions */
	size_t memory;
	__u64 rules_max;     /* of a whole list; 0: the reader sends none */
	size_t report_bytes; /* of a report at most; 0: the reader sends none */
	enum rule_action action;
	__s64 stale_ms; /* the list counts as not fed after so long without a status */
	bool (*may_add)(const void *context, const struct rule *rule);
	/* Writes the source of the list. False: the line is no status. */
	bool (*take_status)(const char *line, char source[STORE_SOURCE_BYTES]);
	/* Answers `# counts`. NULL: the reader does not ask. */
	void (*answer)(const struct list_keeper *keeper, struct session *session, int to);
};

/* Runs until the reader ends, or until SIGINT or SIGTERM. 0: a signal; -ENODATA: the reader has ended; other -errno. */
int list_keeper_run(const struct list_keeper *keeper, struct reason *reason);

/*
 * Notes which servers feed the list, for the guard: "ADDRESS PORT ADDRESS PORT ...", as they were asked last. `dir`: of the
 * store, below `state` of guard_open(). 0; -errno.
 */
int list_keeper_note_servers(const char *dir, const char *list, const char *servers);

#endif
