/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the files of `follow` share: the two processes, what they say to each other, and this host.
 *
 * The reader talks to the broker and has no privileges; the applier has them, and changes store and filters. The applier
 * trusts no message: it checks every rule and length. The reader sends what it has read, then FOLLOW_FLUSH, and waits for
 * the answer.
 */
#ifndef XDP_CUCKOO_FOLLOW_INTERNAL_H
#define XDP_CUCKOO_FOLLOW_INTERNAL_H

#include "fleet/broker.h"
#include "base/unprivileged.h"
#include "kernel/kernel.h"

#define FOLLOW_LISTS_MAX (2 * FLEET_LISTS_MAX) /* with the staged ones */
#define FOLLOW_BYTES_MAX (128 << 10)
#define REPORT_BYTES 16384 /* of the lines of the host's status */
#define FOLLOW_SHRINK_MIN 100 /* deleted rules that are never too many for changes by the log */
#define FOLLOW_LINES_MORE (128 * FLEET_ENTRY_LINES) /* that may come between two flushes besides max-rules */

enum follow_kind {
	/* from the reader */
	FOLLOW_HELLO,     /* text: the id of the broker's fleet, "" if there is none; number: its format */
	FOLLOW_CLOCK,     /* number: the broker's clock minus fleet_now_ms() */
	FOLLOW_PANIC,     /* number: 1: on */
	FOLLOW_ENTRY,     /* list, at; text: lines */
	FOLLOW_SNAPSHOT,  /* list: a new state begins; text: why; number: 1: of an older epoch than the host's */
	FOLLOW_LINES,     /* list; text: lines of that state */
	FOLLOW_END,       /* list, at: the state is complete */
	FOLLOW_STATE,     /* list, at: the end of the broker's log; number: enum follow_state; text: more about it */
	FOLLOW_ACCEPT,    /* list; number: until this time of the broker, the list may delete any number of rules */
	FOLLOW_CONNECTED, /* text: where */
	FOLLOW_LOST,      /* text: why there is no connection */
	FOLLOW_NOTE,      /* text: for the log of this host */
	FOLLOW_FLUSH,     /* apply all of it, then answer */
	/* from the applier */
	FOLLOW_DONE, /* number: lists that were not applied, as bits; text: `FIELD VALUE` lines of the host's status */
	FOLLOW_STOP, /* this broker must not be followed now; the reader tries again later */
};

/* What a list is in. */
enum follow_state {
	FOLLOW_LEVEL,
	FOLLOW_BEHIND,
	FOLLOW_LAGGING,
	FOLLOW_RESTORED,
	FOLLOW_WIPED, /* the order until here is that of enum log_head */
	FOLLOW_GAP,
	FOLLOW_DIVERGED,
	FOLLOW_OLDER,     /* the broker went on from an epoch before the host's, as after the restore of a backup */
	FOLLOW_LEAVING,   /* the broker no longer has it, and the host may delete it */
	FOLLOW_NEW,       /* never read before, or not all of its refused rules are known */
	FOLLOW_BROKEN,    /* what the broker has of it cannot be read */
	FOLLOW_OF_READER, /* the others only the applier finds: */
	FOLLOW_HELD = FOLLOW_OF_READER, /* a resync was refused: it would drop too much */
	FOLLOW_TAKEN,                   /* the store has a list of this name that is not from the fleet */
	FOLLOW_MISSING,                 /* neither the broker nor the host has it */
	FOLLOW_UNHEARD,                 /* the reader has not told its state yet */
	FOLLOW_STATES
};

struct follow_message {
	__u32 kind, list;
	__u32 bytes; /* of the text that follows, without a final 0 */
	__u32 unused;
	struct fleet_position at;
	__s64 number;
};

/* As unprivileged_receive(). `text` has room for FOLLOW_BYTES_MAX + 1 bytes and gets a final 0. -EPROTO: it is longer. */
int follow_receive(int fd, struct follow_message *message, char *text, __s64 deadline_ms);

/* What a state means: to the host's status, to people, and to --once, which ends when it need not wait for any list. */
extern const struct follow_state_words {
	unsigned char rank; /* the worst has the highest, and is the host's; 0: nothing is wrong */
	enum { ONCE_WAITS, ONCE_ENDS, ONCE_FAILS, ONCE_STOPS } once; /* stops: whatever the other lists do */
	const char *name, *about;
} follow_states[FOLLOW_STATES];

/*
 * ---- the reader: reader_process.c ----
 *
 * Reads the logs of its lists, finds out when a log does not go on where the host is, and then reads the whole list.
 * Changes nothing on the host, and sends what it reads as messages.
 */

struct log_reader_list {
	char name[ABI_NAME_BYTES];
	struct fleet_position at; /* what the host has; 0-0: nothing */
	bool is_incomplete;       /* the host left out rules that it no longer knows */
};

struct log_reader_start {
	const struct fleet_options *options;
	const char *fleet;
	struct log_reader_list lists[FOLLOW_LISTS_MAX];
	size_t count;
	bool is_accepted; /* follow lists that are gone, too: the host's become empty */
	bool is_once;     /* look often whether all is level */
};

/* Reads until the other end of `fd` is closed. */
void log_reader_run(const struct log_reader_start *start, int fd);

/* ---- this host: this_host.c ---- */

/* What its filter does, for the host's status and for the panic of the fleet. */
struct host_filter {
	__u64 drops;            /* packets, by rules and policies, since the filter of this name was loaded */
	const char *passes_all; /* why no packet meets the rules; NULL: they do */
	bool is_panic;          /* the panic of the fleet is on here */
};

/* *filters, *count: see kernel_find_filters(). */
void host_filter_look(const char *name, struct kernel_filter **filters, size_t *count, struct host_filter *found);

/* Whether a filter of this name has yet to be told that the panic of the fleet is on, or off. */
bool host_panic_is_due(const char *name, struct kernel_filter **filters, size_t *count, bool is_on);

/* sd_notify(3), without its library: lines like "READY=1". Does nothing if no service manager listens. */
__attribute__((format(printf, 1, 2))) void service_notify(const char *format, ...);

#endif
