// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The maps of a filter: made, mapped, closed; and its programs, loaded over them. */
#include "kernel/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "kernel/internal.h"
#include "table/semisort.h"
#include "xdp_cuckoo.skel.h"

const char *const kernel_map_names[KERNEL_MAPS] = {
	[KERNEL_CONFIG] = ABI_CONFIG_MAP,   [KERNEL_BUCKETS] = ABI_BUCKETS_MAP,   [KERNEL_RECORDS] = ABI_RECORDS_MAP,
	[KERNEL_COUNTS] = ABI_COUNTS_MAP,   [KERNEL_COUNTERS] = ABI_COUNTERS_MAP, [KERNEL_HINTS] = ABI_HINTS_MAP,
	[KERNEL_SAMPLES] = ABI_SAMPLES_MAP, [KERNEL_SAMPLING] = ABI_SAMPLING_MAP,
};

/*
 * What the kernel said to this thread in words, through libbpf, since kernel_listen(); it tells more than errno. Only
 * bpf_xdp_attach() has such words, so only who called it last shows them.
 */
static _Thread_local char kernel_message[REASON_BYTES / 2];
static _Thread_local bool is_listening;

/* Of the program that this is part of, which may use libbpf as well. */
static libbpf_print_fn_t others_print;

static int keep_kernel_message(enum libbpf_print_level level, const char *format, va_list arguments)
{
	static const char marker[] = "Kernel error message: ";
	char line[512];
	const char *found;

	if (!is_listening) {
		const libbpf_print_fn_t print = __atomic_load_n(&others_print, __ATOMIC_ACQUIRE);

		return print ? print(level, format, arguments) : 0;
	}
	vsnprintf(line, sizeof(line), format, arguments);
	found = strstr(line, marker);
	if (found)
		snprintf(kernel_message, sizeof(kernel_message), "%.*s", (int)strcspn(found + strlen(marker), "\n"),
			 found + strlen(marker));
	return 0;
}

void kernel_listen(void)
{
	libbpf_print_fn_t before;

	kernel_message[0] = '\0';
	is_listening = true;
	before = libbpf_set_print(keep_kernel_message);
	if (before != keep_kernel_message)
		__atomic_store_n(&others_print, before, __ATOMIC_RELEASE);
}

void kernel_listen_no_more(void)
{
	is_listening = false;
}

const char *kernel_words(void)
{
	return kernel_message;
}

static int refuse(struct reason *reason, int error, const char *what, const char *subject, const char *words)
{
	if (error == -EPERM || error == -EACCES)
		return reason_set(reason, error,
				  "%s%s: not permitted; run it as root, or with "
				  "CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON",
				  what, subject);
	/* Commands take -EINVAL for bad input, which this is not. */
	return reason_set(reason, error == -EINVAL ? -EIO : error, "%s%s: %s%s%s%s", what, subject, strerror(-error),
			  *words ? " (" : "", words, *words ? ")" : "");
}

int kernel_refused(struct reason *reason, int error, const char *what, const char *subject)
{
	return refuse(reason, error, what, subject, "");
}

int kernel_refused_in_words(struct reason *reason, int error, const char *what, const char *subject)
{
	return refuse(reason, error, what, subject, kernel_message);
}

/* ---- maps as memory ---- */

/* Per-CPU values are not memory that can be mapped; the ring is its reader's to map. */
static bool is_mappable(enum kernel_map_name name)
{
	return name != KERNEL_COUNTERS && name != KERNEL_SAMPLES && name != KERNEL_SAMPLING;
}

int kernel_map_part(const struct kernel_map *map, size_t offset, size_t bytes)
{
	const size_t start = offset & ~((size_t)sysconf(_SC_PAGESIZE) - 1), end = offset + bytes;

	/* Who looks at a table for every flow opens it as often. */
	if (map->part->start <= start && end <= map->part->end)
		return 0;
	if (mmap((char *)map->memory + start, end - start, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, map->fd,
		 start) == MAP_FAILED)
		return -errno;
	*map->part = (struct kernel_part){ start, end };
	return 0;
}

/* Tables get only their place: see kernel_map_part(). */
static int map_memory(struct kernel_map *map, bool is_table)
{
	void *memory = mmap(NULL, map->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		return -errno;
	map->memory = memory;
	map->part = calloc(1, sizeof(*map->part));
	if (!map->part)
		return -ENOMEM;
	return is_table ? 0 : kernel_map_part(map, 0, map->bytes);
}

int kernel_map_memory(struct kernel_filter *filter, struct reason *reason)
{
	int error = 0;

	for (enum kernel_map_name name = 0; name < KERNEL_MAPS && !error; name++)
		if (is_mappable(name) && !filter->map[name].memory &&
		    (name == KERNEL_CONFIG || !filter->is_other_version))
			error = map_memory(&filter->map[name],
					   name == KERNEL_BUCKETS || name == KERNEL_RECORDS || name == KERNEL_COUNTS);
	filter->config = filter->map[KERNEL_CONFIG].memory;
	return error ? kernel_refused(reason, error, "cannot map the filter's table", "") : 0;
}

static void close_map(struct kernel_map *map)
{
	if (map->memory)
		munmap(map->memory, map->bytes);
	free(map->part);
	if (map->fd > 0)
		close(map->fd);
}

void kernel_close(struct kernel_filter *filter)
{
	for (enum kernel_map_name name = 0; name < KERNEL_MAPS; name++)
		close_map(&filter->map[name]);
	xdp_cuckoo__destroy(filter->program[false]);
	xdp_cuckoo__destroy(filter->program[true]);
	free(filter->attachments);
	*filter = (struct kernel_filter){};
}

void kernel_filters_free(struct kernel_filter *filters, size_t count)
{
	for (size_t i = 0; i < count; i++)
		kernel_close(&filters[i]);
	free(filters);
}

int kernel_add_attachment(struct kernel_filter *filter, const struct kernel_attachment *attachment)
{
	size_t count = filter->attachments_count;
	struct kernel_attachment *grown = realloc(filter->attachments, (count + 1) * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	grown[count] = *attachment;
	filter->attachments = grown;
	filter->attachments_count++;
	return 0;
}

/* ---- loading ---- */

static struct bpf_map *skeleton_map(const struct xdp_cuckoo *skeleton, enum kernel_map_name name)
{
	return bpf_object__find_map_by_name(skeleton->obj, kernel_map_names[name]);
}

int kernel_reuse_maps(const struct kernel_filter *filter, const struct bpf_object *object)
{
	int error = 0;

	for (enum kernel_map_name name = 0; name < KERNEL_MAPS && !error; name++)
		if (filter->map[name].fd)
			error = bpf_map__reuse_fd(bpf_object__find_map_by_name(object, kernel_map_names[name]),
						  filter->map[name].fd);
	return error;
}

void kernel_set_constants(const struct abi_options *options, volatile const struct abi_options *xc_options,
			  volatile const __u16 *xc_prefixes)
{
	memcpy((void *)xc_options, options, sizeof(*options));
	if (options->format == BUCKET_17)
		memcpy((void *)xc_prefixes, semisort_prefixes(), BUCKET_SORTED_CODES * sizeof(*xc_prefixes));
}

__u32 kernel_bucket_bytes(const struct abi_options *options)
{
	return options->format == BUCKET_32 ? 2 * sizeof(__u64) : sizeof(__u64);
}

static __u64 plan_entries(const struct kernel_plan *plan, enum kernel_map_name name)
{
	switch (name) {
	case KERNEL_BUCKETS:
		return plan->tables * plan->bucket_bytes / kernel_bucket_bytes(&plan->options);
	case KERNEL_RECORDS:
		return plan->options.is_exact ? plan->tables * plan->slots : 1;
	case KERNEL_COUNTS:
		return plan->options.has_counts ? plan->tables * plan->slots : 1;
	case KERNEL_HINTS:
		return ABI_TABLES * ABI_HINTS / sizeof(__u64);
	default:
		return 1;
	}
}

/* What goes on where a filter takes another's place: its counters, and what a listener reads. */
static int share_maps(const struct kernel_filter *predecessor, const struct xdp_cuckoo *skeleton)
{
	static const enum kernel_map_name shared[] = { KERNEL_COUNTERS, KERNEL_SAMPLES, KERNEL_SAMPLING };
	int error = 0;

	for (size_t i = 0; i < sizeof(shared) / sizeof(shared[0]) && !error; i++)
		error = bpf_map__reuse_fd(skeleton_map(skeleton, shared[i]), predecessor->map[shared[i]].fd);
	return error;
}

static int size_maps(const struct kernel_plan *plan, const struct xdp_cuckoo *skeleton)
{
	static const enum kernel_map_name sized[] = { KERNEL_BUCKETS, KERNEL_RECORDS, KERNEL_COUNTS };
	int error = bpf_map__set_value_size(skeleton->maps.xc_buckets, kernel_bucket_bytes(&plan->options));

	for (size_t i = 0; i < sizeof(sized) / sizeof(sized[0]) && !error; i++)
		error = bpf_map__set_max_entries(skeleton_map(skeleton, sized[i]), plan_entries(plan, sized[i]));
	return plan->predecessor && !error ? share_maps(plan->predecessor, skeleton) : error;
}

/* The built-in object, of which nothing will be loaded but maps; NULL, with the reason. */
static struct xdp_cuckoo *open_object(const struct abi_options *options, struct reason *reason)
{
	struct xdp_cuckoo *skeleton;

	kernel_listen();
	skeleton = xdp_cuckoo__open();
	if (!skeleton) {
		kernel_refused(reason, -errno, "cannot open the built-in BPF object", "");
		return NULL;
	}
	kernel_set_constants(options, &skeleton->rodata->xc_options, skeleton->rodata->xc_prefixes);
	bpf_program__set_autoload(skeleton->progs.xdp_cuckoo, false);
	bpf_program__set_autoload(skeleton->progs.xdp_cuckoo_frags, false);
	return skeleton;
}

static struct bpf_program *program_of(const struct xdp_cuckoo *skeleton, bool is_frags)
{
	return is_frags ? skeleton->progs.xdp_cuckoo_frags : skeleton->progs.xdp_cuckoo;
}

int kernel_load_program(struct kernel_filter *filter, bool is_frags, struct reason *reason)
{
	struct xdp_cuckoo *skeleton;
	int error;

	if (filter->program[is_frags])
		return 0;
	skeleton = open_object(&filter->options, reason);
	if (!skeleton)
		return -ENOMEM;
	bpf_program__set_autoload(program_of(skeleton, is_frags), true);
	error = kernel_reuse_maps(filter, skeleton->obj);
	if (!error)
		error = xdp_cuckoo__load(skeleton);
	if (!error) {
		filter->program[is_frags] = skeleton;
		return 0;
	}
	xdp_cuckoo__destroy(skeleton);
	return kernel_refused(reason, error, "cannot load the BPF program", "");
}

int kernel_load_programs_of(const struct kernel_filter *other, struct kernel_filter *filter, struct reason *reason)
{
	int error = 0;

	for (size_t i = 0; i < other->attachments_count && !error; i++)
		error = kernel_load_program(filter, other->attachments[i].is_frags, reason);
	return error;
}

int kernel_program(const struct kernel_filter *filter, bool is_frags)
{
	return bpf_program__fd(program_of(filter->program[is_frags], is_frags));
}

/* Descriptors of its own, so that a created filter and a found one are closed the same way. */
static int take_created_map(struct kernel_filter *filter, const struct xdp_cuckoo *skeleton, enum kernel_map_name name)
{
	const struct bpf_map *created = skeleton_map(skeleton, name);
	struct kernel_map *map = &filter->map[name];
	struct bpf_map_info info = {};
	__u32 length = sizeof(info);

	map->fd = fcntl(bpf_map__fd(created), F_DUPFD_CLOEXEC, 0);
	if (map->fd < 0 || bpf_obj_get_info_by_fd(map->fd, &info, &length))
		return -errno;
	kernel_describe_map(&info, map);
	return 0;
}

static int create_maps(const struct kernel_plan *plan, struct kernel_filter *filter, struct reason *reason)
{
	struct xdp_cuckoo *skeleton = open_object(&plan->options, reason);
	int error;

	if (!skeleton)
		return -ENOMEM;
	error = size_maps(plan, skeleton);
	if (!error)
		error = xdp_cuckoo__load(skeleton);
	for (enum kernel_map_name name = 0; name < KERNEL_MAPS && !error; name++)
		error = take_created_map(filter, skeleton, name);
	xdp_cuckoo__destroy(skeleton);
	return error ? kernel_refused(reason, error, "cannot make the filter's maps", "") : 0;
}

int kernel_create(const struct kernel_plan *plan, struct kernel_filter *filter, struct reason *reason)
{
	int error;

	*filter = (struct kernel_filter){ .options = plan->options };
	error = create_maps(plan, filter, reason);
	if (!error)
		error = kernel_map_memory(filter, reason);
	if (!error && plan->predecessor)
		error = kernel_load_programs_of(plan->predecessor, filter, reason);
	if (error)
		kernel_close(filter);
	return error;
}

/* ---- sizes ---- */

/* The kernel gives each element of an array a multiple of 8 bytes, and whole pages to those it maps. */
void kernel_describe_map(const struct bpf_map_info *info, struct kernel_map *map)
{
	map->id = info->id;
	map->entries = info->max_entries;
	map->value_bytes = info->value_size;
	map->bytes = (size_t)info->max_entries * ((info->value_size + 7) & ~7U);
}

__u64 kernel_plan_bytes(const struct kernel_plan *plan)
{
	return plan->tables * plan->bucket_bytes + plan_entries(plan, KERNEL_RECORDS) * sizeof(__u64) +
	       plan_entries(plan, KERNEL_COUNTS) * sizeof(struct abi_counter) +
	       plan_entries(plan, KERNEL_HINTS) * sizeof(__u64);
}

__u64 kernel_filter_bytes(const struct kernel_filter *filter)
{
	return filter->map[KERNEL_BUCKETS].bytes + filter->map[KERNEL_RECORDS].bytes +
	       filter->map[KERNEL_COUNTS].bytes + filter->map[KERNEL_HINTS].bytes;
}
