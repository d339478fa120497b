// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a store opens; what it refuses to open and leaves unchanged; and full disks. */
#include "unit/lmdb_fixture.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>

#define EXIT_SKIP 77
#define NOBODY 65534
#define META_BYTES 144
#define META_BYTES_1 40 /* of schema 1 */
#define META_SCHEMA_OFFSET 8

DIRECTORY_TEST(test_a_missing_store_is_made_only_for_writing)
{
	open_fails(f, STORE_READ, -ENOENT);
	assert_int_equal(access(f->dir, F_OK), -1);
	assert_int_equal(mkdir(f->dir, 0700), 0);
	open_fails(f, STORE_READ, -ENOENT);
	close(creat(f->data, 0600));
	open_fails(f, STORE_READ, -ENOENT);
	open_store(f, STORE_WRITE);
	add(f, "192.0.2.1");
}

DIRECTORY_TEST(test_makes_directories)
{
	char parent[48], dir[64], data[80];

	snprintf(parent, sizeof(parent), "%s/parent", f->top);
	snprintf(dir, sizeof(dir), "%s/state", parent);
	snprintf(data, sizeof(data), "%s//", dir);
	assert_int_equal(store_open(data, STORE_WRITE, &f->store, &f->reason), 0);
	assert_int_equal(mode_of(parent), 0700);
	assert_int_equal(mode_of(dir), 0700);
	snprintf(data, sizeof(data), "%s/data.mdb", dir);
	assert_int_equal(mode_of(data), 0600);
}

static int inherited_files(void)
{
	int count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += !fcntl(fd, F_GETFD);
	return count;
}

DIRECTORY_TEST(test_two_stores_at_once)
{
	const int before = inherited_files();
	struct store *other;
	char dir[64];

	open_store(f, STORE_WRITE);
	assert_int_equal(inherited_files(), before); /* a program that this process starts has no store */
	snprintf(dir, sizeof(dir), "%s/other", f->top);
	assert_int_equal(store_open(dir, STORE_WRITE, &other, &f->reason), 0);
	store_close(other);
}

DIRECTORY_TEST(test_directory_is_a_file)
{
	close(creat(f->dir, 0600));
	open_fails(f, STORE_WRITE, -ENOTDIR);
	open_fails(f, STORE_READ, -ENOTDIR);
}

DIRECTORY_TEST(test_lock_is_a_link)
{
	char link[64];

	assert_int_equal(mkdir(f->dir, 0700), 0);
	snprintf(link, sizeof(link), "%s/writer.lock", f->dir);
	assert_int_equal(symlink(f->data, link), 0);
	open_fails(f, STORE_WRITE, -ELOOP);
	assert_int_equal(access(f->data, F_OK), -1);
}

/* Refused for reading and for writing, and not changed. */
static void refuses(struct fixture *f, const void *bytes, size_t length, int error)
{
	char again[16384];
	int fd;

	assert_true(length < sizeof(again));
	mkdir(f->dir, 0700);
	fd = creat(f->data, 0600);
	assert_int_equal(write(fd, bytes, length), length);
	close(fd);
	open_fails(f, STORE_READ, error);
	open_fails(f, STORE_WRITE, error);
	fd = open(f->data, O_RDONLY);
	assert_int_equal(read(fd, again, sizeof(again)), length);
	close(fd);
	assert_memory_equal(again, bytes, length);
}

DIRECTORY_TEST(test_foreign_file)
{
	static const char text[] = "192.0.2.1\n";
	unsigned char noise[12288];

	for (size_t i = 0; i < sizeof(noise); i++)
		noise[i] = i * i >> 3 ^ i;
	refuses(f, text, sizeof(text) - 1, -EBADMSG);
	refuses(f, noise, sizeof(noise), -EBADMSG);
	assert_int_equal(unlink(f->data), 0);
	assert_int_equal(mkdir(f->data, 0700), 0);
	open_fails(f, STORE_READ, -EBADMSG);
	open_fails(f, STORE_WRITE, -EBADMSG);
}

/* The first page of an environment, as LMDB writes it there: its header, of which the flags count, and the magic number. */
DIRECTORY_TEST(test_environment_of_another_machine)
{
	static const struct {
		size_t flags, magic;
		unsigned char flag[2], number[4];
		int error;
	} machines[] = {
		{ 10, 16, { 0, 8 }, { 0xBE, 0xEF, 0xC0, 0xDE }, -ENOEXEC }, /* 64 bits, the highest byte first */
		{ 6, 12, { 0, 8 }, { 0xBE, 0xEF, 0xC0, 0xDE }, -ENOEXEC },  /* 32 bits */
		{ 6, 12, { 8, 0 }, { 0xDE, 0xC0, 0xEF, 0xBE }, -ENOEXEC },  /* the lowest byte first */
		{ 10, 16, { 0, 8 }, { 0xDE, 0xC0, 0xEF, 0xBE }, -EBADMSG }, /* a damaged one of this machine */
		{ 10, 16, { 8, 0 }, { 0xDE, 0xC0, 0xEF, 0xBF }, -EBADMSG },
	};

	for (size_t i = 0; i < COUNT(machines); i++) {
		unsigned char pages[8192] = { 0 };

		memcpy(pages + machines[i].flags, machines[i].flag, sizeof(machines[i].flag));
		memcpy(pages + machines[i].magic, machines[i].number, sizeof(machines[i].number));
		refuses(f, pages, sizeof(pages), machines[i].error);
		assert_int_equal(strstr(f->reason.text, "another byte order") != NULL, machines[i].error == -ENOEXEC);
		refuses(f, pages, 17, -EBADMSG);
	}
}

DIRECTORY_TEST(test_foreign_environment)
{
	lmdb_put(f, "others", "key", (MDB_val){ 5, "value" });
	open_fails(f, STORE_READ, -EBADMSG);
	open_fails(f, STORE_WRITE, -EBADMSG);
	lmdb_put(f, "meta", "key", (MDB_val){ 5, "value" });
	open_fails(f, STORE_WRITE, -EBADMSG);
}

/* The first bytes of a store's meta, and `more` bytes after them. */
static void meta_put(struct fixture *f, __u64 magic, __u32 schema, size_t length)
{
	__u8 bytes[META_BYTES + 8] = { 0 };

	memcpy(bytes, &magic, sizeof(magic));
	memcpy(bytes + META_SCHEMA_OFFSET, &schema, sizeof(schema));
	lmdb_put(f, "meta", "store", (MDB_val){ length, bytes });
}

STORE_TEST(test_other_schema)
{
	static const struct {
		__u64 magic;
		__u32 schema;
		size_t length;
		int error;
	} rows[] = {
		{ STORE_MAGIC, STORE_SCHEMA + 1, META_BYTES, -EPROTO },
		{ STORE_MAGIC, STORE_SCHEMA + 1, META_BYTES + 8, -EPROTO },
		{ STORE_MAGIC, STORE_SCHEMA + 1, META_BYTES_1, -EPROTO },
		{ STORE_MAGIC, 0, META_BYTES_1, -EPROTO },
		{ STORE_MAGIC, 1, META_BYTES_1, -EPROTO },
		{ STORE_MAGIC, 2, META_BYTES, -EPROTO },
		{ STORE_MAGIC + 1, STORE_SCHEMA, META_BYTES, -EBADMSG },
		{ STORE_MAGIC + 1, 1, META_BYTES_1, -EBADMSG },
		{ STORE_MAGIC, STORE_SCHEMA, META_BYTES + 8, -EBADMSG },
		{ STORE_MAGIC, STORE_SCHEMA, META_BYTES - 8, -EBADMSG },
		{ STORE_MAGIC, STORE_SCHEMA, META_BYTES_1, -EBADMSG },
		{ STORE_MAGIC, STORE_SCHEMA, META_SCHEMA_OFFSET, -EBADMSG },
	};

	add(f, "192.0.2.1");
	close_store(f);
	for (size_t i = 0; i < COUNT(rows); i++) {
		meta_put(f, rows[i].magic, rows[i].schema, rows[i].length);
		open_fails(f, STORE_READ, rows[i].error);
		open_fails(f, STORE_WRITE, rows[i].error);
	}
	meta_put(f, STORE_MAGIC, STORE_SCHEMA, META_BYTES);
	open_store(f, STORE_WRITE);
	assert_true(has(f, "192.0.2.1"));
}

/* Only that version knows what its records mean. */
STORE_TEST(test_written_by_a_newer_version)
{
	const __u32 newer = ~0U;

	add(f, "192.0.2.1");
	close_store(f);
	lmdb_put(f, "meta", "tool", (MDB_val){ sizeof(newer), (void *)&newer });
	open_fails(f, STORE_WRITE, -EPROTONOSUPPORT);
	open_store(f, STORE_READ);
	assert_true(has(f, "192.0.2.1"));
}

static int stop(const struct rule *rule, void *context)
{
	(void)rule, (void)context;
	return 1;
}

/* The disk has written a page where another belongs. Its rules are ordered, too. */
STORE_TEST(test_a_page_in_place_of_another)
{
	char page[4096];
	int fd;

	add(f, "192.0.2.1 comment lost");
	for (int is_whole = 1; is_whole >= 0; is_whole--) {
		for (enum store_mode mode = STORE_READ; mode <= STORE_WRITE; mode++) {
			reopen(f, mode);
			assert_int_equal(store_each(f->store, stop, NULL), is_whole ? 1 : -EBADMSG);
		}
		close_store(f);
		fd = open(f->data, O_RDWR);
		for (off_t at = 0; pread(fd, page, sizeof(page), at) == sizeof(page); at += sizeof(page))
			if (memmem(page, sizeof(page), "lost", 4))
				assert_int_equal(pwrite(fd, &(char){ page[0] + 1 }, 1, at), 1);
		close(fd);
	}
}

/* A copy has an id of its own as soon as a filter has its rules: both may change. In use, it is the store that was moved. */
STORE_TEST(test_copies)
{
	const struct store_info first = info_of(f);
	char command[128];

	assert_int_equal(store_home(f->store), STORE_HOME_NEW);
	for (int copy = 0; copy < 3; copy++) {
		const bool is_in_use = copy == 1;

		for (int again = 0; again < 2; again++)
			store_take_home(f->store, is_in_use);
		assert_int_equal(store_home(f->store), STORE_HOME_HERE);
		assert_int_equal(!memcmp(info_of(f).id, first.id, sizeof(first.id)), copy < 2);
		close_store(f);
		snprintf(command, sizeof(command), "cp -a %s %s/%d", f->dir, f->top, copy);
		assert_int_equal(system(command), 0);
		snprintf(f->dir, sizeof(f->dir), "%s/%d", f->top, copy);
		open_store(f, STORE_WRITE);
		assert_int_equal(store_home(f->store), STORE_HOME_NEW);
	}
}

/* Runs `child` in a process of its own; what it returns is its exit status. */
static void in_child(struct fixture *f, int (*child)(struct fixture *f), const char *needs)
{
	int status;
	pid_t pid;

	pid = fork();
	assert_int_not_equal(pid, -1);
	if (pid == 0)
		_exit(child(f));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == EXIT_SKIP) {
		fprintf(stderr, "skipped: %s\n", needs);
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* 0, or the line that was wrong: asserts of cmocka do not work in a child. */
#define CHILD_CHECK(condition) \
	({ \
		if (!(condition)) { \
			fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
			_exit(1); \
		} \
	})

static int child_reads_only(struct fixture *f)
{
	struct store_info info;

	if (setgid(NOBODY) || setuid(NOBODY))
		return EXIT_SKIP;
	CHILD_CHECK(store_open(f->dir, STORE_READ, &f->store, &f->reason) == 0);
	CHILD_CHECK(store_info(f->store, &info) == 0 && info.rules == 1);
	store_close(f->store);
	CHILD_CHECK(store_open(f->dir, STORE_WRITE, &f->store, &f->reason) == -EACCES);
	CHILD_CHECK(strstr(f->reason.text, "run as its owner"));
	CHILD_CHECK(chmod(f->data, 0600) == -1);
	return 0;
}

STORE_TEST(test_reads_without_permission_to_write)
{
	needs_root();
	add(f, "192.0.2.1");
	close_store(f);
	assert_int_equal(chmod(f->top, 0755), 0);
	assert_int_equal(chmod(f->dir, 0755), 0);
	assert_int_equal(chmod(f->data, 0644), 0);
	in_child(f, child_reads_only, "changing to another user needs root");
}

static bool mounts_small_disk(const char *path)
{
	return !unshare(CLONE_NEWNS) && !mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) &&
	       !mount("none", path, "tmpfs", 0, "size=1m");
}

static int child_fills_disk(struct fixture *f)
{
	struct rule rule = rule_of("192.0.2.1");
	struct store_pending pending;
	struct stat before, after;
	struct store_info info;
	int error = 0;

	if (!mounts_small_disk(f->top))
		return EXIT_SKIP;
	CHILD_CHECK(store_open(f->dir, STORE_WRITE, &f->store, &f->reason) == 0);
	CHILD_CHECK(store_begin(f->store) == 0 && put_rule(f->store, &rule) == 0);
	CHILD_CHECK(store_commit(f->store) == 0);

	CHILD_CHECK(stat(f->data, &before) == 0);
	CHILD_CHECK(store_begin(f->store) == 0 && store_set_pending(f->store, 1000) == 0);
	rule.timeout_ms = 1000000;
	for (__u32 i = 0; i < 100000 && !error; i++) {
		rule.src.v4 = i + 1000;
		error = put_rule(f->store, &rule);
	}
	CHILD_CHECK(error == 0 && store_commit(f->store) == -ENOSPC);

	CHILD_CHECK(stat(f->data, &after) == 0 && after.st_size <= before.st_size);

	/* The same process can go on, and the next one. */
	rule = rule_of("192.0.2.2");
	CHILD_CHECK(store_begin(f->store) == 0 && put_rule(f->store, &rule) == 0);
	CHILD_CHECK(store_commit(f->store) == 0);
	store_close(f->store);
	CHILD_CHECK(store_open(f->dir, STORE_WRITE, &f->store, &f->reason) == 0);
	CHILD_CHECK(store_info(f->store, &info) == 0 && info.rules == 2 && info.generation == 2);
	CHILD_CHECK(info.timed == 0 && store_pending(f->store, &pending) == 0 && pending.id == 0);
	store_close(f->store);
	return 0;
}

DIRECTORY_TEST(test_full_disk)
{
	in_child(f, child_fills_disk, "mounting a small tmpfs needs root");
}

static int child_starts_on_full_disk(struct fixture *f)
{
	static const char zeros[4096];
	char path[48];
	int fd;

	if (!mounts_small_disk(f->top))
		return EXIT_SKIP;
	snprintf(path, sizeof(path), "%s/filler", f->top);
	fd = creat(path, 0600);
	while (write(fd, zeros, sizeof(zeros)) > 0)
		;
	CHILD_CHECK(errno == ENOSPC);
	CHILD_CHECK(store_open(f->dir, STORE_WRITE, &f->store, &f->reason) == -ENOSPC);
	CHILD_CHECK(strstr(f->reason.text, "no space"));
	CHILD_CHECK(ftruncate(fd, 0) == 0);
	CHILD_CHECK(store_open(f->dir, STORE_WRITE, &f->store, &f->reason) == 0);
	store_close(f->store);
	return 0;
}

DIRECTORY_TEST(test_start_on_full_disk)
{
	in_child(f, child_starts_on_full_disk, "mounting a small tmpfs needs root");
}

/* ---- shapes that cannot be ---- */

STORE_TEST(test_damaged_shapes)
{
	static const struct {
		struct rule_shape shape;
		__u64 keys;
		__u8 src_len, dst_len; /* of the probed shape */
	} rows[] = {
		{ { .family = FLOW_IPV4, .src_len = 20 }, 0, 20, 0 },
		{ { .family = FLOW_NO_FAMILY }, 1, 0, 0 },
		{ { .family = FLOW_IPV4, .src_len = 20, .action = 3 }, 1, 20, 0 },
		{ { .family = FLOW_IPV4, .src_len = 20, .fields = RULE_FIELDS }, 1, 20, 0 },
		{ { .family = FLOW_IPV4, .src_len = 20 }, 1, 33, 0 },
		{ { .family = FLOW_IPV4, .src_len = 33 }, 1, 33, 0 },
		{ { .family = FLOW_IPV6, .dst_len = 64 }, 1, 0, 129 },
		{ { .family = FLOW_IPV4, .src_len = 20 }, 1, 19, 0 },
		{ { .family = FLOW_IPV4, .src_len = 20 }, 1, 24, 8 },
	};
	struct shape_list list;

	add(f, "192.0.2.1");
	close_store(f);
	for (size_t i = 0; i < COUNT(rows); i++) {
		const struct rule_shape *shape = &rows[i].shape;
		__u8 bytes[] = { shape->family, shape->action, shape->fields, shape->src_len, shape->dst_len };
		__u8 value[16] = {};
		MDB_txn *txn = lmdb_begin(f);
		MDB_val key = { sizeof(bytes), bytes };

		memcpy(value, &rows[i].keys, sizeof(rows[i].keys));
		value[8] = rows[i].src_len;
		value[9] = rows[i].dst_len;
		lmdb_put_in(txn, "shapes", key, (MDB_val){ sizeof(value), value });
		lmdb_commit(txn);
		open_store(f, STORE_WRITE);
		assert_int_equal(store_shapes(f->store, &list), -EBADMSG);
		assert_int_equal(store_begin(f->store), -EBADMSG);
		close_store(f);
		lmdb_delete(f, "shapes", key);
	}
	open_store(f, STORE_WRITE);
	assert_true(has(f, "192.0.2.1"));
}

/* A dry run of a newer version does not keep an older one, which still runs, from writing. */
STORE_TEST(test_a_trial_does_not_mark_the_store)
{
	MDB_val tool = { 4, "tool" };
	MDB_txn *txn;
	size_t marked;

	add(f, "192.0.2.1");
	close_store(f);
	lmdb_delete(f, "meta", tool);
	open_store(f, STORE_TRIAL);
	begin(f);
	assert_int_equal(put(f, "192.0.2.77"), 0);
	store_abort(f->store);
	close_store(f);
	txn = lmdb_begin(f);
	marked = lmdb_entries(txn, "meta");
	lmdb_commit(txn);
	open_store(f, STORE_WRITE);
	close_store(f);
	txn = lmdb_begin(f);
	assert_int_equal(lmdb_entries(txn, "meta"), marked + 1);
	lmdb_commit(txn);
}

TEST_MAIN(NULL, NULL)
