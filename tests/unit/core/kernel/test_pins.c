// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* In a kernel in memory: pins, for processes that may open nothing by id; what interfaces are. */
#include <ftw.h>
#include <sys/file.h>

#include "unit/filters_fixture.h"

#define RECEIVED "eth0 native xdp_cuckoo(a)"
#define BOTH RECEIVED ", eth0 out xdp_cuckoo_sent(a)"

static char top[40], pins[64];
static size_t maps, programs, directories; /* that are pinned; CONFIG directories */

static int count_one(const char *path, const struct stat *status, int type, struct FTW *where)
{
	(void)status;
	maps += type == FTW_F && !strncmp(path + where->base, "map_", 4);
	programs += type == FTW_F && !strncmp(path + where->base, "prog_", 5);
	directories += type == FTW_D && where->level == 2;
	return 0;
}

static void pinned(size_t wanted_maps, size_t wanted_programs, size_t wanted_directories)
{
	maps = programs = directories = 0;
	nftw(pins, count_one, 8, FTW_PHYS);
	assert_int_equal(maps, wanted_maps);
	assert_int_equal(programs, wanted_programs);
	assert_int_equal(directories, wanted_directories);
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *where)
{
	(void)status, (void)type, (void)where;
	return remove(path);
}

/* A process without CAP_SYS_ADMIN. */
static void ordinary(void)
{
	nftw(top, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	assert_false(mkdir(top, 0700));

	world.has = ~(1ULL << CAP_SYS_ADMIN);
}

static void stand(void)
{
	ordinary();
	make_filter(&filter, "a");
	EXPECT(0, "", kernel_attach(&filter, "eth0", KERNEL_AUTO, &reason));
}

/* How many filters are found. */
static size_t find(int error, const char *words, const char *must_see)
{
	struct kernel_filter *found = NULL;
	size_t count = 0;

	EXPECT(error, words,
	       kernel_find_filters((struct kernel_wish){ .must_see = must_see }, &found, &count,
				   &reason));
	kernel_filters_free(found, count);
	return count;
}

WORLD_TEST(test_pins)
{
	ordinary();
	make_filter(&filter, "a");
	pinned(0, 0, 0);
	EXPECT(0, "", kernel_attach(&filter, "eth0", KERNEL_AUTO, &reason));
	pinned(KERNEL_MAPS, 1, 1);
	EXPECT(0, "", kernel_attach_outgoing(&filter, "eth0", &reason));
	pinned(KERNEL_MAPS, 2, 1);
	assert_int_equal(find(0, "", "a"), 1);
	pinned(KERNEL_MAPS, 2, 1);
	make_filter(&other, "a");
	EXPECT(0, "", kernel_replace(&filter, &other, &reason));
	pinned(KERNEL_MAPS, 2, 1); /* of the new one */
	assert_int_equal(find(0, "", "a"), 1);
	world.has = ~0ULL;
	kernel_close(&filter);
	make_filter(&filter, "a");
	EXPECT(0, "", kernel_replace(&other, &filter, &reason)); /* its owner finds this one, too */
	pinned(KERNEL_MAPS, 2, 1);
	world.has = ~(1ULL << CAP_SYS_ADMIN);
	assert_int_equal(find(0, "", "a"), 1);
	EXPECT(0, "", kernel_detach_direction(&filter, &filter.attachments[0], &reason));
	pinned(KERNEL_MAPS, 1, 1);
	RUNS("eth0 out xdp_cuckoo_sent(a)");
	EXPECT(0, "", kernel_detach_direction(&filter, &filter.attachments[1], &reason));
	pinned(0, 0, 0);
	RUNS("");
}

WORLD_TEST(test_no_pins)
{
	ordinary();
	world.has = ~0ULL;
	make_filter(&filter, "a");
	EXPECT(0, "", kernel_attach(&filter, "eth0", KERNEL_AUTO, &reason));
	EXPECT(0, "", kernel_attach_outgoing(&filter, "eth0", &reason));
	EXPECT(0, "", kernel_detach_direction(&filter, &filter.attachments[1], &reason));
	assert_int_equal(access(pins, F_OK), -1);
	world.has = ~(1ULL << CAP_SYS_ADMIN);
	find(-EPERM, "cannot see what runs: 'eth0' runs a program, maybe this filter, that only",
	     "a");
	/* What is pinned is seen beside it. */
	make_filter(&other, "b");
	EXPECT(0, "", kernel_attach(&other, "eth1", KERNEL_AUTO, &reason));
	assert_int_equal(find(0, "", "b"), 1);
	assert_int_equal(find(-EPERM, "cannot see what runs: 'eth0'", "a"), 1);
	assert_int_equal(find(-EPERM, "cannot see what runs: 'eth0'", NULL), 1);
	EXPECT(-EBUSY,
	       "'eth0' runs an XDP program, maybe this filter, that only CAP_SYS_ADMIN may look at",
	       kernel_attach(&other, "eth0", KERNEL_AUTO, &reason));
	pinned(KERNEL_MAPS, 1, 1);
	world.has = ~0ULL;
	EXPECT(0, NULL, kernel_attach(&filter, "lo", KERNEL_AUTO, &reason));
	pinned(KERNEL_MAPS, 1, 1);
}

/* What PINS is, so that it cannot be used. */
static void at_other_place(void)
{
	world.is_bpffs = false;
}

static void readable(void)
{
	mkdir(pins, 0700);
	chmod(pins, 0740);
}

static void writable(void)
{
	mkdir(pins, 0700);
	chmod(pins, 0702);
}

static void a_file(void)
{
	close(open(pins, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
}

static void a_link(void)
{
	assert_false(symlink(top, pins));
}

static void nowhere(void)
{
	remove(top);
}

WORLD_TEST(test_wrong_directories)
{
	static void (*const wrong[])(void) = { at_other_place, readable, writable,
					       a_file,         a_link,   nowhere };

	for (size_t i = 0; i < COUNT(wrong); i++) {
		world_reset();
		ordinary();
		make_filter(&filter, "a");
		wrong[i]();
		EXPECT(-EPERM,
		       "not a directory of this user's in a BPF file system, with mode 0700",
		       kernel_attach(&filter, "eth0", KERNEL_AUTO, &reason));
		RUNS("");
		world.interface[ETH1].xdp[INTERFACE_SKB] = foreign_program("foreign");
		find(-EPERM, NULL, "a");
		if (wrong[i] == at_other_place)
			assert_int_equal(access(pins, F_OK), -1);
		close_filters();
	}
}

/* ---- pins of others, and pins that lie ---- */

static void path_of(char *path, size_t bytes, const char *name, __u32 id)
{
	struct stat status;

	assert_false(stat("/proc/thread-self/ns/net", &status));
	snprintf(path, bytes, "%s/net_%llu", pins, (unsigned long long)status.st_ino);
	if (name)
		snprintf(path + strlen(path), bytes - strlen(path), "/%u/%s_%u",
			 filter.map[KERNEL_CONFIG].id, name, id);
}

WORLD_TEST(test_lying_pins)
{
	const __u32 lies[][2] = { { 1, WORLD_MAP }, { 0, WORLD_PROGRAM } };
	char path[160];

	for (size_t i = 0; i < COUNT(lies); i++) {
		__u32 word[2] = { 0, lies[i][1] };
		int fd;

		world_reset();
		stand();
		path_of(path, sizeof(path), "prog", filter.attachments[0].prog_id);
		word[0] = lies[i][0] ? filter.map[KERNEL_CONFIG].id : foreign_program("xdp_cuckoo");
		fd = open(path, O_WRONLY | O_CLOEXEC);
		assert_true(write(fd, word, sizeof(word)) == sizeof(word) && !close(fd));
		assert_int_equal(find(-EPERM, "cannot see what runs: 'eth0'", "a"), 0);
		close_filters();
	}
	/* A map with the wanted number, and no map pinned: the filter is just being removed. */
	world_reset();
	stand();
	path_of(path, sizeof(path), "map", filter.map[KERNEL_RATES].id);
	assert_false(remove(path));
	assert_int_equal(find(-EPERM, "cannot see", "a"), 0);
	path_of(path, sizeof(path), "map", filter.map[KERNEL_CONFIG].id);
	assert_false(remove(path));
	assert_int_equal(find(-EPERM, "cannot see", "a"), 0);
}

WORLD_TEST(test_lock)
{
	char path[160];
	int fd;

	stand();
	path_of(path, sizeof(path), NULL, 0);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_false(flock(fd, LOCK_SH));
	EXPECT(0, "", kernel_detach(&filter, &filter.attachments[0], &reason));
	pinned(KERNEL_MAPS, 1, 1); /* another process attaches what it has pinned */
	assert_false(flock(fd, LOCK_UN));
	world.has = 0; /* what this one cannot see looks unused */
	kernel_unpin_unused();
	pinned(KERNEL_MAPS, 1, 1);
	assert_true(kernel_has_pins());
	find(-EPERM, "a filter is pinned in", NULL);
	world.release = "6.5.13";
	find(0, "", NULL);
	pinned(0, 0, 0);
	assert_false(kernel_has_pins());
	close(fd);
}

/* ---- which processes see what runs at tc ---- */

WORLD_TEST(test_seen_at_tc)
{
	static const struct {
		const char *release;
		__u64 has;
		bool sees;
	} rows[] = {
		{ "6.6.0", 0, false },
		{ "6.5.9", 0, true },
		{ "5.99", 0, true },
		{ "7.0", 0, false },
		{ "6.6", 1 << CAP_NET_ADMIN, true },
		{ "6.12", 1 << CAP_SYS_ADMIN, true },
		{ "x", 0, false },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		world.release = rows[i].release;
		world.has = rows[i].has;
		assert_int_equal(kernel_sees_tc(), rows[i].sees);
		assert_int_equal(kernel_may_be_unseen(WG), !rows[i].sees);
		assert_int_equal(kernel_may_be_unseen(99), !rows[i].sees);
		assert_false(kernel_may_be_unseen(ETH0));
	}
}

/* ---- each call fails ---- */

static int attach(void)
{
	return kernel_attach(&filter, "eth0", KERNEL_NATIVE, &reason);
}

static void begin(void)
{
	ordinary();
	make_filter(&filter, "a");
}

static void stay(void)
{
}

static int find_it(void)
{
	struct kernel_filter *found = NULL;
	size_t count = 0;
	const int error = kernel_find_filters((struct kernel_wish){ .keeps_pins = true }, &found,
					      &count, &reason);

	kernel_filters_free(found, count);
	return error;
}

WORLD_TEST(test_each_call_fails)
{
	fail_each_call(&(struct steps){ begin, attach, close_filters, "", RECEIVED });
	fail_each_call(
		&(struct steps){ stand, find_it, stay, RECEIVED, RECEIVED, .begins_once = true });
}

/* ---- interfaces ---- */

WORLD_TEST(test_interfaces)
{
	static const struct {
		struct world_interface is;
		bool has_ethernet, has_ip;
	} kinds[] = {
		{ { .type = ARPHRD_ETHER }, true, false },
		{ { .type = ARPHRD_LOOPBACK }, true, false },
		{ { .type = ARPHRD_NONE }, false, true },
		{ { .type = ARPHRD_PPP }, false, true },
		{ { .type = ARPHRD_RAWIP }, false, true },
		{ { .type = ARPHRD_SIT }, false, true },
		{ { .type = ARPHRD_TUNNEL, .peer_bytes = 4 }, false, true },
		{ { .type = ARPHRD_TUNNEL6 }, false, true },
		{ { .type = ARPHRD_IEEE80211_RADIOTAP }, false, false },
		{ { .type = ARPHRD_IPGRE, .peer = { 192, 0, 2 }, .peer_bytes = 4 }, false, true },
		{ { .type = ARPHRD_IPGRE, .peer = { 0xef, 0, 2, 1 }, .peer_bytes = 4 },
		  false,
		  false },
		{ { .type = ARPHRD_IPGRE, .peer = { 0xf0, 0, 2, 1 }, .peer_bytes = 4 },
		  false,
		  true },
		{ { .type = ARPHRD_IPGRE, .peer_bytes = 4 }, false, false },
		{ { .type = ARPHRD_IP6GRE, .peer = { 0xfe }, .peer_bytes = 16 }, false, true },
		{ { .type = ARPHRD_IP6GRE, .peer = { 0xff }, .peer_bytes = 16 }, false, false },
		{ { .type = ARPHRD_IP6GRE, .peer = { 0xe0 }, .peer_bytes = 16 }, false, true },
		{ { .type = ARPHRD_IP6GRE, .peer_bytes = 16 }, false, false },
	};
	struct world_interface *eth0 = &world.interface[ETH0];
	struct interface *all;
	size_t count;

	eth0->master = 9;
	eth0->link = 8;
	eth0->bus = "virtio";
	eth0->counts = (struct rtnl_link_stats64){
		.rx_packets = 7, .rx_missed_errors = 1, .rx_over_errors = 3, .rx_fifo_errors = 2
	};
	for (int mode = 0; mode < INTERFACE_XDP_MODES; mode++)
		eth0->xdp[mode] = 20 + mode;
	world.interface[ETH1].link = 8;
	world.interface[ETH1].is_link_elsewhere = true;
	world.interface[ETH1].bus = "pci";
	world.interface[ETH1].counts.rx_missed_errors = 5;
	world.interface[WG].is_absent = true;
	assert_int_equal(interfaces_list(&all, &count), 0);
	assert_int_equal(count, WORLD_INTERFACES - 2);
	assert_true(all[1].index == ETH0 && all[1].mtu == 1500 && all[1].master == 9 &&
		    all[1].link == 8);
	assert_true(all[1].is_virtio_net && all[1].received == 7 && all[1].lost == 3 &&
		    !all[1].is_tap);
	for (int mode = 0; mode < INTERFACE_MODES; mode++)
		assert_int_equal(all[1].prog_id[mode], mode < INTERFACE_XDP_MODES ? 20 + mode : 0);
	assert_true(!all[2].link && !all[2].is_virtio_net && all[2].lost == 5 &&
		    !all[2].prog_id[0]);
	free(all);
	for (size_t i = 0; i < COUNT(kinds); i++) {
		struct interface interface;

		world.interface[GRE] = kinds[i].is;
		world.interface[GRE].name = "x";
		assert_int_equal(interfaces_find("x", &interface), 0);
		assert_int_equal(interface.has_ethernet, kinds[i].has_ethernet);
		assert_int_equal(interface.has_ip, kinds[i].has_ip);
	}
}

WORLD_TEST(test_names)
{
	char name[160] = "a\t\xff-";

	assert_int_equal(interfaces_index("uplink"), ETH0);
	assert_int_equal(interfaces_index("eth7"), 0);
	assert_true(interfaces_are_one("eth0", "uplink") && interfaces_are_one("eth7", "eth7"));
	assert_false(interfaces_are_one("eth0", "eth1") || interfaces_are_one("eth7", "eth8"));
	assert_false(interfaces_are_one("eth0", "eth7") || interfaces_are_one("eth7", "eth0"));
	interface_clean_name(name);
	assert_string_equal(name, "a?\?-");
	memset(name, 'n', INTERFACE_NAME_BYTES);
	name[INTERFACE_NAME_BYTES - 1] = '\0';
	world.interface[ETH1].other_name = name;
	assert_int_equal(interfaces_index(name), ETH1);
	name[INTERFACE_NAME_BYTES - 1] = 'n';
	assert_int_equal(interfaces_index(name), 0);
	assert_string_equal(interface_mode_name(INTERFACE_OFFLOAD), "offload");
	assert_string_equal(interface_mode_name(INTERFACE_TC_SENT), "tc");
	EXPECT(-ENODEV, "did you mean 'uplink'", kernel_no_interface_reason("uplnk", &reason));
}

static int make_top(void **state)
{
	strcpy(top, "/tmp/xdp-cuckoo-pins.XXXXXX");
	if (!mkdtemp(top))
		return -1;
	snprintf(pins, sizeof(pins), "%s/pins", top);
	kernel_use_pins(pins);
	return world_warm_up(state);
}

static int remove_top(void **state)
{
	(void)state;
	return nftw(top, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

TEST_MAIN(make_top, remove_top)
