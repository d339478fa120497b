/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A store in a new directory for each test, and short forms for its calls. */
#ifndef XDP_CUCKOO_TEST_STORE_FIXTURE_H
#define XDP_CUCKOO_TEST_STORE_FIXTURE_H

#include <ftw.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/random.h"
#include "store/store.h"
#include "unit/test.h"

/* A test with a store that is open for writing, and a test that opens its store itself. */
#define STORE_TEST(name) TEST_WITH(name, struct fixture *f, setup_store, teardown)
#define DIRECTORY_TEST(name) TEST_WITH(name, struct fixture *f, setup, teardown)

struct fixture {
	char top[32];           /* made by mkdtemp() */
	char dir[48], data[64]; /* of the store: TOP/state, TOP/state/data.mdb */
	struct store *store;
	struct reason reason;
};

static uint64_t random_state __attribute__((unused));

/* The setup of a group whose tests use below(). */
static inline int seed(void **state)
{
	const char *text = getenv("SEED");

	(void)state;
	if (text)
		random_state = strtoull(text, NULL, 0);
	else if (getrandom(&random_state, sizeof(random_state), 0) != sizeof(random_state))
		return -1;
	print_message("# SEED=%llu\n", (unsigned long long)random_state);
	return 0;
}

static inline __u64 below(__u64 bound)
{
	return random_below(&random_state, bound);
}

static inline int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	umask(022);
	strcpy(f->top, "/tmp/xdp-cuckoo-store.XXXXXX");
	if (!mkdtemp(f->top)) {
		free(f);
		return -1;
	}
	snprintf(f->dir, sizeof(f->dir), "%s/state", f->top);
	snprintf(f->data, sizeof(f->data), "%s/data.mdb", f->dir);
	*state = f;
	return 0;
}

static inline int remove_one(const char *path, const struct stat *file, int type, struct FTW *walk)
{
	(void)file, (void)type, (void)walk;
	return remove(path);
}

static inline int teardown(void **state)
{
	struct fixture *f = *state;
	int error;

	store_close(f->store);
	error = nftw(f->top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(f);
	return error;
}

static inline void open_store(struct fixture *f, enum store_mode mode)
{
	int error = store_open(f->dir, mode, &f->store, &f->reason);

	if (error)
		fail_msg("store_open: %d: %s", error, f->reason.text);
}

static inline int setup_store(void **state)
{
	int error = setup(state);

	if (!error)
		open_store(*state, STORE_WRITE);
	return error;
}

static inline void close_store(struct fixture *f)
{
	store_close(f->store);
	f->store = NULL;
}

static inline void reopen(struct fixture *f, enum store_mode mode)
{
	close_store(f);
	open_store(f, mode);
}

/* One transaction: begin() to end(). */
static inline void begin(struct fixture *f)
{
	assert_int_equal(store_begin(f->store), 0);
}

static inline void end(struct fixture *f)
{
	assert_int_equal(store_commit(f->store), 0);
}

static inline void begin_pending(struct fixture *f, __s64 timeout_ms)
{
	begin(f);
	assert_int_equal(store_set_pending(f->store, timeout_ms), 0);
}

/* The store does not open. The error text is one line and names its path. */
static inline void open_fails(struct fixture *f, enum store_mode mode, int error)
{
	f->reason.text[0] = '\0';
	assert_int_equal(store_open(f->dir, mode, &f->store, &f->reason), error);
	assert_null(f->store);
	assert_non_null(strstr(f->reason.text, f->dir));
	assert_null(strchr(f->reason.text, '\n'));
}

static inline mode_t mode_of(const char *path)
{
	struct stat file;

	assert_int_equal(lstat(path, &file), 0);
	return file.st_mode & 07777;
}

static inline struct rule rule_of(const char *text)
{
	struct reason reason;
	struct rule rule;

	if (rule_parse(text, &rule, &reason))
		fail_msg("%s: %s", text, reason.text);
	return rule;
}

/* These return -errno, or an enum store_added or store_deleted. */
static inline int put_rule_for(struct store *store, const struct rule *rule, unsigned int owner)
{
	enum store_added added = STORE_ADDED;
	int error = store_put(store, rule, owner, 0, &added);

	return error ? error : (int)added;
}

static inline int put_rule(struct store *store, const struct rule *rule)
{
	return put_rule_for(store, rule, STORE_BY_HAND);
}

static inline int give_up_rule(struct store *store, const struct rule *rule, unsigned int owner)
{
	enum store_deleted deleted = STORE_DELETED;
	int error = store_give_up(store, rule, 1ULL << owner, &deleted);

	return error ? error : (int)deleted;
}

static inline int del_rule(struct store *store, const struct rule *rule)
{
	enum store_deleted deleted = STORE_DELETED;
	int error = store_give_up(store, rule, STORE_ALL_OWNERS, &deleted);

	return error ? error : (int)deleted;
}

static inline int put(struct fixture *f, const char *text)
{
	struct rule rule = rule_of(text);

	return put_rule(f->store, &rule);
}

static inline int del(struct fixture *f, const char *text)
{
	struct rule rule = rule_of(text);

	return del_rule(f->store, &rule);
}

/* One transaction. */
static inline void add(struct fixture *f, const char *text)
{
	begin(f);
	assert_int_equal(put(f, text), 0);
	end(f);
}

static inline bool has(struct fixture *f, const char *text)
{
	struct rule rule = rule_of(text);
	int error = store_get(f->store, &rule);

	if (error != -ENOENT)
		assert_int_equal(error, 0);
	return !error;
}

/* The stored rule, with its timeout and comment. */
static inline struct rule get(struct fixture *f, const char *text)
{
	struct rule rule = rule_of(text);

	assert_int_equal(store_get(f->store, &rule), 0);
	return rule;
}

static inline int put_for(struct fixture *f, const char *text, __s64 timeout_ms)
{
	struct rule rule = rule_of(text);

	rule.timeout_ms = timeout_ms;
	return put_rule(f->store, &rule);
}

static inline void add_for(struct fixture *f, const char *text, __s64 timeout_ms)
{
	begin(f);
	assert_int_equal(put_for(f, text, timeout_ms), 0);
	end(f);
}

static inline void is_as(struct fixture *f, const char *text, __s64 timeout_ms, const char *comment)
{
	struct rule rule = get(f, text);

	assert_int_equal(rule.timeout_ms, timeout_ms);
	assert_string_equal(rule.comment, comment);
}

static inline struct store_info info_of(struct fixture *f)
{
	struct store_info info;

	assert_int_equal(store_info(f->store, &info), 0);
	return info;
}

static inline void holds(struct fixture *f, __u64 generation, __u64 rules, __u64 keys)
{
	struct store_info info = info_of(f);

	assert_int_equal(info.generation, generation);
	assert_int_equal(info.rules, rules);
	assert_int_equal(info.keys, keys);
}

/* A rule for each n below 64: no two have the same kind (fields and action), so none can join another. */
static inline const char *kind_of_rule(unsigned int n, char text[RULE_TEXT_BYTES])
{
	sprintf(text, "src %s%s%s%s%s action %s", n & 32 ? "192.0.0.0/16" : "192.0.2.1",
		n & 1 ? " dst 198.51.100.1" : "", n & 2 ? " proto udp" : "", n & 4 ? " sport 7" : "",
		n & 8 ? " dport 9" : "", n & 16 ? "pass" : "drop");
	return text;
}

#endif
