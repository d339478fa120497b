// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What to do about a word that no rule has: most of these are words of other tools. */
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "base/safe_text.h"
#include "base/suggest.h"
#include "rule/internal.h"

#define fail(reason, ...) reason_set(reason, -EINVAL, __VA_ARGS__)
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Words of other tools that no rule has, and what to do. */
static const struct advice strangers[] = {
	{ "port", "is the sender's or the receiver's: write sport or dport" },
	{ "tcp/udp|tcp,udp", "is not a word of a rule: both protocols are written proto tcp,udp" },
	{ "ports|portrange", "is not a word of a rule: several ports are written dport 80,443 or dport 80-90" },
	{ "or", "is not a word of a rule: several values are written A,B; for other fields write a rule for each" },
	{ "netmask|mask", "is not a word of a rule: write ADDRESS/MASK" },
	{ "{|}", "belongs behind the name of a field: src { ADDRESS, ADDRESS }" },
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
	  "is no field of a rule: an address shows its family, and src ::/0 is all of IPv6; of the header only addresses, "
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
	{ "-",
	  "is not a word of a rule: lines of standard input are read by: xdp-cuckoo import -; a range is written without spaces, like 192.0.2.1-192.0.2.9 or 80-90" },
	{ "host", "is the sender or the receiver: write src or dst" },
	{ "any|all|*", "is no address: leave it out; packets that no rule matches: xdp-cuckoo policy" },
	{ "file", "is no field of a rule: a file is read by: xdp-cuckoo import FILE" },
	{ "help", "is no field of a rule: write help first: xdp-cuckoo help add" },
	{ "until", "is no field of a rule: write timeout TIME, from now on, or expires 2026-12-01T00:00Z" },
	{ "day|days|hour|hours|minute|minutes|second|seconds", "is not a word of a rule: a time is one word, like 1h30m or 2d" },
};

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
		    word, is_about_icmp ? "type of ICMP is type" : "port is dport", word);
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
	const char *known, *ignored, *advice = advice_find(strangers, COUNT(strangers), word, strlen(word), false);
	__u16 port;
	char text[SUGGEST_TEXT_BYTES], fields[128] = "";

	if (advice)
		return fail(reason, "'%s' %s", word, advice);
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
