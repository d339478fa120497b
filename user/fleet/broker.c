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

struct secrets {
	char *password;     /* NULL: no authentication */
	char *certificates; /* PEM; NULL: no TLS */
};

static struct secrets kept;

static int read_secrets(struct secrets *secrets, const struct fleet_options *options,
			struct reason *reason)
{
	int error = 0;

	if (options->ca)
		error = io_read_secret("ca", options->ca, 0, &secrets->certificates, reason);
	if (!error && options->password_file)
		error = io_read_secret("password-file", options->password_file, S_IWGRP | S_IRWXO, &secrets->password,
				       reason);
	if (error || !secrets->password)
		return error;
	secrets->password[strcspn(secrets->password, "\r\n")] = '\0';
	return *secrets->password ?
		       0 :
		       reason_set(reason, -EINVAL, "password-file = '%s': its first line is empty",
				  options->password_file);
}

static void forget_secrets(struct secrets *secrets)
{
	if (secrets->password)
		explicit_bzero(secrets->password, strlen(secrets->password));
	free(secrets->password);
	free(secrets->certificates);
	*secrets = (struct secrets){};
}

static bool is_equal(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

int broker_secrets_keep(const struct fleet_options *options, struct reason *reason)
{
	const bool has_kept = kept.password || kept.certificates;
	struct secrets now = {};
	bool is_changed;
	int error = read_secrets(&now, options, reason);

	if (error) {
		forget_secrets(&now);
		return has_kept ? 0 : error;
	}
	is_changed = has_kept && !(is_equal(kept.password, now.password) &&
				   is_equal(kept.certificates, now.certificates));
	forget_secrets(&kept);
	kept = now;
	return is_changed;
}

const char *broker_certificates(void)
{
	return kept.certificates;
}

/* Connects and logs in. Close the connection after an error, too. */
static int log_in(struct connection *connection, const char *where,
		  const struct fleet_options *options, int timeout_ms, struct reason *reason)
{
	const char *user = options->user ? options->user : "default";
	int error = connection_open(connection, where, kept.certificates, timeout_ms, reason);

	if (!error && kept.password)
		error = connection_ask(connection, NULL, reason, "AUTH %s %s", user, kept.password);
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
	CODEC_FREED redisReply *reply = NULL;
	const char *role, *host, *link;
	int error = connection_ask(connection, &reply, reason, "ROLE");

	if (error)
		return error;
	role = codec_text_of(reply, 0);
	host = codec_text_of(reply, 1);
	link = codec_text_of(reply, 3);
	if (!role)
		return reason_set(reason, -EPROTO, "the broker at %s does not tell its role",
				  connection->where);
	broker->is_master = !strcmp(role, "master");
	if (broker->is_master)
		return 0;
	if (!host || !link || reply->element[2]->type != REDIS_REPLY_INTEGER)
		return reason_set(reason, -EROFS, "the broker at %s is a %s", connection->where,
				  role);
	snprintf(master, CONNECTION_WHERE_BYTES,
		 strchr(host, ':') ? "[%.200s]:%lld" : "%.200s:%lld", host,
		 reply->element[2]->integer);
	if (broker->use == BROKER_WRITE)
		return reason_set(reason, -EROFS,
				  "the broker at %s is a replica, and its master at %s is not reached",
				  connection->where, master);
	return !strcmp(link, "connected") ?
		       0 :
		       reason_set(reason, -ENOTCONN, "the broker at %s has lost its master",
				  connection->where);
}

/* ---- split brain ---- */

struct lineage {
	bool is_master, is_linked; /* a replica: to its master */
	/* Of the replication; of the one that it took over from. */
	char id[CODEC_INFO_BYTES], before[CODEC_INFO_BYTES];
};

/* 0; -EREMOTEIO: the user may not ask this; other -errno. */
static int read_lineage(struct connection *connection, struct lineage *lineage, struct reason *reason)
{
	CODEC_FREED redisReply *reply = NULL;
	int error = connection_ask(connection, &reply, reason, "INFO replication");
	const char *info = codec_text(reply);

	if (error || !info)
		return error ? error :
			       reason_set(reason, -EPROTO,
					  "the broker at %s: its INFO is not that of Redis",
					  connection->where);
	lineage->is_master = strstr(info, "role:master");
	lineage->is_linked = strstr(info, "master_link_status:up");
	codec_info(info, "master_replid:", lineage->id);
	codec_info(info, "master_replid2:", lineage->before);
	return 0;
}

/*
 * A master that was cut off still takes changes, which are lost when it becomes a replica of the new master. So ask all
 * other brokers. A server that this one took over from contradicts nothing. 0; -EROFS.
 */
static int ask_others(struct broker *master, const char *own, struct reason *reason)
{
	const struct fleet_options *options = &master->options;
	struct lineage self = {};
	int error = options->brokers_count > 1 ? read_lineage(&master->connection, &self, reason) : -EREMOTEIO;

	if (error)
		return error == -EREMOTEIO ? 0 : error;
	for (size_t i = 0; i < options->brokers_count; i++) {
		struct connection other = { .fd = -1 };
		struct lineage lineage = {};
		struct reason ignored;
		bool is_known =
			strcmp(options->brokers[i], own) &&
			!log_in(&other, options->brokers[i], options, OTHERS_MS, &ignored) &&
			!read_lineage(&other, &lineage, &ignored);

		connection_close(&other);
		if (is_known && (lineage.is_master || lineage.is_linked) &&
		    strcmp(lineage.id, self.id) && strcmp(lineage.id, self.before))
			return reason_set(
				reason, -EROFS,
				"the brokers at %s and %s do not agree which is the master; publishes to neither",
				own, options->brokers[i]);
	}
	return 0;
}

/* ---- opening ---- */

static int try(struct broker *broker, const char *where, bool asks_others,
	       char master[CONNECTION_WHERE_BYTES], struct reason *reason)
{
	int error =
		log_in(&broker->connection, where, &broker->options, CONNECTION_TIMEOUT_MS, reason);

	broker->is_master = false;
	if (!error)
		error = check_role(broker, master, reason);
	if (!error)
		error = broker_read_clock(broker, reason);
	if (!error && asks_others)
		error = ask_others(broker, where, reason);
	if (error)
		connection_close(&broker->connection);
	return error;
}

int broker_open(struct broker *broker, const struct fleet_options *options, enum broker_use use,
		struct reason *reason)
{
	const size_t count = options->brokers_count, first = use == BROKER_READ ? fleet_random_below(count) : 0;
	char master[CONNECTION_WHERE_BYTES] = "", ignored[CONNECTION_WHERE_BYTES];
	struct reason of_replica;
	int error, without_master = 0;

	*broker = (struct broker){ .connection = { .fd = -1 }, .options = *options, .use = use };
	if (!count)
		return reason_set(reason, -EINVAL, "[fleet] names no broker; write broker = HOST");
	error = broker_secrets_keep(options, reason);
	if (error < 0)
		return error;
	for (size_t i = 0; i < count; i++) {
		error = try(broker, options->brokers[(first + i) % count], use == BROKER_WRITE,
			    master, reason);
		if (!error)
			return 0;
		if (error == -EROFS || error == -ENOTCONN) {
			without_master = error;
			of_replica = *reason;
		}
	}
	/* The configuration may name only replicas. */
	if (*master && !(error = try(broker, master, true, ignored, reason)))
		return 0;
	if (!without_master)
		return error;
	*reason = of_replica;
	return without_master;
}

void broker_close(struct broker *broker)
{
	connection_close(&broker->connection);
}

int broker_reopen(struct broker *broker, struct reason *reason)
{
	const struct fleet_options options = broker->options;

	broker_close(broker);
	return broker_open(broker, &options, broker->use, reason);
}

/* ---- the clock ---- */

int broker_read_clock(struct broker *broker, struct reason *reason)
{
	const __s64 before_ms = fleet_now_ms();
	CODEC_FREED redisReply *reply = NULL;
	const char *seconds, *us;
	int error = connection_ask(&broker->connection, &reply, reason, "TIME");

	if (error)
		return error;
	seconds = codec_text_of(reply, 0);
	us = codec_text_of(reply, 1);
	if (!seconds || !us)
		return reason_set(reason, -EPROTO, "the broker at %s does not tell the time",
				  broker->connection.where);
	broker->offset_ms =
		atoll(seconds) * 1000 + atoll(us) / 1000 - (before_ms + fleet_now_ms()) / 2;
	return 0;
}

__s64 broker_now_ms(const struct broker *broker)
{
	return fleet_now_ms() + broker->offset_ms;
}
