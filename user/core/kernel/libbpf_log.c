// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Catches the messages that libbpf prints, keeps the kernel's error text from them, and words why a call was refused. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include <bpf/libbpf.h>

#include "base/privileges.h"
#include "kernel/internal.h"

/*
 * The kernel's last error text for this thread since kernel_catch_messages(). It says more than errno. Only
 * bpf_xdp_attach() gives texts, so only its caller shows them.
 */
static _Thread_local char kernel_message[REASON_BYTES / 2];
static _Thread_local bool is_listening;

/* Set by the program that uses our library, if it uses libbpf, too. */
static libbpf_print_fn_t others_print;

static int keep_kernel_message(enum libbpf_print_level level, const char *format, va_list arguments)
{
	static const char marker[] = "Kernel error message: ";
	char line[512];
	const char *found;

	if (!is_listening) {
		const libbpf_print_fn_t print = __atomic_load_n(&others_print, __ATOMIC_ACQUIRE);

		return print ? print(level, format, arguments) : 0;
	}
	vsnprintf(line, sizeof(line), format, arguments);
	found = strstr(line, marker);
	if (found)
		snprintf(kernel_message, sizeof(kernel_message), "%.*s", (int)strcspn(found + strlen(marker), "\n"),
			 found + strlen(marker));
	return 0;
}

void kernel_catch_messages(void)
{
	libbpf_print_fn_t before;

	kernel_message[0] = '\0';
	is_listening = true;
	before = libbpf_set_print(keep_kernel_message);
	if (before != keep_kernel_message)
		__atomic_store_n(&others_print, before, __ATOMIC_RELEASE);
}

void kernel_catch_no_messages(void)
{
	is_listening = false;
}

const char *kernel_error_text(void)
{
	return kernel_message;
}

bool kernel_says_above(void)
{
	return strstr(kernel_message, "upper device");
}

bool kernel_is_before(unsigned int version, unsigned int patchlevel)
{
	unsigned int its_version, its_patchlevel;
	struct utsname host;

	return !uname(&host) && sscanf(host.release, "%u.%u", &its_version, &its_patchlevel) == 2 &&
	       (its_version < version || (its_version == version && its_patchlevel < patchlevel));
}

int kernel_lacks_reason(struct reason *reason)
{
	/* A process that may not ask gets 1, and a reason of its own when it loads a program. */
	const bool has_loop = libbpf_probe_bpf_helper(BPF_PROG_TYPE_XDP, BPF_FUNC_loop, NULL);
	const bool has_frags = libbpf_probe_bpf_helper(BPF_PROG_TYPE_XDP, BPF_FUNC_xdp_get_buff_len, NULL);
	struct utsname host = {};

	if (has_loop && has_frags)
		return 0;
	uname(&host);
	return reason_set(reason, -ENOSYS,
			  "this kernel (%s) lacks %s%s%s, which xdp-cuckoo needs and Linux 6.1 has; a filter that an older "
			  "xdp-cuckoo started here goes on filtering",
			  host.release, has_loop ? "" : "bpf_loop()", has_loop || has_frags ? "" : " and ",
			  has_frags ? "" : "XDP for frames in several buffers");
}

static int set_reason(struct reason *reason, int error, const char *what, const char *subject, const char *words)
{
	if (error == -EEXIST && *words && kernel_says_above())
		return reason_set(reason, -EBUSY,
				  "%s%s: an interface above it (a bridge, bond, VLAN or macvlan) runs an XDP program, and "
				  "meanwhile the kernel changes none below; unload that one first",
				  what, subject);
	/* The kernel has no word for a kind of map, a flag or a helper that it does not know. */
	if ((error == -EINVAL || error == -EACCES) && kernel_lacks_reason(reason))
		return -ENOSYS;
	if ((error == -EPERM || error == -EACCES) && privileges_has(CAP_BPF) && privileges_has(CAP_NET_ADMIN) &&
	    privileges_has(CAP_PERFMON))
		return reason_set(reason, error,
				  "%s%s: not permitted, though this process has CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON: a "
				  "user namespace (rootless container), a security module or the kernel's verifier forbids "
				  "it; dmesg may say more",
				  what, subject);
	if (error == -EPERM || error == -EACCES)
		return reason_set(reason, error,
				  "%s%s: not permitted; run it as root, or with "
				  "CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON",
				  what, subject);
	/* Commands take -EINVAL for bad input, but here the input was fine. */
	return reason_set(reason, error == -EINVAL ? -EIO : error, "%s%s: %s%s%s%s", what, subject, strerror(-error),
			  *words ? " (" : "", words, *words ? ")" : "");
}

int kernel_refuse(struct reason *reason, int error, const char *what, const char *subject)
{
	return set_reason(reason, error, what, subject, "");
}

int kernel_refuse_in_words(struct reason *reason, int error, const char *what, const char *subject)
{
	return set_reason(reason, error, what, subject, kernel_error_text());
}
