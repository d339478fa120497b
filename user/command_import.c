// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* import: the rules of a list file, in one change. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "command.h"
#include "output.h"
#include "reader.h"

#define BAD_LINES_SHOWN 20
#define LINES_A_PROGRESS 65536

static enum command_status run_import(const struct invocation *invocation);

const struct command command_import = {
	.name = "import",
	.usage = "FILE|-",
	.summary = "add the rules of a list file",
	.help = "One rule, address or prefix a line; # and ; start a comment: FireHOL netset and ipset\n"
	"files and Spamhaus DROP text work as they are. One change: all good lines are durable and\n"
	"active when it returns, or none. Bad lines are named with file and line and left out; then\n"
	"the status is 2.\n"
	"\n"
	"  xdp-cuckoo import firehol_level1.netset\n"
	"  zcat list.gz | xdp-cuckoo import -\n",
	.min = 1,
	.max = 1,
	.run = run_import,
};

struct import {
	struct reader reader;
	__u64 added, already_there, bad;
	struct timespec start;
};

static volatile sig_atomic_t is_interrupted;

static void interrupt(int signal_number)
{
	(void)signal_number;
	is_interrupted = 1;
}

static double seconds_since(const struct timespec *start)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec - start->tv_sec + 1e-9 * (now.tv_nsec - start->tv_nsec);
}

static void report_bad_line(struct import *import, const char *text)
{
	import->bad++;
	if (import->bad <= BAD_LINES_SHOWN)
		command_error(STATUS_USAGE, "%s:%llu: %s", import->reader.name,
			      (unsigned long long)import->reader.number, text);
}

static int import_line(struct apply *apply, struct import *import, struct reason *reason)
{
	struct rule rule;
	struct reason bad;
	int error;

	if (rule_parse(import->reader.line, &rule, &bad)) {
		report_bad_line(import, bad.text);
		return 0;
	}
	error = apply_add(apply, &rule, reason);
	import->added += !error;
	import->already_there += error == -EEXIST;
	return error == -EEXIST ? 0 : error;
}

static void show_progress(const struct import *import)
{
	const struct reader *reader = &import->reader;

	if (reader->number % LINES_A_PROGRESS == 0)
		output_progress("importing", import->added,
				reader->bytes_total ? (double)reader->bytes_read / reader->bytes_total : -1,
				seconds_since(&import->start));
}

static int import_lines(struct apply *apply, void *context, struct reason *reason)
{
	struct import *import = context;
	int got;

	while ((got = reader_next(&import->reader))) {
		int error = 0;

		if (is_interrupted)
			return reason_set(reason, -EINTR, "interrupted: nothing was changed");
		if (got == -EILSEQ)
			report_bad_line(import, "a NUL byte; this is not a text file");
		else if (got < 0)
			return reason_set(reason, got, "cannot read %s", import->reader.name);
		else
			error = import_line(apply, import, reason);
		if (error)
			return error;
		show_progress(import);
	}
	return 0;
}

static json_t *import_answer(struct apply *apply, const struct import *import)
{
	double seconds = seconds_since(&import->start);
	struct store_info info = {};

	store_info(apply->store, &info);
	return json_pack("{s:I, s:I, s:I, s:I, s:f, s:I}", "added", (json_int_t)import->added,
			 "already_there", (json_int_t)import->already_there, "bad_lines",
			 (json_int_t)import->bad, "rules", (json_int_t)info.rules, "seconds", seconds,
			 "rules_per_second", (json_int_t)(import->added / seconds));
}

/*
 * Ctrl-C asks for an orderly end: store and table go back to what they were. Without SA_RESTART, so
 * that it also ends waiting for input.
 */
static void catch_interrupts(void)
{
	const struct sigaction action = { .sa_handler = interrupt };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

static enum command_status run_import(const struct invocation *invocation)
{
	const char *path = invocation->operands[0];
	struct import import = {};
	struct apply apply;
	struct reason reason;
	int error = reader_open(&import.reader, path);

	if (error)
		return command_error(STATUS_SYSTEM, "cannot read '%s': %s", path, strerror(-error));
	clock_gettime(CLOCK_MONOTONIC, &import.start);
	error = apply_open(&apply, invocation->state, invocation->name, &reason);
	if (!error) {
		command_report_targets(&apply);
		catch_interrupts();
		error = apply_change(&apply, import_lines, &import, &reason);
	}
	output_progress_end();
	if (!error && import.bad > BAD_LINES_SHOWN)
		command_error(STATUS_USAGE, "%s: %llu more bad lines", import.reader.name,
			      (unsigned long long)import.bad - BAD_LINES_SHOWN);
	if (!error) {
		command_report_rebuilds(&apply);
		output_print(import_answer(&apply, &import));
	}
	apply_close(&apply);
	reader_close(&import.reader);
	if (error)
		return command_failed(error, &reason);
	return import.bad ? STATUS_USAGE : STATUS_DONE;
}
