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

	/* An end is told in hours, rounded up. */
	noted.timeout_ms = (rule->timeout_ms + 3599999) / 3600000 * 3600000;
	strcat(strcat(context, rule_format(&noted, text)), "; ");
	return 0;
}

/* Only what is new of a list is left out: a rule keeps its end, and a pass rule leaves if a drop rule is at fault. */
STORE_TEST(test_what_a_list_leaves_out)
{
#define PASS "src 192.0.2.1 action pass"
#define MINE PASS " timeout 2h"
	/* In `left`, before the rules: how many are added, updated, removed and left out. */
	static const struct {
		const char *was[8], *gone, *wanted, *left;
	} tries[] = {
		{ { MINE, "list", "src 192.0.2.0/31 timeout 1h" },
		  NULL,
		  "src 192.0.2.0/31 timeout 4h",
		  "0 0 0 1: src 192.0.2.0/31 timeout 1h; src 192.0.2.1 action pass timeout 2h; " },
		{ { MINE, "list", "src 192.0.2.0/31 timeout 1h comment a" },
		  NULL,
		  "src 192.0.2.0/31 timeout 4h comment b",
		  "0 0 0 1: src 192.0.2.0/31 timeout 1h comment \"a\"; src 192.0.2.1 action pass timeout 2h; " },
		{ { "list", PASS }, PASS, "src 192.0.2.0/30", "0 0 1 1: " },
		{ { "list", PASS, "hand", "src 192.0.2.0/30" },
		  PASS,
		  "src 192.0.2.9",
		  "1 0 0 1: src 192.0.2.0/30; src 192.0.2.1 action pass; src 192.0.2.9; " },
		{ { "list", PASS, "src 192.0.2.0/31 timeout 1h" },
		  PASS,
		  "src 192.0.2.0/31 timeout 4h",
		  "0 0 0 2: src 192.0.2.0/31 timeout 1h; src 192.0.2.1 action pass; " },
	};
	struct guard_flow gateway = { .flow = rule_of("src 192.0.2.1"), .what = "the gateway" };
	const struct guard guard = { .flows = &gateway, .count = 1 };
	struct session session = { .name = SESSION_NAME_DEFAULT, .store = f->store };

	for (size_t i = 0; i < COUNT(tries); i++) {
		struct rule_set wanted = {};
		struct change_equal equal = { .wanted = &wanted, .is_entries = true, .leaves_blockers = true };
		char left[10 * RULE_TEXT_BYTES] = "";
		struct rule rule;

		session.owner = STORE_BY_HAND;
		session.guard = NULL;
		assert_int_equal(steps(&session, tries[i].was, &f->reason), 0);
		rule = rule_of(tries[i].wanted);
		assert_int_equal(rule_set_add(&wanted, &rule), 0);
		if (tries[i].gone) {
			rule = rule_of(tries[i].gone);
			rule.timeout_ms = -1;
			assert_int_equal(rule_set_add(&wanted, &rule), 0);
		}
		session.guard = &guard;
		assert_int_equal(change_begin(&session, &f->reason), 0);
		assert_int_equal(change_find_list(&session, "list", &f->reason), 0);
		if (change_end(&session, change_make_equal(&session, &equal, &f->reason), &f->reason))
			fail_msg("try %zu: %s", i, f->reason.text);
		snprintf(left, sizeof(left), "%d %d %d %d: ", (int)equal.diff.added, (int)equal.diff.updated,
			 (int)equal.diff.removed, (int)equal.left_out.count);
		assert_int_equal(store_each(f->store, note_rule, left), 0);
		assert_string_equal(left, tries[i].left);
		change_equal_close(&equal);
		rule_set_close(&wanted);
		session.guard = NULL;
		assert_int_equal(change_begin(&session, &f->reason), 0);
		assert_int_equal(change_end(&session, change_clear(&session, &f->reason), &f->reason), 0);
	}
}

TEST_MAIN(seed, NULL)
