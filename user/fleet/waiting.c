// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "fleet/waiting.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/hosts.h"
#include "base/clock.h"

#define LOOK_FIRST_MS 4 /* each pause between two looks is twice as long as the one before, up to: */
#define LOOK_MS 64
#define FORGET_MS 1000 /* hosts that are late then are looked at: they may be gone */
#define NOBODY_MS 7000 /* a host reports every 5 s */
#define WAIT_MS 60000
#define NAMED_MAX 3

/* Sends the command and takes a number. -errno. */
static int ask_number(struct connection *connection, size_t *number, struct reason *reason)
{
	redisReply *reply;
	int error = connection_expect(connection, &reply, CONNECTION_TIMEOUT_MS, reason);

	if (error)
		return error;
	*number = reply->type == REDIS_REPLY_INTEGER ? reply->integer : 0;
	codec_free(reply);
	return 0;
}

static int count_hosts(struct waiting *waiting, struct reason *reason)
{
	struct connection *connection = &waiting->reports->connection;
	char hosts[FLEET_KEY_BYTES], refused[FLEET_KEY_BYTES], first[24] = "+inf", last[24];
	int error;

	fleet_list_key(hosts, waiting->fleet, waiting->list, "hosts");
	fleet_list_key(refused, waiting->fleet, waiting->list, "refused");
	if (waiting->first.epoch)
		snprintf(first, sizeof(first), "%" PRIu64, (uint64_t)fleet_position_score(waiting->first));
	snprintf(last, sizeof(last), "%" PRIu64, (uint64_t)fleet_position_score(waiting->last));
	if (connection_put(connection, "ZCARD", hosts, NULL) ||
	    connection_put(connection, "ZCOUNT", hosts, last, "+inf", NULL) ||
	    connection_put(connection, "ZCOUNT", refused, first, "+inf", NULL))
		return reason_set(reason, -ENOMEM, "not enough memory");
	error = ask_number(connection, &waiting->hosts, reason);
	if (!error)
		error = ask_number(connection, &waiting->done, reason);
	if (!error)
		error = ask_number(connection, &waiting->refusing, reason);
	return error;
}

/* Forgets a host in the sets of the list. That is no more than tidy: it may be refused. */
static int forget(struct waiting *waiting, const char *host)
{
	static const char *const sets[] = { "hosts", "refused" };
	struct reason ignored;
	int error = 0;

	for (size_t i = 0; i < 2 && (!error || error == -EREMOTEIO); i++) {
		char key[FLEET_KEY_BYTES];
		redisReply *reply;

		error = connection_ask(&waiting->reports->connection, &reply, &ignored, "ZREM",
				       fleet_list_key(key, waiting->fleet, waiting->list, sets[i]), host, NULL);
		codec_free(reply);
	}
	return error == -EREMOTEIO ? 0 : error;
}

/*
 * Looks at the hosts of a set with a score from `low` to `high`: forgets those that are gone, and adds the names of the
 * first others to the text, with their reasons.
 */
static int look_at_hosts(struct waiting *waiting, const char *set, const char *low, const char *high,
			 struct reason *text, struct reason *reason)
{
	struct connection *connection = &waiting->reports->connection;
	size_t used = strlen(text->text), named = 0;
	char key[FLEET_KEY_BYTES];
	redisReply *names;
	int error = connection_ask(connection, &names, reason, "ZRANGEBYSCORE",
				   fleet_list_key(key, waiting->fleet, waiting->list, set), low, high, NULL);

	if (error)
		return error;
	for (size_t i = 0; names->type == REDIS_REPLY_ARRAY && i < names->elements && !error; i++) {
		struct fleet_host host = {};
		struct fleet_position at;

		snprintf(host.name, sizeof(host.name), "%.*s", FLEET_HOST_BYTES - 1,
			 names->element[i]->type == REDIS_REPLY_STRING ? names->element[i]->str : "");
		error = fleet_host_read(&host, waiting->reports, waiting->fleet, reason);
		if (!error && !fleet_host_at(&host, waiting->list, &at)) {
			error = forget(waiting, names->element[i]->str);
		} else if (!error && named++ < NAMED_MAX && used < sizeof(text->text)) {
			const char *why = fleet_host_field(&host, "why");

			const char *state = fleet_host_state(NULL, &host, broker_now_ms(waiting->reports));

			if (!strcmp(state, "level"))
				state = *set == 'h' ? "behind" : "refuses rules";
			used += snprintf(text->text + used, sizeof(text->text) - used, "; %s: %s%s%.*s", host.name,
					 state, *why && strcmp(why, " ") ? ": " : "", (int)strcspn(why, ";"), why);
		}
		codec_free(host.fields);
	}
	codec_free(names);
	return error;
}

static int look_at_late(struct waiting *waiting, struct reason *text, struct reason *reason)
{
	char last[24], first[24];
	int error;

	text->text[0] = '\0';
	snprintf(last, sizeof(last), "(%" PRIu64, (uint64_t)fleet_position_score(waiting->last));
	snprintf(first, sizeof(first), "%" PRIu64, (uint64_t)fleet_position_score(waiting->first));
	error = look_at_hosts(waiting, "hosts", "-inf", last, text, reason);
	if (!error && waiting->refusing)
		error = look_at_hosts(waiting, "refused", first, "+inf", text, reason);
	return error ? error : count_hosts(waiting, reason);
}

int waiting_for_hosts(struct waiting *waiting, struct reason *reason)
{
	const __s64 start_ms = fleet_now_ms();
	bool has_looked = false;
	struct reason late = {};
	int pause_ms = LOOK_FIRST_MS, error;

	for (;;) {
		const __s64 waited_ms = fleet_now_ms() - start_ms;
		size_t have;

		error = count_hosts(waiting, reason);
		if (!error && !has_looked && waited_ms >= FORGET_MS) {
			has_looked = true;
			error = look_at_late(waiting, &late, reason);
		}
		if (error)
			return error;
		have = waiting->done > waiting->refusing ? waiting->done - waiting->refusing : 0;
		if (waiting->hosts && have * 100 >= waiting->hosts * waiting->percent) {
			waiting->done = have;
			return 0;
		}
		if (waited_ms >= (waiting->hosts ? WAIT_MS : NOBODY_MS) ||
		    (waiting->hosts && waiting->done == waiting->hosts))
			break;
		clock_pause(pause_ms);
		pause_ms = 2 * pause_ms < LOOK_MS ? 2 * pause_ms : LOOK_MS;
	}
	if (!waiting->hosts)
		return reason_set(reason, -EBADE, "nobody follows the list '%s': no host has reported it",
				  waiting->list);
	error = look_at_late(waiting, &late, reason);
	waiting->done = waiting->done > waiting->refusing ? waiting->done - waiting->refusing : 0;
	return error ? error :
		       reason_set(reason, -EBADE, "%zu of %zu hosts have the change%s", waiting->done, waiting->hosts,
				  late.text);
}
