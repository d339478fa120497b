// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a connection makes of the bytes of a broker that is killed, is none, or sends more than it should. */
#include "unit/test.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "fleet/connection.h"

/* Sends `head`, then `repeated` so many times, and closes the connection. Runs in a child process. */
static void serve(int listener, const char *head, const char *repeated, size_t times)
{
	const int fd = accept(listener, NULL, NULL);
	char piece[64 * 1024];
	size_t used = 0;

	send(fd, head, strlen(head), MSG_NOSIGNAL);
	while (times--) {
		memcpy(piece + used, repeated, strlen(repeated));
		used += strlen(repeated);
		if (times && used + strlen(repeated) <= sizeof(piece))
			continue;
		if (send(fd, piece, used, MSG_NOSIGNAL) < 0)
			break;
		used = 0;
	}
	_exit(0);
}

/* The error of connection_get() for these bytes. */
static int error_for(const char *head, const char *repeated, size_t times, struct reason *reason)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct connection connection = { .fd = -1 };
	redisReply *reply = NULL;
	char dir[] = "/tmp/connection.XXXXXX";
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), error;
	pid_t pid;

	assert_non_null(mkdtemp(dir));
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", dir);
	assert_int_equal(bind(listener, (const struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(listener, 1), 0);
	pid = fork();
	if (!pid)
		serve(listener, head, repeated, times);
	close(listener);
	assert_int_equal(connection_open(&connection, address.sun_path, NULL, 5000, reason), 0);
	reason->text[0] = '\0';
	error = connection_get(&connection, &reply, 5000, reason);
	codec_free(&reply);
	connection_close(&connection);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	unlink(address.sun_path);
	rmdir(dir);
	return error;
}

TEST(test_what_comes_is_a_reply_or_an_error)
{
	static const struct {
		const char *head, *repeated;
		size_t times;
		int error;
		const char *says;
	} rows[] = {
		{ "+OK\r\n", "", 0, 0, "" },
		{ "", "", 0, -ECONNRESET, "lost" },
		{ "*2\r\n$3\r\nab", "", 0, -ECONNRESET, "lost" },
		{ "HTTP/1.1 400 Bad Request\r\n", "", 0, -EPROTO, "is no Redis" },
		/* At the bounds, and beyond: elements that are announced, that come in many arrays, and bytes. */
		{ "*65536\r\n", ":1\r\n", 65536, 0, "" },
		{ "*65537\r\n", ":1\r\n", 65537, -EMSGSIZE, "65536 elements" },
		{ "*2147483647\r\n", ":1\r\n", 10, -EMSGSIZE, "65536 elements" },
		{ "*6000\r\n*6000\r\n*60000\r\n", "", 0, -EMSGSIZE, "65536 elements" },
		{ "*200\r\n", "$65536\r\n", 1, -ECONNRESET, "lost" },
		{ "$15000000\r\n", "0123456789", 1500001, 0, "" },
		{ "$100000000\r\n", "0123456789", 2000000, -EMSGSIZE, "16 MB" },
	};
	struct reason reason;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const int error = error_for(rows[i].head, rows[i].repeated, rows[i].times, &reason);

		if (error != rows[i].error || !strstr(reason.text, rows[i].says))
			fail_msg("row %zu: expected %d, seen %d: %s", i, rows[i].error, error, reason.text);
	}
}

TEST_MAIN(NULL, NULL)
