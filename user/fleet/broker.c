// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "fleet/broker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/whole_file.h"

#define OTHERS_MS 1000 /* to ask another broker who is the master */

/* ---- secrets ---- */

int broker_secrets_read(struct broker_secrets *secrets, const struct fleet_options *options, struct reason *reason)
{
	int error = 0;

	*secrets = (struct broker_secrets){};
	if (options->ca)
		error = io_read_secret("ca", options->ca, 0, &secrets->certificates, reason);
	if (!error && options->password_file)
		error = io_read_secret("password-file", options->password_file, S_IWGRP | S_IRWXO, &secrets->password,
				       reason);
	if (!error && secrets->password) {
		secrets->password[strcspn(secrets->password, "\r\n")] = '\0';
		if (!*secrets->password)
			error = reason_set(reason, -EINVAL, "password-file = '%s': its first line is empty",
					   options->password_file);
	}
	if (error)
		broker_secrets_forget(secrets);
	return error;
}

void broker_secrets_forget(struct broker_secrets *secrets)
{
	if (secrets->password)
		explicit_bzero(secrets->password, strlen(secrets->password));
	free(secrets->password);
	free(secrets->certificates);
	*secrets = (struct broker_secrets){};
}

static bool is_equal(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

bool broker_secrets_equal(const struct broker_secrets *a, const struct broker_secrets *b)
{
	return is_equal(a->password, b->password) && is_equal(a->certificates, b->certificates);
}

static struct broker_secrets kept;

int broker_secrets_keep(const struct fleet_options *options, struct reason *reason)
{
	struct broker_secrets now;
	int error = broker_secrets_read(&now, options, reason);

	if (error)
		return kept.password || kept.certificates ? 0 : error;
	broker_secrets_forget(&kept);
	kept = now;
	return 0;
}

const struct broker_secrets *broker_secrets_kept(void)
{
	return &kept;
}

/* Connects and logs in. Close the connection after an error, too. */
static int log_in(struct connection *connection, const char *where, const struct fleet_options *options,
		  const struct broker_secrets *secrets, int timeout_ms, struct reason *reason)
{
	const char *user = options->user ? options->user : "default";
	int error = connection_open(connection, where, secrets->certificates, timeout_ms, reason);

	if (!error && secrets->password)
		error = connection_ask(connection, NULL, reason, "AUTH %s %s", user, secrets->password);
	if (error == -EREMOTEIO)
		return reason_set(reason, -EACCES,
				  "the broker at %s refuses the user '%s': wrong password, or no such user",
				  connection->where, user);
	return error;
}

/* ---- the role ---- */

/*
 * 0; -EROFS: it is a replica, but a master is needed; -ENOTCONN: a replica that has lost its master. Then *master is
 * where the replica says that its master is.
 */
static int check_role(struct broker *broker, char master[CONNECTION_WHERE_BYTES], struct reason *reason)
{
	struct connection *connection = &broker->connection;
	const char *role, *host, *link;
	redisReply *reply;
	int error = connection_ask(connection, &reply, reason, "ROLE");

	if (error)
		return error;
	role = codec_text_of(reply, 0);
	host = codec_text_of(reply, 1);
	link = codec_text_of(reply, 3);
	if (!role) {
		error = reason_set(reason, -EPROTO, "the broker at %s does not tell its role", connection->where);
	} else if (!strcmp(role, "master")) {
		broker->is_master = true;
	} else if (!host || !link || reply->element[2]->type != REDIS_REPLY_INTEGER) {
		error = reason_set(reason, -EROFS, "the broker at %s is a %s", connection->where, role);
	} else {
		snprintf(master, CONNECTION_WHERE_BYTES, strchr(host, ':') ? "[%.200s]:%lld" : "%.200s:%lld", host,
			 reply->element[2]->integer);
		if (broker->use == BROKER_WRITE)
			error = reason_set(reason, -EROFS,
					   "the broker at %s is a replica, and its master at %s is not reached",
					   connection->where, master);
		else if (strcmp(link, "connected"))
			error = reason_set(reason, -ENOTCONN, "the broker at %s has lost its master",
					   connection->where);
	}
	codec_free(reply);
	return error;
}

static int try(struct broker *broker, const char *where, const struct broker_secrets *secrets, int timeout_ms,
	       char master[CONNECTION_WHERE_BYTES], struct reason *reason)
{
	int error = log_in(&broker->connection, where, &broker->options, secrets, timeout_ms, reason);

	broker->is_master = false;
	if (!error)
		error = check_role(broker, master, reason);
	if (!error)
		error = broker_read_clock(broker, reason);
	if (error)
		connection_close(&broker->connection);
	return error;
}

/* ---- split brain ---- */

struct lineage {
	bool is_master, is_linked; /* a replica: to its master */
	char id[64], before[64];   /* of the replication; of the one that it took over from */
};

static void copy_field(const char *info, const char *name, char value[64])
{
	const char *found = strstr(info, name);

	snprintf(value, 64, "%.*s", found ? (int)strcspn(found + strlen(name), "\r\n") : 0,
		 found ? found + strlen(name) : "");
}

/* 0; -EREMOTEIO: the user may not ask this; other -errno. */
static int read_lineage(struct connection *connection, struct lineage *lineage, struct reason *reason)
{
	const char *info;
	redisReply *reply;
	int error = connection_ask(connection, &reply, reason, "INFO replication");

	if (error)
		return error;
	info = codec_text(reply);
	if (info) {
		lineage->is_master = strstr(info, "role:master");
		lineage->is_linked = strstr(info, "master_link_status:up");
		copy_field(info, "master_replid:", lineage->id);
		copy_field(info, "master_replid2:", lineage->before);
	} else {
		error = reason_set(reason, -EPROTO, "the broker at %s: its INFO is not that of Redis",
				   connection->where);
	}
	codec_free(reply);
	return error;
}

/*
 * A master that was cut off still takes changes, which are lost when it becomes a replica of the new master. So ask all
 * other brokers. A server that this one took over from contradicts nothing. 0; -EROFS.
 */
static int ask_others(struct broker *master, const struct fleet_options *options, const struct broker_secrets *secrets,
		      const char *own, struct reason *reason)
{
	struct lineage self = {};
	int error = options->brokers_count > 1 ? read_lineage(&master->connection, &self, reason) : -EREMOTEIO;

	if (error)
		return error == -EREMOTEIO ? 0 : error;
	for (size_t i = 0; i < options->brokers_count && !error; i++) {
		struct connection other = { .fd = -1 };
		struct lineage lineage = {};
		struct reason ignored;

		if (!strcmp(options->brokers[i], own) ||
		    log_in(&other, options->brokers[i], options, secrets, OTHERS_MS, &ignored) ||
		    read_lineage(&other, &lineage, &ignored)) {
			connection_close(&other);
			continue;
		}
		connection_close(&other);
		if ((lineage.is_master || lineage.is_linked) && strcmp(lineage.id, self.id) &&
		    strcmp(lineage.id, self.before))
			error = reason_set(reason, -EROFS,
					   "the brokers at %s and %s do not agree which is the master; publishes to neither",
					   own, options->brokers[i]);
	}
	return error;
}

int broker_open(struct broker *broker, const struct fleet_options *options, const struct broker_secrets *secrets,
		enum broker_use use, int timeout_ms, struct reason *reason)
{
	const size_t count = options->brokers_count, first = use == BROKER_READ ? fleet_random_below(count) : 0;
	char master[CONNECTION_WHERE_BYTES] = "", ignored[CONNECTION_WHERE_BYTES];
	struct reason of_replica;
	int error, without_master = 0;

	*broker = (struct broker){ .connection = { .fd = -1 }, .options = *options, .use = use };
	if (!count)
		return reason_set(reason, -EINVAL, "[fleet] names no broker; write broker = HOST");
	error = secrets ? 0 : broker_secrets_keep(options, reason);
	if (error)
		return error;
	secrets = secrets ? secrets : &kept;
	for (size_t i = 0; i < count; i++) {
		error = try(broker, options->brokers[(first + i) % count], secrets, timeout_ms, master, reason);
		if (!error && use == BROKER_WRITE)
			error = ask_others(broker, options, secrets, broker->connection.where, reason);
		if (!error)
			break;
		connection_close(&broker->connection);
		if (error == -EROFS || error == -ENOTCONN) {
			without_master = error;
			of_replica = *reason;
		}
	}
	/* The configuration may name only replicas. */
	if (error && *master) {
		error = try(broker, master, secrets, timeout_ms, ignored, reason);
		if (!error)
			error = ask_others(broker, options, secrets, master, reason);
		if (error)
			connection_close(&broker->connection);
	}
	if (error && without_master) {
		*reason = of_replica;
		error = without_master;
	}
	return error;
}

void broker_close(struct broker *broker)
{
	connection_close(&broker->connection);
}

int broker_reopen(struct broker *broker, struct reason *reason)
{
	const struct fleet_options options = broker->options;

	broker_close(broker);
	return broker_open(broker, &options, NULL, broker->use, CONNECTION_TIMEOUT_MS, reason);
}

/* ---- the clock ---- */

int broker_read_clock(struct broker *broker, struct reason *reason)
{
	const __s64 before_ms = fleet_now_ms();
	const char *seconds, *us;
	redisReply *reply;
	int error = connection_ask(&broker->connection, &reply, reason, "TIME");

	if (error)
		return error;
	seconds = codec_text_of(reply, 0);
	us = codec_text_of(reply, 1);
	if (seconds && us)
		broker->offset_ms = atoll(seconds) * 1000 + atoll(us) / 1000 - (before_ms + fleet_now_ms()) / 2;
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
