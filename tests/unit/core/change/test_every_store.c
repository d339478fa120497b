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
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <net/if.h>
#include <time.h>

#include "change/change.h"
#include "change/internal.h"
#include "unit/clock_fixture.h"
#include "steps/crash.h"

#define NAME "default"
#define FRAMES 48
#define FRAME_BYTES 96
#define CONFIRM_MS 60000
#define BURST 12 /* frames that use up what a meter of 10/s has */

static char state_dir[] = "/dev/shm/xdp-cuckoo-test.XXXXXX";

/* ---- the panel ---- */

struct frame {
	__u8 *bytes;
	size_t length;
	char text[200];
	int verdict[MEMORY_INTERFACES]; /* the last one */
	int way[MEMORY_INTERFACES];     /* to fewer drops: 1; to more: -1; 0: it has not changed */
};

static struct frame panel[FRAMES];
static __u8 *panel_memory;
static size_t panel_count;
static uint64_t judged;
static char failure[512];
static const char *change_text = "";
static char crash_dir[64];
static uint64_t crashes;

/* A burst shows a rate, too: 0: all drop; 2: all pass. */
static int judge_frame(const struct frame *frame)
{
	int passed = 0;

	for (int i = 0; i < BURST; i++) {
		passed += path_judge(frame->bytes, frame->length).verdict != VERDICT_DROP;
		if (!path_used_count)
			return passed ? 2 : 0;
	}
	path_put_back();
	return passed == 0 ? 0 : passed == BURST ? 2 : 1;
}

static void judge_panel(uintptr_t address)
{
	crash_point();
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

static void panel_begin(void)
{
	*failure = '\0';
	for (size_t i = 0; i < panel_count; i++)
		for (size_t interface = 0; interface < MEMORY_INTERFACES; interface++) {
			panel[i].way[interface] = 0;
			if (memory_path(interface))
				panel[i].verdict[interface] = judge_frame(&panel[i]);
		}
}

static void add_frame(const char *src, const char *dst, __u16 sport, __u16 dport, bool is_tcp)
{
	struct frame *frame = &panel[panel_count];
	__u8 *at = panel_memory + panel_count++ * FRAME_BYTES;
	struct ethhdr *ethernet = (void *)at;
	const bool is_ipv6 = strchr(src, ':');
	__be16 *ports;

	memset(at, 0, FRAME_BYTES);
	frame->bytes = at;
	at += sizeof(*ethernet);
	if (is_ipv6) {
		struct ipv6hdr *ip = (void *)at;

		ethernet->h_proto = htons(ETH_P_IPV6);
		ip->version = 6;
		ip->nexthdr = is_tcp ? IPPROTO_TCP : IPPROTO_UDP;
		ip->payload_len = htons(20);
		inet_pton(AF_INET6, src, &ip->saddr);
		inet_pton(AF_INET6, dst, &ip->daddr);
		at += sizeof(*ip);
	} else {
		struct iphdr *ip = (void *)at;

		ethernet->h_proto = htons(ETH_P_IP);
		*ip = (struct iphdr){
			.version = 4, .ihl = 5, .tot_len = htons(40), .protocol = is_tcp ? IPPROTO_TCP : IPPROTO_UDP
		};
		inet_pton(AF_INET, src, &ip->saddr);
		inet_pton(AF_INET, dst, &ip->daddr);
		at += sizeof(*ip);
	}
	ports = (void *)at;
	ports[0] = htons(sport);
	ports[1] = htons(dport);
	at[13] = is_tcp ? FLOW_TCP_SYN : 0;
	at[12] = 0x50;
	frame->length = at + 20 - frame->bytes;
	snprintf(frame->text, sizeof(frame->text), "%s %s -> %s:%u", is_tcp ? "tcp" : "udp", src, dst, dport);
}

static const char *const sources4[] = { "10.77.0.1", "10.77.0.2", "10.77.0.129", "10.77.1.1", "10.78.0.1", "192.0.2.9" };
static const char *const sources6[] = { "2001:db8::1", "2001:db8::2", "2001:db8:1::1", "2001:db9::1" };

static void fill_panel(void)
{
	if (!panel_memory)
		panel_memory = mmap(NULL, FRAMES * FRAME_BYTES, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	panel_count = 0;
	for (size_t i = 0; i < COUNT(sources4); i++) {
		add_frame(sources4[i], "198.51.100.7", 1111, 53, false);
		add_frame(sources4[i], "198.51.100.7", 1111, 22, true);
		add_frame(sources4[i], "198.51.100.8", 2222, 80, true);
	}
	for (size_t i = 0; i < COUNT(sources6); i++) {
		add_frame(sources6[i], "2001:db8:f::7", 1111, 53, false);
		add_frame(sources6[i], "2001:db8:f::8", 2222, 80, true);
	}
}

/* ---- a filter ---- */

static void open_session(struct session *session)
{
	struct reason reason;

	if (session_open(session, state_dir, NAME, &reason))
		fail_msg("%s", reason.text);
}

static struct {
	struct abi_options options;
	unsigned int interfaces;
} loaded;

/* Loads the rules of the store in `state`. False: see *reason. */
static bool load_from(const char *state, __u64 capacity, struct reason *reason)
{
	struct reason unseen;
	struct session session;
	struct filter *filter;

	if (session_open_to_load(&session, state, NAME, false, &unseen, reason) ||
	    session_load(&session, &loaded.options, capacity, &filter, reason))
		return false;
	for (unsigned int i = 0; i < loaded.interfaces; i++)
		memory_attach(&filter->kernel, i, false);
	session_start(&session);
	session_close(&session);
	return true;
}

static void load(bool has_room, bool is_exact, uint64_t seed, unsigned int interfaces)
{
	struct reason reason;
	char command[64];

	loaded.options = (struct abi_options){
		.format = BUCKET_16, .is_exact = is_exact, .has_counts = is_exact, .is_alone = !has_room
	};
	loaded.interfaces = interfaces;
	fake_clock = clock_start;
	memory_reset(seed);
	snprintf(command, sizeof(command), "rm -rf %s/*", state_dir);
	if (system(command))
		abort();
	if (!load_from(state_dir, 900, &reason))
		fail_msg("%s", reason.text);
}

/* Time passes for the store and for packets. */
static void pass_time(__s64 ms)
{
	clock_advance(ms);
	path_jiffies += ms * MEMORY_JIFFIES_A_S / 1000;
}

/*
 * ---- changes: lines of words ----
 *
 * add RULE, del RULE, policy NAME VERDICT, monitor-only on|off, clear, more N, fewer N (unrelated addresses), at-once,
 * pending, which makes the change wait for `confirm`; expire; list NAME, of which the rules are from there on, hand; give
 * RULE, which the owner gives up; replace SEED, which gives the owner drawn rules and no others; alone: undo, confirm, wait MS.
 */

static int bulk(struct session *session, bool is_add, unsigned int count, struct reason *reason)
{
	int error = 0;

	for (unsigned int i = 0; i < count && !error; i++) {
		struct rule rule;
		enum store_added added;
		enum store_deleted deleted;
		char text[64];

		snprintf(text, sizeof(text), "10.99.%u.%u", i / 256, i % 256);
		error = rule_parse(text, &rule, reason);
		if (!error)
			error = is_add ? change_add(session, &rule, &added, reason) :
					 change_del(session, &rule, &deleted, reason);
	}
	return error;
}

static int set(struct session *session, const char *name, const char *value)
{
	struct store_settings settings;

	store_settings(session->store, &settings);
	if (!strcmp(name, "monitor-only"))
		settings.is_monitor_only = !strcmp(value, "on");
	else
		settings.policy[!strcmp(name, "no-rule") ? OUTCOME_NO_RULE : OUTCOME_NOT_IP] =
			strcmp(value, "drop") ? VERDICT_PASS : VERDICT_DROP;
	return store_set_settings(session->store, &settings);
}

#define RULES 51
static const char *const rules[RULES];

static int replace(struct session *session, uint64_t seed, struct reason *reason)
{
	struct rule_set wanted = {};
	struct rule_diff diff;
	struct rule rule;
	int error = 0;

	for (int i = 0; i < 6 && !error; i++) {
		error = rule_parse(rules[random_below(&seed, RULES)], &rule, reason);
		if (!error)
			error = rule_set_add(&wanted, &rule);
	}
	rule_set_sort(&wanted);
	if (random_below(&seed, 2))
		change_at_once(session);
	rule_diff_begin(&diff, &wanted, 1ULL << session->owner, !random_below(&seed, 3));
	if (!error)
		error = change_compare(session, &diff, reason);
	if (!error)
		error = change_replace(session, &diff, NULL, NULL, reason);
	rule_set_close(&wanted);
	rule_diff_close(&diff);
	return error;
}

static int do_line(struct session *session, const char *line, struct reason *reason)
{
	char verb[16], first[16] = "", second[16] = "";
	struct rule rule;
	enum store_added added;
	enum store_deleted deleted;
	__u64 expired;
	int error;

	sscanf(line, "%15s %15s %15s", verb, first, second);
	if (!strcmp(verb, "policy") || !strcmp(verb, "monitor-only"))
		return *second ? set(session, first, second) : set(session, verb, first);
	if (!strcmp(verb, "clear"))
		return change_clear(session, reason);
	if (!strcmp(verb, "more") || !strcmp(verb, "fewer"))
		return bulk(session, *verb == 'm', atoi(first), reason);
	if (!strcmp(verb, "pending"))
		return change_set_pending(session, CONFIRM_MS, reason);
	if (!strcmp(verb, "expire"))
		return change_expire(session, &expired, reason);
	if (!strcmp(verb, "list") || !strcmp(verb, "hand"))
		return change_open_list(session, *first ? first : NULL, *first ? "drawn" : NULL, reason);
	if (!strcmp(verb, "replace"))
		return replace(session, atoi(first), reason);
	if (!strcmp(verb, "at-once")) {
		change_at_once(session);
		return 0;
	}
	error = rule_parse(line + strlen(verb) + 1, &rule, reason);
	if (error)
		return error;
	if (!strcmp(verb, "give"))
		return change_give_up(session, &rule, &deleted, reason);
	return !strcmp(verb, "add") ? change_add(session, &rule, &added, reason) :
				      change_del(session, &rule, &deleted, reason);
}

static int do_lines(struct session *session, const char *const *lines, size_t count, struct reason *reason)
{
	bool was_waiting;
	int error;

	if (!strcmp(lines[0], "undo"))
		return change_undo(session, reason);
	if (!strcmp(lines[0], "confirm"))
		return change_confirm(session, &was_waiting, reason);
	error = change_begin(session, reason);
	if (error)
		return error;
	for (size_t i = 0; i < count && !error; i++)
		error = do_line(session, lines[i], reason);
	return change_end(session, error, reason);
}

/* ---- crashes ---- */

static void note_fates(char fates[CRASH_FATES])
{
	for (size_t interface = 0; interface < MEMORY_INTERFACES; interface++)
		for (size_t i = 0; i < panel_count && memory_path(interface); i++)
			fates[interface * FRAMES + i] = judge_frame(&panel[i]);
}

static void note_met(uintptr_t address)
{
	char fates[CRASH_FATES] = {};

	(void)address;
	note_fates(fates);
	for (size_t i = 0; i < CRASH_FATES; i++)
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
	bool is_well;

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
		memset(path_credits, 0, sizeof(path_credits));
		is_well = load_from(state, 0, &reason);
	} else {
		is_well = !session_open(&session, state, NAME, &reason);
	}
	if (every_store.is_on)
		every_store_end();
	note_fates(fates);
	if (is_well && way != CRASH_LOAD) {
		is_well = !session.undone.error && !rule_parse("203.0.113.77", &rule, &reason) &&
			  !change_begin(&session, &reason);
		if (is_well)
			is_well = !change_end(&session, change_add(&session, &rule, &added, &reason), &reason);
		session_close(&session);
		note_fates(later);
		is_well = is_well && !memcmp(later, fates, sizeof(later));
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
			 (unsigned long long)outcome->step, names[outcome->way], panel[at % FRAMES].text,
			 outcome->fates[at], wanted[outcome->way].fates[at], change_text);
	}
	for (size_t i = 0; i < CRASH_FATES && !*failure; i++)
		if (seen.met[i] & ~(1 << seen.outcome[CRASH_NEXT].fates[i] | 1 << wanted[CRASH_NEXT].fates[i]))
			snprintf(failure, sizeof(failure),
				 "while the next command repairs the filter after a crash, %s fares otherwise (%#x) in: %s",
				 panel[i % FRAMES].text, seen.met[i], change_text);
}

/* One change, each of whose stores is judged. `every`: with a crash at each of so many steps; 0: without. */
static int judged_change(const char *const *lines, size_t count, uint64_t every)
{
	struct reason reason = {};
	struct session session;
	int error;

	if (!strncmp(lines[0], "wait", 4)) {
		/* The command that comes then undoes what is due. */
		pass_time(atoi(lines[0] + 5));
		panel_begin();
		every_store_begin(judge_panel);
		open_session(&session);
		every_store_end();
		session_close(&session);
		return 0;
	}
	open_session(&session);
	panel_begin();
	if (every)
		crashes_begin(every);
	every_store_begin(judge_panel);
	error = do_lines(&session, lines, count, &reason);
	every_store_end();
	if (every)
		crashes_end();
	session_close(&session);
	return error;
}

static void plain_change(const char *const *lines, size_t count)
{
	struct reason reason = {};
	struct session session;

	open_session(&session);
	if (do_lines(&session, lines, count, &reason))
		fail_msg("%s", reason.text);
	session_close(&session);
}

#define LINES(...) (const char *const[]){ __VA_ARGS__ }, COUNT(((const char *const[]){ __VA_ARGS__ }))

/* ---- the tests ---- */

/* A planted store is found. */
TEST(test_a_planted_store_is_found)
{
	volatile __u32 *run;

	fill_panel();
	load(true, true, 1, 1);
	plain_change(LINES("add 10.77.0.1"));
	memory_path(0);
	run = &path.config->run;
	panel_begin();
	every_store_begin(judge_panel);
	*run = 0;
	*run = ABI_RUN_SET_UP;
	every_store_end();
	assert_true(every_store.stores >= 2);
	assert_string_not_equal(failure, "");
}

TEST(test_narrower_prefixes_in_place_of_a_wider_one)
{
	fill_panel();
	load(true, true, 1, 1);
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
	load(true, true, 1, 1);
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

static const char *const rules[RULES] = {
	"10.77.0.1",
	"10.77.0.2",
	"10.77.0.0/24",
	"10.77.0.0/25",
	"10.77.0.128/25",
	"10.76.0.0/14",
	"10.77.0.0/16",
	"10.77.0.1 action pass",
	"10.77.0.0/24 action pass",
	"10.77.0.0/25 action pass",
	"10.77.0.1 action monitor",
	"10.77.0.0/24 proto udp dport 53",
	"proto udp dport 53",
	"proto tcp dport 22",
	"proto tcp dport 80",
	"proto udp dport 53 action pass",
	"dst 198.51.100.7",
	"dst 198.51.100.8 action pass",
	"dst 198.51.100.0/24",
	"10.77.0.0/24 proto udp rate 10/s",
	"10.77.0.1 rate 10/s",
	"proto udp dport 53 rate 10/s",
	"proto tcp rate 10/s",
	"proto tcp state new",
	"10.77.0.0/24 state new",
	"10.77.0.1 state new",
	"proto tcp flags syn/syn,ack",
	"2001:db8::/32",
	"2001:db8::/48",
	"2001:db8::1",
	"2001:db8::1 action pass",
	"2001:db8::/33",
	"2001:db8::/31",
	"2001:db8::/32 proto udp dport 53",
	"10.77.0.1 timeout 1h",
	"10.77.0.0/24 timeout 1h",
	"10.77.0.1 action pass timeout 1h",
	"proto udp",
	"proto udp action pass",
	"10.64.0.0/10",
	"10.77.0.0/23",
	"10.77.0.0/22",
	"10.77.0.0/24 timeout 8s",
	"10.77.0.1 timeout 3s",
	"10.77.0.0/25 action pass timeout 5s",
	"10.77.0.0/24 proto udp rate 20/s",
	"proto udp dport 53 rate 2/s",
	"10.77.0.0/25 rate 3/s timeout 5s",
	"2001:db8::/32 rate 10/s",
	"2001:db8::1 timeout 5s",
	"proto udp length 20-100",
};

static const char *const others[] = {
	"policy no-rule drop",
	"policy no-rule pass",
	"monitor-only on",
	"monitor-only off",
	"clear",
	"more 20",
	"fewer 20",
	"more 400",
	"fewer 400",
	"at-once",
	"at-once",
	"expire",
	"list a",
	"list a",
	"list b",
};

/* `is_waiting`: a change waits for `confirm`. */
static void draw_change(uint64_t *seed, bool is_waiting, char (*text)[128], const char **lines, size_t *count)
{
	*count = 0;
	if (!random_below(seed, 8)) {
		lines[(*count)++] = random_below(seed, 2) ? "wait 4000" : "wait 130000";
		return;
	}
	if (is_waiting && !random_below(seed, 3)) {
		lines[(*count)++] = random_below(seed, 3) ? "undo" : "confirm";
		return;
	}
	if (!is_waiting && !random_below(seed, 3))
		lines[(*count)++] = "pending";
	if (!random_below(seed, 3))
		lines[(*count)++] = others[random_below(seed, COUNT(others))];
	for (size_t rules_left = 1 + random_below(seed, 5); rules_left; rules_left--) {
		static const char *const verbs[] = { "add", "add", "add", "del", "del", "give" };

		if (random_below(seed, 12))
			snprintf(text[*count], sizeof(text[0]), "%s %s", verbs[random_below(seed, COUNT(verbs))],
				 rules[random_below(seed, RULES)]);
		else
			snprintf(text[*count], sizeof(text[0]), "replace %u", (unsigned int)random_below(seed, 100000));
		lines[*count] = text[*count];
		++*count;
	}
}

static void run_seed(uint64_t seed)
{
	const uint64_t changes = environment_number("EVERY_STORE_CHANGES", 12);
	uint64_t random = seed;
	static char shown[2048];
	bool is_waiting = false;

	fill_panel();
	load(random_below(&random, 4), random_below(&random, 4), seed, 1 + random_below(&random, 2));
	for (uint64_t i = 0; i < changes; i++) {
		char text[8][128];
		const char *lines[8];
		size_t count, used = 0;
		int error;

		draw_change(&random, is_waiting, text, lines, &count);
		for (size_t k = 0; k < count && used < sizeof(shown); k++)
			used += snprintf(shown + used, sizeof(shown) - used, "%s; ", lines[k]);
		change_text = shown;
		error = judged_change(lines, count, environment_number("EVERY_STORE_CRASH_AT", 1999));
		if (!error)
			is_waiting = !strcmp(lines[0], "pending") ||
				     (is_waiting && strcmp(lines[0], "undo") && strcmp(lines[0], "confirm"));
		if (*failure)
			fail_msg("seed %llu, change %llu (%d): %s", (unsigned long long)seed, (unsigned long long)i,
				 error, failure);
	}
}

TEST(test_drawn_changes)
{
	const uint64_t first = seed_of_run(), seeds = environment_number("EVERY_STORE_SEEDS", 12);

	every_store.stores = judged = 0;
	for (uint64_t seed = first; seed < first + seeds; seed++)
		run_seed(seed);
	print_message("# %llu stores, %llu verdicts\n", (unsigned long long)every_store.stores,
		      (unsigned long long)judged);
}

static void crashed_change(const char *text, const char *const *lines, size_t count)
{
	change_text = text;
	assert_int_equal(judged_change(lines, count, environment_number("EVERY_STORE_CRASH_AT", 41)), 0);
	assert_string_equal(failure, "");
}

/* EVERY_STORE_CRASH_AT=1: at each step of these. */
TEST(test_crashes)
{
	fill_panel();
	for (int kind = 0; kind < 2; kind++) {
		load(kind, kind, 1, 1 + kind);
		crashed_change("four rules", LINES("add 10.77.0.0/24", "add 10.77.0.1 action pass", "add 10.99.0.1",
						   "add proto udp dport 53 rate 10/s"));
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

static int setup_all(void **state)
{
	(void)state;
	return mkdtemp(state_dir) ? 0 : -1;
}

static int teardown_all(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", state_dir);
	return system(command);
}

TEST_MAIN(setup_all, teardown_all)
#endif
