// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Fuzzes what gobgp prints: what becomes of it are sound drop rules for one's own destinations, each is added before it is
 * deleted, and a reader that sees the input in two pieces writes the same lines. A line that is not JSON is read as a
 * packet with gobgp's text.
 */
#include "fuzz.h"

#include <errno.h>
#include <stdlib.h>

#include "feed/flowspec/internal.h"

#define RULES_MAX 2000

static const char *const own[] = { "dst 198.51.100.0/24", "dst 2001:db8::/32" };

struct reading {
	struct route_stream stream;
	struct announced announced;
	FILE *to;
	char *text;
	size_t length;
};

static void check_line(const struct flowspec_options *options, char *line)
{
	struct reason reason;
	struct rule rule;
	bool is_own = false;

	fuzz_check(!strncmp(line, "add ", 4) || !strncmp(line, "del ", 4), "%s", line);
	fuzz_check(!rule_parse(line + 4, &rule, &reason), "%s: %s", line, reason.text);
	fuzz_check(rule.action == RULE_DROP && !rule.timeout_ms == (*line == 'd'), "%s", line);
	for (size_t i = 0; i < options->own_count; i++)
		is_own |= rule_covers(&options->own[i], &rule);
	fuzz_check(is_own || *line == 'd', "%s", line);
}

static void read_route(struct reading *reading, const char *text)
{
	struct reason reason;
	struct route route;
	bool is_refused = false;
	int error = route_read(&route, text, reading->announced.options, &reason);

	fuzz_check(!error || error == -EBADMSG, "%d", error);
	if (error)
		fuzz_check_reason(reason.text);
	if (!error && route.key)
		fuzz_check(!announced_take(&reading->announced, &route, reading->to, &is_refused), "memory");
	if (is_refused)
		fuzz_check_reason(route.why.text);
	fuzz_check(route.rules.count <= ROUTE_RULES_MAX, "%zu rules", route.rules.count);
	route_close(&route);
}

static void read_bytes(struct reading *reading, const uint8_t *data, size_t size)
{
	while (size) {
		struct reason reason;
		size_t taken;
		int got = route_stream_take(&reading->stream, (const char *)data, size, &taken, &reason);

		fuzz_check(taken <= size && (got || taken == size), "%zu of %zu", taken, size);
		data += taken;
		size -= taken;
		if (got < 0)
			fuzz_check_reason(reason.text);
		if (got > 0)
			read_route(reading, reading->stream.route);
	}
}

/* Reads each line as a packet. */
static void read_packets(struct reading *reading, const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size), *rest = text;

	for (char *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n")) {
		struct flow_peer told;

		if (!session_read(line, 1795569606, &told))
			read_route(reading, line);
		else
			fuzz_check(announced_take_session(&reading->announced, &told) >= 0, "memory");
	}
	free(text);
}

/* A report has as many flows as are held and refused, and one line for each. */
static void check_report(const struct announced *announced)
{
	__u64 flows = 0;
	size_t length;
	char *text;
	FILE *to = open_memstream(&text, &length);

	announced_report(announced, to);
	fclose(to);
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		fuzz_check(!strncmp(line, FLOW_REPORT_LINE, strlen(FLOW_REPORT_LINE)), "%s", line);
		fuzz_check(strlen(line) < RULE_TEXT_BYTES + FLOW_NAME_BYTES, "%s", line);
		flows += !strncmp(line, FLOW_REPORT_LINE "flow ", strlen(FLOW_REPORT_LINE "flow "));
	}
	fuzz_check(flows == announced->accepted_count + announced->refused_count, "%llu flows",
		   (unsigned long long)flows);
	free(text);
}

/* Reads the first `middle` bytes, then the rest. Returns the lines. */
static char *read_all(const struct flowspec_options *options, const uint8_t *data, size_t middle, size_t size)
{
	struct reading reading = {};
	const struct announced *announced = &reading.announced;

	announced_open(&reading.announced, options, 5000);
	reading.announced.limits_kinds = true;
	fuzz_check(!route_stream_open(&reading.stream), "memory");
	reading.to = open_memstream(&reading.text, &reading.length);
	if (size && *data != '[' && *data != '{') {
		read_packets(&reading, data, size);
	} else {
		read_bytes(&reading, data, middle);
		read_bytes(&reading, data + middle, size - middle);
	}
	fuzz_check(!announced_take_waiting(&reading.announced, reading.to), "memory");
	fuzz_check(announced->accepted_count <= options->flows_max && announced->rules_count <= options->rules_max,
		   "%llu flows, %llu rules", (unsigned long long)announced->accepted_count,
		   (unsigned long long)announced->rules_count);
	check_report(announced);
	fclose(reading.to);
	route_stream_close(&reading.stream);
	announced_close(&reading.announced);
	return reading.text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct flowspec_options options = {
		.flows_max = 16, .rules_max = RULES_MAX, .takes_blackholes = true, .action = RULE_DROP
	};
	struct reason reason;
	char *whole, *pieces;

	for (options.own_count = 0; options.own_count < 2; options.own_count++)
		fuzz_check(!rule_parse(own[options.own_count], &options.own[options.own_count], &reason), "%s",
			   reason.text);
	whole = read_all(&options, data, 0, size);
	pieces = read_all(&options, data, size / 2, size);
	fuzz_check(!strcmp(whole, pieces), "'%s' and '%s'", whole, pieces);
	for (char *line = strtok(whole, "\n"); line; line = strtok(NULL, "\n"))
		check_line(&options, line);
	free(whole);
	free(pieces);
	return 0;
}
