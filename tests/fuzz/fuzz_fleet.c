// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Fuzzes what a broker sends: input is the bytes of its replies, which come in pieces. Whatever they are, a position is
 * its text, and a line is a rule or is refused with a reason in one line.
 */
#include "fuzz.h"

#include "fleet/fleet.h"
#include "fleet/connection.h"
#include "fleet/snapshot.h"

#define PIECE_BYTES 37
#define NOW_MS 1800000000000

static void check_line(const char *line)
{
	char again_line[LOG_LINE_BYTES];
	struct rule rule, again;
	struct reason reason;
	bool is_added, was_added;

	reason.text[0] = '\0';
	if (log_line_parse(line, NOW_MS, &rule, &is_added, &reason)) {
		fuzz_check_reason(reason.text);
		return;
	}
	fuzz_check_rule(&rule);
	if (rule.timeout_ms < 0)
		return;
	log_line_format(&rule, is_added, NOW_MS, again_line);
	fuzz_check(!log_line_parse(again_line, NOW_MS, &again, &was_added, &reason) && was_added == is_added, "%s",
		   again_line);
	fuzz_check(fuzz_same_flows(&rule, &again), "%s", again_line);
}

static void check_entry(const redisReply *reply)
{
	char position[FLEET_POSITION_BYTES];
	struct fleet_position again;
	struct log_entry entry;
	char *lines, *rest, *line;

	if (log_entry_of(reply, &entry))
		return;
	fuzz_check(!fleet_position_parse(fleet_position_format(entry.at, position), &again), "%s", position);
	fuzz_check(!fleet_position_compare(entry.at, again), "%s", position);
	if (!entry.rules)
		return;
	rest = lines = strndup(entry.rules, entry.rules_bytes);
	while ((line = strsep(&rest, "\n")))
		check_line(line);
	free(lines);
}

static void check_reply(const redisReply *reply, int depth)
{
	struct list_head head;
	struct reason reason;

	check_entry(reply);
	list_head_of(reply, &head, &reason);
	if (reply->type == REDIS_REPLY_STRING)
		check_line(reply->str);
	for (size_t i = 0; reply->type == REDIS_REPLY_ARRAY && depth < 8 && i < reply->elements; i++)
		check_reply(reply->element[i], depth + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct codec codec = {};
	struct reason reason;
	int error = 0;

	fuzz_check(!codec_open(&codec, &reason), "%s", reason.text);
	for (size_t at = 0; at < size && !error; at += PIECE_BYTES) {
		redisReply *reply = NULL;

		error = codec_feed(&codec, (const char *)data + at, size - at < PIECE_BYTES ? size - at : PIECE_BYTES);
		while (!error && !(error = codec_next(&codec, &reply)) && reply) {
			check_reply(reply, 0);
			codec_free(&reply);
		}
	}
	codec_close(&codec);
	return 0;
}
