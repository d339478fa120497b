// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Options and the choice of the command; everything else is the command's. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "output.h"
#include "privileges.h"
#include "watchdog.h"

#define OPTION_CODE 256 /* what getopt returns for the first option: more than any character */

struct arguments {
	struct invocation invocation;
	unsigned int given; /* enum command_option bits */
	bool wants_help;
};

static int take_json(struct arguments *arguments, const char *value)
{
	(void)arguments, (void)value;
	output_use_json(true);
	return STATUS_DONE;
}

static int take_help(struct arguments *arguments, const char *value)
{
	(void)value;
	arguments->wants_help = true;
	return STATUS_DONE;
}

static int take_name(struct arguments *arguments, const char *value)
{
	arguments->invocation.name = value;
	if (apply_is_name(value))
		return STATUS_DONE;
	return command_error(STATUS_USAGE, "--name '%s': 1 to %d letters, digits, '.', '_' or '-', "
			     "starting with none of '.' and '-'", value, ABI_NAME_BYTES - 1);
}

static int take_state(struct arguments *arguments, const char *value)
{
	arguments->invocation.state = value;
	return STATUS_DONE;
}

static int take_pins(struct arguments *arguments, const char *value)
{
	(void)arguments;
	kernel_use_pins(value);
	return STATUS_DONE;
}

static int take_mode(struct arguments *arguments, const char *value)
{
	static const char *const modes[] = {
		[KERNEL_AUTO] = "auto",
		[KERNEL_NATIVE] = "native",
		[KERNEL_SKB] = "skb",
	};

	for (enum kernel_mode mode = KERNEL_AUTO; mode <= KERNEL_SKB; mode++) {
		if (!strcmp(modes[mode], value)) {
			arguments->invocation.mode = mode;
			return STATUS_DONE;
		}
	}
	return command_error(STATUS_USAGE, "--mode '%s': must be auto, native or skb", value);
}

static int take_capacity(struct arguments *arguments, const char *value)
{
	return command_number("--capacity", value, &arguments->invocation.capacity);
}

static int take_fingerprint(struct arguments *arguments, const char *value)
{
	static const char *const widths[] = { "8", "16", "17", "32" };

	for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++)
		if (!strcmp(widths[i], value)) {
			arguments->invocation.fingerprint_bits = strtoul(value, NULL, 10);
			return STATUS_DONE;
		}
	return command_error(STATUS_USAGE, "--fingerprint '%s': must be 8, 16, 17 or 32 bits", value);
}

static int take_list_format(struct arguments *arguments, const char *value)
{
	arguments->invocation.list_format = value;
	return STATUS_DONE;
}

static int take_time(const char *option, const char *value, __s64 *ms)
{
	if (!rule_time_parse(value, ms))
		return STATUS_DONE;
	return command_error(STATUS_USAGE, "%s '%s': must be a time like 30s, 15m, 1h30m, 2d, at least a "
			     "second", option, value);
}

static int take_timeout(struct arguments *arguments, const char *value)
{
	return take_time("--timeout", value, &arguments->invocation.timeout_ms);
}

static int take_confirm(struct arguments *arguments, const char *value)
{
	__s64 *ms = &arguments->invocation.confirm_ms;
	int status = take_time("--confirm", value, ms);

	if (status == STATUS_DONE && *ms > WATCHDOG_MS_MAX)
		return command_error(STATUS_USAGE, "--confirm '%s': at most a day", value);
	return status;
}

#define SECONDS_MAX 3600
#define DRIVER_NS_MAX 1000000

static int take_whole(const char *option, const char *value, const char *unit, __u64 max, __u64 *number)
{
	char *end;

	errno = 0;
	*number = strtoull(value, &end, 10);
	if (*value >= '0' && *value <= '9' && !*end && !errno && *number >= 1 && *number <= max)
		return STATUS_DONE;
	return command_error(STATUS_USAGE, "%s '%s': must be a whole number of %s, 1 to %llu", option, value,
			     unit, (unsigned long long)max);
}

static int take_seconds(struct arguments *arguments, const char *value)
{
	return take_whole("--seconds", value, "seconds", SECONDS_MAX, &arguments->invocation.seconds);
}

static int take_driver_ns(struct arguments *arguments, const char *value)
{
	return take_whole("--driver-ns", value, "nanoseconds", DRIVER_NS_MAX,
			  &arguments->invocation.driver_ns);
}

/* Options that say yes: which member of the invocation that is. */
#define SWITCH(word, bit, member) { word, bit, offsetof(struct invocation, member), NULL, false }

static const struct option_kind {
	const char *name;
	unsigned int bit; /* enum command_option; 0: every command takes it */
	size_t member;	  /* of a switch, a bool of the invocation */
	int (*take)(struct arguments *arguments, const char *value); /* NULL: a switch */
	bool has_value;
} option_kinds[] = {
	{ "json", 0, 0, take_json, false },
	{ "help", 0, 0, take_help, false },
	{ "name", 0, 0, take_name, true },
	{ "state", 0, 0, take_state, true },
	{ "pins", 0, 0, take_pins, true },
	{ "mode", OPTION_MODE, 0, take_mode, true },
	{ "capacity", OPTION_CAPACITY, 0, take_capacity, true },
	{ "fingerprint", OPTION_FORMAT, 0, take_fingerprint, true },
	{ "format", OPTION_LIST_FORMAT, 0, take_list_format, true },
	{ "timeout", OPTION_TIMEOUT, 0, take_timeout, true },
	{ "confirm", OPTION_CONFIRM, 0, take_confirm, true },
	{ "seconds", OPTION_BENCH, 0, take_seconds, true },
	{ "driver-ns", OPTION_BENCH, 0, take_driver_ns, true },
	SWITCH("all", OPTION_ALL, is_all),
	SWITCH("compact", OPTION_FORMAT, is_compact),
	SWITCH("no-counters", OPTION_FORMAT, has_no_counters),
	SWITCH("counters", OPTION_COUNTERS, wants_counters),
	SWITCH("force", OPTION_FORCE, is_forced),
	SWITCH("monitor-only", OPTION_MONITOR, is_monitor_only),
	SWITCH("strict", OPTION_STRICT, is_strict),
	SWITCH("dry-run", OPTION_DRY_RUN, is_dry_run),
	SWITCH("replace", OPTION_REPLACE, is_replace),
};

#define OPTION_KINDS (sizeof(option_kinds) / sizeof(option_kinds[0]))

static int take_option(struct arguments *arguments, int option, const char *word)
{
	const struct option_kind *kind;

	if (option == ':')
		return command_error(STATUS_USAGE, "'%s' needs a value", word);
	if (option < OPTION_CODE)
		return command_error(STATUS_USAGE, "unknown option '%s'; see xdp-cuckoo help", word);
	kind = &option_kinds[option - OPTION_CODE];
	arguments->given |= kind->bit;
	if (kind->take)
		return kind->take(arguments, optarg);
	*(bool *)((char *)&arguments->invocation + kind->member) = true;
	return STATUS_DONE;
}

/* --json is looked for first, so that an error in an option before it is JSON too. */
static int take_options(struct arguments *arguments, int argc, char **argv)
{
	struct option options[OPTION_KINDS + 1] = {};
	int option, status = STATUS_DONE;

	for (size_t i = 0; i < OPTION_KINDS; i++)
		options[i] = (struct option){ option_kinds[i].name, option_kinds[i].has_value, NULL,
					      OPTION_CODE + i };
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

static enum command_status give_up_privileges(unsigned int needs)
{
	int error = privileges_keep(needs);

	if (!error)
		return STATUS_DONE;
	return command_error(STATUS_SYSTEM, "cannot give up the capabilities that are not needed: %s",
			     strerror(-error));
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
		arguments->given = 0;
		command = command_find("help");
	}
	if (!count && !arguments->wants_help) {
		command->run(&arguments->invocation);
		return STATUS_USAGE;
	}
	status = check_usage(command, arguments);
	if (status == STATUS_DONE)
		status = give_up_privileges(command->needs);
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

#define BUS_ERROR \
	"the store cannot be read: its data.mdb has been cut short, or the disk fails; put a copy in its place, or move " \
	"it away and load the rules again"

/* LMDB reads its file as memory: what cannot be read there comes as this signal, not as an error. */
__attribute__((noreturn)) static void bus_error(int signal_number)
{
	static const char text[] = "xdp-cuckoo: " BUS_ERROR "\n";
	static const char json[] = "{\"error\": \"" BUS_ERROR "\", \"status\": 3}\n";
	ssize_t ignored;

	(void)signal_number;
	if (output_is_json())
		ignored = write(STDERR_FILENO, json, sizeof(json) - 1);
	else
		ignored = write(STDERR_FILENO, text, sizeof(text) - 1);
	(void)ignored;
	_exit(STATUS_SYSTEM);
}

int main(int argc, char **argv)
{
	const struct sigaction on_bus_error = { .sa_handler = bus_error };
	struct arguments arguments = { .invocation = { .name = APPLY_NAME_DEFAULT } };
	int status;

	status = open_standard_files();
	if (status)
		return command_error(STATUS_SYSTEM, "cannot open /dev/null: %s; raise the limit of open files, or "
				     "make that device", strerror(-status));
	status = privileges_gain_none();
	if (status)
		return command_error(STATUS_SYSTEM, "cannot set no_new_privs: %s", strerror(-status));
	sigaction(SIGBUS, &on_bus_error, NULL);
	status = take_options(&arguments, argc, argv);
	if (status == STATUS_DONE)
		status = run(&arguments, argc - optind, argv + optind);
	/* A result that could not be written is no result. */
	if (fflush(stdout) || ferror(stdout))
		return command_error(STATUS_SYSTEM, "cannot write the output: %s", strerror(errno));
	return status;
}
