// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "fleet/log_reader_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define IN_A_ROW 3
#define HEARTBEAT_MS 5000 /* between two reports that say nothing new */
#define COUNT_MS 10000    /* between two looks at the number of hosts */
#define FIELDS_MAX 128
#define OTHERS_MAX 2    /* another `follow` of this host may report once or twice: that of `follow --once` */
#define HOSTS_MAX 50000 /* the pauses of a host grow with the number of hosts, up to this: any host may add names */

void report_begin(struct report *report)
{
	*report->sent = '\0';
	report->sent_ms = report->counted_ms = report->due_ms = 0;
}

/* Notes when reports begin to fail, and when they succeed again. */
static void note(struct report *report, const char *where, const char *why)
{
	if (report->is_refused == !!why)
		return;
	report->is_refused = why;
	reason_set(&report->noted, 0,
		   why ? "the broker at %.200s refuses the report of this host, so 'fleet status' and 'publish --wait' do not know its state: %s" :
			 "the broker at %.200s takes the report of this host again",
		   where, why);
}

/* `run`: which process had reported last by the name of this host; NULL: none that says so. */
static void note_run(struct report *report, const char *host, const char *run)
{
	report->others = *report->sent && run && strcmp(run, report->run) ? report->others + 1 : 0;
	if (report->others == OTHERS_MAX)
		reason_set(&report->noted, 0,
			   "another host reports as '%s', too, so 'fleet status' and 'publish --wait' count both as one; write "
			   "host = NAME into [fleet]",
			   host);
}

/*
 * Queues the commands: if `must_count`, asks who reported last; then the host's fields, and its place in a sorted set of
 * each list, by lines like "at:LIST POSITION" or "no:LIST POSITION". Returns the number of their replies; the last one is
 * the number of hosts if `must_count`.
 */
static int put_report(const struct report *report, struct connection *connection, const char *fleet, const char *host,
		      char *lines, bool must_count)
{
	char key[FLEET_KEY_BYTES], first[ABI_NAME_BYTES] = "";
	const char *words[6 + 2 * FIELDS_MAX];
	int count = 0, replies = 1 + must_count;

	snprintf(key, sizeof(key), "xc:%s:host:%s", fleet, host);
	if (must_count)
		connection_put(connection, "HMGET %s run", key);
	words[count++] = "HSET";
	words[count++] = key;
	words[count++] = "run";
	words[count++] = report->run;
	words[count++] = "shared";
	words[count++] = report->others >= OTHERS_MAX ? "1" : "0";
	for (char *next, *line = lines; *line && count <= 4 + 2 * FIELDS_MAX; line = next) {
		char *end = strchrnul(line, '\n'), *space = memchr(line, ' ', end - line);
		char list[ABI_NAME_BYTES];
		struct fleet_position at;
		const char *sent;

		next = *end ? end + 1 : end;
		*end = '\0';
		if (!space)
			continue;
		if (!strncmp(line, "at:", 3) || !strncmp(line, "no:", 3)) {
			snprintf(list, sizeof(list), "%.*s", (int)(space - line - 3), line + 3);
			if (!*first)
				strcpy(first, list);
			sent = strstr(report->sent, line);
			if (!(sent && sent[strlen(line)] == '\n') && !fleet_position_parse(space + 1, &at)) {
				connection_put(connection, "ZADD xc:%s:L:%s:%s %llu %s", fleet,
					       list, *line == 'a' ? "hosts" : "refused",
					       fleet_position_score(at), host);
				replies++;
			}
		}
		*space = '\0';
		words[count++] = line;
		words[count++] = space + 1;
	}
	connection_put_words(connection, count, words, NULL);
	if (!must_count)
		return replies;
	connection_put(connection, "EXPIRE %s %d", key, FLEET_HOST_EXPIRE_S);
	connection_put(connection, "ZCARD xc:%s:L:%s:hosts", fleet, first);
	return replies + 2;
}

/* Over `broker`, which is at hand. */
static int send_now(struct report *report, struct broker *broker, const struct fleet_options *options,
		    const char *fleet, char *lines, struct reason *reason)
{
	const bool must_count = !report->counted_ms || fleet_now_ms() - report->counted_ms >= COUNT_MS;
	char host[FLEET_HOST_BYTES], sent[REPORT_BYTES];
	struct reason refusal;
	const char *why = NULL;
	int replies;

	if (options->host)
		snprintf(host, sizeof(host), "%s", options->host);
	else if (gethostname(host, sizeof(host)))
		snprintf(host, sizeof(host), "unnamed");
	host[sizeof(host) - 1] = '\0';
	if (!*report->run)
		snprintf(report->run, sizeof(report->run), "%016llx", (unsigned long long)fleet_random_below(~0ULL));
	snprintf(sent, sizeof(sent), "%s", lines);
	replies = put_report(report, &broker->connection, fleet, host, lines, must_count);
	for (int i = 0; i < replies; i++) {
		CODEC_FREED redisReply *reply = NULL;
		const int error =
			connection_get(&broker->connection, &reply, CONNECTION_TIMEOUT_MS, reason);

		if (error)
			return error;
		if (reply->type == REDIS_REPLY_ERROR) {
			reason_set(&refusal, 0, "%s", reply->str);
			why = refusal.text;
		} else if (must_count && !i) {
			note_run(report, host, codec_text_of(reply, 0));
		} else if (must_count && i == replies - 1 && reply->type == REDIS_REPLY_INTEGER) {
			report->hosts = (__u64)reply->integer < HOSTS_MAX ? reply->integer : HOSTS_MAX;
			report->counted_ms = fleet_now_ms();
		}
	}
	note(report, broker->connection.where, why);
	strcpy(report->sent, sent);
	return 0;
}

int report_send(struct report *report, struct broker *broker, const struct fleet_options *options, const char *fleet,
		char *lines, bool is_awaited, struct reason *reason)
{
	/* All hosts together report at most five times in a millisecond. */
	const __s64 pause_ms = report->hosts > 5 * REPORT_MS ? (__s64)report->hosts / 5 : REPORT_MS,
		    now_ms = fleet_now_ms();
	const char *seen = strstr(lines, "\nseen ");
	const bool is_new = strncmp(report->sent, lines, seen ? (size_t)(seen - lines) : strlen(lines));

	report->due_ms = 0;
	if (!*lines || (!is_new && now_ms - report->sent_ms < HEARTBEAT_MS))
		return 0;
	report->credit_ms += now_ms - report->credited_ms;
	report->credited_ms = now_ms;
	if (report->credit_ms > IN_A_ROW * pause_ms)
		report->credit_ms = IN_A_ROW * pause_ms;
	if (!is_awaited && report->credit_ms < pause_ms) {
		report->due_ms = now_ms + pause_ms - report->credit_ms;
		return 0;
	}
	report->credit_ms = report->credit_ms > pause_ms ? report->credit_ms - pause_ms : 0;
	report->sent_ms = now_ms;
	return send_now(report, broker, options, fleet, lines, reason);
}
