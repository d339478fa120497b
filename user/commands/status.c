// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* status: what is stored and what runs. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "commands/command.h"
#include "counters/outcome_words.h"
#include "io/output.h"
#include "kernel/ticks.h"

static enum command_status run_status(const struct invocation *invocation);

const struct command command_status = {
	.name = "status",
	.group = COMMAND_LOOK,
	.usage = "",
	.summary = "show the stored rules and the running filters",
	.help = "Of the store: rules, how many of them end by themselves, the kinds of rule (shapes: fields\n"
		"and prefix lengths) with the one each is looked up as, and a change that waits for `confirm`.\n"
		"Of each running filter, of any name: whether it filters (monitor-only, panic, unconfirmed,\n"
		"NOT FILTERING), interfaces, policies that drop, how its table keeps entries, load factor, memory, the most\n"
		"entries that one insert has moved, how often a look-up was tried again because the table moved,\n"
		"how often an innocent packet had a rule's fingerprint and the exact table's records told, the\n"
		"shapes that packets are looked up by, how many of them as a mean for a packet that no rule\n"
		"matches, and the chance that it is taken for one that a rule names.\n"
		"NOT FILTERING, with status 1: an interface receives packets, and the filter sees none of them. Some\n"
		"drivers take the program and do not run it, or stop running it when the link or the MTU changes.\n"
		"`status` watches for it: for 0.2 s if no packet comes, for up to 4.5 s if packets come that the filter\n"
		"does not see. It is silent where less than 5 packets a second come, and behind libxdp's dispatcher.\n"
		"It warns if an MTU has grown so much that the driver may lose frames; `load` cures that if it can.\n"
		"\n"
		"  xdp-cuckoo status\n"
		"  xdp-cuckoo status --json\n",
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ,
	.run = run_status,
};

/* ---- how a filter runs ---- */

static bool is_unconfirmed(const struct kernel_filter *filter)
{
	return filter->config->run & ABI_RUN_UNCONFIRMED;
}

/* 0 also where the kernel does not tell. */
static __s64 confirm_left_ms(const struct kernel_filter *filter)
{
	struct reason ignored;
	__s64 left_ms;

	if (!is_unconfirmed(filter) || ticks_left(filter->config->confirm_by, &left_ms, &ignored))
		return 0;
	return left_ms > 0 ? left_ms : 0;
}

bool command_passes_unconfirmed(const struct kernel_filter *filter)
{
	return is_unconfirmed(filter) && !confirm_left_ms(filter);
}

/* What comes first rules out the rest. */
const char *command_effect(const struct kernel_filter *filter, char text[COMMAND_EFFECT_BYTES])
{
	const __u32 run = filter->config->run;
	const __s64 left_ms = confirm_left_ms(filter);
	char time[RULE_TIME_BYTES];

	if (!(run & ABI_RUN_SET_UP))
		return "passes everything until the next add, import or load";
	if (run & ABI_RUN_PANIC)
		return "PANIC: passes everything; xdp-cuckoo panic off ends it";
	if (command_passes_unconfirmed(filter))
		return "UNCONFIRMED: passes everything; xdp-cuckoo confirm --force, or unload, ends it";
	if (is_unconfirmed(filter)) {
		snprintf(text, COMMAND_EFFECT_BYTES,
			 "UNCONFIRMED: passes everything in %s unless xdp-cuckoo "
			 "confirm comes before",
			 rule_time_format(left_ms, time));
		return text;
	}
	if (run & ABI_RUN_MONITOR)
		return "MONITOR-ONLY: drops nothing, and counts what it would drop";
	return "filters";
}

void command_report_run(const struct kernel_filter *filter)
{
	const bool is_late = command_passes_unconfirmed(filter);
	char text[COMMAND_EFFECT_BYTES];

	/* What nobody has asked for is told to programs too. */
	if (filter->config->run & ~(ABI_RUN_SET_UP | ABI_RUN_HEIR))
		(is_late ? output_warning : output_note)("the filter '%s' on %s: %s", filter->config->name,
							 filter->attachments_count ? filter->attachments[0].interface :
										     "-",
							 command_effect(filter, text));
}

static bool is_bypassed(const struct kernel_attachment *attachment)
{
	return attachment->is_bypassed;
}

static void report_mtu(const struct kernel_attachment *attachment, const char *name)
{
	char option[COMMAND_NAME_BYTES];

	if (interfaces_may_take_frags(attachment->ifindex))
		output_note("the MTU of '%s' has grown to %u: its driver may lose frames that do not fit into one buffer; "
			    "xdp-cuckoo%s load %s cures that, or says why not",
			    attachment->interface, attachment->mtu, command_name_option(name, option),
			    attachment->interface);
	else
		output_note("the MTU of '%s' has grown to %u: its driver may lose frames that do not fit into one buffer; "
			    "make the MTU smaller, or unload the filter there and load it with --mode skb",
			    attachment->interface, attachment->mtu);
}

bool command_report_lost(const struct kernel_filter *filter)
{
	bool is_lost = false;

	for (size_t i = 0; i < filter->attachments_count; i++) {
		struct kernel_attachment attachment = filter->attachments[i];

		interface_clean_name(attachment.interface);
		is_lost |= attachment.is_bypassed;
		if (attachment.is_bypassed)
			output_note("NOT FILTERING on '%s': it receives packets, and the filter sees none of them; unload "
				    "it there and load it again, and if that does not help, with --mode skb",
				    attachment.interface);
		if (kernel_is_mtu_too_large(&attachment))
			report_mtu(&attachment, filter->config->name);
	}
	return is_lost;
}

void command_watch(const char *name)
{
	struct kernel_filter *filters;
	struct reason ignored;
	size_t count;

	if (output_is_json())
		return;
	kernel_look(name, &filters, &count, &ignored);
	for (size_t i = 0; i < count; i++) {
		if (strcmp(filters[i].config->name, name))
			continue;
		kernel_watch(&filters[i], 1);
		command_report_lost(&filters[i]);
	}
	kernel_filters_free(filters, count);
}

void command_fit_mtu(struct apply *apply)
{
	for (size_t i = 0; i < apply->targets_count; i++) {
		struct kernel_filter *filter = &apply->targets[i].filter;

		for (size_t k = 0; k < filter->attachments_count; k++) {
			struct kernel_attachment *attachment = &filter->attachments[k];
			const bool was_frags = attachment->is_frags;
			struct reason reason;

			if (kernel_fit_mtu(filter, attachment, &reason))
				output_note("'%s' keeps the program for frames of one buffer: %s",
					    attachment->interface, reason.text);
			else if (attachment->is_frags != was_frags)
				output_note("'%s' now runs the program for frames of several buffers: its MTU has grown "
					    "to %u",
					    attachment->interface, attachment->mtu);
		}
	}
}

bool command_is_filtering(const struct kernel_filter *filter)
{
	const __u32 run = filter->config->run;

	return (run & ABI_RUN_SET_UP) && !(run & (ABI_RUN_PANIC | ABI_RUN_MONITOR)) &&
	       !command_passes_unconfirmed(filter);
}

static json_t *dropping_policies(const __u8 policy[OUTCOME_POLICIES])
{
	json_t *names = json_array();

	for (enum abi_outcome outcome = 0; outcome < OUTCOME_POLICIES; outcome++)
		if (policy[outcome] == VERDICT_DROP)
			json_array_append_new(names, json_string(outcome_words[outcome].name));
	return names;
}

/* ---- status ---- */

static json_t *shapes_of(const struct abi_config *config)
{
	json_t *names = json_array();
	char text[RULE_TEXT_BYTES];

	for (int family = 0; family < FLOW_FAMILIES; family++) {
		const struct abi_shape_list *list = abi_shapes(abi_active(config), family);

		for (__u64 i = 0; i < list->count && i < ABI_SHAPES_MAX; i++) {
			struct rule_shape shape = rule_shape_of_tag(abi_shape_at(list, i)->tag, family);

			json_array_append_new(names, json_string(rule_shape_format(&shape, text)));
		}
	}
	return names;
}

static json_t *interfaces_of(const struct kernel_filter *filter)
{
	json_t *rows = json_array();

	for (size_t i = 0; i < filter->attachments_count; i++) {
		struct kernel_attachment attachment = filter->attachments[i];

		interface_clean_name(attachment.interface);
		json_array_append_new(rows, json_pack("{s:s, s:s, s:I}", "interface", attachment.interface, "mode",
						      interface_mode_name(attachment.mode), "program",
						      (json_int_t)attachment.prog_id));
	}
	return rows;
}

/* The names of the interfaces that it holds for. */
static json_t *interfaces_where(const struct kernel_filter *filter,
				bool (*holds)(const struct kernel_attachment *attachment))
{
	json_t *names = json_array();

	for (size_t i = 0; i < filter->attachments_count; i++) {
		struct kernel_attachment attachment = filter->attachments[i];

		interface_clean_name(attachment.interface);
		if (holds(&attachment))
			json_array_append_new(names, json_string(attachment.interface));
	}
	return names;
}

static const char *condition(const struct kernel_filter *filter, const struct invocation *invocation,
			     const struct store_info *info)
{
	const struct abi_config *config = filter->config;

	if (!config->magic)
		return "not set up";
	if (filter->is_other_version)
		return "of another version: load, up or the next change puts this one in its place while packets go on";
	if (strcmp(config->name, invocation->name))
		return "of another name";
	if (memcmp(config->store_id, info->id, sizeof(info->id)))
		return "filled from another store (--state)";
	if (config->generation != info->generation)
		return "a writer is at work, or one did not finish: the next change repairs it";
	return "equal to the store";
}

static void add_table(json_t *status, const struct kernel_filter *filter,
		      const struct abi_counter counters[ABI_COUNTERS])
{
	const struct abi_config *config = filter->config;
	__u64 slots = table_slots_of(target_geometry(filter)), bytes = kernel_filter_bytes(filter);

	json_object_update_new(status,
			       json_pack("{s:s, s:I, s:I, s:b, s:I, s:f, s:I, s:f, s:I, s:I, s:I, s:I, s:I}", "table",
					 command_format_name(&filter->options), "slots", (json_int_t)slots,
					 "room_slots", (json_int_t)target_room(filter), "spare_table",
					 target_tables(filter) == ABI_TABLES, "used_slots", (json_int_t)config->used,
					 "load_factor", apply_load_factor(filter), "table_bytes", (json_int_t)bytes,
					 "bytes_per_rule", config->used ? bytes / (double)config->used : 0.,
					 "generation", (json_int_t)config->generation, "longest_path",
					 (json_int_t)abi_active(config)->longest_path, "moves",
					 (json_int_t)abi_active(config)->moves, "look_up_retries",
					 (json_int_t)counters[ABI_COUNTER_RETRIES].packets, "fingerprints_stopped",
					 (json_int_t)counters[ABI_COUNTER_STOPPED].packets));
}

static void add_probes(json_t *status, const struct kernel_filter *filter)
{
	static const char *const names[] = { [FLOW_IPV4] = "ipv4", [FLOW_IPV6] = "ipv6" };

	json_object_set_new(status, "shapes", shapes_of(filter->config));
	for (enum flow_family family = 0; family < FLOW_FAMILIES; family++) {
		char name[64];

		snprintf(name, sizeof(name), "probes_%s", names[family]);
		json_object_set_new(status, name, json_integer(abi_shapes(abi_active(filter->config), family)->count));
		snprintf(name, sizeof(name), "mean_probes_%s", names[family]);
		json_object_set_new(status, name, json_real(apply_mean_probes(filter, family)));
		snprintf(name, sizeof(name), "false_positive_rate_%s", names[family]);
		json_object_set_new(status, name, json_real(apply_false_positive_rate(filter, family)));
	}
}

/* Of one of another version nothing else is known. */
static json_t *filter_status(const struct kernel_filter *filter, const struct invocation *invocation,
			     const struct store_info *info, const struct abi_counter counters[ABI_COUNTERS])
{
	const struct abi_config *config = filter->config;
	json_t *bypassed = interfaces_where(filter, is_bypassed);
	char text[COMMAND_EFFECT_BYTES];
	json_t *status = json_pack("{s:s, s:s, s:b, s:b, s:b, s:s, s:I, s:o, s:o, s:o}", "name",
				   config->magic ? config->name : "-", "effect",
				   json_array_size(bypassed) ? "NOT FILTERING: packets do not reach it" :
							       command_effect(filter, text),
				   "panic", (config->run & ABI_RUN_PANIC) != 0, "monitor_only",
				   (config->run & ABI_RUN_MONITOR) != 0, "unconfirmed", is_unconfirmed(filter),
				   "condition", condition(filter, invocation, info), "table_version",
				   (json_int_t)(config->magic ? config->version : ABI_VERSION), "interfaces",
				   interfaces_of(filter), "bypassed_on", bypassed, "mtu_too_large_on",
				   interfaces_where(filter, kernel_is_mtu_too_large));

	if (filter->is_other_version)
		return status;
	json_object_set_new(status, "policies_that_drop", dropping_policies(config->policy));
	add_table(status, filter, counters);
	add_probes(status, filter);
	return status;
}

static json_t *kinds_of(const struct shape_list *shapes)
{
	char shape[RULE_TEXT_BYTES], target[RULE_TEXT_BYTES];
	json_t *rows = json_array();

	for (size_t i = 0; i < shapes->count; i++) {
		const struct shape_list_entry *entry = &shapes->entry[i];

		json_array_append_new(rows,
				      json_pack("{s:s, s:I, s:s}", "kind", rule_shape_format(&entry->shape, shape),
						"keys", (json_int_t)entry->keys, "looked_up_as",
						rule_shape_format(&entry->probed_as, target)));
	}
	return rows;
}

struct stored {
	struct store_info info;
	struct store_settings settings;
	struct store_pending pending;
	struct shape_list shapes;
};

static int read_store(const struct invocation *invocation, struct stored *stored, struct reason *reason)
{
	struct store *store;
	int error = command_open_store(invocation, &store, reason);

	*stored = (struct stored){ .settings = store_settings_default };
	if (error || !store)
		return error;
	error = store_info(store, &stored->info);
	if (!error)
		error = store_settings(store, &stored->settings);
	if (!error)
		error = store_pending(store, &stored->pending);
	if (!error)
		error = store_shapes(store, &stored->shapes);
	store_close(store);
	return error ? reason_set(reason, error, "cannot read the store: %s", strerror(-error)) : 0;
}

static json_t *store_status(const struct invocation *invocation, const struct stored *stored)
{
	const struct store_pending *pending = &stored->pending;
	json_t *status = json_pack("{s:s, s:I, s:I, s:I, s:b, s:o, s:o}", "name", invocation->name, "rules",
				   (json_int_t)stored->info.rules, "timed_rules", (json_int_t)stored->info.timed,
				   "generation", (json_int_t)stored->info.generation, "monitor_only",
				   stored->settings.is_monitor_only, "policies_that_drop",
				   dropping_policies(stored->settings.policy), "kinds_of_rule",
				   kinds_of(&stored->shapes));

	if (pending->id)
		json_object_set_new(status, "unconfirmed_change",
				    json_pack("{s:I, s:f}", "rules", (json_int_t)pending->rules, "seconds_left",
					      pending->left_ms > 0 ? pending->left_ms / 1000. : 0.));
	return status;
}

/* Another tool has loaded it there. */
static void report_no_ethernet(const struct kernel_filter *filter)
{
	for (size_t i = 0; i < filter->attachments_count; i++) {
		struct kernel_attachment attachment = filter->attachments[i];

		interface_clean_name(attachment.interface);
		if (!attachment.has_ethernet)
			output_note("'%s' has no Ethernet header: the filter finds no packet there, and rules have no "
				    "effect",
				    attachment.interface);
	}
}

/* What can be told is in `running`, also where it fails. *sees_own: a filter of the --name; *is_any_bypassed: one of them. */
static int add_filters(const struct invocation *invocation, const struct store_info *info, json_t *running,
		       bool *sees_own, bool *is_any_bypassed, struct reason *reason)
{
	struct abi_counter counters[ABI_COUNTERS];
	struct kernel_filter *filters;
	size_t count;
	int found = kernel_find_all(NULL, &filters, &count, reason), error = 0;

	kernel_watch(filters, count);
	for (size_t i = 0; i < count && !error; i++) {
		error = filters[i].is_other_version ? 0 : kernel_counters(&filters[i], counters, reason);
		if (error)
			break;
		command_report_run(&filters[i]);
		report_no_ethernet(&filters[i]);
		*sees_own |= !strcmp(filters[i].config->name, invocation->name);
		*is_any_bypassed |= command_report_lost(&filters[i]);
		json_array_append_new(running, filter_status(&filters[i], invocation, info, counters));
	}
	kernel_filters_free(filters, count);
	return error ? error : found;
}

static enum command_status run_status(const struct invocation *invocation)
{
	json_t *status, *running = json_array();
	bool is_any_bypassed = false;
	struct stored stored;
	struct reason reason;
	bool sees_own = false, is_partial;
	int error = read_store(invocation, &stored, &reason);

	if (!error)
		error = add_filters(invocation, &stored.info, running, &sees_own, &is_any_bypassed, &reason);
	/* Another program, on another interface, is most likely somebody else's. */
	is_partial = error == -EPERM && sees_own;
	if (is_partial)
		error = 0;
	if (error && !json_array_size(running)) {
		json_decref(running);
		return command_failed(error, &reason);
	}
	status = store_status(invocation, &stored);
	if (is_partial)
		json_object_set_new(status, "not_seen", output_string(reason.text));
	json_object_set_new(status, "running", running);
	output_print(status);
	if (error)
		return command_failed(error, &reason);
	return is_any_bypassed ? STATUS_NO : STATUS_DONE;
}
