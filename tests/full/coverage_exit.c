// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* In the place of _exit() where coverage is measured: what a process that ends by it has run, counts too. */
#include <unistd.h>

void __gcov_dump(void);
void __real__exit(int status) __attribute__((noreturn));
void __wrap__exit(int status) __attribute__((noreturn));

void __wrap__exit(int status)
{
	__gcov_dump();
	__real__exit(status);
}
