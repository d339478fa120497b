// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* If any allocation of jansson fails, the metrics are complete or reported as incomplete. */
#include "unit/test.h"
#include "exporter/metrics.h"

#include <stdbool.h>

static unsigned int allocations, fails_at; /* 0: none */

/* Whether all later allocations fail too. */
static bool stays_short;

static void *allocate(size_t bytes)
{
	const unsigned int at = ++allocations;

	return fails_at && (at == fails_at || (stays_short && at > fails_at)) ? NULL : malloc(bytes);
}

static json_t *make(int *error)
{
	json_t *metrics = metrics_begin();
	json_t *packets = metrics_family(metrics, "packets", METRIC_COUNTER, "Packets.");
	json_t *slots = metrics_family(metrics, "slots", METRIC_GAUGE, "Slots.");

	for (int i = 0; i < 12; i++) {
		char name[24];

		snprintf(name, sizeof(name), "label%d", i);
		metrics_sample(packets, json_pack("{s:s, s:s}", "name", "default", name, "value"), i);
	}
	metrics_sample(slots, json_pack("{s:s}", "name", "default"), 1);
	*error = metrics_end();
	return metrics;
}

static void write_text(const json_t *metrics, char **text)
{
	size_t bytes;
	FILE *to = open_memstream(text, &bytes);

	metrics_write(to, metrics);
	fclose(to);
}

TEST(test_metrics_are_whole_or_reported_incomplete)
{
	unsigned int needed, told;
	char *whole, *text;
	json_t *metrics;
	int error;

	allocations = fails_at = 0;
	metrics = make(&error);
	needed = allocations;
	assert_int_equal(0, error);
	write_text(metrics, &whole);
	json_decref(metrics);
	assert_non_null(strstr(whole, "packets{name=\"default\",label11=\"value\"} 11\n"));
	for (int both = 0; both < 2; both++) {
		stays_short = both;
		told = 0;
		for (unsigned int at = 1; at <= needed; at++) {
			allocations = 0;
			fails_at = at;
			metrics = make(&error);
			fails_at = 0;
			told += error == -ENOMEM;
			write_text(metrics, &text);
			if (!error && strcmp(whole, text))
				fail_msg("allocation %u fails, and what is not whole is taken for it: %s", at, text);
			free(text);
			json_decref(metrics);
		}
		if (told < needed / 2)
			fail_msg("of %u failures only %u were told", needed, told);
	}
	free(whole);
}

/* Other code in this process has an allocator of its own. */
TEST(test_the_allocator_of_the_process_stays)
{
	json_malloc_t before, after;
	json_t *metrics;
	int error;

	json_get_alloc_funcs(&before, NULL);
	metrics = make(&error);
	json_decref(metrics);
	json_get_alloc_funcs(&after, NULL);
	assert_ptr_equal(allocate, before);
	assert_ptr_equal(before, after);
}

int main(void)
{
	json_set_alloc_funcs(allocate, free);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
