// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The keeper's side, with privileges: reads the files, checks what the poller asks for, counts what its rules drop. */
#include "feed/feeds.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "counters/counters.h"
#include "io/whole_file.h"

int crowdsec_open(struct crowdsec_start *start, const struct crowdsec_options *options, struct reason *reason)
{
	char *key = NULL;
	const struct {
		const char *what, *path;
		mode_t forbidden;
		char **text;
	} files[] = { { "ca", options->ca, 0, &start->ca },
		      { "cert", options->cert, 0, &start->cert },
		      { "cert-key", options->cert_key, S_IRWXG | S_IRWXO, &start->cert_key },
		      { "key-file", options->key_file, S_IRWXG | S_IRWXO, &key } };
	int error = 0;

	start->options = options;
	for (size_t i = 0; i < sizeof(files) / sizeof(*files) && !error; i++)
		if (files[i].path)
			error = io_read_secret(files[i].what, files[i].path, files[i].forbidden, files[i].text, reason);
	if (error || !key)
		return error;
	key[strcspn(key, "\n")] = '\0';
	for (const char *c = *key ? key : " "; *c && !error; c++)
		if (*c <= ' ' || *c > '~')
			error = reason_set(reason, -EINVAL,
					   "key-file = '%s': must have one word, the key that cscli bouncers add prints",
					   options->key_file);
	if (!error && asprintf(&start->headers, "X-Api-Key: %s", key) < 0)
		error = reason_set(reason, -ENOMEM, "not enough memory");
	explicit_bzero(key, strlen(key));
	free(key);
	return error;
}

void crowdsec_close(struct crowdsec_start *start)
{
	char *const texts[] = { start->ca, start->cert, start->cert_key, start->headers };

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		if (texts[i])
			explicit_bzero(texts[i], strlen(texts[i]));
		free(texts[i]);
	}
}

/* ---- what the poller asks for ---- */

bool crowdsec_may_add(const void *context, const struct rule *rule)
{
	const struct crowdsec_start *start = context;

	return !rule->fields && !rule->dst_len && rule->src_len &&
	       rule->src_len >= start->options->prefix_min[rule->family == FLOW_IPV6];
}

bool crowdsec_take_status(const char *line, char source[STORE_SOURCE_BYTES])
{
	struct store_source told = { .kind = STORE_SOURCE_CROWDSEC };

	if (sscanf(line, CROWDSEC_STATUS, &told.flows, &told.left_out, &told.unreadable) != 3)
		return false;
	store_source_format(&told, source);
	return true;
}

/* ---- usage metrics ---- */

void crowdsec_sum(json_t *sums, const char *key, json_int_t more)
{
	json_object_set_new(sums, key, json_integer(json_integer_value(json_object_get(sums, key)) + more));
}

struct drops {
	struct rule_counts counts;
	unsigned int list;
	json_t *sums; /* rules, and dropped packets and bytes, by "ORIGIN ipv4 ip", "ORIGIN ipv4 packet", ... */
};

/* The comment of a rule names its origin. */
static int sum_drops(const struct rule *rule, void *context)
{
	static const char *const units[] = { "ip", "packet", "byte" };
	struct drops *drops = context;
	const int units_count = rule->action == RULE_DROP && drops->counts.count ? 3 : 1;
	char origin[CROWDSEC_ORIGIN_BYTES], key[CROWDSEC_ORIGIN_BYTES + 16];
	struct abi_counter count = {};

	if (rule->timeout_ms < 0 || !(rule_owners_now(rule) >> drops->list & 1) ||
	    sscanf(rule->comment, "crowdsec %63s", origin) != 1)
		return 0;
	if (units_count > 1)
		count = rule_counts_of(&drops->counts, rule);
	for (int i = 0; i < units_count; i++) {
		snprintf(key, sizeof(key), "%s %s %s", origin, rule->family == FLOW_IPV6 ? "ipv6" : "ipv4", units[i]);
		crowdsec_sum(drops->sums, key, i == 0 ? 1 : i == 1 ? count.packets : count.bytes);
	}
	return 0;
}

void crowdsec_answer(const struct list_keeper *keeper, struct session *session, int to)
{
	struct drops drops = { .list = session->owner, .sums = json_object() };
	struct reason ignored;
	char *text;

	/* A filter that does not run, or does not count, has dropped nothing that is known. */
	if (rule_counts_open(&drops.counts, keeper->name, &ignored) ||
	    store_shapes(session->store, &drops.counts.shapes)) {
		rule_counts_close(&drops.counts);
		drops.counts = (struct rule_counts){};
	}
	store_each(session->store, sum_drops, &drops);
	rule_counts_close(&drops.counts);
	text = json_dumps(drops.sums, JSON_COMPACT);
	if (text) {
		send(to, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL);
		send(to, "\n", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
	free(text);
	json_decref(drops.sums);
}
