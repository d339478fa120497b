/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The one scenario that is under way: its rules as files, its start, what is stored now; and what was wrong
 * after a fault, said and counted.
 */
#ifndef XDP_CUCKOO_TESTS_HARNESS_H
#define XDP_CUCKOO_TESTS_HARNESS_H

#include <stdarg.h>

#include "bench/random.h"
#include "scenario.h"
#include "store/store.h"

#define INTERFACES 2
#define FAILURES_SHOWN 20

#define RENAMED "vrx9"

static const char *const interfaces[INTERFACES] = { "vrx", "vrx2" };

struct tally {
	unsigned long kills, kills_of_time, survived, errors, refused, meddled, old_state, new_state, failures;
};

struct harness {
	struct machine machine;
	const char *object, *only;
	unsigned long part, parts;            /* of the scenarios: every so-and-so-many-th */
	unsigned long kills, errors, meddles; /* in all */
	uint64_t random;
	struct universe_frames frames;
	struct universe_index index;
	/* Of the scenario under way. */
	const struct scenario *scenario;
	struct universe_set old_set, new_set;
	const char *lines[UNIVERSE_RULES];
	__u32 program[INTERFACES]; /* after the last reset */
	bool is_clean;
	char what[160]; /* the fault */
	struct tally tally, total;
	struct machine_run run, other;
};

static struct harness harness;

static bool wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Says what is wrong with what the fault has left. Returns false. */
static bool wrong(const char *format, ...)
{
	va_list arguments;

	if (harness.tally.failures++ + harness.total.failures < FAILURES_SHOWN) {
		printf("WRONG: %s, %s: ", harness.scenario->name, harness.what);
		va_start(arguments, format);
		vprintf(format, arguments);
		va_end(arguments);
		printf("\n");
	}
	harness.is_clean = false;
	harness.program[0] = 0;
	return false;
}

/* ---- the table that is printed ---- */

static inline void print_row(const char *name, const struct tally *tally, unsigned long steps, unsigned long changes)
{
	printf("%-30s %7lu %7lu %6lu %6lu %8lu %6lu %7lu %7lu %6lu %6lu %5lu\n", name, steps, changes, tally->kills,
	       tally->kills_of_time, tally->survived, tally->errors, tally->refused, tally->meddled, tally->old_state,
	       tally->new_state, tally->failures);
	fflush(stdout);
}

static inline void add_tally(struct tally *sum, const struct tally *tally)
{
	sum->kills += tally->kills;
	sum->kills_of_time += tally->kills_of_time;
	sum->survived += tally->survived;
	sum->errors += tally->errors;
	sum->refused += tally->refused;
	sum->meddled += tally->meddled;
	sum->old_state += tally->old_state;
	sum->new_state += tally->new_state;
	sum->failures += tally->failures;
}

/* ---- commands ---- */

struct words {
	const char *word[MACHINE_WORDS + 1];
	size_t count;
	char room[512];
	size_t used;
};

static void put_word(struct words *words, const char *text, size_t length)
{
	char *word = words->room + words->used;

	if (words->count == MACHINE_WORDS || words->used + length >= sizeof(words->room))
		abort();
	memcpy(word, text, length);
	word[length] = '\0';
	words->used += length + 1;
	words->word[words->count++] = word;
}

static void put_rule(struct words *words, unsigned int n)
{
	const char *rest = harness.index.text[n];

	while (*rest) {
		const size_t length = strcspn(rest, " ");

		put_word(words, rest, length);
		rest += length + (rest[length] == ' ');
	}
}

static void expand(const char *const *from, struct words *words)
{
	char path[300];

	*words = (struct words){};
	for (; *from; from++) {
		if (**from == '@') {
			put_rule(words, strtoul(*from + 1, NULL, 10));
			continue;
		}
		snprintf(path, sizeof(path), "%s/%s", harness.machine.scratch, *from + 1);
		if (!strcmp(*from, "%object"))
			put_word(words, harness.object, strlen(harness.object));
		else if (**from == '%')
			put_word(words, path, strlen(path));
		else
			put_word(words, *from, strlen(*from));
	}
}

static int command(const char *const *from)
{
	struct words words;

	expand(from, &words);
	machine_run(&harness.machine, NULL, words.word, &harness.other);
	return harness.other.status;
}

#define COMMAND(...) command((const char *const[]){ __VA_ARGS__, NULL })

/* ---- what is stored ---- */

static int note_rule(const struct rule *rule, void *context)
{
	struct universe_set *set = context;
	struct rule bare = *rule;
	char text[RULE_TEXT_BYTES];
	unsigned int n;

	if (rule->timeout_ms < 0)
		return 0;
	bare.timeout_ms = 0;
	n = universe_number(&harness.index, rule_format(&bare, text));
	if (n == UNIVERSE_RULES)
		return wrong("a rule that nobody has added: %s", text), -EINVAL;
	set->has[n] = true;
	return 0;
}

/* By the store itself, which is quicker than a process for it. Looks only: it repairs nothing. */
static bool read_list(struct universe_set *set)
{
	struct store_settings settings;
	struct reason reason;
	struct store *store;
	char dir[300];
	int error;

	*set = (struct universe_set){};
	snprintf(dir, sizeof(dir), "%s/store/default", harness.machine.scratch);
	if (store_open(dir, STORE_READ, &store, &reason))
		return wrong("the store does not open: %s", reason.text);
	error = store_each(store, note_rule, set);
	if (!error)
		error = store_settings(store, &settings);
	store_close(store);
	if (error)
		return wrong("the store cannot be read: %s", strerror(-error));
	if (harness.scenario->has_policy)
		set->has[UNIVERSE_POLICY] = settings.policy[OUTCOME_LATER_FRAGMENT] == VERDICT_DROP;
	return true;
}

/* ---- a scenario's start ---- */

static void write_list(const char *name, const struct universe_set *set)
{
	FILE *file = fdopen(machine_file(&harness.machine, name, O_WRONLY | O_CREAT | O_TRUNC), "w");

	for (unsigned int n = 0; file && n < UNIVERSE_RULES; n++)
		if (set->has[n] && n != UNIVERSE_POLICY)
			fprintf(file, "%s\n", harness.index.text[n]);
	if (!file || fclose(file)) {
		perror("faults");
		exit(2);
	}
}

static void write_lists(const struct scenario *scenario)
{
	struct universe_set plain = harness.old_set, timed = {}, plus = {};

	universe_remove(&plain, scenario->timed);
	universe_add(&timed, scenario->timed);
	universe_add(&plus, scenario->plus);
	write_list("plain", &plain);
	write_list("timed", &timed);
	write_list("plus", &plus);
	write_list("new", &harness.new_set);
}

static void write_lines(const struct scenario *scenario)
{
	static char text[UNIVERSE_RULES][UNIVERSE_TEXT_BYTES + 4];
	bool adds;

	for (size_t i = 0; i < scenario_lines(scenario); i++) {
		const unsigned int n = scenario_line(scenario, i, &adds);

		snprintf(text[i], sizeof(text[i]), "%s %s", adds ? "add" : "del", harness.index.text[n]);
		harness.lines[i] = text[i];
	}
}

static void begin(const struct scenario *scenario)
{
	harness.scenario = scenario;
	harness.old_set = scenario_old(scenario);
	harness.new_set = scenario_new(scenario);
	harness.tally = (struct tally){};
	harness.is_clean = false;
	harness.program[0] = 0;
	write_lists(scenario);
	if (scenario->is_batch)
		write_lines(scenario);
}

static void must(int status, const char *what)
{
	if (!status)
		return;
	printf("cannot prepare '%s': %s ended with %d: %s", harness.scenario->name, what, status, harness.other.err);
	exit(2);
}

static void take_off(void)
{
	for (int i = 0; i < INTERFACES; i++)
		COMMAND("ip", "link", "set", "dev", interfaces[i], "xdp", "off");
}

static bool programs_are_same(void)
{
	for (int i = 0; i < INTERFACES; i++)
		if (!harness.program[i] || harness.program[i] != universe_program(interfaces[i]))
			return false;
	return true;
}

/* To the old rules by single changes, where the same table is still there. */
static void put_back(void)
{
	const struct scenario *scenario = harness.scenario;
	static char text[UNIVERSE_RULES][UNIVERSE_TEXT_BYTES + 4];
	const char *lines[UNIVERSE_RULES];
	struct universe_set set;
	size_t count = 0;

	must(!read_list(&set), "list");
	for (unsigned int n = 0; n < UNIVERSE_RULES; n++) {
		const bool is_timed = n >= scenario->timed.first && n < scenario->timed.end;

		if (set.has[n] == harness.old_set.has[n] || n == UNIVERSE_POLICY || (is_timed && !set.has[n]))
			continue;
		snprintf(text[count], sizeof(text[count]), "%s %s", set.has[n] ? "del" : "add", harness.index.text[n]);
		lines[count] = text[count];
		count++;
	}
	machine_feed(&harness.machine, NULL, (const char *const[]){ "batch", "-", NULL }, lines, count, count,
		     &harness.other);
	must(harness.other.status, "batch");
}

static void start_anew(void)
{
	take_off();
	must(COMMAND("import", "--replace", "--force", "%plain"), "import");
	if (!harness.scenario->is_foreign)
		must(COMMAND("load", interfaces[0], interfaces[1], "--capacity", SCENARIO_KEYS), "load");
}

/* To where the scenario starts, if it is not so. */
static void reset(void)
{
	const struct scenario *scenario = harness.scenario;

	if (harness.is_clean)
		return;
	for (int i = 0; i < SCENARIO_COMMANDS && scenario->before[i][0]; i++)
		command(scenario->before[i]);
	if (programs_are_same() && !scenario->is_foreign)
		put_back();
	else
		start_anew();
	if (scenario->timed.end)
		must(COMMAND("import", "%timed", "--timeout", "1h"), "import");
	for (int i = 0; i < SCENARIO_COMMANDS && scenario->after[i][0]; i++)
		must(command(scenario->after[i]), scenario->after[i][0]);
	for (int i = 0; i < INTERFACES; i++)
		harness.program[i] = universe_program(interfaces[i]);
	harness.is_clean = true;
}

#endif
