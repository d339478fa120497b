// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* From the interfaces to the filters they run, by programs, links and map ids. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "kernel/kernel.h"
#include "kernel/internal.h"

#define MAPS_OF_A_PROGRAM_MAX 64
#define LOOKS_MAX 100

/* The kernel keeps 15 characters of a program's name. */
static const char name_of_frags[] = "xdp_cuckoo_frags";

struct search {
	struct kernel_filter *filters;
	size_t count;
	const struct interface *interface;
	enum interface_mode mode;
	__u32 root_id;
	__u64 missed;             /* ids, added up, of programs and links that could not be opened */
	bool has_unsound;         /* filters that cannot be used; `reason` tells of one */
	char unseen[IF_NAMESIZE]; /* an interface whose program this process may not look at; "": none */
	struct reason *reason;
};

static int open_map(__u32 id, struct bpf_map_info *info)
{
	__u32 length = sizeof(*info);
	int error, fd = kernel_open_id(KERNEL_OBJECT_MAP, id);

	if (fd < 0)
		return fd;
	*info = (struct bpf_map_info){};
	if (!bpf_obj_get_info_by_fd(fd, info, &length))
		return fd;
	error = -errno;
	close(fd);
	return error;
}

/* What a map of that name must be: others may have the name by chance, or to be taken for it. */
static const struct {
	__u32 type, key_bytes;
	__u32 value_bytes, other_value_bytes; /* 0: no other */
	__u32 entries;                        /* 0: any number */
} shapes_of_maps[KERNEL_MAPS] = {
	[KERNEL_CONFIG] = { BPF_MAP_TYPE_ARRAY, sizeof(__u32), sizeof(struct abi_config), 0, 1 },
	[KERNEL_BUCKETS] = { BPF_MAP_TYPE_ARRAY, sizeof(__u32), sizeof(__u64), 2 * sizeof(__u64), 0 },
	[KERNEL_RECORDS] = { BPF_MAP_TYPE_ARRAY, sizeof(__u32), sizeof(__u64), 0, 0 },
	[KERNEL_COUNTS] = { BPF_MAP_TYPE_ARRAY, sizeof(__u32), sizeof(struct abi_counter), 0, 0 },
	[KERNEL_COUNTERS] = { BPF_MAP_TYPE_PERCPU_ARRAY, sizeof(__u32), ABI_COUNTERS * sizeof(struct abi_counter), 0,
			      ABI_COUNTER_ELEMENTS },
	[KERNEL_HINTS] = { BPF_MAP_TYPE_ARRAY, sizeof(__u32), sizeof(__u64), 0, ABI_TABLES *ABI_HINTS / sizeof(__u64) },
	[KERNEL_SAMPLES] = { BPF_MAP_TYPE_RINGBUF, 0, 0, 0, ABI_SAMPLES_BYTES },
	[KERNEL_SAMPLING] = { BPF_MAP_TYPE_PERCPU_ARRAY, sizeof(__u32), sizeof(struct abi_sampling), 0, 1 },
};

static bool is_sound_map(enum kernel_map_name name, const struct bpf_map_info *info)
{
	if (info->type != shapes_of_maps[name].type || info->key_size != shapes_of_maps[name].key_bytes)
		return false;
	if (info->type == BPF_MAP_TYPE_ARRAY && !(info->map_flags & BPF_F_MMAPABLE))
		return false;
	if (shapes_of_maps[name].entries && info->max_entries != shapes_of_maps[name].entries)
		return false;
	return info->value_size == shapes_of_maps[name].value_bytes ||
	       (shapes_of_maps[name].other_value_bytes && info->value_size == shapes_of_maps[name].other_value_bytes);
}

/* The config of any version has a head, which can be mapped. */
static bool has_head(const struct bpf_map_info *info)
{
	return info->type == BPF_MAP_TYPE_ARRAY && info->key_size == sizeof(__u32) && info->max_entries == 1 &&
	       info->map_flags & BPF_F_MMAPABLE && info->value_size >= ABI_HEAD_BYTES;
}

/* Keeps the descriptor of each map that is a filter's, by name; closes the others'. */
static int take_map(struct kernel_filter *filter, int fd, const struct bpf_map_info *info)
{
	for (enum kernel_map_name name = 0; name < KERNEL_MAPS; name++) {
		if (strcmp(info->name, kernel_map_names[name]) || filter->map[name].fd)
			continue;
		filter->map[name].fd = fd;
		kernel_describe_map(info, &filter->map[name]);
		if (is_sound_map(name, info))
			return 0;
		filter->is_other_version = true;
		return name != KERNEL_CONFIG || has_head(info) ? 0 : -EPROTO;
	}
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

/* One that is gone, and the constants of a pinned filter, which are not pinned, are left out. */
static int open_maps(const __u32 *ids, __u32 count, struct kernel_filter *filter)
{
	int error = 0;

	for (__u32 i = 0; i < count && !error; i++) {
		struct bpf_map_info info;
		int fd = open_map(ids[i], &info);

		if (fd != -ENOENT)
			error = fd < 0 ? fd : take_map(filter, fd, &info);
	}
	/* An older version had fewer. */
	filter->is_other_version |= filter->map[KERNEL_CONFIG].fd && !has_all_maps(filter);
	return error;
}

/* ---- versions ---- */

/* Nobody has set it up, or it is no filter at all. */
static int no_version(const struct search *search)
{
	const char *interface = search->interface->name;

	return reason_set(search->reason, -EPROTO,
			  "the filter on '%s' is of another version of xdp-cuckoo; take it off (ip link "
			  "set dev %s xdp off) and load it again",
			  interface, interface);
}

static int other_version(const struct kernel_filter *filter, struct reason *reason)
{
	const struct abi_config *config = filter->config;
	const char *interface = filter->attachments[0].interface;

	return reason_set(reason, -EPROTO,
			  "the filter '%s' on '%s' is of another version of xdp-cuckoo (its table is of "
			  "version %u, this tool's of %u); xdp-cuckoo --name %s load %s puts this one in its place, while "
			  "packets go on",
			  config->name, interface, config->version, ABI_VERSION, config->name, interface);
}

static bool is_set_up_by_other(const struct abi_config *config)
{
	return config->magic == ABI_MAGIC && config->version != ABI_VERSION && config->version >= ABI_VERSION_OLDEST &&
	       memchr(config->name, '\0', sizeof(config->name));
}

/*
 * A filter whose maps are not this version's, but its head is there to tell of another. By pins a lack of maps says
 * nothing: those of a filter that is being taken off go one after the other; then -ENOENT.
 */
static int check_other(const struct search *search, struct kernel_filter *filter)
{
	int error = filter->map[KERNEL_CONFIG].fd ? kernel_map_memory(filter, search->reason) : no_version(search);

	if (error || is_set_up_by_other(filter->config))
		return error;
	return has_all_maps(filter) || kernel_opens_ids() ? no_version(search) : -ENOENT;
}

static bool is_this_version(const struct abi_config *config)
{
	return !config->magic || (config->magic == ABI_MAGIC && config->version == ABI_VERSION);
}

static bool are_options(const struct abi_options *options)
{
	return options->format < BUCKET_FORMATS && options->is_exact <= 1 && options->has_counts <= options->is_exact &&
	       (!options->is_exact || options->format == BUCKET_16);
}

/* Whether the rest of the tool may rely on it. A later change of it is the writer's, who holds the lock. */
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

/* Of an object that another loader loaded, and nobody has set up. */
static const struct abi_options options_as_built = {
	.format = BUCKET_16,
	.is_exact = true,
	.has_counts = true,
};

/* 0, with its options, or -EPROTO. */
static int judge(const struct search *search, struct kernel_filter *filter)
{
	const struct abi_config *config = filter->config;
	const char *interface = search->interface->name;

	filter->is_other_version |= is_set_up_by_other(config);
	if (filter->is_other_version) {
		filter->options = are_options(&config->options) ? config->options : options_as_built;
		return 0;
	}
	if (!is_this_version(config))
		return no_version(search);
	filter->options = config->magic ? config->options : options_as_built;
	if (is_sound(filter))
		return 0;
	return reason_set(search->reason, -EPROTO,
			  "the filter on '%s' is not sound: its config and its maps do not fit "
			  "together; take it off (ip link set dev %s xdp off) and load it again",
			  interface, interface);
}

/* A filter that is known already gains an attachment; a new one joins the list. Takes `filter` over. */
static int add_filter(struct search *search, struct kernel_filter *filter, const struct bpf_prog_info *program)
{
	struct kernel_attachment attachment = { .ifindex = search->interface->index,
						.mode = search->mode,
						.is_frags =
							!strncmp(program->name, name_of_frags, BPF_OBJ_NAME_LEN - 1),
						.has_ethernet = search->interface->has_ethernet,
						.mtu = search->interface->mtu,
						.prog_id = program->id,
						.root_id = search->root_id };
	struct kernel_filter *grown;
	int error;

	memcpy(attachment.interface, search->interface->name, sizeof(attachment.interface));
	for (size_t i = 0; i < search->count; i++) {
		if (search->filters[i].map[KERNEL_CONFIG].id != filter->map[KERNEL_CONFIG].id)
			continue;
		kernel_close(filter);
		return kernel_add_attachment(&search->filters[i], &attachment);
	}
	error = kernel_map_memory(filter, search->reason);
	if (!error)
		error = judge(search, filter);
	grown = error ? NULL : realloc(search->filters, (search->count + 1) * sizeof(*grown));
	if (!grown) {
		kernel_close(filter);
		return error ? error : -ENOMEM;
	}
	search->filters = grown;
	grown[search->count] = *filter;
	return kernel_add_attachment(&grown[search->count++], &attachment);
}

/* *is_ours: the program uses a filter's maps. -EPROTO: one that cannot be used. */
static int take_program(struct search *search, __u32 prog_id, bool *is_ours)
{
	__u32 ids[MAPS_OF_A_PROGRAM_MAX];
	struct bpf_prog_info info = { .map_ids = (unsigned long)ids, .nr_map_ids = MAPS_OF_A_PROGRAM_MAX };
	__u32 length = sizeof(info), count;
	struct kernel_filter filter = {};
	int fd = kernel_open_id(KERNEL_OBJECT_PROGRAM, prog_id), error;

	*is_ours = false;
	if (fd == -ENOENT) {
		search->missed += prog_id; /* it went meanwhile, or it is not ours */
		return 0;
	}
	if (fd == -EPERM && !kernel_opens_ids())
		return kernel_pins_refused(search->reason, fd);
	if (fd < 0)
		return kernel_refused(search->reason, fd, "cannot look at the XDP program on ",
				      search->interface->name);
	error = bpf_obj_get_info_by_fd(fd, &info, &length);
	count = info.nr_map_ids < MAPS_OF_A_PROGRAM_MAX ? info.nr_map_ids : MAPS_OF_A_PROGRAM_MAX;
	if (!error)
		error = open_maps(ids, count, &filter);
	/* Not before: its maps go with it. */
	close(fd);
	if (error == -EPROTO)
		no_version(search);
	else if (error)
		kernel_refused(search->reason, error, "cannot look at the maps of the XDP program on ",
			       search->interface->name);
	else if (filter.is_other_version)
		error = check_other(search, &filter);
	*is_ours = !error && filter.map[KERNEL_CONFIG].fd;
	if (*is_ours)
		return add_filter(search, &filter, &info);
	kernel_close(&filter);
	search->missed += error == -ENOENT ? prog_id : 0;
	return error == -ENOENT ? 0 : error;
}

/* One that cannot be used keeps nobody from the others. */
static int inspect_program(struct search *search, __u32 prog_id, bool *is_ours)
{
	const int error = take_program(search, prog_id, is_ours);

	if (error != -EPROTO)
		return error;
	search->has_unsound = *is_ours = true;
	return 0;
}

/*
 * Programs that stand in for a function of another one, as libxdp's dispatcher runs them: their
 * links name the program that they extend.
 */
static int inspect_extensions(struct search *search)
{
	__u32 id = 0;

	while (!bpf_link_get_next_id(id, &id)) {
		struct bpf_link_info info = {};
		__u32 length = sizeof(info);
		bool is_ours;
		int fd = bpf_link_get_fd_by_id(id), error;

		if (fd < 0) {
			search->missed += id; /* it went meanwhile */
			continue;
		}
		error = bpf_obj_get_info_by_fd(fd, &info, &length);
		close(fd);
		if (error || info.type != BPF_LINK_TYPE_TRACING || info.tracing.target_obj_id != search->root_id)
			continue;
		error = inspect_program(search, info.prog_id, &is_ours);
		if (error)
			return error;
	}
	return 0;
}

/* Its pins do not lead to a filter. It may be one that somebody else has loaded, or it went meanwhile. */
static void note_unseen(struct search *search)
{
	memcpy(search->unseen, search->interface->name, sizeof(search->unseen));
	search->missed += search->root_id;
}

static int inspect_interface(struct search *search, const struct interface *interface)
{
	int error = 0;

	search->interface = interface;
	for (int mode = 0; mode < INTERFACE_MODES && !error; mode++) {
		bool is_ours;

		search->mode = mode;
		search->root_id = interface->prog_id[mode];
		if (!search->root_id)
			continue;
		error = inspect_program(search, search->root_id, &is_ours);
		if (error || is_ours)
			continue;
		if (kernel_opens_ids())
			error = inspect_extensions(search);
		else
			note_unseen(search);
	}
	return error;
}

static int inspect_all(struct search *search)
{
	struct interface *interfaces;
	size_t count;
	int error = interfaces_list(&interfaces, &count);

	if (error)
		return kernel_refused(search->reason, error, "cannot list the network interfaces", "");
	for (size_t i = 0; i < count && !error; i++)
		error = inspect_interface(search, &interfaces[i]);
	free(interfaces);
	return error;
}

/*
 * Again while programs go, since others may have come in their places: until none is missed, or the same as before,
 * which are those that this process may not open. Bounded, and then no error: no writer exchanges a table as often as
 * it is looked for here, and links of others that come and go without end shall keep nobody from `panic`.
 */
static int look(struct search *search)
{
	__u64 missed = 0;
	int error;

	kernel_listen();
	error = inspect_all(search);
	for (int looks = 1; !error && search->missed && search->missed != missed && looks < LOOKS_MAX; looks++) {
		missed = search->missed;
		kernel_filters_free(search->filters, search->count);
		search->filters = NULL;
		search->count = 0;
		search->missed = 0;
		search->has_unsound = false;
		search->unseen[0] = '\0';
		error = inspect_all(search);
	}
	return error == -ENOMEM ? reason_set(search->reason, error, "no memory to list the filters") : error;
}

/* One that nobody has set up will be of the name that is first to do it. */
static bool is_named(const struct kernel_filter *filter, const char *name)
{
	return !filter->config->magic || !strncmp(filter->config->name, name, sizeof(filter->config->name));
}

static bool has_named(const struct search *search, const char *name)
{
	for (size_t i = 0; i < search->count; i++)
		if (is_named(&search->filters[i], name))
			return true;
	return false;
}

/* -EPROTO where one was asked for. */
static int leave_out_other_versions(struct search *search, const char *name)
{
	size_t kept = 0;
	int error = 0;

	for (size_t i = 0; i < search->count; i++) {
		struct kernel_filter *filter = &search->filters[i];

		if (!filter->is_other_version) {
			search->filters[kept++] = *filter;
			continue;
		}
		if (!name || is_named(filter, name))
			error = other_version(filter, search->reason);
		kernel_close(filter);
	}
	search->count = kept;
	return error;
}

static int find(const char *name, bool with_others, struct kernel_filter **filters, size_t *count,
		struct reason *reason)
{
	struct search search = { .reason = reason };
	int error = look(&search);

	if (error) {
		kernel_filters_free(search.filters, search.count);
		search.filters = NULL;
		search.count = 0;
	} else {
		const bool is_found = name && has_named(&search, name);

		error = search.has_unsound && !is_found ? -EPROTO : 0;
		if (!with_others && leave_out_other_versions(&search, name))
			error = -EPROTO;
		if (*search.unseen && !is_found)
			error = kernel_unseen(search.unseen, reason);
	}
	*filters = search.filters;
	*count = search.count;
	return error;
}

int kernel_look(const char *name, struct kernel_filter **filters, size_t *count, struct reason *reason)
{
	return find(name, false, filters, count, reason);
}

int kernel_find(const char *name, struct kernel_filter **filters, size_t *count, struct reason *reason)
{
	kernel_unpin_unused();
	return find(name, false, filters, count, reason);
}

int kernel_find_all(const char *name, struct kernel_filter **filters, size_t *count, struct reason *reason)
{
	kernel_unpin_unused();
	return find(name, true, filters, count, reason);
}

/* ---- age ---- */

static double program_age(__u32 prog_id, double now)
{
	struct bpf_prog_info info = {};
	__u32 length = sizeof(info);
	int fd = kernel_open_id(KERNEL_OBJECT_PROGRAM, prog_id), error;

	if (fd < 0)
		return -1;
	error = bpf_obj_get_info_by_fd(fd, &info, &length);
	close(fd);
	return error ? -1 : now - 1e-9 * info.load_time;
}

double kernel_age(const struct kernel_filter *filter)
{
	struct timespec time;
	double oldest = -1;

	clock_gettime(CLOCK_BOOTTIME, &time);
	for (size_t i = 0; i < filter->attachments_count; i++) {
		const double age = program_age(filter->attachments[i].prog_id, time.tv_sec + 1e-9 * time.tv_nsec);

		if (age > oldest)
			oldest = age;
	}
	return oldest;
}
