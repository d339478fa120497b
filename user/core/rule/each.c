// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Words that mean several rules: ranges of addresses and ports, and values joined by commas. A range of addresses
 * becomes the fewest prefixes. A range of ports becomes one rule for each port; a range of more than RULE_EACH_MAX ports
 * becomes rules for blocks of ports, and so does a range of lengths.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rule/internal.h"
#include "base/memory.h"

#define NUMBER_DIGITS 5 /* of a port in a range */

/* The values that a word means, one after the other. */
struct values {
	const char *rest; /* elements not taken yet */
	bool is_port;     /* or a length */
	bool is_in_range;
	bool has_blocks; /* of a long range, and of lengths: the fewest blocks, as 4096/4 */
	bool is_length;
	struct rule_range addresses;
	unsigned int port, last_port;
};

static bool is_of_ports(const char *keyword)
{
	return !strcmp(keyword, "sport") || !strcmp(keyword, "dport") || !strcmp(keyword, "length");
}

/* Finds the next word from *at on that means several values, and sets *at. false: there is none. */
static bool find_several(const struct rule_phrase *phrase, size_t *at)
{
	for (; *at < phrase->count; *at += 2) {
		const char *keyword = phrase->words[*at], *value = phrase->words[*at + 1];

		if (!value)
			continue;
		if (!strcmp(keyword, "src") || !strcmp(keyword, "dst") ? strpbrk(value, ",-") != NULL :
		    is_of_ports(keyword)                               ? strchr(value, ',') ||
						   (*value >= '0' && *value <= '9' && strchr(value, '-')) :
					   !strcmp(keyword, "proto") && strchr(value, ','))
			return true;
	}
	return false;
}

/* Only digits, up to `end`. scanf() would accept "-1". */
static bool parse_port(const char *text, char end, unsigned int *number)
{
	const size_t digits = strspn(text, "0123456789");

	*number = digits <= NUMBER_DIGITS ? strtoul(text, NULL, 10) : 0;
	return digits && digits <= NUMBER_DIGITS && !rule_has_leading_zero(text) && text[digits] == end;
}

static struct values values_of(const struct rule_phrase *phrase, size_t at)
{
	return (struct values){ .rest = phrase->words[at + 1],
				.is_port = is_of_ports(phrase->words[at]),
				.is_length = !strcmp(phrase->words[at], "length") };
}

unsigned int rule_block_bits(unsigned int first, unsigned int last)
{
	unsigned int bits = 0;

	while (bits + RULE_BLOCK_BITS < RULE_PORT_BITS && !(first >> bits & ((1 << RULE_BLOCK_BITS) - 1)) &&
	       last - first >= (1U << (bits + RULE_BLOCK_BITS)) - 1)
		bits += RULE_BLOCK_BITS;
	return bits;
}

/* Takes the next value. 1; 0 at the end; -EINVAL. */
static int next_value(struct values *values, char text[RULE_RANGE_BYTES], struct reason *reason)
{
	union flow_addr address;
	unsigned int bits;
	size_t length;

	for (;;) {
		if (values->is_in_range && values->is_port && values->port <= values->last_port) {
			bits = values->has_blocks ? rule_block_bits(values->port, values->last_port) : 0;
			sprintf(text, bits ? "%u/%u" : "%u", values->port, RULE_PORT_BITS - bits);
			values->port += 1U << bits;
			return 1;
		}
		if (values->is_in_range && !values->is_port && rule_range_next(&values->addresses, &address, &bits)) {
			/* Messages quote the length of each prefix, even of a single address. */
			rule_prefix_format(values->addresses.family, &address,
					   rule_address_bits(values->addresses.family), text);
			sprintf(text + strlen(text), "/%u", bits);
			return 1;
		}
		if (!*values->rest)
			return 0;
		/* The next element: one value, or a range. */
		length = strcspn(values->rest, ",");
		if (!length || length >= RULE_RANGE_BYTES)
			return reason_set(reason, -EINVAL, "'%.80s': %s", values->rest,
					  length ? "too long" : "no value before or after a comma");
		*(char *)mempcpy(text, values->rest, length) = '\0';
		values->rest += length;
		if (*values->rest && !*++values->rest)
			return reason_set(reason, -EINVAL, "'%.80s,': no value after the comma", text);
		if (!strchr(text, '-') || (values->is_port && !(*text >= '0' && *text <= '9')))
			return 1;
		if (!values->is_port && rule_range_parse(text, &values->addresses, reason))
			return -EINVAL;
		if (values->is_port && (!parse_port(text, '-', &values->port) ||
					!parse_port(strchr(text, '-') + 1, '\0', &values->last_port) ||
					values->port > values->last_port || values->last_port > 65535))
			return reason_set(reason, -EINVAL, "'%s' is not a range of %s", text,
					  values->is_length ? "lengths, like 0-127" : "ports, like 80-443");
		values->has_blocks = values->is_length || values->last_port - values->port >= RULE_EACH_MAX;
		values->is_in_range = true;
	}
}

/* Makes one rule for each combination of values in the words from `at` on. */
static int take_from(struct rule_each *each, struct rule_phrase *phrase, size_t at, struct reason *reason)
{
	char text[RULE_RANGE_BYTES];
	struct values values;
	struct rule rule;
	const char *word;
	int got, error = 0;

	if (!find_several(phrase, &at)) {
		error = rule_phrase_parse(phrase, each->action, &rule, each->is_strict ? NULL : &each->masked, reason);
		return error ? error : each->take(&rule, each->context);
	}
	values = values_of(phrase, at);
	word = phrase->words[at + 1];
	phrase->words[at + 1] = text;
	while (!error && (got = next_value(&values, text, reason)))
		error = got < 0 ? got : take_from(each, phrase, at + 2, reason);
	phrase->words[at + 1] = word;
	return error;
}

static int take_none(const struct rule *rule, void *context)
{
	(void)rule, (void)context;
	return 0;
}

int rule_each(struct rule_each *each, const char *const *words, size_t count, struct reason *reason)
{
	struct rule_each trial = *each;
	struct rule_phrase phrase;
	__u64 rules = 1;
	int error = rule_phrase_read(&phrase, words, count, each->is_of_file, reason);

	for (size_t at = 0; !error && find_several(&phrase, &at); at += 2) {
		struct values values = values_of(&phrase, at);
		char text[RULE_RANGE_BYTES];
		__u64 taken = 0;

		while ((error = next_value(&values, text, reason)) > 0)
			taken++;
		/* The product of several ranges may overflow. */
		if (__builtin_mul_overflow(rules, taken, &rules))
			rules = ~0ULL;
	}
	if (error)
		return error;
	if (rules > RULE_EACH_MAX)
		return reason_set(reason, -EINVAL,
				  "its ranges mean %llu rules; one line may have at most %d: name fewer ports", rules,
				  RULE_EACH_MAX);
	/* If one of several rules is bad, none may be taken. */
	trial.take = take_none;
	error = rules > 1 ? take_from(&trial, &phrase, 0, reason) : 0;
	return error ? error : take_from(each, &phrase, 0, reason);
}

/* ---- into memory ---- */

static int take_rule(const struct rule *rule, void *context)
{
	struct rules *rules = context;

	if (array_grow(&rules->rule, rules->count, sizeof(*rules->rule)))
		return -ENOMEM;
	rules->rule[rules->count++] = *rule;
	return 0;
}

int rules_parse(struct rules *rules, const char *const *words, size_t count, bool is_strict, struct reason *reason)
{
	struct rule_each each = { .take = take_rule, .context = rules, .is_strict = is_strict };
	int error;

	*rules = (struct rules){};
	error = rule_each(&each, words, count, reason);
	rules->masked = each.masked;
	if (error == -ENOMEM)
		reason_set(reason, error, "no memory for the rules");
	if (error)
		rules_free(rules);
	return error;
}

void rules_free(struct rules *rules)
{
	free(rules->rule);
	*rules = (struct rules){};
}

/* ---- ranges of addresses: the fewest prefixes ---- */

typedef unsigned __int128 wide;

#define WIDE_MAX (~(wide)0)

static wide to_number(enum flow_family family, const union flow_addr *address)
{
	if (family == FLOW_IPV4)
		return ntohl(address->v4);
	return (wide)__builtin_bswap64(address->word[0]) << 64 | __builtin_bswap64(address->word[1]);
}

static union flow_addr to_address(enum flow_family family, wide number)
{
	if (family == FLOW_IPV4)
		return rule_ipv4_address(htonl(number));
	return (union flow_addr){ .word = { __builtin_bswap64(number >> 64), __builtin_bswap64((__u64)number) } };
}

int rule_range_parse(const char *text, struct rule_range *range, struct reason *reason)
{
	const char *dash = strchrnul(text, '-');
	const size_t length = dash - text;
	char first[INET6_ADDRSTRLEN];
	enum flow_family last_family = FLOW_NO_FAMILY;

	range->family = FLOW_NO_FAMILY;
	if (*dash && length < sizeof(first)) {
		*(char *)mempcpy(first, text, length) = '\0';
		range->family = rule_address_parse(first, &range->first);
		last_family = rule_address_parse(dash + 1, &range->last);
	}
	if (range->family == FLOW_NO_FAMILY || last_family == FLOW_NO_FAMILY)
		return reason_set(reason, -EINVAL, "'%s' is not a range of addresses, like 192.0.2.1-192.0.2.9", text);
	if (range->family != last_family)
		return reason_set(reason, -EINVAL, "'%s': a range is of IPv4 or of IPv6 addresses", text);
	/* Prefixes of mapped addresses are read as IPv4, others in the same range are not. */
	if (range->family == FLOW_IPV6 && (rule_is_mapped(&range->first) || rule_is_mapped(&range->last)))
		return reason_set(reason, -EINVAL,
				  "'%s': no packet has an IPv4 address written as IPv6; write it as "
				  "IPv4",
				  text);
	if (to_number(range->family, &range->first) > to_number(range->family, &range->last))
		return reason_set(reason, -EINVAL, "'%s': the range ends before it starts", text);
	return 0;
}

bool rule_range_next(struct rule_range *range, union flow_addr *address, unsigned int *length)
{
	const unsigned int bits = rule_address_bits(range->family);
	const wide first = to_number(range->family, &range->first);
	const wide last = to_number(range->family, &range->last);
	unsigned int host_bits = 0;

	if (first > last)
		return false;
	/* The start must be aligned to the prefix, and the prefix must not reach beyond the end. */
	while (host_bits < bits && !(first >> host_bits & 1) && last - first >= (WIDE_MAX >> (127 - host_bits)))
		host_bits++;
	*address = range->first;
	*length = bits - host_bits;
	if (last - first == (host_bits ? WIDE_MAX >> (128 - host_bits) : 0)) {
		/* first + 2^host_bits could overflow: an empty range instead. */
		range->first = to_address(range->family, 1);
		range->last = to_address(range->family, 0);
	} else {
		range->first = to_address(range->family, first + ((wide)1 << host_bits));
	}
	return true;
}
