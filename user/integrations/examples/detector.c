// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A small detector: detector THRESHOLD [STATE]. It reads lines, each the source address of one packet. It blocks
 * for ten minutes every address that came more than THRESHOLD times, all in one change.
 *
 *   cc detector.c $(pkg-config --cflags --libs xdp-cuckoo) -o detector
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xdp-cuckoo.h>

#define SOURCES 65536
#define BLOCKED_MS (10 * 60 * 1000)

static struct source {
	struct xdp_cuckoo_rule rule; /* blocks this source */
	unsigned long seen;
} sources[SOURCES];

static int read_address(const char *text, struct xdp_cuckoo_rule *rule)
{
	memset(rule, 0, sizeof(*rule));
	rule->timeout_ms = BLOCKED_MS;
	if (inet_pton(AF_INET, text, rule->src) == 1) {
		rule->family = AF_INET;
		rule->src_bits = 32;
	} else if (inet_pton(AF_INET6, text, rule->src) == 1) {
		rule->family = AF_INET6;
		rule->src_bits = 128;
	}
	return rule->src_bits > 0;
}

/* Finds the source's place by a hash of its address. When all places are taken, new sources are not counted. */
static void count(const struct xdp_cuckoo_rule *rule)
{
	size_t place = 0;

	for (size_t i = 0; i < sizeof(rule->src); i++)
		place = place * 131 + rule->src[i];
	for (size_t i = 0; i < SOURCES; i++) {
		struct source *source = &sources[(place + i) % SOURCES];

		if (!source->seen)
			source->rule = *rule;
		if (memcmp(&source->rule, rule, sizeof(*rule)) == 0) {
			source->seen++;
			return;
		}
	}
}

int main(int argc, char **argv)
{
	const unsigned long threshold = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
	struct xdp_cuckoo_filter *filter;
	struct xdp_cuckoo_rule rule;
	char line[64];
	int error = xdp_cuckoo_open(NULL, argc > 2 ? argv[2] : NULL, XDP_CUCKOO_CHANGE, &filter);

	while (!error && fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\r\n")] = '\0';
		if (read_address(line, &rule))
			count(&rule);
	}
	if (!error)
		error = xdp_cuckoo_begin(filter);
	/* Errors of one rule do not matter, such as that it is already permanent. Fatal errors show at the commit. */
	for (size_t i = 0; i < SOURCES && !error; i++)
		if (sources[i].seen > threshold)
			xdp_cuckoo_add(filter, &sources[i].rule);
	if (!error)
		error = xdp_cuckoo_commit(filter);
	if (error)
		fprintf(stderr, "detector: %s\n", filter ? xdp_cuckoo_error(filter) : strerror(-error));
	xdp_cuckoo_close(filter);
	return error ? 1 : 0;
}
