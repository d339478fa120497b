// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "kernel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_link.h>

#include "bucket.h"
#include "xdp_cuckoo.skel.h"

#define MAPS_OF_A_PROGRAM_MAX 64

/* What the kernel last said in words, through libbpf; it tells more than errno. */
static char kernel_message[REASON_BYTES / 2];

static int keep_kernel_message(enum libbpf_print_level level, const char *format, va_list arguments)
{
	static const char marker[] = "Kernel error message: ";
	char line[512];
	const char *found;

	(void)level;
	vsnprintf(line, sizeof(line), format, arguments);
	found = strstr(line, marker);
	if (found)
		snprintf(kernel_message, sizeof(kernel_message), " (%.*s)",
			 (int)strcspn(found + strlen(marker), "\n"), found + strlen(marker));
	return 0;
}

static void listen_to_kernel(void)
{
	kernel_message[0] = '\0';
	libbpf_set_print(keep_kernel_message);
}

/* The one message for a refused system call; what was being done comes before it. */
static int refused(struct reason *reason, int error, const char *what, const char *subject)
{
	if (error == -EPERM || error == -EACCES)
		return reason_set(reason, error, "%s%s: not permitted; run it as root", what, subject);
	return reason_set(reason, error, "%s%s: %s%s", what, subject, strerror(-error),
			  kernel_message);
}

static void close_fd(int *fd)
{
	if (*fd > 0)
		close(*fd);
	*fd = 0;
}

/* ---- maps as memory ---- */

static size_t buckets_bytes(const struct kernel_filter *filter)
{
	return filter->buckets * sizeof(*filter->bucket);
}

static int map_memory(int fd, size_t bytes, void *memory)
{
	void *mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (mapped == MAP_FAILED)
		return -errno;
	*(void **)memory = mapped;
	return 0;
}

static int map_filter(struct kernel_filter *filter, struct reason *reason)
{
	int error = map_memory(filter->config_fd, sizeof(*filter->config), &filter->config);

	if (!error)
		error = map_memory(filter->buckets_fd, buckets_bytes(filter), &filter->bucket);
	return error ? refused(reason, error, "cannot map the filter's table", "") : 0;
}

void kernel_close(struct kernel_filter *filter)
{
	if (filter->config)
		munmap(filter->config, sizeof(*filter->config));
	if (filter->bucket)
		munmap(filter->bucket, buckets_bytes(filter));
	xdp_cuckoo__destroy(filter->programs);
	close_fd(&filter->config_fd);
	close_fd(&filter->buckets_fd);
	close_fd(&filter->counters_fd);
	free(filter->attachments);
	*filter = (struct kernel_filter){};
}

void kernel_filters_free(struct kernel_filter *filters, size_t count)
{
	for (size_t i = 0; i < count; i++)
		kernel_close(&filters[i]);
	free(filters);
}

/* ---- finding filters ---- */

struct search {
	struct kernel_filter *filters;
	size_t count;
	const struct interface *interface;
	enum interface_mode mode;
	__u32 root_id;
	struct reason *reason;
};

static int open_map(__u32 id, struct bpf_map_info *info)
{
	__u32 length = sizeof(*info);
	int fd = bpf_map_get_fd_by_id(id);

	if (fd < 0)
		return fd;
	*info = (struct bpf_map_info){};
	if (bpf_obj_get_info_by_fd(fd, info, &length)) {
		close(fd);
		return -errno;
	}
	return fd;
}

/* Keeps the descriptor of each map that is a filter's, by name; closes the others'. */
static int take_map(struct kernel_filter *filter, int fd, const struct bpf_map_info *info)
{
	if (!strcmp(info->name, ABI_CONFIG_MAP)) {
		filter->config_id = info->id;
		filter->config_fd = fd;
		return info->value_size == sizeof(struct abi_config) ? 0 : -EPROTO;
	}
	if (!strcmp(info->name, ABI_BUCKETS_MAP)) {
		filter->buckets_fd = fd;
		filter->buckets = info->max_entries;
	} else if (!strcmp(info->name, ABI_COUNTERS_MAP)) {
		filter->counters_fd = fd;
	} else {
		close(fd);
	}
	return 0;
}

static int open_maps(const __u32 *ids, __u32 count, struct kernel_filter *filter)
{
	int error = 0;

	for (__u32 i = 0; i < count && !error; i++) {
		struct bpf_map_info info;
		int fd = open_map(ids[i], &info);

		error = fd < 0 ? fd : take_map(filter, fd, &info);
	}
	return error;
}

static int check_abi(const struct search *search, const struct kernel_filter *filter)
{
	const struct abi_config *config = filter->config;

	if (!config->magic || (config->magic == ABI_MAGIC && config->version == ABI_VERSION))
		return 0;
	return reason_set(search->reason, -EPROTO,
			  "the filter on '%s' has table version %u, this tool knows version %u; take it "
			  "off (ip link set dev %s xdp off) and load it again",
			  search->interface->name, config->version, ABI_VERSION,
			  search->interface->name);
}

static int add_attachment(const struct search *search, struct kernel_filter *filter, __u32 prog_id)
{
	struct kernel_attachment *grown = realloc(
		filter->attachments, (filter->attachments_count + 1) * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	filter->attachments = grown;
	grown += filter->attachments_count++;
	*grown = (struct kernel_attachment){ .ifindex = search->interface->index,
					     .mode = search->mode,
					     .prog_id = prog_id,
					     .root_id = search->root_id };
	memcpy(grown->interface, search->interface->name, sizeof(grown->interface));
	return 0;
}

/* A filter that is known already gains an attachment; a new one joins the list. Takes `filter` over. */
static int add_filter(struct search *search, struct kernel_filter *filter, __u32 prog_id)
{
	struct kernel_filter *grown;
	int error;

	for (size_t i = 0; i < search->count; i++) {
		if (search->filters[i].config_id != filter->config_id)
			continue;
		kernel_close(filter);
		return add_attachment(search, &search->filters[i], prog_id);
	}
	error = map_filter(filter, search->reason);
	if (!error)
		error = check_abi(search, filter);
	grown = error ? NULL : realloc(search->filters, (search->count + 1) * sizeof(*grown));
	if (!grown) {
		kernel_close(filter);
		return error ? error : -ENOMEM;
	}
	search->filters = grown;
	grown[search->count] = *filter;
	return add_attachment(search, &grown[search->count++], prog_id);
}

/* *is_ours: the program uses a filter's maps. */
static int inspect_program(struct search *search, __u32 prog_id, bool *is_ours)
{
	__u32 ids[MAPS_OF_A_PROGRAM_MAX];
	struct bpf_prog_info info = { .map_ids = (unsigned long)ids,
				      .nr_map_ids = MAPS_OF_A_PROGRAM_MAX };
	__u32 length = sizeof(info), count;
	struct kernel_filter filter = {};
	int fd = bpf_prog_get_fd_by_id(prog_id), error;

	*is_ours = false;
	if (fd == -ENOENT)
		return 0; /* it went meanwhile */
	if (fd < 0)
		return refused(search->reason, fd, "cannot look at the XDP program on ",
			       search->interface->name);
	error = bpf_obj_get_info_by_fd(fd, &info, &length);
	close(fd);
	count = info.nr_map_ids < MAPS_OF_A_PROGRAM_MAX ? info.nr_map_ids : MAPS_OF_A_PROGRAM_MAX;
	if (!error)
		error = open_maps(ids, count, &filter);
	if (error == -EPROTO)
		reason_set(search->reason, error,
			   "the filter on '%s' is of another version of xdp-cuckoo; take it off (ip "
			   "link set dev %s xdp off) and load it again",
			   search->interface->name, search->interface->name);
	else if (error)
		refused(search->reason, error, "cannot look at the maps of the XDP program on ",
			search->interface->name);
	*is_ours = !error && filter.config_fd && filter.buckets_fd && filter.counters_fd;
	if (*is_ours)
		return add_filter(search, &filter, prog_id);
	kernel_close(&filter);
	return error;
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

		if (fd < 0)
			continue; /* it went meanwhile */
		error = bpf_obj_get_info_by_fd(fd, &info, &length);
		close(fd);
		if (error || info.type != BPF_LINK_TYPE_TRACING ||
		    info.tracing.target_obj_id != search->root_id)
			continue;
		error = inspect_program(search, info.prog_id, &is_ours);
		if (error)
			return error;
	}
	return 0;
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
		if (!error && !is_ours)
			error = inspect_extensions(search);
	}
	return error;
}

int kernel_find(struct kernel_filter **filters, size_t *count, struct reason *reason)
{
	struct search search = { .reason = reason };
	struct interface *interfaces;
	size_t interfaces_count;
	int error;

	*filters = NULL;
	*count = 0;
	listen_to_kernel();
	error = interfaces_list(&interfaces, &interfaces_count);
	if (error)
		return refused(reason, error, "cannot list the network interfaces", "");
	for (size_t i = 0; i < interfaces_count && !error; i++)
		error = inspect_interface(&search, &interfaces[i]);
	free(interfaces);
	if (error) {
		kernel_filters_free(search.filters, search.count);
		return error;
	}
	*filters = search.filters;
	*count = search.count;
	return 0;
}

/* ---- loading ---- */

/* The maps of a filter that runs already are used again, so that all its interfaces share them. */
static int set_maps(struct kernel_filter *filter, struct xdp_cuckoo *skeleton)
{
	int error;

	if (!filter->config_fd)
		return bpf_map__set_max_entries(skeleton->maps.xc_buckets, filter->buckets);
	error = bpf_map__reuse_fd(skeleton->maps.xc_config, filter->config_fd);
	if (!error)
		error = bpf_map__reuse_fd(skeleton->maps.xc_buckets, filter->buckets_fd);
	if (!error)
		error = bpf_map__reuse_fd(skeleton->maps.xc_counters, filter->counters_fd);
	return error;
}

static int load_programs(struct kernel_filter *filter, struct reason *reason)
{
	int error;

	listen_to_kernel();
	filter->programs = xdp_cuckoo__open();
	if (!filter->programs)
		return refused(reason, -errno, "cannot open the built-in BPF object", "");
	error = set_maps(filter, filter->programs);
	if (!error)
		error = xdp_cuckoo__load(filter->programs);
	if (!error)
		return 0;
	xdp_cuckoo__destroy(filter->programs);
	filter->programs = NULL;
	return refused(reason, error, "cannot load the BPF program", "");
}

/* Descriptors of its own, so that a created filter and a found one are closed the same way. */
static int take_created_maps(struct kernel_filter *filter)
{
	const struct xdp_cuckoo *skeleton = filter->programs;
	struct bpf_map_info info = {};
	__u32 length = sizeof(info);

	filter->config_fd = dup(bpf_map__fd(skeleton->maps.xc_config));
	filter->buckets_fd = dup(bpf_map__fd(skeleton->maps.xc_buckets));
	filter->counters_fd = dup(bpf_map__fd(skeleton->maps.xc_counters));
	if (filter->config_fd < 0 || filter->buckets_fd < 0 || filter->counters_fd < 0)
		return -errno;
	if (bpf_obj_get_info_by_fd(filter->config_fd, &info, &length))
		return -errno;
	filter->config_id = info.id;
	return 0;
}

int kernel_create(__u64 buckets, struct kernel_filter *filter, struct reason *reason)
{
	int error;

	*filter = (struct kernel_filter){ .buckets = buckets };
	error = load_programs(filter, reason);
	if (!error) {
		error = take_created_maps(filter);
		if (error)
			refused(reason, error, "cannot open the filter's maps", "");
	}
	if (!error)
		error = map_filter(filter, reason);
	if (error)
		kernel_close(filter);
	return error;
}

/* ---- attaching ---- */

static const __u32 mode_flags[INTERFACE_MODES] = {
	[INTERFACE_NATIVE] = XDP_FLAGS_DRV_MODE,
	[INTERFACE_SKB] = XDP_FLAGS_SKB_MODE,
	[INTERFACE_OFFLOAD] = XDP_FLAGS_HW_MODE,
};

static int attach(const struct bpf_program *program, int ifindex, enum interface_mode mode)
{
	kernel_message[0] = '\0';
	return bpf_xdp_attach(ifindex, bpf_program__fd(program),
			      mode_flags[mode] | XDP_FLAGS_UPDATE_IF_NOEXIST, NULL);
}

/* A driver refuses single-buffer programs where the MTU is large; the other one is for that. */
static int attach_native(const struct xdp_cuckoo *skeleton, int ifindex)
{
	int error = attach(skeleton->progs.xdp_cuckoo, ifindex, INTERFACE_NATIVE);

	if (!error || error == -EBUSY || error == -EEXIST || error == -EPERM)
		return error;
	return attach(skeleton->progs.xdp_cuckoo_frags, ifindex, INTERFACE_NATIVE);
}

static int attach_refused(int error, const char *interface, struct reason *reason)
{
	if (error == -EBUSY || error == -EEXIST)
		return reason_set(reason, -EBUSY,
				  "'%s' runs another XDP program; take it off first (ip link set dev %s "
				  "xdp off) or put both behind one dispatcher with xdp-loader",
				  interface, interface);
	if (error == -EOPNOTSUPP)
		return reason_set(reason, error,
				  "the driver of '%s' has no native XDP%s; use --mode skb or --mode auto",
				  interface, kernel_message);
	return refused(reason, error, "cannot attach to ", interface);
}

int kernel_attach(struct kernel_filter *filter, const char *interface, enum kernel_mode wanted,
		  enum interface_mode *mode, struct reason *reason)
{
	int ifindex = if_nametoindex(interface), error;
	const struct xdp_cuckoo *skeleton;

	if (!ifindex)
		return reason_set(reason, -ENODEV, "there is no interface '%s' here; see ip link",
				  interface);
	error = filter->programs ? 0 : load_programs(filter, reason);
	if (error)
		return error;
	skeleton = filter->programs;
	*mode = wanted == KERNEL_SKB ? INTERFACE_SKB : INTERFACE_NATIVE;
	error = *mode == INTERFACE_NATIVE ? attach_native(skeleton, ifindex) :
					    attach(skeleton->progs.xdp_cuckoo, ifindex, *mode);
	if (error && wanted == KERNEL_AUTO && error != -EBUSY && error != -EEXIST && error != -EPERM) {
		*mode = INTERFACE_SKB;
		error = attach(skeleton->progs.xdp_cuckoo, ifindex, *mode);
	}
	return error ? attach_refused(error, interface, reason) : 0;
}

int kernel_detach(const struct kernel_attachment *attachment, struct reason *reason)
{
	LIBBPF_OPTS(bpf_xdp_attach_opts, options);
	int error;

	if (attachment->root_id != attachment->prog_id)
		return reason_set(reason, -EBUSY,
				  "on '%s' libxdp's dispatcher runs the filter; use xdp-loader unload %s "
				  "-i %u", attachment->interface, attachment->interface,
				  attachment->prog_id);
	listen_to_kernel();
	options.old_prog_fd = bpf_prog_get_fd_by_id(attachment->prog_id);
	if (options.old_prog_fd < 0)
		return refused(reason, options.old_prog_fd, "cannot open the program on ",
			       attachment->interface);
	error = bpf_xdp_detach(attachment->ifindex, mode_flags[attachment->mode] | XDP_FLAGS_REPLACE,
			       &options);
	close(options.old_prog_fd);
	if (!error)
		return 0;
	return refused(reason, error, "cannot detach from ", attachment->interface);
}

/* ---- counters ---- */

int kernel_counters(const struct kernel_filter *filter,
		    struct abi_counter counters[OUTCOMES][VERDICTS], struct reason *reason)
{
	int cpus = libbpf_num_possible_cpus();
	struct abi_counter *values = cpus > 0 ? calloc(cpus, sizeof(*values)) : NULL;
	int error = values ? 0 : -ENOMEM;

	memset(counters, 0, sizeof(struct abi_counter[OUTCOMES][VERDICTS]));
	for (__u32 key = 0; key < OUTCOMES * VERDICTS && !error; key++) {
		struct abi_counter *sum = &counters[key / VERDICTS][key % VERDICTS];

		if (bpf_map_lookup_elem(filter->counters_fd, &key, values))
			error = -errno;
		for (int cpu = 0; cpu < cpus && !error; cpu++) {
			sum->packets += values[cpu].packets;
			sum->bytes += values[cpu].bytes;
		}
	}
	free(values);
	return error ? refused(reason, error, "cannot read the counters", "") : 0;
}
