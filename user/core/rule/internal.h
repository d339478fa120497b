/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files that read rules share. No other folder includes this. */
#ifndef XDP_CUCKOO_RULE_INTERNAL_H
#define XDP_CUCKOO_RULE_INTERNAL_H

#include "rule/rule.h"

#define RULE_PHRASE_BYTES RULE_LINE_BYTES

/* The words of a rule as keyword, value, keyword, value, ... Values may mean several: "80-443", "tcp,udp". */
struct rule_phrase {
	const char *words[RULE_WORDS_MAX];
	size_t count;
	char text[RULE_PHRASE_BYTES]; /* memory for values that no word holds alone */
	size_t used;
};

/* Says what to write for a word of another tool, before `count` words. -EINVAL; 0: it is none. */
int rule_foreign_reason(const char *word, const char *const *next, size_t count, struct reason *reason);

/* What to write for a word of another tool: a keyword, or "action NAME". NULL: it is none. */
const char *rule_synonym(const char *word);

/* The parts of "tcp:443", "tcp/443" and "443/tcp", up to a comma. False: it is none of these. */
#define RULE_SERVICE_BYTES 32 /* longer than any name in /etc/services */
bool rule_port_split(const char *word, char protocol[RULE_SERVICE_BYTES], char port[RULE_SERVICE_BYTES]);

/* Whether the word is meant as an address; as a protocol. */
bool rule_has_address(const char *word);
bool rule_names_protocol(const char *word);

/* Says what to do about a word that no rule has; `phrase`: the words before it; `next`: the word after it, or NULL. -EINVAL. */
int rule_unknown_reason(const struct rule_phrase *phrase, const char *word, const char *next, struct reason *reason);

/*
 * Reads the words of a rule. The phrase points into them. `is_of_file`: refuses several addresses without a keyword, which
 * could be columns of anything, and reads words of other tools that have one meaning. 0; -EINVAL with the reason.
 */
int rule_phrase_read(struct rule_phrase *phrase, const char *const *words, size_t count, bool is_of_file,
		     struct reason *reason);

/*
 * Makes a rule of a phrase in which each value means one. The rule has `action` unless the phrase names one. `masked`
 * NULL: refuses host bits. 0; -EINVAL with the reason.
 */
int rule_phrase_parse(const struct rule_phrase *phrase, enum rule_action action, struct rule *rule,
		      struct rule_masked *masked, struct reason *reason);

/* The protocol that the phrase names; 0: none, or several. */
__u8 rule_phrase_protocol(const struct rule_phrase *phrase);

/* The keyword that the word is, in small letters or capitals; NULL: none. */
const char *rule_keyword(const char *word);

/* Reads a number of at most `max`. Leading zeros are refused: some tools read 010 as 8, others as 10. 0; -EINVAL. */
int rule_number_parse(const char *text, unsigned long max, unsigned long *number);

/* The names of the TCP flags, from the lowest bit, and of what a rule says of fragments. */
#define RULE_FRAGMENTS 4
extern const char *const rule_flag_names[8];
extern const struct rule_fragment {
	const char *name;
	__u8 mask, value;
} rule_fragments[RULE_FRAGMENTS];

/* ---- ranges ---- */

struct rule_range {
	enum flow_family family;
	union flow_addr first, last; /* both inclusive; IPv4 in .v4 */
};

/* Reads "A-B". 0; -EINVAL with the reason. */
int rule_range_parse(const char *text, struct rule_range *range, struct reason *reason);

/* Takes the next prefix off the range. Together these are the fewest that cover exactly the range. false: the end. */
bool rule_range_next(struct rule_range *range, union flow_addr *address, unsigned int *length);

#endif
