// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* flowspec, crowdsec: keep a list equal to the flows that BGP announces, and to the decisions of CrowdSec. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "command/command.h"
#include "config/config.h"
#include "feed/feeds.h"
#include "feed/flowspec/flowspec.h"
#include "feed/list_keeper.h"

/* Makes the socket standard input. */
static enum command_status connect_to(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return command_fail(STATUS_SYSTEM, "cannot make a socket: %s", strerror(errno));
	if (strlen(path) >= sizeof(address.sun_path))
		return command_fail(STATUS_USAGE, "the path of the socket is too long: %s", path);
	strcpy(address.sun_path, path);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) || dup2(fd, STDIN_FILENO) < 0)
		return command_fail(STATUS_SYSTEM, "cannot connect to %s: %s; is xdp-cuckoo-gobgp.socket started?",
				    path, strerror(errno));
	close(fd);
	return STATUS_DONE;
}

/* Another command applies the lines, so this process needs nothing. */
static enum command_status print_flows(const struct flowspec_options *options)
{
	int error = privileges_keep(0);

	if (error)
		return command_fail(STATUS_SYSTEM, "cannot give up capabilities: %s", strerror(-error));
	translator_run(&(struct translator_start){ options, false, command_warn_reader }, STDOUT_FILENO);
	return command_fail(STATUS_SYSTEM, "no more flows: the rules end after the stale time");
}

static enum command_status keep_flows(const struct invocation *invocation, const struct flowspec_options *options)
{
	const struct translator_start start = { options, true, command_warn_reader };
	const struct list_keeper keeper = {
		.state = invocation->state,
		.name = invocation->name,
		.list = options->list,
		.source = "flowspec",
		.reader = "the reader of flows",
		.note = command_warn_reader,
		.read = translator_run,
		.context = &start,
		.memory = translator_memory(options),
		.report_bytes = translator_report_bytes(options),
		.action = options->action,
		.stale_ms = options->stale_ms,
		.may_add = translator_may_add,
		.take_status = translator_take_status,
	};
	struct reason reason;
	int error;

	error = list_keeper_run(&keeper, &reason);
	if (error == -ENODATA)
		reason_set(&reason, error, "no more flows: the rules of the list '%s' end after the stale time",
			   keeper.list);
	return error ? command_fail_because(error, &reason) : STATUS_DONE;
}

static enum command_status run_flowspec(const struct invocation *invocation)
{
	const char *path = invocation->operands[0];
	const struct flowspec_options *options;
	enum command_status status;
	struct config *config;
	struct reason reason;
	int error;

	error = config_open(invocation->config_path, invocation->name, command_report_bad_line, &config, &reason);
	if (error)
		return command_fail_because(error, &reason);
	options = &config->flowspec;
	if (!options->list)
		status = command_fail(STATUS_USAGE, "the configuration has no section [flowspec] with own-prefixes = "
						    "PREFIX...; see xdp-cuckoo-flowspec(7)");
	else
		status = strcmp(path, "-") ? connect_to(path) : STATUS_DONE;
	if (options->list && invocation->list_name)
		config->flowspec.list = invocation->list_name;
	/* A full disk may have room later. */
	if (options->list && !invocation->is_printed && command_expect_lists(invocation, config, &reason))
		command_warn_reader(reason.text);
	if (status == STATUS_DONE)
		status = invocation->is_printed ? print_flows(options) : keep_flows(invocation, options);
	config_close(config);
	return status;
}

const struct command command_flowspec = {
	.name = "flowspec",
	.usage = "SOCKET [--list NAME] [--print] [--config FILE]",
	.min = 1,
	.max = 1,
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ | PRIVILEGE_CHILD,
	.run = run_flowspec,
};

/* ---- crowdsec ---- */

#define MEMORY (1ULL << 30)     /* for libraries, and for an answer that has grown to its limit */
#define DECISION_MEMORY 4096ULL /* the most that a decision takes */

static enum command_status run_crowdsec(const struct invocation *invocation)
{
	const struct crowdsec_options *options;
	struct crowdsec_start start = { .note = command_warn_reader };
	struct list_keeper keeper = { .state = invocation->state,
				      .name = invocation->name,
				      .source = "crowdsec",
				      .reader = "the reader of decisions",
				      .note = command_warn_reader,
				      .read = crowdsec_run,
				      .context = &start,
				      .may_add = crowdsec_may_add,
				      .take_status = crowdsec_take_status,
				      .answer = crowdsec_answer };
	struct config *config;
	struct reason reason;
	int error;

	error = config_open(invocation->config_path, invocation->name, command_report_bad_line, &config, &reason);
	if (error)
		return command_fail_because(error, &reason);
	options = &config->crowdsec;
	if (!options->list)
		error = reason_set(
			&reason, -EINVAL,
			"the configuration has no section [crowdsec] with key-file = /PATH; see xdp-cuckoo.conf(5)");
	else if (invocation->list_name)
		config->crowdsec.list = invocation->list_name;
	if (!error && command_expect_lists(invocation, config, &reason))
		command_warn_reader(reason.text);
	if (!error)
		error = crowdsec_open(&start, options, &reason);
	if (!error) {
		keeper.list = options->list;
		keeper.action = options->action;
		keeper.rules_max = options->rules_max;
		keeper.memory = MEMORY + options->rules_max * DECISION_MEMORY;
		keeper.stale_ms = CROWDSEC_STALE_POLLS * options->every_ms;
		error = list_keeper_run(&keeper, &reason);
		if (error == -ENODATA)
			reason_set(&reason, error, "the reader of decisions has ended: the rules end at their times");
	}
	crowdsec_close(&start);
	config_close(config);
	return error ? command_fail_because(error, &reason) : STATUS_DONE;
}

const struct command command_crowdsec = {
	.name = "crowdsec",
	.usage = "[--list NAME] [--config FILE]",
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ | PRIVILEGE_CHILD,
	.run = run_crowdsec,
};
