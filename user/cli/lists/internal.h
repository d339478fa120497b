/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the readers and writers of the formats share. No other folder includes this. */
#ifndef XDP_CUCKOO_LIST_INTERNAL_H
#define XDP_CUCKOO_LIST_INTERNAL_H

#include <string.h>

#include "base/suggest.h"
#include "lists/import.h"

/* `words`: joined by '|'. */
static inline bool is_one_of(const char *word, const char *words)
{
	return suggest_has(words, word, strlen(word), true);
}

/* The words of one rule, as in its text form. Values may also be ranges: "192.0.2.1-192.0.2.9", "80-90". */
struct list_row {
	const char *words[RULE_WORDS_MAX];
	size_t count;
	bool is_permanent; /* the input says that it has no timeout */
	bool is_limited;   /* one limit for all packets of the row: list_take() refuses it if it means several rules */
	bool is_cut;       /* there was no room for a word; list_take() refuses the row */
	char text[768];    /* memory for words from list_row_print() */
	size_t used;
};

/* Not `= {}`, which writes 9 kB for each line of a list. */
static inline void list_row_clear(struct list_row *row)
{
	row->count = row->used = 0;
	row->is_permanent = row->is_limited = row->is_cut = false;
}

/*
 * Adds a keyword and its value. list_row_add() keeps the pointer; list_row_print() copies the text.
 */
void list_row_add(struct list_row *row, const char *keyword, const char *value);
__attribute__((format(printf, 3, 4))) void list_row_print(struct list_row *row, const char *keyword, const char *format,
							  ...);

/*
 * Turns the row into rules for list->take(), or calls list->refuse(). Returns the result of list->take(),
 * else 0.
 */
int list_take(struct list_input *list, struct list_row *row);

/* Whether the set of this name is to be read. Notes in `list` that the input has it. */
bool list_choose_set(struct list_input *list, const char *name);

/* Call list->refuse() or list->note(). Return 0, so that reading continues; list_reject(): -EINVAL. */
#define list_refuse(list, ...) list_report(list, (list)->refuse, 0, __VA_ARGS__)
#define list_reject(list, ...) list_report(list, (list)->refuse, -EINVAL, __VA_ARGS__)
#define list_note(list, ...) list_report(list, (list)->note, 0, __VA_ARGS__)
__attribute__((format(printf, 4, 5))) int list_report(struct list_input *list,
						      void (*report)(struct list_input *list, const char *text),
						      int result, const char *format, ...);

#define list_go_on(list) ((list)->go_on ? (list)->go_on(list) : 0)

/*
 * Calls list->go_on(), then `next`: reader_line() or reader_next(). 1; 0 at the end; -errno. Refuses lines
 * with a NUL byte.
 */
int list_next(struct list_input *list, int (*next)(struct reader *reader));

/* Each reads a whole list. */
int list_read_text(struct list_input *list);
int list_read_ipset(struct list_input *list);
int list_read_nft(struct list_input *list);
int list_read_spamhaus(struct list_input *list);
int list_read_csv(struct list_input *list);
int list_read_iptables(struct list_input *list);
int list_read_ranges(struct list_input *list); /* p2p, dshield */
int list_read_json(struct list_input *list);

/* What JSON of an unknown form needs. */
#define LIST_NAME_JSON "other JSON needs --json-path, or json = in the configuration"

/* Whether a text list may have this line as a rule. */
bool list_is_rule(const char *line);

/* LIST_P2P or LIST_DSHIELD, if the line is one of these. */
enum list_format list_range_format(const char *line);

/* Whether the line names the columns of a CSV list. */
bool list_is_csv_heading(const char *line);

/* The first line from here on that is neither empty nor a comment. */
const char *list_next_line(const char *text);

/* Writes the number of a protocol to `text`. The name is ours or one of /etc/protocols. false: unknown. */
#define LIST_PROTOCOL_BYTES 16
bool list_protocol(const char *name, char text[LIST_PROTOCOL_BYTES]);

/* ---- ICMP ---- */

enum list_icmp_name { LIST_ICMP_TYPE, LIST_ICMP_CODE, LIST_ICMPV6_TYPE, LIST_ICMPV6_CODE };

/* The number of a name of nft's; -1: unknown. */
int list_icmp_number(enum list_icmp_name what, const char *name);

/* The type and code of a name of ipset's; NULL: unknown. */
struct list_icmp_pair {
	const char *names; /* joined by '|' */
	__u8 type, code;
};
const struct list_icmp_pair *list_icmp_pair(bool is_v6, const char *name);

/* ---- columns of sets ---- */

/* What the elements of a set of ipset or nft hold, as keywords of a rule text. */
#define LIST_COLUMNS_MAX 6
#define LIST_COLUMNS_BYTES 64
struct list_columns {
	const char *keyword[LIST_COLUMNS_MAX];
	size_t count;
	enum rule_action action;
	int family; /* 4, 6, or 0: the name of the set does not tell */
};

bool list_columns_have(const struct list_columns *columns, const char *keyword);

/*
 * Takes what the type of a set cannot tell from the names that list_write_ipset() and list_write_nft() give:
 * the action, and which columns are source or destination. `separator` divides the parts of the name. Examples:
 * "xc-drop-src-dport-net4", "xc_pass_proto_dst24_dport_4". Any other name changes nothing.
 */
void list_columns_take_name(struct list_columns *columns, const char *name, char separator);

/* "src, dport, action drop", for a note. Returns `text`. */
const char *list_columns_format(const struct list_columns *columns, char text[LIST_COLUMNS_BYTES]);

/* ---- rules in groups: the sets to write ---- */

#define LIST_ANY_LENGTH 255 /* the prefixes of a group have several lengths */

/* What all rules of a group have in common. Groups are compared as bytes: no padding. */
struct list_kind {
	__u8 family, action, fields, src_len, dst_len;
	bool is_icmp;
	__u8 depth; /* nft: how many prefixes of the list contain each prefix */
};

struct list_group {
	struct list_kind kind;
	__u64 rules, without_prefix;
	bool is_timed, is_commented, has_prefix;
};

struct list_groups {
	const struct rule_set *rules;
	struct list_group *group;
	size_t count;
	__u32 *number; /* of each rule's group, from 1; 0: the rule is left out */
};

/* Fills the zeroed `kind` of a rule. Returns whether the rule is in a group. */
typedef bool list_kind_of(const struct rule *rule, struct list_kind *kind, void *context);

/* 0; -ENOMEM. Call list_groups_close() in both cases. */
int list_groups_make(struct list_groups *groups, const struct rule_set *rules, list_kind_of *kind_of, void *context);
void list_groups_close(struct list_groups *groups);

/* The next rule of a group, from rule number *i on. false: the end. */
bool list_groups_next(const struct list_groups *groups, const struct list_group *group, size_t *i, struct rule *rule);

#endif
