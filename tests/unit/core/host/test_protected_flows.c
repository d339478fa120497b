// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The flows that must not be blocked, in a network namespace of this test, with its own /etc/resolv.conf
 * and /run; and the rules that count as likely mistakes.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <libmnl/libmnl.h>
#include <linux/inet_diag.h>
#include <linux/rtnetlink.h>
#include <linux/tcp.h>

#include "unit/test.h"
#include "host/host.h"
#include "kernel/interfaces.h"

#define SHOW "show" /* with this argument the program only prints the flows */

static char program[256];

/* ---- what fails ---- */

static struct {
	int bus, type, error, times; /* dumps of this type fail, so many times, after their messages */
	size_t asked;                /* single questions to the kernel */
	size_t until_full, grown;    /* calls until an array cannot grow, this one too; 0: all can */
} fault;

#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* the linker calls them */

int __real_netlink_dump(int bus, __u16 type, const void *header, size_t header_bytes, netlink_visit visit,
			void *context);
int __real_netlink_ask(struct nlmsghdr *request, netlink_visit visit, void *context);
int __real_array_grow(void *array, size_t count, size_t each);

/* An address without bytes, and one of another family. */
static void visit_odd_addresses(netlink_visit visit, void *context)
{
	for (int i = 0; i < 2; i++) {
		char buffer[256];
		struct nlmsghdr *message = mnl_nlmsg_put_header(buffer);
		struct ifaddrmsg *header = mnl_nlmsg_put_extra_header(message, sizeof(*header));

		header->ifa_family = i ? AF_PHONET : AF_INET;
		if (i)
			mnl_attr_put(message, IFA_LOCAL, 16, "of a cell phone.");
		assert_int_equal(visit(message, context), MNL_CB_OK);
	}
}

int __wrap_netlink_dump(int bus, __u16 type, const void *header, size_t header_bytes, netlink_visit visit,
			void *context)
{
	const int error = __real_netlink_dump(bus, type, header, header_bytes, visit, context);

	if (type == RTM_GETADDR)
		visit_odd_addresses(visit, context);
	return bus == fault.bus && type == fault.type && fault.times && fault.times-- ? fault.error : error;
}

int __wrap_netlink_ask(struct nlmsghdr *request, netlink_visit visit, void *context)
{
	fault.asked++;
	return __real_netlink_ask(request, visit, context);
}

int __wrap_array_grow(void *array, size_t count, size_t each)
{
	fault.grown++;
	if (!fault.until_full || --fault.until_full)
		return __real_array_grow(array, count, each);
	errno = ENOMEM;
	return -ENOMEM;
}

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void do_ip(const char *arguments)
{
	char command[256];

	snprintf(command, sizeof(command), "ip %s", arguments);
	assert_int_equal(system(command), 0);
}

static void set_resolv_conf(const char *text)
{
	write_file("/run/resolv.conf", text);
}

/* A host with one interface and no other flow to protect. */
static int set_up_host(void **state)
{
	(void)state;
	if (system("command -v ip >/dev/null") || !become_root())
		return 0;
	/* A small table of TCP connections in the second one: each search reads all of it. */
	if (unshare(CLONE_NEWNET))
		return -1;
	if (!access("/proc/sys/net/ipv4/tcp_child_ehash_entries", W_OK)) /* from Linux 6.1 on */
		write_file("/proc/sys/net/ipv4/tcp_child_ehash_entries", "1024");
	if (unshare(CLONE_NEWNET | CLONE_NEWNS) || mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", "/run", "tmpfs", 0, NULL))
		return -1;
	set_resolv_conf("");
	if (access("/etc/resolv.conf", F_OK) || mount("/run/resolv.conf", "/etc/resolv.conf", "none", MS_BIND, NULL))
		return -1;
	(void)!mount("sysfs", "/sys", "sysfs", 0, NULL); /* that of the namespace */
	write_file("/proc/sys/net/ipv6/conf/all/disable_ipv6", "0");
	write_file("/proc/sys/net/ipv6/conf/default/disable_ipv6", "0");
	do_ip("link set lo up");
	return 0;
}

/* Each test has the interfaces to itself. */
static int make_interfaces(void **state)
{
	(void)state;
	setenv("SSH_CONNECTION", "", 1); /* the test itself may run in an SSH session */
	if (geteuid())
		return 0;
	do_ip("link add g0 type veth peer name g1");
	do_ip("link set g0 addrgenmode none");
	do_ip("link set g1 addrgenmode none");
	do_ip("link set g0 up arp off"); /* a connection that nobody answers goes on */
	do_ip("link set g1 up");
	return 0;
}

static int remove_interfaces(void **state)
{
	(void)state;
	if (geteuid())
		return 0;
	set_resolv_conf("");
	host_also_read(NULL);
	do_ip("link del g0");
	return 0;
}

#define HOST_TEST(name) TEST_BY(name, void, make_interfaces, remove_interfaces, needs_root(); name##_body())

#define SSH 28 /* flows: all packets of the session, its first two, those with data (14) and without, next logins (9) */
#define NEAR 15       /* flows: neighbour discovery of a link-local neighbour, with the usual lengths; */
#define NEIGHBOUR 21  /* of another, which also asks from a link-local address */
#define LINK 9        /* flows: neighbour discovery on the link of an IPv6 address, */
#define LINK_LOCAL 21 /* and router advertisements and DHCPv6 there */
#define NAME_SERVER 5 /* flows: all answers by UDP and TCP, and usual ones by UDP */

/* The text of a flow, without "fragment no": all flows say so. */
static const char *text_of(const struct guard_flow *flow, char text[RULE_TEXT_BYTES])
{
	static const char fragment[] = " fragment no";
	char *found;

	rule_format(&flow->flow, text);
	found = strstr(text, fragment);
	assert_non_null(found);
	memmove(found, found + strlen(fragment), strlen(found + strlen(fragment)) + 1);
	return text;
}

/* NULL: the flow is not protected. */
static const char *what_of(const struct guard *guard, const char *flow)
{
	char text[RULE_TEXT_BYTES];

	for (size_t i = 0; i < guard->count; i++)
		if (!strcmp(text_of(&guard->flows[i], text), flow))
			return guard->flows[i].what;
	return NULL;
}

static void assert_guarded(const struct guard *guard, const char *flow, const char *what)
{
	const char *found = what_of(guard, flow);

	if (!found)
		print_error("not guarded: %s\n", flow);
	assert_non_null(found);
	assert_string_equal(found, what);
}

/* For one rule, the guard has those of all flows that the rule may change, or all packets to this host. */
static void assert_guard_for(const char *rule_text, const struct guard *all)
{
	struct reason reason;
	struct guard some;
	struct rule rule;
	size_t count = 0, k;

	assert_int_equal(rule_parse(rule_text, &rule, &reason), 0);
	assert_int_equal(guard_open_for(&rule, &some, NULL, &reason), 0);
	for (size_t i = 0; i < all->count; i++)
		if (rule_covers(&rule, &all->flows[i].flow) || (!rule.src_len && !all->flows[i].flow.src_len)) {
			for (k = 0; k < some.count && memcmp(&some.flows[k].flow, &all->flows[i].flow, sizeof(rule));
			     k++)
				;
			assert_true(k < some.count);
			count++;
		}
	assert_int_equal(some.count, count);
	guard_close(&some);
}

static struct guard open_guard(void)
{
	static const char *const rules[] = { "src 192.0.2.0/24", "src 2001:db8::/32",  "src fe80::/10", "proto tcp",
					     "src 192.0.2.77",   "proto tcp dport 22", "dst 192.0.2.1" };
	struct guard guard;
	struct reason reason;

	assert_int_equal(guard_open(&guard, NULL, &reason), 0);
	for (size_t i = 0; i < COUNT(rules); i++)
		assert_guard_for(rules[i], &guard);
	return guard;
}

static void assert_concerned(const struct guard *guard, const char *text, bool is_concerned)
{
	struct rule rule;

	assert_int_equal(rule_parse(text, &rule, &(struct reason){}), 0);
	assert_int_equal(guard_concerns(guard, &rule), is_concerned);
}

HOST_TEST(test_nothing_to_guard)
{
	struct guard guard;

	guard = open_guard();
	assert_int_equal(guard.count, 0);
	guard_close(&guard);
	guard_close(&guard);
}

HOST_TEST(test_own_addresses)
{
	static const char *const addresses[] = { "192.0.2.1", "198.51.100.200", "2001:db8::1", "fe80::99" };
	struct guard guard;

	do_ip("address add 192.0.2.1/24 dev g0");
	do_ip("address add 198.51.100.200/32 dev lo"); /* as routers have it */
	do_ip("address add 2001:db8::1/64 dev g0 nodad");
	do_ip("address add fe80::99/64 dev g0 nodad");
	guard = open_guard();
	do_ip("address del 198.51.100.200/32 dev lo");
	for (size_t i = 0; i < COUNT(addresses); i++) {
		char flow[64], what[96];

		snprintf(flow, sizeof(flow), "src %s%s", addresses[i], i < 2 ? " dst 224.0.0.0/4" : " dst ff00::/8");
		snprintf(what, sizeof(what), "packets from this host's address %s", addresses[i]);
		assert_guarded(&guard, flow, what);
		snprintf(flow, sizeof(flow), "dst %s state new", addresses[i]);
		snprintf(what, sizeof(what), "packets to this host's address %s", addresses[i]);
		assert_guarded(&guard, flow, what);
	}
	assert_int_equal(guard.count, 8 + LINK + LINK_LOCAL);
	assert_guarded(&guard, "proto ipv6-icmp src 2001:db8::/64 type 135 dst ff02::1:ff00:1 code 0",
		       "neighbour discovery on the link of 2001:db8::1");
	assert_guarded(&guard, "proto ipv6-icmp src 2001:db8::/64 type 136 dst 2001:db8::1 code 0",
		       "neighbour discovery on the link of 2001:db8::1");
	assert_guarded(&guard, "proto ipv6-icmp src fe80::/64 type 134 dst ff02::1 code 0",
		       "router advertisements on the link of fe80::99");
	assert_concerned(&guard, "proto icmpv6 type 134 length 104", true);
	assert_concerned(&guard, "proto udp dport 546 length 128/12", true);
	assert_guarded(&guard, "proto udp src fe80::/64 sport 547 dst fe80::99 dport 546", "DHCPv6 on the link of fe80::99");
	guard_close(&guard);
}

/* The question by which a neighbour finds this host, and its answer. */
static void assert_discovery(const struct guard *guard, const char *neighbour, const char *name, const char *own,
			     const char *group)
{
	char flow[128], what[96];

	snprintf(flow, sizeof(flow), "proto ipv6-icmp src %s type 136 dst %s code 0", neighbour, own);
	snprintf(what, sizeof(what), "neighbour advertisements of %s", name);
	assert_guarded(guard, flow, what);
	snprintf(flow, sizeof(flow), "proto ipv6-icmp src %s type 135 dst %s code 0", neighbour, own);
	snprintf(what, sizeof(what), "neighbour solicitations of %s", name);
	assert_guarded(guard, flow, what);
	snprintf(flow, sizeof(flow), "proto ipv6-icmp src %s type 135 dst %s code 0", neighbour, group);
	assert_guarded(guard, flow, what);
	snprintf(flow, sizeof(flow), "proto ipv6-icmp src %s type 135 dst %s code 0", own, neighbour);
	snprintf(what, sizeof(what), "neighbour solicitations to %s", name);
	assert_guarded(guard, flow, what);
}

HOST_TEST(test_gateways)
{
	struct guard guard;

	do_ip("address add 192.0.2.1/24 dev g0");
	do_ip("address add 2001:db8::1:2345:6789/64 dev g0 nodad");
	do_ip("route add default via 192.0.2.254");
	do_ip("route add 203.0.113.0/24 via 192.0.2.253"); /* no default route */
	do_ip("-6 route add default via fe80::ffff dev g0");
	guard = open_guard();
	assert_guarded(&guard, "src 192.0.2.254", "the default gateway 192.0.2.254");
	assert_guarded(&guard, "src 192.0.2.254 dst 192.0.2.1", "the default gateway 192.0.2.254");
	assert_guarded(&guard, "src fe80::ffff", "the default gateway fe80::ffff");
	assert_guarded(&guard, "src fe80::ffff dst 2001:db8::1:2345:6789", "the default gateway fe80::ffff");
	assert_discovery(&guard, "fe80::ffff", "the default gateway fe80::ffff", "2001:db8::1:2345:6789",
			 "ff02::1:ff45:6789");
	assert_null(what_of(&guard, "src 192.0.2.253"));
	assert_null(what_of(&guard, "src 192.0.2.254 dst 2001:db8::1:2345:6789"));
	assert_int_equal(guard.count, 4 + 2 + 2 + NEAR + LINK);
	guard_close(&guard);
}

/* The neighbour may also ask from its link-local address, which this host does not know. */
HOST_TEST(test_gateway_of_a_global_address)
{
	static const char name[] = "the default gateway 2001:db8::ff";
	struct guard guard;

	do_ip("address add 2001:db8::1/64 dev g0 nodad");
	do_ip("-6 route add default via 2001:db8::ff");
	guard = open_guard();
	assert_discovery(&guard, "2001:db8::ff", name, "2001:db8::1", "ff02::1:ff00:1");
	assert_guarded(&guard, "proto ipv6-icmp src fe80::/10 type 135 dst 2001:db8::1 code 0",
		       "neighbour solicitations of the default gateway 2001:db8::ff");
	assert_guarded(&guard, "proto ipv6-icmp src fe80::/10 type 135 dst ff02::1:ff00:1 code 0",
		       "neighbour solicitations of the default gateway 2001:db8::ff");
	assert_int_equal(guard.count, 2 + 2 + NEIGHBOUR + LINK);
	assert_concerned(&guard, "proto icmpv6 length 72", true);
	assert_concerned(&guard, "proto icmpv6 length 64/12", true);
	assert_concerned(&guard, "src 2001:db8::ff proto icmpv6 type 136 length 72", true);
	assert_concerned(&guard, "proto icmpv6 type 135 length 64", true);
	assert_concerned(&guard, "proto icmpv6 length 1500", false);
	assert_concerned(&guard, "proto icmpv6 type 128 length 72", false);
	assert_concerned(&guard, "src 2001:db8:7::/48 proto icmpv6 length 72", false);
	guard_close(&guard);
}

/* The route ends without router advertisements; a static route does not. */
HOST_TEST(test_gateway_of_router_advertisements)
{
	static const char flow[] = "proto ipv6-icmp src fe80::ffff type 134 dst ff02::1 code 0";
	struct guard guard;

	do_ip("-6 route add default via fe80::ffff dev g0 metric 2000");
	guard = open_guard();
	assert_null(what_of(&guard, flow));
	guard_close(&guard);
	do_ip("-6 route add default via fe80::ffff dev g0 proto ra metric 3000");
	guard = open_guard();
	assert_guarded(&guard, flow, "router advertisements of the default gateway fe80::ffff");
	assert_int_equal(guard.count, 2 + 6);
	guard_close(&guard);
}

/* Multipath routes, other tables, a hop of the other family; one gateway counts once. */
HOST_TEST(test_gateways_of_many_routes)
{
	static const char *const gateways[] = { "src 192.0.2.11", "src 192.0.2.12", "src 192.0.2.13", "src 192.0.2.14",
						"src fe80::11",   "src fe80::12",   "src fe80::13",   "src fe80::14" };
	struct guard guard;

	do_ip("address add 192.0.2.1/24 dev g0");
	do_ip("address add fe80::99/64 dev g0 nodad");
	do_ip("route add default nexthop via 192.0.2.11 nexthop via 192.0.2.12 nexthop via inet6 "
	      "fe80::11 dev g0");
	do_ip("route add default via 192.0.2.13 table 100");
	do_ip("route add default via 192.0.2.14 metric 50");
	do_ip("route add default via 192.0.2.12 metric 60");
	do_ip("route add default via inet6 fe80::12 dev g0 metric 70");
	do_ip("-6 route add default nexthop via fe80::13 dev g0 nexthop via fe80::14 dev g0");
	guard = open_guard();
	for (size_t i = 0; i < COUNT(gateways); i++) {
		if (!what_of(&guard, gateways[i]))
			print_error("not guarded: %s\n", gateways[i]);
		assert_non_null(what_of(&guard, gateways[i]));
	}
	assert_int_equal(guard.count, 4 + 4 * 2 + 4 * (2 + NEAR) + LINK_LOCAL);
	guard_close(&guard);
}

/* Nexthop objects and groups of them, as routing daemons use them. Then a route has only their numbers. */
HOST_TEST(test_gateways_of_nexthop_objects)
{
	static const char *const gateways[] = { "src 192.0.2.11", "src 192.0.2.12", "src 192.0.2.13", "src fe80::11",
						"src fe80::12" };

	do_ip("address add 192.0.2.1/24 dev g0");
	do_ip("nexthop add id 11 via 192.0.2.11 dev g0");
	do_ip("nexthop add id 12 via 192.0.2.12 dev g0");
	do_ip("nexthop add id 13 via 192.0.2.13 dev g0");
	do_ip("nexthop add id 14 group 12/13");
	do_ip("nexthop add id 21 via fe80::11 dev g0");
	do_ip("nexthop add id 22 via fe80::12 dev g0");
	do_ip("nexthop add id 30 dev g0");
	do_ip("route add default nhid 11");
	do_ip("route add default nhid 14 metric 50");
	do_ip("route add default nhid 22 metric 60");
	do_ip("route add default nhid 30 metric 70");
	do_ip("-6 route add default nhid 21");
	for (int compat = 0; compat < 2; compat++) {
		struct guard guard;

		write_file("/proc/sys/net/ipv4/nexthop_compat_mode", compat ? "1" : "0");
		fault.asked = 0;
		assert_int_equal(guard_open(&guard, NULL, &(struct reason){}), 0);
		assert_int_equal(fault.asked,
				 2 * 2 + 5 + 2); /* by which routes it sends; all objects; members of a group */
		guard_close(&guard);
		guard = open_guard();
		for (size_t i = 0; i < COUNT(gateways); i++) {
			if (!what_of(&guard, gateways[i]))
				print_error("compatible %d, not guarded: %s\n", compat, gateways[i]);
			assert_non_null(what_of(&guard, gateways[i]));
		}
		assert_int_equal(guard.count, 2 + 3 * 2 + 2);
		guard_close(&guard);
	}
}

static void assert_name_server(const struct guard *guard, const char *server, const char *own)
{
	static const char *const protocols[] = { "udp", "tcp" };

	for (size_t i = 0; i < 2; i++) {
		char flow[128], what[96];

		snprintf(what, sizeof(what), "answers of the name server %s", server);
		snprintf(flow, sizeof(flow), "proto %s src %s sport 53", protocols[i], server);
		assert_guarded(guard, flow, what);
		snprintf(flow, sizeof(flow), "proto %s src %s sport 53 dst %s", protocols[i], server, own);
		assert_guarded(guard, flow, what);
	}
}

HOST_TEST(test_name_servers)
{
	struct guard guard;

	do_ip("address add 192.0.2.1/24 dev g0");
	do_ip("address add 2001:db8::1/64 dev g0 nodad");
	set_resolv_conf("# nameserver 203.0.113.1\n"
			"search example.org\n"
			"nameserver 192.0.2.53\n"
			"  nameserver\t2001:db8::53 # with a comment\n"
			"nameserver fe80::53%g0\n"
			"nameserver 127.0.0.53\n"
			"nameserver ::1\n"
			"nameserver nonsense\n"
			"nameserver\n"
			"nameserver 192.0.2.53");
	guard = open_guard();
	assert_name_server(&guard, "192.0.2.53", "192.0.2.1");
	assert_name_server(&guard, "2001:db8::53", "2001:db8::1");
	assert_name_server(&guard, "fe80::53", "2001:db8::1");
	assert_int_equal(guard.count, 4 + 3 * 2 * NAME_SERVER + LINK);
	guard_close(&guard);
}

HOST_TEST(test_name_servers_of_systemd_resolved)
{
	struct guard guard;

	set_resolv_conf("nameserver 127.0.0.53\n");
	assert_int_equal(mkdir("/run/systemd", 0755), 0);
	assert_int_equal(mkdir("/run/systemd/resolve", 0755), 0);
	write_file("/run/systemd/resolve/resolv.conf", "nameserver 192.0.2.54\n");
	guard = open_guard();
	assert_non_null(what_of(&guard, "proto udp src 192.0.2.54 sport 53"));
	assert_int_equal(guard.count, NAME_SERVER);
	assert_concerned(&guard, "sport 53 length 80/12", true);
	assert_concerned(&guard, "src 192.0.2.54 length 192/12 fragment no", true);
	assert_concerned(&guard, "sport 53 length 1024/8", false);
	guard_close(&guard);
	assert_int_equal(unlink("/run/systemd/resolve/resolv.conf"), 0);
}

/* Whoever may open sockets on this host may begin any number of connections. */
HOST_TEST(test_many_connections)
{
	const struct sockaddr_in peer = { AF_INET, htons(HOST_BGP_PORT), { inet_addr("192.0.2.77") }, {} };
	bool is_other = true;
	struct guard guard;
	int fd[200];

	do_ip("address add 192.0.2.1/24 dev g0");
	for (size_t i = 0; i < COUNT(fd); i++) {
		fd[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		assert_true(fd[i] >= 0);
		assert_true(connect(fd[i], (const struct sockaddr *)&peer, sizeof(peer)) && errno == EINPROGRESS);
	}
	guard = open_guard();
	assert_concerned(&guard, "192.0.2.77", true);
	assert_int_equal(guard.count, 2 + 128 * SSH);
	guard_close(&guard);
	/* Those of a user who is no speaker: he may connect where strangers tell him to. */
	for (size_t i = 0; i < COUNT(fd); i++)
		is_other &= !fchown(fd[i], 65534, 65534);
	/* The root of a user namespace knows no other user. */
	assert_true(is_other || errno == EINVAL);
	guard = open_guard();
	assert_int_equal(guard.count, is_other ? 2 : 2 + 128 * SSH);
	guard_close(&guard);
	for (size_t i = 0; i < COUNT(fd); i++)
		close(fd[i]);
}

HOST_TEST(test_ssh_session)
{
	static const struct {
		const char *value, *flow, *what; /* flow NULL: none */
	} cases[] = {
		{ "203.0.113.9 50000 192.0.2.1 22",
		  "proto tcp src 203.0.113.9 sport 50000 dst 192.0.2.1 dport 22 state new",
		  "this SSH session, from 203.0.113.9" },
		{ "fe80::9%g0 50000 fe80::1%g0 2222",
		  "proto tcp src fe80::9 sport 50000 dst fe80::1 dport 2222 state new",
		  "this SSH session, from fe80::9" },
		{ "::ffff:203.0.113.9 1 ::ffff:192.0.2.1 22",
		  "proto tcp src 203.0.113.9 sport 1 dst 192.0.2.1 dport 22 state new",
		  "this SSH session, from 203.0.113.9" },
		{ "203.0.113.9 65535 192.0.2.1 65535",
		  "proto tcp src 203.0.113.9 sport 65535 dst 192.0.2.1 dport 65535 state new",
		  "this SSH session, from 203.0.113.9" },
		{ "", NULL, NULL },
		{ "203.0.113.9 50000 192.0.2.1", NULL, NULL },
		{ "203.0.113.9 50000 2001:db8::1 22", NULL, NULL },
		{ "203.0.113.9 70000 192.0.2.1 22", NULL, NULL },
		{ "203.0.113.9 4294967297 192.0.2.1 22", NULL, NULL },
		{ "host 50000 192.0.2.1 22", NULL, NULL },
		{ "UNKNOWN 65535 UNKNOWN 65535", NULL, NULL },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct guard guard;

		setenv("SSH_CONNECTION", cases[i].value, 1);
		guard = open_guard();
		assert_int_equal(guard.count, cases[i].flow ? SSH : 0);
		if (cases[i].flow)
			assert_guarded(&guard, cases[i].flow, cases[i].what);
		if (i == 0) {
			assert_concerned(&guard, "dport 22 flags syn/syn,ack length 48/12", true);
			assert_concerned(&guard, "flags ack", true);
			assert_concerned(&guard, "flags psh,ack length 112/12", true);
			assert_concerned(&guard, "length 1280/8", true);
			assert_concerned(&guard, "length 192/12", true);
			assert_concerned(&guard, "flags psh,ack length 512/8", true);
			assert_concerned(&guard, "dport 22 sport 57344/4", true);
			assert_concerned(&guard, "dport 22 state new sport 36864/4", true);
			assert_concerned(&guard, "sport 50048/12", false);
			assert_concerned(&guard, "dport 23 sport 57344/4", false);
			assert_concerned(&guard, "flags rst", false);
			assert_concerned(&guard, "length 1500", true);
			assert_concerned(&guard, "proto tcp dport 22 flags psh,ack length 1500", true);
			assert_concerned(&guard, "src 203.0.113.0/28 length 1488/12", true);
			assert_concerned(&guard, "src 203.0.113.16/28 length 1500", false);
			assert_concerned(&guard, "proto udp length 1500", false);
			assert_concerned(&guard, "dport 80 length 1500", false);
			assert_concerned(&guard, "length 1504/12", false);
			assert_concerned(&guard, "length 4096/4", false);
		}
		guard_close(&guard);
	}
}

/* Without a gateway only neighbour discovery finds the peer; behind a gateway, that of the gateway. */
HOST_TEST(test_ssh_peer_on_the_link)
{
	struct guard guard;

	do_ip("address add 2001:db8::1/64 dev g0 nodad");
	do_ip("-6 route add 2001:db8:1::/64 dev g0");
	do_ip("-6 route add 2001:db8:2::/64 nexthop via 2001:db8::ff nexthop via 2001:db8::fe");
	setenv("SSH_CONNECTION", "2001:db8:1::9 50000 2001:db8::1 22", 1);
	guard = open_guard();
	assert_discovery(&guard, "2001:db8:1::9", "the SSH peer 2001:db8:1::9", "2001:db8::1", "ff02::1:ff00:1");
	assert_non_null(what_of(&guard, "proto ipv6-icmp src fe80::/10 type 135 dst ff02::1:ff00:1 code 0"));
	assert_int_equal(guard.count, SSH + NEIGHBOUR + 2 + LINK);
	guard_close(&guard);
	setenv("SSH_CONNECTION", "fe80::9%g0 50000 2001:db8::1 22", 1);
	guard = open_guard();
	assert_discovery(&guard, "fe80::9", "the SSH peer fe80::9", "2001:db8::1", "ff02::1:ff00:1");
	assert_int_equal(guard.count, SSH + NEAR + 2 + LINK);
	guard_close(&guard);
	setenv("SSH_CONNECTION", "2001:db8:2::9 50000 2001:db8::1 22", 1);
	guard = open_guard();
	assert_discovery(&guard, "2001:db8::ff", "the gateway 2001:db8::ff", "2001:db8::1", "ff02::1:ff00:1");
	assert_discovery(&guard, "2001:db8::fe", "the gateway 2001:db8::fe", "2001:db8::1", "ff02::1:ff00:1");
	assert_int_equal(guard.count, SSH + 2 * (2 + NEIGHBOUR) + 2 + LINK);
	guard_close(&guard);
	setenv("SSH_CONNECTION", "2001:db8:3::9 50000 2001:db8::1 22", 1); /* no way there */
	guard = open_guard();
	assert_int_equal(guard.count, SSH + 2 + LINK);
	guard_close(&guard);
	do_ip("address add 2001:db8:5::5/64 dev g0 nodad"); /* the peer may ask for any address of this host */
	setenv("SSH_CONNECTION", "2001:db8::9 50000 2001:db8::1 22", 1);
	guard = open_guard();
	assert_discovery(&guard, "2001:db8::9", "the SSH peer 2001:db8::9", "2001:db8::1", "ff02::1:ff00:1");
	assert_discovery(&guard, "2001:db8::9", "the SSH peer 2001:db8::9", "2001:db8:5::5", "ff02::1:ff00:5");
	guard_close(&guard);
}

/* Policy routing, and a VRF: the way depends on the own address. */
static void assert_peer_of_another_table(const char *made, const char *deleted)
{
	struct guard guard;

	do_ip(made); /* a VRF takes the addresses of an interface that becomes part of it */
	do_ip("address add 2001:db8::1/64 dev g0 nodad noprefixroute");
	do_ip("-6 route add 2001:db8::/64 dev g0 table 77");
	do_ip("-6 route add 2001:db8:2::/48 via 2001:db8::ff dev g0 onlink table 77");
	setenv("SSH_CONNECTION", "2001:db8::9 50000 2001:db8::1 22", 1);
	guard = open_guard();
	assert_discovery(&guard, "2001:db8::9", "the SSH peer 2001:db8::9", "2001:db8::1", "ff02::1:ff00:1");
	guard_close(&guard);
	do_ip(deleted);
}

HOST_TEST(test_ssh_peer_of_another_table)
{
	assert_peer_of_another_table("-6 rule add from 2001:db8::1 lookup 77 pref 100",
				     "-6 rule del from 2001:db8::1 lookup 77 pref 100");
}

HOST_TEST(test_ssh_peer_in_a_vrf)
{
	if (system("ip link add g2 type vrf table 77 2>/dev/null")) {
		print_message("this kernel has no VRF\n");
		skip();
	}
	do_ip("link set g2 up");
	assert_peer_of_another_table("link set g0 master g2", "link del g2");
}

/* The session comes through a tunnel: its other end is needed, with the protocol and the port of the tunnel. */
HOST_TEST(test_ssh_through_a_tunnel)
{
	static const struct {
		const char *kind, *proto, *port;
	} tunnels[] = {
		{ "vxlan id 5 remote 198.51.100.9 dstport 4789", "udp", " dport 4789" },
		{ "vxlan id 5 remote 2001:db8:9::9 dstport 4789", "udp", " dport 4789" },
		{ "geneve id 5 remote 198.51.100.9", "udp", " dport 6081" },
		{ "gre remote 198.51.100.9 local 192.0.2.1", "gre", "" },
		{ "gretap remote 198.51.100.9", "gre", "" },
		{ "ip6gre remote 2001:db8:9::9 local 2001:db8::1", "gre", "" },
		{ "ipip remote 198.51.100.9 local 192.0.2.1", "ipip", "" },
		{ "erspan remote 198.51.100.9 local 192.0.2.1 seq key 1 erspan_ver 1", "gre", "" },
		{ "ip6gretap remote 2001:db8:9::9", "gre", "" },
		{ "ip6erspan remote 2001:db8:9::9 seq key 1 erspan_ver 1", "gre", "" },
		{ "ipip remote 198.51.100.9 encap fou encap-dport 5555", "udp", " dport 5555" },
		{ "gre remote 198.51.100.9 encap gue encap-dport 5555", "udp", " dport 5555" },
	};
	char command[160], what[128];

	do_ip("address add 192.0.2.1/24 dev g0");
	do_ip("address add 2001:db8::1/64 dev g0 nodad");
	do_ip("-6 route add 2001:db8:9::/64 via 2001:db8::ff");
	setenv("SSH_CONNECTION", "10.8.0.9 50000 10.8.0.1 22", 1);
	for (size_t i = 0; i < COUNT(tunnels); i++) {
		const bool is_ipv6 = strstr(tunnels[i].kind, "2001");
		const char *end = is_ipv6 ? "2001:db8:9::9" : "198.51.100.9";
		struct guard guard;

		snprintf(command, sizeof(command), "ip link add t0 type %s 2>/dev/null", tunnels[i].kind);
		if (system(command))
			continue; /* this kernel has none */
		do_ip("link set t0 up");
		do_ip("address add 10.8.0.1/24 dev t0");
		guard = open_guard();
		snprintf(what, sizeof(what), "the other end of the tunnel, %s", end);
		for (int is_paired = 0; is_paired < 2; is_paired++) {
			snprintf(command, sizeof(command), "proto %s src %s%s%s", tunnels[i].proto, end,
				 !is_paired ? "" :
				 is_ipv6    ? " dst 2001:db8::1" :
					      " dst 192.0.2.1",
				 tunnels[i].port);
			assert_guarded(&guard, command, what);
		}
		assert_int_equal(what_of(&guard, "src 2001:db8::ff") != NULL, is_ipv6);
		guard_close(&guard);
		do_ip("link del t0");
	}
}

/* Two tunnels to the same end, by the hops of a route and by nexthop objects that it only names. */
HOST_TEST(test_several_tunnels)
{
	static const char *const hops[] = { "nexthop dev t0 nexthop dev t1", "nhid 3" };

	if (system("ip link add t0 type vxlan id 5 remote 198.51.100.9 dstport 4789 2>/dev/null"))
		skip(); /* this kernel has none */
	do_ip("link add t1 type vxlan id 6 remote 198.51.100.9 dstport 4790");
	do_ip("address add 192.0.2.1/24 dev g0");
	do_ip("link set t0 up");
	do_ip("link set t1 up");
	do_ip("nexthop add id 1 dev t0");
	do_ip("nexthop add id 2 dev t1");
	do_ip("nexthop add id 3 group 1/2");
	write_file("/proc/sys/net/ipv4/nexthop_compat_mode", "0");
	set_resolv_conf("nameserver 10.99.0.53\n");
	for (size_t i = 0; i < COUNT(hops); i++) {
		struct guard guard;
		char route[64];

		snprintf(route, sizeof(route), "route replace 10.99.0.0/24 %s", hops[i]);
		do_ip(route);
		guard = open_guard();
		assert_non_null(what_of(&guard, "proto udp src 198.51.100.9 dport 4789"));
		assert_non_null(what_of(&guard, "proto udp src 198.51.100.9 dport 4790"));
		guard_close(&guard);
	}
	write_file("/proc/sys/net/ipv4/nexthop_compat_mode", "1");
	set_resolv_conf("");
	do_ip("link del t0");
	do_ip("link del t1");
}

/* Routers without a default route, and hosts that have it in parts. */
HOST_TEST(test_wide_routes)
{
	static const char *const wide[] = { "2000::/3", "::/1", "8000::/1" };

	do_ip("address add 2001:db8::1/64 dev g0 nodad");
	for (size_t i = 0; i < COUNT(wide); i++) {
		struct guard guard;
		char route[64];

		snprintf(route, sizeof(route), "-6 route add %s via 2001:db8::ff", wide[i]);
		do_ip(route);
		guard = open_guard();
		assert_discovery(&guard, "2001:db8::ff", "the default gateway 2001:db8::ff", "2001:db8::1",
				 "ff02::1:ff00:1");
		guard_close(&guard);
		memcpy(strstr(route, "add"), "del", 3);
		do_ip(route);
	}
}

/* sudo removes the variable. Then the nearest process above that has it counts. */
HOST_TEST(test_ssh_session_of_an_ancestor)
{
	char command[1024], line[256] = "";
	FILE *shown;

	snprintf(command, sizeof(command),
		 "SSH_CONNECTION='203.0.113.1 1 192.0.2.1 22' sh -c \""
		 "SSH_CONNECTION='203.0.113.2 2 192.0.2.1 22' sh -c '"
		 "env -u SSH_CONNECTION sh -c \\\"%s " SHOW "; :\\\"; :'; :\"",
		 program);
	shown = popen(command, "re");
	assert_non_null(shown);
	assert_non_null(fgets(line, sizeof(line), shown));
	assert_int_equal(pclose(shown), 0);
	assert_string_equal(line, "proto tcp src 203.0.113.2 sport 2 dst 192.0.2.1 dport 22 state new\n");
}

/* All own addresses are protected, also when there are more than are paired. */
HOST_TEST(test_many_addresses)
{
	struct guard guard;

	for (int i = 1; i <= 200; i++) {
		char command[64];

		snprintf(command, sizeof(command), "address add 10.0.0.%d/16 dev g0", i);
		do_ip(command);
	}
	do_ip("route add default via 10.0.1.1");
	guard = open_guard();
	assert_int_equal(guard.count, 1 + 64 + 400);
	assert_non_null(strstr(guard.missing.text, "this host has many addresses"));
	assert_non_null(what_of(&guard, "dst 10.0.0.200 state new"));
	assert_non_null(what_of(&guard, "src 10.0.1.1 dst 10.0.0.64"));
	guard_close(&guard);
	/* Each family counts for itself, and the link of the peer comes first. */
	do_ip("address add 10.9.0.1/24 dev g0");
	do_ip("address add 2001:db8::1/64 dev g0 nodad");
	do_ip("route replace default via 10.9.0.254");
	do_ip("-6 route add default via 2001:db8::ff");
	guard = open_guard();
	assert_non_null(what_of(&guard, "src 10.9.0.254 dst 10.9.0.1"));
	assert_discovery(&guard, "2001:db8::ff", "the default gateway 2001:db8::ff", "2001:db8::1", "ff02::1:ff00:1");
	assert_int_equal(guard.count, 1 + 64 + 402 + 2 + 2 + NEIGHBOUR + LINK);
	guard_close(&guard);
}

/* ---- servers and peers ---- */

#define SERVER 27 /* flows: of its next connection (8), and packets as SSH has them (19) */

static void name_servers(void)
{
	write_file("/run/servers.conf",
		   "[list a]\nurl = https://192.0.2.10/ http://[2001:db8::10]/\n[fleet]\nreport = 127.0.0.1:7002 /run/x\n"
		   "broker = 192.0.2.20:7000, named.example:7001\n");
	host_also_read("/run/servers.conf");
}

/* A connection that begins; without a port of the peer, a listener. */
static int socket_of(const char *own, __u16 own_port, const char *peer, __u16 port)
{
	const struct sockaddr_in from = { AF_INET, htons(own_port), { inet_addr(own) }, {} };
	const struct sockaddr_in to = { AF_INET, htons(port), { inet_addr(peer) }, {} };
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | (port ? SOCK_NONBLOCK : 0), 0);

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int)), 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)&from, sizeof(from)), 0);
	if (port)
		assert_true(connect(fd, (const struct sockaddr *)&to, sizeof(to)) && errno == EINPROGRESS);
	else
		assert_int_equal(listen(fd, 9), 0);
	return fd;
}

static void close_all(const int *fd, size_t count)
{
	for (size_t i = 0; i < count; i++)
		close(fd[i]);
}

HOST_TEST(test_servers)
{
	static const char broker[] = "the fleet's broker 192.0.2.20";
	struct guard guard;
	int fd[2];

	do_ip("address add 192.0.2.1/24 dev g0");
	name_servers();
	guard = open_guard();
	assert_guarded(&guard, "proto tcp src 192.0.2.10 sport 443", "the server of the list 'a', 192.0.2.10");
	assert_guarded(&guard, "proto tcp src 2001:db8::10 sport 80", "the server of the list 'a', 2001:db8::10");
	assert_guarded(&guard, "proto tcp src 192.0.2.20 sport 7000 dst 192.0.2.1", broker);
	assert_concerned(&guard, "proto tcp sport 7000 dport 38913", true);
	assert_concerned(&guard, "proto tcp sport 7001", false);
	assert_int_equal(guard.count, 2 + (2 + 1 + 2) * SERVER);
	guard_close(&guard);
	fd[0] = socket_of("192.0.2.1", 40000, "192.0.2.20", 7000);
	fd[1] = socket_of("192.0.2.1", 40001, "192.0.2.30", 7001);
	guard = open_guard();
	assert_guarded(&guard, "proto tcp src 192.0.2.20 sport 7000 dst 192.0.2.1 dport 40000", broker);
	assert_guarded(&guard, "proto tcp src 192.0.2.30 sport 7001 dst 192.0.2.1 dport 40001",
		       "the fleet's broker 192.0.2.30");
	assert_concerned(&guard, "src 192.0.2.30 proto tcp dport 43009", true);
	assert_int_equal(guard.count, 2 + (2 + 1 + 2) * SERVER + 2 * (1 + SERVER));
	guard_close(&guard);
	close_all(fd, COUNT(fd));
}

/* A session in fd[0..2]: its listener, the peer's end, and ours, which has sent so much. */
static void begin_bgp(int fd[3], size_t sent)
{
	static const char text[64];
	struct tcp_info info = {};
	socklen_t length = sizeof(info);

	fd[0] = socket_of("192.0.2.1", HOST_BGP_PORT, "0.0.0.0", 0);
	fd[1] = socket_of("192.0.2.1", 40000, "192.0.2.1", HOST_BGP_PORT);
	fd[2] = accept(fd[0], NULL, NULL);
	assert_int_equal(send(fd[2], text, sent, 0), sent);
	while (info.tcpi_bytes_acked < sent)
		assert_int_equal(getsockopt(fd[2], IPPROTO_TCP, TCP_INFO, &info, &length), 0);
}

/* Who sends an OPEN and a KEEPALIVE to a peer knows it. A stranger has any port, also that of BGP. */
HOST_TEST(test_bgp_peers)
{
	static const char peer[] = "proto tcp src 192.0.2.1 sport 40000 dst 192.0.2.1 dport 179 state new";
	struct guard guard;
	int fd[6];

	do_ip("address add 192.0.2.1/24 dev g0");
	do_ip("address add 192.0.2.2/24 dev g0");
	fd[3] = socket_of("192.0.2.1", 8080, "0.0.0.0", 0);
	fd[4] = socket_of("192.0.2.2", HOST_BGP_PORT, "192.0.2.1", 8080);
	fd[5] = accept(fd[3], NULL, NULL);
	for (size_t sent = 47; sent <= 48; sent++) {
		begin_bgp(fd, sent);
		guard = open_guard();
		assert_guarded(&guard, "proto tcp src 192.0.2.1 sport 179 dst 192.0.2.1 dport 40000",
			       "the BGP session with 192.0.2.1");
		assert_int_equal(!what_of(&guard, peer), sent == 47);
		assert_int_equal(guard.count, 4 + (sent == 47 ? 1 : 2) * SSH);
		guard_close(&guard);
		close_all(fd, 3);
	}
	close_all(fd + 3, 3);
}

/* What keeps all flows: nothing twice, no rule for all, nor for all of a link; a way in for each family. */
HOST_TEST(test_advice)
{
	char text[GUARD_ADVICE_BYTES];
	struct guard_advice advice = {};
	struct guard guard;

	do_ip("address add fe80::99/64 dev g0 nodad");
	do_ip("-6 route add default via 2001:db8::ff dev g0 onlink");
	set_resolv_conf("nameserver 192.0.2.53\nnameserver 192.0.2.53\n");
	setenv("SSH_CONNECTION", "203.0.113.9 50000 192.0.2.1 22", 1);
	guard = open_guard();
	for (size_t i = 0; i < 2 * guard.count; i++)
		guard_advise(&advice, &guard.flows[i % guard.count]);
	assert_string_equal(guard_advice_text(&advice, " --name x", text),
			    "xdp-cuckoo --name x add proto tcp src 203.0.113.9 dst 192.0.2.1 dport 22 action pass && "
			    "xdp-cuckoo --name x add src 2001:db8::ff action pass && "
			    "xdp-cuckoo --name x add proto ipv6-icmp src fe80::/10 type 135 action pass && "
			    "xdp-cuckoo --name x add src 192.0.2.53 sport 53 action pass && "
			    "xdp-cuckoo --name x add proto ipv6-icmp src fe80::/64 type 136 action pass && "
			    "xdp-cuckoo --name x add proto ipv6-icmp src fe80::/64 type 134 action pass && "
			    "xdp-cuckoo --name x add proto udp src fe80::/64 sport 547 action pass && "
			    "xdp-cuckoo --name x add src fe80::99 dst ff00::/8 action pass && "
			    "xdp-cuckoo --name x add proto tcp src YOUR-ADDRESS dst fe80::99 dport 22 action pass");
	guard_close(&guard);
}

/* ---- what is not known ---- */

/* All kinds of flows. */
static void make_all(int fd[5])
{
	do_ip("address add 192.0.2.1/24 dev g0");
	do_ip("address add 2001:db8::1/64 dev g0 nodad");
	do_ip("address add fe80::99/64 dev g0 nodad");
	do_ip("nexthop add id 11 via 192.0.2.11 dev g0");
	do_ip("nexthop add id 12 group 11");
	do_ip("route add default nhid 12");
	do_ip("route add default metric 50 nexthop via 192.0.2.12 nexthop via inet6 fe80::11 dev g0");
	do_ip("-6 route add default via fe80::ffff dev g0 proto ra metric 3000");
	set_resolv_conf("nameserver 192.0.2.53\nnameserver 2001:db8::53\n");
	name_servers();
	setenv("SSH_CONNECTION", "2001:db8::9 50000 2001:db8::1 22", 1);
	begin_bgp(fd, 48);
	fd[3] = socket_of("192.0.2.1", 40001, "192.0.2.20", 7000);
	fd[4] = socket_of("192.0.2.1", 40002, "192.0.2.77", HOST_BGP_PORT);
}

/* Without memory there is no guard, rather than a part of it. */
HOST_TEST(test_memory_that_ends)
{
	struct guard whole, guard;
	size_t grown;
	int fd[5];

	make_all(fd);
	fault.grown = 0;
	assert_int_equal(guard_open(&whole, NULL, &(struct reason){}), 0);
	grown = fault.grown;
	for (size_t at = 1; at <= grown; at++) {
		struct reason reason = {};
		int error;

		fault.until_full = at;
		error = guard_open(&guard, NULL, &reason);
		if ((error && error != -ENOMEM) || guard.count != (error ? 0 : whole.count) || !*reason.text != !error)
			fail_msg("%zu of %zu: %d, %zu flows, %s", at, grown, error, guard.count, reason.text);
		guard_close(&guard);
	}
	guard_close(&whole);
	close_all(fd, COUNT(fd));
}

/* A dump that changes meanwhile is read again, and nothing counts twice. What is not known is told. */
HOST_TEST(test_dumps_that_fail)
{
	static const struct {
		int bus, type, error, times;
		const char *missing;
	} rows[] = {
		{ NETLINK_ROUTE, RTM_GETADDR, -EINTR, 2, NULL },
		{ NETLINK_ROUTE, RTM_GETADDR, -EPERM, 1,
		  "addresses and routes of this host (Operation not permitted)" },
		{ NETLINK_ROUTE, RTM_GETADDR, -EINTR, 1000, "addresses and routes of this host (Interrupted" },
		{ NETLINK_ROUTE, RTM_GETROUTE, -EPERM, 1,
		  "addresses and routes of this host (Operation not permitted)" },
		{ NETLINK_ROUTE, RTM_GETROUTE, -EINTR, 2, NULL },
		{ NETLINK_ROUTE, RTM_GETROUTE, -EINTR, 1000, "this host has too many routes" },
		{ NETLINK_SOCK_DIAG, TCPDIAG_GETSOCK, -EPERM, 1, "TCP connections (Operation not permitted)" },
	};
	struct guard whole, guard;
	int fd[5];

	make_all(fd);
	close_all(fd, COUNT(fd));
	assert_int_equal(guard_open(&whole, NULL, &(struct reason){}), 0);
	assert_string_equal(whole.missing.text, "");
	for (size_t i = 0; i < COUNT(rows); i++) {
		fault.bus = rows[i].bus, fault.type = rows[i].type;
		fault.error = rows[i].error, fault.times = rows[i].times;
		assert_int_equal(guard_open(&guard, NULL, &(struct reason){}), 0);
		fault.times = 0;
		assert_int_equal(guard.count, whole.count);
		assert_true(rows[i].missing ? !!strstr(guard.missing.text, rows[i].missing) : !*guard.missing.text);
		guard_close(&guard);
	}
	guard_close(&whole);
}

/* Packets to these addresses do not come here. */
HOST_TEST(test_destinations_elsewhere)
{
	static const struct {
		const char *rule;
		bool is_elsewhere;
	} rows[] = {
		{ "dst 203.0.113.7", true },     { "dst 203.0.113.0/24", true }, { "dst 192.0.2.77", true },
		{ "dst 10.0.0.1", true },        { "dst 192.0.2.1", false },     { "dst 192.0.2.0/30", false },
		{ "dst 192.0.2.255", false },    { "dst 239.1.2.3", false },     { "dst 127.0.0.9", false },
		{ "src 203.0.113.7", false },    { "proto tcp", false },         { "dst 2001:db8::1", false },
		{ "dst 2001:db8::2", true },     { "dst 2001:db8::/32", false }, { "dst ff02::1", false },
		{ "dst 2001:db8:1::/48", true },
	};
	enum { HOST, ROUTER_4, ROUTER_6, BRIDGE, KINDS };
	bool sees_bridges;

	do_ip("address add 192.0.2.1/24 brd + dev g0");
	do_ip("address add 2001:db8::1/64 dev g0 nodad");
	do_ip("link add g2 type bridge");
	for (int kind = HOST; kind < KINDS; kind++) {
		write_file("/proc/sys/net/ipv4/conf/all/forwarding", kind == ROUTER_4 ? "1" : "0");
		write_file("/proc/sys/net/ipv6/conf/all/forwarding", kind == ROUTER_6 ? "1" : "0");
		if (kind == BRIDGE)
			do_ip("link set g1 master g2");
		sees_bridges = !access("/sys/class/net/g1/brport", F_OK);
		for (size_t i = 0; i < COUNT(rows); i++) {
			const bool is_ipv6 = strchr(rows[i].rule, ':');
			struct rule rule;

			assert_int_equal(rule_parse(rows[i].rule, &rule, &(struct reason){}), 0);
			if (guard_is_elsewhere(&rule) !=
			    (rows[i].is_elsewhere && kind != (is_ipv6 ? ROUTER_6 : ROUTER_4) && !sees_bridges))
				fail_msg("%s, kind %d", rows[i].rule, kind);
		}
	}
	do_ip("link del g2");
}

/* ---- likely mistakes ---- */

static const char rfc1918[] = "private (RFC 1918)", local[] = "link-local";
static const struct {
	const char *rule, *what;
} specials[] = {
	{ "10.0.0.0/8", rfc1918 },
	{ "10.1.2.3", rfc1918 },
	{ "8.0.0.0/5", rfc1918 }, /* covers it */
	{ "172.16.0.0/12", rfc1918 },
	{ "172.31.255.255", rfc1918 },
	{ "172.32.0.0/16", NULL },
	{ "172.15.255.255", NULL },
	{ "192.168.0.0/16", rfc1918 },
	{ "192.168.7.0/24", rfc1918 },
	{ "192.0.0.0/8", rfc1918 },
	{ "192.169.0.0/16", NULL },
	{ "9.255.255.255", NULL },
	{ "11.0.0.0/8", NULL },
	{ "dst 10.0.0.0/8", rfc1918 },
	{ "127.0.0.1", "loopback" },
	{ "224.0.0.0/4", "multicast" },
	{ "dst 239.255.255.250", "multicast" },
	{ "223.255.255.0/24", NULL },
	{ "240.0.0.0/4", NULL },
	{ "169.254.0.0/16", local },
	{ "100.64.0.0/10", "shared behind carriers' NAT (RFC 6598)" },
	{ "100.127.255.255", "shared behind carriers' NAT (RFC 6598)" },
	{ "100.128.0.0/9", NULL },
	{ "0.0.0.0/8", "\"this network\" (RFC 6890)" },
	{ "0.0.0.0/0", "all of IPv4" },
	{ "dst 0.0.0.0/0", "all of IPv4" },
	{ "::/0", "all of IPv6" },
	{ "fe80::1", local },
	{ "fe80::/10", local },
	{ "fec0::/10", NULL },
	{ "dst ff02::1", "multicast" },
	{ "fd00::/8", "unique local (RFC 4193)" },
	{ "fc00::/7", "unique local (RFC 4193)" },
	{ "::1", "loopback" },
	{ "::2", NULL },
	{ "2001:db8::/32", NULL },
	/* Not mistakes: the rule has other fields, or it passes. */
	{ "10.0.0.0/8 action pass", NULL },
	{ "0.0.0.0/0 action pass", NULL },
	{ "10.0.0.0/8 proto tcp", NULL },
	{ "10.0.0.0/8 dport 23", NULL },
	{ "src 203.0.113.5 dst 10.0.0.5", NULL },
	{ "proto udp dport 53", NULL },
	{ "proto icmp", NULL },
};

TEST(test_special)
{
	for (size_t i = 0; i < COUNT(specials); i++) {
		struct reason reason;
		struct rule rule;
		const char *what;

		assert_int_equal(rule_parse(specials[i].rule, &rule, &reason), 0);
		what = guard_special(&rule, NULL);
		if (!what != !specials[i].what)
			print_error("%s: %s\n", specials[i].rule, what ? what : "not special");
		assert_int_equal(!what, !specials[i].what);
		if (what)
			assert_string_equal(what, specials[i].what);
	}
}

/* What drops all UDP to this host drops answers, too. */
HOST_TEST(test_answers)
{
	static const char leases[] = "answers of DHCP servers, by which a host keeps its addresses",
			  udp[] = "answers by UDP to this host, as of DNS, NTP and DHCP";
	static const struct {
		const char *rule, *what;
	} rows[] = {
		{ "proto udp", udp },
		{ "proto udp dst 192.0.2.1", udp },
		{ "proto udp dst 192.0.2.0/30", udp },
		{ "proto udp dst 192.0.2.2", NULL },
		{ "proto udp dst 2001:db8::1", NULL },
		{ "state new", NULL },
		{ "proto udp state new", NULL },
		{ "udp dport 68 state new", NULL },
		{ "udp dport 68", leases },
		{ "sport 547 dst 192.0.2.1", leases },
		{ "sport 67 dport 68 dst 192.0.2.2", NULL },
		{ "udp sport 67 dport 546", NULL },
		{ "proto tcp", NULL },
		{ "proto udp src 203.0.113.7", NULL },
		{ "proto udp action pass", NULL },
		{ "proto udp rate 10/s", NULL },
		{ "proto udp length 1500", NULL },
		{ "proto udp dport 53", NULL },
	};
	struct host_addresses own = {};

	do_ip("address add 192.0.2.1/24 dev g0");
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct rule rule;
		const char *what;

		assert_int_equal(rule_parse(rows[i].rule, &rule, &(struct reason){}), 0);
		what = guard_special(&rule, &own);
		if (!what != !rows[i].what || (what && strcmp(what, rows[i].what)))
			fail_msg("%s: %s", rows[i].rule, what);
	}
	assert_int_equal(own.count, 1);
	free(own.address);
	/* The addresses are read once. If not all are read, each may be one of this host. */
	for (int fails = 0; fails < 2; fails++) {
		struct rule rule;

		own = (struct host_addresses){};
		if (!fails)
			do_ip("address del 192.0.2.1/24 dev g0");
		assert_int_equal(rule_parse("proto udp dst 192.0.2.1", &rule, &(struct reason){}), 0);
		fault.bus = NETLINK_ROUTE, fault.type = RTM_GETADDR;
		fault.error = -EPERM, fault.times = fails;
		assert_int_equal(!!guard_special(&rule, &own), fails);
		do_ip(fails ? "address del 192.0.2.1/24 dev g0" : "address add 192.0.2.1/24 dev g0");
		fault.times = 0;
		rule.dst.byte[3] += fails; /* now another one */
		assert_int_equal(!!guard_special(&rule, &own), fails);
		free(own.address);
	}
}

TEST(test_servers_of_files)
{
	static const struct {
		const char *address;
		unsigned int port;
		const char *what;
	} wanted[] = {
		{ "192.0.2.10", 443, "the server of the list 'a'," },    { "192.0.2.11", 8080, "the server of the list 'b'," },
		{ "2001:db8::10", 444, "the server of the list 'c'," },  { "192.0.2.14", 80, "the server of the list 'c'," },
		{ "192.0.2.15", 65535, "the server of the list 'new'," },
	};
	const struct timespec old = { .tv_sec = time(NULL) - HOST_SERVERS_S - 1000 }, times[] = { old, old };
	struct host_connections before = {}, servers = {};
	char dir[] = "/tmp/servers.XXXXXX", path[64];

	assert_non_null(mkdtemp(dir));
	assert_int_equal(host_find_servers(dir, &before), 0);
	snprintf(path, sizeof(path), "%s/name", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/name/" HOST_SERVERS_FILE "old", dir);
	write_file(path, "192.0.2.16 443");
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	snprintf(path, sizeof(path), "%s/name/" HOST_SERVERS_FILE "new", dir);
	write_file(path, "192.0.2.15 65536 192.0.2.15 0 127.0.0.1 443 192.0.2.15 65535");
	snprintf(path, sizeof(path), "%s/conf", dir);
	write_file(path, "[list a]\nurl = https://192.0.2.10/x:1/y@192.0.2.99\nfile = http://192.0.2.98/\n"
			 "[list b]\nurl = http://user@192.0.2.11:8080?x\n[list  c]\nsha256-url = https://[2001:db8::10]:444#x\n"
			 "url = http://192.0.2.14\n[list d]\nurl = https://127.0.0.1/x\n[list e]\nurl = https://example.org/\n"
			 "[filter]\nurl = http://192.0.2.97/\n");
	host_also_read(path);
	assert_int_equal(host_find_servers(dir, &servers), 0);
	host_also_read(NULL);
	assert_int_equal(servers.count, before.count + COUNT(wanted));
	for (size_t i = 0; i < COUNT(wanted); i++) {
		const struct host_connection *server = &servers.connection[before.count + i];
		struct host_address address;

		assert_true(host_read_address(wanted[i].address, &address) && host_is_same(&server->peer, &address));
		assert_int_equal(ntohs(server->peer_port), wanted[i].port);
		assert_string_equal(server->what, wanted[i].what);
	}
	free(before.connection);
	free(servers.connection);
	snprintf(path, sizeof(path), "rm -r %s", dir);
	assert_int_equal(system(path), 0);
}

static int show_flows(void)
{
	struct reason reason;
	struct guard guard;

	if (guard_open(&guard, NULL, &reason))
		return 1;
	for (size_t i = 0; i < guard.count; i++) {
		char text[RULE_TEXT_BYTES];

		puts(text_of(&guard.flows[i], text));
	}
	guard_close(&guard);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], SHOW))
		return show_flows();
	if (readlink("/proc/self/exe", program, sizeof(program) - 1) < 0)
		return 1;
	return cmocka_run_group_tests(tests, set_up_host, NULL);
}
