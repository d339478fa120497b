// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Filters, pins and interfaces are found and recognised, in a kernel in memory. */
#include <ftw.h>
#include <stddef.h>
#include <sys/file.h>

#include "unit/filters_fixture.h"

static struct kernel_filter *found;
static size_t count;

static int find(struct kernel_wish wish)
{
	return kernel_find_filters(wish, &found, &count, &reason);
}

static void end(void)
{
	kernel_filters_free(found, count);
	found = NULL;
	count = 0;
}

static void let_go(void)
{
	end();
	close_filters();
}

/* `a` on eth0 in both directions, `b` on eth1. */
static void stand(void)
{
	make_filter(&filter, "a");
	EXPECT(0, "", kernel_attach(&filter, "eth0", KERNEL_AUTO, &reason));
	EXPECT(0, "", kernel_attach_outgoing(&filter, "eth0", &reason));
	make_filter(&other, "b");
	EXPECT(0, "", kernel_attach(&other, "eth1", KERNEL_SKB, &reason));
}

WORLD_TEST(test_found)
{
	void *memory;

	EXPECT(0, "", find((struct kernel_wish){}));
	assert_int_equal(count, 0);
	stand();
	world.interface[WG].xdp[INTERFACE_SKB] = foreign_program("xdp_cuckoo");
	world.interface[ETH1].link = ETH0;
	EXPECT(0, "", find((struct kernel_wish){}));
	assert_int_equal(count, 2);
	for (size_t i = 0; i < count; i++) {
		const struct kernel_filter *of = strcmp(found[i].config->name, "a") ? &other :
										      &filter;

		assert_string_equal(found[i].config->name, of->config->name);
		assert_int_equal(found[i].attachments_count, of->attachments_count);
		assert_memory_equal(&found[i].options, &of->options, sizeof(of->options));
		for (size_t k = 0; k < of->attachments_count; k++) {
			struct kernel_attachment now = found[i].attachments[k];

			assert_int_equal(now.is_below, of == &filter && !kernel_is_outgoing(&now));
			now.is_new = true;
			now.is_below = false;
			assert_memory_equal(&now, &of->attachments[k], sizeof(now));
		}
		for (enum kernel_map_name name = 0; name < KERNEL_MAPS; name++) {
			assert_int_equal(found[i].map[name].id, of->map[name].id);
			assert_int_equal(found[i].map[name].entries, of->map[name].entries);
			assert_int_equal(found[i].map[name].bytes, of->map[name].bytes);
			assert_int_equal(!found[i].map[name].memory, !of->map[name].memory);
		}
		assert_int_equal(kernel_filter_bytes(&found[i]), kernel_sizes_bytes(&small));
	}
	/* An earlier array gives its memory. */
	memory = found[0].map[KERNEL_BUCKETS].memory;
	assert_int_equal(kernel_map_part(&found[0].map[KERNEL_BUCKETS], 0, 64), 0);
	EXPECT(0, "", find((struct kernel_wish){ .must_see = "a" }));
	assert_ptr_equal(found[0].map[KERNEL_BUCKETS].memory, memory);
	assert_int_equal(found[0].map[KERNEL_BUCKETS].part[0].end, 64);
	let_go();
}

WORLD_TEST(test_frags_are_found)
{
	world.interface[ETH0].driver = 1;
	world.interface[ETH0].features = ~0ULL;
	make_filter(&filter, "a");
	EXPECT(0, "", kernel_attach(&filter, "eth0", KERNEL_AUTO, &reason));
	EXPECT(0, "", find((struct kernel_wish){}));
	assert_true(count == 1 && found[0].attachments[0].is_frags);
	let_go();
}

/* ---- what cannot be used ---- */

#define IN_CONFIG(member, value) offsetof(struct abi_config, member), value

static const char too_new[] =
	"the filter 'b' on 'eth1' is of a newer version of xdp-cuckoo (its table is of version";
static const char older[] =
	"the filter 'b' on 'eth1' is of another version of xdp-cuckoo (its table is of version";
static const char unknown[] =
	"the filter on 'eth1' is of another version of xdp-cuckoo; take it off and load it";
static const char damaged[] = "the filter on 'eth1' is damaged";

/* A byte of b's config; which reason, and whether it can be replaced. */
static const struct {
	size_t at;
	__u8 value;
	const char *words;
	bool is_replaced;
} bytes[] = {
	{ IN_CONFIG(version, ABI_VERSION + 1), too_new, true },
	{ IN_CONFIG(version, ABI_VERSION - 1), older, true },
	{ IN_CONFIG(version, ABI_VERSION_OLDEST), older, true },
	{ IN_CONFIG(version, ABI_VERSION_OLDEST - 1), unknown },
	{ IN_CONFIG(magic, 1), unknown },
	{ IN_CONFIG(options.format, BUCKET_FORMATS), damaged },
	{ IN_CONFIG(options.format, BUCKET_17), damaged },
	{ IN_CONFIG(options.format, BUCKET_32), damaged },
	{ IN_CONFIG(options.is_exact, 2), damaged },
	{ IN_CONFIG(options.is_exact, 0), damaged },
	{ IN_CONFIG(options.has_counts, 2), damaged },
	{ IN_CONFIG(options.has_counts, 0), damaged },
	{ IN_CONFIG(options.is_alone, 2), damaged },
	{ IN_CONFIG(options.orders_loads, 2), damaged },
	{ IN_CONFIG(options.has_addresses, 2), damaged },
	{ IN_CONFIG(table[0].shapes[0][0].count, ABI_SHAPES_MAX + 1), damaged },
	{ IN_CONFIG(table[1].shapes[1][1].count, ABI_SHAPES_MAX + 1), damaged },
	{ IN_CONFIG(table[1].shapes[1][1].count, ABI_SHAPES_MAX), NULL },
	{ IN_CONFIG(options.is_alone, 1), NULL },
	{ IN_CONFIG(options.orders_loads, 1), NULL },
	{ IN_CONFIG(options.has_addresses, 1), NULL },
};

/* The kernel's description of one of b's maps. */
#define IN_MAP(member) offsetof(struct bpf_map_info, member)

static const struct {
	enum kernel_map_name map;
	size_t at;
	__u32 value;
	bool is_sound;
} layouts[] = {
	{ KERNEL_BUCKETS, IN_MAP(max_entries), 5, true },
	{ KERNEL_RECORDS, IN_MAP(max_entries), 5, true },
	{ KERNEL_RECORDS, IN_MAP(max_entries), 1 },
	{ KERNEL_COUNTS, IN_MAP(max_entries), 1 },
	{ KERNEL_COUNTS, IN_MAP(max_entries), 2, true },
	{ KERNEL_BUCKETS, IN_MAP(value_size), 16 },
	{ KERNEL_RECORDS, IN_MAP(value_size), 16 },
	{ KERNEL_CONFIG, IN_MAP(max_entries), 2 },
	{ KERNEL_RATES, IN_MAP(max_entries), 2 },
	{ KERNEL_COUNTERS, IN_MAP(max_entries), ABI_COUNTER_ELEMENTS + 1 },
	{ KERNEL_COUNTERS, IN_MAP(map_flags), 0, true },
	{ KERNEL_COUNTERS, IN_MAP(type), BPF_MAP_TYPE_ARRAY },
	{ KERNEL_SAMPLES, IN_MAP(key_size), 4 },
	{ KERNEL_SAMPLES, IN_MAP(value_size), 4 },
	{ KERNEL_SAMPLING, IN_MAP(key_size), 8 },
	{ KERNEL_RATE_CREDITS, IN_MAP(value_size), 4 },
	{ KERNEL_HINTS, IN_MAP(map_flags), 0 },
	{ KERNEL_HINTS, IN_MAP(max_entries), ABI_HINTS(ABI_HINT_SHIFT_MOST) / 8, true },
	{ KERNEL_HINTS, IN_MAP(max_entries), ABI_HINTS(ABI_HINT_SHIFT_MOST) / 8 - 1 },
	{ KERNEL_HINTS, IN_MAP(max_entries), ABI_HINTS(ABI_HINT_SHIFT_MOST) / 8 + 1 },
	{ KERNEL_HINTS, IN_MAP(max_entries), ABI_HINTS(ABI_HINT_SHIFT_MOST) / 4 - 1 },
	{ KERNEL_HINTS, IN_MAP(max_entries), ABI_HINTS(ABI_HINT_SHIFT_MOST) / 4, true },
	{ KERNEL_HINTS, IN_MAP(max_entries), ABI_HINTS(ABI_HINT_SHIFT_MOST), true },
};

/* `b` is as it is now. What is found with it and without it, and for whom it matters. */
static void look_at_b(const char *words, bool is_replaced)
{
	enum kernel_seen seen;

	EXPECT(words ? -EPROTO : 0, words ? words : "", find((struct kernel_wish){}));
	assert_int_equal(count, words ? 1 : 2);
	EXPECT(words && !is_replaced ? -EPROTO : 0, words && !is_replaced ? words : "",
	       find((struct kernel_wish){ .takes_other_versions = true }));
	assert_int_equal(count, words && !is_replaced ? 1 : 2);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(found[i].is_other_version,
				 words && found[i].attachments[0].ifindex == ETH1);
	EXPECT(0, NULL, find((struct kernel_wish){ .must_see = "b", .seen = &seen }));
	assert_int_equal(seen, words ? KERNEL_SEEN_UNUSABLE : KERNEL_SEEN);
	EXPECT(0, NULL, find((struct kernel_wish){ .must_see = "a", .seen = &seen }));
	assert_int_equal(seen, KERNEL_SEEN);
	let_go();
}

WORLD_TEST(test_unusable)
{
	for (size_t i = 0; i < COUNT(bytes) + COUNT(layouts); i++) {
		const size_t k = i - COUNT(bytes);

		world_reset();
		stand();
		if (i < COUNT(bytes)) {
			((__u8 *)other.config)[bytes[i].at] = bytes[i].value;
			look_at_b(bytes[i].words, bytes[i].is_replaced);
		} else {
			memcpy((char *)&world.object[other.map[layouts[k].map].id - 1].map +
				       layouts[k].at,
			       &layouts[k].value, sizeof(layouts[k].value));
			look_at_b(layouts[k].is_sound ? NULL : "the filter on 'eth1' is", false);
		}
	}
	world_reset();
	stand();
	memset(other.config->name, 'x', sizeof(other.config->name));
	look_at_b(damaged, false);
	world_reset();
	stand();
	memset(other.config->name, 'x', sizeof(other.config->name));
	other.config->version--;
	look_at_b(unknown, false);
	/* Older versions have fewer maps, and other layouts. */
	world_reset();
	stand();
	world.object[other.map[KERNEL_RATES].id - 1].is_gone = true;
	look_at_b(unknown, false);
	world_reset();
	stand();
	world.object[other.map[KERNEL_RATES].id - 1].is_gone = true;
	world.object[other.map[KERNEL_CONFIG].id - 1].map.value_size = ABI_COMMON_BYTES;
	other.config->version--;
	other.config->options.is_exact = 7;
	look_at_b(older, true);
	world_reset();
	stand();
	world.object[other.map[KERNEL_CONFIG].id - 1].is_gone = true;
	world.object[other.map[KERNEL_RATES].id - 1].map.value_size++;
	look_at_b(unknown, false);
	world_reset();
	stand();
	world.object[other.map[KERNEL_CONFIG].id - 1].map.value_size = ABI_COMMON_BYTES - 1;
	other.config->version--;
	look_at_b(unknown, false);
}

/* Which of two filters a caller wants, and what it hears of the other one. */
WORLD_TEST(test_wishes)
{
	enum kernel_seen seen;

	stand();
	other.config->options.format = BUCKET_FORMATS;
	EXPECT(0, "", find((struct kernel_wish){ .must_see = "a", .seen = &seen }));
	strcpy(other.config->name, "a");
	EXPECT(0, damaged, find((struct kernel_wish){ .must_see = "a", .seen = &seen }));
	assert_int_equal(seen, KERNEL_SEEN);
	EXPECT(-EPROTO, damaged, find((struct kernel_wish){ .must_see = "c" }));
	assert_int_equal(kernel_seen_error(KERNEL_NOT_ALLOWED), -EPERM);
	other.config->options.format = BUCKET_16;
	other.config->version--;
	EXPECT(0, "", find((struct kernel_wish){ .must_see = "c" }));
	assert_int_equal(count, 1);
	EXPECT(-EPROTO, "--name a load eth1 replaces it without a gap",
	       find((struct kernel_wish){ .must_see = "a" }));
	let_go();
}

/* ---- a filter that is not set up ---- */

static void lose_constants(void)
{
	world.object[found[0].constants_id - 1].is_gone = true;
}

static void lose_types(void)
{
	world.object[world.object[found[0].constants_id - 1].map.btf_id - 1].is_gone = true;
}

static void type_constants(void)
{
	world.object[found[0].constants_id - 1].map.btf_value_type_id = 1;
}

static void shorten_constants(void)
{
	world.object[found[0].constants_id - 1].map.value_size = 7;
}

static void keep_constants(void)
{
}

/* Its options are those of its constants, or those of the object as it was built. */
WORLD_TEST(test_not_set_up)
{
	static void (*const change[])(void) = { keep_constants, lose_constants, lose_types,
						type_constants, shorten_constants };
	struct kernel_sizes sizes = small;

	sizes.options.is_alone = 1;
	for (size_t i = 0; i < COUNT(change); i++) {
		world_reset();
		EXPECT(0, "", kernel_create(&sizes, &filter, &reason));
		EXPECT(0, "", kernel_attach(&filter, "eth0", KERNEL_AUTO, &reason));
		EXPECT(0, "", find((struct kernel_wish){ .must_see = "a" }));
		assert_int_equal(count, 1);
		assert_memory_equal(&found[0].options, &sizes.options, sizeof(sizes.options));
		change[i]();
		EXPECT(0, "", find((struct kernel_wish){ .must_see = "a" }));
		assert_memory_equal(&found[0].options, i ? &small.options : &sizes.options,
				    sizeof(sizes.options));
		let_go();
	}
	world_reset();
	sizes.options = (struct abi_options){ .format = BUCKET_32 };
	EXPECT(0, "", kernel_create(&sizes, &filter, &reason));
	EXPECT(0, "", kernel_attach(&filter, "eth0", KERNEL_AUTO, &reason));
	EXPECT(0, "", find((struct kernel_wish){}));
	assert_int_equal(found[0].options.format, BUCKET_32);
	assert_int_equal(found[0].map[KERNEL_BUCKETS].value_bytes, 16);
	lose_constants();
	EXPECT(-EPROTO, "the filter on 'eth0' is damaged", find((struct kernel_wish){}));
	let_go();
}

/* ---- while others load and replace ---- */

static struct world_object *link_to(enum bpf_link_type type, __u32 program, __u32 root)
{
	struct world_object *link = world_add(WORLD_LINK, 0);

	link->link.type = type;
	link->link.prog_id = program;
	link->link.tracing.target_obj_id = root;
	return link;
}

/* libxdp's dispatcher runs it. */
WORLD_TEST(test_dispatcher)
{
	__u32 program;

	stand();
	program = filter.attachments[0].prog_id;
	world.interface[ETH0].xdp[INTERFACE_NATIVE] = foreign_program("dispatcher");
	world.interface[LO].xdp[INTERFACE_SKB] = foreign_program("dispatcher");
	link_to(BPF_LINK_TYPE_XDP, other.attachments[0].prog_id,
		world.interface[ETH0].xdp[INTERFACE_NATIVE]);
	link_to(BPF_LINK_TYPE_TRACING, program, other.attachments[0].prog_id);
	link_to(BPF_LINK_TYPE_TRACING, world.interface[LO].xdp[INTERFACE_SKB],
		world.interface[ETH0].xdp[INTERFACE_NATIVE]);
	link_to(BPF_LINK_TYPE_TRACING, program, world.interface[ETH0].xdp[INTERFACE_NATIVE]);
	EXPECT(0, "", find((struct kernel_wish){}));
	assert_int_equal(count, 2);
	assert_int_equal(found[0].attachments_count, 2);
	assert_int_equal(found[0].attachments[0].prog_id, program);
	assert_int_equal(found[0].attachments[0].root_id,
			 world.interface[ETH0].xdp[INTERFACE_NATIVE]);
	assert_true(kernel_is_held(&found[0].attachments[0]) &&
		    !kernel_is_held(&found[0].attachments[1]));
	assert_ptr_equal(kernel_held_attachment(&found[0]), &found[0].attachments[0]);
	assert_null(kernel_held_attachment(&found[1]));
	found[0].attachments[0].root_id = program;
	assert_null(kernel_held_attachment(&found[0]));
	found[0].attachments[1].is_below = true;
	assert_ptr_equal(kernel_held_attachment(&found[0]), &found[0].attachments[1]);
	let_go();
}

/* However many interfaces have programs of others. */
WORLD_TEST(test_links_are_listed_once)
{
	unsigned long calls[2];

	stand();
	for (int i = 0; i < 40; i++)
		link_to(BPF_LINK_TYPE_TRACING, 1, 1);
	for (int i = 0; i < 2; i++) {
		world.interface[i ? LO : WG].xdp[INTERFACE_SKB] = foreign_program("foreign");
		calls[i] = world.calls;
		EXPECT(0, "", find((struct kernel_wish){ .keeps_pins = true }));
		calls[i] = world.calls - calls[i];
	}
	assert_true(calls[0] > 80 && calls[1] < calls[0] + 40);
	let_go();
}

/* At tc, another program may decide before ours: with tcx, and as filters of a qdisc. */
WORLD_TEST(test_behind_another)
{
	for (int has_tcx = 0; has_tcx < 2; has_tcx++) {
		world_reset();
		world.has_tcx = has_tcx;
		stand();
		world.interface[ETH0].hook[1][1].program = foreign_program("behind");
		EXPECT(0, "", find((struct kernel_wish){ .must_see = "a" }));
		assert_false(found[0].attachments[0].is_behind || found[0].attachments[1].is_behind);
		world.interface[ETH0].hook[1][1] = world.interface[ETH0].hook[1][0];
		world.interface[ETH0].hook[1][0].program = foreign_program("before");
		EXPECT(0, "", find((struct kernel_wish){ .must_see = "a" }));
		assert_int_equal(found[0].attachments_count, 2);
		for (size_t i = 0; i < 2; i++)
			assert_int_equal(found[0].attachments[i].is_behind,
					 kernel_is_outgoing(&found[0].attachments[i]));
		let_go();
	}
}

static void lose_a_link(void)
{
	static unsigned int dumps;

	if (dumps != world.dumps)
		link_to(BPF_LINK_TYPE_TRACING, 1, 1)->is_gone = true;
	dumps = world.dumps;
}

WORLD_TEST(test_missed_ids)
{
	stand();
	world.interface[WG].xdp[INTERFACE_SKB] = foreign_program("foreign");
	world.dumps = 0;
	EXPECT(0, "", find((struct kernel_wish){ .keeps_pins = true }));
	assert_int_equal(world.dumps, 1);
	lose_a_link();
	EXPECT(0, "", find((struct kernel_wish){ .keeps_pins = true }));
	assert_int_equal(world.dumps, 1 + 2);
	world.object[world.interface[WG].xdp[INTERFACE_SKB] - 1].is_gone = true;
	EXPECT(0, "", find((struct kernel_wish){ .keeps_pins = true }));
	assert_int_equal(world.dumps, 1 + 2 + 2);
	assert_int_equal(count, 2);
	/* A tool that makes links all the time does not keep a search from its end. */
	world.race = lose_a_link;
	world.until = 1;
	world.fails_on = true;
	world.dumps = 0;
	EXPECT(0, "", find((struct kernel_wish){ .keeps_pins = true }));
	world.until = 0;
	world.race = NULL;
	assert_int_equal(world.dumps, 100);
	world.interrupted = 99;
	EXPECT(0, "", find((struct kernel_wish){ .keeps_pins = true }));
	world.interrupted = 100;
	EXPECT(-EAGAIN, "cannot list the network interfaces: Resource temp",
	       find((struct kernel_wish){ .keeps_pins = true }));
	assert_int_equal(count, 0);
	let_go();
}

static __u32 programs[2][2]; /* of the old table and of the new one; received and sent */

static void run_table(size_t table)
{
	for (size_t i = 0; i < 2; i++)
		for (size_t k = 0; k < 2; k++)
			world.object[programs[i][k] - 1].is_gone = i != table;
	world.interface[ETH0].xdp[INTERFACE_NATIVE] = programs[table][0];
	world.interface[ETH0].hook[1][0].program = programs[table][1];
}

static void run_new_table(void)
{
	run_table(1);
}

/* A writer replaces it at any moment of a search. */
WORLD_TEST(test_replaced_meanwhile)
{
	unsigned long calls = 0;

	make_filter(&filter, "a");
	EXPECT(0, "", kernel_attach(&filter, "eth0", KERNEL_AUTO, &reason));
	EXPECT(0, "", kernel_attach_outgoing(&filter, "eth0", &reason));
	make_filter(&other, "a");
	for (size_t k = 0; k < 2; k++)
		programs[0][k] = filter.attachments[k].prog_id;
	EXPECT(0, "", kernel_replace(&filter, &other, &reason));
	for (size_t k = 0; k < 2; k++)
		programs[1][k] = other.attachments[k].prog_id;
	for (unsigned long n = 1; n == 1 || n <= calls + 1; n++) {
		run_table(0);
		calls = world.calls;
		world.until = calls + n;
		world.race = run_new_table;
		EXPECT(0, "", find((struct kernel_wish){ .must_see = "a" }));
		calls = world.calls - calls;
		world.until = 0;
		world.race = NULL;
		assert_int_equal(count, 1);
		assert_int_equal(found[0].attachments_count, 2);
	}
	let_go();
}

static void begin(void)
{
	stand();
	other.config->magic = 0;
}

static void begin_dispatched(void)
{
	__u32 *root = &world.interface[ETH0].xdp[INTERFACE_NATIVE];

	stand();
	*root = foreign_program("dispatcher");
	link_to(BPF_LINK_TYPE_TRACING, filter.attachments[0].prog_id, *root);
}

static int find_all(void)
{
	return find((struct kernel_wish){});
}

static int find_known(void)
{
	const int error = find_all();

	return error ? error : find_all();
}

WORLD_TEST(test_each_call_fails)
{
	static const char dispatched[] = "eth0 native dispatcher(?), eth0 out xdp_cuckoo_sent(a), "
					 "eth1 skb xdp_cuckoo(b)";
	static const char runs[] =
		"eth0 native xdp_cuckoo(a), eth0 out xdp_cuckoo_sent(a), eth1 skb xdp_cuckoo(b)";

	fail_each_call(&(struct steps){ begin, find_all, end, runs, runs, .begins_once = true });
	fail_each_call(&(struct steps){ begin, find_known, end, runs, runs, .begins_once = true });
	fail_each_call(&(struct steps){ begin_dispatched, find_all, end, dispatched, dispatched,
					.begins_once = true });
}

WORLD_TEST(test_other_questions)
{
	__u64 id[2] = { 3, 4 };
	bool is_own;

	stand();
	memcpy(filter.config->store_id, id, sizeof(id));
	assert_true(kernel_runs_elsewhere(id, NULL, 0));
	assert_true(kernel_runs_elsewhere(id, &other, 1));
	assert_false(kernel_runs_elsewhere(id, &filter, 1));
	filter.config->magic = 0;
	assert_false(kernel_runs_elsewhere(id, NULL, 0));
	filter.config->magic = ABI_MAGIC;
	id[1] = 0;
	assert_false(kernel_runs_elsewhere(id, NULL, 0));
	assert_int_equal(kernel_age(&filter) + .5, 1000);
	world.object[filter.attachments[1].prog_id - 1].program.load_time -= 5000000000;
	assert_int_equal(kernel_age(&filter) + .5, 1005);
	world.object[filter.attachments[1].prog_id - 1].is_gone = true;
	assert_int_equal(kernel_age(&filter) + .5, 1000);
	world.object[filter.attachments[0].prog_id - 1].is_gone = true;
	assert_true(kernel_age(&filter) < 0);
	EXPECT(0, "", find((struct kernel_wish){ .must_see = "b" }));
	EXPECT(0, "", kernel_runs_this_build(&found[0], &is_own, &reason));
	assert_true(is_own);
	world.object[other.attachments[0].prog_id - 1].program.tag[7]++;
	EXPECT(0, "", kernel_runs_this_build(&found[0], &is_own, &reason));
	assert_false(is_own);
	world.object[other.attachments[0].prog_id - 1].is_gone = true;
	EXPECT(-ENOENT, "cannot look at the running program",
	       kernel_runs_this_build(&found[0], &is_own, &reason));
	assert_false(is_own);
	let_go();
}

/* A table's maps are mapped by parts. */
WORLD_TEST(test_map_parts)
{
	struct kernel_sizes sizes = small;
	struct kernel_map *map;
	const char *window;

	sizes.slots = 1 << 14;
	EXPECT(0, "", kernel_create(&sizes, &filter, &reason));
	map = &filter.map[KERNEL_RECORDS];
	assert_int_equal(map->bytes, 8 << 14);
	assert_int_equal(kernel_map_part(map, 9000, 100), 0);
	assert_true(map->part[0].start == 8192 && map->part[0].end == 9100);
	((char *)map->memory)[9001] = 'x';
	window = kernel_map_window(map, 9001, 5000);
	assert_non_null(window);
	assert_int_equal(*window, 'x');
	kernel_unmap_window(window, 5000);
	assert_int_equal(kernel_map_part(map, 40960, 1), 0);
	assert_true(map->part[0].start == 40960 && map->part[1].end == 9100);
	assert_int_equal(kernel_map_part(map, 9099, 1), 0);
	assert_int_equal(map->part[0].start, 40960); /* it is there */
	assert_int_equal(kernel_map_part(map, 9099, 2), 0);
	assert_true(map->part[0].end == 9101 && map->part[1].start == 40960);
	assert_int_equal(kernel_map_part(map, 4096, 4097), 0);
	assert_int_equal(map->part[0].start, 4096);
}

TEST_MAIN(world_warm_up, NULL)
