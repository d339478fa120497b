// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reading what was written gives the same rules, in every format. */
#include "unit/list_fixture.h"

#define RULES 3000

/* Writes a sorted set in one format. */
static int write_text(FILE *to, const struct rule_set *set, const struct list_losses *losses)
{
	struct rule rule;

	(void)losses;
	for (size_t i = 0; i < set->count; i++) {
		rule_set_get(set, i, &rule);
		list_write_text(to, &rule);
	}
	return 0;
}

static int write_csv(FILE *to, const struct rule_set *set, const struct list_losses *losses)
{
	struct rule rule;

	(void)losses;
	list_write_csv_heading(to);
	for (size_t i = 0; i < set->count; i++) {
		rule_set_get(set, i, &rule);
		list_write_csv(to, &rule);
	}
	return 0;
}

static const struct writer {
	const char *name;
	enum list_format format;
	int (*write)(FILE *to, const struct rule_set *set, const struct list_losses *losses);
	bool holds_all; /* but rates */
} writers[] = {
	{ "text", LIST_TEXT, write_text, true },
	{ "csv", LIST_CSV, write_csv, true },
	{ "ipset", LIST_IPSET, list_write_ipset, false },
	{ "nft", LIST_NFT, list_write_nft, true },
};

static void add_lost(const struct rule *rule, const char *what, void *lost)
{
	assert_true(strstr(what, "left out") || strstr(what, "without its comment"));
	rule_set_add(lost, rule);
}

/*
 * Writes and reads back; the format is found from the content. *lost gets the losses that the writer
 * reported.
 */
static struct read_list there_and_back(const struct writer *writer, const struct rule_set *set, struct rule_set *lost)
{
	const struct list_losses losses = { add_lost, lost };
	struct read_list read;
	char *text = NULL;
	size_t length;
	FILE *to = open_memstream(&text, &length);

	assert_int_equal(writer->write(to, set, &losses), 0);
	fclose(to);
	read = read_bytes(LIST_UNKNOWN, 0, text, length);
	if (*read.refused)
		fail_msg("%s refuses what it wrote: %.300s", writer->name, read.refused);
	free(text);
	rule_set_sort(&read.set);
	return read;
}

static void assert_rule(const char *name, const struct rule *expected, const struct rule *seen)
{
	char expected_text[RULE_TEXT_BYTES], seen_text[RULE_TEXT_BYTES];

	rule_format(expected, expected_text);
	rule_format(seen, seen_text);
	if (strcmp(expected_text, seen_text))
		fail_msg("%s: wrote %s, read %s", name, expected_text, seen_text);
	assert_memory_equal(expected, seen, offsetof(struct rule, comment));
}

/* The rules in `set` that are not in `without`. */
static struct rule_set difference(const struct rule_set *set, const struct rule_set *without)
{
	struct rule_set left = {};
	struct rule rule;

	for (size_t i = 0, k = 0; i < set->count; i++) {
		rule_set_get(set, i, &rule);
		if (k < without->count && !rule_set_compare(without, k, &rule))
			k++;
		else
			rule_set_add(&left, &rule);
	}
	return left;
}

static struct rule_set random_set(uint64_t *seed, size_t count)
{
	struct rule_set set = {};

	for (size_t i = 0; i < count; i++) {
		struct rule rule = random_rule(seed);

		/* nft's limit has its own test; ipset splits rules for a whole family. */
		if (strlen(rule.comment) > 128)
			rule.comment[0] = '\0';
		rule_set_add(&set, &rule);
	}
	rule_set_sort(&set);
	return set;
}

static bool is_whole_family(const struct rule *rule)
{
	return rule->family != FLOW_NO_FAMILY && !rule->src_len && !rule->dst_len;
}

static void check(const struct writer *writer, const struct rule_set *set)
{
	struct rule_set lost = {};
	struct read_list read = there_and_back(writer, set, &lost);
	struct rule_set kept = difference(set, &lost);
	struct rule expected, seen;

	for (size_t i = 0; i < lost.count; i++) {
		rule_set_get(&lost, i, &expected);
		assert_true(!writer->holds_all || (expected.rate && writer->format == LIST_NFT));
	}
	assert_int_equal(read.set.count, kept.count);
	for (size_t i = 0; i < kept.count; i++) {
		rule_set_get(&kept, i, &expected);
		rule_set_get(&read.set, i, &seen);
		assert_rule(writer->name, &expected, &seen);
	}
	rule_set_close(&kept);
	rule_set_close(&lost);
	free_list(&read);
}

TEST(test_identity)
{
	uint64_t seed = seed_of_run();

	for (int round = 0; round < 8; round++) {
		struct rule_set set = random_set(&seed, round ? random_below(&seed, RULES) : 0);
		struct rule_set halved = {}, without = {};
		struct rule rule;

		for (size_t i = 0; i < set.count; i++) {
			rule_set_get(&set, i, &rule);
			if (is_whole_family(&rule))
				rule_set_add(&halved, &rule);
		}
		without = difference(&set, &halved);
		for (size_t i = 0; i < COUNT(writers); i++)
			check(&writers[i], writers[i].holds_all ? &set : &without);
		rule_set_close(&set);
		rule_set_close(&halved);
		rule_set_close(&without);
	}
}

static struct rule_set set_of(const char *const *texts, size_t count)
{
	struct rule_set set = {};
	struct reason reason;
	struct rule rule;

	for (size_t i = 0; i < count; i++) {
		if (rule_parse(texts[i], &rule, &reason))
			fail_msg("%s", reason.text);
		rule_set_add(&set, &rule);
	}
	rule_set_sort(&set);
	return set;
}

TEST(test_ipset_halves_a_whole_family)
{
	static const char *const texts[] = { "0.0.0.0/0", "proto tcp src ::/0 dport 22 timeout 1h" };
	struct rule_set set = set_of(texts, COUNT(texts)), lost = {};
	struct read_list read = there_and_back(&writers[2], &set, &lost);

	assert_int_equal(lost.count, 0);
	assert_string_equal(read.rules, "src 0.0.0.0/1\nsrc 128.0.0.0/1\n"
					"proto tcp src ::/1 dport 22 timeout 1h\n"
					"proto tcp src 8000::/1 dport 22 timeout 1h\n");
	rule_set_close(&set);
	free_list(&read);
}

/* ipset restore fails at a second set with the same name. */
TEST(test_ipset_names_no_set_twice)
{
	static const char *const texts[] = {
		"192.0.2.0/24 dst 198.51.100.7 proto tcp dport 80",
		"192.0.2.0/24 dst 198.51.100.0/24 proto tcp dport 80",
		"192.0.2.1 dst 198.51.100.7 proto tcp dport 80",
		"192.0.2.1 dst 198.51.100.0/24 proto tcp dport 80",
		"192.0.2.0/24 dst 198.51.100.7",
		"192.0.2.1 dst 198.51.100.7",
	};
	struct rule_set set = set_of(texts, COUNT(texts)), lost = {};
	struct read_list read = there_and_back(&writers[2], &set, &lost);

	assert_int_equal(read.set.count, COUNT(texts));
	assert_string_equal(read.notes,
			    "set 'xc-drop-src-dport-dst-net4' (hash:net,port,net): src, dport, dst, action drop\n"
			    "set 'xc-drop-src-dst-net4' (hash:net,net): src, dst, action drop\n"
			    "set 'xc-drop-src-dport-dst-ipnet4' (hash:ip,port,net): src, dport, dst, action drop\n"
			    "set 'xc-drop-src-dport-dst-ip4' (hash:ip,port,ip): src, dport, dst, action drop\n");
	rule_set_close(&set);
	free_list(&read);
}

/* ipset would refuse each of these, or turn it into something else. */
TEST(test_ipset_leaves_out)
{
	static const char *const texts[] = {
		"dport 53",
		"proto tcp",
		"proto udp dport 53",
		"192.0.2.1 dport 53",
		"192.0.2.1 proto tcp",
		"192.0.2.1 proto tcp sport 1 dport 2",
		"192.0.2.1 proto icmp",
		"proto icmp type 8",
		"192.0.2.1 proto icmp code 8",
		"192.0.2.1 proto dccp dport 5",
		"192.0.2.1 proto 0",
		"192.0.2.1 timeout 2147484",
	};
	struct rule_set set = set_of(texts, COUNT(texts)), lost = {};
	struct read_list read = there_and_back(&writers[2], &set, &lost);

	assert_int_equal(lost.count, COUNT(texts));
	assert_int_equal(read.set.count, 0);
	rule_set_close(&set);
	rule_set_close(&lost);
	free_list(&read);
}

TEST(test_nft_comments_end)
{
	struct rule_set set = {}, lost = {};
	struct read_list read;
	struct reason reason;
	struct rule rule;

	for (int length = 127; length <= 130; length++) {
		rule_parse("192.0.2.0", &rule, &reason);
		rule.src.byte[3] = length;
		memset(rule.comment, 'x', length);
		rule.comment[length] = '\0';
		rule_set_add(&set, &rule);
	}
	read = there_and_back(&writers[3], &set, &lost);
	assert_int_equal(lost.count, 2);
	assert_int_equal(read.set.count, 4);
	for (size_t i = 0; i < 4; i++) {
		rule_set_get(&read.set, i, &rule);
		assert_int_equal(strlen(rule.comment), i < 2 ? 127 + i : 0);
	}
	rule_set_close(&set);
	rule_set_close(&lost);
	free_list(&read);
}

/* Prefixes in a set must not overlap: nft would refuse or merge them. */
TEST(test_nft_sets_do_not_overlap)
{
	static const char *const texts[] = { "10.0.0.0/8",     "10.0.0.0/9",   "10.1.0.0/16",
					     "10.1.2.3",       "11.0.0.0/8",   "0.0.0.0/0 action pass",
					     "dst 10.0.0.0/8", "2001:db8::/32" };
	struct rule_set set = set_of(texts, COUNT(texts)), lost = {};
	struct read_list read = there_and_back(&writers[3], &set, &lost);

	assert_string_equal(read.notes, "set 'inet xdp_cuckoo xc_pass_src_4': src, action pass\n"
					"set 'inet xdp_cuckoo xc_drop_dst_4': dst, action drop\n"
					"set 'inet xdp_cuckoo xc_drop_src_4': src, action drop\n"
					"set 'inet xdp_cuckoo xc_drop_src_4_1': src, action drop\n"
					"set 'inet xdp_cuckoo xc_drop_src_4_2': src, action drop\n"
					"set 'inet xdp_cuckoo xc_drop_src_4_3': src, action drop\n"
					"set 'inet xdp_cuckoo xc_drop_src_6': src, action drop\n");
	rule_set_close(&set);
	free_list(&read);
}

/* Timeouts are rounded up to whole seconds, so that no rule ends early. */
TEST(test_timeouts_are_rounded_up)
{
	for (size_t i = 0; i < COUNT(writers); i++) {
		static const __s64 left[] = { 1, 999, 1000, 1001, 59999 };
		struct rule_set set = {}, lost = {};
		struct reason reason;
		struct rule rule;

		for (size_t k = 0; k < COUNT(left); k++) {
			struct read_list read;

			rule_parse("192.0.2.1", &rule, &reason);
			rule.timeout_ms = left[k];
			rule_set_add(&set, &rule);
			read = there_and_back(&writers[i], &set, &lost);
			rule_set_get(&read.set, 0, &rule);
			assert_int_equal(rule.timeout_ms, (left[k] + 999) / 1000 * 1000);
			free_list(&read);
			rule_set_close(&set);
		}
	}
}

TEST_MAIN(NULL, NULL)
