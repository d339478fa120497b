// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Recognises a filter of ours among programs: by the names and layout of its maps, and by its config. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>

#include "base/advice.h"
#include "base/memory.h"
#include "kernel/internal.h"

/* The layout that a map of each name must have. Other programs may use the names by chance or on purpose. */
static const struct {
	__u32 type, key_bytes;
	__u32 value_bytes, other_value_bytes; /* 0: no other size is allowed */
	__u32 entries;                        /* 0: any number is allowed */
} layouts_of_maps[KERNEL_MAPS] = {
	[KERNEL_CONFIG] = { BPF_MAP_TYPE_ARRAY, sizeof(__u32), sizeof(struct abi_config), 0, 1 },
	[KERNEL_BUCKETS] = { BPF_MAP_TYPE_ARRAY, sizeof(__u32), sizeof(__u64), 2 * sizeof(__u64), 0 },
	[KERNEL_RECORDS] = { BPF_MAP_TYPE_ARRAY, sizeof(__u32), sizeof(__u64), 0, 0 },
	[KERNEL_COUNTS] = { BPF_MAP_TYPE_ARRAY, sizeof(__u32), sizeof(struct abi_counter), 0, 0 },
	[KERNEL_COUNTERS] = { BPF_MAP_TYPE_PERCPU_ARRAY, sizeof(__u32), ABI_COUNTERS * sizeof(struct abi_counter), 0,
			      ABI_COUNTER_ELEMENTS },
	[KERNEL_HINTS] = { BPF_MAP_TYPE_ARRAY, sizeof(__u32), sizeof(__u64), 0, 0 },
	[KERNEL_RATES] = { BPF_MAP_TYPE_ARRAY, sizeof(__u32), sizeof(struct abi_rates), 0, 1 },
	[KERNEL_RATE_CREDITS] = { BPF_MAP_TYPE_PERCPU_ARRAY, sizeof(__u32), sizeof(struct abi_rate_credit), 0,
				  ABI_RATES },
	[KERNEL_SAMPLES] = { BPF_MAP_TYPE_RINGBUF, 0, 0, 0, ABI_SAMPLES_BYTES },
	[KERNEL_SAMPLING] = { BPF_MAP_TYPE_PERCPU_ARRAY, sizeof(__u32), sizeof(struct abi_sampling), 0, 1 },
};

static bool is_sound_map(enum kernel_map_name name, const struct bpf_map_info *info)
{
	const bool is_sized = info->value_size == layouts_of_maps[name].value_bytes ||
			      (layouts_of_maps[name].other_value_bytes &&
			       info->value_size == layouts_of_maps[name].other_value_bytes);

	return is_sized && info->type == layouts_of_maps[name].type &&
	       info->key_size == layouts_of_maps[name].key_bytes &&
	       (info->type != BPF_MAP_TYPE_ARRAY || info->map_flags & BPF_F_MMAPABLE) &&
	       (!layouts_of_maps[name].entries || info->max_entries == layouts_of_maps[name].entries) &&
	       (name != KERNEL_HINTS ||
		info->max_entries >= ABI_TABLES * ABI_HINTS(ABI_HINT_SHIFT_MOST) / info->value_size ||
		info->max_entries == ABI_HINTS(ABI_HINT_SHIFT_MOST) / info->value_size);
}

/* Keeps the descriptor if the map is a filter's; else closes it. */
static int take_map(struct kernel_filter *filter, int fd, const struct bpf_map_info *info)
{
	/* Whether the members can be mapped with which configs of all versions start. */
	const bool has_common_part = info->type == BPF_MAP_TYPE_ARRAY && info->key_size == sizeof(__u32) &&
				     info->max_entries == 1 && info->map_flags & BPF_F_MMAPABLE &&
				     info->value_size >= ABI_COMMON_BYTES;
	const char *section = strrchr(info->name, '.');

	for (enum kernel_map_name name = 0; name < KERNEL_MAPS; name++) {
		if (strcmp(info->name, kernel_map_names[name]) || filter->map[name].fd)
			continue;
		filter->map[name].fd = fd;
		kernel_describe_map(info, &filter->map[name]);
		if (is_sound_map(name, info))
			return 0;
		filter->is_other_version = true;
		return name != KERNEL_CONFIG || has_common_part ? KERNEL_USABLE : KERNEL_UNUSABLE;
	}
	/* The map of the program's constants. libbpf names it after the object and the section. */
	if (section && !strcmp(section, ".rodata") && info->btf_value_type_id)
		filter->constants_id = info->id;
	close(fd);
	return 0;
}

static bool has_all_maps(const struct kernel_filter *filter)
{
	for (enum kernel_map_name name = 0; name < KERNEL_MAPS; name++)
		if (!filter->map[name].fd)
			return false;
	return true;
}

/* Skips maps that are gone. The constants of a pinned filter have no pin, so they are skipped, too. */
int kernel_open_maps(const __u32 *ids, __u32 count, struct kernel_filter *filter)
{
	int error = 0;

	for (__u32 i = 0; i < count && !error; i++) {
		struct bpf_map_info info = {};
		__u32 length = sizeof(info);
		int fd = kernel_open_id(KERNEL_OBJECT_MAP, ids[i]);

		if (fd == -ENOENT)
			continue;
		if (fd < 0) {
			error = fd;
		} else if (!bpf_obj_get_info_by_fd(fd, &info, &length)) {
			error = take_map(filter, fd, &info);
		} else {
			error = -errno;
			close(fd);
		}
	}
	/* Older versions have fewer maps. */
	filter->is_other_version |= filter->map[KERNEL_CONFIG].fd && !has_all_maps(filter);
	return error;
}

/* For a filter that is not set up, and for maps of another layout. */
int kernel_unknown_version_reason(const char *interface, struct reason *reason)
{
	return reason_set(reason, -EPROTO,
			  "the filter on '%s' is of another version of xdp-cuckoo; take it off and load it: " ADVICE_RELOAD, interface,
			  interface, interface);
}

static bool is_set_up_by_other(const struct abi_config *config)
{
	return config->magic == ABI_MAGIC && config->version != ABI_VERSION && config->version >= ABI_VERSION_OLDEST &&
	       memchr(config->name, '\0', sizeof(config->name));
}

static bool are_options(const struct abi_options *options)
{
	return options->format < BUCKET_FORMATS && options->is_exact <= 1 && options->has_counts <= options->is_exact &&
	       (!options->is_exact || options->format == BUCKET_16) && options->is_alone <= 1 &&
	       options->orders_loads <= 1 && options->has_addresses <= options->is_exact;
}

/* Whether the tool may rely on config and maps. From then on, only the writer, who has the lock, changes them. */
static bool is_sound(const struct kernel_filter *filter)
{
	const struct abi_config *config = filter->config;
	const struct abi_options *options = &filter->options;

	if (!are_options(options) || filter->map[KERNEL_BUCKETS].value_bytes != kernel_bucket_bytes(options) ||
	    options->is_exact != (filter->map[KERNEL_RECORDS].entries > 1) ||
	    options->has_counts != (filter->map[KERNEL_COUNTS].entries > 1))
		return false;
	if (!memchr(config->name, '\0', sizeof(config->name)))
		return false;
	for (int table = 0; table < ABI_TABLES; table++)
		for (int family = 0; family < FLOW_FAMILIES; family++)
			for (int copy = 0; copy < 2; copy++)
				if (config->table[table].shapes[family][copy].count > ABI_SHAPES_MAX)
					return false;
	return true;
}

/*
 * The options of an object that another loader loaded and nobody has set up, if its constants cannot be read. It may
 * have been built for a processor that keeps loads in order.
 */
static const struct abi_options options_as_built = {
	.format = BUCKET_16,
	.is_exact = true,
	.has_counts = true,
};

static void close_btf(struct btf **btf)
{
	btf__free(*btf);
}

/* Reads the constant xc_options of a program whose config is not set up. BTF tells where it is in the map of constants. */
static struct abi_options read_options(__u32 constants_id)
{
	struct abi_options options = options_as_built;
	const struct btf_type *section = NULL;
	struct bpf_map_info info = {};
	__u32 length = sizeof(info), zero = 0;
	FD_CLOSED const int fd = constants_id ? kernel_open_id(KERNEL_OBJECT_MAP, constants_id) : -ENOENT;
	CLOSED_BY(close_btf) struct btf *btf = NULL;
	FREED char *constants = NULL;

	if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &length))
		btf = btf__load_from_kernel_by_id(info.btf_id);
	if (btf)
		section = btf__type_by_id(btf, info.btf_value_type_id);
	if (section && btf_is_datasec(section))
		constants = malloc(info.value_size);
	if (!constants || bpf_map_lookup_elem(fd, &zero, constants))
		return options;
	for (int i = 0; i < btf_vlen(section); i++) {
		const struct btf_var_secinfo *variable = &btf_var_secinfos(section)[i];
		const struct btf_type *type = btf__type_by_id(btf, variable->type);

		if (!strcmp(btf__name_by_offset(btf, type->name_off), "xc_options") &&
		    variable->size == sizeof(options) && variable->offset + variable->size <= info.value_size)
			memcpy(&options, constants + variable->offset, sizeof(options));
	}
	return options;
}

int kernel_open_config(struct kernel_filter *filter, const char *interface, struct reason *reason)
{
	const struct abi_config *config;
	bool is_known_version;
	int error;

	if (!filter->map[KERNEL_CONFIG].fd) {
		kernel_unknown_version_reason(interface, reason);
		return KERNEL_UNUSABLE;
	}
	error = kernel_map_memory(filter, reason);
	if (error)
		return error;
	config = filter->config;
	if (is_set_up_by_other(config)) {
		filter->is_other_version = true;
		filter->options = are_options(&config->options) ? config->options : options_as_built;
		return KERNEL_USABLE;
	}
	/*
	 * When filters are found by pins, missing maps prove nothing: the pins of a filter that is being removed go one
	 * after the other.
	 */
	if (filter->is_other_version && !has_all_maps(filter) && !kernel_opens_ids())
		return KERNEL_GONE;
	is_known_version = !config->magic || (config->magic == ABI_MAGIC && config->version == ABI_VERSION);
	if (filter->is_other_version || !is_known_version) {
		kernel_unknown_version_reason(interface, reason);
		return KERNEL_UNUSABLE;
	}
	filter->options = config->magic ? config->options : read_options(filter->constants_id);
	if (is_sound(filter))
		return KERNEL_USABLE;
	reason_set(reason, 0,
		   "the filter on '%s' is damaged: its config and its maps do not match; "
		   "replace it: " ADVICE_RELOAD,
		   interface, interface, interface);
	return KERNEL_UNUSABLE;
}

int kernel_runs_this_build(struct kernel_filter *filter, bool *is_own, struct reason *reason)
{
	*is_own = true;
	for (size_t i = 0; i < filter->attachments_count && *is_own; i++) {
		const struct kernel_attachment *attachment = &filter->attachments[i];
		FD_CLOSED const int fd = kernel_open_id(KERNEL_OBJECT_PROGRAM, attachment->prog_id);
		struct bpf_prog_info running, own;
		int error = kernel_load_program(filter, kernel_program_at(attachment), reason);

		*is_own = false;
		if (error)
			return error;
		error = kernel_program_info(fd, &running);
		if (!error)
			error = kernel_program_info(kernel_program(filter, kernel_program_at(attachment)), &own);
		if (error)
			return kernel_refuse(reason, error, "cannot look at the running program", "");
		*is_own = !memcmp(running.tag, own.tag, sizeof(own.tag));
	}
	return 0;
}
