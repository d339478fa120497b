// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Fuzzes the receiver of what a process that fetches a list sends: input is the bytes, and the process ends after them.
 * What is accepted can be shown and stored, and its text is the one that was sent.
 */
#include "fuzz.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "feed/feeds.h"

#define INPUT_MAX 65536 /* a socket holds it */
#define DEADLINE_S 10

static void check_shown(const char *text, size_t room)
{
	fuzz_check(memchr(text, 0, room) && rule_is_utf8(text), "no text");
	if (*text)
		fuzz_check_reason(text);
}

static void check_message(const struct feed_message *message)
{
	fuzz_check(message->outcome < FEED_OUTCOMES, "%u", message->outcome);
	fuzz_check(message->retry_after_s >= 0 && message->retry_after_s <= FEED_WAIT_MAX_S, "%lld s",
		   (long long)message->retry_after_s);
	check_shown(message->etag, sizeof(message->etag));
	check_shown(message->modified, sizeof(message->modified));
	check_shown(message->why, sizeof(message->why));
	check_shown(message->first_bad, sizeof(message->first_bad));
	fuzz_check(!*message->why == (message->outcome != FEED_FAILED), "'%s'", message->why);
}

static void check_text(int text, const struct feed_message *message, const uint8_t *sent, size_t size)
{
	struct stat file;

	fuzz_check(!fstat(text, &file) && (__u64)file.st_size == message->bytes && message->bytes <= size,
		   "%lld bytes, not %llu", (long long)file.st_size, (unsigned long long)message->bytes);
	if (message->bytes) {
		void *received = mmap(NULL, message->bytes, PROT_READ, MAP_PRIVATE, text, 0);

		fuzz_check(received != MAP_FAILED && !memcmp(received, sent, message->bytes), "another text");
		munmap(received, message->bytes);
	}
	close(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed_message message;
	int fds[2], text, error;
	struct timespec now;

	if (size > INPUT_MAX)
		return 0;
	fuzz_check(!socketpair(AF_UNIX, SOCK_STREAM, 0, fds), "%s", strerror(errno));
	fuzz_check(send(fds[1], data, size, MSG_DONTWAIT) == (ssize_t)size, "%s", strerror(errno));
	close(fds[1]);
	clock_gettime(CLOCK_MONOTONIC, &now);
	error = feed_receive(fds[0], (now.tv_sec + DEADLINE_S) * 1000LL, &message, &text);
	close(fds[0]);
	fuzz_check(!error || error == -EPROTO || error == -ECONNRESET, "%d", error);
	fuzz_check((text >= 0) == (!error && message.outcome == FEED_FETCHED), "%d: the file %d", error, text);
	if (error)
		return 0;
	check_message(&message);
	if (text >= 0)
		check_text(text, &message, data + sizeof(message), size - sizeof(message));
	return 0;
}
