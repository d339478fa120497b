// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* lists: shows the named lists of a store, or deletes one. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "commands/command.h"
#include "config/list_presets.h"
#include "io/output.h"

extern const struct command command_del;

const char *command_not_fed(const struct store_list *list, const struct store_feed *feed,
			    char text[COMMAND_NOT_FED_BYTES])
{
	const __s64 silent_s = store_list_silent_s(list, feed);
	char time[RULE_TIME_BYTES];

	if (!silent_s)
		return NULL;
	snprintf(text, COMMAND_NOT_FED_BYTES, "for %s", rule_time_format(1000 * silent_s, time));
	return list->imported_s || feed->fetched_s ? text : strcpy(text, "never");
}

static enum command_status show(const struct invocation *invocation)
{
	struct store_lists lists = {};
	struct store_feeds feeds = {};
	struct store_info info;
	json_t *rows = json_array();
	char text[COMMAND_NOT_FED_BYTES];
	struct reason reason;
	struct store *store;
	int error = command_open_store(invocation, &store, &reason);
	bool has_silent = false;
	const bool is_late = !error && command_is_late(store);

	if (!error && store)
		error = store_say_unread(store_in_force(store, &info, &lists), &reason);
	if (!error && store)
		error = store_say_unread(store_feeds(store, &lists, &feeds), &reason);
	store_close(store);
	for (size_t i = 1; i <= STORE_LISTS_MAX; i++)
		has_silent |= store_list_silent_s(&lists.list[i], &feeds.feed[i]) != 0;
	for (size_t i = 1; i <= STORE_LISTS_MAX; i++) {
		const struct store_list *list = &lists.list[i];
		const struct store_feed *feed = &feeds.feed[i];
		json_t *row;

		if (!list->name[0])
			continue;
		row = json_pack("{s:s, s:I, s:o, s:s}", "list", list->name, "rules", list->rules, "imported",
				list->imported_s ? output_time(list->imported_s, -1) : json_null(), "source",
				list->source);
		if (has_silent)
			json_object_set_new(row, "not_fed",
					    command_not_fed(list, feed, text) ? json_string(text) : json_null());
		if (feeds.is_any)
			json_object_update_new(row, json_pack("{s:o, s:o}", "fetched",
							      feed->fetched_s ? output_time(feed->fetched_s, -1) :
										json_null(),
							      "failed_fetch",
							      *feed->why ? output_string(feed->why) : json_null()));
		if (feeds.is_any && output_is_json())
			json_object_update_new(row,
					       json_pack("{s:o, s:I, s:I}", "next_fetch",
							 feed->next_s ? output_time(feed->next_s, -1) : json_null(),
							 "failed_fetches", (json_int_t)feed->failures, "left_out",
							 (json_int_t)feed->left_out));
		if (is_late && output_is_json())
			json_object_set_new(row, "not_confirmed_in_time", json_true());
		json_array_append_new(rows, row);
	}
	if (!error && !json_array_size(rows) && !output_is_json())
		output_note("there are no lists; import --list NAME or add --list NAME makes one");
	return command_answer(error, &reason, rows);
}

/* The lists that preset = NAME in the configuration can name. */
static enum command_status show_presets(void)
{
	json_t *rows = json_array();
	char every[RULE_TIME_BYTES];
	const struct list_preset *preset;

	for (size_t i = 0; (preset = list_preset(i)); i++)
		json_array_append_new(rows,
				      json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "preset", preset->name, "every",
						rule_time_format(preset->every_ms, every), "format", preset->format,
						"about", preset->about, "terms", preset->terms, "url", preset->url));
	output_print(rows);
	return STATUS_DONE;
}

static enum command_status delete_list(const struct invocation *invocation)
{
	static const char *const useless[] = { "added", "updated", "kept", "bad_lines", "rules_per_second" };
	struct import_options deletion = command_import_options(invocation);
	struct command_imported result;
	struct reason reason;
	int error;

	deletion.list_name = invocation->operands[1];
	deletion.is_replace = true;
	if (invocation->is_dry_run && invocation->confirm_ms)
		return command_fail(STATUS_USAGE, "--dry-run changes nothing that --confirm could undo");
	error = command_import_list(&deletion, NULL, 0, &result, &reason);
	for (size_t i = 0; result.answer && i < sizeof(useless) / sizeof(useless[0]); i++)
		json_object_del(result.answer, useless[i]);
	output_print(result.answer);
	if (error)
		return command_fail_list(error, &reason);
	if (result.deadline_ms)
		command_report_confirm(invocation, result.deadline_ms);
	return STATUS_DONE;
}

static enum command_status run_lists(const struct invocation *invocation)
{
	const char *verb = invocation->count ? invocation->operands[0] : NULL;

	if (verb && !strcmp(verb, "presets") && invocation->count > 1)
		return command_fail(STATUS_USAGE, "lists presets: no word follows");
	if (verb && !strcmp(verb, "presets"))
		return show_presets();
	/* `lists rm NAME` is the same. */
	if (verb && command_find(verb) != &command_del)
		return command_fail(STATUS_USAGE,
				    "lists '%s': only the words delete and presets may follow; to see rules: xdp-cuckoo list "
				    "NAME; to empty a list: xdp-cuckoo flush NAME",
				    verb);
	if (verb && invocation->count < 2)
		return command_fail(STATUS_USAGE, "lists %s: which list? See xdp-cuckoo lists", verb);
	if (verb)
		return delete_list(invocation);
	if (invocation->is_dry_run || invocation->is_forced || invocation->confirm_ms)
		return command_fail(STATUS_USAGE, "--dry-run, --confirm and --force go with lists delete NAME");
	return show(invocation);
}

const struct command command_lists = {
	.name = "lists",
	.group = COMMAND_RULES,
	.usage = "[delete NAME [--dry-run] [--confirm TIME] [--force] | presets]",
	.summary = "show the named lists, delete one, or show lists of well-known providers",
	.options = OPTION_DRY_RUN | OPTION_CONFIRM | OPTION_FORCE,
	.max = 2,
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ | PRIVILEGE_SSH,
	.run = run_lists,
};
