// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * `full_nohz may|may-not COMMAND...` runs a command as on a kernel with nohz_full CPUs, which refuses
 * MEMBARRIER_CMD_GLOBAL with EINVAL, in a service that may, or may not, choose its CPUs.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

int main(int argc, char **argv)
{
	const unsigned int error = argc > 2 && !strcmp(argv[1], "may-not") ? EPERM : 0;
	struct sock_filter steps[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_setaffinity, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, error ? SECCOMP_RET_ERRNO | error : SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog filter = { sizeof(steps) / sizeof(steps[0]), steps };

	if (argc < 3 || (!error && strcmp(argv[1], "may") != 0)) {
		fputs("usage: full_nohz may|may-not COMMAND...\n", stderr);
		return 2;
	}
	if (!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		execvp(argv[2], argv + 2);
	perror("full_nohz");
	return 1;
}
