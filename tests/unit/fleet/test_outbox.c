// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a publisher has written to its outbox is there for the next one, wherever the first was killed. */
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "unit/test.h"
#include "fleet/outbox.h"

struct fixture {
	char dir[64], path[80];
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	strcpy(fixture->dir, "/tmp/outbox.XXXXXX");
	assert_non_null(mkdtemp(fixture->dir));
	snprintf(fixture->path, sizeof(fixture->path), "%s/bad", fixture->dir);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	unlink(fixture->path);
	rmdir(fixture->dir);
	free(fixture);
	return 0;
}

static struct outbox open_outbox(const struct fixture *fixture)
{
	struct outbox outbox;
	struct reason reason;

	if (outbox_open(&outbox, fixture->dir, "bad", &reason))
		fail_msg("%s", reason.text);
	return outbox;
}

static void add(struct outbox *outbox, const char *lines)
{
	struct reason reason;

	assert_int_equal(outbox_add(outbox, lines, strlen(lines), NULL, &reason), 0);
}

TEST_WITH(test_entries_stay_until_they_are_forgotten, struct fixture *fixture, set_up, tear_down)
{
	struct outbox outbox = open_outbox(fixture);
	const struct fleet_position expected = { 7, 3 };
	char publisher[OUTBOX_NAME_BYTES];
	struct reason reason;

	strcpy(publisher, outbox.publisher);
	add(&outbox, "+ 0 src 192.0.2.1\n+ 0 src 192.0.2.2");
	assert_int_equal(outbox_add(&outbox, "- a", 3, &expected, &reason), 0);
	add(&outbox, "- b");
	assert_int_equal(outbox_sync(&outbox, &reason), 0);
	assert_int_equal(outbox_mark(&outbox, OUTBOX_SENT, 2, &reason), 0);
	assert_int_equal(outbox_mark(&outbox, OUTBOX_DONE, 1, &reason), 0);
	outbox_close(&outbox);

	outbox = open_outbox(fixture);
	assert_string_equal(outbox.publisher, publisher);
	assert_int_equal(outbox.count, 2);
	assert_int_equal(outbox.counter, 3);
	assert_int_equal(outbox.entries[0].counter, 2);
	assert_true(outbox.entries[0].is_sent && outbox.entries[0].has_expected);
	assert_int_equal(outbox.entries[0].expected.seq, 3);
	assert_string_equal(outbox.entries[0].lines, "- a");
	assert_false(outbox.entries[1].is_sent || outbox.entries[1].has_expected);
	assert_int_equal(outbox_mark(&outbox, OUTBOX_REFUSED, 3, &reason), 0);
	assert_int_equal(outbox_mark(&outbox, OUTBOX_DONE, 2, &reason), 0);
	outbox_close(&outbox);

	outbox = open_outbox(fixture);
	assert_int_equal(outbox.count, 0);
	assert_int_equal(outbox.counter, 3); /* never used again */
	outbox_close(&outbox);
}

/* Sets the size that no file may exceed; 0: none. */
static void limit_files(rlim_t bytes)
{
	const struct rlimit limit = { bytes ? bytes : RLIM_INFINITY, RLIM_INFINITY };

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

TEST_WITH(test_half_a_record_does_not_stay, struct fixture *fixture, set_up, tear_down)
{
	struct outbox outbox = open_outbox(fixture);
	struct reason reason;
	struct stat status;

	add(&outbox, "- a");
	assert_int_equal(fstat(outbox.fd, &status), 0);
	limit_files(status.st_size + 14);
	assert_int_equal(outbox_add(&outbox, "- b", 3, NULL, &reason), -EFBIG);
	limit_files(status.st_size + 2);
	assert_int_equal(outbox_mark(&outbox, OUTBOX_SENT, 1, &reason), -EFBIG);
	limit_files(0);
	add(&outbox, "- c");
	outbox_close(&outbox);

	outbox = open_outbox(fixture);
	assert_int_equal(outbox.count, 2);
	assert_string_equal(outbox.entries[1].lines, "- c");
	assert_false(outbox.entries[0].is_sent);
	outbox_close(&outbox);
}

/* A write that was cut anywhere loses at most the entry that it was about. */
TEST_WITH(test_a_cut_file_keeps_all_whole_entries, struct fixture *fixture, set_up, tear_down)
{
	struct outbox outbox = open_outbox(fixture);
	struct stat before, whole;
	char *bytes;
	int fd;

	add(&outbox, "+ 0 src 192.0.2.1");
	assert_int_equal(stat(fixture->path, &before), 0);
	add(&outbox, "+ 0 src 192.0.2.2\nend 2\nentry 9 - 1");
	outbox_close(&outbox);
	assert_int_equal(stat(fixture->path, &whole), 0);
	bytes = malloc(whole.st_size);
	fd = open(fixture->path, O_RDWR);
	assert_int_equal(read(fd, bytes, whole.st_size), whole.st_size);
	for (off_t length = before.st_size; length <= whole.st_size; length++) {
		assert_int_equal(ftruncate(fd, length), 0);
		outbox = open_outbox(fixture);
		assert_int_equal(outbox.count, length == whole.st_size ? 2 : 1);
		add(&outbox, "- c");
		assert_int_equal(outbox.entries[outbox.count - 1].counter, outbox.count);
		outbox_close(&outbox);
		outbox = open_outbox(fixture);
		assert_int_equal(outbox.count, length == whole.st_size ? 3 : 2);
		outbox_close(&outbox);
		assert_int_equal(pwrite(fd, bytes, whole.st_size, 0), whole.st_size);
	}
	close(fd);
	free(bytes);
}

TEST_WITH(test_a_cut_first_line_begins_anew, struct fixture *fixture, set_up, tear_down)
{
	struct outbox outbox = open_outbox(fixture);
	char publisher[OUTBOX_NAME_BYTES];

	strcpy(publisher, outbox.publisher);
	outbox_close(&outbox);
	assert_int_equal(truncate(fixture->path, 25), 0);
	outbox = open_outbox(fixture);
	assert_int_equal(outbox.count, 0);
	assert_string_not_equal(outbox.publisher, publisher);
	outbox_close(&outbox);
}

TEST_WITH(test_another_file_is_refused, struct fixture *fixture, set_up, tear_down)
{
	struct outbox outbox = open_outbox(fixture);
	struct reason reason;
	FILE *file;

	add(&outbox, "- a");
	outbox_close(&outbox);
	file = fopen(fixture->path, "a");
	fputs("nonsense\n", file);
	fclose(file);
	assert_int_equal(outbox_open(&outbox, fixture->dir, "bad", &reason), -EBADMSG);
	assert_non_null(strstr(reason.text, fixture->path));
	outbox_close(&outbox);
}

TEST_WITH(test_a_long_file_becomes_short, struct fixture *fixture, set_up, tear_down)
{
	struct outbox outbox = open_outbox(fixture);
	static char lines[60001];
	struct outbox other;
	struct reason reason;
	struct stat status;
	char publisher[OUTBOX_NAME_BYTES];

	/* The outbox of a list whose name begins with this one's stays as it is. */
	assert_int_equal(outbox_open(&other, fixture->dir, "bad.new", &reason), 0);
	add(&other, "- a");
	outbox_close(&other);
	strcpy(publisher, outbox.publisher);
	memset(lines, 'x', sizeof(lines) - 1);
	for (int i = 0; i < 20; i++)
		add(&outbox, lines);
	assert_int_equal(outbox_mark(&outbox, OUTBOX_DONE, 20, &reason), 0);
	outbox_close(&outbox);
	assert_int_equal(stat(fixture->path, &status), 0);
	assert_true(status.st_size < 100);
	outbox = open_outbox(fixture);
	assert_int_equal(outbox.counter, 20);
	assert_string_equal(outbox.publisher, publisher);
	outbox_close(&outbox);
	assert_int_equal(outbox_open(&other, fixture->dir, "bad.new", &reason), 0);
	unlink(other.path);
	assert_int_equal(other.count, 1);
	outbox_close(&other);
}

TEST_MAIN(NULL, NULL)
