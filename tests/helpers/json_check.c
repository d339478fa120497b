// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Whether standard input is one JSON value: status 0 or 1. */
#include <stdio.h>

#include <jansson.h>

int main(void)
{
	json_error_t error;
	json_t *value = json_loadf(stdin, JSON_REJECT_DUPLICATES, &error);

	if (!value)
		fprintf(stderr, "json_check: line %d: %s\n", error.line, error.text);
	json_decref(value);
	return value ? 0 : 1;
}
