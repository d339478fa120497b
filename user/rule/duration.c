// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Times in rules and options, for example "1h30m". */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "rule/rule.h"

static const struct {
	char name;
	__u32 seconds;
} units[] = { { 'w', 604800 }, { 'd', 86400 }, { 'h', 3600 }, { 'm', 60 }, { 's', 1 } };

#define UNITS (sizeof(units) / sizeof(units[0]))

int rule_time_parse(const char *text, __s64 *ms)
{
	__u64 seconds = 0;
	size_t unit = 0; /* the largest that may come next */

	do {
		const char *digits = text;
		__u64 number = 0;

		for (; *text >= '0' && *text <= '9' && number <= RULE_TIMEOUT_MAX_S; text++)
			number = 10 * number + (*text - '0');
		if (text == digits || number > RULE_TIMEOUT_MAX_S)
			return -EINVAL;
		if (!*text && !unit) {
			unit = UNITS - 1; /* a number alone */
		} else {
			while (unit < UNITS && units[unit].name != *text)
				unit++;
			if (unit == UNITS)
				return -EINVAL;
			text++;
		}
		seconds += number * units[unit++].seconds;
	} while (*text);
	if (!seconds || seconds > RULE_TIMEOUT_MAX_S)
		return -EINVAL;
	*ms = 1000 * (__s64)seconds;
	return 0;
}

const char *rule_time_format(__s64 ms, char text[RULE_TIME_BYTES])
{
	__u64 seconds = ms > 0 ? (ms + 999) / 1000 : 0;
	size_t used = 0;

	for (size_t i = 0; i < UNITS; i++) {
		__u64 number = seconds / units[i].seconds;

		seconds %= units[i].seconds;
		if (number || (i == UNITS - 1 && !used))
			used += snprintf(text + used, RULE_TIME_BYTES - used, "%llu%c", (unsigned long long)number,
					 units[i].name);
	}
	return text;
}
