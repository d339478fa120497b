// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Reads lists of other tools. Each tests/lists/NAME.list must give the rules in NAME.rules, and refuse the
 * lines that are listed there after a !. The format is found from the content. WRITE=1 writes the .rules
 * files, for review. ipset.save, nft.set, nft.ruleset, nft.dropped and the limits are real output of ipset 7.17, nftables 1.0.6 and
 * iptables 1.8.9.
 */
#include <dirent.h>

#include "unit/list_fixture.h"

#define DIRECTORY "tests/lists"

static char *file_text(const char *path, size_t *length)
{
	FILE *file = fopen(path, "r");
	char *text = NULL;
	size_t room = 0;
	ssize_t got;

	assert_non_null(file);
	got = getdelim(&text, &room, EOF, file);
	*length = got > 0 ? got : 0;
	fclose(file);
	return text;
}

static char *result_of_text(const char *text, size_t length, enum list_format format)
{
	struct read_list read = read_bytes(format, 0, text, length);
	char *result = strdup(""), *rest, *line;

	append(&result, "%s", read.rules);
	for (rest = read.refused; (line = strsep(&rest, "\n")) && *line;)
		append(&result, "! %s\n", line);
	for (rest = read.notes; (line = strsep(&rest, "\n")) && *line;)
		append(&result, "# %s\n", line);
	free_list(&read);
	return result;
}

static char *result_of(const char *name, enum list_format format)
{
	char path[512], *text, *result;
	size_t length;

	snprintf(path, sizeof(path), DIRECTORY "/%s.list", name);
	text = file_text(path, &length);
	result = result_of_text(text, length, format);
	free(text);
	return result;
}

static enum list_format format_of(const char *name)
{
	char format[32];

	snprintf(format, sizeof(format), "%.*s", (int)strcspn(name, "."), name);
	assert_int_not_equal(list_format_named(format), LIST_UNKNOWN);
	return list_format_named(format);
}

static void check(const char *name)
{
	char path[512], *result = result_of(name, LIST_UNKNOWN), *expected, *named;
	size_t length;

	snprintf(path, sizeof(path), DIRECTORY "/%s.rules", name);
	if (getenv("WRITE")) {
		FILE *file = fopen(path, "w");

		assert_non_null(file);
		fputs(result, file);
		fclose(file);
		return;
	}
	expected = file_text(path, &length);
	if (strcmp(expected, result))
		fail_msg("%s.list gives\n%s\nexpected\n%s", name, result, expected);
	/* The file name starts with the format's name; FireHOL lists are text. */
	named = result_of(name, strncmp(name, "firehol", 7) ? format_of(name) : LIST_TEXT);
	assert_string_equal(named, expected);
	free(named);
	free(expected);
	free(result);
}

TEST(test_samples)
{
	DIR *directory = opendir(DIRECTORY);
	struct dirent *entry;
	size_t samples = 0;

	assert_non_null(directory);
	while ((entry = readdir(directory))) {
		char *end = strstr(entry->d_name, ".list");

		if (!end || end[5])
			continue;
		*end = '\0';
		check(entry->d_name);
		samples++;
	}
	closedir(directory);
	assert_true(samples > 8);
}

/* White space in the JSON changes no rule, and a refusal names the line where the set is. */
TEST(test_layout_says_nothing)
{
	static const char set_l[] = "{\"set\": {\"family\": \"inet\", \"name\": \"l\"";
	size_t length;
	char *text = file_text(DIRECTORY "/nft.ruleset.list", &length), *laid_out = calloc(2, length);
	char *plain = result_of_text(text, length, LIST_UNKNOWN), *result, expected[64];
	unsigned int line = 1, line_of_l = 0;
	bool is_quoted = false;
	size_t at = 0;

	for (size_t i = 0; i < length; i++) {
		laid_out[at++] = text[i];
		is_quoted ^= text[i] == '"';
		if (is_quoted || !strchr("{[,", text[i]))
			continue;
		if (!strncmp(text + i, set_l, strlen(set_l)))
			line_of_l = line + 1;
		laid_out[at++] = '\n';
		line++;
	}
	result = result_of_text(laid_out, at, LIST_UNKNOWN);
	snprintf(expected, sizeof(expected), "! %u: set 'l':", line_of_l);
	assert_non_null(strstr(result, expected));
	*strchr(plain, '!') = *strchr(result, '!') = '\0'; /* line numbers differ */
	assert_string_equal(plain, result);
	free(text);
	free(laid_out);
	free(plain);
	free(result);
}

struct timed {
	const char *list, *rules;
};

/* The default timeout applies only if neither the set nor the element has a timeout, or says "none". */
static const struct timed timed[] = {
	{ "192.0.2.1\n192.0.2.2 timeout 1h\n", "src 192.0.2.1 timeout 7s\nsrc 192.0.2.2 timeout 1h\n" },
	{ "add a 192.0.2.1\nadd a 192.0.2.2 timeout 60\nadd a 192.0.2.3 timeout 0\n",
	  "src 192.0.2.1 timeout 7s\nsrc 192.0.2.2 timeout 1m\nsrc 192.0.2.3\n" },
	{ "create a hash:ip timeout 60\nadd a 192.0.2.1\nadd a 192.0.2.3 timeout 0\n",
	  "src 192.0.2.1 timeout 1m\nsrc 192.0.2.3\n" },
	{ "create a hash:ip timeout 0\nadd a 192.0.2.1\n", "src 192.0.2.1\n" },
	{ "src,timeout\n192.0.2.1,\n192.0.2.2,60\n192.0.2.3,0\n",
	  "src 192.0.2.1 timeout 7s\nsrc 192.0.2.2 timeout 1m\nsrc 192.0.2.3\n" },
	{ "{\"nftables\": [{\"set\": {\"name\": \"a\", \"type\": \"ipv4_addr\", \"elem\": [\"192.0.2.1\", "
	  "{\"elem\": {\"val\": \"192.0.2.2\", \"timeout\": 60}}]}}]}",
	  "src 192.0.2.1 timeout 7s\nsrc 192.0.2.2 timeout 1m\n" },
};

TEST(test_default_timeouts)
{
	for (size_t i = 0; i < COUNT(timed); i++) {
		struct read_list read = read_bytes(LIST_UNKNOWN, 7000, timed[i].list, strlen(timed[i].list));

		assert_string_equal(read.refused, "");
		assert_string_equal(read.rules, timed[i].rules);
		free_list(&read);
	}
}

static void assert_reads(const void *bytes, size_t length, const char *rules, const char *refused)
{
	struct read_list read = read_bytes(LIST_UNKNOWN, 0, bytes, length);

	assert_string_equal(read.rules, rules);
	assert_string_equal(read.refused, refused);
	free_list(&read);
}

/* A time that is cut, or no number, must not become another time, or none: that is a bad line. */
TEST(test_no_time_or_length_is_cut)
{
	static const char nft[] = "{\"nftables\": [{\"set\": {\"name\": \"a\", \"type\": \"ipv4_addr\", \"elem\": ["
				  "{\"elem\": {\"val\": \"192.0.2.1\", \"timeout\": \"60\"}},\n"
				  "{\"elem\": {\"val\": \"192.0.2.2\", \"timeout\": 60.5}},\n"
				  "{\"elem\": {\"val\": \"192.0.2.3\", \"expires\": null}}]}}]}",
			  set[] = "{\"nftables\": [{\"set\": {\"name\": \"a\", \"type\": \"ipv4_addr\", "
				  "\"timeout\": \"1h\", \"elem\": [\"192.0.2.1\"]}}]}",
			  netmask[] = "create a hash:ip family inet6 netmask 128garbage\nadd a 2001:db8::1\n";
	static const char *const lists[] = { nft, set, netmask };

	for (size_t i = 0; i < COUNT(lists); i++) {
		struct read_list read = read_bytes(LIST_UNKNOWN, 0, lists[i], strlen(lists[i]));

		assert_string_equal(read.rules, "");
		assert_true(*read.refused);
		free_list(&read);
	}
}

/* Files from Windows, truncated files, empty files, binary files. */
TEST(test_odd_files)
{
	static const char nul[] = "192.0.2.1\n192.0.\0002.2\n192.0.2.3";
	static const char nft_nul[] = "{\"nftables\": [\0]}";
	static const char nft_later_nul[] = "{\"nftables\":\n[\0]}";

	assert_reads("", 0, "", "");
	assert_reads("\n\n# nothing\n", 12, "", "");
	assert_reads("\xef\xbb\xbf"
		     "192.0.2.1\r\n",
		     14, "src 192.0.2.1\n", "");
	assert_reads("\xef\xbb\xbfsrc,comment\r\n192.0.2.1,x\r\n", 29, "src 192.0.2.1 comment \"x\"\n", "");
	assert_reads(nul, sizeof(nul) - 1, "src 192.0.2.1\nsrc 192.0.2.3\n",
		     "2: a NUL byte; this is not a text file\n");
	assert_reads(nft_nul, sizeof(nft_nul) - 1, "", "1: a NUL byte; this is not a text file\n");
	assert_reads(nft_later_nul, sizeof(nft_later_nul) - 1, "", "1: a NUL byte; this is not a text file\n");
	assert_reads("{", 1, "", "2: '': not JSON as nft -j writes it; not all of it was read\n");
	assert_reads("{\n}", 3, "",
		     "1: not JSON as nft -j writes it: no member \"nftables\"; other JSON "
		     "needs --json-path, or json = in the configuration\n");
	assert_reads("{\"nftables\": 7}", 15, "", "1: '7': not JSON as nft -j writes it; not all of it was read\n");
}

/* A row without an address means any address only if the file has the columns of export. */
/* The first line is a rule, although its comment has a comma and the name of a column. */
TEST(test_comments_are_no_headings)
{
	static const char *const first[] = { "192.0.2.1 comment \"spam, network, x\"", "192.0.2.1 # spam, net",
					     "192.0.2.1 ; a, port, b", "192.0.2.1 # spam; net" };
	char text[128], rules[128];

	for (size_t i = 0; i < COUNT(first); i++) {
		snprintf(text, sizeof(text), "%s\n192.0.2.2\n", first[i]);
		snprintf(rules, sizeof(rules), "src 192.0.2.1%s\nsrc 192.0.2.2\n", i ? "" : first[0] + 9);
		assert_reads(text, strlen(text), rules, "");
	}
}

TEST(test_csv_without_addresses)
{
	static const char foreign[] = "ip,port\n,80\n192.0.2.1,80\n,\n";
	static const char sides[] = "source_ip,dest_ip,port\n192.0.2.1,,80\n,192.0.2.1,80\n,,80\n";
	static const char own[] = "proto,src,sport,dst,dport\nudp,,,,53\n";
	static const char none[] = "proto,dport\nudp,53\n";
	static const char why[] = "no address: the row would match every source; write 0.0.0.0/0 or ::/0 if you mean "
				  "that\n";
	char refused[256];

	snprintf(refused, sizeof(refused), "2: %s4: %s", why, why);
	assert_reads(foreign, sizeof(foreign) - 1, "src 192.0.2.1 dport 80\n", refused);
	snprintf(refused, sizeof(refused), "4: %s", why);
	assert_reads(sides, sizeof(sides) - 1, "src 192.0.2.1 dport 80\ndst 192.0.2.1 dport 80\n", refused);
	assert_reads(own, sizeof(own) - 1, "proto udp dport 53\n", "");
	assert_reads(none, sizeof(none) - 1, "proto udp dport 53\n", "");
}

#define DAMAGED "2: a quote is not closed before the end of the list, or text follows the closing one\n"
#define BEHIND(line) line ": it is behind the quote of line 2\n"

/* RFC 4180: a quote at the start of a field opens it; any other one is a character. A cut row is no wider rule. */
static const struct {
	const char *list, *rules, *refused;
} csv_rows[] = {
	{ "ip,note\n192.0.2.1,5\" disk\n192.0.2.2,x\n192.0.2.3,6\" disk\n",
	  "src 192.0.2.1\nsrc 192.0.2.2\nsrc 192.0.2.3\n", "" },
	{ "ip,note\n192.0.2.1, \"a\nb \"\"c\"\" , d\"\n\"192.0.2.2\" ,\"\"\n", "src 192.0.2.1\nsrc 192.0.2.2\n", "" },
	{ "ip,note\n192.0.2.1,\"a\n192.0.2.2,b\n192.0.2.3,\"c\n192.0.2.4,d\n", "src 192.0.2.4\n",
	  DAMAGED BEHIND("3") BEHIND("4") },
	{ "ip,note\n192.0.2.1,\"a\n192.0.2.2,b\n", "", DAMAGED BEHIND("3") },
	{ "ip,dport,proto\n192.0.2.1,22,tcp\n192.0.2.2,22\n192.0.2.2", "proto tcp src 192.0.2.1 dport 22\n",
	  "3: fewer fields than the heading has: no proto; is the line cut?\n"
	  "4: fewer fields than the heading has: no dport; is the line cut?\n" },
	{ "ip,dport\n192.0.2.1\n192.0.2.2,22\n", "src 192.0.2.2 dport 22\n",
	  "2: fewer fields than the heading has: no dport; is the line cut?\n" },
	/* Nor is a row wider, or another action, where all rows are cut. */
	{ "ip,dport\n192.0.2.1\n", "", "2: fewer fields than the heading has: no dport; is the line cut?\n" },
	{ "ip;action\n192.0.2.1", "", "2: fewer fields than the heading has: no action; is the line cut?\n" },
	{ "ip,action\n192.0.2.1,pass\n192.0.2.2", "src 192.0.2.1 action pass\n",
	  "3: fewer fields than the heading has: no action; is the line cut?\n" },
	{ "ip,timeout,comment,other\n192.0.2.1", "src 192.0.2.1\n", "" },
};

TEST(test_rows_of_csv)
{
	for (size_t i = 0; i < COUNT(csv_rows); i++)
		assert_reads(csv_rows[i].list, strlen(csv_rows[i].list), csv_rows[i].rules, csv_rows[i].refused);
}

/* A line whose first rules are fine and whose last one is bad gives none. */
TEST(test_no_line_is_taken_in_half)
{
	static const char half[] = "src 192.0.2.1,2001:db8::1 dst 198.51.100.1\n"
				   "proto tcp,icmp src 192.0.2.5 dport 80\n192.0.2.9\n";

	assert_reads(half, sizeof(half) - 1, "src 192.0.2.9\n",
		     "1: '198.51.100.1' is IPv4, but the rule's other address is not\n"
		     "2: protocol 1 has no ports; write type and code\n");
}

#define SAVED "# Generated by iptables-save v1.8.9\n*filter\n"
#define FIRST(line) ": line " line " comes first and may let some of these packets pass; delete one of the two\n"

/* In iptables the order decides, and what the reader cannot judge may pass. tests/lists/iptables*.list have the rest. */
static const struct {
	const char *list, *rules, *refused;
} chains[] = {
	{ SAVED
	  "-A INPUT -s 192.0.2.1/32 -j ACCEPT\n-A INPUT -s 192.0.2.0/24 -j DROP\n-A INPUT -s 192.0.2.2/32 -j DROP\n",
	  "src 192.0.2.2\n", "4" FIRST("3") },
	{ SAVED "-A INPUT -s 192.0.2.0/24 -j DROP\n-A INPUT -s 192.0.2.1/32 -j ACCEPT\n", "src 192.0.2.0/24\n", "" },
	{ SAVED "-A INPUT -i lo -j ACCEPT\n-A INPUT -s 192.0.2.1 -j DROP\n", "src 192.0.2.1\n", "" },
	{ SAVED "-A INPUT ! -i lo -j ACCEPT\n-A INPUT -s 192.0.2.1 -j DROP\n", "", "4" FIRST("3") },
	{ SAVED "-A INPUT -p tcp -m state --state NEW -m tcp --dport 22 -j ACCEPT\n-A INPUT -s 192.0.2.1 -j DROP\n"
		"-A INPUT -s 192.0.2.1 -p udp -j DROP\n",
	  "proto udp src 192.0.2.1\n", "4" FIRST("3") },
	/* what begins something, after a line that lets answers pass */
	{ SAVED "-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n"
		"-A INPUT -s 192.0.2.1 -m state --state NEW -j DROP\n"
		"-A INPUT -s 192.0.2.2 -p tcp -m conntrack --ctstate NEW -j DROP\n-A INPUT -s 192.0.2.3 -j DROP\n",
	  "src 192.0.2.1 state new\nproto tcp src 192.0.2.2 state new\n", "6" FIRST("3") },
	{ SAVED
	  "-A INPUT -m state --state ESTABLISHED,NEW -j ACCEPT\n-A INPUT -s 192.0.2.1 -m state --state NEW -j DROP\n",
	  "", "4" FIRST("3") },
	{ SAVED "-A INPUT -m state --state NEW -j ACCEPT\n-A INPUT -s 192.0.2.1 -m state --state NEW -j DROP\n", "",
	  "4" FIRST("3") },
	{ SAVED "-A INPUT -p tcp -m state --state NEW -j ACCEPT\n"
		"-A INPUT -s 192.0.2.1 -p tcp -m tcp --tcp-flags ACK ACK -j DROP\n",
	  "", "4" FIRST("3") },
	{ SAVED "-A INPUT -s 192.0.2.1 -p tcp -m tcp --syn -j DROP\n"
		"-A INPUT -s 192.0.2.1 -p tcp -m tcp --tcp-flags FIN,SYN,RST,ACK SYN -j DROP\n"
		"-A INPUT -s 192.0.2.1 -m conntrack --ctstate INVALID -j DROP\n",
	  "proto tcp src 192.0.2.1 flags syn/fin,syn,rst,ack\nproto tcp src 192.0.2.1 flags syn/fin,syn,rst,ack\n",
	  "5: 'INVALID': no rule can say this\n" },
	{ SAVED "-A INPUT -p tcp -m tcp --dport 1024:65535 -j ACCEPT\n-A INPUT -s 192.0.2.1 -j DROP\n", "",
	  "4" FIRST("3") },
	{ SAVED "-A INPUT -m comment --comment \"\\\"\" -j ACCEPT\n-A INPUT -s 192.0.2.1 -j DROP\n", "",
	  "4" FIRST("3") },
	{ SAVED "-A INPUT -s 192.0.2.1 -g other\n-A INPUT -s 192.0.2.1 -j DROP\n", "",
	  "3: '-j other': only DROP, REJECT and ACCEPT are read\n4" FIRST("3") },
	/* the chain may accept, in lines that come later */
	{ SAVED "-A INPUT -j ufw-user-input\n-A INPUT -s 192.0.2.1 -j DROP\n-A ufw-user-input -s 192.0.2.1 -j ACCEPT\n"
		"-A ufw-user-input -s 192.0.2.2 -j DROP\n",
	  "src 192.0.2.2\n", "4" FIRST("3") },
	/* each table has an order of its own */
	{ SAVED "-A INPUT -j ACCEPT\nCOMMIT\n*raw\n-A PREROUTING -p tcp -m tcp --dport 22 -s 192.0.2.1 -j DROP\n",
	  "proto tcp src 192.0.2.1 dport 22\n", "" },
	/* one of several ports */
	{ SAVED "-A INPUT -p tcp -m tcp --dport 80 -j ACCEPT\n-A INPUT -p tcp -m multiport --dports 79:81,90 -j DROP\n",
	  "", "4" FIRST("3") },
	{ "*filter\n-A INPUT -p tcp -j DROP\n-A INPUT -s 2001:db8::1/128 -p tcp -j DROP\n",
	  "proto tcp src 2001:db8::1\n",
	  "2: IPv4 or IPv6? The line '# Generated by iptables-save' or '# Generated by ip6tables-save' is missing\n" },
	{ "*filter\n-A INPUT -s 192.0.2.1\n-I INPUT -s 192.0.2.1 -j DROP\n-A\n-A INPUT -j\n", "",
	  "3: '-I': iptables-save writes no such line\n" },
};

TEST(test_order_of_iptables)
{
	for (size_t i = 0; i < COUNT(chains); i++)
		assert_reads(chains[i].list, strlen(chains[i].list), chains[i].rules, chains[i].refused);
}

/* Elements of a set that the file does not create, of more columns than a rule has. */
TEST(test_an_unfit_set_is_told)
{
	static const char list[] = "add a 192.0.2.3,tcp:80,198.51.100.2,203.0.113.9\n"
				   "add a 192.0.2.4,tcp:80,198.51.100.2,203.0.113.9\nadd b 192.0.2.9\n";

	assert_reads(list, sizeof(list) - 1, "src 192.0.2.9\n",
		     "1: '192.0.2.3,tcp:80,198.51.100.2,203.0.113.9': such elements cannot be rules; set 'a' is left "
		     "out\n");
}

/* The names of columns as other tools spell them; a heading that is wide, and one that is too wide. */
TEST(test_headings_of_csv)
{
	static const char *const headings[] = { "ipAddress,x", "IP Address,x", "src-ip,x", "\"Source_IP\",x" };
	char file[2048];

	for (size_t i = 0; i < sizeof(headings) / sizeof(headings[0]); i++) {
		snprintf(file, sizeof(file), "%s\n192.0.2.1,1\n", headings[i]);
		assert_reads(file, strlen(file), "src 192.0.2.1\n", "");
	}
	snprintf(file, sizeof(file), "ip%0500d\n192.0.2.1\n", 0);
	for (char *at = file + 2; *at == '0'; at++)
		*at = ',';
	assert_reads(file, strlen(file), "src 192.0.2.1\n", "");
	snprintf(file, sizeof(file), "ip%0600d\n192.0.2.1\n", 0);
	for (char *at = file + 2; *at == '0'; at++)
		*at = ',';
	assert_reads(file, strlen(file), "", "1: more than 512 columns\n");
}

#define NFT_SET(address) \
	"{\"nftables\": [{\"set\": {\"name\": \"a\", \"type\": \"ipv4_addr\", \"elem\": [\"" address "\"]}}]}"

/* Rules of which parts are missing, or of another type: none is read, and none is trusted. */
TEST(test_rules_of_nft_that_are_none)
{
#define RULE(expr) "{\"rule\":{\"family\":\"ip\",\"table\":\"t\",\"chain\":\"c\",\"expr\":" expr "}}"
#define OVER "{\"limit\":{\"rate\":5,\"per\":\"second\",\"inv\":true}},{\"drop\":null}"
	static const char list[] =
		"{\"nftables\":[{\"chain\":{\"family\":\"ip\",\"table\":\"t\",\"name\":\"c\",\"hook\":\"input\"}},"
		"{\"chain\":7},{\"rule\":{}},{\"rule\":[]}," RULE("7") "," RULE("[7,{}]") "," RULE("[{\"match\":{\"left\":{\"meta\":{\"key\":\"iif\"}},\"right\":\"lo\"}}]") "," RULE(
			"[{\"match\":null}," OVER
			"]") "," RULE("[{\"limit\":{\"rate\":\"x\",\"inv\":true}},{\"drop\":null}]") "]}";

	assert_reads(
		list, sizeof(list) - 1, "",
		"1: chain 'c', rule with handle 0: limits of nft are not read; write: xdp-cuckoo add RULE rate N/s\n"
		"1: chain 'c', rule with handle 0: limits of nft are not read; write: xdp-cuckoo add RULE rate N/s\n");
}

/* A file may have two documents of nft. Anything after them is refused, not ignored. */
TEST(test_documents_of_nft)
{
	static const char two[] = NFT_SET("192.0.2.1") "\n" NFT_SET("192.0.2.2") " \n";
	static const char joined[] = NFT_SET("192.0.2.1") NFT_SET("192.0.2.2");
	static const char other[] = NFT_SET("192.0.2.1") "\n\n192.0.2.2";
	static const char cut[] = NFT_SET("192.0.2.1") "\n{\"nftables\": [";
	static const char foreign[] = NFT_SET("192.0.2.1") "\n{\"x\": 1}\n" NFT_SET("192.0.2.2");
	static const char marked[] = "\xef\xbb\xbf" NFT_SET("192.0.2.1");
	struct read_list read;

	assert_reads(two, sizeof(two) - 1, "src 192.0.2.1\nsrc 192.0.2.2\n", "");
	assert_reads(joined, sizeof(joined) - 1, "src 192.0.2.1\nsrc 192.0.2.2\n", "");
	assert_reads(other, sizeof(other) - 1, "src 192.0.2.1\n",
		     "3: '192.0.2.2': not JSON as nft -j writes it; not all of it was read\n");
	assert_reads(cut, sizeof(cut) - 1, "src 192.0.2.1\n",
		     "2: '': not JSON as nft -j writes it; not all of it was read\n");
	assert_reads(foreign, sizeof(foreign) - 1, "src 192.0.2.1\nsrc 192.0.2.2\n",
		     "2: not JSON as nft -j writes it: no member \"nftables\"; other JSON "
		     "needs --json-path, or json = in the configuration\n");
	/* A byte order mark, where --format names the format. */
	read = read_bytes(LIST_NFT, 0, marked, sizeof(marked) - 1);
	assert_string_equal(read.rules, "src 192.0.2.1\n");
	free_list(&read);
}

/* As AWS, Google, Cloudflare, GitHub and AbuseIPDB publish: the addresses are where a path leads. */
static const struct {
	const char *json, *list, *rules, *refused;
} documents[] = {
	{ ".prefixes[].ip_prefix .ipv6_prefixes[].ipv6_prefix",
	  "{\"syncToken\": \"1\",\n \"prefixes\": [\n  {\"ip_prefix\": \"192.0.2.0/28\", \"region\": \"x\"},\n"
	  "  {\"ip_prefix\": \"x\"}, {\"ip_prefix\": [\"192.0.2.99\"]}, {\"ip_prefix\": 7}],\n"
	  " \"ipv6_prefixes\": [{\"ipv6_prefix\": \"2001:db8::/48\"}]}\n",
	  "src 192.0.2.0/28\nsrc 2001:db8::/48\n",
	  "4: 'x' is not an IPv4 or IPv6 address or prefix; write it like 192.0.2.1, 192.0.2.0/24 or 2001:db8::/32\n"
	  "4: '[\"192.0.2.99\"]': no text with an address\n4: '7': no text with an address\n" },
	/* an entry has one of both; null is none */
	{ ".prefixes[].ipv4Prefix, .prefixes[].ipv6Prefix",
	  "{\"prefixes\":[{\"ipv6Prefix\":\"2001:db8::/48\"},{\"ipv4Prefix\":\"192.0.2.1/32\",\"ipv6Prefix\":null}]}",
	  "src 192.0.2.1\nsrc 2001:db8::/48\n", "" },
	{ ".result.ipv4_cidrs[]",
	  "{\"result\":{\"etag\":\"\",\"ipv4_cidrs\":[\"192.0.2.0/24\",\"192.0.3.1-192.0.3.2\"]}}",
	  "src 192.0.2.0/24\nsrc 192.0.3.1\nsrc 192.0.3.2\n", "" },
	{ ".hooks[] .git[]", "{\"hooks\":[\"192.0.2.1/32\"],\"domains\":{\"git\":[\"x\"]},\"git\":[\"192.0.2.2/32\"]}",
	  "src 192.0.2.1\nsrc 192.0.2.2\n", "" },
	{ ".data[].ipAddress", "\xef\xbb\xbf{\"meta\":1,\"data\":[{\"ipAddress\":\"192.0.2.1\",\"score\":100}]}",
	  "src 192.0.2.1\n", "" },
	{ ".[]", "[\"192.0.2.1\"]", "src 192.0.2.1\n", "" },
	{ ".ip", "{\"ip\":\"192.0.2.1\"}\n[\"192.0.2.9\"]\n{\"x\":{\"ip\":\"192.0.2.8\"}}\n{\"ip\":\"192.0.2.2\"}\n",
	  "src 192.0.2.1\nsrc 192.0.2.2\n", "" },
	{ ".a[].b[][].c", "{\"a\":{\"x\":{\"b\":[[{\"c\":\"192.0.2.1\"}],[]]}}}", "src 192.0.2.1\n", "" },
	{ ".a[].ip", "{\"a\":[\"192.0.2.6\",{\"ip\":\"192.0.2.7\"},null,[]]}\n", "src 192.0.2.7\n",
	  "1: '\"192.0.2.6\"': no text with an address\n" },
	/* what stands beside objects is no entry, unless it is an address */
	{ ".[][].ip",
	  "{\"total\":5,\"at\":\"2026-11-28T10:00:00Z\",\"a\":{\"n\":1,\"1\":{\"ip\":\"192.0.2.1\"}},\"b\":\"192.0.2.6\",\"c\":[7]}",
	  "src 192.0.2.1\n", "1: '\"192.0.2.6\"': no text with an address\n1: '7': no text with an address\n" },
	/* the provider has renamed one of both */
	{ ".a[] .b[]", "{\"a\":[\"192.0.2.1\"],\"c\":[\"192.0.2.2\"]}\n", "src 192.0.2.1\n",
	  "2: '.b[]' leads to no value\n" },
	{ ".a[]", "{\"a\":[]}", "", "1: '.a[]' leads to no value\n" },
	{ ".a[]", "{\"a\":[\"192.0.2.1\",\n\"192.0.", "", "2: '': not JSON; not all of it was read\n" },
	{ ".a", "{\"a\":\"192.0.2.1\"} x", "src 192.0.2.1\n", "1: 'x': not JSON; not all of it was read\n" },
	{ ".a", "\n<html>", "", "1: this is a page of HTML or XML, not a list\n" },
	{ NULL, "{\"data\": [\"192.0.2.1\"]}", "",
	  "1: '{\"data\": [\"192.0.2.1\"]}': no member \"cidr\"; other JSON needs --json-path, or json = in the configuration\n" },
	{ NULL, "[\"192.0.2.1\"]", "",
	  "1: this is JSON; other JSON needs --json-path, or json = in the configuration\n" },
	{ NULL, "\n<!DOCTYPE html>\n192.0.2.1\n", "", "1: this is a page of HTML or XML, not a list\n" },
	{ NULL, "%PDF-1.5\n192.0.2.1\n", "", "1: this is a PDF document, not a list\n" },
};

/* A bad first line costs only itself, whatever it looks like; what is another thing as a whole is refused as a whole. */
static const char *const odd_starts[] = { "[\n",       "<hr>\n",          "BZhello\n", "{\n",
					  "* bad *\n", "create a list\n", "[]\n",      "add 198.51.100.1\n",
					  "# x\n[\n" };
static const char *const other_things[][2] = {
	{ "<html>\n192.0.2.1\n", "a page of HTML" },
	{ "<div>\nSorry\n192.0.2.1\n", "a page of HTML" },
	{ "BZh91AY&SY\x01\n\x02", "a bzip2 file" },
	{ "[\n\"192.0.2.1\"\n]\n", "JSON" },
	{ "[\n7\n]", "JSON" },
};

TEST(test_odd_first_lines)
{
	char text[128];

	for (size_t i = 0; i < COUNT(odd_starts); i++) {
		struct read_list read;

		snprintf(text, sizeof(text), "%s\n; x\n192.0.2.1\ndst 192.0.2.2 tcp\n", odd_starts[i]);
		read = read_bytes(LIST_UNKNOWN, 0, text, strlen(text));
		assert_string_equal(read.rules, "src 192.0.2.1\nproto tcp dst 192.0.2.2\n");
		assert_true(*read.refused && strchr(read.refused, '\n')[1] == '\0');
		free_list(&read);
	}
	for (size_t i = 0; i < COUNT(other_things); i++) {
		struct read_list read = read_bytes(LIST_UNKNOWN, 0, other_things[i][0], strlen(other_things[i][0]));

		snprintf(text, sizeof(text), "1: this is %s", other_things[i][1]);
		assert_string_equal(read.rules, "");
		assert_ptr_equal(strstr(read.refused, text), read.refused);
		free_list(&read);
	}
}

TEST(test_json_by_a_path)
{
	char deep[2 * 33 + 1] = "";
	static const char *const wrong[] = { "",    "a",   ".",     "..a",  ".a[", ".a[0]",
					     ".a]", ".a.", ".a[]b", ".a .", "a[]", ".\"a\"" };

	for (size_t i = 0; i < COUNT(documents); i++) {
		struct read_list read =
			read_json(documents[i].json, LIST_UNKNOWN, 0, documents[i].list, strlen(documents[i].list));

		assert_string_equal(read.rules, documents[i].rules);
		assert_string_equal(read.refused, documents[i].refused);
		free_list(&read);
		if (documents[i].json)
			assert_true(list_is_json_path(documents[i].json));
	}
	for (size_t i = 0; i < COUNT(wrong); i++)
		assert_false(list_is_json_path(wrong[i]));
	for (size_t i = 0; i < sizeof(deep) - 1; i++)
		deep[i] = i % 2 ? 'a' : '.';
	assert_false(list_is_json_path(deep));
	assert_true(list_is_json_path(deep + 2));
}

/* Sets with typeof, as newer versions of nft list them; and sets that cannot be rules. */
static const struct {
	const char *type, *elements, *rules, *refused;
} nft_sets[] = {
	{ "{\"typeof\": {\"payload\": {\"protocol\": \"ip\", \"field\": \"saddr\"}}}", "\"192.0.2.1\"",
	  "src 192.0.2.1\n", "" },
	{ "{\"typeof\": {\"concat\": [{\"payload\": {\"protocol\": \"ip6\", \"field\": \"saddr\"}}, "
	  "{\"payload\": {\"protocol\": \"icmpv6\", \"field\": \"type\"}}]}}",
	  "{\"concat\": [\"2001:db8::1\", \"nd-redirect\"]}, {\"concat\": [\"2001:db8::1\", \"nothing\"]}",
	  "proto ipv6-icmp src 2001:db8::1 type 137\n",
	  "1: 'type nothing': must be a number 0 to 255; ping is type 8, in IPv6 type 128\n" },
	{ "{\"typeof\": {\"concat\": [{\"payload\": {\"protocol\": \"ip\", \"field\": \"saddr\"}}, "
	  "{\"payload\": {\"protocol\": \"tcp\", \"field\": \"dport\"}}]}}",
	  "{\"concat\": [\"192.0.2.1\", 80]}", "proto tcp src 192.0.2.1 dport 80\n", "" },
	{ "{\"typeof\": {\"payload\": {\"protocol\": \"udp\", \"field\": \"sport\"}}}", "5353",
	  "proto udp sport 5353\n", "" },
	{ "{\"typeof\": {\"payload\": {\"protocol\": \"th\", \"field\": \"dport\"}}}", "5353", "dport 5353\n", "" },
	{ "{\"typeof\": {\"meta\": {\"key\": \"mark\"}}}", "1", "",
	  "1: set 'a': elements of its type cannot be rules; it is left out\n" },
	{ "\"ipv4_addr\"", "1.2.3", "", "1: '1.2.3' is not JSON\n" },
	{ "\"ipv4_addr\"", "true, \"192.0.2.1\"", "src 192.0.2.1\n",
	  "1: 'true' does not have the columns of set 'a'\n" },
	{ "\"ipv4_addr\"", "{\"range\": [\"192.0.2.1\", \"192.0.2.2\", \"192.0.2.9\"]}", "",
	  "1: '{\"range\": [\"192.0.2.1\", \"192.0.2.2\", \"192.0.2.9\"]}' does not have the columns of set 'a'\n" },
	{ "\"inet_service\"", "{\"range\": [1, 2]}, {\"range\": [1, 2, 3]}", "dport 1\ndport 2\n",
	  "1: '{\"range\": [1, 2, 3]}' does not have the columns of set 'a'\n" },
	{ "[\"ipv4_addr\", \"ipv4_addr\", \"ipv4_addr\"]", "\"192.0.2.1\"", "",
	  "1: set 'a': elements of its type cannot be rules; it is left out\n" },
};

TEST(test_nft_sets)
{
	for (size_t i = 0; i < COUNT(nft_sets); i++) {
		char *text;
		const int length = asprintf(&text,
					    "{\"nftables\": [{\"set\": {\"family\": \"inet\", \"table\": \"t\", "
					    "\"name\": \"a\", \"type\": %s, \"elem\": [%s]}}]}",
					    nft_sets[i].type, nft_sets[i].elements);

		assert_true(length >= 0);
		assert_reads(text, length, nft_sets[i].rules, nft_sets[i].refused);
		free(text);
	}
}

/* Random input: reading ends, and every rule is valid. */
TEST(test_noise)
{
	static const char words[][16] = {
		"create ",    "add ",
		"a ",         "hash:ip,port ",
		"192.0.2.1",  "2001:db8::1",
		",",          "-",
		"/",          "tcp:80",
		"\n",         "timeout ",
		"\"",         "{",
		"}",          "[",
		"]",          "\"nftables\"",
		":",          "\"set\"",
		"\"elem\"",   "src",
		"dport ",     "7",
		"\"type\"",   "\"ipv4_addr\"",
		"\"concat\"", "\"range\"",
		"\"prefix\"", "\\",
		";",          "#",
		"\"cidr\"",   "*filter\n",
		"-A INPUT ",  "-s ",
		"-p ",        "--dport ",
		"-j DROP\n",  "-j ACCEPT\n",
	};
	uint64_t seed = seed_of_run();

	for (int i = 0; i < 20000; i++) {
		const enum list_format format = random_below(&seed, LIST_FORMATS);
		char text[512] = "";
		struct read_list read;

		for (size_t k = random_below(&seed, 30); k > 0; k--)
			strcat(text, words[random_below(&seed, COUNT(words))]);
		read = read_bytes(format, 0, text, strlen(text));
		for (size_t k = 0; k < read.set.count; k++) {
			char line[RULE_TEXT_BYTES];
			struct reason reason;
			struct rule rule, again;

			rule_set_get(&read.set, k, &rule);
			if (rule_parse(rule_format(&rule, line), &again, &reason))
				fail_msg("%s, made of %s: %s", line, text, reason.text);
		}
		free_list(&read);
	}
}

TEST_MAIN(NULL, NULL)
