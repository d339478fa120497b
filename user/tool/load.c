// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * load, unload: which interfaces run the filter. With --confirm a load is on trial: the filters that it changes pass
 * every packet if nobody confirms in time, and then the watchdog takes off what the load has attached.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <net/if.h>
#include <unistd.h>

#include "command/command.h"
#include "config/config.h"
#include "filter/filter.h"
#include "io/output.h"
#include "change/change.h"
#include "base/memory.h"

/*
 * Whether the load changes this filter: another tool has loaded it, and the load sets it up; or it gets interfaces, or
 * packets sent there. An interface without a filter gets the first one. With --confirm, a filter that is changed filters
 * until the deadline. After it the filter passes everything, and the watchdog takes off what the load has put there. The
 * first filter waits for `confirm` with any other; the rest stays as it is.
 */
static bool is_changed(const struct invocation *invocation, const struct session *session, size_t at)
{
	struct kernel_attachment *ignored;
	bool is_changed = session->filters[at].state == FILTER_SET_UP;

	for (int i = 0; i < invocation->count && !is_changed; i++) {
		const char *interface = invocation->operands[i];
		const struct kernel_filter *filter = session_filter_on(session, interface, false, &ignored);

		is_changed = filter ? filter == &session->filters[at].kernel && invocation->load.is_outgoing &&
					      !session_attachment_on(session, interface, true) :
				      !at;
	}
	return is_changed;
}

/* Runs the filter on one interface, or notes that it runs there already. Then adds a row to `rows`. */
static int load_one(const struct invocation *invocation, struct session *session, const char *interface, json_t *rows,
		    struct reason *reason)
{
	const enum kernel_mode mode = invocation->load.mode;
	const struct kernel_attachment *attachment = session_attachment_on(session, interface, false);
	const bool was_there = attachment, was_outgoing = session_attachment_on(session, interface, true);
	json_t *row;
	int error;

	if (was_there && !command_note_mode(attachment, mode) && (was_outgoing || !invocation->load.is_outgoing))
		output_note("'%s' runs the filter '%s' already", interface, session->name);
	error = session_attach(session, interface, mode, invocation->load.is_outgoing, reason);
	if (error)
		return error;
	if (*reason->text)
		output_note("'%s' runs the filter in generic (skb) mode, which is slower: %s", interface, reason->text);
	/* An altname finds none if the interface has just gone. */
	attachment = session_attachment_on(session, interface, false);
	if (!attachment)
		return kernel_no_interface_reason(interface, reason);
	if (!was_there)
		command_report_old_buffers(attachment);
	row = json_pack("{s:o, s:s}", "interface", command_interface(attachment), "mode",
			interface_mode_name(attachment->mode));
	/* In text, only those who ask for --outgoing get the column. */
	if (invocation->load.is_outgoing || output_is_json())
		json_object_set_new(row, "outgoing",
				    json_boolean(session_attachment_on(session, interface, true) != NULL));
	json_array_append_new(rows, row);
	return 0;
}

/* The filter already runs, and the new interfaces will share it. Fails if the options ask for another table. */
static int check_running(const struct invocation *invocation, const struct session *session, struct reason *reason)
{
	const struct filter *filter = session->filters;
	const struct kernel_attachment *held = kernel_held_attachment(&filter->kernel);
	const __u64 asked = table_slots_for(invocation->load.capacity);
	struct abi_options wanted = table_options_of(&invocation->load);
	__u64 slots = filter_slots(&filter->kernel);

	wanted.has_addresses = filter->kernel.options.has_addresses;
	/* With addresses, the slots of both parts are about that many. */
	if (invocation->load.capacity && (wanted.has_addresses ? slots < asked : slots != asked))
		return reason_set(reason, -EINVAL,
				  "the filter '%s' is running with %llu slots; xdp-cuckoo%s resize changes its "
				  "capacity",
				  session->name, slots, session_name_option(session->name));
	if (!table_options_are_given(&invocation->load) || !memcmp(&wanted, &filter->kernel.options, sizeof(wanted)))
		return 0;
	if (held)
		return kernel_held_reason(&filter->kernel, held, " with these options", -EBUSY, reason,
					  "the filter '%s' runs with another --compact, --fingerprint, --no-counters or "
					  "--no-spare",
					  session->name);
	return reason_set(reason, -EINVAL,
			  "the filter '%s' runs with another --compact, --fingerprint, "
			  "--no-counters or --no-spare; only unload and load change them, and nothing is filtered in between",
			  session->name);
}

/* Lists what the watchdog takes off. From now on later commands say what stays. */
static int note_interfaces(const struct session *session, struct watchdog *watchdog, struct reason *reason)
{
	for (size_t i = 0; i < session->filters_count; i++) {
		const struct kernel_filter *kernel = &session->filters[i].kernel;
		const bool is_set_up = session->filters[i].state == FILTER_SET_UP;

		kernel->config->kept = 0;
		kernel->config->keeps_monitor_only = false;
		for (size_t k = 0; k < kernel->attachments_count; k++) {
			if (!is_set_up && !kernel->attachments[k].is_new)
				continue;
			if (array_grow(&watchdog->attachment, watchdog->attachments, sizeof(*watchdog->attachment)))
				return reason_set(reason, -ENOMEM, "no memory for the list of interfaces");
			watchdog->attachment[watchdog->attachments++] = kernel->attachments[k];
		}
	}
	return 0;
}

static int check_trial(const struct invocation *invocation, const struct session *session, struct reason *reason)
{
	bool is_any = false;

	for (size_t i = 0; i < session->filters_count; i++) {
		/* Only one change at a time may wait for `confirm`. */
		if (session->filters[i].kernel.config->run & ABI_RUN_UNCONFIRMED)
			return reason_set(reason, -EBUSY,
					  "'%s' already waits for xdp-cuckoo%s confirm, or was not confirmed in time; "
					  "see xdp-cuckoo status",
					  session->name, session_name_option(session->name));
		is_any |= is_changed(invocation, session, i);
	}
	return is_any ? 0 :
			reason_set(reason, -EINVAL,
				   "'%s' runs the filter '%s' already, so --confirm has nothing to undo: leave it out",
				   invocation->operands[0], session->name);
}

/* Sets the deadlines. All get the same tick: by it the watchdog knows the filters of this load. */
static int start_trial(const struct invocation *invocation, struct session *session, struct reason *reason)
{
	int error = 0;

	for (size_t i = 0; i < session->filters_count && !error; i++)
		if (!i || is_changed(invocation, session, i)) {
			error = filter_set_unconfirmed(&session->filters[i], 0, invocation->confirm_ms, reason);
			session->filters[i].kernel.config->confirm_by = session->filters->kernel.config->confirm_by;
		}
	return error;
}

/* Takes off what this load has attached, and ends its trial. What could not be undone is noted. */
static void undo_load(struct session *session, bool is_trial, bool sets_monitor_only)
{
	struct reason ignored;

	for (size_t i = 0; i < session->filters_count; i++) {
		struct kernel_filter *kernel = &session->filters[i].kernel;

		/* The last first: while a bridge, bond or VLAN runs a program, the interfaces below it cannot lose theirs. */
		for (size_t k = kernel->attachments_count; k--;)
			if (kernel->attachments[k].is_new &&
			    kernel_detach_direction(kernel, &kernel->attachments[k], &ignored))
				output_note("'%s' keeps the filter, though the load failed: %s",
					    kernel->attachments[k].interface, ignored.text);
		if (is_trial && kernel->config->run & ABI_RUN_UNCONFIRMED)
			filter_confirm(&session->filters[i]);
	}
	if (sets_monitor_only && change_set_monitor_only(session, false, &ignored))
		output_note("monitor-only stays, though the load failed: %s", ignored.text);
}

/* The session has a filter afterwards. */
static int find_or_load(const struct invocation *invocation, struct session *session, struct reason *reason)
{
	const struct abi_options options = table_options_of(&invocation->load);
	struct filter *ignored;

	if (!session->filters_count)
		return session_load(session, &options, invocation->load.capacity, &ignored, reason);
	for (int i = 0; i < invocation->count; i++)
		if (!interfaces_index(invocation->operands[i]))
			return kernel_no_interface_reason(invocation->operands[i], reason);
	return check_running(invocation, session, reason);
}

/* After an error all is undone. A filter that was not started before still passes everything. */
static int load_all(const struct invocation *invocation, struct session *session, json_t *rows,
		    struct watchdog *watchdog, struct reason *reason)
{
	const bool is_trial = invocation->confirm_ms;
	bool sets_monitor_only = false;
	int error = find_or_load(invocation, session, reason);

	if (!error && is_trial)
		error = check_trial(invocation, session, reason);
	if (error)
		return error;
	if (is_trial)
		error = start_trial(invocation, session, reason);
	/* Before anything is attached, or packets are dropped too early. */
	if (!error && invocation->load.is_monitor_only && !(session->filters->kernel.config->run & ABI_RUN_MONITOR)) {
		error = change_set_monitor_only(session, true, reason);
		sets_monitor_only = !error;
	}
	if (!error)
		command_fit_mtu(session);
	for (int i = 0; i < invocation->count && !error; i++)
		error = load_one(invocation, session, invocation->operands[i], rows, reason);
	if (is_trial && !error)
		error = note_interfaces(session, watchdog, reason);
	for (int i = 0; i < invocation->count && !is_trial && !error; i++)
		error = session_keep(session, invocation->operands[i], invocation->load.is_outgoing, reason);
	if (!error && !is_trial && invocation->load.is_monitor_only)
		error = change_set_monitor_only(session, true, reason);
	if (error) {
		undo_load(session, is_trial, sets_monitor_only);
		return error;
	}
	watchdog->sets_monitor_only = sets_monitor_only;
	session_start(session);
	return 0;
}

static void note_options(const struct kernel_filter *kernel)
{
	if (!kernel->options.is_exact)
		output_note("compact: at 95 %% load one of %.3g innocent flows is dropped for each kind of rule in use",
			    1 / table_false_positive_rate(kernel->options.format, TABLE_LOAD_PERCENT / 100.));
	for (enum flow_family family = 0; family < FLOW_FAMILIES && !kernel->config->asks_conntrack; family++)
		if (abi_shapes(abi_active(kernel->config), family)->new_only) {
			output_note(
				"connection tracking is not asked here: rules with state new also drop UDP answers to hosts behind "
				"this one; see xdp-cuckoo-rules(5)");
			return;
		}
}

/* What the load prints. `rows`: one for each interface. */
static json_t *answer_of(const struct session *session, json_t *rows, __s64 confirm_ms, bool is_changed)
{
	const struct kernel_filter *kernel = &session->filters->kernel;
	struct store_info info = {};
	json_t *answer;

	store_info(session->store, &info);
	answer = json_pack("{s:s, s:I, s:s, s:I, s:I, s:o}", "name", session->name, "rules", info.rules, "table",
			   command_format_name(&kernel->options), "slots", filter_slots(kernel),
			   "table_bytes", kernel_filter_bytes(kernel), "interfaces", rows);
	/* Text leaves these out: people read them in status --verbose. */
	if (output_is_json())
		json_object_update_new(answer, json_pack("{s:f, s:f}", "false_positive_rate_ipv4",
							 query_false_positive_rate(kernel, FLOW_IPV4),
							 "false_positive_rate_ipv6",
							 query_false_positive_rate(kernel, FLOW_IPV6)));
	if (confirm_ms)
		json_object_set_new(answer, "confirm_within_s", json_integer(confirm_ms / 1000));
	for (size_t i = 0; i < session->filters_count; i++) {
		kernel = &session->filters[i].kernel;
		is_changed |= session->filters[i].state == FILTER_SET_UP || session->filters[i].state == FILTER_TAKEN_OVER;
		for (size_t k = 0; k < kernel->attachments_count; k++)
			is_changed |= kernel->attachments[k].is_new;
	}
	json_object_set_new(answer, "changed", json_boolean(is_changed));
	return answer;
}

static int load(const struct invocation *invocation, struct watchdog *watchdog, json_t **answer, struct reason *reason)
{
	struct reason unseen;
	struct session session;
	json_t *rows = json_array();
	bool is_first, waits;
	int error = session_open_to_load(&session, invocation->state, invocation->name, invocation->confirm_ms, &unseen,
					 reason);

	if (!error) {
		command_report_undone(&session);
		error = command_report_blocked(&session, invocation->state, reason);
	}
	is_first = !session.filters_count;
	if (!error)
		error = load_all(invocation, &session, rows, watchdog, reason);
	if (error) {
		json_decref(rows);
		session_close(&session);
		return error;
	}
	command_report_session(&session);
	if (*unseen.text)
		output_note("%s", unseen.text);
	note_options(&session.filters->kernel);
	waits = invocation->confirm_ms && session.filters->kernel.config->run & ABI_RUN_UNCONFIRMED;
	if (waits) {
		watchdog->deadline_ms = watchdog_deadline(invocation->confirm_ms);
		watchdog->confirm_by = session.filters->kernel.config->confirm_by;
	} else if (!(session.filters->kernel.config->run & ABI_RUN_PANIC) &&
		   !run_is_confirm_late(&session.filters->kernel)) {
		command_report_run(&session.filters->kernel);
	}
	*answer = answer_of(&session, rows, waits ? invocation->confirm_ms : 0,
			    is_first || watchdog->sets_monitor_only);
	session_close(&session);
	return 0;
}

/*
 * The watchdog starts before the answer is printed: if nobody reads the output any more, printing may end this process.
 */
static enum command_status run_load(const struct invocation *words)
{
	struct invocation copy = *words;
	const struct invocation *invocation = &copy;
	struct watchdog watchdog = { .state = words->state, .name = words->name };
	json_t *answer = NULL;
	struct reason reason;
	int error;

	command_skip_dev(&copy);
	for (int i = 0; i < copy.count; i++) {
		const char *word = copy.operands[i];
		const char *mode = word + (strncmp(word, "xdp", 3) ? 0 : 3);
		enum kernel_mode ignored;

		if (!mode_parse(mode, &ignored) && !interfaces_index(word))
			return command_fail(STATUS_USAGE,
					    "load '%s': this is no interface; the mode is an option: --mode %s", word,
					    mode);
	}
	if (command_check_format(&invocation->load))
		return STATUS_USAGE;
	if (invocation->confirm_ms)
		watchdog_ignore_hangup();
	error = load(invocation, &watchdog, &answer, &reason);
	if (!error && watchdog.attachments)
		error = watchdog_start(&watchdog, &reason);
	output_print(answer);
	if (watchdog.attachments && !error)
		command_report_confirm(invocation, watchdog.deadline_ms);
	free(watchdog.attachment);
	if (!error && !output_flush())
		command_watch(invocation->name);
	return error ? command_fail_because(error, &reason) : STATUS_DONE;
}

/* ---- unload ---- */

/* Adds the interfaces that lost the filter to `names`. Prints an error for each that keeps it. */
static enum command_status take_off(const struct kernel_filter *filters, size_t count, const struct kernel_where *where,
				    json_t *names)
{
	enum command_status status = STATUS_DONE;
	struct kernel_taken *taken;
	size_t taken_count;

	if (kernel_take_off(filters, count, where, &taken, &taken_count))
		status = command_fail(STATUS_SYSTEM, "not enough memory; some interfaces may keep the filter");
	for (size_t i = 0; i < taken_count; i++)
		if (taken[i].error)
			status = command_fail_because(taken[i].error, &taken[i].reason);
		else if (taken[i].attachment.prog_id || where->count)
			json_array_append_new(names, command_interface(&taken[i].attachment));
	free(taken);
	return status;
}

/*
 * Whether an interface of this name has the filter, or should have it: another tool may have taken it off already.
 * That is not known if a filter was not seen (`unsound`).
 */
static bool is_found(const struct kernel_filter *filters, size_t count, const char *interface, int unsound)
{
	const int index = interfaces_index(interface);

	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; k < filters[i].attachments_count; k++)
			if (interfaces_are_one(interface, filters[i].attachments[k].interface))
				return true;
		if (index && !unsound && kernel_has_lost_interface(filters, count, i, index))
			return true;
	}
	return false;
}

/*
 * Says why a word of unload names no filter. `unsound`: why a filter was not seen or cannot be used (-errno); 0: all were.
 */
static enum command_status judge_word(const char *interface, bool may_exist, int unsound, const struct reason *why)
{
	const int index = interfaces_index(interface);
	struct reason reason;

	if (unsound)
		return command_fail_because(unsound, why);
	if (index && kernel_may_be_unseen(index))
		return command_fail(STATUS_SYSTEM,
				    "only CAP_NET_ADMIN shows whether the filter runs on '%s', at tc; run this with "
				    "CAP_NET_ADMIN",
				    interface);
	if (!index)
		kernel_no_interface_reason(interface, &reason);
	else
		reason_set(&reason, 0, "'%s' runs no xdp-cuckoo filter; see xdp-cuckoo status", interface);
	if (!may_exist)
		return command_fail(STATUS_NO, "%s", reason.text);
	output_note("%s", reason.text);
	return STATUS_DONE;
}

/*
 * Only --on-stop asks the configuration: a mistake in it keeps no filter that the operator wants off. But a FILE that is not
 * there may be an interface, and the operator may want the filter off only that one.
 */
static enum command_status ask_configuration(const struct invocation *invocation, bool *is_meant)
{
	const char *path = invocation->count ? invocation->operands[0] : NULL;
	struct config *config;
	struct reason reason;
	int error;

	*is_meant = true;
	if (!invocation->is_on_stop && (!path || !access(path, F_OK)))
		return STATUS_DONE;
	error = config_open(path, invocation->name, command_report_bad_line, &config, &reason);
	if (error)
		return command_fail(command_status_of(error),
				    "%s; to take the filter off: xdp-cuckoo --name %s unload --all", reason.text,
				    invocation->name);
	*is_meant = config->detaches_on_stop;
	config_close(config);
	return STATUS_DONE;
}

/* The older `down [FILE]` is `--name NAME unload --all`. */
static enum command_status run_unload(const struct invocation *words)
{
	struct invocation copy = *words;
	const struct invocation *invocation = &copy;
	enum command_status status, missing = STATUS_DONE;
	struct kernel_where where = {};
	FREED char **found = NULL;
	/* Only the filter of --name. */
	const bool takes_file = words->is_all && (words->is_named || words->is_on_stop);
	struct kernel_filter *filters = NULL;
	bool is_meant = true, is_changed;
	enum kernel_seen seen = KERNEL_SEEN;
	struct reason why = {};
	json_t *names;
	size_t count = 0;
	int error = 0, unsound;

	command_skip_dev(&copy);
	if (invocation->is_all ? invocation->count > takes_file : !invocation->count)
		return command_fail(STATUS_USAGE,
				    "unload takes interfaces or --all: xdp-cuckoo unload IFACE..., or xdp-cuckoo unload --all; "
				    "xdp-cuckoo status lists them");
	if (invocation->is_on_stop && !invocation->is_all)
		return command_fail(STATUS_USAGE, "--on-stop goes with --all");
	status = takes_file ? ask_configuration(invocation, &is_meant) : STATUS_DONE;
	if (status != STATUS_DONE)
		return status;
	found = calloc(invocation->count + 1, sizeof(*found));
	if (!found)
		return command_fail(STATUS_SYSTEM, "not enough memory");
	if (is_meant)
		error = kernel_find_filters((struct kernel_wish){ .must_see = takes_file ? invocation->name : NULL,
								  .takes_other_versions = true,
								  .seen = &seen },
					    &filters, &count, &why);
	if (error)
		return command_fail_because(error, &why);
	unsound = kernel_seen_error(seen);
	where.interfaces = found;
	for (int n = 0; n < invocation->count && !takes_file; n++)
		if (is_found(filters, count, invocation->operands[n], unsound)) {
			found[where.count++] = invocation->operands[n];
		} else {
			status = judge_word(invocation->operands[n], invocation->may_exist, unsound, &why);
			missing = status == STATUS_DONE ? missing : status;
		}
	names = json_array();
	where.name = takes_file ? invocation->name : NULL;
	is_meant &= invocation->is_all || where.count;
	status = is_meant ? take_off(filters, count, &where, names) : STATUS_DONE;
	if (unsound && invocation->is_all)
		status = command_fail_because(unsound, &why);
	else if (is_meant && invocation->is_all && !kernel_sees_tc())
		status = command_fail(STATUS_SYSTEM, "only CAP_NET_ADMIN shows the filters at tc; run this with "
						     "CAP_NET_ADMIN");
	else if (*why.text && takes_file)
		status = command_fail(STATUS_SYSTEM, "%s", why.text);
	kernel_filters_free(filters, count);
	is_changed = json_array_size(names);
	output_print(json_pack("{s:o, s:b}", "unloaded", names, "changed", is_changed));
	return status == STATUS_DONE ? missing : status;
}

const struct command command_load = {
	.name = "load",
	.usage = "IFACE... [--mode auto|native|skb] [--capacity N] [--compact [--fingerprint 8|16|17|32]] "
		 "[--no-counters] [--no-spare] [--outgoing] [--monitor-only] [--confirm TIME]",
	.min = 1,
	.max = -1,
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ | PRIVILEGE_SSH,
	.run = run_load,
};

const struct command command_unload = {
	.name = "unload",
	.usage = "IFACE...|--all [--on-stop [FILE]] [--exist]",
	.max = -1,
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ,
	.run = run_unload,
};
