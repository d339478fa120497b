// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "fleet/outbox.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "io/whole_file.h"

#define HEADER "xdp-cuckoo outbox 1 "
#define HEAD_BYTES 160          /* of the first line of a record */
#define SHORTEN_BYTES (1 << 20) /* a file without waiting entries may grow to this */

static const char *const marks[] = { [OUTBOX_SENT] = "sent", [OUTBOX_REFUSED] = "refused", [OUTBOX_DONE] = "done" };

static int say_failed(const struct outbox *outbox, int error, const char *what, struct reason *reason)
{
	return reason_set(reason, error, "cannot %s the outbox '%s': %s", what, outbox->path, reason_of_write(error));
}

/* ---- entries in memory ---- */

static int remember(struct outbox *outbox, const struct outbox_entry *entry, const char *lines)
{
	char *copy = malloc(entry->bytes + 1);

	if (!copy || array_grow(&outbox->entries, outbox->count, sizeof(*outbox->entries))) {
		free(copy);
		return -ENOMEM;
	}
	memcpy(copy, lines, entry->bytes);
	copy[entry->bytes] = '\0';
	outbox->entries[outbox->count] = *entry;
	outbox->entries[outbox->count++].lines = copy;
	outbox->counter = entry->counter;
	return 0;
}

static void mark_entries(struct outbox *outbox, enum outbox_mark mark, __u64 counter)
{
	size_t kept = 0;

	for (size_t i = 0; i < outbox->count; i++) {
		struct outbox_entry *entry = &outbox->entries[i];
		const bool is_meant = mark == OUTBOX_REFUSED ? entry->counter == counter : entry->counter <= counter;

		if (is_meant && mark != OUTBOX_SENT) {
			free(entry->lines);
			continue;
		}
		entry->is_sent |= is_meant;
		outbox->entries[kept++] = *entry;
	}
	outbox->count = kept;
	if (mark == OUTBOX_DONE && outbox->counter < counter)
		outbox->counter = counter;
}

static void free_entries(struct outbox *outbox)
{
	for (size_t i = 0; i < outbox->count; i++)
		free(outbox->entries[i].lines);
	free(outbox->entries);
	outbox->entries = NULL;
	outbox->count = 0;
}

/* ---- reading ---- */

/* One record at `text`, of `left` bytes and a final 0. Its length; 0: it is not whole; -EBADMSG; -ENOMEM. */
static ssize_t read_record(struct outbox *outbox, const char *text, size_t left)
{
	const char *end = memchr(text, '\n', left);
	char line[HEAD_BYTES + 1] = "", word[HEAD_BYTES], expected[HEAD_BYTES], tail[32];
	struct outbox_entry entry = {};
	uint64_t counter;
	size_t head, tail_length;

	if (!end)
		return 0;
	head = end - text + 1;
	if (head > HEAD_BYTES)
		return -EBADMSG;
	memcpy(line, text, head); /* sscanf() measures all that follows */
	for (enum outbox_mark mark = OUTBOX_SENT; mark <= OUTBOX_DONE; mark++)
		if (sscanf(line, "%159s %" SCNu64 "\n", word, &counter) == 2 && !strcmp(word, marks[mark])) {
			mark_entries(outbox, mark, counter);
			return head;
		}
	if (sscanf(line, "entry %" SCNu64 " %159s %zu\n", &counter, expected, &entry.bytes) != 3 ||
	    entry.bytes > FLEET_ENTRY_BYTES)
		return -EBADMSG;
	entry.counter = counter;
	entry.may_be_seen = true;
	entry.has_expected = strcmp(expected, "-");
	if (entry.has_expected && fleet_position_parse(expected, &entry.expected))
		return -EBADMSG;
	tail_length = snprintf(tail, sizeof(tail), "\nend %" PRIu64 "\n", counter);
	if (left < head + entry.bytes + tail_length)
		return 0;
	if (memcmp(text + head + entry.bytes, tail, tail_length))
		return -EBADMSG;
	return remember(outbox, &entry, text + head) ? -ENOMEM : (ssize_t)(head + entry.bytes + tail_length);
}

static int read_file(struct outbox *outbox)
{
	const size_t header = strlen(HEADER) + OUTBOX_NAME_BYTES; /* with its '\n' */
	char *text = NULL, line[sizeof(HEADER) + OUTBOX_NAME_BYTES + 1];
	size_t length = 0, at = header;
	ssize_t record = 1;
	__u64 name[2];
	int error = io_read_whole(outbox->fd, SIZE_MAX, &text, &length);

	if (!error && length < header && !memchr(text, '\n', length)) {
		/* A first line that is not whole: nothing was sent yet. The file gets a publisher's name that no other has. */
		if (getrandom(name, sizeof(name), 0) != sizeof(name))
			error = -EAGAIN;
		snprintf(outbox->publisher, sizeof(outbox->publisher), "%016" PRIx64 "%016" PRIx64, (uint64_t)name[0],
			 (uint64_t)name[1]);
		snprintf(line, sizeof(line), HEADER "%s\n", outbox->publisher);
		if (!error)
			error = ftruncate(outbox->fd, 0) ? -errno : io_write_all(outbox->fd, line, strlen(line));
		if (!error && fsync(outbox->fd))
			error = -errno;
	} else if (!error && (length < header || strncmp(text, HEADER, strlen(HEADER)) || text[header - 1] != '\n')) {
		error = -EBADMSG;
	} else if (!error) {
		memcpy(outbox->publisher, text + strlen(HEADER), OUTBOX_NAME_BYTES - 1);
		while (at < length && (record = read_record(outbox, text + at, length - at)) > 0)
			at += record;
		error = record < 0 ? record : 0;
		if (!error && at < length && ftruncate(outbox->fd, at))
			error = -errno;
	}
	free(text);
	return error;
}

/* ---- opening ---- */

int outbox_open(struct outbox *outbox, const char *dir, const char *list, struct reason *reason)
{
	char path[4096];
	struct stat locked, named;
	int dir_fd, error = 0;

	*outbox = (struct outbox){ .fd = -1 };
	snprintf(outbox->path, sizeof(outbox->path), "%s/%s", dir, list);
	/* Makes the directory and those above it. */
	snprintf(path, sizeof(path), "%s/", dir);
	for (char *slash = strchr(path + 1, '/'); slash && !error; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		error = mkdir(path, 0700) && errno != EEXIST ? -errno : 0;
		*slash = '/';
	}
	/* Opens the file that the path names once it is locked. */
	while (!error) {
		outbox->fd = open(outbox->path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (outbox->fd < 0 || flock(outbox->fd, LOCK_EX) || fstat(outbox->fd, &locked))
			error = -errno;
		else if (!stat(outbox->path, &named) && named.st_ino == locked.st_ino)
			break;
		else
			close(outbox->fd);
	}
	if (!error)
		error = read_file(outbox);
	if (!error) {
		/* A file that was made must still be there after a power failure. */
		dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		error = dir_fd < 0 || fsync(dir_fd) ? -errno : 0;
		if (dir_fd >= 0)
			close(dir_fd);
	}
	if (error == -EBADMSG)
		reason_set(reason, error,
			   "the outbox '%s' is damaged; look at it, and move it away: what it holds is not sent then",
			   outbox->path);
	else if (error)
		say_failed(outbox, error, "open", reason);
	if (error && outbox->fd >= 0) {
		free_entries(outbox);
		close(outbox->fd);
		outbox->fd = -1;
	}
	return error;
}

/*
 * Replaces a long file that holds no waiting entry by a short one. A process that waits for the lock of the old file
 * would go on with that: outbox_open() looks whether the path still names the file that it has locked.
 */
void outbox_close(struct outbox *outbox)
{
	char line[HEAD_BYTES], beside[sizeof(outbox->path) + 8];
	struct stat status;
	const char *name;
	int fd, length;

	if (outbox->fd < 0)
		return;
	if (!outbox->count && !fstat(outbox->fd, &status) && status.st_size > SHORTEN_BYTES) {
		length = snprintf(line, sizeof(line), HEADER "%s\ndone %" PRIu64 "\n", outbox->publisher,
				  (uint64_t)outbox->counter);
		name = strrchr(outbox->path, '/') + 1;
		/* No list has such a name. */
		snprintf(beside, sizeof(beside), "%.*s.%s.new", (int)(name - outbox->path), outbox->path, name);
		fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd >= 0 && (io_write_all(fd, line, length) || fsync(fd) || rename(beside, outbox->path)))
			unlink(beside);
		if (fd >= 0)
			close(fd);
	}
	free_entries(outbox);
	close(outbox->fd);
	*outbox = (struct outbox){ .fd = -1 };
}

/* ---- changing ---- */

/* Takes back what an error left of a record that starts at `start`: nobody could read the next record behind it. */
static int take_back(const struct outbox *outbox, off_t start, int error, struct reason *reason)
{
	if (ftruncate(outbox->fd, start))
		return say_failed(outbox, -errno, "repair", reason);
	return say_failed(outbox, error, "write to", reason);
}

int outbox_add(struct outbox *outbox, const char *lines, size_t bytes, const struct fleet_position *expected,
	       struct reason *reason)
{
	struct outbox_entry entry = { .counter = outbox->counter + 1, .has_expected = expected, .bytes = bytes };
	char head[HEAD_BYTES], tail[32], position[FLEET_POSITION_BYTES];
	const off_t start = lseek(outbox->fd, 0, SEEK_END);
	int error;

	if (expected)
		entry.expected = *expected;
	snprintf(head, sizeof(head), "entry %" PRIu64 " %s %zu\n", (uint64_t)entry.counter,
		 expected ? fleet_position_format(*expected, position) : "-", bytes);
	snprintf(tail, sizeof(tail), "\nend %" PRIu64 "\n", (uint64_t)entry.counter);
	error = io_write_all(outbox->fd, head, strlen(head));
	if (!error)
		error = io_write_all(outbox->fd, lines, bytes);
	if (!error)
		error = io_write_all(outbox->fd, tail, strlen(tail));
	if (!error)
		error = remember(outbox, &entry, lines);
	return error ? take_back(outbox, start, error, reason) : 0;
}

int outbox_sync(struct outbox *outbox, struct reason *reason)
{
	return fdatasync(outbox->fd) ? say_failed(outbox, -errno, "write to", reason) : 0;
}

int outbox_mark(struct outbox *outbox, enum outbox_mark mark, __u64 counter, struct reason *reason)
{
	char line[HEAD_BYTES];
	const int length = snprintf(line, sizeof(line), "%s %" PRIu64 "\n", marks[mark], (uint64_t)counter);
	const off_t start = lseek(outbox->fd, 0, SEEK_END);
	int error;

	mark_entries(outbox, mark, counter);
	error = io_write_all(outbox->fd, line, length);
	return error ? take_back(outbox, start, error, reason) : 0;
}
