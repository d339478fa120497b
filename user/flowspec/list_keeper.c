// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "flowspec/list_keeper.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/unprivileged.h"
#include "change/change.h"
#include "flowspec/translator.h"
#include "host/protected_flows.h"
#include "io/line_pipe.h"

#define GROUP_LINES 32768 /* at most in one change */
#define GATHER_MS 20      /* lines that arrive within this time join the same change, */
#define GATHER_READS 20   /* at most so many times */
#define NOTES_MAX 10      /* refused rules that are named per group */

struct line {
	size_t text; /* offset of the rule in feed.bytes */
	bool is_added;
};

struct keeping {
	const struct list_keeper *keeper;
	struct feed feed;
	struct line *lines;
	size_t count;
	struct session session;
	struct guard guard;
	char source[STORE_SOURCE_BYTES];
	unsigned long long notes; /* of this group */
};

/* ---- one change ---- */

static void note_refused(struct keeping *keeping, const struct reason *reason)
{
	if (keeping->notes++ < NOTES_MAX)
		keeping->keeper->note(reason->text);
}

static int read_rule(const struct keeping *keeping, const struct line *line, struct rule *rule, struct reason *reason)
{
	const struct flowspec_options *options = keeping->keeper->options;
	const char *text = keeping->feed.bytes + line->text;
	bool is_own = options->is_any;
	struct rule dropped;
	int error = rule_parse(text, rule, reason);

	if (error || !line->is_added)
		return error;
	dropped = *rule;
	dropped.action = RULE_DROP;
	for (size_t i = 0; i < options->own_count && !is_own; i++)
		is_own = rule_covers(&options->own[i], &dropped);
	if (!is_own || rule->action != options->action || !rule->timeout_ms)
		return reason_set(reason, -EPERM, "the reader of flows asks for a rule that it may not ask for: '%s'",
				  text);
	return 0;
}

static int change_line(struct keeping *keeping, const struct line *line, struct reason *reason)
{
	enum store_deleted deleted;
	enum store_added added;
	struct rule rule;
	int error = read_rule(keeping, line, &rule, reason);

	if (error)
		return error;
	return line->is_added ? change_add(&keeping->session, &rule, &added, reason) :
				change_give_up(&keeping->session, &rule, &deleted, reason);
}

static int change_lines(struct keeping *keeping, size_t first, size_t end, struct reason *reason)
{
	int error = change_begin(&keeping->session, reason);

	if (error)
		return error;
	error = change_open_list(&keeping->session, keeping->keeper->list, keeping->source, reason);
	while (first < end && !error)
		error = change_line(keeping, &keeping->lines[first++], reason);
	return change_end(&keeping->session, error, reason);
}

/* ---- a group ---- */

/* Whether the line may be refused because it would lock this host out. Such a line is applied alone. */
static bool is_dangerous(const struct keeping *keeping, const struct line *line)
{
	struct reason ignored;
	struct rule rule;

	return line->is_added && !read_rule(keeping, line, &rule, &ignored) && guard_concerns(&keeping->guard, &rule);
}

/* Applies the lines as one change. If that fails, tries each half, until only the lines at fault fail. */
static void apply_range(struct keeping *keeping, size_t first, size_t end)
{
	struct reason reason;
	int error = first < end ? change_lines(keeping, first, end, &reason) : 0;

	if (error && end - first == 1) {
		note_refused(keeping, &reason);
	} else if (error) {
		const size_t middle = first + (end - first) / 2;

		apply_range(keeping, first, middle);
		apply_range(keeping, middle, end);
	}
}

static void apply_lines(struct keeping *keeping)
{
	size_t first = 0;

	for (size_t i = 0; i < keeping->count; i++) {
		if (!is_dangerous(keeping, &keeping->lines[i]))
			continue;
		apply_range(keeping, first, i);
		apply_range(keeping, i, i + 1);
		first = i + 1;
	}
	/* Without lines, this stores the counts of flows and the time of the reader's last message. */
	if (first < keeping->count || !keeping->count)
		apply_range(keeping, first, keeping->count);
}

static void apply_group(struct keeping *keeping)
{
	const struct list_keeper *keeper = keeping->keeper;
	struct reason reason;
	int error = guard_open(&keeping->guard, &reason);

	keeping->guard.insist = "";
	keeping->session = (struct session){};
	keeping->notes = 0;
	if (!error)
		error = session_open(&keeping->session, keeper->state, keeper->name, &reason);
	keeping->session.guard = &keeping->guard;
	/* What cannot be applied now is sent again at the next renewal. */
	if (error)
		keeper->note(reason.text);
	else
		apply_lines(keeping);
	if (keeping->notes > NOTES_MAX) {
		reason_set(&reason, 0, "refused %llu more rules", keeping->notes - NOTES_MAX);
		keeper->note(reason.text);
	}
	session_close(&keeping->session);
	guard_close(&keeping->guard);
}

/* ---- lines ---- */

static void take_line(struct keeping *keeping, size_t text)
{
	const char *line = keeping->feed.bytes + text;
	unsigned long long flows, refused, unreadable;

	if (sscanf(line, TRANSLATOR_STATUS, &flows, &refused, &unreadable) == 3)
		snprintf(keeping->source, sizeof(keeping->source), STORE_SOURCE_FLOWSPEC, flows, refused, unreadable);
	else if (!strncmp(line, "add ", 4) || !strncmp(line, "del ", 4))
		keeping->lines[keeping->count++] = (struct line){ text + 4, *line == 'a' };
}

/* Applies the lines at hand. 0; -ENODATA: the translator has ended; -EINTR: a signal. */
static int step(struct keeping *keeping)
{
	struct feed *feed = &keeping->feed;
	bool has_lines = false;
	size_t text;
	int got = feed_wait(feed, -1);

	if (got < 0)
		return got;
	got = 0;
	for (int i = 0; i < GATHER_READS && !got && !feed->is_ended && (!i || feed_wait(feed, GATHER_MS) > 0); i++)
		got = feed_read(feed);
	while (!got && keeping->count < GROUP_LINES) {
		const int taken = feed_next(feed, &text);

		if (!taken)
			break;
		has_lines = true;
		if (taken > 0)
			take_line(keeping, text);
	}
	if (has_lines)
		apply_group(keeping);
	keeping->count = 0;
	feed_forget(feed);
	return got ? got : feed->is_ended && !feed_has_rest(feed) ? -ENODATA : 0;
}

int list_keeper_run(const struct list_keeper *keeper, struct reason *reason)
{
	const struct translator_start start = { keeper->options, keeper->note };
	struct keeping keeping = { .keeper = keeper, .feed.name = "the reader of flows" };
	struct unprivileged process;
	int error;

	strcpy(keeping.source, "flowspec");
	keeping.lines = calloc(GROUP_LINES, sizeof(*keeping.lines));
	if (!keeping.lines)
		return reason_set(reason, -ENOMEM, "not enough memory");
	error = unprivileged_start(&process, translator_run, &start, reason);
	keeping.feed.fd = process.fd;
	if (!error && signals_take(&keeping.feed.signals))
		error = reason_set(reason, -EAGAIN, "cannot take signals");
	while (!error)
		error = step(&keeping);
	keeping.feed.fd = -1;
	feed_close(&keeping.feed);
	unprivileged_stop(&process);
	free(keeping.lines);
	return error == -EINTR ? 0 : error;
}
