// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "list.h"

#define KEYS_TEXT_BYTES 512
#define LINE_BYTES 4096
#define WAIT_MS_MAX (600 * 1000LL)

enum section { SECTION_NONE, SECTION_FILTER, SECTION_POLICY, SECTION_LIST, SECTION_UNKNOWN };

/* The file while it is read. libinih knows the syntax, and tells neither lines nor sections without keys. */
struct reading {
	struct config *config;
	const struct invocation *invocation;
	FILE *file;
	const char *path;
	void (*refuse)(const char *text);
	unsigned int line, filter_line, policy_line[OUTCOME_POLICIES];
	enum section section;
	bool has_policy_section;
	__u32 given; /* keys of the section so far, by their place in `keys` */
	bool is_refused, is_out_of_memory;
};

__attribute__((format(printf, 3, 4))) static void refuse_at(struct reading *reading, unsigned int line,
							     const char *format, ...)
{
	char what[REASON_BYTES], text[REASON_BYTES + 512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(what, sizeof(what), format, arguments);
	va_end(arguments);
	if (line)
		snprintf(text, sizeof(text), "%.300s:%u: %s", reading->path, line, what);
	else
		snprintf(text, sizeof(text), "%.300s: %s", reading->path, what);
	reading->is_refused = true;
	reading->refuse(text);
}

#define refuse(reading, ...) refuse_at(reading, (reading)->line, __VA_ARGS__)

static char *copy(struct reading *reading, const char *text)
{
	char *copied = strdup(text);

	reading->is_out_of_memory |= !copied;
	return copied;
}

/* ---- values ---- */

static struct config_list *current_list(struct reading *reading)
{
	return &reading->config->list[reading->config->lists_count - 1];
}

static void take_switch(struct reading *reading, const char *key, const char *value, bool *is_on)
{
	static const char *const words[] = { "no", "yes", "off", "on", "false", "true" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(words[i], value)) {
			*is_on = i % 2;
			return;
		}
	refuse(reading, "%s = '%s': must be yes or no", key, value);
}

static void take_time(struct reading *reading, const char *key, const char *value, __s64 *ms)
{
	if (rule_time_parse(value, ms))
		refuse(reading, "%s = '%s': must be a time like 30s, 15m, 1h30m, 2d, at least a second", key, value);
}

static bool is_interface_name(const char *name)
{
	return strlen(name) < IF_NAMESIZE && strcmp(name, ".") && strcmp(name, "..") && !strpbrk(name, "/:");
}

static void add_interface(struct reading *reading, const char *name)
{
	struct config *config = reading->config;

	for (size_t i = 0; i < config->interfaces_count; i++)
		if (config->interfaces[i] && !strcmp(config->interfaces[i], name)) {
			refuse(reading, "interfaces: '%s' stands there twice", name);
			return;
		}
	if (!is_interface_name(name))
		refuse(reading, "interfaces: '%s' is no name of an interface; see ip link", name);
	else if (config->interfaces_count == CONFIG_INTERFACES_MAX)
		refuse(reading, "interfaces: more than %d", CONFIG_INTERFACES_MAX);
	else
		config->interfaces[config->interfaces_count++] = copy(reading, name);
}

static void take_interfaces(struct reading *reading, const char *value)
{
	char *words = copy(reading, value), *rest = words;
	const char *name;

	while (words && (name = strsep(&rest, ", \t")))
		if (*name)
			add_interface(reading, name);
	free(words);
}

static void take_mode(struct reading *reading, const char *value)
{
	if (command_mode_named(value, &reading->config->load.mode))
		refuse(reading, "mode = '%s': must be auto, native or skb", value);
}

static void take_capacity(struct reading *reading, const char *value)
{
	__u64 *capacity = &reading->config->load.capacity;
	char *end;

	errno = 0;
	*capacity = strtoull(value, &end, 10);
	if (*value < '0' || *value > '9' || *end || errno || !*capacity)
		refuse(reading, "capacity = '%s': must be a number of rules, 1 or more", value);
}

static void take_table(struct reading *reading, const char *value)
{
	reading->config->load.is_compact = !strcmp(value, "compact");
	if (!reading->config->load.is_compact && strcmp(value, "exact"))
		refuse(reading, "table = '%s': must be exact or compact", value);
}

static void take_fingerprint(struct reading *reading, const char *value)
{
	if (command_fingerprint_named(value, &reading->config->load.fingerprint_bits))
		refuse(reading, "fingerprint = '%s': must be 8, 16, 17 or 32 bits", value);
}

static void take_counters(struct reading *reading, const char *value)
{
	bool has_counters = true;

	take_switch(reading, "counters", value, &has_counters);
	reading->config->load.has_no_counters = !has_counters;
}

static void take_monitor_only(struct reading *reading, const char *value)
{
	reading->config->has_monitor_only = true;
	take_switch(reading, "monitor-only", value, &reading->config->load.is_monitor_only);
}

static void take_detach(struct reading *reading, const char *value)
{
	take_switch(reading, "detach-on-stop", value, &reading->config->detaches_on_stop);
}

static void take_wait(struct reading *reading, const char *value)
{
	take_time(reading, "wait", value, &reading->config->wait_ms);
	if (reading->config->wait_ms > WAIT_MS_MAX)
		refuse(reading, "wait = '%s': at most 10m", value);
}

static void take_policy_force(struct reading *reading, const char *value)
{
	take_switch(reading, "force", value, &reading->config->is_forced);
}

static void take_file(struct reading *reading, const char *value)
{
	struct config_list *list = current_list(reading);

	if (*value != '/')
		refuse(reading, "file = '%s': must be a path that starts with /", value);
	free(list->file);
	list->file = copy(reading, value);
}

static void take_format(struct reading *reading, const char *value)
{
	struct config_list *list = current_list(reading);

	if (!list_format_named(value))
		refuse(reading, "format = '%s': must be text, ipset, nft, spamhaus or csv", value);
	free(list->format);
	list->format = copy(reading, value);
	list->import.list_format = list->format;
}

static void take_timeout(struct reading *reading, const char *value)
{
	take_time(reading, "timeout", value, &current_list(reading)->import.timeout_ms);
}

static void take_strict(struct reading *reading, const char *value)
{
	take_switch(reading, "strict", value, &current_list(reading)->import.is_strict);
}

static void take_force(struct reading *reading, const char *value)
{
	take_switch(reading, "force", value, &current_list(reading)->import.is_forced);
}

/* ---- keys ---- */

static const struct key {
	enum section section;
	const char *name;
	void (*take)(struct reading *reading, const char *value);
} keys[] = {
	{ SECTION_FILTER, "interfaces", take_interfaces },
	{ SECTION_FILTER, "mode", take_mode },
	{ SECTION_FILTER, "capacity", take_capacity },
	{ SECTION_FILTER, "table", take_table },
	{ SECTION_FILTER, "fingerprint", take_fingerprint },
	{ SECTION_FILTER, "counters", take_counters },
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

_Static_assert(KEYS <= 32, "a bit for each");

static const char *known_keys(enum section section, char text[KEYS_TEXT_BYTES])
{
	size_t used = 0;

	for (size_t i = 0; i < KEYS; i++)
		if (keys[i].section == section)
			used += snprintf(text + used, KEYS_TEXT_BYTES - used, "%s%s", used ? ", " : "", keys[i].name);
	return text;
}

static void take_policy(struct reading *reading, const char *name, const char *value)
{
	const enum abi_outcome outcome = command_outcome_named(name);
	struct config *config = reading->config;

	if (outcome == OUTCOME_POLICIES) {
		refuse(reading, "unknown key '%s' in [policy]; xdp-cuckoo policy lists them", name);
		return;
	}
	if (config->has_policy[outcome])
		refuse(reading, "'%s' stands there twice in this section", name);
	if (strcmp(value, "pass") && strcmp(value, "drop"))
		refuse(reading, "%s = '%s': must be pass or drop", name, value);
	config->has_policy[outcome] = true;
	reading->policy_line[outcome] = reading->line;
	config->policy[outcome] = strcmp(value, "drop") ? VERDICT_PASS : VERDICT_DROP;
}

static const struct key *find_key(enum section section, const char *name)
{
	for (size_t i = 0; i < KEYS; i++)
		if (keys[i].section == section && !strcmp(keys[i].name, name))
			return &keys[i];
	return NULL;
}

/* For libinih: 1, always: what is wrong is told here. */
static int take_key(void *context, const char *ignored, const char *name, const char *value)
{
	static const char *const names[] = { "", "[filter]", "[policy]", "[list]" };
	struct reading *reading = context;
	const struct key *key = find_key(reading->section, name);
	char text[KEYS_TEXT_BYTES];

	(void)ignored;
	if (reading->section == SECTION_UNKNOWN)
		return 1;
	if (reading->section == SECTION_NONE)
		refuse(reading, "'%s' stands before any section; write [filter] above it", name);
	else if (!value || !*value)
		refuse(reading, "'%s' has no value", name);
	else if (!key && reading->section == SECTION_POLICY)
		take_policy(reading, name, value);
	else if (!key)
		refuse(reading, "unknown key '%s' in %s; it knows %s", name, names[reading->section],
		       known_keys(reading->section, text));
	else if (reading->given & 1U << (key - keys))
		refuse(reading, "'%s' stands there twice in this section", name);
	else
		key->take(reading, value);
	if (key)
		reading->given |= 1U << (key - keys);
	return 1;
}

/* ---- sections ---- */

static void begin_list(struct reading *reading, const char *name)
{
	struct config *config = reading->config;
	struct config_list *list = &config->list[config->lists_count];

	for (size_t i = 0; i < config->lists_count; i++)
		if (config->list[i].name && !strcmp(config->list[i].name, name)) {
			refuse(reading, "[list %s] stands there twice, first in line %u", name, config->list[i].line);
			return;
		}
	if (!apply_is_name(name)) {
		refuse(reading, "[list %s]: a list's name has 1 to %d letters, digits, '.', '_' or '-', and starts with "
		       "none of '.' and '-'", name, ABI_NAME_BYTES - 1);
		return;
	}
	if (config->lists_count == STORE_LISTS_MAX) {
		refuse(reading, "more than %d lists", STORE_LISTS_MAX);
		return;
	}
	config->lists_count++;
	reading->section = SECTION_LIST;
	list->line = reading->line;
	list->name = copy(reading, name);
	list->import = (struct invocation){ .name = reading->invocation->name,
					    .state = reading->invocation->state,
					    .list_name = list->name,
					    .is_replace = true };
}

static void begin_section(struct reading *reading, char *name)
{
	reading->given = 0;
	reading->section = SECTION_UNKNOWN;
	if (!strncmp(name, "list", 4) && strchr(" \t", name[4]) && name[4]) {
		begin_list(reading, name + 4 + strspn(name + 4, " \t"));
	} else if (!strcmp(name, "filter") && reading->filter_line) {
		refuse(reading, "[filter] stands there twice, first in line %u", reading->filter_line);
	} else if (!strcmp(name, "filter")) {
		reading->section = SECTION_FILTER;
		reading->filter_line = reading->line;
	} else if (!strcmp(name, "policy") && reading->has_policy_section) {
		refuse(reading, "[policy] stands there twice");
	} else if (!strcmp(name, "policy")) {
		reading->section = SECTION_POLICY;
		reading->has_policy_section = true;
	} else {
		refuse(reading, "unknown section [%s]; there are [filter], [policy] and [list NAME]", name);
	}
}

/* [NAME], and what may stand around it; libinih sees the same. */
static void look_for_section(struct reading *reading, const char *line)
{
	char name[256], *end;
	size_t length;

	line += strspn(line, " \t\r\n");
	if (*line != '[')
		return;
	snprintf(name, sizeof(name), "%s", line + 1 + strspn(line + 1, " \t"));
	end = strchr(name, ']');
	if (!end) {
		refuse(reading, "a section ends with ]");
		reading->section = SECTION_UNKNOWN;
		return;
	}
	*end = '\0';
	for (length = strlen(name); length && strchr(" \t", name[length - 1]);)
		name[--length] = '\0';
	begin_section(reading, name);
}

/* ---- lines ---- */

static bool is_comment(const char *line)
{
	line += strspn(line, " \t\r\n");
	return !*line || strchr("#;[", *line);
}

/* What libinih would take for a line that goes on, cut in two, or find wrong without telling each. */
static bool is_line(struct reading *reading, const char *line, size_t size)
{
	const size_t length = strlen(line);
	int c;

	if (length + 1 < size && !(length && line[length - 1] == '\n') && !feof(reading->file)) {
		refuse(reading, "a NUL byte; this is not text");
		return false;
	}
	if (length + 1 == size && line[length - 1] != '\n') {
		refuse(reading, "the line is longer than %zu bytes", size - 2);
		while ((c = fgetc(reading->file)) != EOF && c != '\n')
			;
		return false;
	}
	if (is_comment(line) || strpbrk(line, "=:"))
		return true;
	refuse(reading, "'%.*s' is neither [SECTION] nor KEY = VALUE", (int)strcspn(line, "\r\n"), line);
	return false;
}

/* For libinih, as fgets(): a line that is refused becomes an empty one. */
static char *next_line(char *line, int size, void *context)
{
	struct reading *reading = context;

	if (!fgets(line, size, reading->file))
		return NULL;
	reading->line++;
	if (!is_line(reading, line, size))
		strcpy(line, "\n");
	look_for_section(reading, line);
	return line;
}

/* ---- the whole ---- */

static void check_filter(struct reading *reading)
{
	const struct config *config = reading->config;
	const struct invocation *load = &config->load;

	if (!reading->filter_line)
		refuse_at(reading, 0, "there is no [filter] section with interfaces = NAME...");
	else if (!config->interfaces_count)
		refuse_at(reading, reading->filter_line, "[filter] names no interfaces; write interfaces = NAME...");
	if (load->fingerprint_bits && !load->is_compact)
		refuse_at(reading, reading->filter_line, "fingerprint goes with table = compact: an exact table has 16 bits "
			  "and drops no innocent packet");
}

static void check_policies(struct reading *reading)
{
	const struct config *config = reading->config;

	for (enum abi_outcome i = 0; i < OUTCOME_POLICIES; i++)
		if (config->has_policy[i] && config->policy[i] == VERDICT_DROP && !config->is_forced &&
		    command_outcome_danger(i))
			refuse_at(reading, reading->policy_line[i], "'drop' here %s; write force = yes in [policy] if you "
				  "mean it", command_outcome_danger(i));
}

static void check_lists(struct reading *reading)
{
	for (size_t i = 0; i < reading->config->lists_count; i++) {
		const struct config_list *list = &reading->config->list[i];

		if (!list->file)
			refuse_at(reading, list->line, "[list %s] names no file; write file = /PATH", list->name);
	}
}

/* What root shall do is nobody else's to say. */
static int check_file(FILE *file, const char *path, struct reason *reason)
{
	struct stat status;

	if (fstat(fileno(file), &status))
		return reason_set(reason, -errno, "cannot read '%s': %s", path, strerror(errno));
	if (!S_ISREG(status.st_mode))
		return reason_set(reason, -EPERM, "'%s' is no file", path);
	if ((status.st_uid && status.st_uid != geteuid()) || status.st_mode & (S_IWGRP | S_IWOTH))
		return reason_set(reason, -EPERM, "'%s' may be written by others: it must belong to root or to you; chmod "
				  "go-w", path);
	return 0;
}

static int read_file(struct reading *reading, struct reason *reason)
{
	static char comments[] = ";#";

	ini_allow_multiline = false;
	ini_inline_comment_prefixes = comments;
	ini_use_stack = false;
	ini_initial_alloc = ini_max_line = LINE_BYTES;
	if (ini_parse_stream(next_line, reading, take_key, reading) < 0)
		reading->is_out_of_memory = true;
	if (ferror(reading->file))
		return reason_set(reason, -EIO, "cannot read '%s'", reading->path);
	check_filter(reading);
	check_policies(reading);
	check_lists(reading);
	if (reading->is_out_of_memory)
		return reason_set(reason, -ENOMEM, "no memory for the configuration");
	return reading->is_refused ? reason_set(reason, -EINVAL, "%s is not right; nothing was changed", reading->path) : 0;
}

int config_open(struct config *config, const char *path, const struct invocation *invocation,
		void (*refuse_line)(const char *text), struct reason *reason)
{
	struct reading reading = { .config = config, .invocation = invocation, .path = path, .refuse = refuse_line };
	int error;

	*config = (struct config){ .load = { .name = invocation->name, .state = invocation->state } };
	reading.file = fopen(path, "re");
	if (!reading.file)
		return reason_set(reason, -errno, "cannot read '%s': %s", path, strerror(errno));
	error = check_file(reading.file, path, reason);
	if (!error)
		error = read_file(&reading, reason);
	fclose(reading.file);
	return error;
}

void config_close(struct config *config)
{
	for (size_t i = 0; i < config->interfaces_count; i++)
		free(config->interfaces[i]);
	for (size_t i = 0; i < config->lists_count; i++) {
		free(config->list[i].name);
		free(config->list[i].file);
		free(config->list[i].format);
	}
	*config = (struct config){};
}
