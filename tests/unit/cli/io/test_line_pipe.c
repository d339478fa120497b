// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Lines from a pipe are whole, however the pipe cuts them; and signals end the wait for them. */
#include <fcntl.h>
#include <unistd.h>

#include "unit/test.h"
#include "io/line_pipe.h"

struct pipe {
	struct line_pipe feed;
	int write_fd;
};

/* A feed that reads what is written to write_fd. */
static void pipe_open(struct pipe *pipe_feed)
{
	char path[32];
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	snprintf(path, sizeof(path), "/dev/fd/%d", fds[0]);
	assert_int_equal(line_pipe_open(&pipe_feed->feed, path), 0);
	close(fds[0]);
	pipe_feed->write_fd = fds[1];
}

static void pipe_write(struct pipe *to, const char *bytes, size_t count)
{
	while (count) {
		const size_t chunk = count < 65536 ? count : 65536; /* the capacity of a pipe */

		assert_int_equal(write(to->write_fd, bytes, chunk), chunk);
		assert_int_equal(line_pipe_wait(&to->feed, 0), 1);
		assert_int_equal(line_pipe_read(&to->feed), 0);
		bytes += chunk;
		count -= chunk;
	}
}

static void pipe_end(struct pipe *to)
{
	close(to->write_fd);
	while (!to->feed.is_ended) {
		assert_int_equal(line_pipe_wait(&to->feed, -1), 1);
		assert_int_equal(line_pipe_read(&to->feed), 0);
	}
}

static void assert_next(struct pipe *from, const char *line)
{
	size_t offset;

	assert_int_equal(line_pipe_next(&from->feed, &offset), 1);
	assert_string_equal(from->feed.bytes + offset, line);
}

static void assert_none(struct pipe *from)
{
	size_t offset;

	assert_int_equal(line_pipe_next(&from->feed, &offset), 0);
}

TEST(test_lines_are_whole_wherever_they_are_cut)
{
	static const char text[] = "one\n\ntwo words\r\n  three\nfour";

	for (size_t cut = 0; cut < sizeof(text); cut++) {
		struct pipe from;
		size_t offset, lines = 0;

		pipe_open(&from);
		pipe_write(&from, text, cut);
		while (line_pipe_next(&from.feed, &offset) > 0)
			lines++;
		for (size_t i = 0, ends = 0; i <= cut; i++) {
			if (i == cut)
				assert_int_equal(lines, ends);
			ends += text[i] == '\n';
		}
		line_pipe_forget(&from.feed);
		pipe_write(&from, text + cut, sizeof(text) - 1 - cut);
		pipe_end(&from);
		while (line_pipe_next(&from.feed, &offset) > 0)
			lines++;
		assert_int_equal(lines, 5);
		assert_int_equal(from.feed.number, 5);
		assert_string_equal(from.feed.bytes + offset, "four");
		line_pipe_close(&from.feed);
	}
}

TEST(test_lines_stay_until_they_are_forgotten)
{
	struct pipe from;
	size_t first, second;

	pipe_open(&from);
	pipe_write(&from, "first\nsec", 9);
	assert_int_equal(line_pipe_next(&from.feed, &first), 1);
	assert_none(&from);
	for (int i = 0; i < 100; i++)
		pipe_write(&from, "0123456789012345678901234567890123456789", 40);
	pipe_write(&from, "\nthird\n", 7);
	assert_int_equal(line_pipe_next(&from.feed, &second), 1);
	assert_string_equal(from.feed.bytes + first, "first");
	assert_int_equal(strlen(from.feed.bytes + second), 3 + 4000);
	line_pipe_forget(&from.feed);
	assert_next(&from, "third");
	assert_false(line_pipe_has_rest(&from.feed));
	pipe_end(&from);
	assert_none(&from);
	line_pipe_close(&from.feed);
}

TEST(test_long_lines_are_cut_and_the_next_is_whole)
{
	static char text[5 * LINE_PIPE_BYTES];
	struct pipe from;
	size_t offset;

	memset(text, 'x', sizeof(text));
	pipe_open(&from);
	for (size_t written = 0; written < sizeof(text); written += 4096) {
		pipe_write(&from, text + written, 4096);
		assert_none(&from);
	}
	assert_true(from.feed.room < sizeof(text));
	pipe_write(&from, "x\nnext\na\0b\n", 11);
	assert_int_equal(line_pipe_next(&from.feed, &offset), -EMSGSIZE);
	assert_next(&from, "next");
	assert_int_equal(line_pipe_next(&from.feed, &offset), -EILSEQ);
	assert_int_equal(from.feed.number, 3);
	/* Also where the whole line is at hand at once. */
	line_pipe_forget(&from.feed);
	text[LINE_PIPE_BYTES + 1] = '\n';
	pipe_write(&from, text, LINE_PIPE_BYTES + 2);
	assert_int_equal(line_pipe_next(&from.feed, &offset), -EMSGSIZE);
	pipe_write(&from, text + 1, LINE_PIPE_BYTES + 1);
	assert_int_equal(line_pipe_next(&from.feed, &offset), 1);
	line_pipe_close(&from.feed);
}

TEST(test_a_byte_order_mark_is_skipped)
{
	struct pipe from;

	pipe_open(&from);
	pipe_write(&from,
		   "\xef\xbb\xbf"
		   "first\n\xef\xbb\xbf"
		   "second\n",
		   19);
	assert_next(&from, "first");
	assert_next(&from, "\xef\xbb\xbf"
			   "second");
	line_pipe_close(&from.feed);
}

TEST(test_signals_end_the_wait_and_no_more)
{
	struct pipe from;

	pipe_open(&from);
	assert_int_equal(line_pipe_wait(&from.feed, 0), 0);
	raise(SIGTERM);
	raise(SIGINT);
	assert_int_equal(line_pipe_wait(&from.feed, -1), -EINTR);
	assert_int_equal(write(from.write_fd, "line\n", 5), 5);
	assert_true(line_pipe_has_rest(&from.feed));
	assert_int_equal(line_pipe_read(&from.feed), 0);
	assert_next(&from, "line");
	close(from.write_fd);
	line_pipe_close(&from.feed); /* the process must survive */
	line_pipe_close(&from.feed);
}

TEST(test_what_cannot_be_opened)
{
	struct line_pipe feed;

	assert_int_equal(line_pipe_open(&feed, "/nonexistent"), -ENOENT);
	assert_int_equal(line_pipe_open(&feed, "/"), 0);
	assert_int_equal(line_pipe_read(&feed), -EISDIR);
	line_pipe_close(&feed);
}

TEST_MAIN(NULL, NULL)
