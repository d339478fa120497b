// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The table of commands, and what they share: failures, notes, operands. */
#include "commands/command.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/output.h"
#include "base/suggest.h"

extern const struct command command_load, command_unload, command_status, command_stats;
extern const struct command command_add, command_del, command_test, command_list, command_flush;
extern const struct command command_import, command_export, command_resize, command_check, command_help;
extern const struct command command_batch, command_expire, command_version;
extern const struct command command_policy, command_monitor_only, command_panic, command_confirm;
extern const struct command command_bench, command_metrics, command_exporter, command_complete, command_monitor;
extern const struct command command_top, command_lists, command_up, command_down, command_check_config;

const struct command *const command_table[] = {
	&command_load,   &command_unload,       &command_status,       &command_stats,
	&command_top,    &command_add,          &command_del,          &command_test,
	&command_list,   &command_flush,        &command_import,       &command_export,
	&command_lists,  &command_batch,        &command_expire,       &command_monitor,
	&command_policy, &command_monitor_only, &command_panic,        &command_confirm,
	&command_up,     &command_down,         &command_check_config, &command_resize,
	&command_check,  &command_bench,        &command_metrics,      &command_exporter,
	&command_help,   &command_version,      &command_complete,     NULL,
};

const struct command *command_find(const char *name)
{
	for (const struct command *const *command = command_table; *command; command++)
		if (!strcmp((*command)->name, name))
			return *command;
	return NULL;
}

enum command_status command_unknown(const char *name)
{
	struct suggest suggest = suggest_for(name);
	char text[SUGGEST_TEXT_BYTES];

	for (const struct command *const *command = command_table; *command; command++)
		if ((*command)->group != COMMAND_HIDDEN)
			suggest_offer(&suggest, (*command)->name);
	return command_error(STATUS_USAGE, "no command '%s'%s", name, suggest_text(&suggest, "xdp-cuckoo help", text));
}

enum command_status command_status_of(int error)
{
	switch (-error) {
	case ECANCELED:
	case EINVAL:
	case ENODEV:
	case ENAMETOOLONG:
		return STATUS_USAGE;
	case ENOSPC:
	case ENOMEM:
	case E2BIG:
	case EUSERS:
		return STATUS_FULL;
	case EBUSY:
		return STATUS_BUSY;
	default:
		return STATUS_SYSTEM;
	}
}

enum command_status command_failed(int error, const struct reason *reason)
{
	output_error(command_status_of(error), reason->text);
	return command_status_of(error);
}

enum command_status command_error(enum command_status status, const char *format, ...)
{
	char text[REASON_BYTES + 512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	output_error(status, text);
	return status;
}

const char *command_name_option(const char *name, char text[COMMAND_NAME_BYTES])
{
	const bool is_named = strcmp(name, APPLY_NAME_DEFAULT);

	snprintf(text, COMMAND_NAME_BYTES, "%s%.*s", is_named ? " --name " : "", ABI_NAME_BYTES - 1,
		 is_named ? name : "");
	return text;
}

enum command_status command_not_running(const char *name)
{
	struct suggest suggest = suggest_for(name);
	char option[COMMAND_NAME_BYTES], text[SUGGEST_TEXT_BYTES];
	struct kernel_filter *filters;
	struct reason ignored;
	size_t count;

	kernel_look(NULL, &filters, &count, &ignored);
	for (size_t i = 0; i < count; i++)
		suggest_offer(&suggest, filters[i].config->name);
	kernel_filters_free(filters, count);
	/* Not the name itself, of a filter that has started since it was looked for. */
	if (*suggest.nearest && strcmp(suggest.nearest, name))
		return command_error(STATUS_NO, "no filter '%s' is running here%s", name,
				     suggest_text(&suggest, "xdp-cuckoo status", text));
	return command_error(STATUS_NO,
			     "no filter '%s' is running here; see xdp-cuckoo status, or run it: "
			     "xdp-cuckoo%s load IFACE",
			     name, command_name_option(name, option));
}

enum command_status command_open_counts(const struct invocation *invocation, struct rule_counts *counts)
{
	char option[COMMAND_NAME_BYTES];
	struct reason reason;
	const int error = rule_counts_open(counts, invocation->name, &reason);

	switch (error) {
	case 0:
		return STATUS_DONE;
	case -ENOENT:
		return command_not_running(invocation->name);
	case -EOPNOTSUPP:
		return command_error(STATUS_NO,
				     "the filter '%s' does not count by rule: load it again without --compact "
				     "and --no-counters; see xdp-cuckoo%s status",
				     invocation->name, command_name_option(invocation->name, option));
	default:
		return command_failed(error, &reason);
	}
}

void command_report_targets(struct apply *apply)
{
	char option[COMMAND_NAME_BYTES];

	if (!apply->targets_count)
		output_note("no filter '%s' is running; rules take effect at xdp-cuckoo%s load IFACE", apply->name,
			    command_name_option(apply->name, option));
	command_report_found(apply);
}

void command_report_undone(struct apply *apply)
{
	struct apply_undone *undone = &apply->undone;
	char option[COMMAND_NAME_BYTES];

	if (undone->is_told)
		return;
	undone->is_told = true;
	if (undone->error)
		output_warning("a change that was not confirmed in time cannot be undone yet: %s; until then everything "
			       "passes; xdp-cuckoo%s confirm --force keeps the change instead",
			       undone->reason.text, command_name_option(apply->name, option));
	if (undone->is_done && !undone->lost)
		output_warning("undid a change of %llu rule%s that was not confirmed in time: rules are again as they were "
			       "before it",
			       (unsigned long long)undone->rules, undone->rules == 1 ? "" : "s");
	if (undone->lost)
		output_warning("a change that was not confirmed in time is undone, but for %llu rule%s of before: %s",
			       (unsigned long long)undone->lost, undone->lost == 1 ? "" : "s", undone->reason.text);
}

void command_report_found(struct apply *apply)
{
	command_report_undone(apply);
	for (size_t i = 0; i < apply->targets_count; i++) {
		const struct target *target = &apply->targets[i];

		if (target->state == TARGET_SET_UP)
			output_note("adopted the filter on %s as '%s'", target->filter.attachments[0].interface,
				    apply->name);
		if (target->state == TARGET_REPAIRED)
			output_note("repaired the table of '%s' on %s: an earlier command did not finish", apply->name,
				    target->filter.attachments[0].interface);
		if (target->state == TARGET_TAKEN_OVER)
			output_note("put this version's filter in the place of another version's on %s; it counts "
				    "from 0",
				    target->filter.attachments[0].interface);
	}
}

static void report_rebuild(const struct apply *apply, const struct target *target)
{
	const __u64 now = table_slots(&target->table), before = target->slots_before;
	const char *interface = target->filter.attachments_count ? target->filter.attachments[0].interface : "-";

	if (before != now)
		output_note("the table of '%s' on %s went from %llu to %llu slots", apply->name, interface,
			    (unsigned long long)before, (unsigned long long)now);
	else if (target->cause == TARGET_STUCK)
		output_note("too many keys met in one pair of buckets: rebuilt the table of '%s' on "
			    "%s under a fresh hash key",
			    apply->name, interface);
	else if (target->cause == TARGET_AGED)
		output_note("rebuilt the table of '%s' on %s: it was too old to tell when new rules end", apply->name,
			    interface);
	else if (target->cause == TARGET_NEW_PLAN)
		output_note("rebuilt the table of '%s' on %s: prefix lengths are joined anew, so that a "
			    "packet costs few probes",
			    apply->name, interface);
}

void command_report_rebuilds(const struct apply *apply)
{
	for (size_t i = 0; i < apply->targets_count; i++)
		if (apply->targets[i].slots_before)
			report_rebuild(apply, &apply->targets[i]);
}

const char *command_format_name(const struct abi_options *options)
{
	static const char *const compact[BUCKET_FORMATS] = {
		[BUCKET_16] = "compact, 16 bits",
		[BUCKET_32] = "compact, 32 bits",
		[BUCKET_8] = "compact, 8 bits",
		[BUCKET_17] = "compact, 17 bits, semi-sorted",
	};

	if (!options->is_exact)
		return compact[options->format % BUCKET_FORMATS];
	return options->has_counts ? "exact, counted by rule" : "exact";
}

struct abi_options command_table_options(const struct invocation *invocation)
{
	static const enum bucket_format formats[] = {
		[0] = BUCKET_16, [8] = BUCKET_8, [16] = BUCKET_16, [17] = BUCKET_17, [32] = BUCKET_32,
	};

	return (struct abi_options){
		.format = formats[invocation->fingerprint_bits],
		.is_exact = !invocation->is_compact,
		.has_counts = !invocation->is_compact && !invocation->has_no_counters,
		.is_alone = invocation->has_no_spare,
	};
}

bool command_names_format(const struct invocation *invocation)
{
	return invocation->is_compact || invocation->fingerprint_bits || invocation->has_no_counters ||
	       invocation->has_no_spare;
}

enum command_status command_check_format(const struct invocation *invocation)
{
	if (invocation->fingerprint_bits && !invocation->is_compact)
		return command_error(STATUS_USAGE, "--fingerprint goes with --compact: an exact table has "
						   "16 bits and drops no innocent packet");
	return STATUS_DONE;
}

/* "a|b|c" as "a, b or c". */
static const char *spell_choices(const char *choices, char *text, size_t size)
{
	const char *last = strrchr(choices, '|');
	size_t used = 0;

	for (const char *c = choices; *c && used < size; c++)
		used += *c != '|' ? snprintf(text + used, size - used, "%c", *c) :
				    snprintf(text + used, size - used, "%s", c == last ? " or " : ", ");
	return text;
}

enum command_status command_not_a_choice(const char *what, const char *word, const char *choices)
{
	struct suggest suggest = suggest_for(word);
	char spelt[SUGGEST_TEXT_BYTES], text[SUGGEST_TEXT_BYTES];

	suggest_offer_choices(&suggest, choices);
	return command_error(STATUS_USAGE, "%s '%s': must be %s%s", what, word,
			     spell_choices(choices, spelt, sizeof(spelt)), suggest_text(&suggest, NULL, text));
}

int command_mode_named(const char *word, enum kernel_mode *mode)
{
	static const char *const modes[] = {
		[KERNEL_AUTO] = "auto",
		[KERNEL_NATIVE] = "native",
		[KERNEL_SKB] = "skb",
	};

	for (*mode = KERNEL_AUTO; *mode <= KERNEL_SKB; ++*mode)
		if (!strcmp(modes[*mode], word))
			return 0;
	return -EINVAL;
}

int command_fingerprint_named(const char *word, unsigned int *bits)
{
	static const char *const widths[] = { "8", "16", "17", "32" };

	for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++)
		if (!strcmp(widths[i], word)) {
			*bits = strtoul(word, NULL, 10);
			return 0;
		}
	return -EINVAL;
}

enum command_status command_number(const char *what, const char *text, __u64 *number)
{
	char *end;

	errno = 0;
	*number = strtoull(text, &end, 10);
	if (*text >= '0' && *text <= '9' && !*end && !errno && *number > 0)
		return STATUS_DONE;
	return command_error(STATUS_USAGE, "%s '%s': must be a number of rules, 1 or more", what, text);
}

enum command_status command_rule(const struct invocation *invocation, struct rule *rule)
{
	const char *const *words = (const char *const *)invocation->operands;
	struct reason reason;
	int error = invocation->count == 1 ? rule_parse(words[0], rule, &reason) :
					     rule_parse_words(words, invocation->count, rule, &reason);

	return error ? command_failed(error, &reason) : STATUS_DONE;
}

bool command_is_late(struct store *store)
{
	struct store_pending pending;

	return store && !store_pending(store, &pending) && pending.id && pending.left_ms <= 0;
}

/* Once, however often a command looks. */
static void report_late(const struct invocation *invocation, struct store *store)
{
	static bool is_told;
	char option[COMMAND_NAME_BYTES];

	if (is_told || !command_is_late(store))
		return;
	is_told = true;
	output_warning("the last change was not confirmed in time, and is still to be undone: until then a running filter "
		       "passes everything; xdp-cuckoo%s check undoes it, and so does the next change",
		       command_name_option(invocation->name, option));
}

int command_open_store(const struct invocation *invocation, struct store **store, struct reason *reason)
{
	char dir[PATH_MAX];
	int error = apply_state_dir(invocation->state, invocation->name, dir, sizeof(dir));

	*store = NULL;
	if (error)
		return reason_set(reason, error, "--state '%.40s...': too long a name for a directory",
				  invocation->state);
	error = store_open(dir, STORE_READ, store, reason);
	report_late(invocation, *store);
	return error == -ENOENT ? 0 : error;
}

int command_open_guarded(const struct invocation *invocation, struct apply *apply, struct guard *guard,
			 struct reason *reason)
{
	int error;

	*apply = (struct apply){};
	*guard = (struct guard){};
	error = invocation->is_forced ? 0 : guard_open(guard, reason);
	if (!error)
		error = apply_open(apply, invocation->state, invocation->name, reason);
	if (!error && !invocation->is_forced)
		apply->guard = guard;
	return error;
}
