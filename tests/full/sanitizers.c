// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Linked into what AddressSanitizer, UndefinedBehaviorSanitizer and LeakSanitizer check: the options, which hold if a
 * test clears the environment too; the search for leaks in processes that end by _exit(); and faults to be noticed.
 */
#include <errno.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sanitizer/lsan_interface.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_open
#define SYS_open SYS_ptrace /* this processor has openat() only */
#endif

#define COMMON "exitcode=99:print_stacktrace=1:log_path=" REPORTS

const char *__asan_default_options(void);
const char *__ubsan_default_options(void);
void __real__exit(int status) __attribute__((noreturn));
void __wrap__exit(int status) __attribute__((noreturn));
int __real_setrlimit(__rlimit_resource_t resource, const struct rlimit *limit);
int __wrap_setrlimit(__rlimit_resource_t resource, const struct rlimit *limit);
int __real_prctl(int option, ...);
int __wrap_prctl(int option, ...);

const char *__asan_default_options(void)
{
	return COMMON
		":detect_stack_use_after_return=1:strict_string_checks=1:handle_abort=1:allocator_may_return_null=1";
}

const char *__ubsan_default_options(void)
{
	return COMMON;
}

/* Helpers and soaks leave it to the end of the process to free memory. The search for leaks needs /proc. */
int __lsan_is_turned_off(void)
{
	return access("/proc/self/task", F_OK) || strstr(program_invocation_name, "tests/helpers/") ||
	       strstr(program_invocation_name, "tests/soak/");
}

/*
 * LeakSanitizer stops the process as a debugger does, which one that gave up its privileges otherwise forbids. Child
 * processes of unit tests end in the middle of a test.
 */
void __wrap__exit(int status)
{
	if (!strstr(program_invocation_name, "tests/unit/")) {
		prctl(PR_SET_DUMPABLE, 1);
		__lsan_do_leak_check();
	}
	__real__exit(status);
}

/* The memory of the sanitizers themselves is beyond any limit of data. */
int __wrap_setrlimit(__rlimit_resource_t resource, const struct rlimit *limit)
{
	return resource == RLIMIT_DATA ? 0 : __real_setrlimit(resource, limit);
}

/*
 * The search for leaks needs ptrace(), and open(), which glibc does not call, to list threads and for its report. If a filter
 * kills or refuses it, the search never ends.
 */
int __wrap_prctl(int option, ...)
{
	unsigned long argument[4];
	va_list arguments;

	va_start(arguments, option);
	for (int i = 0; i < 4; i++)
		argument[i] = va_arg(arguments, unsigned long);
	va_end(arguments);
	if (option == PR_SET_SECCOMP && argument[0] == SECCOMP_MODE_FILTER) {
		/* NOLINTNEXTLINE(performance-no-int-to-ptr): prctl() takes pointers as numbers. */
		const struct sock_fprog *filter = (const struct sock_fprog *)argument[1];

		for (unsigned int i = 0; i < filter->len; i++) {
			struct sock_filter *step = &filter->filter[i];

			/* AF_INET, which is allowed, is the same number as open(). */
			if (step->code == (BPF_JMP | BPF_JEQ | BPF_K) && step[1].k != SECCOMP_RET_ALLOW &&
			    (step->k == SYS_ptrace || step->k == SYS_open))
				step->k = SYS_execve;
		}
	}
	return __real_prctl(option, argument[0], argument[1], argument[2], argument[3]);
}

/* $PLANTED names the fault: see notices() in run.sh. */
__attribute__((constructor)) static void plant(void)
{
	const char *fault = getenv("PLANTED");
	int *volatile number;

	if (!fault)
		return;
	number = malloc(sizeof(*number));
	if (!number)
		abort();
	*number = INT_MAX;
	if (!strcmp(fault, "overflow"))
		number[1] = 0;
	if (!strcmp(fault, "undefined"))
		*number += 1;
	if (strcmp(fault, "leak"))
		free(number);
	number = NULL;
}
