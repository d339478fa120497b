/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reads and writes lists of rules in common formats. Knows text, not stores. Each reader turns its input into
 * the words of a rule text; list_take() makes rules of the words.
 */
#ifndef XDP_CUCKOO_LIST_H
#define XDP_CUCKOO_LIST_H

#include <stdio.h>

#include "io/line_file.h"
#include "base/error_reason.h"
#include "rule/rule.h"
#include "rule/rule_set.h"

#define LIST_SETS_BYTES 256 /* names of sets, for a message */

enum list_format {
	LIST_UNKNOWN,  /* to be found from the content */
	LIST_TEXT,     /* rules, addresses, prefixes and ranges; FireHOL */
	LIST_IPSET,    /* ipset save and restore */
	LIST_NFT,      /* nft -j */
	LIST_SPAMHAUS, /* DROP, as text or JSON lines; the SBL number becomes the comment */
	LIST_CSV,      /* the first line names the columns */
	LIST_IPTABLES, /* iptables-save, and ufw's user.rules */
	LIST_P2P,      /* NAME:START-END */
	LIST_DSHIELD,  /* START END BITS, and more columns */
	LIST_JSON,     /* other JSON: struct list_input.json says where the addresses are */
	LIST_FORMATS,
};

/* The format with this name, or LIST_UNKNOWN. */
enum list_format list_format_named(const char *name);

/*
 * What is no list of rules, by its first bytes: "a page of HTML or XML", "a gzip file". NULL: it may be a list, as where a rule
 * follows a tag.
 */
const char *list_stranger(const char *bytes);

/*
 * Whether a text names values of a JSON document, as jq writes it: ".prefixes[].ip_prefix .data[].ip". A name is a member of
 * an object, [] is each element of an array or each member of an object. Spaces or commas stand between several.
 */
bool list_is_json_path(const char *text);

/* ---- reading ---- */

struct list_input {
	struct reader reader; /* open; .number is the current line in the calls below */
	enum list_format format;
	__s64 timeout_ms;                 /* for rules without one; 0: none */
	bool is_permanent;                /* the row at hand says that it has no timeout */
	bool is_strict;                   /* refuse host bits in prefixes */
	struct rule_masked masked;        /* prefixes whose host bits were cleared */
	enum rule_action action;          /* of rules that name none */
	bool is_new_only;                 /* give every rule that does not pass `state new` */
	const char *set;                  /* of ipset and nft, only the set of this name is read; NULL: every set */
	bool has_set;                     /* the input has that set */
	const char *json; /* where JSON has the addresses: list_is_json_path(); NULL: it is another format */
	bool may_lack;    /* one of these paths may lead nowhere */
	bool is_cut;                      /* the rest of the input could not be read, and may have more rules */
	char other_sets[LIST_SETS_BYTES]; /* the first other sets that it has */
	/* Is called for each rule. A non-zero result ends the reading. */
	int (*take)(struct list_input *list, const struct rule *rule);
	/* Is called for each bad line or element, with the reason, which quotes the bad word. */
	void (*refuse)(struct list_input *list, const char *text);
	/* Is called with what the operator should know, for example how the columns of a set are read. NULL: nobody asks. */
	void (*note)(struct list_input *list, const char *text);
	/* Is called before each line or element. A non-zero result ends the reading. NULL: nothing does. */
	int (*go_on)(struct list_input *list);
	void *context; /* the caller's */
};

/* Reads all of list->reader. 0; -EIO, -EINTR, -ENOMEM; or the result of take() or go_on(). Bad input is no error. */
int list_read(struct list_input *list);

/* ---- what a list from elsewhere may hold ---- */

struct list_limits {
	bool may_pass;
	unsigned int space_max; /* percent of the public addresses of a family; 100: also rules without an address */
	unsigned int prefix_min[2]; /* the shortest prefix of IPv4, and of IPv6 */
};

/* Why the list may not hold this rule; NULL: it may. */
const char *list_unfit(const struct list_limits *limits, const struct rule *rule);

/*
 * Whether a sorted set may be a list among others. 0; -EINVAL: its rules cover more than `space_max` percent of the public
 * addresses of a family, or one of them covers a large part; or other lists would find no room for their kinds of rule or rates.
 */
int list_check_share(const struct rule_set *set, unsigned int space_max, struct reason *reason);

/* ---- writing ---- */

/* Write one rule. Text and CSV can hold every rule. Call list_write_csv_heading() before the first rule of CSV. */
void list_write_text(FILE *to, const struct rule *rule);
void list_write_csv_heading(FILE *to);
void list_write_csv(FILE *to, const struct rule *rule);

/* tell() is called for each rule that the format cannot hold, or only in part: "is left out: ...". */
struct list_losses {
	void (*tell)(const struct rule *rule, const char *what, void *context);
	void *context;
};

/*
 * Write sets with the rules of `set`, which must be sorted. The names of the sets tell action and columns, so
 * that list_read() reads the same rules back. 0; -ENOMEM.
 */
int list_write_ipset(FILE *to, const struct rule_set *set, const struct list_losses *losses);
int list_write_nft(FILE *to, const struct rule_set *set, const struct list_losses *losses);

#endif
