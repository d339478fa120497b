/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What every test program has: TEST() defines a test, and TEST_MAIN() at the end of the file runs all of them. */
#ifndef XDP_CUCKOO_TEST_H
#define XDP_CUCKOO_TEST_H

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define TESTS_MAX 64

static struct CMUnitTest tests[TESTS_MAX]; /* cmocka ignores the rows that stay empty */
static size_t test_count;

static inline void test_add(const char *name, CMUnitTestFunction run, CMFixtureFunction setup,
			    CMFixtureFunction teardown)
{
	if (test_count == TESTS_MAX)
		abort();
	tests[test_count++] = (struct CMUnitTest){ name, run, setup, teardown, NULL };
}

/* Defines a function that cmocka runs as a test. The statements in `...` call its body and see `void **state`. */
#define TEST_FUNCTION(name, parameter, ...) \
	static void name##_body(parameter); \
	static void name(void **state) \
	{ \
		(void)state; \
		__VA_ARGS__; \
	} \
	static void name##_body(parameter)

#define TEST_BY(name, parameter, setup, teardown, ...) \
	static void name(void **state); \
	__attribute__((constructor)) static void name##_add(void) \
	{ \
		test_add(#name, name, setup, teardown); \
	} \
	TEST_FUNCTION(name, parameter, __VA_ARGS__)

#define TEST(name) TEST_BY(name, void, NULL, NULL, name##_body())

/* A test whose parameter is what the setup has made. */
#define TEST_WITH(name, parameter, setup, teardown) TEST_BY(name, parameter, setup, teardown, name##_body(*state))

/* The setup and the teardown of all tests together, which may be NULL. */
#define TEST_MAIN(setup, teardown) \
	int main(void) \
	{ \
		return cmocka_run_group_tests(tests, setup, teardown); \
	}

/* Without root, the root of a user namespace of this process: it may do to its other namespaces what root may, but load no BPF. */
static inline bool become_root(void)
{
	const unsigned int user = geteuid(), group = getegid();
	char map[3][32] = { "deny" };
	static const char *const files[3] = { "/proc/self/setgroups", "/proc/self/gid_map", "/proc/self/uid_map" };

	if (!user)
		return true;
	if (unshare(CLONE_NEWUSER))
		return false;
	snprintf(map[1], sizeof(map[1]), "0 %u 1", group);
	snprintf(map[2], sizeof(map[2]), "0 %u 1", user);
	for (size_t i = 0; i < COUNT(files); i++) {
		const int fd = open(files[i], O_WRONLY | O_CLOEXEC);

		if (fd < 0 || write(fd, map[i], strlen(map[i])) < 0)
			return false;
		close(fd);
	}
	return true;
}

static inline void needs_root(void)
{
	if (geteuid()) {
		fprintf(stderr, "skipped: needs root\n");
		skip();
	}
}

static inline uint64_t environment_number(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 0) : otherwise;
}

/* Printed, so that a failed run can be repeated. */
static inline uint64_t seed_of_run(void)
{
	const uint64_t seed = environment_number("SEED", 1);

	print_message("# SEED=%llu\n", (unsigned long long)seed);
	return seed;
}

#endif
