/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A redis-server of its own for a test, on a socket in a directory of its own. */
#ifndef XDP_CUCKOO_BROKER_FIXTURE_H
#define XDP_CUCKOO_BROKER_FIXTURE_H

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "unit/test.h"
#include "fleet/broker.h"
#include "fleet/publisher.h"

struct test_broker {
	char dir[64], socket[80];
	pid_t pid; /* 0: not running */
	struct fleet_options options;
};

#define skip_without_redis() \
	do { \
		if (system("command -v redis-check-rdb >/dev/null")) { \
			print_message("no Redis server here; apt-get install redis-tools\n"); \
			skip(); \
		} \
	} while (0)

/* A Redis server takes the place of this process: tests/helpers/redis-server.sh says why it is found by another name. */
static inline void test_broker_exec(const struct test_broker *broker)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
	execlp("redis-check-rdb", "redis-server", "--port", "0", "--unixsocket", broker->socket, "--dir", broker->dir,
	       "--save", "", "--appendonly", "yes", "--appendfsync", "always", NULL);
	_exit(127);
}

static inline void test_broker_start(struct test_broker *broker)
{
	struct broker connection;
	struct reason reason;
	int error = -1;

	broker->pid = fork();
	assert_true(broker->pid >= 0);
	if (!broker->pid)
		test_broker_exec(broker);
	for (int i = 0; i < 300 && error; i++) {
		usleep(20000);
		error = broker_open(&connection, &broker->options, BROKER_WRITE, &reason);
		broker_close(&connection);
	}
	if (error)
		fail_msg("%s", reason.text);
}

static inline void test_broker_stop(struct test_broker *broker)
{
	if (broker->pid) {
		kill(broker->pid, SIGKILL);
		waitpid(broker->pid, NULL, 0);
	}
	broker->pid = 0;
}

static inline struct test_broker *test_broker_open(void)
{
	struct test_broker *broker = calloc(1, sizeof(*broker));

	strcpy(broker->dir, "/tmp/broker.XXXXXX");
	assert_non_null(mkdtemp(broker->dir));
	snprintf(broker->socket, sizeof(broker->socket), "%s/socket", broker->dir);
	broker->options.brokers[broker->options.brokers_count++] = broker->socket;
	test_broker_start(broker);
	return broker;
}

static inline void test_broker_close(struct test_broker *broker)
{
	char command[128];

	test_broker_stop(broker);
	snprintf(command, sizeof(command), "rm -rf '%s'", broker->dir);
	assert_int_equal(system(command), 0);
	free(broker);
}

/* Runs redis-cli with these words. */
__attribute__((format(printf, 2, 3))) static inline void test_broker_do(const struct test_broker *broker,
									const char *format, ...)
{
	char words[512], command[700];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(words, sizeof(words), format, arguments);
	va_end(arguments);
	snprintf(command, sizeof(command), "redis-cli -s '%s' %s >/dev/null", broker->socket, words);
	assert_int_equal(system(command), 0);
}

static inline void test_broker_init(struct test_broker *broker, unsigned int log_entries)
{
	struct broker connection;
	char id[FLEET_ID_BYTES];
	struct reason reason;

	if (broker_open(&connection, &broker->options, BROKER_WRITE, &reason) ||
	    functions_load(&connection, "f", log_entries, id, &reason))
		fail_msg("%s", reason.text);
	broker_close(&connection);
}

#endif
