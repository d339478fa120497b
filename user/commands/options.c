// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "commands/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/samples.h"
#include "io/output.h"
#include "base/suggest.h"
#include "change/watchdog.h"

#define OPTION_CODE 256 /* what getopt returns for the first option: more than any character */
#define SECONDS_MAX 3600
#define DRIVER_NS_MAX 1000000
#define INTERVAL_MS_MAX (24 * 3600 * 1000)
#define COUNT_MAX 1000000000
#define TOP_MAX 100000

/* ---- values ---- */

static int take_json(struct options_arguments *arguments, const char *value)
{
	(void)arguments, (void)value;
	output_use_json(true);
	return STATUS_DONE;
}

static int take_help(struct options_arguments *arguments, const char *value)
{
	(void)value;
	arguments->wants_help = true;
	return STATUS_DONE;
}

static int take_version(struct options_arguments *arguments, const char *value)
{
	(void)value;
	arguments->wants_version = true;
	return STATUS_DONE;
}

static int bad_name(const char *option, const char *value)
{
	return command_error(STATUS_USAGE,
			     "%s '%s': 1 to %d letters, digits, '.', '_' or '-', starting with none of "
			     "'.' and '-'",
			     option, value, ABI_NAME_BYTES - 1);
}

static int take_name(struct options_arguments *arguments, const char *value)
{
	arguments->invocation.name = value;
	return apply_is_name(value) ? STATUS_DONE : bad_name("--name", value);
}

static int take_state(struct options_arguments *arguments, const char *value)
{
	arguments->invocation.state = value;
	return STATUS_DONE;
}

static int take_pins(struct options_arguments *arguments, const char *value)
{
	(void)arguments;
	kernel_use_pins(value);
	return STATUS_DONE;
}

static int take_mode(struct options_arguments *arguments, const char *value)
{
	if (!command_mode_named(value, &arguments->invocation.mode))
		return STATUS_DONE;
	return command_not_a_choice("--mode", value, "auto|native|skb");
}

static int take_capacity(struct options_arguments *arguments, const char *value)
{
	return command_number("--capacity", value, &arguments->invocation.capacity);
}

static int take_fingerprint(struct options_arguments *arguments, const char *value)
{
	if (!command_fingerprint_named(value, &arguments->invocation.fingerprint_bits))
		return STATUS_DONE;
	return command_error(STATUS_USAGE, "--fingerprint '%s': must be 8, 16, 17 or 32 bits", value);
}

static int take_list_format(struct options_arguments *arguments, const char *value)
{
	arguments->invocation.list_format = value;
	return STATUS_DONE;
}

static int take_list_name(struct options_arguments *arguments, const char *value)
{
	arguments->invocation.list_name = value;
	return apply_is_name(value) ? STATUS_DONE : bad_name("--list", value);
}

static int take_time(const char *option, const char *value, __s64 *ms)
{
	if (!rule_time_parse(value, ms))
		return STATUS_DONE;
	return command_error(STATUS_USAGE,
			     "%s '%s': must be a time like 30s, 15m, 1h30m, 2d, at least a "
			     "second",
			     option, value);
}

static int take_timeout(struct options_arguments *arguments, const char *value)
{
	return take_time("--timeout", value, &arguments->invocation.timeout_ms);
}

static int take_confirm(struct options_arguments *arguments, const char *value)
{
	__s64 *ms = &arguments->invocation.confirm_ms;
	int status = take_time("--confirm", value, ms);

	if (status == STATUS_DONE && *ms > WATCHDOG_MS_MAX)
		return command_error(STATUS_USAGE, "--confirm '%s': at most a day", value);
	return status;
}

static int take_whole(const char *option, const char *value, const char *unit, __u64 max, __u64 *number)
{
	char *end;

	errno = 0;
	*number = strtoull(value, &end, 10);
	if (*value >= '0' && *value <= '9' && !*end && !errno && *number >= 1 && *number <= max)
		return STATUS_DONE;
	return command_error(STATUS_USAGE, "%s '%s': must be a whole number of %s, 1 to %llu", option, value, unit,
			     (unsigned long long)max);
}

static int take_seconds(struct options_arguments *arguments, const char *value)
{
	return take_whole("--seconds", value, "seconds", SECONDS_MAX, &arguments->invocation.seconds);
}

static int take_interval(struct options_arguments *arguments, const char *value)
{
	__s64 *ms = &arguments->invocation.interval_ms;
	int status = take_time("--interval", value, ms);

	if (status == STATUS_DONE && *ms > INTERVAL_MS_MAX)
		return command_error(STATUS_USAGE, "--interval '%s': at most a day", value);
	return status;
}

static int take_count(struct options_arguments *arguments, const char *value)
{
	return take_whole("--count", value, "intervals or packets", COUNT_MAX, &arguments->invocation.end_count);
}

static int take_every(struct options_arguments *arguments, const char *value)
{
	return take_whole("--every", value, "packets", COUNT_MAX, &arguments->invocation.every);
}

static int take_rate(struct options_arguments *arguments, const char *value)
{
	return take_whole("--rate", value, "packets a second", KERNEL_RATE_MAX, &arguments->invocation.rate);
}

static int take_write(struct options_arguments *arguments, const char *value)
{
	arguments->invocation.write_path = value;
	return STATUS_DONE;
}

static int take_by(struct options_arguments *arguments, const char *value)
{
	arguments->invocation.by = value;
	return STATUS_DONE;
}

static int take_top(struct options_arguments *arguments, const char *value)
{
	return take_whole("--top", value, "rows", TOP_MAX, &arguments->invocation.top);
}

static int take_listen(struct options_arguments *arguments, const char *value)
{
	arguments->invocation.listen = value;
	return STATUS_DONE;
}

static int take_driver_ns(struct options_arguments *arguments, const char *value)
{
	return take_whole("--driver-ns", value, "nanoseconds", DRIVER_NS_MAX, &arguments->invocation.driver_ns);
}

/* ---- the table ---- */

/* Options that say yes: which member of the invocation that is. */
/* It would take the braces for a block. */
/* clang-format off */
#define SWITCH(word, bit, member, meaning) \
	{ word, bit, NULL, meaning, NULL, offsetof(struct invocation, member) }
/* clang-format on */

const struct options_kind options_table[] = {
	{ "json", 0, NULL, "print JSON, errors too", take_json, 0 },
	{ "name", 0, "NAME", "the filter and its rules (default: " APPLY_NAME_DEFAULT ")", take_name, 0 },
	{ "state", 0, "DIR", "where rules are kept, in DIR/NAME (default: " APPLY_STATE_DEFAULT ")", take_state, 0 },
	{ "pins", 0, "DIR", "where filters are pinned, for users without CAP_SYS_ADMIN", take_pins, 0 },
	{ "help", 0, NULL, "explain the command", take_help, 0 },
	{ "version", 0, NULL, "print the version", take_version, 0 },
	{ "mode", OPTION_MODE, "auto|native|skb", "where in the kernel the filter runs", take_mode, 0 },
	{ "capacity", OPTION_CAPACITY, "N", "rules that the table must hold", take_capacity, 0 },
	SWITCH("compact", OPTION_FORMAT, is_compact, "fingerprints only: less memory, less exact"),
	{ "fingerprint", OPTION_FORMAT, "8|16|17|32", "bits of a fingerprint of a compact table", take_fingerprint, 0 },
	SWITCH("no-counters", OPTION_FORMAT, has_no_counters, "no packets and bytes by rule"),
	SWITCH("no-spare", OPTION_FORMAT, has_no_spare, "no room for a second table"),
	SWITCH("monitor-only", OPTION_MONITOR, is_monitor_only, "count what would be dropped, and drop nothing"),
	{ "format", OPTION_LIST_FORMAT, "text|ipset|nft|spamhaus|csv", "of the list", take_list_format, 0 },
	{ "list", OPTION_LIST, "NAME", "the rules of this list", take_list_name, 0 },
	SWITCH("replace", OPTION_REPLACE, is_replace, "delete the rules that the list does not name"),
	SWITCH("dry-run", OPTION_DRY_RUN, is_dry_run, "say what would change, and change nothing"),
	SWITCH("strict", OPTION_STRICT, is_strict, "change nothing where a line is bad"),
	{ "timeout", OPTION_TIMEOUT, "TIME", "of rules that name none", take_timeout, 0 },
	{ "confirm", OPTION_CONFIRM, "TIME", "undo it unless xdp-cuckoo confirm comes within TIME", take_confirm, 0 },
	SWITCH("force", OPTION_FORCE, is_forced, "also where this host may lose its connections"),
	SWITCH("counters", OPTION_COUNTERS, wants_counters, "with the packets and bytes of each rule"),
	SWITCH("all", OPTION_ALL, is_all, "every filter of this network namespace"),
	{ "seconds", OPTION_SECONDS, "N", "to measure", take_seconds, 0 },
	{ "driver-ns", OPTION_DRIVER_NS, "N", "what the driver takes for a packet", take_driver_ns, 0 },
	{ "interval", OPTION_INTERVAL, "TIME", "print rates, again after each TIME", take_interval, 0 },
	{ "count", OPTION_COUNT, "N", "end after so many intervals, or packets", take_count, 0 },
	{ "by", OPTION_BY, "interface|cpu|rule|prefix", "a row for each", take_by, 0 },
	{ "top", OPTION_BY, "N", "rows at most", take_top, 0 },
	{ "every", OPTION_SAMPLES, "N", "show one in N", take_every, 0 },
	{ "rate", OPTION_SAMPLES, "N", "at most N a second on each CPU", take_rate, 0 },
	{ "write", OPTION_SAMPLES, "FILE|-", "pcapng", take_write, 0 },
	SWITCH("on-stop", OPTION_ON_STOP, is_on_stop, "only where the configuration says detach-on-stop"),
	SWITCH("reset", OPTION_RESET, is_reset, "count from 0 again"),
	{ "listen", OPTION_LISTEN, "ADDRESS:PORT", "where to serve (default: " EXPORTER_LISTEN_DEFAULT ")", take_listen,
	  0 },
	{ NULL, 0, NULL, NULL, NULL, 0 },
};

#define OPTIONS (sizeof(options_table) / sizeof(options_table[0]) - 1)
_Static_assert(OPTIONS <= 64, "a bit of `given` for each option");

bool options_are_of(const struct options_kind *kind, const struct command *command)
{
	return !kind->bit || kind->bit & command->options;
}

/* ---- reading ---- */

/* The options that start so, as a list for a message. How many they are. */
static size_t list_options(const char *start, size_t length, char *text, size_t size)
{
	size_t count = 0, used = 0;

	for (size_t i = 0; i < OPTIONS; i++)
		if (!strncmp(options_table[i].name, start, length) && used < size)
			used += snprintf(text + used, size - used, "%s--%s", count++ ? ", " : "",
					 options_table[i].name);
	return count;
}

/* `word` is -x, --xyz or --xyz=value. */
static enum command_status refuse_option(const char *word)
{
	const char *name = word + strspn(word, "-");
	struct suggest suggest = suggest_for_part(name, strcspn(name, "=")), shown;
	char text[SUGGEST_TEXT_BYTES];

	if (!strncmp(word, "--", 2) && list_options(name, suggest.length, text, sizeof(text)) > 1)
		return command_error(STATUS_USAGE, "option '%s' is short for more than one: %s", word, text);
	for (size_t i = 0; i < OPTIONS; i++)
		suggest_offer(&suggest, options_table[i].name);
	shown = suggest;
	if (*suggest.nearest)
		snprintf(shown.nearest, sizeof(shown.nearest), "--%.*s", SUGGEST_WORD_BYTES - 3, suggest.nearest);
	return command_error(STATUS_USAGE, "unknown option '%s'%s", word,
			     suggest_text(&shown, "xdp-cuckoo help", text));
}

/* The word that getopt stumbled over: it has not gone past one that starts with an unknown letter and goes on. */
static const char *unknown_word(char **argv)
{
	const char *last = argv[optind - 1];

	return optopt && !(last[0] == '-' && last[1] == optopt && !last[2]) ? argv[optind] : last;
}

static enum command_status take_option(struct options_arguments *arguments, int option, char **argv)
{
	const int code = option < OPTION_CODE ? optopt : option;
	const struct options_kind *kind = options_table + (code < OPTION_CODE ? 0 : code - OPTION_CODE);

	if (code < OPTION_CODE)
		return refuse_option(unknown_word(argv));
	if (option == ':')
		return command_error(STATUS_USAGE, "'%s' needs a value: --%s %s", argv[optind - 1], kind->name,
				     kind->value);
	if (option < OPTION_CODE)
		return command_error(STATUS_USAGE, "'%s': --%s takes no value", argv[optind - 1], kind->name);
	arguments->given |= 1ULL << (kind - options_table);
	if (kind->take)
		return kind->take(arguments, optarg);
	*(bool *)((char *)&arguments->invocation + kind->member) = true;
	return STATUS_DONE;
}

/* --json is looked for first, so that an error in an option before it is JSON too. */
enum command_status options_read(int argc, char **argv, struct options_arguments *arguments)
{
	struct option options[OPTIONS + 1] = {};
	int option, status = STATUS_DONE;

	for (size_t i = 0; i < OPTIONS; i++)
		options[i] =
			(struct option){ options_table[i].name, options_table[i].value != NULL, NULL, OPTION_CODE + i };
	for (int i = 1; i < argc && strcmp(argv[i], "--"); i++)
		if (!strcmp(argv[i], "--json"))
			output_use_json(true);
	opterr = 0;
	while (status == STATUS_DONE && (option = getopt_long(argc, argv, ":", options, NULL)) != -1)
		status = take_option(arguments, option, argv);
	return status;
}

enum command_status options_check(const struct command *command, const struct options_arguments *arguments)
{
	int count = arguments->invocation.count;

	for (size_t i = 0; i < OPTIONS; i++)
		if (arguments->given & 1ULL << i && !options_are_of(&options_table[i], command))
			return command_error(STATUS_USAGE,
					     "%s does not take that option, --%s; usage: "
					     "xdp-cuckoo %s%s%s",
					     command->name, options_table[i].name, command->name,
					     *command->usage ? " " : "", command->usage);
	if (count < command->min || (command->max >= 0 && count > command->max))
		return command_error(STATUS_USAGE, "%s: too %s words; usage: xdp-cuckoo %s%s%s", command->name,
				     count < command->min ? "few" : "many", command->name, *command->usage ? " " : "",
				     command->usage);
	return STATUS_DONE;
}
