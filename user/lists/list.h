/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Lists of rules in the formats that operators have them in: rules from a file, rules to a file.
 * Knows text, not stores. Each format turns what it reads into the words of a rule text; one
 * function makes rules of those.
 */
#ifndef XDP_CUCKOO_LIST_H
#define XDP_CUCKOO_LIST_H

#include <stdio.h>

#include "io/line_file.h"
#include "base/error_reason.h"
#include "rule/rule.h"
#include "lists/rule_set.h"

#define LIST_RULES_MAX 1024 /* that one line with ranges may stand for */

enum list_format {
	LIST_UNKNOWN,  /* to be told from the content */
	LIST_TEXT,     /* rules, addresses, prefixes and ranges; FireHOL */
	LIST_IPSET,    /* ipset save and restore */
	LIST_NFT,      /* nft -j */
	LIST_SPAMHAUS, /* DROP, as text and as JSON lines: the SBL number is the comment */
	LIST_CSV,      /* with a line that names the columns */
	LIST_FORMATS,
};

/* The format that `name` names, LIST_UNKNOWN where none does; and back. */
enum list_format list_format_named(const char *name);
const char *list_format_name(enum list_format format);

/* ---- reading ---- */

struct list {
	struct reader reader; /* opened; .number is the line that calls below are about */
	enum list_format format;
	__s64 timeout_ms; /* of rules that name none; 0: none */
	/* Called for each rule; non-zero ends the reading. */
	int (*take)(struct list *list, const struct rule *rule);
	/* Called for each line or element that is no rule, with the reason, which quotes the word. */
	void (*refuse)(struct list *list, const char *text);
	/* What the operator should know: how the columns of a set were taken. */
	void (*note)(struct list *list, const char *text);
	/* Called for each line or element before it is read; non-zero ends the reading. */
	int (*go_on)(struct list *list);
	void *context; /* the caller's */
};

/*
 * Reads all of list->reader. 0; -EIO, -EINTR, -ENOMEM; what take() or go_on() returned. Bad input
 * is no error: refuse() is told.
 */
int list_read(struct list *list);

/* ---- writing ---- */

/* One rule. Both hold every rule. list_write_csv_heading() comes before the first one of CSV. */
void list_write_text(FILE *to, const struct rule *rule);
void list_write_csv_heading(FILE *to);
void list_write_csv(FILE *to, const struct rule *rule);

/* Told of each rule that the format cannot hold, or not whole: "is left out: ...". */
struct list_losses {
	void (*tell)(const struct rule *rule, const char *what, void *context);
	void *context;
};

/*
 * Sets that hold the rules of `set`, which is sorted. Named by action and columns, so that
 * list_read() finds the same rules again. -ENOMEM.
 */
int list_write_ipset(FILE *to, const struct rule_set *set, const struct list_losses *losses);
int list_write_nft(FILE *to, const struct rule_set *set, const struct list_losses *losses);

#endif
