// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* In a kernel in memory: samples, counters, whether packets reach a filter; objects and words. */
#include "unit/filters_fixture.h"
#include "bench_abi.h"
#include "table/semisort.h"

#define LEASE_TICKS (5. * ticks_jiffies() / (1 << ABI_TICK_SHIFT))

static void stand(void)
{
	make_filter(&filter, "a");
	EXPECT(0, "", kernel_attach(&filter, "eth0", KERNEL_AUTO, &reason));
	EXPECT(0, "", kernel_attach(&filter, "eth1", KERNEL_AUTO, &reason));
}

static int map_of(const struct kernel_filter *of, enum kernel_map_name name)
{
	return world.object[of->map[name].id - 1].fd;
}

/* ---- samples ---- */

static struct listener listener;
static unsigned int visited;
static int answer;

/* What a program puts into the ring. */
static void put_sample(const struct kernel_filter *of, const struct abi_sample *sample, __u32 bytes)
{
	const long page = sysconf(_SC_PAGESIZE);
	const __u32 head[2] = { bytes };
	__u64 end;

	assert_int_equal(pread(map_of(of, KERNEL_SAMPLES), &end, sizeof(end), page), sizeof(end));
	assert_int_equal(pwrite(map_of(of, KERNEL_SAMPLES), head, sizeof(head),
				2 * page + end % ABI_SAMPLES_BYTES),
			 sizeof(head));
	assert_int_equal(pwrite(map_of(of, KERNEL_SAMPLES), sample, sizeof(*sample),
				2 * page + end % ABI_SAMPLES_BYTES + sizeof(head)),
			 sizeof(*sample));
	end += (sizeof(head) + bytes + 7) & ~7U;
	assert_int_equal(pwrite(map_of(of, KERNEL_SAMPLES), &end, sizeof(end), page), sizeof(end));
}

static void put(const struct kernel_filter *of, __u16 captured, __s64 ms)
{
	put_sample(of,
		   &(struct abi_sample){ .time_ns = (world.now_ms + ms) * 1000000,
					 .captured = captured },
		   sizeof(struct abi_sample));
}

static int visit(const struct abi_sample *sample, void *context)
{
	assert_ptr_equal(context, &listener);
	assert_true(sample->captured <= ABI_SAMPLE_BYTES);
	visited++;
	return answer;
}

/* How many samples a reading visits. */
static unsigned int visits(int result)
{
	visited = 0;
	assert_int_equal(listener_read(&listener, visit, &listener), result);
	return visited;
}

static int listen_to_a(void)
{
	return listener_open(&listener, "a", 3, 1000, &reason);
}

static void count_samples(__u64 seen, __u64 limited, __u64 lost)
{
	struct abi_sampling of[WORLD_CPUS] = {};

	of[0].seen = seen - 1;
	of[WORLD_CPUS - 1] = (struct abi_sampling){ .seen = 1, .limited = limited, .lost = lost };
	assert_int_equal(pwrite(map_of(&filter, KERNEL_SAMPLING), of, sizeof(of), 0), sizeof(of));
}

static void counted(__u64 seen, __u64 limited, __u64 lost)
{
	struct abi_sampling sum;

	EXPECT(0, "", listener_count(&listener, &sum, &reason));
	assert_true(sum.seen == seen && sum.limited == limited && sum.lost == lost);
}

WORLD_TEST(test_listener)
{
	const __u32 now = WORLD_TICK, until = now + LEASE_TICKS + 2;
	struct kernel_filter *twin = &other;

	EXPECT(-ENOENT, "", listen_to_a());
	stand();
	count_samples(100, 20, 3);
	EXPECT(0, "", listen_to_a());
	assert_true(listener.id && filter.config->listener >> ABI_LISTENER_SHIFT == listener.id);
	assert_in_range((__u32)filter.config->listener, until, until + 3);
	assert_int_equal(filter.config->sample_every, 3);
	assert_int_equal(filter.config->sample_credit,
			 1000 * ABI_SAMPLE_PRICE / ticks_jiffies() + 1);
	assert_int_equal(listener.interfaces_count, 2);
	assert_string_equal(listener.interfaces[1].interface, "eth1");
	counted(0, 0, 0);
	count_samples(105, 26, 7);
	counted(5, 6, 4);
	/* Only whole samples since it listens. */
	put(&filter, 0, 0);
	put(&filter, ABI_SAMPLE_BYTES, 5);
	put(&filter, ABI_SAMPLE_BYTES + 1, 5);
	put(&filter, 9, -1);
	put_sample(&filter, &(struct abi_sample){ .time_ns = world.now_ms * 2000000 },
		   sizeof(struct abi_sample) - 8);
	assert_int_equal(visits(0), 2);
	assert_int_equal(visits(0), 0);
	put(&filter, 1, 1);
	put(&filter, 1, 1);
	answer = -ECANCELED;
	assert_int_equal(visits(-ECANCELED), 1);
	answer = 0;
	assert_int_equal(visits(0), 1);
	/* A new table has a lease of its own, and the same ring. */
	world.now_ms += 4000;
	make_filter(twin, "a");
	kernel_close(twin);
	EXPECT(0, "",
	       kernel_create(&(struct kernel_sizes){ small.options, small.tables, small.slots,
						     small.bucket_bytes, 0, small.hint_shift,
						     &filter },
			     twin, &reason));
	*twin->config = *filter.config;
	twin->config->listener = 0;
	EXPECT(0, "", kernel_replace(&filter, twin, &reason));
	EXPECT(0, "", listener_renew(&listener, &reason));
	assert_int_equal(twin->config->listener >> ABI_LISTENER_SHIFT, listener.id);
	assert_true((__u32)twin->config->listener > (__u32)filter.config->listener);
	assert_int_equal(listener.count, 1);
	assert_int_equal(listener.interfaces_count, 2);
	put(&filter, 1, 1);
	assert_int_equal(visits(0), 1);
	/* A filter of another name is nobody's here. */
	strcpy(twin->config->name, "b");
	put(&filter, 1, 1);
	assert_int_equal(visits(0), 0);
	strcpy(twin->config->name, "a");
	world.graces = 0;
	listener_stop(&listener);
	assert_true(!twin->config->listener && world.graces == 1);
	listener_close(&listener);
	listener_close(&listener);
	EXPECT(0, "", listen_to_a());
	strcpy(twin->config->name, "b");
	EXPECT(0, NULL, listener_renew(&listener, &reason));
	assert_int_equal(twin->config->listener, 0);
	listener_close(&listener);
}

static bool stops;

/* While a read is under way, the filter drops more. */
static int visit_and_drop(const struct abi_sample *sample, void *context)
{
	put(&filter, 1, 1);
	return visit(sample, context);
}

WORLD_TEST(test_listener_in_a_flood)
{
	stand();
	EXPECT(0, "", listen_to_a());
	put(&filter, 1, 1);
	visited = 0;
	assert_int_equal(listener_read(&listener, visit_and_drop, &listener), 0);
	assert_int_equal(visited, 4096);
	listener_close(&listener);
}

/* Filters come, and go: their last counts stay. */
WORLD_TEST(test_listener_follows)
{
	struct abi_sampling sum;

	stand();
	EXPECT(0, "", listen_to_a());
	make_filter(&other, "");
	memset(other.config, 0, sizeof(*other.config));
	EXPECT(0, "", kernel_attach(&other, "lo", KERNEL_SKB, &reason));
	EXPECT(0, "", listener_renew(&listener, &reason));
	assert_int_equal(listener.count, 2);
	assert_int_equal(listener.interfaces_count, 3);
	put(&other, 1, 1);
	put(&filter, 1, 1);
	assert_int_equal(visits(0), 2);
	/* Somebody else has one that is not set up: no matter. */
	other.config->listener = 7ULL << ABI_LISTENER_SHIFT | 0xffffffff;
	EXPECT(0, NULL, listener_renew(&listener, &reason));
	assert_int_equal(listener.interfaces_count, 2);
	count_samples(9, 8, 7);
	world.interface[ETH0].xdp[INTERFACE_NATIVE] = world.interface[ETH1].xdp[INTERFACE_NATIVE] =
		0;
	EXPECT(0, NULL, listener_renew(&listener, &reason));
	assert_int_equal(listener.count, 2);
	counted(9, 8, 7);
	EXPECT(0, NULL, listener_renew(&listener, &reason));
	assert_int_equal(listener.count, 1);
	assert_int_equal(filter.config->listener, 0);
	counted(9, 8, 7);
	world.cpus = 0;
	EXPECT(-ENOMEM, "cannot read what was seen", listener_count(&listener, &sum, &reason));
	world.cpus = -ENOENT;
	EXPECT(-ENOENT, "cannot read what was seen", listener_count(&listener, &sum, &reason));
	listener_close(&listener);
	assert_int_equal(other.config->listener, 7ULL << ABI_LISTENER_SHIFT | 0xffffffff);
}

static void renew_lease(void)
{
	if (!stops || world.pauses < 3)
		filter.config->listener++;
}

WORLD_TEST(test_two_listeners)
{
	const __u64 lease = 7ULL << ABI_LISTENER_SHIFT | (__u32)(WORLD_TICK + LEASE_TICKS);

	stand();
	world.paused = renew_lease;
	filter.config->listener = lease;
	EXPECT(-EBUSY, "another monitor or program listens to the filter on 'eth0': one at a time",
	       listen_to_a());
	assert_int_equal(filter.config->listener, lease + 1);
	assert_true(!listener.fd && !listener.id);
	/* The other one is dead. */
	world.paused = NULL;
	world.pauses = 0;
	EXPECT(0, NULL, listen_to_a());
	assert_in_range(world.pauses, 45, 60);
	assert_int_equal(world.paused_ms, 100);
	filter.config->listener = lease + 100;
	EXPECT(-EBUSY, "another monitor", listener_renew(&listener, &reason));
	listener_close(&listener);
	assert_int_equal(filter.config->listener, lease + 100);
	world.run = NULL;
}

static void end_listening(void)
{
	listener_close(&listener);
}

static int listen_and_read(void)
{
	struct abi_sampling sum;
	int error = listen_to_a();

	if (!error)
		error = listener_renew(&listener, &reason);
	return error ? error : listener_count(&listener, &sum, &reason);
}

/* ---- counters ---- */

static void set_counter(__u32 row, int cpu, int counter, __u64 packets)
{
	const struct abi_counter value = { packets, 10 * packets };

	assert_int_equal(pwrite(map_of(&filter, KERNEL_COUNTERS), &value, sizeof(value),
				((row * WORLD_CPUS + cpu) * ABI_COUNTERS + counter) *
					sizeof(value)),
			 sizeof(value));
}

WORLD_TEST(test_counters)
{
	struct interface all[] = { { .index = ETH0 },
				   { .index = GRE, .master = ETH0 },
				   { .index = WG, .master = 9 } };
	struct abi_counter sum[ABI_COUNTERS], rows[WORLD_CPUS * ABI_COUNTERS];
	__u64 packets;

	stand();
	set_counter(ETH0, 0, 2, 5);
	set_counter(ETH0, 2, 2, 6);
	set_counter(ETH0, 1, ABI_COUNTERS - 1, 900); /* no packets */
	set_counter(GRE, 0, 0, 100);
	set_counter(WG, 0, 0, 1000);
	set_counter(ETH0 + ABI_COUNTER_SENT, 0, 1, 10000);
	set_counter(ABI_COUNTER_ROWS - 1, 0, 1, 100000);
	set_counter(ABI_COUNTER_ROWS + ETH0, 2, 2, 4); /* at the last reset */
	EXPECT(0, "", kernel_counters(&filter, sum, &reason));
	assert_true(sum[2].packets == 7 && sum[2].bytes == 70 && sum[0].packets == 1100 &&
		    sum[1].packets == 110000);
	EXPECT(0, "", kernel_row_counters(&filter, ETH0, rows, &reason));
	assert_true(rows[2].packets == 5 && rows[2 * ABI_COUNTERS + 2].packets == 2 &&
		    rows[2 * ABI_COUNTERS + 2].bytes == 20);
	EXPECT(0, "",
	       kernel_counted_on(&filter, &filter.attachments[0], all, COUNT(all), &packets,
				 &reason));
	assert_int_equal(packets, 107);
	EXPECT(0, "", kernel_reset_counters(&filter, &reason));
	EXPECT(0, "", kernel_counters(&filter, sum, &reason));
	for (size_t i = 0; i < ABI_COUNTERS; i++)
		assert_true(!sum[i].packets && !sum[i].bytes);
	set_counter(ETH0, 0, 2, 6);
	EXPECT(0, "", kernel_counters(&filter, sum, &reason));
	assert_int_equal(sum[2].packets, 1);
	world.cpus = 0;
	EXPECT(-ENOTSUP, "cannot tell how many CPUs there are",
	       kernel_counters(&filter, sum, &reason));
	EXPECT(-ENOTSUP, "cannot tell", kernel_row_counters(&filter, ETH0, rows, &reason));
	EXPECT(-ENOTSUP, "cannot tell", kernel_reset_counters(&filter, &reason));
}

static int read_counters(void)
{
	struct abi_counter sum[ABI_COUNTERS];

	return kernel_counters(&filter, sum, &reason);
}

static int reset_counters(void)
{
	return kernel_reset_counters(&filter, &reason);
}

/* ---- whether packets reach a filter ---- */

static const struct watch_case {
	int received, counted; /* packets in each pause */
	int late;              /* instead of `received`, from LATE_MS on */
	bool is_bypassed;
	__s64 from_ms, to_ms; /* when the watch ends */
	void (*before)(void);
} * watched;

static __u64 watch_counted;

static void pass_packets(void)
{
	struct world_interface *eth0 = &world.interface[ETH0];

	eth0->counts.rx_packets += world.now_ms - 1000000 < 2500 + 200 ? watched->received :
									 watched->late;
	watch_counted += watched->counted;
	set_counter(ETH0, 1, 0, watch_counted);
}

static void watch_dispatched(void)
{
	filter.attachments[0].root_id = 99;
}

static void watch_older(void)
{
	filter.is_other_version = true;
}

static void watch_offloaded(void)
{
	filter.attachments[0].mode = INTERFACE_OFFLOAD;
}

static void watch_ip(void)
{
	filter.attachments[0].has_ethernet = false;
}

static void watch_another(void)
{
	world.interface[ETH0].xdp[INTERFACE_NATIVE] = foreign_program("foreign");
}

static void watch_reset(void)
{
	world.interface[ETH0].counts.rx_packets = 1 << 20;
}

WORLD_TEST(test_watch)
{
	static const struct watch_case cases[] = {
		{ 0, 0, 0, false, 1000, 1300 },
		{ 5, 0, 5, true, 2500, 2900 },
		{ 5, 5, 5, false, 1, 1 },
		{ 0, 5, 0, false, 1, 1 },
		{ 5, 0, 0, false, 4500, 4700 },
		{ -5, 0, 0, false, 1, 1, watch_reset },
		{ 5, 0, 5, false, 0, 0, watch_dispatched },
		{ 5, 0, 5, false, 0, 0, watch_older },
		{ 5, 0, 5, false, 0, 0, watch_offloaded },
		{ 5, 0, 5, false, 0, 0, watch_ip },
		{ 5, 0, 5, false, 0, 0, watch_another },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		world_reset();
		stand();
		filter.attachments_count = 1;
		watched = &cases[i];
		watch_counted = 0;
		world.paused = pass_packets;
		if (cases[i].before)
			cases[i].before();
		kernel_watch(&filter, 1, 1000);
		assert_int_equal(filter.attachments[0].is_bypassed, cases[i].is_bypassed);
		assert_in_range(world.now_ms - 1000000, cases[i].from_ms, cases[i].to_ms);
		close_filters();
	}
}

/* ---- objects ---- */

WORLD_TEST(test_object_file)
{
	struct kernel_sizes sizes = {
		{ .format = BUCKET_32, .is_alone = 1 }, 2, 4096, 1 << 16, 0, ABI_HINT_SHIFT_MOST
	};
	static const enum kernel_map_name names[] = { KERNEL_BUCKETS, KERNEL_RECORDS, KERNEL_COUNTS,
						      KERNEL_HINTS, KERNEL_CONFIG };
	struct bpf_object *object;
	struct bpf_map *map;
	size_t bytes;
	char *file;

	EXPECT(0, "", kernel_make_object_file(&sizes, &file, &bytes, &reason));
	object = bpf_object__open_mem(file, bytes, NULL);
	assert_non_null(object);
	for (size_t i = 0; i < COUNT(names); i++) {
		map = bpf_object__find_map_by_name(object, kernel_map_names[names[i]]);
		assert_int_equal(bpf_map__max_entries(map), kernel_sizes_entries(&sizes, names[i]));
		assert_int_equal(bpf_map__value_size(map),
				 names[i] == KERNEL_BUCKETS ? 16 :
				 names[i] == KERNEL_CONFIG  ? sizeof(struct abi_config) :
				 names[i] == KERNEL_COUNTS  ? 16 :
							      8);
	}
	map = bpf_object__find_map_by_name(object, ".rodata");
	assert_memory_equal(bpf_map__initial_value(map, &bytes), &sizes.options,
			    sizeof(sizes.options));
	bpf_object__close(object);
	free(file);
	sizes.options.format = BUCKET_17;
	EXPECT(0, "", kernel_make_object_file(&sizes, &file, &bytes, &reason));
	assert_non_null(
		memmem(file, bytes, semisort_prefixes(), BUCKET_SORTED_CODES * sizeof(__u16)));
	free(file);
	world.release = "5.15";
	world.lacks = BPF_FUNC_loop;
	EXPECT(-ENOSYS, "this kernel (5.15) lacks bpf_loop(), which",
	       kernel_make_object_file(&sizes, &file, &bytes, &reason));
	world.lacks = BPF_FUNC_xdp_get_buff_len;
	EXPECT(-ENOSYS, "(5.15) lacks XDP for frames in several buffers, which",
	       kernel_make_object_file(&sizes, &file, &bytes, &reason));
	EXPECT(-ENOSYS, "lacks XDP", kernel_refuse(&reason, -EINVAL, "x", "y"));
	EXPECT(-ENOSYS, "lacks XDP", kernel_refuse(&reason, -EACCES, "x", "y"));
	EXPECT(-ENOENT, "x y: No such file or directory",
	       kernel_refuse(&reason, -ENOENT, "x ", "y"));
	world.lacks = 0;
	EXPECT(-EIO, "x y: Invalid argument", kernel_refuse(&reason, -EINVAL, "x ", "y"));
	for (int capability = 0; capability < 64; capability++) {
		const bool is_needed = capability == CAP_BPF || capability == CAP_NET_ADMIN ||
				       capability == CAP_PERFMON;

		world.has = ~(1ULL << capability);
		EXPECT(-EPERM, is_needed ? "run it as root" : "though this process has CAP_BPF",
		       kernel_refuse(&reason, -EPERM, "x ", "y"));
	}
}

static int make_object_file(void)
{
	size_t bytes;
	char *file;
	const int error = kernel_make_object_file(&small, &file, &bytes, &reason);

	if (!error)
		free(file);
	return error;
}

static int make_another(void)
{
	const int error = kernel_create(&(struct kernel_sizes){ small.options, 1, 1024, 2048, 0,
								small.hint_shift, &filter },
					&other, &reason);

	kernel_close(&other);
	return error;
}

/* ---- the program of bench ---- */

static __u32 steps_of_run;
static bool has_flows;

static int run_bench(union bpf_attr *attr)
{
	struct bench_head *head = (void *)(unsigned long)attr->test.data_out;

	assert_int_equal(attr->test.repeat, 8);
	head->next += steps_of_run;
	attr->test.retval = has_flows ? XDP_DROP : XDP_ABORTED;
	attr->test.duration = 77;
	return steps_of_run ? 0 : -EFAULT;
}

static struct kernel_bench bench;

static int open_bench(void)
{
	const int error = kernel_bench_open(&filter, 2, &bench, &reason);

	if (!error)
		kernel_bench_close(&bench);
	return error;
}

WORLD_TEST(test_bench)
{
	char frame[64] = {};
	__u32 ns;

	stand();
	EXPECT(0, "", kernel_bench_open(&filter, 2, &bench, &reason));
	bench.ipv4[BENCH_FLOWS - 1].proto = bench.ipv6[BENCH_FLOWS - 1].proto = 1;
	bench.stamps[2 * BENCH_SLICES - 1] = 1;
	world.run = run_bench;
	steps_of_run = 8;
	has_flows = true;
	EXPECT(0, "", kernel_bench_run(&bench, frame, sizeof(frame), 8, &ns, &reason));
	assert_int_equal(ns, 77);
	EXPECT(0, "", kernel_bench_run(&bench, frame, sizeof(frame), 8, NULL, &reason));
	has_flows = false;
	EXPECT(-EPROTO, "did not find its flows",
	       kernel_bench_run(&bench, frame, sizeof(frame), 8, NULL, &reason));
	has_flows = true;
	steps_of_run = 7;
	EXPECT(-EPROTO, "did not find its flows",
	       kernel_bench_run(&bench, frame, sizeof(frame), 8, NULL, &reason));
	steps_of_run = 0;
	EXPECT(-EFAULT, "cannot run the program to measure with",
	       kernel_bench_run(&bench, frame, sizeof(frame), 8, NULL, &reason));
	kernel_bench_close(&bench);
	assert_int_equal(kernel_bench_bytes(2), BENCH_FLOWS * 56 + 2 * BENCH_SLICES * 8);
}

/* ---- what libbpf says ---- */

static int others_words;

static int print_for_others(enum libbpf_print_level level, const char *format, va_list arguments)
{
	(void)level, (void)format, (void)arguments;
	return ++others_words;
}

WORLD_TEST(test_words)
{
	libbpf_print_fn_t before = libbpf_set_print(print_for_others);

	kernel_catch_no_messages();
	stand();
	assert_int_equal(others_words, 0);
	world.interface[ETH0].is_covered = true;
	kernel_catch_messages();
	assert_true(bpf_xdp_attach(ETH0, -1, XDP_FLAGS_SKB_MODE, NULL) < 0);
	assert_string_equal(kernel_error_text(),
			    "Cannot attach when an upper device already has a program");
	assert_true(kernel_says_above() && !others_words);
	EXPECT(-EBUSY, "x y: an interface above it",
	       kernel_refuse_in_words(&reason, -EEXIST, "x ", "y"));
	EXPECT(-ENOENT, "y: No such file or directory (Cannot attach when",
	       kernel_refuse_in_words(&reason, -ENOENT, "x ", "y"));
	EXPECT(-EEXIST, "y: File exists", kernel_refuse(&reason, -EEXIST, "x ", "y"));
	assert_null(strchr(reason.text, '('));
	kernel_catch_messages();
	assert_string_equal(kernel_error_text(), "");
	kernel_catch_no_messages();
	assert_true(bpf_xdp_attach(ETH0, -1, XDP_FLAGS_SKB_MODE, NULL) < 0);
	assert_true(others_words > 0);
	assert_string_equal(kernel_error_text(), "");
	libbpf_set_print(before);
	kernel_catch_messages();
}

WORLD_TEST(test_tick)
{
	double per_second;
	__u32 tick;

	EXPECT(0, "", kernel_tick(&tick, &per_second, &reason));
	assert_int_equal(tick, WORLD_TICK);
	assert_int_equal(per_second * (1 << ABI_TICK_SHIFT) + .5, ticks_jiffies());
}

/* ---- each call fails ---- */

static int ask_tick(void)
{
	double per_second;
	__u32 tick;

	return kernel_tick(&tick, &per_second, &reason);
}

static int watch(void)
{
	kernel_watch(&filter, 1, 10);
	return 0;
}

static void stay(void)
{
}

WORLD_TEST(test_each_call_fails)
{
	static const char runs[] = "eth0 native xdp_cuckoo(a), eth1 native xdp_cuckoo(a)";
	static int (*const acts[])(void) = { listen_and_read,  read_counters, reset_counters,
					     make_object_file, make_another,  open_bench,
					     ask_tick,         watch };

	for (size_t i = 0; i < COUNT(acts); i++)
		fail_each_call(&(struct steps){ stand, acts[i], i ? stay : end_listening, runs,
						runs, .begins_once = true });
}

TEST_MAIN(world_warm_up, NULL)
