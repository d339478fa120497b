// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What to do about a word that no rule has: most of these are words of other tools. */
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/safe_text.h"
#include "base/suggest.h"
#include "rule/internal.h"

#define fail(reason, ...) reason_set(reason, -EINVAL, __VA_ARGS__)
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define TRANSLATED_BYTES 200

/* Words of other tools, and what to write. */
static const struct synonym {
	const char *words, *ours;
} synonyms[] = {
	{ "saddr|source|from", "src" },
	{ "daddr|destination|to", "dst" },
	{ "protocol|l4proto|nexthdr", "proto" },
	{ "source-port|src-port", "sport" },
	{ "destination-port|dst-port", "dport" },
	{ "bantime|for|duration", "timeout" },
	{ "reason", "comment" },
	{ "deny|block|ban", "action drop" },
	{ "allow|accept|permit", "action pass" },
};

const char *rule_synonym(const char *word)
{
	for (size_t i = 0; i < COUNT(synonyms); i++)
		if (suggest_has(synonyms[i].words, word, strlen(word), false))
			return synonyms[i].ours;
	return NULL;
}

const char *rule_keyword_of(const char *word)
{
	const char *ours = rule_synonym(word);

	return rule_keyword(word) ? rule_keyword(word) : ours ? rule_keyword(ours) : NULL;
}

bool rule_has_address(const char *word)
{
	return strpbrk(word, ".:");
}

/* Numbers are no protocols here: "443" alone could be a port. Nor is "ipv6", which rather means the family. */
bool rule_names_protocol(const char *word)
{
	__u8 number;

	return isalpha((unsigned char)*word) && strcasecmp(word, "ipv6") && rule_protocol_number(word, &number);
}

bool rule_is_word(const char *word)
{
	static const char fillers[] = "counter|and|ip|ip6|th|meta|ct";
	enum rule_action action;

	return suggest_has(fillers, word, strlen(word), true) || rule_keyword(word) ||
	       !rule_action_parse(word, &action) || rule_synonym(word) || rule_names_protocol(word) ||
	       rule_has_address(word);
}

/* Words of other tools that no rule has, and what to do. */
static const struct advice strangers[] = {
	{ "port", "is the sender's or the receiver's: write sport or dport" },
	{ "tcp/udp|tcp,udp", "is not a word of a rule: both protocols are written proto tcp,udp" },
	{ "ports|portrange", "is not a word of a rule: several ports are written dport 80,443 or dport 80-90" },
	{ "or", "is not a word of a rule: several values are written A,B; for other fields write a rule for each" },
	{ "netmask|mask", "is not a word of a rule: write ADDRESS/MASK" },
	{ "{|}", "is not a word of a rule: several values are written A,B" },
	{ "counter|and|meta|th", "is not a word of a rule: leave it out" },
	{ "nomatch", "is no field of a rule; sets of ipset are read by: import FILE --format ipset" },
	{ "reject", "is not possible: no answer is sent; write action drop" },
	{ "syn", "is not a word of a rule: write flags syn/syn,ack, or for packets that begin something state new" },
	{ "ct|established|related|keep",
	  "is no field of a rule: each packet is judged alone, without its connection; for packets that begin something write state new" },
	{ "iif|iifname|dev|on",
	  "is no field of a rule: leave out the interface, a rule holds on all of xdp-cuckoo load" },
	{ "in", "is no field of a rule, which holds in both directions; leave it out" },
	{ "out", "is no field of a rule, which holds in both directions: load the filter with --outgoing" },
	{ "ip|ip6|ipv4|ipv6",
	  "is not a word of a rule: leave it out; an address shows its family, and src ::/0 is all of IPv6; of the header only addresses, "
	  "protocol and length (of the whole packet) are compared; IPv6 in IPv4 is proto ipv6" },
	{ "ttl|hoplimit", "is no field of a rule: hops are not compared; a rule ends by: timeout TIME" },
	{ "per|each", "is not possible: a rate is for all packets of a rule, not for each source" },
	{ "mac", "is no field of a rule: rules match IP addresses" },
	{ "limit", "is no field of a rule: write rate 1000/s, and packets above the rate are dropped" },
	{ "log|trace", "is no field of a rule: xdp-cuckoo monitor shows what rules drop, or would drop" },
	{ "not|!|except", "is not possible: write what to drop, and rules with action pass for what must pass" },
	{ "fragments|frag",
	  "is not a word of a rule: write fragment any; what later fragments do that no rule matches says xdp-cuckoo policy" },
	{ "vlan", "is no field of a rule: leave it out, VLAN tags do not matter" },
	{ "ping", "is not a word of a rule: write proto icmp type 8, in IPv6 proto ipv6-icmp type 128" },
	{ "-", "is not a word of a rule: lines of standard input are read by: xdp-cuckoo import -" },
	{ "to",
	  "is not a word of a rule: a destination is written dst ADDRESS, a range without spaces, like 192.0.2.1-192.0.2.9" },
	{ "host|net", "is the sender's or the receiver's: write src ADDRESS or dst ADDRESS, without this word" },
	{ "any|all|*", "is no address: leave it out; packets that no rule matches: xdp-cuckoo policy" },
	{ "file", "is no field of a rule: a file is read by: xdp-cuckoo import FILE" },
	{ "help", "is no field of a rule: write help first: xdp-cuckoo help add" },
	{ "until", "is no field of a rule: write timeout TIME, from now on, or expires 2026-12-01T00:00Z" },
	{ "day|days|hour|hours|minute|minutes|second|seconds",
	  "is not a word of a rule: a time is one word, like 1h30m or 2d" },
};

bool rule_port_split(const char *word, char protocol[RULE_SERVICE_BYTES], char port[RULE_SERVICE_BYTES])
{
	const bool is_port_first = isdigit((unsigned char)*word);
	int end = 0;

	return sscanf(word, "%31[^:/,]%*1[:/]%31[^:/,]%n", is_port_first ? port : protocol,
		      is_port_first ? protocol : port, &end) == 2 &&
	       (!word[end] || word[end] == ',') && rule_names_protocol(protocol);
}

/* What to write for a word of another tool. Empty: nothing is sure. False: it is a word of ours. */
static bool translate(const char *word, const char *next, char text[TRANSLATED_BYTES])
{
	const char *ours = rule_synonym(word), *equals = strchr(word, '='), *comma = strchr(word, ',');
	const bool has_value = next && isalnum((unsigned char)*next) && !strpbrk(next, " {}=");
	char name[RULE_SERVICE_BYTES], port[RULE_SERVICE_BYTES];

	*text = '\0';
	if (ours && (!rule_keyword(ours) || !next))
		snprintf(text, TRANSLATED_BYTES, "%s", ours);
	else if (ours && !strcmp(ours, "comment"))
		snprintf(text, TRANSLATED_BYTES, "comment \"TEXT\"");
	else if (ours && has_value && !suggest_has("any|all|anywhere|host|net|port", next, strlen(next), true))
		snprintf(text, TRANSLATED_BYTES, "%s %.80s", ours, next);
	if (ours)
		return true;
	snprintf(name, sizeof(name), "%.*s", equals ? (int)(equals - word) : 0, word);
	if (equals && rule_keyword_of(name)) {
		enum rule_action ignored;

		ours = strcasecmp(name, "action") ? NULL : rule_synonym(equals + 1);
		if (ours && !rule_keyword(ours))
			snprintf(text, TRANSLATED_BYTES, "%s", ours);
		else if (isalnum((unsigned char)equals[1]) && !strpbrk(equals, " {}") &&
			 (strcasecmp(name, "action") || !rule_action_parse(equals + 1, &ignored)))
			snprintf(text, TRANSLATED_BYTES, "%s %.80s", rule_keyword_of(name), equals + 1);
		return true;
	}
	if (!comma) {
		if (!rule_port_split(word, name, port))
			return false;
		snprintf(text, TRANSLATED_BYTES, "proto %s dport %s", name, port);
		return true;
	}
	if (rule_port_split(word, name, port))
		return true;
	/* ipset writes "192.0.2.1,tcp:443,198.51.100.7" for source, port and destination; "A,B" are two sources. */
	comma++;
	if (comma[strspn(comma, "0123456789-,")] && !rule_port_split(comma, name, port))
		return false;
	if (!rule_port_split(comma, name, port)) {
		strcpy(name, "tcp");
		snprintf(port, sizeof(port), "%.*s", (int)strcspn(comma, ","), comma);
	}
	comma += strcspn(comma, ",");
	if (*port && (!*comma || rule_has_address(comma)) && !strchr(comma + !!*comma, ','))
		snprintf(text, TRANSLATED_BYTES, "src %.*s proto %s dport %s%s%.50s", (int)strcspn(word, ","), word,
			 name, port, *comma ? " dst " : "", comma + !!*comma);
	return true;
}

int rule_foreign_reason(const char *word, const char *const *next, size_t count, struct reason *reason)
{
	const char *advice = advice_find(strangers, COUNT(strangers), word, strlen(word), false);
	const char *value = count > 1 ? next[1] : "";
	char text[TRANSLATED_BYTES];

	if (!strcmp(word, "-") && count)
		return fail(reason, "'-': a range is written without spaces, like 192.0.2.1-192.0.2.9 or 80-90");
	if (advice)
		return fail(reason, "'%s' %s", word, advice);
	/* Fields of nft that are other ones here. */
	if (!strcasecmp(word, "udp") && count && !strcasecmp(*next, "length"))
		return fail(reason,
			    "'udp length' is without the IP header; write proto udp length N, of the whole packet");
	if (!strcasecmp(word, "tcp") && count && !strcasecmp(*next, "flags") && strpbrk(value, ",{") &&
	    !strchr(value, '/'))
		return fail(reason,
			    "'tcp flags %.40s' of nft means any of them; for all of them write proto tcp flags "
			    "syn,ack/syn,ack, or else a rule for each",
			    value);
	if (!translate(word, count ? *next : NULL, text))
		return 0;
	return *text ? fail(reason, "'%.80s' is not a word of a rule; write: %s", word, text) :
		       fail(reason, "'%.80s' is not a word of a rule; the words of a rule: xdp-cuckoo help add", word);
}

static int number_reason(const struct rule_phrase *phrase, const char *word, struct reason *reason)
{
	const __u8 proto = rule_phrase_protocol(phrase);
	const bool is_about_icmp = proto == IPPROTO_ICMP || proto == IPPROTO_ICMPV6;
	__s64 time_ms;

	if (word[strspn(word, "0123456789")] && !rule_time_parse(word, &time_ms))
		return fail(reason, "'%.80s' is not a word of a rule; a time is written: timeout %.20s", word, word);
	if (strchr(word, '/'))
		return fail(reason,
			    "'%.80s' is not a word of a rule; an address has four numbers, like 10.0.0.0/8 or 0.0.0.0/0",
			    word);
	return fail(reason,
		    "'%.80s' is not a word of a rule; rules have no numbers; a %s %.20s, an address is written like "
		    "192.0.2.1",
		    word, is_about_icmp ? "type of ICMP is type" : "port is sport or dport", word);
}

/* Countries and autonomous systems, which lists hold: "country CN", "CN", "AS64496". False: it is none of these. */
static bool has_section(const char *word, const char *next, struct reason *reason)
{
	const char *number = word + (strncasecmp(word, "AS", 2) ? 0 : word[2] == 'N' || word[2] == 'n' ? 3 : 2);
	const bool is_word = suggest_has("geoip|country|geo", word, strlen(word), false);
	const char *code = is_word && next ? next : word;
	const size_t letters = strspn(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");

	if (number != word && !*number && next)
		number = next;
	if (number != word && *number && !number[strspn(number, "0123456789")])
		reason_write(reason,
			     "'AS%.10s' is no address, but a list can hold its networks: write [list as%.10s] with "
			     "preset = asn and asn = %.10s into the configuration, then xdp-cuckoo refresh as%.10s",
			     number, number, number, number);
	else if (is_word || (letters == 2 && !code[2] && code[0] < 'a' && code[1] < 'a'))
		reason_write(reason,
			     "'%.20s' is no address, but a list can hold a country's networks: write [list %.2s] with "
			     "preset = country and country = %.2s into the configuration, then xdp-cuckoo refresh %.2s",
			     code, letters == 2 ? code : "CN", letters == 2 ? code : "CN", letters == 2 ? code : "CN");
	else
		return false;
	return true;
}

int rule_unknown_reason(const struct rule_phrase *phrase, const char *word, const char *next, struct reason *reason)
{
	struct suggest suggest = suggest_for(word);
	const char *known, *ignored;
	__u16 port;
	char text[SUGGEST_TEXT_BYTES], fields[128] = "";

	if (has_section(word, next, reason))
		return -EINVAL;
	if (word[strspn(word, "-")] && *word == '-')
		return fail(reason, "'%.80s' is not a word of a rule; words of a rule have no dashes: %.40s", word,
			    rule_keyword_of(word + strspn(word, "-")) ? rule_keyword_of(word + strspn(word, "-")) :
									word + strspn(word, "-"));
	if (rule_service_port(word, 0, &port))
		return fail(reason, "'%.80s' is not a word of a rule; a port is dport %.80s", word, word);
	/* "add blacklist 192.0.2.1", "add rule inet filter input ip saddr 192.0.2.1" */
	if (isalpha((unsigned char)*word) && !phrase->count && next)
		return fail(reason,
			    "'%.80s' is not a word of a rule; leave out names of sets, tables and chains: add ADDRESS, or "
			    "add tcp dport 443; a list is --list NAME",
			    word);
	if (isdigit((unsigned char)*word))
		return number_reason(phrase, word, reason);
	for (size_t i = 0; (known = rule_word(i, &ignored)); i++) {
		suggest_offer(&suggest, known);
		text_append(fields, sizeof(fields), "%s%s", i ? ", " : "", known);
	}
	return fail(reason, "'%.80s' is not a word of a rule: %s%s", word, fields, suggest_text(&suggest, NULL, text));
}
