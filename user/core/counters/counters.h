/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reads what running filters have counted: by outcome, verdict, interface and CPU; by rule; by list; by key. */
#ifndef XDP_CUCKOO_COUNTERS_H
#define XDP_CUCKOO_COUNTERS_H

#include <stdbool.h>
#include <stdio.h>

#include "abi.h"
#include "kernel/kernel.h"
#include "store/store.h"
#include "table/table.h"

/* ---- words: all output, help and the man page take them from here ---- */

struct outcome_words {
	const char *name;    /* "no-rule": everywhere, in what is typed and in what is printed */
	const char *meaning; /* one line */
};

struct verdict_words {
	const char *name; /* "drop", "would-drop" */
	const char *done; /* the start of a column's name: "dropped", "would_drop" */
	const char *meaning;
};

extern const struct outcome_words outcome_words[OUTCOMES];
extern const struct verdict_words verdict_words[VERDICTS];

/* Print a line for each outcome; a line for each outcome that has a policy. */
void explain_outcomes(FILE *to);
void explain_policies(FILE *to);

/* Whether packets of this outcome can have this verdict. A policy, unlike a rule, may say either. */
bool outcome_can_have(enum abi_outcome outcome, enum abi_verdict verdict);

/* A rate as a whole number. llround() would need libm. */
static inline long long counter_rounded(double rate)
{
	return (long long)(2 * rate + 1) / 2;
}

/* ---- tally ---- */

/* What filters have counted by outcome, verdict, interface and CPU, until one moment or between two moments. */

#define TALLY_ALL (~0U)       /* all rows, or all CPUs */
#define TALLY_BOTH (1U << 16) /* added to the row of an interface's received packets: its sent packets too */
#define TALLY_NAME_BYTES 64

/* The counters of one map. Filters may share a map, which counts once. */
struct tally_part {
	__u32 id;
	struct abi_counter *counter; /* ABI_COUNTERS of row r and CPU c start at (r * cpus + c) * ABI_COUNTERS */
};

struct tally {
	struct tally_part *part;
	size_t parts;
	unsigned int cpus;
	size_t filters;       /* that were read */
	bool is_monitor_only; /* at least one of the filters is */
	double seconds;       /* of CLOCK_MONOTONIC; in a difference: the time between the moments */
	/* The interfaces of each row that filter these packets now, joined by '+', without control characters. */
	char interfaces[ABI_COUNTER_ROWS][TALLY_NAME_BYTES];
	__u64 lost[ABI_COUNTER_ROWS]; /* packets that their cards had no room for: see struct interface */
};

/* Adds the counters of a filter to a tally, which starts zeroed. 0 or -errno. tally_close() accepts any state. */
int tally_add(struct tally *tally, const struct kernel_filter *filter, struct reason *reason);
void tally_close(struct tally *tally);

/* *difference: what was counted between two tallies. If a counter was reset, its whole value. 0; -ENOMEM. */
int tally_since(const struct tally *before, const struct tally *now, struct tally *difference);

/* "received" or "sent". */
const char *tally_direction(unsigned int row);

/* Sums each counter over a row and a CPU. Both may be TALLY_ALL; the row may have TALLY_BOTH. */
void tally_sum(const struct tally *tally, unsigned int row, unsigned int cpu, struct abi_counter sum[ABI_COUNTERS]);

/* Sums the rows of which no interface runs a filter now, in this network namespace. */
void tally_sum_elsewhere(const struct tally *tally, struct abi_counter sum[ABI_COUNTERS]);

/* Sums these counters over all outcomes, by verdict. */
void tally_verdicts(const struct abi_counter counters[ABI_COUNTERS], struct abi_counter sum[VERDICTS]);

/* Whether any of these counters of packets is not 0. */
bool tally_has_packets(const struct abi_counter counters[ABI_COUNTERS]);

/* ---- by rule ---- */

/* Reads how many packets of each rule the running filters of a name have counted. */

struct rule_counts {
	struct kernel_filter *filters;
	struct filter_tables *tables; /* for each filter; zeroed if it does not count by rule */
	size_t count;
	struct shape_list shapes; /* of the store; the caller fills this in */
};

/*
 * 0; -ENOENT: no filter of the name runs, -EOPNOTSUPP: none counts by rule, both without a reason; other -errno.
 * *counts starts zeroed. rule_counts_close() accepts a zeroed struct, and one that failed to open.
 */
int rule_counts_open(struct rule_counts *counts, const char *name, struct reason *reason);
void rule_counts_close(struct rule_counts *counts);

/* The packets that matched a rule. If prefixes of rules overlap, a packet may count for several rules. */
struct abi_counter rule_counts_of(const struct rule_counts *counts, const struct rule *rule);

/* ---- by list ---- */

/* Sums what the rules of each list have counted: see by_rule.h. */

struct list_count {
	__u64 rules; /* that have not ended, */
	__u64 only;  /* that have no other owner, */
	__u64 hit;   /* and that have matched packets */
	struct abi_counter count;
};

/* By owner and action: the number of a list, or STORE_BY_HAND. A rule counts for each of its owners. */
struct list_counts {
	struct list_count of[1 + STORE_LISTS_MAX][RULE_ACTIONS];
};

/* Looks up every rule of the store: about a microsecond for each. `counts` NULL: only counts rules. 0; -errno. */
int list_counts_read(struct store *store, struct rule_counts *counts, struct list_counts *sums);

/*
 * ---- hottest keys ----
 *
 * Finds the keys of a table that most packets match now: the keys whose counters grow most between two passes. A
 * pass runs in steps, so that the caller can do other work in between.
 */

#define HITS_BEST 64              /* keys that are ranked */
#define HITS_CHUNK (1U << 18)     /* slots in one step */
#define HITS_SLOTS_MAX (1U << 26) /* of the largest table; each slot takes 8 bytes here */

struct hit {
	__u64 tag;   /* of the key: see abi_record() */
	double rate; /* packets a second */
};

/* The last visit to a chunk. */
struct hits_visit {
	double second;  /* 0: there was no visit */
	__u64 sequence; /* of the table: it changes when entries move */
};

struct hits {
	__u64 slots, at;              /* slots: 0 if not open; at: the next slot of the current pass */
	__u64 *seen;                  /* by slot: packets at the last pass, and tag bits */
	struct hits_visit *visited;   /* by chunk */
	struct hit best[HITS_BEST];   /* of the current pass */
	struct hit ranked[HITS_BEST]; /* of the last complete pass; the highest rate is first */
	size_t best_count, ranked_count;
	unsigned int passes; /* that are complete; the first one ranks nothing */
};

/* 0; -ENOMEM; -E2BIG: the table is too large. hits_close() accepts a zeroed struct, and one that failed to open. */
int hits_open(struct hits *hits, __u64 slots);
void hits_close(struct hits *hits);

/*
 * Visits the next chunk of a table with counters. `second` is the time of any clock. True: the pass is complete and
 * `ranked` is new. The next step starts another pass.
 */
bool hits_step(struct hits *hits, const struct filter_tables *tables, double second);

#endif
