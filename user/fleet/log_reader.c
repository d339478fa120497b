// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "fleet/log_reader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fleet/log_entry.h"
#include "fleet/snapshot.h"

#define BLOCK_MS 5000 /* less than CONNECTION_TIMEOUT_MS */
#define BLOCK_ONCE_MS 50
#define ENTRIES_AT_ONCE "64" /* of each list; panic never waits behind more */
#define CHECK_MS 5000        /* between two looks at the ends of the logs */
#define CLOCK_MS 60000
#define RETRY_MIN_MS 100
#define RETRY_MAX_MS 5000
#define STOPPED_MS 5000   /* after FOLLOW_STOP */
#define OUTBOX_MS 5000    /* a publisher has this time to send again what a failover has lost */
#define PAUSE_MS 10000    /* after the applier could not apply a list */
#define LINES_BYTES 60000 /* of a message with lines of a state */

struct list {
	const char *name;
	struct fleet_position at;        /* sent to the applier */
	struct fleet_position committed; /* applied */
	struct fleet_position seen;      /* `at` when the log was last seen to have more */
	bool was_read;                   /* the log was read since then */
	enum follow_state state;
	bool must_resync;
	bool was_resynced;   /* since the last flush */
	__s64 wait_until_ms; /* the list is not read before */
};

struct log_reader {
	const struct log_reader_start *start;
	int fd;
	struct broker broker;
	struct list lists[FOLLOW_LISTS_MAX];
	size_t count;
	char ctl_last[FLEET_POSITION_BYTES]; /* the last entry read of ctl */
	__s64 checked_ms, clock_ms;
	char text[FOLLOW_BYTES_MAX + 1]; /* the last message of the applier */
	char lines[LINES_BYTES + 4096];
	size_t lines_bytes;
	__u32 lines_of;
};

/* ---- messages ---- */

/* An error of the socket to the applier ends the process; -ECANCELED stands for it. */
static int tell_list(struct log_reader *reader, enum follow_kind kind, size_t list, __s64 number, const char *text,
		     size_t bytes)
{
	const struct follow_message message = {
		.kind = kind,
		.list = list,
		.bytes = bytes,
		.at = reader->lists[list].at,
		.number = number,
	};

	return follow_send(reader->fd, &message, text) ? -ECANCELED : 0;
}

static int tell(struct log_reader *reader, enum follow_kind kind, __s64 number, const char *text)
{
	const struct follow_message message = { .kind = kind, .bytes = strlen(text), .number = number };

	return follow_send(reader->fd, &message, text) ? -ECANCELED : 0;
}

static int tell_state(struct log_reader *reader, size_t i, struct fleet_position last)
{
	const struct follow_message message = {
		.kind = FOLLOW_STATE,
		.list = i,
		.at = last,
		.number = reader->lists[i].state,
	};

	return follow_send(reader->fd, &message, "") ? -ECANCELED : 0;
}

/* ---- resync ---- */

/* Plans to read the whole list. If history was lost, a publisher gets time to send it again. */
static void plan_resync(struct log_reader *reader, struct list *list, enum follow_state why)
{
	const __s64 jitter_ms = fleet_random_below(reader->start->options->jitter_ms + 1);

	list->state = why;
	if (list->must_resync)
		return;
	list->must_resync = true;
	if (why == FOLLOW_NEW || reader->start->is_once)
		list->wait_until_ms = 0;
	else
		list->wait_until_ms =
			fleet_now_ms() + jitter_ms + (why == FOLLOW_DIVERGED || why == FOLLOW_RESTORED ? OUTBOX_MS : 0);
}

static int send_lines(struct log_reader *reader)
{
	const size_t bytes = reader->lines_bytes;

	reader->lines_bytes = 0;
	return bytes ? tell_list(reader, FOLLOW_LINES, reader->lines_of, 0, reader->lines, bytes) : 0;
}

static int take_line(char *line, size_t length, void *context)
{
	struct log_reader *reader = context;
	int error = 0;

	if (length + 1 > LINES_BYTES)
		return -EPROTO;
	if (reader->lines_bytes + length + 1 > LINES_BYTES)
		error = send_lines(reader);
	memcpy(reader->lines + reader->lines_bytes, line, length);
	reader->lines_bytes += length;
	reader->lines[reader->lines_bytes++] = '\n';
	return error;
}

static int resync(struct log_reader *reader, size_t i, struct reason *reason)
{
	struct list *list = &reader->lists[i];
	struct fleet_position at;
	int error = tell_list(reader, FOLLOW_SNAPSHOT, i, 0, follow_state_name(list->state),
			      strlen(follow_state_name(list->state)));

	reader->lines_of = i;
	reader->lines_bytes = 0;
	if (!error)
		error = snapshot_read(&reader->broker, reader->start->fleet, list->name, take_line, reader, &at,
				      reason);
	if (!error)
		error = send_lines(reader);
	if (error == -ESTALE) {
		list->wait_until_ms = fleet_now_ms() + RETRY_MIN_MS + fleet_random_below(RETRY_MAX_MS);
		return 0;
	}
	if (error)
		return error;
	list->at = at;
	list->must_resync = false;
	list->was_resynced = true;
	return tell_list(reader, FOLLOW_END, i, 0, "", 0);
}

/* Lists whose time has come. *count: how many were read. */
static int resync_due(struct log_reader *reader, size_t *count, struct reason *reason)
{
	int error = 0;

	*count = 0;
	for (size_t i = 0; i < reader->count && !error; i++) {
		const struct list *list = &reader->lists[i];

		if (!list->must_resync || list->wait_until_ms > fleet_now_ms())
			continue;
		error = resync(reader, i, reason);
		++*count;
	}
	return error;
}

/* ---- looking at the broker's meta ---- */

/* The fleet's id and format are the applier's to judge. Panic: it may have been set while nobody listened. */
static int tell_fleet(struct log_reader *reader, const redisReply *reply, struct reason *reason)
{
	const redisReply *const *field = (const redisReply *const *)reply->element;
	const char *id;
	int error;

	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 3)
		return reason_set(reason, -EPROTO, "the broker's meta is not that of a fleet");
	id = field[0]->type == REDIS_REPLY_STRING ? field[0]->str : "";
	error = tell(reader, FOLLOW_HELLO, field[1]->type == REDIS_REPLY_STRING ? atoi(field[1]->str) : 0, id);
	if (!error && field[2]->type == REDIS_REPLY_STRING)
		error = tell(reader, FOLLOW_PANIC, !strcmp(field[2]->str, "on"), "");
	return error;
}

static void judge_head(struct log_reader *reader, struct list *list, const struct list_head *head)
{
	const enum log_head found = log_head(list->at, head->last, reader->broker.is_master);

	/* Once planned, it is due: unless the publisher has sent again what was lost. */
	if (list->must_resync && !(list->state == FOLLOW_RESTORED && (found == LOG_LEVEL || found == LOG_BEHIND)))
		return;
	list->must_resync = false;
	list->state = (enum follow_state)found;
	if (found == LOG_BEHIND && !list->at.epoch)
		plan_resync(reader, list, FOLLOW_NEW);
	else if (found == LOG_RESTORED)
		plan_resync(reader, list, FOLLOW_RESTORED);
	else if (found == LOG_WIPED && reader->start->is_accepted)
		plan_resync(reader, list, FOLLOW_WIPED);
	else if (found == LOG_BEHIND && list->was_read && list->seen.epoch &&
		 !fleet_position_compare(list->seen, list->at))
		plan_resync(reader, list, FOLLOW_GAP); /* the log said nothing, though there is more */
	list->seen = found == LOG_BEHIND ? list->at : (struct fleet_position){};
	list->was_read = false;
}

static int check(struct log_reader *reader, struct reason *reason)
{
	struct broker *broker = &reader->broker;
	char key[FLEET_KEY_BYTES];
	struct list_head head;
	redisReply *reply;
	int error;

	if (fleet_now_ms() - reader->clock_ms >= CLOCK_MS) {
		error = broker_read_clock(broker, reason);
		if (error)
			return error;
		reader->clock_ms = fleet_now_ms();
	}
	error = tell(reader, FOLLOW_CLOCK, broker->offset_ms, "");
	if (!error && connection_put(&broker->connection, "HMGET", fleet_key(key, reader->start->fleet, "meta"), "id",
				     "format", "panic", NULL))
		error = reason_set(reason, -ENOMEM, "not enough memory");
	for (size_t i = 0; i < reader->count && !error; i++)
		if (list_head_put(broker, reader->start->fleet, reader->lists[i].name))
			error = reason_set(reason, -ENOMEM, "not enough memory");
	if (!error)
		error = connection_expect(&broker->connection, &reply, CONNECTION_TIMEOUT_MS, reason);
	if (error)
		return error;
	error = tell_fleet(reader, reply, reason);
	codec_free(reply);
	for (size_t i = 0; i < reader->count && !error; i++) {
		error = connection_expect(&broker->connection, &reply, CONNECTION_TIMEOUT_MS, reason);
		if (error)
			return error;
		error = list_head_of(reply, &head, reason);
		codec_free(reply);
		if (!error) {
			judge_head(reader, &reader->lists[i], &head);
			error = tell_state(reader, i, head.last);
		}
	}
	reader->checked_ms = fleet_now_ms();
	return error;
}

/* ---- the logs ---- */

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
			error = tell(reader, FOLLOW_PANIC, !strcmp(fields->element[1]->str, "on"), "");
	}
	return error;
}

static int take_entries(struct log_reader *reader, size_t i, const redisReply *entries, struct reason *reason)
{
	struct list *list = &reader->lists[i];
	struct log_entry entry;
	int error = 0;

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
			plan_resync(reader, list, step == LOG_GAP ? FOLLOW_GAP : FOLLOW_DIVERGED);
			return tell_state(reader, i, entry.at);
		}
		list->at = entry.at;
		error = tell_list(reader, FOLLOW_ENTRY, i, 0, entry.rules ? entry.rules : "", entry.rules_bytes);
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
	return left_ms;
}

static int read_logs(struct log_reader *reader, struct reason *reason)
{
	static char keys[1 + FOLLOW_LISTS_MAX][FLEET_KEY_BYTES], ids[1 + FOLLOW_LISTS_MAX][FLEET_POSITION_BYTES];
	const char *words[8 + 2 * FOLLOW_LISTS_MAX], *fleet = reader->start->fleet;
	size_t count = 1;
	int words_count = 0;
	char block[24];
	redisReply *reply;
	int error;

	snprintf(block, sizeof(block), "%lld", (long long)block_ms(reader));
	fleet_key(keys[0], fleet, "ctl");
	snprintf(ids[0], sizeof(ids[0]), "%s", reader->ctl_last);
	for (size_t i = 0; i < reader->count; i++) {
		struct list *list = &reader->lists[i];

		if (list->must_resync || list->state == FOLLOW_WIPED || list->wait_until_ms > fleet_now_ms())
			continue;
		fleet_list_key(keys[count], fleet, list->name, "log");
		fleet_position_format(list->at, ids[count++]);
		list->was_read = true;
	}
	words[words_count++] = "XREAD";
	words[words_count++] = "COUNT";
	words[words_count++] = ENTRIES_AT_ONCE;
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

/* ---- the answers of the applier ---- */

/* Writes the status of this host. A broker that does not allow it is followed all the same. */
static int report(struct log_reader *reader, char *lines, struct reason *reason)
{
	char host[FLEET_HOST_BYTES], what[FLEET_HOST_BYTES + 8], key[FLEET_KEY_BYTES], expire[16];
	const char *words[64];
	int count = 0, error;
	redisReply *reply;

	snprintf(what, sizeof(what), "host:%s", fleet_host_name(reader->start->options, host));
	words[count++] = "HSET";
	words[count++] = fleet_key(key, reader->start->fleet, what);
	for (char *line = strtok(lines, "\n"); line && count + 2 < 64; line = strtok(NULL, "\n")) {
		char *space = strchr(line, ' ');

		if (!space)
			continue;
		*space = '\0';
		words[count++] = line;
		words[count++] = space + 1;
	}
	if (count == 2)
		return 0;
	snprintf(expire, sizeof(expire), "%d", FLEET_HOST_EXPIRE_S);
	if (connection_put_words(&reader->broker.connection, count, words, NULL) ||
	    connection_put(&reader->broker.connection, "EXPIRE", key, expire, NULL))
		return reason_set(reason, -ENOMEM, "not enough memory");
	for (int i = 0; i < 2; i++) {
		error = connection_get(&reader->broker.connection, &reply, CONNECTION_TIMEOUT_MS, reason);
		if (error)
			return error;
		codec_free(reply);
	}
	return 0;
}

/* Lets the applier apply what was sent. -EAGAIN: this broker must not be followed now. */
static int flush(struct log_reader *reader, struct reason *reason)
{
	struct follow_message answer;
	int error = tell(reader, FOLLOW_FLUSH, 0, "");

	if (!error && follow_receive(reader->fd, &answer, reader->text))
		error = -ECANCELED;
	if (error)
		return error;
	if (answer.kind == FOLLOW_STOP)
		return reason_set(reason, -EAGAIN, "stopped");
	for (size_t i = 0; i < reader->count; i++) {
		struct list *list = &reader->lists[i];

		if (!(answer.number & 1LL << i)) {
			list->committed = list->at;
		} else {
			/* What was sent is not applied: it is read again, after a pause. */
			list->at = list->committed;
			list->wait_until_ms = fleet_now_ms() + (reader->start->is_once ? RETRY_MIN_MS : PAUSE_MS);
			list->must_resync |= list->was_resynced;
		}
		list->was_resynced = false;
	}
	return report(reader, reader->text, reason);
}

/* ---- the whole ---- */

/* Where ctl ends now. The flag in meta, which is read after this, includes all before. */
static int find_ctl(struct log_reader *reader, struct reason *reason)
{
	char key[FLEET_KEY_BYTES];
	redisReply *reply;
	int error = connection_ask(&reader->broker.connection, &reply, reason, "XREVRANGE",
				   fleet_key(key, reader->start->fleet, "ctl"), "+", "-", "COUNT", "1", NULL);

	if (error)
		return error;
	snprintf(reader->ctl_last, sizeof(reader->ctl_last), "0-0");
	if (reply->type == REDIS_REPLY_ARRAY && reply->elements && reply->element[0]->type == REDIS_REPLY_ARRAY &&
	    reply->element[0]->elements && reply->element[0]->element[0]->type == REDIS_REPLY_STRING)
		snprintf(reader->ctl_last, sizeof(reader->ctl_last), "%s", reply->element[0]->element[0]->str);
	codec_free(reply);
	return 0;
}

/* Follows one broker until something fails. */
static int follow(struct log_reader *reader, struct reason *reason)
{
	size_t resynced;
	char flow[CONNECTION_FLOW_BYTES], where[CONNECTION_WHERE_BYTES + CONNECTION_FLOW_BYTES];
	int error;

	snprintf(where, sizeof(where), "%s\n%s", reader->broker.connection.where,
		 connection_flow(&reader->broker.connection, flow));
	error = tell(reader, FOLLOW_CONNECTED, 0, where);
	if (!error)
		error = find_ctl(reader, reason);
	reader->clock_ms = fleet_now_ms();
	for (size_t i = 0; i < reader->count; i++)
		reader->lists[i].at = reader->lists[i].committed;
	if (!error)
		error = check(reader, reason);
	if (!error)
		error = flush(reader, reason);
	while (!error) {
		error = resync_due(reader, &resynced, reason);
		if (!error && !resynced)
			error = read_logs(reader, reason);
		if (!error && (reader->start->is_once || fleet_now_ms() - reader->checked_ms >= CHECK_MS))
			error = check(reader, reason);
		if (!error)
			error = flush(reader, reason);
	}
	return error;
}

static void sleep_ms(__s64 ms)
{
	const struct timespec time = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	nanosleep(&time, NULL);
}

void log_reader_run(const struct log_reader_start *start, int fd)
{
	static struct log_reader reader;
	__s64 retry_ms = RETRY_MIN_MS;
	struct reason reason;
	int error = 0;

	reader = (struct log_reader){ .start = start, .fd = fd, .count = start->count };
	for (size_t i = 0; i < start->count; i++) {
		struct list *list = &reader.lists[i];

		*list = (struct list){ .name = start->lists[i].name, .at = start->lists[i].at };
		list->committed = list->at;
		if (start->lists[i].is_incomplete)
			plan_resync(&reader, list, FOLLOW_INCOMPLETE);
	}
	while (error != -ECANCELED) {
		error = broker_open(&reader.broker, start->options, start->secrets, BROKER_READ, CONNECTION_TIMEOUT_MS,
				    &reason);
		if (!error) {
			retry_ms = RETRY_MIN_MS;
			error = follow(&reader, &reason);
			broker_close(&reader.broker);
		}
		if (error == -EAGAIN)
			sleep_ms(STOPPED_MS);
		else if (error != -ECANCELED && tell(&reader, FOLLOW_LOST, error, reason.text))
			error = -ECANCELED;
		/* Half of the pause is random, so that hosts do not come back all at once. */
		sleep_ms(retry_ms / 2 + fleet_random_below(retry_ms / 2 + 1));
		retry_ms = 2 * retry_ms < RETRY_MAX_MS ? 2 * retry_ms : RETRY_MAX_MS;
	}
}
