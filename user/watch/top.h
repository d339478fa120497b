/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* `top`: rates of the running filters and their hottest rules, on the terminal. */
#ifndef XDP_CUCKOO_TOP_H
#define XDP_CUCKOO_TOP_H

#include <jansson.h>
#include <sys/types.h>

#include "counters/counters.h"
#include "kernel/kernel.h"
#include "rule/rule.h"

/*
 * ---- names: which rules the keys of a running table belong to ----
 *
 * The search reads the whole store, which takes seconds for millions of rules. So a child process does it.
 */

#define TOP_NAMES (4 * HITS_BEST) /* names that are remembered */

struct top_name {
	__u64 tag;           /* of a key: see struct hit */
	__u8 action;         /* enum rule_action */
	unsigned int search; /* the number of the search that found it */
	char rule[RULE_TEXT_BYTES];
};

struct top_names {
	struct top_name name[TOP_NAMES];
	size_t count, next; /* next: index for the next new name */
	unsigned int searches;
	__u64 generation;          /* of the store when the names were found */
	pid_t child;               /* 0: no search runs */
	int answers;               /* its pipe */
	__u64 asked_of;            /* the generation when the running search started */
	double started, pause_end; /* by the caller's clock; no search starts before pause_end */
};

/*
 * Starts a search for the keys of `hits`, which are in the table of `filter`, in the store at `dir`. Does nothing if
 * a search runs or has just ended, or if all names are known and the store has not changed since.
 */
void top_names_ask(struct top_names *names, const char *dir, const struct kernel_filter *filter, const struct hit *hits,
		   size_t count, double second);

/* Takes the names that the search has found so far. After a change of the store, forgets all others at its end. */
void top_names_collect(struct top_names *names, double second);

/* NULL: not known yet. */
const struct top_name *top_names_find(const struct top_names *names, __u64 tag);

/* Ends a search and forgets all names. `names` starts zeroed. */
void top_names_close(struct top_names *names);

/* ---- model: rates of an interval, their history, lines and their order, and their text ---- */

#define TOP_HISTORY 256 /* intervals */
#define TOP_NUMBER_BYTES 16
#define TOP_TEXT_BYTES 256
#define TOP_NOTE_BYTES 128
#define TOP_LINES_MAX 1024 /* interfaces or CPUs */

enum top_view { TOP_BY_INTERFACE, TOP_BY_CPU };
enum top_sort { TOP_SORT_DROPPED, TOP_SORT_PASSED, TOP_SORT_NAME, TOP_SORTS };

struct top_rates {
	double pps[VERDICTS], bps[VERDICTS];
};

/* An interface or a CPU. */
struct top_line {
	char name[TALLY_NAME_BYTES];
	struct top_rates rates;
};

struct top_rule {
	double pps;
	const struct top_name *name; /* NULL: not known yet */
};

/* The filters as they are now. */
struct top_state {
	const char *name;
	char effect[TOP_NOTE_BYTES];
	__u64 filters, slots, used;
	double age_s; /* since the oldest program was loaded; negative: not known */
};

struct top_model {
	enum top_view view;
	enum top_sort sort;
	bool is_paused, has_help;
	struct top_state state;
	double interval_s;   /* between two readings, as the caller wants it */
	bool has_rates;      /* there were two readings */
	bool has_would_drop; /* monitor-only mode is on, or a monitor rule has matched */
	double seconds;      /* between the last two readings */
	struct top_rates total;
	double by_policy;        /* packets per second that a policy dropped, not a rule */
	double stopped, retries; /* per second: see ABI_COUNTER_STOPPED, ABI_COUNTER_RETRIES */
	double lost;             /* packets per second that the cards had no room for */
	struct top_line *line;   /* TOP_LINES_MAX */
	size_t lines;
	struct top_rule rule[HITS_BEST];
	size_t rules;
	char rules_note[TOP_NOTE_BYTES]; /* why rules are missing; "": none is */
	double passed[TOP_HISTORY];  /* packets per second; interval n is at n % TOP_HISTORY */
	double dropped[TOP_HISTORY]; /* with those that would be dropped */
	__u64 intervals;             /* so far */
};

/* 0; -ENOMEM. */
int top_model_open(struct top_model *model, enum top_view view);
void top_model_close(struct top_model *model);

/*
 * Takes the figures of one interval: `now` is the reading at its end, `difference` the growth since its start. The
 * caller does not call this while is_paused.
 */
void top_model_add(struct top_model *model, const struct tally *difference, const struct tally *now);

/* Makes only the lines again, after the view has changed. */
void top_model_list(struct top_model *model, const struct tally *difference, const struct tally *now);

/* Takes the ranking of keys and the names of their rules, and lists the drop rules. */
void top_model_rank(struct top_model *model, const struct hits *hits, const struct top_names *names);

/* "1m20s ago", for the left end of a chart of so many intervals. Returns `text`. */
const char *top_model_ago(const struct top_model *model, int intervals, char text[TOP_TEXT_BYTES]);

/* Handles a key that changes the view: s, p, space, i, c, ?, h. False: another key. */
bool top_model_key(struct top_model *model, int key);

/* The entry of history[] `ago` intervals before the last; 0 before the first. */
double top_model_past(const struct top_model *model, const double history[TOP_HISTORY], __u64 ago);

/* "0", "7.5", "950", "1.23k", "45.6M", "789G": at most five characters. Returns `text`. */
const char *top_number(double number, char text[TOP_NUMBER_BYTES]);

/* The text of line `i` of the TOP_HEADINGS lines at the top of the screen. Returns `text`. */
#define TOP_HEADINGS 4
const char *top_model_heading(const struct top_model *model, int i, char text[TOP_TEXT_BYTES]);

/* The line of an interval where there is no screen. Returns `text`. */
const char *top_model_plain(const struct top_model *model, char text[TOP_TEXT_BYTES]);

/* All except the history. */
json_t *top_model_json(const struct top_model *model);

/* ---- screen: draws a top_model on the terminal, and reads keys; only it uses ncurses ---- */

/* False: input or output is not a terminal that ncurses knows. top_screen_close() restores the terminal. */
bool top_screen_open(void);
void top_screen_close(void);

void top_screen_draw(const struct top_model *model);

/* Waits for a key until a signal comes or `wait_ms` are over. Returns the key, or one of these: */
enum {
	TOP_SCREEN_NONE = -1,
	TOP_SCREEN_RESIZED = -2, /* draw again */
	TOP_SCREEN_GONE = -3,    /* the terminal has gone */
};
int top_screen_key(int wait_ms);

#endif
