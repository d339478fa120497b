// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "lists/flow_report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/safe_text.h"
#include "host/host.h"
#include "io/whole_file.h"

const char *const refusal_names[REFUSALS] = {
	[REFUSAL_NONE] = "none",           [REFUSAL_COMPONENT] = "component",
	[REFUSAL_VALUE] = "value",         [REFUSAL_RULES] = "too-many-rules",
	[REFUSAL_TOO_WIDE] = "too-wide",   [REFUSAL_OWN] = "own-prefixes",
	[REFUSAL_MALFORMED] = "malformed", [REFUSAL_ACTION] = "action",
	[REFUSAL_MAX_FLOWS] = "max-flows", [REFUSAL_MAX_FLOWS_PEER] = "max-flows-peer",
	[REFUSAL_MAX_RULES] = "max-rules", [REFUSAL_RATE] = "other-rate",
	[REFUSAL_RATES] = "rates",         [REFUSAL_KINDS] = "kinds",
	[REFUSAL_FORGOTTEN] = "forgotten", [REFUSAL_GUARD] = "guard",
	[REFUSAL_FILTER] = "filter",
};

const char *const peer_state_names[PEER_STATES] = {
	[PEER_UNKNOWN] = "unknown",
	[PEER_UP] = "up",
	[PEER_DOWN] = "down",
};

#define LINE_BYTES (RULE_TEXT_BYTES + FLOW_NAME_BYTES)

static size_t number_of(const char *name, const char *const *names, size_t count)
{
	size_t i = 0;

	while (i < count && strcmp(names[i], name))
		i++;
	return i;
}

static int report_path(const char *dir, const char *list, char path[PATH_MAX])
{
	const int length = snprintf(path, PATH_MAX, "%s/flows-%s", dir, list);

	return length < 0 || length >= PATH_MAX ? -ENAMETOOLONG : 0;
}

/* Takes a line of the counts. False: it is none. */
static bool take_count(struct flow_report *report, const char *line)
{
	char word[2][FLOW_PEER_BYTES];
	long long second;
	__u64 number;
	size_t which;

	if (sscanf(line, "flows %lld", &second) == 1) {
		report->second = second;
	} else if (sscanf(line, "refused %45s %llu", word[0], &number) == 2 &&
		   (which = number_of(word[0], refusal_names, REFUSALS)) < REFUSALS) {
		report->flows[which] = number;
	} else if (sscanf(line, "peer %45s %45s %lld %llu", word[0], word[1], &second, &number) == 4 &&
		   (which = number_of(word[1], peer_state_names, PEER_STATES)) < PEER_STATES) {
		struct flow_peer *peer = report->peer;

		report->sessions[which]++;
		/* A session that is down takes the place of another. */
		if (report->peers < FLOW_PEERS_MAX)
			peer += report->peers++;
		else
			while (peer < report->peer + FLOW_PEERS_MAX && (which != PEER_DOWN || peer->state == PEER_DOWN))
				peer++;
		if (peer < report->peer + FLOW_PEERS_MAX) {
			*peer = (struct flow_peer){ .state = which, .since_s = second, .flows = number };
			strcpy(peer->address, word[0]);
		}
	} else if (sscanf(line, "sessions %45s %llu", word[0], &number) == 2 &&
		   (which = number_of(word[0], peer_state_names, PEER_STATES)) < PEER_STATES) {
		report->sessions[which] = number;
	} else if (sscanf(line, "unnamed %llu", &number) == 1) {
		report->unnamed = number;
	} else {
		return false;
	}
	return true;
}

/* ---- writing ---- */

int flow_report_judge(const char *text, const struct session *session, const struct guard *guard,
		      struct flow_report *report, char **flows)
{
	enum refusal of_rules = REFUSAL_NONE; /* of the rules since the last flow */
	char line[LINE_BYTES], word[FLOW_PEER_BYTES];
	struct reason ignored;
	struct rule rule, stored;
	size_t room = 0;
	FILE *to;

	*flows = NULL;
	*report = (struct flow_report){ .second = time(NULL) };
	to = open_memstream(flows, &room);
	if (!to)
		return -ENOMEM;
	for (const char *at = text; *at; at += strcspn(at, "\n"), at += *at == '\n') {
		const size_t length = strcspn(at, "\n");
		int rest = 0;
		size_t which;

		if (length >= sizeof(line))
			continue;
		snprintf(line, sizeof(line), "%.*s", (int)length, at);
		if (!text_is_safe(line, sizeof(line)))
			continue;
		if (!strncmp(line, "rule ", 5) && !rule_parse(line + 5, &rule, &ignored)) {
			stored = rule;
			/* The first rule that the list does not have now tells why the flow has no rules. */
			if (of_rules == REFUSAL_NONE && (store_get(session->store, &stored) || stored.timeout_ms < 0 ||
							 !(rule_owners_now(&stored) >> session->owner & 1)))
				of_rules = guard_concerns(guard, &rule) ? REFUSAL_GUARD : REFUSAL_FILTER;
			fprintf(to, "%s\n", line);
		} else if (sscanf(line, "flow %45s %n", word, &rest) == 1 && rest &&
			   (which = number_of(word, refusal_names, REFUSALS)) < REFUSALS) {
			if (which == REFUSAL_NONE)
				report->flows[which = of_rules]++;
			fprintf(to, "flow %s %s\n", refusal_names[which], line + rest);
			of_rules = REFUSAL_NONE;
		} else {
			take_count(report, line); /* false: the line is nothing of a report, and is left out */
		}
	}
	return fclose(to) ? -ENOMEM : 0;
}

int flow_report_write(const struct flow_report *report, const char *flows, const char *state, const char *name,
		      const char *list, struct reason *reason)
{
	struct whole_file file = {};
	char dir[PATH_MAX], path[PATH_MAX];
	int error = session_state_dir(state, name, dir, sizeof(dir));

	if (!error)
		error = report_path(dir, list, path);
	if (!error)
		error = whole_file_open(&file, path);
	if (!error) {
		fprintf(file.to, "flows %lld\nunnamed %llu\n", (long long)report->second,
			(unsigned long long)report->unnamed);
		for (size_t i = 0; i < REFUSALS; i++)
			fprintf(file.to, "refused %s %llu\n", refusal_names[i], (unsigned long long)report->flows[i]);
		for (size_t i = 0; i < report->peers; i++)
			fprintf(file.to, "peer %s %s %lld %llu\n", report->peer[i].address,
				peer_state_names[report->peer[i].state], (long long)report->peer[i].since_s,
				(unsigned long long)report->peer[i].flows);
		/* After the lines of peers, which the reader counts. */
		for (size_t i = 0; i < PEER_STATES; i++)
			fprintf(file.to, "sessions %s %llu\n", peer_state_names[i],
				(unsigned long long)report->sessions[i]);
		fputs(flows, file.to);
		error = whole_file_close(&file, ferror(file.to) ? -EIO : 0);
	}
	return error ? reason_set(reason, error, "cannot write what is known of the flows: %s", strerror(-error)) : 0;
}

/* ---- reading ---- */

int flow_report_read(const char *dir, const struct store_list *list, const struct store_feed *feed,
		     struct flow_report *report, struct flow_visitor *visitor)
{
	char path[PATH_MAX], word[FLOW_PEER_BYTES], peer[FLOW_PEER_BYTES], *line = NULL;
	int error = report_path(dir, list->name, path);
	size_t room = 0, which;
	struct reason ignored;
	struct rule rule;
	FILE *file;

	*report = (struct flow_report){};
	if (error || store_source_parse(list->source).kind != STORE_SOURCE_FLOWSPEC || store_list_silent_s(list, feed))
		return error;
	file = fopen(path, "re");
	if (!file)
		return errno == ENOENT ? 0 : -errno;
	while (!error && getline(&line, &room, file) > 0) {
		int name = 0;

		line[strcspn(line, "\n")] = '\0';
		if (take_count(report, line))
			continue;
		if (!visitor)
			break;
		if (!strncmp(line, "rule ", 5))
			error = rule_parse(line + 5, &rule, &ignored) ? 0 : visitor->rule(visitor, &rule);
		else if (sscanf(line, "flow %45s %45s %n", word, peer, &name) == 2 && name &&
			 (which = number_of(word, refusal_names, REFUSALS)) < REFUSALS)
			error = visitor->flow(visitor, which, peer, line + name);
	}
	if (!error && ferror(file))
		error = -EIO;
	free(line);
	fclose(file);
	return error;
}
