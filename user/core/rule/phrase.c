// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Words of a rule as keywords and values. An address needs no keyword if it is the source, nor do protocol and action.
 * Several addresses make a list. Other words are refused, but for some that files may have: unknown_word.c says what to
 * write.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/suggest.h"
#include "rule/internal.h"

struct phrase_reading {
	struct rule_phrase *phrase;
	const char *const *words;
	size_t count, next;
	const char *list; /* the last one that join() made, */
	size_t list_end;  /* and its end in phrase->text */
	bool may_list;    /* an address without a keyword came: another one makes a list */
	bool is_of_file;  /* "A,B" and "A B" could be columns of anything */
	struct reason *reason;
};

#define fail(reading, ...) reason_set((reading)->reason, -EINVAL, __VA_ARGS__)

static const char *next_word(const struct phrase_reading *reading)
{
	return reading->next < reading->count ? reading->words[reading->next] : NULL;
}

static int add(struct phrase_reading *reading, const char *keyword, const char *value)
{
	struct rule_phrase *phrase = reading->phrase;
	const char *next = next_word(reading);

	if (phrase->count + 2 > RULE_WORDS_MAX)
		return fail(reading, "'%.80s': too many words for a rule", value ? value : keyword);
	if (value && next && !strcmp(keyword, "comment") && rule_is_open_comment(value))
		return fail(reading,
			    "'%.40s' follows the comment '%.40s'; quote a comment of several words: comment "
			    "\"%.40s %.40s\"; one of a single word comes last",
			    next, value, value, next);
	phrase->words[phrase->count++] = keyword;
	phrase->words[phrase->count++] = value;
	return 0;
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

/* A copy of the text. NULL: it is too long for a rule. */
static char *keep(struct phrase_reading *reading, const char *text)
{
	struct rule_phrase *phrase = reading->phrase;
	char *copy = phrase->text + phrase->used;
	const size_t length = strlen(text);

	if (length >= sizeof(phrase->text) - phrase->used) {
		fail(reading, "'%.40s...': too long for a rule", text);
		return NULL;
	}
	phrase->used += length + 1;
	return strcpy(copy, text);
}

/* Makes "value,text" of *value, with this separator. Each text costs its length once. 0; -EINVAL. */
static int join(struct phrase_reading *reading, const char **value, char separator, const char *text)
{
	char *added;

	if (*value != reading->list || reading->list_end != reading->phrase->used)
		*value = keep(reading, *value);
	added = *value ? keep(reading, text) : NULL;
	if (!added)
		return -EINVAL;
	added[-1] = separator;
	reading->list = *value;
	reading->list_end = reading->phrase->used;
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
	return join(reading, value, ',', word);
}

static const char *file_action(const char *word)
{
	const char *ours = rule_synonym(word);

	return ours && !rule_keyword(ours) ? ours + strlen("action ") : word;
}

/* nft writes a list as "{ 80, 443 }", in several words. */
static int add_braces(struct phrase_reading *reading, const char *keyword)
{
	const char *value = NULL, *word = "";
	char part[2 * RULE_PREFIX_BYTES]; /* of a range */

	while (*word != '}' && reading->next < reading->count)
		for (word = reading->words[reading->next++]; *(word += strspn(word, "{,")) && *word != '}';) {
			const int length = strcspn(word, ",}");

			snprintf(part, sizeof(part), "%.*s", length, word);
			if (length >= (int)sizeof(part) ||
			    (value ? join(reading, &value, ',', part) : !(value = keep(reading, part))))
				return fail(reading, "'%.40s...': too long for a rule", word);
			word += length;
		}
	if (!value || strcmp(word, "}"))
		return fail(reading, "'%s {': write several values as A,B", keyword);
	return add(reading, keyword, value);
}

static int add_next(struct phrase_reading *reading, const char *keyword)
{
	const char *value = next_word(reading);

	if (value && *value == '{' && reading->is_of_file &&
	    !suggest_has("comment|flags", keyword, strlen(keyword), true))
		return add_braces(reading, keyword);
	if (value && strchr("!<>=&^{", *value) && strcmp(keyword, "comment"))
		return fail(reading,
			    "'%s %.40s': a rule has no such signs: write the value alone, several as A,B, or ranges, "
			    "0-21,23-65535 for all but 22",
			    keyword, value);
	reading->next += value != NULL;
	if (value && reading->is_of_file && !strcmp(keyword, "action"))
		value = file_action(value);
	if (value && (!strcmp(keyword, "src") || !strcmp(keyword, "dst"))) {
		const bool is_any = suggest_has("any|all|anywhere", value, strlen(value), true);

		if (is_any && reading->is_of_file && strcasecmp(value, "all"))
			return 0;
		if (is_any)
			return fail(reading, "'%s %s' is no address; leave out both words", keyword, value);
		/* "src port 53", "src host 192.0.2.1" */
		if (reading->is_of_file && suggest_has("port|host|net", value, strlen(value), false))
			return add_next(reading, strcasecmp(value, "port") ? keyword :
						 *keyword == 's'           ? "sport" :
									     "dport");
		if (!strcasecmp(value, "port"))
			return fail(reading, "'%s port': a port is %cport", keyword, *keyword);
		if (!strcasecmp(value, "host") || !strcasecmp(value, "net"))
			return fail(reading, "'%s %s': write %s ADDRESS; leave out '%s'", keyword, value, keyword,
				    value);
	}
	return add(reading, keyword, value);
}

/* "192.0.2.0 - 192.0.2.255", as whois prints it. 1: the last words are no address and a dash. */
static int add_end_of_range(struct phrase_reading *reading)
{
	struct rule_phrase *phrase = reading->phrase;
	const char **value = phrase->count ? &phrase->words[phrase->count - 1] : NULL, *last = next_word(reading);

	if (!value || !*value || !last || !rule_has_address(*value) || strpbrk(*value, ",-/"))
		return 1;
	reading->next++;
	return join(reading, value, '-', last);
}

static bool has_come(const struct phrase_reading *reading, const char *word)
{
	for (size_t i = 0; i < reading->next; i++)
		if (!strcasecmp(reading->words[i], word))
			return true;
	return false;
}

/* Words around fields in nft and tcpdump that say no more than these. Without an address nothing else tells the family. */
static bool is_filler(const struct phrase_reading *reading, const char *word)
{
	static const struct {
		const char *words, *before;
	} fillers[] = { { "counter|and", NULL },
			{ "ct", "state" },
			{ "th", "sport|dport" },
			{ "meta", "l4proto" },
			{ "ip|ip6", "saddr|daddr|src|dst" } };
	const char *next = next_word(reading);
	const char *behind = next && reading->next + 1 < reading->count ? reading->words[reading->next + 1] : "";

	for (size_t i = 0; i < sizeof(fillers) / sizeof(*fillers); i++)
		if (suggest_has(fillers[i].words, word, strlen(word), false) &&
		    (!fillers[i].before || (next && suggest_has(fillers[i].before, next, strlen(next), false))))
			return *word != 'i' || strpbrk(behind, ".:{!=");
	return false;
}

/*
 * Words of other tools that have one meaning. Files are read for years: a line that is bad from now on would take its rule
 * away, and a pass rule that is gone blocks. 1: the word is none of these.
 */
static int read_foreign(struct phrase_reading *reading, const char *word)
{
	const char *ours = rule_synonym(word), *equals = strchr(word, '=');
	char name[RULE_SERVICE_BYTES], port[RULE_SERVICE_BYTES];
	int error;

	if (!strcmp(word, "-"))
		return add_end_of_range(reading);
	/* "A to B" could be a range. */
	if (!strcasecmp(word, "to") && find_value(reading->phrase, "src") && !has_come(reading, "from"))
		return 1;
	if (ours)
		return rule_keyword(ours) ? add_next(reading, ours) : add(reading, "action", file_action(word));
	if (is_filler(reading, word))
		return 0;
	snprintf(name, sizeof(name), "%.*s", equals ? (int)(equals - word) : 0, word);
	if (equals && rule_keyword_of(name) && (isalnum((unsigned char)equals[1]) || equals[1] == ':'))
		return add(reading, rule_keyword_of(name),
			   strcasecmp(name, "action") ? equals + 1 : file_action(equals + 1));
	if (strchr(word, ',') || !rule_port_split(word, name, port))
		return 1;
	error = add(reading, "proto", keep(reading, name));
	return error ? error : add(reading, "dport", keep(reading, port));
}

static int read_word(struct phrase_reading *reading, const char *word)
{
	const bool is_address = rule_has_address(word), has_comma = strchr(word, ',');
	const char *next = next_word(reading);
	enum rule_action action;
	int error;
	__u16 port;

	/* The fast way for lists of prefixes. */
	if (isxdigit((unsigned char)*word) && is_address && !has_comma && !strchr(word, '='))
		return add_source(reading, word);
	if (rule_keyword(word))
		return add_next(reading, rule_keyword(word));
	if (!rule_action_parse(word, &action))
		return add(reading, "action", word);
	if (reading->is_of_file && (error = read_foreign(reading, word)) <= 0)
		return error;
	if (is_address && has_comma && reading->is_of_file)
		return fail(reading,
			    "'%.80s': write a rule on each line, or name the columns in the first line: src,dport,...",
			    word);
	if (rule_foreign_reason(word, reading->words + reading->next, reading->count - reading->next, reading->reason))
		return -EINVAL;
	if (rule_names_protocol(word)) {
		error = add(reading, "proto", word);
		/* "tcp 443", "tcp https" */
		return !error && reading->is_of_file && next &&
				       (!next[strspn(next, "0123456789,-")] ||
					(!rule_is_word(next) && rule_service_port(next, 0, &port))) ?
			       add_next(reading, "dport") :
			       error;
	}
	if (is_address)
		return add_source(reading, word);
	return rule_unknown_reason(reading->phrase, word, next, reading->reason);
}

int rule_phrase_read(struct rule_phrase *phrase, const char *const *words, size_t count, bool is_of_file,
		     struct reason *reason)
{
	struct phrase_reading reading = {
		.phrase = phrase, .words = words, .count = count, .is_of_file = is_of_file, .reason = reason
	};
	int error = 0;

	phrase->count = phrase->used = 0;
	while (!error && reading.next < count)
		error = read_word(&reading, words[reading.next++]);
	return error;
}
