/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* `top`: rates of the running filters, their hottest rules and the sources of these, on the terminal. */
#ifndef XDP_CUCKOO_TOP_H
#define XDP_CUCKOO_TOP_H

#include <arpa/inet.h>
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

/* ---- sources ---- */

/*
 * The sources that send most into one network rule, from samples of dropped packets. Memory is bounded however many
 * sources there are: Space-Saving (Metwally, Agrawal, El Abbadi, 2005) counts a new source in the place of the rarest.
 */

#define TOP_SOURCES 256

struct top_source {
	__u8 family;
	union flow_addr address;
	double samples; /* may count those of rarer sources too, at most 1 / TOP_SOURCES of all */
};

struct top_sources {
	struct rule network; /* the rule; its source is not one address */
	bool has_network;
	struct top_source source[TOP_SOURCES]; /* after top_sources_age(): most samples first */
	size_t count;
	double samples; /* of all sources */
};

/* Whether a rule has many sources: its source is a prefix, or it names none. */
bool top_sources_many(const struct rule *rule);

/* The network to look at. Forgets the sources of another one. */
void top_sources_choose(struct top_sources *sources, const struct rule *network);

/* Counts the source of a dropped packet if the network covers its flow. */
void top_sources_add(struct top_sources *sources, const struct rule *flow);

/* At the end of an interval: sorts, and lets what was seen long ago count less. */
void top_sources_age(struct top_sources *sources);

/* The text of source i, and its share of the samples, 0 to 1. */
const char *top_sources_text(const struct top_sources *sources, size_t i, char text[INET6_ADDRSTRLEN]);
double top_sources_share(const struct top_sources *sources, size_t i);

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
	__u64 tag;                   /* of its key */
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
	char rules_note[TOP_NOTE_BYTES];   /* why rules are missing; "": none is */
	__u64 selected;                    /* the tag of the rule that the operator chose; 0: none */
	bool wants_sources;                /* show the sources inside a network */
	char sources_note[TOP_NOTE_BYTES]; /* why there are no sources; "": there are */
	struct top_sources sources;
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

/*
 * The rule whose sources are shown, and its text parsed: the one that the operator chose, or the hottest one that has
 * many sources. NULL: there is none.
 */
const struct top_rule *top_model_network(const struct top_model *model, struct rule *network);

/* "1m20s ago", for the left end of a chart of so many intervals. Returns `text`. */
const char *top_model_ago(const struct top_model *model, int intervals, char text[TOP_TEXT_BYTES]);

/* Handles a key that changes the view: s, p, space, i, c, a, j, k, ?, h. False: another key. */
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
