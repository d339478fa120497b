// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Kills the tool at its steps, or makes the calls fail that it makes, in each scenario, and looks after each
 * time at what is left: the store opens and has the old rules or the new ones; the filter has dropped
 * what both have and passed what neither has, also before the next command; after that it does exactly
 * what is listed. Prints a table; exit status 1 where something was wrong.
 */
#include <getopt.h>

#include "harness.h"
#include "steps.h"

#define SAMPLE_EVERY 3
#define CHECK_EVERY 4 /* so often the table is looked at entry by entry, after each time by its verdicts */
#define TIMED_EVERY 8 /* of so many kills one is by time, of the tool as it is installed */
#define SLOW 24       /* so many times fewer faults where each takes long */

static volatile sig_atomic_t is_over;

/* What has been tried so far is still told. */
static void stop(int signal_number)
{
	(void)signal_number;
	is_over = 1;
}

/* ---- what is left ---- */

/* The flows that the fault is about, and every so-and-so-many-th of the others, another one each time. */
static struct universe_set choose_flows(void)
{
	const unsigned int first = random_below(&harness.random, SAMPLE_EVERY);
	struct universe_set chosen = {};

	for (unsigned int n = 0; n < UNIVERSE_RULES; n++)
		chosen.has[n] = n % SAMPLE_EVERY == first || harness.old_set.has[n] != harness.new_set.has[n];
	return chosen;
}

/* A resident of both states that passes, or a flow of neither that is dropped. */
static bool program_is_safe(__u32 program, const char *interface, bool may_be_off, const char *when)
{
	const struct universe_set chosen = choose_flows();
	struct universe_set drops = {};
	int error = program ? universe_ask(&harness.frames, program, &chosen, &drops) : 0;

	if (error || (!program && !may_be_off))
		return wrong("%s, %s: no filter: %s", when, interface, strerror(-error));
	for (unsigned int n = 0; n < UNIVERSE_RULES; n++) {
		const bool in_old = universe_drops(&harness.old_set, n);
		const bool in_new = universe_drops(&harness.new_set, n);

		if (chosen.has[n] && in_old && in_new && !drops.has[n] && !may_be_off)
			return wrong("%s, %s: flow %u passes", when, interface, n);
		if (!in_old && !in_new && drops.has[n])
			return wrong("%s, %s: flow %u is dropped", when, interface, n);
	}
	return true;
}

/* What one program says, it says on every interface. */
static bool filter_is_safe(bool may_be_off, const char *when)
{
	__u32 last = 0;

	for (int i = 0; i < INTERFACES; i++) {
		const __u32 program = universe_program(interfaces[i]);

		if ((!program || program != last) && !program_is_safe(program, interfaces[i], may_be_off, when))
			return false;
		last = program;
	}
	return true;
}

/* After the repair: neither more nor less. */
static bool program_is(__u32 program, const char *interface, const struct universe_set *set, const char *when)
{
	struct universe_set all, drops = {};
	int error;

	memset(&all, true, sizeof(all));
	error = universe_ask(&harness.frames, program, &all, &drops);
	if (error)
		return wrong("%s, %s: no filter: %s", when, interface, strerror(-error));
	for (unsigned int n = 0; n < UNIVERSE_RULES; n++)
		if (drops.has[n] != universe_drops(set, n))
			return wrong("%s, %s: flow %u is %s", when, interface, n, drops.has[n] ? "dropped" : "passed");
	return true;
}

static bool filter_is(const struct universe_set *set, const char *when)
{
	__u32 last = 0;

	for (int i = 0; i < INTERFACES; i++) {
		const __u32 program = universe_program(interfaces[i]);

		if ((!program || program != last) && !program_is(program, interfaces[i], set, when))
			return false;
		last = program;
	}
	return true;
}

/* What was answered is so; of lines that it could not do, nothing is promised. */
static bool answers_hold(const struct universe_set *set)
{
	const char *answer = harness.run.out;
	bool adds;

	for (size_t i = 0; i < scenario_lines(harness.scenario) && strchr(answer, '\n'); i++) {
		const unsigned int n = scenario_line(harness.scenario, i, &adds);

		if (!strncmp(answer, adds ? "added\n" : "deleted\n", adds ? 6 : 8) && set->has[n] != adds)
			return wrong("line %zu was answered, and is not so", i + 1);
		answer = strchr(answer, '\n') + 1;
	}
	return true;
}

/* Whether the rules are those of a state that may be; `answered`: of a batch, so many lines at least. */
static bool is_a_state(const struct universe_set *set, size_t answered)
{
	const struct scenario *scenario = harness.scenario;
	const bool is_new = universe_equal(set, &harness.new_set);

	harness.tally.new_state += is_new;
	harness.tally.old_state += !is_new;
	if (is_new)
		return true;
	/* A command goes on where the change that was not confirmed cannot be undone, and says so. */
	if (harness.run.status == 0 && !strstr(harness.run.err, "cannot be undone yet"))
		return wrong("acknowledged, and not stored");
	if (scenario->is_batch && !answers_hold(set))
		return false;
	if (scenario->is_batch && harness.run.status > 0)
		return true;
	for (size_t lines = answered; scenario->is_batch && lines < scenario_lines(scenario); lines++) {
		const struct universe_set after = scenario_after(scenario, lines);

		if (universe_equal(set, &after))
			return true;
	}
	if (!scenario->is_batch && universe_equal(set, &harness.old_set))
		return true;
	return wrong("neither the old rules nor the new ones");
}

/* The next command, whichever: it must do its own work, and repair. */
static bool mend(void)
{
	static const char *const any[][4] = {
		{ "check" },
		{ "expire" },
		{ "del", "192.0.2.99" },
		{ "policy", "not-ip", "pass" },
		{ "monitor-only", "off" },
	};
	const char *const *words = any[random_below(&harness.random, sizeof(any) / sizeof(any[0]))];

	if (harness.scenario->mend[0])
		words = harness.scenario->mend;
	if (command(words) != 0 && harness.other.status != 1)
		return wrong("%s ended with %d: %s", words[0], harness.other.status, harness.other.err);
	return true;
}

static bool look(size_t answered)
{
	struct universe_set set, again;

	if (!filter_is_safe(harness.scenario->may_be_off, "before the repair") || !read_list(&set) ||
	    !is_a_state(&set, answered) || !mend() || !read_list(&again))
		return false;
	if (!universe_equal(&set, &again))
		return wrong("the next command has changed the rules");
	if (!filter_is(&set, "after the repair"))
		return false;
	if (random_below(&harness.random, CHECK_EVERY) == 0 && COMMAND("check"))
		return wrong("check ended with %d: %s%s", harness.other.status, harness.other.out, harness.other.err);
	return true;
}

/* Whether the next fault may start from what this one has left. */
static bool is_as_before(void)
{
	struct universe_set set;
	const struct scenario *scenario = harness.scenario;

	if (scenario->after[0][0] || scenario->has_policy || scenario->mend[0] || scenario->timed.end ||
	    !programs_are_same())
		return false;
	return read_list(&set) && universe_equal(&set, &harness.old_set);
}

/* ---- a fault ---- */

/* Returns how many lines of a batch were answered. */
static size_t run_victim(const struct machine_fault *fault)
{
	const struct scenario *scenario = harness.scenario;
	struct words words;

	expand(scenario->words, &words);
	if (scenario->is_batch)
		return machine_feed(&harness.machine, fault, words.word, harness.lines, scenario_lines(scenario), 8,
				    &harness.run);
	machine_run(&harness.machine, fault, words.word, &harness.run);
	return 0;
}

static void kill_at(const struct machine_fault *fault)
{
	size_t answered;

	reset();
	if (fault->kill_ns)
		snprintf(harness.what, sizeof(harness.what), "killed after %ld us", fault->kill_ns / 1000);
	else
		snprintf(harness.what, sizeof(harness.what), "killed at step %lu of %s", fault->at, fault->kinds);
	answered = run_victim(fault);
	harness.tally.kills += harness.run.signal == SIGKILL && !fault->kill_ns;
	harness.tally.kills_of_time += harness.run.signal == SIGKILL && fault->kill_ns;
	harness.tally.survived += harness.run.signal != SIGKILL;
	if (harness.run.signal && harness.run.signal != SIGKILL)
		wrong("it died of signal %d", harness.run.signal);
	else if (look(answered))
		harness.is_clean = is_as_before();
}

/* A refusal is one line that says who speaks; never a signal. */
static bool is_refused_well(void)
{
	const char *last = harness.run.err, *next = last;

	if (harness.run.signal)
		return wrong("it died of signal %d: %s", harness.run.signal, harness.run.err);
	if (harness.run.status == 0)
		return true;
	while ((next = strstr(next, "xdp-cuckoo: ")))
		last = next++;
	harness.tally.refused++;
	if (strncmp(last, "xdp-cuckoo: ", 12) || strlen(last) < 30)
		return wrong("status %d, and no word of why: %s", harness.run.status, harness.run.err);
	return harness.run.status > 1 || wrong("status %d: %s", harness.run.status, harness.run.err);
}

/* Somebody else interferes: whatever becomes of the command, the store is sound, and a load puts all in order. */
static void meddle_at(const struct machine_fault *fault)
{
	struct universe_set set;

	reset();
	snprintf(harness.what, sizeof(harness.what), "at step %lu of %s: %s", fault->at, fault->kinds, fault->command);
	run_victim(fault);
	harness.is_clean = false;
	COMMAND("ip", "link", "set", "dev", RENAMED, "name", interfaces[1], "up");
	harness.tally.meddled++;
	if ((!harness.scenario->is_batch && !is_refused_well()) || !filter_is_safe(true, "after it") ||
	    !read_list(&set) || !is_a_state(&set, 0))
		return;
	take_off();
	COMMAND("confirm", "--force");
	if (COMMAND("load", interfaces[0], interfaces[1]))
		wrong("load ended with %d: %s", harness.other.status, harness.other.err);
	else if (COMMAND("monitor-only", "off"))
		wrong("monitor-only ended with %d: %s", harness.other.status, harness.other.err);
	else
		filter_is(&set, "after a load");
}

static void fail_at(const struct machine_fault *fault)
{
	size_t answered;

	reset();
	snprintf(harness.what, sizeof(harness.what), "%s %lu of %s: %s", fault->lasts ? "calls from" : "call",
		 fault->at, fault->kinds, strerror(fault->error));
	answered = run_victim(fault);
	harness.tally.errors++;
	if ((harness.scenario->is_batch || is_refused_well()) && look(answered))
		harness.is_clean = is_as_before();
}

/* ---- all of a scenario ---- */

/*
 * How many steps of each kind the command takes, by their letters. The second time tells better what the
 * later ones do: the store has free pages then.
 */
static void count_steps(unsigned long steps[UINT8_MAX + 1])
{
	char path[256];

	snprintf(path, sizeof(path), "%s/count", harness.machine.scratch);
	snprintf(harness.what, sizeof(harness.what), "without any fault");
	for (int i = 0; i < (harness.scenario->is_slow ? 1 : 2) && !harness.tally.failures; i++) {
		reset();
		run_victim(&(struct machine_fault){ .count = path });
		if (harness.run.status)
			wrong("it ended with %d: %s", harness.run.status, harness.run.err);
		else
			look(scenario_lines(harness.scenario));
		if (!harness.tally.new_state)
			wrong("it did not do what it is for");
		read_counts(path, steps);
		harness.is_clean = false;
	}
	harness.tally.new_state = harness.tally.old_state = 0;
}

/* A third of the kills at what can be seen from outside, a third at the last of that, a third at all steps. */
static void kill_often(const unsigned long steps[UINT8_MAX + 1], unsigned long kills)
{
	const unsigned long changes = sum_steps(steps, CHANGES), all = sum_steps(steps, ALL_STEPS);
	const unsigned long timed = harness.scenario->is_batch ? 0 : kills / TIMED_EVERY;
	const unsigned long third = (kills - timed) / 3;
	const long ns = harness.run.ns;

	for (unsigned long i = 0; i < third && !is_over; i++)
		kill_at(&(struct machine_fault){ .at = spread(i, third, changes), .kinds = CHANGES });
	for (unsigned long i = 0; i < third && !is_over; i++)
		kill_at(&(struct machine_fault){ .at = changes - i % changes, .kinds = CHANGES });
	for (unsigned long i = 2 * third; i < kills - timed && !is_over; i++)
		kill_at(&(struct machine_fault){ .at = spread(i - 2 * third, kills - timed - 2 * third, all),
						 .kinds = ALL_STEPS });
	for (unsigned long i = 0; i < timed && !is_over; i++)
		kill_at(&(struct machine_fault){ .kill_ns = 1 + random_below(&harness.random, ns) });
}

static void fail_often(const unsigned long steps[UINT8_MAX + 1], unsigned long errors)
{
	static const int codes[] = { ENOSPC, EIO, ENOMEM, EPERM, EROFS, EMFILE, E2BIG, EINVAL, EACCES };
	const unsigned long calls = sum_calls(steps);

	for (unsigned long i = 0; i < errors && !is_over; i++)
		fail_at(&(struct machine_fault){
			.at = spread(i, errors, calls),
			.kinds = FAILING,
			.error = codes[random_below(&harness.random, sizeof(codes) / sizeof(codes[0]))],
			.lasts = random_below(&harness.random, 4) == 0,
		});
}

static void meddle_often(const unsigned long steps[UINT8_MAX + 1], unsigned long meddles)
{
	const unsigned long calls = sum_steps(steps, CALLS);
	char force[300];
	const char *const commands[] = {
		"ip link set dev vrx xdp off",
		"ip link set dev vrx2 xdp off",
		"ip link set dev vrx2 down name " RENAMED,
		force,
	};

	snprintf(force, sizeof(force), "ip -force link set dev vrx xdp obj %s sec xdp", harness.object);
	for (unsigned long i = 0; i < meddles && !is_over; i++)
		meddle_at(&(struct machine_fault){ .at = spread(i, meddles, calls),
						   .kinds = CALLS,
						   .command = commands[i % (sizeof(commands) / sizeof(commands[0]))] });
}

static bool is_chosen(const struct scenario *scenario)
{
	return (!harness.only || strstr(scenario->name, harness.only)) &&
	       (scenario - scenarios) % harness.parts == harness.part;
}

/* What of `total` faults is for the scenario: where each takes long, fewer. */
static unsigned long share(unsigned long total, const struct scenario *scenario)
{
	unsigned long weights = 0;

	for (size_t i = 0; i < SCENARIOS; i++)
		if (is_chosen(&scenarios[i]))
			weights += scenarios[i].is_slow ? 1 : SLOW;
	return (total * (scenario->is_slow ? 1 : SLOW) + weights / 2) / weights;
}

static void run_scenario(const struct scenario *scenario)
{
	const unsigned long kills = share(harness.kills, scenario), errors = share(harness.errors, scenario);
	const unsigned long meddles = share(harness.meddles, scenario);
	unsigned long steps[UINT8_MAX + 1] = {};

	if (!kills && !errors && !meddles)
		return;
	begin(scenario);
	count_steps(steps);
	if (!harness.tally.failures) {
		kill_often(steps, kills);
		fail_often(steps, errors);
		meddle_often(steps, meddles);
	}
	print_row(scenario->name, &harness.tally, sum_steps(steps, ALL_STEPS), sum_steps(steps, CHANGES));
	add_tally(&harness.total, &harness.tally);
}

static int run_all(void)
{
	universe_index(&harness.index);
	if (universe_build(&harness.frames))
		return fputs("faults: cannot build the frames\n", stderr), 2;
	printf("%-30s %7s %7s %6s %6s %8s %6s %7s %7s %6s %6s %5s\n", "command", "steps", "changes", "killed", "timed",
	       "survived", "errors", "refused", "meddled", "old", "new", "wrong");
	for (size_t i = 0; i < SCENARIOS && !is_over; i++)
		if (is_chosen(&scenarios[i]))
			run_scenario(&scenarios[i]);
	harness.tally = (struct tally){};
	print_row("all", &harness.total, 0, 0);
	return harness.total.failures ? 1 : 0;
}

static void give(const char *const value[UINT8_MAX + 1])
{
	harness.machine = (struct machine){
		.tool = value['t'], .faulty = value['f'], .shift = value['c'], .scratch = value['d']
	};
	harness.object = value['o'];
	harness.only = value['w'];
	harness.part = strtoul(value['p'], NULL, 10);
	harness.parts = strtoul(value['P'], NULL, 10);
	harness.random = strtoull(value['s'], NULL, 10);
	harness.kills = strtoul(value['k'], NULL, 10);
	harness.errors = strtoul(value['e'], NULL, 10);
	harness.meddles = strtoul(value['m'], NULL, 10);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ .name = "tool", .has_arg = required_argument, .val = 't' },
		{ .name = "faulty", .has_arg = required_argument, .val = 'f' },
		{ .name = "clock", .has_arg = required_argument, .val = 'c' },
		{ .name = "object", .has_arg = required_argument, .val = 'o' },
		{ .name = "scratch", .has_arg = required_argument, .val = 'd' },
		{ .name = "kills", .has_arg = required_argument, .val = 'k' },
		{ .name = "errors", .has_arg = required_argument, .val = 'e' },
		{ .name = "meddles", .has_arg = required_argument, .val = 'm' },
		{ .name = "seed", .has_arg = required_argument, .val = 's' },
		{ .name = "part", .has_arg = required_argument, .val = 'p' },
		{ .name = "parts", .has_arg = required_argument, .val = 'P' },
		{ .name = "only", .has_arg = required_argument, .val = 'w' },
		{ 0 },
	};
	const char *value[UINT8_MAX + 1] = {
		['s'] = "1", ['k'] = "0", ['e'] = "0", ['m'] = "0", ['p'] = "0", ['P'] = "1"
	};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1 && option != '?')
		value[option] = optarg;
	if (option == '?' || optind != argc || !value['t'] || !value['f'] || !value['c'] || !value['o'] || !value['d'])
		return fputs("usage: faults --tool T --faulty T --clock SO --object O --scratch DIR [--kills N] "
			     "[--errors N] [--meddles N] [--seed S] [--only WORD] "
			     "[--part I --parts N]\n",
			     stderr),
		       2;
	signal(SIGPIPE, SIG_IGN);
	signal(SIGTERM, stop);
	signal(SIGINT, stop);
	give(value);
	return run_all();
}
