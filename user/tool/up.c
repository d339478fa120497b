// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* up: loads filter, policies and lists as a configuration file says. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <unistd.h>

#include "command/command.h"
#include "filter/filter.h"
#include "config/config.h"
#include "lists/import.h"
#include "io/output.h"
#include "base/advice.h"
#include "base/clock.h"
#include "base/memory.h"
#include "kernel/interfaces.h"

#define LOOK_MS 100 /* between two looks for missing interfaces */

struct up {
	const struct invocation *invocation;
	const struct config *config;
	struct session session;
	bool is_last;               /* the last pass: missing interfaces are an error */
	bool is_again;              /* a second pass, for interfaces that were missing in the first */
	bool is_kept;               /* its session is still that of the first */
	json_t *interfaces, *lists; /* the answer: what became of each */
	size_t renewed, lists_before;
	bool is_changed;
	enum command_status status; /* of the first failure */
};

static void note_failure(struct up *up, enum command_status status)
{
	if (up->status == STATUS_DONE)
		up->status = status;
}

static void note_error(struct up *up, int error, const struct reason *reason)
{
	if (error)
		note_failure(up, command_fail_because(error, reason));
}

static size_t count_existing(const struct config *config)
{
	size_t count = 0;

	for (size_t i = 0; i < config->interfaces_count; i++)
		count += interfaces_index(config->interfaces[i]) != 0;
	return count;
}

/* What a second pass finds loaded may be what the first has loaded. */
static void note_interface(struct up *up, const char *interface, const char *mode, const char *done)
{
	json_t *row = json_pack("{s:o, s:s, s:s}", "interface", output_string(interface), "mode", mode, "filter", done);
	json_t *earlier;
	size_t i;

	json_array_foreach(up->interfaces, i, earlier) {
		if (!json_equal(json_object_get(earlier, "interface"), json_object_get(row, "interface")))
			continue;
		if (!strcmp(done, "runs already") &&
		    strcmp(json_string_value(json_object_get(earlier, "filter")), "not loaded")) {
			json_decref(row);
			return;
		}
		json_array_remove(up->interfaces, i);
		break;
	}
	up->is_changed |= !strcmp(done, "loaded") || !strcmp(done, "taken off");
	/* People who do not ask for it get no such column. */
	if (up->config->load.is_outgoing || output_is_json())
		json_object_set_new(row, "outgoing",
				    json_boolean(session_attachment_on(&up->session, interface, true) != NULL));
	json_array_append_new(up->interfaces, row);
}

static size_t count_lists(const struct store_lists *lists)
{
	size_t count = 0;

	for (size_t i = 1; i <= STORE_LISTS_MAX; i++)
		count += *lists->list[i].name != '\0';
	return count;
}

/* What the file does not say has its default, except policies: one more packet must not pass unasked. All is told. */
static int bring_settings(struct up *up, struct reason *reason)
{
	const struct config *config = up->config;
	struct store_settings settings, wanted = store_settings_kept;
	struct store_lists lists;
	int error = store_unread_reason(store_settings(up->session.store, &settings), reason);

	if (!error)
		error = store_unread_reason(store_lists(up->session.store, &lists), reason);
	if (error)
		return error;
	up->lists_before = count_lists(&lists);
	for (size_t i = 0; i < OUTCOME_POLICIES; i++)
		if (config->has_policy[i])
			wanted.policy[i] = config->policy[i];
		else if (settings.policy[i] != store_settings_default.policy[i] && !up->is_again)
			output_note("the policy '%s %s' stays, though the file does not name it", outcome_words[i].name,
				    verdict_words[settings.policy[i]].name);
	if (settings.is_monitor_only && !config->load.is_monitor_only)
		output_note("monitor-only is off now: the file does not say monitor-only = yes");
	wanted.is_monitor_only = config->load.is_monitor_only;
	error = change_settings(&up->session, &wanted, 0, reason);
	up->is_changed |= !error && store_is_changed(up->session.store);
	return error;
}

/* Filters sent packets no more, if the file does not say so. */
static int leave_outgoing(struct up *up, const char *interface, struct reason *reason)
{
	struct kernel_attachment *received, *outgoing;
	struct kernel_filter *filter = session_filter_on(&up->session, interface, false, &received);
	struct kernel_filter *sender = session_filter_on(&up->session, interface, true, &outgoing);
	int error = 0;

	if (up->config->load.is_outgoing)
		return 0;
	if (outgoing) {
		output_note("'%s' filters sent packets no more: the file does not say outgoing = yes", interface);
		error = kernel_detach(sender, outgoing, reason);
		up->is_changed |= !error;
		if (!error)
			*outgoing = sender->attachments[--sender->attachments_count];
	} else if (filter) {
		kernel_want_outgoing(filter, received, false);
	}
	return error;
}

static void bring_interface(struct up *up, const char *interface)
{
	const struct kernel_attachment *attachment = session_attachment_on(&up->session, interface, false);
	const bool is_there = interfaces_index(interface), was_filtered = attachment;
	const bool was_outgoing = session_attachment_on(&up->session, interface, true);
	struct reason reason;
	int error = 0;

	if (!is_there && !up->is_last)
		return;
	if (!is_there) {
		note_failure(up, command_fail(STATUS_SYSTEM,
					      "there is no interface '%s' here; see ip link; everything else is done",
					      interface));
	} else if (up->session.filters_count) { /* If there is no filter, bring_all() has reported why. */
		if (was_filtered)
			command_note_mode(attachment, up->config->load.mode);
		error = session_attach(&up->session, interface, up->config->load.mode, up->config->load.is_outgoing,
				       &reason);
		up->is_changed |= !error && up->config->load.is_outgoing && !was_outgoing;
		if (!error)
			error = leave_outgoing(up, interface, &reason);
		if (!error)
			error = session_keep(&up->session, interface, up->config->load.is_outgoing, &reason);
		note_error(up, error, &reason);
		attachment = session_attachment_on(&up->session, interface, false);
	}
	note_interface(up, attachment ? attachment->interface : interface,
		       attachment ? interface_mode_name(attachment->mode) : "-",
		       was_filtered ? "runs already" :
		       attachment   ? "loaded" :
		       is_there     ? "not loaded" :
				      "not there");
}

/* Takes the filter off the interfaces that the file does not name, if at least one that it names has the filter. */
static void leave_others(struct up *up, const struct kernel_filter *kernel)
{
	const struct config *config = up->config;
	const struct kernel_where others = { .name = up->session.name,
					     .interfaces = config->interfaces,
					     .count = config->interfaces_count,
					     .is_except = true };
	struct kernel_taken *taken = NULL;
	bool is_any_filtered = false;
	size_t count = 0;

	for (size_t i = 0; i < config->interfaces_count; i++)
		is_any_filtered |= session_attachment_on(&up->session, config->interfaces[i], false) != NULL;
	if (is_any_filtered && kernel_take_off(kernel, 1, &others, &taken, &count))
		note_failure(up, command_fail(STATUS_SYSTEM, "not enough memory; some interfaces keep the filter"));
	for (size_t i = 0; i < count; i++) {
		if (taken[i].error)
			note_failure(up, command_fail_because(taken[i].error, &taken[i].reason));
		up->is_changed |= !taken[i].error; /* also where only the mark of a lost program went */
		if (taken[i].attachment.prog_id)
			note_interface(up, taken[i].attachment.interface, interface_mode_name(taken[i].attachment.mode),
				       taken[i].error ? "not taken off" : "taken off");
	}
	free(taken);
	for (size_t i = 0; i < kernel->attachments_count && !is_any_filtered; i++) {
		const struct kernel_attachment *attachment = &kernel->attachments[i];

		if (!kernel_is_meant(&others, kernel, attachment->interface) ||
		    kernel_goes_with_another(kernel, attachment))
			continue;
		output_note("'%s' keeps the filter, though the file does not name it: no interface that the file "
			    "names has the filter",
			    attachment->interface);
		note_interface(up, attachment->interface, interface_mode_name(attachment->mode), "kept");
	}
}

/*
 * While `up` waited, interfaces may have been made anew, the filter may have been taken off, and libxdp may have put another
 * dispatcher before it.
 */
static void look_again(struct kernel_filter *kernel)
{
	struct kernel_filter *now = NULL;
	struct reason ignored;
	size_t count = 0;

	if (!kernel_find_filters((struct kernel_wish){ .must_see = kernel->config->name }, &now, &count, &ignored))
		kernel->attachments_count = 0;
	for (size_t i = 0; i < count && !kernel->attachments_count; i++) {
		struct kernel_attachment *const before = kernel->attachments;

		if (now[i].map[KERNEL_CONFIG].id != kernel->map[KERNEL_CONFIG].id)
			continue;
		kernel->attachments = now[i].attachments;
		kernel->attachments_count = now[i].attachments_count;
		now[i].attachments = before;
	}
	kernel_filters_free(now, count);
}

static void bring_interfaces(struct up *up)
{
	command_fit_mtu(&up->session);
	for (size_t i = 0; i < up->config->interfaces_count; i++)
		bring_interface(up, up->config->interfaces[i]);
	for (size_t i = 0; i < up->session.filters_count && up->is_last; i++)
		leave_others(up, &up->session.filters[i].kernel);
}

/* Everything except the lists. -errno: nothing could be done. */
static int bring_all(struct up *up, struct reason *reason)
{
	const struct config *config = up->config;
	const struct abi_options options = table_options_of(&config->load);
	struct filter *ignored;
	struct reason unseen;
	size_t renewed = 0;
	int error =
		session_open_to_load(&up->session, up->invocation->state, up->invocation->name, false, &unseen, reason);

	if (error)
		return error;
	if (*unseen.text)
		output_note("%s", unseen.text);
	/* First: a filter that becomes late only now is told, too. */
	for (size_t i = 0; i < up->session.filters_count; i++) {
		up->renewed += up->session.filters[i].state == FILTER_TAKEN_OVER;
		if (run_is_confirm_late(&up->session.filters[i].kernel))
			note_failure(up, STATUS_SYSTEM);
	}
	command_report_found(&up->session);
	note_error(up, bring_settings(up, reason), reason);
	session_start(&up->session);
	/* Now, because the policies of the file may block something too. */
	if (!up->is_again)
		note_error(up, command_report_blocked(&up->session, up->invocation->state, reason), reason);
	if (up->session.filters_count)
		error = session_renew(&up->session, &options, config->load.capacity, &renewed, reason);
	else if (count_existing(config))
		error = session_load(&up->session, &options, config->load.capacity, &ignored, reason);
	up->renewed += renewed;
	note_error(up, error, reason);
	bring_interfaces(up);
	command_report_rebuilds(&up->session);
	/* Of a read-only store: no second session may open the copy beside its filter, which has all but the late interfaces. */
	up->is_kept = store_is_copy(up->session.store) && up->session.filters_count && !up->is_last;
	if (up->is_kept)
		session_unlock(&up->session);
	else
		session_close(&up->session);
	return 0;
}

/* As import --list NAME --replace. */
static struct import_options list_import(const struct invocation *invocation, const struct config_list *list)
{
	return (struct import_options){ .name = invocation->name,
					.state = invocation->state,
					.list_name = list->name,
					.list_format = list->format,
					.set_name = list->set,
					.json_path = list->json,
					.action = list->action,
					.is_new_only = list->is_new_only,
					.timeout_ms = list->timeout_ms,
					.is_strict = list->is_strict,
					.is_forced = list->is_forced,
					.insist = LIST_INSIST,
					.is_replace = true,
					.rules_max = list->rules_max,
					.least_percent = 100 - list->shrink_max };
}

/* Whether the file says what feeds the list; or commands do, as those of fail2ban. */
static bool is_fed(const struct config *config, const struct store_list *list)
{
	bool is_fed = list->is_edited || (!list->imported_s && !list->stale_s) || config_has_source(config, list->name);

	for (size_t i = 0; i < config->lists_count && !is_fed; i++)
		is_fed = !strcmp(config->list[i].name, list->name);
	return is_fed;
}

/* Reads the stored lists, and notes those that the file does not have. */
static void read_lists(struct up *up, struct store_lists *lists)
{
	struct reason reason;
	struct store *store;
	int error = command_open_store(up->invocation, &store, &reason);

	*lists = (struct store_lists){};
	if (!error && store)
		error = store_unread_reason(store_lists(store, lists), &reason);
	store_close(store);
	note_error(up, error, &reason);
	for (size_t i = 1; i <= STORE_LISTS_MAX; i++)
		if (*lists->list[i].name && !is_fed(up->config, &lists->list[i]))
			output_note("the list '%s' is not in the configuration, and stays", lists->list[i].name);
}

/* Imports the file of a list. `refresh` fetches one by URL: the network may not be there yet, so its rules stay as they are. */
static int bring_list(struct up *up, const struct config_list *list, const struct store_lists *stored,
		      struct reason *reason)
{
	const struct import_options import = list_import(up->invocation, list);
	struct command_imported result = {};
	const char *done = "refreshed";
	int error = 0;

	if (list->url) {
		done = "as last fetched";
		if (!stored->list[store_lists_find(stored, list->name)].imported_s) {
			done = "not fetched yet";
			output_note("the list '%s' was not fetched yet; run xdp-cuckoo%s refresh, or start the timer "
				    "xdp-cuckoo-fetch@%s.timer",
				    list->name, session_name_option(up->invocation->name), up->invocation->name);
		}
	} else {
		error = config_check_list_file(list, reason);
		if (!error)
			error = command_import_list(&import, &list->file, 1, &result, reason);
	}
	if (error) {
		note_failure(up, command_fail(command_status_of(error), "list '%s': %s", list->name, reason->text));
		done = "not refreshed";
	} else if (result.bad_lines) {
		note_failure(up, STATUS_USAGE);
	}
	if (error || !result.answer) {
		json_decref(result.answer);
		result.answer = json_object();
	}
	json_object_update_new(result.answer, json_pack("{s:s, s:s}", "result", done, "list", list->name));
	up->is_changed |= json_is_true(json_object_get(result.answer, "changed"));
	json_array_append_new(up->lists, result.answer);
	return error == -EINTR ? reason_set(reason, error, "interrupted: the rest was not done") : 0;
}

/* Filters the interfaces that exist, with all lists, before it waits for others. -EINTR: a signal came. */
static int bring_up(struct up *up, struct reason *reason)
{
	const struct config *config = up->config;
	struct store_lists stored;
	int error;

	up->is_last = !config->wait_ms || count_existing(config) == config->interfaces_count;
	error = bring_all(up, reason);
	if (error)
		return error;
	note_error(up, command_expect_lists(up->invocation, config, reason), reason);
	read_lists(up, &stored);
	up->is_changed |= count_lists(&stored) > up->lists_before;
	for (size_t i = 0; i < config->lists_count && !error; i++)
		error = bring_list(up, &config->list[i], &stored, reason);
	if (error || up->is_last)
		return error;
	for (__s64 waited_ms = 0; waited_ms < config->wait_ms && count_existing(config) < config->interfaces_count;
	     waited_ms += LOOK_MS)
		clock_pause(LOOK_MS);
	up->is_last = up->is_again = true;
	if (!up->is_kept)
		return bring_all(up, reason);
	for (size_t i = 0; i < up->session.filters_count; i++)
		look_again(&up->session.filters[i].kernel);
	bring_interfaces(up);
	return 0;
}

/* ---- --dry-run ---- */

static enum command_status check_config(const struct invocation *invocation)
{
	struct config *config;
	struct reason reason;
	bool is_right;
	int error = privileges_keep(PRIVILEGE_READ);

	if (error)
		return command_fail(STATUS_SYSTEM, "cannot give up capabilities: %s", strerror(-error));
	error = config_open(invocation->count ? invocation->operands[0] : NULL, invocation->name,
			    command_report_bad_line, &config, &reason);
	if (error)
		return command_fail_because(error, &reason);
	is_right = !config->has_gone_keys;
	if (!is_right)
		command_fail(STATUS_USAGE,
			     "the configuration has keys of an earlier version, see above; take them out");
	for (size_t i = 0; i < config->lists_count; i++) {
		const struct config_list *list = &config->list[i];
		struct import_options import = list_import(invocation, list);
		struct command_imported result = {};
		int wrong;

		if (!list->url && !invocation->is_strict && access(list->file, R_OK))
			output_note("list '%s': cannot read '%s': %s", list->name, list->file, strerror(errno));
		if (list->url || !invocation->is_strict)
			continue;
		import.is_dry_run = true;
		wrong = config_check_list_file(list, &reason);
		if (!wrong)
			wrong = command_import_list(&import, &list->file, 1, &result, &reason);
		json_decref(result.answer);
		if (wrong)
			command_fail(STATUS_USAGE, "list '%s': %s", list->name, reason.text);
		is_right &= !wrong && !result.bad_lines;
	}
	for (size_t i = 0; i < config->interfaces_count; i++)
		if (!interfaces_index(config->interfaces[i]))
			output_note("no interface '%s' is there now; up waits for it as long as the key wait says, and "
				    "then fails",
				    config->interfaces[i]);
	if (is_right)
		output_print(json_pack("{s:s, s:I, s:I}", "configuration", "right", "interfaces",
				       (json_int_t)config->interfaces_count, "lists", (json_int_t)config->lists_count));
	config_close(config);
	return is_right ? STATUS_DONE : STATUS_USAGE;
}

/* ---- the command ---- */

static enum command_status run_up(const struct invocation *invocation)
{
	struct up up = { .invocation = invocation };
	struct config *config;
	struct reason reason;
	int error;

	if (invocation->is_dry_run)
		return check_config(invocation);
	if (invocation->is_strict)
		return command_fail(STATUS_USAGE, "up: --strict goes with --dry-run");
	error = config_open(invocation->count ? invocation->operands[0] : NULL, invocation->name,
			    command_report_bad_line, &config, &reason);
	up.config = config;
	up.interfaces = json_array();
	up.lists = json_array();
	if (!error && !config->interfaces_count)
		error = reason_set(&reason, -EINVAL,
				   "the configuration has no [filter] section with interfaces = NAME...");
	if (!error)
		error = bring_up(&up, &reason);
	if (!error) {
		output_print(json_pack("{s:s, s:I, s:O, s:O, s:b}", "name", invocation->name, "renewed_tables",
				       (json_int_t)up.renewed, "interfaces", up.interfaces, "lists", up.lists,
				       "changed", up.is_changed || up.renewed));
		if (!output_flush())
			command_watch(invocation->name);
	}
	session_close(&up.session);
	json_decref(up.interfaces);
	json_decref(up.lists);
	config_close(config);
	return error ? command_fail_because(error, &reason) : up.status;
}

const struct command command_up = {
	.name = "up",
	.usage = "[FILE] [--dry-run [--strict]]",
	.max = 1,
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ | PRIVILEGE_SSH,
	.run = run_up,
};
