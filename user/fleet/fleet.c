// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "fleet/fleet.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/clock.h"
#include "fleet/follow_internal.h"
#include "io/whole_file.h"

#define END_DIGITS_MAX 15

const char *fleet_position_format(struct fleet_position position, char text[FLEET_POSITION_BYTES])
{
	snprintf(text, FLEET_POSITION_BYTES, "%" PRIu64 "-%" PRIu64, (uint64_t)position.epoch, (uint64_t)position.seq);
	return text;
}

static int parse_number(const char **text, __u64 *number)
{
	char *end;

	if (!isdigit((unsigned char)**text))
		return -EINVAL;
	errno = 0;
	*number = strtoull(*text, &end, 10);
	*text = end;
	return errno ? -EINVAL : 0;
}

int fleet_position_parse(const char *text, struct fleet_position *position)
{
	if (parse_number(&text, &position->epoch) || *text++ != '-' || parse_number(&text, &position->seq) || *text)
		return -EINVAL;
	return 0;
}

int fleet_position_compare(struct fleet_position a, struct fleet_position b)
{
	if (a.epoch != b.epoch)
		return a.epoch < b.epoch ? -1 : 1;
	return a.seq == b.seq ? 0 : a.seq < b.seq ? -1 : 1;
}

__u64 fleet_position_score(struct fleet_position position)
{
	return position.epoch * 1024 + position.seq;
}

bool fleet_is_staged(const char *list)
{
	const size_t length = strlen(list), suffix = strlen(FLEET_STAGED);

	return length > suffix && !strcmp(list + length - suffix, FLEET_STAGED);
}

const char *fleet_list_key(char key[FLEET_KEY_BYTES], const char *fleet, const char *list, const char *what)
{
	snprintf(key, FLEET_KEY_BYTES, "xc:%s:L:%s:%s", fleet, list, what);
	return key;
}

__s64 fleet_now_ms(void)
{
	return clock_ms(CLOCK_BOOTTIME);
}

__u64 fleet_random_below(__u64 limit)
{
	__u64 number = 0;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		number = fleet_now_ms();
	return limit ? number % limit : 0;
}

/* ---- the log of a list ---- */

enum log_step log_step(struct fleet_position at, struct fleet_position entry, const struct fleet_position *base)
{
	if (entry.epoch == at.epoch && entry.seq == at.seq + 1)
		return LOG_NEXT;
	if (entry.epoch == at.epoch || entry.seq || !base)
		return LOG_GAP;
	if (!fleet_position_compare(*base, at))
		return LOG_NEXT;
	return fleet_position_compare(*base, at) < 0 ? LOG_DIVERGED : LOG_GAP;
}

enum log_head log_head(struct fleet_position at, struct fleet_position last, bool is_master)
{
	const int order = fleet_position_compare(last, at);

	if (!order)
		return LOG_LEVEL;
	if (!last.epoch)
		return LOG_WIPED;
	if (order > 0)
		return LOG_BEHIND;
	/* A master never lags: what it lacks is gone. */
	return last.epoch == at.epoch && !is_master ? LOG_LAGGING : LOG_RESTORED;
}

int log_line_parse(const char *line, __s64 now_ms, struct rule *rule, bool *is_added, struct reason *reason)
{
	const char *end = line + 2;
	size_t digits;
	__s64 end_ms;
	int error;

	*is_added = !strncmp(line, "+ ", 2);
	if (!strncmp(line, "- ", 2))
		return rule_parse(line + 2, rule, reason);
	if (!*is_added)
		return reason_set(reason, -EOPNOTSUPP, "'%s': this version knows no such line", line);
	digits = strspn(end, "0123456789");
	if (!digits || digits > END_DIGITS_MAX || end[digits] != ' ')
		return reason_set(reason, -EINVAL, "'%s': the end is missing", line);
	end_ms = atoll(end);
	error = rule_parse(end + digits + 1, rule, reason);
	if (error)
		return error;
	if (rule->timeout_ms)
		return reason_set(reason, -EINVAL, "'%s': a timeout has no place here", line);
	if (!end_ms)
		return 0;
	rule->timeout_ms = end_ms > now_ms ? end_ms - now_ms : -1;
	if (rule->timeout_ms > RULE_TIMEOUT_MAX_S * 1000LL)
		rule->timeout_ms = RULE_TIMEOUT_MAX_S * 1000LL;
	return 0;
}

const char *log_line_format(const struct rule *rule, bool is_added, __s64 now_ms, char line[LOG_LINE_BYTES])
{
	struct rule without_end = *rule;
	char text[RULE_TEXT_BYTES];

	without_end.timeout_ms = 0;
	rule_format(&without_end, text);
	if (is_added)
		snprintf(line, LOG_LINE_BYTES, "+ %lld %s",
			 (long long)(rule->timeout_ms ? now_ms + rule->timeout_ms : 0), text);
	else
		snprintf(line, LOG_LINE_BYTES, "- %s", text);
	return line;
}

/* ---- messages of follow ---- */

int follow_receive(int fd, struct follow_message *message, char *text, __s64 deadline_ms)
{
	int error = unprivileged_receive(fd, message, sizeof(*message), deadline_ms);

	if (!error && message->bytes > FOLLOW_BYTES_MAX)
		error = -EPROTO;
	if (!error)
		error = unprivileged_receive(fd, text, message->bytes, deadline_ms);
	if (!error)
		text[message->bytes] = '\0';
	return error;
}

const struct follow_state_words follow_states[FOLLOW_STATES] = {
	[FOLLOW_LEVEL] = { 0, ONCE_ENDS, "level", NULL },
	[FOLLOW_UNHEARD] = { 0, ONCE_WAITS, "level", NULL },
	[FOLLOW_MISSING] = { 0, ONCE_FAILS, "level", NULL },
	[FOLLOW_BEHIND] = { 1, ONCE_WAITS, "behind", NULL },
	[FOLLOW_LAGGING] = { 2, ONCE_WAITS, "lagging", "this replica of the broker has not received all yet" },
	[FOLLOW_NEW] = { 3, ONCE_WAITS, "new", "reads the whole list" },
	[FOLLOW_GAP] = { 4, ONCE_WAITS, "gap", "the log no longer has what comes next; reads the whole list" },
	[FOLLOW_RESTORED] = { 5, ONCE_WAITS, "restored", "the broker's state is older than this host's" },
	[FOLLOW_OLDER] = { 5, ONCE_WAITS, "restored", "the broker's state is older than this host's" },
	[FOLLOW_DIVERGED] = { 6, ONCE_WAITS, "diverged", "the broker has lost entries that this host has" },
	[FOLLOW_BROKEN] = { 7, ONCE_FAILS, "broken", "it cannot be read" },
	[FOLLOW_HELD] = { 8, ONCE_STOPS, "held", NULL },
	[FOLLOW_TAKEN] = { 8, ONCE_FAILS, "held", NULL },
	[FOLLOW_WIPED] = { 9, ONCE_FAILS, "wiped", "the broker no longer has it; it stays as it is" },
	[FOLLOW_LEAVING] = { 9, ONCE_WAITS, "wiped", "the broker no longer has it; it goes here, too" },
};
