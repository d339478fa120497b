// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "fleet/publisher.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "change/change.h"

#define SENT_AT_ONCE 16    /* entries on their way to the broker */
#define RECONNECT_MS 30000 /* to find a master again */
#define RETRY_MIN_MS 100   /* doubles up to: */
#define RETRY_MAX_MS 1600
#define CLOCK_MS 60000      /* between two looks at the broker's clock */
#define REPLICAS_MS 500     /* to wait for the replicas */
#define REPLICAS_LATE_MS 20 /* the same if the last wait was in vain */

/* ---- sending ---- */

static void put_entry(struct publisher *publisher, const struct outbox_entry *entry)
{
	char meta[FLEET_KEY_BYTES], log[FLEET_KEY_BYTES], hosts[FLEET_KEY_BYTES], counter[24];
	char position[FLEET_POSITION_BYTES] = "";
	const char *words[9 + FLEET_ENTRY_LINES] = {
		"FCALL",
		"xc_publish",
		publisher->is_awaited ? "3" : "2",
		fleet_list_key(meta, publisher->fleet, publisher->list, "meta"),
		fleet_list_key(log, publisher->fleet, publisher->list, "log"),
	};
	size_t lengths[9 + FLEET_ENTRY_LINES];
	const char *line = entry->lines, *end = entry->lines + entry->bytes;
	int count = 5;

	if (publisher->is_awaited)
		words[count++] = fleet_list_key(hosts, publisher->fleet, publisher->list, "hosts");
	words[count++] = publisher->outbox.publisher;
	words[count++] = counter;
	words[count++] = position;

	snprintf(counter, sizeof(counter), "%" PRIu64, (uint64_t)entry->counter);
	/* An entry that the broker took before a failover must get into the list again, whatever the list is now. */
	if (entry->has_expected && !entry->is_sent)
		fleet_position_format(entry->expected, position);
	for (int i = 0; i < count; i++)
		lengths[i] = strlen(words[i]);
	while (line < end && count < 9 + FLEET_ENTRY_LINES) {
		const char *next = memchr(line, '\n', end - line);
		const size_t length = (next ? next : end) - line;
		const char *rate = memmem(line, length, " rate ", 6),
			   *comment = memmem(line, length, " comment \"", 10);

		/* A broker with older functions refuses this one, instead of keeping each rate as a rule of its own. */
		if (rate && (!comment || rate < comment))
			words[1] = "xc_publish_rates";
		words[count] = line;
		lengths[count++] = length;
		line = next ? next + 1 : end;
	}
	lengths[1] = strlen(words[1]);
	connection_put_words(&publisher->broker.connection, count, words, lengths);
}

/* The answer to one entry. 0; -ESTALE: the list has moved on; other -errno. */
static int get_answer(struct publisher *publisher, const struct outbox_entry *entry, struct reason *reason)
{
	struct fleet_position next = publisher->last;
	CODEC_FREED redisReply *reply = NULL;
	const char *answer, *last;
	__s64 changed;
	int error = connection_expect(&publisher->broker.connection, &reply, reason);

	if (error)
		return error;
	answer = codec_text_of(reply, 0);
	last = codec_text_of(reply, 1);
	if (!answer || !last || reply->elements != 4 ||
	    reply->element[2]->type != REDIS_REPLY_INTEGER ||
	    reply->element[3]->type != REDIS_REPLY_INTEGER ||
	    fleet_position_parse(last, &publisher->last))
		return reason_set(reason, -EPROTO,
				  "the broker's answer is not that of xdp-cuckoo's function; "
				  "load it: xdp-cuckoo%s fleet init",
				  session_name_option(publisher->fleet));
	if (!strcmp(answer, "moved"))
		return reason_set(
			reason, -ESTALE,
			"somebody else has changed the list '%s' meanwhile; nothing was changed",
			publisher->list);
	if (!strcmp(answer, "seen") && !entry->may_be_seen)
		return reason_set(reason, -EREMOTEIO,
				  "nothing was published: the broker has other changes with the numbers of this outbox, "
				  "which is a copy or was restored; delete '%s', and publish again",
				  publisher->outbox.path);
	/* If the list now ends with another entry, other publishers have changed it. */
	changed = reply->element[2]->integer;
	next.seq += changed != 0;
	publisher->is_mixed |= fleet_position_compare(next, publisher->last);
	publisher->changed += changed;
	if (changed && !publisher->first.epoch)
		publisher->first = publisher->last;
	publisher->rules = reply->element[3]->integer;
	return 0;
}

/* Whether the broker refuses with one of these words, of which the last is NULL. */
static bool is_refusal(const struct reason *reason, const char *const *words)
{
	const char *reply = strstr(reason->text, " refuses: ");

	for (; reply && *words; words++)
		if (!strncmp(reply + strlen(" refuses: "), *words, strlen(*words)))
			return true;
	return false;
}

/* Whether the server cannot serve now: it is a replica, loads its data, is out of memory, ... */
static bool is_of_server(int error, const struct reason *reason)
{
	static const char *const words[] = { "READONLY", "LOADING", "MASTERDOWN", "BUSY",
					     "OOM",      "MISCONF", "NOREPLICAS", NULL };

	return error == -EREMOTEIO && is_refusal(reason, words);
}

/*
 * Whether the error of the entry is a refusal, after which it leaves the outbox. If somebody was told that the entry
 * waits, and the broker only lacks the fleet, the functions or a permission, it waits on.
 */
static bool is_refused(const struct outbox_entry *entry, int error, const struct reason *reason)
{
	static const char *const bad_entry[] = { "XCLINE", "XCLARGE", NULL };

	if ((error != -EREMOTEIO && error != -ESTALE) || entry->is_sent ||
	    is_of_server(error, reason))
		return false;
	return error == -ESTALE || !entry->may_be_seen || is_refusal(reason, bad_entry);
}

/*
 * Sends at most SENT_AT_ONCE entries of the outbox from number *next on, which then is that of the first entry that is not
 * sent. Those that the broker refuses leave the outbox: *refusal is the last such error.
 */
static int send_group(struct publisher *publisher, size_t *next, int *refusal,
		      struct reason *why_refused, struct reason *reason)
{
	struct outbox *outbox = &publisher->outbox;
	const size_t left = outbox->count - *next,
		     count = left < SENT_AT_ONCE ? left : SENT_AT_ONCE;
	const struct outbox_entry *entries = &outbox->entries[*next];
	const __u64 last = entries[count - 1].counter;
	__u64 refused[SENT_AT_ONCE];
	size_t refused_count = 0;
	int error = 0;

	for (size_t i = 0; i < count; i++)
		put_entry(publisher, &entries[i]);
	for (size_t i = 0; i < count && !error; i++) {
		error = get_answer(publisher, &entries[i], reason);
		if (!is_refused(&entries[i], error, reason))
			continue;
		refused[refused_count++] = entries[i].counter;
		*why_refused = *reason;
		*refusal = error;
		error = 0;
	}
	for (size_t i = 0; i < refused_count && !error; i++)
		error = outbox_mark(outbox, OUTBOX_REFUSED, refused[i], reason);
	*next += count - refused_count;
	return error ? error : outbox_mark(outbox, OUTBOX_SENT, last, reason);
}

/* Waits for the replicas to have all that was sent. Then nothing has to stay in the outbox. */
static int await_replicas(struct publisher *publisher, struct reason *reason)
{
	const unsigned int wanted = publisher->options->replicas;
	const struct outbox *outbox = &publisher->outbox;
	CODEC_FREED redisReply *reply = NULL;
	int error = connection_ask(&publisher->broker.connection, &reply, reason, "WAIT %u %d",
				   wanted, publisher->is_late ? REPLICAS_LATE_MS : REPLICAS_MS);

	if (error)
		return error;
	publisher->replicas = codec_number(reply);
	publisher->is_late = publisher->replicas < wanted;
	if (publisher->is_late || !outbox->count)
		return 0;
	return outbox_mark(&publisher->outbox, OUTBOX_DONE,
			   outbox->entries[outbox->count - 1].counter, reason);
}

/* Sends the entries of the outbox from number `first` on. If the broker refuses some, returns the error of the last one. */
static int send_entries(struct publisher *publisher, size_t first, struct reason *reason)
{
	struct reason why_refused;
	int error = 0, refusal = 0;

	while (first < publisher->outbox.count && !error)
		error = send_group(publisher, &first, &refusal, &why_refused, reason);
	if (!error)
		error = await_replicas(publisher, reason);
	if (!error && refusal)
		*reason = why_refused;
	return error ? error : refusal;
}

/* ---- connections ---- */

static int connect_master(struct publisher *publisher, struct reason *reason)
{
	publisher->clock_ms = fleet_now_ms();
	return broker_open(&publisher->broker, publisher->options, BROKER_WRITE, reason);
}

/* Whether another try may succeed: after a restart, or a failover. -EBADF: no connection is open. */
static bool is_passing(int error, const struct reason *reason)
{
	return error == -ECONNRESET || error == -EPIPE || error == -ETIMEDOUT ||
	       error == -ECONNREFUSED || error == -EBADF || error == -EROFS ||
	       error == -EHOSTUNREACH || error == -ENETUNREACH || error == -ENOTCONN ||
	       error == -ENOENT || /* a Unix socket is gone until the broker is back */
	       is_of_server(error, reason);
}

/* Sends the entries from number `first` on. If that fails, finds the master again and sends the whole outbox. */
static int deliver(struct publisher *publisher, size_t first, struct reason *reason)
{
	int error = send_entries(publisher, first, reason), pause_ms = 0;
	const __s64 deadline_ms = fleet_now_ms() + RECONNECT_MS;

	while (is_passing(error, reason) && fleet_now_ms() < deadline_ms) {
		clock_pause(pause_ms = pause_longer(pause_ms, RETRY_MIN_MS, RETRY_MAX_MS));
		broker_close(&publisher->broker);
		for (size_t i = 0; i < publisher->outbox.count; i++)
			publisher->outbox.entries[i].may_be_seen = true;
		error = connect_master(publisher, reason);
		if (!error)
			error = send_entries(publisher, 0, reason);
	}
	return is_of_server(error, reason) ? -EROFS : error;
}

int publisher_open(struct publisher *publisher, const struct fleet_options *options, const char *fleet,
		   const char *list, const char *dir, struct reason *reason)
{
	int error;

	*publisher = (struct publisher){ .options = options, .fleet = fleet, .list = list, .dir = dir };
	publisher->broker.connection.fd = publisher->outbox.fd = -1;
	publisher->lines = malloc(FLEET_ENTRY_BYTES);
	if (!publisher->lines)
		return reason_set(reason, -ENOMEM, "not enough memory");
	/* Connects first, because that may be slow and an open outbox is locked. */
	error = connect_master(publisher, reason);
	if (!error)
		error = outbox_open(&publisher->outbox, dir, list, reason);
	publisher->resent = error ? 0 : publisher->outbox.count;
	if (publisher->resent)
		error = deliver(publisher, 0, reason);
	publisher->changed = 0;
	publisher->first = (struct fleet_position){};
	return error;
}

void publisher_pause(struct publisher *publisher)
{
	outbox_close(&publisher->outbox);
}

int publisher_resume(struct publisher *publisher, struct reason *reason)
{
	const __s64 offset_ms = publisher->broker.offset_ms;
	const bool was_paused = publisher->outbox.fd < 0;

	if (was_paused || fleet_now_ms() - publisher->clock_ms >= CLOCK_MS) {
		publisher->clock_ms = fleet_now_ms();
		if (broker_read_clock(&publisher->broker, reason)) {
			/* If no master can be reached, the changes go to the outbox all the same. */
			broker_close(&publisher->broker);
			if (connect_master(publisher, reason))
				publisher->broker.offset_ms = offset_ms;
		}
	}
	return was_paused ? outbox_open(&publisher->outbox, publisher->dir, publisher->list, reason) : 0;
}

void publisher_close(struct publisher *publisher)
{
	broker_close(&publisher->broker);
	outbox_close(&publisher->outbox);
	free(publisher->lines);
	publisher->lines = NULL;
}

/* ---- changes ---- */

/* The queued lines become an entry of the outbox. */
static int close_entry(struct publisher *publisher, struct reason *reason)
{
	int error;

	if (!publisher->count)
		return 0;
	error = outbox_add(&publisher->outbox, publisher->lines, publisher->bytes,
			   publisher->has_expected ? &publisher->expected : NULL, reason);
	publisher->count = publisher->bytes = 0;
	return error;
}

/* Sends what waits. With `expected`, that is only the first entry: its answer decides about the others. */
static int send_queued(struct publisher *publisher, struct reason *reason)
{
	size_t first = 0;
	int error = outbox_sync(&publisher->outbox, reason);

	while (first < publisher->outbox.count && publisher->outbox.entries[first].is_sent)
		first++;
	publisher->has_expected = false;
	if (!error && first < publisher->outbox.count)
		error = deliver(publisher, first, reason);
	return error;
}

int publisher_put(struct publisher *publisher, const struct rule *rule, bool is_added, struct reason *reason)
{
	char line[LOG_LINE_BYTES];
	const size_t length = strlen(log_line_format(rule, is_added, broker_now_ms(&publisher->broker), line));
	int error = 0;

	/* A broker counts an end of line for each line. */
	if (publisher->count == FLEET_ENTRY_LINES || publisher->bytes + length + 2 > FLEET_ENTRY_BYTES) {
		error = close_entry(publisher, reason);
		if (!error && (publisher->has_expected || publisher->outbox.count % SENT_AT_ONCE == 0))
			error = send_queued(publisher, reason);
	}
	if (error)
		return error;
	if (publisher->count++)
		publisher->lines[publisher->bytes++] = '\n';
	memcpy(publisher->lines + publisher->bytes, line, length);
	publisher->bytes += length;
	return 0;
}

int publisher_flush(struct publisher *publisher, struct reason *reason)
{
	int error = close_entry(publisher, reason);

	return error ? error : send_queued(publisher, reason);
}

/* ---- functions of the broker ---- */

static const char functions[] =
#include "fleet.lua.h"
	;

int functions_load(struct broker *broker, const char *fleet, unsigned int log_entries, char id[FLEET_ID_BYTES],
		   struct reason *reason)
{
	CODEC_FREED redisReply *reply = NULL;
	unsigned long long random[2];
	const char *given;
	int error;

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return reason_set(reason, -EAGAIN, "no random numbers yet");
	error = connection_ask(&broker->connection, NULL, reason, "FUNCTION LOAD REPLACE %s", functions);
	if (!error)
		error = connection_ask(&broker->connection, &reply, reason,
				       "FCALL xc_init 1 xc:%s:meta %016llx%016llx %u", fleet, random[0], random[1],
				       log_entries);
	if (error)
		return error;
	given = codec_text_of(reply, 0);
	if (!given || strlen(given) >= FLEET_ID_BYTES)
		return reason_set(reason, -EPROTO,
				  "the broker's answer is not that of xdp-cuckoo's function");
	strcpy(id, given);
	return 0;
}
