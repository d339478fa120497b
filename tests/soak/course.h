/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The course of a soak: what is done to the filter as a whole, step after step, over and over, while changers
 * change rules between the steps or during them. Steps that change how all packets fare, or compare all rules
 * with the model, have the filter for themselves: the changers wait.
 */
#ifndef XDP_CUCKOO_SOAK_COURSE_H
#define XDP_CUCKOO_SOAK_COURSE_H

#include "changes.h"

#define COURSE_DWELL_NS 200000000ULL /* at most, after a step */
#define COURSE_GROUP 40              /* rules that are all there, or all those of the other group */
#define COURSE_IFACE "vrx"
#define COURSE_NUMBER_BYTES 24
#define COURSE_STATUS_FULL 4

struct course {
	struct changer changer; /* its units: none */
	pthread_rwlock_t *lock; /* held shared for a change of rules */
	uint32_t fillers, fillers_most;
	unsigned int group; /* 0 or 1: the group that is stored */
	unsigned int loads, confirms;
	_Atomic uint64_t steps, verified;
};

/* ---- steps for themselves ---- */

static inline void course_lock(struct course *course)
{
	pthread_rwlock_wrlock(course->lock);
}

static inline void course_unlock(struct course *course)
{
	pthread_rwlock_unlock(course->lock);
}

/* Again and again, killed at random, until it ends by itself: with status 0, or `other` after a kill. */
static inline void course_run(struct course *course, const char *const *words, const struct tool_text *input,
			      uint64_t usual_ns, int other)
{
	struct tool_run run = { .status = -1 };
	bool was_killed = false;

	while (run.status < 0) {
		changes_run(&course->changer, words, input, changes_kill_after(&course->changer, usual_ns), &run);
		if (run.status > 0 && !(was_killed && run.status == other))
			changes_failed(&course->changer, words[0], &run);
		was_killed = true;
		tool_done(&run);
	}
}

/* ---- rules beyond the model's units ---- */

static inline void course_print_fillers(struct tool_text *list, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		tool_print(list, "src 100.%u.%u.%u\n", 64 + i / 65536, i / 256 % 256, i % 256);
}

static inline void course_print_group(struct tool_text *list, unsigned int group, const char *verb)
{
	for (unsigned int i = 0; i < COURSE_GROUP; i++)
		tool_print(list, "%ssrc 3%u.0.0.%u\n", verb, group, i + 1);
}

/* A list that the table grows for, perhaps more than once while it is read. */
static inline void course_grow(struct course *course)
{
	const uint32_t size = course->fillers_most >> changes_below(&course->changer, 4);
	struct tool_text list = { 0 };

	if (size > course->fillers)
		course->fillers = size;
	course_print_fillers(&list, course->fillers);
	course_run(course, (const char *[]){ "import", "-", NULL }, &list, 400000000, 0);
	free(list.bytes);
}

/* What may be stored now, and up to so many keys more. Joined prefix lengths take more keys than rules. */
static inline void course_print_capacity(struct course *course, uint64_t more, char capacity[COURSE_NUMBER_BYTES])
{
	const uint64_t least = course->fillers + 8 * course->changer.model->units + COURSE_GROUP;

	snprintf(capacity, COURSE_NUMBER_BYTES, "%lu", least + changes_below(&course->changer, more));
}

static inline void course_resize(struct course *course)
{
	char capacity[COURSE_NUMBER_BYTES];

	course_print_capacity(course, changes_percent(&course->changer, 50) ? 1000 : 60000, capacity);
	course_run(course, (const char *[]){ "resize", capacity, NULL }, NULL, 400000000, 0);
}

/* A table that is full, or nearly: adds move entries, and soon outgrow it. What came meanwhile may not fit. */
static inline void course_squeeze(struct course *course)
{
	static const char used[] = "\"used_slots\": ";
	char capacity[COURSE_NUMBER_BYTES];
	const char *found;
	struct tool_run run;

	changes_run(&course->changer, (const char *[]){ "status", "--json", NULL }, NULL, 0, &run);
	found = strstr(run.out, used);
	if (run.status || !found)
		changes_failed(&course->changer, "status", &run);
	snprintf(capacity, sizeof(capacity), "%lu", 1 + (found ? strtoul(found + strlen(used), NULL, 10) : 0));
	tool_done(&run);
	changes_run(&course->changer, (const char *[]){ "resize", capacity, NULL }, NULL,
		    changes_kill_after(&course->changer, 400000000), &run);
	if (run.status > 0 && run.status != COURSE_STATUS_FULL)
		changes_failed(&course->changer, "resize", &run);
	tool_done(&run);
}

/* The other group in the place of the one: readers see one of the two. */
static inline void course_flip(struct course *course)
{
	struct tool_text lines = { 0 };

	course_print_group(&lines, course->group, "del ");
	course_print_group(&lines, !course->group, "add ");
	course_run(course, (const char *[]){ "batch", "-", "--strict", NULL }, &lines, 30000000, 1);
	course->group = !course->group;
	free(lines.bytes);
}

/* ---- import --replace ---- */

static inline bool course_changes_in_replace(struct course *course, const struct model_rule *rule)
{
	return rule->presence == MODEL_UNKNOWN || rule->is_timed || changes_percent(&course->changer, 5);
}

/* A rule that has ended may stay stored until `expire`. */
static inline struct model_rule course_other_way(const struct model_rule *rule)
{
	const bool is_there = rule->presence == MODEL_PRESENT;

	return (struct model_rule){
		.presence = is_there ? MODEL_ABSENT : MODEL_PRESENT,
		.is_timed = is_there && rule->is_timed,
	};
}

/* Names what is to be; `is_changing` says of which units more than that is to be known. */
static inline void course_plan_replace(struct course *course, struct tool_text *list, bool *is_changing)
{
	struct model *model = course->changer.model;
	struct model_rule wanted[MODEL_RULES];
	char text[MODEL_TEXT_BYTES];

	for (uint32_t unit = 0; unit < model->units; unit++) {
		memcpy(wanted, model->unit[unit].rule, sizeof(wanted));
		for (int rule = 0; rule < MODEL_RULES && model_rule_text(unit, rule, text); rule++) {
			if (course_changes_in_replace(course, &wanted[rule])) {
				is_changing[unit] = true;
				wanted[rule] = course_other_way(&wanted[rule]);
			}
			if (wanted[rule].presence == MODEL_PRESENT)
				tool_print(list, "%s\n", text);
		}
		if (is_changing[unit]) {
			model_begin(&model->unit[unit].epoch);
			memcpy(model->unit[unit].rule, wanted, sizeof(wanted));
		}
	}
}

/* Every rule in one change: what it does not change keeps its verdict at every moment. */
static inline void course_replace_by(struct course *course, const char *const *words)
{
	struct model *model = course->changer.model;
	bool *is_changing = calloc(model->units, sizeof(*is_changing));
	struct tool_text list = { 0 };

	if (!is_changing)
		tool_die("memory");
	course_plan_replace(course, &list, is_changing);
	course_print_fillers(&list, course->fillers);
	course_print_group(&list, course->group, "");
	course_run(course, words, &list, 500000000, 0);
	for (uint32_t unit = 0; unit < model->units; unit++)
		if (is_changing[unit])
			model_settle(&model->unit[unit].epoch);
	free(is_changing);
	free(list.bytes);
}

static inline void course_replace(struct course *course)
{
	course_lock(course);
	if (changes_percent(&course->changer, 60))
		course->fillers = (uint32_t)changes_below(&course->changer, 1 + course->fillers_most / 32);
	course_replace_by(course, (const char *[]){ "import", "-", "--replace", NULL });
	course_unlock(course);
}

/* ---- import --replace --confirm: by a command that is not killed, since one that was would find itself waiting ---- */

static inline void course_keep_replace(struct course *course)
{
	course_replace_by(course, (const char *[]){ "import", "-", "--replace", "--confirm", "1h", NULL });
	course_run(course, (const char *[]){ "confirm", NULL }, NULL, 0, 0);
}

/* Too late to confirm: whoever comes first undoes it, and every rule is as it was. Until then everything may pass. */
static inline void course_undo_replace(struct course *course)
{
	const struct timespec late = { 1, 300000000 };
	struct model *model = course->changer.model;
	struct model_rule(*before)[MODEL_RULES] = calloc(model->units, sizeof(*before));
	struct tool_run run;

	if (!before)
		tool_die("memory");
	for (uint32_t unit = 0; unit < model->units; unit++)
		memcpy(before[unit], model->unit[unit].rule, sizeof(*before));
	model_begin(&model->run.epoch);
	course_replace_by(course, (const char *[]){ "import", "-", "--replace", "--confirm", "1s", NULL });
	nanosleep(&late, NULL);
	changes_run(&course->changer, (const char *[]){ "confirm", NULL }, NULL, 0, &run);
	if (run.status != 1)
		changes_failed(&course->changer, "confirm", &run);
	tool_done(&run);
	for (uint32_t unit = 0; unit < model->units; unit++)
		model_set(&model->unit[unit], before[unit]);
	model_settle(&model->run.epoch);
	free(before);
}

static inline void course_confirm(struct course *course)
{
	const unsigned int kill_percent = course->changer.kill_percent;

	course_lock(course);
	course->changer.kill_percent = 0;
	if (course->confirms++ % 2)
		course_keep_replace(course);
	else
		course_undo_replace(course);
	course->changer.kill_percent = kill_percent;
	course_unlock(course);
}

/* ---- how the filter runs ---- */

static inline void course_set(struct course *course, const char *const *words, bool *member, bool value)
{
	struct model_run *run = &course->changer.model->run;

	course_lock(course);
	model_begin(&run->epoch);
	course_run(course, words, NULL, 15000000, 1);
	*member = value;
	model_settle(&run->epoch);
	course_unlock(course);
}

static inline void course_monitor(struct course *course)
{
	bool *is_on = &course->changer.model->run.is_monitor_only;

	course_set(course, (const char *[]){ "monitor-only", *is_on ? "off" : "on", NULL }, is_on, !*is_on);
}

static inline void course_panic(struct course *course)
{
	bool *is_on = &course->changer.model->run.is_panicking;

	course_set(course, (const char *[]){ "panic", *is_on ? "off" : NULL, NULL }, is_on, !*is_on);
}

/* One policy after the other; each is set back the next time but one. */
static inline void course_policy(struct course *course)
{
	const uint64_t policy = changes_below(&course->changer, MODEL_POLICIES);
	bool *drops = &course->changer.model->run.drops[policy];

	course_set(course,
		   (const char *[]){ "policy", model_policy_words[policy], *drops ? "pass" : "drop", "--force", NULL },
		   drops, !*drops);
}

static inline void course_unload(struct course *course)
{
	course_set(course, (const char *[]){ "unload", COURSE_IFACE, NULL }, &course->changer.model->run.is_loaded,
		   false);
}

/*
 * Exact with counters and without, and compact; in the driver and behind it. A compact table of narrower fingerprints
 * would now and then drop what no rule is about.
 */
static inline void course_load_with(struct course *course, const char *capacity)
{
	struct model_run *run = &course->changer.model->run;
	const unsigned int load = course->loads++;
	const bool is_compact = load % 3 == 1;
	const char *const words[] = { "load",
				      COURSE_IFACE,
				      "--mode",
				      load % 4 == 3 ? "skb" : "native",
				      "--capacity",
				      capacity,
				      is_compact ? "--fingerprint=32" :
				      load % 3   ? "--no-counters" :
						   NULL,
				      is_compact ? "--compact" : NULL,
				      NULL };

	run->ends_by_tool = is_compact;
	course_set(course, words, &run->is_loaded, true);
}

static inline void course_load(struct course *course)
{
	char capacity[COURSE_NUMBER_BYTES];

	course_print_capacity(course, 1000, capacity);
	course_load_with(course, capacity);
}

/* ---- against the model ---- */

static int course_compare_lines(const void *left, const void *right)
{
	return strcmp(*(char *const *)left, *(char *const *)right);
}

/* The lines of `text`, without timeouts, sorted; *count of them. */
static inline char **course_lines(char *text, size_t *count)
{
	char **lines = calloc(changes_count_text(text, "\n") + 1, sizeof(*lines)), *line;

	if (!lines)
		tool_die("memory");
	*count = 0;
	while ((line = tool_line(&text))) {
		char *timeout = strstr(line, " timeout ");

		if (timeout)
			*timeout = '\0';
		lines[(*count)++] = line;
	}
	qsort(lines, *count, sizeof(*lines), course_compare_lines);
	return lines;
}

/* How many of the model's rules are listed; says where one is and must not be, or is not and must. */
static inline size_t course_compare_units(struct course *course, char *const *lines, size_t count,
					  const struct tool_run *run)
{
	const struct model *model = course->changer.model;
	char text[MODEL_TEXT_BYTES], *key = text;
	size_t listed = 0;

	for (uint32_t unit = 0; unit < model->units; unit++) {
		for (int rule = 0; rule < MODEL_RULES && model_rule_text(unit, rule, text); rule++) {
			const enum model_presence presence =
				model_presence_between(&model->unit[unit].rule[rule], run->begin_ns, run->end_ns);
			const bool is_listed = bsearch(&key, lines, count, sizeof(*lines), course_compare_lines);

			listed += is_listed;
			if (presence != MODEL_UNKNOWN && is_listed != (presence == MODEL_PRESENT))
				journal_wrong(course->changer.journal, "%s: %s", text,
					      is_listed ? "is listed" : "is not listed");
		}
	}
	return listed;
}

static inline void course_compare_list(struct course *course)
{
	struct tool_run run;
	size_t count, listed;
	char **lines;

	changes_run(&course->changer, (const char *[]){ "list", NULL }, NULL, 0, &run);
	if (run.status)
		changes_failed(&course->changer, "list", &run);
	lines = course_lines(run.out, &count);
	listed = course_compare_units(course, lines, count, &run);
	if (count != listed + course->fillers + COURSE_GROUP)
		journal_wrong(course->changer.journal, "%zu rules are listed, %zu of units, and should be %u more",
			      count, listed, course->fillers + COURSE_GROUP);
	free(lines);
	tool_done(&run);
}

/* Store, table and model: `expire` repairs what killed writers have left, so `check` finds nothing. */
static inline void course_verify(struct course *course)
{
	const unsigned int kill_percent = course->changer.kill_percent;

	course_lock(course);
	course->changer.kill_percent = 0;
	course_run(course, (const char *[]){ "expire", NULL }, NULL, 0, 0);
	course_compare_list(course);
	if (course->changer.model->run.is_loaded)
		course_run(course, (const char *[]){ "check", NULL }, NULL, 0, 0);
	course->changer.kill_percent = kill_percent;
	course->verified++;
	course_unlock(course);
}

/* ---- the order ---- */

static void (*const course_order[])(struct course *) = {
	course_grow,   course_flip,    course_verify, course_replace, course_policy,  course_squeeze,
	course_grow,   course_monitor, course_grow,   course_flip,    course_monitor, course_policy,
	course_verify, course_replace, course_resize, course_panic,   course_grow,    course_replace,
	course_panic,  course_squeeze, course_verify, course_confirm, course_policy,  course_unload,
	course_flip,   course_replace, course_load,   course_squeeze, course_verify,  course_confirm,
};

#define COURSE_STEPS (sizeof(course_order) / sizeof(course_order[0]))

static inline void course_next(struct course *course)
{
	const uint64_t dwell_ns = changes_below(&course->changer, COURSE_DWELL_NS);
	const struct timespec dwell = { .tv_nsec = (long)dwell_ns };

	course_order[course->steps++ % COURSE_STEPS](course);
	nanosleep(&dwell, NULL);
}

/* The filter loaded, with a table that it will soon outgrow, and nothing stored but one group. */
static inline void course_start(struct course *course)
{
	struct tool_text lines = { 0 };

	course->changer.kill_percent = 0;
	course_load_with(course, "500");
	course_print_group(&lines, 0, "");
	course_run(course, (const char *[]){ "import", "-", NULL }, &lines, 0, 0);
	free(lines.bytes);
}

/* The filter loaded, filtering, by rules alone. */
static inline void course_finish(struct course *course)
{
	struct model_run *run = &course->changer.model->run;

	course->changer.kill_percent = 0;
	if (!run->is_loaded)
		course_load(course);
	if (run->is_panicking)
		course_panic(course);
	if (run->is_monitor_only)
		course_monitor(course);
	for (int policy = 0; policy < MODEL_POLICIES; policy++)
		if (run->drops[policy])
			course_set(course, (const char *[]){ "policy", model_policy_words[policy], "pass", NULL },
				   &run->drops[policy], false);
	course_verify(course);
}

#endif
