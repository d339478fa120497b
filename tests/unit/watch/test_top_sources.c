// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The sources of a network: the heaviest are found, whatever number of others there is. */
#include "unit/test.h"
#include "watch/top.h"

static struct rule rule_of(const char *text)
{
	struct reason reason;
	struct rule rule;

	if (rule_parse(text, &rule, &reason))
		fail_msg("%s: %s", text, reason.text);
	return rule;
}

static void add(struct top_sources *sources, const char *text)
{
	const struct rule flow = rule_of(text);

	top_sources_add(sources, &flow);
}

static void choose(struct top_sources *sources, const char *text)
{
	const struct rule network = rule_of(text);

	top_sources_choose(sources, &network);
}

TEST(test_which_rules_have_many_sources)
{
	static const struct {
		const char *text;
		bool has_many;
	} rules[] = { { "192.0.2.0/24", true },      { "192.0.2.1", false },    { "2001:db8::/32", true },
		      { "2001:db8::1", false },      { "dst 192.0.2.1", true }, { "proto udp dport 53", true },
		      { "192.0.2.1 dport 1", false } };

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		const struct rule rule = rule_of(rules[i].text);

		if (top_sources_many(&rule) != rules[i].has_many)
			fail_msg("%s", rules[i].text);
	}
}

/* Two sources of 10 % and 5 % among 5000 others, which each come once. */
TEST(test_heavy_sources_among_many)
{
	struct top_sources *sources = calloc(1, sizeof(*sources));
	char text[64];

	choose(sources, "10.0.0.0/8");
	for (int i = 0; i < 5000; i++) {
		snprintf(text, sizeof(text), "10.1.%d.%d", i / 250, i % 250);
		add(sources, text);
		if (i % 8 == 0)
			add(sources, "10.2.0.1");
		if (i % 16 == 0)
			add(sources, "10.2.0.2");
	}
	add(sources, "192.0.2.1"); /* another network's */
	top_sources_age(sources);
	assert_true(sources->count <= TOP_SOURCES);
	assert_string_equal(top_sources_text(sources, 0, text), "10.2.0.1");
	assert_string_equal(top_sources_text(sources, 1, text), "10.2.0.2");
	assert_true(top_sources_share(sources, 0) > 0.1 && top_sources_share(sources, 0) < 0.12);
	free(sources);
}

TEST(test_another_network_starts_anew)
{
	struct top_sources *sources = calloc(1, sizeof(*sources));

	choose(sources, "10.0.0.0/8");
	add(sources, "10.0.0.1");
	choose(sources, "10.0.0.0/8");
	assert_int_equal(sources->count, 1);
	choose(sources, "2001:db8::/32");
	assert_int_equal(sources->count, 0);
	add(sources, "10.0.0.1");
	add(sources, "2001:db8::1");
	assert_int_equal(sources->count, 1);
	free(sources);
}

/* What has stopped is forgotten, so that the memory is for what comes now. */
TEST(test_old_sources_end)
{
	struct top_sources *sources = calloc(1, sizeof(*sources));

	choose(sources, "10.0.0.0/8");
	for (int i = 0; i < 100; i++)
		add(sources, "10.0.0.1");
	top_sources_age(sources);
	assert_int_equal(sources->count, 1);
	for (int i = 0; i < 100; i++)
		top_sources_age(sources);
	assert_int_equal(sources->count, 0);
	free(sources);
}

TEST_MAIN(NULL, NULL)
