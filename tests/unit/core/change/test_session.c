// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Sessions: what they open, refuse and leave; sizes of tables; and what changes answer. */
#include "unit/test.h"

#ifndef __x86_64__
TEST(test_session)
{
	fprintf(stderr, "skipped: steps/changes.h needs x86-64\n");
	skip();
}

TEST_MAIN(NULL, NULL)
#else
#include <sys/file.h>

#include "steps/changes.h"

static struct reason reason;
static struct session session;

static void told(int error, int wanted, const char *word)
{
	if (error != wanted || (error && !strstr(reason.text, word)))
		fail_msg("%d, not %d: %s", error, wanted, reason.text);
	reason.text[0] = '\0';
}

/* 10.77.0.1, the first frame, drops, and the fourth does not. */
static void begin_one(void)
{
	fill_panel();
	load(true, true, 0, 1, 1);
	plain_change(LINES("add 10.77.0.1"));
}

static bool drops(size_t interface, size_t frame)
{
	return memory_path(interface) && judge_frame(&panel[frame]) == 0;
}

static int try_change(const char *const *lines, size_t count)
{
	reason.text[0] = '\0';
	session.owner = STORE_BY_HAND;
	return do_lines(&session, lines, count, &reason);
}

static __u64 rules_of(struct store *store)
{
	struct store_info info;

	assert_int_equal(store_info(store, &info), 0);
	return info.rules;
}

TEST(test_names)
{
	static const char *const names[] = { "a", "0.x_-", "abcdefghijabcdefghijabcdefghija" }, *const none[] = {
		"", ".a", "-a", "a/b", "a b", "\xc3\xa4", "abcdefghijabcdefghijabcdefghijab"
	};
	char dir[16];

	for (size_t i = 0; i < COUNT(names); i++)
		assert_true(session_is_name(names[i]));
	for (size_t i = 0; i < COUNT(none); i++)
		assert_false(session_is_name(none[i]));
	assert_string_equal(session_name_option(""), "");
	assert_string_equal(session_name_option(NAME), "");
	assert_string_equal(session_name_option("x"), " --name x");
	assert_int_equal(session_state_dir("/tmp/a", "12345678", dir, sizeof(dir)), 0);
	assert_string_equal(dir, "/tmp/a/12345678");
	assert_int_equal(session_state_dir("/tmp/a", "123456789", dir, sizeof(dir)), -ENAMETOOLONG);
}

TEST(test_another_writer)
{
	char file[64];
	int lock;

	begin_one();
	snprintf(file, sizeof(file), "%s/" NAME "/writer.lock", state_dir);
	lock = open(file, O_RDWR);
	assert_int_equal(flock(lock, LOCK_EX), 0);
	told(session_try_open(&session, state_dir, NAME, &reason), -EBUSY, "changing");
	assert_null(session.store);
	close(lock);
	told(session_try_open(&session, state_dir, NAME, &reason), 0, "");
	assert_int_equal(session.filters_count, 1);
	session_close(&session);
}

/* Nothing of the store of a dry run stays behind. Returns how many of its files are open. */
static unsigned int temporary_files(void)
{
	char link[32], target[128];
	unsigned int count = 0;

	for (int fd = 0; fd < 64; fd++) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		memset(target, 0, sizeof(target));
		if (readlink(link, target, sizeof(target) - 1) < 0 || strncmp(target, "/tmp/xdp-cuckoo.", 16))
			continue;
		assert_non_null(strstr(target, " (deleted)"));
		count++;
	}
	return count;
}

TEST(test_a_dry_run)
{
	char dir[64];

	begin_one();
	for (int is_new = 0; is_new < 2; is_new++) {
		snprintf(dir, sizeof(dir), "%s%s", state_dir, is_new ? "/none" : "");
		told(session_open_dry_run(&session, dir, NAME, &reason), 0, "");
		told(try_change(LINES("add 10.77.0.2", "add 10.77.0.129")), 0, "");
		assert_int_equal(session.planned.rules, is_new ? 2 : 3);
		assert_int_equal(rules_of(session.store), is_new ? 0 : 1);
		assert_int_equal(temporary_files() != 0, is_new);
		session_close(&session);
		assert_int_equal(access(dir, F_OK), is_new ? -1 : 0);
	}
	assert_true(drops(0, 0) && !drops(0, 3));
}

TEST(test_pauses)
{
	char command[128];

	begin_one();
	open_session(&session);
	told(try_change(LINES("add 10.77.0.2")), 0, "");
	session_pause(&session);
	assert_int_equal(session.paused_count, 1);
	told(session_resume(&session, state_dir, NAME, &reason), 0, "");
	assert_int_equal(rules_of(session.store), 2);
	told(try_change(LINES("del 10.77.0.1")), 0, "");
	assert_true(!drops(0, 0) && drops(0, 3));
	session_pause(&session);
	/* A copy of the store has taken its place. */
	snprintf(command, sizeof(command), "cd %s/" NAME " && cp data.mdb x && mv x data.mdb && rm lock.mdb",
		 state_dir);
	assert_int_equal(system(command), 0);
	told(session_resume(&session, state_dir, NAME, &reason), 0, "");
	told(try_change(LINES("add 10.77.0.1")), 0, "");
	session_unlock(&session);
	assert_true(drops(0, 0) && drops(0, 3));
	plain_change(LINES("del 10.77.0.2"));
	session_close(&session);
	assert_false(drops(0, 3));
}

static __u64 slots_of(size_t filter)
{
	return table_slots(&session.filters[filter].table);
}

TEST(test_sizes)
{
	struct abi_options exact, compact = { .format = BUCKET_16 };
	struct kernel_attachment *attachment;
	struct filter *filter;
	size_t renewed;

	begin_one();
	exact = loaded.options;
	plain_change(LINES("more 20", "add 10.77.0.2 timeout 1s"));
	told(session_open_to_load(&session, state_dir, NAME, false, &(struct reason){}, &reason), 0, "");
	told(session_load(&session, &exact, 21, &filter, &reason), -ENOSPC, "capacity of 21");
	told(session_load(&session, &exact, 1ULL << 40, &filter, &reason), -EINVAL, "at most");
	assert_int_equal(session.filters_count, 1);
	told(session_load(&session, &exact, 22, &filter, &reason), 0, "");
	assert_in_range(table_slots(&filter->table), 22, 4096);
	session_close(&session);
	told(session_open_to_load(&session, state_dir, NAME, false, &(struct reason){}, &reason), 0, "");
	told(session_load(&session, &exact, 0, &filter, &reason), 0, "");
	assert_int_equal(slots_of(1), 1 << 14);
	assert_ptr_equal(filter, &session.filters[1]);
	memory_attach(&filter->kernel, 1, true);
	assert_ptr_equal(session_filter_on(&session, "m1", true, &attachment), &filter->kernel);
	assert_int_equal(attachment->ifindex, 2);
	assert_null(session_attachment_on(&session, "m1", false));
	assert_non_null(session_attachment_on(&session, "m0", false));
	told(session_resize(&session, 1ULL << 40, &reason), -EINVAL, "at most");
	told(session_resize(&session, 3000, &reason), 0, "");
	assert_in_range(slots_of(0), 3000, 8192);
	told(session_renew(&session, &exact, 0, &renewed, &reason), 0, "");
	assert_int_equal(renewed, 0);
	told(session_renew(&session, &exact, 8000, &renewed, &reason), 0, "");
	assert_int_equal(renewed, 2);
	pass_time(2000);
	assert_int_equal(rules_of(session.store), 22);
	told(session_renew(&session, &compact, 0, &renewed, &reason), 0, "");
	assert_int_equal(renewed, 2);
	assert_int_equal(rules_of(session.store), 21);
	session_close(&session);
	assert_true(drops(0, 0) && drops(1, 0) && !drops(0, 3));
}

static void grows(__u64 keys, __u64 slots)
{
	const struct filter_parts parts = { .records = keys / 2, .addresses = keys, .both = keys / 2 };

	if (filter_slots_to_grow_to(&session.filters[0], parts) != slots)
		fail_msg("for %llu keys the table grows to %llu slots, not %llu", (unsigned long long)keys,
			 (unsigned long long)filter_slots_to_grow_to(&session.filters[0], parts),
			 (unsigned long long)slots);
}

TEST(test_what_a_table_grows_to)
{
	const __u64 most = 1ULL << ABI_SLOTS_MAX_LOG2;
	struct filter *filter;
	char text[32];

	begin_one();
	open_session(&session);
	filter = &session.filters[0];
	assert_int_equal(filter_room(&filter->kernel), 1 << 17);
	grows(100, filter_slots(&filter->kernel));
	grows(60000, table_slots_for(90000));
	grows(100000, 1 << 17);
	grows(125000, table_slots_for(187500));
	grows(most / 10 * 9, table_slots_for(most / 10 * 9));
	assert_int_equal(filter_full_reason(filter, 7, &reason), -ENOSPC);
	snprintf(text, sizeof(text), "at most %llu;", (unsigned long long)most * TABLE_LOAD_PERCENT / 100);
	assert_non_null(strstr(reason.text, text));
	filter->kernel.attachments[0].is_below = true;
	grows(125000, 1 << 17);
	assert_true(filter_can_build_successor(filter, 1 << 17) && !filter_can_build_successor(filter, (1 << 17) + 1));
	session_close(&session);
	load(false, true, 0, 1, 1);
	open_session(&session);
	filter = &session.filters[0];
	assert_int_equal(filter_room(&filter->kernel), filter_slots(&filter->kernel));
	grows(100000, table_slots_for(150000));
	filter->kernel.attachments[0].is_below = true;
	assert_false(filter_can_build_successor(filter, 1));
	session_close(&session);
}

/* No table has its secrets from another, or none; and its ends count from now. */
TEST(test_secrets)
{
	static const struct abi_table none;
	const struct abi_table *tables;

	load(true, true, 1, 1, 1);
	plain_change(LINES("at-once", "add 10.99.0.4"));
	memory_path(0);
	assert_int_equal(abi_active(path.config)->epoch, (path_jiffies >> ABI_TICK_SHIFT) - 2); /* ticks_now() */
	tables = path.config->table;
	for (int i = 0; i < ABI_TABLES; i++) {
		assert_memory_not_equal(&tables[i].secret, &none.secret, sizeof(none.secret));
		assert_memory_not_equal(&tables[i].addresses.secret, &none.addresses.secret,
					sizeof(none.addresses.secret));
	}
	assert_memory_not_equal(&tables[0].secret, &tables[1].secret, sizeof(none.secret));
	assert_memory_not_equal(&tables[0].addresses.secret, &tables[1].addresses.secret,
				sizeof(none.addresses.secret));
}

/* ---- what runs already ---- */

static struct abi_config *config_of(size_t interface)
{
	assert_true(memory_path(interface));
	return path.config;
}

TEST(test_other_versions)
{
	struct reason unseen;

	begin_one();
	config_of(0)->version = ABI_VERSION + 1;
	told(session_open(&session, state_dir, NAME, &reason), -EPROTO, "");
	config_of(0)->version = ABI_VERSION - 1;
	told(session_open_to_load(&session, state_dir, NAME, true, &unseen, &reason), -EINVAL, "--confirm");
	assert_true(drops(0, 0));
	open_session(&session);
	assert_int_equal(session.filters[0].state, FILTER_TAKEN_OVER);
	told(try_change(LINES("add 10.77.0.2")), 0, "");
	session_close(&session);
	assert_int_equal(config_of(0)->version, ABI_VERSION);
	assert_true(drops(0, 0) && drops(0, 3));
}

/* Before version 8 something else was where these members are. */
TEST(test_members_of_other_versions)
{
	begin_one();
	for (unsigned int version = 7; version <= 8; version++) {
		config_of(0)->outgoing = config_of(0)->received[4] = 5;
		config_of(0)->version = version;
		open_session(&session);
		session_close(&session);
		assert_int_equal(config_of(0)->outgoing, version < 8 ? 0 : 5);
		assert_int_equal(config_of(0)->received[4], version < 8 ? 0 : 5);
		assert_int_equal(config_of(0)->received[0], 1); /* where it runs: the old one did not note it */
	}
}

static __u64 slots_now(void)
{
	__u64 slots;

	open_session(&session);
	slots = filter_slots(&session.filters[0].kernel);
	assert_true(table_slots_of(config_of(0)->geometry) >= slots);
	session_close(&session);
	return slots;
}

static void add_timed(unsigned int count)
{
	enum store_added ignored;
	struct rule rule;
	char text[64];

	open_session(&session);
	told(change_begin(&session, &reason), 0, "");
	for (unsigned int i = 0; i < count; i++) {
		snprintf(text, sizeof(text), "10.98.%u.%u timeout 1h", i / 256, i % 256);
		told(rule_parse(text, &rule, &reason), 0, "");
		told(change_add(&session, &rule, &ignored, &reason), 0, "");
	}
	told(change_commit(&session, &reason), 0, "");
	session_close(&session);
}

/* Only `resize` makes a table smaller: not one full part, not fewer addresses, not a newer version. */
TEST(test_a_table_with_addresses_gets_no_smaller)
{
	__u64 slots;

	load(true, true, 3, 1, 1);
	plain_change(LINES("more 50000"));
	open_session(&session);
	told(session_resize(&session, 1500000, &reason), 0, ""); /* more than the smallest part has */
	session_close(&session);
	slots = slots_now();
	assert_true(slots * TABLE_LOAD_PERCENT / 100 >= 1500000);
	add_timed(60000);
	assert_in_range(slots_now(), slots + 1, 2 * slots);
	slots = slots_now();
	plain_change(LINES("at-once", "fewer 50000"));
	assert_true(slots_now() >= slots);
	config_of(0)->version = ABI_VERSION - 1;
	assert_true(slots_now() >= slots);
	open_session(&session);
	told(session_resize(&session, 70000, &reason), 0, "");
	session_close(&session);
	assert_true(slots_now() < slots);
}

static struct watchdog wanted;
static unsigned int wanted_count;

static void note_wanted(const struct watchdog *watchdog)
{
	assert_string_equal(watchdog->name, NAME);
	wanted = *watchdog;
	wanted_count++;
}

/* The process that waits for `confirm` is of the older version, or a reboot has ended it. */
TEST(test_a_change_that_nobody_watches)
{
	struct filter *filter;

	watchdog_wanted = note_wanted;
	begin_one();
	wanted_count = 0;
	plain_change(LINES("pending", "add 10.77.0.2"));
	assert_int_equal(wanted_count, 0);
	config_of(0)->version = ABI_VERSION - 1;
	open_session(&session);
	session_pause(&session);
	assert_int_equal(wanted_count, 1);
	assert_int_equal(wanted.pending_id, config_of(0)->pending_id);
	assert_in_range(watchdog_left(wanted.deadline_ms), CONFIRM_MS - 1000, CONFIRM_MS + 1000);
	told(session_resume(&session, state_dir, NAME, &reason), 0, "");
	session_close(&session);
	assert_int_equal(wanted_count, 1);
	config_of(0)->run &= ~ABI_RUN_SET_UP; /* as if another loader had loaded it anew */
	config_of(0)->magic = 0;
	open_session(&session);
	session_close(&session);
	assert_int_equal(wanted_count, 2);
	memory.interface[0].program = 0;
	told(session_open_to_load(&session, state_dir, NAME, false, &(struct reason){}, &reason), 0, "");
	told(session_load(&session, &loaded.options, 0, &filter, &reason), 0, "");
	memory_attach(&filter->kernel, 0, false);
	session_start(&session);
	session_close(&session);
	assert_int_equal(wanted_count, 3);
	config_of(0)->version = ABI_VERSION - 1;
	plain_change(LINES("confirm"));
	assert_int_equal(wanted_count, 3);
	watchdog_wanted = NULL;
	assert_true(drops(0, 3));
}

/* Another tool has loaded a filter. What has ended must not enter a table without ends. */
TEST(test_a_filter_of_another_loader)
{
	for (int is_exact = 0; is_exact < 2; is_exact++) {
		struct kernel_sizes sizes = { .tables = 2, .slots = 4096, .bucket_bytes = 8192 };
		struct kernel_filter other;
		int state;

		begin_one();
		plain_change(LINES("add 10.77.0.2 timeout 1s"));
		pass_time(2000);
		sizes.options =
			(struct abi_options){ .format = BUCKET_16, .is_exact = is_exact, .has_counts = is_exact };
		sizes.hint_shift = ABI_HINT_SHIFT_MOST;
		told(kernel_create(&sizes, &other, &reason), 0, "");
		memory_attach(&other, 1, false);
		other.config->run = ABI_RUN_UNCONFIRMED; /* of a load on trial that died */
		kernel_close(&other);
		state = open(state_dir, O_RDONLY | O_DIRECTORY);
		assert_int_equal(flock(state, LOCK_EX), 0);
		told(session_try_open(&session, state_dir, NAME, &reason), -EBUSY, "cannot lock");
		flock(state, LOCK_UN);
		assert_false(drops(1, 0));
		told(session_open_to_load(&session, state_dir, NAME, false, &(struct reason){}, &reason), 0, "");
		assert_int_equal(session.filters_count, 2);
		assert_false(drops(1, 0));
		assert_int_equal(flock(state, LOCK_EX | LOCK_NB), -1); /* nobody else sets it up */
		assert_int_equal(rules_of(session.store), 1 + is_exact);
		session_start(&session);
		assert_int_equal(flock(state, LOCK_EX | LOCK_NB), 0);
		close(state);
		session_close(&session);
		assert_true(drops(1, 0) && !drops(1, 3));
		plain_change(LINES("add 10.77.0.129"));
		assert_true(drops(0, 6) && drops(1, 6));
	}
}

/* One interface has left with its program, the other is here. */
TEST(test_an_interface_has_left)
{
	bool is_changed;
	size_t meant;

	begin_one();
	memory.runs_elsewhere = true;
	open_session(&session);
	assert_string_equal(session.not_reached.text, "");
	session.filters[0].kernel.config->received[1] = 2;
	session_close(&session);
	open_session(&session);
	assert_non_null(strstr(session.not_reached.text, "another network namespace"));
	session_close(&session);
	told(filter_panic(NAME, PANIC_BY_OPERATOR, true, &meant, &is_changed, &reason), -EREMOTE, "done here, but");
	memory.seen = KERNEL_NOT_ALLOWED;
	told(filter_panic(NAME, PANIC_BY_OPERATOR, false, &meant, &is_changed, &reason), -EPERM, "hides");
	memory.seen = KERNEL_SEEN;
	memory.runs_elsewhere = false;
	open_session(&session);
	assert_string_equal(session.not_reached.text, "");
	session_close(&session);
}

TEST(test_what_is_not_seen)
{
	struct reason unseen;

	begin_one();
	memory.seen = KERNEL_NOT_ALLOWED;
	told(session_open(&session, state_dir, NAME, &reason), -EPERM, "hides");
	assert_null(session.store);
	told(session_open_to_load(&session, state_dir, NAME, false, &unseen, &reason), 0, "");
	assert_string_equal(unseen.text, "the test hides one");
	session_close(&session);
	memory.seen = KERNEL_SEEN;
	memory.runs_elsewhere = true;
	memory.interface[0].program = 0;
	told(session_try_open(&session, state_dir, NAME, &reason), 0, "");
	assert_string_equal(session.not_reached.text, "");
	session_close(&session);
	open_session(&session);
	assert_non_null(strstr(session.not_reached.text, "another network namespace"));
	session_close(&session);
	memory.runs_elsewhere = false;
	open_session(&session);
	assert_string_equal(session.not_reached.text, "");
	session_close(&session);
}

/* ---- what changes answer ---- */

TEST(test_lists_and_limits)
{
	char text[64];
	__u64 ended;

	begin_one();
	open_session(&session);
	assert_int_equal(change_begin(&session, &reason), 0);
	for (int i = 1; i <= STORE_LISTS_MAX; i++) {
		snprintf(text, sizeof(text), "l%d", i);
		told(change_open_list(&session, text, NULL, &reason), 0, "");
	}
	told(change_open_list(&session, "more", NULL, &reason), -EUSERS, "63 lists already");
	told(change_find_list(&session, "l63", &reason), 0, "");
	told(change_find_list(&session, "more", &reason), -ESRCH, "no list 'more'");
	told(change_find_list(&session, NULL, &reason), 0, "");
	assert_int_equal(session.owner, STORE_BY_HAND);
	told(change_end(&session, 0, &reason), 0, "");
	told(try_change(LINES("pending", "drop l63", "drop l7")), 0, "");
	told(try_change(LINES("list more")), -EUSERS, "with 2 that the undo");
	told(try_change(LINES("pending")), -EBUSY, "waits for xdp-cuckoo confirm");
	told(try_change(LINES("undo")), 0, "");
	assert_int_equal(change_begin(&session, &reason), 0);
	for (int i = 0; i <= ABI_RATES_MAX; i++) {
		snprintf(text, sizeof(text), "add proto udp dport %d rate 10/s", i % ABI_RATES_MAX + 1);
		told(do_line(&session, text, &reason), 0, "");
	}
	told(do_line(&session, "add proto tcp rate 10/s", &reason), -E2BIG, "1024 rules with a rate,");
	told(change_end(&session, -E2BIG, &reason), -E2BIG, "");
	told(try_change(LINES("add 10.77.0.2 timeout 1s", "list l1", "add 10.77.0.2", "add 10.77.0.129 timeout 1s")), 0,
	     "");
	pass_time(2000);
	assert_int_equal(change_begin(&session, &reason), 0);
	told(change_expire(&session, &ended, &reason), 0, "");
	assert_int_equal(ended, 1);
	told(change_end(&session, 0, &reason), 0, "");
	assert_true(drops(0, 3) && !drops(0, 6));
	session_close(&session);
}

/* The notes of who added a rule; rates that others keep; room for kinds of rule, now and after the undo. */
TEST(test_notes_and_kinds)
{
	struct rule rule = rule_of("10.77.0.2 rate 10/s");
	struct store_addition addition;
	char text[RULE_TEXT_BYTES + 4], kind[RULE_TEXT_BYTES];
	int error = 0;

	begin_one();
	open_session(&session);
	session.notes_adder = true;
	session.adder = 7;
	told(try_change(LINES("add 10.77.0.2 rate 10/s", "list a", "add 10.77.0.2 rate 10/s", "add 10.77.0.1")), 0, "");
	assert_int_equal(store_addition(session.store, &rule, &addition), 0);
	assert_true(addition.user == 7 && addition.second);
	session.adder = 8;
	told(try_change(LINES("add 10.77.0.2 rate 10/s", "list a", "give 10.77.0.2 rate 10/s", "give 10.77.0.1")), 0,
	     "");
	assert_int_equal(store_addition(session.store, &rule, &addition), 0);
	assert_int_equal(addition.user, 7);
	assert_int_equal(session.kept_rates, 1);
	rule = rule_of("10.77.0.1");
	assert_int_equal(store_addition(session.store, &rule, &addition), -ENOENT);
	told(try_change(LINES("clear")), 0, "");
	assert_int_equal(change_begin(&session, &reason), 0);
	for (int i = 0; i < ABI_SHAPES_MAX; i++) {
		snprintf(text, sizeof(text), "add %s", kind_of_rule(i, kind));
		error = error ? error : do_line(&session, text, &reason);
	}
	told(change_end(&session, error, &reason), 0, "");
	told(try_change(LINES("add 192.0.2.1 action monitor")), -E2BIG, "room for no more");
	told(try_change(LINES("pending", "clear")), 0, "");
	told(try_change(LINES("add 192.0.2.1 action monitor")), -E2BIG, "confirm that change first");
	told(try_change(LINES("undo")), 0, "");
	assert_int_equal(session.undone.lost, 0);
	assert_int_equal(rules_of(session.store), ABI_SHAPES_MAX);
	session_close(&session);
}

/* As `restore` does: rules of many kinds, or else of many addresses, are all that there is. */
static int restore(bool of_kinds, int first, int count, bool is_pending)
{
	static const char *const ends[] = { "", " dport 53 proto udp", " dport 80 proto tcp", " proto tcp sport 5" };
	char text[64];
	int error = change_begin(&session, &reason);

	if (is_pending)
		error = error ? error : do_line(&session, "pending", &reason);
	error = error ? error : do_line(&session, "clear", &reason);
	for (int i = first; i < first + count && !error; i++) {
		const int length = 8 + i / 4;

		if (of_kinds)
			snprintf(text, sizeof(text), "add 10.%d.0.0/%d%s", 77 & (0xff00 >> (length < 16 ? length - 8 : 8)),
				 length, ends[i % 4]);
		else
			snprintf(text, sizeof(text), "add 10.1.%d.%d", i >> 8, i & 255);
		error = do_line(&session, text, &reason);
	}
	return change_end(&session, error, &reason);
}

/* A filter that is held gets a backup in place, even if kinds must be joined or there is no room for old and new keys. */
TEST(test_restore_into_a_held_filter)
{
	for (int of_kinds = 0; of_kinds < 2; of_kinds++) {
		load(false, true, 0, 1, 1);
		if (of_kinds)
			plain_change(LINES("more 20000")); /* the table grows */
		memory.is_held = true;
		open_session(&session);
		reason.text[0] = '\0';
		told(restore(of_kinds, 0, of_kinds ? 100 : 600, false), 0, "");
		told(restore(of_kinds, 0, of_kinds ? 100 : 600, false), 0, "");
		assert_int_equal(rules_of(session.store), of_kinds ? 100 : 600);
		assert_true(drops(0, 0) == of_kinds);
		if (!of_kinds) {
			told(restore(false, 1000, 600, true), -ENOSPC, "table full");
			told(restore(false, 1000, 600, false), 0, "");
			assert_int_equal(session.filters[0].table.used, 600);
			/* Beyond the load that the engine reaches, but not beyond all slots. */
			told(restore(false, 0, 1015, false), -ENOSPC, "table full");
			assert_int_equal(rules_of(session.store), 600);
			assert_int_equal(session.filters[0].table.used, 600);
		}
		session_close(&session);
	}
}

/* A key in the table counts as much as one of the change. */
TEST(test_when_a_table_is_full)
{
	__u64 most;
	char text[32];

	load(false, true, 0, 1, 1);
	plain_change(LINES("more 900"));
	open_session(&session);
	most = filter_slots(&session.filters[0].kernel) * TABLE_LOAD_PERCENT / 100 - session.filters[0].table.used;
	told(change_begin(&session, &reason), 0, "");
	for (__u64 i = 0; i < most; i++) {
		assert_false(change_is_full(&session));
		snprintf(text, sizeof(text), "add 10.1.0.%llu", (unsigned long long)i);
		told(do_line(&session, text, &reason), 0, "");
	}
	assert_true(change_is_full(&session));
	told(change_end(&session, 0, &reason), 0, "");
	session_close(&session);
}

/* A table that is changed key by key costs more for each key than a new one. */
TEST(test_a_long_list_comes_at_once)
{
	for (unsigned int count = 1000; count <= 1001; count++) {
		struct rule_set set = {};
		struct change_equal equal = { .wanted = &set };
		struct rule rule = rule_of("10.1.0.0");

		begin_one();
		for (unsigned int i = 0; i < count; i++) {
			rule.src.byte[2] = i >> 8;
			rule.src.byte[3] = i;
			assert_int_equal(rule_set_add(&set, &rule), 0);
		}
		open_session(&session);
		told(change_begin(&session, &reason), 0, "");
		told(change_open_list(&session, "l", NULL, &reason), 0, "");
		told(change_make_equal(&session, &equal, &reason), 0, "");
		assert_int_equal(session.filters[0].cause == FILTER_AT_ONCE, count > 1000); /* else: too small */
		change_equal_close(&equal);
		rule_set_close(&set);
		told(change_end(&session, 0, &reason), 0, "");
		session_close(&session);
	}
}

/* By a secret that gives all keys the same two buckets. */
TEST(test_keys_that_share_buckets)
{
	for (int is_held = 0; is_held < 2; is_held++) {
		load(false, true, 0, 1, 1);
		memory.is_held = is_held;
		memset(&config_of(0)->table[0].secret, 0, sizeof(struct hash_secret));
		open_session(&session);
		told(try_change(LINES("add 10.1.0.1", "add 10.1.0.2", "add 10.1.0.3", "add 10.1.0.4", "add 10.1.0.5",
				      "add 10.1.0.6", "add 10.1.0.7", "add 10.1.0.8", "add 10.77.0.1")),
		     is_held ? -ENOSPC : 0, "table full");
		assert_int_equal(rules_of(session.store), is_held ? 0 : 9);
		session_close(&session);
		assert_int_equal(drops(0, 0), !is_held);
	}
}

/* A table lacks a key that leaves. */
TEST(test_a_change_that_does_not_end)
{
	const struct rule rule = rule_of("10.77.0.1");
	struct rule_key keys[RULE_KEYS_MAX];

	begin_one();
	open_session(&session);
	rule_keys(&rule, keys);
	for (int is_pending = 1; is_pending >= 0; is_pending--) {
		told(filter_delete(&session.filters[0], keys), 0, "");
		assert_false(drops(0, 0));
		told(is_pending ? try_change(LINES("pending", "del 10.77.0.1")) : try_change(LINES("del 10.77.0.1")),
		     -ENOENT, is_pending ? "; the change is undone" : "; the rules are stored, and the next");
		assert_int_equal(session.confirm_ms, 0);
		assert_int_equal(rules_of(session.store), is_pending);
		assert_int_equal(drops(0, 0), is_pending);
	}
	session_close(&session);
}

TEST(test_settings)
{
	struct store_settings settings = store_settings_kept;
	struct store_pending pending;
	bool was_waiting;

	begin_one();
	open_session(&session);
	told(change_set_monitor_only(&session, true, &reason), 0, "");
	assert_false(drops(0, 0));
	told(change_set_monitor_only(&session, false, &reason), 0, "");
	assert_true(drops(0, 0));
	settings.policy[OUTCOME_NO_RULE] = VERDICT_DROP;
	told(try_change(LINES("pending", "add 10.77.0.2 action pass")), 0, "");
	told(change_settings(&session, &settings, 0, &reason), -EBUSY, "confirm it first");
	assert_false(drops(0, 6));
	told(try_change(LINES("confirm")), 0, "");
	told(change_settings(&session, &settings, CONFIRM_MS, &reason), 0, "");
	assert_int_equal(store_pending(session.store, &pending), 0);
	assert_in_range(pending.left_ms, CONFIRM_MS - 1000, CONFIRM_MS);
	assert_true(drops(0, 6) && !drops(0, 3));
	pass_time(2 * CONFIRM_MS);
	session_close(&session);
	assert_false(drops(0, 6) || drops(0, 0)); /* nobody has confirmed: all passes */
	open_session(&session);
	assert_true(session.undone.is_done && !session.undone.error && drops(0, 0) && !drops(0, 6));
	session_close(&session);
	open_session(&session);
	assert_false(session.undone.is_done);
	/* A load that waits is not in the store. */
	told(filter_set_unconfirmed(&session.filters[0], 0, 1, &reason), 0, "");
	pass_time(1000);
	assert_false(drops(0, 0));
	told(try_change(LINES("pending", "add 10.77.0.2")), -EBUSY, "another change waits");
	told(change_confirm(&session, &was_waiting, &reason), 0, "");
	assert_true(was_waiting && drops(0, 0) && !drops(0, 3));
	told(change_confirm(&session, &was_waiting, &reason), 0, "");
	assert_false(was_waiting);
	told(try_change(LINES("pending", "add 10.77.0.129")), 0, "");
	told(change_confirm(&session, &was_waiting, &reason), 0, "");
	assert_true(was_waiting && drops(0, 6));
	told(try_change(LINES("undo")), -ENOENT, "");
	session_close(&session);
}

TEST_MAIN(setup_all, teardown_all)
#endif
