// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* up, down, check-config: what a configuration file says, brought into force, taken back, or only read. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "commands/command.h"
#include "config/config.h"
#include "io/output.h"

#define LOOK_MS 100 /* how often it looks whether an interface has come */

static enum command_status run_up(const struct invocation *invocation);
static enum command_status run_down(const struct invocation *invocation);
static enum command_status run_check_config(const struct invocation *invocation);

const struct command command_up = {
	.name = "up",
	.group = COMMAND_RUN,
	.usage = "[FILE]",
	.summary = "bring into force what the configuration says",
	.help = "FILE is " CONFIG_DIR "/NAME.conf, by --name, where it is not given: see xdp-cuckoo.conf(5).\n"
		"Whether the filter runs already or not: loads it, with the rules that are stored, on the interfaces that\n"
		"lack it, takes it off those that are no longer named, sets policies, and imports each list with\n"
		"--list NAME --replace. What is so already is left alone. Where the running filter is of another version,\n"
		"or its table of another kind, or smaller, a new one takes its place while packets go on.\n"
		"Says first, as `load` does, which stored rules block this host, its gateway or the SSH session; watches\n"
		"at the end, as `status` does, whether packets reach the filter.\n"
		"What cannot be done (an interface that is not there, a list that cannot be read) is told, and all else\n"
		"is done; then the status is not 0. Rules, lists and policies that the file does not name stay.\n"
		"\n"
		"  xdp-cuckoo up\n"
		"  xdp-cuckoo --name web up /etc/web-filter.conf\n",
	.max = 1,
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ | PRIVILEGE_SSH,
	.run = run_up,
};

const struct command command_down = {
	.name = "down",
	.group = COMMAND_RUN,
	.usage = "[FILE] [--on-stop]",
	.summary = "take the filter of the name off its interfaces",
	.help = "Off all that run it, whatever the configuration says; the rules stay stored for the next `up`.\n"
		"  --on-stop  only where FILE, or " CONFIG_DIR
		"/NAME.conf, says detach-on-stop = yes: for services, which are\n"
		"             also stopped to be started anew\n"
		"\n"
		"  xdp-cuckoo down\n"
		"  xdp-cuckoo --name web down --on-stop\n",
	.options = OPTION_ON_STOP,
	.max = 1,
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ,
	.run = run_down,
};

const struct command command_check_config = {
	.name = "check-config",
	.group = COMMAND_RUN,
	.usage = "[FILE] [--strict]",
	.summary = "say whether the configuration is right",
	.help = "Changes nothing. Each thing that is wrong is told in one line, with the file's. Status 0: `up` would take\n"
		"it; 2: it would not. Whether interfaces are there is not looked at.\n"
		"  --strict  also reads the lists: bad lines, and lists that cannot be read, are wrong too\n"
		"\n"
		"  xdp-cuckoo check-config\n"
		"  xdp-cuckoo check-config new.conf --strict\n",
	.options = OPTION_STRICT,
	.max = 1,
	.needs = PRIVILEGE_READ,
	.run = run_check_config,
};

static void refuse_line(const char *text)
{
	command_error(STATUS_USAGE, "%s", text);
}

static const char *config_path(const struct invocation *invocation, char path[PATH_MAX])
{
	if (invocation->count)
		return invocation->operands[0];
	snprintf(path, PATH_MAX, "%s/%s.conf", CONFIG_DIR, invocation->name);
	return path;
}

/* The caller frees it, also where this failed. */
static int open_config(const struct invocation *invocation, struct config **config, struct reason *reason)
{
	char path[PATH_MAX];

	*config = calloc(1, sizeof(**config));
	if (!*config)
		return reason_set(reason, -ENOMEM, "no memory for the configuration");
	return config_open(*config, config_path(invocation, path), invocation, refuse_line, reason);
}

static void free_config(struct config *config)
{
	if (config)
		config_close(config);
	free(config);
}

/* ---- up ---- */

struct up {
	const struct invocation *invocation;
	const struct config *config;
	struct apply apply;
	bool is_last;               /* interfaces that are not there are waited for no more */
	bool is_again;              /* all has been done but for those */
	json_t *interfaces, *lists; /* what became of them */
	size_t renewed;
	enum command_status status; /* of the first failure */
};

static void failed(struct up *up, int error, const struct reason *reason)
{
	const enum command_status status = command_failed(error, reason);

	if (up->status == STATUS_DONE)
		up->status = status;
}

static bool is_named(const struct config *config, const char *interface)
{
	for (size_t i = 0; i < config->interfaces_count; i++)
		if (interfaces_are_one(config->interfaces[i], interface))
			return true;
	return false;
}

static bool is_any_there(const struct config *config)
{
	for (size_t i = 0; i < config->interfaces_count; i++)
		if (interfaces_is_there(config->interfaces[i]))
			return true;
	return false;
}

static bool are_all_there(const struct config *config)
{
	for (size_t i = 0; i < config->interfaces_count; i++)
		if (!interfaces_is_there(config->interfaces[i]))
			return false;
	return true;
}

/* Policies and monitor-only, as far as they are named. */
static void bring_settings(struct up *up)
{
	const struct config *config = up->config;
	struct store_settings settings;
	struct reason reason;
	int error = store_settings(up->apply.store, &settings);

	if (error)
		reason_set(&reason, error, "cannot read the store: %s", strerror(-error));
	for (size_t i = 0; i < OUTCOME_POLICIES && !error; i++)
		if (config->has_policy[i])
			settings.policy[i] = config->policy[i];
	if (!error && config->has_monitor_only)
		settings.is_monitor_only = config->load.is_monitor_only;
	if (!error)
		error = apply_set(&up->apply, &settings, &reason);
	if (error)
		failed(up, error, &reason);
}

/* By the policies of the file. */
static void report_blocked(struct up *up)
{
	struct reason reason;
	int error = up->is_again ? 0 : command_report_blocked(&up->apply, &reason);

	if (error)
		failed(up, error, &reason);
}

/* The filter, with the rules that are stored, or what runs, made what it is to be. */
static void bring_filter(struct up *up)
{
	const struct invocation *load = &up->config->load;
	const struct abi_options options = command_table_options(load);
	struct target *ignored;
	struct reason reason;
	size_t renewed = 0;
	int error = 0;

	if (up->apply.targets_count)
		error = apply_renew(&up->apply, &options, load->capacity, &renewed, &reason);
	else if (is_any_there(up->config))
		error = apply_load(&up->apply, &options, load->capacity, &ignored, &reason);
	up->renewed += renewed;
	if (error)
		failed(up, error, &reason);
	command_fit_mtu(&up->apply);
}

static bool has_any_named(const struct up *up)
{
	for (size_t i = 0; i < up->config->interfaces_count; i++)
		if (apply_attachment_on(&up->apply, up->config->interfaces[i]))
			return true;
	return false;
}

static void note_interface(struct up *up, const char *interface, const char *mode, const char *done)
{
	json_array_append_new(up->interfaces, json_pack("{s:o, s:s, s:s}", "interface", output_string(interface),
							"mode", mode, "filter", done));
}

static void bring_interface(struct up *up, const char *interface)
{
	const struct kernel_attachment *attachment = apply_attachment_on(&up->apply, interface);
	const bool is_there = interfaces_is_there(interface);
	struct reason reason;
	int error = 0;

	if (attachment) {
		note_interface(up, attachment->interface, interface_mode_name(attachment->mode), "runs already");
		return;
	}
	if (!is_there && !up->is_last)
		return;
	/* Where there is no filter, what stands in the way of loading it has been told. */
	if (!is_there) {
		command_error(STATUS_SYSTEM,
			      "there is no interface '%s' here; see ip link; everything else is brought up", interface);
		up->status = up->status ? up->status : STATUS_SYSTEM;
	} else if (up->apply.targets_count) {
		error = kernel_attach(&up->apply.targets->filter, interface, up->config->load.mode, &reason);
		attachment = error ? NULL : apply_attachment_on(&up->apply, interface);
	}
	if (error)
		failed(up, error, &reason);
	note_interface(up, attachment ? attachment->interface : interface,
		       attachment ? interface_mode_name(attachment->mode) : "-",
		       attachment ? "loaded" :
		       is_there   ? "not loaded" :
				    "not there");
}

/* Last: as long as none that is named is filtered, no other loses the filter. */
static void leave_others(struct up *up, const struct kernel_filter *filter)
{
	const bool is_any_filtered = has_any_named(up);

	for (size_t i = 0; i < filter->attachments_count; i++) {
		const struct kernel_attachment *attachment = &filter->attachments[i];
		struct reason reason;
		int error;

		if (is_named(up->config, attachment->interface))
			continue;
		if (!is_any_filtered) {
			output_note("'%s' keeps the filter, though the file does not name it: none that it names has it",
				    attachment->interface);
			note_interface(up, attachment->interface, interface_mode_name(attachment->mode), "kept");
			continue;
		}
		error = kernel_detach(filter, attachment, &reason);
		if (error)
			failed(up, error, &reason);
		note_interface(up, attachment->interface, interface_mode_name(attachment->mode),
			       error ? "not taken off" : "taken off");
	}
}

/* All but the lists. -errno where nothing could be done. */
static int bring_all(struct up *up, struct reason *reason)
{
	const struct config *config = up->config;
	struct reason unseen;
	int error = apply_open_to_load(&up->apply, up->invocation->state, up->invocation->name, &unseen, reason);

	if (error)
		return error;
	if (*unseen.text)
		output_note("%s", unseen.text);
	json_array_clear(up->interfaces);
	command_report_found(&up->apply);
	for (size_t i = 0; i < up->apply.targets_count; i++)
		up->renewed += up->apply.targets[i].state == TARGET_TAKEN_OVER;
	bring_settings(up);
	report_blocked(up);
	bring_filter(up);
	for (size_t i = 0; i < config->interfaces_count; i++)
		bring_interface(up, config->interfaces[i]);
	for (size_t i = 0; i < up->apply.targets_count && up->is_last; i++)
		leave_others(up, &up->apply.targets[i].filter);
	command_report_rebuilds(&up->apply);
	apply_close(&up->apply);
	return 0;
}

/* No service shall wait for whoever writes to a FIFO. */
static int read_list(const struct config_list *list, const struct import_options *options,
		     struct command_imported *result, struct reason *reason)
{
	struct stat status;

	*result = (struct command_imported){};
	if (!stat(list->file, &status) && S_ISFIFO(status.st_mode))
		return reason_set(reason, -EINVAL, "'%s' is a FIFO; write the list into a file", list->file);
	return command_import_list(options, list->file, result, reason);
}

/* -EINTR where it was interrupted: then nothing more is done. */
static int bring_list(struct up *up, const struct config_list *list)
{
	struct command_imported result;
	struct reason reason;
	int error = read_list(list, &list->import, &result, &reason);
	json_t *answer = result.answer;

	if (error) {
		command_error(command_status_of(error), "list '%s': %s", list->name, reason.text);
		up->status = up->status ? up->status : command_status_of(error);
	}
	json_decref(answer && error ? answer : NULL);
	if (error)
		answer = json_pack("{s:s}", "result", "not refreshed");
	else
		json_object_set_new(answer, "result", json_string("refreshed"));
	json_object_set_new(answer, "list", json_string(list->name));
	json_array_append_new(up->lists, answer);
	return error == -EINTR ? error : 0;
}

static void note_other_lists(const struct up *up)
{
	struct store_lists lists = {};
	struct reason ignored;
	struct store *store;

	if (command_open_store(up->invocation, &store, &ignored) || !store)
		return;
	store_lists(store, &lists);
	store_close(store);
	for (size_t i = 1; i <= STORE_LISTS_MAX; i++) {
		size_t k = 0;

		while (k < up->config->lists_count && strcmp(up->config->list[k].name, lists.list[i].name))
			k++;
		if (lists.list[i].name[0] && k == up->config->lists_count)
			output_note("the list '%s' is not in the configuration, and stays; xdp-cuckoo lists delete %s gives "
				    "it up",
				    lists.list[i].name, lists.list[i].name);
	}
}

static void wait_for_interfaces(const struct config *config)
{
	const struct timespec pause = { .tv_nsec = LOOK_MS * 1000000L };

	for (__s64 waited_ms = 0; waited_ms < config->wait_ms && !are_all_there(config); waited_ms += LOOK_MS)
		nanosleep(&pause, NULL);
}

/* Those that are there are filtered, by all lists, before others are waited for. */
static int bring_up(struct up *up, struct reason *reason)
{
	const struct config *config = up->config;
	int error;

	up->is_last = !config->wait_ms || are_all_there(config);
	error = bring_all(up, reason);
	for (size_t i = 0; i < config->lists_count && !error; i++)
		error = bring_list(up, &config->list[i]);
	if (error == -EINTR)
		return reason_set(reason, error, "interrupted: what is left was not done");
	if (error || up->is_last)
		return error;
	wait_for_interfaces(config);
	up->is_last = up->is_again = true;
	return bring_all(up, reason);
}

static enum command_status report_up(struct up *up)
{
	note_other_lists(up);
	output_print(json_pack("{s:s, s:I, s:O, s:O}", "name", up->invocation->name, "renewed_tables",
			       (json_int_t)up->renewed, "interfaces", up->interfaces, "lists", up->lists));
	if (!output_flush())
		command_watch(up->invocation->name);
	return up->status;
}

static enum command_status run_up(const struct invocation *invocation)
{
	struct up up = { .invocation = invocation };
	enum command_status status;
	struct config *config;
	struct reason reason;
	int error = open_config(invocation, &config, &reason);

	up.config = config;
	up.interfaces = json_array();
	up.lists = json_array();
	if (!error)
		error = bring_up(&up, &reason);
	status = error ? command_failed(error, &reason) : report_up(&up);
	json_decref(up.interfaces);
	json_decref(up.lists);
	free_config(config);
	return status;
}

/* ---- down ---- */

static int take_off(const struct invocation *invocation, json_t *done, struct reason *reason)
{
	struct kernel_filter *filters;
	size_t count;
	int error = kernel_find_all(invocation->name, &filters, &count, reason);

	for (size_t i = 0; i < count && !error; i++) {
		const struct kernel_filter *filter = &filters[i];

		if (strncmp(filter->config->name, invocation->name, sizeof(filter->config->name)))
			continue;
		for (size_t k = 0; k < filter->attachments_count && !error; k++) {
			error = kernel_detach(filter, &filter->attachments[k], reason);
			if (!error)
				json_array_append_new(done, output_string(filter->attachments[k].interface));
		}
	}
	kernel_filters_free(filters, count);
	return error;
}

static enum command_status run_down(const struct invocation *invocation)
{
	struct config *config = NULL;
	struct reason reason;
	bool is_meant = true;
	json_t *done;
	int error = 0;

	if (invocation->is_on_stop || invocation->count)
		error = open_config(invocation, &config, &reason);
	if (!error && invocation->is_on_stop)
		is_meant = config->detaches_on_stop;
	free_config(config);
	done = json_array();
	if (!error && is_meant)
		error = take_off(invocation, done, &reason);
	if (!error)
		output_print(json_pack("{s:O}", "unloaded", done));
	json_decref(done);
	return error ? command_failed(error, &reason) : STATUS_DONE;
}

/* ---- check-config ---- */

/* As an import that changes nothing. */
static bool is_list_right(const struct config_list *list)
{
	struct import_options import = list->import;
	struct command_imported result;
	struct reason reason;
	int error;

	import.is_dry_run = true;
	error = read_list(list, &import, &result, &reason);
	json_decref(result.answer);
	if (error)
		command_error(STATUS_USAGE, "list '%s': %s", list->name, reason.text);
	return !error && !result.bad_lines;
}

static enum command_status run_check_config(const struct invocation *invocation)
{
	struct config *config;
	struct reason reason;
	bool is_right = true;
	int error = open_config(invocation, &config, &reason);

	for (size_t i = 0; !error && invocation->is_strict && i < config->lists_count; i++)
		is_right &= is_list_right(&config->list[i]);
	if (!error && is_right)
		output_print(json_pack("{s:s, s:I, s:I}", "configuration", "right", "interfaces",
				       (json_int_t)config->interfaces_count, "lists", (json_int_t)config->lists_count));
	free_config(config);
	if (error)
		return command_failed(error, &reason);
	return is_right ? STATUS_DONE : STATUS_USAGE;
}
