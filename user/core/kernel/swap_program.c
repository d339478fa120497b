// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Replaces the program on an interface: by netlink, or by the BPF link that holds the program. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>

#include "base/memory.h"
#include "base/waiting.h"
#include "kernel/internal.h"

#define BACK_TRIES 10 /* for putting the old program back */

const __u32 kernel_mode_flags[INTERFACE_MODES] = {
	[INTERFACE_NATIVE] = XDP_FLAGS_DRV_MODE,
	[INTERFACE_SKB] = XDP_FLAGS_SKB_MODE,
	[INTERFACE_OFFLOAD] = XDP_FLAGS_HW_MODE,
};

/* ---- one interface ---- */

int kernel_swap_program(const struct kernel_attachment *attachment, int old, int new)
{
	LIBBPF_OPTS(bpf_xdp_attach_opts, on_interface, .old_prog_fd = old);
	LIBBPF_OPTS(bpf_link_update_opts, in_link, .flags = BPF_F_REPLACE, .old_prog_fd = old);
	int error, link = -1;

	if (attachment->mode >= INTERFACE_XDP_MODES)
		return tc_swap(attachment, old, new);
	kernel_catch_messages();
	error = bpf_xdp_attach(attachment->ifindex, new, kernel_mode_flags[attachment->mode] | XDP_FLAGS_REPLACE,
			       &on_interface);
	if (error != -EBUSY)
		return error;
	/* A BPF link holds the program: only the link can replace it, and it gives no error text. */
	kernel_catch_messages();
	for (__u32 id = 0; link < 0 && !bpf_link_get_next_id(id, &id);) {
		struct bpf_link_info info = {};
		__u32 length = sizeof(info);
		const int fd = bpf_link_get_fd_by_id(id);

		if (fd < 0)
			continue; /* it has just ended */
		if (!bpf_obj_get_info_by_fd(fd, &info, &length) && info.type == BPF_LINK_TYPE_XDP &&
		    info.xdp.ifindex == (__u32)attachment->ifindex && info.prog_id == attachment->prog_id)
			link = fd;
		else
			close(fd);
	}
	if (link < 0)
		return -EBUSY;
	error = new < 0 ? bpf_link_detach(link) : bpf_link_update(link, new, &in_link);
	close(link);
	return error;
}

bool kernel_is_held(const struct kernel_attachment *attachment)
{
	return attachment->root_id != attachment->prog_id;
}

const struct kernel_attachment *kernel_held_attachment(const struct kernel_filter *filter)
{
	for (size_t i = 0; i < filter->attachments_count; i++)
		if (kernel_is_held(&filter->attachments[i]) || filter->attachments[i].is_below)
			return &filter->attachments[i];
	return NULL;
}

int kernel_held_reason(const struct kernel_filter *filter, const struct kernel_attachment *held, const char *options,
		       int error, struct reason *reason, const char *why, ...)
{
	const bool is_frags = held->is_frags || kernel_is_mtu_too_large(held);
	const char *name = filter->config->name;
	struct reason text;
	va_list arguments;

	va_start(arguments, why);
	reason_print(&text, why, arguments);
	va_end(arguments);
	if (!kernel_is_held(held))
		return reason_set(reason, error,
				  "%s, and the kernel cannot replace the program on %s: an interface above it (a bridge, "
				  "bond, VLAN or macvlan) runs an XDP program; unload that one first",
				  text.text, held->interface);
	return reason_set(
		reason, error,
		"%s, and on '%s' libxdp's dispatcher holds the filter; load a second one beside it (xdp-cuckoo object "
		"FILE%s; xdp-loader load %s FILE -n xdp_cuckoo%s; xdp-cuckoo%s%s load %s), then unload the old "
		"one (xdp-loader unload %s -i %u)",
		text.text, held->interface, options, held->interface, is_frags ? "_frags" : "", *name ? " --name " : "",
		name, held->interface, held->interface, held->prog_id);
}

/* ---- every interface of a filter ---- */

static int refuse_replace(int error, const char *interface, struct reason *reason)
{
	if ((error == -EBUSY || error == -EEXIST || error == -ENOENT) && !kernel_says_above())
		return reason_set(reason, -EBUSY,
				  "'%s' no longer runs the program it ran a moment ago; "
				  "try again",
				  interface);
	return kernel_refuse_in_words(reason, error, "cannot replace the program on ", interface);
}

/* *runs: the program that now runs in the attachment's mode; 0: no program, or no interface. */
static int look_again(const struct kernel_attachment *attachment, __u32 *runs)
{
	FREED struct interface *interfaces = NULL;
	size_t count;
	int error = interfaces_list(&interfaces, &count);

	*runs = 0;
	for (size_t i = 0; i < count; i++)
		if (interfaces[i].index == attachment->ifindex)
			*runs = interfaces[i].prog_id[attachment->mode];
	return error;
}

/* If an interface refuses the old program, the new filter stays there; the next command finds it by its name. */
static void put_back(const struct kernel_filter *filter, const int *programs, size_t count)
{
	while (count--) {
		const struct kernel_attachment *now = &filter->attachments[count];
		const int program = kernel_program(filter, kernel_program_at(now));

		for (int try = 0; try < BACK_TRIES && programs[count] >= 0; try++)
			if (!kernel_swap_program(now, program, programs[count]))
				break;
	}
}

/*
 * An error counts if the old program still runs, or if that cannot be read. It does not count if the new program runs.
 * An interface that is gone, or that runs another program, is left out: programs[i] becomes -1.
 */
static int replace_all(const struct kernel_filter *old, const struct kernel_filter *filter, int *programs,
		       struct reason *reason)
{
	for (size_t i = 0; i < old->attachments_count; i++) {
		const struct kernel_attachment *before = &old->attachments[i], *now = &filter->attachments[i];
		const int program = kernel_program(filter, kernel_program_at(now));
		int error = programs[i] < 0 ? 0 : kernel_swap_program(before, programs[i], program);
		__u32 runs;

		if (!error)
			continue;
		if (look_again(before, &runs) || runs == before->prog_id) {
			error = refuse_replace(error, before->interface, reason);
			put_back(filter, programs, i);
			return error;
		}
		if (runs != now->prog_id) {
			close(programs[i]);
			programs[i] = -1;
		}
	}
	return 0;
}

static int replace_programs(struct kernel_filter *old, struct kernel_filter *filter, struct reason *reason)
{
	size_t count = old->attachments_count, kept = 0;
	FREED int *programs = calloc(count + 1, sizeof(*programs));
	int error = programs ? 0 : -ENOMEM;

	/* The attachments of `filter` will be those of `old`, with the programs of `filter`. */
	for (size_t i = 0; i < count && !error; i++) {
		struct kernel_attachment attachment = old->attachments[i];

		error = kernel_record_program(filter, &attachment);
		if (!error)
			error = kernel_add_attachment(filter, &attachment);
	}
	/* The descriptors keep the old programs loaded, to put them back. -1: the interface no longer runs that program. */
	for (size_t i = 0; i < count && programs; i++) {
		const struct kernel_attachment *attachment = &old->attachments[i];
		const int fd = kernel_open_id(KERNEL_OBJECT_PROGRAM, attachment->prog_id);
		__u32 runs;

		programs[i] = fd < 0 ? -1 : fd;
		/* No error if the program is gone, and the interface runs another one now or none. */
		if (!error && fd < 0 && (fd != -ENOENT || look_again(attachment, &runs) || runs == attachment->prog_id))
			error = fd;
	}
	if (error)
		error = kernel_refuse(reason, error, "cannot prepare the new programs", "");
	else
		error = replace_all(old, filter, programs, reason);
	for (size_t i = 0; i < count && programs; i++) {
		if (programs[i] < 0)
			continue;
		close(programs[i]);
		if (error)
			continue;
		old->attachments[kept] = old->attachments[i];
		filter->attachments[kept++] = filter->attachments[i];
	}
	/* Forgets attachments that were left out. If all were, they stay, to show where the filter ran. */
	if (kept)
		old->attachments_count = filter->attachments_count = kept;
	return error;
}

int kernel_replace(struct kernel_filter *old, struct kernel_filter *filter, struct reason *reason)
{
	const struct kernel_attachment *held = kernel_held_attachment(old);
	int error, pins;

	if (held)
		return kernel_held_reason(old, held, "", -EBUSY, reason, "the filter needs a new program");
	error = kernel_load_programs_of(old, filter, reason);
	if (error)
		return error;
	kernel_catch_messages();
	error = kernel_pin(filter, old, &pins, reason);
	if (!error)
		error = replace_programs(old, filter, reason);
	kernel_pin_finish(pins);
	for (size_t i = 0; i < filter->attachments_count && !error; i++)
		if (kernel_is_outgoing(&filter->attachments[i]))
			kernel_want_outgoing(filter, &filter->attachments[i], true);
	/* Some CPUs still run the old programs. Without this wait, what they count now would be lost. */
	if (!error)
		grace_wait();
	return error;
}

/* ---- MTU ---- */

/*
 * What shares a page with a frame: headroom before it, struct skb_shared_info after it. virtio_net forgets its own
 * header and a VLAN tag when it compares the MTU with the page.
 */
#define HEADROOM_BYTES 256
#define SHARED_INFO_BYTES 320
#define VIRTIO_HEADER_BYTES 12
#define VLAN_TAG_BYTES 4

__u32 kernel_one_buffer_mtu(void)
{
	return sysconf(_SC_PAGESIZE) - ETH_HLEN - VLAN_TAG_BYTES - VIRTIO_HEADER_BYTES - HEADROOM_BYTES -
	       SHARED_INFO_BYTES;
}

/*
 * A tap runs the program on frames of any size. A driver that never puts a frame into several buffers, for example ena,
 * has an MTU limit of its own. That limit is not known here, so only room for the headroom is left.
 */
bool kernel_is_mtu_too_large(const struct kernel_attachment *attachment)
{
	return attachment->mode == INTERFACE_NATIVE && !attachment->is_frags &&
	       attachment->mtu > kernel_one_buffer_mtu() && !attachment->is_tap &&
	       (attachment->mtu > sysconf(_SC_PAGESIZE) - HEADROOM_BYTES ||
		interfaces_takes_frags(attachment->ifindex, true));
}

/* virtio_net renews a receive buffer only after a packet came in it: see its mergeable_xdp_get_buf(). */
bool kernel_has_old_buffers(const struct kernel_attachment *attachment)
{
	return attachment->is_virtio_net && attachment->is_frags && attachment->mtu > kernel_one_buffer_mtu();
}

bool kernel_may_take_frags(const struct kernel_attachment *attachment)
{
	return interfaces_takes_frags(attachment->ifindex, true);
}

int kernel_fit_mtu(struct kernel_filter *filter, struct kernel_attachment *attachment, struct reason *reason)
{
	int error, lock;

	if (!kernel_is_mtu_too_large(attachment) || !kernel_may_take_frags(attachment))
		return 0;
	if (kernel_is_held(attachment))
		return kernel_held_reason(filter, attachment, "", -EBUSY, reason, "the filter needs the other program");
	error = kernel_load_program(filter, KERNEL_XDP_FRAGS, reason);
	if (error)
		return error;
	error = kernel_pin(filter, filter, &lock, reason);
	if (!error) {
		FD_CLOSED const int old = kernel_open_id(KERNEL_OBJECT_PROGRAM, attachment->prog_id);

		error = old < 0 ? old : kernel_swap_program(attachment, old, kernel_program(filter, KERNEL_XDP_FRAGS));
		if (!error) {
			attachment->is_frags = true;
			error = kernel_record_program(filter, attachment);
		}
		if (error)
			error = refuse_replace(error, attachment->interface, reason);
	}
	kernel_pin_finish(lock);
	return error;
}
