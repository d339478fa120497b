// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* load, unload: which interfaces run the filter. */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "command.h"
#include "output.h"

static enum command_status run_load(const struct invocation *invocation);
static enum command_status run_unload(const struct invocation *invocation);

const struct command command_load = {
	.name = "load",
	.usage = "IFACE... [--mode auto|native|skb] [--capacity N]",
	.summary = "run the filter on interfaces",
	.help = "All interfaces of one --name share one table, filled from the rules stored under that\n"
	"name. The filter runs until `unload`, a reboot or the end of the interface.\n"
	"  --mode auto      native where the driver can, else generic (skb), and says so (default)\n"
	"  --mode native    in the driver, or not at all\n"
	"  --mode skb       after the driver: works everywhere, slower\n"
	"  --capacity N     rules the table must hold at 95 % load; default 2^20 slots, or more where\n"
	"                   the stored rules need more\n"
	"\n"
	"  xdp-cuckoo load eth0\n"
	"  xdp-cuckoo load eth0 eth1 --mode native --capacity 5000000\n",
	.options = OPTION_MODE | OPTION_CAPACITY,
	.min = 1,
	.max = -1,
	.run = run_load,
};

const struct command command_unload = {
	.name = "unload",
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
	.run = run_unload,
};

static const struct kernel_attachment *find_attachment(const struct kernel_filter *filter,
						       const char *interface)
{
	for (size_t i = 0; i < filter->attachments_count; i++)
		if (!strcmp(filter->attachments[i].interface, interface))
			return &filter->attachments[i];
	return NULL;
}

static const struct kernel_attachment *is_loaded(const struct apply *apply, const char *interface)
{
	const struct kernel_attachment *found = NULL;

	for (size_t i = 0; i < apply->targets_count && !found; i++)
		found = find_attachment(&apply->targets[i].filter, interface);
	return found;
}

static void add_row(json_t *rows, const struct kernel_attachment *attachment)
{
	json_array_append_new(rows, json_pack("{s:s, s:s}", "interface", attachment->interface, "mode",
					      interface_mode_name(attachment->mode)));
}

static int load_one(const struct invocation *invocation, struct apply *apply, struct target *target,
		    const char *interface, json_t *rows, struct reason *reason)
{
	struct kernel_filter *filter = &target->filter;
	const struct kernel_attachment *attachment = is_loaded(apply, interface);
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
	if (attachment->mode == INTERFACE_SKB && invocation->mode == KERNEL_AUTO)
		output_note("'%s' has no native XDP: the filter runs in generic (skb) mode, which is "
			    "slower", interface);
	add_row(rows, attachment);
	return 0;
}

static int check_capacity(const struct invocation *invocation, const struct apply *apply,
			  struct reason *reason)
{
	__u64 slots = table_slots(&apply->targets->table);

	if (!invocation->capacity || table_slots_for(invocation->capacity) == slots)
		return 0;
	return reason_set(reason, -EINVAL,
			  "the filter '%s' is running with %llu slots; unload it to change its "
			  "capacity", apply->name, (unsigned long long)slots);
}

/* All interfaces or none: what this command put on before a failure is taken off again. */
static int load_all(const struct invocation *invocation, struct apply *apply, json_t *rows,
		    struct reason *reason)
{
	struct target *target = apply->targets;
	struct reason ignored;
	size_t before;
	int error;

	if (apply->targets_count)
		error = check_capacity(invocation, apply, reason);
	else
		error = apply_load(apply, invocation->capacity, &target, reason);
	if (error)
		return error;
	before = target->filter.attachments_count;
	for (int i = 0; i < invocation->count && !error; i++)
		error = load_one(invocation, apply, target, invocation->operands[i], rows, reason);
	for (size_t i = before; i < target->filter.attachments_count && error; i++)
		kernel_detach(&target->filter.attachments[i], &ignored);
	return error;
}

static json_t *load_answer(struct apply *apply, json_t *rows)
{
	struct store_info info = {};

	store_info(apply->store, &info);
	return json_pack("{s:s, s:I, s:I, s:o}", "name", apply->name, "rules",
			 (json_int_t)info.rules, "slots",
			 (json_int_t)table_slots(&apply->targets->table), "interfaces", rows);
}

static enum command_status run_load(const struct invocation *invocation)
{
	json_t *rows = json_array();
	struct apply apply;
	struct reason reason;
	int error = apply_open(&apply, invocation->state, invocation->name, &reason);

	if (!error)
		error = load_all(invocation, &apply, rows, &reason);
	if (!error) {
		command_report_targets(&apply);
		output_print(load_answer(&apply, rows));
	} else {
		json_decref(rows);
	}
	apply_close(&apply);
	return error ? command_failed(error, &reason) : STATUS_DONE;
}

static bool is_wanted(const struct invocation *invocation, const char *interface)
{
	for (int i = 0; i < invocation->count; i++)
		if (!strcmp(invocation->operands[i], interface))
			return true;
	return invocation->is_all;
}

/* *done: how many of the wanted were taken off. */
static int unload_filter(const struct invocation *invocation, const struct kernel_filter *filter,
			 json_t *done, struct reason *reason)
{
	for (size_t i = 0; i < filter->attachments_count; i++) {
		const struct kernel_attachment *attachment = &filter->attachments[i];
		int error;

		if (!is_wanted(invocation, attachment->interface))
			continue;
		error = kernel_detach(attachment, reason);
		if (error)
			return error;
		json_array_append_new(done, json_string(attachment->interface));
	}
	return 0;
}

static bool has_string(const json_t *array, const char *text)
{
	const json_t *value;
	size_t i;

	json_array_foreach(array, i, value)
		if (!strcmp(json_string_value(value), text))
			return true;
	return false;
}

static enum command_status report_unloaded(const struct invocation *invocation, json_t *done)
{
	enum command_status status = STATUS_DONE;

	for (int i = 0; i < invocation->count; i++)
		if (!has_string(done, invocation->operands[i]))
			status = command_error(STATUS_NO, "'%s' runs no xdp-cuckoo filter; see "
					       "xdp-cuckoo status", invocation->operands[i]);
	output_print(json_pack("{s:o}", "unloaded", done));
	return status;
}

static enum command_status run_unload(const struct invocation *invocation)
{
	struct kernel_filter *filters;
	struct reason reason;
	json_t *done;
	size_t count;
	int error;

	if (invocation->is_all == (invocation->count > 0))
		return command_error(STATUS_USAGE, "unload takes interfaces or --all");
	error = kernel_find(&filters, &count, &reason);
	if (error)
		return command_failed(error, &reason);
	done = json_array();
	for (size_t i = 0; i < count && !error; i++)
		error = unload_filter(invocation, &filters[i], done, &reason);
	kernel_filters_free(filters, count);
	if (!error)
		return report_unloaded(invocation, done);
	json_decref(done);
	return command_failed(error, &reason);
}
