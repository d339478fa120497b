// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Where the kernel loads no BPF for us, these take the place of libbpf's functions (the linker wraps them): an object's maps are
 * memory, and its programs are those of bpf/, compiled for the host. Tests see no difference, but for time: here a jiffy is
 * JIFFY_NS.
 */
#include <sched.h>
#include <time.h>

#include "steps/host_bpf.h"
#include "unit/raw_filter.h"

#define JIFFY_NS 250000
#define HOST_FD (1 << 20)     /* the first number of a program here, for bpf_prog_test_run_opts() */
#define FRAME_BYTES (1 << 16) /* of the memory for a frame */
#define LOW 0x10000000        /* where that may be: below 4 GiB */
#define LINEAR_BYTES 3520     /* in the first buffer of a frame, at most */

struct host_frame host_frame;
struct host_world host_world;
static struct host_object *const objects[] = { &host_xdp, &host_tc };
static const struct bpf_object *loaded[2]; /* as objects[i] */

#define WRAPPED(name, ...) \
	int __real_##name(__VA_ARGS__); \
	int __wrap_##name(__VA_ARGS__)
WRAPPED(bpf_object__load, struct bpf_object *object);
WRAPPED(bpf_map__fd, const struct bpf_map *map);
WRAPPED(bpf_program__fd, const struct bpf_program *program);
WRAPPED(bpf_object__find_map_fd_by_name, const struct bpf_object *object, const char *name);
WRAPPED(bpf_prog_test_run_opts, int program, struct bpf_test_run_opts *opts);
WRAPPED(bpf_map_lookup_elem, int fd, const void *key, void *value);
WRAPPED(bpf_map_update_elem, int fd, const void *key, const void *value, __u64 flags);
WRAPPED(kernel_tick, __u32 *tick, double *ticks_per_second, struct reason *reason);

static __u64 jiffies_now(void)
{
	struct timespec now;

	if (host_world.jiffies)
		return host_world.jiffies;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (1000000000ULL * now.tv_sec + now.tv_nsec) / JIFFY_NS;
}

int __wrap_kernel_tick(__u32 *tick, double *ticks_per_second, struct reason *reason)
{
	if (!loaded[0] && !loaded[1])
		return __real_kernel_tick(tick, ticks_per_second, reason);
	*tick = jiffies_now() >> ABI_TICK_SHIFT;
	*ticks_per_second = 1e9 / JIFFY_NS / (1 << ABI_TICK_SHIFT);
	return 0;
}

static void host_map_open(struct host_map *map, const struct bpf_map *of)
{
	const size_t page = sysconf(_SC_PAGESIZE);
	size_t bytes;

	if (map->memory) {
		munmap(map->memory, (size_t)map->entries * map->bytes);
		close(map->fd);
	}
	map->entries = bpf_map__max_entries(of);
	map->bytes = (bpf_map__value_size(of) + 7) & ~7U;
	map->is_per_cpu = bpf_map__type(of) == BPF_MAP_TYPE_PERCPU_ARRAY;
	map->fd = memfd_create(map->name, MFD_CLOEXEC);
	bytes = ((size_t)map->entries * map->bytes + page - 1) & ~(page - 1);
	if (map->fd < 0 || ftruncate(map->fd, bytes))
		abort();
	map->memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, map->fd, 0);
	if (map->memory == MAP_FAILED)
		abort();
}

/* A constant of the program. The linker has put it where nobody writes. */
static void set_constant(const struct bpf_object *object, const char *name, const volatile void *here, size_t bytes)
{
	const size_t page = sysconf(_SC_PAGESIZE), start = (size_t)here & ~(page - 1);
	const void *constant = raw_filter_constant(object, name);

	if (!constant || mprotect((void *)start, (size_t)here + bytes - start, PROT_READ | PROT_WRITE))
		abort();
	memcpy((void *)here, constant, bytes);
}

int __wrap_bpf_object__load(struct bpf_object *object)
{
	const bool is_tc = bpf_object__find_program_by_name(object, raw_filter_tc_names[0]);
	struct host_object *host = objects[is_tc];

	set_constant(object, "xc_options", host->options, sizeof(struct abi_options));
	set_constant(object, "xc_prefixes", host->prefixes, BUCKET_SORTED_CODES * sizeof(__u16));
	loaded[is_tc] = NULL;
	const int error = host_world.is_forced ? -EPERM : __real_bpf_object__load(object);
	if (error != -EPERM)
		return error;
	for (struct host_map *map = host->map; map->name; map++)
		host_map_open(map, bpf_object__find_map_by_name(object, map->name));
	loaded[is_tc] = object;
	return 0;
}

int __wrap_bpf_object__find_map_fd_by_name(const struct bpf_object *object, const char *name)
{
	for (size_t i = 0; i < 2; i++)
		for (struct host_map *map = objects[i]->map; loaded[i] == object && map->name; map++)
			if (!strcmp(map->name, name))
				return map->fd;
	return __real_bpf_object__find_map_fd_by_name(object, name);
}

int __wrap_bpf_map__fd(const struct bpf_map *map)
{
	for (size_t i = 0; i < 2; i++)
		if (loaded[i] && bpf_object__find_map_by_name(loaded[i], bpf_map__name(map)) == map)
			return __wrap_bpf_object__find_map_fd_by_name(loaded[i], bpf_map__name(map));
	return __real_bpf_map__fd(map);
}

int __wrap_bpf_program__fd(const struct bpf_program *program)
{
	for (size_t i = 0; i < 2; i++)
		for (int k = 0; loaded[i] && k < HOST_PROGRAMS && objects[i]->program[k].name; k++)
			if (bpf_object__find_program_by_name(loaded[i], objects[i]->program[k].name) == program)
				return HOST_FD + i * HOST_PROGRAMS + k;
	return __real_bpf_program__fd(program);
}

static struct host_map *host_map_of(int fd)
{
	for (size_t i = 0; i < 2; i++)
		for (struct host_map *map = objects[i]->map; loaded[i] && map->name; map++)
			if (map->fd == fd)
				return map;
	return NULL;
}

/* Here all that processors have is of the one that asks. */
int __wrap_bpf_map_lookup_elem(int fd, const void *key, void *value)
{
	const struct host_map *map = host_map_of(fd);
	const size_t number = *(const __u32 *)key, cpus = map && map->is_per_cpu ? libbpf_num_possible_cpus() : 0;

	if (!map)
		return __real_bpf_map_lookup_elem(fd, key, value);
	memset(value, 0, cpus * map->bytes);
	memcpy((char *)value + (cpus ? sched_getcpu() * map->bytes : 0), map->memory + number * map->bytes, map->bytes);
	return 0;
}

int __wrap_bpf_map_update_elem(int fd, const void *key, const void *value, __u64 flags)
{
	const struct host_map *map = host_map_of(fd);

	if (!map)
		return __real_bpf_map_update_elem(fd, key, value, flags);
	memcpy(map->memory + (size_t) * (const __u32 *)key * map->bytes, value, map->bytes);
	return 0;
}

/* The frame ends where no more memory is, below 4 GiB, where contexts can say where it is. */
static char *place_frame(const struct bpf_test_run_opts *opts, size_t linear)
{
	static char *end, *whole;

	if (!end) {
		end = mmap((void *)LOW, 2 * FRAME_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		whole = malloc(FRAME_BYTES);
		if ((unsigned long)end >> 32 || mprotect(end, FRAME_BYTES, PROT_READ | PROT_WRITE))
			abort();
		end += FRAME_BYTES;
	}
	memcpy(whole, opts->data_in, opts->data_size_in);
	memcpy(end - linear, opts->data_in, linear);
	host_frame.byte = whole;
	host_frame.bytes = opts->data_size_in;
	return end - linear;
}

int __wrap_bpf_prog_test_run_opts(int number, struct bpf_test_run_opts *opts)
{
	const bool is_tc = number >= HOST_FD + HOST_PROGRAMS;
	size_t linear = opts->data_size_in < LINEAR_BYTES ? opts->data_size_in : LINEAR_BYTES;
	char *data;

	if (number < HOST_FD)
		return __real_bpf_prog_test_run_opts(number, opts);
	if (!is_tc && opts->ctx_in)
		linear = ((const struct xdp_md *)opts->ctx_in)->data_end;
	data = place_frame(opts, linear);
	for (int i = 0; i < (opts->repeat ? opts->repeat : 1); i++) {
		struct xdp_md xdp = { .data = (__u32)(long)data,
				      .data_end = (__u32)(long)data + linear,
				      .ingress_ifindex = 1 };
		struct __sk_buff skb = {};

		if (is_tc && opts->ctx_in)
			memcpy(&skb, opts->ctx_in, sizeof(skb));
		skb.data = xdp.data;
		skb.data_end = xdp.data_end;
		skb.len = opts->data_size_in;
		skb.wire_len = skb.wire_len ? skb.wire_len : skb.len;
		skb.ifindex = 1;
		host_frame.jiffies = jiffies_now();
		opts->retval =
			objects[is_tc]->program[(number - HOST_FD) % HOST_PROGRAMS].run(is_tc ? (void *)&skb : &xdp);
	}
	return 0;
}
