// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "fleet/snapshot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS_AT_ONCE 64
#define ENTRIES_AT_ONCE 64
#define BUCKETS_MAX (1 << 22) /* as in fleet.lua */

/* ---- the end of a list ---- */

/* A field that is missing is 0. Numbers over 2^53 are not exact in fleet.lua. */
static bool read_number(const redisReply *reply, __u64 *number)
{
	const char *text = codec_text(reply);

	*number = text ? strtoull(text, NULL, 10) : 0;
	return reply->type == REDIS_REPLY_NIL ||
	       (text && reply->len && reply->len <= 16 && strspn(text, "0123456789") == reply->len);
}

void list_head_put(struct broker *broker, const char *fleet, const char *list)
{
	connection_put(&broker->connection, "HMGET xc:%s:L:%s:meta epoch seq rules buckets", fleet,
		       list);
}

int list_head_of(const redisReply *reply, struct list_head *head, struct reason *reason)
{
	*head = (struct list_head){};
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 4)
		return reason_set(reason, -EBADMSG, "the broker's meta of the list is not what a fleet has");
	if (!read_number(reply->element[0], &head->last.epoch) || !read_number(reply->element[1], &head->last.seq) ||
	    !read_number(reply->element[2], &head->rules) || !read_number(reply->element[3], &head->buckets) ||
	    head->buckets > BUCKETS_MAX || head->last.epoch > FLEET_EPOCH_MAX)
		return reason_set(reason, -EBADMSG, "the broker's meta of the list has numbers that no list has");
	return 0;
}

int list_head_read(struct broker *broker, const char *fleet, const char *list, struct list_head *head,
		   struct reason *reason)
{
	CODEC_FREED redisReply *reply = NULL;
	int error;

	list_head_put(broker, fleet, list);
	error = connection_expect(&broker->connection, &reply, reason);
	return error ? error : list_head_of(reply, head, reason);
}

/* ---- entries ---- */

int log_entry_of(const redisReply *reply, struct log_entry *entry)
{
	const char *id = codec_text_of(reply, 0);
	const redisReply *fields;

	*entry = (struct log_entry){};
	if (!id || reply->elements != 2 || fleet_position_parse(id, &entry->at) ||
	    entry->at.epoch > FLEET_EPOCH_MAX)
		return -EPROTO;
	fields = reply->element[1];
	if (fields->type != REDIS_REPLY_ARRAY)
		return -EPROTO;
	for (size_t i = 0; i + 1 < fields->elements; i += 2) {
		const char *name = codec_text_of(fields, i), *value = codec_text_of(fields, i + 1);

		if (!name || !value)
			return -EPROTO;
		if (!strcmp(name, "base")) {
			entry->has_base = true;
			if (fleet_position_parse(value, &entry->base))
				return -EPROTO;
		} else if (!strcmp(name, "report")) {
			entry->is_awaited = true;
		} else if (!strcmp(name, "rules")) {
			entry->rules = value;
			entry->rules_bytes = fields->element[i + 1]->len;
		}
	}
	return 0;
}

/* Calls `take` for each line of an entry, which it cuts in place. */
static int take_entry(struct log_entry *entry, snapshot_take *take, void *context)
{
	char *line = (char *)entry->rules, *end = line + entry->rules_bytes;
	char unread[64];
	int error = 0;

	while (line && line < end && !error) {
		char *next = memchr(line, '\n', end - line);
		char *stop = next ? next : end;

		*stop = '\0';
		if (stop - line < LOG_LINE_BYTES)
			error = take(line, stop - line, context);
		else
			error = take(unread, snprintf(unread, sizeof(unread), "? a line of %td bytes", stop - line),
				     context);
		line = stop + 1;
	}
	return error;
}

/* ---- buckets ---- */

/* Whether a text can be in a line. */
static bool is_plain(const redisReply *text)
{
	for (size_t i = 0; i < text->len; i++)
		if ((unsigned char)text->str[i] < ' ')
			return false;
	return true;
}

/* A field and its value, `END [RATE] [COMMENT]`, as a line; one that cannot be a rule as a line that nobody can read. */
static int take_field(const redisReply *name, const redisReply *value, snapshot_take *take, void *context)
{
	char line[LOG_LINE_BYTES];
	size_t digits;
	int length;

	if (!codec_text(name) || !codec_text(value))
		return -EBADMSG;
	digits = strspn(value->str, "0123456789");
	if (name->len + value->len + 3 < sizeof(line) && is_plain(name) && is_plain(value))
		length = snprintf(line, sizeof(line), "+ %.*s %s%s", (int)digits, value->str, name->str,
				  value->str + digits);
	else
		length = snprintf(line, sizeof(line), "? a rule of %zu bytes", name->len + value->len);
	return take(line, length, context);
}

static int read_buckets(struct broker *broker, const char *fleet, const char *list, __u64 first, __u64 end,
			snapshot_take *take, void *context, struct reason *reason)
{
	int error = 0;

	for (__u64 bucket = first; bucket < end; bucket++)
		connection_put(&broker->connection, "HGETALL xc:%s:L:%s:b:%llu", fleet, list,
			       (unsigned long long)bucket);
	/* All replies must be read, also after an error. */
	for (__u64 bucket = first; bucket < end; bucket++) {
		CODEC_FREED redisReply *reply = NULL;
		struct reason why;
		int failed = connection_expect(&broker->connection, &reply, &why);

		if (failed && failed != -EREMOTEIO) {
			*reason = why;
			return failed;
		}
		if (!failed && (reply->type != REDIS_REPLY_ARRAY || reply->elements % 2))
			failed = reason_set(&why, -EBADMSG, "the broker at %s: a bucket is not what a fleet has",
					    broker->connection.where);
		for (size_t i = 0; !failed && !error && i < reply->elements; i += 2) {
			failed = take_field(reply->element[i], reply->element[i + 1], take, context);
			if (failed)
				reason_set(&why, 0, "list '%s': a bucket is not what a fleet has, or: %s", list,
					   strerror(-failed));
		}
		if (failed && !error) {
			error = failed;
			*reason = why;
		}
	}
	return error;
}

/* Reads the log from *at on, up to `last`. -ESTALE: it does not lead there. */
static int read_log(struct broker *broker, const char *fleet, const char *list,
		    struct fleet_position last, snapshot_take *take, void *context,
		    struct fleet_position *at, struct reason *reason)
{
	char from[FLEET_POSITION_BYTES], to[FLEET_POSITION_BYTES];
	int error = 0;

	fleet_position_format(last, to);
	while (!error && fleet_position_compare(*at, last) < 0) {
		CODEC_FREED redisReply *reply = NULL;
		struct log_entry entry;

		error = connection_ask(&broker->connection, &reply, reason,
				       "XRANGE xc:%s:L:%s:log (%s %s COUNT %d", fleet, list,
				       fleet_position_format(*at, from), to, ENTRIES_AT_ONCE);
		if (error)
			return error;
		if (reply->type != REDIS_REPLY_ARRAY || !reply->elements)
			error = -ESTALE;
		for (size_t i = 0; !error && i < reply->elements; i++) {
			if (log_entry_of(reply->element[i], &entry) ||
			    log_step(*at, entry.at, entry.has_base ? &entry.base : NULL) !=
				    LOG_NEXT)
				error = -ESTALE;
			if (!error)
				error = take_entry(&entry, take, context);
			*at = error ? *at : entry.at;
		}
	}
	return error ? reason_set(reason, error, "list '%s': the log cannot be read: %s", list,
				  strerror(-error)) :
		       0;
}

int snapshot_read(struct broker *broker, const char *fleet, const char *list, snapshot_take *take,
		  snapshot_between *between, void *context, struct fleet_position *at, struct reason *reason)
{
	struct list_head head, now;
	__u64 bucket = 0;
	int error = list_head_read(broker, fleet, list, &head, reason);

	now = head;
	/* If the list grows meanwhile, new buckets take rules from old ones. So the new ones must be read, too. */
	while (!error && bucket < now.buckets) {
		const __u64 left = now.buckets - bucket,
			    end = bucket + (left < BUCKETS_AT_ONCE ? left : BUCKETS_AT_ONCE);

		error = read_buckets(broker, fleet, list, bucket, end, take, context, reason);
		bucket = end;
		if (!error && between)
			error = between(context, reason);
		if (!error && bucket == now.buckets)
			error = list_head_read(broker, fleet, list, &now, reason);
	}
	if (error)
		return error;
	*at = head.last;
	if (fleet_position_compare(now.last, head.last) < 0)
		return reason_set(reason, -ESTALE, "list '%s': the broker went back meanwhile", list);
	return read_log(broker, fleet, list, now.last, take, context, at, reason);
}
