// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "fleet/functions.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <sys/random.h>

static const char functions[] =
#include "fleet.lua.h"
	;

int functions_load(struct broker *broker, const char *fleet, unsigned int log_entries, char id[FLEET_ID_BYTES],
		   struct reason *reason)
{
	char key[FLEET_KEY_BYTES], new_id[FLEET_ID_BYTES], entries[16];
	uint64_t random[2];
	redisReply *reply;
	int error;

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return reason_set(reason, -EAGAIN, "no random numbers yet");
	snprintf(new_id, sizeof(new_id), "%016" PRIx64 "%016" PRIx64, random[0], random[1]);
	snprintf(entries, sizeof(entries), "%u", log_entries);
	error = connection_ask(&broker->connection, &reply, reason, "FUNCTION", "LOAD", "REPLACE", functions, NULL);
	if (error)
		return error;
	codec_free(reply);
	error = connection_ask(&broker->connection, &reply, reason, "FCALL", "xc_init", "1",
			       fleet_key(key, fleet, "meta"), new_id, entries, NULL);
	if (error)
		return error;
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 || reply->element[0]->type != REDIS_REPLY_STRING ||
	    reply->element[0]->len >= FLEET_ID_BYTES)
		error = reason_set(reason, -EPROTO, "the broker's answer is not that of xdp-cuckoo's function");
	else
		strcpy(id, reply->element[0]->str);
	codec_free(reply);
	return error;
}

int functions_panic(struct broker *broker, const char *fleet, bool is_on, struct reason *reason)
{
	char meta[FLEET_KEY_BYTES], ctl[FLEET_KEY_BYTES];
	redisReply *reply;
	int error = connection_ask(&broker->connection, &reply, reason, "FCALL", "xc_panic", "2",
				   fleet_key(meta, fleet, "meta"), fleet_key(ctl, fleet, "ctl"), is_on ? "on" : "off",
				   NULL);

	codec_free(reply);
	return error;
}

/* Calls a function that changes what hosts may delete, with the list and a word. */
static int call_delete(struct broker *broker, const char *function, const char *fleet, const char *list,
		       const char *word, __u64 *rules, struct reason *reason)
{
	char meta[FLEET_KEY_BYTES], accept[FLEET_KEY_BYTES];
	redisReply *reply;
	int error = connection_ask(&broker->connection, &reply, reason, "FCALL", function, "2",
				   fleet_list_key(meta, fleet, list, "meta"), fleet_key(accept, fleet, "accept"), list,
				   word, NULL);

	*rules = !error && reply->type == REDIS_REPLY_INTEGER ? reply->integer : 0;
	if (!error && reply->type != REDIS_REPLY_INTEGER)
		error = reason_set(reason, -ENOENT, "the broker has no list '%s'", list);
	codec_free(reply);
	return error;
}

int functions_delete(struct broker *broker, const char *fleet, const char *list, __s64 until_ms, __u64 *rules,
		     struct reason *reason)
{
	char until[24];

	snprintf(until, sizeof(until), "%lld", (long long)until_ms);
	return call_delete(broker, "xc_delete", fleet, list, until, rules, reason);
}

int functions_stage_deletion(struct broker *broker, const char *fleet, const char *list, bool is_on, __u64 *rules,
			     struct reason *reason)
{
	return call_delete(broker, "xc_stage_deletion", fleet, list, is_on ? "on" : "off", rules, reason);
}

int functions_is_leaving(struct broker *broker, const char *fleet, const char *list, bool *is_leaving,
			 struct reason *reason)
{
	char accept[FLEET_KEY_BYTES], field[FLEET_KEY_BYTES];
	redisReply *reply;
	int error;

	snprintf(field, sizeof(field), FLEET_LEAVING "%s", list);
	error = connection_ask(&broker->connection, &reply, reason, "HGET", fleet_key(accept, fleet, "accept"), field,
			       NULL);
	*is_leaving = !error && reply->type == REDIS_REPLY_STRING;
	codec_free(reply);
	return error;
}

int functions_reserve(struct broker *broker, const char *fleet, const char *list, __u64 rules, struct reason *reason)
{
	char meta[FLEET_KEY_BYTES], number[24];
	redisReply *reply;
	int error;

	snprintf(number, sizeof(number), "%" PRIu64, (uint64_t)rules);
	error = connection_ask(&broker->connection, &reply, reason, "FCALL", "xc_reserve", "1",
			       fleet_list_key(meta, fleet, list, "meta"), number, NULL);
	codec_free(reply);
	return error;
}
