/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A rule: which flows it matches, and whether they are dropped or passed. Turns text into rules and back,
 * rules into the bytes that the store keeps, and rules into the keys that the table holds. Knows neither
 * store nor table nor kernel.
 */
#ifndef XDP_CUCKOO_RULE_H
#define XDP_CUCKOO_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "abi.h"
#include "flow.h"
#include "base/error_reason.h"

#define RULE_TEXT_BYTES 576           /* longest canonical text with timeout, comment and final 0 */
#define RULE_COMMENT_BYTES 256        /* with the final 0 */
#define RULE_ENCODED_BYTES 56         /* longest result of rule_encode() */
#define RULE_KEYS_MAX 2               /* a rule without addresses has a key in each family */
#define RULE_WORDS_MAX 1056           /* in a text that means several rules: RULE_EACH_MAX addresses, and fields */
#define RULE_LINE_BYTES 49152         /* of such a text */
#define RULE_PREFIX_BYTES 50          /* longest text of an address with a prefix length */
#define RULE_TIMEOUT_MAX_S 2147483647 /* 68 years */
#define RULE_PROTO_MAX 254

/* If rules of several actions match a packet, the first of PASS, DROP, MONITOR decides: see rule_rank(). */
enum rule_action {
	RULE_DROP,
	RULE_PASS,
	RULE_MONITOR, /* passes packets, and counts and samples them as "would drop": a drop rule on trial */
	RULE_ACTIONS,
};

/*
 * 0 for the rules that decide first: pass rules, drop rules, drop rules with a rate, monitor rules. A packet within all
 * rates that match it goes on to the next rank.
 */
#define RULE_RANKS 4
unsigned int rule_rank(enum rule_action action, __u8 fields);

/* "drop", "pass", "monitor". rule_action_parse(): 0; -EINVAL. */
const char *rule_action_name(enum rule_action action);
int rule_action_parse(const char *word, enum rule_action *action);

enum rule_field {
	RULE_PROTO = 1 << 0,
	RULE_SPORT = 1 << 1,   /* or the ICMP type */
	RULE_DPORT = 1 << 2,   /* or the ICMP code */
	RULE_NEW = 1 << 3,     /* `state new`: only packets that begin something, see bpf/new_only.h */
	RULE_DETAILS = 1 << 4, /* struct rule_details has something */
	RULE_RATE = 1 << 5,    /* only packets above rule.rate: a rate belongs to drop and monitor rules */
	RULE_FIELDS = RULE_RATE << 1,
	/* Only of a shape by which packets look rules up: in the addresses of a table. No rule and no store has it. */
	RULE_ADDRESSES = RULE_FIELDS,
};

/* A rate is packets a second, or with RULE_RATE_BITS bits a second: 1 to RULE_RATE_MAX. */
#define RULE_RATE_BITS ABI_RATE_BITS
#define RULE_RATE_MAX 1000000000000ULL

/*
 * What few rules compare: TCP flags, fragment, length, and a part of a port, as `dport 4096/4`. All 0: the rule
 * compares none of the first three, and compares ports as a whole.
 */
struct rule_details {
	__u8 flags_mask;             /* of the TCP flags */
	__u8 fragment_mask;          /* of FLOW_FRAGMENT_... */
	__u8 length_bits;            /* how many of the upper bits of the length are compared */
	__u8 sport_free, dport_free; /* how many of the lower bits of a port are not compared */
};

#define RULE_PORT_BITS 16 /* of a port, and of a length */
#define RULE_BLOCK_BITS 4 /* blocks have 2^4, 2^8 or 2^12 numbers: more sizes would be more kinds of rule */

/*
 * Who wants a rule, and until when. Each owner (the operator, or a list: store/store.h) has one bit, either
 * in `permanent` (permanently) or in `timed`. The rule stays until no owner wants it.
 */
struct rule_owners {
	__u64 permanent, timed;
	__s64 timed_ms; /* until the rule ends for the owners in `timed`, counted like timeout_ms; 0: no such owner */
};

/*
 * Always in canonical form, with every unused byte 0. So two rules match the same flows with the same
 * action exactly where all members from family to `length` are equal. A prefix of length 0 counts as no
 * prefix.
 */
struct rule {
	__u8 family;    /* enum flow_family; FLOW_NO_FAMILY matches both */
	__u8 action;    /* enum rule_action */
	__u8 fields;    /* enum rule_field bits */
	__u8 port_kind; /* enum flow_port_kind; FLOW_NO_PORTS where the rule has no port */
	__u8 src_len, dst_len;
	__u8 proto;
	union flow_addr src, dst; /* IPv4 in .v4, the rest 0 */
	__be16 sport, dport;
	struct rule_details details;
	__u8 flags, fragment;             /* values under the masks of `details` */
	__u16 length;                     /* in the byte order of the host */
	__u64 rate;                       /* with RULE_RATE; 0: a rule that was not found in a store has none yet */
	__s64 timeout_ms;                 /* until the rule ends; 0: never; negative: it ended that long ago */
	char comment[RULE_COMMENT_BYTES]; /* "" where there is none */
	struct rule_owners owners;        /* all 0 where the rule does not come from a store */
};

/* Family, action, fields, details and prefix lengths: what all keys of one kind have in common. */
struct rule_shape {
	__u8 family; /* FLOW_IPV4 or FLOW_IPV6 */
	__u8 action;
	__u8 fields;
	struct rule_details details;
	__u8 src_len, dst_len;
};

struct rule_key {
	struct rule_shape shape;
	struct flow_key key;
};

/*
 * Reads a rule from words, or from one line of text. The line is split at white space; text in "..." is one
 * word. The fields may come in any order. An address or prefix without a word before it is the source. 0;
 * -EINVAL: the reason quotes the offending word.
 */
int rule_parse_words(const char *const *words, size_t count, struct rule *rule, struct reason *reason);
int rule_parse(const char *text, struct rule *rule, struct reason *reason);

/*
 * rule_split() cuts `text` in place into words. A quoted comment keeps its first quote: it ends there for sure. -EINVAL:
 * too many words, or a quote that is not closed.
 * rule_words_split() does so with a copy; also -EINVAL: the text is too long. 0.
 */
struct rule_words {
	const char *word[RULE_WORDS_MAX];
	size_t count;
	char text[RULE_LINE_BYTES];
};
int rule_split(char *text, const char *words[RULE_WORDS_MAX], size_t *count, struct reason *reason);
int rule_words_split(struct rule_words *words, const char *text, struct reason *reason);

/*
 * Reads words that may mean several rules: ranges "192.0.2.1-192.0.2.9" and "80-443", and values joined by
 * commas. Calls take() for each; a result that is not 0 ends the reading and is returned. -EINVAL with the
 * reason: no rule has been taken.
 */
#define RULE_EACH_MAX 1024   /* rules that one line may mean */
#define RULE_RANGE_BYTES 100 /* longest text of a range */
struct rule_masked {
	size_t count;
	char first[RULE_PREFIX_BYTES]; /* as written */
};
struct rule_each {
	int (*take)(const struct rule *rule, void *context);
	void *context;
	enum rule_action action;   /* of rules whose words name none */
	bool is_of_file;           /* refuse "A,B" and "A B" without a keyword: a file could mean anything by them */
	bool is_strict;            /* refuse host bits in prefixes */
	struct rule_masked masked; /* prefixes whose host bits were cleared */
};
int rule_each(struct rule_each *each, const char *const *words, size_t count, struct reason *reason);

/* How many of the lower bits of `first` the largest block leaves free that starts there and ends at `last` at most; 0: none. */
unsigned int rule_block_bits(unsigned int first, unsigned int last);

/* The same rules in memory. `is_strict` as above. -EINVAL, -ENOMEM: there are none. */
struct rules {
	struct rule *rule;
	size_t count;
	struct rule_masked masked;
};
int rules_parse(struct rules *rules, const char *const *words, size_t count, bool is_strict, struct reason *reason);
void rules_free(struct rules *rules);

/* The keyword that a word means, for example src for saddr; NULL: none. */
const char *rule_keyword_of(const char *word);

/* Whether no quotes show that a comment ends where this word ends. */
static inline bool rule_is_open_comment(const char *comment)
{
	return !strpbrk(comment, " \t\"");
}

/* Whether a rule may start with this word, so that it cannot be the name of a list. */
bool rule_is_word(const char *word);

/* Sets the port of a service in /etc/services. `proto` 0: any. false: none has this name, or several with other ports. */
bool rule_service_port(const char *name, __u8 proto, __u16 *port);

/* Keyword number `index`. *value: its kind of value, or choices joined by '|'. NULL after the last. */
const char *rule_word(size_t index, const char **value);

/* Whether a number starts with 0 and has more digits. Rules do not accept such numbers. */
bool rule_has_leading_zero(const char *number);

/* Sets the number of a protocol: the word is its name, or a number 0 to 254. false: it is neither. */
bool rule_protocol_number(const char *word, __u8 *number);

/* The name of a protocol number; NULL: it has none. */
const char *rule_protocol_name(__u8 number);

/* Whether packets of the protocol have ports that a rule can match. */
bool rule_has_ports(__u8 proto);

/* Whether the rule names the protocol ICMP or ICMPv6. */
bool rule_is_icmp(const struct rule *rule);

/* An IPv4 address. The unused bytes are 0: a union that is set by one member alone leaves the others' bytes as they were. */
static inline union flow_addr rule_ipv4_address(__be32 v4)
{
	union flow_addr address = { .word = { 0, 0 } };

	address.v4 = v4;
	return address;
}

/* The family of an address; FLOW_NO_FAMILY: the text is no address. Unused bytes become 0. */
enum flow_family rule_address_parse(const char *text, union flow_addr *address);

/* Writes an address, with the prefix length if that is not the whole address. Returns `text`. */
const char *rule_prefix_format(enum flow_family family, const union flow_addr *address, unsigned int length,
			       char text[RULE_PREFIX_BYTES]);

/*
 * Reads a time: "90", "90s", "15m", "1h30m", "2d", "1w". Units go from large to small; a number alone is in
 * seconds. The most is RULE_TIMEOUT_MAX_S. 0; -EINVAL. rule_time_format() writes the same form, rounded up
 * to seconds.
 */
#define RULE_TIME_BYTES 32
int rule_time_parse(const char *text, __s64 *ms);

/* A time of UTC, "2026-12-01T00:00Z" or with seconds, since the epoch. 0; -EINVAL. */
int rule_moment_parse(const char *text, __s64 *second);
const char *rule_time_format(__s64 ms, char text[RULE_TIME_BYTES]);

/*
 * Reads a rate: "1000/s", "10k/s", "8Mbit/s", "1MB/s"; k, M, G and T are powers of 1000. A rate in bytes becomes bits. 0;
 * -EINVAL; -ERANGE: 0, or more than RULE_RATE_MAX. rule_rate_format() writes "1000/s" or "8Mbit/s", and "?" for 0.
 */
#define RULE_RATE_BYTES 32
int rule_rate_parse(const char *text, __u64 *rate);
const char *rule_rate_format(__u64 rate, char text[RULE_RATE_BYTES]);

/* Whether the rule has a rate exactly if its fields say so, and one that rule_rate_parse() could have made. */
static inline bool rule_has_sound_rate(const struct rule *rule)
{
	const __u64 number = rule->rate & ~RULE_RATE_BITS;

	return rule->fields & RULE_RATE ? number && number <= RULE_RATE_MAX : !rule->rate;
}

/* Whether rules that match the same flows also have the same rate, timeout and comment. */
static inline bool rule_same_value(const struct rule *a, const struct rule *b)
{
	return a->rate == b->rate && a->timeout_ms == b->timeout_ms && !strcmp(a->comment, b->comment);
}

/* Whether the rule drops every packet that it matches. */
static inline bool rule_blocks(const struct rule *rule)
{
	return rule->action == RULE_DROP && !(rule->fields & RULE_RATE);
}

/* Writes the canonical text; action, timeout and comment only where not the default. Returns `text`. */
const char *rule_format(const struct rule *rule, char text[RULE_TEXT_BYTES]);

/* Sets or clears RULE_DETAILS of the fields, as the details require. */
static inline void rule_mark_details(__u8 *fields, const struct rule_details *details)
{
	const bool has_details = details->flags_mask || details->fragment_mask || details->length_bits ||
				 details->sport_free || details->dport_free;

	*fields = (*fields & ~RULE_DETAILS) | (has_details ? RULE_DETAILS : 0);
}

/* Whether no later fragment can match the rule: such fragments have no ports and flags, and begin nothing. */
static inline bool rule_lacks_later_fragments(const struct rule *rule)
{
	return rule->port_kind != FLOW_NO_PORTS || rule->details.flags_mask || rule->fields & RULE_NEW;
}

/* Whether packets that match the rule may begin something, so that a rule with `state new` may match them, too. */
bool rule_may_begin(const struct rule *rule);

/* The bits of a whole address; 0 for FLOW_NO_FAMILY. */
static inline unsigned int rule_address_bits(enum flow_family family)
{
	return family == FLOW_IPV4 ? 32 : family == FLOW_IPV6 ? 128 : 0;
}

/* The first `length` bits of an address; the rest is 0. */
union flow_addr rule_network(const union flow_addr *address, unsigned int length);

/* Whether rule_network() of the address is `network`. */
bool rule_is_network_of(const union flow_addr *network, unsigned int length, const union flow_addr *address);

/*
 * Whether an IPv6 address is a mapped IPv4 address (RFC 4291 section 2.5.5.2: ::ffff:192.0.2.1). Programs
 * write this form, but packets never have it. In the text of a rule it means the IPv4 address.
 */
bool rule_is_mapped(const union flow_addr *address);

/* The owners that want the rule now, as bits: without those whose time has ended. */
__u64 rule_owners_now(const struct rule *rule);

/*
 * The bytes by which a store keeps a rule, without rate, timeout, comment and owners. They sort by family,
 * source and destination. rule_encode() returns the length. rule_decode() leaves the comment empty and
 * returns 0, or -EBADMSG where the bytes are no rule.
 */
size_t rule_encode(const struct rule *rule, __u8 bytes[RULE_ENCODED_BYTES]);
int rule_decode(const __u8 *bytes, size_t length, struct rule *rule);

/*
 * Check data that others wrote. rule_is_canonical(): the rule is in canonical form, apart from rate, timeout, comment
 * and owners; rule_decode() does not check that. rule_is_plain(): the text has no quotes or control characters.
 * A comment must be plain, and UTF-8.
 */
bool rule_is_canonical(const struct rule *rule);
bool rule_is_plain(const char *text);
bool rule_is_utf8(const char *text);

/* The length of the encoded rule that starts with these bytes. */
size_t rule_encoded_bytes(const __u8 bytes[RULE_ENCODED_BYTES]);

/* The rule's keys under its own shapes: one for each family it matches. Returns how many. */
size_t rule_keys(const struct rule *rule, struct rule_key keys[RULE_KEYS_MAX]);

/*
 * Prefix expansion: one key of a shape is replaced by 2^n keys of a shape that has n more bits of prefix
 * and is otherwise the same (Srinivasan, Varghese, "Fast Address Lookups Using Controlled Prefix
 * Expansion", 1999). rule_can_expand(): whether `to` is such a shape. rule_expansion_bits(): n.
 * rule_expand(): key number `index` of the 2^n keys.
 */
bool rule_can_expand(const struct rule_shape *from, const struct rule_shape *to);
unsigned int rule_expansion_bits(const struct rule_shape *from, const struct rule_shape *to);
struct rule_key rule_expand(const struct rule_key *key, const struct rule_shape *to, __u64 index);

/* The rule that has this key, with the key's family and without timeout and comment. */
struct rule rule_of_key(const struct rule_key *key);

/*
 * A rule that matches only this flow, which must have a family. rule_of_packet(): only packets with the flow's details,
 * too. rule_without_details(): the rule without details, `state new` and rate, for a pass rule for its whole
 * conversation.
 */
struct rule rule_of_flow(const struct flow *flow);
struct rule rule_of_packet(const struct flow *flow);
struct rule rule_without_details(const struct rule *rule);

/* Turns a rule about sent packets into one about the incoming packets of the same conversations: see flow_exchange(). */
void rule_exchange(struct rule *rule);

/* The hash and the tag of a key under the table's secret. */
struct hash_value rule_hash(const struct rule_key *key, const struct hash_secret *secret);

/* Makes the form of a shape that the packet path uses. */
void rule_shape_compile(const struct rule_shape *shape, struct abi_shape *compiled);

/* The shape that an id and the details mean: of a compiled shape, or the last word and the details of a key. */
struct rule_shape rule_shape_of_id(__u64 id, __u64 details, enum flow_family family);

/* The shape that rule_shape_compile() compiled. */
static inline struct rule_shape rule_shape_of_compiled(const struct abi_shape *shape, enum flow_family family)
{
	return rule_shape_of_id(shape->id, shape->mask[FLOW_KEY_DETAILS], family);
}

/*
 * The rules of `shape` that match every flow `query` matches: the query without the fields and prefix bits
 * that the shape lacks. At most two: one for the family alone, one for both families. Returns how many; 0
 * where the query lacks a field or prefix of the shape.
 */
size_t rule_under_shape(const struct rule *query, const struct rule_shape *shape, struct rule rules[RULE_KEYS_MAX]);

/* Whether `rule` matches every packet that `flow` matches. */
bool rule_covers(const struct rule *rule, const struct rule *flow);

/* Whether some packets match both rules. rule_intersect() also makes the rule that matches just these packets. */
bool rule_overlaps(const struct rule *a, const struct rule *b);
bool rule_intersect(const struct rule *a, const struct rule *b, struct rule *both);

/* The text of a shape for status: "ipv4 proto src/24 dport". Returns `text`. */
const char *rule_shape_format(const struct rule_shape *shape, char text[RULE_TEXT_BYTES]);

#endif
