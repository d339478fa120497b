/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The lists of a store and the undo of a change, for tests of owners. */
#ifndef XDP_CUCKOO_TEST_LISTS_FIXTURE_H
#define XDP_CUCKOO_TEST_LISTS_FIXTURE_H

#include "unit/clock_fixture.h"

static inline struct store_lists lists_of(struct fixture *f)
{
	struct store_lists lists;

	assert_int_equal(store_lists(f->store, &lists), 0);
	return lists;
}

static inline unsigned int open_list(struct fixture *f, const char *name)
{
	unsigned int number;

	assert_int_equal(store_list_open(f->store, name, name, &number), 0);
	return number;
}

static inline int put_back(const struct rule *rule, bool is_back, void *context)
{
	struct fixture *f = context;
	enum store_added ignored;

	if (is_back)
		assert_int_equal(store_put_back(f->store, rule, &ignored), 0);
	else
		assert_true(del_rule(f->store, rule) >= 0);
	return 0;
}

static inline void undo(struct fixture *f)
{
	begin(f);
	assert_int_equal(store_undo_each(f->store, put_back, f), 0);
	assert_int_equal(store_forget_pending(f->store), 0);
	end(f);
}

#endif
