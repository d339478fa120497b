// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Each change again and again, and each time another call fails: one for memory, of the disk, of the kernel. The change is then
 * made or it is not, whole, in the store and for packets; an error is told, with a reason; and the next change finds all well.
 */
#include "unit/test.h"

#ifndef __x86_64__
TEST(test_failures)
{
	fprintf(stderr, "skipped: steps/changes.h needs x86-64\n");
	skip();
}

TEST_MAIN(NULL, NULL)
#else
#include "steps/crash.h"

/* ---- in place of the C library's ---- */

#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* the linker calls them */

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);

void *__wrap_malloc(size_t bytes)
{
	return memory_fails() ? NULL : __real_malloc(bytes);
}

static unsigned int refused_counts;
static bool refuses_counts;

void *__wrap_calloc(size_t count, size_t bytes)
{
	if (refuses_counts && bytes == sizeof(struct abi_counter)) {
		refused_counts++;
		return NULL;
	}
	return memory_fails() ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *old, size_t bytes)
{
	return memory_fails() ? NULL : __real_realloc(old, bytes);
}

/* ---- changes ---- */

/* The first line may be "wait MS", or alone "resize KEYS", "renew", "reopen". */
static const struct trial {
	const char *before[6], *lines[8];
} trials[] = {
	{ { "add 10.77.0.1" },
	  { "add 10.77.0.2", "add 10.77.0.129 action pass", "add dst 198.51.100.7", "add 10.78.0.1" } },
	{ { "add 10.77.0.0/24", "add 10.99.0.1" },
	  { "del 10.77.0.0/24", "add 10.77.0.0/25 timeout 1h", "add 10.77.0.128/25", "del 10.99.0.1" } },
	{ { "add 10.77.0.0/24", "add 10.76.0.0/14", "add 10.77.0.0/25 action pass" },
	  { "del 10.77.0.0/25 action pass", "add 10.77.0.0/23", "add 10.64.0.0/10", "del 10.77.0.0/24" } },
	{ { "add 10.77.0.1 timeout 1h" }, { "add 10.77.0.1", "add 10.77.0.2 timeout 2h", "add 10.77.0.2 timeout 3h" } },
	{ { "add 10.77.0.1" }, { "at-once", "add 10.77.0.2", "del 10.77.0.1" } },
	{ { "add 10.77.0.1" }, { "more 1300" } }, /* of these calls, some fail */
	{ { "more 20", "add 10.77.0.1" }, { "clear" } },
	{ { "add proto tcp rate 10/s" },
	  { "add proto udp rate 10/s", "add proto tcp rate 20/s", "add 10.77.0.1 rate 3/s" } },
	{ { "add 10.77.0.1 action pass" }, { "policy no-rule drop", "monitor-only on", "add 10.77.0.2" } },
	{ { "add 10.77.0.1", "monitor-only on" }, { "monitor-only off", "policy no-rule drop" } },
	{ { "add 10.77.0.1", "list a", "add 10.77.0.2" },
	  { "pending", "del 10.77.0.1", "add 10.77.0.129 action pass", "clear", "list b", "add 10.77.0.0/24",
	    "policy not-ip drop" } },
	{ { "pending", "add 10.77.0.1", "add 10.77.0.2 action pass" },
	  { "add 10.77.0.1", "del 10.77.0.2 action pass" } },
	{ { "pending", "add 10.77.0.1", "policy no-rule drop" }, { "undo" } },
	{ { "pending", "add 10.77.0.1", "list a", "add 10.77.0.2" }, { "confirm" } },
	{ { "list a", "add 10.77.0.1", "add 10.77.0.2", "hand", "add 10.77.0.2" },
	  { "list a", "replace 5", "replace 8" } },
	{ { "add 10.77.0.1 timeout 1s", "list a", "add 10.77.0.2 timeout 1s", "hand", "add 10.77.0.2" },
	  { "wait 2000", "expire" } },
	{ { "add 10.77.0.1", "more 20" }, { "resize 3000" } },
	{ { "add 10.77.0.1", "add 10.77.0.2 timeout 1s" }, { "wait 2000", "renew" } },
	{ { "add 10.77.0.1", "add 10.77.0.2" }, { "reopen" } },
};

static size_t count_of(const char *const *lines, size_t most)
{
	size_t count = 0;

	while (count < most && lines[count])
		count++;
	return count;
}

static int held;

static void note_hold(bool is_on)
{
	held += is_on ? 1 : -1;
	assert_in_range(held, 0, 2);
}

static int attempt(struct session *session, const char *const *lines, size_t count, struct reason *reason)
{
	struct abi_options options = session->filters[0].kernel.options;
	size_t renewed;

	if (!strcmp(lines[0], "reopen")) {
		/* As after a kill: its table must be repaired. */
		memory_path(0);
		path.config->generation = ABI_GENERATION_DIRTY;
		session_close(session);
		return session_open(session, state_dir, NAME, reason);
	}
	if (!strcmp(lines[0], "renew")) {
		options.is_exact = options.has_counts = !options.is_exact;
		return session_renew(session, &options, 0, &renewed, reason);
	}
	if (!strncmp(lines[0], "resize", 6))
		return session_resize(session, atoi(lines[0] + 7), reason);
	return do_lines(session, lines, count, reason);
}

/* ---- what must be ---- */

struct state {
	char text[DUMP_BYTES];
	char fates[MEMORY_INTERFACES * FRAMES];
	__u32 run[MEMORY_INTERFACES];
};

static void take_fates(struct state *state)
{
	for (size_t interface = 0; interface < MEMORY_INTERFACES; interface++) {
		if (!memory_path(interface))
			continue;
		state->run[interface] = path.config->run;
		for (size_t i = 0; i < panel_count; i++)
			state->fates[interface * FRAMES + i] = judge_frame(&panel[i]);
	}
}

static void take(struct state *state, struct store *store)
{
	memset(state, 0, sizeof(*state));
	dump_store(store, state->text, true);
	take_fates(state);
}

static bool are_fates(const struct state *a, const struct state *b)
{
	return !memcmp(a->fates, b->fates, sizeof(a->fates)) && !memcmp(a->run, b->run, sizeof(a->run));
}

static void begin_trial(const struct trial *trial, int kind)
{
	load(kind, kind, kind, 1, 1 + kind);
	plain_change(trial->before, count_of(trial->before, COUNT(trial->before)));
	if (!strncmp(trial->lines[0], "wait", 4))
		pass_time(atoi(trial->lines[0] + 5));
}

static uint64_t failed;

static void try_failures(const struct trial *trial, int kind)
{
	static struct state old, new, now;
	const bool waits = !strncmp(trial->lines[0], "wait", 4);
	const char *const *lines = trial->lines + waits;
	const size_t count = count_of(lines, COUNT(trial->lines) - waits);
	struct store_pending pending;
	struct reason reason;
	struct session session = {};
	bool is_over = false;

	for (uint64_t at = 0; !is_over; at += *lines[0] == 'm' ? 1 + 2 * at : 1) {
		bool is_old, is_new, is_plain;
		int error;

		if (at < 2 || strcmp(now.text, old.text) || memory.filters_count > MEMORY_FILTERS / 2)
			session_close(&session), begin_trial(trial, kind), open_session(&session);
		take(at ? &now : &old, session.store);
		assert_true(!at || (!strcmp(now.text, old.text) && are_fates(&now, &old)));
		reason.text[0] = '\0';
		session.owner = STORE_BY_HAND;
		memory.has_failed = false;
		memory.until_failure = at;
		error = attempt(&session, lines, count, &reason);
		memory.until_failure = 0;
		failed += memory.has_failed;
		is_over = at && !memory.has_failed;
		/* After a failed write of its last page LMDB refuses all: a new process sees what was written. */
		if (!session.store || store_pending(session.store, &pending)) {
			session_close(&session);
			open_session(&session);
		}
		take(at ? &now : &new, session.store);
		is_old = !strcmp(now.text, old.text);
		is_new = !strcmp(now.text, new.text);
		is_plain = !memory.has_failed || !error;
		if (held || (is_plain && error) || (error && !*reason.text) || (at && !is_old && !is_new) ||
		    (at && !error && !(is_new && are_fates(&now, &new))) ||
		    (at && error && is_old && !is_new && !are_fates(&now, &old)))
			fail_msg("kind %d, '%s ...', failure %llu: %d, %s\nbefore:\n%s\nwanted:\n%s\nnow:\n%s", kind,
				 lines[0], (unsigned long long)at, error, reason.text, old.text, new.text, now.text);
		/* The next change, in another session. */
		if (!at || (are_fates(&now, &old) && at % 8))
			continue;
		session_close(&session);
		plain_change(LINES("add 203.0.113.77"));
		plain_change(LINES("del 203.0.113.77"));
		take_fates(&now);
		assert_true((is_new && are_fates(&now, &new)) || (is_old && are_fates(&now, &old)));
		open_session(&session);
	}
	session_close(&session);
}

/* After the commit, for the packets that missed it in its new part. */
TEST(test_a_key_that_changes_its_part_waits)
{
	const struct rule rule = rule_of("10.77.0.1");
	struct rule_key key[RULE_KEYS_MAX];
	struct reason reason = {};
	struct session session;
	int error = -ENOMEM;

	load(true, true, 1, 1, 1);
	plain_change(LINES("add 10.77.0.1"));
	open_session(&session);
	rule_keys(&rule, key);
	for (uint64_t at = 1; error == -ENOMEM; at++) {
		memory.until_failure = at;
		error = filter_set_end(&session.filters[0], key, 1 << 30, NULL, &reason);
		memory.until_failure = 0;
	}
	assert_int_equal(error, -EIO);
	assert_non_null(strstr(reason.text, "grace period"));
	session_close(&session);
}

TEST(test_failures)
{
	change_hold_signals = note_hold;
	fill_panel();
	for (size_t i = 0; i < COUNT(trials); i++)
		for (int kind = 0; kind < 2; kind++)
			try_failures(&trials[i], kind);
	print_message("# %llu failures\n", (unsigned long long)failed);
}

/* They begin anew. */
TEST(test_no_memory_to_carry_counts_over)
{
	load(true, true, 0, 1, 1);
	plain_change(LINES("add 10.77.0.1"));
	memory_path(0);
	path.count[abi_active(path.config)->first_slot].packets = 1;
	refuses_counts = true;
	plain_change(LINES("at-once", "add 10.77.0.2"));
	refuses_counts = false;
	assert_int_not_equal(refused_counts, 0);
	memory_path(0);
	assert_true(judge_frame(&panel[0]) == 0 && judge_frame(&panel[3]) == 0);
}

TEST_MAIN(setup_all, teardown_all)
#endif
