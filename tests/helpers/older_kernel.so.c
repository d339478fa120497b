// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* To be preloaded: the kernel says that it is Linux $RELEASE, and refuses what that one refuses. */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <linux/capability.h>

#include <bpf/libbpf.h>

static int is_before(int minor)
{
	int major = 0, its_minor = 0;

	sscanf(getenv("RELEASE"), "%d.%d", &major, &its_minor);
	return major < 5 || (major == 5 && its_minor < minor);
}

/* Without CAP_BPF libbpf supposes that the kernel has everything. */
static int may_ask(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	return !syscall(SYS_capget, &head, data) && data[CAP_TO_INDEX(CAP_BPF)].effective & CAP_TO_MASK(CAP_BPF);
}

int uname(struct utsname *host)
{
	int (*next)(struct utsname *) = (int (*)(struct utsname *))dlsym(RTLD_NEXT, "uname");
	const int error = next(host);

	snprintf(host->release, sizeof(host->release), "%s", getenv("RELEASE"));
	return error;
}

int libbpf_probe_bpf_helper(enum bpf_prog_type type, enum bpf_func_id helper, const void *options)
{
	int (*next)(enum bpf_prog_type, enum bpf_func_id, const void *) =
		(int (*)(enum bpf_prog_type, enum bpf_func_id, const void *))dlsym(RTLD_NEXT,
										   "libbpf_probe_bpf_helper");

	return helper == BPF_FUNC_xdp_load_bytes && is_before(18) && may_ask() ? 0 : next(type, helper, options);
}

int bpf_object__load(struct bpf_object *object)
{
	int (*next)(struct bpf_object *) = (int (*)(struct bpf_object *))dlsym(RTLD_NEXT, "bpf_object__load");
	struct rlimit limit;

	if (is_before(10))
		return -EINVAL;
	if (is_before(11) && !getrlimit(RLIMIT_MEMLOCK, &limit) && limit.rlim_cur != RLIM_INFINITY)
		return -EPERM;
	return next(object);
}
