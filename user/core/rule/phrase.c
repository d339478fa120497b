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
	const char *all;  /* all addresses of the family that nft's ip or ip6 means; NULL: neither came */
	const char *list; /* the last one that join() made, */
	size_t list_end;  /* and its end in phrase->text */
	bool may_list;    /* an address without a keyword came: another one makes a list */
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
	{ "bantime|expires|for|duration", "timeout", NULL },
	{ "reason", "comment", NULL },
	{ "drop|deny|block|ban", "action", "drop" },
	{ "pass|allow|accept|permit", "action", "pass" },
	{ "monitor", "action", "monitor" },
};

/* nft and tcpdump write these around the fields, some only before fields that are the same here. */
static const struct {
	const char *words, *before; /* NULL: anything */
	const char *all;            /* addresses of the family that the rule is for */
} fillers[] = {
	{ "counter|and", NULL, NULL },
	{ "ip", "saddr|daddr|protocol|length|src|dst|proto", "0.0.0.0/0" },
	{ "ip6", "saddr|daddr|nexthdr|src|dst|proto", "::/0" },
	{ "th", "sport|dport", NULL },
	{ "meta", "l4proto", NULL },
	{ "ct", "state", NULL },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct synonym *find_synonym(const char *word)
{
	for (size_t i = 0; i < COUNT(synonyms); i++)
		if (suggest_has(synonyms[i].words, word, strlen(word), false))
			return &synonyms[i];
	return NULL;
}

bool rule_is_comment(const char *word)
{
	return suggest_has("comment|reason", word, strlen(word), false);
}

const char *rule_keyword_of(const char *word)
{
	const struct synonym *synonym = find_synonym(word);

	return rule_keyword(word) ? rule_keyword(word) : synonym && !synonym->value ? synonym->keyword : NULL;
}

static const char *next_word(const struct phrase_reading *reading)
{
	return reading->next < reading->count ? reading->words[reading->next] : "";
}

/* 1: the word is a filler, and now read. 0: it is none, or not before this field. */
static int read_filler(struct phrase_reading *reading, const char *word)
{
	const char *next = next_word(reading);
	size_t i = 0;

	while (i < COUNT(fillers) && !suggest_has(fillers[i].words, word, strlen(word), false))
		i++;
	if (i == COUNT(fillers) || (fillers[i].before && !suggest_has(fillers[i].before, next, strlen(next), false)))
		return 0;
	if (fillers[i].all && reading->all && fillers[i].all != reading->all)
		return fail(reading, "'%s %s': a packet is IPv4 or IPv6; write a rule for each", word, next);
	reading->all = fillers[i].all ? fillers[i].all : reading->all;
	return 1;
}

/* Numbers are no protocols here: "443" alone could be a port. Nor is "ipv6", which rather means the family. */
static bool is_protocol(const char *word)
{
	__u8 number;

	return isalpha((unsigned char)*word) && strcasecmp(word, "ipv6") && rule_protocol_number(word, &number);
}

static bool is_address(const char *word)
{
	return strpbrk(word, ".:") != NULL;
}

bool rule_is_word(const char *word)
{
	bool is_filler = false;

	for (size_t i = 0; i < COUNT(fillers); i++)
		is_filler |= suggest_has(fillers[i].words, word, strlen(word), true);
	return is_filler || rule_keyword(word) || find_synonym(word) || is_protocol(word) || is_address(word);
}

static bool is_port(const char *word, __u8 proto)
{
	const struct synonym *synonym = find_synonym(word);
	char first[SERVICE_BYTES];
	__u16 number;

	if (isdigit((unsigned char)*word))
		return !strpbrk(word, ".:/");
	/* "https,ssh" */
	snprintf(first, sizeof(first), "%.*s", (int)strcspn(word, ","), word);
	return !rule_keyword(word) && !synonym && !is_protocol(word) && 
	       (rule_service_port(first, proto, &number) || rule_service_port(first, 0, &number));
}

/* ---- the phrase ---- */

static int add(struct phrase_reading *reading, const char *keyword, const char *value)
{
	struct rule_phrase *phrase = reading->phrase;
	const char *next = next_word(reading);

	if (phrase->count + 2 > RULE_WORDS_MAX)
		return fail(reading, "'%.80s': too many words for a rule", value ? value : keyword);
	if (value && *next && !strcmp(keyword, "comment") && rule_is_open_comment(value))
		return fail(reading,
			    "'%.40s' follows the comment '%.40s'; quote a comment of several words: comment "
			    "\"%.40s %.40s\"; one of a single word comes last",
			    next, value, value, next);
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

/* Where the phrase has the value for this keyword; NULL: nowhere. */
static const char **find_value(const struct rule_phrase *phrase, const char *keyword)
{
	for (size_t i = 0; i < phrase->count; i += 2)
		if (!strcmp(phrase->words[i], keyword))
			return (const char **)&phrase->words[i + 1];
	return NULL;
}

__u8 rule_phrase_protocol(const struct rule_phrase *phrase)
{
	const char **value = find_value(phrase, "proto");
	__u8 number;

	return value && *value && rule_protocol_number(*value, &number) ? number : 0;
}

/* Makes "value,text" of *value; only "text" if that is NULL. Each text costs its length once. 0; -EINVAL. */
static int join(struct phrase_reading *reading, const char **value, char separator, const char *text, size_t length)
{
	struct rule_phrase *phrase = reading->phrase;
	const bool is_first = !*value;
	char *added;

	if (!is_first && (*value != reading->list || reading->list_end != phrase->used))
		*value = keep(reading, *value, strlen(*value));
	added = is_first || *value ? keep(reading, text, length) : NULL;
	if (!added)
		return -EINVAL;
	if (is_first)
		*value = added;
	else
		added[-1] = separator;
	reading->list = *value;
	reading->list_end = phrase->used;
	return 0;
}

/* An address without a keyword: the source. More of them make a list: "A,B". */
static int add_source(struct phrase_reading *reading, const char *word)
{
	struct rule_phrase *phrase = reading->phrase;
	const char **value = find_value(phrase, "src");

	if (phrase->count && !strcmp(phrase->words[phrase->count - 2], "dst"))
		return fail(reading, "'%.80s' after a dst: write src %.80s, or for several destinations dst A,B", word,
			    word);
	if (!value) {
		reading->may_list = true;
		return add(reading, "src", word);
	}
	if (*value && !strncmp(word, "255.", 4))
		return fail(reading, "'%s' is a netmask: write %s/%s", word, *value, word);
	if (!strncmp(word, "0.", 2) && !strchr(word, '/'))
		return fail(reading, "'%s' is the mask of a Cisco router: write ADDRESS/LENGTH", word);
	if (reading->is_of_file || !reading->may_list)
		return fail(reading, "'src %.80s': src is given twice; write a rule for each", word);
	return join(reading, value, ',', word, strlen(word));
}

/* ---- words ---- */

/* nft writes lists as "{ 80, 443 }", in several words. */
static int add_braced(struct phrase_reading *reading, const char *keyword)
{
	const char *value = NULL, *after = NULL;

	while (reading->next < reading->count && !after) {
		const char *word = reading->words[reading->next++];
		const char *start = word + strspn(word, "{,");
		size_t length = strcspn(start, "}");

		after = start[length] ? start + length + 1 : NULL;
		while (length && start[length - 1] == ',')
			length--;
		if (length && join(reading, &value, ',', start, length))
			return -EINVAL;
	}
	if (!value)
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
	const char **value = phrase->count ? &phrase->words[phrase->count - 1] : NULL, *last = next_word(reading);

	if (!value || !*value || !is_address(*value) || strpbrk(*value, ",-/") || !*last)
		return 1;
	reading->next++;
	return join(reading, value, '-', last, strlen(last));
}

/* `keyword` is not the word itself where that is a synonym. */
static int add_next(struct phrase_reading *reading, const char *keyword)
{
	const bool takes_address = !strcmp(keyword, "src") || !strcmp(keyword, "dst");
	const char *value;

	if (reading->next == reading->count)
		return add(reading, keyword, NULL);
	value = reading->words[reading->next];
	/* In nft, flags in braces are all flags that a packet has. */
	if (*value == '{' && strcmp(keyword, "comment") && strcmp(keyword, "flags"))
		return add_braced(reading, keyword);
	if (ispunct((unsigned char)*value) && strchr("!<>=&^", *value) && strcmp(keyword, "comment"))
		return fail(reading,
			    "'%s %.40s': a rule has no such signs: write the value alone, or ranges, 0-21,23-65535 for all "
			    "but 22",
			    keyword, value);
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
	if (takes_address && !reading->all && (!strcmp(value, "any") || !strcmp(value, "anywhere")))
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
	const char *port = strchr(word, ',') + 1, *dst = strchrnul(port, ',');
	const size_t length = dst - port, digits = strspn(port, "0123456789-");
	const char *src;
	int error;

	if (reading->is_of_file)
		return fail(reading,
			    "'%.80s': write a rule on each line, or name the columns in the first line: src,dport,...",
			    word);
	if (length && digits == length) {
		error = add(reading, "proto", "tcp");
		error = error ? error : add_part(reading, "dport", port, length);
	} else {
		error = add_port(reading, port, length);
	}
	if (error)
		return error > 0 ? add_source(reading, word) : error;
	reading->may_list = false; /* one address has this port, not those before it */
	src = keep(reading, word, port - 1 - word);
	error = src ? add_source(reading, src) : -EINVAL;
	reading->may_list = false;
	return error || !*dst ? error : add(reading, "dst", dst + 1);
}

/* Refuses fields of nft that are other ones here. 0; -EINVAL. */
static int refuse_field(struct phrase_reading *reading, const char *protocol, const char *field)
{
	const char *value = reading->next + 1 < reading->count ? reading->words[reading->next + 1] : "";

	if (!strcasecmp(protocol, "udp") && !strcasecmp(field, "length"))
		return fail(reading,
			    "'udp length' is without the IP header; write proto udp length N, of the whole packet");
	if (!strcasecmp(protocol, "tcp") && !strcasecmp(field, "flags") && strpbrk(value, ",{") && !strchr(value, '/'))
		return fail(reading,
			    "'tcp flags %.40s': for all of them write flags syn,ack/syn,ack; for any of them, "
			    "as in nft, a rule for each",
			    value);
	return 0;
}

static int read_word(struct phrase_reading *reading, const char *word)
{
	const struct synonym *synonym;
	const char *equals = strchr(word, '='), *next = next_word(reading);
	__u8 number;
	int error;

	/* The fast way for lists of prefixes. */
	if (isdigit((unsigned char)*word) && is_address(word) && !strpbrk(word, ",="))
		return add_source(reading, word);
	synonym = find_synonym(word);
	if (!strcasecmp(word, "port") && reading->port)
		return add_next(reading, reading->port);
	if (!strcasecmp(word, "to") && find_value(reading->phrase, "src") &&
	    (!reading->port || strcmp(reading->port, "sport")))
		return fail(reading, "'to %.80s': write a destination as dst %.80s, or from A to B; a range is A-B",
			    next, next);
	if (synonym && !strcasecmp(word, "from"))
		reading->port = "sport";
	if (synonym && !strcasecmp(word, "to"))
		reading->port = "dport";
	if (synonym)
		return synonym->value ? add(reading, synonym->keyword, synonym->value) :
					add_next(reading, synonym->keyword);
	if (is_protocol(word)) {
		/* "tcp", "tcp 443", "tcp https" */
		const bool has_port = rule_protocol_number(word, &number) && rule_has_ports(number) &&
				      is_port(next, number);

		error = refuse_field(reading, word, next);
		if (!error)
			error = add(reading, "proto", word);
		return error || !has_port ? error : add(reading, "dport", reading->words[reading->next++]);
	}
	error = read_filler(reading, word);
	if (error)
		return error > 0 ? 0 : error;
	if (!strcmp(word, "-") && (error = add_end_of_range(reading)) <= 0)
		return error;
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
	/* An address of the other family does not go with these. */
	if (!error && reading.all && (!find_value(phrase, "src") || !find_value(phrase, "dst")))
		error = add(&reading, find_value(phrase, "src") ? "dst" : "src", reading.all);
	return error;
}
