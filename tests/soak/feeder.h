/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A `batch -` that stays open: lines into a pipe, an answer read for each, as fail2ban and others use it. */
#ifndef XDP_CUCKOO_SOAK_FEEDER_H
#define XDP_CUCKOO_SOAK_FEEDER_H

#include <fcntl.h>

#include "changes.h"

#define FEEDER_LINES_MAX 20 /* at once; fewer than a pipe holds */

struct feeder {
	pid_t pid;
	int errors; /* what it writes to standard error */
	FILE *lines, *answers;
};

static inline void feeder_open(struct feeder *feeder, const struct tool_place *place)
{
	int lines[2], answers[2];

	if (pipe2(lines, O_CLOEXEC) || pipe2(answers, O_CLOEXEC))
		tool_die("pipe");
	feeder->errors = tool_file(NULL);
	feeder->pid = tool_spawn(place, (const char *[]){ "batch", "-", NULL },
				 (const int[3]){ lines[0], answers[1], feeder->errors });
	close(lines[0]);
	close(answers[1]);
	feeder->lines = fdopen(lines[1], "w");
	feeder->answers = fdopen(answers[0], "r");
	if (!feeder->lines || !feeder->answers)
		tool_die("pipe");
}

/* Lines of the changer's units, and the answer to each. */
static inline void feeder_next(struct feeder *feeder, struct changer *changer)
{
	struct tool_run run = { .err = "" };
	struct tool_text lines = { 0 }, answers = { 0 };
	char line[JOURNAL_LINE_BYTES];

	changes_choose(changer, 1 + changes_below(changer, FEEDER_LINES_MAX));
	changes_print(changer, &lines);
	changes_begin(changer);
	run.begin_ns = model_now_ns();
	fwrite(lines.bytes, 1, lines.length, feeder->lines);
	fflush(feeder->lines);
	for (size_t i = 0; i < changer->count && fgets(line, sizeof(line), feeder->answers); i++)
		tool_print(&answers, "%s", line);
	run.end_ns = model_now_ns();
	run.out = answers.bytes;
	changes_count_run(changer, &run);
	changes_take_lines(changer, &run);
	changes_settle(changer);
	free(lines.bytes);
	free(answers.bytes);
}

/* Ends its input, and waits for it. */
static inline void feeder_close(struct feeder *feeder, struct changer *changer)
{
	struct tool_run run = { 0 };
	int status;

	fclose(feeder->lines);
	if (waitpid(feeder->pid, &status, 0) < 0)
		tool_die("waitpid");
	run.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	fclose(feeder->answers);
	run.out = strdup("");
	run.err = tool_read(feeder->errors);
	if (run.status < 0 || run.status > 1)
		changes_failed(changer, "batch -", &run);
	tool_done(&run);
}

#endif
