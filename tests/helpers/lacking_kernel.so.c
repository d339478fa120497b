// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * To be preloaded: the kernel has no helper whose number is in $LACKS (BPF_FUNC_...), and so refuses every program; with
 * $LACKS=conntrack it has no connection tracking.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/libbpf.h>

static int lacks_helper(int helper)
{
	char word[16];

	snprintf(word, sizeof(word), " %d ", helper);
	return strstr(getenv("LACKS"), word) != NULL;
}

int libbpf_probe_bpf_helper(enum bpf_prog_type type, enum bpf_func_id helper, const void *options)
{
	int (*next)(enum bpf_prog_type, enum bpf_func_id, const void *) =
		(int (*)(enum bpf_prog_type, enum bpf_func_id, const void *))dlsym(RTLD_NEXT, "libbpf_probe_bpf_helper");

	return lacks_helper(helper) ? 0 : next(type, helper, options);
}

/* Maps can be made. */
int bpf_object__load(struct bpf_object *object)
{
	int (*next)(struct bpf_object *) = (int (*)(struct bpf_object *))dlsym(RTLD_NEXT, "bpf_object__load");
	struct bpf_program *program;

	bpf_object__for_each_program(program, object)
	{
		if (bpf_program__autoload(program) &&
		    (lacks_helper(BPF_FUNC_loop) || lacks_helper(BPF_FUNC_xdp_get_buff_len)))
			return -EINVAL;
	}
	return next(object);
}

int access(const char *path, int mode)
{
	int (*next)(const char *, int) = (int (*)(const char *, int))dlsym(RTLD_NEXT, "access");

	if (strcmp(getenv("LACKS"), "conntrack") || strcmp(path, "/sys/module/nf_conntrack"))
		return next(path, mode);
	errno = ENOENT;
	return -1;
}
