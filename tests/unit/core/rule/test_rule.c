// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rule text, and the encoded form of a rule. Each text is a row of a table. */
#include "unit/rule_fixture.h"

struct good_text {
	const char *text, *canonical;
	size_t keys;
};

static const struct good_text good[] = {
	{ "192.0.2.1", "src 192.0.2.1", 1 },
	{ "192.0.2.0/24", "src 192.0.2.0/24", 1 },
	{ "192.0.2.1/32", "src 192.0.2.1", 1 },
	{ "2001:db8::/32", "src 2001:db8::/32", 1 },
	{ "2001:DB8:0::1", "src 2001:db8::1", 1 },
	{ "::/0", "src ::/0", 1 },
	{ "0.0.0.0/0", "src 0.0.0.0/0", 1 },
	{ "dst 0.0.0.0/0", "src 0.0.0.0/0", 1 },
	{ "dst 192.0.2.1 src 0.0.0.0/0", "dst 192.0.2.1", 1 },
	{ "dport 443 dst 198.51.100.7 sport 1234 src 192.0.2.1 proto tcp",
	  "proto tcp src 192.0.2.1 sport 1234 dst 198.51.100.7 dport 443", 1 },
	{ "src 203.0.113.0/24 dport 53 proto udp action drop comment \"open resolvers\"",
	  "proto udp src 203.0.113.0/24 dport 53 comment \"open resolvers\"", 1 },
	{ "proto udp dport 53", "proto udp dport 53", 2 },
	{ "dport 0", "dport 0", 2 },
	{ "proto 47", "proto gre", 2 },
	{ "proto 200 src 192.0.2.1", "proto 200 src 192.0.2.1", 1 },
	{ "proto icmp", "proto icmp", 1 },
	{ "proto icmp src 0.0.0.0/0", "proto icmp", 1 },
	{ "proto icmp type 8", "proto icmp type 8", 1 },
	{ "code 0 type 128 proto icmpv6", "proto ipv6-icmp type 128 code 0", 1 },
	{ "192.0.2.1 action pass", "src 192.0.2.1 action pass", 1 },
	{ "  192.0.2.1\t\r\n", "src 192.0.2.1", 1 },
	{ "192.0.2.1 comment \"\"", "src 192.0.2.1", 1 },
	{ "192.0.2.1 comment \xe2\x82\xac\xf0\x9f\x90\xa6", "src 192.0.2.1 comment \"\xe2\x82\xac\xf0\x9f\x90\xa6\"",
	  1 },
	{ "0.0.0.0/0 proto tcp dport 22", "proto tcp src 0.0.0.0/0 dport 22", 1 },
	{ "192.0.2.1 comment \xc2\xa0\xc3\x9b", "src 192.0.2.1 comment \"\xc2\xa0\xc3\x9b\"", 1 },
	{ "::ffff:192.0.2.1", "src 192.0.2.1", 1 },
	{ "proto icmp dst ::FFFF:c000:200/120", "proto icmp dst 192.0.2.0/24", 1 },
	{ "dport 65535 proto sctp", "proto sctp dport 65535", 2 },
	{ "timeout 90 192.0.2.1", "src 192.0.2.1 timeout 1m30s", 1 },
	{ "comment \"x\" 192.0.2.1 timeout 1h action pass", "src 192.0.2.1 action pass timeout 1h comment \"x\"", 1 },
	{ "192.0.2.1 rate 1000/s", "src 192.0.2.1 rate 1000/s", 1 },
	{ "rate 10k/s proto udp dport 53", "proto udp dport 53 rate 10000/s", 2 },
	{ "192.0.2.1 rate 1M/second timeout 1h action monitor comment x",
	  "src 192.0.2.1 rate 1000000/s action monitor timeout 1h comment \"x\"", 1 },
	{ "192.0.2.1 rate 5pps", "src 192.0.2.1 rate 5/s", 1 },
	{ "192.0.2.1 rate 7packets/s", "src 192.0.2.1 rate 7/s", 1 },
	{ "192.0.2.1 rate 8Mbit/s", "src 192.0.2.1 rate 8Mbit/s", 1 },
	{ "192.0.2.1 rate 8mbit", "src 192.0.2.1 rate 8Mbit/s", 1 },
	{ "192.0.2.1 rate 1500kbit/s", "src 192.0.2.1 rate 1500kbit/s", 1 },
	{ "192.0.2.1 rate 1001bit/s", "src 192.0.2.1 rate 1001bit/s", 1 },
	{ "192.0.2.1 rate 1MB/s", "src 192.0.2.1 rate 8Mbit/s", 1 },
	{ "192.0.2.1 rate 125kbytes/second", "src 192.0.2.1 rate 1Mbit/s", 1 },
	{ "192.0.2.1 rate 1T/s", "src 192.0.2.1 rate 1000000000000/s", 1 },
	{ "192.0.2.1 rate 1Tbit/s", "src 192.0.2.1 rate 1Tbit/s", 1 },
	{ "192.0.2.1 timeout 2147483647s", "src 192.0.2.1 timeout 3550w5d3h14m7s", 1 },
};

struct bad_text {
	const char *text, *says;
};

static const struct bad_text bad[] = {
	{ "", "must name" },
	{ "comment \"x\"", "must name" },
	{ "action pass", "must name" },
	{ "bogus", "'bogus'" },
	{ "192.0.2.1/8", "the network is 192.0.0.0/8" },
	{ "2001:db8::1/32", "the network is 2001:db8::/32" },
	{ "192.0.2.1/33", "'192.0.2.1/33'" },
	{ "192.0.2.0/", "'192.0.2.0/'" },
	{ "192.0.2.0/-1", "0 to 32" },
	{ "192.0.2.0/24x", "'192.0.2.0/24x'" },
	{ "192.0.2.0/ 24", "'24' is not a word" },
	{ "2001:db8::/129", "0 to 128" },
	{ "45.0.0.0/024", "'45.0.0.0/024': the prefix length must be 0 to 32, without leading zeros" },
	{ "2001:db8::/032", "0 to 128, without leading zeros" },
	{ "0.0.0.0/00", "0 to 32, without leading zeros" },
	{ "045.0.0.1", "'045.0.0.1' is not an IPv4" },
	{ "proto 06", "'06' is not a protocol: write tcp, udp" },
	{ "proto any", "'any' is not a protocol: leave proto out" },
	{ "dport 080", "0 to 65535, without leading zeros" },
	{ "proto icmp type 08", "0 to 255, without leading zeros" },
	{ "proto icmp code 00", "0 to 255, without leading zeros" },
	{ "192.0.2.256", "'192.0.2.256'" },
	{ "192.0.2", "'192.0.2'" },
	{ "1.2.3.4.5.6.7.8.9.10.11.12.13.14.15.16.17.18.19.20.21.22.23.24.25", "not an address" },
	{ "src", "'src' needs a value" },
	{ "src 192.0.2.1 src 192.0.2.2", "given twice" },
	{ "192.0.2.1 192.0.2.2", "one rule has one address" },
	{ "192.0.2.1-192.0.2.9", "these are several" },
	{ "dport 80-90", "'dport 80-90': these are several" },
	{ "192.0.2.1 action drop action pass", "action is given twice" },
	{ "::ffff:192.0.2.1/120", "the network is 192.0.2.0/24" },
	{ "2001:db8::1 dst ::ffff:192.0.2.1", "'::ffff:192.0.2.1' is IPv4" },
	{ "192.0.2.1 dst 2001:db8::1", "'2001:db8::1' is IPv6" },
	{ "2001:db8::1 dst 192.0.2.1", "'192.0.2.1' is IPv4" },
	{ "proto tcpx", "'tcpx'" },
	{ "proto 255", "'255'" },
	{ "proto 256", "'256'" },
	{ "proto tcp proto udp", "given twice" },
	{ "proto gre dport 5", "no ports" },
	{ "proto icmp dport 5", "type and code" },
	{ "type 8", "need 'proto icmp'" },
	{ "proto tcp type 8", "need 'proto icmp'" },
	{ "proto icmp type 256", "0 to 255" },
	{ "proto icmp type 8 dport 1", "has no ports" },
	{ "dport 65536", "0 to 65535" },
	{ "dport -1", "0 to 65535" },
	{ "dport 5x", "'dport 5x'" },
	{ "dport 99999999999999999999", "0 to 65535" },
	{ "dport 5 dport 6", "given twice" },
	{ "proto icmp src 2001:db8::1", "icmp does not go with IPv6" },
	{ "proto ipv6-icmp src 192.0.2.1", "ipv6-icmp does not go with IPv4" },
	{ "192.0.2.1 action reject", "drop, pass or monitor" },
	{ "192.0.2.1 rate", "'rate' needs a value" },
	{ "192.0.2.1 rate 1000", "write packets a second like 1000/s" },
	{ "192.0.2.1 rate 0/s", "leave it out to drop all" },
	{ "192.0.2.1 rate 2T/s", "1 to 10^12" },
	{ "192.0.2.1 rate 1TB/s", "1 to 10^12" },
	{ "192.0.2.1 rate 99999999999999999999999/s", "1 to 10^12" },
	{ "192.0.2.1 rate 1mbps", "write packets a second" },
	{ "192.0.2.1 rate 1b/s", "write packets a second" },
	{ "192.0.2.1 rate 1/m", "write packets a second" },
	{ "192.0.2.1 rate -1/s", "write packets a second" },
	{ "192.0.2.1 rate 010/s", "write packets a second" },
	{ "192.0.2.1 rate 1/s rate 2/s", "given twice" },
	{ "192.0.2.1 rate 1/s action pass", "a rate goes with action drop or monitor" },
	{ "rate 1/s", "must name" },
	{ "192.0.2.1 limit 10/s", "write rate 1000/s" },
	{ "192.0.2.1 timeout", "'timeout' needs a value" },
	{ "192.0.2.1 timeout 0", "leave the timeout out" },
	{ "192.0.2.1 timeout 1hm", "'timeout 1hm'" },
	{ "192.0.2.1 timeout 2147483648", "'timeout 2147483648'" },
	{ "00:11:22:33:44:55", "not those of Ethernet" },
	{ "192.0.2.1 timeout 1h timeout 2h", "given twice" },
	{ "timeout 1h", "must name" },
	{ "192.0.2.1 comment \"open", "quote is not closed" },
	{ "192.0.2.1 comment a\"b", "no quotes" },
	{ "192.0.2.1 comment a\x01", "control" },
	{ "192.0.2.1 comment a\xc2\x9b"
	  "31m",
	  "'comment a\?\?31m': a comment has no quotes or control" },
	{ "192.0.2.1 comment a\xc2\x80", "control" },
	{ "192.0.2.1 comment a\xff", "not UTF-8" },
	{ "192.0.2.1 comment \xc0\xaf", "not UTF-8" },
	{ "192.0.2.1 comment \xed\xa0\x80", "not UTF-8" },
	{ "192.0.2.1 comment \xe2\x82", "not UTF-8" },
};

TEST(test_good_texts)
{
	for (size_t i = 0; i < COUNT(good); i++) {
		char text[RULE_TEXT_BYTES];
		struct rule_key keys[RULE_KEYS_MAX];
		struct reason reason = {};
		struct rule rule, again;

		if (rule_parse(good[i].text, &rule, &reason))
			fail_msg("'%s': %s", good[i].text, reason.text);
		assert_string_equal(rule_format(&rule, text), good[i].canonical);
		assert_int_equal(rule_keys(&rule, keys), good[i].keys);
		assert_int_equal(rule_parse(text, &again, &reason), 0);
		assert_memory_equal(&rule, &again, sizeof(rule));
	}
}

/* All of these are IPv6 networks, and their neighbours are not IPv4 addresses. */
TEST(test_around_mapped_addresses)
{
	static const char *const texts[][2] = {
		{ "::ffff:0:0/96", "src ::ffff:0.0.0.0/96" },
		{ "::fffe:192.0.2.1", "src ::fffe:c000:201" },
		{ "::1:ffff:192.0.2.1", "src ::1:ffff:c000:201" },
		{ "::fffe:0:0/95", "src ::fffe:0:0/95" },
	};

	for (size_t i = 0; i < COUNT(texts); i++) {
		const struct rule rule = parse(texts[i][0]);
		char text[RULE_TEXT_BYTES];

		assert_string_equal(rule_format(&rule, text), texts[i][1]);
	}
}

TEST(test_bad_texts)
{
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct reason reason = {};
		struct rule rule;

		assert_int_equal(rule_parse(bad[i].text, &rule, &reason), -22);
		if (!strstr(reason.text, bad[i].says) || strchr(reason.text, '\n'))
			fail_msg("'%s' says: %s", bad[i].text, reason.text);
	}
}

static const struct {
	const char *text, *written;
	__s64 ms;
} times[] = {
	{ "1", "1s", 1000 },
	{ "90", "1m30s", 90000 },
	{ "90s", "1m30s", 90000 },
	{ "60m", "1h", 3600000 },
	{ "1h30m", "1h30m", 5400000 },
	{ "24h", "1d", 86400000 },
	{ "1w2d3h4m5s", "1w2d3h4m5s", 788645000 },
	{ "0h1s", "1s", 1000 },
	{ "1y1d", "52w2d", 31622400000 },
	{ "2147483647", "3550w5d3h14m7s", 2147483647000 },
	{ "000000000000060", "1m", 60000 },
};

static const char *const bad_times[] = { "",
					 "0",
					 "0s",
					 "s",
					 "h1",
					 "1x",
					 "1h30",
					 "30m1h",
					 "1h1h",
					 "-1",
					 "+1",
					 " 1",
					 "1 ",
					 "1.5h",
					 "2147483648",
					 "3551w",
					 "69y",
					 "99999999999999999999",
					 "18446744073709551617s",
					 "never",
					 "1H" };

TEST(test_times)
{
	char text[RULE_TIME_BYTES];
	__s64 ms;

	for (size_t i = 0; i < COUNT(times); i++) {
		assert_int_equal(rule_time_parse(times[i].text, &ms), 0);
		assert_int_equal(ms, times[i].ms);
		assert_string_equal(rule_time_format(ms, text), times[i].written);
	}
	for (size_t i = 0; i < COUNT(bad_times); i++)
		if (rule_time_parse(bad_times[i], &ms) != -22)
			fail_msg("'%s' is taken for a time", bad_times[i]);
	assert_string_equal(rule_time_format(1, text), "1s");
	assert_string_equal(rule_time_format(1000, text), "1s");
	assert_string_equal(rule_time_format(1001, text), "2s");
	assert_string_equal(rule_time_format(59999, text), "1m");
	assert_string_equal(rule_time_format(-5000, text), "0s");
}

/* The longest rule: the longest value in each place. It must fit. */
TEST(test_same_value)
{
	const struct rule rule = parse("192.0.2.1 rate 10/s timeout 1h comment a");
	const char *const others[] = { "192.0.2.1 rate 11/s timeout 1h comment a",
				       "192.0.2.1 rate 10/s timeout 2h comment a",
				       "192.0.2.1 rate 10/s timeout 1h comment b" };
	struct rule other;

	assert_true(rule_same_value(&rule, &rule));
	for (size_t i = 0; i < COUNT(others); i++) {
		other = parse(others[i]);
		assert_false(rule_same_value(&rule, &other));
	}
}

TEST(test_longest_text)
{
	char text[RULE_TEXT_BYTES], comment[RULE_COMMENT_BYTES];
	struct reason reason = {};
	struct rule rule, again;
	char line[2 * RULE_TEXT_BYTES];

	memset(comment, 'x', sizeof(comment) - 1);
	comment[sizeof(comment) - 1] = '\0';
	snprintf(line, sizeof(line),
		 "proto ipv6-icmp src 2001:db8:1111:2222:3333:4444:5555:6666/127 type 255 "
		 "dst 2001:db8:1111:2222:3333:4444:5555:6666/127 code 255 fragment first "
		 "length 65535 state new rate 999999999999bit/s action monitor timeout 3550w5d3h14m7s comment \"%s\"",
		 comment);
	assert_int_equal(rule_parse(line, &rule, &reason), 0);
	assert_string_equal(rule_format(&rule, text), line);
	assert_int_equal(rule_parse(text, &again, &reason), 0);
	assert_memory_equal(&rule, &again, sizeof(rule));
}

TEST(test_too_long_texts)
{
	char text[4096];
	struct reason reason = {};
	struct rule rule;

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(rule_parse(text, &rule, &reason), -22);
	for (size_t i = 0; i < 200; i += 2)
		memcpy(text + i, "x ", 2);
	text[200] = '\0';
	assert_int_equal(rule_parse(text, &rule, &reason), -22);
	snprintf(text, sizeof(text), "192.0.2.1 comment \"%0255d\"", 7);
	assert_int_equal(rule_parse(text, &rule, &reason), 0);
	snprintf(text, sizeof(text), "192.0.2.1 comment \"%0256d\"", 7);
	assert_int_equal(rule_parse(text, &rule, &reason), -22);
	assert_non_null(strstr(reason.text, "at most 255"));
}

TEST(test_encoding_is_the_identity)
{
	for (size_t i = 0; i < COUNT(good); i++) {
		struct rule rule = parse(good[i].text), decoded;
		__u8 bytes[RULE_ENCODED_BYTES];
		size_t length = rule_encode(&rule, bytes);

		assert_true(length <= RULE_ENCODED_BYTES);
		assert_int_equal(rule_decode(bytes, length, &decoded), 0);
		rule.comment[0] = '\0';
		rule.timeout_ms = rule.rate = 0;
		assert_memory_equal(&rule, &decoded, offsetof(struct rule, comment));
		assert_int_equal(rule_encoded_bytes(bytes), length);
		for (size_t cut = 0; cut < length; cut++)
			assert_int_not_equal(rule_decode(bytes, cut, &decoded), 0);
	}
}

TEST(test_encoding_sorts_by_address)
{
	static const char *const sorted[] = { "9.0.0.0/8", "10.0.0.0/8", "10.0.0.0/9",   "10.0.0.1",
					      "192.0.2.1", "::1",        "2001:db8::/32" };
	__u8 previous[RULE_ENCODED_BYTES] = {}, bytes[RULE_ENCODED_BYTES] = {};

	for (size_t i = 0; i < COUNT(sorted); i++) {
		struct rule rule = parse(sorted[i]);

		memset(bytes, 0, sizeof(bytes));
		rule_encode(&rule, bytes);
		if (i)
			assert_true(memcmp(previous, bytes, sizeof(bytes)) < 0);
		memcpy(previous, bytes, sizeof(bytes));
	}
}

TEST(test_foreign_bytes_are_refused)
{
	unsigned int seed = seed_of_run();

	for (int i = 0; i < 100000; i++) {
		__u8 bytes[RULE_ENCODED_BYTES], again[RULE_ENCODED_BYTES];
		size_t length = rand_r(&seed) % (RULE_ENCODED_BYTES + 1);
		struct rule rule;

		for (size_t k = 0; k < length; k++)
			bytes[k] = rand_r(&seed);
		bytes[0] %= 4;
		if (rule_decode(bytes, length, &rule))
			continue;
		/* A text that is accepted must come out as the same rule. */
		assert_int_equal(rule_encode(&rule, again), length);
		assert_memory_equal(bytes, again, length);
	}
}

/* A rule is canonical exactly if its text gives the same rule again, or if it has a mapped IPv4 address. */
static bool is_its_text(const struct rule *rule)
{
	char text[RULE_TEXT_BYTES];
	struct reason reason;
	struct rule again;

	return !rule_parse(rule_format(rule, text), &again, &reason) &&
	       !memcmp(rule, &again, offsetof(struct rule, timeout_ms));
}

TEST(test_canonical_is_what_a_text_says)
{
	unsigned int seed = seed_of_run();
	size_t canonical = 0, other = 0;

	for (size_t i = 0; i < COUNT(good) * 4000; i++) {
		struct rule rule = parse(good[i % COUNT(good)].text), changed;
		__u8 bytes[RULE_ENCODED_BYTES] = {};
		const size_t length = rule_encode(&rule, bytes);

		assert_true(rule_is_canonical(&rule));
		for (int changes = rand_r(&seed) % 3; changes >= 0; changes--)
			bytes[rand_r(&seed) % length] ^= 1 << rand_r(&seed) % 8;
		if (rule_decode(bytes, length, &changed))
			continue;
		changed.rate = changed.fields & RULE_RATE ? 1 : 0; /* which is no part of the encoded rule */
		assert_int_equal(rule_is_canonical(&changed), is_its_text(&changed));
		*(rule_is_canonical(&changed) ? &canonical : &other) += 1;
	}
	print_message("# %zu canonical, %zu not\n", canonical, other);
	assert_true(canonical > 1000 && other > 1000);
}

TEST_MAIN(NULL, NULL)
