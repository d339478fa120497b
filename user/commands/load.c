// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* load, unload: which interfaces run the filter. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "commands/command.h"
#include "counters/outcome_words.h"
#include "io/output.h"
#include "change/watchdog.h"

static enum command_status run_load(const struct invocation *invocation);
static enum command_status run_unload(const struct invocation *invocation);

const struct command command_load = {
	.name = "load",
	.group = COMMAND_RUN,
	.usage = "IFACE... [--mode auto|native|skb] [--capacity N] [--compact [--fingerprint 8|16|17|32]] "
		 "[--no-counters] [--no-spare] [--monitor-only] [--confirm TIME]",
	.summary = "run the filter on interfaces",
	.help = "All interfaces of one --name share one table, filled from the rules stored under that\n"
		"name. The filter runs until `unload`, a reboot or the end of the interface. Only on interfaces\n"
		"with an Ethernet header: packets of tunnels, PPP and the like pass the Ethernet interface below.\n"
		"  --mode auto      native where the driver can, else generic (skb), and says so (default)\n"
		"  --mode native    in the driver, or not at all\n"
		"  --mode skb       after the driver: works everywhere, slower\n"
		"  --capacity N     rules the table must hold at 95 % load; default: those stored and half as\n"
		"                   many again. It grows by itself where more are added\n"
		"  --compact        fingerprints only: 2 bytes a slot instead of 26, for tens of millions of\n"
		"                   rules. It drops some innocent packets, and lets some blocked ones pass where\n"
		"                   pass rules are in use; it counts nothing by rule\n"
		"  --fingerprint B  with --compact: bits of a fingerprint. The rate of innocent packets dropped\n"
		"                   for each kind of rule in use, in a full table, and bytes a slot:\n"
		"                     8: 3 %, 1 byte     16: 1.2e-4, 2 bytes (default)     32: 1.8e-9, 4 bytes\n"
		"                     17: 5.8e-5, 2 bytes, semi-sorted: look-ups are slower\n"
		"  --no-counters    no packets and bytes by rule: 10 bytes a slot instead of 26\n"
		"  --no-spare       memory for one table only. By default there is room for a second one while a\n"
		"                   table takes at most 64 MiB: a change that packets must see as a whole fills it,\n"
		"                   and exchanges the two. Without that room such a change loads new programs,\n"
		"                   which takes the kernel a tenth of a second or more\n"
		"  --monitor-only   drop nothing and count what would be dropped, as `monitor-only on` does\n"
		"  --confirm TIME   take it off again unless `xdp-cuckoo confirm` comes within TIME, also where\n"
		"                   this terminal hangs or is gone: the way to load it over the network\n"
		"Packets with more headers than any sender needs are dropped, unless `policy too-many-headers\n"
		"pass` says otherwise; load says so.\n"
		"Says before it starts which stored rules block this host's own addresses, default gateway,\n"
		"name servers or SSH session. Watches at the end, as `status` does, whether packets reach the filter.\n"
		"If the MTU has grown on an interface that runs the filter already, the program for larger frames takes\n"
		"its place.\n"
		"\n"
		"  xdp-cuckoo load eth0\n"
		"  xdp-cuckoo load eth0 --confirm 30s\n"
		"  xdp-cuckoo load eth0 eth1 --mode native --capacity 5000000\n"
		"  xdp-cuckoo load eth0 --compact --fingerprint 32\n",
	.options = OPTION_MODE | OPTION_CAPACITY | OPTION_FORMAT | OPTION_MONITOR | OPTION_CONFIRM,
	.min = 1,
	.max = -1,
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ | PRIVILEGE_SSH,
	.run = run_load,
};

const struct command command_unload = {
	.name = "unload",
	.group = COMMAND_RUN,
	.usage = "IFACE...|--all",
	.summary = "take the filter off interfaces",
	.help = "The stored rules stay, and the next `load` brings them back. Only xdp-cuckoo programs\n"
		"are touched; --all means every one in this network namespace. Status 1 where an interface\n"
		"has none.\n"
		"\n"
		"  xdp-cuckoo unload eth0\n"
		"  xdp-cuckoo unload --all\n",
	.options = OPTION_ALL,
	.min = 0,
	.max = -1,
	.needs = PRIVILEGE_KERNEL,
	.run = run_unload,
};

static void add_row(json_t *rows, const struct kernel_attachment *attached)
{
	struct kernel_attachment attachment = *attached;

	interface_clean_name(attachment.interface);
	json_array_append_new(rows, json_pack("{s:s, s:s}", "interface", attachment.interface, "mode",
					      interface_mode_name(attachment.mode)));
}

static int load_one(const struct invocation *invocation, struct apply *apply, struct target *target,
		    const char *interface, json_t *rows, struct reason *reason)
{
	struct kernel_filter *filter = &target->filter;
	const struct kernel_attachment *attachment = apply_attachment_on(apply, interface);
	int error;

	if (attachment) {
		output_note("'%s' runs the filter '%s' already", interface, apply->name);
		add_row(rows, attachment);
		return 0;
	}
	error = kernel_attach(filter, interface, invocation->mode, reason);
	if (error)
		return error;
	attachment = &filter->attachments[filter->attachments_count - 1];
	if (*reason->text)
		output_note("'%s' runs the filter in generic (skb) mode, which is slower: %s", interface, reason->text);
	add_row(rows, attachment);
	return 0;
}

/* What runs already is joined as it is, and must not be other than what was asked for. */
static int check_running(const struct invocation *invocation, const struct apply *apply, struct reason *reason)
{
	const struct target *target = apply->targets;
	const struct abi_options wanted = command_table_options(invocation);
	__u64 slots = table_slots(&target->table);

	if (invocation->capacity && table_slots_for(invocation->capacity) != slots)
		return reason_set(reason, -EINVAL,
				  "the filter '%s' is running with %llu slots; xdp-cuckoo resize changes its "
				  "capacity",
				  apply->name, (unsigned long long)slots);
	if (command_names_format(invocation) && memcmp(&wanted, &target->filter.options, sizeof(wanted)))
		return reason_set(reason, -EINVAL,
				  "the filter '%s' is running with another --compact, --fingerprint, "
				  "--no-counters or --no-spare; unload it to change them",
				  apply->name);
	return 0;
}

static bool is_monitor_only(const struct target *target)
{
	return target->filter.config->run & ABI_RUN_MONITOR;
}

/* One time to confirm at once, whatever it is of. */
static int check_unconfirmed(const struct invocation *invocation, const struct target *target, struct reason *reason)
{
	if (!invocation->confirm_ms || !(target->filter.config->run & ABI_RUN_UNCONFIRMED))
		return 0;
	return reason_set(reason, -EBUSY,
			  "'%s' waits for xdp-cuckoo confirm already, or was not confirmed "
			  "in time; see xdp-cuckoo status",
			  target->filter.config->name);
}

/* Before the first packet is seen. */
static int set_how_it_runs(const struct invocation *invocation, struct apply *apply, struct target *target,
			   struct reason *reason)
{
	int error = 0;

	if (invocation->is_monitor_only && !is_monitor_only(target))
		error = apply_set_monitor_only(apply, true, reason);
	if (!error && invocation->confirm_ms)
		error = target_set_unconfirmed(target, 0, invocation->confirm_ms, reason);
	return error;
}

/* After a failure all is as it was before. */
static void take_back(const struct invocation *invocation, struct apply *apply, struct target *target,
		      size_t attachments_before, bool was_monitor_only)
{
	struct reason ignored;

	for (size_t i = attachments_before; i < target->filter.attachments_count; i++)
		kernel_detach(&target->filter, &target->filter.attachments[i], &ignored);
	if (invocation->confirm_ms)
		target_confirm(target);
	if (invocation->is_monitor_only && !was_monitor_only)
		apply_set_monitor_only(apply, false, &ignored);
}

/* *before: interfaces that the filter, apply->targets[0], ran on already. */
static int load_all(const struct invocation *invocation, struct apply *apply, json_t *rows, size_t *before,
		    struct reason *reason)
{
	const struct abi_options options = command_table_options(invocation);
	struct target *target = apply->targets;
	bool was_monitor_only;
	int error;

	if (apply->targets_count)
		error = check_running(invocation, apply, reason);
	else
		error = apply_load(apply, &options, invocation->capacity, &target, reason);
	if (!error)
		error = check_unconfirmed(invocation, target, reason);
	if (error)
		return error;
	was_monitor_only = is_monitor_only(target);
	*before = target->filter.attachments_count;
	command_fit_mtu(apply);
	error = set_how_it_runs(invocation, apply, target, reason);
	for (int i = 0; i < invocation->count && !error; i++)
		error = load_one(invocation, apply, target, invocation->operands[i], rows, reason);
	/* There is nothing to undo. */
	if (!error && invocation->confirm_ms && target->filter.attachments_count == *before)
		target_confirm(target);
	if (error)
		take_back(invocation, apply, target, *before, was_monitor_only);
	return error;
}

static bool is_unconfirmed(const struct invocation *invocation, const struct kernel_filter *filter)
{
	return invocation->confirm_ms && filter->config->run & ABI_RUN_UNCONFIRMED;
}

static json_t *load_answer(const struct invocation *invocation, struct apply *apply, json_t *rows)
{
	const struct kernel_filter *filter = &apply->targets->filter;
	struct store_info info = {};
	json_t *answer;

	store_info(apply->store, &info);
	answer = json_pack("{s:s, s:I, s:s, s:I, s:I, s:f, s:f, s:o}", "name", apply->name, "rules",
			   (json_int_t)info.rules, "table", command_format_name(&filter->options), "slots",
			   (json_int_t)table_slots(&apply->targets->table), "table_bytes",
			   (json_int_t)kernel_filter_bytes(filter), "false_positive_rate_ipv4",
			   apply_false_positive_rate(filter, FLOW_IPV4), "false_positive_rate_ipv6",
			   apply_false_positive_rate(filter, FLOW_IPV6), "interfaces", rows);
	if (is_unconfirmed(invocation, filter))
		json_object_set_new(answer, "confirm_within_seconds", json_integer(invocation->confirm_ms / 1000));
	return answer;
}

/* A full table of one kind of rule: what --compact costs, in one line at the moment of choice. */
static void warn_of_compact(const struct kernel_filter *filter)
{
	double rate = table_false_positive_rate(filter->options.format, TABLE_LOAD_PERCENT / 100.);

	if (!filter->options.is_exact)
		output_note("compact: at 95 %% load one of %.3g innocent flows is dropped for each kind of "
			    "rule in use",
			    1 / rate);
}

/* What undoes this load. `ifindex` has room for all interfaces that are named. */
static struct watchdog watchdog_for(const struct invocation *invocation, const struct kernel_filter *filter,
				    size_t before, int *ifindex)
{
	struct watchdog watchdog = {
		.state = invocation->state,
		.name = invocation->name,
		.deadline_ms = watchdog_deadline(invocation->confirm_ms),
		.ifindex = ifindex,
		.confirm_by = filter->config->confirm_by,
	};

	for (size_t i = before; i < filter->attachments_count; i++)
		ifindex[watchdog.ifindex_count++] = filter->attachments[i].ifindex;
	return watchdog;
}

struct loading {
	json_t *rows, *answer;
	int *ifindex;
	struct watchdog watchdog;
	bool drops_headers; /* from now on, which is to be said */
};

static int load(const struct invocation *invocation, struct loading *loading, struct reason *reason)
{
	struct reason unseen;
	struct apply apply;
	size_t before = 0;
	bool is_new;
	int error = apply_open_to_load(&apply, invocation->state, invocation->name, &unseen, reason);

	is_new = !error && !apply.targets_count;
	if (!error) {
		command_report_undone(&apply);
		error = command_report_blocked(&apply, reason);
	}
	if (!error)
		error = load_all(invocation, &apply, loading->rows, &before, reason);
	if (!error) {
		const struct kernel_filter *filter = &apply.targets->filter;

		command_report_targets(&apply);
		if (*unseen.text)
			output_note("%s", unseen.text);
		warn_of_compact(filter);
		loading->drops_headers = is_new && filter->config->policy[OUTCOME_TOO_MANY_HEADERS] == VERDICT_DROP;
		if (!is_unconfirmed(invocation, filter))
			command_report_run(filter);
		loading->answer = load_answer(invocation, &apply, json_incref(loading->rows));
		if (is_unconfirmed(invocation, filter))
			loading->watchdog = watchdog_for(invocation, filter, before, loading->ifindex);
	}
	apply_close(&apply);
	return error;
}

/* The watchdog waits before anything is printed: whoever reads that may be gone. */
static enum command_status run_load(const struct invocation *invocation)
{
	struct loading loading = {};
	struct reason reason;
	bool waits;
	int error;

	if (command_check_format(invocation))
		return STATUS_USAGE;
	if (invocation->confirm_ms)
		watchdog_ignore_hangup();
	loading.rows = json_array();
	loading.ifindex = calloc(invocation->count, sizeof(*loading.ifindex));
	error = loading.ifindex ? load(invocation, &loading, &reason) :
				  reason_set(&reason, -ENOMEM, "no memory for the list of interfaces");
	waits = !error && loading.watchdog.ifindex_count;
	if (waits)
		error = watchdog_start(&loading.watchdog, &reason);
	if (loading.drops_headers)
		output_note("drops packets with %s; xdp-cuckoo policy too-many-headers pass lets them through",
			    outcome_words[OUTCOME_TOO_MANY_HEADERS].meaning);
	output_print(loading.answer);
	if (waits && !error)
		command_report_confirm(invocation, loading.watchdog.deadline_ms);
	json_decref(loading.rows);
	free(loading.ifindex);
	if (!error && !output_flush())
		command_watch(invocation->name);
	return error ? command_failed(error, &reason) : STATUS_DONE;
}

static bool is_wanted(const struct invocation *invocation, const char *interface)
{
	for (int i = 0; i < invocation->count; i++)
		if (interfaces_are_one(invocation->operands[i], interface))
			return true;
	return invocation->is_all;
}

struct unloading {
	const struct invocation *invocation;
	bool *is_done; /* by operand */
	json_t *names;
	int unsound_error; /* some filter could not be looked at, or used: `unsound` tells of it */
	struct reason unsound;
};

static void note_unloaded(struct unloading *unloading, const struct kernel_attachment *detached)
{
	const struct invocation *invocation = unloading->invocation;
	struct kernel_attachment attachment = *detached;

	for (int i = 0; i < invocation->count; i++)
		unloading->is_done[i] |= interfaces_are_one(invocation->operands[i], attachment.interface);
	interface_clean_name(attachment.interface);
	json_array_append_new(unloading->names, json_string(attachment.interface));
}

static int unload_filter(struct unloading *unloading, const struct kernel_filter *filter, struct reason *reason)
{
	for (size_t i = 0; i < filter->attachments_count; i++) {
		const struct kernel_attachment *attachment = &filter->attachments[i];
		int error;

		if (!is_wanted(unloading->invocation, attachment->interface))
			continue;
		error = kernel_detach(filter, attachment, reason);
		if (error)
			return error;
		note_unloaded(unloading, attachment);
	}
	return 0;
}

static int unload_all(struct unloading *unloading, struct reason *reason)
{
	struct kernel_filter *filters;
	size_t count;
	int error = kernel_find_all(NULL, &filters, &count, &unloading->unsound);

	unloading->unsound_error = error == -EPROTO || error == -EPERM ? error : 0;
	if (error && !unloading->unsound_error) {
		*reason = unloading->unsound;
		return error;
	}
	error = 0;
	for (size_t i = 0; i < count && !error; i++)
		error = unload_filter(unloading, &filters[i], reason);
	kernel_filters_free(filters, count);
	return error;
}

static enum command_status report_idle(const char *interface)
{
	struct reason reason;

	if (interfaces_is_there(interface))
		return command_error(STATUS_NO, "'%s' runs no xdp-cuckoo filter; see xdp-cuckoo status", interface);
	kernel_say_no_interface(interface, &reason);
	return command_error(STATUS_NO, "%s", reason.text);
}

static enum command_status report_unloaded(const struct unloading *unloading)
{
	const struct invocation *invocation = unloading->invocation;
	const int unsound = unloading->unsound_error;
	enum command_status status = STATUS_DONE;

	if (unsound && invocation->is_all)
		status = command_failed(unsound, &unloading->unsound);
	for (int i = 0; i < invocation->count; i++)
		if (!unloading->is_done[i])
			status = unsound ? command_failed(unsound, &unloading->unsound) :
					   report_idle(invocation->operands[i]);
	output_print(json_pack("{s:O}", "unloaded", unloading->names));
	return status;
}

static enum command_status run_unload(const struct invocation *invocation)
{
	struct unloading unloading = { .invocation = invocation };
	struct reason reason;
	enum command_status status;
	int error;

	if (invocation->is_all == (invocation->count > 0))
		return command_error(STATUS_USAGE,
				     "unload takes interfaces or --all: xdp-cuckoo unload "
				     "IFACE..., or xdp-cuckoo unload --all; xdp-cuckoo status lists them");
	unloading.names = json_array();
	unloading.is_done = calloc(invocation->count + 1, sizeof(*unloading.is_done));
	if (!unloading.is_done) {
		json_decref(unloading.names);
		return command_error(STATUS_FULL, "no memory for the list of interfaces");
	}
	error = unload_all(&unloading, &reason);
	status = error ? command_failed(error, &reason) : report_unloaded(&unloading);
	free(unloading.is_done);
	json_decref(unloading.names);
	return status;
}
