// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reads a small file at once. Arrays that grow: base/memory.h. */
#include <fcntl.h>

#include "unit/test.h"
#include "base/memory.h"
#include "io/whole_file.h"

TEST(test_an_array_grows)
{
	int *number = NULL;

	for (int count = 0; count < 1000; count++) {
		assert_int_equal(array_grow(&number, count, sizeof(*number)), 0);
		number[count] = count;
	}
	for (int i = 0; i < 1000; i++)
		assert_int_equal(number[i], i);
	assert_int_equal(array_grow(&number, 1 << 10, SIZE_MAX / 2), -ENOMEM);
	assert_int_equal(number[999], 999);
	free(number);
}

TEST(test_a_file_is_read_whole)
{
	char path[] = "/tmp/whole_file.XXXXXX", *text;
	const int fd = mkstemp(path), null = open("/dev/null", O_RDONLY);
	size_t length;

	unlink(path);
	assert_int_equal(io_write_all(fd, "secret\n", 7), 0);
	assert_int_equal(io_read_whole(fd, 7, &text, &length), 0);
	assert_string_equal(text, "secret\n");
	assert_int_equal(length, 7);
	free(text);
	assert_int_equal(io_read_whole(fd, 6, &text, &length), -EFBIG);
	assert_null(text);
	assert_int_equal(io_read_whole(null, 7, &text, &length), -EINVAL);
	close(fd);
	close(null);
}

TEST_MAIN(NULL, NULL)
