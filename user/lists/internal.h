/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the formats share. */
#ifndef XDP_CUCKOO_LIST_INTERNAL_H
#define XDP_CUCKOO_LIST_INTERNAL_H

#include "lists/list.h"

/*
 * The words of one rule, as its text has them, but that values may be ranges:
 * "192.0.2.1-192.0.2.9", "80-90".
 */
struct list_row {
	const char *words[RULE_WORDS_MAX];
	size_t count;
	bool is_permanent; /* it says that it has no timeout */
	char text[768];    /* of words that stand nowhere else */
	size_t used;
};

/* Adds a keyword and its value, which must stay; the second one copies it. Too many are cut off. */
void list_row_add(struct list_row *row, const char *keyword, const char *value);
__attribute__((format(printf, 3, 4))) void list_row_print(struct list_row *row, const char *keyword, const char *format,
							  ...);

/* Makes rules of the row, or says why not. Returns what list->take() returned, else 0. */
int list_take(struct list *list, const struct list_row *row);

/* Tells list->refuse(). Returns 0, so that reading goes on. */
__attribute__((format(printf, 2, 3))) int list_refuse(struct list *list, const char *format, ...);

__attribute__((format(printf, 2, 3))) void list_note(struct list *list, const char *format, ...);

/*
 * reader_line() or reader_next(), and list->go_on() before: 1; 0 at the end; -errno. Lines that are
 * no text are refused here.
 */
int list_next(struct list *list, int (*next)(struct reader *reader));

/* Each reads the whole list. */
int list_read_text(struct list *list);
int list_read_ipset(struct list *list);
int list_read_nft(struct list *list);
int list_read_spamhaus(struct list *list);
int list_read_csv(struct list *list);

/* Whether the line names the columns of a CSV list. */
bool list_is_csv_heading(const char *line);

/*
 * A protocol by any name that this system knows, as a rule text names it: copied to `text`. false
 * where there is none.
 */
#define LIST_PROTOCOL_BYTES 16
bool list_protocol(const char *name, char text[LIST_PROTOCOL_BYTES]);

/* ---- ranges ---- */

struct list_range {
	enum flow_family family;
	union flow_addr first, last; /* IPv4 in .v4; both are part of it */
};

/* Reads "A-B". 0; -EINVAL with the reason. */
int list_range_parse(const char *text, struct list_range *range, struct reason *reason);

/*
 * Takes the next prefix off the range: one of the fewest that cover it and nothing else, in order.
 * false where nothing is left.
 */
bool list_range_next(struct list_range *range, union flow_addr *address, unsigned int *length);

/* ---- ICMP ---- */

/* The number of an ICMP type or code that ipset or nft writes as a name; -1 where it is none. */
enum list_icmp_name { LIST_ICMP_TYPE, LIST_ICMP_CODE, LIST_ICMPV6_TYPE, LIST_ICMPV6_CODE };
int list_icmp_number(enum list_icmp_name what, const char *name);

/* ipset's names stand for a type and a code. false where it is none of them. */
bool list_icmp_pair(bool is_v6, const char *name, unsigned int *type, unsigned int *code);

#endif
