/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Imports a list file as one change: reads it, compares it with the store, and changes store and filters. The
 * caller opens them and prints the report. Only progress, and notes about the list, go to stderr from here.
 */
#ifndef XDP_CUCKOO_IMPORT_H
#define XDP_CUCKOO_IMPORT_H

#include <signal.h>

#include "change/change.h"
#include "host/host.h"
#include "lists/list.h"

struct import_options {
	const char *name, *state; /* of the filter: see session_open() */
	const char *list_name;    /* the rules belong to this list; NULL: they are added by hand */
	const char *list_format;  /* see list_format_named(); NULL: found from the content */
	const char *json_path;    /* where JSON has the addresses: list_is_json_path(); NULL: it is another format */
	const char *set_name;     /* the only set to read from ipset and nft; NULL: every set */
	enum rule_action action;  /* of rules that name none */
	bool is_new_only;         /* every rule that does not pass gets `state new` */
	__s64 timeout_ms;         /* for rules that have none; 0: they stay */
	__s64 confirm_ms;         /* undo the change unless confirmed in this time; 0: never */
	bool is_replace;          /* delete the rules that the file does not have: of the list, or all */
	bool is_strict;           /* refuse a file with bad lines */
	bool is_dry_run;          /* change nothing: see session_open_dry_run() */
	bool is_forced;           /* allow what would lock this host out, and a file without a rule */
	bool keeps_list;          /* without files: empty the list, but do not delete it */
	/* For lists that come from elsewhere: */
	const char *source;         /* what messages and the store call the only file; NULL: its path */
	__u64 rules_max;            /* refuse more rules; 0: any number */
	unsigned int least_percent; /* with list_name: refuse fewer than so many percent of its present rules */
	const char *insist;         /* what sets is_forced, for messages; NULL: "say --force" */
	unsigned int grow_max; /* with limits: refuse so many percent more than its present rules; ~0: any number */
	const struct list_limits *limits; /* a rule that does not fit is a bad line; NULL: each fits */
	bool leaves_out;                  /* what would lock this host out: see struct change_equal */
};

#define IMPORT_BAD_LINES_SHOWN 20
#define IMPORT_WARNINGS_MAX 16

/* Rules in a list that are rarely meant, counted before they block anything. */
struct import_warning {
	const char *what;
	__u64 count;
	char first[RULE_TEXT_BYTES];
};

struct import_warnings {
	struct import_warning kinds[IMPORT_WARNINGS_MAX]; /* for each kind that guard_special() names */
	char elsewhere[RULE_TEXT_BYTES];                  /* a rule with a destination that is not here; "": none */
	unsigned int destinations;                        /* rules that name one */
	struct host_addresses own;                        /* see guard_special() */
};

#define IMPORT_SIGNALS 2 /* SIGINT and SIGTERM */

struct import {
	const struct import_options *options;
	char *const *paths;               /* "-": standard input */
	size_t paths_count;               /* 0: the list is to be deleted */
	void (*refuse)(const char *text); /* is called for each of the first bad lines */
	struct rule_set rules;            /* from the file; sorted when it has been read */
	struct import_warnings warnings;
	__u64 bad, steps, total;
	__u64 hidden;                       /* bad lines of this file that are only counted */
	char *held[IMPORT_BAD_LINES_SHOWN]; /* bad lines before the first rule of a file, which may be no list */
	size_t held_count;
	bool has_rule; /* the file that is being read has one */
	struct change_equal equal;
	double start_s, storing_s; /* of clock_seconds() */
	struct sigaction before[IMPORT_SIGNALS];
};

/*
 * Reads the files as one list; no files prepare the deletion of the list options->list_name. Until import_close()
 * SIGINT and SIGTERM end the import: nothing is changed. -EINVAL: the list is refused, for example because a file
 * has no rule; other -errno, with the reason. Call import_free() and import_close() in any case.
 */
int import_open(struct import *import, const struct import_options *options, char *const *paths, size_t paths_count,
		void (*refuse)(const char *text), struct reason *reason);

/* Makes the change. -EINVAL: it is refused; -ESRCH: there is no such list to delete; other -errno, with the reason. */
int import_change(struct import *import, struct session *session, struct reason *reason);

/* Frees the memory; the import stays interruptible until import_close() restores the signals. */
void import_free(struct import *import);
void import_close(const struct import *import);

#endif
