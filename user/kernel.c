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
#include "kernel_internal.h"
#include "xdp_cuckoo.skel.h"

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

void kernel_listen(void)
{
	kernel_message[0] = '\0';
	libbpf_set_print(keep_kernel_message);
}

int kernel_refused(struct reason *reason, int error, const char *what, const char *subject)
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

int kernel_map(struct kernel_filter *filter, struct reason *reason)
{
	int error = map_memory(filter->config_fd, sizeof(*filter->config), &filter->config);

	if (!error)
		error = map_memory(filter->buckets_fd, buckets_bytes(filter), &filter->bucket);
	return error ? kernel_refused(reason, error, "cannot map the filter's table", "") : 0;
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

	kernel_listen();
	filter->programs = xdp_cuckoo__open();
	if (!filter->programs)
		return kernel_refused(reason, -errno, "cannot open the built-in BPF object", "");
	error = set_maps(filter, filter->programs);
	if (!error)
		error = xdp_cuckoo__load(filter->programs);
	if (!error)
		return 0;
	xdp_cuckoo__destroy(filter->programs);
	filter->programs = NULL;
	return kernel_refused(reason, error, "cannot load the BPF program", "");
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
			kernel_refused(reason, error, "cannot open the filter's maps", "");
	}
	if (!error)
		error = kernel_map(filter, reason);
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

static int attach(const struct bpf_program *program, struct kernel_attachment *attachment)
{
	struct bpf_prog_info info = {};
	__u32 length = sizeof(info);
	int fd = bpf_program__fd(program);

	kernel_message[0] = '\0';
	if (bpf_obj_get_info_by_fd(fd, &info, &length))
		return -errno;
	attachment->prog_id = attachment->root_id = info.id;
	return bpf_xdp_attach(attachment->ifindex, fd,
			      mode_flags[attachment->mode] | XDP_FLAGS_UPDATE_IF_NOEXIST, NULL);
}

/* Whether another mode or program may do what was refused. */
static bool is_unsupported(int error)
{
	return error && error != -EBUSY && error != -EEXIST && error != -EPERM;
}

/* A driver refuses single-buffer programs where the MTU is large; the other program is for that. */
static int attach_mode(const struct xdp_cuckoo *skeleton, enum interface_mode mode,
		       struct kernel_attachment *attachment)
{
	int error;

	attachment->mode = mode;
	error = attach(skeleton->progs.xdp_cuckoo, attachment);
	if (is_unsupported(error) && mode == INTERFACE_NATIVE)
		error = attach(skeleton->progs.xdp_cuckoo_frags, attachment);
	return error;
}

static int attach_refused(int error, const char *interface, struct reason *reason)
{
	if (error == -EBUSY || error == -EEXIST)
		return reason_set(reason, -EBUSY,
				  "'%s' runs another XDP program (or a filter of another --name: see xdp-cuckoo "
				  "status); take it off first (ip link set dev %s "
				  "xdp off) or put both behind one dispatcher with xdp-loader",
				  interface, interface);
	if (error == -EOPNOTSUPP)
		return reason_set(reason, error,
				  "the driver of '%s' has no native XDP%s; use --mode skb or --mode auto",
				  interface, kernel_message);
	return kernel_refused(reason, error, "cannot attach to ", interface);
}

int kernel_attach(struct kernel_filter *filter, const char *interface, enum kernel_mode wanted,
		  struct reason *reason)
{
	struct kernel_attachment attachment = { .ifindex = if_nametoindex(interface) };
	enum interface_mode first = wanted == KERNEL_SKB ? INTERFACE_SKB : INTERFACE_NATIVE;
	int error;

	if (!attachment.ifindex)
		return reason_set(reason, -ENODEV, "there is no interface '%s' here; see ip link",
				  interface);
	strncpy(attachment.interface, interface, IF_NAMESIZE - 1);
	error = filter->programs ? 0 : load_programs(filter, reason);
	if (error)
		return error;
	error = attach_mode(filter->programs, first, &attachment);
	if (is_unsupported(error) && wanted == KERNEL_AUTO)
		error = attach_mode(filter->programs, INTERFACE_SKB, &attachment);
	if (error)
		return attach_refused(error, interface, reason);
	error = kernel_add_attachment(filter, &attachment);
	return error ? kernel_refused(reason, error, "cannot note the attachment to ", interface) : 0;
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
	kernel_listen();
	options.old_prog_fd = bpf_prog_get_fd_by_id(attachment->prog_id);
	if (options.old_prog_fd < 0)
		return kernel_refused(reason, options.old_prog_fd, "cannot open the program on ",
			       attachment->interface);
	error = bpf_xdp_detach(attachment->ifindex, mode_flags[attachment->mode] | XDP_FLAGS_REPLACE,
			       &options);
	close(options.old_prog_fd);
	return error ? kernel_refused(reason, error, "cannot detach from ", attachment->interface) : 0;
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
	return error ? kernel_refused(reason, error, "cannot read the counters", "") : 0;
}
