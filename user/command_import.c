// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* import: the rules of a list, in one change: beside what is there, or in its place. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "command.h"
#include "guard.h"
#include "list.h"
#include "output.h"
#include "rule_diff.h"
#include "watchdog.h"

#define BAD_LINES_SHOWN 20
#define STEPS_A_PROGRESS 65536
#define SPECIALS_MAX 16

static enum command_status run_import(const struct invocation *invocation);

const struct command command_import = {
	.name = "import",
	.group = COMMAND_RULES,
	.usage = "FILE|- [--format text|ipset|nft|spamhaus|csv] [--replace] [--dry-run] [--strict] [--timeout TIME] "
		 "[--confirm TIME] [--force]",
	.summary = "add the rules of a list, or make the rules equal to it",
	.help = "One change: durable and active as a whole when it returns, or not at all. The format is told from\n"
	"the content, or named:\n"
	"  text      a rule, address, prefix or range A-B a line, # and ; start a comment; FireHOL netset\n"
	"  ipset     ipset save: the first address is the source, the second the destination, the port the\n"
	"            destination's; nomatch makes a pass rule, which wins over every drop rule\n"
	"  nft       nft -j list set, or of many sets: as with ipset; of two services the first is the source's\n"
	"            port. Take only the sets you mean: a set does not say whether it drops\n"
	"  spamhaus  DROP, text or JSON lines; the SBL number becomes the comment\n"
	"  csv       the first line names the columns: src, sport, dst, dport, proto, type, code, action,\n"
	"            timeout, comment, or usual names for these; all others are left out\n"
	"Ranges become the fewest prefixes. Bad lines are named with file, line and word, and left out; then the\n"
	"status is 2. Where a rule is there already, its timeout is updated, and its comment stays.\n"
	"  --replace       deletes what the list does not name, and changes only what differs; packets meet\n"
	"                  the old rules or the new ones, nothing between\n"
	"  --dry-run       says what would be added, updated, kept and removed, and changes nothing\n"
	"  --strict        changes nothing if any line is bad\n"
	"  --timeout TIME  for rules that name none\n"
	"  --confirm TIME  undoes all of it unless `xdp-cuckoo confirm` comes within TIME\n"
	"  --force         also where it blocks this host's own addresses, its default gateway, its name\n"
	"                  servers or the SSH session this is typed in; and --replace by an empty list\n"
	"\n"
	"  xdp-cuckoo import firehol_level1.netset --replace --strict\n"
	"  ipset save | xdp-cuckoo import - --dry-run\n"
	"  nft -j list set inet filter blocked | xdp-cuckoo import - --confirm 30s\n"
	"  zcat list.csv.gz | xdp-cuckoo import - --format csv --timeout 1d\n",
	.options = OPTION_LIST_FORMAT | OPTION_REPLACE | OPTION_DRY_RUN | OPTION_STRICT | OPTION_TIMEOUT |
		   OPTION_CONFIRM | OPTION_FORCE,
	.min = 1,
	.max = 1,
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ | PRIVILEGE_SSH,
	.run = run_import,
};

/* Rules that guard_special() has a word for. */
struct special {
	const char *what;
	__u64 count;
	char first[RULE_TEXT_BYTES];
};

struct import {
	const struct invocation *invocation;
	struct rule_set rules; /* of the list; sorted when it has been read */
	struct special specials[SPECIALS_MAX];
	struct guard guard; /* in a dry run: to be warned of */
	struct special blocking;
	__u64 bad, steps, total; /* rules in the list, each once */
	struct rule_diff diff;	/* its numbers without --replace too */
	struct timespec start, storing;
};

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
static void catch_interrupts(void)
{
	const struct sigaction action = { .sa_handler = interrupt };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
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
		command_error(STATUS_USAGE, "%s:%llu: %s", list->reader.name,
			      (unsigned long long)list->reader.number, text);
}

static void note(struct list *list, const char *text)
{
	output_note("%s: %s", list->reader.name, text);
}

static void count_special(struct special *special, const struct rule *rule, const char *what)
{
	if (!special->count++)
		rule_format(rule, special->first);
	special->what = what;
}

static void look_at_special(struct import *import, const struct rule *rule)
{
	const char *what = guard_special(rule);
	size_t i = 0;

	if (!what)
		return;
	while (i < SPECIALS_MAX - 1 && import->specials[i].what && strcmp(import->specials[i].what, what))
		i++;
	count_special(&import->specials[i], rule, what);
}

static int take(struct list *list, const struct rule *rule)
{
	struct import *import = list->context;

	look_at_special(import, rule);
	if (import->guard.count && rule->action == RULE_DROP && guard_concerns(&import->guard, rule))
		count_special(&import->blocking, rule, "");
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

static void note_specials(const struct import *import)
{
	for (size_t i = 0; i < SPECIALS_MAX && import->specials[i].count; i++) {
		const struct special *special = &import->specials[i];

		output_note("seldom meant to be dropped: %s; %llu rule%s, the first is '%s'", special->what,
			    (unsigned long long)special->count, special->count == 1 ? "" : "s",
			    special->first);
	}
	if (import->blocking.count)
		output_note("this host's own packets, or such as it is reached by: %llu rule%s, the first is '%s'; "
			    "but for --force and pass rules the import is refused",
			    (unsigned long long)import->blocking.count,
			    import->blocking.count == 1 ? "" : "s", import->blocking.first);
}

/* ---- changing ---- */

static int show_storing(const struct import *import, size_t done, struct reason *reason)
{
	if (is_interrupted)
		return interrupted(reason);
	if (done % STEPS_A_PROGRESS == 0)
		output_progress("storing", done, (double)done / import->rules.count,
				seconds_since(&import->storing));
	return 0;
}

static void count_added(struct import *import, int error)
{
	import->diff.added += !error;
	import->diff.updated += error == -EALREADY;
	import->diff.kept += error == -EEXIST;
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
		if (error && error != -EEXIST && error != -EALREADY)
			return error;
		if (!import->invocation->is_replace)
			count_added(import, error);
	}
	/* What is left is one step: the tables, and the disk. */
	output_progress("activating", import->rules.count, -1, seconds_since(&import->storing));
	return 0;
}

static int compare_stored(struct import *import, struct store *store, struct reason *reason)
{
	int error;

	rule_diff_begin(&import->diff, &import->rules);
	error = store ? store_each(store, rule_diff_visit, &import->diff) : 0;
	rule_diff_end(&import->diff);
	return error ? reason_set(reason, error, "cannot read the store: %s", strerror(-error)) : 0;
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
		error = apply_del(apply, &rule, reason);
	}
	return error;
}

static int make_import(struct apply *apply, void *context, struct reason *reason)
{
	struct import *import = context;
	const struct invocation *invocation = import->invocation;
	int error = 0;

	if (invocation->confirm_ms)
		error = apply_set_pending(apply, invocation->confirm_ms, reason);
	if (!error && invocation->is_replace)
		error = compare_stored(import, apply->store, reason);
	if (!error)
		error = delete_obsolete(apply, import, reason);
	return error ? error : add_rules(apply, import, reason);
}

/* ---- saying what would change ---- */

static int compare_one(struct import *import, struct store *store, size_t i)
{
	struct rule rule, present;
	int error;

	rule_set_get(&import->rules, i, &rule);
	present = rule;
	error = store ? store_get(store, &present) : -ENOENT;
	if (error && error != -ENOENT)
		return error;
	count_added(import, error ? 0 : present.timeout_ms ? -EALREADY : -EEXIST);
	return 0;
}

static int compare_each(struct import *import, struct store *store, struct reason *reason)
{
	int error = 0;

	for (size_t i = 0; i < import->rules.count && !error; i++)
		error = compare_one(import, store, i);
	return error ? reason_set(reason, error, "cannot read the store: %s", strerror(-error)) : 0;
}

static json_t *counts(const struct import *import)
{
	const struct rule_diff *diff = &import->diff;

	return json_pack("{s:I, s:I, s:I, s:I, s:I}", "added", (json_int_t)diff->added, "updated",
			 (json_int_t)diff->updated, "kept", (json_int_t)diff->kept, "removed",
			 (json_int_t)diff->removed, "bad_lines", (json_int_t)import->bad);
}

static int dry_run(struct import *import, json_t **answer, struct reason *reason)
{
	struct store *store;
	int error = command_open_store(import->invocation, &store, reason);

	if (error)
		return error;
	error = import->invocation->is_replace ? compare_stored(import, store, reason) :
						 compare_each(import, store, reason);
	store_close(store);
	if (error)
		return error;
	*answer = counts(import);
	json_object_set_new(*answer, "dry_run", json_true());
	return 0;
}

/* ---- the command ---- */

static json_t *import_answer(struct apply *apply, const struct import *import)
{
	double seconds = seconds_since(&import->start);
	struct store_info info = {};
	json_t *answer = counts(import);

	store_info(apply->store, &info);
	json_object_set_new(answer, "rules", json_integer(info.rules));
	json_object_set_new(answer, "seconds", json_real(seconds));
	json_object_set_new(answer, "rules_per_second", json_integer(import->total / seconds));
	return answer;
}

static void note_pending(struct apply *apply, struct watchdog *watchdog)
{
	struct store_pending pending = {};

	store_pending(apply->store, &pending);
	watchdog->pending_id = pending.id;
}

static int change(struct import *import, struct watchdog *watchdog, json_t **answer,
		  struct reason *reason)
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
	if (invocation->is_replace && !invocation->is_forced && !import->total)
		return reason_set(reason, -EINVAL, "the list holds no rule, and --replace would delete all; "
				  "nothing was changed; say --force, or flush");
	return 0;
}

static int read_and_change(struct import *import, struct reader *reader, struct watchdog *watchdog,
			   json_t **answer, struct reason *reason)
{
	int error = 0;

	if (import->invocation->is_dry_run)
		error = guard_open(&import->guard, reason);
	if (!error)
		error = read_list(import, reader, reason);
	if (!error)
		error = check_list(import, reason);
	if (error)
		return error;
	note_specials(import);
	if (import->invocation->is_dry_run)
		return dry_run(import, answer, reason);
	return change(import, watchdog, answer, reason);
}

static enum command_status check_options(const struct invocation *invocation)
{
	const char *format = invocation->list_format;

	if (format && !list_format_named(format))
		return command_not_a_choice("--format", format, "text|ipset|nft|spamhaus|csv");
	if (invocation->is_dry_run && invocation->confirm_ms)
		return command_error(STATUS_USAGE, "--dry-run changes nothing that --confirm could undo");
	return STATUS_DONE;
}

/* The watchdog waits before anything is printed: whoever reads that may be gone. */
static enum command_status run_import(const struct invocation *invocation)
{
	struct import import = { .invocation = invocation };
	struct watchdog watchdog = { .state = invocation->state,
				     .name = invocation->name,
				     .timeout_ms = invocation->confirm_ms };
	const char *path = invocation->operands[0];
	json_t *answer = NULL;
	struct reader reader;
	struct reason reason;
	int error;

	if (check_options(invocation))
		return STATUS_USAGE;
	error = reader_open(&reader, path);
	if (error)
		return command_error(STATUS_SYSTEM, "cannot read '%s': %s; name a file, or - for standard input", path,
				     strerror(-error));
	if (invocation->confirm_ms)
		watchdog_ignore_hangup();
	clock_gettime(CLOCK_MONOTONIC, &import.start);
	catch_interrupts();
	error = read_and_change(&import, &reader, &watchdog, &answer, &reason);
	reader_close(&reader);
	rule_set_close(&import.rules);
	rule_diff_close(&import.diff);
	guard_close(&import.guard);
	if (!error && watchdog.pending_id)
		error = watchdog_start(&watchdog, &reason);
	output_print(answer);
	if (!error && watchdog.pending_id)
		command_report_confirm(invocation);
	if (error)
		return command_failed(error, &reason);
	return import.bad ? STATUS_USAGE : STATUS_DONE;
}
