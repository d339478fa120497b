// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Makes a filter from the built-in object: creates its maps, maps their memory, loads programs over them, closes it. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/memory.h"
#include "kernel/internal.h"
#include "table/semisort.h"
#include "xdp_cuckoo.skel.h"
#include "xdp_cuckoo_conntrack.skel.h"
#include "xdp_cuckoo_tc.skel.h"
#include "xdp_cuckoo_tc_conntrack.skel.h"

static const struct kernel_built_in filter_built_in = { "xdp_cuckoo", xdp_cuckoo__elf_bytes };
static const struct kernel_built_in conntrack_object = { "xdp_cuckoo", xdp_cuckoo_conntrack__elf_bytes };
static const struct kernel_built_in tc_built_in = { "xdp_cuckoo", xdp_cuckoo_tc__elf_bytes };
static const struct kernel_built_in tc_conntrack_object = { "xdp_cuckoo", xdp_cuckoo_tc_conntrack__elf_bytes };

/* `conntrack` NULL: the program looks no connection up. */
static const struct {
	const char *name;
	const struct kernel_built_in *object, *conntrack;
} programs[KERNEL_PROGRAMS] = {
	[KERNEL_XDP] = { "xdp_cuckoo", &filter_built_in, &conntrack_object },
	[KERNEL_XDP_FRAGS] = { "xdp_cuckoo_frags", &filter_built_in, &conntrack_object },
	[KERNEL_SENT] = { "xdp_cuckoo_sent", &tc_built_in, NULL },
	[KERNEL_IP] = { "xdp_cuckoo_ip", &tc_built_in, &tc_conntrack_object },
	[KERNEL_IP_SENT] = { "xdp_cuckoo_ips", &tc_built_in, NULL },
};

enum kernel_program kernel_program_at(const struct kernel_attachment *attachment)
{
	if (attachment->mode == INTERFACE_TC_SENT)
		return attachment->has_ethernet ? KERNEL_SENT : KERNEL_IP_SENT;
	if (attachment->mode == INTERFACE_TC)
		return KERNEL_IP;
	return attachment->is_frags ? KERNEL_XDP_FRAGS : KERNEL_XDP;
}

static struct bpf_map *map_of(const struct bpf_object *object, enum kernel_map_name name)
{
	return bpf_object__find_map_by_name(object, kernel_map_names[name]);
}

static struct bpf_program *program_of(const struct bpf_object *object, enum kernel_program which)
{
	return bpf_object__find_program_by_name(object, programs[which].name);
}

int kernel_reuse_maps(const struct kernel_filter *filter, const struct bpf_object *object)
{
	int error = 0;

	for (enum kernel_map_name name = 0; name < KERNEL_MAPS && !error; name++)
		if (filter->map[name].fd)
			error = bpf_map__reuse_fd(map_of(object, name), filter->map[name].fd);
	return error;
}

struct bpf_object *kernel_open_object(const struct kernel_built_in *built_in, const struct abi_options *options,
				      struct reason *reason)
{
	LIBBPF_OPTS(bpf_object_open_opts, named, .object_name = built_in->name);
	struct xdp_cuckoo__rodata *constants; /* bpf/maps.h gives them to every object */
	struct bpf_program *program;
	struct bpf_object *object;
	size_t size;
	const void *bytes = built_in->bytes(&size);

	kernel_catch_messages();
	object = bpf_object__open_mem(bytes, size, &named);
	if (!object) {
		kernel_refuse(reason, -errno, "cannot open the built-in BPF object", "");
		return NULL;
	}
	bpf_object__for_each_program(program, object)
	{
		bpf_program__set_autoload(program, false);
	}
	constants = (void *)bpf_map__initial_value(bpf_object__find_map_by_name(object, ".rodata"), &size);
	constants->xc_options = *options;
	if (options->format == BUCKET_17)
		memcpy(constants->xc_prefixes, semisort_prefixes(), sizeof(constants->xc_prefixes));
	return object;
}

static int load_program_of(const struct kernel_built_in *built_in, struct kernel_filter *filter,
			   enum kernel_program which, struct reason *reason)
{
	struct bpf_object *object = kernel_open_object(built_in, &filter->options, reason);
	struct bpf_program *program = object ? program_of(object, which) : NULL;
	int error;

	if (!object)
		return -ENOMEM;
	error = program ? bpf_program__set_autoload(program, true) : -EOPNOTSUPP;
	if (!error)
		error = kernel_reuse_maps(filter, object);
	if (!error)
		error = bpf_object__load(object);
	if (!error) {
		filter->program[which] = object;
		return 0;
	}
	bpf_object__close(object);
	return kernel_refuse(reason, error, "cannot load the BPF program", "");
}

/*
 * The functions that look up connections need the module nf_conntrack, and BTF. Where the module runs, BTF may be
 * missing: then the other object is loaded.
 */
int kernel_load_program(struct kernel_filter *filter, enum kernel_program which, struct reason *reason)
{
	const struct kernel_built_in *conntrack = programs[which].conntrack;
	int error = -EOPNOTSUPP;

	if (filter->program[which])
		return 0;
	if (conntrack && !access("/sys/module/nf_conntrack", F_OK))
		error = load_program_of(conntrack, filter, which, reason);
	if (conntrack && filter->config)
		filter->config->asks_conntrack = !error;
	return error ? load_program_of(programs[which].object, filter, which, reason) : 0;
}

int kernel_load_programs_of(const struct kernel_filter *other, struct kernel_filter *filter, struct reason *reason)
{
	int error = 0;

	for (size_t i = 0; i < other->attachments_count && !error; i++)
		error = kernel_load_program(filter, kernel_program_at(&other->attachments[i]), reason);
	return error;
}

int kernel_program(const struct kernel_filter *filter, enum kernel_program which)
{
	return bpf_program__fd(program_of(filter->program[which], which));
}

int kernel_program_info(int fd, struct bpf_prog_info *info)
{
	__u32 length = sizeof(*info);

	*info = (struct bpf_prog_info){};
	if (fd < 0)
		return fd;
	return bpf_obj_get_info_by_fd(fd, info, &length) ? -errno : 0;
}

int kernel_record_program(const struct kernel_filter *filter, struct kernel_attachment *attachment)
{
	struct bpf_prog_info info;
	int error = kernel_program_info(kernel_program(filter, kernel_program_at(attachment)), &info);

	if (!error)
		attachment->prog_id = attachment->root_id = info.id;
	return error;
}

/* Opens the built-in object and gives its maps their sizes. On failure NULL, and *reason is set. */
static struct bpf_object *open_sized(const struct kernel_sizes *sizes, struct reason *reason)
{
	static const enum kernel_map_name sized[] = { KERNEL_BUCKETS, KERNEL_RECORDS, KERNEL_COUNTS, KERNEL_HINTS };
	struct bpf_object *object = kernel_open_object(&filter_built_in, &sizes->options, reason);
	int error;

	if (!object)
		return NULL;
	error = bpf_map__set_value_size(map_of(object, KERNEL_BUCKETS), kernel_bucket_bytes(&sizes->options));
	for (size_t i = 0; i < sizeof(sized) / sizeof(sized[0]) && !error; i++)
		error = bpf_map__set_max_entries(map_of(object, sized[i]), kernel_sizes_entries(sizes, sized[i]));
	if (!error)
		return object;
	kernel_refuse(reason, error, "cannot size the filter's maps", "");
	bpf_object__close(object);
	return NULL;
}

int kernel_make_object_file(const struct kernel_sizes *sizes, char **file, size_t *bytes, struct reason *reason)
{
	int error = kernel_lacks_reason(reason);
	struct bpf_object *object;
	const void *built_in;
	size_t size;

	if (error)
		return error;
	object = open_sized(sizes, reason);
	if (!object)
		return -ENOMEM;
	built_in = filter_built_in.bytes(&size);
	error = kernel_write_object_file(object, bpf_object__find_map_by_name(object, ".rodata"), built_in, size, file,
					 bytes);
	bpf_object__close(object);
	return error ? reason_set(reason, error, "cannot make an object of the built-in program: %s",
				  strerror(-error)) :
		       0;
}

int kernel_create(const struct kernel_sizes *sizes, struct kernel_filter *filter, struct reason *reason)
{
	/* The filter takes these over from its predecessor: the counters, and what a listener reads. */
	static const enum kernel_map_name shared[] = { KERNEL_COUNTERS, KERNEL_SAMPLES, KERNEL_SAMPLING };
	struct bpf_object *object;
	int error = 0;

	*filter = (struct kernel_filter){ .options = sizes->options };
	object = open_sized(sizes, reason);
	if (!object) {
		kernel_close(filter);
		return -ENOMEM;
	}
	for (size_t i = 0; sizes->predecessor && i < sizeof(shared) / sizeof(shared[0]) && !error; i++)
		error = bpf_map__reuse_fd(map_of(object, shared[i]), sizes->predecessor->map[shared[i]].fd);
	if (!error)
		error = bpf_object__load(object);
	/* Duplicates the descriptors, so that created and found filters are closed in the same way. */
	for (enum kernel_map_name name = 0; name < KERNEL_MAPS && !error; name++) {
		struct bpf_map_info info = {};
		__u32 length = sizeof(info);
		int *fd = &filter->map[name].fd;

		*fd = fcntl(bpf_map__fd(map_of(object, name)), F_DUPFD_CLOEXEC, 0);
		if (*fd < 0 || bpf_obj_get_info_by_fd(*fd, &info, &length))
			error = -errno;
		else
			kernel_describe_map(&info, &filter->map[name]);
	}
	bpf_object__close(object);
	error = error ? kernel_refuse(reason, error, "cannot make the filter's maps", "") :
			kernel_map_memory(filter, reason);
	if (!error && sizes->predecessor)
		error = kernel_load_programs_of(sizes->predecessor, filter, reason);
	if (error)
		kernel_close(filter);
	return error;
}

void kernel_close(struct kernel_filter *filter)
{
	for (enum kernel_map_name name = 0; name < KERNEL_MAPS; name++) {
		struct kernel_map *map = &filter->map[name];

		if (map->memory)
			munmap(map->memory, map->bytes);
		free(map->part);
		if (map->fd > 0)
			close(map->fd);
	}
	for (enum kernel_program which = 0; which < KERNEL_PROGRAMS; which++)
		bpf_object__close(filter->program[which]);
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
	if (array_grow(&filter->attachments, filter->attachments_count, sizeof(*attachment)))
		return -ENOMEM;
	filter->attachments[filter->attachments_count++] = *attachment;
	return 0;
}

/* ---- the maps of a filter as memory ---- */

const char *const kernel_map_names[KERNEL_MAPS] = {
	[KERNEL_CONFIG] = ABI_CONFIG_MAP,     [KERNEL_BUCKETS] = ABI_BUCKETS_MAP,
	[KERNEL_RECORDS] = ABI_RECORDS_MAP,   [KERNEL_COUNTS] = ABI_COUNTS_MAP,
	[KERNEL_COUNTERS] = ABI_COUNTERS_MAP, [KERNEL_HINTS] = ABI_HINTS_MAP,
	[KERNEL_RATES] = ABI_RATES_MAP,       [KERNEL_RATE_CREDITS] = ABI_RATE_CREDITS_MAP,
	[KERNEL_SAMPLES] = ABI_SAMPLES_MAP,   [KERNEL_SAMPLING] = ABI_SAMPLING_MAP,
};

int kernel_map_part(const struct kernel_map *map, size_t offset, size_t bytes)
{
	const size_t start = offset & ~((size_t)sysconf(_SC_PAGESIZE) - 1), end = offset + bytes;

	/* Reading a table opens the same parts again and again: one for records, one for addresses. */
	for (int i = 0; i < 2; i++)
		if (map->part[i].start <= start && end <= map->part[i].end)
			return 0;
	if (mmap((char *)map->memory + start, end - start, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, map->fd,
		 start) == MAP_FAILED)
		return -errno;
	map->part[1] = map->part[0];
	map->part[0] = (struct kernel_part){ start, end };
	return 0;
}

const void *kernel_map_window(const struct kernel_map *map, size_t offset, size_t bytes)
{
	const size_t skipped = offset % sysconf(_SC_PAGESIZE);
	char *window = mmap(NULL, bytes + skipped, PROT_READ, MAP_SHARED, map->fd, offset - skipped);

	return window == MAP_FAILED ? NULL : window + skipped;
}

void kernel_unmap_window(const void *window, size_t bytes)
{
	const size_t skipped = (size_t)window % sysconf(_SC_PAGESIZE);

	munmap((char *)window - skipped, bytes + skipped);
}

int kernel_map_memory(struct kernel_filter *filter, struct reason *reason)
{
	int error = 0;

	for (enum kernel_map_name name = 0; name < KERNEL_MAPS && !error; name++) {
		const bool is_table = name == KERNEL_BUCKETS || name == KERNEL_RECORDS || name == KERNEL_COUNTS ||
				      name == KERNEL_RATES;
		struct kernel_map *map = &filter->map[name];
		void *memory;

		/* Per-CPU maps cannot be mapped. Whoever reads the ring maps it. */
		if (name == KERNEL_COUNTERS || name == KERNEL_SAMPLES || name == KERNEL_SAMPLING ||
		    name == KERNEL_RATE_CREDITS || map->memory || (name != KERNEL_CONFIG && filter->is_other_version))
			continue;
		/* A table, and what few filters use, gets only an address range; kernel_map_part() maps parts of it. */
		memory = mmap(NULL, map->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (memory == MAP_FAILED) {
			error = -errno;
			break;
		}
		map->memory = memory;
		map->part = calloc(2, sizeof(*map->part));
		error = !map->part ? -ENOMEM : is_table ? 0 : kernel_map_part(map, 0, map->bytes);
	}
	filter->config = filter->map[KERNEL_CONFIG].memory;
	return error ? kernel_refuse(reason, error, "cannot map the filter's table", "") : 0;
}

__u32 kernel_bucket_bytes(const struct abi_options *options)
{
	return options->format == BUCKET_32 ? 2 * sizeof(__u64) : sizeof(__u64);
}

__u64 kernel_sizes_entries(const struct kernel_sizes *sizes, enum kernel_map_name name)
{
	switch (name) {
	case KERNEL_BUCKETS:
		return sizes->tables * sizes->bucket_bytes / kernel_bucket_bytes(&sizes->options);
	case KERNEL_RECORDS:
		return sizes->options.is_exact ? sizes->tables * sizes->slots : 1;
	case KERNEL_COUNTS:
		return sizes->options.has_counts ? sizes->tables * (sizes->slots + sizes->addresses) : 1;
	case KERNEL_HINTS:
		return sizes->tables * ABI_HINTS(sizes->hint_shift) / sizeof(__u64);
	default:
		return 1;
	}
}

/* The kernel rounds each element of an array up to 8 bytes, and a mapped array up to whole pages. */
void kernel_describe_map(const struct bpf_map_info *info, struct kernel_map *map)
{
	map->id = info->id;
	map->entries = info->max_entries;
	map->value_bytes = info->value_size;
	map->bytes = (size_t)info->max_entries * ((info->value_size + 7) & ~7U);
}

__u64 kernel_sizes_bytes(const struct kernel_sizes *sizes)
{
	return sizes->tables * sizes->bucket_bytes + kernel_sizes_entries(sizes, KERNEL_RECORDS) * sizeof(__u64) +
	       kernel_sizes_entries(sizes, KERNEL_COUNTS) * sizeof(struct abi_counter) +
	       kernel_sizes_entries(sizes, KERNEL_HINTS) * sizeof(__u64);
}

__u64 kernel_filter_bytes(const struct kernel_filter *filter)
{
	return filter->map[KERNEL_BUCKETS].bytes + filter->map[KERNEL_RECORDS].bytes +
	       filter->map[KERNEL_COUNTS].bytes + filter->map[KERNEL_HINTS].bytes;
}
