// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reads a configuration file: its lines, its sections, and what must not be missing. */
#include "config/config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/ini_line.h"
#include "base/safe_text.h"
#include "change/change.h"
#include "config/internal.h"
#include "kernel/interfaces.h"

#define LINE_BYTES 4094

/* Of lists by URL. */
#define EVERY_MS_DEFAULT (3600 * 1000LL)
#define EVERY_MS_MIN (60 * 1000LL)
#define FETCH_MS_DEFAULT (60 * 1000LL)
#define FETCH_MS_PART 1000LL /* for each URL after the first */
#define FETCH_MS_MAX (600 * 1000LL)
#define FETCHED_RULES_MAX 1000000
#define FETCHED_SHRINK_MAX 50
#define FETCHED_GROW_MAX 400
#define FETCHED_SPACE_MAX 5
#define NOT_GIVEN ~0U

const char *const config_sections[SECTION_UNKNOWN] = { "", "filter", "policy", "list", "fleet", "flowspec", "crowdsec" };

void config_refuse(struct config_reading *reading, unsigned int line, const char *format, ...)
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
	if (reading->report)
		reading->report(text);
}

/* ---- lines ---- */

static void take_list_section(struct config_reading *reading, const char *name)
{
	struct config *config = reading->config;
	struct config_list *list = &config->list[config->lists_count];

	for (size_t i = 0; i < config->lists_count; i++)
		if (config->list[i].name && !strcmp(config->list[i].name, name)) {
			refuse(reading, "[list %s] is there twice, first in line %u", name, config->list[i].line);
			return;
		}
	if (!session_is_name(name)) {
		refuse(reading,
		       "[list %s]: a list's name has 1 to %d letters, digits, '.', '_' or '-', and does not "
		       "start with '.' or '-'",
		       name, ABI_NAME_BYTES - 1);
		return;
	}
	if (config->lists_count == STORE_LISTS_MAX) {
		refuse(reading, "more than %d lists", STORE_LISTS_MAX);
		return;
	}
	config->lists_count++;
	reading->section = SECTION_LIST;
	list->line = reading->line;
	list->shrink_max = list->grow_max = list->limits.space_max = NOT_GIVEN;
	list->name = config_keep(reading, name);
}

static void take_section(struct config_reading *reading, const char *name)
{
	enum config_section section = SECTION_FILTER;

	reading->given = 0;
	reading->section = SECTION_UNKNOWN;
	if (!strncmp(name, "list", 4) && strchr(" \t", name[4]) && name[4]) {
		take_list_section(reading, name + 4 + strspn(name + 4, " \t"));
		return;
	}
	while (section < SECTION_UNKNOWN &&
	       (section == SECTION_LIST || strcmp(name, config_sections[section])))
		section++;
	if (section == SECTION_UNKNOWN) {
		refuse(reading,
		       "unknown section [%s]; there are [filter], [policy], [fleet], [flowspec], [crowdsec] and [list NAME]",
		       name);
		return;
	}
	if (reading->section_line[section]) {
		refuse(reading, "[%s] is there twice, first in line %u", name,
		       reading->section_line[section]);
		return;
	}
	reading->section = section;
	reading->section_line[section] = reading->line;
	if (section == SECTION_FLOWSPEC)
		reading->config->flowspec.list = FLOWSPEC_LIST_DEFAULT;
	if (section == SECTION_CROWDSEC)
		reading->config->crowdsec.list = CROWDSEC_LIST_DEFAULT;
}

static int take_lines(struct config_reading *reading, FILE *file, struct reason *reason)
{
	char *text = NULL;
	size_t room = 0;
	ssize_t length;

	while ((length = getline(&text, &room, file)) > 0) {
		struct ini_line line;
		char *start;

		reading->line++;
		if (strlen(text) < (size_t)length) {
			refuse(reading, "a NUL byte; this is not text");
			continue;
		}
		if (strcspn(text, "\n") > LINE_BYTES) {
			refuse(reading, "the line is longer than %d bytes", LINE_BYTES);
			continue;
		}
		start = reading->line == 1 ? (char *)text_behind_mark(text) : text;
		line = ini_line_parse(start);
		switch (line.kind) {
		case INI_EMPTY:
			break;
		case INI_SECTION:
			if (*line.value)
				refuse(reading, "'%s' after ]: write it on a line of its own", line.value);
			take_section(reading, line.name);
			break;
		case INI_KEY:
			config_take_key(reading, line.name, line.value);
			break;
		case INI_OPEN:
			refuse(reading, "a section ends with ]");
			reading->given = 0;
			reading->section = SECTION_UNKNOWN;
			break;
		case INI_WRONG:
			refuse(reading, "'%.*s' is neither [SECTION] nor KEY = VALUE", (int)strcspn(start, "\r\n"),
			       start);
		}
	}
	free(text);
	return feof(file) ? 0 : reason_set(reason, -EIO, "cannot read '%s'", reading->path);
}

/* ---- the whole ---- */

/* Whether the URL names a loopback or private address. Headers that http sends there are seen by no other network. */
static bool is_inner(const char *url)
{
	const char *host = url + strcspn(url, "/") + 2;
	char text[INET6_ADDRSTRLEN];
	struct in6_addr ipv6;
	struct in_addr ipv4;

	if (*host == '[') {
		snprintf(text, sizeof(text), "%.*s", (int)strcspn(host + 1, "]"), host + 1);
		return inet_pton(AF_INET6, text, &ipv6) == 1 &&
		       (IN6_IS_ADDR_LOOPBACK(&ipv6) || (ipv6.s6_addr[0] & 0xfe) == 0xfc);
	}
	snprintf(text, sizeof(text), "%.*s", (int)strcspn(host, ":/?#"), host);
	if (inet_pton(AF_INET, text, &ipv4) != 1)
		return false;
	return ntohl(ipv4.s_addr) >> 24 == 127 || ntohl(ipv4.s_addr) >> 24 == 10 || ntohl(ipv4.s_addr) >> 20 == 0xac1 ||
	       ntohl(ipv4.s_addr) >> 16 == 0xc0a8;
}

/* The keys of a list by URL get their defaults. */
static void complete_fetched_list(struct config_reading *reading, struct config_list *list)
{
	const struct list_preset *preset = list->preset;
	const __s64 every_min_ms = preset ? preset->every_ms : EVERY_MS_MIN;
	char time[RULE_TIME_BYTES];
	struct list_part part;
	size_t parts;

	if (list->grow_max == NOT_GIVEN)
		list->grow_max = FETCHED_GROW_MAX;
	if (list->limits.space_max == NOT_GIVEN)
		list->limits.space_max = preset ? preset->space_max : FETCHED_SPACE_MAX;
	list->limits.may_pass = list->action == RULE_PASS;
	if (preset)
		list->url = preset->url;
	if (preset && !list->format)
		list->format = preset->format;
	if (!list->every_ms)
		list->every_ms = EVERY_MS_DEFAULT > every_min_ms ? EVERY_MS_DEFAULT : every_min_ms;
	for (parts = 0; config_list_part(list, parts, &part);)
		parts++;
	if (!list->fetch_ms)
		list->fetch_ms = FETCH_MS_DEFAULT + FETCH_MS_PART * (parts - 1);
	if (parts > 1 && list->sha256_url)
		config_refuse(reading, list->line, "[list %s]: sha256-url is for a list with one URL", list->name);
	if (!list->rules_max)
		list->rules_max = FETCHED_RULES_MAX;
	if (list->every_ms < every_min_ms)
		config_refuse(reading, list->line, "[list %s]: every must be at least %s%s", list->name,
			      rule_time_format(every_min_ms, time), preset ? ", as its provider asks" : "");
	if (list->timeout_ms && list->timeout_ms < list->every_ms + list->every_ms / 10)
		config_refuse(reading, list->line, "[list %s]: timeout must be at least %s: %s", list->name,
			      rule_time_format(list->every_ms + list->every_ms / 10, time),
			      "the next fetch comes after every, or up to a tenth later");
	if (list->fetch_ms > FETCH_MS_MAX)
		config_refuse(reading, list->line, "[list %s]: fetch-time must be at most %s", list->name,
			      rule_time_format(FETCH_MS_MAX, time));
	for (size_t i = 0; config_list_part(list, i, &part); i++) {
		const char *wrong = NULL;

		if (strncmp(part.url, "https://", 8) && (list->pinned_key || list->ca))
			wrong = "pinned-key and ca need a URL with https://";
		else if (list->header_file && strncmp(part.url, "https://", 8) && !is_inner(part.url))
			wrong = "header-file needs a URL with https://, or http:// and a loopback or private address";
		else if (list->header_file && !url_is_same_server(list->url, part.url))
			wrong = "header-file is for one server, and the URLs name several";
		if (wrong) {
			config_refuse(reading, list->line, "[list %s]: %s", list->name, wrong);
			break;
		}
	}
}

/* A list has a file, a URL, or a preset, which has a URL. */
static void complete_list(struct config_reading *reading, struct config_list *list)
{
	const struct list_preset *preset = list->preset;

	if (!list->file + !list->url + !preset != 2) {
		config_refuse(reading, list->line,
			      "[list %s] must have one of these: file = /PATH, url = https://..., preset = NAME",
			      list->name);
		return;
	}
	if (preset && preset->key && !list->country && !list->asn) {
		config_refuse(reading, list->line, "[list %s] has preset = %s: write also %s", list->name, preset->name,
			      strcmp(preset->key, "asn") ? "country = XX, two letters for each" : "asn = NUMBER");
		return;
	}
	if ((list->country && (!preset || !preset->key || strcmp(preset->key, "country"))) ||
	    (list->asn && (!preset || !preset->key || strcmp(preset->key, "asn")))) {
		config_refuse(reading, list->line,
			      "[list %s]: country goes with preset = country, asn with preset = asn", list->name);
		return;
	}
	/* By default, answers from a country or an autonomous system still come in. */
	if (preset && preset->key && !list->has_new_only)
		list->is_new_only = list->action != RULE_PASS;
	if (list->file && (list->every_ms || list->fetch_ms || list->sha256_url || list->pinned_key || list->ca ||
			   list->header_file || list->grow_max != NOT_GIVEN || list->limits.space_max != NOT_GIVEN ||
			   list->limits.prefix_min[0] || list->limits.prefix_min[1]))
		config_refuse(reading, list->line,
			      "[list %s] has a file: every, fetch-time, sha256-url, pinned-key, ca, header-file, max-grow, "
			      "max-space and min-prefix are for lists by URL",
			      list->name);
	if (list->json && (list->format || list->set || preset))
		config_refuse(reading, list->line,
			      "[list %s]: json names the format, so leave out format, set and preset", list->name);
	if (list->is_new_only && list->action == RULE_PASS)
		config_refuse(reading, list->line, "[list %s]: new-only is for rules that drop or monitor", list->name);
	if (list->shrink_max == NOT_GIVEN)
		list->shrink_max = list->file ? 100 : FETCHED_SHRINK_MAX;
	if (!list->file)
		complete_fetched_list(reading, list);
}

static bool is_same(const char *list, const char *other)
{
	return list && other && !strcmp(list, other);
}

/* What is wrong with list number `at` of [fleet], which nothing else may keep; NULL: nothing. */
static const char *find_fleet_mistake(const struct config *config, size_t at)
{
	const struct fleet_options *fleet = &config->fleet;
	const char *name = fleet->lists[at];
	char staged[2 * ABI_NAME_BYTES];

	if (!session_is_name(name) || strlen(name) + strlen(FLEET_STAGED) >= ABI_NAME_BYTES)
		return "is no name of a list: 1 to 26 letters, digits, '.', '_' or '-', and no '.' or '-' at the start";
	snprintf(staged, sizeof(staged), "%s" FLEET_STAGED, name);
	for (size_t i = 0; i < fleet->lists_count; i++) {
		if (i < at && is_same(fleet->lists[i], name))
			return "is there twice";
		if (fleet->is_staged && is_same(fleet->lists[i], staged))
			return "has a stage, '" FLEET_STAGED
			       "' behind its name, which staged = yes adds: leave that out";
	}
	for (size_t i = 0; i < config->lists_count; i++)
		if (is_same(config->list[i].name, name))
			return "is kept by a section [list] too; give one of them another name";
	return is_same(name, config->flowspec.list) ? "is kept by [flowspec] too; give one of them another name" :
	       is_same(name, config->crowdsec.list) ? "is kept by [crowdsec] too; give one of them another name" :
						      NULL;
}

static void check_fleet(struct config_reading *reading)
{
	const struct fleet_options *fleet = &reading->config->fleet;
	const unsigned int line = reading->section_line[SECTION_FLEET];
	char host[HOST_WHERE_BYTES], port[8];

	if (line && !fleet->brokers_count)
		config_refuse(reading, line, "[fleet] names no broker; write broker = HOST...");
	for (size_t i = 0; i < fleet->brokers_count; i++) {
		const char *where = fleet->brokers[i];

		if (where && *where != '/' && (host_split(where, host, port) || !atoi(port) || atoi(port) > 65535))
			config_refuse(reading, line, "[fleet]: '%s' must be %s", where,
				      "HOST, HOST:PORT, [IPv6]:PORT or the path of a socket");
	}
	for (size_t i = 0; i < fleet->lists_count; i++)
		if (find_fleet_mistake(reading->config, i))
			config_refuse(reading, line, "[fleet]: the list '%s' %s", fleet->lists[i],
				      find_fleet_mistake(reading->config, i));
}

/* NULL: nothing is wrong. */
static const char *find_crowdsec_mistake(const struct crowdsec_options *crowdsec)
{
	const bool is_secure = !strncmp(crowdsec->url, "https://", 8);

	if (!crowdsec->key_file && !crowdsec->cert)
		return "needs key-file = /PATH with the key that cscli bouncers add prints, or cert and cert-key";
	if (!crowdsec->cert != !crowdsec->cert_key)
		return "needs cert and cert-key together";
	if (!is_secure && (crowdsec->cert || crowdsec->ca))
		return "has cert or ca, and so needs a url with https://";
	if (!is_secure && !crowdsec->socket && !is_inner(crowdsec->url))
		return "needs a url with https://, or http:// and a loopback or private address";
	return crowdsec->action == RULE_PASS ? "must have action = drop or monitor" : NULL;
}

/* Checks what concerns several lines, or a missing line. */
static void check_whole(struct config_reading *reading)
{
	struct config *config = reading->config;
	const char *flowspec = config->flowspec.list, *crowdsec = config->crowdsec.list;
	const unsigned int *line = reading->section_line, filter_line = line[SECTION_FILTER];

	check_fleet(reading);
	if (line[SECTION_FLOWSPEC] && !config->flowspec.own_count && !config->flowspec.is_any)
		config_refuse(reading, line[SECTION_FLOWSPEC],
			      "[flowspec] names no destinations; write own-prefixes = PREFIX..., or any");
	if (config->flowspec.action == RULE_PASS)
		config_refuse(reading, line[SECTION_FLOWSPEC], "action in [flowspec] must be drop or monitor");
	if (line[SECTION_CROWDSEC] && find_crowdsec_mistake(&config->crowdsec))
		config_refuse(reading, line[SECTION_CROWDSEC], "[crowdsec] %s",
			      find_crowdsec_mistake(&config->crowdsec));
	/* A host that only publishes has no filter. */
	if (!filter_line && !line[SECTION_FLEET] && !line[SECTION_FLOWSPEC] && !line[SECTION_CROWDSEC])
		config_refuse(reading, 0, "there is no [filter] section with interfaces = NAME...");
	else if (filter_line && !config->interfaces_count)
		config_refuse(reading, filter_line, "[filter] names no interfaces; write interfaces = NAME...");
	if (config->load.fingerprint_bits && !config->load.is_compact)
		config_refuse(reading, filter_line,
			      "fingerprint needs table = compact: an exact table has 16 bits and drops no innocent packet");
	for (enum abi_outcome i = 0; i < OUTCOME_POLICIES; i++)
		if (config->has_policy[i] && config->policy[i] == VERDICT_DROP && !config->is_forced &&
		    policy_danger(i))
			config_refuse(reading, reading->policy_line[i],
				      "'drop' here %s; write force = yes in [policy] if you mean it", policy_danger(i));
	for (size_t i = 0; i < config->lists_count; i++) {
		const char *name = config->list[i].name;

		complete_list(reading, &config->list[i]);
		if (is_same(name, flowspec) || is_same(name, crowdsec))
			config_refuse(reading, config->list[i].line,
				      "[list %s]: [%s] keeps this list; give one of them another name", name,
				      is_same(name, flowspec) ? "flowspec" : "crowdsec");
	}
	if (is_same(flowspec, crowdsec))
		config_refuse(reading, line[SECTION_CROWDSEC], "[flowspec] and [crowdsec] keep the same list, %s",
			      crowdsec);
}

const char *config_source(const struct config *config, size_t index, __s64 *stale_s)
{
	const struct {
		const char *list;
		__s64 stale_ms;
	} services[] = { { config->crowdsec.list, CROWDSEC_STALE_POLLS * config->crowdsec.every_ms },
			 { config->flowspec.list, config->flowspec.stale_ms } };

	for (size_t i = 0; i < config->lists_count; i++) {
		*stale_s = 3 * config->list[i].every_ms / 1000;
		if (config->list[i].url && !index--)
			return config->list[i].name;
	}
	for (size_t i = 0; i < sizeof(services) / sizeof(services[0]); i++) {
		*stale_s = services[i].stale_ms / 1000;
		if (services[i].list && !index--)
			return services[i].list;
	}
	*stale_s = FLEET_STALE_S;
	return index < config->fleet.lists_count ? config->fleet.lists[index] : NULL;
}

bool config_has_source(const struct config *config, const char *list)
{
	const char *name;
	__s64 stale_s;

	for (size_t i = 0; (name = config_source(config, i, &stale_s)); i++)
		if (!strcmp(name, list))
			return true;
	return false;
}

bool config_must_expect(const struct store_list *list)
{
	return !list->stale_s && store_source_parse(list->source).kind != STORE_SOURCE_FLEET;
}

void config_expect(const char *name, struct store_lists *lists)
{
	struct reason ignored;
	struct config *config;
	const char *source;
	__s64 stale_s;

	if (config_open(NULL, name, NULL, &config, &ignored))
		return;
	for (size_t i = 0, k = 1; (source = config_source(config, i, &stale_s)); i++) {
		const unsigned int known = store_lists_find(lists, source);
		struct store_list *list;

		while (k < STORE_LISTS_MAX && *lists->list[k].name)
			k++;
		list = &lists->list[known ? known : k];
		if (!config_must_expect(list) || (!known && *list->name))
			continue;
		snprintf(list->name, ABI_NAME_BYTES, "%s", source);
		list->stale_s = stale_s;
	}
	config_close(config);
}

/* The file tells root what to do, so nobody else may be able to write to it. */
static int check_file(FILE *file, const char *path, struct reason *reason)
{
	struct stat status;

	if (fstat(fileno(file), &status))
		return reason_set(reason, -errno, "cannot read '%s': %s", path, strerror(errno));
	if (!S_ISREG(status.st_mode))
		return reason_set(reason, -EINVAL, "'%s' is not a regular file; write the configuration into one",
				  path);
	if (status.st_uid && status.st_uid != geteuid())
		return reason_set(reason, -EPERM,
				  "other users can write to '%s': it must belong to root or to you; chown root", path);
	if (status.st_mode & (S_IWGRP | S_IWOTH))
		return reason_set(reason, -EPERM, "other users can write to '%s'; chmod go-w", path);
	return 0;
}

static int open_reason(const char *path, int error, struct reason *reason)
{
	const char *what_to_do = error == -ENOENT ? "; copy the example there, share/doc/xdp-cuckoo/default.conf under "
						    "/usr/local or /usr, and edit it, or name a FILE" :
				 error == -EACCES ? "; run it as root, or name a FILE" :
						    "";

	if (error == -ENOENT && interfaces_index(path))
		return reason_set(reason, error,
				  "'%s' is an interface, and no file: xdp-cuckoo load %s, or xdp-cuckoo unload %s",
				  path, path, path);
	return reason_set(reason, error, "cannot read '%s': %s%s", path, strerror(-error), what_to_do);
}

int config_open(const char *path, const char *name, void (*report)(const char *text), struct config **config,
		struct reason *reason)
{
	struct config_reading reading = { .report = report };
	char default_path[PATH_MAX];
	FILE *file;
	int error, fd;

	*config = NULL;
	snprintf(default_path, sizeof(default_path), "%s/%s.conf", CONFIG_DIR, name);
	reading.path = path ? path : default_path;
	if (path)
		host_also_read(path);
	/* Does not wait for the writer of a FIFO, which check_file() refuses below. */
	fd = open(reading.path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return open_reason(reading.path, -errno, reason);
	reading.config = calloc(1, sizeof(**config));
	file = reading.config ? fdopen(fd, "r") : NULL;
	if (!file) {
		close(fd);
		free(reading.config);
		return open_reason(reading.path, -ENOMEM, reason);
	}
	reading.config->fleet = (struct fleet_options){ .shrink_max = 50, .jitter_ms = 30000 };
	reading.config->flowspec =
		(struct flowspec_options){ .flows_max = 10000, .rules_max = 100000, .stale_ms = 120000 };
	reading.config->crowdsec = (struct crowdsec_options){ .url = "http://127.0.0.1:8080",
							      .every_ms = 10000,
							      .metrics_ms = 900000,
							      .rules_max = 500000,
							      .prefix_min = { 8, 16 } };
	error = check_file(file, reading.path, reason);
	if (!error)
		error = take_lines(&reading, file, reason);
	if (!error)
		check_whole(&reading);
	if (!error && reading.is_out_of_memory)
		error = reason_set(reason, -ENOMEM, "no memory for the configuration");
	else if (!error && reading.is_refused)
		error = reason_set(reason, -EINVAL, "%s has mistakes; nothing was changed", reading.path);
	fclose(file);
	if (error)
		config_close(reading.config);
	else
		*config = reading.config;
	return error;
}

void config_close(struct config *config)
{
	if (!config)
		return;
	for (size_t i = 0; i < config->texts_count; i++)
		free(config->texts[i]);
	free(config);
}

int config_check_list_file(const struct config_list *list, struct reason *reason)
{
	struct stat status;

	if (!list->file || stat(list->file, &status) || !S_ISFIFO(status.st_mode))
		return 0;
	return reason_set(reason, -EINVAL, "'%s' is a FIFO; write the list into a file", list->file);
}
