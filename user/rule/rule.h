/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A rule: which flows it names and what becomes of them. Text to rule and back, rule to the bytes
 * the store keeps, rule to the keys the table holds. Knows neither store nor table nor kernel.
 */
#ifndef XDP_CUCKOO_RULE_H
#define XDP_CUCKOO_RULE_H

#include <stdbool.h>
#include <stddef.h>

#include "abi.h"
#include "flow.h"
#include "base/error_reason.h"

#define RULE_TEXT_BYTES 544           /* longest canonical text with timeout and comment, and the final 0 */
#define RULE_COMMENT_BYTES 256        /* with the final 0 */
#define RULE_ENCODED_BYTES 48         /* longest encoded form */
#define RULE_KEYS_MAX 2               /* a rule without addresses has a key in each family */
#define RULE_WORDS_MAX 32             /* of one text */
#define RULE_TIMEOUT_MAX_S 2147483647 /* 68 years */
#define RULE_PROTO_MAX 254

enum rule_action { RULE_DROP, RULE_PASS, RULE_ACTIONS };

enum rule_field {
	RULE_PROTO = 1 << 0,
	RULE_SPORT = 1 << 1, /* or the ICMP type */
	RULE_DPORT = 1 << 2, /* or the ICMP code */
};

/*
 * Who wants a rule of a store, and until when: a bit for each, which store/store.h gives out, in `for_good` or in
 * `timed`. The rule stays until the last of them gives it up.
 */
struct rule_owners {
	__u64 for_good, timed;
	__s64 timed_ms; /* until it ends for those in `timed`, as timeout_ms; 0 where there are none */
};

/*
 * Always in canonical form, with every unused byte 0: two rules match the same flows with the same
 * action exactly where all members from family to dport are equal. A prefix of length 0 is no prefix.
 */
struct rule {
	__u8 family;    /* enum flow_family; FLOW_NO_FAMILY matches both */
	__u8 action;    /* enum rule_action */
	__u8 fields;    /* enum rule_field bits */
	__u8 port_kind; /* enum flow_port_kind; FLOW_NO_PORTS where no port is named */
	__u8 src_len, dst_len;
	__u8 proto;
	union flow_addr src, dst; /* IPv4 in .v4, the rest 0 */
	__be16 sport, dport;
	__s64 timeout_ms;                 /* until it ends; 0: never; negative: it ended that long ago */
	char comment[RULE_COMMENT_BYTES]; /* "" where there is none */
	struct rule_owners owners;        /* all 0 where the rule comes from no store */
};

/* The set of fields and prefix lengths, with action and family, that keys have in common. */
struct rule_shape {
	__u8 family; /* FLOW_IPV4 or FLOW_IPV6 */
	__u8 action;
	__u8 fields;
	__u8 src_len, dst_len;
};

struct rule_key {
	struct rule_shape shape;
	struct flow_key key;
};

/*
 * Reads a rule from words or from one line of text, which is split at white space with "..." kept
 * whole. Fields in any order; a bare address or prefix means src. 0; -EINVAL with the reason, which
 * quotes the offending word.
 */
int rule_parse_words(const char *const *words, size_t count, struct rule *rule, struct reason *reason);
int rule_parse(const char *text, struct rule *rule, struct reason *reason);

/* Cuts `text` in place into those words. 0; -EINVAL with the reason: too many, or a quote is left open. */
int rule_split(char *text, const char *words[RULE_WORDS_MAX], size_t *count, struct reason *reason);

/* The words of rules, in a fixed order, and what stands behind each: a name, or words that '|' joins. NULL past the last. */
const char *rule_word(size_t index, const char **value);

/* Whether digits that start with 0 go on: no number of a rule may. */
bool rule_has_leading_zero(const char *number);

/* Protocol names: -ENOENT where the word is neither a known name nor a number 0-254; NULL for no name. */
int rule_protocol_number(const char *word, __u8 *number);
const char *rule_protocol_name(__u8 number);

/* Whether packets of the protocol have ports that rules can name. */
bool rule_has_ports(__u8 proto);

/*
 * A time: "90", "90s", "15m", "1h30m", "2d", "1w", in units from large to small; seconds where none is
 * named, at most RULE_TIMEOUT_MAX_S. 0; -EINVAL. Written in the same form, rounded up to seconds.
 */
#define RULE_TIME_BYTES 32
int rule_time_parse(const char *text, __s64 *ms);
const char *rule_time_format(__s64 ms, char text[RULE_TIME_BYTES]);

/* Writes the canonical text, with action, timeout and comment where they are not the default. Returns `text`. */
const char *rule_format(const struct rule *rule, char text[RULE_TEXT_BYTES]);

/* The network of the first `length` bits of an address: the rest set to 0. */
union flow_addr rule_network(const union flow_addr *address, unsigned int length);

/*
 * Whether it is an IPv4 address as IPv6 (RFC 4291 section 2.5.5.2: ::ffff:192.0.2.1), which programs write and
 * no packet has. A text that names one, or a network of them, means the IPv4 address.
 */
bool rule_is_mapped(const union flow_addr *address);

/* All that want the rule, as bits: those whose time is over do not. */
__u64 rule_owners_now(const struct rule *rule);

/*
 * The bytes by which a store keeps a rule: all but its comment, in an order that sorts by family,
 * source, destination. rule_encode() returns the length; rule_decode() returns 0, or -EBADMSG where
 * the bytes are no rule, and leaves the comment empty.
 */
size_t rule_encode(const struct rule *rule, __u8 bytes[RULE_ENCODED_BYTES]);
int rule_decode(const __u8 *bytes, size_t length, struct rule *rule);

/*
 * For what comes from elsewhere: whether all but timeout and comment is as struct rule says, which
 * rule_decode() does not look at; and whether a text is one that a comment may be: without quotes and
 * control characters, and UTF-8.
 */
bool rule_is_canonical(const struct rule *rule);
bool rule_is_plain(const char *text);
bool rule_is_utf8(const char *text);

/* How long the encoded form of a rule of this family is. */
size_t rule_encoded_bytes(enum flow_family family);

/* The keys of the rule's own shapes, one for each family it matches. Returns how many. */
size_t rule_keys(const struct rule *rule, struct rule_key keys[RULE_KEYS_MAX]);

/*
 * Prefix expansion: a key of one shape is as good as 2^n keys of a shape that has n bits of prefix more
 * and is otherwise the same (Srinivasan, Varghese, "Fast Address Lookups Using Controlled Prefix
 * Expansion", 1999). rule_can_expand(): whether `to` is such a shape; rule_expansion_bits(): n;
 * rule_expand(): key number `index`, 0 to 2^n - 1.
 */
bool rule_can_expand(const struct rule_shape *from, const struct rule_shape *to);
unsigned int rule_expansion_bits(const struct rule_shape *from, const struct rule_shape *to);
struct rule_key rule_expand(const struct rule_key *key, const struct rule_shape *to, __u64 index);

/* The rule of a key, without timeout and comment, of the key's family. */
struct rule rule_of_key(const struct rule_key *key);

/* All that a packet says, as a rule: its flow must have a family. */
struct rule rule_of_flow(const struct flow *flow);

/* The hash and the tag of a key under the table's secret. */
struct hash_value rule_hash(const struct rule_key *key, const struct hash_secret *secret);

/* A shape as the packet path wants it, and back from the tag of that, also where a key's last word has it. */
void rule_shape_compile(const struct rule_shape *shape, struct abi_shape *compiled);
struct rule_shape rule_shape_of_tag(__u64 tag, enum flow_family family);

/*
 * The rules of `shape` that would match every flow `query` names: its fields, the rest left out or
 * cut short. Two at most: for the family alone, and for both. 0 where the query names less than
 * the shape does.
 */
size_t rule_generalise(const struct rule *query, const struct rule_shape *shape, struct rule rules[RULE_KEYS_MAX]);

/* Whether the rule matches every packet of the flows that `flow` names. */
bool rule_names(const struct rule *rule, const struct rule *flow);

/* The text of a shape, for status: "proto src/24 dport". Returns `text`. */
const char *rule_shape_format(const struct rule_shape *shape, char text[RULE_TEXT_BYTES]);

#endif
