// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The functions of the library: what they do and what they refuse. */
#include "unit/library_fixture.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <time.h>

#include "kernel/interfaces.h"

/* ---- opening ---- */

static void refuses_to_open(const struct fixture *f, const char *name, unsigned int flags, int expected)
{
	struct xdp_cuckoo_filter *filter;
	const struct xdp_cuckoo_rule rule = parsed("192.0.2.1");
	int error = xdp_cuckoo_open(name, f->dir, flags, &filter);

	is_told(filter, error, expected);
	is_told(filter, xdp_cuckoo_add(filter, &rule), -EBADF);
	is_told(filter, xdp_cuckoo_commit(filter), -EBADF);
	xdp_cuckoo_close(filter);
}

LIBRARY_TEST(test_open)
{
	int standard_input;

	xdp_cuckoo_close(NULL);
	assert_true(strlen(xdp_cuckoo_version()) > 0);
	refuses_to_open(f, "../x", XDP_CUCKOO_CHANGE, -EINVAL);
	refuses_to_open(f, "", XDP_CUCKOO_CHANGE, -EINVAL);
	refuses_to_open(f, NULL, 1 << 3, -EINVAL);
	refuses_to_open(f, NULL, XDP_CUCKOO_READ, -ENOENT);
	standard_input = dup(STDIN_FILENO);
	close(STDIN_FILENO);
	refuses_to_open(f, NULL, XDP_CUCKOO_CHANGE, -EINVAL);
	assert_int_equal(dup2(standard_input, STDIN_FILENO), STDIN_FILENO);
	close(standard_input);
	refuses_to_open(f, NULL, XDP_CUCKOO_READ, -ENOENT);
	xdp_cuckoo_close(open_filter(f, NULL, XDP_CUCKOO_CHANGE));
	xdp_cuckoo_close(open_filter(f, "default", XDP_CUCKOO_READ));
}

LIBRARY_TEST(test_a_damaged_store)
{
	char command[128];

	xdp_cuckoo_close(open_filter(f, NULL, XDP_CUCKOO_CHANGE));
	snprintf(command, sizeof(command), "yes | head -c 32768 >%s/default/data.mdb", f->dir);
	assert_int_equal(system(command), 0);
	refuses_to_open(f, NULL, XDP_CUCKOO_CHANGE, -EBADMSG);
	refuses_to_open(f, NULL, XDP_CUCKOO_READ, -EBADMSG);
}

/* A relative directory is resolved once, by xdp_cuckoo_open(). */
LIBRARY_TEST(test_a_relative_state)
{
	struct xdp_cuckoo_filter *filter;
	int before = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_int_equal(chdir(f->top), 0);
	assert_int_equal(xdp_cuckoo_open(NULL, "state", XDP_CUCKOO_CHANGE, &filter), 0);
	assert_int_equal(chdir("/"), 0);
	is_told(filter, add_text(filter, "192.0.2.1"), 0);
	xdp_cuckoo_close(filter);
	filter = open_filter(f, NULL, XDP_CUCKOO_READ);
	assert_int_equal(count_rules(filter), 1);
	xdp_cuckoo_close(filter);
	assert_int_equal(fchdir(before), 0);
	close(before);
}

/* ---- rules ---- */

TEST(test_rules_as_text_and_back)
{
	static const char *const texts[] = {
		"src 192.0.2.1",
		"dst 2001:db8::/32 action pass",
		"proto icmp type 8 code 0",
		"dport 53",
		"proto ipv6-icmp type 128",
		"proto udp src 192.0.2.0/24 sport 53 dst 198.51.100.7 dport 53",
		"proto tcp timeout 10m comment \"a list\"",
		"src 0.0.0.0/0",
		"src ::1 dst ::2",
		"proto tcp src 192.0.2.1 dport 80 flags syn/syn,ack state new",
		"proto udp src 192.0.2.1 sport 4096/4 dport 256/8 length 1024/8",
		"proto udp src 192.0.2.1 sport 16/12 dport 7 length 0/4",
		"src 192.0.2.1 fragment no length 40",
		"src 192.0.2.1 fragment first",
		"src 192.0.2.1 fragment later action monitor",
		"src 192.0.2.1 fragment any",
	};
	char text[XDP_CUCKOO_TEXT_BYTES], cut[8];

	for (size_t i = 0; i < COUNT(texts); i++) {
		const struct xdp_cuckoo_rule rule = parsed(texts[i]);

		assert_int_equal(xdp_cuckoo_format(&rule, text, sizeof(text)), 0);
		if (strcmp(texts[i], "src 0.0.0.0/0"))
			assert_string_equal(text, texts[i]);
		assert_int_equal(xdp_cuckoo_format(&rule, cut, sizeof(cut)), 0);
		assert_int_equal(strlen(cut), sizeof(cut) - 1);
	}
}

TEST(test_a_rule_in_binary)
{
	struct xdp_cuckoo_rule rule = {
		.family = AF_INET,
		.fields = XDP_CUCKOO_PROTO | XDP_CUCKOO_DPORT,
		.proto = IPPROTO_UDP,
		.src_bits = 24,
		.dport = 53,
		.src = { 192, 0, 2 },
		.timeout_ms = 600000,
		.comment = "open resolvers",
	};
	const struct xdp_cuckoo_rule same =
		parsed("proto udp src 192.0.2.0/24 dport 53 timeout 10m comment \"open resolvers\"");

	assert_memory_equal(&rule, &same, sizeof(rule));
}

static void is_no_rule(struct xdp_cuckoo_filter *filter, struct xdp_cuckoo_rule rule, const char *what)
{
	char text[XDP_CUCKOO_TEXT_BYTES] = "x";
	enum xdp_cuckoo_answer answer;

	if (xdp_cuckoo_format(&rule, text, sizeof(text)) != -EINVAL || *text)
		fail_msg("%s: formatted as '%s'", what, text);
	is_told(filter, xdp_cuckoo_add(filter, &rule), -EINVAL);
	is_told(filter, xdp_cuckoo_del(filter, &rule), -EINVAL);
	is_told(filter, xdp_cuckoo_test(filter, &rule, &answer, NULL), -EINVAL);
}

#define IS_NO_RULE(...) \
	do { \
		struct xdp_cuckoo_rule rule = parsed("192.0.2.0/24"); \
		__VA_ARGS__; \
		is_no_rule(filter, rule, #__VA_ARGS__); \
	} while (0)

LIBRARY_TEST(test_what_is_no_rule)
{
	struct xdp_cuckoo_filter *filter;
	struct xdp_cuckoo_rule read;

	filter = open_filter(f, NULL, XDP_CUCKOO_CHANGE);
	is_told(filter, xdp_cuckoo_parse(filter, "192.0.2.300", &read), -EINVAL);
	assert_non_null(strstr(xdp_cuckoo_error(filter), "192.0.2.300"));
	IS_NO_RULE(memset(&rule, 0, sizeof(rule)));
	IS_NO_RULE(rule.family = 1);
	IS_NO_RULE(rule.family = 0);
	IS_NO_RULE(rule.action = XDP_CUCKOO_MONITOR + 1);
	IS_NO_RULE(rule.fields = 16);
	IS_NO_RULE(rule.proto = 6);
	IS_NO_RULE(rule.dport = 53);
	IS_NO_RULE(rule.src_bits = 0);
	IS_NO_RULE(rule.src_bits = 33);
	IS_NO_RULE(rule.src[3] = 1);
	IS_NO_RULE(rule.src[4] = 1);
	IS_NO_RULE(rule.dst[0] = 1);
	IS_NO_RULE(rule.details = 1);
	IS_NO_RULE(rule.length = 1);
	IS_NO_RULE(rule.fields |= XDP_CUCKOO_DETAILS);
	IS_NO_RULE(rule.fields |= XDP_CUCKOO_DETAILS, rule.tcp_flags_mask = 2);
	IS_NO_RULE(rule.timeout_ms = -1);
	IS_NO_RULE(rule.timeout_ms = INT64_MAX);
	IS_NO_RULE(memset(rule.comment, 'x', sizeof(rule.comment)));
	IS_NO_RULE(strcpy(rule.comment, "\""));
	IS_NO_RULE(strcpy(rule.comment, "\xff"));
	IS_NO_RULE(rule.fields = XDP_CUCKOO_PROTO, rule.proto = IPPROTO_ICMPV6);
	IS_NO_RULE(rule.fields = XDP_CUCKOO_PROTO | XDP_CUCKOO_DPORT, rule.proto = IPPROTO_GRE);
	IS_NO_RULE(rule.fields = XDP_CUCKOO_PROTO | XDP_CUCKOO_SPORT, rule.proto = IPPROTO_ICMP, rule.sport = 256);
	assert_int_equal(count_rules(filter), 0);
	xdp_cuckoo_close(filter);
}

/* ---- changes ---- */

LIBRARY_TEST(test_add_and_delete)
{
	struct xdp_cuckoo_filter *filter;
	struct xdp_cuckoo_rule rule, flow = parsed("203.0.113.9");
	enum xdp_cuckoo_answer answer;

	filter = open_filter(f, NULL, XDP_CUCKOO_CHANGE);
	is_told(filter, add_text(filter, "203.0.113.0/24 timeout 1h"), 0);
	is_told(filter, add_text(filter, "203.0.113.0/24 timeout 2h"), 0);
	is_told(filter, xdp_cuckoo_test(filter, &flow, &answer, &rule), 0);
	assert_int_equal(answer, XDP_CUCKOO_BLOCKED);
	assert_int_equal(rule.src_bits, 24);
	assert_in_range(rule.timeout_ms, 3600001, 7200000);
	is_told(filter, add_text(filter, "203.0.113.0/24"), 0);
	is_told(filter, add_text(filter, "203.0.113.0/24 timeout 1h"), -EEXIST);
	is_told(filter, add_text(filter, "203.0.113.9 action pass"), 0);
	assert_int_equal(ask(filter, "203.0.113.9"), XDP_CUCKOO_PASSED);
	is_told(filter, del_text(filter, "203.0.113.9"), -ENOENT);
	is_told(filter, del_text(filter, "203.0.113.9 action pass"), 0);
	is_told(filter, del_text(filter, "203.0.113.0/24 comment \"any\""), 0);
	is_told(filter, xdp_cuckoo_test(filter, &flow, &answer, &rule), 0);
	assert_int_equal(answer, XDP_CUCKOO_NOT_BLOCKED);
	assert_int_equal(rule.family, 0);
	xdp_cuckoo_close(filter);
}

static int check_rate(const struct xdp_cuckoo_rule *rule, void *filter)
{
	assert_true(rule->fields & XDP_CUCKOO_RATE);
	assert_int_equal(xdp_cuckoo_rate(filter), 8000000 | XDP_CUCKOO_RATE_BITS);
	return 0;
}

/* The struct has no room for a rate, so the handle has it. */
LIBRARY_TEST(test_rates)
{
	struct xdp_cuckoo_filter *filter = open_filter(f, NULL, XDP_CUCKOO_CHANGE);
	struct xdp_cuckoo_rule rule = parsed("192.0.2.1 rate 5/s"), found;
	const struct xdp_cuckoo_rule flow = parsed("192.0.2.1");
	enum xdp_cuckoo_answer answer;
	char text[XDP_CUCKOO_TEXT_BYTES];

	assert_int_equal(xdp_cuckoo_rate(filter), 0);
	is_told(filter, xdp_cuckoo_add(filter, &rule), -EINVAL);
	is_told(filter, xdp_cuckoo_set_rate(filter, 0), -EINVAL);
	is_told(filter, xdp_cuckoo_set_rate(filter, 1ULL << 62), -EINVAL);
	is_told(filter, xdp_cuckoo_parse(filter, "192.0.2.1 rate 1000/s", &rule), 0);
	assert_int_equal(xdp_cuckoo_rate(filter), 1000);
	is_told(filter, xdp_cuckoo_add(filter, &rule), 0);
	is_told(filter, xdp_cuckoo_add(filter, &rule), -EEXIST);
	assert_int_equal(xdp_cuckoo_set_rate(filter, 8000000 | XDP_CUCKOO_RATE_BITS), 0);
	is_told(filter, xdp_cuckoo_add(filter, &rule), 0);
	assert_int_equal(xdp_cuckoo_set_rate(filter, 7), 0);
	is_told(filter, xdp_cuckoo_test(filter, &flow, &answer, &found), 0);
	assert_int_equal(answer, XDP_CUCKOO_LIMITED);
	assert_int_equal(xdp_cuckoo_rate(filter), 8000000 | XDP_CUCKOO_RATE_BITS);
	assert_int_equal(xdp_cuckoo_format(&found, text, sizeof(text)), 0);
	assert_string_equal(text, "src 192.0.2.1 rate ?");
	assert_int_equal(xdp_cuckoo_set_rate(filter, 7), 0);
	is_told(filter, add_text(filter, "192.0.2.9"), 0);
	is_told(filter, del_text(filter, "192.0.2.9"), 0);
	is_told(filter, xdp_cuckoo_each(filter, check_rate, filter), 0);
	is_told(filter, xdp_cuckoo_list_replace(filter, "a", NULL, &rule, 1, NULL), 0);
	is_told(filter, xdp_cuckoo_del(filter, &rule), 0);
	is_told(filter, xdp_cuckoo_del(filter, &rule), -ENOENT);
	xdp_cuckoo_close(filter);
}

LIBRARY_TEST(test_a_policy_decides)
{
	const struct store_settings settings = { .policy = { [OUTCOME_NO_RULE] = VERDICT_DROP } };
	struct xdp_cuckoo_filter *filter;

	filter = open_filter(f, NULL, XDP_CUCKOO_CHANGE);
	strcat(f->dir, "/default");
	open_store(f, STORE_WRITE);
	begin(f);
	assert_int_equal(store_set_settings(f->store, &settings), 0);
	end(f);
	close_store(f);
	assert_int_equal(ask(filter, "203.0.113.9"), XDP_CUCKOO_BLOCKED_BY_POLICY);
	xdp_cuckoo_close(filter);
}

LIBRARY_TEST(test_a_change)
{
	struct xdp_cuckoo_filter *filter;

	filter = open_filter(f, NULL, XDP_CUCKOO_CHANGE);
	is_told(filter, xdp_cuckoo_commit(filter), -EINVAL);
	is_told(filter, xdp_cuckoo_abort(filter), -EINVAL);
	is_told(filter, xdp_cuckoo_begin(filter), 0);
	is_told(filter, xdp_cuckoo_begin(filter), -EBUSY);
	is_told(filter, xdp_cuckoo_load(filter, "va", XDP_CUCKOO_AUTO), -EBUSY);
	is_told(filter, xdp_cuckoo_unload(filter, NULL), -EBUSY);
	is_told(filter, xdp_cuckoo_set_monitor_only(filter, true), -EBUSY);
	is_told(filter, add_text(filter, "192.0.2.1"), 0);
	is_told(filter, add_text(filter, "192.0.2.1"), -EEXIST);
	is_told(filter, del_text(filter, "192.0.2.2"), -ENOENT);
	assert_int_equal(ask(filter, "192.0.2.1"), XDP_CUCKOO_BLOCKED);
	assert_int_equal(count_rules(filter), 1);
	is_told(filter, xdp_cuckoo_abort(filter), 0);
	assert_int_equal(count_rules(filter), 0);
	is_told(filter, xdp_cuckoo_begin(filter), 0);
	is_told(filter, add_text(filter, "192.0.2.1"), 0);
	is_told(filter, add_text(filter, "192.0.2.2"), 0);
	is_told(filter, del_text(filter, "192.0.2.1"), 0);
	is_told(filter, xdp_cuckoo_commit(filter), 0);
	is_told(filter, xdp_cuckoo_begin(filter), 0);
	is_told(filter, add_text(filter, "192.0.2.3"), 0);
	xdp_cuckoo_close(filter);
	filter = open_filter(f, NULL, XDP_CUCKOO_READ);
	assert_int_equal(count_rules(filter), 1);
	assert_int_equal(ask(filter, "192.0.2.2"), XDP_CUCKOO_BLOCKED);
	xdp_cuckoo_close(filter);
}

LIBRARY_TEST(test_a_handle_for_reading_changes_nothing)
{
	struct xdp_cuckoo_filter *filter;
	const struct xdp_cuckoo_rule rule = parsed("192.0.2.1");

	xdp_cuckoo_close(open_filter(f, NULL, XDP_CUCKOO_CHANGE));
	filter = open_filter(f, NULL, XDP_CUCKOO_READ);
	is_told(filter, xdp_cuckoo_begin(filter), -EROFS);
	is_told(filter, xdp_cuckoo_add(filter, &rule), -EROFS);
	is_told(filter, xdp_cuckoo_del(filter, &rule), -EROFS);
	is_told(filter, xdp_cuckoo_expire(filter, NULL), -EROFS);
	is_told(filter, xdp_cuckoo_set_monitor_only(filter, true), -EROFS);
	is_told(filter, xdp_cuckoo_load(filter, "va", XDP_CUCKOO_AUTO), -EROFS);
	is_told(filter, xdp_cuckoo_unload(filter, "va"), -EROFS);
	xdp_cuckoo_close(filter);
}

LOADED_TEST(test_it_does_not_lock_this_host_out)
{
	struct xdp_cuckoo_filter *filter, *forced;

	filter = open_filter(f, NULL, XDP_CUCKOO_CHANGE);
	forced = open_filter(f, NULL, XDP_CUCKOO_CHANGE | XDP_CUCKOO_FORCE);
	is_told(filter, add_text(filter, "dst " OWN_ADDRESS), -ECANCELED);
	is_told(filter, xdp_cuckoo_begin(filter), 0);
	is_told(filter, add_text(filter, "10.99.0.0/24"), 0);
	is_told(filter, xdp_cuckoo_commit(filter), -ECANCELED);
	assert_int_equal(count_rules(filter), 0);
	is_told(forced, add_text(forced, "dst " OWN_ADDRESS), 0);
	is_told(filter, xdp_cuckoo_load(filter, "vb", XDP_CUCKOO_SKB), -ECANCELED);
	is_told(filter, xdp_cuckoo_unload(filter, NULL), -ENODEV);
	is_told(forced, xdp_cuckoo_load(forced, "vb", XDP_CUCKOO_SKB), 0);
	is_told(forced, xdp_cuckoo_unload(forced, "vb"), 0);
	xdp_cuckoo_close(filter);
	xdp_cuckoo_close(forced);
}

LIBRARY_TEST(test_expire)
{
	const struct timespec moment = { .tv_nsec = 20000000 };
	struct xdp_cuckoo_rule rule = parsed("192.0.2.1");
	struct xdp_cuckoo_filter *filter;
	struct xdp_cuckoo_info info;
	uint64_t count = 9;

	filter = open_filter(f, NULL, XDP_CUCKOO_CHANGE);
	is_told(filter, add_text(filter, "192.0.2.2 timeout 1h"), 0);
	is_told(filter, xdp_cuckoo_expire(filter, &count), 0);
	assert_int_equal(count, 0);
	rule.timeout_ms = 1;
	is_told(filter, xdp_cuckoo_add(filter, &rule), 0);
	nanosleep(&moment, NULL);
	assert_int_equal(count_rules(filter), 1);
	is_told(filter, xdp_cuckoo_get_info(filter, &info), 0);
	assert_int_equal(info.rules, 2);
	assert_int_equal(info.timed_rules, 2);
	is_told(filter, xdp_cuckoo_expire(filter, &count), 0);
	assert_int_equal(count, 1);
	is_told(filter, xdp_cuckoo_get_info(filter, &info), 0);
	assert_int_equal(info.rules, 1);
	is_told(filter, xdp_cuckoo_expire(filter, NULL), 0);
	xdp_cuckoo_close(filter);
}

/* ---- a visit ---- */

struct visiting {
	struct xdp_cuckoo_filter *filter;
	unsigned int visits;
};

static int visit(const struct xdp_cuckoo_rule *rule, void *context)
{
	struct visiting *visiting = context;

	is_told(visiting->filter, xdp_cuckoo_del(visiting->filter, rule), -EBUSY);
	is_told(visiting->filter, xdp_cuckoo_each(visiting->filter, count_one, NULL), -EBUSY);
	return ++visiting->visits == 2 ? -77 : 0;
}

LIBRARY_TEST(test_a_visit_ends_where_it_says)
{
	struct visiting visiting = {};

	visiting.filter = open_filter(f, NULL, XDP_CUCKOO_CHANGE);
	is_told(visiting.filter, add_text(visiting.filter, "192.0.2.1"), 0);
	is_told(visiting.filter, add_text(visiting.filter, "192.0.2.2"), 0);
	is_told(visiting.filter, add_text(visiting.filter, "192.0.2.3"), 0);
	assert_int_equal(xdp_cuckoo_each(visiting.filter, visit, &visiting), -77);
	assert_string_equal(xdp_cuckoo_error(visiting.filter), "");
	assert_int_equal(visiting.visits, 2);
	assert_int_equal(count_rules(visiting.filter), 3);
	xdp_cuckoo_close(visiting.filter);
}

/* ---- interfaces ---- */

/* The programs of an interface: in generic mode, and for sent packets. */
static unsigned int programs_of(const char *name)
{
	struct interface *interfaces;
	unsigned int found = 0;
	size_t count;

	assert_int_equal(interfaces_list(&interfaces, &count), 0);
	for (size_t i = 0; i < count; i++)
		if (!strcmp(interfaces[i].name, name))
			found = !!interfaces[i].prog_id[INTERFACE_SKB] + 2 * !!interfaces[i].prog_id[INTERFACE_TC_SENT];
	free(interfaces);
	return found;
}

LOADED_TEST(test_load_outgoing)
{
	struct xdp_cuckoo_filter *filter, *other;
	struct xdp_cuckoo_info info;

	filter = open_filter(f, NULL, XDP_CUCKOO_CHANGE);
	other = open_filter(f, "other", XDP_CUCKOO_CHANGE);
	is_told(filter, xdp_cuckoo_load_outgoing(filter, "nowhere", XDP_CUCKOO_AUTO), -ENODEV);
	is_told(filter, xdp_cuckoo_load_outgoing(filter, "va", XDP_CUCKOO_SKB), 0);
	is_told(filter, xdp_cuckoo_load_outgoing(filter, "va", XDP_CUCKOO_SKB), 0);
	assert_int_equal(programs_of("va"), 3);
	is_told(filter, xdp_cuckoo_get_info(filter, &info), 0);
	assert_int_equal(info.interfaces, 1);
	is_told(filter, xdp_cuckoo_unload(filter, "va"), 0);
	assert_int_equal(programs_of("va"), 0);
	is_told(filter, xdp_cuckoo_load(filter, "va", XDP_CUCKOO_SKB), 0);
	assert_int_equal(programs_of("va"), 1);
	is_told(filter, xdp_cuckoo_load_outgoing(filter, "va", XDP_CUCKOO_SKB), 0);
	assert_int_equal(programs_of("va"), 3);
	is_told(filter, xdp_cuckoo_unload(filter, NULL), 0);
	/* The second half is refused: nothing stays of the first. */
	is_told(other, xdp_cuckoo_load_outgoing(other, "vb", XDP_CUCKOO_SKB), 0);
	assert_int_equal(system("ip link set dev vb xdpgeneric off"), 0);
	is_told(filter, xdp_cuckoo_load_outgoing(filter, "vb", XDP_CUCKOO_SKB), -EBUSY);
	assert_int_equal(programs_of("vb"), 2);
	is_told(other, xdp_cuckoo_unload(other, "vb"), 0);
	xdp_cuckoo_close(filter);
	xdp_cuckoo_close(other);
}

LOADED_TEST(test_load_and_unload)
{
	struct xdp_cuckoo_filter *filter, *other;
	struct xdp_cuckoo_info info;

	filter = open_filter(f, NULL, XDP_CUCKOO_CHANGE);
	other = open_filter(f, "other", XDP_CUCKOO_CHANGE);
	is_told(filter, xdp_cuckoo_load(filter, "nowhere", XDP_CUCKOO_AUTO), -ENODEV);
	is_told(filter, xdp_cuckoo_load(filter, "va", (enum xdp_cuckoo_mode)3), -EINVAL);
	is_told(filter, xdp_cuckoo_load(filter, "lo", XDP_CUCKOO_NATIVE), -EOPNOTSUPP);
	is_told(filter, xdp_cuckoo_load(filter, "va", XDP_CUCKOO_NATIVE), 0);
	is_told(filter, xdp_cuckoo_load(filter, "va", XDP_CUCKOO_SKB), 0);
	is_told(filter, xdp_cuckoo_load(filter, "vb", XDP_CUCKOO_SKB), 0);
	is_told(other, xdp_cuckoo_load(other, "va", XDP_CUCKOO_AUTO), -EBUSY);
	is_told(other, xdp_cuckoo_unload(other, "va"), -ENODEV);
	is_told(filter, add_text(filter, "192.0.2.1 timeout 1h"), 0);
	is_told(filter, xdp_cuckoo_get_info(filter, &info), 0);
	assert_int_equal(info.interfaces, 2);
	assert_int_equal(info.used_slots, 1);
	assert_true(info.slots >= 1 << 14);
	is_told(filter, xdp_cuckoo_unload(filter, "va"), 0);
	is_told(filter, xdp_cuckoo_unload(filter, "va"), -ENODEV);
	is_told(filter, xdp_cuckoo_unload(filter, NULL), 0);
	is_told(filter, xdp_cuckoo_get_info(filter, &info), 0);
	assert_int_equal(info.interfaces + info.slots + info.used_slots, 0);
	xdp_cuckoo_close(filter);
	xdp_cuckoo_close(other);
}

LIBRARY_TEST(test_monitor_only)
{
	struct xdp_cuckoo_filter *filter;
	struct xdp_cuckoo_info info;

	filter = open_filter(f, NULL, XDP_CUCKOO_CHANGE);
	for (int is_on = 1; is_on >= 0; is_on--) {
		is_told(filter, xdp_cuckoo_set_monitor_only(filter, is_on), 0);
		is_told(filter, xdp_cuckoo_get_info(filter, &info), 0);
		assert_int_equal(info.is_monitor_only, is_on);
		assert_false(info.is_panic);
	}
	xdp_cuckoo_close(filter);
}

TEST_MAIN(set_up_host, NULL)
