// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * load, unload: which interfaces run the filter. With --confirm a load is on trial: the filters that it changes pass
 * every packet if nobody confirms in time, and then the watchdog takes off what the load has attached.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <net/if.h>

#include "command/command.h"
#include "filter/filter.h"
#include "io/output.h"
#include "change/change.h"
#include "base/memory.h"

/* Runs the filter on one interface, or notes that it runs there already. Then adds a row to `rows`. */
static int load_one(const struct invocation *invocation, struct session *session, const char *interface, json_t *rows,
		    struct reason *reason)
{
	const enum kernel_mode mode = invocation->load.mode;
	struct kernel_attachment *attachment;
	/*
	 * The filter of this interface need not be session->filters[0]: another loader makes a filter for each
	 * interface.
	 */
	struct kernel_filter *filter = session_filter_on(session, interface, false, &attachment);
	bool is_outgoing = session_attachment_on(session, interface, true);
	const bool adds_outgoing = invocation->load.is_outgoing && !is_outgoing;
	json_t *row;
	int error = 0;

	if (filter) {
		if (!command_note_mode(attachment, mode) && !adds_outgoing)
			output_note("'%s' runs the filter '%s' already", interface, session->name);
	} else {
		filter = &session->filters->kernel;
		error = kernel_attach(filter, interface, mode, reason);
		if (error)
			return error;
		if (*reason->text)
			output_note("'%s' runs the filter in generic (skb) mode, which is slower: %s", interface,
				    reason->text);
		command_report_old_buffers(&filter->attachments[filter->attachments_count - 1]);
	}
	if (adds_outgoing) {
		error = kernel_attach_outgoing(filter, interface, reason);
		is_outgoing = true;
	}
	/* Again: attachments move in memory. An altname finds none if the interface has just gone. */
	if (!session_filter_on(session, interface, false, &attachment))
		return error ? error : kernel_no_interface_reason(interface, reason);
	row = json_pack("{s:o, s:s}", "interface", command_interface(attachment), "mode",
			interface_mode_name(attachment->mode));
	/* In text, only those who ask for --outgoing get the column. */
	if (invocation->load.is_outgoing || output_is_json())
		json_object_set_new(row, "outgoing", json_boolean(is_outgoing));
	json_array_append_new(rows, row);
	return error;
}

/* The filter already runs, and the new interfaces will share it. Fails if the options ask for another table. */
static int check_running(const struct invocation *invocation, const struct session *session, struct reason *reason)
{
	const struct filter *filter = session->filters;
	const struct kernel_attachment *held = kernel_held_attachment(&filter->kernel);
	const struct abi_options wanted = table_options_of(&invocation->load);
	__u64 slots = table_slots(&filter->table);

	if (invocation->load.capacity && table_slots_for(invocation->load.capacity) != slots)
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

/* Lists what the watchdog takes off: what this load has attached, and all attachments of filters that it sets up. */
static int note_interfaces(const struct session *session, struct watchdog *watchdog, struct reason *reason)
{
	for (size_t i = 0; i < session->filters_count; i++) {
		const struct kernel_filter *kernel = &session->filters[i].kernel;
		const bool is_set_up = session->filters[i].state == FILTER_SET_UP;

		for (size_t k = 0; k < kernel->attachments_count; k++) {
			if (!is_set_up && !kernel->attachments[k].is_new)
				continue;
			if (array_grow(&watchdog->attachment, watchdog->attachments, sizeof(*watchdog->attachment)))
				return reason_set(reason, -ENOMEM, "no memory for the list of interfaces");
			watchdog->attachment[watchdog->attachments++] = kernel->attachments[k];
		}
	}
	if (watchdog->attachments)
		return 0;
	return reason_set(reason, -EINVAL,
			  "the filter runs there already, so --confirm has nothing to undo: leave it out");
}

/*
 * Sets monitor-only and the deadline. Call it before anything is attached, or packets are dropped too early. The
 * deadline is for the first filter, and for others that are set up now or get a program for sent packets.
 */
static int start_trial(const struct invocation *invocation, struct session *session, bool sets_monitor_only,
		       struct reason *reason)
{
	int error = sets_monitor_only ? change_set_monitor_only(session, true, reason) : 0;
	struct kernel_attachment *ignored;

	for (size_t i = 0; i < session->filters_count && invocation->confirm_ms && !error; i++) {
		struct filter *filter = &session->filters[i];
		bool is_changed = !i || filter->state == FILTER_SET_UP;

		for (int n = 0; n < invocation->count && invocation->load.is_outgoing; n++)
			is_changed |= session_filter_on(session, invocation->operands[n], false, &ignored) ==
					      &filter->kernel &&
				      !session_attachment_on(session, invocation->operands[n], true);
		if (!is_changed)
			continue;
		error = filter_set_unconfirmed(filter, 0, invocation->confirm_ms, reason);
		/* All get the same tick: by it the watchdog knows the filters of this load. */
		filter->kernel.config->confirm_by = session->filters->kernel.config->confirm_by;
	}
	return error;
}

/*
 * After an error all is undone; what could not be undone is noted. A filter that was not started before still passes
 * everything.
 */
static int load_all(const struct invocation *invocation, struct session *session, json_t *rows,
		    struct watchdog *watchdog, struct reason *reason)
{
	const struct abi_options options = table_options_of(&invocation->load);
	struct filter *filter = session->filters;
	bool sets_monitor_only, is_any_new = !session->filters_count;
	struct reason ignored;
	int error;

	for (size_t i = 0; i < session->filters_count; i++)
		is_any_new |= session->filters[i].state == FILTER_SET_UP;
	for (int i = 0; i < invocation->count; i++) {
		if (session->filters_count && !interfaces_index(invocation->operands[i]))
			return kernel_no_interface_reason(invocation->operands[i], reason);
		is_any_new |= !session_attachment_on(session, invocation->operands[i], false) ||
			      (invocation->load.is_outgoing &&
			       !session_attachment_on(session, invocation->operands[i], true));
	}
	if (session->filters_count)
		error = check_running(invocation, session, reason);
	else
		error = session_load(session, &options, invocation->load.capacity, &filter, reason);
	if (error)
		return error;
	/* Only one change at a time may wait for `confirm`. */
	for (size_t i = 0; i < session->filters_count && invocation->confirm_ms; i++)
		if (session->filters[i].kernel.config->run & ABI_RUN_UNCONFIRMED)
			return reason_set(reason, -EBUSY,
					  "'%s' already waits for xdp-cuckoo%s confirm, or was not confirmed in time; see "
					  "xdp-cuckoo status",
					  session->name, session_name_option(session->name));
	/* Not if the load is refused below (--confirm, but nothing new): the running filter would drop less. */
	sets_monitor_only = invocation->load.is_monitor_only && !(filter->kernel.config->run & ABI_RUN_MONITOR) &&
			    (is_any_new || !invocation->confirm_ms);
	command_fit_mtu(session);
	error = start_trial(invocation, session, sets_monitor_only, reason);
	for (int i = 0; i < invocation->count && !error; i++)
		error = load_one(invocation, session, invocation->operands[i], rows, reason);
	if (invocation->confirm_ms && !error)
		error = note_interfaces(session, watchdog, reason);
	if (!error) {
		watchdog->sets_monitor_only = sets_monitor_only;
		session_start(session);
		return 0;
	}
	/*
	 * The last one first: while a bridge, bond or VLAN runs a program, the interfaces below it cannot lose theirs.
	 */
	for (size_t i = 0; i < session->filters_count; i++) {
		struct kernel_filter *kernel = &session->filters[i].kernel;

		for (size_t k = kernel->attachments_count; k--;)
			if (kernel->attachments[k].is_new &&
			    kernel_detach_direction(kernel, &kernel->attachments[k], &ignored))
				output_note("'%s' keeps the filter, though the load failed: %s",
					    kernel->attachments[k].interface, ignored.text);
		if (invocation->confirm_ms && kernel->config->run & ABI_RUN_UNCONFIRMED)
			filter_confirm(&session->filters[i]);
	}
	if (sets_monitor_only && change_set_monitor_only(session, false, &ignored))
		output_note("monitor-only stays, though the load failed: %s", ignored.text);
	return error;
}

struct loading {
	json_t *rows;   /* one for each interface */
	json_t *answer; /* what the load prints, with the rows */
	struct watchdog watchdog;
};

static int load(const struct invocation *invocation, struct loading *loading, struct reason *reason)
{
	struct watchdog *watchdog = &loading->watchdog;
	const struct kernel_filter *kernel;
	struct store_info info = {};
	struct reason unseen;
	bool is_first;
	struct session session;
	int error = session_open_to_load(&session, invocation->state, invocation->name, invocation->confirm_ms, &unseen,
					 reason);

	if (!error) {
		command_report_undone(&session);
		error = command_report_blocked(&session, invocation->state, reason);
	}
	is_first = !session.filters_count;
	if (!error)
		error = load_all(invocation, &session, loading->rows, watchdog, reason);
	if (error) {
		session_close(&session);
		return error;
	}
	kernel = &session.filters->kernel;
	command_report_session(&session);
	if (*unseen.text)
		output_note("%s", unseen.text);
	if (!kernel->options.is_exact)
		output_note("compact: at 95 %% load one of %.3g innocent flows is dropped for each kind of rule in use",
			    1 / table_false_positive_rate(kernel->options.format, TABLE_LOAD_PERCENT / 100.));
	for (enum flow_family family = 0; family < FLOW_FAMILIES && !kernel->config->asks_conntrack; family++)
		if (abi_shapes(abi_active(kernel->config), family)->new_only) {
			output_note(
				"connection tracking is not asked here: rules with state new also drop UDP answers to hosts behind "
				"this one; see xdp-cuckoo-rules(5)");
			break;
		}
	store_info(session.store, &info);
	loading->answer = json_pack("{s:s, s:I, s:s, s:I, s:I, s:O}", "name", session.name, "rules", info.rules,
				    "table", command_format_name(&kernel->options), "slots",
				    table_slots(&session.filters->table), "table_bytes", kernel_filter_bytes(kernel),
				    "interfaces", loading->rows);
	/* Text leaves these out: people read them in status --verbose. */
	if (output_is_json())
		json_object_update_new(loading->answer, json_pack("{s:f, s:f}", "false_positive_rate_ipv4",
								  query_false_positive_rate(kernel, FLOW_IPV4),
								  "false_positive_rate_ipv6",
								  query_false_positive_rate(kernel, FLOW_IPV6)));
	if (invocation->confirm_ms && kernel->config->run & ABI_RUN_UNCONFIRMED) {
		json_object_set_new(loading->answer, "confirm_within_s", json_integer(invocation->confirm_ms / 1000));
		watchdog->deadline_ms = watchdog_deadline(invocation->confirm_ms);
		watchdog->confirm_by = kernel->config->confirm_by;
	} else if (!(kernel->config->run & ABI_RUN_PANIC) && !run_is_confirm_late(kernel)) {
		command_report_run(kernel);
	}
	if (is_first)
		watchdog_take_pending(watchdog, session.store);
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
	struct loading loading = { .watchdog = { .state = words->state, .name = words->name } };
	struct reason reason;
	bool waits;
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
	loading.rows = json_array();
	error = load(invocation, &loading, &reason);
	waits = !error && (loading.watchdog.attachments || loading.watchdog.pending_id);
	if (waits)
		error = watchdog_start(&loading.watchdog, &reason);
	output_print(loading.answer);
	if (loading.watchdog.attachments && !error)
		command_report_confirm(invocation, loading.watchdog.deadline_ms);
	json_decref(loading.rows);
	free(loading.watchdog.attachment);
	if (!error && !output_flush())
		command_watch(invocation->name);
	return error ? command_fail_because(error, &reason) : STATUS_DONE;
}

/* ---- unload ---- */

/*
 * Notes again that the filter should not be there: a writer may have replaced it by one with an older copy of its config.
 * A filter of another name may still be missed there.
 */
static void want_no_more(const struct kernel_filter *filter, int ifindex)
{
	struct kernel_filter *filters = NULL;
	struct reason ignored = {};
	size_t count = 0;

	kernel_find_filters((struct kernel_wish){}, &filters, &count, &ignored);
	for (size_t i = 0; i < count; i++)
		if (kernel_is_named(filters[i].config, filter->config->name) &&
		    kernel_has_lost_interface(filters, count, i, ifindex))
			kernel_want_received(&filters[i], ifindex, false);
	kernel_filters_free(filters, count);
}

/*
 * Takes the filter off the interfaces of the command, and adds them to `names`. Prints an error for each that keeps it.
 */
static enum command_status detach_all(const struct invocation *invocation, const struct kernel_filter *filters,
				      size_t count, json_t *names)
{
	enum command_status status = STATUS_DONE;

	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < filters[i].attachments_count; k++) {
			const struct kernel_attachment *attachment = &filters[i].attachments[k];
			bool is_wanted = invocation->is_all;
			struct reason reason;
			int error;

			for (int n = 0; n < invocation->count; n++)
				is_wanted |= interfaces_are_one(invocation->operands[n], attachment->interface);
			if (!is_wanted || kernel_goes_with_another(&filters[i], attachment))
				continue;
			error = kernel_detach(&filters[i], attachment, &reason);
			if (error) {
				status = command_fail_because(error, &reason);
				continue;
			}
			want_no_more(&filters[i], attachment->ifindex);
			json_array_append_new(names, command_interface(attachment));
		}
	return status;
}

/*
 * Judges one word of unload, and adds the interface to `names` if it counts as unloaded. `unsound`: why a filter was not
 * seen or cannot be used (-errno); 0: all were.
 */
static enum command_status judge_word(const char *interface, const struct kernel_filter *filters, size_t count,
				      int unsound, const struct reason *why, json_t *names)
{
	struct reason reason;
	int index;

	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < filters[i].attachments_count; k++)
			if (interfaces_are_one(interface, filters[i].attachments[k].interface))
				return STATUS_DONE;
	if (unsound)
		return command_fail_because(unsound, why);
	index = interfaces_index(interface);
	/*
	 * Another tool may have taken the filter off already. Then it is no longer wanted there, and the word counts as
	 * unloaded.
	 */
	for (size_t i = 0; i < count && index; i++)
		if (kernel_has_lost_interface(filters, count, i, index)) {
			kernel_want_received(&filters[i], index, false);
			json_array_append_new(names, json_string(interface));
			return STATUS_DONE;
		}
	if (!index) {
		kernel_no_interface_reason(interface, &reason);
		return command_fail(STATUS_NO, "%s", reason.text);
	}
	if (kernel_may_be_unseen(index))
		return command_fail(STATUS_SYSTEM,
				    "only CAP_NET_ADMIN shows whether the filter runs on '%s', at tc; run this with "
				    "CAP_NET_ADMIN",
				    interface);
	return command_fail(STATUS_NO, "'%s' runs no xdp-cuckoo filter; see xdp-cuckoo status", interface);
}

static enum command_status run_unload(const struct invocation *words)
{
	struct invocation copy = *words;
	const struct invocation *invocation = &copy;
	enum command_status status, judged, missing = STATUS_DONE;
	struct kernel_filter *filters = NULL;
	enum kernel_seen seen;
	struct reason why;
	json_t *names;
	size_t count = 0;
	int error, unsound;

	command_skip_dev(&copy);
	if (invocation->is_all == (invocation->count > 0))
		return command_fail(STATUS_USAGE,
				    "unload takes interfaces or --all: xdp-cuckoo unload IFACE..., or xdp-cuckoo unload --all; "
				    "xdp-cuckoo status lists them");
	error = kernel_find_filters((struct kernel_wish){ .takes_other_versions = true, .seen = &seen }, &filters,
				    &count, &why);
	if (error)
		return command_fail_because(error, &why);
	unsound = kernel_seen_error(seen);
	names = json_array();
	for (int n = 0; n < invocation->count; n++) {
		judged = judge_word(invocation->operands[n], filters, count, unsound, &why, names);
		missing = judged == STATUS_DONE ? missing : judged;
	}
	status = detach_all(invocation, filters, count, names);
	if (unsound && invocation->is_all)
		status = command_fail_because(unsound, &why);
	kernel_filters_free(filters, count);
	output_print(json_pack("{s:o}", "unloaded", names));
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
	.usage = "IFACE...|--all",
	.max = -1,
	.needs = PRIVILEGE_KERNEL,
	.run = run_unload,
};
