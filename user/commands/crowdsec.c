// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* crowdsec: keeps a list equal to the decisions of CrowdSec. */
#include <errno.h>

#include "commands/command.h"
#include "feeds/feeds.h"

#define MEMORY (1ULL << 30)     /* for libraries, and for an answer that has grown to its limit */
#define DECISION_MEMORY 4096ULL /* the most that a decision takes */
#define STALE_POLLS 12          /* an answer may be late, or an error end soon */

static enum command_status run_crowdsec(const struct invocation *invocation)
{
	const struct crowdsec_options *options;
	struct crowdsec_start start = { .note = command_warn_reader };
	struct list_keeper keeper = { .state = invocation->state,
				      .name = invocation->name,
				      .list = invocation->list_name,
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
	if (!error)
		error = crowdsec_open(&start, options, &reason);
	if (!error) {
		if (!keeper.list)
			keeper.list = options->list;
		keeper.action = options->action;
		keeper.rules_max = options->rules_max;
		keeper.memory = MEMORY + options->rules_max * DECISION_MEMORY;
		keeper.stale_ms = STALE_POLLS * options->every_ms;
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
	.group = COMMAND_RULES,
	.usage = "[--list NAME] [--config FILE]",
	.summary = "keep a list equal to the decisions of CrowdSec",
	.options = OPTION_LIST | OPTION_CONFIG,
	.needs = PRIVILEGE_KERNEL | PRIVILEGE_READ | PRIVILEGE_CHILD,
	.run = run_crowdsec,
};
