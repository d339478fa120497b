// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reads the logs of all lists, and ctl, by one XREAD, and sends each entry that goes on where the host is. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fleet/log_entry.h"
#include "fleet/log_reader_internal.h"
#include "fleet/snapshot.h"

#define BLOCK_MS 5000 /* less than CONNECTION_TIMEOUT_MS */
#define BLOCK_ONCE_MS 50
#define ENTRIES_AT_ONCE 64 /* of all lists together, and two of each: panic never waits behind more */
#define READS_IN_MS 10     /* of all hosts together, as long as there is much to read */

static int take_panic(struct log_reader *reader, const redisReply *entries, struct reason *reason)
{
	int error = 0;

	for (size_t i = 0; i < entries->elements && !error; i++) {
		const redisReply *entry = entries->element[i], *fields;

		if (entry->type != REDIS_REPLY_ARRAY || entry->elements != 2 ||
		    entry->element[0]->type != REDIS_REPLY_STRING || entry->element[1]->type != REDIS_REPLY_ARRAY)
			return reason_set(reason, -EPROTO, "an entry of ctl is not that of a fleet");
		snprintf(reader->ctl_last, sizeof(reader->ctl_last), "%s", entry->element[0]->str);
		fields = entry->element[1];
		if (fields->elements == 2 && fields->element[0]->type == REDIS_REPLY_STRING &&
		    fields->element[1]->type == REDIS_REPLY_STRING && !strcmp(fields->element[0]->str, "panic"))
			error = log_tell(reader, FOLLOW_PANIC, !strcmp(fields->element[1]->str, "on"), "");
	}
	return error;
}

static int take_entries(struct log_reader *reader, size_t i, const redisReply *entries, struct reason *reason)
{
	struct list *list = &reader->lists[i];
	struct log_entry entry;
	int error = 0;

	if (entries->elements * 2 < ENTRIES_AT_ONCE)
		reader->next_read_ms = fleet_now_ms() + reader->report.hosts / READS_IN_MS;

	for (size_t j = 0; j < entries->elements && !error; j++) {
		enum log_step step;

		error = log_entry_of(entries->element[j], &entry);
		if (!error && entry.rules_bytes > FOLLOW_BYTES_MAX)
			error = -EPROTO;
		if (error)
			return reason_set(reason, error, "an entry of the list '%s' is not that of a fleet",
					  list->name);
		step = log_step(list->at, entry.at, entry.has_base ? &entry.base : NULL);
		if (step != LOG_NEXT) {
			log_plan_resync(reader, list,
					step == LOG_GAP                   ? FOLLOW_GAP :
					entry.base.epoch < list->at.epoch ? FOLLOW_OLDER :
									    FOLLOW_DIVERGED);
			return log_tell_state(reader, i, entry.at);
		}
		list->at = entry.at;
		reader->is_awaited |= entry.is_awaited;
		error = log_tell_list(reader, FOLLOW_ENTRY, i, 0, entry.rules ? entry.rules : "", entry.rules_bytes);
	}
	return error;
}

/* The list whose log has this key; reader->count: none. */
static size_t find_list(const struct log_reader *reader, const char *key)
{
	char log[FLEET_KEY_BYTES];
	size_t i = 0;

	while (i < reader->count &&
	       strcmp(key, fleet_list_key(log, reader->start->fleet, reader->lists[i].name, "log")))
		i++;
	return i;
}

static int take_streams(struct log_reader *reader, const redisReply *reply, struct reason *reason)
{
	int error = 0;

	if (reply->type == REDIS_REPLY_NIL)
		return 0;
	if (reply->type != REDIS_REPLY_ARRAY)
		return reason_set(reason, -EPROTO, "the broker's answer to XREAD is not that of Redis");
	for (size_t i = 0; i < reply->elements && !error; i++) {
		const redisReply *stream = reply->element[i];
		size_t list;

		if (stream->type != REDIS_REPLY_ARRAY || stream->elements != 2 ||
		    stream->element[0]->type != REDIS_REPLY_STRING || stream->element[1]->type != REDIS_REPLY_ARRAY)
			return reason_set(reason, -EPROTO, "the broker's answer to XREAD is not that of Redis");
		list = find_list(reader, stream->element[0]->str);
		error = list == reader->count ? take_panic(reader, stream->element[1], reason) :
						take_entries(reader, list, stream->element[1], reason);
	}
	return error;
}

/* How long XREAD may wait, since something else is due then. */
static __s64 block_ms(const struct log_reader *reader)
{
	const __s64 now_ms = fleet_now_ms();
	__s64 left_ms = reader->start->is_once ? BLOCK_ONCE_MS : BLOCK_MS;

	for (size_t i = 0; i < reader->count; i++)
		if (reader->lists[i].wait_until_ms > now_ms && reader->lists[i].wait_until_ms - now_ms < left_ms)
			left_ms = reader->lists[i].wait_until_ms - now_ms;
	if (reader->next_read_ms > now_ms && reader->next_read_ms - now_ms < left_ms)
		left_ms = reader->next_read_ms - now_ms;
	if (reader->report.due_ms && reader->report.due_ms - now_ms < left_ms)
		left_ms = reader->report.due_ms > now_ms ? reader->report.due_ms - now_ms : 1;
	return left_ms;
}

int log_read_streams(struct log_reader *reader, struct reason *reason)
{
	char keys[1 + FOLLOW_LISTS_MAX][FLEET_KEY_BYTES], ids[1 + FOLLOW_LISTS_MAX][FLEET_POSITION_BYTES];
	const char *words[8 + 2 * FOLLOW_LISTS_MAX], *fleet = reader->start->fleet;
	size_t count = 1;
	int words_count = 0;
	char block[24], most[16];
	redisReply *reply;
	int error;

	snprintf(block, sizeof(block), "%lld", (long long)block_ms(reader));
	fleet_key(keys[0], fleet, "ctl");
	snprintf(ids[0], sizeof(ids[0]), "%s", reader->ctl_last);
	for (size_t i = 0; i < reader->count; i++) {
		struct list *list = &reader->lists[i];

		if (fleet_now_ms() < reader->next_read_ms || reader->stopped_ms || list->must_resync ||
		    list->state == FOLLOW_WIPED || list->wait_until_ms > fleet_now_ms())
			continue;
		fleet_list_key(keys[count], fleet, list->name, "log");
		fleet_position_format(list->at, ids[count++]);
		list->was_read = true;
	}
	snprintf(most, sizeof(most), "%zu", ENTRIES_AT_ONCE / count > 2 ? ENTRIES_AT_ONCE / count : 2);
	words[words_count++] = "XREAD";
	words[words_count++] = "COUNT";
	words[words_count++] = most;
	words[words_count++] = "BLOCK";
	words[words_count++] = block;
	words[words_count++] = "STREAMS";
	for (size_t i = 0; i < count; i++)
		words[words_count++] = keys[i];
	for (size_t i = 0; i < count; i++)
		words[words_count++] = ids[i];
	if (connection_put_words(&reader->broker.connection, words_count, words, NULL))
		return reason_set(reason, -ENOMEM, "not enough memory");
	error = connection_expect(&reader->broker.connection, &reply, CONNECTION_TIMEOUT_MS, reason);
	if (error)
		return error;
	error = take_streams(reader, reply, reason);
	codec_free(reply);
	return error;
}
