// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* status: shows the stored rules and the running filters. */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tool/internal.h"
#include "config/config.h"
#include "filter/filter.h"
#include "counters/counters.h"
#include "io/output.h"

static json_t *dropping_policies(__u8 drops)
{
	json_t *names = json_array();

	for (enum abi_outcome outcome = 0; outcome < OUTCOME_POLICIES; outcome++)
		if (drops >> outcome & 1)
			json_array_append_new(names, json_string(outcome_words[outcome].name));
	return names;
}

/* ---- running filters ---- */

static const char *condition(const struct kernel_filter *filter, const struct invocation *invocation,
			     const struct store_info *info)
{
	const struct abi_config *config = filter->config;

	if (!config->magic)
		return "not set up";
	if (config->version > ABI_VERSION)
		return "of a newer version: use that one; this one can only unload it";
	if (filter->is_other_version && kernel_held_attachment(filter))
		return "of another version, behind libxdp's dispatcher: xdp-cuckoo help object says how to exchange it";
	if (filter->is_other_version)
		return "of another version: load, up or the next change replaces it by this one while packets are filtered";
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
	const struct abi_table *table = abi_active(config);
	const __u64 bytes = kernel_filter_bytes(filter);

	json_object_update_new(status, json_pack("{s:s, s:I, s:I, s:I, s:b, s:I, s:f, s:I, s:f, s:I, s:I, s:I, s:I, s:I}",
						 "table", command_format_name(&filter->options), "slots",
						 filter_slots(filter), "address_slots",
						 table_slots_of(table->addresses.geometry), "room_slots",
						 filter_room(filter), "spare_table",
						 filter_tables(filter) == ABI_TABLES, "used_slots", config->used,
						 "load_factor", query_fill(filter), "table_bytes", bytes,
						 "bytes_per_rule", config->used ? bytes / (double)config->used : 0.,
						 "generation", config->generation, "longest_path",
						 (json_int_t)table->longest_path, "moves", (json_int_t)table->moves,
						 "look_up_retries", counters[ABI_COUNTER_RETRIES].packets,
						 "fingerprints_stopped", counters[ABI_COUNTER_STOPPED].packets));
}

static void add_probes(json_t *status, const struct kernel_filter *filter)
{
	static const char *const names[] = { [FLOW_IPV4] = "ipv4", [FLOW_IPV6] = "ipv6" };
	json_t *shapes = json_array();

	json_object_set_new(status, "shapes", shapes);
	for (enum flow_family family = 0; family < FLOW_FAMILIES; family++) {
		const struct abi_shape_list *list = abi_shapes(abi_active(filter->config), family);
		char name[64], text[RULE_TEXT_BYTES], before[RULE_TEXT_BYTES] = "";

		for (__u64 i = 0; i < list->count && i < ABI_SHAPES_MAX; i++) {
			struct rule_shape shape = rule_shape_of_compiled(abi_shape_at(list, i), family);

			/* A shape in both parts of the table is listed twice, one after the other. */
			shape.fields &= ~RULE_ADDRESSES;
			if (strcmp(rule_shape_format(&shape, text), before))
				json_array_append_new(shapes, json_string(text));
			strcpy(before, text);
		}
		snprintf(name, sizeof(name), "probes_%s", names[family]);
		json_object_set_new(status, name, json_integer(list->count));
		snprintf(name, sizeof(name), "mean_probes_%s", names[family]);
		json_object_set_new(status, name, json_real(query_mean_probes(filter, family)));
		snprintf(name, sizeof(name), "false_positive_rate_%s", names[family]);
		json_object_set_new(status, name, json_real(query_false_positive_rate(filter, family)));
	}
}

/* Of a filter of another version, only the first members are known. */
static json_t *filter_status(const struct kernel_filter *filter, const struct invocation *invocation,
			     const struct store_info *info, const struct abi_counter counters[ABI_COUNTERS],
			     const char *why)
{
	json_t *rows = json_array(), *bypassed = json_array(), *mtu_too_large = json_array(), *held = json_array(),
	       *half = json_array(), *behind = json_array();
	const struct abi_config *config = filter->config;
	const char *state = condition(filter, invocation, info);
	char text[COMMAND_EFFECT_BYTES];
	json_t *status = json_pack("{s:s, s:s, s:b, s:b, s:b, s:s, s:b, s:I}", "name",
				   config->magic ? config->name : "-", "effect",
				   why ? why : command_effect(filter, text), "panic",
				   (config->run & ABI_RUN_PANIC) != 0, "monitor_only",
				   (config->run & ABI_RUN_MONITOR) != 0, "unconfirmed", run_is_unconfirmed(filter),
				   "condition", state, "equal_to_store", !strcmp(state, "equal to the store"),
				   "table_version", (json_int_t)(config->magic ? config->version : ABI_VERSION));

	for (size_t i = 0; i < filter->attachments_count; i++) {
		const struct kernel_attachment *attachment = &filter->attachments[i];
		const struct kernel_attachment *sent = kernel_other_direction(filter, attachment);
		json_t *row;

		if (kernel_has_lost_direction(filter, attachment))
			json_array_append_new(half, command_interface(attachment));
		if (kernel_goes_with_another(filter, attachment))
			continue;
		sent = kernel_is_outgoing(attachment) ? attachment : sent;
		row = json_pack("{s:o, s:s, s:I, s:I, s:b}", "interface", command_interface(attachment), "mode",
				interface_mode_name(attachment->mode), "program", (json_int_t)attachment->prog_id,
				"lost_by_card", (json_int_t)attachment->lost, "outgoing", sent != NULL);
		if (sent)
			json_object_set_new(row, "outgoing_program", json_integer(sent->prog_id));
		if (sent == attachment)
			json_object_set_new(row, "mode", json_string("only"));
		json_array_append_new(rows, row);
		if (attachment->is_bypassed)
			json_array_append_new(bypassed, command_interface(attachment));
		if (attachment->is_behind || (sent && sent->is_behind))
			json_array_append_new(behind, command_interface(attachment));
		if (kernel_is_mtu_too_large(attachment))
			json_array_append_new(mtu_too_large, command_interface(attachment));
		if (kernel_is_held(attachment))
			json_array_append_new(held, command_interface(attachment));
	}
	json_object_update_new(status, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "interfaces", rows, "bypassed_on",
						 bypassed, "mtu_too_large_on", mtu_too_large, "behind_dispatcher_on",
						 held, "one_direction_on", half, "behind_another_on", behind));
	if (filter->is_other_version)
		return status;
	json_object_set_new(status, "policies_that_drop", dropping_policies(abi_active(config)->drops));
	json_object_set_new(status, "asks_connection_tracking", json_boolean(config->asks_conntrack));
	add_table(status, filter, counters);
	add_probes(status, filter);
	return status;
}

/* ---- the store ---- */

struct stored {
	char dir[PATH_MAX];
	struct store_info info;
	enum store_home home;
	bool is_read_only; /* its file system */
	struct store_settings settings;
	struct store_pending pending;
	struct reason voided; /* a pass rule voids its drop rules; or "" */
	struct shape_list shapes;
	struct store_lists lists;
	struct store_feeds feeds;
};

/* Also reads whether a pass rule voids the drop rules. What the guard misses is in guard->missing. */
static int read_stored(const struct invocation *invocation, struct stored *stored, struct guard *guard,
		       struct reason *reason)
{
	struct store *store;
	char text[RULE_TEXT_BYTES];
	struct rule rule;
	int error = command_open_store(invocation, &store, reason);

	if (error || !store)
		return error;
	session_state_dir(invocation->state, invocation->name, stored->dir, sizeof(stored->dir));
	stored->is_read_only = access(stored->dir, W_OK) && errno == EROFS;
	if (stored->is_read_only)
		output_note("the store is on a read-only file system: until you make it writable, commands change, "
			    "confirm and undo no rules");
	stored->home = store_home(store);
	error = store_in_force(store, &stored->info, &stored->lists);
	if (!error)
		error = store_settings(store, &stored->settings);
	if (!error)
		error = store_pending(store, &stored->pending);
	if (!error)
		error = store_shapes(store, &stored->shapes);
	if (!error)
		error = store_feeds(store, &stored->lists, &stored->feeds);
	if (!error && !guard_open(guard, invocation->state, reason) && !change_find_void(store, guard, &rule))
		reason_set(&stored->voided, 0, CHANGE_VOID, rule_format(&rule, text));
	store_close(store);
	return store_unread_reason(error, reason);
}

static json_t *store_status(const struct invocation *invocation, const struct stored *stored)
{
	json_t *kinds = json_array(), *not_fed = json_array(), *failed = json_array();
	json_t *flows = json_array(), *down = json_array(), *left_out = json_array();
	char text[COMMAND_NOT_FED_BYTES], why[ABI_NAME_BYTES + 2 + STORE_WHY_BYTES];
	const struct store_pending *pending = &stored->pending;
	json_t *status = json_pack("{s:s, s:I, s:I, s:I, s:b, s:o, s:o}", "name", invocation->name, "rules",
				   stored->info.rules, "timed_rules", stored->info.timed, "generation",
				   stored->info.generation, "monitor_only", stored->settings.is_monitor_only,
				   "policies_that_drop", dropping_policies(filter_drops(&stored->settings)),
				   "kinds_of_rule", kinds);

	for (size_t i = 0; i < stored->shapes.count; i++) {
		const struct shape_list_entry *entry = &stored->shapes.entry[i];
		char shape[RULE_TEXT_BYTES], probed_as[RULE_TEXT_BYTES];

		json_array_append_new(kinds,
				      json_pack("{s:s, s:I, s:s}", "kind", rule_shape_format(&entry->shape, shape),
						"keys", entry->keys, "looked_up_as",
						rule_shape_format(&entry->probed_as, probed_as)));
	}
	/* Lists whose source is silent, and lists by URL whose last fetch failed: lines for people, objects for programs. */
	for (size_t i = 1; i <= STORE_LISTS_MAX; i++) {
		const struct store_list *list = &stored->lists.list[i];
		const struct store_feed *feed = &stored->feeds.feed[i];
		const struct store_source source = store_source_parse(list->source);
		const json_int_t bad = store_list_left_out(list, feed), all = source.flows;

		if (bad && output_is_json())
			json_array_append_new(left_out, json_pack("{s:s, s:I}", "list", list->name,
								  "left_out", bad));
		else if (bad && source.kind == STORE_SOURCE_CROWDSEC)
			json_array_append_new(left_out, json_sprintf("%s: %lld of %lld decisions",
								     list->name, bad, all));
		else if (bad)
			json_array_append_new(left_out, json_sprintf("%s: %lld", list->name, bad));
		if (command_not_fed(list, feed, text) && output_is_json())
			json_array_append_new(not_fed, command_not_fed_values(list, feed));
		else if (command_not_fed(list, feed, text))
			json_array_append_new(not_fed, json_sprintf("%s: %s", list->name, text));
		else if (*list->name)
			command_add_flows(stored->dir, list, feed, flows, down, not_fed);
		if (!*feed->why)
			continue;
		snprintf(why, sizeof(why), "%s: %s", list->name, feed->why);
		json_array_append_new(failed, !output_is_json() ? output_string(why) :
								  json_pack("{s:s, s:I, s:o}", "list", list->name,
									    "failures", (json_int_t)feed->failures,
									    "why", output_string(feed->why)));
	}
	json_object_update_new(status, json_pack("{s:o, s:o, s:o, s:o, s:o}", "not_fed", not_fed, "failed_fetches",
						 failed, "left_out", left_out, "flows", flows, "sessions_down", down));
	if (*stored->voided.text)
		json_object_set_new(status, "voided", output_string(stored->voided.text));
	if (pending->id)
		json_object_set_new(status, "unconfirmed_change",
				    json_pack("{s:I, s:f}", "rules", pending->rules, "left_s",
					      pending->left_ms > 0 ? pending->left_ms / 1000. : 0.));
	return status;
}

/* ---- the 12 lines ---- */

__attribute__((format(printf, 3, 4))) static void add_text(json_t *lines, const char *name, const char *format, ...)
{
	char text[256];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	json_object_set_new(lines, name, json_string(text));
}

static const char *text_of(const json_t *status, const char *name)
{
	return json_string_value(json_object_get(status, name));
}

/* Copies a member, unless it is an empty array. */
static void copy(json_t *lines, const json_t *status, const char *name)
{
	json_t *value = json_object_get(status, name);

	if (!json_is_array(value) || json_array_size(value))
		json_object_set(lines, name, value);
}

/* The filter of the --name, or one that is not set up yet; all others on one line. */
static void add_brief_filters(json_t *lines, const json_t *running, const char *name)
{
	json_t *others = json_array(), *interfaces = json_array(); /* "eth0 native", "eth1 native outgoing", ... */
	json_int_t used, slots, bytes;
	json_t *filter, *own = NULL, *row, *held;
	double load;
	size_t i, k;

	json_array_foreach(running, i, filter)
	{
		const char *filter_name = text_of(filter, "name");
		const json_t *first = json_array_get(json_object_get(filter, "interfaces"), 0);

		if (!own && (!strcmp(filter_name, name) || !strcmp(filter_name, "-"))) {
			own = filter;
			continue;
		}
		json_array_append_new(others, json_sprintf("%s on %s: %s", filter_name,
							   first ? text_of(first, "interface") : "-",
							   text_of(filter, "effect")));
	}
	json_array_foreach(json_object_get(own, "interfaces"), i, row)
	{
		const char *where = "";

		json_array_foreach(json_object_get(own, "behind_dispatcher_on"), k, held)
		{
			if (json_equal(held, json_object_get(row, "interface")))
				where = " behind libxdp's dispatcher";
		}
		json_array_append_new(interfaces,
				      json_sprintf("%s %s%s%s", text_of(row, "interface"), text_of(row, "mode"), where,
						   json_is_true(json_object_get(row, "outgoing")) ? " outgoing" : ""));
	}
	if (own) {
		copy(lines, own, "effect");
		json_object_set(lines, "interfaces", interfaces);
		copy(lines, own, "condition");
	} else {
		json_object_set_new(lines, "running", json_array());
	}
	/* Nothing more is known of a filter of another version. */
	if (!json_unpack(own, "{s:I, s:I, s:F, s:I}", "used_slots", &used, "slots", &slots, "load_factor", &load,
			 "table_bytes", &bytes)) {
		copy(lines, own, "table");
		add_text(lines, "slots", "%lld of %lld used, %.1f %%; %.3g MiB", used, slots, 100 * load,
			 bytes / 1048576.);
	}
	if (json_array_size(others))
		json_object_set(lines, "other_filters", others);
	json_decref(interfaces);
	json_decref(others);
}

/* What --verbose shows in full. Takes `status`. */
static json_t *brief(json_t *status)
{
	static const char *const copied[] = { "not_seen", "voided", "not_fed",      "failed_fetches",
					      "left_out", "flows",  "sessions_down" };
	const json_t *running = json_object_get(status, "running");
	const char *name = text_of(status, "name");
	json_t *lines = json_pack("{s:s}", "name", name);
	json_int_t rules = 0, timed = 0, changed;
	char time[RULE_TIME_BYTES];
	double left_s;

	json_unpack(status, "{s:I, s:I}", "rules", &rules, "timed_rules", &timed);
	if (timed)
		add_text(lines, "rules", "%lld, %lld with a timeout", rules, timed);
	else
		json_object_set_new(lines, "rules", json_integer(rules));
	json_object_set(lines, "policies_that_drop", json_object_get(status, "policies_that_drop"));
	if (!json_unpack(status, "{s:{s:I, s:F}}", "unconfirmed_change", "rules", &changed, "left_s", &left_s))
		add_text(lines, "unconfirmed_change", "%lld rules, undone in %s", changed,
			 rule_time_format((__s64)(1000 * left_s), time));
	for (size_t i = 0; i < sizeof(copied) / sizeof(copied[0]); i++)
		copy(lines, status, copied[i]);
	/* The effect of a running filter says it too. */
	if (!json_array_size(running) && json_is_true(json_object_get(status, "monitor_only")))
		json_object_set_new(lines, "monitor_only", json_true());
	add_brief_filters(lines, running, name);
	json_decref(status);
	return lines;
}

/*
 * Adds what is known to `running`, even if it fails. *sees_own: a filter of the --name was seen.
 * *is_any_ineffective: a filter does not filter most packets.
 */
static int add_filters(const struct invocation *invocation, const struct stored *stored, json_t *running,
		       bool *sees_own, bool *is_any_ineffective, struct reason *reason)
{
	const struct store_info *info = &stored->info;
	struct kernel_filter *filters = NULL;
	size_t count = 0;
	int found = kernel_find_filters((struct kernel_wish){ .takes_other_versions = true }, &filters, &count, reason);
	int error = 0;

	kernel_watch(filters, count, 200);
	status_report_losses(filters, count);
	for (size_t i = 0; i < count; i++) {
		const struct kernel_filter *filter = &filters[i];
		struct abi_counter counters[ABI_COUNTERS];
		struct tally tally = {};
		const char *why;
		bool is_off, is_own;

		error = filter->is_other_version ? 0 : tally_add(&tally, filter, reason);
		if (error) {
			tally_close(&tally);
			break;
		}
		tally_sum(&tally, TALLY_ALL, TALLY_ALL, counters);
		if (!(stored->is_read_only && run_is_confirm_late(filter)))
			command_report_run(filter);
		for (size_t k = 0; k < filter->attachments_count; k++) {
			struct kernel_attachment attachment = filter->attachments[k];

			/* Only another tool loads the program on such an interface. */
			interface_clean_name(attachment.interface);
			if (!attachment.has_ethernet && attachment.mode < INTERFACE_XDP_MODES)
				output_note("'%s' has no Ethernet header: the filter finds no packet there, and rules "
					    "have no effect",
					    attachment.interface);
		}
		is_own = !strcmp(filter->config->name, invocation->name);
		*sees_own |= is_own;
		why = status_ineffective(filters, count, i, &tally, info, &is_off);
		if (!why && stored->home == STORE_HOME_ELSEWHERE && filter->config->generation != info->generation &&
		    !memcmp(filter->config->store_id, info->id, sizeof(info->id)))
			why = "filters by OLD rules: those of the store change in another network namespace";
		/* Nothing can be confirmed there. */
		if (!why && stored->is_read_only && run_is_confirm_late(filter))
			why = "UNCONFIRMED: passes everything until the store can be written";
		*is_any_ineffective |= why || (is_off && is_own) || run_is_confirm_late(filter);
		json_array_append_new(running, filter_status(filter, invocation, info, counters, why));
		tally_close(&tally);
	}
	kernel_filters_free(filters, count);
	return error ? error : found;
}

static enum command_status run_status(const struct invocation *invocation)
{
	json_t *status, *running = json_array();
	struct guard guard = {};
	bool is_any_ineffective = false;
	struct stored stored = { .settings = store_settings_default };
	struct reason reason;
	bool sees_own = false, is_partial;
	int error = read_stored(invocation, &stored, &guard, &reason);

	config_expect(invocation->name, &stored.lists);
	if (!error)
		error = add_filters(invocation, &stored, running, &sees_own, &is_any_ineffective, &reason);
	/* A program that cannot be seen, on another interface, most likely belongs to somebody else. */
	is_partial = error == -EPERM && sees_own;
	if (is_partial)
		error = 0;
	if (error && !json_array_size(running)) {
		json_decref(running);
		return command_fail_because(error, &reason);
	}
	is_any_ineffective |= !error && !is_partial && !sees_own &&
			      status_is_missing(invocation->name, stored.info.rules);
	status = store_status(invocation, &stored);
	if (is_partial)
		json_object_set_new(status, "not_seen", output_string(reason.text));
	json_object_set_new(status, "running", running);
	is_any_ineffective |= json_array_size(json_object_get(status, "not_fed")) || *stored.voided.text;
	output_print(output_is_json() || invocation->is_verbose ? status : brief(status));
	if (invocation->is_verbose && *guard.missing.text)
		output_note("%s", guard.missing.text);
	guard_close(&guard);
	if (error)
		return command_fail_because(error, &reason);
	return is_any_ineffective ? STATUS_NO : STATUS_DONE;
}

const struct command command_status = {
	.name = "status",
	.usage = "[--verbose]",
	.instead = "status shows all interfaces: leave it out; to ask about an address: xdp-cuckoo test ADDRESS",
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ,
	.run = run_status,
};
