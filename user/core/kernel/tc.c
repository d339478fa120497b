// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Programs at the hooks of tc. Since Linux 6.6 an interface has a list of programs at each hook (tcx): ours goes to the
 * front, before those that are there. Older kernels have filters of a qdisc, clsact: ours gets priority 1, before most
 * others. In both, programs behind ours see what it passes.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <libmnl/libmnl.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#include "base/memory.h"
#include "base/privileges.h"
#include "kernel/internal.h"

/* From <linux/bpf.h>, where Debian 12 lacks them. */
#define TCX_INGRESS 46
#define TCX_EGRESS 47
#define TCX_BEFORE (1U << 3)
#define TCX_PROGRAMS_MAX 64

#define PRIORITY 1
#define HANDLE 0x78630000U /* "xc" */
#define HANDLE_MADE 1U     /* in our handle: the clsact qdisc is ours too */

struct hook {
	__u32 filters;    /* of clsact: also those of others */
	__u32 id, handle; /* of our program; 0: none is there */
	bool is_behind;   /* ours: see struct kernel_attachment */
	bool has_tcx;
};

static enum bpf_attach_type tcx_type(enum interface_mode mode)
{
	return (enum bpf_attach_type)(mode == INTERFACE_TC ? TCX_INGRESS : TCX_EGRESS);
}

bool kernel_sees_tc(void)
{
	return kernel_is_before(6, 6) || privileges_has(CAP_NET_ADMIN) || kernel_opens_ids();
}

/* A program that this process may not look at may be ours, too. */
static bool may_be_ours(__u32 id)
{
	static const char name[] = "xdp_cuckoo";
	FD_CLOSED const int fd = kernel_open_id(KERNEL_OBJECT_PROGRAM, id);
	struct bpf_prog_info info;

	if (kernel_program_info(fd, &info))
		return fd < 0 && !kernel_opens_ids();
	return !strncmp(info.name, name, strlen(name));
}

/* A dump also has messages without a handle: for all filters of a priority. */
static int read_filter(const struct nlmsghdr *message, void *context)
{
	const struct tcmsg *header = mnl_nlmsg_get_payload(message);
	const struct nlattr *attribute, *option;
	struct hook *hook = context;

	if (!header->tcm_handle)
		return MNL_CB_OK;
	hook->filters++;
	if (TC_H_MAJ(header->tcm_info) >> 16 != PRIORITY || TC_H_MAJ(header->tcm_handle) != HANDLE)
		return MNL_CB_OK;
	hook->handle = header->tcm_handle;
	hook->is_behind = hook->filters > 1; /* they are told in the order in which they run */
	mnl_attr_for_each(attribute, message, sizeof(*header))
		if (mnl_attr_get_type(attribute) == TCA_OPTIONS)
			mnl_attr_for_each_nested(option, attribute)
				if (mnl_attr_get_type(option) == TCA_BPF_ID)
					hook->id = mnl_attr_get_u32(option);
	return MNL_CB_OK;
}

static int look_at_hook(int ifindex, enum interface_mode mode, struct hook *hook)
{
	const __u32 parent = TC_H_MAKE(TC_H_CLSACT, mode == INTERFACE_TC ? TC_H_MIN_INGRESS : TC_H_MIN_EGRESS);
	const struct tcmsg header = { .tcm_family = AF_UNSPEC, .tcm_ifindex = ifindex, .tcm_parent = parent };
	__u32 ids[TCX_PROGRAMS_MAX], count = TCX_PROGRAMS_MAX;
	const int error = bpf_prog_query(ifindex, tcx_type(mode), 0, NULL, ids, &count);

	*hook = (struct hook){ .has_tcx = !error || error == -ENOENT };
	for (__u32 i = 0; i < count && !error && !hook->id; i++) {
		hook->id = may_be_ours(ids[i]) ? ids[i] : 0;
		hook->is_behind = hook->id && i;
	}
	/* Before Linux 6.6 the kernel does not know the hook's number, and asks for CAP_NET_ADMIN first. */
	if (error == -EINVAL || error == -EPERM)
		return netlink_dump(NETLINK_ROUTE, RTM_GETTFILTER, &header, sizeof(header), read_filter, hook);
	return hook->has_tcx ? 0 : error;
}

void tc_list(struct interface *interface)
{
	for (enum interface_mode mode = INTERFACE_TC; mode <= INTERFACE_TC_SENT; mode++) {
		struct hook hook;

		if (look_at_hook(interface->index, mode, &hook))
			continue;
		interface->prog_id[mode] = hook.id;
		interface->is_behind[mode] = hook.is_behind;
	}
}

int tc_attach(const struct kernel_attachment *attachment, int program)
{
	const enum interface_mode other = attachment->mode == INTERFACE_TC ? INTERFACE_TC_SENT : INTERFACE_TC;
	LIBBPF_OPTS(bpf_prog_attach_opts, first, .flags = TCX_BEFORE);
	LIBBPF_OPTS(bpf_tc_hook, qdisc, .ifindex = attachment->ifindex, .attach_point = BPF_TC_INGRESS | BPF_TC_EGRESS);
	LIBBPF_OPTS(bpf_tc_opts, options, .prog_fd = program, .handle = HANDLE, .priority = PRIORITY);
	const enum bpf_attach_type type = tcx_type(attachment->mode);
	__u32 ids[TCX_PROGRAMS_MAX], count = TCX_PROGRAMS_MAX;
	bool is_behind = false, is_second = false;
	struct hook hook, beside;
	int error, made;

	kernel_catch_messages();
	error = look_at_hook(attachment->ifindex, attachment->mode, &hook);
	if (error)
		return error;
	if (hook.id)
		return -EBUSY;
	if (hook.has_tcx) {
		error = bpf_prog_attach_opts(program, attachment->ifindex, type, &first);
		if (error || bpf_prog_query(attachment->ifindex, type, 0, NULL, ids, &count))
			return error;
		/* Two processes may look at the same time. The program that was there first is behind the other, and stays. */
		for (__u32 i = 0; i < count; i++) {
			is_second |= is_behind && may_be_ours(ids[i]);
			is_behind |= ids[i] == attachment->prog_id;
		}
		if (!is_second)
			return 0;
		bpf_prog_detach2(program, attachment->ifindex, type);
		return -EBUSY;
	}
	made = bpf_tc_hook_create(&qdisc);
	if (made && made != -EEXIST)
		return made;
	if (!made || (!look_at_hook(attachment->ifindex, other, &beside) && beside.handle & HANDLE_MADE))
		options.handle |= HANDLE_MADE;
	kernel_catch_messages(); /* that the qdisc exists */
	qdisc.attach_point = attachment->mode == INTERFACE_TC ? BPF_TC_INGRESS : BPF_TC_EGRESS;
	error = bpf_tc_attach(&qdisc, &options);
	qdisc.attach_point = BPF_TC_INGRESS | BPF_TC_EGRESS;
	if (error && !made)
		bpf_tc_hook_destroy(&qdisc);
	return error;
}

int tc_swap(const struct kernel_attachment *attachment, int old, int new)
{
	const enum bpf_attach_type type = tcx_type(attachment->mode);
	LIBBPF_OPTS(bpf_prog_attach_opts, in_place, .flags = BPF_F_REPLACE, .replace_prog_fd = old);
	LIBBPF_OPTS(bpf_tc_hook, qdisc, .ifindex = attachment->ifindex,
		    .attach_point = attachment->mode == INTERFACE_TC ? BPF_TC_INGRESS : BPF_TC_EGRESS);
	LIBBPF_OPTS(bpf_tc_opts, options, .priority = PRIORITY);
	struct hook hook, in, out;
	int error;

	kernel_catch_messages();
	error = look_at_hook(attachment->ifindex, attachment->mode, &hook);
	if (error)
		return error;
	if (hook.has_tcx)
		return new < 0 ? bpf_prog_detach2(old, attachment->ifindex, type) :
				 bpf_prog_attach_opts(new, attachment->ifindex, type, &in_place);
	if (hook.id != attachment->prog_id)
		return -ENOENT;
	options.handle = hook.handle;
	if (new >= 0) {
		options.prog_fd = new;
		options.flags = BPF_TC_F_REPLACE;
		return bpf_tc_attach(&qdisc, &options);
	}
	error = bpf_tc_detach(&qdisc, &options);
	/* Takes the qdisc off, too, if it is ours and nobody else has a filter there. */
	if (!error && hook.handle & HANDLE_MADE && !look_at_hook(attachment->ifindex, INTERFACE_TC, &in) &&
	    !look_at_hook(attachment->ifindex, INTERFACE_TC_SENT, &out) && !in.filters && !out.filters) {
		qdisc.attach_point = BPF_TC_INGRESS | BPF_TC_EGRESS;
		bpf_tc_hook_destroy(&qdisc);
	}
	return error;
}
