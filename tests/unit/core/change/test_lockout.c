// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Doors: a host of many addresses may be closed except for who is let in; the store is read once for all of them. */
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
			const struct rule any = { .family = flows[i].flow.family };
			bool has_door = !rule_covers(&drop, &flows[i].flow);

			for (size_t k = 0; k < count; k++)
				has_door |= guard_lets_in(&doors[k]) &&
					    rule_overlaps(&doors[k], drop.dst_len ? &flows[i].flow : &any);
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

TEST_MAIN(seed, NULL)
