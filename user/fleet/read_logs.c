// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reads the logs of all lists, and ctl, by one XREAD, and sends each entry that continues what the host has. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "fleet/log_reader_internal.h"
#include "fleet/snapshot.h"

#define BLOCK_MS 5000 /* less than CONNECTION_TIMEOUT_MS */
#define BLOCK_ONCE_MS 50
#define ENTRIES_AT_ONCE 64 /* of all lists together, but at least two of each. Panic never waits behind more */
#define SETTLE_MS 1000
#define SETTLE_MAX_MS 10000
#define PENDING_MAX 1000000
#define READS_IN_MS 10 /* all hosts together read so often in a ms; one that has much to catch up on reads at once */

static enum log_end take_panic(struct log_reader *reader, const redisReply *entries, struct reason *reason)
{
	enum log_end end = LOG_GOES_ON;

	for (size_t i = 0; i < entries->elements && !end; i++) {
		const redisReply *entry = entries->element[i];
		const char *id = codec_text_of(entry, 0), *name, *value;

		if (!id || entry->elements != 2 || entry->element[1]->type != REDIS_REPLY_ARRAY)
			return reason_set(reason, LOG_LOST, "an entry of ctl is not that of a fleet");
		snprintf(reader->ctl_last, sizeof(reader->ctl_last), "%s", id);
		name = codec_text_of(entry->element[1], 0);
		value = codec_text_of(entry->element[1], 1);
		reader->has_accept |= name && !strcmp(name, "accept");
		if (name && value && !strcmp(name, "panic"))
			end = log_tell(reader,
				       (struct follow_message){ .kind = FOLLOW_PANIC, .number = !strcmp(value, "on") },
				       "");
	}
	return end;
}

/*
 * A publisher sends a large change as many entries. If hosts may refuse what it deletes, they refuse all of it or nothing:
 * so the entries become one change, once no more have come for a while.
 */
static void note_lines(struct log_reader *reader, const struct log_entry *entry)
{
	const __u64 most = reader->start->options->rules_max;
	const char *end = entry->rules + entry->rules_bytes;
	const __s64 now_ms = fleet_now_ms();

	if (!reader->pending)
		reader->first_ms = now_ms;
	for (const char *line = entry->rules; line && line < end; line = memchr(line, '\n', end - line)) {
		line += *line == '\n';
		reader->pending++;
		reader->deleted += line < end && *line == '-';
	}
	reader->settled_ms = reader->deleted <= FOLLOW_SHRINK_MIN || reader->pending >= (most ? most : PENDING_MAX) ?
				     0 :
			     now_ms + SETTLE_MS < reader->first_ms + SETTLE_MAX_MS ? now_ms + SETTLE_MS :
										     reader->first_ms + SETTLE_MAX_MS;
}

static enum log_end take_entries(struct log_reader *reader, size_t i, const redisReply *entries)
{
	struct list *list = &reader->lists[i];
	char text[128] = "", id[FLEET_POSITION_BYTES];
	struct log_entry entry;
	enum log_end end = LOG_GOES_ON;

	if (entries->elements * 2 < ENTRIES_AT_ONCE)
		reader->next_read_ms = fleet_now_ms() + reader->report.hosts / READS_IN_MS;
	for (size_t j = 0; j < entries->elements && !end; j++) {
		const bool is_strange = log_entry_of(entries->element[j], &entry) ||
					entry.rules_bytes > FOLLOW_BYTES_MAX;
		const enum log_step step = log_step(list->at, entry.at, entry.has_base ? &entry.base : NULL);

		/* The entry does not continue the list, so the list must be read as a whole. */
		if (is_strange || step != LOG_NEXT) {
			if (is_strange)
				snprintf(text, sizeof(text),
					 "gap: entry %s of its log is not that of a fleet; reads the whole list",
					 fleet_position_format(entry.at, id));
			list->skip = entry.at;
			log_list_plan(reader, list,
				      is_strange || step == LOG_GAP     ? FOLLOW_GAP :
				      entry.base.epoch < list->at.epoch ? FOLLOW_OLDER :
									  FOLLOW_DIVERGED);
			return log_tell_state(reader, i, is_strange ? list->head.last : entry.at, text);
		}
		list->at = entry.at;
		reader->is_awaited |= entry.is_awaited;
		note_lines(reader, &entry);
		end = log_tell(reader,
			       (struct follow_message){ FOLLOW_ENTRY, .list = i, .at = list->at,
							.bytes = entry.rules_bytes },
			       entry.rules ? entry.rules : "");
	}
	return end;
}

static enum log_end take_streams(struct log_reader *reader, const redisReply *reply, struct reason *reason)
{
	enum log_end end = LOG_GOES_ON;

	if (reply->type == REDIS_REPLY_NIL)
		return LOG_GOES_ON;
	if (reply->type != REDIS_REPLY_ARRAY)
		return reason_set(reason, LOG_LOST, "the broker's answer to XREAD is not that of Redis");
	for (size_t i = 0; i < reply->elements && !end; i++) {
		const redisReply *stream = reply->element[i];
		const char *key = codec_text_of(stream, 0);
		char log[FLEET_KEY_BYTES];
		size_t list; /* reader->count: ctl */

		if (!key || stream->elements != 2 || stream->element[1]->type != REDIS_REPLY_ARRAY)
			return reason_set(reason, LOG_LOST, "the broker's answer to XREAD is not that of Redis");
		for (list = 0; list < reader->count; list++)
			if (!strcmp(key, fleet_list_key(log, reader->start->fleet, reader->lists[list].name, "log")))
				break;
		end = list == reader->count ? take_panic(reader, stream->element[1], reason) :
					      take_entries(reader, list, stream->element[1]);
	}
	return end;
}

static bool is_read(const struct log_reader *reader, const struct list *list)
{
	return !list->plan && list->state != FOLLOW_WIPED && log_list_is_readable(reader, list);
}

/* How long to wait for entries: until something else is due. */
static __s64 block_ms(const struct log_reader *reader)
{
	const __s64 now_ms = fleet_now_ms();
	__s64 until_ms = now_ms + (reader->start->is_once ? BLOCK_ONCE_MS : BLOCK_MS);

	for (size_t i = 0; i < reader->count; i++)
		if (reader->lists[i].due_ms > now_ms && reader->lists[i].due_ms < until_ms)
			until_ms = reader->lists[i].due_ms;
	if (reader->settled_ms > now_ms && reader->settled_ms < until_ms)
		until_ms = reader->settled_ms;
	if (reader->report.due_ms && reader->report.due_ms < until_ms)
		until_ms = reader->report.due_ms > now_ms ? reader->report.due_ms : now_ms + 1;
	return until_ms - now_ms;
}

/*
 * Reads the logs of these lists, by their numbers, with ctl or without it. *error: 0; -EREMOTEIO, -EMSGSIZE: a log cannot
 * be read, and after -EMSGSIZE the connection is lost; other -errno.
 */
static enum log_end read_logs(struct log_reader *reader, const size_t *lists, size_t count, bool with_ctl,
			      bool may_wait, int *error, struct reason *reason)
{
	char keys[1 + FOLLOW_LISTS_MAX][FLEET_KEY_BYTES], ids[1 + FOLLOW_LISTS_MAX][FLEET_POSITION_BYTES];
	const char *words[6 + 2 * (1 + FOLLOW_LISTS_MAX)] = { "XREAD", "COUNT" },
				       *fleet = reader->start->fleet;
	CODEC_FREED redisReply *reply = NULL;
	size_t streams = 0, used = 2;
	char block[24], most[16];

	for (size_t i = 0; i < count; i++) {
		const struct list *list = &reader->lists[lists[i]];

		fleet_list_key(keys[streams], fleet, list->name, "log");
		fleet_position_format(fleet_position_compare(list->skip, list->at) > 0 ? list->skip : list->at,
				      ids[streams++]);
	}
	if (with_ctl) {
		snprintf(keys[streams], sizeof(keys[0]), "xc:%s:ctl", fleet);
		snprintf(ids[streams++], sizeof(ids[0]), "%s", reader->ctl_last);
	}
	snprintf(most, sizeof(most), "%zu", ENTRIES_AT_ONCE / streams > 2 ? ENTRIES_AT_ONCE / streams : 2);
	words[used++] = most;
	if (may_wait) {
		snprintf(block, sizeof(block), "%lld", (long long)block_ms(reader));
		words[used++] = "BLOCK";
		words[used++] = block;
	}
	words[used++] = "STREAMS";
	for (size_t i = 0; i < streams; i++, used++) {
		words[used] = keys[i];
		words[used + streams] = ids[i];
	}
	connection_put_words(&reader->broker.connection, used + streams, words, NULL);
	*error = connection_expect(&reader->broker.connection, &reply, reason);
	if (*error)
		return *error == -EREMOTEIO ? LOG_GOES_ON : LOG_LOST;
	for (size_t i = 0; i < count; i++)
		reader->lists[lists[i]].is_broken = reader->lists[lists[i]].is_suspect = false;
	return take_streams(reader, reply, reason);
}

/*
 * One log that cannot be read makes the reading of all fail, and the reply does not say which log it was. So after a
 * failure each of them is read alone, and those that cannot be read pause.
 */
enum log_end log_read_streams(struct log_reader *reader, bool may_wait, struct reason *reason)
{
	size_t lists[FOLLOW_LISTS_MAX], count = 0;
	enum log_end end;
	int error;

	/* Panic waits as well: to read only ctl meanwhile would keep the broker as busy as the logs do. */
	if (may_wait && reader->next_read_ms > fleet_now_ms())
		clock_pause(reader->next_read_ms - fleet_now_ms());
	for (size_t i = 0; i < reader->count; i++) {
		if (!is_read(reader, &reader->lists[i]) || !reader->lists[i].is_suspect)
			continue;
		end = read_logs(reader, &i, 1, false, false, &error, reason);
		if (error == -EREMOTEIO || error == -EMSGSIZE)
			if (log_fail(reader, i, reason->text))
				return LOG_NO_APPLIER;
		if (end)
			return end;
	}
	for (size_t i = 0; i < reader->count; i++)
		if (is_read(reader, &reader->lists[i]))
			lists[count++] = i;
	end = read_logs(reader, lists, count, true, may_wait, &error, reason);
	if (error != -EREMOTEIO && error != -EMSGSIZE) {
		reader->is_ctl_suspect &= error != 0;
		return end;
	}
	/* Each log could be read alone, so it is ctl that cannot be read. */
	if (reader->is_ctl_suspect)
		return LOG_LOST;
	reader->is_ctl_suspect = true;
	for (size_t i = 0; i < count; i++)
		reader->lists[lists[i]].is_suspect = true;
	return end;
}
