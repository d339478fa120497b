// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Options and the choice of the command; everything else is the command's. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "output.h"

enum {
	GIVEN_JSON = 256,
	GIVEN_NAME,
	GIVEN_STATE,
	GIVEN_HELP,
	GIVEN_MODE,
	GIVEN_CAPACITY,
	GIVEN_ALL,
	GIVEN_COMPACT,
	GIVEN_FINGERPRINT,
	GIVEN_NO_COUNTERS,
	GIVEN_COUNTERS,
};

static const struct option options[] = {
	{ "json", no_argument, NULL, GIVEN_JSON },
	{ "name", required_argument, NULL, GIVEN_NAME },
	{ "state", required_argument, NULL, GIVEN_STATE },
	{ "help", no_argument, NULL, GIVEN_HELP },
	{ "mode", required_argument, NULL, GIVEN_MODE },
	{ "capacity", required_argument, NULL, GIVEN_CAPACITY },
	{ "all", no_argument, NULL, GIVEN_ALL },
	{ "compact", no_argument, NULL, GIVEN_COMPACT },
	{ "fingerprint", required_argument, NULL, GIVEN_FINGERPRINT },
	{ "no-counters", no_argument, NULL, GIVEN_NO_COUNTERS },
	{ "counters", no_argument, NULL, GIVEN_COUNTERS },
	{ 0 },
};

struct arguments {
	struct invocation invocation;
	unsigned int given; /* enum command_option bits */
	bool wants_help;
};

static int take_mode(struct invocation *invocation, const char *text)
{
	static const char *const modes[] = {
		[KERNEL_AUTO] = "auto",
		[KERNEL_NATIVE] = "native",
		[KERNEL_SKB] = "skb",
	};

	for (enum kernel_mode mode = KERNEL_AUTO; mode <= KERNEL_SKB; mode++) {
		if (!strcmp(modes[mode], text)) {
			invocation->mode = mode;
			return STATUS_DONE;
		}
	}
	return command_error(STATUS_USAGE, "--mode '%s': must be auto, native or skb", text);
}

static int take_fingerprint(struct invocation *invocation, const char *text)
{
	static const char *const widths[] = { "8", "16", "17", "32" };

	for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++)
		if (!strcmp(widths[i], text)) {
			invocation->fingerprint_bits = strtoul(text, NULL, 10);
			return STATUS_DONE;
		}
	return command_error(STATUS_USAGE, "--fingerprint '%s': must be 8, 16, 17 or 32 bits", text);
}

static int take_name(struct invocation *invocation, const char *text)
{
	invocation->name = text;
	if (apply_is_name(text))
		return STATUS_DONE;
	return command_error(STATUS_USAGE, "--name '%s': 1 to %d letters, digits, '.', '_' or '-', "
			     "starting with none of '.' and '-'", text, ABI_NAME_BYTES - 1);
}

static int take_option(struct arguments *arguments, int option, const char *word)
{
	struct invocation *invocation = &arguments->invocation;

	switch (option) {
	case GIVEN_JSON:
		output_use_json(true);
		return STATUS_DONE;
	case GIVEN_NAME:
		return take_name(invocation, optarg);
	case GIVEN_STATE:
		invocation->state = optarg;
		return STATUS_DONE;
	case GIVEN_HELP:
		arguments->wants_help = true;
		return STATUS_DONE;
	case GIVEN_MODE:
		arguments->given |= OPTION_MODE;
		return take_mode(invocation, optarg);
	case GIVEN_CAPACITY:
		arguments->given |= OPTION_CAPACITY;
		return command_number("--capacity", optarg, &invocation->capacity);
	case GIVEN_ALL:
		arguments->given |= OPTION_ALL;
		invocation->is_all = true;
		return STATUS_DONE;
	case GIVEN_COMPACT:
		arguments->given |= OPTION_FORMAT;
		invocation->is_compact = true;
		return STATUS_DONE;
	case GIVEN_FINGERPRINT:
		arguments->given |= OPTION_FORMAT;
		return take_fingerprint(invocation, optarg);
	case GIVEN_NO_COUNTERS:
		arguments->given |= OPTION_FORMAT;
		invocation->has_no_counters = true;
		return STATUS_DONE;
	case GIVEN_COUNTERS:
		arguments->given |= OPTION_COUNTERS;
		invocation->wants_counters = true;
		return STATUS_DONE;
	case ':':
		return command_error(STATUS_USAGE, "'%s' needs a value", word);
	default:
		return command_error(STATUS_USAGE, "unknown option '%s'; see xdp-cuckoo help", word);
	}
}

/* --json is looked for first, so that an error in an option before it is JSON too. */
static int take_options(struct arguments *arguments, int argc, char **argv)
{
	int option, status = STATUS_DONE;

	for (int i = 1; i < argc && strcmp(argv[i], "--"); i++)
		if (!strcmp(argv[i], "--json"))
			output_use_json(true);
	opterr = 0;
	while (status == STATUS_DONE &&
	       (option = getopt_long(argc, argv, ":", options, NULL)) != -1)
		status = take_option(arguments, option, argv[optind - 1]);
	return status;
}

static enum command_status check_usage(const struct command *command,
				       const struct arguments *arguments)
{
	int count = arguments->invocation.count;

	if (arguments->given & ~command->options)
		return command_error(STATUS_USAGE, "%s does not take that option; usage: xdp-cuckoo %s "
				     "%s", command->name, command->name, command->usage);
	if (count < command->min || (command->max >= 0 && count > command->max))
		return command_error(STATUS_USAGE, "%s: too %s words; usage: xdp-cuckoo %s %s",
				     command->name, count < command->min ? "few" : "many",
				     command->name, command->usage);
	return STATUS_DONE;
}

static enum command_status run(struct arguments *arguments, int count, char *const *words)
{
	const struct command *command = command_find(count ? words[0] : "help");
	enum command_status status;

	if (!command)
		return command_error(STATUS_USAGE, "no command '%s'; see xdp-cuckoo help", words[0]);
	arguments->invocation.operands = count ? words + 1 : words;
	arguments->invocation.count = count ? count - 1 : 0;
	if (arguments->wants_help && count) {
		arguments->invocation.operands = words;
		arguments->invocation.count = 1;
		command = command_find("help");
	}
	if (!count && !arguments->wants_help) {
		command->run(&arguments->invocation);
		return STATUS_USAGE;
	}
	status = check_usage(command, arguments);
	return status == STATUS_DONE ? command->run(&arguments->invocation) : status;
}

/* Where 0, 1 or 2 is closed, the store would get that number, and output would go into the store. */
static int open_standard_files(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	return fd < 0 ? -errno : close(fd);
}

int main(int argc, char **argv)
{
	struct arguments arguments = { .invocation = { .name = APPLY_NAME_DEFAULT } };
	int status;

	if (open_standard_files())
		return STATUS_SYSTEM;
	status = take_options(&arguments, argc, argv);
	if (status == STATUS_DONE)
		status = run(&arguments, argc - optind, argv + optind);
	/* A result that could not be written is no result. */
	if (fflush(stdout) || ferror(stdout))
		return command_error(STATUS_SYSTEM, "cannot write the output: %s", strerror(errno));
	return status;
}
