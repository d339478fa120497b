// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* fleet: makes a fleet on a broker, and shows its hosts. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fleet/commands.h"
#include "fleet/publisher.h"
#include "io/output.h"
#include "io/whole_file.h"

#define MEMORY_MAX (1 << 30) /* for what a broker sends */
#define LOG_ENTRIES 10000 /* that the broker keeps in the log of each list */

/* ---- what all commands of a fleet share ---- */

enum command_status fleet_config_open(const struct invocation *invocation, struct config **config)
{
	struct reason reason;
	int error = config_open(invocation->config_path, invocation->name, command_report_bad_line, config, &reason);

	if (error == -ENOENT)
		return command_fail(STATUS_SYSTEM,
				    "%s; a fleet needs a section [fleet] with broker = HOST... in it: xdp-cuckoo-fleet(7)",
				    reason.text);
	if (error)
		return command_fail_because(error, &reason);
	if ((*config)->fleet.brokers_count)
		return STATUS_DONE;
	config_close(*config);
	*config = NULL;
	return command_fail(STATUS_USAGE, "the configuration has no section [fleet] with broker = HOST...; see "
					  "xdp-cuckoo-fleet(7)");
}

int fleet_give_up(const struct config *config, struct reason *reason)
{
	int error = broker_secrets_keep(&config->fleet, reason);

	if (error < 0)
		return error;
	error = privileges_keep(0);
	return error ? reason_set(reason, error, "cannot give up capabilities: %s", strerror(-error)) : 0;
}

int fleet_connect(const struct config *config, bool writes, struct broker *broker, struct reason *reason)
{
	int error = fleet_give_up(config, reason);

	*broker = (struct broker){ .connection.fd = -1 };
	return error ? error :
		       broker_open(broker, &config->fleet, writes ? BROKER_WRITE : BROKER_READ,
				   reason);
}

enum command_status fleet_fail(int error, const struct reason *reason)
{
	return command_fail(error == -EINVAL ? STATUS_USAGE :
			    error == -ENOMEM ? STATUS_FULL :
					       STATUS_SYSTEM,
			    "%s", reason->text);
}

/* ---- init, forget ---- */

static enum command_status init(const struct invocation *invocation, const struct config *config, struct broker *broker)
{
	char id[FLEET_ID_BYTES];
	struct reason reason;
	int error = functions_load(broker, invocation->name, LOG_ENTRIES, id, &reason);

	(void)config;
	if (error)
		return fleet_fail(error, &reason);
	output_print(json_pack("{s:s, s:s, s:s, s:b}", "fleet", invocation->name, "id", id, "broker",
			       broker->connection.where, "changed", true));
	return STATUS_DONE;
}

/* Deletes the report of the host, and its place in the sets of all lists. */
static enum command_status forget(const struct invocation *invocation, const struct config *config,
				  struct broker *broker)
{
	const char *host = invocation->operands[1];
	CODEC_FREED redisReply *reply = NULL;
	struct fleet_view view = {};
	struct reason reason;
	int error;

	if (strlen(host) >= FLEET_HOST_BYTES)
		return command_fail(STATUS_NO, "no host '%s' has reported", host);
	(void)config;
	error = fleet_view_open(&view, broker, invocation->name, &reason);
	for (size_t i = 0; i < 2 * view.lists_count && !error; i++)
		error = connection_ask(&broker->connection, NULL, &reason, "ZREM xc:%s:L:%s:%s %s", invocation->name,
				       view.lists[i / 2].name, i % 2 ? "hosts" : "refused", host);
	if (!error)
		error = connection_ask(&broker->connection, &reply, &reason, "DEL xc:%s:host:%s",
				       invocation->name, host);
	fleet_view_close(&view);
	if (error)
		return fleet_fail(error, &reason);
	if (!codec_number(reply))
		return command_fail(STATUS_NO, "no host '%s' has reported", host);
	output_print(json_pack("{s:s, s:b}", "forgotten", host, "changed", true));
	return STATUS_DONE;
}

/* ---- status ---- */

static enum command_status print_view(const struct fleet_view *view, const char *fleet, bool is_panic, __s64 now_ms,
				      size_t level)
{
	json_t *hosts = json_array(), *lists = json_array();
	char last[FLEET_POSITION_BYTES];
	json_int_t dropped = 0;

	for (size_t i = 0; i < view->lists_count; i++) {
		const struct fleet_list *list = &view->lists[i];

		json_array_append_new(lists,
				      json_pack("{s:o, s:I, s:I, s:s}", "list", output_string(list->name), "rules",
						(json_int_t)list->head.rules, "hosts", (json_int_t)list->hosts, "last",
						fleet_position_format(list->head.last, last)));
	}
	for (size_t i = 0; i < view->hosts_count; i++) {
		const struct fleet_host *host = &view->hosts[i];
		const __s64 seen_ms = fleet_host_number(host, "seen");
		const char *state = fleet_host_state(view, host, now_ms), *why = fleet_host_field(host, "why");

		if (!strcmp(state, "silent") && fleet_host_is_behind(view, host))
			why = "behind: it has not reported the last changes";
		if (!strcmp(state, "shared"))
			why = "another host reports by this name: write host = NAME into [fleet] of one";
		if (!host->fields)
			why = "its report is too large, or none; delete it: xdp-cuckoo fleet forget HOST";
		dropped += fleet_host_number(host, "dropped");
		json_array_append_new(hosts, json_pack("{s:o, s:s, s:I, s:I, s:I, s:f, s:I, s:o, s:o}", "host",
						       output_string(host->name), "state", state, "rules",
						       fleet_host_number(host, "rules"), "refused",
						       fleet_host_number(host, "refused"), "dropped",
						       fleet_host_number(host, "dropped"), "seen_s",
						       now_ms > seen_ms ? (now_ms - seen_ms) / 1000.0 : 0.0, "skew_ms",
						       fleet_host_number(host, "skew"), "version",
						       output_string(fleet_host_field(host, "version")), "why",
						       output_string(strcmp(why, " ") ? why : "")));
	}
	if (output_is_json()) {
		output_print(json_pack("{s:s, s:b, s:I, s:I, s:I, s:o, s:o}", "fleet", fleet, "panic", is_panic,
				       "hosts_seen", (json_int_t)view->hosts_count, "hosts_level", (json_int_t)level,
				       "dropped", dropped, "lists", lists, "hosts", hosts));
	} else {
		output_print(json_pack("{s:s, s:b, s:I, s:I, s:I}", "fleet", fleet, "panic", is_panic, "hosts",
				       (json_int_t)view->hosts_count, "level", (json_int_t)level, "dropped", dropped));
		output_print(lists);
		output_print(hosts);
	}
	return STATUS_DONE;
}

/* Says what a table of hosts does not show by itself: there is no fleet, or nobody follows it, or one of its lists. */
static enum command_status judge_view(const struct fleet_view *view, const char *fleet, size_t level, bool has_fleet)
{
	enum command_status status = level == view->hosts_count ? STATUS_DONE : STATUS_NO;

	if (!has_fleet)
		return command_fail(STATUS_NO, "there is no fleet '%s' on the broker: xdp-cuckoo%s fleet init", fleet,
				    session_name_option(fleet));
	if (!view->hosts_count)
		return command_fail(STATUS_NO, "nobody follows the fleet '%s': no host has reported", fleet);
	for (size_t i = 0; i < view->lists_count; i++)
		if (*view->lists[i].broken.text)
			status = command_fail(STATUS_NO, "list '%s': %s", view->lists[i].name,
					      view->lists[i].broken.text);
		else if (!view->lists[i].hosts && view->lists[i].head.rules && !fleet_is_staged(view->lists[i].name))
			status = command_fail(STATUS_NO, "nobody follows the list '%s'", view->lists[i].name);
	return status;
}

/* For people, or metrics. */
static enum command_status show_status(const struct invocation *invocation, const struct config *config,
				       struct broker *broker)
{
	const bool is_metrics = !strcmp(invocation->operands[0], "metrics");
	const __s64 now_ms = broker_now_ms(broker);
	enum command_status status;
	CODEC_FREED redisReply *reply = NULL;
	struct fleet_view view = {};
	struct reason reason;
	json_t *metrics;
	bool has_fleet, is_panic;
	size_t level = 0;
	int error = connection_ask(&broker->connection, &reply, &reason, "HMGET xc:%s:meta id panic", invocation->name);

	(void)config;
	has_fleet = codec_text_of(reply, 0);
	is_panic = has_fleet && codec_text_of(reply, 1) && !strcmp(codec_text_of(reply, 1), "on");
	if (!error)
		error = fleet_view_open(&view, broker, invocation->name, &reason);
	for (size_t i = 0; i < view.hosts_count && !error; i++)
		level += !strcmp(fleet_host_state(&view, &view.hosts[i], now_ms), "level");
	if (!error && is_metrics && view_metrics(&view, invocation->name, is_panic, now_ms, &metrics))
		error = reason_set(&reason, -ENOMEM, "not enough memory");
	if (error)
		status = fleet_fail(error, &reason);
	else if (is_metrics)
		status = command_write_metrics(invocation->count > 1 ? invocation->operands[1] : "-", metrics);
	else
		status = print_view(&view, invocation->name, is_panic, now_ms, level);
	if (status == STATUS_DONE && !(is_metrics && has_fleet))
		status = judge_view(&view, invocation->name, level, has_fleet);
	fleet_view_close(&view);
	return status;
}

/* ---- the file of metrics ---- */

static int write_text(FILE *to, void *text)
{
	return fputs(text, to) < 0 ? -EIO : 0;
}

/*
 * The right to write the file stays in this process. The child goes on without capabilities, reads what the broker sends, and
 * writes the metrics to `path`, a pipe. *child: its number; 0: this is the child.
 */
static enum command_status split(pid_t *child, int ends[2], char path[32])
{
	if (pipe2(ends, O_CLOEXEC))
		return command_fail(STATUS_SYSTEM, "cannot make a pipe: %s", strerror(errno));
	*child = fork();
	if (*child < 0)
		return command_fail(STATUS_SYSTEM, "cannot start a process: %s", strerror(errno));
	snprintf(path, 32, "/proc/self/fd/%d", ends[1]);
	close(ends[*child ? 1 : 0]);
	return STATUS_DONE;
}

/* Metrics are made before they are judged, and written whatever the judgement is. */
static enum command_status write_metrics(const char *path, pid_t child, int from)
{
	FREED char *text = NULL;
	enum command_status status, written;
	char bytes[4096];
	size_t length;
	ssize_t got;
	int ended;
	FILE *to = open_memstream(&text, &length);

	while (to && (got = read(from, bytes, sizeof(bytes))) > 0)
		fwrite(bytes, 1, got, to);
	if (!to || fclose(to) || waitpid(child, &ended, 0) != child || !WIFEXITED(ended))
		return command_fail(STATUS_SYSTEM, "the process that reads from the broker has failed");
	status = WEXITSTATUS(ended);
	if (status != STATUS_DONE && status != STATUS_NO)
		return status;
	written = length ? command_write_file(path, write_text, text) : STATUS_DONE;
	return written == STATUS_DONE ? status : written;
}

static const struct verb {
	const char *name;
	bool takes_word; /* a file, or a host */
	bool writes;
	enum command_status (*run)(const struct invocation *invocation, const struct config *config,
				   struct broker *broker);
} verbs[] = {
	{ "init", false, true, init },           { "status", false, false, show_status },
	{ "metrics", true, false, show_status }, { "check", false, false, fleet_check },
	{ "forget", true, true, forget },
};

static enum command_status run_fleet(const struct invocation *invocation)
{
	const struct verb *verb = verbs, *end = verbs + sizeof(verbs) / sizeof(verbs[0]);
	const struct rlimit most = { MEMORY_MAX, MEMORY_MAX };
	struct invocation words = *invocation;
	char path[32], *piped[2] = { words.operands[0], path };
	struct config *config = NULL;
	struct broker broker = {};
	enum command_status status;
	pid_t child = 0;
	struct reason reason;
	int ends[2], error;

	while (verb < end && strcmp(verb->name, invocation->operands[0]))
		verb++;
	if (verb == end)
		return command_fail_choices("fleet", invocation->operands[0], "init|status|metrics|check|forget");
	if (verb->run == forget && invocation->count < 2)
		return command_fail(STATUS_USAGE, "fleet forget: which host? See fleet status");
	if (!verb->takes_word && invocation->count > 1)
		return command_fail(STATUS_USAGE, "fleet %s takes no other word", verb->name);
	broker.connection.fd = -1;
	status = fleet_config_open(invocation, &config);
	if (status != STATUS_DONE)
		return status;
	if (verb->run == show_status && words.count > 1 && !whole_file_is_output(words.operands[1])) {
		status = split(&child, ends, path);
		words.operands = piped;
	}
	if (status == STATUS_DONE && child) {
		status = write_metrics(invocation->operands[1], child, ends[0]);
	} else if (status == STATUS_DONE) {
		setrlimit(RLIMIT_DATA, &most);
		/* check connects by itself, and says more if it cannot. */
		error = verb->run == fleet_check ? fleet_give_up(config, &reason) :
						   fleet_connect(config, verb->writes, &broker, &reason);
		status = error ? fleet_fail(error, &reason) : verb->run(&words, config, &broker);
	}
	broker_close(&broker);
	config_close(config);
	return status;
}

const struct command command_fleet = {
	.name = "fleet",
	.usage = "init|status|metrics|check|forget [FILE|-|HOST] [--config FILE]",
	.min = 1,
	.max = 2,
	.needs = PRIVILEGE_READ | PRIVILEGE_WRITE,
	.run = run_fleet,
};

/* ---- follow ---- */

static enum command_status run_follow(const struct invocation *invocation)
{
	struct config *config;
	struct reason reason;
	enum command_status status = fleet_config_open(invocation, &config);
	struct follow follow = { .state = invocation->state,
				 .name = invocation->name,
				 .is_once = invocation->is_once,
				 .is_accepted = invocation->is_accepted,
				 .note = command_note };
	int error;

	if (status != STATUS_DONE)
		return status;
	follow.options = &config->fleet;
	/* A full disk keeps nothing from what follows. */
	if (!invocation->is_once && command_expect_lists(invocation, config, &reason))
		command_warn_reader(reason.text);
	error = follow_run(&follow, &reason);
	config_close(config);
	if (error == -EBADE)
		return command_fail(STATUS_NO, "%s", reason.text);
	return error ? fleet_fail(error, &reason) : STATUS_DONE;
}

const struct command command_follow = {
	.name = "follow",
	.usage = "[--once] [--accept] [--config FILE]",
	.max = 0,
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ | PRIVILEGE_CHILD,
	.run = run_follow,
};
