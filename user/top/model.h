/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What `top` shows: rates of an interval, their history, lines and their order, and their text. */
#ifndef XDP_CUCKOO_TOP_MODEL_H
#define XDP_CUCKOO_TOP_MODEL_H

#include <jansson.h>

#include "counters/hottest_keys.h"
#include "counters/tally.h"
#include "top/names.h"
#include "top/sources.h"

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
void top_model_feed(struct top_model *model, const struct tally *difference, const struct tally *now);

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

/* The text of line `i` of the TOP_HEADS lines at the top of the screen. Returns `text`. */
#define TOP_HEADS 4
const char *top_model_head(const struct top_model *model, int i, char text[TOP_TEXT_BYTES]);

/* The line of an interval where there is no screen. Returns `text`. */
const char *top_model_plain(const struct top_model *model, char text[TOP_TEXT_BYTES]);

/* All except the history. */
json_t *top_model_json(const struct top_model *model);

#endif
