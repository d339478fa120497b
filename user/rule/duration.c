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

/* Reads the digits at *text. -EINVAL: there is no digit, or the number is larger than any timeout. */
static int take_number(const char **text, __u64 *number)
{
	const char *start = *text;

	*number = 0;
	for (; **text >= '0' && **text <= '9'; (*text)++) {
		*number = 10 * *number + (**text - '0');
		if (*number > RULE_TIMEOUT_MAX_S)
			return -EINVAL;
	}
	return *text == start ? -EINVAL : 0;
}

/* Reads the unit at *text; units before number `first` are not allowed. UNITS where there is none. */
static size_t take_unit(const char **text, size_t first)
{
	for (size_t i = first; i < UNITS; i++) {
		if (**text == units[i].name) {
			(*text)++;
			return i;
		}
	}
	return UNITS;
}

int rule_time_parse(const char *text, __s64 *ms)
{
	__u64 number, seconds = 0;
	size_t next = 0; /* the largest unit that may follow the last one */

	do {
		bool is_first = !next;
		size_t unit;

		if (take_number(&text, &number))
			return -EINVAL;
		unit = is_first && !*text ? UNITS - 1 : take_unit(&text, next);
		if (unit == UNITS)
			return -EINVAL;
		seconds += number * units[unit].seconds;
		next = unit + 1;
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
