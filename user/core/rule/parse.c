// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reads a rule from text. The table `keywords` lists the words of the language; phrase.c cuts the text into them. */
#include "rule/internal.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <time.h>

#include "base/safe_text.h"
#include "base/suggest.h"

#define MASKED_MIN_IPV4 16 /* the shortest prefix whose host bits are cleared */
#define MASKED_MIN_IPV6 32
#define MAPPED_BITS 96 /* before the IPv4 address in an IPv6 address of the form ::ffff:192.0.2.1 */

struct parser {
	struct rule *rule;
	struct rule_masked *masked; /* NULL: host bits are refused */
	const struct rule_phrase *phrase;
	struct reason *reason;
};

struct keyword {
	const char *word;
	const char *value; /* for rule_word() */
	int (*parse)(struct parser *parser, const struct keyword *keyword, const char *value);
	bool is_dst;
	enum flow_port_kind kind; /* of the keywords that name a port */
};

#define fail(parser, ...) reason_set((parser)->reason, -EINVAL, __VA_ARGS__)

static const char *without_zeros(const char *number)
{
	return rule_has_leading_zero(number) ? ", without leading zeros" : "";
}

bool rule_is_mapped(const union flow_addr *address)
{
	static const __u8 mapped[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(address->byte, mapped, sizeof(mapped));
}

enum flow_family rule_address_parse(const char *text, union flow_addr *address)
{
	memset(address, 0, sizeof(*address));
	if (inet_pton(AF_INET, text, address) == 1)
		return FLOW_IPV4;
	return inet_pton(AF_INET6, text, address) == 1 ? FLOW_IPV6 : FLOW_NO_FAMILY;
}

/* "255.255.255.0" */
static int parse_netmask(const char *text, unsigned long *length)
{
	struct in_addr mask;

	if (inet_pton(AF_INET, text, &mask) != 1)
		return -EINVAL;
	*length = __builtin_popcount(mask.s_addr);
	return ntohl(mask.s_addr) == (*length ? ~0U << (32 - *length) : 0) ? 0 : -EINVAL;
}

/* What is wrong with a text that is no address. */
static const char *advise_address(const char *text)
{
	const bool is_number = isdigit((unsigned char)*text);

	if (strchr(text, ',') || (is_number && strchr(text, '-')))
		return ": these are several, and one rule has one address; add takes several, and so does a list file";
	if (*text == '[' && (text[strlen(text) - 1] == ']' || strstr(text, "]/")))
		return "; write it without brackets";
	if (*text == '[')
		return "; write it without brackets, and the port as a field of its own: dport 443";
	if (is_number && strchr(text, '.') && strchr(text, ':'))
		return "; write the port as a field of its own: dport 443";
	if (*text == '!')
		return "; a rule has no negation: write what to drop, and rules with action pass for what must pass";
	if (strchr(text, '%'))
		return "; leave out the interface: a rule holds on all interfaces of the filter";
	if (strlen(text) == 17 && text[2] == ':' && text[5] == ':' && text[14] == ':')
		return "; rules match IP addresses, not those of Ethernet";
	if (!is_number && !strchr(text, ':') && strchr(text, '.') && !strchr("{+(<@#", *text))
		return "; names are not looked up: write the address; a file is read by: xdp-cuckoo import FILE";
	return "; write it like 192.0.2.1, 192.0.2.0/24 or 2001:db8::/32";
}

static int parse_address(struct parser *parser, const struct keyword *keyword, const char *value)
{
	struct rule *rule = parser->rule;
	union flow_addr *address = keyword->is_dst ? &rule->dst : &rule->src;
	char text[RULE_PREFIX_BYTES];
	enum flow_family family;
	unsigned long length;
	__be32 mapped;
	char *slash;

	if (strlen(value) >= sizeof(text))
		return fail(parser, "'%s' is not an address or prefix", value);
	strcpy(text, value);
	slash = strchr(text, '/');
	if (slash)
		*slash++ = '\0';
	family = rule_address_parse(text, address);
	if (family == FLOW_NO_FAMILY)
		return fail(parser, "'%s' is not an IPv4 or IPv6 address or prefix%s", value, advise_address(value));
	length = rule_address_bits(family);
	if (slash && rule_number_parse(slash, length, &length) &&
	    (family != FLOW_IPV4 || parse_netmask(slash, &length)))
		return fail(parser, "'%s': the prefix length must be 0 to %u%s", value, rule_address_bits(family),
			    without_zeros(slash));
	if (family == FLOW_IPV6 && rule_is_mapped(address) && length > MAPPED_BITS) {
		family = FLOW_IPV4;
		length -= MAPPED_BITS;
		memcpy(&mapped, address->byte + MAPPED_BITS / 8, sizeof(mapped));
		*address = rule_ipv4_address(mapped);
	}
	if (rule->family != FLOW_NO_FAMILY && rule->family != family)
		return fail(parser, "'%s' is %s, but the rule's other address is not", value,
			    family == FLOW_IPV4 ? "IPv4" : "IPv6");
	rule->family = family;
	*(keyword->is_dst ? &rule->dst_len : &rule->src_len) = length;
	if (rule_is_network_of(address, length, address))
		return 0;
	*address = rule_network(address, length);
	/*
	 * Nobody means 16 million addresses by 192.0.2.5/8: that is a wrong key, or the end of a file that is cut. To
	 * Cisco, 192.0.2.1 0.0.0.0 is a host.
	 */
	if (parser->masked && length >= (family == FLOW_IPV4 ? MASKED_MIN_IPV4 : MASKED_MIN_IPV6)) {
		if (!parser->masked->count++)
			strcpy(parser->masked->first, value);
		return 0;
	}
	return fail(parser, "'%s' has host bits set; the network is %s%s", value,
		    rule_prefix_format(family, address, length, text),
		    parser->masked ? ": write that, if you mean so many addresses" : "");
}

static int parse_proto(struct parser *parser, const struct keyword *keyword, const char *value)
{
	struct suggest suggest = suggest_for(value);
	char text[SUGGEST_TEXT_BYTES];

	(void)keyword;
	if (rule_protocol_number(value, &parser->rule->proto)) {
		parser->rule->fields |= RULE_PROTO;
		return 0;
	}
	if (!strcasecmp(value, "any") || !strcasecmp(value, "all") || !strcasecmp(value, "ip"))
		return fail(parser, "'%s' is not a protocol: leave proto out, then the rule matches all of them",
			    value);
	for (int number = 0; number <= RULE_PROTO_MAX; number++)
		if (rule_protocol_name(number))
			suggest_offer(&suggest, rule_protocol_name(number));
	return fail(parser, "'%.80s' is not a protocol: write tcp, udp, icmp, ... or a number 0 to 254%s%s", value,
		    without_zeros(value), suggest_text(&suggest, NULL, text));
}

/* "4096/4": all numbers of 16 bits with the same first bits, as in a prefix. */
static int parse_block(struct parser *parser, const struct keyword *keyword, const char *value, unsigned long *number,
		       unsigned int *bits)
{
	const char *slash = strchrnul(value, '/');
	unsigned long length = RULE_PORT_BITS;
	char first[8];

	snprintf(first, sizeof(first), "%.*s", (int)(slash - value), value);
	if (rule_number_parse(first, 65535, number) ||
	    (*slash && rule_number_parse(slash + 1, RULE_PORT_BITS, &length)) || !length || length % RULE_BLOCK_BITS)
		return fail(parser,
			    "'%s %s': must be a number 0 to 65535, or a block of them with /12, /8 or /4: 16/12, 256/8 or 4096/4",
			    keyword->word, value);
	if (*number & (0xffff >> length))
		return fail(parser, "'%s %s': the block of %u numbers starts at %lu", keyword->word, value,
			    0x10000 >> length, *number & ~(0xffffUL >> length));
	*bits = length;
	return 0;
}

static int parse_length(struct parser *parser, const struct keyword *keyword, const char *value)
{
	struct rule *rule = parser->rule;
	unsigned long number;
	unsigned int bits;

	if (parse_block(parser, keyword, value, &number, &bits))
		return -EINVAL;
	rule->length = number;
	rule->details.length_bits = bits;
	return 0;
}

/* "syn,ack"; none: no flag. */
static bool read_flags(const char *text, const char *end, __u8 *flags)
{
	size_t length;

	*flags = 0;
	if (end - text == 4 && !strncasecmp(text, "none", 4))
		return true;
	for (; text <= end; text += length + 1) {
		unsigned int i = 0;

		length = MIN(strcspn(text, ","), (size_t)(end - text));
		while (i < 8 && (strlen(rule_flag_names[i]) != length || strncasecmp(text, rule_flag_names[i], length)))
			i++;
		if (i == 8)
			return false;
		*flags |= 1 << i;
	}
	return true;
}

/* "syn/syn,ack": of the flags behind the slash, just those before it. "syn": it is set, whatever the others are. */
static int parse_flags(struct parser *parser, const struct keyword *keyword, const char *value)
{
	struct rule *rule = parser->rule;
	const char *slash = strchrnul(value, '/'), *end = strchr(value, '\0');
	__u8 mask;

	if (!read_flags(value, slash, &rule->flags) || !read_flags(*slash ? slash + 1 : value, end, &mask))
		return fail(parser, "'%s %.80s': write flags like syn/syn,ack: %s", keyword->word, value,
			    "of fin, syn, rst, psh, ack, urg, ece, cwr those that are set, and of which");
	if (!mask)
		return fail(parser, "'%s %.80s': write of which flags: none/syn,ack", keyword->word, value);
	if (rule->flags & ~mask)
		return fail(parser, "'%s %.80s': all flags before the slash must be behind it, too", keyword->word,
			    value);
	rule->details.flags_mask = mask;
	return 0;
}

static int parse_fragment(struct parser *parser, const struct keyword *keyword, const char *value)
{
	struct rule *rule = parser->rule;

	for (unsigned int i = 0; i < RULE_FRAGMENTS; i++)
		if (!strcasecmp(value, rule_fragments[i].name)) {
			rule->details.fragment_mask = rule_fragments[i].mask;
			rule->fragment = rule_fragments[i].value;
			return 0;
		}
	return fail(parser, "'%s %.80s': the fragment is no (the packet is whole), first, later or any", keyword->word,
		    value);
}

/* 1: the value is the name of a service of the rule's protocol, or of any if the rule has none. 0: it is no name. -EINVAL. */
static int parse_service(struct parser *parser, const struct keyword *keyword, const char *value, unsigned long *number)
{
	const __u8 proto = isalpha((unsigned char)*value) ? rule_phrase_protocol(parser->phrase) : 0;
	__u16 port;

	if (!rule_service_port(value, proto, &port)) {
		if (!proto || !rule_service_port(value, 0, &port))
			return 0;
		return fail(parser, "'%s %s': in /etc/services it is no service of this protocol; write %s %u",
			    keyword->word, value, keyword->word, port);
	}
	*number = port;
	return 1;
}

/* A port and an ICMP type or code use the same member, so a rule must not have both. */
static int parse_port(struct parser *parser, const struct keyword *keyword, const char *value)
{
	struct rule *rule = parser->rule;
	const char *word = keyword->word;
	const bool is_port = keyword->kind == FLOW_PORTS;
	__u8 *free = keyword->is_dst ? &rule->details.dport_free : &rule->details.sport_free;
	unsigned long max = is_port ? 65535 : 255;
	unsigned long number;
	int is_service;

	if (rule->port_kind != FLOW_NO_PORTS && rule->port_kind != keyword->kind)
		return fail(parser, "'%s %s': a rule with an ICMP type or code has no ports", word, value);
	is_service = is_port ? parse_service(parser, keyword, value, &number) : 0;
	if (is_service < 0)
		return is_service;
	if (!is_service && is_port && strchr(value, '/') && isdigit((unsigned char)value[strlen(value) - 1])) {
		unsigned int bits;

		if (parse_block(parser, keyword, value, &number, &bits))
			return -EINVAL;
		*free = RULE_PORT_BITS - bits;
	} else if (is_port && isdigit((unsigned char)*value) && strpbrk(value, "-,")) {
		return fail(parser,
			    "'%s %s': these are several, and one rule has one; add takes several, and so does a list file",
			    word, value);
	} else if (!is_service && rule_number_parse(value, max, &number)) {
		return fail(parser, "'%s %s': must be a number 0 to %lu%s%s", word, value, max, without_zeros(value),
			    is_port && strchr(value, ':')   ? "; a range is written like 80-90" :
			    !is_port && strchr(value, '/')  ? "; write type N code N" :
			    !isalpha((unsigned char)*value) ? "" :
			    is_port                         ? ", or a name in /etc/services" :
							      "; ping is type 8, in IPv6 type 128");
	}
	rule->port_kind = keyword->kind;
	rule->fields |= keyword->is_dst ? RULE_DPORT : RULE_SPORT;
	*(keyword->is_dst ? &rule->dport : &rule->sport) = htons(number);
	return 0;
}

static int parse_state(struct parser *parser, const struct keyword *keyword, const char *value)
{
	if (strcasecmp(value, "new"))
		return fail(parser, "'%s %.80s': the only state of a rule is new, for packets that begin something",
			    keyword->word, value);
	parser->rule->fields |= RULE_NEW;
	return 0;
}

static int parse_rate(struct parser *parser, const struct keyword *keyword, const char *value)
{
	const int error = rule_rate_parse(value, &parser->rule->rate);

	parser->rule->fields |= RULE_RATE;
	if (error == -ERANGE)
		return fail(parser,
			    "'%s %.40s': a rate is 1 to 10^12 packets or bits a second; leave it out to drop all",
			    keyword->word, value);
	return error ? fail(parser,
			    "'%s %.40s': write packets a second like 1000/s or 10k/s, or bits and bytes like "
			    "8Mbit/s and 1MB/s",
			    keyword->word, value) :
		       0;
}

static int parse_action(struct parser *parser, const struct keyword *keyword, const char *value)
{
	struct suggest suggest = suggest_for(value);
	char text[SUGGEST_TEXT_BYTES];
	enum rule_action action;

	if (!rule_action_parse(value, &action)) {
		parser->rule->action = action;
		return 0;
	}
	suggest_offer_choices(&suggest, "drop|pass|monitor");
	return fail(parser, "'%s %.80s': the action is drop, pass or monitor%s", keyword->word, value,
		    suggest_text(&suggest, NULL, text));
}

static int parse_timeout(struct parser *parser, const struct keyword *keyword, const char *value)
{
	__s64 end;

	if (!rule_time_parse(value, &parser->rule->timeout_ms))
		return 0;
	if (!rule_moment_parse(value, &end)) {
		end -= time(NULL);
		if (end <= 0 || end > RULE_TIMEOUT_MAX_S)
			return fail(parser, "'%s %s': this time is %s", keyword->word, value,
				    end <= 0 ? "over" : "more than 68 years away");
		parser->rule->timeout_ms = 1000 * end;
		return 0;
	}
	/* "0", "never", "permanent" */
	if ((value[strspn(value, "0smhdw")] == '\0' && strchr(value, '0')) || isalpha((unsigned char)*value))
		return fail(parser,
			    "'%s %s': must be a time of at least a second; for a rule that stays, leave the timeout out",
			    keyword->word, value);
	return fail(parser,
		    "'%s %s': must be a time like 30s, 15m, 1h30m, 2d or 1y, from a second to 68 years, or a moment like "
		    "2026-12-01T00:00Z",
		    keyword->word, value);
}

static int parse_comment(struct parser *parser, const struct keyword *keyword, const char *value)
{
	value += *value == '"';
	if (strlen(value) >= RULE_COMMENT_BYTES)
		return fail(parser, "'%s %.20s...': a comment has at most 255 bytes", keyword->word, value);
	if (!rule_is_plain(value))
		return fail(parser, "'%s %s': a comment has no quotes or control characters", keyword->word, value);
	if (!rule_is_utf8(value))
		return fail(parser, "'%s': the comment is not UTF-8", keyword->word);
	strcpy(parser->rule->comment, value);
	text_clean(parser->rule->comment);
	return 0;
}

static const struct keyword keywords[] = {
	{ "proto", "PROTOCOL", parse_proto, false, FLOW_NO_PORTS },
	{ "src", "ADDRESS", parse_address, false, FLOW_NO_PORTS },
	{ "sport", "PORT", parse_port, false, FLOW_PORTS },
	{ "dst", "ADDRESS", parse_address, true, FLOW_NO_PORTS },
	{ "dport", "PORT", parse_port, true, FLOW_PORTS },
	{ "type", "N", parse_port, false, FLOW_ICMP },
	{ "code", "N", parse_port, true, FLOW_ICMP },
	{ "flags", "FLAGS", parse_flags, false, FLOW_NO_PORTS },
	{ "fragment", "no|first|later|any", parse_fragment, false, FLOW_NO_PORTS },
	{ "length", "BYTES", parse_length, false, FLOW_NO_PORTS },
	{ "state", "new", parse_state, false, FLOW_NO_PORTS },
	{ "rate", "RATE", parse_rate, false, FLOW_NO_PORTS },
	{ "action", "drop|pass|monitor", parse_action, false, FLOW_NO_PORTS },
	{ "timeout", "TIME", parse_timeout, false, FLOW_NO_PORTS },
	{ "comment", "TEXT", parse_comment, false, FLOW_NO_PORTS },
};

#define KEYWORDS (sizeof(keywords) / sizeof(keywords[0]))

const char *rule_word(size_t index, const char **value)
{
	if (index >= KEYWORDS)
		return NULL;
	*value = keywords[index].value;
	return keywords[index].word;
}

static const struct keyword *find_keyword(const char *word)
{
	for (size_t i = 0; i < KEYWORDS; i++)
		if (*keywords[i].word == tolower((unsigned char)*word) && !strcasecmp(keywords[i].word, word))
			return &keywords[i];
	return NULL;
}

const char *rule_keyword(const char *word)
{
	const struct keyword *keyword = find_keyword(strcasecmp(word, "expires") ? word : "timeout");

	return keyword ? keyword->word : NULL;
}

/* Checks that the words of a rule fit together. ICMP implies IPv4 and ICMPv6 implies IPv6. */
static int check_whole(struct parser *parser)
{
	struct rule *rule = parser->rule;
	const bool has_proto = rule->fields & RULE_PROTO, is_icmp = rule_is_icmp(rule);
	const enum flow_family implied = rule->proto == IPPROTO_ICMP ? FLOW_IPV4 : FLOW_IPV6;

	rule_mark_details(&rule->fields, &rule->details);
	if (rule->details.flags_mask && has_proto && rule->proto != IPPROTO_TCP)
		return fail(parser, "flags are those of TCP: they do not go with protocol %u", rule->proto);
	if (rule->details.flags_mask) {
		rule->fields |= RULE_PROTO;
		rule->proto = IPPROTO_TCP;
	}
	if (rule->fragment == FLOW_FRAGMENT_LATER && rule_lacks_later_fragments(rule))
		return fail(parser,
			    "fragment later: such a packet has no ports, type, code and flags, and begins nothing");
	if (rule->port_kind == FLOW_ICMP && !is_icmp)
		return fail(parser, "type and code need 'proto icmp' or 'proto ipv6-icmp'");
	if (rule->port_kind == FLOW_PORTS && has_proto && !rule_has_ports(rule->proto))
		return fail(parser, "protocol %u has no ports%s", rule->proto, is_icmp ? "; write type and code" : "");
	if (is_icmp && rule->family != FLOW_NO_FAMILY && rule->family != implied)
		return fail(parser, "proto %s does not go with %s addresses",
			    implied == FLOW_IPV4 ? "icmp" : "ipv6-icmp", implied == FLOW_IPV4 ? "IPv6" : "IPv4");
	if (is_icmp)
		rule->family = implied;
	if (rule->fields & RULE_NEW && rule->action == RULE_PASS)
		return fail(parser, "state new goes with action drop or monitor: a pass rule lets all packets pass");
	if (rule->fields & RULE_RATE && rule->action == RULE_PASS)
		return fail(parser, "a rate goes with action drop or monitor: packets above the rate are dropped");
	if (!(rule->fields & ~RULE_RATE) && rule->family == FLOW_NO_FAMILY)
		return fail(parser, "a rule must name a protocol, an address or a port");
	return 0;
}

int rule_phrase_parse(const struct rule_phrase *phrase, enum rule_action action, struct rule *rule,
		      struct rule_masked *masked, struct reason *reason)
{
	struct parser parser = { .rule = rule, .masked = masked, .phrase = phrase, .reason = reason };
	unsigned int seen = 0; /* bit i is set once keywords[i] was read */

	memset(rule, 0, sizeof(*rule));
	rule->family = FLOW_NO_FAMILY;
	rule->action = action;
	for (size_t i = 0; i < phrase->count; i += 2) {
		const struct keyword *keyword = find_keyword(phrase->words[i]);
		const unsigned int bit = 1U << (keyword - keywords);
		const char *value = phrase->words[i + 1];
		int error;

		if (!value)
			return fail(&parser, "'%s' needs a value after it: %s", keyword->word, keyword->value);
		if (seen & bit)
			return fail(&parser, "'%s %s': %s is given twice; write a rule for each", keyword->word, value,
				    keyword->word);
		seen |= bit;
		error = keyword->parse(&parser, keyword, value);
		if (error)
			return error;
	}
	return check_whole(&parser);
}

int rule_parse_words(const char *const *words, size_t count, struct rule *rule, struct reason *reason)
{
	struct rule_phrase phrase;
	int error = rule_phrase_read(&phrase, words, count, false, reason);

	return error ? error : rule_phrase_parse(&phrase, RULE_DROP, rule, NULL, reason);
}

int rule_split(char *text, const char *words[RULE_WORDS_MAX], size_t *count, struct reason *reason)
{
	static const char space[] = " \t\r\n\v\f";

	for (*count = 0; text[strspn(text, space)]; ++*count) {
		char *word = text + strspn(text, space), *end;
		const bool is_comment =
			*word == '"' && *count &&
			suggest_has("comment|reason", words[*count - 1], strlen(words[*count - 1]), false);

		end = *word == '"' ? strchr(++word, '"') : word + strcspn(word, space);
		if (!end)
			return reason_set(reason, -EINVAL, "'%.40s': the quote is not closed", text);
		text = *end ? end + 1 : end;
		*end = '\0';
		if (*count == RULE_WORDS_MAX)
			return reason_set(reason, -EINVAL, "'%.80s': too many words for a rule", word);
		words[*count] = word - is_comment;
	}
	return 0;
}

int rule_words_split(struct rule_words *words, const char *text, struct reason *reason)
{
	if (strlen(text) >= sizeof(words->text))
		return reason_set(reason, -EINVAL, "'%.20s...' is too long for a rule", text);
	return rule_split(strcpy(words->text, text), words->word, &words->count, reason);
}

int rule_parse(const char *text, struct rule *rule, struct reason *reason)
{
	struct rule_words words;
	int error = rule_words_split(&words, text, reason);

	return error ? error : rule_parse_words(words.word, words.count, rule, reason);
}
