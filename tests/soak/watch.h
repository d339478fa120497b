/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Readers beside writers: what list, export, stats and status print is one whole state, always. */
#ifndef XDP_CUCKOO_SOAK_WATCH_H
#define XDP_CUCKOO_SOAK_WATCH_H

#include <jansson.h>

#include "course.h"

struct watch {
	struct changer *changer; /* a name, a journal, a tally; no units */
	_Atomic bool is_stopping;
	_Atomic uint64_t looks;
	uint64_t program, programs; /* the last one seen to run, and how many */
};

/* One group or the other, and all of it. */
static inline void watch_groups(struct watch *watch, const char *out)
{
	char pattern[32];
	uint64_t found[2];

	for (int group = 0; group < 2; group++) {
		snprintf(pattern, sizeof(pattern), "src 3%d.0.0.", group);
		found[group] = changes_count_text(out, pattern);
	}
	if (found[0] + found[1] != COURSE_GROUP || (found[0] && found[1]))
		journal_wrong(watch->changer->journal, "%s lists %lu of one group and %lu of the other",
			      watch->changer->name, found[0], found[1]);
}

static inline void watch_json(struct watch *watch, const char *command, const char *out)
{
	json_t *value = json_loads(out, 0, NULL);

	if (!value)
		journal_wrong(watch->changer->journal, "%s: %s --json is no JSON", watch->changer->name, command);
	json_decref(value);
}

/* Of those that run between two looks, one is seen. */
static inline void watch_program(struct watch *watch, const char *out)
{
	const char *found = strstr(out, "\"program\": ");
	const uint64_t program = found ? strtoull(found + strlen("\"program\": "), NULL, 10) : 0;

	watch->programs += program && program != watch->program;
	watch->program = program;
}

/* `stats` has status 1 where no filter runs, and `status` in a panic, and until the undo of a change whose time is over. */
static inline void watch_look(struct watch *watch, const char *command, bool is_json)
{
	struct changer *changer = watch->changer;
	struct tool_run run;
	bool is_told;

	tool_run(changer->place, (const char *[]){ command, is_json ? "--json" : NULL, NULL }, NULL, 0, &run);
	changes_count_run(changer, &run);
	is_told = run.status == 1 && !strcmp(command, "status") &&
		  (strstr(run.out, "PANIC: ") || strstr(run.err, "is not undone yet"));
	if (run.status > 1 || (run.status == 1 && !is_told && strcmp(command, "stats") != 0))
		changes_failed(changer, command, &run);
	else if (is_json && (run.status == 0 || is_told))
		watch_json(watch, command, run.out);
	if ((run.status == 0 || is_told) && !strcmp(command, "status"))
		watch_program(watch, run.out);
	if (run.status == 0 && (!strcmp(command, "list") || !strcmp(command, "export")))
		watch_groups(watch, run.out);
	tool_done(&run);
}

/* One command after the other. */
static inline void watch_next(struct watch *watch)
{
	static const struct {
		const char *command;
		bool is_json;
	} looks[] = { { "list", true }, { "stats", true }, { "export", false }, { "status", true } };
	const size_t look = watch->looks++ % (sizeof(looks) / sizeof(looks[0]));

	watch_look(watch, looks[look].command, looks[look].is_json);
}

/* The thread: until it is to stop. */
static inline void *watch_on(void *context)
{
	const struct timespec pause = { .tv_nsec = 20000000 };
	struct watch *watch = context;

	while (!atomic_load(&watch->is_stopping)) {
		watch_next(watch);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

#endif
