// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * To be preloaded: the kernel says that it is Linux $RELEASE, and refuses what that one refuses. With $BACKPORTS its
 * distributor has added the programs for frames in several buffers.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <bpf/libbpf.h>

static int is_before(int minor)
{
	int major = 0, its_minor = 0;

	sscanf(getenv("RELEASE"), "%d.%d", &major, &its_minor);
	return major < 5 || (major == 5 && its_minor < minor);
}

int uname(struct utsname *host)
{
	int (*next)(struct utsname *) = (int (*)(struct utsname *))dlsym(RTLD_NEXT, "uname");
	const int error = next(host);

	snprintf(host->release, sizeof(host->release), "%s", getenv("RELEASE"));
	return error;
}

/* <bpf/bpf.h> is not included, because libbpf 1.1 has a const more there. */
int bpf_prog_load(enum bpf_prog_type type, const char *name, const char *license, const struct bpf_insn *program,
		  size_t count, void *options);

/* Refuses a helper of Linux 5.18. */
int bpf_prog_load(enum bpf_prog_type type, const char *name, const char *license, const struct bpf_insn *program,
		  size_t count, void *options)
{
	int (*next)(enum bpf_prog_type, const char *, const char *, const struct bpf_insn *, size_t, void *) =
		(int (*)(enum bpf_prog_type, const char *, const char *, const struct bpf_insn *, size_t,
			 void *))dlsym(RTLD_NEXT, "bpf_prog_load");
	const int fd = next(type, name, license, program, count, options);

	if (fd < 0 || program->imm != BPF_FUNC_xdp_get_buff_len || !is_before(18) || getenv("BACKPORTS"))
		return fd;
	close(fd);
	errno = EINVAL;
	return -EINVAL;
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
