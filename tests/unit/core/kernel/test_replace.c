// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* In a kernel in memory: a filter is replaced on all its interfaces, its program by another one. */
#include "unit/filters_fixture.h"

#define WAS_BUT(eth0) \
	eth0 "eth0 out xdp_cuckoo_sent(old), eth1 skb xdp_cuckoo(old), wg0 in xdp_cuckoo_ip(old), wg0 out xdp_cuckoo_ips(old)"
#define WAS WAS_BUT("eth0 native xdp_cuckoo(old), ")
#define IS \
	"eth0 native xdp_cuckoo(new), eth0 out xdp_cuckoo_sent(new), eth1 skb xdp_cuckoo(new), " \
	"wg0 in xdp_cuckoo_ip(new), wg0 out xdp_cuckoo_ips(new)"
#define PLACES 5

/* The program on eth1 becomes one of its own: a process before this one has loaded it. */
static void load_another(void)
{
	const struct world_object *like = &world.object[filter.attachments[2].prog_id - 1];
	struct world_object *program = world_add(WORLD_PROGRAM, 0);

	program->program = like->program;
	program->program.id = world.objects;
	memcpy(program->maps, like->maps, sizeof(program->maps));
	world.interface[ETH1].xdp[INTERFACE_SKB] = world.objects;
	filter.attachments[2].prog_id = filter.attachments[2].root_id = world.objects;
}

static void begin(void)
{
	make_filter(&filter, "old");
	EXPECT(0, "", kernel_attach(&filter, "eth0", KERNEL_AUTO, &reason));
	EXPECT(0, "", kernel_attach_outgoing(&filter, "eth0", &reason));
	EXPECT(0, "", kernel_attach(&filter, "eth1", KERNEL_SKB, &reason));
	EXPECT(0, "", kernel_attach(&filter, "wg0", KERNEL_AUTO, &reason));
	EXPECT(0, "", kernel_attach_outgoing(&filter, "wg0", &reason));
	load_another();
	RUNS(WAS);
	make_filter(&other, "new");
	world.graces = 0;
}

static int replace(void)
{
	return kernel_replace(&filter, &other, &reason);
}

/* What happens to eth1, the third place, before or while the filter is replaced. */
static void nothing(void)
{
}

static void take_it_off(void)
{
	world.interface[ETH1].xdp[INTERFACE_SKB] = 0;
}

static void put_another_there(void)
{
	world.interface[ETH1].xdp[INTERFACE_SKB] = foreign_program("foreign");
}

static void remove_it(void)
{
	world.interface[ETH1].is_absent = true;
}

static void end_it(void)
{
	take_it_off();
	world.object[filter.attachments[2].prog_id - 1].is_gone = true;
}

static void lose_its_number(void)
{
	world.object[filter.attachments[2].prog_id - 1].is_gone = true;
}

static void cover_it(void)
{
	world.interface[ETH1].is_covered = true;
}

static void hold_it(void)
{
	world.interface[ETH1].held_by = 1;
}

static void dispatch_it(void)
{
	filter.attachments[2].root_id = 99;
}

static void put_below(void)
{
	filter.attachments[2].is_below = true;
}

static void take_all_off(void)
{
	for (size_t i = 1; i < WORLD_INTERFACES; i++) {
		memset(world.interface[i].xdp, 0, sizeof(world.interface[i].xdp));
		memset(world.interface[i].hook, 0, sizeof(world.interface[i].hook));
	}
}

#define REST_IS(eth1) \
	"eth0 native xdp_cuckoo(new), eth0 out xdp_cuckoo_sent(new), " eth1 \
	"wg0 in xdp_cuckoo_ip(new), wg0 out xdp_cuckoo_ips(new)"

static const struct {
	void (*change)(void);
	int error;
	const char *words, *runs;
	size_t places;
} rows[] = {
	{ nothing, 0, "", IS, PLACES },
	{ take_it_off, 0, NULL, REST_IS(""), PLACES - 1 },
	{ put_another_there, 0, NULL, REST_IS("eth1 skb foreign(?), "), PLACES - 1 },
	{ remove_it, 0, NULL, REST_IS("eth1 skb xdp_cuckoo(old), "), PLACES - 1 },
	{ end_it, 0, NULL, REST_IS(""), PLACES - 1 },
	{ lose_its_number, -ENOENT, "cannot prepare the new programs: No such file", WAS, PLACES },
	{ cover_it, -EBUSY, "cannot replace the program on eth1: an interface above it (a bridge",
	  WAS, PLACES },
	{ hold_it, -EBUSY, "'eth1' no longer runs the program it ran a moment ago; try again", WAS,
	  PLACES },
	{ dispatch_it, -EBUSY,
	  "the filter needs a new program, and on 'eth1' libxdp's dispatcher holds the filter; "
	  "load a second one beside it (xdp-cuckoo object FILE; xdp-loader load eth1 FILE -n "
	  "xdp_cuckoo; xdp-cuckoo --name old load eth1)",
	  WAS, PLACES },
	{ put_below, -EBUSY,
	  "the filter needs a new program, and the kernel cannot replace the program on eth1: "
	  "an interface above",
	  WAS, PLACES },
	{ take_all_off, 0, NULL, "", PLACES },
};

WORLD_TEST(test_replace)
{
	for (size_t i = 0; i < COUNT(rows); i++) {
		world_reset();
		begin();
		rows[i].change();
		EXPECT(rows[i].error, rows[i].words, replace());
		RUNS(rows[i].runs);
		assert_int_equal(filter.attachments_count, PLACES - (rows[i].places < PLACES));
		assert_int_equal(world.graces, !rows[i].error);
		for (size_t k = 0; k < other.attachments_count && !rows[i].error; k++) {
			struct kernel_attachment old = filter.attachments[k],
						 now = other.attachments[k];

			assert_int_equal(other.attachments_count, rows[i].places);
			assert_true(now.prog_id != old.prog_id && now.prog_id == now.root_id);
			assert_string_equal(world_filter_name(&world.object[now.prog_id - 1]),
					    "new");
			now.prog_id = old.prog_id;
			now.root_id = old.root_id;
			assert_memory_equal(&now, &old, sizeof(now));
		}
		assert_int_equal(other.config->outgoing, rows[i].error ? 0 : 1 << ETH0 | 1 << WG);
		close_filters();
	}
}

/* A BPF link holds the program on eth0. */
static void put_another_before(void)
{
	world.interface[ETH0].xdp[INTERFACE_NATIVE] = foreign_program("foreign");
}

/* eth1 refuses. What another tool puts on eth0 meanwhile, at whichever call, stays there, and nobody tries for ever. */
WORLD_TEST(test_another_tool_meanwhile)
{
	bool is_late = false;

	for (int call = 1; !is_late; call++) {
		world_reset();
		begin();
		cover_it();
		world.race = put_another_before;
		world.until = world.calls + call;
		assert_int_not_equal(replace(), 0);
		is_late = world.calls < world.until;
		world.race = NULL;
		world.until = 0;
		RUNS(is_late ? WAS : WAS_BUT("eth0 native foreign(?), "));
		close_filters();
	}
}

WORLD_TEST(test_link)
{
	static const __u32 wrong[][3] = { { BPF_LINK_TYPE_TRACING, ETH0, 0 },
					  { BPF_LINK_TYPE_XDP, ETH1, 0 },
					  { BPF_LINK_TYPE_XDP, ETH0, 1 } };
	struct world_object *link;

	begin();
	for (size_t i = 0; i < COUNT(wrong); i++) {
		link = world_add(WORLD_LINK, 0);
		link->link.type = wrong[i][0];
		link->link.xdp.ifindex = wrong[i][1];
		link->link.prog_id = filter.attachments[0].prog_id + wrong[i][2];
	}
	world.interface[ETH0].held_by = world_id(link);
	EXPECT(-EBUSY, "'eth0' no longer runs the program", replace());
	RUNS(WAS);
	close_filters();
	world_reset();
	begin();
	world_add(WORLD_LINK, 0)->is_gone = true;
	link = world_add(WORLD_LINK, 0);
	link->link.type = BPF_LINK_TYPE_XDP;
	link->link.xdp.ifindex = ETH0;
	link->link.prog_id = filter.attachments[0].prog_id;
	world.interface[ETH0].held_by = world_id(link);
	EXPECT(0, NULL, replace());
	RUNS(IS);
	assert_int_equal(link->link.prog_id, other.attachments[0].prog_id);
	EXPECT(0, NULL, kernel_detach(&other, &other.attachments[0], &reason));
	assert_int_equal(link->link.prog_id, 0);
}

/* ---- the same before Linux 6.6 ---- */

#define MADE 1 /* in the handle: the qdisc is the filter's, too */

WORLD_TEST(test_clsact)
{
	struct world_interface *wg = &world.interface[WG];

	for (int is_there = 0; is_there < 2; is_there++) {
		struct kernel_filter *found = NULL;
		size_t count = 0;

		world_reset();
		world.has_tcx = false;
		if (is_there) { /* with a filter of another's */
			wg->has_clsact = true;
			wg->hook[1][0].program = foreign_program("foreign");
			wg->hook[1][0].handle = 1;
			wg->hook[1][0].priority = 2;
		}
		make_filter(&filter, "old");
		EXPECT(0, "", kernel_attach(&filter, "wg0", KERNEL_AUTO, &reason));
		assert_true(wg->has_clsact && wg->hook[0][0].priority == 1);
		assert_int_equal(wg->hook[0][0].handle, 0x78630000 + (is_there ? 0 : MADE));
		EXPECT(0, "", kernel_attach_outgoing(&filter, "wg0", &reason));
		assert_int_equal(wg->hook[1][is_there].handle, 0x78630000 + (is_there ? 0 : MADE));
		EXPECT(-EBUSY, "a filter of priority 1",
		       kernel_attach_outgoing(&filter, "wg0", &reason));
		make_filter(&other, "new");
		EXPECT(0, "", replace());
		assert_int_equal(wg->hook[0][0].program, other.attachments[0].prog_id);
		assert_int_equal(wg->hook[1][is_there].program, other.attachments[1].prog_id);
		assert_int_equal(wg->hook[1][is_there].handle, 0x78630000 + (is_there ? 0 : MADE));
		EXPECT(0, "", kernel_find_filters((struct kernel_wish){}, &found, &count, &reason));
		assert_int_equal(count, 1);
		assert_int_equal(found[0].attachments_count, 2);
		kernel_filters_free(found, count);
		EXPECT(0, "", kernel_detach_direction(&other, &other.attachments[0], &reason));
		assert_true(wg->has_clsact && !wg->hook[0][0].program &&
			    wg->hook[1][is_there].program);
		EXPECT(0, "", kernel_detach_direction(&other, &other.attachments[1], &reason));
		RUNS(is_there ? "wg0 out foreign(?)" : "");
		assert_int_equal(wg->has_clsact, is_there);
		close_filters();
	}
}

/* Another program is there, under our handle. */
WORLD_TEST(test_clsact_is_lost)
{
	world.has_tcx = false;
	make_filter(&filter, "old");
	EXPECT(0, "", kernel_attach(&filter, "wg0", KERNEL_AUTO, &reason));
	EXPECT(0, "", kernel_attach_outgoing(&filter, "wg0", &reason));
	make_filter(&other, "new");
	world.interface[WG].hook[0][0].program = foreign_program("foreign");
	EXPECT(0, NULL, replace());
	RUNS("wg0 in foreign(?), wg0 out xdp_cuckoo_ips(new)");
	assert_int_equal(other.attachments_count, 1);
}

/* A qdisc that this process made stays while others use it. */
WORLD_TEST(test_clsact_of_ours_with_others)
{
	struct world_interface *wg = &world.interface[WG];

	for (int side = 0; side < 2; side++) {
		world_reset();
		world.has_tcx = false;
		make_filter(&filter, "old");
		EXPECT(0, "", kernel_attach(&filter, "wg0", KERNEL_AUTO, &reason));
		world_hook_insert(wg, side, foreign_program("foreign"));
		wg->hook[side][0].handle = 0x78630001; /* the same handle */
		wg->hook[side][0].priority = 3;
		EXPECT(0, "", kernel_detach(&filter, &filter.attachments[0], &reason));
		RUNS(side ? "wg0 out foreign(?)" : "wg0 in foreign(?)");
		assert_true(wg->has_clsact);
		close_filters();
	}
}

/* ---- two who attach at the same time ---- */

static void attach_other(void)
{
	kernel_attach(&other, "wg0", KERNEL_AUTO, &reason);
}

WORLD_TEST(test_both_attach)
{
	for (int n = 0; n < 40; n++) {
		int error;

		world_reset();
		make_filter(&filter, "old");
		make_filter(&other, "new");
		EXPECT(0, "", kernel_load_program(&filter, KERNEL_IP, &reason));
		EXPECT(0, "", kernel_load_program(&other, KERNEL_IP, &reason));
		world_hook_insert(&world.interface[WG], 0, foreign_program("foreign"));
		world.until = world.calls + n;
		world.race = attach_other;
		error = kernel_attach(&filter, "wg0", KERNEL_AUTO, &reason);
		world.race = NULL;
		world.until = 0;
		/* One of them runs, before the other tool's. */
		if (error)
			RUNS("wg0 in xdp_cuckoo_ip(new), wg0 in foreign(?)");
		else
			RUNS("wg0 in xdp_cuckoo_ip(old), wg0 in foreign(?)");
		close_filters();
	}
}

/* ---- frames in several buffers ---- */

WORLD_TEST(test_fit_mtu)
{
	static const struct {
		__u32 mtu;
		int driver; /* 1: takes frames in several buffers; 0: not; -1: nobody knows */
		const char *kind, *bus;
		int error;
		const char *words;
		bool is_large, is_fit, has_old_buffers;
	} cases[] = {
		{ 1500, 1, NULL, "virtio", 0, "" },
		{ 3490, 1, NULL, "virtio", 0, "" },
		{ 3491, 1, NULL, "virtio", 0, "", true, true, true },
		{ 3491, 1, NULL, "pci", 0, "", true, true },
		{ 3491, -1, NULL, NULL, 0, "", true, true },
		{ 3491, 0, NULL, NULL, 0, "" },
		{ 3840, 0, NULL, NULL, 0, "" },
		{ 3841, 0, NULL, NULL, 0, "", true },
		{ 3841, 1, "tun", NULL, 0, "" },
	};

	assert_int_equal(kernel_one_buffer_mtu(), 3490);
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct kernel_attachment *at;

		world_reset();
		world.interface[ETH0].kind = cases[i].kind;
		world.interface[ETH0].bus = cases[i].bus;
		make_filter(&filter, "old");
		EXPECT(0, "", kernel_attach(&filter, "eth0", KERNEL_AUTO, &reason));
		world.interface[ETH0].features = cases[i].driver > 0 ? 1 << 5 : 0;
		world.has_netdev = cases[i].driver >= 0;
		at = &filter.attachments[0];
		at->mtu = cases[i].mtu;
		assert_int_equal(kernel_is_mtu_too_large(at), cases[i].is_large);
		EXPECT(0, "", kernel_fit_mtu(&filter, at, &reason));
		assert_int_equal(at->is_frags, cases[i].is_fit);
		RUNS(cases[i].is_fit ? "eth0 native xdp_cuckoo_frag(old)" :
				       "eth0 native xdp_cuckoo(old)");
		assert_int_equal(at->prog_id, world.interface[ETH0].xdp[INTERFACE_NATIVE]);
		assert_int_equal(kernel_has_old_buffers(at), cases[i].has_old_buffers);
		EXPECT(0, "", kernel_fit_mtu(&filter, at, &reason));
		close_filters();
	}
}

static void begin_large(void)
{
	make_filter(&filter, "old");
	EXPECT(0, "", kernel_attach(&filter, "eth0", KERNEL_AUTO, &reason));
	world.interface[ETH0].features = ~0ULL;
	filter.attachments[0].mtu = 9000;
}

static int fit(void)
{
	return kernel_fit_mtu(&filter, &filter.attachments[0], &reason);
}

WORLD_TEST(test_cannot_fit_mtu)
{
	begin_large();
	filter.attachments[0].root_id = 99;
	EXPECT(-EBUSY, "the filter needs the other program, and on 'eth0' libxdp's", fit());
	EXPECT(-EBUSY,
	       "-n xdp_cuckoo_frags; xdp-cuckoo --name old load eth0), then unload the old "
	       "one (xdp-loader unload eth0 -i",
	       fit());
	filter.attachments[0].root_id = filter.attachments[0].prog_id;
	world.interface[ETH0].xdp[INTERFACE_NATIVE] = foreign_program("foreign");
	EXPECT(-EBUSY, "'eth0' no longer runs the program", fit());
	assert_false(filter.attachments[0].is_frags);
	world.object[filter.attachments[0].prog_id - 1].is_gone = true;
	EXPECT(-EBUSY, "'eth0' no longer runs the program", fit());
}

WORLD_TEST(test_each_call_fails)
{
	fail_each_call(&(struct steps){ begin, replace, close_filters, WAS, IS, .undoes = true });
	fail_each_call(&(struct steps){
		begin_large, fit, close_filters, "eth0 native xdp_cuckoo(old)",
		"eth0 native xdp_cuckoo_frag(old)", "eth0 native xdp_cuckoo_frag(old)" });
}

TEST_MAIN(world_warm_up, NULL)
