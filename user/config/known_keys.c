// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The keys of each section of a configuration, and their values. */
#include <errno.h>
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

static void take_switch(struct config_reading *reading, const char *key, const char *value, bool *is_on)
{
	static const char *const words[] = { "no", "yes", "off", "on", "false", "true" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(words[i], value)) {
			*is_on = i % 2;
			return;
		}
	refuse(reading, "%s = '%s': must be yes or no", key, value);
}

static void take_time(struct config_reading *reading, const char *key, const char *value, __s64 *ms)
{
	if (rule_time_parse(value, ms))
		refuse(reading, "%s = '%s': must be a time like 30s, 15m, 1h30m, 2d, at least a second", key, value);
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

static void take_interfaces(struct config_reading *reading, const char *value)
{
	char *words = config_copy(reading, value), *rest = words;
	const char *name;

	while (words && (name = strsep(&rest, ", \t")))
		if (*name)
			add_interface(reading, name);
	free(words);
}

static void take_mode(struct config_reading *reading, const char *value)
{
	if (load_mode_parse(value, &reading->config->load.mode))
		refuse(reading, "mode = '%s': must be auto, native or skb", value);
}

static void take_capacity(struct config_reading *reading, const char *value)
{
	__u64 *capacity = &reading->config->load.capacity;
	char *end;

	errno = 0;
	*capacity = strtoull(value, &end, 10);
	if (*value < '0' || *value > '9' || *end || errno || !*capacity)
		refuse(reading, "capacity = '%s': must be a number of rules, 1 or more", value);
	else if (table_slots_for(*capacity) > 1ULL << ABI_SLOTS_MAX_LOG2)
		refuse(reading, "capacity = '%s': a table holds at most %llu rules", value,
		       (1ULL << ABI_SLOTS_MAX_LOG2) * TABLE_LOAD_PERCENT / 100);
}

static void take_table(struct config_reading *reading, const char *value)
{
	reading->config->load.is_compact = !strcmp(value, "compact");
	if (!reading->config->load.is_compact && strcmp(value, "exact"))
		refuse(reading, "table = '%s': must be exact or compact", value);
}

static void take_fingerprint(struct config_reading *reading, const char *value)
{
	if (load_fingerprint_parse(value, &reading->config->load.fingerprint_bits))
		refuse(reading, "fingerprint = '%s': must be 8, 16, 17 or 32 bits", value);
}

static void take_counters(struct config_reading *reading, const char *value)
{
	bool has_counters = true;

	take_switch(reading, "counters", value, &has_counters);
	reading->config->load.has_no_counters = !has_counters;
}

static void take_spare(struct config_reading *reading, const char *value)
{
	bool has_spare = true;

	take_switch(reading, "spare", value, &has_spare);
	reading->config->load.has_no_spare = !has_spare;
}

static void take_monitor_only(struct config_reading *reading, const char *value)
{
	reading->config->has_monitor_only = true;
	take_switch(reading, "monitor-only", value, &reading->config->load.is_monitor_only);
}

static void take_detach(struct config_reading *reading, const char *value)
{
	take_switch(reading, "detach-on-stop", value, &reading->config->detaches_on_stop);
}

static void take_wait(struct config_reading *reading, const char *value)
{
	take_time(reading, "wait", value, &reading->config->wait_ms);
	if (reading->config->wait_ms > WAIT_MS_MAX)
		refuse(reading, "wait = '%s': at most 10m", value);
}

static void take_policy_force(struct config_reading *reading, const char *value)
{
	take_switch(reading, "force", value, &reading->config->is_forced);
}

static void take_file(struct config_reading *reading, const char *value)
{
	struct config_list *list = current_list(reading);

	if (*value != '/')
		refuse(reading, "file = '%s': must be a path that starts with /", value);
	free(list->file);
	list->file = config_copy(reading, value);
}

static void take_format(struct config_reading *reading, const char *value)
{
	struct config_list *list = current_list(reading);

	if (!list_format_named(value))
		refuse(reading, "format = '%s': must be text, ipset, nft, spamhaus or csv", value);
	free(list->format);
	list->format = config_copy(reading, value);
}

static void take_timeout(struct config_reading *reading, const char *value)
{
	take_time(reading, "timeout", value, &current_list(reading)->timeout_ms);
}

static void take_strict(struct config_reading *reading, const char *value)
{
	take_switch(reading, "strict", value, &current_list(reading)->is_strict);
}

static void take_force(struct config_reading *reading, const char *value)
{
	take_switch(reading, "force", value, &current_list(reading)->is_forced);
}

/* ---- keys ---- */

static const struct key {
	enum config_section section;
	const char *name;
	void (*take)(struct config_reading *reading, const char *value);
} keys[] = {
	{ SECTION_FILTER, "interfaces", take_interfaces },
	{ SECTION_FILTER, "mode", take_mode },
	{ SECTION_FILTER, "capacity", take_capacity },
	{ SECTION_FILTER, "table", take_table },
	{ SECTION_FILTER, "fingerprint", take_fingerprint },
	{ SECTION_FILTER, "counters", take_counters },
	{ SECTION_FILTER, "spare", take_spare },
	{ SECTION_FILTER, "monitor-only", take_monitor_only },
	{ SECTION_FILTER, "wait", take_wait },
	{ SECTION_FILTER, "detach-on-stop", take_detach },
	{ SECTION_POLICY, "force", take_policy_force },
	{ SECTION_LIST, "file", take_file },
	{ SECTION_LIST, "format", take_format },
	{ SECTION_LIST, "timeout", take_timeout },
	{ SECTION_LIST, "strict", take_strict },
	{ SECTION_LIST, "force", take_force },
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
		key->take(reading, value);
	if (key)
		reading->given |= 1U << (key - keys);
	return 1;
}
