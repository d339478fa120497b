// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * No look-up in the middle of a change meets a mixture, wherever it stands still, and while any steps of the writer happen:
 * each frame gets the verdict of the old rules or of the new ones. SEED and READERS_SEEDS say which changes are drawn. In
 * test_small_changes() a look-up may outlast a change, until a grace period ends it: the memory that it reads is not used anew.
 */
#include "unit/test.h"

#if !defined(__x86_64__) || !defined(CALLS_BEFORE_LOADS)
TEST(test_readers)
{
	fprintf(stderr, "skipped: single steps need x86-64, and no other sanitizer\n");
	skip();
}

TEST_MAIN(NULL, NULL)
#else
#include <sys/syscall.h>
#include <sys/uio.h>

#include "steps/changes.h"
#include "steps/readers.h"

static char failure[512];
static const char *change_text = "";
static size_t frame_number;
/* After so many steps rules are whole: before, between and after the changes, and in an aborted one when all of it was there. */
static struct {
	size_t step;
	int verdict; /* of the frame */
} whole[8];
static size_t whole_count;
static bool is_refused;

static void note_whole(void)
{
	if (whole_count == COUNT(whole))
		abort();
	whole[whole_count++].step = replay.count;
}

static void note_refusal(void)
{
	if (!is_refused)
		note_whole();
	is_refused = true;
}

/* Whether rules that were whole in the life of the reader, or just before or after, give this verdict. */
static bool is_wanted(int verdict, size_t from, size_t to)
{
	size_t i = whole_count - 1;

	while (i && whole[i].step > from)
		i--;
	for (; i < whole_count; i++) {
		if (verdict == whole[i].verdict)
			return true;
		if (whole[i].step >= to && whole[i].step > from)
			return false;
	}
	return false;
}

ssize_t pwrite(int fd, const void *data, size_t count, off_t offset)
{
	return disk_is_full ? disk_refused() : syscall(SYS_pwrite64, fd, data, count, offset);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
	return disk_is_full ? disk_refused() : syscall(SYS_writev, fd, parts, count);
}

/* Where an address is, for people. */
static const char *place_text(uintptr_t address)
{
	static const char *const names[KERNEL_MAPS] = { [KERNEL_CONFIG] = "config",
							[KERNEL_BUCKETS] = "buckets",
							[KERNEL_RECORDS] = "records",
							[KERNEL_HINTS] = "hints",
							[KERNEL_RATES] = "rates" };
	static char text[2][64];
	static int turn;

	turn = !turn;
	snprintf(text[turn], sizeof(text[turn]), "?");
	for (size_t i = 0; i < memory.filters_count; i++)
		for (enum kernel_map_name name = 0; name < KERNEL_MAPS; name++) {
			const struct kernel_map *map = &memory.filters[i].filter.map[name];
			const size_t at = address - (uintptr_t)map->memory;

			if (names[name] && at < map->bytes)
				snprintf(text[turn], sizeof(text[turn]), "%s of filter %zu + %zu", names[name], i + 1,
					 at);
		}
	return text[turn];
}

static void judge(int verdict, size_t from, struct reader_stop first, struct reader_stop second)
{
	const bool is_still = first.place <= reader.places;

	(void)second;
	if (*failure || is_wanted(verdict, from, is_still ? first.step : from))
		return;
	if (!is_still) {
		snprintf(failure, sizeof(failure), "a reader of %s after %zu steps says %d in: %s",
			 panel[frame_number].text, from, verdict, change_text);
		return;
	}
	snprintf(failure, sizeof(failure),
		 "a reader of %s that began after %zu steps and stood still at load %zu (%s) until step %zu (%s) says %d in: "
		 "%.160s",
		 panel[frame_number].text, from, first.place, place_text(reader.place[first.place].address), first.step,
		 place_text((uintptr_t)memory.start + 8UL * replay.step[first.step - 1].word), verdict, change_text);
}

static int judge_now(size_t step, size_t interface)
{
	int verdict;

	replay_go(step);
	if (!memory_path(interface))
		return 1;
	verdict = path_judge(reader.frame, reader.bytes).verdict != VERDICT_DROP;
	reader_put_back();
	return verdict;
}

enum spent { SPENT_NONE, SPENT_EVEN, SPENT_ODD, SPENT_ALL };

/* Of the meters that keys lead to before the change, those with such numbers are empty. Later ones begin full. */
static void spend(enum spent spent)
{
	memory_forget_credits();
	replay_go(0);
	for (size_t i = 0; memory_path(0) && i < 2 * ABI_RATE_LINES * ABI_RATE_PLACES; i++) {
		const struct abi_rate_line *line = &path.rates->line[i / ABI_RATE_PLACES];
		const __u32 number = line->number[i % ABI_RATE_PLACES] % ABI_RATES;

		if (line->hash[i % ABI_RATE_PLACES] && spent >> number % 2 & 1)
			path.credits[number].empty_at = path_jiffies;
	}
}

static void stand_all(enum spent spent)
{
	spend(spent);
	for (size_t interface = 0; interface < MEMORY_INTERFACES; interface++)
		for (frame_number = 0; frame_number < panel_count && !*failure; frame_number++) {
			reader.frame = panel[frame_number].bytes;
			reader.bytes = panel[frame_number].length;
			for (size_t i = whole_count; i-- > 0;)
				whole[i].verdict = judge_now(whole[i].step, interface);
			readers_stand(interface, judge);
		}
	memory_forget_credits();
	replay_go(replay.count);
}

/* Whether the change has to do with rates: by its words, or the filter has any. */
static bool has_rates(const char *text)
{
	return strstr(text, "rate") || (memory_path(0) && abi_active(path.config)->rates);
}

/* ---- changes in a row, with readers in the middle ---- */

static char shown[2048];

static void begin_row(void)
{
	change_text = shown;
	*shown = '\0';
	whole_count = 0;
	disk_refuses = note_refusal;
	replay_record_begin();
	note_whole();
}

static int record_change(const char *const *lines, size_t count)
{
	struct reason reason = {};
	struct session session;
	const bool waits = !strncmp(lines[0], "wait", 4), is_library = !strcmp(lines[0], "library");
	int error = 0;

	for (size_t i = 0; i < count; i++)
		snprintf(shown + strlen(shown), sizeof(shown) - strlen(shown), "%s; ", lines[i]);
	if (waits)
		do_wait(lines[0]);
	is_refused = false;
	if (is_library) {
		do_library(lines + 1, count - 1);
	} else {
		open_session(&session); /* undoes what is due */
		if (!waits)
			error = do_lines(&session, lines, count, &reason);
		session_close(&session);
	}
	note_whole();
	return error;
}

static void end_row(void)
{
	replay_record_end();
	for (enum spent spent = SPENT_NONE; spent <= (has_rates(shown) ? SPENT_ALL : SPENT_NONE); spent++)
		stand_all(spent);
}

static int stood_change(const char *const *lines, size_t count)
{
	int error;

	begin_row();
	error = record_change(lines, count);
	end_row();
	return error;
}

static void print_readers(void)
{
	print_message(
		"# %llu pairs of a step and a place, %llu with several steps: %llu readers, %llu of whom stood still\n",
		(unsigned long long)readers.pairs, (unsigned long long)readers.spans, (unsigned long long)readers.noted,
		(unsigned long long)readers.tried);
}

/* Two planted stores, between which everything passes. */
TEST(test_a_planted_mixture_is_found)
{
	volatile __u32 *run;

	fill_panel();
	load(true, true, 0, 1, 1);
	plain_change(LINES("add 10.77.0.1"));
	memory_path(0);
	run = &path.config->run;
	begin_row();
	*run = 0;
	*run = ABI_RUN_SET_UP;
	note_whole();
	end_row();
	assert_string_not_equal(failure, "");
	*failure = '\0';
}

TEST(test_small_changes)
{
	static const char *const changes[][6] = {
		{ "add 10.77.0.1" },
		{ "add 10.77.0.0/24", "del 10.77.0.1" },
		{ "del 10.77.0.0/24", "add 10.77.0.0/25", "add 10.77.0.128/25" },
		{ "add 10.77.0.1 action pass", "add 10.77.0.0/24" },
		{ "del 10.77.0.1 action pass", "del 10.77.0.0/25", "del 10.77.0.128/25", "add 10.77.0.1" },
		{ "add proto udp dport 53 rate 10/s", "del 10.77.0.1" },
		{ "add proto udp dport 53 rate 20/s" },
		{ "del proto udp dport 53 rate 20/s", "add proto udp dport 53" },
		{ "policy no-rule drop", "add 10.77.0.1 action pass" },
		{ "policy no-rule pass", "del 10.77.0.1 action pass", "add 10.77.0.0/16" },
		{ "monitor-only on", "add 2001:db8::/32" },
		{ "monitor-only off", "del 2001:db8::/32" },
		{ "at-once", "add 10.77.0.2", "del 10.77.0.0/16" },
		{ "list a", "add 192.0.2.9 timeout 1h" },
		{ "add 192.0.2.9" }, /* into the addresses, and back */
		{ "give 192.0.2.9" },
		{ "at-once", "policy no-rule drop", "add 10.77.0.1 action pass", "add dst 198.51.100.7 action pass" },
		{ "at-once", "policy no-rule pass", "clear" }, /* as `restore` of an empty backup */
		{ "at-once", "add 10.77.0.2" },
		{ "at-once", "add 10.77.0.0/24" },
		{ "clear", "add 10.77.0.0/16", "add 10.77.0.1 action pass", "add 10.76.0.0/14" },
		{ "clear", "add 10.78.0.1 action pass", "add 10.78.0.0/16", "add proto tcp" },
		/* So many kinds that hints are read, and a shortcut that goes again. */
		{ "add 10.99.0.1", "add 10.99.1.0/24", "add 10.99.0.1 proto udp", "add 10.99.0.1 proto tcp",
		  "add 10.99.0.0/24 proto udp", "add 10.99.0.0/25" },
		{ "disk-full", "add 10.77.0.2 action pass", "add 10.77.0.0/16" },
	};

	fill_panel();
	for (size_t kind = 0; kind < 16; kind++) {
		load(kind & 1, kind & 2, kind >> 2 & 1, 1, 1);
		memory.is_held = kind & 8;
		/* Two in a row. */
		for (size_t i = 0; i < COUNT(changes); i++) {
			size_t count = 0;

			while (count < COUNT(changes[i]) && changes[i][count])
				count++;
			if (!i || i % 2 == (kind >> 1) % 2)
				begin_row();
			record_change(changes[i], count);
			if (i == COUNT(changes) - 1 || i % 2 != (kind >> 1) % 2)
				end_row();
			if (*failure)
				fail_msg("kind %zu: %s", kind, failure);
		}
	}
	print_readers();
}

/* The first line of the meter of a rule. */
static __u32 rate_line_of_rule(const char *text)
{
	struct rule_key keys[RULE_KEYS_MAX];
	struct reason reason;
	struct rule rule;

	if (rule_parse(text, &rule, &reason) || !rule_keys(&rule, keys))
		fail_msg("%s", reason.text);
	memory_path(0);
	return abi_rate_line_of(rule_hash(&keys[0], &abi_active(path.config)->secret).hash, 0);
}

/* A key that found its first place taken moves there when the other rule goes. The place still has the number of that meter. */
TEST(test_a_meter_keeps_its_key)
{
	static const char wanted_rule[] = "10.77.0.1 proto udp dport 53 rate 10/s";
	char other[64], line[80];

	fill_panel();
	load(true, true, 0, 1, 1);
	plain_change(LINES("add 10.77.0.9 proto udp dport 1 rate 5/s"));
	for (int port = 2;; port++) {
		snprintf(other, sizeof(other), "10.77.0.9 proto udp dport %d rate 10/s", port);
		if (rate_line_of_rule(other) == rate_line_of_rule(wanted_rule))
			break;
	}
	snprintf(line, sizeof(line), "add %s", other);
	stood_change(LINES(line));
	snprintf(line, sizeof(line), "add %s", wanted_rule);
	stood_change(LINES(line));
	snprintf(line, sizeof(line), "del %s", other);
	stood_change(LINES(line));
	assert_string_equal(failure, "");
}

static void run_seed(uint64_t seed)
{
	const uint64_t changes = environment_number("READERS_CHANGES", 12);
	uint64_t random = seed;
	bool is_waiting = false;

	fill_panel();
	load(random_below(&random, 4), random_below(&random, 4), random_below(&random, 3), seed,
	     1 + random_below(&random, 2));
	memory.is_held = !random_below(&random, 4);
	for (uint64_t i = 0; i < changes; i++) {
		char text[8][128];
		const char *lines[8];
		size_t count;
		int error;

		draw_change(&random, is_waiting, text, lines, &count);
		error = stood_change(lines, count);
		if (!error)
			is_waiting = still_waits(is_waiting, lines[0]);
		if (*failure)
			fail_msg("seed %llu, change %llu (%d): %s", (unsigned long long)seed, (unsigned long long)i,
				 error, failure);
	}
}

TEST(test_drawn_changes)
{
	const uint64_t first = seed_of_run(), seeds = environment_number("READERS_SEEDS", 8);

	for (uint64_t seed = first; seed < first + seeds; seed++)
		run_seed(seed);
	print_readers();
}

TEST_MAIN(setup_all, teardown_all)
#endif
