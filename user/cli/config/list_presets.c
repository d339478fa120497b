// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "config/config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MINUTES(n) ((n)*60 * 1000LL)
#define HOURS(n) MINUTES(60 * (n))
#define FIREHOL "collected from many providers: the terms of each of them apply"
#define IPVERSE "https://raw.githubusercontent.com/ipverse/"
#define IPVERSE_TERMS "free (CC0), by ipverse"
#define SPAMHAUS "free, also for companies; name Spamhaus in a product"

static const struct list_preset presets[] = {
	{ "spamhaus-drop", "https://www.spamhaus.org/drop/drop_v4.json", "spamhaus", HOURS(1), SPAMHAUS,
	  "networks that criminals own or have hijacked", 5, NULL },
	{ "spamhaus-dropv6", "https://www.spamhaus.org/drop/drop_v6.json", "spamhaus", HOURS(1), SPAMHAUS,
	  "the same for IPv6", 5, NULL },
	{ "firehol-level1", "https://iplists.firehol.org/files/firehol_level1.netset", "text", MINUTES(30), FIREHOL,
	  "few mistakes; not for hosts that use 10.0.0.0/8", 10, NULL },
	{ "firehol-level2", "https://iplists.firehol.org/files/firehol_level2.netset", "text", MINUTES(30), FIREHOL,
	  "attacks of the last 48 hours", 5, NULL },
	{ "firehol-level3", "https://iplists.firehol.org/files/firehol_level3.netset", "text", MINUTES(30), FIREHOL,
	  "attacks, spyware and viruses of the last 30 days", 5, NULL },
	{ "cymru-fullbogons", "https://www.team-cymru.org/Services/Bogons/fullbogons-ipv4.txt", "text", HOURS(4),
	  "see team-cymru.com", "unused IPv4; not for hosts that use 10.0.0.0/8", 10, NULL },
	{ "cymru-fullbogonsv6", "https://www.team-cymru.org/Services/Bogons/fullbogons-ipv6.txt", "text", HOURS(4),
	  "see team-cymru.com", "unused IPv6; not for hosts in fc00::/7, behind NAT64", 99, NULL },
	{ "tor-exits", "https://check.torproject.org/torbulkexitlist", "text", MINUTES(40), "free; see torproject.org",
	  "exits of Tor: most who come from there mean no harm", 1, NULL },
	{ "blocklist-de", "https://lists.blocklist.de/lists/all.txt", "text", MINUTES(30), "see blocklist.de",
	  "attacks of the last 48 hours, reported by fail2ban", 1, NULL },
	{ "cins", "https://cinsscore.com/list/ci-badguys.txt", "text", HOURS(1), "free of charge; see cinsarmy.com",
	  "addresses with the worst reputation, by Sentinel", 1, NULL },
	{ "et-block", "https://rules.emergingthreats.net/fwrules/emerging-Block-IPs.txt", "text", HOURS(12),
	  "free; see emergingthreats.net", "Spamhaus DROP, DShield and command servers", 5, NULL },
	{ "greensnow", "https://blocklist.greensnow.co/greensnow.txt", "text", MINUTES(30), "see greensnow.co",
	  "scans of ports, and attacks on passwords", 1, NULL },
	{ "country", IPVERSE "country-ip-blocks/master/country/*/ipv*-aggregated.txt", "text", HOURS(24), IPVERSE_TERMS,
	  "networks of country = XX...; new-only by default", 50, "country" },
	{ "asn", IPVERSE "as-ip-blocks/master/as/*/ipv*-aggregated.txt", "text", HOURS(24), IPVERSE_TERMS,
	  "networks of asn = NUMBER...; new-only by default", 20, "asn" },
};

#define PRESETS (sizeof(presets) / sizeof(presets[0]))

const struct list_preset *list_preset(size_t index)
{
	return index < PRESETS ? &presets[index] : NULL;
}

const struct list_preset *list_preset_named(const char *name)
{
	for (size_t i = 0; i < PRESETS; i++)
		if (!strcmp(presets[i].name, name))
			return &presets[i];
	return NULL;
}

/* ---- countries and autonomous systems ---- */

static const char countries[] =
	"AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ CA CC "
	"CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR GA GB GD "
	"GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH "
	"KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV MW "
	"MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW SA SB SC "
	"SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY "
	"UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW ";

const char *country_parse(const char *word, char code[3])
{
	const char *known;

	if (!strcasecmp(word, "UK"))
		return "is no code of ISO 3166: the United Kingdom is GB";
	if (!strcasecmp(word, "EU"))
		return "is no country, and addresses belong to countries: name each of them";
	if (strlen(word) == 2) {
		snprintf(code, 3, "%c%c", toupper((unsigned char)word[0]), toupper((unsigned char)word[1]));
		known = strstr(countries, code);
		if (known && (known - countries) % 3 == 0)
			return NULL;
	}
	return "is no country: write the two letters of ISO 3166, like CN";
}

const char *asn_parse(const char *word, char name[16])
{
	const char *digits = word + (strncasecmp(word, "AS", 2) ? 0 : 2);
	__u64 number;

	if (count_parse(digits, &number) || number > 0xffffffff)
		return "is no autonomous system: write its number, like 64496 or AS64496";
	snprintf(name, 16, "AS%llu", (unsigned long long)number);
	return NULL;
}

/* ---- the files of a list ---- */

bool config_list_part(const struct config_list *list, size_t index, struct list_part *part)
{
	const char *names = list->country ? list->country : list->asn, *word = names ? names : list->url;
	const char *first, *second;
	char name[16];

	for (size_t i = names ? index / 2 : index; i; i--) {
		word += strcspn(word, " ");
		word += strspn(word, " ");
	}
	*part = (struct list_part){ .is_pair = names };
	if (!*word)
		return false;
	if (!names) {
		snprintf(part->url, sizeof(part->url), "%.*s", (int)strcspn(word, " "), word);
		if (strchr(list->url, ' '))
			snprintf(part->what, sizeof(part->what), "URL %zu", index + 1);
		return true;
	}
	snprintf(part->what, sizeof(part->what), "%s%.*s, IPv%d", list->country ? "country " : "",
		 (int)strcspn(word, " "), word, index % 2 ? 6 : 4);
	/* The addresses have small letters, and numbers without "AS". */
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(word, " "), word);
	for (char *c = name; *c; c++)
		*c = tolower((unsigned char)*c);
	first = strchr(list->url, '*');
	second = strchr(first + 1, '*');
	snprintf(part->url, sizeof(part->url), "%.*s%s%.*s%d%s", (int)(first - list->url), list->url,
		 name + (list->asn ? 2 : 0), (int)(second - first - 1), first + 1, index % 2 ? 6 : 4, second + 1);
	return true;
}

bool url_is_same_server(const char *url, const char *other)
{
	const size_t scheme = strcspn(url, ":"), length = scheme + 3 + strcspn(url + scheme + 3, "/?# ");

	return !strncasecmp(url, other, length) && strchr("/?#", other[length]);
}

/* FNV-1a, 64 bits, including the final 0. */
static __u64 hash_text(__u64 hash, const char *text)
{
	for (const char *c = text ? text : "";; c++) {
		hash = (hash ^ (unsigned char)*c) * 0x100000001b3;
		if (!*c)
			return hash;
	}
}

__u64 config_list_hash(const struct config_list *list)
{
	__u64 hash = 0xcbf29ce484222325;
	char numbers[128];

	snprintf(numbers, sizeof(numbers), "%d %d %lld %d %d %llu %u %u %u", list->action, list->is_new_only,
		 (long long)list->timeout_ms, list->is_strict, list->is_forced, (unsigned long long)list->rules_max,
		 list->limits.space_max, list->limits.prefix_min[0], list->limits.prefix_min[1]);
	hash = hash_text(hash, list->url);
	if (list->country || list->asn)
		hash = hash_text(hash, list->country ? list->country : list->asn);
	if (list->header_file)
		hash = hash_text(hash, list->header_file);
	hash = hash_text(hash, list->format);
	hash = hash_text(hash, list->set);
	if (list->json)
		hash = hash_text(hash, list->json);
	hash = hash_text(hash, list->sha256_url);
	hash = hash_text(hash, list->pinned_key);
	hash = hash_text(hash, list->ca);
	hash = hash_text(hash, numbers);
	/* Earlier versions stored its 8000::/1 whole: see add_around_neighbours() of fetch_list.c. */
	if (list->preset && !strcmp(list->preset->name, "cymru-fullbogonsv6"))
		hash = hash_text(hash, "around neighbours");
	return hash ? hash : 1;
}
