// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* flowspec: keeps a list equal to the flows that BGP announces. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "commands/command.h"
#include "config/config.h"
#include "flowspec/flowspec.h"
#include "lists/list_keeper.h"

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

static enum command_status keep_list(const struct invocation *invocation, const struct flowspec_options *options)
{
	const struct translator_start start = { options, command_warn_reader };
	const struct list_keeper keeper = {
		.state = invocation->state,
		.name = invocation->name,
		.list = invocation->list_name ? invocation->list_name : options->list,
		.source = "flowspec",
		.reader = "the reader of flows",
		.note = command_warn_reader,
		.read = translator_run,
		.context = &start,
		.memory = translator_memory(options),
		.action = options->action,
		.stale_ms = options->stale_ms,
		.may_add = translator_may_add,
		.take_status = translator_take_status,
	};
	struct reason reason;
	int error = list_keeper_run(&keeper, &reason);

	if (error == -ENODATA)
		return command_fail(STATUS_SYSTEM, "no more flows: the rules of the list '%s' end after the stale time",
				    keeper.list);
	return error ? command_fail_because(error, &reason) : STATUS_DONE;
}

static enum command_status run_flowspec(const struct invocation *invocation)
{
	const char *path = invocation->operands[0];
	enum command_status status;
	struct config *config;
	struct reason reason;
	int error;

	error = config_open(invocation->config_path, invocation->name, command_report_bad_line, &config, &reason);
	if (error)
		return command_fail_because(error, &reason);
	if (!config->flowspec.list)
		status = command_fail(STATUS_USAGE, "the configuration has no section [flowspec] with own-prefixes = "
						    "PREFIX...; see xdp-cuckoo-flowspec(7)");
	else
		status = strcmp(path, "-") ? connect_to(path) : STATUS_DONE;
	if (config->flowspec.list && !status && !invocation->is_printed) {
		status = keep_list(invocation, &config->flowspec);
	} else if (config->flowspec.list && !status) {
		/* Another command applies the lines, so this process needs nothing. */
		error = privileges_keep(0);
		if (!error)
			translator_run(&(struct translator_start){ &config->flowspec, command_warn_reader },
				       STDOUT_FILENO);
		status = error ? command_fail(STATUS_SYSTEM, "cannot give up capabilities: %s", strerror(-error)) :
				 command_fail(STATUS_SYSTEM, "no more flows: the rules end after the stale time");
	}
	config_close(config);
	return status;
}

const struct command command_flowspec = {
	.name = "flowspec",
	.group = COMMAND_RULES,
	.usage = "SOCKET [--list NAME] [--print] [--config FILE]",
	.summary = "keep a list equal to the flows that BGP announces",
	.options = OPTION_LIST | OPTION_CONFIG | OPTION_PRINT,
	.min = 1,
	.max = 1,
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ | PRIVILEGE_CHILD,
	.run = run_flowspec,
};
