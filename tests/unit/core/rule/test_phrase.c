// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What operators type: the rules that it means; or for words of ipset, nft, ufw, iptables or ip, the way to say it. */
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
	{ "192.0.2.1", "src 192.0.2.1" },
	{ "tcp sport 80", "proto tcp sport 80" },
	{ "icmp type 8", "proto icmp type 8" },
	{ "192.0.2.1 udp drop", "proto udp src 192.0.2.1" },
	{ "192.0.2.1 expires 5s", "src 192.0.2.1 timeout 5s" },
	{ "PASS 192.0.2.1", "src 192.0.2.1 action pass" },
	{ "192.0.2.0/255.255.255.0", "src 192.0.2.0/24" },
	{ "192.0.2.1 comment drop", "src 192.0.2.1 comment \"drop\"" },
	{ "SRC 192.0.2.1 TCP DPORT 443 Action DROP", "proto tcp src 192.0.2.1 dport 443" },
	{ "192.0.2.1 comment {", "src 192.0.2.1 comment \"{\"" },
	{ "192.0.2.1 comment a,b-c", "src 192.0.2.1 comment \"a,b-c\"" },
	/* host bits */
	{ "192.0.2.1/24", "src 192.0.2.0/24" },
	{ "2001:db8::1/32", "src 2001:db8::/32" },
	{ "203.0.113.5/16", "src 203.0.0.0/16" },
	{ "comment \"drop it\" 192.0.2.1", "src 192.0.2.1 comment \"drop it\"" },
	/* words of other tools */
	{ "saddr 192.0.2.1", "'saddr' is not a word of a rule; write: src 192.0.2.1" },
	{ "ip saddr 192.0.2.1", "'ip' is not a word of a rule: leave it out" },
	{ "ip6 length 100", "src ::/0 is all of IPv6" },
	{ "ipv6 2001:db8::1", "proto ipv6" },
	{ "meta l4proto tcp", "'meta' is not a word of a rule: leave it out" },
	{ "deny from 192.0.2.0/24", "write: action drop" },
	{ "from 192.0.2.1 to any", "write: src 192.0.2.1" },
	{ "192.0.2.1 to 192.0.2.9", "a destination is written dst ADDRESS, a range without spaces" },
	{ "192.0.2.1 for 1h", "write: timeout 1h" },
	{ "src=192.0.2.1 dport=53", "write: src 192.0.2.1" },
	{ "192.0.2.1 block", "write: action drop" },
	{ "192.0.2.1 ALLOW", "write: action pass" },
	{ "192.0.2.1 action accept", "the action is drop, pass or monitor" },
	{ "192.0.2.1 tcp 443", "a port is sport or dport 443" },
	{ "443/tcp", "write: proto tcp dport 443" },
	{ "udp:53", "write: proto udp dport 53" },
	{ "192.0.2.1,tcp:443", "write: src 192.0.2.1 proto tcp dport 443" },
	{ "192.0.2.1,443", "write: src 192.0.2.1 proto tcp dport 443" },
	{ "192.0.2.1,udp:53,198.51.100.7", "write: src 192.0.2.1 proto udp dport 53 dst 198.51.100.7" },
	{ "192.0.2.0 - 192.0.2.9", "a range is written without spaces" },
	{ "tcp dport { 80, 443 }", "several as A,B" },
	{ "src any", "leave out both words" },
	{ "from any", "help add" },
	{ "dst net 192.0.2.0/24", "write dst ADDRESS; leave out 'net'" },
	{ "action=block", "write: action drop" },
	{ "192.0.2.1,80,443", "help add" },
	{ "tcp/80,443", "help add" },
	{ "saddr={192.0.2.1}", "help add" },
	{ "src port 53", "a port is sport" },
	{ "192.0.2.1 proto tcp port 443", "write sport or dport" },
	{ "192.0.2.1 ttl 64", "a rule ends by: timeout TIME" },
	{ "udp length 100", "without the IP header" },
	{ "tcp flags syn,ack", "flags syn,ack/syn,ack" },
	{ "192.0.2.1 ct state new", "for packets that begin something write state new" },
	{ "192.0.2.1 reason abuse", "write: comment \"TEXT\"" },
	/* a comment without quotes */
	{ "192.0.2.1 comment never allow", "quote a comment of several words: comment \"never allow\"" },
	/* other meanings elsewhere */
	{ "dst 192.0.2.1 192.0.2.2", "write src 192.0.2.2, or for several destinations" },
	{ "192.0.2.0 0.0.0.255", "write ADDRESS/LENGTH" },
	{ "tcp:80,192.0.2.1", "help add" },
	{ "192.0.2.1,192.0.2.2,tcp:80", "'tcp:80' is not an IPv4 or IPv6 address" },
	{ "src 192.0.2.1 192.0.2.9", "src is given twice" },
	{ "203.0.113.5/8", "the network is 203.0.0.0/8" },
	{ "192.0.2.1 rate 9/s per ip", "not for each source" },
	/* several rules */
	{ "192.0.2.1 192.0.2.2", "src 192.0.2.1, src 192.0.2.2" },
	{ "192.0.2.1,192.0.2.2 udp dport 53", "proto udp src 192.0.2.1 dport 53, proto udp src 192.0.2.2 dport 53" },
	{ "192.0.2.1-192.0.2.4", "src 192.0.2.1, src 192.0.2.2/31, src 192.0.2.4" },
	{ "192.0.2.1 dport 80-82", "src 192.0.2.1 dport 80, src 192.0.2.1 dport 81, src 192.0.2.1 dport 82" },
	{ "tcp dport 80,443", "proto tcp dport 80, proto tcp dport 443" },
	{ "proto tcp,udp dport 53", "proto tcp dport 53, proto udp dport 53" },
	{ "dport 80,90-91", "dport 80, dport 90, dport 91" },
	{ "length 0-300",
	  "length 0/8, length 256/12, length 272/12, length 288, length 289, length 290, length 291, length 292, "
	  "length 293, length 294, length 295, length 296, length 297, length 298, length 299, length 300" },
	{ "proto tcp flags SYN/syn,ack fragment first", "proto tcp flags syn/syn,ack fragment first" },
	{ "flags none/fin,cwr length 16/12 src ::1", "proto tcp src ::1 flags none/fin,cwr length 16/12" },
	/* the way to say it */
	{ "192.0.2.1 1h", "timeout 1h" },
	{ "blacklist 192.0.2.1", "leave out names of sets" },
	{ "rule inet filter input", "leave out names of sets" },
	{ "192.0.2.0 255.255.255.0", "write 192.0.2.0/255.255.255.0" },
	{ "!192.0.2.1", "no negation" },
	{ "dport 80:90", "written like 80-90" },
	{ "192.0.2.1-9", "like 192.0.2.1-192.0.2.9" },
	{ "192.0.2.1 443", "a port is sport or dport 443" },
	{ "sctp dport http,ssh", "no service of this protocol" },
	{ "tcp dport != 22", "no such signs" },
	{ "src 192.0.2.1 length > 1000", "no such signs" },
	{ "192.0.2.1 or 192.0.2.2", "several values are written A,B" },
	{ "192.0.2.1 }", "several values are written A,B" },
	{ "192.0.2.1 nomatch", "sets of ipset" },
	{ "192.0.2.1:443", "write the port as a field of its own: dport 443" },
	{ "192.0.2.1 reject", "write action drop" },
	{ "proto tcp flags syn/ack", "all flags before the slash must be behind it" },
	{ "proto tcp flags none", "none/syn,ack" },
	{ "udp flags syn", "do not go with protocol 17" },
	{ "proto tcp flags syn,/ack", "write flags like syn/syn,ack" },
	{ "src 192.0.2.1 fragment last", "no (the packet is whole), first, later or any" },
	{ "dport 53 fragment later", "has no ports" },
	{ "src 192.0.2.1 length 0/3", "a block of them" },
	{ "dport 4097/4", "starts at 4096" },
	{ "192.0.2.1 state established", "the only state of a rule is new" },
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
	{ "src", "'src' needs a value" },
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
	assert_string_equal(rules_of("192.0.2.1 tcp dport https", result), "proto tcp src 192.0.2.1 dport 443");
	assert_string_equal(rules_of("udp sport domain", result), "proto udp sport 53");
	assert_string_equal(rules_of("dport ssh,http-alt", result), "dport 22, dport 8080");
	assert_non_null(strstr(rules_of("dport nosuch-service", result), "or a name in /etc/services"));
	/* 1/ddp, and 4/ddp beside 7/tcp and 7/udp */
	assert_non_null(strstr(rules_of("dport rtmp", result), "or a name in /etc/services"));
	assert_string_equal(rules_of("udp dport echo", result), "proto udp dport 7");
}

/* The file is read once, not for each word: a long list may name a service in each line. */
TEST(test_services_are_read_once)
{
	char result[LINE_BYTES];
	struct rlimit files;
	__u16 port;

	if (access("/etc/services", R_OK))
		skip();
	assert_true(rule_service_port("https", 0, &port));
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 0, files.rlim_max }), 0);
	rules_of("tcp dport DOMAIN", result);
	assert_false(rule_service_port("nosuch-service", 0, &port));
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

static int keep_rule(const struct rule *rule, void *context)
{
	*(struct rule *)context = *rule;
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

/* Files have words of other tools that were read once. */
TEST(test_other_words_of_a_file)
{
	static const char *const lines[][2] = {
		{ "198.51.100.77 allow", "src 198.51.100.77 action pass" },
		{ "action accept src 192.0.2.1", "src 192.0.2.1 action pass" },
		{ "saddr 192.0.2.1 deny", "src 192.0.2.1" },
		{ "ip saddr 192.0.2.1 daddr any tcp 443", "proto tcp src 192.0.2.1 dport 443" },
		{ "from 192.0.2.1 to 192.0.2.2", "src 192.0.2.1 dst 192.0.2.2" },
		{ "192.0.2.1 443/tcp action=block", "proto tcp src 192.0.2.1 dport 443" },
		{ "192.0.2.4 - 192.0.2.5", "src 192.0.2.4/31" },
		{ "192.0.2.1 reason \"x y\"", "src 192.0.2.1 comment \"x y\"" },
		{ "src host 192.0.2.1 and ip dst 192.0.2.2 and tcp dst port 53",
		  "proto tcp src 192.0.2.1 dst 192.0.2.2 dport 53" },
		{ "meta l4proto udp th sport 53 ip6 daddr 2001:db8::1 counter", "proto udp sport 53 dst 2001:db8::1" },
		{ "tcp dport {22} ip saddr { 192.0.2.4-192.0.2.5, } drop", "proto tcp src 192.0.2.4/31 dport 22" },
		{ "ip saddr { 192.0.2.0,192.0.2.1, 192.0.2.2 ,192.0.2.3 } drop", "src 192.0.2.3" },
		{ "192.0.2.1 comment {}", "src 192.0.2.1 comment \"{}\"" },
		{ "192.0.2.1 to 192.0.2.9", NULL },
		{ "ip saddr any tcp", NULL },
		{ "ip protocol tcp", NULL },
		{ "host 192.0.2.1", NULL },
		{ "port 53", NULL },
		{ "dport { 22, 23", NULL },
		{ "dport { }", NULL },
		{ "dport {22}23", NULL },
		{ "tcp flags { syn, ack }", NULL },
		{ "saddr { 2001:db8:1111:2222:3333:4444:5555:6666-2001:db8:1111:2222:3333:4444:5555:666600000000000000000000 }",
		  NULL },
		{ "192.0.2.1 reject", NULL },
	};
	struct rule_words words;
	struct reason reason;
	char text[RULE_TEXT_BYTES];
	struct rule rule;
	struct rule_each each = { .take = keep_rule, .context = &rule, .is_of_file = true };

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		assert_int_equal(rule_words_split(&words, lines[i][0], &reason), 0);
		assert_int_equal(rule_each(&each, words.word, words.count, &reason), lines[i][1] ? 0 : -22);
		if (lines[i][1])
			assert_string_equal(rule_format(&rule, text), lines[i][1]);
	}
	if (!access("/etc/services", R_OK)) {
		assert_int_equal(rule_each(&each, (const char *[]){ "tcp", "https" }, 2, &reason), 0);
		assert_string_equal(rule_format(&rule, text), "proto tcp dport 443");
	}
}

/* As many rules as help says, with the longest addresses, in separate words or in one. */
TEST(test_many_addresses)
{
	static char text[RULE_LINE_BYTES];
	struct reason reason;
	struct rule_words words;
	struct rules rules;

	for (int has_commas = 0; has_commas < 2; has_commas++) {
		char *end = text;

		for (int i = 0; i < RULE_EACH_MAX; i++)
			end += sprintf(end, "2001:db8:1111:2222:3333:4444:%04x:5555/128%s", i, has_commas ? "," : " ");
		end[-1] = ' ';
		strcpy(end, "proto tcp");
		assert_int_equal(rule_words_split(&words, text, &reason), 0);
		assert_int_equal(words.count, has_commas ? 3 : RULE_EACH_MAX + 2);
		assert_int_equal(rules_parse(&rules, words.word, words.count, true, &reason), 0);
		assert_int_equal(rules.count, RULE_EACH_MAX);
		rules_free(&rules);
	}
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

/* An address with a short length is a mistake: it would mean millions of addresses. */
TEST(test_no_host_bits_with_short_lengths)
{
	static const char *const wrong[] = { "192.0.2.1/0",  "192.0.2.1/0.0.0.0", "2001:db8::/0", "192.0.2.0/2",
					     "192.0.2.0/15", "2001:db8::/3",      "2001:db8::/28" },
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
