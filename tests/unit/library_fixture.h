/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A filter made by the library. The test program has its own network namespace, with the interfaces va and vb. */
#ifndef XDP_CUCKOO_TEST_LIBRARY_FIXTURE_H
#define XDP_CUCKOO_TEST_LIBRARY_FIXTURE_H

#include "unit/store_fixture.h"

#include <arpa/inet.h>
#include <sched.h>

#include "library/xdp-cuckoo.h"

#define OWN_ADDRESS "10.99.0.2" /* of va */

static bool may_load; /* BPF: the root of a user namespace may not */

/* Without iproute2 or namespaces every test skips. */
static inline int set_up_host(void **state)
{
	(void)state;
	may_load = !geteuid();
	if (system("command -v ip >/dev/null") || !become_root())
		return 0;
	return unshare(CLONE_NEWNET) || system("ip link add va type veth peer name vb && ip link set va up && "
					       "ip link set vb up && ip address add " OWN_ADDRESS "/24 dev va");
}

#define LIBRARY_TEST(name) TEST_BY(name, struct fixture *f, setup, teardown, needs_root(); name##_body(*state))
#define LOADED_TEST(name) TEST_BY(name, struct fixture *f, setup, teardown, needs_to_load(); name##_body(*state))

static inline void needs_to_load(void)
{
	if (!may_load) {
		fprintf(stderr, "skipped: needs root\n");
		skip();
	}
}

static inline struct xdp_cuckoo_filter *open_filter(const struct fixture *f, const char *name, unsigned int flags)
{
	struct xdp_cuckoo_filter *filter;
	int error = xdp_cuckoo_open(name, f->dir, flags, &filter);

	if (error)
		fail_msg("xdp_cuckoo_open: %d: %s", error, xdp_cuckoo_error(filter));
	return filter;
}

/* An error comes with a text of one line; success comes without a text. */
static inline void is_told(const struct xdp_cuckoo_filter *filter, int error, int expected)
{
	const char *text = xdp_cuckoo_error(filter);

	if (error != expected)
		fail_msg("%d instead of %d: %s", error, expected, text);
	assert_null(strchr(text, '\n'));
	assert_int_equal(*text != '\0', error != 0);
}

static inline struct xdp_cuckoo_rule parsed(const char *text)
{
	struct xdp_cuckoo_rule rule;

	if (xdp_cuckoo_parse(NULL, text, &rule))
		fail_msg("'%s' is no rule", text);
	return rule;
}

static inline int add_text(struct xdp_cuckoo_filter *filter, const char *text)
{
	const struct xdp_cuckoo_rule rule = parsed(text);

	return xdp_cuckoo_add(filter, &rule);
}

static inline int del_text(struct xdp_cuckoo_filter *filter, const char *text)
{
	const struct xdp_cuckoo_rule rule = parsed(text);

	return xdp_cuckoo_del(filter, &rule);
}

static inline enum xdp_cuckoo_answer ask(struct xdp_cuckoo_filter *filter, const char *text)
{
	const struct xdp_cuckoo_rule flow = parsed(text);
	enum xdp_cuckoo_answer answer;

	is_told(filter, xdp_cuckoo_test(filter, &flow, &answer, NULL), 0);
	return answer;
}

static inline int count_one(const struct xdp_cuckoo_rule *rule, void *count)
{
	(void)rule;
	++*(unsigned int *)count;
	return 0;
}

static inline unsigned int count_rules(struct xdp_cuckoo_filter *filter)
{
	unsigned int count = 0;

	is_told(filter, xdp_cuckoo_each(filter, count_one, &count), 0);
	return count;
}

#endif
