// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The loop of the process that reads from the broker. Each turn reads the lists that must be read as a whole, then the
 * new entries of all logs, and every 5 s the heads of the lists. After each turn the applier applies what was sent.
 * log_list.c decides for each list which way it is read; read_logs.c reads the logs. Words:
 *
 *   applier   the process with privileges, which changes the lists of this host: follow.c
 *   log       the last changes of a list at the broker, each with its position; ctl is such a log about panic
 *   state     all rules of a list at the broker: to read a list as a whole is to read its state
 *             (list->state is something else: how the host's list stands)
 *   head      where the log of a list ends, and how many rules the list has
 *   staged    said of new rules of a list: only hosts with staged = yes take them
 *   position  EPOCH-SEQ. A new epoch begins when a broker goes on from an older state.
 */
#include "fleet/follow_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "fleet/log_reader_internal.h"

#define CHECK_MS 5000 /* between two looks at the ends of the logs */
#define CLOCK_MS 60000
#define PANIC_MS 1000 /* between two looks while a whole list is read */
#define RETRY_MIN_MS 100
#define RETRY_MAX_MS 5000 /* while no broker can be reached */
/* The same after connections that were lost without progress: each costs the broker a handshake. */
#define RETRY_LOST_MS 60000
#define STOPPED_MS 5000 /* after FOLLOW_STOP, before another broker is tried */
#define META_COMMAND "HMGET xc:%s:meta id format panic"

/* ---- messages ---- */

enum log_end log_tell(struct log_reader *reader, struct follow_message message, const char *text)
{
	message.bytes = message.bytes ? message.bytes : strlen(text);
	return unprivileged_send(reader->fd, &message, sizeof(message), text, message.bytes, UNPRIVILEGED_NO_DEADLINE) ?
		       LOG_NO_APPLIER :
		       LOG_GOES_ON;
}

enum log_end log_tell_state(struct log_reader *reader, size_t i, struct fleet_position last, const char *text)
{
	const enum follow_state state = reader->lists[i].state;

	return log_tell(reader, (struct follow_message){ .kind = FOLLOW_STATE, .list = i, .at = last, .number = state },
			text);
}

enum log_end log_fail(struct log_reader *reader, size_t i, const char *why)
{
	struct list *list = &reader->lists[i];

	list->is_broken = true;
	list->state = FOLLOW_BROKEN;
	log_list_pause(reader, list);
	return log_tell_state(reader, i, list->head.last, why);
}

/* ---- the fleet's meta ---- */

/*
 * Sends id, format and panic flag; the applier checks the first two. The panic flag, too, because
 * panic may have begun before this connection.
 */
static enum log_end tell_fleet(struct log_reader *reader, const redisReply *reply, struct reason *reason)
{
	const char *id = codec_text_of(reply, 0), *format = codec_text_of(reply, 1), *panic = codec_text_of(reply, 2);
	enum log_end end;

	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 3)
		return reason_set(reason, LOG_LOST, "the broker's meta is not that of a fleet");
	end = log_tell(reader, (struct follow_message){ .kind = FOLLOW_HELLO, .number = format ? atoi(format) : 0 },
		       id ? id : "");
	if (!end && panic)
		end = log_tell(reader, (struct follow_message){ .kind = FOLLOW_PANIC, .number = !strcmp(panic, "on") },
			       "");
	return end;
}

/*
 * Looks at the panic flag while a long list is read, which takes minutes on a slow link. -ECANCELED: the applier is
 * gone.
 */
static int look_at_panic(void *context, struct reason *reason)
{
	struct log_reader *reader = context;
	enum log_end end = LOG_GOES_ON;
	CODEC_FREED redisReply *reply = NULL;
	int error;

	if (fleet_now_ms() - reader->panic_ms < PANIC_MS)
		return 0;
	error = connection_ask(&reader->broker.connection, &reply, reason, META_COMMAND, reader->start->fleet);
	if (!error)
		end = tell_fleet(reader, reply, reason);
	reader->panic_ms = fleet_now_ms();
	return end == LOG_NO_APPLIER ? -ECANCELED : end ? -EPROTO : error == -EREMOTEIO ? -EPROTO : error;
}

/* ---- a whole list ---- */

/* 0; -ECANCELED: the applier is gone. */
static int send_lines(struct log_reader *reader)
{
	const struct follow_message message = { .kind = FOLLOW_LINES,
						.list = reader->lines_of,
						.bytes = reader->lines_bytes };

	reader->lines_bytes = 0;
	return message.bytes && log_tell(reader, message, reader->lines) ? -ECANCELED : 0;
}

/* Collects the lines of a state. -EDQUOT: the list has more rules than this host takes. */
static int take_line(char *line, size_t length, void *context)
{
	struct log_reader *reader = context;
	const __u64 most = reader->start->options->rules_max;
	int error = 0;

	if (most && reader->lines_count++ >= most + FOLLOW_LINES_MORE)
		return -EDQUOT;
	if (reader->lines_bytes + length + 1 > LINES_BYTES)
		error = send_lines(reader);
	memcpy(reader->lines + reader->lines_bytes, line, length);
	reader->lines_bytes += length;
	reader->lines[reader->lines_bytes++] = '\n';
	return error;
}

/* Whether an error of snapshot_read() is about this one list. Others mean that the connection is lost. */
static bool is_of_list(int error)
{
	return error == -EREMOTEIO || error == -EBADMSG || error == -EMSGSIZE || error == -EDQUOT || error == -ESTALE;
}

/* Sends the whole list. */
static enum log_end read_whole(struct log_reader *reader, size_t i, struct reason *reason)
{
	struct list *list = &reader->lists[i];
	const char *why = follow_states[list->plan].name;
	const bool is_older = list->plan == FOLLOW_OLDER ||
			      (list->plan == FOLLOW_RESTORED && list->head.last.epoch < list->at.epoch);
	struct fleet_position at = {};
	enum log_end end = log_tell(reader,
				    (struct follow_message){ .kind = FOLLOW_SNAPSHOT, .list = i, .number = is_older },
				    why);
	int error;

	if (end)
		return end;
	reader->lines_of = i;
	reader->lines_bytes = reader->lines_count = 0;
	error = snapshot_read(&reader->broker, reader->start->fleet, list->name, take_line, look_at_panic, reader, &at,
			      reason);
	if (!error)
		error = send_lines(reader);
	if (error == -ECANCELED)
		return LOG_NO_APPLIER;
	if (error && !is_of_list(error))
		return LOG_LOST;
	if (error == -EDQUOT)
		reason_set(reason, 0, "list '%s': at the broker it has over %llu rules, the max-rules of this host",
			   list->name, (unsigned long long)reader->start->options->rules_max);
	/* The log has moved on: the state that was read is a mixture. */
	if (error == -ESTALE) {
		log_list_pause(reader, list);
		return LOG_GOES_ON;
	}
	if (error) {
		end = log_fail(reader, i, reason->text);
		return error == -EMSGSIZE && !end ? LOG_LOST : end; /* the reply is too long, its rest unread */
	}
	list->is_broken = false;
	/* The broker has no such list now. The host keeps its rules, unless log_list_may_be_wiped(). */
	if (!at.epoch && list->at.epoch && !log_list_may_be_wiped(reader, list)) {
		list->plan = FOLLOW_LEVEL;
		list->state = FOLLOW_WIPED;
		return log_tell_state(reader, i, at, "");
	}
	list->at = at;
	list->state = list->sent = list->plan;
	list->plan = FOLLOW_LEVEL;
	return log_tell(reader, (struct follow_message){ .kind = FOLLOW_END, .list = i, .at = at }, "");
}

/* ---- the heads of the lists ---- */

/*
 * Asks the broker's hash "accept" about the list. A publisher may have stored a time there. Until that time hosts may
 * delete any number of the list's rules, so a list refused before is read again.
 */
static enum log_end look_at_accept(struct log_reader *reader, size_t i, struct reason *reason)
{
	struct list *list = &reader->lists[i];
	CODEC_FREED redisReply *reply = NULL;
	const char *until;
	__s64 until_ms;
	int error = connection_ask(&reader->broker.connection, &reply, reason, "HGET xc:%s:accept %s",
				   reader->start->fleet, list->name);

	if (error)
		return error == -EREMOTEIO ? LOG_GOES_ON : LOG_LOST;
	until = codec_text(reply);
	until_ms = until ? atoll(until) : 0;
	if (until_ms <= broker_now_ms(&reader->broker) || list->is_accepted)
		return LOG_GOES_ON;
	if (list->is_refused || list->state == FOLLOW_WIPED || reader->start->is_once) {
		list->is_accepted = true;
		list->due_ms = 0;
		/* Not all hosts read the whole list at once; the log they may. */
		if (!reader->start->is_once && list->plan)
			list->due_ms = fleet_now_ms() + fleet_random_below(reader->start->options->jitter_ms + 1);
	} else if (!reader->has_accept) {
		return LOG_GOES_ON;
	}
	return log_tell(reader, (struct follow_message){ .kind = FOLLOW_ACCEPT, .list = i, .number = until_ms }, "");
}

/* Takes the head of a list, which was asked for. */
static enum log_end take_head(struct log_reader *reader, size_t i, struct reason *reason)
{
	CODEC_FREED redisReply *reply = NULL;
	struct list_head head;
	int error = connection_expect(&reader->broker.connection, &reply, reason);

	if (error && error != -EREMOTEIO)
		return LOG_LOST;
	if (!error)
		error = list_head_of(reply, &head, reason);
	if (error)
		return log_fail(reader, i, reason->text);
	log_list_judge(reader, &reader->lists[i], &head);
	return log_tell_state(reader, i, head.last, "");
}

/* Asks for the fleet's meta and the heads of all lists at once, then takes the replies in the same order. */
static enum log_end check(struct log_reader *reader, struct reason *reason)
{
	struct broker *broker = &reader->broker;
	CODEC_FREED redisReply *reply = NULL;
	bool is_asked[FOLLOW_LISTS_MAX] = {};
	enum log_end end;

	if (fleet_now_ms() - reader->clock_ms >= CLOCK_MS) {
		if (broker_read_clock(broker, reason))
			return LOG_LOST;
		reader->clock_ms = fleet_now_ms();
	}
	end = log_tell(reader, (struct follow_message){ .kind = FOLLOW_CLOCK, .number = broker->offset_ms }, "");
	/*
	 * "accept" is read before the heads: with --once a list that is gone at the broker ends the run, unless a
	 * publisher has accepted that. Other lists need it only if it may matter to them.
	 */
	for (size_t i = 0; i < reader->count && !end; i++)
		if (reader->start->is_once || reader->has_accept || reader->lists[i].is_refused ||
		    reader->lists[i].state == FOLLOW_WIPED)
			end = look_at_accept(reader, i, reason);
	reader->has_accept = false;
	if (end)
		return end;
	connection_put(&broker->connection, META_COMMAND, reader->start->fleet);
	for (size_t i = 0; i < reader->count; i++) {
		/* A broken list is asked about after its pause. */
		is_asked[i] = !reader->lists[i].is_broken || log_list_is_readable(reader, &reader->lists[i]);
		if (is_asked[i])
			list_head_put(broker, reader->start->fleet, reader->lists[i].name);
	}
	if (connection_expect(&broker->connection, &reply, reason))
		return LOG_LOST;
	end = tell_fleet(reader, reply, reason);
	for (size_t i = 0; i < reader->count && !end; i++)
		if (is_asked[i])
			end = take_head(reader, i, reason);
	reader->checked_ms = fleet_now_ms();
	return end;
}

/* ---- the answers of the applier ---- */

/* Makes the applier apply what was sent, waits for its answer, and sends the host's report to the broker. */
static enum log_end sync_with_applier(struct log_reader *reader, struct reason *reason)
{
	const struct log_reader_start *start = reader->start;
	struct follow_message answer;
	enum log_end end = log_tell(reader, (struct follow_message){ .kind = FOLLOW_FLUSH }, "");

	reader->pending = reader->deleted = reader->settled_ms = 0;
	if (end || follow_receive(reader->fd, &answer, reader->text, UNPRIVILEGED_NO_DEADLINE))
		return LOG_NO_APPLIER;
	if (answer.kind != FOLLOW_STOP)
		reader->stopped_ms = 0;
	else if (!reader->stopped_ms)
		reader->stopped_ms = fleet_now_ms();
	/* A list is refused if its bit is set, or if it was sent whole to a stopped applier, which takes nothing. */
	for (size_t i = 0; i < reader->count; i++) {
		struct list *list = &reader->lists[i];

		if (answer.number & 1LL << i || (reader->stopped_ms && list->sent))
			log_list_refused(reader, list);
		else if (reader->stopped_ms)
			list->at = list->committed;
		else
			log_list_applied(list);
	}
	if (report_send(&reader->report, &reader->broker, start->options, start->fleet, reader->text,
			reader->is_awaited || start->is_once, reason))
		return LOG_LOST;
	reader->is_awaited = false;
	if (*reader->report.noted.text)
		end = log_tell(reader, (struct follow_message){ .kind = FOLLOW_NOTE }, reader->report.noted.text);
	reader->report.noted.text[0] = '\0';
	if (!end && reader->stopped_ms && start->options->brokers_count > 1 &&
	    fleet_now_ms() - reader->stopped_ms >= STOPPED_MS)
		return LOG_ELSEWHERE;
	return end;
}

/* ---- the whole ---- */

/*
 * Finds the last entry of ctl: log_read_streams() begins after it. Earlier entries do not matter, because the panic
 * flag, which is read after this, includes them.
 */
static enum log_end find_ctl(struct log_reader *reader, struct reason *reason)
{
	const char *id = NULL;
	CODEC_FREED redisReply *reply = NULL;

	if (connection_ask(&reader->broker.connection, &reply, reason, "XREVRANGE xc:%s:ctl + - COUNT 1",
			   reader->start->fleet))
		return LOG_LOST;
	if (reply->type == REDIS_REPLY_ARRAY && reply->elements)
		id = codec_text_of(reply->element[0], 0);
	snprintf(reader->ctl_last, sizeof(reader->ctl_last), "%s", id ? id : "0-0");
	return LOG_GOES_ON;
}

/* Follows one broker until something fails. */
static enum log_end follow(struct log_reader *reader, struct reason *reason)
{
	enum log_end end =
		log_tell(reader, (struct follow_message){ .kind = FOLLOW_CONNECTED }, reader->broker.connection.where);

	if (!end)
		end = find_ctl(reader, reason);
	reader->clock_ms = fleet_now_ms();
	reader->stopped_ms = 0;
	reader->has_progress = false;
	reader->pending = reader->deleted = reader->settled_ms = 0;
	report_begin(&reader->report);
	for (size_t i = 0; i < reader->count; i++) {
		struct list *list = &reader->lists[i];

		list->at = list->committed;
		list->plan = list->plan ? list->plan : list->sent;
		list->sent = FOLLOW_LEVEL;
		list->behind_at = list->skip = (struct fleet_position){}; /* were of the last connection */
	}
	if (!end)
		end = check(reader, reason);
	if (!end)
		end = sync_with_applier(reader, reason);
	while (!end) {
		bool has_read = false;

		for (size_t i = 0; i < reader->count && !end; i++)
			if (reader->lists[i].plan && log_list_is_readable(reader, &reader->lists[i])) {
				end = read_whole(reader, i, reason);
				has_read = true;
			}
		if (!end)
			end = log_read_streams(reader, !has_read, reason);
		if (!end &&
		    (reader->start->is_once || reader->has_accept || fleet_now_ms() - reader->checked_ms >= CHECK_MS))
			end = check(reader, reason);
		if (!end && fleet_now_ms() >= reader->settled_ms)
			end = sync_with_applier(reader, reason);
		reader->has_progress |= !end && !reader->stopped_ms;
	}
	return end;
}

void log_reader_run(const struct log_reader_start *start, int fd)
{
	struct log_reader *reader = calloc(1, sizeof(*reader));
	__s64 retry_ms = 0, longest_ms;
	enum log_end end = LOG_GOES_ON;
	struct reason reason;

	if (!reader)
		return;
	reader->start = start;
	reader->fd = fd;
	reader->count = start->count;
	for (size_t i = 0; i < start->count; i++) {
		struct list *list = &reader->lists[i];

		*list = (struct list){ .name = start->lists[i].name, .at = start->lists[i].at };
		list->committed = list->at;
		list->is_incomplete = start->lists[i].is_incomplete;
	}
	while (end != LOG_NO_APPLIER) {
		longest_ms = RETRY_MAX_MS;
		end = LOG_LOST;
		if (!broker_open(&reader->broker, start->options, BROKER_READ, &reason)) {
			end = follow(reader, &reason);
			broker_close(&reader->broker);
			if (reader->has_progress)
				retry_ms = 0;
			else if (end == LOG_LOST)
				longest_ms = RETRY_LOST_MS;
		}
		if (end == LOG_LOST)
			end = log_tell(reader, (struct follow_message){ .kind = FOLLOW_LOST }, reason.text);
		retry_ms = pause_longer(retry_ms, RETRY_MIN_MS, longest_ms);
		if (end != LOG_NO_APPLIER)
			clock_pause(pause_spread(retry_ms, fleet_random_below(~0ULL)));
	}
	free(reader);
}
