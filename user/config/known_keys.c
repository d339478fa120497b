// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The keys of each section of a configuration, and their values. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "config/internal.h"
#include "kernel/interfaces.h"
#include "lists/list.h"
#include "table/table.h"

#define KEYS_TEXT_BYTES 512
#define WAIT_MS_MAX (600 * 1000LL)

/* What a value must be, and the C type at its destination. */
enum key_kind {
	VALUE_SWITCH,      /* bool */
	VALUE_OPPOSITE,    /* bool that says the opposite of the key: has_no_counters */
	VALUE_TIME,        /* milliseconds: __s64 */
	VALUE_INTERFACES,  /* names: config->interfaces */
	VALUE_MODE,        /* enum kernel_mode */
	VALUE_CAPACITY,    /* number of rules: __u64 */
	VALUE_TABLE,       /* bool: is it compact? */
	VALUE_FINGERPRINT, /* width in bits: unsigned int */
	VALUE_ACTION,      /* enum rule_action */
	VALUE_PATH,        /* char *, allocated; so are the next two */
	VALUE_FORMAT,
	VALUE_TEXT,
};

static const char *const must_be[] = {
	[VALUE_SWITCH] = "yes or no",
	[VALUE_OPPOSITE] = "yes or no",
	[VALUE_TIME] = "a time like 30s, 15m, 1h30m, 2d, at least a second",
	[VALUE_MODE] = "auto, native or skb",
	[VALUE_CAPACITY] = "a number of rules, 1 or more",
	[VALUE_TABLE] = "exact or compact",
	[VALUE_FINGERPRINT] = "8, 16, 17 or 32 bits",
	[VALUE_ACTION] = "drop, pass or monitor",
	[VALUE_PATH] = "a path that starts with /",
	[VALUE_FORMAT] = "text, ipset, nft, spamhaus or csv",
	[VALUE_TEXT] = "a word",
};

struct key {
	enum config_section section;
	const char *name;
	enum key_kind kind;
	size_t to; /* offset in struct config, or in struct config_list for SECTION_LIST */
};

#define OF_LIST(member) offsetof(struct config_list, member)
#define OF_CONFIG(member) offsetof(struct config, member)

static const struct key keys[] = {
	{ SECTION_FILTER, "interfaces", VALUE_INTERFACES, 0 },
	{ SECTION_FILTER, "mode", VALUE_MODE, OF_CONFIG(load.mode) },
	{ SECTION_FILTER, "capacity", VALUE_CAPACITY, OF_CONFIG(load.capacity) },
	{ SECTION_FILTER, "table", VALUE_TABLE, OF_CONFIG(load.is_compact) },
	{ SECTION_FILTER, "fingerprint", VALUE_FINGERPRINT, OF_CONFIG(load.fingerprint_bits) },
	{ SECTION_FILTER, "counters", VALUE_OPPOSITE, OF_CONFIG(load.has_no_counters) },
	{ SECTION_FILTER, "spare", VALUE_OPPOSITE, OF_CONFIG(load.has_no_spare) },
	{ SECTION_FILTER, "monitor-only", VALUE_SWITCH, OF_CONFIG(load.is_monitor_only) },
	{ SECTION_FILTER, "wait", VALUE_TIME, OF_CONFIG(wait_ms) },
	{ SECTION_FILTER, "detach-on-stop", VALUE_SWITCH, OF_CONFIG(detaches_on_stop) },
	{ SECTION_POLICY, "force", VALUE_SWITCH, OF_CONFIG(is_forced) },
	{ SECTION_LIST, "file", VALUE_PATH, OF_LIST(file) },
	{ SECTION_LIST, "format", VALUE_FORMAT, OF_LIST(format) },
	{ SECTION_LIST, "set", VALUE_TEXT, OF_LIST(set) },
	{ SECTION_LIST, "action", VALUE_ACTION, OF_LIST(action) },
	{ SECTION_LIST, "timeout", VALUE_TIME, OF_LIST(timeout_ms) },
	{ SECTION_LIST, "strict", VALUE_SWITCH, OF_LIST(is_strict) },
	{ SECTION_LIST, "force", VALUE_SWITCH, OF_LIST(is_forced) },
};

#define KEYS (sizeof(keys) / sizeof(keys[0]))

_Static_assert(KEYS <= 32, "`given` has a bit for each key");

/* ---- values ---- */

static bool take_switch(const char *value, bool *is_on)
{
	static const char *const words[] = { "no", "yes", "off", "on", "false", "true" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(words[i], value)) {
			*is_on = i % 2;
			return true;
		}
	return false;
}

static void take_interface(struct config_reading *reading, const char *name)
{
	struct config *config = reading->config;

	for (size_t i = 0; i < config->interfaces_count; i++)
		if (config->interfaces[i] && !strcmp(config->interfaces[i], name)) {
			refuse(reading, "interfaces: '%s' is there twice", name);
			return;
		}
	if (strlen(name) >= INTERFACE_NAME_BYTES || !strcmp(name, ".") || !strcmp(name, "..") || strpbrk(name, "/:"))
		refuse(reading, "interfaces: '%s' is not the name of an interface; see ip link", name);
	else if (config->interfaces_count == CONFIG_INTERFACES_MAX)
		refuse(reading, "interfaces: more than %d", CONFIG_INTERFACES_MAX);
	else
		config->interfaces[config->interfaces_count++] = config_copy(reading, name);
}

static bool take_interfaces(struct config_reading *reading, const char *value)
{
	char *words = config_copy(reading, value), *rest = words;
	const char *name;

	while (words && (name = strsep(&rest, ", \t")))
		if (*name)
			take_interface(reading, name);
	free(words);
	return true;
}

static void take_text(struct config_reading *reading, const char *value, char **text)
{
	free(*text);
	*text = config_copy(reading, value);
}

/* Writes the value to its place. False: it is not what must_be[] says. */
static bool take_value(struct config_reading *reading, const struct key *key, const char *value)
{
	struct config *config = reading->config;
	char *object = key->section == SECTION_LIST ? (char *)&config->list[config->lists_count - 1] : (char *)config;
	void *to = object + key->to;
	bool is_taken;

	switch (key->kind) {
	case VALUE_SWITCH:
		config->has_monitor_only |= to == &config->load.is_monitor_only;
		return take_switch(value, to);
	case VALUE_OPPOSITE:
		is_taken = take_switch(value, to);
		*(bool *)to = !*(bool *)to;
		return is_taken;
	case VALUE_TIME:
		return !rule_time_parse(value, to);
	case VALUE_INTERFACES:
		return take_interfaces(reading, value);
	case VALUE_MODE:
		return !load_mode_parse(value, to);
	case VALUE_CAPACITY:
		return !number_parse(value, to);
	case VALUE_TABLE:
		*(bool *)to = !strcmp(value, "compact");
		return *(bool *)to || !strcmp(value, "exact");
	case VALUE_FINGERPRINT:
		return !load_fingerprint_parse(value, to);
	case VALUE_PATH:
		take_text(reading, value, to);
		return *value == '/';
	case VALUE_FORMAT:
		take_text(reading, value, to);
		return list_format_named(value);
	case VALUE_ACTION:
		return !rule_action_parse(value, to);
	case VALUE_TEXT:
		take_text(reading, value, to);
		return true;
	}
	return false;
}

static void take_known_key(struct config_reading *reading, const struct key *key, const char *value)
{
	struct config *config = reading->config;

	if (!take_value(reading, key, value))
		refuse(reading, "%s = '%s': must be %s", key->name, value, must_be[key->kind]);
	else if (key->to == OF_CONFIG(wait_ms) && key->section == SECTION_FILTER && config->wait_ms > WAIT_MS_MAX)
		refuse(reading, "%s = '%s': at most 10m", key->name, value);
	else if (key->kind == VALUE_CAPACITY && table_slots_for(config->load.capacity) > 1ULL << ABI_SLOTS_MAX_LOG2)
		refuse(reading, "%s = '%s': a table holds at most %llu rules", key->name, value,
		       (1ULL << ABI_SLOTS_MAX_LOG2) * TABLE_LOAD_PERCENT / 100);
}

static const char *known_keys(enum config_section section, char text[KEYS_TEXT_BYTES])
{
	size_t used = 0;

	for (size_t i = 0; i < KEYS; i++)
		if (keys[i].section == section)
			used += snprintf(text + used, KEYS_TEXT_BYTES - used, "%s%s", used ? ", " : "", keys[i].name);
	return text;
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
	static const char *const names[] = { "", "[filter]", "[policy]", "[list]" };
	const struct key *key = keys;
	char text[KEYS_TEXT_BYTES];

	if (reading->section == SECTION_UNKNOWN)
		return;
	while (key < keys + KEYS && (key->section != reading->section || strcmp(key->name, name)))
		key++;
	if (reading->section == SECTION_NONE)
		refuse(reading, "'%s' is before any section; write [filter] above it", name);
	else if (!*value)
		refuse(reading, "'%s' has no value", name);
	else if (key == keys + KEYS && reading->section == SECTION_POLICY)
		take_policy(reading, name, value);
	else if (key == keys + KEYS)
		refuse(reading, "unknown key '%s' in %s; it knows %s", name, names[reading->section],
		       known_keys(reading->section, text));
	else if (reading->given & 1U << (key - keys))
		refuse(reading, "'%s' is there twice in this section", name);
	else
		take_known_key(reading, key, value);
	if (key < keys + KEYS)
		reading->given |= 1U << (key - keys);
}
