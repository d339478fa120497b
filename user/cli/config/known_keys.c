// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The keys of each section of a configuration, and their values. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "change/change.h"
#include "config/internal.h"
#include "counters/counters.h"
#include "io/output.h"
#include "kernel/interfaces.h"
#include "lists/list.h"
#include "table/table.h"
#include "base/safe_text.h"

#define KEYS_TEXT_BYTES 512
#define NAMES_BYTES 4096 /* longer than a line */
#define BETWEEN ", \t"   /* words */
#define WAIT_MS_MAX (600 * 1000LL)

struct key {
	enum config_section section;
	const char *name;
	enum value_kind kind;
	size_t to; /* offset in struct config, or in struct config_list for SECTION_LIST */
};

#define OF_LIST(member) offsetof(struct config_list, member)
#define OF_CONFIG(member) offsetof(struct config, member)

static const struct key keys[] = {
	{ SECTION_FILTER, "interfaces", VALUE_INTERFACES, 0 },
	{ SECTION_FILTER, "mode", VALUE_MODE, OF_CONFIG(load.mode) },
	{ SECTION_FILTER, "capacity", VALUE_COUNT, OF_CONFIG(load.capacity) },
	{ SECTION_FILTER, "table", VALUE_TABLE, OF_CONFIG(load.is_compact) },
	{ SECTION_FILTER, "fingerprint", VALUE_FINGERPRINT, OF_CONFIG(load.fingerprint_bits) },
	{ SECTION_FILTER, "counters", VALUE_OPPOSITE, OF_CONFIG(load.has_no_counters) },
	{ SECTION_FILTER, "spare", VALUE_OPPOSITE, OF_CONFIG(load.has_no_spare) },
	{ SECTION_FILTER, "monitor-only", VALUE_SWITCH, OF_CONFIG(load.is_monitor_only) },
	{ SECTION_FILTER, "outgoing", VALUE_SWITCH, OF_CONFIG(load.is_outgoing) },
	{ SECTION_FILTER, "wait", VALUE_TIME, OF_CONFIG(wait_ms) },
	{ SECTION_FILTER, "detach-on-stop", VALUE_SWITCH, OF_CONFIG(detaches_on_stop) },
	{ SECTION_POLICY, "force", VALUE_SWITCH, OF_CONFIG(is_forced) },
	{ SECTION_LIST, "file", VALUE_FILE, OF_LIST(file) },
	{ SECTION_LIST, "format", VALUE_FORMAT, OF_LIST(format) },
	{ SECTION_LIST, "set", VALUE_TEXT, OF_LIST(set) },
	{ SECTION_LIST, "json", VALUE_JSON, OF_LIST(json) },
	{ SECTION_LIST, "action", VALUE_ACTION, OF_LIST(action) },
	{ SECTION_LIST, "new-only", VALUE_SWITCH, OF_LIST(is_new_only) },
	{ SECTION_LIST, "timeout", VALUE_TIME, OF_LIST(timeout_ms) },
	{ SECTION_LIST, "strict", VALUE_SWITCH, OF_LIST(is_strict) },
	{ SECTION_LIST, "force", VALUE_SWITCH, OF_LIST(is_forced) },
	{ SECTION_LIST, "max-rules", VALUE_COUNT, OF_LIST(rules_max) },
	{ SECTION_LIST, "max-shrink", VALUE_PERCENT, OF_LIST(shrink_max) },
	{ SECTION_LIST, "max-grow", VALUE_GROWTH, OF_LIST(grow_max) },
	{ SECTION_LIST, "max-space", VALUE_PERCENT, OF_LIST(limits.space_max) },
	{ SECTION_LIST, "min-prefix", VALUE_PREFIXES, OF_LIST(limits.prefix_min) },
	{ SECTION_LIST, "url", VALUE_URLS, OF_LIST(url) },
	{ SECTION_LIST, "preset", VALUE_PRESET, OF_LIST(preset) },
	{ SECTION_LIST, "country", VALUE_COUNTRIES, OF_LIST(country) },
	{ SECTION_LIST, "asn", VALUE_SYSTEMS, OF_LIST(asn) },
	{ SECTION_LIST, "every", VALUE_TIME, OF_LIST(every_ms) },
	{ SECTION_LIST, "fetch-time", VALUE_TIME, OF_LIST(fetch_ms) },
	{ SECTION_LIST, "sha256-url", VALUE_URL, OF_LIST(sha256_url) },
	{ SECTION_LIST, "pinned-key", VALUE_PIN, OF_LIST(pinned_key) },
	{ SECTION_LIST, "ca", VALUE_FILE, OF_LIST(ca) },
	{ SECTION_LIST, "header-file", VALUE_FILE, OF_LIST(header_file) },
	{ SECTION_FLEET, "broker", VALUE_BROKERS, OF_CONFIG(fleet) },
	{ SECTION_FLEET, "user", VALUE_WORD, OF_CONFIG(fleet.user) },
	{ SECTION_FLEET, "password-file", VALUE_FILE, OF_CONFIG(fleet.password_file) },
	{ SECTION_FLEET, "ca", VALUE_FILE, OF_CONFIG(fleet.ca) },
	{ SECTION_FLEET, "host", VALUE_WORD, OF_CONFIG(fleet.host) },
	{ SECTION_FLEET, "lists", VALUE_LISTS, OF_CONFIG(fleet.lists) },
	{ SECTION_FLEET, "staged", VALUE_SWITCH, OF_CONFIG(fleet.is_staged) },
	{ SECTION_FLEET, "allow-pass", VALUE_SWITCH, OF_CONFIG(fleet.may_pass) },
	{ SECTION_FLEET, "min-prefix", VALUE_PREFIXES, OF_CONFIG(fleet.prefix_min) },
	{ SECTION_FLEET, "max-rules", VALUE_COUNT, OF_CONFIG(fleet.rules_max) },
	{ SECTION_FLEET, "max-shrink", VALUE_PERCENT, OF_CONFIG(fleet.shrink_max) },
	{ SECTION_FLEET, "replicas", VALUE_SMALL, OF_CONFIG(fleet.replicas) },
	{ SECTION_FLEET, "resync-jitter", VALUE_TIME, OF_CONFIG(fleet.jitter_ms) },
	{ SECTION_FLOWSPEC, "own-prefixes", VALUE_OWN, OF_CONFIG(flowspec) },
	{ SECTION_FLOWSPEC, "list", VALUE_NAME, OF_CONFIG(flowspec.list) },
	{ SECTION_FLOWSPEC, "action", VALUE_ACTION, OF_CONFIG(flowspec.action) },
	{ SECTION_FLOWSPEC, "stale", VALUE_TIME, OF_CONFIG(flowspec.stale_ms) },
	{ SECTION_FLOWSPEC, "rtbh", VALUE_SWITCH, OF_CONFIG(flowspec.takes_blackholes) },
	{ SECTION_FLOWSPEC, "max-flows", VALUE_COUNT, OF_CONFIG(flowspec.flows_max) },
	{ SECTION_FLOWSPEC, "max-flows-peer", VALUE_COUNT, OF_CONFIG(flowspec.peer_flows_max) },
	{ SECTION_FLOWSPEC, "max-rules", VALUE_COUNT, OF_CONFIG(flowspec.rules_max) },
	{ SECTION_CROWDSEC, "url", VALUE_URL, OF_CONFIG(crowdsec.url) },
	{ SECTION_CROWDSEC, "socket", VALUE_FILE, OF_CONFIG(crowdsec.socket) },
	{ SECTION_CROWDSEC, "key-file", VALUE_FILE, OF_CONFIG(crowdsec.key_file) },
	{ SECTION_CROWDSEC, "cert", VALUE_FILE, OF_CONFIG(crowdsec.cert) },
	{ SECTION_CROWDSEC, "cert-key", VALUE_FILE, OF_CONFIG(crowdsec.cert_key) },
	{ SECTION_CROWDSEC, "ca", VALUE_FILE, OF_CONFIG(crowdsec.ca) },
	{ SECTION_CROWDSEC, "every", VALUE_TIME, OF_CONFIG(crowdsec.every_ms) },
	{ SECTION_CROWDSEC, "metrics-every", VALUE_TIME, OF_CONFIG(crowdsec.metrics_ms) },
	{ SECTION_CROWDSEC, "origins", VALUE_TEXT, OF_CONFIG(crowdsec.origins) },
	{ SECTION_CROWDSEC, "scenarios", VALUE_TEXT, OF_CONFIG(crowdsec.scenarios) },
	{ SECTION_CROWDSEC, "list", VALUE_NAME, OF_CONFIG(crowdsec.list) },
	{ SECTION_CROWDSEC, "action", VALUE_ACTION, OF_CONFIG(crowdsec.action) },
	{ SECTION_CROWDSEC, "max-rules", VALUE_COUNT, OF_CONFIG(crowdsec.rules_max) },
	{ SECTION_CROWDSEC, "min-prefix", VALUE_PREFIXES, OF_CONFIG(crowdsec.prefix_min) },
};

#define KEYS (sizeof(keys) / sizeof(keys[0]))

/* Keys of earlier versions. Only up --dry-run refuses them: an upgrade must stop no filter. */
static struct {
	enum config_section section;
	const char *name, *instead;
	bool is_told; /* `lists add` reads a copy, too, under the name of a temporary file */
} gone[] = {
	{ SECTION_FLEET, "report",
	  "hosts report to their broker; a replica takes no reports, so name the master too",
	  false },
};

static bool is_gone(struct config_reading *reading, const char *name)
{
	for (size_t i = 0; i < sizeof(gone) / sizeof(gone[0]); i++)
		if (gone[i].section == reading->section && !strcmp(gone[i].name, name)) {
			if (reading->report && !gone[i].is_told)
				output_warning("%s:%u: the key '%s' is gone, and does nothing: %s", reading->path,
					       reading->line, name, gone[i].instead);
			gone[i].is_told |= reading->report != NULL;
			return reading->config->has_gone_keys = true;
		}
	return false;
}

/* ---- values ---- */

const char *config_keep(struct config_reading *reading, const char *text)
{
	struct config *config = reading->config;
	char *copied = config->texts_count < CONFIG_TEXTS_MAX ? strdup(text) : NULL;

	reading->is_out_of_memory |= !copied;
	return copied ? config->texts[config->texts_count++] = copied : NULL;
}

/* Cuts `value` into words. False: there are none, or too many; *count: those that were taken. */
static bool take_words(struct config_reading *reading, const char *value, const char *between,
		       const char **words, size_t *count, size_t most)
{
	char *text = (char *)config_keep(reading, value);
	const char *word;

	*count = 0;
	while (text && (word = strsep(&text, between))) {
		if (!*word)
			continue;
		if (*count == most)
			return false;
		words[(*count)++] = word;
	}
	return *count;
}

static bool take_interfaces(struct config_reading *reading, const char *value)
{
	struct config *config = reading->config;
	const char **names = (const char **)config->interfaces;

	if (!take_words(reading, value, BETWEEN, names, &config->interfaces_count,
			CONFIG_INTERFACES_MAX))
		return !config->interfaces_count; /* said when the file has been read */
	for (size_t i = 0; i < config->interfaces_count; i++) {
		bool is_there = false;

		for (size_t k = 0; k < i; k++)
			is_there |= !strcmp(names[k], names[i]);
		if (is_there)
			refuse(reading, "interfaces: '%s' is there twice", names[i]);
		else if (strlen(names[i]) >= INTERFACE_NAME_BYTES || !strcmp(names[i], ".") ||
			 !strcmp(names[i], "..") || strpbrk(names[i], "/:"))
			refuse(reading,
			       "interfaces: '%s' is not the name of an interface; see ip link",
			       names[i]);
	}
	return true;
}

/* The prefixes, each as the rule `dst PREFIX`. */
static bool take_own(struct config_reading *reading, const char *value, struct flowspec_options *options)
{
	const char *words[FLOWSPEC_PREFIXES_MAX];
	size_t count;

	options->is_any = !strcmp(value, "any");
	if (options->is_any)
		return true;
	if (!take_words(reading, value, BETWEEN, words, &count, FLOWSPEC_PREFIXES_MAX))
		return false;
	for (size_t i = 0; i < count; i++) {
		const char *rule[] = { "dst", words[i] };
		struct reason reason;

		if (rule_parse_words(rule, 2, &options->own[i], &reason) || !options->own[i].dst_len)
			refuse(reading, "own-prefixes: '%s' is no prefix like 198.51.100.0/24 or 2001:db8::/32",
			       words[i]);
	}
	options->own_count = count;
	return true;
}

/* The URLs, with one space between. */
static bool take_urls(struct config_reading *reading, const char *value, const char **urls)
{
	const char *words[CONFIG_URLS_MAX];
	char text[NAMES_BYTES] = "";
	size_t count;
	bool is_right = take_words(reading, value, " \t", words, &count, CONFIG_URLS_MAX);

	for (size_t i = 0; i < count; i++) {
		is_right &= url_is_right(words[i]);
		text_append(text, sizeof(text), "%s%s", i ? " " : "", words[i]);
	}
	*urls = config_keep(reading, text);
	return is_right;
}

/* Countries or autonomous systems, as parse() writes them, with one space between. */
static bool take_names(struct config_reading *reading, const struct key *key, const char *value, const char **names)
{
	const char *words[CONFIG_NAMES_MAX];
	char text[NAMES_BYTES] = " ", name[20] = " ";
	size_t count;

	if (!take_words(reading, value, BETWEEN, words, &count, CONFIG_NAMES_MAX))
		return false;
	for (size_t i = 0; i < count; i++) {
		const char *wrong = key->kind == VALUE_COUNTRIES ? country_parse(words[i], name + 1) :
								   asn_parse(words[i], name + 1);

		text_append(name, sizeof(name), " ");
		if (!wrong && strstr(text, name))
			wrong = "is there twice";
		if (wrong)
			refuse(reading, "%s: '%s' %s", key->name, words[i], wrong);
		else
			text_append(text, sizeof(text), "%s", name + 1);
	}
	if (text[1])
		text[strlen(text) - 1] = '\0';
	*names = config_keep(reading, text + 1);
	return true;
}

/* Writes the value to its place. False: it is not what value_must_be[] says. */
static bool take_value(struct config_reading *reading, const struct key *key, const char *value)
{
	struct config *config = reading->config;
	char *object = key->section == SECTION_LIST ? (char *)&config->list[config->lists_count - 1] : (char *)config;
	void *to = object + key->to;
	unsigned int *lengths = to; /* of prefixes */
	const char *words[2], *text;
	size_t count;

	if (key->section == SECTION_LIST && key->to == OF_LIST(is_new_only))
		config->list[config->lists_count - 1].has_new_only = true;
	switch (key->kind) {
	case VALUE_INTERFACES:
		return take_interfaces(reading, value);
	case VALUE_PREFIXES:
		return take_words(reading, value, BETWEEN, words, &count, 2) &&
		       small_parse(words[0], "", 32, &lengths[0]) &&
		       (count == 1 || small_parse(words[1], "", 128, &lengths[1]));
	case VALUE_OWN:
		return take_own(reading, value, to);
	case VALUE_BROKERS:
		return take_words(reading, value, BETWEEN, config->fleet.brokers,
				  &config->fleet.brokers_count, FLEET_BROKERS_MAX);
	case VALUE_LISTS:
		return take_words(reading, value, BETWEEN, config->fleet.lists,
				  &config->fleet.lists_count, FLEET_LISTS_MAX);
	case VALUE_PRESET:
		*(const struct list_preset **)to = list_preset_named(value);
		return list_preset_named(value);
	case VALUE_URLS:
		return take_urls(reading, value, to);
	case VALUE_COUNTRIES:
	case VALUE_SYSTEMS:
		return take_names(reading, key, value, to);
	default:
		text = key->kind < VALUE_TEXT ? value : config_keep(reading, value);
		return !text || value_parse(key->kind, text, to);
	}
}

static void take_policy(struct config_reading *reading, const char *name, const char *value)
{
	const enum abi_outcome outcome = policy_outcome_named(name);
	struct config *config = reading->config;

	if (outcome == OUTCOME_POLICIES) {
		refuse(reading, "unknown key '%s' in [policy]; xdp-cuckoo policy lists them", name);
		return;
	}
	if (config->has_policy[outcome])
		refuse(reading, "'%s' is there twice in this section", name);
	if (strcmp(value, "pass") && strcmp(value, "drop"))
		refuse(reading, "%s = '%s': must be pass or drop", name, value);
	config->has_policy[outcome] = true;
	reading->policy_line[outcome] = reading->line;
	config->policy[outcome] = strcmp(value, "drop") ? VERDICT_PASS : VERDICT_DROP;
}

void config_take_key(struct config_reading *reading, const char *name, const char *value)
{
	const struct config *config = reading->config;
	const struct key *key = keys, *first = keys;
	char known[KEYS_TEXT_BYTES] = "";

	if (reading->section == SECTION_UNKNOWN || is_gone(reading, name))
		return;
	/* The keys of a section are at most 64. */
	while (first < keys + KEYS && first->section != reading->section)
		first++;
	for (size_t i = 0; i < KEYS; i++)
		if (keys[i].section == reading->section)
			text_append(known, sizeof(known), "%s%s", *known ? ", " : "", keys[i].name);
	while (key < keys + KEYS && (key->section != reading->section || strcmp(key->name, name)))
		key++;
	if (reading->section == SECTION_NONE)
		refuse(reading, "'%s' is before any section; write [filter] above it", name);
	else if (!*value)
		refuse(reading, "'%s' has no value", name);
	else if (key == keys + KEYS && reading->section == SECTION_POLICY)
		take_policy(reading, name, value);
	else if (key == keys + KEYS)
		refuse(reading, "unknown key '%s' in [%s]; it knows %s", name, config_sections[reading->section],
		       known);
	else if (reading->given & 1ULL << (key - first))
		refuse(reading, "'%s' is there twice in this section", name);
	else if (!take_value(reading, key, value))
		refuse(reading, "%s = '%s': must be %s", name, value, value_must_be[key->kind]);
	else if (key->to == OF_CONFIG(wait_ms) && key->section == SECTION_FILTER && config->wait_ms > WAIT_MS_MAX)
		refuse(reading, "%s = '%s': at most 10m", name, value);
	else if (key->kind == VALUE_COUNT && key->section == SECTION_FILTER &&
		 table_slots_for(config->load.capacity) > 1ULL << ABI_SLOTS_MAX_LOG2)
		refuse(reading, "%s = '%s': a table holds at most %llu rules", name, value,
		       (1ULL << ABI_SLOTS_MAX_LOG2) * TABLE_LOAD_PERCENT / 100);
	if (key < keys + KEYS)
		reading->given |= 1ULL << (key - first);
}
