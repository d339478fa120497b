// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Keeps a list equal to what a reader (flowspec, crowdsec) tells. The reader has no privileges and may be hostile. It
 * writes lines into a pipe. The lines that arrive together are one group, and a group is one change of the store. A line
 * at fault is left out and named. If table, memory or disk have no room for all, deletions come
 * first, and the rest is halved until what has room is applied.
 */
#include "feed/list_keeper.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "base/unprivileged.h"
#include "host/host.h"
#include "io/line_pipe.h"
#include "io/whole_file.h"
#include "lists/flow_report.h"

#define GROUP_LINES 32768 /* at most in one change */
#define GATHER_MS 20      /* to wait for more lines of the same change */
#define GATHER_READS 20   /* the most reads for one change */
#define NOTES_MAX 10      /* refused rules that are named per group */
#define FAILURES_MAX 64   /* so many failures in a row: there is no room for the rest of the group */
#define ENDS_NEAR_MS 2000 /* when a rule comes again, an end that differs by at most this stays as it is */
#define REST_MS 1000      /* pause after a group with a refused rule, which an honest reader seldom sends */
#define ASK_MAX_MS 600000 /* the longest pause between two questions for the whole list */

struct keeping {
	const struct list_keeper *keeper;
	struct line_pipe feed;
	struct rule_set lines; /* as they came; a negative timeout: the list gives the rule up */
	struct rule_set whole; /* the rules since `# all` */
	bool takes_whole;      /* `# end` has not come yet */
	bool has_whole;        /* `# end` came: `whole` is the list */
	bool is_lost;          /* a line, for want of memory: the list is not whole without it */
	bool is_asked;         /* the reader waits for keeper->answer() */
	FILE *report;          /* the report on flows, without the `#:` */
	char *report_text;
	size_t report_length, report_bytes;
	bool has_report; /* `report` is complete */
	bool is_full;    /* lines may be left of the last group */
	struct session session;
	struct guard guard;
	char source[STORE_SOURCE_BYTES];
	char servers[HOST_SERVERS_BYTES]; /* that feed the list; "": it is not told */
	struct store_list left; /* the list after the last change; without a name: there was none */
	unsigned long long refused; /* of the last whole list, and lines since; some may have ended */
	unsigned long long refused_whole; /* of `whole`, while it comes */
	bool wants_all;                   /* until a whole list is applied */
	bool is_stuck;                    /* not even a status could be stored; until a change is made */
	__s64 ask_ms, pause_ms;           /* when to ask for it next; the pause before */
	__u64 room;                       /* free slots of the tables when it was last asked for */
	/* Of this group: */
	bool is_moved;                  /* another command has changed the list, as `restore` does */
	bool is_short;                  /* a line found no room, and may find it later */
	bool is_split;                  /* the lines are applied in parts */
	bool is_committed;              /* a change was made */
	unsigned long long undeleted;   /* rules that were to go, and have not */
	size_t deletions;               /* so many come first, see deletions_first() */
	struct reason notes[NOTES_MAX]; /* printed without the lock: the reader of standard error may hang */
	unsigned long long notes_count; /* those of a whole list wait for its end */
	unsigned int failures; /* in a row */
	int error; /* not 0: the rest of the group is left out. The reader sends it again: see apply_group(). */
};

/* ---- one change ---- */

static void add_note(struct keeping *keeping, const struct reason *reason)
{
	if (keeping->notes_count++ < NOTES_MAX)
		keeping->notes[keeping->notes_count - 1] = *reason;
}

static int read_rule(const struct list_keeper *keeper, const char *text, bool is_added, struct rule *rule,
		     struct reason *reason)
{
	int error = rule_parse(text, rule, reason);

	if (!is_added)
		rule->timeout_ms = -1;
	if (error || !is_added)
		return error;
	if (rule->action != keeper->action || !rule->timeout_ms || !keeper->may_add(keeper->context, rule))
		return reason_set(reason, -EPERM, "%s asks for a rule that it may not ask for: '%s'", keeper->reader,
				  text);
	return 0;
}

/* The list as it is now. */
static int find_list(struct keeping *keeping, struct store_list *list, struct reason *reason)
{
	struct store_lists lists;
	int error = store_lists(keeping->session.store, &lists);

	*list = lists.list[error ? 0 : store_lists_find(&lists, keeping->keeper->list)];
	return store_unread_reason(error, reason);
}

/* Opens the list, with the number of refused rules in its source, and says when silence is too long. */
static int open_list(struct keeping *keeping, struct reason *reason)
{
	struct store_source source = store_source_parse(keeping->source);
	int error;

	if (source.kind == STORE_SOURCE_CROWDSEC) {
		source.refused = keeping->refused;
		store_source_format(&source, keeping->source);
	}
	error = change_open_list(&keeping->session, keeping->keeper->list, keeping->source, reason);
	if (!error)
		store_list_expect(keeping->session.store, keeping->session.owner, keeping->keeper->stale_ms / 1000);
	return error;
}

/*
 * Whether another command has changed the list. Only for readers that can send the whole list. FlowSpec's cannot, and
 * renews all rules after a quarter of stale_ms anyway.
 */
static bool is_moved(const struct keeping *keeping, const struct store_list *now)
{
	const struct store_list *left = &keeping->left;

	return *left->name && !keeping->has_whole && keeping->keeper->rules_max &&
	       (now->is_edited || now->imported_s != left->imported_s || strcmp(now->source, left->source));
}

static void leave_out(void *context, const struct rule *rule, const struct reason *why)
{
	struct keeping *keeping = context;

	(void)rule;
	keeping->refused++;
	add_note(keeping, why);
}

/* Within a change. */
static int change_list(struct keeping *keeping, struct change_equal *equal, struct store_list *list,
		       struct reason *reason)
{
	const unsigned long long refused = keeping->refused;
	int error = find_list(keeping, list, reason);

	if (!error) {
		keeping->is_moved |= is_moved(keeping, list);
		error = open_list(keeping, reason);
	}
	if (error)
		return error;
	if (keeping->has_whole)
		keeping->refused = keeping->refused_whole;
	error = change_make_equal(&keeping->session, equal, reason);
	if (!error && keeping->refused != refused)
		error = open_list(keeping, reason);
	return error ? error : find_list(keeping, list, reason);
}

/* A rule that is not added is left out, and one that is not deleted still counts. */
static void lose(struct keeping *keeping, const struct rule *rule)
{
	++*(rule->timeout_ms < 0 ? &keeping->undeleted : &keeping->refused);
}

static void lose_lines(struct keeping *keeping, size_t first, size_t end)
{
	struct rule rule;

	for (; first < end; first++) {
		rule_set_get(&keeping->lines, first, &rule);
		lose(keeping, &rule);
	}
}

static bool is_roomless(int error)
{
	return error == -ENOSPC || error == -ENOMEM;
}

/*
 * All that a change without room was to do becomes lines. Each rule is among them once, so their
 * order is free. A deletion needs no room, so it shall not fail with the others.
 */
static void deletions_first(struct keeping *keeping, const struct change_equal *equal)
{
	const struct rule_set *from[] = { &equal->diff.obsolete, equal->wanted };
	struct rule_set lines = {};
	struct rule rule;

	if (keeping->has_whole) {
		keeping->refused = keeping->refused_whole;
		*keeping->left.name = '\0';
	}
	for (size_t i = 0; i < 2; i++) {
		for (size_t k = 0; k < from[i]->count; k++) {
			rule_set_get(from[i], k, &rule);
			rule.timeout_ms = i ? rule.timeout_ms : -1;
			if (!rule_set_add(&lines, &rule))
				continue;
			keeping->is_lost = true;
			lose(keeping, &rule);
		}
		if (!i)
			keeping->deletions = lines.count;
	}
	keeping->is_split = true;
	keeping->has_whole = false;
	rule_set_close(&keeping->whole);
	rule_set_close(&keeping->lines);
	keeping->lines = lines;
}

/* One change: the whole list, if there is one, else the lines from `first` to before *end. For change_series(). */
static int change_lines(void *context, size_t first, size_t *end, size_t *at, struct reason *reason)
{
	struct keeping *keeping = context;
	const unsigned long long refused = keeping->refused, notes_count = keeping->notes_count;
	struct rule_set lines = {};
	struct change_equal equal = { .wanted = keeping->has_whole ? &keeping->whole : &lines,
				      .is_entries = !keeping->has_whole,
				      .prefix_min = keeping->has_whole ? LEFT_OUT_PREFIX_MIN : 0,
				      .leaves_blockers = true,
				      .leaves_roomless = true,
				      .near_ms = ENDS_NEAR_MS,
				      .leave = leave_out,
				      .context = keeping };
	struct store_list list;
	int error = 0;

	(void)at;
	if (keeping->error) {
		if (is_roomless(keeping->error))
			lose_lines(keeping, first, *end);
		return 0;
	}
	if (line_pipe_wait(&keeping->feed, 0) == -EINTR)
		return -EINTR;
	for (; first < *end && !error; first++) {
		struct rule rule;

		rule_set_get(&keeping->lines, first, &rule);
		if (rule_set_add(&lines, &rule))
			error = reason_set(reason, -ENOMEM, "not enough memory");
	}
	if (!error)
		error = change_begin(&keeping->session, reason);
	if (!error)
		error = change_end(&keeping->session, change_list(keeping, &equal, &list, reason), reason);
	if (!error)
		keeping->left = list;
	keeping->is_committed |= !error;
	keeping->failures = error ? keeping->failures + 1 : 0;
	if (error) {
		/* What was left out comes again. */
		keeping->refused = refused;
		keeping->notes_count = notes_count;
	}
	if (is_roomless(error) && equal.is_compared && !keeping->is_split)
		deletions_first(keeping, &equal);
	change_equal_close(&equal);
	rule_set_close(&lines);
	return error;
}

/* ---- a group ---- */

/* A line is, if it finds no room. Any other error would fail every change, so it ends the group. */
static bool is_at_fault(void *context, int error)
{
	const struct keeping *keeping = context;

	return !keeping->has_whole &&
	       (error == -ECANCELED || error == -E2BIG ||
		(is_roomless(error) && keeping->is_split && keeping->failures < FAILURES_MAX));
}

static void fail(void *context, size_t first, size_t end, int error, const struct reason *reason)
{
	struct keeping *keeping = context;

	if (!is_at_fault(keeping, error))
		keeping->error = error;
	if (error == -EINTR)
		return;
	keeping->is_short |= is_roomless(error);
	lose_lines(keeping, first, end);
	add_note(keeping, reason);
}

/* A group without lines is a whole list, or stores the source of the list and the time of the last message. */
static void apply_lines(struct keeping *keeping)
{
	const struct change_series series = { keeping, change_lines, is_at_fault, fail };
	struct reason reason;
	size_t none = 0, end = keeping->lines.count, at;
	int error = change_lines(keeping, 0, &end, &at, &reason);

	if (error && keeping->lines.count && (keeping->is_split || is_at_fault(keeping, error))) {
		keeping->is_split = true;
		change_series(&series, 0, keeping->deletions);
		change_series(&series, keeping->deletions, keeping->lines.count);
	} else if (error) {
		fail(keeping, 0, keeping->lines.count, error, &reason);
	}
	if (keeping->undeleted) {
		reason_set(&reason, 0, "rules that ended and are still in the list '%s': %llu",
			   keeping->keeper->list, keeping->undeleted);
		add_note(keeping, &reason);
	}
	/* Lines without room are refused, but the group is applied. */
	if (keeping->is_split && is_roomless(keeping->error))
		keeping->error = 0;
	/* The source of the list says how many are refused, and fail() may have counted since. */
	if (keeping->keeper->rules_max && store_source_parse(keeping->source).refused != keeping->refused)
		change_lines(keeping, 0, &none, &none, &reason);
}

static void forget_report(struct keeping *keeping)
{
	if (keeping->report)
		fclose(keeping->report);
	free(keeping->report_text);
	keeping->report = NULL;
	keeping->report_text = NULL;
	keeping->report_bytes = 0;
	keeping->has_report = false;
}

/* The guard shall know them before the lines that they sent are applied. */
static void note_servers(struct keeping *keeping)
{
	const struct list_keeper *keeper = keeping->keeper;
	char dir[PATH_MAX];
	struct reason reason;
	int error = session_state_dir(keeper->state, keeper->name, dir, sizeof(dir));

	if (!error && *keeping->servers)
		error = list_keeper_note_servers(dir, keeper->list, keeping->servers);
	if (error && error != -ENOENT) /* the first change makes the directory */
		reason_set(&reason, error, "cannot note the servers of the list: %s", strerror(-error)),
			add_note(keeping, &reason);
}

static void print_notes(const struct keeping *keeping)
{
	struct reason reason;

	for (size_t i = 0; i < keeping->notes_count && i < NOTES_MAX; i++)
		keeping->keeper->note(keeping->notes[i].text);
	if (keeping->notes_count <= NOTES_MAX)
		return;
	reason_set(&reason, 0, "refused %llu more rules", keeping->notes_count - NOTES_MAX);
	keeping->keeper->note(reason.text);
}

/*
 * Asks for the whole list while it is needed, with longer and longer pauses: to read it costs the
 * source more than a change does. It asks at once when the tables have more room, when changes can be
 * made again, or another command has changed the list.
 */
static void ask_for_all(struct keeping *keeping, bool was_whole, bool is_wrong)
{
	const __s64 now_ms = clock_ms(CLOCK_MONOTONIC), first_ms = keeping->keeper->stale_ms / 8;
	const bool was_stuck = keeping->is_stuck;
	__u64 room = 0;

	for (size_t i = 0; i < keeping->session.filters_count; i++) {
		const struct kernel_filter *filter = &keeping->session.filters[i].kernel;

		room += filter_slots(filter) - filter->config->used;
	}
	keeping->is_stuck = !keeping->is_committed &&
			    (was_stuck || (!was_whole && !keeping->lines.count));
	keeping->wants_all = is_wrong || (keeping->wants_all && !was_whole);
	if (!keeping->wants_all || (was_stuck && !keeping->is_stuck))
		keeping->ask_ms = keeping->pause_ms = 0;
	if (!keeping->wants_all)
		return;
	if (now_ms < keeping->ask_ms && room <= keeping->room && !keeping->is_moved)
		return;
	/* A hostile reader may take no answer, so this does not wait for it. */
	send(keeping->feed.fd, &(char){ KEEPER_WANTS_ALL }, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	keeping->room = room;
	keeping->pause_ms = pause_longer(keeping->pause_ms, first_ms, ASK_MAX_MS);
	keeping->ask_ms = now_ms + keeping->pause_ms;
}

static void apply_group(struct keeping *keeping)
{
	const struct list_keeper *keeper = keeping->keeper;
	const bool was_whole = keeping->has_whole;
	struct flow_report report;
	struct reason reason;
	bool is_failed;
	char *flows = NULL;
	int error;

	note_servers(keeping);
	error = guard_open(&keeping->guard, keeper->state, &reason);
	keeping->session = (struct session){};
	keeping->error = 0;
	keeping->is_moved = keeping->is_short = keeping->is_split = keeping->is_committed = false;
	keeping->deletions = keeping->failures = keeping->undeleted = 0;
	if (!error)
		error = session_open(&keeping->session, keeper->state, keeper->name, &reason);
	keeping->session.guard = &keeping->guard;
	/* The reader sends again what cannot be applied now: at its next renewal, or with the whole list. */
	if (error)
		add_note(keeping, &reason);
	else
		apply_lines(keeping);
	if (keeping->is_moved) {
		reason_set(&reason, 0, "another command has changed the list '%s', which now becomes whole again",
			   keeper->list);
		add_note(keeping, &reason);
	}
	is_failed = error || (keeping->error && keeping->error != -EINTR);
	if (keeper->rules_max)
		ask_for_all(keeping, was_whole,
			    is_failed || keeping->is_moved || keeping->is_short || keeping->is_lost);
	if (!is_failed && keeping->is_asked && keeper->answer)
		keeper->answer(keeper, &keeping->session, keeping->feed.fd);
	if (keeping->has_report && keeping->report && !error && !keeping->error && !fflush(keeping->report) &&
	    flow_report_judge(keeping->report_text, &keeping->session, &keeping->guard, &report, &flows)) {
		reason_set(&reason, -ENOMEM, "cannot write what is known of the flows: not enough memory");
		add_note(keeping, &reason);
		free(flows);
		flows = NULL;
	}
	if (keeping->has_report)
		forget_report(keeping);
	if (keeping->has_whole)
		rule_set_close(&keeping->whole);
	keeping->is_asked = keeping->has_whole = false;
	keeping->is_lost &= keeping->takes_whole; /* a line that was lost on the way to a whole list */
	session_close(&keeping->session);
	guard_close(&keeping->guard);
	/*
	 * The lock is released first: other commands do not wait for the disk. By then the store may have changed, so
	 * the report has the time at which it was true.
	 */
	if (flows && flow_report_write(&report, flows, keeper->state, keeper->name, keeper->list, &reason))
		add_note(keeping, &reason);
	free(flows);
	print_notes(keeping);
}

/* ---- lines ---- */

/* A rule of a whole list goes into `whole`, not into `lines`: it waits for `# end`. */
static void take_rule(struct keeping *keeping, const char *line)
{
	const struct list_keeper *keeper = keeping->keeper;
	struct rule_set *set = keeping->takes_whole ? &keeping->whole : &keeping->lines;
	struct reason reason;
	struct rule rule;
	int error;

	if (strncmp(line, "add ", 4) && (strncmp(line, "del ", 4) || keeping->takes_whole))
		error = reason_set(&reason, -EINVAL, "%s sends nonsense", keeper->reader);
	else
		error = read_rule(keeper, line + 4, *line == 'a', &rule, &reason);
	if (!error && keeping->takes_whole && set->count >= keeper->rules_max)
		error = reason_set(&reason, -E2BIG, "more rules than max-rules: '%s' is left out",
				   line);
	if (!error && rule_set_add(set, &rule))
		error = reason_set(&reason, -ENOMEM, "not enough memory: '%s' is left out", line);
	keeping->is_lost |= error == -ENOMEM;
	if (!error)
		return;
	++*(keeping->takes_whole ? &keeping->refused_whole : &keeping->refused);
	add_note(keeping, &reason);
}

static void take_line(struct keeping *keeping, size_t text)
{
	const struct list_keeper *keeper = keeping->keeper;
	const char *line = keeping->feed.bytes + text;
	const char *const of_report = line + strlen(FLOW_REPORT_LINE);

	if (!strcmp(line, "# all")) {
		rule_set_close(&keeping->whole);
		rule_set_close(&keeping->lines); /* the whole list includes what these lines change */
		keeping->takes_whole = true;
		keeping->is_lost = false;
		keeping->refused_whole = 0;
	} else if (!strcmp(line, "# end") && keeping->takes_whole) {
		keeping->takes_whole = false;
		keeping->has_whole = !keeping->is_lost;
	} else if (!strncmp(line, FLOW_REPORT_LINE, strlen(FLOW_REPORT_LINE)) && keeper->report_bytes) {
		keeping->has_report = !strcmp(of_report, "end");
		if (!keeping->report)
			keeping->report = open_memstream(&keeping->report_text, &keeping->report_length);
		keeping->report_bytes += strlen(of_report) + 1;
		if (keeping->report && keeping->report_bytes <= keeper->report_bytes && !keeping->has_report)
			fprintf(keeping->report, "%s\n", of_report);
	} else if (!strcmp(line, "# counts")) {
		keeping->is_asked = true;
	} else if (!strncmp(line, KEEPER_SERVERS, strlen(KEEPER_SERVERS))) {
		snprintf(keeping->servers, sizeof(keeping->servers), "%s", line + strlen(KEEPER_SERVERS));
	} else if (keeper->take_status(line, keeping->source)) {
		return;
	} else {
		take_rule(keeping, line);
	}
}

/* Applies the lines at hand. 0; -ENODATA: the reader has ended; -EINTR: a signal. */
static int step(struct keeping *keeping)
{
	const __s64 most_ms = keeping->keeper->stale_ms / 8;
	struct line_pipe *feed = &keeping->feed;
	struct pollfd signals = { .fd = feed->signals.fd, .events = POLLIN };
	/* After a full group more lines may be at hand. Do not wait for others: perhaps none will come. */
	const bool was_full = keeping->is_full;
	int got = was_full ? 1 : line_pipe_wait(feed, -1);
	const unsigned long long noted = keeping->notes_count;
	bool has_lines = false, is_refused;
	__s64 start_ms, rest_ms;
	size_t text;

	if (got < 0)
		return got;
	got = 0;
	for (int i = 0; i < GATHER_READS && !was_full && !got && !feed->is_ended; i++) {
		if (i && line_pipe_wait(feed, GATHER_MS) <= 0)
			break;
		got = line_pipe_read(feed);
	}
	start_ms = clock_ms(CLOCK_MONOTONIC);
	rule_set_close(&keeping->lines);
	/* A group ends after a whole list. It also ends after a report, which is about the lines before the report. */
	while (!got && !keeping->has_whole && !keeping->has_report &&
	       keeping->lines.count + keeping->notes_count - noted < GROUP_LINES) {
		const int taken = line_pipe_next(feed, &text);

		if (!taken)
			break;
		if (taken > 0)
			take_line(keeping, text);
		has_lines |= !keeping->takes_whole && (!keeping->report || keeping->has_report);
	}
	keeping->is_full = keeping->has_whole || keeping->has_report ||
			   keeping->lines.count + keeping->notes_count - noted >= GROUP_LINES;
	if (has_lines)
		apply_group(keeping);
	is_refused = keeping->notes_count;
	line_pipe_forget(feed);
	if (got || keeping->error == -EINTR)
		return got ? got : -EINTR;
	if (feed->is_ended && !line_pipe_has_rest(feed))
		return -ENODATA;
	if (!has_lines)
		return 0;
	keeping->notes_count = 0;
	/*
	 * Rests as long as the group took, or longer after a refused rule, but at most an eighth of stale_ms. So a
	 * hostile reader gets half of the time at most, unless its groups take longer than that eighth.
	 */
	rest_ms = clock_ms(CLOCK_MONOTONIC) - start_ms;
	if (is_refused && rest_ms < REST_MS)
		rest_ms = REST_MS;
	return poll(&signals, 1, rest_ms < most_ms ? rest_ms : most_ms) ? -EINTR : 0;
}

int list_keeper_note_servers(const char *dir, const char *list, const char *servers)
{
	char path[PATH_MAX], noted[HOST_SERVERS_BYTES] = "";
	struct whole_file file = {};
	struct stat status = {};
	FILE *old;
	int error;

	if (snprintf(path, sizeof(path), "%s/" HOST_SERVERS_FILE "%s", dir, list) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	old = fopen(path, "re");
	if (old && !fstat(fileno(old), &status) && fgets(noted, sizeof(noted), old))
		noted[strcspn(noted, "\n")] = '\0';
	if (old)
		fclose(old);
	/* The guard takes no notice of a file that is older than HOST_SERVERS_S. */
	if (!strcmp(noted, servers) && llabs(time(NULL) - status.st_mtime) < HOST_SERVERS_S / 30)
		return 0;
	error = whole_file_open(&file, path);
	if (error)
		return error;
	fprintf(file.to, "%s\n", servers);
	return whole_file_close(&file, ferror(file.to) ? -EIO : 0);
}

int list_keeper_run(const struct list_keeper *keeper, struct reason *reason)
{
	struct keeping keeping = { .keeper = keeper, .feed.name = keeper->reader };
	struct unprivileged process;
	int error;

	snprintf(keeping.source, sizeof(keeping.source), "%s", keeper->source);
	error = unprivileged_start(&process, keeper->read, keeper->context, keeper->memory, reason);
	keeping.feed.fd = process.fd;
	if (!error && signals_take(&keeping.feed.signals))
		error = reason_set(reason, -EAGAIN, "cannot take signals");
	while (!error)
		error = step(&keeping);
	keeping.feed.fd = -1;
	line_pipe_close(&keeping.feed);
	unprivileged_stop(&process);
	rule_set_close(&keeping.lines);
	rule_set_close(&keeping.whole);
	forget_report(&keeping);
	return error == -EINTR ? 0 : error;
}
