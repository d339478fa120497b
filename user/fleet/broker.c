// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "fleet/broker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PASSWORD_BYTES 512

/* ---- logging in ---- */

/* Reads the first line of the file. The file must be readable for its owner only. */
static int read_password(const char *path, char password[PASSWORD_BYTES], struct reason *reason)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat status;
	ssize_t count;

	if (fd < 0)
		return reason_set(reason, -errno, "password-file = '%s': %s", path, strerror(errno));
	if (fstat(fd, &status) || !S_ISREG(status.st_mode) || status.st_mode & (S_IWGRP | S_IRWXO)) {
		close(fd);
		return reason_set(reason, -EACCES,
				  "password-file = '%s': others can read or change it; chmod o-rwx,g-w it", path);
	}
	count = read(fd, password, PASSWORD_BYTES - 1);
	close(fd);
	password[count > 0 ? count : 0] = '\0';
	password[strcspn(password, "\r\n")] = '\0';
	if (!*password)
		return reason_set(reason, -EINVAL, "password-file = '%s': its first line is empty", path);
	return 0;
}

static int log_in(struct connection *connection, const struct fleet_options *options, struct reason *reason)
{
	char password[PASSWORD_BYTES];
	redisReply *reply;
	int error;

	if (!options->password_file)
		return 0;
	error = read_password(options->password_file, password, reason);
	if (error)
		return error;
	error = connection_ask(connection, &reply, reason, "AUTH", options->user ? options->user : "default", password,
			       NULL);
	explicit_bzero(password, sizeof(password));
	codec_free(reply);
	if (error == -EREMOTEIO)
		return reason_set(reason, -EACCES,
				  "the broker at %s refuses the user '%s': wrong password, or no such user",
				  connection->where, options->user ? options->user : "default");
	return error;
}

/* ---- the role ---- */

/*
 * 0; -EROFS: it is a replica, but a master is needed; -ENOTCONN: a replica that has lost its master. Then *master is
 * where the replica says that its master is.
 */
static int check_role(struct broker *broker, enum broker_use use, char master[CONNECTION_WHERE_BYTES],
		      struct reason *reason)
{
	struct connection *connection = &broker->connection;
	redisReply *reply, **part;
	bool is_linked;
	int error = connection_ask(connection, &reply, reason, "ROLE", NULL);

	if (error)
		return error;
	part = reply->element;
	if (reply->type != REDIS_REPLY_ARRAY || !reply->elements || part[0]->type != REDIS_REPLY_STRING) {
		error = reason_set(reason, -EPROTO, "the broker at %s does not tell its role", connection->where);
	} else if (!strcmp(part[0]->str, "master")) {
		broker->is_master = true;
	} else if (reply->elements < 4 || part[1]->type != REDIS_REPLY_STRING || part[2]->type != REDIS_REPLY_INTEGER ||
		   part[3]->type != REDIS_REPLY_STRING) {
		error = reason_set(reason, -EROFS, "the broker at %s is a %s", connection->where, part[0]->str);
	} else {
		is_linked = !strcmp(part[3]->str, "connected");
		snprintf(master, CONNECTION_WHERE_BYTES, strchr(part[1]->str, ':') ? "[%.200s]:%lld" : "%.200s:%lld",
			 part[1]->str, part[2]->integer);
		if (use == BROKER_WRITE)
			error = reason_set(reason, -EROFS,
					   "the broker at %s is a replica, and its master at %s is not reached",
					   connection->where, master);
		else if (!is_linked)
			error = reason_set(reason, -ENOTCONN, "the broker at %s has lost its master",
					   connection->where);
	}
	codec_free(reply);
	return error;
}

static int try(struct broker *broker, const char *where, const struct fleet_options *options, enum broker_use use,
	       int timeout_ms, char master[CONNECTION_WHERE_BYTES], struct reason *reason)
{
	int error = connection_open(&broker->connection, where, options->ca, timeout_ms, reason);

	broker->is_master = false;
	if (!error)
		error = log_in(&broker->connection, options, reason);
	if (!error)
		error = check_role(broker, use, master, reason);
	if (!error)
		error = broker_read_clock(broker, reason);
	if (error)
		connection_close(&broker->connection);
	return error;
}

int broker_open(struct broker *broker, const struct fleet_options *options, enum broker_use use, int timeout_ms,
		struct reason *reason)
{
	const size_t first = use == BROKER_READ ? fleet_random_below(options->brokers_count) : 0;
	char master[CONNECTION_WHERE_BYTES] = "";
	struct reason of_replica;
	int error = -EINVAL, without_master = 0;

	*broker = (struct broker){ .connection = { .fd = -1 } };
	if (!options->brokers_count)
		return reason_set(reason, -EINVAL, "[fleet] names no broker; write broker = HOST");
	for (size_t i = 0; i < options->brokers_count; i++) {
		error = try(broker, options->brokers[(first + i) % options->brokers_count], options, use, timeout_ms,
			    master, reason);
		if (!error)
			return 0;
		if (error == -EROFS || error == -ENOTCONN) {
			without_master = error;
			of_replica = *reason;
		}
	}
	/* The configuration may name only replicas. */
	if (*master) {
		char ignored[CONNECTION_WHERE_BYTES];

		if (!try(broker, master, options, use, timeout_ms, ignored, reason))
			return 0;
	}
	if (without_master)
		*reason = of_replica;
	return without_master ? without_master : error;
}

void broker_close(struct broker *broker)
{
	connection_close(&broker->connection);
}

/* ---- the clock ---- */

int broker_read_clock(struct broker *broker, struct reason *reason)
{
	const __s64 before_ms = fleet_now_ms();
	redisReply *reply;
	int error = connection_ask(&broker->connection, &reply, reason, "TIME", NULL);

	if (error)
		return error;
	if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 && reply->element[0]->type == REDIS_REPLY_STRING &&
	    reply->element[1]->type == REDIS_REPLY_STRING)
		broker->offset_ms = atoll(reply->element[0]->str) * 1000 + atoll(reply->element[1]->str) / 1000 -
				    (before_ms + fleet_now_ms()) / 2;
	else
		error = reason_set(reason, -EPROTO, "the broker at %s does not tell the time",
				   broker->connection.where);
	codec_free(reply);
	return error;
}

__s64 broker_now_ms(const struct broker *broker)
{
	return fleet_now_ms() + broker->offset_ms;
}
