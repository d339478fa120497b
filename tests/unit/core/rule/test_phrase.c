// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What operators type who know ipset, nft, ufw, iptables or ip: the rules that it means, or the way to say it. */
#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench/random.h"
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
	{ "203.0.113.5/16", "src 203.0.0.0/16" },
	{ "comment \"drop it\" 192.0.2.1", "src 192.0.2.1 comment \"drop it\"" },
	/* the family */
	{ "ip6 nexthdr tcp dport 22", "proto tcp src ::/0 dport 22" },
	{ "meta l4proto tcp th dport 22", "proto tcp dport 22" },
	{ "ip length 100", "src 0.0.0.0/0 length 100" },
	{ "ip6 saddr 192.0.2.1", "is IPv6, but the rule's other address is not" },
	{ "ip protocol tcp ip6 saddr ::1", "write a rule for each" },
	{ "ip saddr any", "'any' is not an IPv4" },
	{ "ip6 length 100", "'ip6' is no field" },
	{ "ipv6 2001:db8::1", "proto ipv6" },
	/* a comment without quotes */
	{ "192.0.2.1 comment never allow", "quote a comment of several words: comment \"never allow\"" },
	{ "192.0.2.1 comment=never allow", "'allow' follows the comment" },
	{ "192.0.2.1 reason abuse tcp 22", "'tcp' follows the comment" },
	/* other meanings elsewhere */
	{ "ip saddr 192.0.2.1 ip ttl 64 drop", "'ip' is no field" },
	{ "192.0.2.1 ttl 64", "a rule ends by: timeout TIME" },
	{ "udp length 100", "without the IP header" },
	{ "tcp flags syn,ack", "flags syn,ack/syn,ack" },
	{ "tcp flags { syn }", "as in nft" },
	{ "192.0.2.1 to 192.0.2.9", "a range is A-B" },
	{ "dst 192.0.2.1 192.0.2.2", "write src 192.0.2.2, or for several destinations" },
	{ "192.0.2.0 0.0.0.255", "write ADDRESS/LENGTH" },
	{ "tcp:80,192.0.2.1", "'tcp:80' is not an IPv4 or IPv6 address" },
	{ "192.0.2.1,192.0.2.2,tcp:80", "'tcp:80' is not an IPv4 or IPv6 address" },
	{ "192.0.2.9 192.0.2.1,tcp:80", "src is given twice" },
	{ "192.0.2.1,tcp:80 192.0.2.9", "src is given twice" },
	{ "src 192.0.2.1 192.0.2.9", "src is given twice" },
	{ "203.0.113.5/8", "the network is 203.0.0.0/8" },
	{ "192.0.2.1 rate 9/s per ip", "not for each source" },
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
	{ "tcp tftp", "no service of this protocol; write dport 69" },
	{ "sctp dport http,ssh", "no service of this protocol" },
	{ "tcp dport != 22", "no such signs" },
	{ "src 192.0.2.1 length > 1000", "no such signs" },
	{ "tcp flags & syn == syn", "no such signs" },
	{ "192.0.2.1 or 192.0.2.2", "several values are written A,B" },
	{ "192.0.2.1 }", "belongs behind the name of a field" },
	{ "192.0.2.1 nomatch", "sets of ipset" },
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
	/* 1/ddp, and 4/ddp beside 7/tcp and 7/udp */
	assert_non_null(strstr(rules_of("dport rtmp", result), "or a name in /etc/services"));
	assert_string_equal(rules_of("udp echo", result), "proto udp dport 7");
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
	rules_of("tcp DOMAIN", result);
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

/* ---- sequences of words ---- */

/* What words of nft, ufw and ipset say of a packet, by their manuals. 0: nothing. `is_other`: what no rule can say. */
static const struct said {
	const char *words;
	int family, proto, src, dst, sport, dport, flags, length; /* flags: any of them */
	bool is_other;
} said[] = {
	{ .words = "ip saddr 192.0.2.1", .family = 4, .src = 1 },
	{ .words = "from 192.0.2.2", .family = 4, .src = 2 },
	{ .words = "192.0.2.1,tcp:22", .family = 4, .src = 1, .proto = 6, .dport = 22 },
	{ .words = "192.0.2.2,53,192.0.2.1", .family = 4, .src = 2, .dst = 1, .proto = 6, .dport = 53 },
	{ .words = "ip daddr 192.0.2.2", .family = 4, .dst = 2 },
	{ .words = "ip6 saddr 2001:db8::1", .family = 6, .src = 1 },
	{ .words = "ip6 daddr 2001:db8::2", .family = 6, .dst = 2 },
	{ .words = "ip protocol tcp", .family = 4, .proto = 6 },
	{ .words = "ip6 nexthdr udp", .family = 6, .proto = 17 },
	{ .words = "meta l4proto tcp", .proto = 6 },
	{ .words = "ip length 100", .family = 4, .length = 100 },
	{ .words = "ip6 length 60", .is_other = true },
	{ .words = "udp length 80", .is_other = true },
	{ .words = "tcp dport 22", .proto = 6, .dport = 22 },
	{ .words = "udp sport domain", .proto = 17, .sport = 53 },
	{ .words = "th sport 53", .sport = 53 },
	{ .words = "22/tcp", .proto = 6, .dport = 22 },
	{ .words = "tcp flags syn", .proto = 6, .flags = 2 },
	{ .words = "tcp flags syn,ack", .proto = 6, .flags = 0x12 },
	{ .words = "tcp flags { syn, ack }", .is_other = true },
	{ .words = "ip ttl 64", .is_other = true },
	{ .words = "ip6 hoplimit 1", .is_other = true },
	{ .words = "ip dscp 0", .is_other = true },
	{ .words = "ct state established", .is_other = true },
	{ .words = "tcp dport != 22", .is_other = true },
	{ .words = "comment never udp", .is_other = true },
	{ .words = "comment \"allow tcp 22\"" },
	{ .words = "counter" },
	{ .words = "ip", .is_other = true },
	{ .words = "ipv6", .is_other = true },
};

static struct flow random_packet(uint64_t *seed)
{
	static const char *const addresses[2][2] = { { "192.0.2.1", "192.0.2.2" }, { "2001:db8::1", "2001:db8::2" } };
	static const __u16 ports[] = { 22, 53, 80 }, lengths[] = { 60, 80, 100 };
	static const __u8 flags[] = { 0x02, 0x10, 0x12, 0x01 };
	struct flow flow = { .family = random_below(seed, 2),
			     .proto = random_below(seed, 2) ? 6 : 17,
			     .port_kind = FLOW_PORTS,
			     .fragment = FLOW_FRAGMENT_NO,
			     .sport = htons(ports[random_below(seed, 3)]),
			     .dport = htons(ports[random_below(seed, 3)]),
			     .length = lengths[random_below(seed, 3)] };

	rule_address_parse(addresses[flow.family][random_below(seed, 2)], &flow.src);
	rule_address_parse(addresses[flow.family][random_below(seed, 2)], &flow.dst);
	flow.tcp_flags = flow.proto == 6 ? FLOW_TCP_READ | flags[random_below(seed, 4)] : 0;
	return flow;
}

static bool says(const struct said *what, const struct flow *flow)
{
	const int last = flow->family == FLOW_IPV4 ? 3 : 15;

	return (!what->family || what->family == (flow->family == FLOW_IPV4 ? 4 : 6)) &&
	       (!what->proto || what->proto == flow->proto) && (!what->src || what->src == flow->src.byte[last]) &&
	       (!what->dst || what->dst == flow->dst.byte[last]) &&
	       (!what->sport || what->sport == ntohs(flow->sport)) &&
	       (!what->dport || what->dport == ntohs(flow->dport)) && (!what->flags || what->flags & flow->tcp_flags) &&
	       (!what->length || what->length == flow->length);
}

/* Whatever is taken matches the packets that all of the words say, each as in its own tool. */
TEST(test_sequences_of_words)
{
	uint64_t seed = seed_of_run();
	size_t taken = 0;

	for (int round = 0; round < 20000; round++) {
		const struct said *chosen[4];
		const size_t count = 1 + random_below(&seed, 4);
		char text[LINE_BYTES] = "";
		bool is_other = false;
		struct reason reason;
		struct rule_words words;
		struct rules rules;

		for (size_t i = 0; i < count; i++) {
			chosen[i] = &said[random_below(&seed, COUNT(said))];
			is_other |= chosen[i]->is_other;
			sprintf(text + strlen(text), "%s ", chosen[i]->words);
		}
		if (rule_words_split(&words, text, &reason) ||
		    rules_parse(&rules, words.word, words.count, false, &reason))
			continue;
		taken++;
		if (is_other)
			fail_msg("'%s' is taken", text);
		for (int k = 0; k < 50; k++) {
			const struct flow flow = random_packet(&seed);
			const struct rule packet = rule_of_packet(&flow);
			bool is_said = true, is_covered = false;

			for (size_t i = 0; i < count; i++)
				is_said &= says(chosen[i], &flow);
			for (size_t i = 0; i < rules.count; i++)
				is_covered |= rule_covers(&rules.rule[i], &packet);
			if (is_said != is_covered)
				fail_msg("'%s' %s a packet", text, is_said ? "misses" : "takes");
		}
		rules_free(&rules);
	}
	assert_true(taken > 1000);
}

TEST_MAIN(NULL, NULL)
