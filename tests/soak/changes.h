/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Changes of rules, each by a process of the tool that may be killed at any moment; and what of the model is
 * certain afterwards: what was acknowledged, and nothing of a killed change but its answered lines.
 */
#ifndef XDP_CUCKOO_SOAK_CHANGES_H
#define XDP_CUCKOO_SOAK_CHANGES_H

#include "journal.h"
#include "model.h"
#include "bench/random.h"
#include "tool.h"

#define CHANGES_MAX 128 /* of one process */
#define CHANGES_TIMEOUT_MAX_S 8
#define CHANGES_TEXT_BYTES (MODEL_TEXT_BYTES + 32)

enum changes_answer {
	CHANGES_UNANSWERED,
	CHANGES_ADDED,
	CHANGES_UPDATED,
	CHANGES_ALREADY,
	CHANGES_DELETED,
	CHANGES_NO_SUCH,
	CHANGES_ANSWERS
};

static const char *const changes_answers[CHANGES_ANSWERS] = {
	[CHANGES_ADDED] = "added",     [CHANGES_UPDATED] = "updated",      [CHANGES_ALREADY] = "already there",
	[CHANGES_DELETED] = "deleted", [CHANGES_NO_SUCH] = "no such rule",
};

struct change {
	uint32_t unit;
	int rule;
	bool is_add;
	unsigned int timeout_s;
};

struct changes_tally {
	_Atomic uint64_t processes, killed, changes, rebuilds, repairs;
};

/* Who changes rules; several share the tool, the model and the journal, and own other units each. */
struct changer {
	const struct tool_place *place;
	struct model *model;
	struct journal *journal;
	struct changes_tally *tally;
	const char *name;
	uint32_t first, step; /* its units: first, first + step, ... */
	unsigned int kill_percent;
	uint64_t random;
	uint64_t processes, slowest_ns; /* that it has run, and the longest of them */
	struct change change[CHANGES_MAX];
	size_t count;
};

static inline uint64_t changes_below(struct changer *changer, uint64_t bound)
{
	return random_below(&changer->random, bound);
}

static inline bool changes_percent(struct changer *changer, unsigned int percent)
{
	return changes_below(changer, 100) < percent;
}

/* ---- running the tool ---- */

static inline uint64_t changes_count_text(const char *text, const char *what)
{
	uint64_t count = 0;

	while ((text = strstr(text, what))) {
		count++;
		text += strlen(what);
	}
	return count;
}

static inline void changes_count_run(struct changer *changer, const struct tool_run *run)
{
	struct changes_tally *tally = changer->tally;

	tally->processes++;
	changer->processes++;
	if (run->end_ns - run->begin_ns > changer->slowest_ns)
		changer->slowest_ns = run->end_ns - run->begin_ns;
	tally->killed += run->status < 0;
	tally->rebuilds +=
		changes_count_text(run->err, "went from ") + changes_count_text(run->err, "rebuilt the table");
	tally->repairs += changes_count_text(run->err, "repaired the table");
}

static inline void changes_note_run(struct changer *changer, const char *what, const struct tool_run *run)
{
	changes_count_run(changer, run);
	journal_note(changer->journal, "%s end %s: %d%s%.120s", changer->name, what, run->status, *run->err ? ": " : "",
		     run->err);
}

/* When to kill a process that takes about so long, mostly; now and then one that takes much longer. */
static inline uint64_t changes_kill_after(struct changer *changer, uint64_t usual_ns)
{
	if (!changes_percent(changer, changer->kill_percent))
		return 0;
	return 1 + changes_below(changer, changes_percent(changer, 25) ? 400000000 : usual_ns);
}

static inline void changes_run(struct changer *changer, const char *const *words, const struct tool_text *input,
			       uint64_t kill_after_ns, struct tool_run *run)
{
	char what[MODEL_TEXT_BYTES] = "";

	for (const char *const *word = words; *word; word++)
		snprintf(what + strlen(what), sizeof(what) - strlen(what), "%s%s", word == words ? "" : " ", *word);
	journal_note(changer->journal, "%s begin %s%s", changer->name, what, kill_after_ns ? " (kill)" : "");
	tool_run(changer->place, words, input, kill_after_ns, run);
	changes_note_run(changer, what, run);
}

static inline void changes_failed(struct changer *changer, const char *what, const struct tool_run *run)
{
	journal_wrong(changer->journal, "%s: %s has status %d: %.80s%.80s", changer->name, what, run->status, run->out,
		      run->err);
}

/* ---- choosing ---- */

static inline enum model_presence changes_presence(const struct changer *changer, const struct change *change,
						   uint64_t ns)
{
	return model_presence_at(&changer->model->unit[change->unit].rule[change->rule], ns);
}

static inline void changes_choose_one(struct changer *changer, uint32_t unit, struct change *change)
{
	static const unsigned int add_percent[] = { [MODEL_ABSENT] = 85, [MODEL_PRESENT] = 30, [MODEL_UNKNOWN] = 50 };
	const bool has_second = model_kinds[unit % MODEL_KINDS].rule[1];

	*change = (struct change){ .unit = unit, .rule = has_second && changes_percent(changer, 33) };
	change->is_add = changes_percent(changer, add_percent[changes_presence(changer, change, model_now_ns())]);
	if (change->is_add && changes_percent(changer, 25))
		change->timeout_s = 1 + (unsigned int)changes_below(changer, CHANGES_TIMEOUT_MAX_S);
}

/* So many units in a row of its own, from a random one on: none twice. */
static inline void changes_choose(struct changer *changer, size_t count)
{
	const uint32_t owned = (changer->model->units - changer->first + changer->step - 1) / changer->step;
	const uint64_t start = changes_below(changer, owned);

	changer->count = count < owned ? count : owned;
	for (size_t i = 0; i < changer->count; i++)
		changes_choose_one(changer, changer->first + changer->step * (uint32_t)((start + i) % owned),
				   &changer->change[i]);
}

static inline const char *changes_text(const struct change *change, char text[CHANGES_TEXT_BYTES])
{
	model_rule_text(change->unit, change->rule, text);
	if (change->timeout_s)
		snprintf(text + strlen(text), CHANGES_TEXT_BYTES - strlen(text), " timeout %us", change->timeout_s);
	return text;
}

/* ---- answers ---- */

static inline enum changes_answer changes_read_answer(const char *line)
{
	enum changes_answer answer = CHANGES_ADDED;

	while (answer < CHANGES_ANSWERS && strncmp(line, changes_answers[answer], strlen(changes_answers[answer])) != 0)
		answer++;
	return answer < CHANGES_ANSWERS ? answer : CHANGES_UNANSWERED;
}

/* Whether the store can have answered so; what has ended it keeps until `expire`. */
static inline bool changes_is_right(const struct model_rule *before, const struct change *change,
				    enum changes_answer answer, const struct tool_run *run)
{
	const enum model_presence presence = model_presence_between(before, run->begin_ns, run->end_ns);

	if (change->is_add != (answer == CHANGES_ADDED || answer == CHANGES_UPDATED || answer == CHANGES_ALREADY))
		return false;
	if (presence == MODEL_UNKNOWN)
		return true;
	if (presence == MODEL_ABSENT)
		return answer == CHANGES_ADDED || answer == CHANGES_NO_SUCH ||
		       (before->is_timed && answer != CHANGES_ALREADY);
	return answer == CHANGES_DELETED || answer == (before->is_timed ? CHANGES_UPDATED : CHANGES_ALREADY);
}

static inline void changes_take(struct changer *changer, const struct change *change, enum changes_answer answer,
				const struct tool_run *run)
{
	struct model_rule *rule = &changer->model->unit[change->unit].rule[change->rule];
	const uint64_t timeout_ns = change->timeout_s * MODEL_NS_PER_S;
	char text[CHANGES_TEXT_BYTES];

	if (answer == CHANGES_UNANSWERED) {
		*rule = (struct model_rule){ .presence = MODEL_UNKNOWN };
		return;
	}
	changer->tally->changes++;
	if (!changes_is_right(rule, change, answer, run))
		journal_wrong(changer->journal, "%s: the answer '%s' to %s %s; it was %s%s", changer->name,
			      changes_answers[answer], change->is_add ? "add" : "del", changes_text(change, text),
			      rule->presence == MODEL_PRESENT ? "there" : "not there",
			      rule->is_timed ? ", with a timeout" : "");
	*rule = (struct model_rule){
		.presence = change->is_add ? MODEL_PRESENT : MODEL_ABSENT,
		.is_timed = timeout_ns && answer != CHANGES_ALREADY,
		.until_ns = run->begin_ns + timeout_ns,
		.after_ns = run->end_ns + timeout_ns + MODEL_LATE_NS,
	};
}

static inline void changes_begin(struct changer *changer)
{
	for (size_t i = 0; i < changer->count; i++)
		model_begin(&changer->model->unit[changer->change[i].unit].epoch);
}

static inline void changes_settle(struct changer *changer)
{
	for (size_t i = 0; i < changer->count; i++)
		model_settle(&changer->model->unit[changer->change[i].unit].epoch);
	changer->count = 0;
}

/* ---- processes ---- */

/* One `add` or `del`. */
static inline void changes_single(struct changer *changer)
{
	char text[CHANGES_TEXT_BYTES];
	enum changes_answer answer = CHANGES_UNANSWERED;
	struct tool_run run;

	changes_choose(changer, 1);
	changes_begin(changer);
	changes_run(changer,
		    (const char *[]){ changer->change->is_add ? "add" : "del", changes_text(changer->change, text),
				      NULL },
		    NULL, changes_kill_after(changer, 15000000), &run);
	if (run.status == 0)
		answer = changes_read_answer(run.out);
	else if (run.status == 1)
		answer = strstr(run.err, changes_answers[CHANGES_ALREADY]) ? CHANGES_ALREADY : CHANGES_NO_SUCH;
	if (run.status > 1 || (run.status >= 0 && answer == CHANGES_UNANSWERED))
		changes_failed(changer, text, &run);
	changes_take(changer, changer->change, answer, &run);
	changes_settle(changer);
	tool_done(&run);
}

static inline void changes_print(const struct changer *changer, struct tool_text *lines)
{
	char text[CHANGES_TEXT_BYTES];

	for (size_t i = 0; i < changer->count; i++)
		tool_print(lines, "%s %s\n", changer->change[i].is_add ? "add" : "del",
			   changes_text(&changer->change[i], text));
}

/* A line an answer, also where it was killed: what is answered is durable and active. */
static inline void changes_take_lines(struct changer *changer, const struct tool_run *run)
{
	char *at = run->out;

	for (size_t i = 0; i < changer->count; i++) {
		const char *line = tool_line(&at);
		const enum changes_answer answer = line ? changes_read_answer(line) : CHANGES_UNANSWERED;

		if (line && answer == CHANGES_UNANSWERED)
			journal_wrong(changer->journal, "%s: batch answers %.150s", changer->name, line);
		changes_take(changer, &changer->change[i], answer, run);
	}
}

static inline void changes_batch(struct changer *changer, bool is_strict)
{
	const size_t count = 1 + changes_below(changer, CHANGES_MAX);
	struct tool_text lines = { 0 };
	struct tool_run run;

	changes_choose(changer, count);
	changes_print(changer, &lines);
	changes_begin(changer);
	changes_run(changer, (const char *[]){ "batch", "-", is_strict ? "--strict" : NULL, NULL }, &lines,
		    changes_kill_after(changer, 30000000), &run);
	if (run.status > 1)
		changes_failed(changer, "batch", &run);
	changes_take_lines(changer, &run);
	changes_settle(changer);
	tool_done(&run);
	free(lines.bytes);
}

/* Adds a list, of which only the counts are acknowledged. */
static inline void changes_import(struct changer *changer)
{
	const size_t count = 1 + changes_below(changer, CHANGES_MAX);
	char text[CHANGES_TEXT_BYTES];
	struct tool_text lines = { 0 };
	struct tool_run run;

	changes_choose(changer, count);
	for (size_t i = 0; i < changer->count; i++) {
		changer->change[i].is_add = true;
		changer->change[i].timeout_s = 0;
		tool_print(&lines, "%s\n", changes_text(&changer->change[i], text));
	}
	changes_begin(changer);
	changes_run(changer, (const char *[]){ "import", "-", NULL }, &lines, changes_kill_after(changer, 30000000),
		    &run);
	if (run.status > 0)
		changes_failed(changer, "import", &run);
	for (size_t i = 0; i < changer->count; i++) {
		struct model_unit *unit = &changer->model->unit[changer->change[i].unit];

		unit->rule[changer->change[i].rule] = (struct model_rule){
			.presence = run.status == 0 ? MODEL_PRESENT : MODEL_UNKNOWN,
		};
		changer->tally->changes += run.status == 0;
	}
	changes_settle(changer);
	tool_done(&run);
	free(lines.bytes);
}

static inline void changes_expire(struct changer *changer)
{
	struct tool_run run;

	changes_run(changer, (const char *[]){ "expire", NULL }, NULL, changes_kill_after(changer, 15000000), &run);
	if (run.status > 0)
		changes_failed(changer, "expire", &run);
	tool_done(&run);
}

/* Any of these. */
static inline void changes_next(struct changer *changer)
{
	const uint64_t choice = changes_below(changer, 100);

	if (choice < 40)
		changes_single(changer);
	else if (choice < 75)
		changes_batch(changer, false);
	else if (choice < 85)
		changes_batch(changer, true);
	else if (choice < 95)
		changes_import(changer);
	else
		changes_expire(changer);
}

/* Whatever killed writers have left unknown among its units is deleted. */
static inline void changes_resolve(struct changer *changer)
{
	const unsigned int kill_percent = changer->kill_percent;

	changer->kill_percent = 0;
	for (uint32_t unit = changer->first; unit < changer->model->units; unit += changer->step) {
		for (int rule = 0; rule < MODEL_RULES; rule++) {
			struct tool_run run;
			struct tool_text lines = { 0 };

			changer->change[0] = (struct change){ .unit = unit, .rule = rule };
			if (changer->model->unit[unit].rule[rule].presence != MODEL_UNKNOWN)
				continue;
			changer->count = 1;
			changes_print(changer, &lines);
			changes_begin(changer);
			changes_run(changer, (const char *[]){ "batch", "-", NULL }, &lines, 0, &run);
			changes_take_lines(changer, &run);
			changes_settle(changer);
			tool_done(&run);
			free(lines.bytes);
		}
	}
	changer->kill_percent = kill_percent;
}

#endif
