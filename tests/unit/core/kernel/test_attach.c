// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Filters are put on interfaces and taken off, in a kernel in memory. */
#include "unit/filters_fixture.h"

#define SG (1 << 5) /* NETDEV_XDP_RX_SG */

/* How an interface is, how the filter goes there, and what runs then. */
static const struct {
	const char *interface;
	enum kernel_mode mode;
	int error;
	const char *words, *runs;
	int driver;
	const char *why;
	__u32 mtu;
	__u64 features;
	const char *kind;
	bool lacks_netdev, is_covered;
	__u64 lacks; /* capabilities */
} attaches[] = {
	{ "eth0", KERNEL_AUTO, 0, "", "eth0 native xdp_cuckoo(a)" },
	{ "eth0", KERNEL_NATIVE, 0, "", "eth0 native xdp_cuckoo(a)" },
	{ "uplink", KERNEL_SKB, 0, "", "eth0 skb xdp_cuckoo(a)" },
	{ "lo", KERNEL_AUTO, 0, "Underlying driver does", "lo skb xdp_cuckoo(a)" },
	{ "lo", KERNEL_NATIVE, -EOPNOTSUPP,
	  "'lo' does not take the filter in its driver: Underlying", "" },
	{ "eth0", KERNEL_AUTO, 0, "Invalid argument, and its driver gives no reason here; dmesg",
	  "eth0 skb xdp_cuckoo(a)", -EINVAL },
	{ "eth0", KERNEL_NATIVE, -EIO, "driver: Invalid argument, and its driver gives no reason",
	  "", -EINVAL },
	{ "eth0", KERNEL_NATIVE, -EIO, "in its driver: too hot; use", "", -ENODEV, "too hot" },
	{ "eth0", KERNEL_NATIVE, -EACCES, "not permitted, though this process has", "", -EACCES },
	{ "eth0", KERNEL_NATIVE, -EPERM, "not permitted; run it as root, or with", "", -EPERM,
	  .lacks = 1 << CAP_NET_RAW | 1ULL << CAP_BPF },
	{ "eth0", KERNEL_AUTO, -EPERM, "cannot attach to eth0: not permitted", "", -EPERM },
	{ "eth0", KERNEL_NATIVE, -EIO, "cannot attach to eth0: Function not implemented (why)", "",
	  -ENOSYS, "why" },
	/* frames in several buffers */
	{ "eth0", KERNEL_AUTO, 0, "", "eth0 native xdp_cuckoo_frag(a)", 1, .features = SG },
	{ "eth0", KERNEL_AUTO, 0, "", "eth0 native xdp_cuckoo_frag(a)", 1, .lacks_netdev = true },
	{ "eth0", KERNEL_AUTO, 0, "Invalid", "eth0 skb xdp_cuckoo(a)", 1, .features = ~SG },
	{ "eth0", KERNEL_AUTO, 0, "", "eth0 native xdp_cuckoo_frag(a)", .mtu = 9000,
	  .features = SG },
	{ "eth0", KERNEL_AUTO, 0, "", "eth0 native xdp_cuckoo(a)", .mtu = 9000, .features = ~SG },
	{ "eth0", KERNEL_AUTO, 0, "", "eth0 native xdp_cuckoo(a)", 2, .mtu = 9000, .features = SG },
	{ "eth0", KERNEL_AUTO, 0, "", "eth0 native xdp_cuckoo(a)", .mtu = 9000,
	  .lacks_netdev = true },
	{ "eth0", KERNEL_AUTO, 0, "", "eth0 native xdp_cuckoo(a)", .mtu = 9000, .features = SG,
	  .kind = "tun" },
	{ "eth0", KERNEL_AUTO, 0, "", "eth0 native xdp_cuckoo_frag(a)", .mtu = 9000, .features = SG,
	  .kind = "tuna" },
	{ "eth0", KERNEL_AUTO, 0, "", "eth0 native xdp_cuckoo(a)", .mtu = 3490, .features = SG },
	{ "eth0", KERNEL_AUTO, 0, "", "eth0 native xdp_cuckoo_frag(a)", .mtu = 3491,
	  .features = SG },
	{ "eth0", KERNEL_SKB, 0, "", "eth0 skb xdp_cuckoo(a)", .mtu = 9000, .features = SG },
	{ "eth0", KERNEL_AUTO, 0, "no", "eth0 skb xdp_cuckoo(a)", -EOPNOTSUPP, "no", 9000, SG },
	{ "eth0", KERNEL_NATIVE, -EPERM, "not permitted", "", -EPERM, "no", 9000, SG },
	/* tc, and no room for the filter */
	{ "wg0", KERNEL_AUTO, 0, "", "wg0 in xdp_cuckoo_ip(a)" },
	{ "wg0", KERNEL_SKB, 0, "", "wg0 in xdp_cuckoo_ip(a)" },
	{ "wg0", KERNEL_NATIVE, -EOPNOTSUPP, "'wg0' has no Ethernet header", "" },
	{ "gre1", KERNEL_AUTO, -EINVAL, "packets of 'gre1' start neither", "" },
	{ "et0", KERNEL_AUTO, -ENODEV, "no interface 'et0' here; did you mean 'eth0'", "" },
	{ "eth0,eth1", KERNEL_AUTO, -ENODEV,
	  "no interface 'eth0,eth1' here; write several with spaces", "" },
	{ "eth0", KERNEL_AUTO, -EBUSY, "cannot attach to eth0: an interface above it", "",
	  .is_covered = true },
};

WORLD_TEST(test_where_it_goes)
{
	for (size_t i = 0; i < COUNT(attaches); i++) {
		const __u32 index = interfaces_index(attaches[i].interface);
		struct world_interface *on = &world.interface[index ? index : ETH1];
		const struct kernel_attachment *made;

		world_reset();
		make_filter(&filter, "a");
		if (attaches[i].driver)
			on->driver = attaches[i].driver;
		if (index != LO)
			on->why = attaches[i].why;
		if (attaches[i].mtu)
			on->mtu = attaches[i].mtu;
		on->features = attaches[i].features;
		on->kind = attaches[i].kind;
		on->is_covered = attaches[i].is_covered;
		world.has_netdev = !attaches[i].lacks_netdev;
		world.has = ~attaches[i].lacks;
		EXPECT(attaches[i].error, attaches[i].words,
		       kernel_attach(&filter, attaches[i].interface, attaches[i].mode, &reason));
		RUNS(attaches[i].runs);
		assert_int_equal(filter.attachments_count, !attaches[i].error);
		if (!attaches[i].error) {
			made = &filter.attachments[0];
			assert_true(made->is_new && !made->was_lost && made->ifindex == (int)index);
			assert_string_equal(made->interface, on->name);
			assert_true(world.object[made->prog_id - 1].program.id == made->root_id &&
				    made->prog_id);
			assert_int_equal(made->is_frags, strstr(attaches[i].runs, "frag") != NULL);
			assert_int_equal(made->mtu, on->mtu);
			assert_int_equal(filter.config->received[0], index);
			assert_int_equal(filter.config->outgoing, 0);
			assert_int_equal(made->is_tap, on->kind && !strcmp(on->kind, "tun"));
			EXPECT(0, "", kernel_detach(&filter, made, &reason));
			RUNS("");
			assert_int_equal(filter.config->received[0], 0);
		}
		kernel_close(&filter);
	}
}

/* Where nf_conntrack runs, its functions are asked if the kernel describes them. */
WORLD_TEST(test_conntrack)
{
	for (int runs = 0; runs < 2; runs++) {
		world_reset();
		make_filter(&filter, "a");
		world.has_conntrack = runs;
		filter.config->asks_conntrack = 2;
		EXPECT(0, "", kernel_attach(&filter, "eth0", KERNEL_AUTO, &reason));
		assert_in_range(filter.config->asks_conntrack, 0, runs);
		filter.config->asks_conntrack = 2;
		EXPECT(0, "", kernel_attach_outgoing(&filter, "eth0", &reason));
		assert_int_equal(filter.config->asks_conntrack, 2);
		close_filters();
	}
}

/* What a driver said belongs to one refusal. */
WORLD_TEST(test_old_words)
{
	make_filter(&filter, "a");
	world.interface[ETH0].driver = -ENODEV;
	world.interface[ETH0].why = "too hot";
	EXPECT(-EIO, "too hot", kernel_attach(&filter, "eth0", KERNEL_NATIVE, &reason));
	world.interface[ETH0].why = NULL;
	EXPECT(-EIO, "no reason", kernel_attach(&filter, "eth0", KERNEL_NATIVE, &reason));
	world.interface[ETH0].is_covered = true;
	EXPECT(-EBUSY, "above", kernel_attach(&filter, "eth0", KERNEL_AUTO, &reason));
	EXPECT(0, "", kernel_attach_outgoing(&filter, "eth0", &reason));
	EXPECT(-EBUSY, "--name at tc", kernel_attach_outgoing(&filter, "eth0", &reason));
}

/* Where others run. */
static const struct {
	enum { FOREIGN, OURS, UNSEEN } who;
	const char *interface;
	enum kernel_mode mode;
	const char *words;
} occupied[] = {
	{ FOREIGN, "eth0", KERNEL_AUTO, "'eth0' runs another XDP program (ip link show dev eth0" },
	{ FOREIGN, "eth0", KERNEL_SKB, "'eth0' runs another XDP program (ip link show dev eth0" },
	{ OURS, "eth1", KERNEL_AUTO,
	  "'eth1' runs another XDP program, the filter 'b': an interface has one" },
	{ OURS, "eth1", KERNEL_SKB,
	  "'eth1' runs another XDP program, the filter 'b': an interface has one" },
	{ OURS, "wg0", KERNEL_AUTO, "'wg0' runs a filter of another --name at tc" },
};

WORLD_TEST(test_where_others_run)
{
	for (size_t i = 0; i < COUNT(occupied); i++) {
		const int index = interfaces_index(occupied[i].interface);
		char runs[128];

		world_reset();
		make_filter(&filter, "a");
		make_filter(&other, "b");
		/* Neither the first filter nor its first interface. */
		EXPECT(0, NULL, kernel_attach(&filter, "lo", KERNEL_AUTO, &reason));
		EXPECT(0, "",
		       kernel_attach(&other, index == ETH1 ? "eth0" : "eth1", KERNEL_AUTO,
				     &reason));
		if (occupied[i].who == FOREIGN)
			world.interface[index].xdp[INTERFACE_NATIVE] = foreign_program("foreign");
		else
			EXPECT(0, "",
			       kernel_attach(&other, occupied[i].interface, KERNEL_AUTO, &reason));
		strcpy(runs, world_runs());
		EXPECT(-EBUSY, occupied[i].words,
		       kernel_attach(&filter, occupied[i].interface, occupied[i].mode, &reason));
		RUNS(runs);
		assert_int_equal(filter.config->received[0], LO);
		assert_int_equal(filter.config->received[1], 0);
		kernel_close(&filter);
		kernel_close(&other);
	}
}

/* ---- off again ---- */

#define BOTH "eth0 native xdp_cuckoo(a), eth0 out xdp_cuckoo_sent(a)"

/* The filter `a` on eth0, in both directions. */
static void begin(void)
{
	make_filter(&filter, "a");
	EXPECT(0, "", kernel_attach(&filter, "eth0", KERNEL_AUTO, &reason));
	EXPECT(0, "", kernel_attach_outgoing(&filter, "eth0", &reason));
	RUNS(BOTH);
}

static struct kernel_attachment *received(void)
{
	return &filter.attachments[0];
}

static struct kernel_attachment *sent(void)
{
	return &filter.attachments[1];
}

/* What the filter remembers: where it should be. */
static void wanted(bool is_received, bool is_sent)
{
	const struct kernel_attachment in = { .ifindex = ETH0 },
				       out = { .ifindex = ETH0, .mode = INTERFACE_TC_SENT };

	assert_int_equal(kernel_is_wanted(&filter, &in), is_received);
	assert_int_equal(kernel_is_wanted(&filter, &out), is_sent);
}

WORLD_TEST(test_directions)
{
	begin();
	assert_true(sent()->is_new && !sent()->was_lost && sent()->mode == INTERFACE_TC_SENT);
	assert_true(sent()->prog_id && sent()->prog_id != received()->prog_id);
	wanted(true, true);
	EXPECT(-EBUSY, "'eth0' runs a filter of another --name at tc",
	       kernel_attach_outgoing(&filter, "eth0", &reason));
	EXPECT(-ENODEV, "no interface 'eth9' here",
	       kernel_attach_outgoing(&filter, "eth9", &reason));
	EXPECT(0, "", kernel_detach_direction(&filter, sent(), &reason));
	RUNS("eth0 native xdp_cuckoo(a)");
	wanted(true, false);
	assert_int_equal(filter.attachments_count--, 2);
	kernel_want_outgoing(&filter, sent(), true);
	EXPECT(0, "", kernel_attach_outgoing(&filter, "eth0", &reason));
	assert_true(sent()->was_lost);
	EXPECT(0, "", kernel_detach_direction(&filter, sent(), &reason));
	wanted(true, true); /* lost again */
	EXPECT(0, "", kernel_detach_direction(&filter, received(), &reason));
	RUNS("");
	wanted(false, true);
	filter.attachments_count = 0;
	kernel_want_received(&filter, ETH0, true);
	EXPECT(0, "", kernel_attach(&filter, "eth0", KERNEL_AUTO, &reason));
	assert_true(received()->was_lost);
	wanted(true, false); /* the bit was another interface's */
	EXPECT(0, "", kernel_detach_direction(&filter, received(), &reason));
	wanted(true, false);
}

/* Another writer or tool was faster, or holds the program. */
static void replace_it(void)
{
	EXPECT(0, "", kernel_create(&small, &other, &reason));
	*other.config = *filter.config;
	EXPECT(0, "", kernel_replace(&filter, &other, &reason));
}

static void take_it_off(void)
{
	world.interface[ETH0].xdp[INTERFACE_NATIVE] = 0;
}

static void put_another_there(void)
{
	world.interface[ETH0].xdp[INTERFACE_NATIVE] = foreign_program("foreign");
}

static void put_b_there(void)
{
	make_filter(&other, "b");
	EXPECT(0, "", kernel_attach(&other, "eth1", KERNEL_AUTO, &reason));
	world.interface[ETH0].xdp[INTERFACE_NATIVE] = other.attachments[0].prog_id;
	world.interface[ETH1].xdp[INTERFACE_NATIVE] = 0;
}

static void remove_it(void)
{
	world.interface[ETH0].is_absent = true;
}

static void hold_it(void)
{
	struct world_object *link = world_add(WORLD_LINK, 0);

	world_add(WORLD_LINK, 0)->is_gone = true;
	link->link.type = BPF_LINK_TYPE_XDP;
	link->link.prog_id = received()->prog_id;
	link->link.xdp.ifindex = ETH0;
	world.interface[ETH0].held_by = world_id(link);
}

static void hold_it_unseen(void)
{
	hold_it();
	world.object[world.interface[ETH0].held_by - 1].link.xdp.ifindex = ETH1;
}

static void dispatch_it(void)
{
	received()->root_id = 99;
}

static void lose_sight(void)
{
	put_another_there();
	world.interrupted = 1000000;
}

static void age_it(void)
{
	filter.is_other_version = true;
}

static const struct {
	void (*meanwhile)(void);
	int error;
	const char *words, *runs;
	bool wants_received, wants_sent;
} detaches[] = {
	{ replace_it, 0, NULL, "" },
	{ take_it_off, 0, NULL, "" },
	{ put_another_there, 0, NULL, "eth0 native foreign(?)" },
	{ put_b_there, 0, NULL, "eth0 native xdp_cuckoo(b)" },
	{ remove_it, 0, NULL, BOTH },
	{ hold_it, 0, NULL, "" },
	{ hold_it_unseen, -EBUSY, "cannot detach from eth0: Device or resource busy", BOTH, true,
	  true },
	{ dispatch_it, -EBUSY,
	  "on 'eth0' libxdp's dispatcher runs the filter; use xdp-loader unload eth0 -i", BOTH,
	  true, true },
	{ lose_sight, -EEXIST, "cannot detach from eth0: File exists (Active program",
	  "eth0 native foreign(?), eth0 out xdp_cuckoo_sent(a)", true, true },
	{ age_it, 0, NULL, "", true, true },
};

WORLD_TEST(test_detach)
{
	for (size_t i = 0; i < COUNT(detaches); i++) {
		struct kernel_attachment of[2];

		world_reset();
		begin();
		memcpy(of, filter.attachments, sizeof(of));
		detaches[i].meanwhile();
		of[0].root_id = received()->root_id;
		memcpy(filter.attachments, of, sizeof(of));
		EXPECT(detaches[i].error, detaches[i].words,
		       kernel_detach(&filter, received(), &reason));
		RUNS(detaches[i].runs);
		assert_true(world.dumps < 1000); /* it gives up */
		wanted(detaches[i].wants_received, detaches[i].wants_sent);
		close_filters();
	}
}

/* ---- which are meant ---- */

static char *const eth0_only[] = { "uplink" }, *const eth1_only[] = { "eth9", "eth1" },
		   *const wg0_only[] = { "wg0" };

#define NAMELESS "lo skb xdp_cuckoo(-)"
#define B ", eth1 native xdp_cuckoo(b), gre1 in xdp_cuckoo_ip(b)"

static const struct {
	struct kernel_where where;
	const char *runs;
	size_t taken;
	bool is_lost; /* from wg0, and no longer wanted there */
} meant[] = {
	{ {}, "", 4 },
	{ { .name = "a" }, NAMELESS B, 1 },
	{ { .name = "a", .is_nameless_too = true },
	  "eth1 native xdp_cuckoo(b), gre1 in xdp_cuckoo_ip(b)",
	  2 },
	{ { .name = "b", .interfaces = eth0_only, .count = 1 }, NAMELESS ", " BOTH B, 0 },
	{ { .interfaces = eth0_only, .count = 1 }, NAMELESS B, 1 },
	{ { .interfaces = eth1_only, .count = 2 },
	  NAMELESS ", " BOTH ", gre1 in xdp_cuckoo_ip(b)",
	  1 },
	{ { .interfaces = eth0_only, .count = 1, .is_except = true }, BOTH, 3 },
	{ { .is_except = true }, "", 4 },
	{ { .interfaces = wg0_only, .count = 1 }, NAMELESS ", " BOTH B, 1, true },
	{ { .name = "a", .interfaces = wg0_only, .count = 1 }, NAMELESS ", " BOTH B, 0 },
};

/*
 * `a` on eth0 in both directions, one without a name on lo, `b` on eth1 and gre1. Once b was on
 * wg0, and a on eth1.
 */
static void begin_three(void)
{
	begin();
	kernel_want_received(&filter, ETH1, true);
	make_filter(&other, "");
	memset(other.config, 0, sizeof(*other.config));
	EXPECT(0, "", kernel_attach(&other, "lo", KERNEL_SKB, &reason));
	kernel_close(&other);
	world.interface[GRE].peer[0] = 1;
	make_filter(&other, "b");
	EXPECT(0, "", kernel_attach(&other, "eth1", KERNEL_AUTO, &reason));
	EXPECT(0, "", kernel_attach(&other, "gre1", KERNEL_AUTO, &reason));
	kernel_want_received(&other, WG, true);
}

WORLD_TEST(test_take_off)
{
	const struct kernel_attachment wg0 = { .ifindex = WG }, eth1 = { .ifindex = ETH1 };

	for (size_t i = 0; i < COUNT(meant); i++) {
		struct kernel_filter *filters = NULL;
		struct kernel_taken *taken;
		size_t count, found = 0;

		world_reset();
		begin_three();
		EXPECT(0, "",
		       kernel_find_filters((struct kernel_wish){}, &filters, &found, &reason));
		assert_int_equal(found, 3);
		assert_int_equal(kernel_take_off(filters, found, &meant[i].where, &taken, &count),
				 0);
		RUNS(meant[i].runs);
		assert_int_equal(count, meant[i].taken);
		assert_int_equal(kernel_is_wanted(&other, &wg0), !meant[i].is_lost);
		assert_true(
			kernel_is_wanted(&filter, &eth1)); /* b was taken off there, or nobody */
		for (size_t k = 0; k < count; k++) {
			const char *interface = taken[k].attachment.interface;

			assert_int_equal(taken[k].error, 0);
			assert_int_equal(taken[k].attachment.ifindex, interfaces_index(interface));
			assert_int_equal(!taken[k].attachment.prog_id, meant[i].is_lost);
			assert_string_equal(taken[k].name,
					    !strcmp(interface, "eth0")                   ? "a" :
					    !strcmp(interface, "lo") || meant[i].is_lost ? "" :
											   "b");
		}
		free(taken);
		kernel_filters_free(filters, found);
		close_filters();
	}
}

/* ---- each call fails ---- */

static void begin_off(void)
{
	make_filter(&filter, "a");
}

static void begin_without_tcx(void)
{
	world.has_tcx = false;
	make_filter(&filter, "a");
}

static int attach_received(void)
{
	return kernel_attach(&filter, "eth0", KERNEL_NATIVE, &reason);
}

static int attach_sent(void)
{
	return kernel_attach_outgoing(&filter, "eth0", &reason);
}

static int attach_ip(void)
{
	return kernel_attach(&filter, "wg0", KERNEL_AUTO, &reason);
}

static int detach(void)
{
	return kernel_detach(&filter, received(), &reason);
}

WORLD_TEST(test_each_call_fails)
{
	static const struct steps all[] = {
		{ begin_off, attach_received, close_filters, "", "eth0 native xdp_cuckoo(a)" },
		{ begin_off, attach_sent, close_filters, "", "eth0 out xdp_cuckoo_sent(a)" },
		{ begin_off, attach_ip, close_filters, "", "wg0 in xdp_cuckoo_ip(a)" },
		{ begin_without_tcx, attach_ip, close_filters, "", "wg0 in xdp_cuckoo_ip(a)" },
		{ begin, detach, close_filters, BOTH, "", "eth0 out xdp_cuckoo_sent(a)" },
	};

	for (size_t i = 0; i < COUNT(all); i++)
		fail_each_call(&all[i]);
}

TEST_MAIN(world_warm_up, NULL)
