// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "lists/import.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "lists/backup.h"
#include "lists/internal.h"
#include "io/output.h"
#include "base/clock.h"
#include "base/waiting.h"
#include "base/safe_text.h"

#define STEPS_A_PROGRESS 65536
#define GZIP_START "\x1f" /* no text has this byte */
#define GROW_FREE 1000    /* a list may always grow by so many rules */
#define DESTINATIONS_CHECKED 64

/* ---- interruption, progress ---- */

static const int interrupts[IMPORT_SIGNALS] = { SIGINT, SIGTERM };
static volatile sig_atomic_t is_interrupted;

static void interrupt(int signal_number)
{
	(void)signal_number;
	is_interrupted = 1;
	waiting_is_over = 1;
}

static int interrupted_reason(struct reason *reason)
{
	return reason_set(reason, -EINTR, "interrupted: nothing was changed");
}

/* ---- reading ---- */

static int go_on(struct list_input *list)
{
	const struct reader *reader = &list->reader;
	struct import *import = list->context;

	if (++import->steps % STEPS_A_PROGRESS == 0)
		output_progress("reading", import->rules.count,
				reader->bytes_total ? (double)reader->bytes_read / reader->bytes_total : -1,
				clock_seconds() - import->start_s);
	return is_interrupted ? -EINTR : 0;
}

/* Forgets the lines that are held; shows them first if the file is a list. */
static void release_held(struct import *import, bool is_list)
{
	for (size_t i = 0; i < import->held_count; i++) {
		if (is_list && import->held[i])
			import->refuse(import->held[i]);
		free(import->held[i]);
	}
	import->held_count = 0;
}

/*
 * A file without any rule gets one message, however many lines it has. So lines before the first rule are held. Those
 * of iptables are shown at once: a user who leaves iptables must see each line that is not read.
 */
static void refuse(struct list_input *list, const char *text)
{
	struct import *import = list->context;
	struct reason line;

	if (++import->bad > IMPORT_BAD_LINES_SHOWN && list->format != LIST_IPTABLES) {
		import->hidden++;
		return;
	}
	reason_set(&line, 0, "%s:%llu: %s", list->reader.name, (unsigned long long)list->reader.number, text);
	if (import->has_rule || list->format == LIST_IPTABLES)
		import->refuse(line.text);
	else
		import->held[import->held_count++] = strdup(line.text);
}

static void note(struct list_input *list, const char *text)
{
	output_note("%s: %s", list->reader.name, text);
}

static int take(struct list_input *list, const struct rule *rule)
{
	struct import *import = list->context;
	struct import_warnings *warnings = &import->warnings;
	struct import_warning *warning = warnings->kinds;
	const char *unfit = import->options->limits ? list_unfit(import->options->limits, rule) : NULL;
	const char *special = unfit ? NULL : guard_special(rule, &warnings->own);

	if (unfit) {
		refuse(list, unfit);
		return 0;
	}
	if (!import->has_rule)
		release_held(import, true);
	import->has_rule = true;
	if (special) {
		while (warning < warnings->kinds + IMPORT_WARNINGS_MAX - 1 && warning->what &&
		       strcmp(warning->what, special))
			warning++;
		if (!warning->count++)
			rule_format(rule, warning->first);
		warning->what = special;
	}
	/* Each check asks the kernel, so only the first rules are checked. */
	if (rule->dst_len && !*warnings->elsewhere && warnings->destinations++ < DESTINATIONS_CHECKED &&
	    guard_is_elsewhere(rule))
		rule_format(rule, warnings->elsewhere);
	return rule_set_add(&import->rules, rule);
}

static int read_error_reason(const struct list_input *list, int error, struct reason *reason)
{
	if (is_interrupted)
		return interrupted_reason(reason);
	if (error == -EMSGSIZE)
		return reason_set(reason, -EINVAL,
				  "%s:%llu: the line is longer than %d bytes: this is no list; nothing was changed",
				  list->reader.name, (unsigned long long)list->reader.number, READER_LINE_BYTES);
	return reason_set(reason, error, "cannot read %s: %s", list->reader.name, strerror(-error));
}

static int check_set(const struct list_input *list, struct reason *reason)
{
	if (!list->set || list->has_set)
		return 0;
	if (list->format != LIST_IPSET && list->format != LIST_NFT)
		return reason_set(reason, -EINVAL, "%s has no sets: --set is for the formats ipset and nft",
				  list->reader.name);
	return reason_set(reason, -EINVAL, "%s has no set '%s'; %s%s", list->reader.name, list->set,
			  *list->other_sets ? "it has: " : "it has no set", list->other_sets);
}

/* A file without a rule is more likely a failed download than meant. */
static int check_rules(struct import *import, const struct list_input *list, bool has_bad, struct reason *reason)
{
	const struct import_options *options = import->options;
	const char *first = import->held_count && import->held[0] ? import->held[0] : "";

	if (options->is_forced || (has_bad && options->is_strict)) {
		release_held(import, true);
		return 0;
	}
	if (has_bad)
		return reason_set(reason, -EINVAL,
				  "no line of %s is a rule; nothing was changed; see the formats in xdp-cuckoo help "
				  "import, and choose one with --format%s%.160s",
				  list->reader.name, *first ? "; the first: " : "", first);
	return reason_set(reason, -EINVAL, "%s holds no rule; nothing was changed; if it is meant to be empty, %s",
			  list->reader.name, options->insist ? options->insist : "say --force");
}

/* After an error the file is closed. */
static int open_file(const struct import_options *options, const char *path, struct reader *reader,
		     struct reason *reason)
{
	int error = reader_open(reader, path);

	if (error && strstr(path, "://"))
		return reason_set(reason, -EINVAL,
				  "'%s': nothing is downloaded here: curl -fsS %s | xdp-cuckoo import -", path, path);
	if (error)
		return reason_set(reason, error == -EINVAL ? -EIO : error,
				  "cannot read '%s': %s%s", path, strerror(-error),
				  options->insist ? "" : "; name a file, or - for standard input");
	if (options->source)
		reader->name = options->source;
	if (reader_begins(reader, GZIP_START))
		error = reason_set(reason, -EINVAL, "'%s' is compressed: zcat %s | xdp-cuckoo import -", reader->name,
				   path);
	else if (reader_begins(reader, BACKUP_HEAD))
		error = reason_set(reason, -EINVAL, "'%s' is a backup: xdp-cuckoo restore %s%s", reader->name, path,
				   session_name_option(options->name));
	if (error)
		reader_close(reader);
	return error;
}

static int read_list(struct import *import, const char *path, struct reason *reason)
{
	const struct import_options *options = import->options;
	const __u64 rules = import->rules.count, bad = import->bad;
	struct list_input list = { .format = options->list_format ? list_format_named(options->list_format) :
								    LIST_UNKNOWN,
				   .timeout_ms = options->timeout_ms,
				   .action = options->action,
				   .is_new_only = options->is_new_only,
				   .set = options->set_name,
				   .json = options->json_path,
				   .may_lack = options->is_forced,
				   .is_strict = options->is_strict,
				   .take = take,
				   .refuse = refuse,
				   .note = note,
				   .go_on = go_on,
				   .context = import };
	int error = open_file(options, path, &list.reader, reason);
	struct reason more;

	if (error)
		return error;
	import->has_rule = false;
	import->hidden = 0;
	error = list_read(&list);
	output_progress_end();
	if (error || is_interrupted)
		error = read_error_reason(&list, error, reason);
	else if (options->is_replace && reader_is_changed(&list.reader))
		error = reason_set(reason, -EAGAIN,
				   "%s was changed while it was read; nothing was changed; write the list to another file, and "
				   "rename that one",
				   list.reader.name);
	else if (options->is_replace && import->has_rule && list.is_cut)
		error = reason_set(reason, -EINVAL, "%s was not read to its end, see above; nothing was changed",
				   list.reader.name);
	else if (import->has_rule && import->hidden) {
		reason_set(&more, 0, "%s: %llu more bad lines", list.reader.name, (unsigned long long)import->hidden);
		import->refuse(more.text);
	}
	if (!error && list.masked.count)
		output_note("%s: host bits cleared in %zu prefix%s, the first is '%s'; --strict refuses them",
			    list.reader.name, list.masked.count, list.masked.count == 1 ? "" : "es", list.masked.first);
	if (!error)
		error = check_set(&list, reason);
	if (!error && import->rules.count == rules)
		error = check_rules(import, &list, import->bad > bad, reason);
	release_held(import, false);
	reader_close(&list.reader);
	return error;
}

/* The list is more likely a mistake of its provider than meant. Says how to import it. */
static int refuse_list(const struct import *import, const struct reason *why, struct reason *reason)
{
	const struct import_options *options = import->options;
	char more[256] = "", time[RULE_TIME_BYTES];

	if (options->source)
		return reason_set(reason, -EINVAL,
				  "%s; nothing was changed; if it is meant: xdp-cuckoo refresh %s --force%s", why->text,
				  options->list_name, session_name_option(options->name));
	if (options->list_format)
		text_append(more, sizeof(more), " --format %s", options->list_format);
	if (options->set_name)
		text_append(more, sizeof(more), " --set '%s'", options->set_name);
	if (options->json_path)
		text_append(more, sizeof(more), " --json-path '%s'", options->json_path);
	if (options->action != RULE_DROP)
		text_append(more, sizeof(more), " --action %s", rule_action_name(options->action));
	if (options->timeout_ms)
		text_append(more, sizeof(more), " --timeout %s", rule_time_format(options->timeout_ms, time));
	return reason_set(reason, -EINVAL,
			  "%s; nothing was changed; if it is meant: xdp-cuckoo import --list %s --replace%s%s%s %s",
			  why->text, options->list_name, session_name_option(options->name),
			  options->is_new_only ? " --new-only" : "", more, import->paths[0]);
}

/* ---- changing ---- */

static int go_on_storing(size_t done, size_t total, void *context, struct reason *reason)
{
	const struct import *import = context;

	if (is_interrupted)
		return interrupted_reason(reason);
	if (done % STEPS_A_PROGRESS == 0)
		output_progress("storing", done, (double)done / total, clock_seconds() - import->storing_s);
	return 0;
}

/*
 * Without --replace, a drop rule takes the place of the import list's monitor rule for the same packets: the other one
 * is to be given up, unless the files have both. A monitor rule takes that of the drop rule only if the command says so:
 * a line of a list ends no drop rule.
 */
static int add_twins(struct session *session, struct rule_set *rules, bool ends_drop, struct reason *reason)
{
	const struct shape_list *shapes = store_shape_list(session->store);
	/* Even if no twin is there: the undo of a pending change could bring it back. */
	bool has_twins = store_has_earlier_pending(session->store);
	struct rule_set both = {};
	struct rule rule;
	int error = 0;

	for (size_t i = 0; i < shapes->count; i++)
		has_twins |= shapes->entry[i].shape.action == RULE_MONITOR;
	for (size_t i = 0; i < rules->count && !error; i++) {
		rule_set_get(rules, i, &rule);
		if (rule.action == RULE_PASS || !(rule.action == RULE_MONITOR ? ends_drop : has_twins))
			continue;
		rule.action = rule.action == RULE_DROP ? RULE_MONITOR : RULE_DROP;
		rule.timeout_ms = -1;
		error = rule_set_add(&both, &rule);
	}
	/* Of equal rules, the one added last stays. */
	for (size_t i = 0; i < rules->count && both.count && !error; i++) {
		rule_set_get(rules, i, &rule);
		error = rule_set_add(&both, &rule);
	}
	if (both.count) {
		rule_set_close(rules);
		*rules = both;
	}
	return error ? reason_set(reason, error, "not enough memory") : 0;
}

/* Compares the number of rules with that of the list now. */
static int check_size(struct session *session, const struct import *import, struct reason *reason)
{
	const struct import_options *options = import->options;
	struct store_lists lists;
	int error = store_unread_reason(store_lists(session->store, &lists), reason);
	const unsigned long long rules = error ? 0 : lists.list[session->owner].rules, total = import->total;
	struct reason why;

	if (!error && 100 * total < options->least_percent * rules)
		reason_set(&why, 0, "%llu rules instead of %llu: it lost more than max-shrink = %u%%", total, rules,
			   100 - options->least_percent);
	else if (!error && options->limits && rules && total > rules + GROW_FREE &&
		 100 * (total - rules) > options->grow_max * rules)
		reason_set(&why, 0, "%llu rules instead of %llu: it grew by more than max-grow = %u%%", total, rules,
			   options->grow_max);
	else
		return error;
	return refuse_list(import, &why, reason);
}

/* --replace without --list must not delete the rules of lists as a side effect. */
static int check_lists(struct session *session, struct reason *reason)
{
	struct store_lists lists;
	int error = store_lists(session->store, &lists);

	if (error)
		return store_unread_reason(error, reason);
	for (size_t i = 1; i <= STORE_LISTS_MAX; i++)
		if (lists.list[i].rules)
			return reason_set(reason, -EINVAL,
					  "--replace would also delete the rules of lists, as of '%s'; "
					  "nothing was changed; say --list NAME to replace one list",
					  lists.list[i].name);
	return 0;
}

/* Whether the names of files read as another source. */
static bool is_misread(const char *names)
{
	unsigned long long bad;

	return sscanf(names, STORE_BAD_LINES, &bad) == 1 ||
	       store_source_parse(names).kind != STORE_SOURCE_OTHER;
}

/* The list owns the rules that are added. Its source has the number of bad lines, and names as many files as fit. */
static int open_list(const struct import *import, struct session *session, struct reason *reason)
{
	const struct import_options *options = import->options;
	char source[STORE_SOURCE_BYTES];
	const size_t begin = sprintf(source, STORE_BAD_LINES, (unsigned long long)import->bad);
	size_t used = begin, i = 0;

	for (; i < import->paths_count && used + strlen(import->paths[i]) + sizeof(" ...") < sizeof(source); i++)
		used += sprintf(source + used, "%s%s", i ? " " : "", import->paths[i]);
	strcpy(source + used, !i || i == import->paths_count ? "" : " ...");
	for (char *byte = source; *byte && !(rule_is_plain(source) && rule_is_utf8(source)); byte++)
		if (*byte < ' ' || *byte > '~' || *byte == '"')
			*byte = '?';
	if (!import->paths_count)
		return change_find_list(session, options->list_name, reason);
	used = import->bad || is_misread(source + begin) ? 0 : begin;
	return change_open_list(session, options->list_name,
				options->source ? options->source : source + used, reason);
}

/* Within a change. */
static int change(struct import *import, struct session *session, struct reason *reason)
{
	const struct import_options *options = import->options;
	int error = options->confirm_ms ? change_set_pending(session, options->confirm_ms, reason) : 0;

	if (!error)
		error = open_list(import, session, reason);
	if (!error && (options->least_percent || options->limits))
		error = check_size(session, import, reason);
	if (!error && options->is_replace && !options->list_name && !options->is_forced)
		error = check_lists(session, reason);
	import->storing_s = clock_seconds();
	if (!error && !options->is_replace)
		error = add_twins(session, &import->rules, options->action == RULE_MONITOR, reason);
	if (!error)
		error = change_make_equal(session, &import->equal, reason);
	output_progress("activating", import->rules.count, -1, clock_seconds() - import->storing_s);
	/* The commit may need the memory for new tables. */
	rule_set_close(&import->rules);
	if (error || import->paths_count || options->keeps_list)
		return error;
	error = store_list_delete(session->store, session->owner);
	return error ? reason_set(reason, error, "cannot delete the list: %s", reason_of_write(error)) : 0;
}

int import_change(struct import *import, struct session *session, struct reason *reason)
{
	const bool is_replace = import->options->is_replace;
	int error = change_begin(session, reason);

	if (error)
		return error;
	import->equal = (struct change_equal){ .wanted = &import->rules,
					       .is_entries = !is_replace,
					       .is_added = !is_replace,
					       .is_alone = is_replace && !import->options->list_name,
					       .is_at_once = is_replace,
					       .leaves_blockers = import->options->leaves_out,
					       .prefix_min = LEFT_OUT_PREFIX_MIN,
					       .go_on = go_on_storing,
					       .context = import };
	error = change_end(session, change(import, session, reason), reason);
	output_progress_end();
	return error;
}

/* ---- an import from start to end ---- */

int import_open(struct import *import, const struct import_options *options, char *const *paths, size_t paths_count,
		void (*refuse_line)(const char *text), struct reason *reason)
{
	const struct sigaction action = { .sa_handler = interrupt }; /* no SA_RESTART: it also ends a read that waits */
	const struct list_limits *limits = options->limits;
	struct reason why;
	int error = 0;

	*import = (struct import){
		.options = options, .paths = paths, .paths_count = paths_count, .refuse = refuse_line
	};
	import->start_s = clock_seconds();
	for (size_t i = 0; i < IMPORT_SIGNALS; i++)
		sigaction(interrupts[i], &action, &import->before[i]);
	for (size_t i = 0; i < paths_count && !error; i++)
		error = read_list(import, paths[i], reason);
	if (error)
		return error;
	rule_set_sort(&import->rules);
	import->total = import->rules.count;
	if (options->rules_max && import->total > options->rules_max)
		return reason_set(reason, -EINVAL, "%llu rules, and max-rules is %llu; nothing was changed",
				  (unsigned long long)import->total, (unsigned long long)options->rules_max);
	if (limits && limits->space_max < 100 && list_check_share(&import->rules, limits->space_max, &why))
		return refuse_list(import, &why, reason);
	if (options->is_strict && import->bad)
		return reason_set(reason, -EINVAL, "%llu bad line%s: nothing was changed (--strict)",
				  (unsigned long long)import->bad, import->bad == 1 ? "" : "s");
	for (size_t i = 0; i < IMPORT_WARNINGS_MAX && import->warnings.kinds[i].count; i++) {
		const struct import_warning *kind = &import->warnings.kinds[i];

		output_note("rarely meant to be dropped: %s; %llu rule%s, the first is '%s'", kind->what,
			    (unsigned long long)kind->count, kind->count == 1 ? "" : "s", kind->first);
	}
	if (*import->warnings.elsewhere)
		output_note(GUARD_ELSEWHERE, import->warnings.elsewhere);
	return 0;
}

void import_free(struct import *import)
{
	rule_set_close(&import->rules);
	change_equal_close(&import->equal);
	free(import->warnings.own.address);
}

void import_close(const struct import *import)
{
	for (size_t i = 0; i < IMPORT_SIGNALS; i++) {
		void (*const handler)(int) = import->before[i].sa_handler;

		sigaction(interrupts[i], &import->before[i], NULL);
		/* The signal may have come too late to interrupt the import, and is meant for the caller, too. */
		if (is_interrupted && handler != SIG_DFL && handler != SIG_IGN)
			handler(interrupts[i]);
	}
}
