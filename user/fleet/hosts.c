// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "fleet/hosts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/safe_text.h"
#include "fleet/functions.h"

#define KEYS_AT_ONCE "10000"
#define STATE_LENGTH_MAX 20

/* A name that no view could show is not that of a host. */
static int add_host(struct fleet_view *view, const char *name)
{
	char shown[FLEET_HOST_BYTES];
	struct fleet_host *grown;

	snprintf(shown, sizeof(shown), "%s", name);
	text_make_utf8(shown);
	if (strcmp(shown, name))
		return 0;
	grown = realloc(view->hosts, (view->hosts_count + 1) * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	view->hosts = grown;
	grown[view->hosts_count] = (struct fleet_host){};
	strcpy(grown[view->hosts_count++].name, shown);
	return 0;
}

static int add_list(struct fleet_view *view, const char *name, size_t length)
{
	struct fleet_list *grown = realloc(view->lists, (view->lists_count + 1) * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	view->lists = grown;
	grown[view->lists_count] = (struct fleet_list){};
	snprintf(grown[view->lists_count++].name, ABI_NAME_BYTES, "%.*s", (int)length, name);
	return 0;
}

/* Notes the key if it is the status of a host, or the meta of a list. */
static int take_key(struct fleet_view *view, const char *fleet, const char *key)
{
	char hosts[FLEET_KEY_BYTES], lists[FLEET_KEY_BYTES];
	const size_t length = strlen(key);

	fleet_key(hosts, fleet, "host:");
	fleet_key(lists, fleet, "L:");
	if (!strncmp(key, hosts, strlen(hosts)))
		return add_host(view, key + strlen(hosts));
	if (strncmp(key, lists, strlen(lists)) || length < strlen(lists) + 5 || strcmp(key + length - 5, ":meta"))
		return 0;
	return add_list(view, key + strlen(lists), length - strlen(lists) - 5);
}

static int find_keys(struct fleet_view *view, struct broker *broker, const char *fleet, struct reason *reason)
{
	char pattern[FLEET_KEY_BYTES], cursor[32] = "0";
	redisReply *reply, *keys;
	int error = 0;

	fleet_key(pattern, fleet, "[hL]*[^0-9]*");
	do {
		error = connection_ask(&broker->connection, &reply, reason, "SCAN", cursor, "MATCH", pattern, "COUNT",
				       KEYS_AT_ONCE, NULL);
		if (error)
			return error;
		if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
		    reply->element[0]->type != REDIS_REPLY_STRING)
			error = reason_set(reason, -EPROTO, "the broker's answer to SCAN is not that of Redis");
		if (!error)
			snprintf(cursor, sizeof(cursor), "%s", reply->element[0]->str);
		keys = error ? NULL : reply->element[1];
		for (size_t i = 0; keys && i < keys->elements && !error; i++)
			if (keys->element[i]->type == REDIS_REPLY_STRING &&
			    take_key(view, fleet, keys->element[i]->str))
				error = reason_set(reason, -ENOMEM, "not enough memory");
		codec_free(reply);
	} while (!error && strcmp(cursor, "0"));
	return error;
}

static int compare_hosts(const void *a, const void *b)
{
	return strcmp(((const struct fleet_host *)a)->name, ((const struct fleet_host *)b)->name);
}

static int compare_lists(const void *a, const void *b)
{
	return strcmp(((const struct fleet_list *)a)->name, ((const struct fleet_list *)b)->name);
}

/* SCAN may name a key twice. */
static void drop_repeated(struct fleet_view *view)
{
	size_t kept = 0;

	if (view->hosts_count)
		qsort(view->hosts, view->hosts_count, sizeof(*view->hosts), compare_hosts);
	if (view->lists_count)
		qsort(view->lists, view->lists_count, sizeof(*view->lists), compare_lists);
	for (size_t i = 0; i < view->hosts_count; i++)
		if (!kept || compare_hosts(&view->hosts[kept - 1], &view->hosts[i]))
			view->hosts[kept++] = view->hosts[i];
	view->hosts_count = kept;
	kept = 0;
	for (size_t i = 0; i < view->lists_count; i++)
		if (!kept || compare_lists(&view->lists[kept - 1], &view->lists[i]))
			view->lists[kept++] = view->lists[i];
	view->lists_count = kept;
}

int fleet_reports_open(struct broker *own, struct broker **reports, struct broker *broker,
		       const struct fleet_options *options, struct reason *reason)
{
	const struct fleet_options there = fleet_options_of_reports(options);

	own->connection.fd = -1;
	*reports = options->report ? own : broker;
	return options->report ? broker_open(own, &there, NULL, BROKER_READ, CONNECTION_TIMEOUT_MS, reason) : 0;
}

static int put_host(struct broker *reports, const char *fleet, const char *host)
{
	char what[FLEET_HOST_BYTES + 8], key[FLEET_KEY_BYTES];

	snprintf(what, sizeof(what), "host:%s", host);
	return connection_put(&reports->connection, "HGETALL", fleet_key(key, fleet, what), NULL);
}

/* 0, also if nobody can read the report; 1: the same, and the connection is a new one, without other replies. */
static int get_host(struct fleet_host *host, struct broker *reports, struct reason *reason)
{
	int error = connection_expect(&reports->connection, &host->fields, CONNECTION_TIMEOUT_MS, reason);

	if (error == -EREMOTEIO)
		return 0;
	if (error != -EMSGSIZE)
		return error;
	error = broker_reopen(reports, reason);
	return error ? error : 1;
}

int fleet_host_read(struct fleet_host *host, struct broker *reports, const char *fleet, struct reason *reason)
{
	int error;

	if (put_host(reports, fleet, host->name))
		return reason_set(reason, -ENOMEM, "not enough memory");
	error = get_host(host, reports, reason);
	return error > 0 ? 0 : error;
}

static int read_hosts(struct fleet_view *view, struct broker *reports, const char *fleet, struct reason *reason)
{
	size_t asked = 0;
	int error = 0;

	for (size_t i = 0; i < view->hosts_count && error >= 0; i++) {
		for (; asked < view->hosts_count; asked++)
			if (put_host(reports, fleet, view->hosts[asked].name))
				return reason_set(reason, -ENOMEM, "not enough memory");
		error = get_host(&view->hosts[i], reports, reason);
		if (error > 0)
			asked = i + 1;
	}
	return error < 0 ? error : 0;
}

static int read_view(struct fleet_view *view, struct broker *broker, struct broker *reports, const char *fleet,
		     struct reason *reason)
{
	int error = find_keys(view, broker, fleet, reason);

	if (!error && reports != broker) {
		view->hosts_count = 0;
		error = find_keys(view, reports, fleet, reason);
	}
	drop_repeated(view);
	if (!error)
		error = read_hosts(view, reports, fleet, reason);
	for (size_t i = 0; i < view->lists_count && !error; i++) {
		error = list_head_read(broker, fleet, view->lists[i].name, &view->lists[i].head, reason);
		if (error == -EREMOTEIO || error == -EBADMSG) {
			view->lists[i].broken = *reason;
			view->lists[i].head = (struct list_head){};
			error = 0;
		}
		if (!error)
			error = functions_is_leaving(broker, fleet, view->lists[i].name, &view->lists[i].is_leaving,
						     reason);
		error = error == -EREMOTEIO ? 0 : error;
	}
	for (size_t i = 0; i < view->lists_count && !error; i++)
		for (size_t j = 0; j < view->hosts_count; j++) {
			struct fleet_position at;

			view->lists[i].hosts += fleet_host_at(&view->hosts[j], view->lists[i].name, &at);
		}
	return error;
}

int fleet_view_open(struct fleet_view *view, struct broker *broker, const struct fleet_options *options,
		    const char *fleet, struct reason *reason)
{
	struct broker own, *reports;
	int error = fleet_reports_open(&own, &reports, broker, options, reason);

	*view = (struct fleet_view){};
	if (!error)
		error = read_view(view, broker, reports, fleet, reason);
	broker_close(&own);
	return error;
}

void fleet_view_close(struct fleet_view *view)
{
	for (size_t i = 0; i < view->hosts_count; i++)
		codec_free(view->hosts[i].fields);
	free(view->hosts);
	free(view->lists);
	*view = (struct fleet_view){};
}

const char *fleet_host_field(const struct fleet_host *host, const char *name)
{
	const redisReply *fields = host->fields;

	for (size_t i = 0; fields && fields->type == REDIS_REPLY_ARRAY && i + 1 < fields->elements; i += 2)
		if (fields->element[i]->type == REDIS_REPLY_STRING &&
		    fields->element[i + 1]->type == REDIS_REPLY_STRING && !strcmp(fields->element[i]->str, name))
			return fields->element[i + 1]->str;
	return "";
}

__s64 fleet_host_number(const struct fleet_host *host, const char *name)
{
	const __s64 number = atoll(fleet_host_field(host, name)), most = 1LL << 53;

	return number > most ? most : number < -most ? -most : number;
}

bool fleet_host_at(const struct fleet_host *host, const char *list, struct fleet_position *at)
{
	const char *lists = fleet_host_field(host, "lists"), *found = strstr(lists, list);
	char name[ABI_NAME_BYTES + 8];

	/* The field of a list that is not followed any more stays. */
	while (found && ((found > lists && found[-1] != ' ') || !strchr(" ", found[strlen(list)])))
		found = strstr(found + 1, list);
	if (*lists && !found)
		return false;
	snprintf(name, sizeof(name), "at:%s", list);
	return !fleet_position_parse(fleet_host_field(host, name), at);
}

bool fleet_host_is_behind(const struct fleet_view *view, const struct fleet_host *host)
{
	struct fleet_position at;

	for (size_t i = 0; i < view->lists_count; i++)
		if (fleet_host_at(host, view->lists[i].name, &at) &&
		    fleet_position_compare(at, view->lists[i].head.last) < 0)
			return true;
	return false;
}

const char *fleet_host_state(const struct fleet_view *view, const struct fleet_host *host, __s64 now_ms)
{
	const char *state = fleet_host_field(host, "state");
	const size_t length = strspn(state, "abcdefghijklmnopqrstuvwxyz-");

	if (!host->fields)
		return "unreadable";
	if (now_ms - fleet_host_number(host, "seen") > HOSTS_SILENT_MS)
		return "silent";
	if (!length || state[length] || length > STATE_LENGTH_MAX)
		return "unknown";
	if (strcmp(state, "level"))
		return state;
	return view && fleet_host_is_behind(view, host) ? "behind" : state;
}
