// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reads a small file at once; moves all bytes through a socket that takes few. Arrays that grow: base/memory.h. */
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "unit/test.h"
#include "base/memory.h"
#include "io/whole_file.h"

#define BYTES (1 << 20) /* more than a socket holds */

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

TEST(test_all_bytes_arrive)
{
	unsigned char *sent = malloc(BYTES), *got = malloc(BYTES);
	int fds[2], status;
	pid_t child;

	assert_int_equal(random_draw(sent, BYTES), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	child = fork();
	if (!child)
		_exit(io_send_all(fds[1], sent, BYTES / 2) || io_write_all(fds[1], sent + BYTES / 2, BYTES / 2));
	close(fds[1]);
	assert_int_equal(io_receive_all(fds[0], got, BYTES, INT64_MAX), 0);
	assert_memory_equal(got, sent, BYTES);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(io_receive_all(fds[0], got, 1, INT64_MAX), -ECONNRESET);
	assert_int_equal(io_send_all(fds[0], sent, 1), -ECONNRESET);
	close(fds[0]);
	free(sent);
	free(got);
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
