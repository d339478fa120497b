// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What operators type, as keywords and values. People who know ipset, nft, ufw or pf write "saddr", "drop",
 * "tcp 443", "192.0.2.1,tcp:443" or "src=192.0.2.1". This file turns such words into the language of parse.c.
 */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "rule/internal.h"
#include "base/suggest.h"

struct phrase_reading {
	struct rule_phrase *phrase;
	const char *const *words;
	size_t count, next;
	const char *port; /* what "port" means: dport, or after ufw's "from" sport; NULL: nothing, in a file */
	bool is_of_file;  /* "A,B" and "A B" could be columns of anything */
	struct reason *reason;
};

#define SERVICE_BYTES 32 /* longer than any name in /etc/services */

#define fail(reading, ...) reason_set((reading)->reason, -EINVAL, __VA_ARGS__)

static const struct synonym {
	const char *words, *keyword;
	const char *value; /* NULL: the next word */
} synonyms[] = {
	{ "saddr|source|from", "src", NULL },
	{ "daddr|destination|to", "dst", NULL },
	{ "protocol|l4proto|nexthdr", "proto", NULL },
	{ "source-port|src-port", "sport", NULL },
	{ "destination-port|dst-port", "dport", NULL },
	{ "ttl|bantime|expires|for|duration", "timeout", NULL },
	{ "reason", "comment", NULL },
	{ "drop|deny|block|ban", "action", "drop" },
	{ "pass|allow|accept|permit|nomatch", "action", "pass" },
	{ "monitor", "action", "monitor" },
};

/* nft and tcpdump write these around the fields; they mean nothing here. */
static const char *const fillers[] = { "counter", "and", "{", "}", "ip", "ip6", "th", "ct" };

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct synonym *find_synonym(const char *word)
{
	for (size_t i = 0; i < COUNT(synonyms); i++)
		if (suggest_has(synonyms[i].words, word, strlen(word), false))
			return &synonyms[i];
	return NULL;
}

const char *rule_keyword_of(const char *word)
{
	const struct synonym *synonym = find_synonym(word);

	return rule_keyword(word) ? rule_keyword(word) : synonym && !synonym->value ? synonym->keyword : NULL;
}

static bool is_filler(const struct phrase_reading *reading, const char *word)
{
	const char *next = reading->next < reading->count ? reading->words[reading->next] : "";

	for (size_t i = 0; i < COUNT(fillers); i++)
		if (!strcmp(fillers[i], word))
			/* "ip saddr", "th dport" */
			return !isalpha((unsigned char)*word) || !strcmp(word, "counter") || !strcmp(word, "and") ||
			       rule_keyword_of(next);
	return false;
}

/* Numbers are no protocols here: "443" alone could be a port. */
static bool is_protocol(const char *word)
{
	__u8 number;

	return isalpha((unsigned char)*word) && rule_protocol_number(word, &number);
}

static bool is_address(const char *word)
{
	return strpbrk(word, ".:") != NULL;
}

bool rule_is_word(const char *word)
{
	bool is_filler = false;

	for (size_t i = 0; i < COUNT(fillers); i++)
		is_filler |= !strcmp(fillers[i], word);
	return is_filler || rule_keyword(word) || find_synonym(word) || is_protocol(word) || is_address(word);
}

static bool is_port(const char *word)
{
	const struct synonym *synonym = find_synonym(word);
	char first[SERVICE_BYTES];
	__u16 number;

	if (isdigit((unsigned char)*word))
		return !strpbrk(word, ".:/");
	/* "https,ssh" */
	snprintf(first, sizeof(first), "%.*s", (int)strcspn(word, ","), word);
	return !rule_keyword(word) && !synonym && !is_protocol(word) && rule_service_port(first, &number);
}

/* ---- the phrase ---- */

static int add(struct phrase_reading *reading, const char *keyword, const char *value)
{
	struct rule_phrase *phrase = reading->phrase;

	if (phrase->count + 2 > RULE_WORDS_MAX)
		return fail(reading, "'%.80s': too many words for a rule", value ? value : keyword);
	phrase->words[phrase->count++] = keyword;
	phrase->words[phrase->count++] = value;
	return 0;
}

/* A copy of the first `length` bytes of `text`. NULL: the text is too long for a rule. */
static char *keep(struct phrase_reading *reading, const char *text, size_t length)
{
	struct rule_phrase *phrase = reading->phrase;
	char *copy = phrase->text + phrase->used;

	if (length >= sizeof(phrase->text) - phrase->used) {
		fail(reading, "'%.40s...': too long for a rule", text);
		return NULL;
	}
	*(char *)mempcpy(copy, text, length) = '\0';
	phrase->used += length + 1;
	return copy;
}

static int add_part(struct phrase_reading *reading, const char *keyword, const char *text, size_t length)
{
	const char *value = keep(reading, text, length);

	return value ? add(reading, keyword, value) : -EINVAL;
}

/* An address without a keyword: the source. More of them make a list: "A,B". */
static int add_source(struct phrase_reading *reading, const char *word)
{
	struct rule_phrase *phrase = reading->phrase;
	char *list;

	for (size_t i = 0; i < phrase->count; i += 2) {
		const char *before = phrase->words[i + 1];

		if (strcmp(phrase->words[i], "src"))
			continue;
		if (!strncmp(word, "255.", 4))
			return fail(reading, "'%s' is a netmask: write %s/%s", word, before, word);
		if (reading->is_of_file)
			return fail(reading, "'src %s': src is given twice; write a rule for each", word);
		list = keep(reading, before, strlen(before));
		if (!list || !keep(reading, word, strlen(word)))
			return -EINVAL;
		list[strlen(before)] = ',';
		phrase->words[i + 1] = list;
		return 0;
	}
	return add(reading, "src", word);
}

/* ---- words ---- */

/* nft writes lists as "{ 80, 443 }", in several words. */
static int add_braced(struct phrase_reading *reading, const char *keyword)
{
	struct rule_phrase *phrase = reading->phrase;
	const char *value = phrase->text + phrase->used, *after = NULL;

	while (reading->next < reading->count && !after) {
		const char *word = reading->words[reading->next++];
		const char *start = word + strspn(word, "{,");
		size_t length = strcspn(start, "}");

		after = start[length] ? start + length + 1 : NULL;
		while (length && start[length - 1] == ',')
			length--;
		if (!length)
			continue;
		if (phrase->text + phrase->used != value)
			phrase->text[phrase->used - 1] = ',';
		if (!keep(reading, start, length))
			return -EINVAL;
	}
	if (phrase->text + phrase->used == value)
		return fail(reading, "'%s {': no value before the '}'", keyword);
	if (!after)
		return fail(reading, "'%s {': a '}' is missing", keyword);
	if (after[strspn(after, ",")])
		return fail(reading, "'}%.80s': write a space after the '}'", after);
	return add(reading, keyword, value);
}

/* "192.0.2.0 - 192.0.2.255", as whois prints it. Returns 1 if the last words are no address and a dash. */
static int add_end_of_range(struct phrase_reading *reading)
{
	struct rule_phrase *phrase = reading->phrase;
	const char *first = phrase->count ? phrase->words[phrase->count - 1] : NULL, *last;
	char *range;

	if (!first || !is_address(first) || strpbrk(first, ",-/") || reading->next == reading->count)
		return 1;
	last = reading->words[reading->next++];
	range = keep(reading, first, strlen(first));
	if (!range || !keep(reading, last, strlen(last)))
		return -EINVAL;
	range[strlen(first)] = '-';
	phrase->words[phrase->count - 1] = range;
	return 0;
}

/* `keyword` is not the word itself where that is a synonym. */
static int add_next(struct phrase_reading *reading, const char *keyword)
{
	const bool takes_address = !strcmp(keyword, "src") || !strcmp(keyword, "dst");
	const char *value;

	if (reading->next == reading->count)
		return add(reading, keyword, NULL);
	value = reading->words[reading->next];
	if (*value == '{' && strcmp(keyword, "comment"))
		return add_braced(reading, keyword);
	reading->next++;
	/* tcpdump's "src port 53" */
	if (takes_address && !strcasecmp(value, "port"))
		return add_next(reading, strcmp(keyword, "src") ? "dport" : "sport");
	/* "src host ADDRESS", "src net PREFIX" */
	if (takes_address && (!strcasecmp(value, "host") || !strcasecmp(value, "net")))
		return add_next(reading, keyword);
	if (!strcmp(keyword, "action")) {
		const struct synonym *synonym = find_synonym(value);

		return add(reading, keyword, synonym && synonym->value ? synonym->value : value);
	}
	/* ufw's "from any" names no address. */
	if (takes_address && (!strcmp(value, "any") || !strcmp(value, "anywhere")))
		return 0;
	return add(reading, keyword, value);
}

/* "tcp:443", "tcp/443" and "443/tcp". Returns 1 if the first `length` bytes of `word` are none of these. */
static int add_port(struct phrase_reading *reading, const char *word, size_t length)
{
	const size_t first = strcspn(word, ":/");
	const bool is_port_first = isdigit((unsigned char)*word);
	const char *port = is_port_first ? word : word + first + 1, *protocol = is_port_first ? word + first + 1 : word;
	size_t port_length, protocol_length;
	char name[16];
	int error;

	if (first + 1 >= length)
		return 1;
	port_length = is_port_first ? first : length - first - 1;
	protocol_length = length - 1 - port_length;
	if (is_port_first && (word[first] != '/' || memchr(word, '.', first)))
		return 1;
	if (protocol_length >= sizeof(name) || memchr(port, ':', port_length))
		return 1;
	*(char *)mempcpy(name, protocol, protocol_length) = '\0';
	if (!strcasecmp(word, "tcp/udp") || !is_protocol(name))
		return 1;
	error = add_part(reading, "proto", protocol, protocol_length);
	return error ? error : add_part(reading, "dport", port, port_length);
}

/* ipset writes "192.0.2.1,tcp:443,198.51.100.7" for source, port and destination; "A,B" are two sources. */
static int add_element(struct phrase_reading *reading, const char *word)
{
	bool has_port = false;
	int error = 0;

	if (reading->is_of_file)
		return fail(reading,
			    "'%.80s': write a rule on each line, or name the columns in the first line: src,dport,...",
			    word);
	for (const char *part = word; !error && *part; part += *part == ',') {
		const size_t length = strcspn(part, ","), digits = strspn(part, "0123456789-");

		if (digits == length) {
			error = add(reading, "proto", "tcp");
			if (!error)
				error = add_part(reading, "dport", part, length);
			has_port = true;
		} else {
			error = add_port(reading, part, length);
			has_port |= !error;
		}
		if (error > 0) {
			const char *address = keep(reading, part, length);

			error = !address ? -EINVAL :
				has_port ? add(reading, "dst", address) :
					   add_source(reading, address);
		}
		part += length;
	}
	return error;
}

static int read_word(struct phrase_reading *reading, const char *word)
{
	const struct synonym *synonym;
	const char *equals = strchr(word, '=');
	__u8 number;
	int error;

	/* The fast way for lists of prefixes. */
	if (isdigit((unsigned char)*word) && is_address(word) && !strpbrk(word, ",="))
		return add_source(reading, word);
	synonym = find_synonym(word);
	if (!strcasecmp(word, "port") && reading->port)
		return add_next(reading, reading->port);
	if (synonym && !strcasecmp(word, "from"))
		reading->port = "sport";
	if (synonym && !strcasecmp(word, "to"))
		reading->port = "dport";
	if (synonym)
		return synonym->value ? add(reading, synonym->keyword, synonym->value) :
					add_next(reading, synonym->keyword);
	if (is_filler(reading, word))
		return 0;
	if (!strcmp(word, "-") && (error = add_end_of_range(reading)) <= 0)
		return error;
	if (is_protocol(word)) {
		/* "tcp", "tcp 443", "tcp https" */
		const bool has_port = rule_protocol_number(word, &number) && rule_has_ports(number) &&
				      reading->next < reading->count && is_port(reading->words[reading->next]);

		error = add(reading, "proto", word);
		return error || !has_port ? error : add(reading, "dport", reading->words[reading->next++]);
	}
	if (equals) {
		const char *name = keep(reading, word, equals - word);
		const char *keyword = name ? rule_keyword_of(name) : NULL;

		if (keyword)
			return add(reading, keyword, equals + 1);
	}
	if (strchr(word, ',') && is_address(word))
		return add_element(reading, word);
	error = add_port(reading, word, strlen(word));
	if (error <= 0)
		return error;
	return is_address(word) ?
		       add_source(reading, word) :
		       rule_unknown_reason(reading->phrase, word,
					   reading->next < reading->count ? reading->words[reading->next] : NULL,
					   reading->reason);
}

int rule_phrase_read(struct rule_phrase *phrase, const char *const *words, size_t count, bool is_of_file,
		     struct reason *reason)
{
	struct phrase_reading reading = { .phrase = phrase,
					  .words = words,
					  .count = count,
					  .is_of_file = is_of_file,
					  .reason = reason,
					  .port = is_of_file ? NULL : "dport" };
	int error = 0;

	phrase->count = phrase->used = 0;
	while (!error && reading.next < count) {
		const char *word = words[reading.next++];

		error = rule_keyword(word) ? add_next(&reading, rule_keyword(word)) : read_word(&reading, word);
	}
	return error;
}
