// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * No packet meets a mixture: after every single store of a change to the maps, the packet path judges a panel of frames. A
 * frame that passes before and after the change never drops meanwhile, nor the other way round. The changes are drawn by a
 * seed: SEED, EVERY_STORE_SEEDS and EVERY_STORE_CHANGES say which and how many. After a crash at any step, also of the disk, the
 * next command, `load` after a reboot, and the undo that is due lead to the old rules or the new ones: EVERY_STORE_CRASH_AT.
 */
#include "unit/test.h"

#ifndef __x86_64__
TEST(test_every_store)
{
	fprintf(stderr, "skipped: single steps need x86-64\n");
	skip();
}

TEST_MAIN(NULL, NULL)
#else
#include <time.h>

#include "steps/changes.h"
#include "steps/crash.h"

static uint64_t judged;
static char failure[512];
static const char *change_text = "";
static char crash_dir[64];
static uint64_t crashes;

/* ---- every store ---- */

/* A filter claims to be as the store. */
static bool is_claim(uintptr_t address)
{
	for (size_t i = 0; i < memory.filters_count; i++) {
		const struct abi_config *config = memory.filters[i].filter.map[KERNEL_CONFIG].memory;

		if (address == (uintptr_t)&config->generation)
			return config->generation != ABI_GENERATION_DIRTY;
	}
	return false;
}

static void judge_panel(uintptr_t address)
{
	crash_point();
	if (crash.every && is_claim(address))
		crash_at(CRASH_NEXT);
	for (size_t interface = 0; interface < MEMORY_INTERFACES; interface++) {
		if (!memory_path(interface))
			continue;
		for (size_t i = 0; i < panel_count; i++) {
			struct frame *frame = &panel[i];
			int verdict = judge_frame(frame);
			bool is_back;

			judged++;
			if (verdict == frame->verdict[interface])
				continue;
			/* From pass over a rate to drop is one way: of these packets, some drop early. */
			is_back = frame->way[interface] &&
				  (verdict > frame->verdict[interface]) != (frame->way[interface] > 0);
			frame->way[interface] = verdict > frame->verdict[interface] ? 1 : -1;
			frame->verdict[interface] = verdict;
			if (!is_back || *failure)
				continue;
			snprintf(failure, sizeof(failure),
				 "store %llu at %#lx: %s goes back to an earlier fate (%d) in: %s",
				 (unsigned long long)every_store.stores, address - (uintptr_t)memory.start, frame->text,
				 verdict, change_text);
		}
	}
}

/* The change is aborted: from here on each frame may get its old fate again. */
static void panel_turn(void)
{
	for (size_t i = 0; i < panel_count; i++)
		memset(panel[i].way, 0, sizeof(panel[i].way));
}

static void panel_begin(void)
{
	*failure = '\0';
	disk_refuses = panel_turn;
	for (size_t i = 0; i < panel_count; i++)
		for (size_t interface = 0; interface < MEMORY_INTERFACES; interface++) {
			panel[i].way[interface] = 0;
			if (memory_path(interface))
				panel[i].verdict[interface] = judge_frame(&panel[i]);
		}
}

/* ---- crashes ---- */

static void note_fates(char fates[CRASH_FATES])
{
	for (size_t interface = 0; interface < MEMORY_INTERFACES; interface++)
		for (size_t i = 0; i < panel_count && memory_path(interface); i++)
			fates[interface * FRAMES + i] = judge_frame(&panel[i]);
}

/* And of the rules in the store, with owners and ends, its settings and lists: a number that stands for all that. */
static void note_store(struct store *store, char fates[CRASH_FATES])
{
	static char text[DUMP_BYTES];
	uint64_t number = 1;

	dump_store(store, text, true);
	for (const char *at = text; *at; at++)
		number = (number ^ (unsigned char)*at) * 0x100000001b3ULL;
	memcpy(fates + CRASH_VERDICTS, &number, sizeof(number));
}

static void note_met(uintptr_t address)
{
	char fates[CRASH_FATES] = {};

	(void)address;
	note_fates(fates);
	for (size_t i = 0; i < CRASH_VERDICTS; i++)
		crash.seen->met[i] |= 1 << fates[i];
}

static void recover(enum crash_way way, struct crash_seen *seen, char fates[CRASH_FATES])
{
	static char state[sizeof(state_dir) + 8];
	char later[CRASH_FATES] = {};
	struct reason reason = {};
	struct session session;
	enum store_added added;
	struct rule rule;
	bool is_well = true;

	snprintf(state, sizeof(state), "%s/crash", state_dir);
	/* Of the steps of the repair itself, a few are judged: they are many. */
	if (way == CRASH_NEXT && !(crash.step % 16))
		every_store_begin(note_met);
	if (way == CRASH_OVERDUE)
		pass_time(2 * CONFIRM_MS);
	if (way == CRASH_LOAD) {
		clock_reboot(CONFIRM_MS / 4);
		path_jiffies = 1 << 20;
		memset(memory.interface, 0, sizeof(memory.interface));
		memory_forget_credits();
		is_well = load_from(state, 0, &reason);
	}
	is_well = is_well && !session_open(&session, state, NAME, &reason);
	if (every_store.is_on)
		every_store_end();
	note_fates(fates);
	if (is_well) {
		note_store(session.store, fates);
		is_well = !session.undone.error && !rule_parse("203.0.113.77", &rule, &reason) &&
			  !change_begin(&session, &reason);
		if (is_well)
			is_well = !change_end(&session, change_add(&session, &rule, &added, &reason), &reason);
		session_close(&session);
		note_fates(later);
		is_well = is_well && !memcmp(later, fates, CRASH_VERDICTS);
	}
	if (!is_well && !*seen->error)
		snprintf(seen->error, sizeof(seen->error), "step %llu, way %d: %.400s", (unsigned long long)crash.step,
			 way, reason.text);
}

/* What becomes of the rules before the change; with crashes_end(), of those after it. */
static void crashes_begin(uint64_t every)
{
	snprintf(crash.data, sizeof(crash.data), "%s/%s/data.mdb", state_dir, NAME);
	snprintf(crash.synced, sizeof(crash.synced), "%s/synced.mdb", state_dir);
	snprintf(crash.copy, sizeof(crash.copy), "%s/crash/%s", state_dir, NAME);
	snprintf(crash_dir, sizeof(crash_dir), "%s/crash", state_dir);
	mkdir(crash_dir, 0700);
	mkdir(crash.copy, 0700);
	crash.recover = recover;
	crash_begin(every);
	for (enum crash_way way = 0; way < CRASH_WAYS; way++)
		crash_at(way);
}

static void crashes_end(void)
{
	static const char *const names[] = { "the next command", "load", "an undo" };
	static struct crash_seen seen;
	const struct crash_outcome *wanted = crash.seen->outcome;

	crash.every = 0;
	seen = *crash.seen;
	crashes += seen.crashes;
	crash.seen->count = 0;
	crash.step = 1;
	crash_copy_file(crash.data, crash.synced);
	for (enum crash_way way = 0; way < CRASH_WAYS; way++)
		crash_at(way);
	if (*crash.seen->error && !*failure)
		snprintf(failure, sizeof(failure), "%.300s in: %.200s", crash.seen->error, change_text);
	for (size_t i = CRASH_WAYS; i < seen.count && !*failure; i++) {
		const struct crash_outcome *outcome = &seen.outcome[i];
		size_t at = 0;

		if (!memcmp(outcome->fates, wanted[outcome->way].fates, CRASH_FATES))
			continue;
		while (outcome->fates[at] == wanted[outcome->way].fates[at])
			at++;
		snprintf(failure, sizeof(failure),
			 "step %llu: after a crash, %s leaves neither the old rules nor the new: %s is %d, not %d, in: %s",
			 (unsigned long long)outcome->step, names[outcome->way],
			 at < CRASH_VERDICTS ? panel[at % FRAMES].text : "what the store holds", outcome->fates[at],
			 wanted[outcome->way].fates[at], change_text);
	}
	for (size_t i = 0; i < CRASH_VERDICTS && !*failure; i++)
		if (seen.met[i] & ~(1 << seen.outcome[CRASH_NEXT].fates[i] | 1 << wanted[CRASH_NEXT].fates[i]))
			snprintf(failure, sizeof(failure),
				 "while the next command repairs the filter after a crash, %s fares otherwise (%#x) in: %s",
				 panel[i % FRAMES].text, seen.met[i], change_text);
}

/* One change, each of whose stores is judged. `every`: with a crash at each of so many steps; 0: without. */
static int judged_change(const char *const *lines, size_t count, uint64_t every)
{
	struct reason reason = {};
	struct session session = {};
	bool is_library;
	int error;

	if (!strncmp(lines[0], "wait", 4)) {
		/* The command that comes then undoes what is due. */
		do_wait(lines[0]);
		panel_begin();
		every_store_begin(judge_panel);
		open_session(&session);
		every_store_end();
		session_close(&session);
		/* A new program with the same rules. */
		for (size_t i = 0; i < panel_count && strstr(lines[0], "older"); i++)
			if (panel[i].way[0] && !*failure)
				snprintf(failure, sizeof(failure), "%s fares otherwise in: %s", panel[i].text,
					 change_text);
		return 0;
	}
	is_library = !strcmp(lines[0], "library");
	if (!is_library)
		open_session(&session);
	panel_begin();
	if (every)
		crashes_begin(every);
	every_store_begin(judge_panel);
	error = is_library ? do_library(lines + 1, count - 1) : do_lines(&session, lines, count, &reason);
	every_store_end();
	if (every)
		crashes_end();
	session_close(&session);
	return error;
}

/* ---- the tests ---- */

static void copy_by_loop(void *to, const void *from, size_t bytes)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

static void copy_by_memcpy(void *to, const void *from, size_t bytes)
{
	memcpy(to, from, bytes);
}

/* A planted mixture is found, by whatever way it is stored. */
TEST(test_a_planted_store_is_found)
{
	void (*const copy[])(void *to, const void *from, size_t bytes) = { copy_by_loop, copy_by_memcpy };
	struct abi_config planted, whole;

	fill_panel();
	load(true, true, 0, 1, 1);
	plain_change(LINES("add 10.77.0.1"));
	for (size_t i = 0; i < COUNT(copy); i++) {
		memory_path(0);
		planted = whole = *path.config;
		planted.run = 0;
		panel_begin();
		every_store_begin(judge_panel);
		copy[i](path.config, &planted, 64);
		copy[i](path.config, &whole, 64);
		every_store_end();
		assert_string_not_equal(failure, "");
	}
}

static uint64_t flood_passed, flood_counted;

/* A packet of the first frame: it pays, and is counted by rule. */
static void judge_flood(uintptr_t address)
{
	struct verdict verdict;

	(void)address;
	memory_path(0);
	verdict = path_judge(panel[0].bytes, panel[0].length);
	path_used_count = 0;
	flood_passed += verdict.verdict != VERDICT_DROP;
	if (verdict.slot != LOOKUP_NO_SLOT) {
		path.count[verdict.slot].packets++;
		flood_counted++;
	}
}

/* Under a flood no count of a rule that stays is lost, and its rate gives at most one burst more, as time stands still. */
TEST(test_a_flood_through_changes)
{
	static const char *const rule[] = { "add 10.77.0.1", "add 10.77.0.1 rate 10/s" };
	static const char *const changes[][3] = {
		{ "add 10.77.0.2", "add 10.77.0.0/24 proto udp rate 10000/s" },
		{ "at-once", "add 10.77.0.128/25" },
		{ "more 400" },
		{ "more 600" },
		{ "del 10.77.0.2", "fewer 600" },
		{ "pending", "add proto tcp rate 10/s", "add proto tcp dport 22" },
		{ "undo" },
	};

	fill_panel();
	for (size_t kind = 0; kind < 2 * COUNT(rule); kind++) {
		struct verdict verdict;

		load(kind & 1, true, kind >> 1, 1, 1);
		plain_change(&rule[kind / 2], 1);
		flood_counted = 0;
		for (size_t i = 0; i < COUNT(changes); i++) {
			struct session session;
			struct reason reason;
			size_t count = 0;

			while (count < COUNT(changes[i]) && changes[i][count])
				count++;
			for (int packet = 0; packet < 2 * BURST; packet++)
				judge_flood(0);
			flood_passed = 0;
			open_session(&session);
			every_store_begin(judge_flood);
			assert_int_equal(do_lines(&session, changes[i], count, &reason), 0);
			every_store_end();
			session_close(&session);
			assert_in_range(flood_passed, 0, ABI_RATE_BURST_PACKETS);
			memory_path(0);
			verdict = path_judge(panel[0].bytes, panel[0].length);
			if (path.count[verdict.slot].packets != flood_counted)
				fail_msg("kind %zu: of %llu packets %llu are counted after: %s", kind,
					 (unsigned long long)flood_counted,
					 (unsigned long long)path.count[verdict.slot].packets, changes[i][0]);
		}
	}
}

TEST(test_narrower_prefixes_in_place_of_a_wider_one)
{
	fill_panel();
	load(true, true, 0, 1, 1);
	plain_change(LINES("add 10.77.0.0/24", "add 10.99.0.1", "add 10.99.0.2"));
	change_text = "a /24 becomes two /25";
	assert_int_equal(judged_change(LINES("del 10.77.0.0/24", "add 10.77.0.0/25", "add 10.77.0.128/25",
					     "del 10.99.0.1", "del 10.99.0.2"),
				       0),
			 0);
	print_message("# %llu stores, %llu verdicts\n", (unsigned long long)every_store.stores,
		      (unsigned long long)judged);
	assert_string_equal(failure, "");
}

TEST(test_a_failed_change_is_none)
{
	struct reason reason;
	struct session session;

	fill_panel();
	load(true, true, 0, 1, 1);
	open_session(&session);
	assert_int_equal(change_begin(&session, &reason), 0);
	assert_int_equal(do_line(&session, "add 10.77.0.1", &reason), 0);
	assert_int_equal(change_end(&session, -EIO, &reason), -EIO);
	session_close(&session);
	memory_path(0);
	assert_int_equal(judge_frame(&panel[0]), 2);
}

static unsigned int first_passed;

static void judge_first(uintptr_t address)
{
	(void)address;
	memory_path(0);
	first_passed += path_judge(panel[0].bytes, panel[0].length).verdict != VERDICT_DROP;
}

/* A key leaves the records, which are full of what is no rule, for the addresses. */
TEST(test_a_full_part_keeps_no_key_from_the_other)
{
	struct table_difference difference;
	struct reason reason;
	struct session session;
	struct table *records;
	uint64_t seed = 1;

	fill_panel();
	load(true, true, 1, 1, 1);
	plain_change(LINES("add 10.77.0.1 timeout 1h"));
	open_session(&session);
	records = &session.filters[0].tables.part[FILTER_RECORDS];
	for (size_t failed = 0; failed < 100;) {
		const struct hash_value value = { random_next(&seed), random_next(&seed) << ABI_END_BITS };

		failed += table_insert(records, &value, 0) == -ENOSPC;
	}
	assert_int_equal(change_begin(&session, &reason), 0);
	assert_int_equal(do_line(&session, "add 10.77.0.1", &reason), 0);
	assert_int_equal(do_line(&session, "add 10.78.0.1 timeout 1h", &reason), 0);
	first_passed = 0;
	every_store_begin(judge_first);
	assert_int_equal(filter_fill_in_place(&session.filters[0], session.store, &difference, &reason),
			 0);
	every_store_end();
	assert_int_equal(first_passed, 0);
	assert_true(difference.added == 2 && difference.kept == 3); /* load() has added three */
	session_close(&session);
}

/* Grace periods before the first store after which 10.77.0.1 passes by a rule, and 10.77.0.2 drops. */
static unsigned int graces_to_pass, graces_to_drop;

static void judge_order(uintptr_t address)
{
	(void)address;
	memory_path(0);
	if (!graces_to_pass && path_judge(panel[0].bytes, panel[0].length).outcome == OUTCOME_PASS_RULE)
		graces_to_pass = 1 + memory_graces;
	if (!graces_to_drop && path_judge(panel[3].bytes, panel[3].length).verdict == VERDICT_DROP)
		graces_to_drop = 1 + memory_graces;
}

/* A packet that has looked for pass rules before one came must not meet a drop rule that came with it. */
TEST(test_a_pass_rule_comes_long_before_a_drop_rule)
{
	struct reason reason;
	struct session session;

	fill_panel();
	load(true, true, 0, 1, 1);
	plain_change(LINES("add 10.77.0.1 action pass timeout 10s", "add 10.99.0.0/24"));
	path_jiffies += 100 << ABI_TICK_SHIFT; /* its entry has ended */
	open_session(&session);
	every_store_begin(judge_order);
	assert_int_equal(do_lines(&session, LINES("add 10.77.0.1 action pass timeout 1h", "add 10.77.0.0/24"), &reason),
			 0);
	every_store_end();
	session_close(&session);
	assert_in_range(graces_to_pass, 1, graces_to_drop - 1);
}

static unsigned int graces_to_repair;
static bool has_claimed, is_early;

static void judge_repair(uintptr_t address)
{
	if (!graces_to_repair)
		graces_to_repair = 1 + memory_graces;
	/* Behind what the config has of the filter itself are its tables; other maps are further away, or before it. */
	memory_path(0);
	is_early |= has_claimed && address - (uintptr_t)path.config >= offsetof(struct abi_config, table);
	has_claimed |= is_claim(address);
	judge_order(address);
	judge_panel(address);
}

/* Nor where it is repaired in place; and a rule of another kind drops packets before one that has gone stops to do so. */
TEST(test_a_repair_in_place)
{
	struct session session;

	fill_panel();
	load(false, true, 0, 1, 1);
	plain_change(LINES("add 10.99.0.1", "add 192.0.2.9"));
	memory.is_held = memory.is_hidden = true;
	plain_change(LINES("del 192.0.2.9", "add 192.0.2.0/24", "add 10.77.0.1 action pass", "add 10.77.0.0/24"));
	memory.is_hidden = false;
	graces_to_pass = graces_to_drop = graces_to_repair = memory_graces = 0;
	panel_begin();
	every_store_begin(judge_repair);
	open_session(&session);
	every_store_end();
	session_close(&session);
	assert_string_equal(failure, "");
	assert_in_range(graces_to_pass, 1, graces_to_drop - 1);
	assert_true(has_claimed && !is_early);
	/* No packet is left that began before the process that left it so ended. */
	assert_int_equal(graces_to_repair, 2);
}

/* ---- a filter whose one table cannot be exchanged: another tool holds its program ---- */

static void load_held(bool is_exact, __u64 addresses, uint64_t seed)
{
	fill_panel();
	load(false, is_exact, addresses, seed, 1);
	memory.is_held = true;
}

static void judged_in_place(const char *const *lines, size_t count, uint64_t seed)
{
	change_text = lines[0];
	assert_int_equal(judged_change(lines, count, 0), 0);
	if (*failure)
		fail_msg("seed %llu: %s", (unsigned long long)seed, failure);
}

/* What goes and what comes are together more kinds than a packet looks up. */
TEST(test_a_rate_stays_as_long_as_its_kind)
{
	char text[3][40][80];
	const char *lines[3][41] = { [0][40] = "add 10.77.0.0/24 proto udp rate 10/s",
				     [1][40] = "del 10.77.0.0/24 proto udp rate 10/s",
				     [2][40] = "add 10.77.0.0/25 proto udp rate 10/s" };

	for (size_t i = 0; i < 3 * 40; i++) {
		char *line = text[i / 40][i % 40];

		snprintf(line, sizeof(text[0][0]), "%s 10.99.0.%s dst 10.0.0.0/%zu %s", i / 40 == 1 ? "del" : "add",
			 i / 40 == 2 ? "0/24" : "1", 8 + i % 20, i % 40 < 20 ? "" : "proto udp");
		lines[i / 40][i % 40] = line;
	}
	load_held(true, 0, 1);
	plain_change(lines[0], COUNT(lines[0]));
	judged_in_place(lines[1], 2 * COUNT(lines[1]), 1);
}

/* Pass rules come before drop rules, and go after them, though nothing tells which of the old entries are whose. */
TEST(test_an_exception_is_never_alone)
{
	for (uint64_t seed = 1; seed <= 8; seed++) {
		load_held(true, seed % 2, seed);
		plain_change(LINES("add 10.77.0.1 action pass", "add 10.77.0.0/24", "add 10.99.0.1"));
		memory.is_hidden = true;
		plain_change(LINES("del 10.77.0.1 action pass", "del 10.77.0.0/24", "add 10.77.1.1 action pass",
				   "add 10.77.1.0/24", "add 10.78.0.1 timeout 1h"));
		memory.is_hidden = false;
		judged_in_place(LINES("wait 0"), seed);
	}
}

/*
 * The old rules and the new ones have no room beside each other. In half of the runs the new pass
 * rules alone have none either. The last of them is the exception to the drop rule. A rule that comes
 * later ends at its time. Where no record can hold a later end, it ends with `expire`.
 */
TEST(test_an_exception_in_a_full_table)
{
	static char text[604][64];
	const char *lines[604] = { "clear", "add 192.0.2.9 action pass", "add 192.0.2.0/24", "add 10.78.0.1 timeout 1h" };

	for (uint64_t seed = 1; seed <= 4; seed++) {
		for (size_t i = 4; i < COUNT(text); i++) {
			snprintf(text[i], sizeof(text[i]), "add 10.98.%zu.%zu%s", i / 256, i % 256,
				 seed % 2 ? " action pass" : "");
			lines[i] = text[i];
		}
		load_held(true, 0, seed);
		if (seed > 2) {
			memory_path(0);
			path.config->table[path.config->active % ABI_TABLES].epoch =
				(path_jiffies >> ABI_TICK_SHIFT) + 3600000 / MEMORY_TICK_MS + 100 - ABI_END_MAX;
		}
		plain_change(LINES("more 600", "add 10.78.0.1 action pass", "add 10.78.0.0/24"));
		judged_in_place(lines, COUNT(lines), seed);
		pass_time(3590000);
		memory_path(0);
		assert_int_equal(judge_frame(&panel[12]), 0); /* 10.78.0.1 */
		pass_time(12000);
		if (seed > 2)
			plain_change(LINES("expire"));
		assert_int_equal(judge_frame(&panel[12]), 2);
	}
}

/* Each table has the keys of the store and no others. Nobody has forgotten a filter, which would stay in the kernel. */
static void check_tables(void)
{
	struct session session;
	struct store_info info;
	struct shape_list shapes;
	bool is_shared = false;

	assert_int_equal(memory.open, 0);
	open_session(&session);
	assert_false(store_info(session.store, &info) || store_shapes(session.store, &shapes));
	for (size_t i = 0; i < shapes.count; i++)
		is_shared |= shapes.entry[i].is_shared; /* info.keys counts some keys twice */
	for (size_t i = 0; i < session.filters_count; i++) {
		const struct filter *filter = &session.filters[i];
		__u64 keys = 0;

		for (enum filter_part part = 0; part < FILTER_PARTS; part++) {
			const struct table *table = &filter->tables.part[part];

			keys += table->used;
			if (table->search)
				assert_int_equal(table_count(table), table->used);
		}
		if (!filter->kernel.options.has_addresses && !is_shared)
			assert_int_equal(keys, info.keys);
		assert_int_equal(filter->kernel.config->used, keys);
	}
	session_close(&session);
}

static void run_seed(uint64_t seed)
{
	const uint64_t changes = environment_number("EVERY_STORE_CHANGES", 12);
	const uint64_t crash_every = environment_number("EVERY_STORE_CRASH_AT", 1999);
	uint64_t random = seed;
	static char shown[2048];
	bool is_waiting = false;

	fill_panel();
	load(random_below(&random, 4), random_below(&random, 4), random_below(&random, 3), seed,
	     1 + random_below(&random, 2));
	if (!random_below(&random, 3))
		load_second();
	memory.is_held = !random_below(&random, 4);
	for (uint64_t i = 0; i < changes; i++) {
		char text[8][128];
		const char *lines[8];
		size_t count, used = 0;
		int error;

		draw_change(&random, is_waiting, text, lines, &count);
		for (size_t k = 0; k < count && used < sizeof(shown); k++)
			used += snprintf(shown + used, sizeof(shown) - used, "%s; ", lines[k]);
		change_text = shown;
		error = judged_change(lines, count, strstr(shown, "disk-full") ? 0 : crash_every);
		if (!error)
			is_waiting = still_waits(is_waiting, lines[0]);
		if (*failure)
			fail_msg("seed %llu, change %llu (%d): %s", (unsigned long long)seed, (unsigned long long)i,
				 error, failure);
		check_tables();
	}
}

TEST(test_drawn_changes)
{
	const uint64_t first = seed_of_run(), seeds = environment_number("EVERY_STORE_SEEDS", 8);

	every_store.stores = judged = 0;
	for (uint64_t seed = first; seed < first + seeds; seed++)
		run_seed(seed);
	print_message("# %llu stores, %llu verdicts\n", (unsigned long long)every_store.stores,
		      (unsigned long long)judged);
}

static void crashed_change(const char *text, const char *const *lines, size_t count)
{
	change_text = text;
	assert_int_equal(judged_change(lines, count, environment_number("EVERY_STORE_CRASH_AT", 83)), 0);
	assert_string_equal(failure, "");
}

/* EVERY_STORE_CRASH_AT=1: at each step of these. */
TEST(test_crashes)
{
	fill_panel();
	for (int kind = 0; kind < 2; kind++) {
		load(kind, kind, kind, 1, 1 + kind);
		crashed_change("four rules", LINES("add 10.77.0.0/24", "add 10.77.0.1 action pass", "add 10.99.0.1",
						   "add proto udp dport 53 rate 10/s"));
		crashed_change("rules of lists, some of others, too",
			       LINES("list a drawn", "add 10.77.0.0/24", "add 10.78.0.1 timeout 1h", "list b",
				     "add 10.99.0.1", "add 2001:db8::1"));
		crashed_change("another list in its place", LINES("import a 7"));
		crashed_change("a change to confirm",
			       LINES("pending", "del 10.77.0.1 action pass", "add 10.77.0.128/25 action pass",
				     "add 2001:db8::/32", "del 10.99.0.1", "add 10.77.0.2"));
		crashed_change("a change while another waits", LINES("add dst 198.51.100.7", "policy no-rule drop"));
		crashed_change("an undo", LINES("undo"));
	}
	print_message("# %llu crashes\n", (unsigned long long)crashes);
}

/* Others at each run. */
TEST(test_fresh_changes)
{
	const uint64_t seed = environment_number("SEED", time(NULL) * 1000003ULL + getpid());

	print_message("# SEED=%llu\n", (unsigned long long)seed);
	run_seed(seed);
}

/* ---- what never was ---- */

static char dumps[2][DUMP_BYTES];

/* What the store holds, in words, without what has ended. */
static void dump(char *text, bool has_lists)
{
	struct reason reason = {};
	struct session session;
	__u64 expired;

	open_session(&session);
	if (change_begin(&session, &reason) ||
	    change_end(&session, change_expire(&session, &expired, &reason), &reason))
		fail_msg("%s", reason.text);
	dump_store(session.store, text, has_lists);
	session_close(&session);
}

static void try_lines(const char *const *lines, size_t count)
{
	struct reason reason = {};
	struct session session;

	open_session(&session);
	do_lines(&session, lines, count, &reason);
	session_close(&session);
}

/* Changes by seed, each with a line in front of it. */
static void do_drawn(uint64_t seed, size_t changes, const char *front)
{
	for (size_t i = 0; i < changes; i++) {
		char text[8][128];
		const char *lines[9] = { front };
		size_t count;

		do
			draw_change(&seed, false, text, lines + 1, &count);
		while (!strncmp(lines[1], "wait", 4) || !strcmp(lines[1], "pending") || !strcmp(lines[1], "library"));
		try_lines(front ? lines : lines + 1, count + !!front);
	}
}

/* A list, with `adds` of rules that end after a second, and then two seconds. */
static void do_short(uint64_t seed, bool adds)
{
	for (int i = 0; i < 8; i++) {
		const char *rule = rules[random_below(&seed, COUNT(rules))];
		char line[128];

		snprintf(line, sizeof(line), "add %s timeout 1s", rule);
		if (!strstr(rule, "timeout"))
			plain_change((const char *const[]){ "list over", line }, 1 + adds);
	}
	pass_time(2000);
}

enum never { NEVER_UNDONE, NEVER_PENDING, NEVER_LONG, NEVERS };

/* A store in which something happened that must leave no trace, beside one in which it did not. */
static void compare_never(enum never never, uint64_t seed)
{
	for (int was = 0; was < 2; was++) {
		load(true, true, seed % 2, seed, 1);
		do_drawn(seed, never != NEVER_LONG ? 2 : 0, NULL);
		if (never == NEVER_LONG)
			do_short(seed, was);
		else if (was || never == NEVER_PENDING)
			do_drawn(seed + 1000000, 1, was ? "pending" : NULL);
		if (was && never == NEVER_PENDING)
			try_lines(LINES("confirm"));
		do_drawn(seed + 2000000, 2, NULL);
		if (was && never == NEVER_UNDONE)
			try_lines(LINES("undo"));
		dump(dumps[was], never != NEVER_LONG);
	}
	if (strcmp(dumps[0], dumps[1]))
		fail_msg("seed %llu, way %d: without it\n%s\nwith it\n%s", (unsigned long long)seed, never, dumps[0],
			 dumps[1]);
}

/* A change that is undone, the waiting of one that is confirmed, and rules that have ended. */
TEST(test_what_is_over_never_was)
{
	const uint64_t first = seed_of_run(), seeds = 3 * environment_number("EVERY_STORE_SEEDS", 8);

	for (uint64_t seed = first; seed < first + seeds; seed++)
		for (enum never never = 0; never < NEVERS; never++)
			compare_never(never, seed);
}

TEST_MAIN(setup_all, teardown_all)
#endif
