/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is interrupted: commands, with the rules that are there before and after. In words, @N is the text of
 * rule N; %plain the rules from before that have no timeout, %timed those that have; %plus those that come;
 * %new all that are there after; %object the BPF object.
 */
#ifndef XDP_CUCKOO_TESTS_SCENARIO_H
#define XDP_CUCKOO_TESTS_SCENARIO_H

#include "machine.h"
#include "universe.h"

#define SCENARIO_COMMANDS 4
#define SCENARIO_KEYS "972" /* what a table of 1024 slots holds */
#define SCENARIO_BASE \
	{ \
		0, 900 \
	}
#define SCENARIO_FULL \
	{ \
		900, 972 \
	} /* with the base, 95 % of the slots */
#define SCENARIO_NEARLY_FULL \
	{ \
		900, 960 \
	}
#define SCENARIO_TIMED \
	{ \
		1100, 1130 \
	}

struct scenario {
	const char *name;
	struct universe_range more;                           /* beside the base: there before */
	struct universe_range timed;                          /* and with a timeout of an hour */
	struct universe_range plus, minus;                    /* what the command makes of it */
	const char *before[SCENARIO_COMMANDS][MACHINE_WORDS]; /* run before the rules are put back, */
	const char *after[SCENARIO_COMMANDS][MACHINE_WORDS];  /* and after it */
	const char *words[MACHINE_WORDS];
	const char *mend[MACHINE_WORDS]; /* the next command; without: any that changes nothing */
	bool is_slow;                    /* it, or what goes back, loads the program: the verifier takes its time */
	bool is_batch;                   /* `plus` and `minus` are its lines */
	bool may_be_off;                 /* the interfaces may run no filter, or one that is not set up */
	bool is_foreign;                 /* another tool loads the filter, in `after` */
	bool has_policy;                 /* UNIVERSE_POLICY is to be asked for */
};

#define RULE(n) \
	{ \
		n, n + 1 \
	}

static const struct scenario scenarios[] = {
	{ .name = "add", .plus = RULE(1001), .words = { "add", "@1001" } },
	{ .name = "add a prefix", .plus = RULE(1004), .words = { "add", "@1004" } },
	{ .name = "add of a new kind", .plus = RULE(UNIVERSE_NEW_KIND), .words = { "add", "@1400" } },
	{ .name = "add of a wide prefix", .plus = RULE(UNIVERSE_WIDE), .words = { "add", "@1401" } },
	{ .name = "add of a pass rule", .plus = RULE(UNIVERSE_PASS), .words = { "add", "@1402" } },
	{ .name = "add that sets a timeout", .timed = SCENARIO_TIMED, .words = { "add", "@1101", "timeout", "2h" } },
	{ .name = "add that grows",
	  .is_slow = true,
	  .more = SCENARIO_FULL,
	  .plus = RULE(1001),
	  .words = { "add", "@1001" } },
	{ .name = "del", .minus = RULE(500), .words = { "del", "@500" } },
	{ .name = "del of a last kind",
	  .more = RULE(UNIVERSE_NEW_KIND),
	  .minus = RULE(UNIVERSE_NEW_KIND),
	  .words = { "del", "@1400" } },
	{ .name = "del of a wide prefix",
	  .more = RULE(UNIVERSE_WIDE),
	  .minus = RULE(UNIVERSE_WIDE),
	  .words = { "del", "@1401" } },
	{ .name = "flush", .minus = SCENARIO_BASE, .words = { "flush" } },
	{ .name = "flush of an exception",
	  .more = RULE(UNIVERSE_PASS),
	  .minus = { 0, UNIVERSE_PASS + 1 },
	  .words = { "flush" } },
	{ .name = "import", .plus = { 1000, 1040 }, .words = { "import", "%plus" } },
	{ .name = "import that kicks out",
	  .more = SCENARIO_NEARLY_FULL,
	  .plus = { 1000, 1012 },
	  .words = { "import", "%plus" } },
	{ .name = "import that grows", .is_slow = true, .plus = { 1000, 1300 }, .words = { "import", "%plus" } },
	{ .name = "import --replace",
	  .is_slow = true,
	  .plus = { 1000, 1100 },
	  .minus = { 0, 100 },
	  .words = { "import", "--replace", "%new" } },
	{ .name = "import --replace that grows",
	  .is_slow = true,
	  .plus = { 1000, 1300 },
	  .minus = { 0, 100 },
	  .words = { "import", "--replace", "%new" } },
	{ .name = "import --confirm",
	  .plus = { 1000, 1040 },
	  .before = { { "confirm", "--force" } },
	  .words = { "import", "%plus", "--confirm", "1h" } },
	{ .name = "confirm",
	  .more = { 1000, 1040 },
	  .before = { { "confirm", "--force" } },
	  .after = { { "del", "@1000" }, { "import", "%plain", "--confirm", "1h" } },
	  .words = { "confirm" },
	  .mend = { "confirm" } },
	{ .name = "undoing an import",
	  .more = { 1000, 1040 },
	  .minus = { 1000, 1040 },
	  .before = { { "confirm", "--force" } },
	  .after = { { "flush" }, { "import", "--force", "%new" }, { "import", "%plain", "--confirm", "1h" } },
	  .words = { "hours", "2", "expire" },
	  .may_be_off = true }, /* from the deadline on everything passes */
	{ .name = "expire", .timed = SCENARIO_TIMED, .minus = SCENARIO_TIMED, .words = { "hours", "2", "expire" } },
	{ .name = "batch", .plus = { 1000, 1048 }, .minus = { 0, 48 }, .words = { "batch", "-" }, .is_batch = true },
	{ .name = "batch that grows",
	  .is_slow = true,
	  .more = SCENARIO_NEARLY_FULL,
	  .plus = { 1000, 1048 },
	  .minus = { 0, 8 },
	  .words = { "batch", "-" },
	  .is_batch = true },
	{ .name = "resize up", .is_slow = true, .words = { "resize", "2000" } },
	{ .name = "resize down",
	  .is_slow = true,
	  .after = { { "resize", "2000" } },
	  .words = { "resize", SCENARIO_KEYS } },
	{ .name = "load",
	  .is_slow = true,
	  .after = { { "unload", "--all" } },
	  .words = { "load", "vrx", "vrx2" },
	  .mend = { "load", "vrx", "vrx2" },
	  .may_be_off = true },
	{ .name = "load of another interface",
	  .is_slow = true,
	  .after = { { "unload", "vrx2" } },
	  .words = { "load", "vrx2" },
	  .mend = { "load", "vrx2" },
	  .may_be_off = true },
	{ .name = "unload",
	  .is_slow = true,
	  .words = { "unload", "--all" },
	  .mend = { "load", "vrx", "vrx2" },
	  .may_be_off = true },
	{ .name = "a filter of ip link, adopted",
	  .is_slow = true,
	  .after = { { "ip", "link", "set", "dev", "vrx", "xdp", "obj", "%object", "sec", "xdp" },
		     { "ip", "link", "set", "dev", "vrx2", "xdp", "obj", "%object", "sec", "xdp" } },
	  .words = { "expire" },
	  .may_be_off = true,
	  .is_foreign = true },
	{ .name = "check", .words = { "check" } },
	{ .name = "monitor-only",
	  .words = { "monitor-only", "on" },
	  .mend = { "monitor-only", "off" },
	  .may_be_off = true },
	{ .name = "panic", .words = { "panic" }, .mend = { "panic", "off" }, .may_be_off = true },
	{ .name = "policy",
	  .plus = RULE(UNIVERSE_POLICY),
	  .before = { { "policy", "later-fragment", "pass" } },
	  .words = { "policy", "later-fragment", "drop" },
	  .has_policy = true },
};

#define SCENARIOS (sizeof(scenarios) / sizeof(scenarios[0]))

#undef RULE

static inline struct universe_set scenario_old(const struct scenario *scenario)
{
	struct universe_set set = {};

	universe_add(&set, (struct universe_range)SCENARIO_BASE);
	universe_add(&set, scenario->more);
	universe_add(&set, scenario->timed);
	return set;
}

static inline struct universe_set scenario_new(const struct scenario *scenario)
{
	struct universe_set set = scenario_old(scenario);

	universe_add(&set, scenario->plus);
	universe_remove(&set, scenario->minus);
	return set;
}

static inline size_t scenario_lines(const struct scenario *scenario)
{
	return scenario->plus.end - scenario->plus.first + scenario->minus.end - scenario->minus.first;
}

/* Line number i of a batch: additions and deletions in turn, while there are both. */
static inline unsigned int scenario_line(const struct scenario *scenario, size_t i, bool *adds)
{
	const size_t plus = scenario->plus.end - scenario->plus.first;
	const size_t minus = scenario->minus.end - scenario->minus.first, pairs = plus < minus ? plus : minus;

	*adds = i < 2 * pairs ? i % 2 == 0 : plus > minus;
	if (i < 2 * pairs)
		return (*adds ? scenario->plus.first : scenario->minus.first) + i / 2;
	return (*adds ? scenario->plus.first : scenario->minus.first) + i - pairs;
}

/* What is there after the first `lines` lines of a batch. */
static inline struct universe_set scenario_after(const struct scenario *scenario, size_t lines)
{
	struct universe_set set = scenario_old(scenario);
	bool adds;

	for (size_t i = 0; i < lines; i++) {
		const unsigned int n = scenario_line(scenario, i, &adds);

		set.has[n] = adds;
	}
	return set;
}

#endif
