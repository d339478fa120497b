// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Doors: a host of many addresses may be closed except for who is let in; the store is read once for all of them. Lists
 * never close it, and change while it is closed.
 */
#include "unit/store_fixture.h"
#include "change/change.h"

#define ADDRESSES 300
#define ROUNDS 40

static unsigned int reads;

int __real_store_each(struct store *store, int (*visit)(const struct rule *rule, void *context), void *context);
int __wrap_store_each(struct store *store, int (*visit)(const struct rule *rule, void *context), void *context);

int __wrap_store_each(struct store *store, int (*visit)(const struct rule *rule, void *context), void *context)
{
	reads++;
	return __real_store_each(store, visit, context);
}

static struct guard_flow flows[ADDRESSES];

/* Packets to an address of this host, as guard_open() describes them. */
static void draw_host(void)
{
	char text[RULE_TEXT_BYTES];

	for (size_t i = 0; i < ADDRESSES; i++) {
		if (i % 3)
			snprintf(text, sizeof(text), "dst 10.%d.0.%d", (int)below(4), (int)below(256));
		else
			snprintf(text, sizeof(text), "dst 2001:db8:%d::%d", (int)below(4), (int)below(256));
		flows[i].flow = rule_of(text);
		flows[i].flow.fields = RULE_NEW;
		snprintf(flows[i].what, sizeof(flows[i].what), "%.60s", text);
	}
}

static struct rule draw_door(void)
{
	static const char *const to[] = { "",
					  "dst 10.0.0.0/9",
					  "dst 10.2.0.0/16",
					  "dst 10.1.0.128/25",
					  "dst 10.3.0.7",
					  "dst 2001:db8:1::/48",
					  "dst 2001:db8::/47",
					  "dst 11.0.0.0/8" };
	static const char *const who[] = { "src 192.0.2.7", "src 2001:db8:9::7", "" };
	static const char *const how[] = { "proto tcp dport 22", "proto tcp dport 179", "proto udp dport 22",
					   "proto tcp dport 22 sport 7", "proto tcp dport 22" };
	const size_t where = below(COUNT(to));
	char text[RULE_TEXT_BYTES];

	snprintf(text, sizeof(text), "%s %s %s action pass", *to[where] ? "" : who[below(COUNT(who))], to[where],
		 how[below(COUNT(how))]);
	return rule_of(text);
}

static int change(struct session *session, const struct rule *rules, size_t count, struct reason *reason)
{
	enum store_added added;
	int error = change_begin(session, reason);

	for (size_t i = 0; i < count && !error; i++)
		error = change_add(session, &rules[i], &added, reason);
	return change_end(session, error, reason);
}

/* Whether a door lets somebody in to an address that the drop rule closes; to any of its family, if it names none. */
static bool opens(const struct rule *door, const struct rule *drop, const struct rule *flow)
{
	bool does = false;

	for (size_t i = 0; i < ADDRESSES; i++)
		does |= drop->dst_len ? flow == &flows[i].flow && rule_overlaps(door, flow) :
					flows[i].flow.family == flow->family && rule_overlaps(door, &flows[i].flow);
	return does && guard_lets_in(door);
}

STORE_TEST(test_doors)
{
	const struct guard guard = { .flows = flows, .count = ADDRESSES };
	struct session session = { .name = SESSION_NAME_DEFAULT, .store = f->store };
	static const char *const drops[] = { "dst 10.0.0.0/8", "dst 2001:db8::/32", "state new" };

	for (int round = 0; round < ROUNDS; round++) {
		const struct rule drop = rule_of(drops[below(COUNT(drops))]);
		const size_t count = below(4);
		const char *closed = NULL;
		struct rule doors[4];
		int error;

		draw_host();
		for (size_t i = 0; i < count; i++)
			doors[i] = draw_door();
		session.guard = NULL;
		assert_int_equal(change(&session, doors, count, &f->reason), 0);
		for (size_t i = 0; i < ADDRESSES && !closed; i++) {
			bool has_door = !rule_covers(&drop, &flows[i].flow);

			for (size_t k = 0; k < count; k++)
				has_door |= opens(&doors[k], &drop, &flows[i].flow);
			closed = has_door ? NULL : flows[i].what;
		}
		session.guard = &guard;
		reads = 0;
		error = change(&session, &drop, 1, &f->reason);
		if (error != (closed ? -ECANCELED : 0))
			fail_msg("round %d: %d: %s", round, error, f->reason.text);
		if (closed && !strstr(f->reason.text, closed))
			fail_msg("round %d: not %s: %s", round, closed, f->reason.text);
		assert_in_range(reads, 0, 1);
		session.guard = NULL;
		assert_int_equal(change_begin(&session, &f->reason), 0);
		assert_int_equal(change_end(&session, change_clear(&session, &f->reason), &f->reason), 0);
	}
}

/* Words of steps: "hand", "list": who adds the next rule; "del": the next is deleted; "pending": the change is. */
static int steps(struct session *session, const char *const *words, struct reason *reason)
{
	enum store_deleted deleted;
	enum store_added added;
	bool is_deletion = false;
	int error = change_begin(session, reason);

	for (; *words && !error; words++) {
		const struct rule rule = strchr(*words, ' ') ? rule_of(*words) : (struct rule){};

		if (!strcmp(*words, "pending"))
			error = change_set_pending(session, 3600000, reason);
		else if (!strcmp(*words, "hand") || !strcmp(*words, "list"))
			error = change_open_list(session, **words == 'h' ? NULL : *words, NULL, reason);
		else if (strcmp(*words, "del"))
			error = is_deletion ? change_del(session, &rule, &deleted, reason) :
					      change_add(session, &rule, &added, reason);
		is_deletion = !strcmp(*words, "del");
	}
	return change_end(session, error, reason);
}

STORE_TEST(test_a_closed_host)
{
	static const char door[] = "proto tcp dst 10.0.0.1 dport 22 action pass",
			  elsewhere[] = "proto tcp dst 198.51.100.9 dport 22 action pass";
	static const struct {
		const char *words[8];
		int error;
	} tries[] = {
		{ { "hand", elsewhere, "state new" }, -ECANCELED },
		{ { "hand", door, "dst 10.0.0.1" }, 0 },
		{ { "list", "src 192.0.2.1" }, 0 },
		{ { "list", "dst 10.0.0.0/8" }, -ECANCELED },
		{ { "list", "dst 10.0.0.0/8", "hand", "src 192.0.2.2" }, -ECANCELED },
		{ { "hand", "dst 10.0.0.0/8" }, 0 },
		{ { "list", "src 192.0.2.3" }, 0 },
		{ { "del", door }, -ECANCELED },
		{ { "hand", elsewhere, "del", door }, -ECANCELED },
		{ { "hand", "pending", "src 192.0.2.4" }, 0 },
		{ { "list", "src 192.0.2.5" }, 0 },
		{ { "del", door }, -ECANCELED },
		{ { "list", "dst 10.0.0.1" }, 0 }, /* the operator's rule, too */
	};
	struct guard_flow own = { .flow = rule_of("dst 10.0.0.1"), .what = "own" };
	const struct guard guard = { .flows = &own, .count = 1 };
	struct session session = { .name = SESSION_NAME_DEFAULT, .store = f->store, .guard = &guard };

	own.flow.fields = RULE_NEW;
	for (size_t i = 0; i < COUNT(tries); i++)
		if (steps(&session, tries[i].words, &f->reason) != tries[i].error)
			fail_msg("try %zu: %s", i, f->reason.text);
}

static int note_rule(const struct rule *rule, void *context)
{
	char text[RULE_TEXT_BYTES];
	struct rule noted = *rule;

	/* An end is told in hours, rounded up; + means: by hand and of the list. */
	noted.timeout_ms = (rule->timeout_ms + 3599999) / 3600000 * 3600000;
	strcat(strcat(context, rule_format(&noted, text)), (rule_owners_now(rule) & 3) == 3 ? " +; " : "; ");
	return 0;
}

static void note_left_out(void *context, const struct rule *rule, const struct reason *why)
{
	struct rule named = *rule;
	char text[RULE_TEXT_BYTES];

	(void)why;
	named.timeout_ms = rule->timeout_ms < 0 ? 0 : rule->timeout_ms;
	strcat(strcat(strcat(context, rule->timeout_ms < 0 ? "-" : "+"), rule_format(&named, text)), " ");
}

/*
 * Only what is new of a list is left out: a rule keeps its end, also for its other owners. A pass rule leaves if a drop rule
 * of the list is at fault, and stays if another is; then all drop rules of the list come that it makes harmless.
 */
STORE_TEST(test_what_a_list_leaves_out)
{
#define PASS "src 192.0.2.1 action pass"
#define MINE PASS " timeout 2h"
#define DOOR "proto tcp dst 10.0.0.1 dport 22 action pass"
	/* In `left`: how many are added, updated, removed, left to others, kept and left out; what is left out; all rules. */
	static const struct {
		const char *was[8], *wanted[6], *left;
	} tries[] = {
		{ { MINE, "list", "src 192.0.2.0/31 timeout 1h" },
		  { "src 192.0.2.0/31 timeout 4h" },
		  "0 0 0 0 0 1 +src 192.0.2.0/31 timeout 4h : src 192.0.2.0/31 timeout 1h; " MINE "; " },
		{ { MINE, "list", "src 192.0.2.0/31 timeout 1h comment a" },
		  { "src 192.0.2.0/31 timeout 4h comment b" },
		  "0 0 0 0 0 1 +src 192.0.2.0/31 timeout 4h comment \"b\" : "
		  "src 192.0.2.0/31 timeout 1h comment \"a\"; " MINE "; " },
		{ { "list", PASS }, { "del", PASS, "src 192.0.2.0/30" }, "0 0 1 0 0 1 +src 192.0.2.0/30 : " },
		{ { "list", PASS, "hand", "src 192.0.2.0/30" },
		  { "del", PASS, "src 192.0.2.9" },
		  "1 0 0 0 0 1 -" PASS " : src 192.0.2.0/30; " PASS "; src 192.0.2.9; " },
		{ { "list", PASS, "src 192.0.2.0/31 timeout 1h" },
		  { "del", PASS, "src 192.0.2.0/31 timeout 4h" },
		  "0 1 0 0 0 1 -" PASS " : src 192.0.2.0/31 timeout 4h; " PASS "; " },
		{ { "list", PASS, "hand", "src 192.0.2.0/30" },
		  { "del", PASS, "src 192.0.2.0/31", "src 192.0.2.1" },
		  "2 0 0 0 0 1 -" PASS " : src 192.0.2.0/30; src 192.0.2.0/31; src 192.0.2.1; " PASS "; " },
		{ { "list", PASS, "hand", "src 192.0.2.0/30" },
		  { "del", PASS, "src 192.0.2.0/30" },
		  "0 1 0 0 0 1 -" PASS " : src 192.0.2.0/30 +; " PASS "; " },
		{ { MINE, "src 192.0.2.0/31 timeout 1h" },
		  { "src 192.0.2.0/31", "src 192.0.2.9" },
		  "1 0 0 0 0 1 +src 192.0.2.0/31 : src 192.0.2.0/31 timeout 1h; " MINE "; src 192.0.2.9; " },
		{ { MINE, "src 192.0.2.0/31 timeout 1h", "list", "src 192.0.2.0/31 timeout 1h" },
		  { "src 192.0.2.0/31 timeout 4h", "src 192.0.2.9" },
		  "1 0 0 0 0 1 +src 192.0.2.0/31 timeout 4h : "
		  "src 192.0.2.0/31 timeout 1h +; " MINE "; src 192.0.2.9; " },
		{ { MINE, "src 192.0.2.0/31", "list", PASS },
		  { "del", PASS, "src 192.0.2.9" },
		  "1 0 0 0 0 1 -" PASS " : src 192.0.2.0/31; " PASS " +; src 192.0.2.9; " },
		/* Of two flows: one decides about the pass rule, and it makes a rule harmless for the other. */
		{ { "list", "src 192.0.2.0/24 action pass", "hand", "src 192.0.2.200" },
		  { "del", "src 192.0.2.0/24 action pass", "src 192.0.2.1" },
		  "1 0 0 0 0 1 -src 192.0.2.0/24 action pass : "
		  "src 192.0.2.0/24 action pass; src 192.0.2.1; src 192.0.2.200; " },
		{ { "list", DOOR, "src 192.0.2.7 action pass", "hand", "dst 10.0.0.1" },
		  { "del", DOOR, "del", "src 192.0.2.7 action pass" },
		  "0 0 1 0 0 1 -" DOOR " : dst 10.0.0.1; " DOOR "; " },
		/* A rule that gets another rate keeps its room. */
		{ { "list", "src 192.0.2.30 rate 10/s", "src 192.0.2.31 rate 10/s" },
		  { "src 192.0.2.29 rate 10/s", "src 192.0.2.31 rate 20/s" },
		  "0 1 0 0 0 1 +src 192.0.2.29 rate 10/s : src 192.0.2.30 rate 10/s; src 192.0.2.31 rate 20/s; " },
		/* A whole list: the undo would bring a pass rule back, and the list has it no more. */
		{ { "list", PASS, "src 192.0.2.0/31", "src 192.0.2.9" },
		  { "src 192.0.2.0/31", "src 192.0.2.9" },
		  "0 0 1 0 1 1 -src 192.0.2.0/31 : src 192.0.2.9; " },
	};
	struct guard_flow own[] = { { .flow = rule_of("src 192.0.2.1"), .what = "the gateway" },
				    { .flow = rule_of("src 192.0.2.200"), .what = "a server" },
				    { .flow = rule_of("dst 10.0.0.1"), .what = "own" } };
	const struct guard guard = { .flows = own, .count = COUNT(own) };
	struct session session = { .name = SESSION_NAME_DEFAULT, .store = f->store, .rates_max = 2 };

	own[2].flow.fields = RULE_NEW;
	for (size_t i = 0; i < COUNT(tries); i++) {
		const bool is_whole = i == COUNT(tries) - 1;
		char left[20 * RULE_TEXT_BYTES], out[10 * RULE_TEXT_BYTES] = "";
		struct rule_set wanted = {};
		struct change_equal equal = { .wanted = &wanted,
					      .is_entries = !is_whole,
					      .leaves_blockers = true,
					      .leaves_roomless = true,
					      .leave = note_left_out,
					      .context = out };
		const struct rule_diff *diff = &equal.diff;

		session.owner = STORE_BY_HAND;
		session.guard = NULL;
		assert_int_equal(steps(&session, tries[i].was, &f->reason), 0);
		if (is_whole)
			assert_int_equal(steps(&session, (const char *[]){ "pending", "del", PASS, NULL }, &f->reason),
					 0);
		for (const char *const *word = tries[i].wanted; *word; word++) {
			const bool is_gone = !strcmp(*word, "del");
			struct rule rule = rule_of(*(word += is_gone));

			rule.timeout_ms = is_gone ? -1 : rule.timeout_ms;
			assert_int_equal(rule_set_add(&wanted, &rule), 0);
		}
		session.guard = &guard;
		assert_int_equal(change_begin(&session, &f->reason), 0);
		assert_int_equal(change_open_list(&session, "list", NULL, &f->reason), 0);
		if (change_end(&session, change_make_equal(&session, &equal, &f->reason), &f->reason))
			fail_msg("try %zu: %s", i, f->reason.text);
		snprintf(left, sizeof(left), "%d %d %d %d %d %d %s: ", (int)diff->added, (int)diff->updated,
			 (int)diff->removed, (int)diff->left, (int)diff->kept, (int)equal.left_out.count, out);
		assert_int_equal(store_each(f->store, note_rule, left), 0);
		if (strcmp(left, tries[i].left))
			fail_msg("try %zu: %s\nnot: %s", i, left, tries[i].left);
		change_equal_close(&equal);
		rule_set_close(&wanted);
		session.guard = NULL;
		assert_int_equal(change_begin(&session, &f->reason), 0);
		assert_int_equal(change_end(&session, change_clear(&session, &f->reason), &f->reason), 0);
	}
}

TEST_MAIN(seed, NULL)
