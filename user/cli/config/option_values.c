// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Values that both a configuration and the command line have. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "change/change.h"
#include "config/config.h"
#include "counters/counters.h"

const char *const value_must_be[VALUE_KINDS] = {
	[VALUE_INTERFACES] = "1 to 64 names of interfaces",
	[VALUE_SWITCH] = "yes or no",
	[VALUE_OPPOSITE] = "yes or no",
	[VALUE_TIME] = "a time like 30s, 15m, 1h30m, 2d or 1y, from a second to 68 years",
	[VALUE_MODE] = "auto, native or skb",
	[VALUE_COUNT] = "a number of rules, 1 or more",
	[VALUE_TABLE] = "exact or compact",
	[VALUE_FINGERPRINT] = "8, 16, 17 or 32 bits",
	[VALUE_ACTION] = "drop, pass or monitor",
	[VALUE_FORMAT] = "text, ipset, nft, spamhaus, csv, iptables, p2p or dshield",
	[VALUE_JSON] =
		"a path to addresses like .prefixes[].ip_prefix, or several with spaces between",
	[VALUE_TEXT] = "a word",
	[VALUE_BROKERS] = "1 to 8 brokers: HOST, HOST:PORT, [IPv6]:PORT or the path of a socket",
	[VALUE_LISTS] = "1 to 16 names of lists",
	[VALUE_WORD] = "one word of up to 64 characters",
	[VALUE_FILE] = "a path that starts with /",
	[VALUE_PERCENT] = "a percentage, 0% to 100%",
	[VALUE_GROWTH] = "a percentage, 0% to 1000000%",
	[VALUE_SMALL] = "a number from 0 to 16",
	[VALUE_PREFIXES] = "one or two lengths, for IPv4 and IPv6, like 16 32",
	[VALUE_OWN] = "1 to 64 prefixes, or any",
	[VALUE_NAME] = "the name of a list",
	[VALUE_URL] =
		"https://HOST/PATH without spaces and password, up to 255 characters; or http://",
	[VALUE_URLS] =
		"https://HOST/PATH without password, up to 255 characters, or http://; up to 16 with spaces between",
	[VALUE_COUNTRIES] = "1 to 256 countries, like CN RU",
	[VALUE_SYSTEMS] = "1 to 256 autonomous systems, like 64496 64497",
	[VALUE_PIN] = "sha256//BASE64, the hash of a public key, or several joined by ';'",
	[VALUE_PRESET] = "a name that xdp-cuckoo lists presets shows",
};

int count_parse(const char *text, __u64 *number)
{
	char *end;

	errno = 0;
	*number = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end && !errno && *number ? 0 : -EINVAL;
}

int mode_parse(const char *word, enum kernel_mode *mode)
{
	static const char *const modes[] = {
		[KERNEL_AUTO] = "auto",
		[KERNEL_NATIVE] = "native",
		[KERNEL_SKB] = "skb",
	};

	/* The names of ip link and xdp-filter. */
	if (!strcmp(word, "generic"))
		word = "skb";
	if (!strcmp(word, "driver") || !strcmp(word, "drv"))
		word = "native";
	for (*mode = KERNEL_AUTO; *mode <= KERNEL_SKB; ++*mode)
		if (!strcmp(modes[*mode], word))
			return 0;
	return -EINVAL;
}

/* Sets it to `meaning` if the value is yes, and to the opposite if it is no. */
static bool switch_parse(const char *word, bool meaning, bool *is_set)
{
	static const char *const words[] = { "no", "yes", "off", "on", "false", "true" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(words[i], word)) {
			*is_set = (i % 2) == meaning;
			return true;
		}
	return false;
}

bool small_parse(const char *value, const char *suffix, unsigned int most, unsigned int *number)
{
	const size_t digits = strspn(value, "0123456789");

	*number = atoi(value);
	return digits && digits < 8 && *number <= most && (!value[digits] || !strcmp(value + digits, suffix));
}

/* A password would be seen wherever the source of a list is shown. */
bool url_is_right(const char *text)
{
	const size_t scheme = !strncmp(text, "https://", 8) ? 8 :
			      !strncmp(text, "http://", 7)  ? 7 :
							      0;
	const size_t host = strcspn(text + scheme, "/?#");

	for (const char *c = text; *c; c++)
		if (*c <= ' ' || *c > '~' || strchr("\"\\", *c))
			return false;
	return scheme && host && !memchr(text + scheme, '@', host) &&
	       strlen(text) < CONFIG_URL_BYTES;
}

bool value_parse(enum value_kind kind, const char *text, void *to)
{
	if (kind >= VALUE_TEXT)
		*(const char **)to = text;
	switch (kind) {
	case VALUE_SWITCH:
		return switch_parse(text, true, to);
	case VALUE_OPPOSITE:
		return switch_parse(text, false, to);
	case VALUE_TIME:
		return !rule_time_parse(text, to);
	case VALUE_MODE:
		return !mode_parse(text, to);
	case VALUE_COUNT:
		return !count_parse(text, to);
	case VALUE_TABLE:
		*(bool *)to = !strcmp(text, "compact");
		return *(bool *)to || !strcmp(text, "exact");
	case VALUE_FINGERPRINT:
		if (strcmp(text, "8") && strcmp(text, "16") && strcmp(text, "17") && strcmp(text, "32"))
			return false;
		*(unsigned int *)to = atoi(text);
		return true;
	case VALUE_ACTION:
		return !rule_action_parse(text, to);
	case VALUE_PERCENT:
		return small_parse(text, "%", 100, to);
	case VALUE_GROWTH:
		return small_parse(text, "%", 1000000, to);
	case VALUE_SMALL:
		return small_parse(text, "", 16, to);
	case VALUE_NAME:
		return session_is_name(text);
	case VALUE_WORD:
		return strlen(text) <= 64 && !strpbrk(text, " \t");
	case VALUE_FILE:
		return *text == '/';
	case VALUE_FORMAT:
		return list_format_named(text);
	case VALUE_JSON:
		return list_is_json_path(text);
	case VALUE_URL:
		return url_is_right(text);
	case VALUE_PIN:
		return !strncmp(text, "sha256//", 8) && !strpbrk(text, " \t");
	default:
		return kind == VALUE_TEXT;
	}
}

struct abi_options table_options_of(const struct load_options *load)
{
	static const enum bucket_format formats[] = {
		[0] = BUCKET_16, [8] = BUCKET_8, [16] = BUCKET_16, [17] = BUCKET_17, [32] = BUCKET_32,
	};

	return (struct abi_options){
		.format = formats[load->fingerprint_bits],
		.is_exact = !load->is_compact,
		.has_counts = !load->is_compact && !load->has_no_counters,
		.is_alone = load->has_no_spare,
		.orders_loads = !ABI_LOADS_IN_ORDER,
	};
}

bool table_options_are_given(const struct load_options *load)
{
	return load->is_compact || load->fingerprint_bits || load->has_no_counters || load->has_no_spare;
}

enum abi_outcome policy_outcome_named(const char *word)
{
	enum abi_outcome outcome = 0;

	/* The word of firewalls for packets that no rule decides about. */
	if (!strcasecmp(word, "default"))
		return OUTCOME_NO_RULE;
	while (outcome < OUTCOME_POLICIES && strcasecmp(outcome_words[outcome].name, word))
		outcome++;
	return outcome;
}

const char *policy_danger(enum abi_outcome outcome)
{
	switch (outcome) {
	case OUTCOME_NO_RULE:
		return "drops everything that no pass rule names: your session, and the answers to this host's "
		       "own connections; add pass rules for these first";
	case OUTCOME_NOT_IP:
		return "drops ARP: this host and its gateway no longer find each other over IPv4, unless "
		       "their neighbour entries are permanent";
	default:
		return NULL;
	}
}
