// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Required owners and modes of a store's directories and files, and the modes of new ones. */
#include "unit/store_fixture.h"

#include <fcntl.h>

#define OTHER_USER 65534

static const char *const files[] = { "data.mdb", "lock.mdb", "writer.lock" };
#define FILES COUNT(files)

static void make_store(struct fixture *f)
{
	open_store(f, STORE_WRITE);
	add(f, "192.0.2.1");
	close_store(f);
}

static void opens(struct fixture *f)
{
	open_store(f, STORE_READ);
	reopen(f, STORE_WRITE);
	assert_true(has(f, "192.0.2.1"));
	close_store(f);
}

/* Refused for reading and for writing, with an error text of its own. */
static void refuses(struct fixture *f, int error, const char *word)
{
	open_fails(f, STORE_READ, error);
	assert_non_null(strstr(f->reason.text, word));
	open_fails(f, STORE_WRITE, error);
}

static const char *path_of(const struct fixture *f, const char *file)
{
	static char path[80];

	snprintf(path, sizeof(path), "%s/%s", f->dir, file);
	return path;
}

/* ---- modes ---- */

DIRECTORY_TEST(test_modes_whatever_the_umask)
{
	static const mode_t umasks[] = { 0, 022, 077, 0777 };

	for (size_t i = 0; i < COUNT(umasks); i++) {
		snprintf(f->dir, sizeof(f->dir), "%s/u%zu/state", f->top, i);
		umask(umasks[i]);
		make_store(f);
		assert_int_equal(umask(022), umasks[i]);
		assert_int_equal(mode_of(f->dir), 0700);
		for (size_t k = 0; k < FILES; k++)
			assert_int_equal(mode_of(path_of(f, files[k])), 0600);
		*strrchr(f->dir, '/') = '\0';
		assert_int_equal(mode_of(f->dir), 0700);
	}
}

/* ---- directories ---- */

DIRECTORY_TEST(test_directory_others_can_write_to)
{
	static const mode_t modes[] = { 0770, 0720, 0702, 01777 };

	make_store(f);
	for (size_t i = 0; i < COUNT(modes); i++) {
		assert_int_equal(chmod(f->dir, modes[i]), 0);
		refuses(f, -EPERM, "another user");
	}
	assert_int_equal(chmod(f->dir, 0755), 0);
	opens(f);
}

DIRECTORY_TEST(test_directory_above_others_can_write_to)
{
	make_store(f);
	assert_int_equal(chmod(f->top, 0770), 0);
	refuses(f, -EPERM, "another user");
	assert_int_equal(chmod(f->top, 0707), 0);
	refuses(f, -EPERM, "another user");
	assert_int_equal(chmod(f->top, 01777), 0);
	opens(f);
}

DIRECTORY_TEST(test_directory_of_another_user)
{
	needs_root();
	make_store(f);
	assert_int_equal(chown(f->dir, OTHER_USER, -1), 0);
	refuses(f, -EPERM, "another user");
	assert_int_equal(chown(f->dir, 0, -1), 0);
	assert_int_equal(chown(f->top, OTHER_USER, -1), 0);
	refuses(f, -EPERM, "another user");
	assert_int_equal(chown(f->top, 0, -1), 0);
	opens(f);
}

DIRECTORY_TEST(test_directory_is_a_link)
{
	char real[64];

	make_store(f);
	snprintf(real, sizeof(real), "%s/real", f->top);
	assert_int_equal(rename(f->dir, real), 0);
	assert_int_equal(symlink(real, f->dir), 0);
	refuses(f, -ELOOP, "symbolic link");
	strcat(f->dir, "/");
	refuses(f, -ELOOP, "symbolic link");
}

DIRECTORY_TEST(test_directory_above_is_a_link)
{
	char state_dir[64], real[64];

	snprintf(state_dir, sizeof(state_dir), "%s/state", f->top);
	snprintf(real, sizeof(real), "%s/real", f->top);
	strcat(f->dir, "/default");
	make_store(f);
	assert_int_equal(rename(state_dir, real), 0);
	assert_int_equal(symlink(real, state_dir), 0);
	refuses(f, -ELOOP, "symbolic link");
	snprintf(f->dir, sizeof(f->dir), "%s/state//default", f->top);
	refuses(f, -ELOOP, "symbolic link");
}

/* A dangling link: nothing is created at its end. */
DIRECTORY_TEST(test_no_directory_is_made_through_a_link)
{
	char elsewhere[64];

	snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere", f->top);
	assert_int_equal(symlink(elsewhere, f->dir), 0);
	refuses(f, -ELOOP, "symbolic link");
	assert_int_equal(access(elsewhere, F_OK), -1);
}

/* ---- files ---- */

/* Each file of a store is replaced by the file that `plant` makes. */
static void for_each_file(struct fixture *f, void (*plant)(const char *aside, const char *path), int error,
			  const char *word)
{
	char aside[64];

	make_store(f);
	snprintf(aside, sizeof(aside), "%s/aside", f->top);
	for (size_t i = 0; i < FILES; i++) {
		const char *path = path_of(f, files[i]);

		assert_int_equal(rename(path, aside), 0);
		plant(aside, path);
		refuses(f, error, word);
		unlink(path);
		unlink(aside);
		assert_int_equal(access(aside, F_OK), -1);
		unlink(path_of(f, "data.mdb"));
		unlink(path_of(f, "lock.mdb"));
		make_store(f);
	}
}

static void plant_symlink(const char *aside, const char *path)
{
	assert_int_equal(symlink(aside, path), 0);
}

static void plant_hard_link(const char *aside, const char *path)
{
	assert_int_equal(link(aside, path), 0);
}

static void plant_fifo(const char *aside, const char *path)
{
	(void)aside;
	assert_int_equal(mkfifo(path, 0600), 0);
}

static void plant_device(const char *aside, const char *path)
{
	(void)aside;
	assert_int_equal(mknod(path, S_IFCHR | 0600, 1 << 8 | 3), 0); /* /dev/null */
}

static void plant_of_another_user(const char *aside, const char *path)
{
	assert_int_equal(rename(aside, path), 0);
	assert_int_equal(chown(path, OTHER_USER, -1), 0);
}

static void plant_open_to_others(const char *aside, const char *path)
{
	assert_int_equal(rename(aside, path), 0);
	assert_int_equal(chmod(path, 0620), 0);
}

DIRECTORY_TEST(test_file_is_a_symlink)
{
	for_each_file(f, plant_symlink, -ELOOP, "symbolic link");
}

DIRECTORY_TEST(test_file_has_another_link)
{
	for_each_file(f, plant_hard_link, -EMLINK, "hard link");
}

DIRECTORY_TEST(test_file_is_a_fifo)
{
	for_each_file(f, plant_fifo, -EMLINK, "no plain file");
}

DIRECTORY_TEST(test_file_is_a_device)
{
	needs_root();
	for_each_file(f, plant_device, -EMLINK, "no plain file");
}

DIRECTORY_TEST(test_file_of_another_user)
{
	needs_root();
	for_each_file(f, plant_of_another_user, -EMLINK, "another user");
}

DIRECTORY_TEST(test_file_others_can_write_to)
{
	for_each_file(f, plant_open_to_others, -EMLINK, "others can write");
}

TEST_MAIN(NULL, NULL)
