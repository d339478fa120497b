// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "fleet/log_entry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define END_DIGITS_MAX 15

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
