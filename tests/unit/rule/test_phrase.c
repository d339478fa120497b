// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What operators type who know ipset, nft, ufw, iptables or ip: the rules that it means, or the way to say it. */
#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

#include "unit/rule_fixture.h"

#define LINE_BYTES 4096

/* The rules of the text, with commas between; or "!" and the reason. */
static const char *rules_of(const char *text, char result[LINE_BYTES])
{
	char copy[LINE_BYTES], line[RULE_TEXT_BYTES];
	const char *words[RULE_WORDS_MAX];
	struct reason reason = {};
	struct rules rules;
	size_t count, used = 0;

	snprintf(copy, sizeof(copy), "%s", text);
	assert_int_equal(rule_split(copy, words, &count, &reason), 0);
	if (rules_parse(&rules, words, count, false, &reason)) {
		snprintf(result, LINE_BYTES, "! %s", reason.text);
		return result;
	}
	for (size_t i = 0; i < rules.count; i++)
		used += snprintf(result + used, LINE_BYTES - used, "%s%s", i ? ", " : "",
				 rule_format(&rules.rule[i], line));
	rules_free(&rules);
	return result;
}

static const struct {
	const char *typed, *means;
} phrases[] = {
	/* one rule */
	{ "saddr 192.0.2.1", "src 192.0.2.1" },
	{ "ip saddr 192.0.2.1 tcp dport 443 counter drop", "proto tcp src 192.0.2.1 dport 443" },
	{ "ip6 daddr 2001:db8::1 accept", "dst 2001:db8::1 action pass" },
	{ "ip protocol udp ip saddr 192.0.2.1", "proto udp src 192.0.2.1" },
	{ "from 192.0.2.1 to any", "src 192.0.2.1" },
	{ "deny from 192.0.2.0/24 to 198.51.100.1 proto tcp", "proto tcp src 192.0.2.0/24 dst 198.51.100.1" },
	{ "from 192.0.2.0/24 to any port 22 proto tcp", "proto tcp src 192.0.2.0/24 dport 22" },
	{ "from 192.0.2.1 port 5 to 198.51.100.1", "src 192.0.2.1 sport 5 dst 198.51.100.1" },
	{ "192.0.2.1 for 1h", "src 192.0.2.1 timeout 1h" },
	{ "src=192.0.2.1 dport=53", "src 192.0.2.1 dport 53" },
	{ "192.0.2.1 drop", "src 192.0.2.1" },
	{ "192.0.2.1 ALLOW", "src 192.0.2.1 action pass" },
	{ "192.0.2.1 action accept", "src 192.0.2.1 action pass" },
	{ "192.0.2.1 action block", "src 192.0.2.1" },
	{ "192.0.2.1 tcp 443", "proto tcp src 192.0.2.1 dport 443" },
	{ "192.0.2.1 tcp", "proto tcp src 192.0.2.1" },
	{ "tcp sport 80", "proto tcp sport 80" },
	{ "icmp type 8", "proto icmp type 8" },
	{ "443/tcp", "proto tcp dport 443" },
	{ "udp:53", "proto udp dport 53" },
	{ "192.0.2.1,tcp:443", "proto tcp src 192.0.2.1 dport 443" },
	{ "192.0.2.1,443", "proto tcp src 192.0.2.1 dport 443" },
	{ "192.0.2.1,udp:53,198.51.100.7", "proto udp src 192.0.2.1 dst 198.51.100.7 dport 53" },
	{ "192.0.2.0/255.255.255.0", "src 192.0.2.0/24" },
	{ "192.0.2.1 comment drop", "src 192.0.2.1 comment \"drop\"" },
	{ "SRC 192.0.2.1 TCP DPORT 443 Action DROP", "proto tcp src 192.0.2.1 dport 443" },
	{ "192.0.2.1 comment {", "src 192.0.2.1 comment \"{\"" },
	{ "192.0.2.1 comment a,b-c", "src 192.0.2.1 comment \"a,b-c\"" },
	/* host bits */
	{ "192.0.2.1/24", "src 192.0.2.0/24" },
	{ "2001:db8::1/32", "src 2001:db8::/32" },
	/* several rules */
	{ "192.0.2.1 192.0.2.2", "src 192.0.2.1, src 192.0.2.2" },
	{ "192.0.2.1,192.0.2.2 udp 53", "proto udp src 192.0.2.1 dport 53, proto udp src 192.0.2.2 dport 53" },
	{ "192.0.2.1-192.0.2.4", "src 192.0.2.1, src 192.0.2.2/31, src 192.0.2.4" },
	{ "192.0.2.1 dport 80-82", "src 192.0.2.1 dport 80, src 192.0.2.1 dport 81, src 192.0.2.1 dport 82" },
	{ "tcp dport 80,443", "proto tcp dport 80, proto tcp dport 443" },
	{ "tcp dport { 80, 443 } drop", "proto tcp dport 80, proto tcp dport 443" },
	{ "saddr {192.0.2.1,192.0.2.2}", "src 192.0.2.1, src 192.0.2.2" },
	{ "proto tcp,udp dport 53", "proto tcp dport 53, proto udp dport 53" },
	{ "dport 80,90-91", "dport 80, dport 90, dport 91" },
	{ "length 0-300",
	  "length 0/8, length 256/12, length 272/12, length 288, length 289, length 290, length 291, length 292, "
	  "length 293, length 294, length 295, length 296, length 297, length 298, length 299, length 300" },
	{ "tcp flags SYN/syn,ack fragment first", "proto tcp flags syn/syn,ack fragment first" },
	{ "flags none/fin,cwr length 16/12 src ::1", "proto tcp src ::1 flags none/fin,cwr length 16/12" },
	/* the way to say it */
	{ "192.0.2.1 proto tcp port 443", "proto tcp src 192.0.2.1 dport 443" },
	{ "192.0.2.1 port 80,https", "src 192.0.2.1 dport 80, src 192.0.2.1 dport 443" },
	{ "192.0.2.1 1h", "timeout 1h" },
	{ "blacklist 192.0.2.1", "leave out names of sets" },
	{ "rule inet filter input ip saddr 192.0.2.1 drop", "leave out names of sets" },
	{ "192.0.2.0 255.255.255.0", "write 192.0.2.0/255.255.255.0" },
	{ "!192.0.2.1", "no negation" },
	{ "dport 80:90", "written like 80-90" },
	{ "192.0.2.1-9", "like 192.0.2.1-192.0.2.9" },
	{ "192.0.2.1 443", "a port is dport 443" },
	{ "192.0.2.1:443", "write the port as a field of its own: dport 443" },
	{ "192.0.2.1 reject", "write action drop" },
	{ "tcp flags syn/ack", "all flags before the slash must be behind it" },
	{ "tcp flags none", "none/syn,ack" },
	{ "udp flags syn", "do not go with protocol 17" },
	{ "tcp flags syn,/ack", "write flags like syn/syn,ack" },
	{ "src 192.0.2.1 fragment last", "no (the packet is whole), first, later or any" },
	{ "dport 53 fragment later", "has no ports" },
	{ "src 192.0.2.1 length 0/3", "a block of them" },
	{ "dport 4097/4", "starts at 4096" },
	{ "192.0.2.1 ct state new", "src 192.0.2.1 state new" },
	{ "ip saddr 192.0.2.1 ct state { new } drop", "src 192.0.2.1 state new" },
	{ "192.0.2.1 ct state established", "the only state of a rule is new" },
	{ "192.0.2.1 ct mark 1", "for packets that begin something write state new" },
	{ "AS64500", "write [list as64500] with preset = asn and asn = 64500 into the configuration" },
	{ "asn 64500", "preset = asn and asn = 64500" },
	{ "country RU", "write [list RU] with preset = country and country = RU into the configuration" },
	{ "geoip", "preset = country and country = CN" },
	{ "CN", "preset = country and country = CN" },
	{ "192.0.2.1 dev eth0", "leave out the interface" },
	{ "example.com", "names are not looked up" },
	{ "192.0.2.1 timeout 0", "leave the timeout out" },
	{ "sport 1-65535 dport 1-65535", "3600 rules; one line may have at most 1024" },
	{ "dport 90-80", "'90-80' is not a range of ports" },
	{ "dport 80-", "'80-' is not a range of ports" },
	{ "dport 80,", "no value after the comma" },
	{ "dport ,80", "no value before or after a comma" },
	{ "dport 1-2-3", "'1-2-3' is not a range of ports" },
	{ "192.0.2.9-192.0.2.1", "ends before it starts" },
	{ "192.0.2.0/255.0.255.0", "the prefix length must be 0 to 32" },
	{ "dport {", "no value before the '}'" },
	{ "dport { 80, 90 src 192.0.2.1", "'dport {': a '}' is missing" },
	{ "dport {8080}tcp src 192.0.2.1", "'}tcp': write a space after the '}'" },
	{ "src", "'src' needs a value" },
	{ "saddr", "'src' needs a value" },
};

TEST(test_phrases)
{
	char result[LINE_BYTES];

	for (size_t i = 0; i < COUNT(phrases); i++) {
		const char *typed = phrases[i].typed, *means = phrases[i].means;

		rules_of(typed, result);
		if (*result == '!' ? !strstr(result, means) : strcmp(result, means))
			fail_msg("'%s' means: %s", typed, result);
	}
}

TEST(test_service_names)
{
	char result[LINE_BYTES];

	if (access("/etc/services", R_OK))
		skip();
	assert_string_equal(rules_of("192.0.2.1 tcp https", result), "proto tcp src 192.0.2.1 dport 443");
	assert_string_equal(rules_of("udp sport domain", result), "proto udp sport 53");
	assert_string_equal(rules_of("dport ssh,http-alt", result), "dport 22, dport 8080");
	assert_non_null(strstr(rules_of("dport nosuch-service", result), "or a name in /etc/services"));
}

/* The file is read once, not for each word: a long list may name a service in each line. */
TEST(test_services_are_read_once)
{
	char result[LINE_BYTES];
	struct rlimit files;
	__u16 port;

	if (access("/etc/services", R_OK))
		skip();
	assert_true(rule_service_port("https", &port));
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 0, files.rlim_max }), 0);
	rules_of("tcp DOMAIN", result);
	assert_false(rule_service_port("nosuch-service", &port));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
	assert_string_equal(result, "proto tcp dport 53");
}

/* Where words could be the columns of any file, only keywords tell. */
static int count_rule(const struct rule *rule, void *context)
{
	(void)rule;
	++*(int *)context;
	return 0;
}

TEST(test_words_of_a_file)
{
	static const char *const columns[][2] = { { "192.0.2.1", "192.0.2.2" }, { "192.0.2.1,5", NULL } };
	static const char *const fine[][2] = { { "src", "192.0.2.1,192.0.2.2" }, { "192.0.2.1-192.0.2.2", NULL } };
	struct reason reason;
	int count = 0;
	struct rule_each each = { .take = count_rule, .context = &count, .is_of_file = true };

	for (size_t i = 0; i < 2; i++)
		assert_int_equal(rule_each(&each, columns[i], columns[i][1] ? 2 : 1, &reason), -22);
	assert_int_equal(count, 0);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(rule_each(&each, fine[i], fine[i][1] ? 2 : 1, &reason), 0);
	assert_int_equal(count, 4);
}

/* A strict reader refuses host bits; any other counts them, and keeps the first as written. */
TEST(test_host_bits)
{
	static const char *const words[] = { "192.0.2.1/24" };
	struct reason reason;
	int count = 0;
	struct rule_each each = { .take = count_rule, .context = &count };

	assert_int_equal(rule_each(&each, words, 1, &reason), 0);
	assert_int_equal(each.masked.count, 1);
	assert_string_equal(each.masked.first, "192.0.2.1/24");
	each.is_strict = true;
	assert_int_equal(rule_each(&each, words, 1, &reason), -22);
	assert_non_null(strstr(reason.text, "the network is 192.0.2.0/24"));
	assert_int_equal(count, 1);
}

/* An address with a length of 0, or a very short one, is a mistake: it would mean every address, or a quarter of them. */
TEST(test_no_host_bits_with_short_lengths)
{
	static const char *const wrong[] = { "192.0.2.1/0", "192.0.2.1/0.0.0.0", "2001:db8::/0", "192.0.2.0/2",
					     "192.0.2.0/7", "2001:db8::/3",      "2001:db8::/6" },
				 *fine = "0.0.0.0/0";
	struct reason reason;
	int count = 0;
	struct rule_each each = { .take = count_rule, .context = &count };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_equal(rule_each(&each, &wrong[i], 1, &reason), -22);
	assert_int_equal(rule_each(&each, &fine, 1, &reason), 0);
	assert_int_equal(count, 1);
}

TEST_MAIN(NULL, NULL)
