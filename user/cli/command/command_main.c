// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reads the command line, finds the command, gives up privileges, and runs it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command/command.h"
#include "command/options.h"
#include "io/output.h"
#include "io/signals.h"
#include "base/privileges.h"
#include "base/waiting.h"
#include "change/change.h"

/* `import < FILE` is `import - < FILE`. Not with --force: if $FILE is empty, `import $FILE --force` must do nothing. */
static bool means_input(const struct command *command, const struct invocation *invocation)
{
	struct stat input;

	return !strncmp(command->usage, "FILE", 4) && strstr(command->usage, "|-") && !invocation->count &&
	       !invocation->is_forced && !fstat(STDIN_FILENO, &input) &&
	       (S_ISREG(input.st_mode) || S_ISFIFO(input.st_mode));
}

static enum command_status run(struct options_arguments *arguments, int count, char *const *words)
{
	static char *const standard_input[] = { (char *)"-" };
	const struct command *command = command_find(count ? words[0] : "help");
	enum command_status status;
	int error;

	if (!command)
		return command_fail_unknown(words[0]);
	arguments->invocation.operands = count ? words + 1 : words;
	arguments->invocation.count = count ? count - 1 : 0;
	if (count && !arguments->wants_help && command_alias_word(words[0])) {
		static char **longer; /* the process needs it until it ends */

		longer = calloc(count + 1, sizeof(*longer));
		if (!longer)
			return command_fail(STATUS_FULL, "no memory for the words of the command");
		longer[0] = (char *)command_alias_word(words[0]);
		memcpy(longer + 1, words + 1, (count - 1) * sizeof(*longer));
		arguments->invocation.operands = longer;
		arguments->invocation.count = count;
	}
	if (arguments->wants_help && count) {
		/* Of `rules --help`, the command, not the topic. */
		arguments->invocation.operands = (char *const *)&command->name;
		arguments->invocation.count = 1;
		arguments->given = 0;
		command = command_find("help");
	}
	if (arguments->wants_version || (!count && arguments->invocation.is_verbose)) {
		arguments->invocation.count = 0;
		arguments->given = 0;
		command = command_find("version");
	} else if (!count && !arguments->wants_help) {
		command->run(&arguments->invocation);
		return STATUS_USAGE;
	}
	if (means_input(command, &arguments->invocation)) {
		arguments->invocation.operands = standard_input;
		arguments->invocation.count = 1;
	}
	status = options_check(command, arguments);
	if (status != STATUS_DONE)
		return status;
	error = privileges_keep(command->needs);
	if (error)
		return command_fail(STATUS_SYSTEM, "cannot give up unneeded capabilities: %s", strerror(-error));
	return command->run(&arguments->invocation);
}

#define BUS_ERROR "cannot read the store: " REASON_DAMAGED
#define BUG "; if xdp-cuckoo check says that the store is right, this is a bug: please report it"

/*
 * LMDB maps its file as memory and trusts it. So a failed read comes as SIGBUS, not as an error, and a damaged page may
 * lead LMDB to an address that does not exist: SIGSEGV. That signal may also be a bug of this tool.
 */
__attribute__((noreturn)) static void bus_error(int signal_number)
{
	static const char *const text[][2] = {
		{ "xdp-cuckoo: " BUS_ERROR "\n", "{\"error\": \"" BUS_ERROR "\", \"status\": 3}\n" },
		{ "xdp-cuckoo: " BUS_ERROR BUG "\n", "{\"error\": \"" BUS_ERROR BUG "\", \"status\": 3}\n" },
	};
	const char *const said = text[signal_number == SIGSEGV][output_is_json()];
	const ssize_t ignored = write(STDERR_FILENO, said, strlen(said));

	(void)ignored;
	_exit(STATUS_SYSTEM);
}

static void warn_waiting(const char *text)
{
	output_warning("%s", text);
}

/* An undo after a failed change is a change within a change. */
static void hold_signals(bool is_held)
{
	static unsigned int depth;
	static sigset_t before;
	sigset_t ending;

	if (is_held ? depth++ : --depth)
		return;
	sigemptyset(&ending);
	sigaddset(&ending, SIGINT);
	sigaddset(&ending, SIGTERM);
	sigaddset(&ending, SIGHUP);
	sigaddset(&ending, SIGQUIT);
	sigprocmask(is_held ? SIG_BLOCK : SIG_SETMASK, is_held ? &ending : &before, is_held ? &before : NULL);
}

int main(int argc, char **argv)
{
	const struct sigaction on_bus_error = { .sa_handler = bus_error }, ignore = { .sa_handler = SIG_IGN };
	struct options_arguments arguments = { .invocation = { .name = SESSION_NAME_DEFAULT } };
	static char name[128]; /* of the process */
	size_t used = 0;
	int status, error, fd;

	change_hold_signals = hold_signals;
	/* If descriptor 0, 1 or 2 is closed, the store would get its number, and output would go into the store. */
	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd < 0)
		return command_fail(STATUS_SYSTEM,
				    "cannot open /dev/null: %s; raise the limit of open files, or create that device",
				    strerror(errno));
	close(fd);
	status = privileges_gain_none();
	if (status)
		return command_fail(STATUS_SYSTEM, "cannot set no_new_privs: %s", strerror(-status));
	sigaction(SIGBUS, &on_bus_error, NULL);
	sigaction(SIGSEGV, &on_bus_error, NULL);
	sigaction(SIGXFSZ, &ignore, NULL); /* a write beyond RLIMIT_FSIZE then fails with EFBIG */
	status = options_read(argc, argv, &arguments);
	if (status == STATUS_DONE) {
		/* Other processes that wait for this one show its name: the words of the command, cut to fit. */
		for (int i = optind; i < argc && used < sizeof(name); i++)
			used += snprintf(name + used, sizeof(name) - used, "%s%s", i > optind ? " " : "", argv[i]);
		if (used)
			waiting_be_called(name);
		waiting_timer_tell(warn_waiting);
		status = run(&arguments, argc - optind, argv + optind);
	}
	/* If the result cannot be written, the command has failed. */
	error = output_end();
	if (error)
		return command_fail(STATUS_SYSTEM, "cannot write the output: %s", reason_of_write(error));
	return status;
}
