// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "fleet/log_reader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fleet/log_entry.h"
#include "fleet/log_reader_internal.h"

#define CHECK_MS 5000 /* between two looks at the ends of the logs */
#define CLOCK_MS 60000
#define PANIC_MS 1000 /* between two looks while a whole list is read */
#define RETRY_MIN_MS 100
#define RETRY_MAX_MS 5000
#define STOPPED_MS 5000 /* after FOLLOW_STOP, before another broker is tried */
#define OUTBOX_MS 5000  /* a publisher has this time to send again what a failover has lost */
#define PAUSE_MS 10000  /* after the applier could not apply a list */
#define PAUSE_GROWTH 30 /* the longest pause of a whole list is so many times that long */
#define LAG_MS 60000    /* a replica that lags longer loses its master (repl-timeout) */

/* ---- messages ---- */

int log_tell_list(struct log_reader *reader, enum follow_kind kind, size_t list, __s64 number, const char *text,
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

int log_tell(struct log_reader *reader, enum follow_kind kind, __s64 number, const char *text)
{
	const struct follow_message message = { .kind = kind, .bytes = strlen(text), .number = number };

	return follow_send(reader->fd, &message, text) ? -ECANCELED : 0;
}

int log_tell_state(struct log_reader *reader, size_t i, struct fleet_position last)
{
	const struct follow_message message = {
		.kind = FOLLOW_STATE,
		.list = i,
		.at = last,
		.number = reader->lists[i].state,
	};

	return follow_send(reader->fd, &message, "") ? -ECANCELED : 0;
}

/* ---- the fleet's meta ---- */

/* The fleet's id and format are the applier's to judge. Panic: it may have been set while nobody listened. */
static int tell_fleet(struct log_reader *reader, const redisReply *reply, struct reason *reason)
{
	const redisReply *const *field = (const redisReply *const *)reply->element;
	const char *id;
	int error;

	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 3)
		return reason_set(reason, -EPROTO, "the broker's meta is not that of a fleet");
	id = field[0]->type == REDIS_REPLY_STRING ? field[0]->str : "";
	error = log_tell(reader, FOLLOW_HELLO, field[1]->type == REDIS_REPLY_STRING ? atoi(field[1]->str) : 0, id);
	if (!error && field[2]->type == REDIS_REPLY_STRING)
		error = log_tell(reader, FOLLOW_PANIC, !strcmp(field[2]->str, "on"), "");
	return error;
}

/* A long list may take minutes on a slow link: panic does not wait for its end. */
static int look_at_panic(void *context, struct reason *reason)
{
	struct log_reader *reader = context;
	char key[FLEET_KEY_BYTES];
	redisReply *reply;
	int error;

	if (fleet_now_ms() - reader->panic_ms < PANIC_MS)
		return 0;
	error = connection_ask(&reader->broker.connection, &reply, reason, "HMGET",
			       fleet_key(key, reader->start->fleet, "meta"), "id", "format", "panic", NULL);
	if (!error)
		error = tell_fleet(reader, reply, reason);
	codec_free(reply);
	reader->panic_ms = fleet_now_ms();
	return error;
}

/* ---- resync ---- */

void log_plan_resync(struct log_reader *reader, struct list *list, enum follow_state why)
{
	const __s64 jitter_ms = fleet_random_below(reader->start->options->jitter_ms + 1);

	list->state = why;
	if (list->must_resync)
		return;
	list->must_resync = true;
	if (why == FOLLOW_NEW || reader->start->is_once)
		list->wait_until_ms = 0;
	else
		list->wait_until_ms = fleet_now_ms() + jitter_ms +
				      /* A replica that lacks the newest epoch looks like an older state. */
				      (why == FOLLOW_RESTORED && !reader->broker.is_master ? LAG_MS :
				       why == FOLLOW_DIVERGED || why == FOLLOW_OLDER || why == FOLLOW_RESTORED ?
											     OUTBOX_MS :
											     0);
}

/*
 * A list that stays as it is may be accepted for all hosts: the hash "accept" then has a later time than now. Asks for
 * it, tells the applier, and lets the list be read again.
 */
static int look_at_accept(struct log_reader *reader, size_t i, struct reason *reason)
{
	struct list *list = &reader->lists[i];
	char key[FLEET_KEY_BYTES];
	redisReply *reply;
	__s64 until_ms;
	int error = connection_ask(&reader->broker.connection, &reply, reason, "HGET",
				   fleet_key(key, reader->start->fleet, "accept"), list->name, NULL);

	if (error)
		return error == -EREMOTEIO ? 0 : error;
	until_ms = reply->type == REDIS_REPLY_STRING ? atoll(reply->str) : 0;
	codec_free(reply);
	if (until_ms <= broker_now_ms(&reader->broker) || list->is_accepted)
		return 0;
	list->is_accepted = true;
	list->wait_until_ms = fleet_now_ms() + fleet_random_below(reader->start->options->jitter_ms + 1);
	return log_tell_list(reader, FOLLOW_ACCEPT, i, until_ms, "", 0);
}

/* The applier did not apply what was sent: a whole list may be long, and many hosts may refuse it. */
static void plan_again(const struct log_reader *reader, struct list *list)
{
	const __s64 shortest_ms = reader->start->is_once ? RETRY_MIN_MS : PAUSE_MS;
	__s64 pause_ms = shortest_ms;

	if (list->was_resynced) {
		list->must_resync = true;
		list->refused = (struct list_head){ .last = list->at, .rules = list->head.rules };
		if (list->pause_ms)
			pause_ms = 2 * list->pause_ms;
		if (pause_ms > PAUSE_GROWTH * shortest_ms)
			pause_ms = PAUSE_GROWTH * shortest_ms;
		list->pause_ms = pause_ms;
	}
	list->at = list->committed;
	/* Half of the pause is random, so that hosts do not read all at once. */
	list->wait_until_ms = fleet_now_ms() + pause_ms / 2 + fleet_random_below(pause_ms / 2 + 1);
}

/* Shortens the pause if over 1 % of the refused list has changed: each change makes a host read 100 rules at most. */
static void hurry(const struct log_reader *reader, struct list *list)
{
	const struct list_head *before = &list->refused, *now = &list->head;
	const __u64 changed = now->last.seq - before->last.seq +
			      (now->rules > before->rules ? now->rules - before->rules : before->rules - now->rules);
	const __s64 due_ms = fleet_now_ms() + fleet_random_below(reader->start->options->jitter_ms + 1);

	if (now->last.epoch == before->last.epoch && now->last.seq >= before->last.seq && changed * 100 <= now->rules)
		return;
	list->refused = *now;
	if (list->wait_until_ms > due_ms)
		list->wait_until_ms = due_ms;
}

static int send_lines(struct log_reader *reader)
{
	const size_t bytes = reader->lines_bytes;

	reader->lines_bytes = 0;
	return bytes ? log_tell_list(reader, FOLLOW_LINES, reader->lines_of, 0, reader->lines, bytes) : 0;
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
	const bool is_older = list->state == FOLLOW_OLDER ||
			      (list->state == FOLLOW_RESTORED && list->head.last.epoch < list->at.epoch);
	int error = log_tell_list(reader, FOLLOW_SNAPSHOT, i, is_older, follow_state_name(list->state),
				  strlen(follow_state_name(list->state)));

	reader->lines_of = i;
	reader->lines_bytes = 0;
	if (!error)
		error = snapshot_read(&reader->broker, reader->start->fleet, list->name, take_line, look_at_panic,
				      reader, &at, reason);
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
	return log_tell_list(reader, FOLLOW_END, i, 0, "", 0);
}

/* Lists whose time has come. *count: how many were read. */
static int resync_due(struct log_reader *reader, size_t *count, struct reason *reason)
{
	int error = 0;

	*count = 0;
	for (size_t i = 0; i < reader->count && !error && !reader->stopped_ms; i++) {
		const struct list *list = &reader->lists[i];

		if (!list->must_resync || list->wait_until_ms > fleet_now_ms())
			continue;
		error = resync(reader, i, reason);
		++*count;
	}
	return error;
}

/* ---- the ends of the lists ---- */

static void judge_head(struct log_reader *reader, struct list *list, const struct list_head *head)
{
	const enum log_head found = log_head(list->at, head->last, reader->broker.is_master);

	list->head = *head;
	if (list->must_resync && list->pause_ms)
		hurry(reader, list);
	/* Once planned, it is due: unless the publisher has sent again what was lost, or a replica has caught up. */
	if (list->must_resync &&
	    !(list->state == FOLLOW_RESTORED && (found == LOG_LEVEL || found == LOG_BEHIND || found == LOG_LAGGING)))
		return;
	if (list->must_resync)
		list->wait_until_ms = 0;
	list->must_resync = false;
	list->state = (enum follow_state)found;
	if (found == LOG_BEHIND && !list->at.epoch)
		log_plan_resync(reader, list, FOLLOW_NEW);
	else if (found == LOG_RESTORED)
		log_plan_resync(reader, list, FOLLOW_RESTORED);
	else if (found == LOG_WIPED && (reader->start->is_accepted || list->is_accepted))
		log_plan_resync(reader, list, FOLLOW_WIPED);
	else if (found == LOG_BEHIND && list->was_read && list->seen.epoch &&
		 !fleet_position_compare(list->seen, list->at))
		log_plan_resync(reader, list, FOLLOW_GAP); /* the log said nothing, though there is more */
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
	error = log_tell(reader, FOLLOW_CLOCK, broker->offset_ms, "");
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
			error = log_tell_state(reader, i, head.last);
		}
	}
	for (size_t i = 0; i < reader->count && !error; i++)
		if (reader->lists[i].is_refused || reader->lists[i].state == FOLLOW_WIPED)
			error = look_at_accept(reader, i, reason);
	reader->checked_ms = fleet_now_ms();
	return error;
}

/* ---- the answers of the applier ---- */

/* Lets the applier apply what was sent, and reports. -EAGAIN: another broker may have what this one lacks. */
static int flush(struct log_reader *reader, struct reason *reason)
{
	const struct log_reader_start *start = reader->start;
	struct follow_message answer;
	int error = log_tell(reader, FOLLOW_FLUSH, 0, "");

	if (!error && follow_receive(reader->fd, &answer, reader->text))
		error = -ECANCELED;
	if (error)
		return error;
	if (answer.kind != FOLLOW_STOP)
		reader->stopped_ms = 0;
	else if (!reader->stopped_ms)
		reader->stopped_ms = fleet_now_ms();
	for (size_t i = 0; i < reader->count; i++) {
		struct list *list = &reader->lists[i];

		if (reader->stopped_ms) {
			list->at = list->committed;
		} else if (!(answer.number & 1LL << i)) {
			if (list->was_resynced || fleet_position_compare(list->committed, list->at))
				list->is_refused = list->is_accepted = false;
			list->committed = list->at;
			list->pause_ms = list->was_resynced ? 0 : list->pause_ms;
		} else {
			list->is_refused = true;
			plan_again(reader, list);
		}
		list->was_resynced = false;
	}
	error = report_send(&reader->report, &reader->broker, start->options, start->secrets, start->fleet,
			    reader->text, reader->is_awaited, reason);
	reader->is_awaited = false;
	if (!error && *reader->report.noted.text)
		error = log_tell(reader, FOLLOW_NOTE, 0, reader->report.noted.text);
	reader->report.noted.text[0] = '\0';
	if (!error && reader->stopped_ms && start->options->brokers_count > 1 &&
	    fleet_now_ms() - reader->stopped_ms >= STOPPED_MS)
		return reason_set(reason, -EAGAIN, "stopped");
	return error;
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
	error = log_tell(reader, FOLLOW_CONNECTED, 0, where);
	if (!error)
		error = find_ctl(reader, reason);
	reader->clock_ms = fleet_now_ms();
	reader->stopped_ms = 0;
	report_begin(&reader->report, reader->start->options);
	for (size_t i = 0; i < reader->count; i++) {
		reader->lists[i].at = reader->lists[i].committed;
		reader->lists[i].was_read = false; /* by this connection */
	}
	if (!error)
		error = check(reader, reason);
	if (!error)
		error = flush(reader, reason);
	while (!error) {
		error = resync_due(reader, &resynced, reason);
		if (!error && !resynced)
			error = log_read_streams(reader, reason);
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
	struct log_reader *reader = calloc(1, sizeof(*reader));
	__s64 retry_ms = RETRY_MIN_MS;
	struct reason reason;
	int error = 0;

	if (!reader)
		return;
	reader->start = start;
	reader->fd = fd;
	reader->count = start->count;
	reader->report.own.connection.fd = -1;
	for (size_t i = 0; i < start->count; i++) {
		struct list *list = &reader->lists[i];

		*list = (struct list){ .name = start->lists[i].name, .at = start->lists[i].at };
		list->committed = list->at;
		if (start->lists[i].is_incomplete)
			log_plan_resync(reader, list, FOLLOW_INCOMPLETE);
	}
	while (error != -ECANCELED) {
		error = broker_open(&reader->broker, start->options, start->secrets, BROKER_READ, CONNECTION_TIMEOUT_MS,
				    &reason);
		if (!error) {
			retry_ms = RETRY_MIN_MS;
			error = follow(reader, &reason);
			broker_close(&reader->broker);
		}
		if (error == -EAGAIN)
			sleep_ms(STOPPED_MS);
		else if (error != -ECANCELED && log_tell(reader, FOLLOW_LOST, error, reason.text))
			error = -ECANCELED;
		/* Half of the pause is random, so that hosts do not come back all at once. */
		sleep_ms(retry_ms / 2 + fleet_random_below(retry_ms / 2 + 1));
		retry_ms = 2 * retry_ms < RETRY_MAX_MS ? 2 * retry_ms : RETRY_MAX_MS;
	}
	free(reader);
}
