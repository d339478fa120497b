// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "lists/import.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "lists/import_internal.h"
#include "lists/list.h"
#include "io/output.h"
#include "change/watchdog.h"

#define BAD_LINES_SHOWN 20
#define STEPS_A_PROGRESS 65536

/* ---- interruption, progress ---- */

static volatile sig_atomic_t is_interrupted;

static void interrupt(int signal_number)
{
	(void)signal_number;
	is_interrupted = 1;
}

/*
 * Ctrl-C asks for an orderly end: store and table go back to what they were. Without SA_RESTART, so
 * that it also ends waiting for input.
 */
static const int interrupts[] = { SIGINT, SIGTERM };

#define INTERRUPTS (sizeof(interrupts) / sizeof(interrupts[0]))

static void catch_interrupts(struct sigaction before[INTERRUPTS])
{
	const struct sigaction action = { .sa_handler = interrupt };

	for (size_t i = 0; i < INTERRUPTS; i++)
		sigaction(interrupts[i], &action, &before[i]);
}

static void leave_interrupts(const struct sigaction before[INTERRUPTS])
{
	for (size_t i = 0; i < INTERRUPTS; i++)
		sigaction(interrupts[i], &before[i], NULL);
}

static int interrupted(struct reason *reason)
{
	return reason_set(reason, -EINTR, "interrupted: nothing was changed");
}

static double seconds_since(const struct timespec *start)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec - start->tv_sec + 1e-9 * (now.tv_nsec - start->tv_nsec);
}

/* ---- reading ---- */

static int go_on(struct list *list)
{
	const struct reader *reader = &list->reader;
	struct import *import = list->context;

	if (++import->steps % STEPS_A_PROGRESS == 0)
		output_progress("reading", import->rules.count,
				reader->bytes_total ? (double)reader->bytes_read / reader->bytes_total : -1,
				seconds_since(&import->start));
	return is_interrupted ? -EINTR : 0;
}

static void refuse(struct list *list, const char *text)
{
	struct import *import = list->context;

	import->bad++;
	if (import->bad <= BAD_LINES_SHOWN)
		command_error(STATUS_USAGE, "%s:%llu: %s", list->reader.name, (unsigned long long)list->reader.number,
			      text);
}

static void note(struct list *list, const char *text)
{
	output_note("%s: %s", list->reader.name, text);
}

static int take(struct list *list, const struct rule *rule)
{
	struct import *import = list->context;

	import_specials_look(&import->specials, &import->guard, rule);
	return rule_set_add(&import->rules, rule);
}

static int read_list(struct import *import, struct reader *reader, struct reason *reason)
{
	const struct invocation *invocation = import->invocation;
	const char *name = invocation->list_format;
	struct list list = { .reader = *reader,
			     .format = name ? list_format_named(name) : LIST_UNKNOWN,
			     .timeout_ms = invocation->timeout_ms,
			     .take = take,
			     .refuse = refuse,
			     .note = note,
			     .go_on = go_on,
			     .context = import };
	int error = list_read(&list);

	*reader = list.reader;
	output_progress_end();
	if (is_interrupted)
		return interrupted(reason);
	if (error == -EMSGSIZE)
		return reason_set(reason, -EINVAL,
				  "%s:%llu: the line is longer than %d bytes: this is no list; "
				  "nothing was changed",
				  reader->name, (unsigned long long)reader->number, READER_LINE_BYTES);
	if (error)
		return reason_set(reason, error, "cannot read %s: %s", list.reader.name, strerror(-error));
	if (import->bad > BAD_LINES_SHOWN)
		command_error(STATUS_USAGE, "%s: %llu more bad lines", list.reader.name,
			      (unsigned long long)import->bad - BAD_LINES_SHOWN);
	if (import->bad && !import->rules.count)
		output_note("%s: nothing of it is a rule; xdp-cuckoo help import tells the formats, --format names one",
			    list.reader.name);
	rule_set_sort(&import->rules);
	import->total = import->rules.count;
	return 0;
}

/* ---- changing ---- */

static int show_storing(const struct import *import, size_t done, struct reason *reason)
{
	if (is_interrupted)
		return interrupted(reason);
	if (done % STEPS_A_PROGRESS == 0)
		output_progress("storing", done, (double)done / import->rules.count, seconds_since(&import->storing));
	return 0;
}

/* With --replace they have been counted. */
static int add_rules(struct apply *apply, struct import *import, struct reason *reason)
{
	clock_gettime(CLOCK_MONOTONIC, &import->storing);
	for (size_t i = 0; i < import->rules.count; i++) {
		struct rule rule;
		int error = show_storing(import, i, reason);

		if (error)
			return error;
		rule_set_get(&import->rules, i, &rule);
		error = apply_add(apply, &rule, reason);
		if (error && error != -EEXIST && error != -EALREADY && error != -EUSERS)
			return error;
		if (!import->invocation->is_replace)
			import_count_added(import, error);
	}
	/* What is left is one step: the tables, and the disk. It takes memory itself. */
	output_progress("activating", import->rules.count, -1, seconds_since(&import->storing));
	rule_set_close(&import->rules);
	return 0;
}

/* What goes is found first: nothing changes under the comparison. */
static int delete_obsolete(struct apply *apply, struct import *import, struct reason *reason)
{
	const struct rule_set *obsolete = &import->diff.obsolete;
	int error = 0;

	for (size_t i = 0; i < obsolete->count && !error; i++) {
		struct rule rule;

		if (is_interrupted)
			return interrupted(reason);
		rule_set_get(obsolete, i, &rule);
		error = import->diff.is_alone ? apply_del(apply, &rule, reason) : apply_give_up(apply, &rule, reason);
		error = error == -EALREADY ? 0 : error;
	}
	return error;
}

/* What is replaced stays so when another change, that waits to be confirmed and took rules away, is undone. */
static int give_up_kept(struct apply *apply, const struct import *import, struct reason *reason)
{
	int error = store_give_up_all(apply->store, apply->owner, import->diff.is_alone);

	return error ? reason_set(reason, error, "cannot write to the store: %s", reason_of_write(error)) : 0;
}

/* Makes the list the owner of what is added, and where it is not there yet, the list. */
static int open_list(struct apply *apply, const struct import *import, struct reason *reason)
{
	const struct invocation *invocation = import->invocation;
	struct store_lists lists;
	int error = 0;

	if (!invocation->list_name)
		return 0;
	if (import->is_deletion) {
		error = store_lists(apply->store, &lists);
		apply->owner = error ? 0 : store_lists_find(&lists, invocation->list_name);
		if (!error && !apply->owner)
			return import_no_such_list(invocation->list_name, reason);
	} else {
		error = store_list_open(apply->store, invocation->list_name, import->path, &apply->owner);
	}
	if (error == -EUSERS)
		return import_too_many_lists(reason);
	return error ? reason_set(reason, error, "cannot write to the store: %s", reason_of_write(error)) : 0;
}

static int close_list(struct apply *apply, const struct import *import, struct reason *reason)
{
	int error = import->is_deletion ? store_list_delete(apply->store, apply->owner) : 0;

	return error ? reason_set(reason, error, "cannot delete the list: %s", reason_of_write(error)) : 0;
}

static int make_import(struct apply *apply, void *context, struct reason *reason)
{
	struct import *import = context;
	const struct invocation *invocation = import->invocation;
	int error = 0;

	if (invocation->confirm_ms)
		error = apply_set_pending(apply, invocation->confirm_ms, reason);
	if (!error)
		error = open_list(apply, import, reason);
	if (!error && invocation->is_replace)
		error = import_compare(import, apply->store, apply->owner, reason);
	if (!error && invocation->is_replace)
		error = give_up_kept(apply, import, reason);
	if (!error)
		error = delete_obsolete(apply, import, reason);
	if (!error)
		error = add_rules(apply, import, reason);
	return error ? error : close_list(apply, import, reason);
}

/* ---- the command ---- */

static json_t *import_answer(struct apply *apply, const struct import *import)
{
	double seconds = seconds_since(&import->start);
	struct store_info info = {};
	json_t *answer = import_counts(import);

	store_info(apply->store, &info);
	json_object_set_new(answer, "rules", json_integer(info.rules));
	json_object_set_new(answer, "seconds", json_real(seconds));
	json_object_set_new(answer, "rules_per_second", json_integer(import->total / seconds));
	return answer;
}

static void note_pending(struct apply *apply, struct watchdog *watchdog)
{
	__s64 left_ms;

	if (!apply_pending_left(apply, &watchdog->pending_id, &left_ms))
		watchdog->deadline_ms = watchdog_deadline(left_ms);
}

static int change(struct import *import, struct watchdog *watchdog, json_t **answer, struct reason *reason)
{
	const struct invocation *invocation = import->invocation;
	struct apply apply;
	struct guard guard;
	int error = command_open_guarded(invocation, &apply, &guard, reason);

	if (!error) {
		command_report_targets(&apply);
		apply.is_whole = invocation->is_replace;
		error = apply_change(&apply, make_import, import, reason);
	}
	output_progress_end();
	if (!error) {
		command_report_rebuilds(&apply);
		*answer = import_answer(&apply, import);
	}
	if (!error && invocation->confirm_ms)
		note_pending(&apply, watchdog);
	apply_close(&apply);
	guard_close(&guard);
	return error;
}

/* What the list itself forbids: -EINVAL. */
static int check_list(const struct import *import, struct reason *reason)
{
	const struct invocation *invocation = import->invocation;

	if (invocation->is_strict && import->bad)
		return reason_set(reason, -EINVAL, "%llu bad line%s: nothing was changed (--strict)",
				  (unsigned long long)import->bad, import->bad == 1 ? "" : "s");
	return 0;
}

static int read_file(struct import *import, struct reason *reason)
{
	struct reader reader;
	int error = reader_open(&reader, import->path);

	if (error)
		return reason_set(reason, error == -EINVAL ? -EIO : error,
				  "cannot read '%s': %s; name a file, or - for standard input", import->path,
				  strerror(-error));
	error = read_list(import, &reader, reason);
	reader_close(&reader);
	return error;
}

static int read_and_change(struct import *import, struct watchdog *watchdog, json_t **answer, struct reason *reason)
{
	int error = 0;

	if (import->invocation->is_dry_run)
		error = guard_open(&import->guard, reason);
	if (!error && !import->is_deletion)
		error = read_file(import, reason);
	if (!error)
		error = check_list(import, reason);
	if (error)
		return error;
	import_specials_note(&import->specials);
	if (import->invocation->is_dry_run)
		return import_dry_run(import, answer, reason);
	return change(import, watchdog, answer, reason);
}

/* The watchdog waits before anything is printed: whoever reads that may be gone. */
static int run(struct import *import, struct import_result *result, struct reason *reason)
{
	const struct invocation *invocation = import->invocation;
	struct watchdog watchdog = { .state = invocation->state, .name = invocation->name };
	struct sigaction before[INTERRUPTS];
	int error;

	if (invocation->confirm_ms)
		watchdog_ignore_hangup();
	clock_gettime(CLOCK_MONOTONIC, &import->start);
	catch_interrupts(before);
	error = read_and_change(import, &watchdog, &result->answer, reason);
	rule_set_close(&import->rules);
	rule_diff_close(&import->diff);
	guard_close(&import->guard);
	if (!error && watchdog.pending_id)
		error = watchdog_start(&watchdog, reason);
	leave_interrupts(before);
	result->bad_lines = import->bad;
	result->deadline_ms = watchdog.deadline_ms;
	return error;
}

int import_list(const struct invocation *invocation, const char *path, struct import_result *result,
		struct reason *reason)
{
	struct import import = { .invocation = invocation, .path = path };

	*result = (struct import_result){};
	return run(&import, result, reason);
}

int import_delete_list(const struct invocation *invocation, struct import_result *result, struct reason *reason)
{
	struct import import = { .invocation = invocation, .is_deletion = true };

	*result = (struct import_result){};
	return run(&import, result, reason);
}
