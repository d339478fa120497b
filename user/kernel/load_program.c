// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Makes a filter from the built-in object: creates its maps, loads programs over them, closes it. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "kernel/internal.h"
#include "table/semisort.h"
#include "xdp_cuckoo.skel.h"

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

/* Opens the built-in object so that loading it makes only maps. On failure NULL, and *reason is set. */
static struct xdp_cuckoo *open_object(const struct abi_options *options, struct reason *reason)
{
	struct xdp_cuckoo *skeleton;

	kernel_listen();
	skeleton = xdp_cuckoo__open();
	if (!skeleton) {
		kernel_refuse(reason, -errno, "cannot open the built-in BPF object", "");
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
	return kernel_refuse(reason, error, "cannot load the BPF program", "");
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

int kernel_program_info(int fd, struct bpf_prog_info *info)
{
	__u32 length = sizeof(*info);

	*info = (struct bpf_prog_info){};
	if (fd < 0)
		return fd;
	return bpf_obj_get_info_by_fd(fd, info, &length) ? -errno : 0;
}

int kernel_note_program(const struct kernel_filter *filter, struct kernel_attachment *attachment)
{
	struct bpf_prog_info info;
	int error = kernel_program_info(kernel_program(filter, attachment->is_frags), &info);

	if (!error)
		attachment->prog_id = attachment->root_id = info.id;
	return error;
}

/* Opens the built-in object and gives its maps the sizes of the plan. On failure NULL, and *reason is set. */
static struct xdp_cuckoo *open_sized(const struct kernel_sizes *plan, struct reason *reason)
{
	static const enum kernel_map_name sized[] = { KERNEL_BUCKETS, KERNEL_RECORDS, KERNEL_COUNTS };
	struct xdp_cuckoo *skeleton = open_object(&plan->options, reason);
	int error;

	if (!skeleton)
		return NULL;
	error = bpf_map__set_value_size(skeleton->maps.xc_buckets, kernel_bucket_bytes(&plan->options));
	for (size_t i = 0; i < sizeof(sized) / sizeof(sized[0]) && !error; i++)
		error = bpf_map__set_max_entries(skeleton_map(skeleton, sized[i]),
						 kernel_sizes_entries(plan, sized[i]));
	if (!error)
		return skeleton;
	kernel_refuse(reason, error, "cannot size the filter's maps", "");
	xdp_cuckoo__destroy(skeleton);
	return NULL;
}

int kernel_object(const struct kernel_sizes *plan, char **file, size_t *bytes, struct reason *reason)
{
	struct xdp_cuckoo *skeleton = open_sized(plan, reason);
	const void *built_in;
	size_t size;
	int error;

	if (!skeleton)
		return -ENOMEM;
	built_in = xdp_cuckoo__elf_bytes(&size);
	error = kernel_object_file(skeleton->obj, skeleton->maps.rodata, built_in, size, file, bytes);
	xdp_cuckoo__destroy(skeleton);
	return error ? reason_set(reason, error, "cannot make an object of the built-in program: %s",
				  strerror(-error)) :
		       0;
}

int kernel_create(const struct kernel_sizes *plan, struct kernel_filter *filter, struct reason *reason)
{
	/* The filter takes these over from its predecessor: the counters, and what a listener reads. */
	static const enum kernel_map_name shared[] = { KERNEL_COUNTERS, KERNEL_SAMPLES, KERNEL_SAMPLING };
	struct xdp_cuckoo *skeleton;
	int error = 0;

	*filter = (struct kernel_filter){ .options = plan->options };
	skeleton = open_sized(plan, reason);
	if (!skeleton) {
		kernel_close(filter);
		return -ENOMEM;
	}
	for (size_t i = 0; plan->predecessor && i < sizeof(shared) / sizeof(shared[0]) && !error; i++)
		error = bpf_map__reuse_fd(skeleton_map(skeleton, shared[i]), plan->predecessor->map[shared[i]].fd);
	if (!error)
		error = xdp_cuckoo__load(skeleton);
	/* Duplicates the descriptors, so that created and found filters are closed in the same way. */
	for (enum kernel_map_name name = 0; name < KERNEL_MAPS && !error; name++) {
		struct bpf_map_info info = {};
		__u32 length = sizeof(info);
		int *fd = &filter->map[name].fd;

		*fd = fcntl(bpf_map__fd(skeleton_map(skeleton, name)), F_DUPFD_CLOEXEC, 0);
		if (*fd < 0 || bpf_obj_get_info_by_fd(*fd, &info, &length))
			error = -errno;
		else
			kernel_describe_map(&info, &filter->map[name]);
	}
	xdp_cuckoo__destroy(skeleton);
	error = error ? kernel_refuse(reason, error, "cannot make the filter's maps", "") :
			kernel_map_memory(filter, reason);
	if (!error && plan->predecessor)
		error = kernel_load_programs_of(plan->predecessor, filter, reason);
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
