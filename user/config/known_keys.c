// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The keys of each section of a configuration, and their values. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "config/internal.h"
#include "config/policies.h"
#include "kernel/interfaces.h"
#include "lists/list.h"
#include "table/table.h"

#define KEYS_TEXT_BYTES 512
#define WAIT_MS_MAX (600 * 1000LL)

#define refuse(reading, ...) config_refuse(reading, (reading)->line, __VA_ARGS__)

/* ---- values ---- */

static struct config_list *current_list(struct config_reading *reading)
{
	return &reading->config->list[reading->config->lists_count - 1];
}

struct key {
	enum config_section section;
	const char *name;
	void (*take)(struct config_reading *reading, const struct key *key, const char *value);
	size_t to; /* where the value goes: offset in struct config, or in struct config_list for SECTION_LIST */
};

static void *place_of(struct config_reading *reading, const struct key *key)
{
	return (key->section == SECTION_LIST ? (char *)current_list(reading) : (char *)reading->config) + key->to;
}

static void take_switch(struct config_reading *reading, const struct key *key, const char *value)
{
	static const char *const words[] = { "no", "yes", "off", "on", "false", "true" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(words[i], value)) {
			*(bool *)place_of(reading, key) = i % 2;
			return;
		}
	refuse(reading, "%s = '%s': must be yes or no", key->name, value);
}

/* The member says the opposite of the key: has_no_counters. */
static void take_opposite(struct config_reading *reading, const struct key *key, const char *value)
{
	bool *is_off = place_of(reading, key);

	*is_off = true;
	take_switch(reading, key, value);
	*is_off = !*is_off;
}

static void take_monitor_only(struct config_reading *reading, const struct key *key, const char *value)
{
	reading->config->has_monitor_only = true;
	take_switch(reading, key, value);
}

static void take_time(struct config_reading *reading, const struct key *key, const char *value)
{
	__s64 *ms = place_of(reading, key);

	if (rule_time_parse(value, ms))
		refuse(reading, "%s = '%s': must be a time like 30s, 15m, 1h30m, 2d, at least a second", key->name,
		       value);
	else if (key->section == SECTION_FILTER && *ms > WAIT_MS_MAX)
		refuse(reading, "%s = '%s': at most 10m", key->name, value);
}

static void add_interface(struct config_reading *reading, const char *name)
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

static void take_interfaces(struct config_reading *reading, const struct key *key, const char *value)
{
	char *words = config_copy(reading, value), *rest = words;
	const char *name;

	(void)key;
	while (words && (name = strsep(&rest, ", \t")))
		if (*name)
			add_interface(reading, name);
	free(words);
}

static void take_mode(struct config_reading *reading, const struct key *key, const char *value)
{
	(void)key;
	if (load_mode_parse(value, &reading->config->load.mode))
		refuse(reading, "mode = '%s': must be auto, native or skb", value);
}

static void take_capacity(struct config_reading *reading, const struct key *key, const char *value)
{
	__u64 *capacity = &reading->config->load.capacity;
	char *end;

	(void)key;
	errno = 0;
	*capacity = strtoull(value, &end, 10);
	if (*value < '0' || *value > '9' || *end || errno || !*capacity)
		refuse(reading, "capacity = '%s': must be a number of rules, 1 or more", value);
	else if (table_slots_for(*capacity) > 1ULL << ABI_SLOTS_MAX_LOG2)
		refuse(reading, "capacity = '%s': a table holds at most %llu rules", value,
		       (1ULL << ABI_SLOTS_MAX_LOG2) * TABLE_LOAD_PERCENT / 100);
}

static void take_table(struct config_reading *reading, const struct key *key, const char *value)
{
	(void)key;
	reading->config->load.is_compact = !strcmp(value, "compact");
	if (!reading->config->load.is_compact && strcmp(value, "exact"))
		refuse(reading, "table = '%s': must be exact or compact", value);
}

static void take_fingerprint(struct config_reading *reading, const struct key *key, const char *value)
{
	(void)key;
	if (load_fingerprint_parse(value, &reading->config->load.fingerprint_bits))
		refuse(reading, "fingerprint = '%s': must be 8, 16, 17 or 32 bits", value);
}

static void take_file(struct config_reading *reading, const struct key *key, const char *value)
{
	struct config_list *list = current_list(reading);

	(void)key;
	if (*value != '/')
		refuse(reading, "file = '%s': must be a path that starts with /", value);
	free(list->file);
	list->file = config_copy(reading, value);
}

static void take_format(struct config_reading *reading, const struct key *key, const char *value)
{
	struct config_list *list = current_list(reading);

	(void)key;
	if (!list_format_named(value))
		refuse(reading, "format = '%s': must be text, ipset, nft, spamhaus or csv", value);
	free(list->format);
	list->format = config_copy(reading, value);
}

/* ---- keys ---- */

#define OF_LIST(member) offsetof(struct config_list, member)
#define OF_CONFIG(member) offsetof(struct config, member)

static const struct key keys[] = {
	{ SECTION_FILTER, "interfaces", take_interfaces, 0 },
	{ SECTION_FILTER, "mode", take_mode, 0 },
	{ SECTION_FILTER, "capacity", take_capacity, 0 },
	{ SECTION_FILTER, "table", take_table, 0 },
	{ SECTION_FILTER, "fingerprint", take_fingerprint, 0 },
	{ SECTION_FILTER, "counters", take_opposite, OF_CONFIG(load.has_no_counters) },
	{ SECTION_FILTER, "spare", take_opposite, OF_CONFIG(load.has_no_spare) },
	{ SECTION_FILTER, "monitor-only", take_monitor_only, OF_CONFIG(load.is_monitor_only) },
	{ SECTION_FILTER, "wait", take_time, OF_CONFIG(wait_ms) },
	{ SECTION_FILTER, "detach-on-stop", take_switch, OF_CONFIG(detaches_on_stop) },
	{ SECTION_POLICY, "force", take_switch, OF_CONFIG(is_forced) },
	{ SECTION_LIST, "file", take_file, 0 },
	{ SECTION_LIST, "format", take_format, 0 },
	{ SECTION_LIST, "timeout", take_time, OF_LIST(timeout_ms) },
	{ SECTION_LIST, "strict", take_switch, OF_LIST(is_strict) },
	{ SECTION_LIST, "force", take_switch, OF_LIST(is_forced) },
};

#define KEYS (sizeof(keys) / sizeof(keys[0]))

_Static_assert(KEYS <= 32, "`given` has a bit for each key");

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

int config_take_key(void *context, const char *ignored, const char *name, const char *value)
{
	static const char *const names[] = { "", "[filter]", "[policy]", "[list]" };
	struct config_reading *reading = context;
	const struct key *key = keys;
	char text[KEYS_TEXT_BYTES];

	(void)ignored;
	if (reading->section == SECTION_UNKNOWN)
		return 1;
	while (key < keys + KEYS && (key->section != reading->section || strcmp(key->name, name)))
		key++;
	if (key == keys + KEYS)
		key = NULL;
	if (reading->section == SECTION_NONE)
		refuse(reading, "'%s' is before any section; write [filter] above it", name);
	else if (!value || !*value)
		refuse(reading, "'%s' has no value", name);
	else if (!key && reading->section == SECTION_POLICY)
		take_policy(reading, name, value);
	else if (!key)
		refuse(reading, "unknown key '%s' in %s; it knows %s", name, names[reading->section],
		       known_keys(reading->section, text));
	else if (reading->given & 1U << (key - keys))
		refuse(reading, "'%s' is there twice in this section", name);
	else
		key->take(reading, key, value);
	if (key)
		reading->given |= 1U << (key - keys);
	return 1;
}
