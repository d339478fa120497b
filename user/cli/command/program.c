// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What main() of each program does: it reads the command line, finds the command, gives up privileges, and runs it. The
 * tool starts the program that has the command.
 */
#include "command/command.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command/options.h"
#include "io/output.h"
#include "io/signals.h"
#include "base/privileges.h"
#include "base/version.h"
#include "base/waiting.h"
#include "change/change.h"

#define STARTED_BY "XDP_CUCKOO_STARTED_BY" /* in the environment: the version of the tool that starts a program */

const struct program *program;
static char **words_of_main; /* as they were given: options_read() moves the options */

static const struct {
	const char *name, *package;
} programs[PROGRAMS] = {
	[PROGRAM_TOOL] = { "xdp-cuckoo", "xdp-cuckoo" },
	[PROGRAM_WATCH] = { "xdp-cuckoo-watch", "xdp-cuckoo" },
	[PROGRAM_FEED] = { "xdp-cuckoo-feed", "xdp-cuckoo-feed" },
	[PROGRAM_FLEET] = { "xdp-cuckoo-fleet", "xdp-cuckoo-fleet" },
	[PROGRAM_EXPORTER] = { "xdp-cuckoo-exporter", "xdp-cuckoo-exporter" },
	[PROGRAM_BENCH] = { "xdp-cuckoo-bench", "xdp-cuckoo" },
};

/* ---- other programs ---- */

extern const struct command command_help, command_version, command_complete;

const struct command *program_command(const struct command_row *row)
{
	static const struct command *const common[] = { &command_help, &command_complete, NULL };
	const struct command *const *const tables[] = { program->commands, common };

	for (size_t i = 0; i < 2; i++)
		for (const struct command *const *command = tables[i]; *command; command++)
			if (!strcmp((*command)->name, row->name))
				return *command;
	return NULL;
}

/*
 * The folder that has the program: this program's own, where a build puts it, else where `make install` does; PREFIX may be
 * moved as a whole. It must belong to root or to the owner of this program's folder, who can replace this program, too; and
 * not everybody may write it. -1: there is none.
 */
static int open_folder(const char *name)
{
	static const char *const folders[] = { "/", "/../libexec/xdp-cuckoo/", LIBEXECDIR "/xdp-cuckoo/" };
	char self[PATH_MAX], path[PATH_MAX];
	const ssize_t length = readlink("/proc/self/exe", self, sizeof(self));
	const char *slash = length > 0 ? memrchr(self, '/', length) : NULL;
	struct stat own = {}, folder;

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		const int used = i < 2 && slash ? (int)(slash - self) : 0;
		int fd;

		snprintf(path, sizeof(path), "%.*s%s", used, self, folders[i]);
		fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0 && !fstat(fd, &folder)) {
			own = i ? own : folder;
			if (!(folder.st_mode & S_IWOTH) && (!folder.st_uid || folder.st_uid == own.st_uid) &&
			    !faccessat(fd, name, F_OK, 0))
				return fd;
		}
		if (fd >= 0)
			close(fd);
	}
	return -1;
}

/* Starts the program, in the folder that was looked at. Returns only after an error: errno says which. */
static void execute(enum program_number number, char *const *words)
{
	const int folder = open_folder(programs[number].name);

	errno = ENOENT;
	if (folder < 0)
		return;
	setenv(STARTED_BY, VERSION, 1);
	errno = -privileges_pass_on();
	if (!errno)
		execveat(folder, programs[number].name, words, environ, 0);
}

enum command_status program_start(const struct command_row *row, char *const *words)
{
	const char *name = programs[row->program].name;

	if (program->number != PROGRAM_TOOL)
		return command_fail(STATUS_USAGE, "%s has no command %s; write: xdp-cuckoo %s",
				    programs[program->number].name, row->name, row->name);
	output_flush();
	execute(row->program, words ? words : words_of_main);
	if (errno == ENOENT)
		return command_fail(STATUS_SYSTEM,
				    "%s is done by the program %s, which is not installed: install the package %s",
				    row->name, name, programs[row->program].package);
	return command_fail(STATUS_SYSTEM, "cannot start %s for the command %s: %s", name, row->name, strerror(errno));
}

json_t *program_help(enum program_number number)
{
	char *const words[] = { (char *)"xdp-cuckoo", (char *)"help", (char *)"--json", NULL };
	json_t *help;
	int pipes[2];
	FILE *from;
	pid_t child;

	if (pipe2(pipes, O_CLOEXEC))
		return NULL;
	child = fork();
	if (!child) {
		dup2(pipes[1], STDOUT_FILENO);
		execute(number, words);
		_exit(STATUS_SYSTEM);
	}
	close(pipes[1]);
	from = fdopen(pipes[0], "r");
	help = from && child > 0 ? json_loadf(from, 0, NULL) : NULL;
	if (from)
		fclose(from);
	if (child > 0)
		waitpid(child, NULL, 0);
	return help;
}

/* ---- this program ---- */

/* `import < FILE` is `import - < FILE`. Not with --force: if $FILE is empty, `import $FILE --force` must do nothing. */
static bool means_input(const struct command *command, const struct invocation *invocation)
{
	struct stat input;

	return !strncmp(command->usage, "FILE", 4) && strstr(command->usage, "|-") && !invocation->count &&
	       !invocation->is_forced && !fstat(STDIN_FILENO, &input) &&
	       (S_ISREG(input.st_mode) || S_ISFIFO(input.st_mode));
}

/* Puts the word of an alias before the operands: `allow A` is `add pass A`; or gives its option. 0; -ENOMEM. */
static int put_alias_word(struct options_arguments *arguments, const char *word)
{
	struct invocation *invocation = &arguments->invocation;
	static char **longer; /* the process needs it until it ends */

	if (*word == '-') {
		options_give(arguments, word + 2);
		invocation->is_named = true; /* `down` takes off one filter, as --name NAME unload --all does */
		return 0;
	}
	longer = calloc(invocation->count + 1, sizeof(*longer));
	if (!longer)
		return -ENOMEM;
	longer[0] = (char *)word;
	memcpy(longer + 1, invocation->operands, invocation->count * sizeof(*longer));
	invocation->operands = longer;
	invocation->count++;
	return 0;
}

/* The command that runs for these words: help for --help, and version. NULL: another program has it. */
static const struct command *choose(struct options_arguments *arguments, const struct command_row *row,
				    const char *word)
{
	struct invocation *invocation = &arguments->invocation;
	const char *before = word ? command_alias_word(word) : NULL;

	if (arguments->wants_version || (!word && invocation->is_verbose)) {
		invocation->count = 0;
		arguments->given = 0;
		return &command_version;
	}
	if (before && !strcmp(before, "--version") && !arguments->wants_help)
		return &command_version;
	if (arguments->wants_help && word && program_command(row)) {
		/* Of `rules --help`, the command, not the topic. */
		invocation->operands = (char *const *)&row->name;
		invocation->count = 1;
		arguments->given = 0;
		return program_command(command_find("help"));
	}
	return program_command(row);
}

static enum command_status run(struct options_arguments *arguments, int count, char *const *words)
{
	static char *const standard_input[] = { (char *)"-" };
	struct invocation *invocation = &arguments->invocation;
	const struct command_row *row = command_find(count ? words[0] : "help");
	const struct command *command;
	enum command_status status;
	int error;

	if (!row)
		return command_fail_unknown(words[0]);
	invocation->operands = count ? words + 1 : words;
	invocation->count = count ? count - 1 : 0;
	command = choose(arguments, row, count ? words[0] : NULL);
	if (!command)
		return program_start(row, NULL);
	if (arguments->wants_quiet)
		output_be_quiet();
	if (!strcmp(command->name, row->name) && count && command_alias_word(words[0]) &&
	    put_alias_word(arguments, command_alias_word(words[0])))
		return command_fail(STATUS_FULL, "no memory for the words of the command");
	if (!count && !strcmp(command->name, "help") && !arguments->wants_help) {
		command->run(invocation);
		return STATUS_USAGE;
	}
	if (means_input(command, invocation)) {
		invocation->operands = standard_input;
		invocation->count = 1;
	}
	status = options_check(command, arguments);
	if (status != STATUS_DONE)
		return status;
	error = privileges_keep(
		command->needs |
		(count > 1 && command->starts && !strcmp(words[1], command->starts) ? PRIVILEGE_CHILD : 0));
	if (error)
		return command_fail(STATUS_SYSTEM, "cannot give up unneeded capabilities: %s", strerror(-error));
	return command->run(invocation);
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

static bool is_unwatched;

static void watch(const struct watchdog *watchdog)
{
	const struct invocation of = { .name = watchdog->name, .state = watchdog->state };
	struct reason reason;
	int error = watchdog_start(watchdog, &reason);

	is_unwatched |= error;
	if (error)
		command_fail_because(error, &reason);
	if (error || watchdog_left(watchdog->deadline_ms) <= 0)
		return;
	output_note("a change from before this filter was loaded still waits for confirm");
	command_report_confirm(&of, watchdog->deadline_ms);
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

/* If descriptor 0, 1 or 2 is closed, the store would get its number, and output would go into the store. */
static enum command_status fill_standard_files(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd < 0)
		return command_fail(STATUS_SYSTEM,
				    "cannot open /dev/null: %s; raise the limit of open files, or create that device",
				    strerror(errno));
	close(fd);
	return STATUS_DONE;
}

/* Keeps the words of main(), and sees that the tool which has started this program is of the same version. */
static enum command_status check_start(int argc, char **argv)
{
	const char *tool = secure_getenv(STARTED_BY);

	words_of_main = calloc(argc + 1, sizeof(*words_of_main));
	if (!words_of_main)
		return command_fail(STATUS_FULL, "no memory for the words of the command");
	memcpy(words_of_main, argv, argc * sizeof(*words_of_main));
	if (tool && strcmp(tool, VERSION))
		return command_fail(STATUS_SYSTEM,
				    "%s has version " VERSION ", and xdp-cuckoo %s: install packages of one version",
				    programs[program->number].name, tool);
	unsetenv(STARTED_BY);
	return STATUS_DONE;
}

int program_run(int argc, char **argv, const struct program *running)
{
	const struct sigaction on_bus_error = { .sa_handler = bus_error }, ignore = { .sa_handler = SIG_IGN };
	struct options_arguments arguments = { .invocation = { .name = SESSION_NAME_DEFAULT } };
	static char name[128]; /* of the process */
	size_t used = 0;
	int status, error;

	program = running;
	change_hold_signals = hold_signals;
	watchdog_wanted = watch;
	status = fill_standard_files();
	if (status == STATUS_DONE)
		status = check_start(argc, argv);
	if (status != STATUS_DONE)
		return status;
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
		if (is_unwatched && status == STATUS_DONE)
			status = STATUS_SYSTEM;
	}
	/* If the result cannot be written, the command has failed. */
	error = output_end();
	if (error)
		return command_fail(STATUS_SYSTEM, "cannot write the output: %s", reason_of_write(error));
	return status;
}
