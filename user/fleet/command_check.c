// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* fleet check: looks for what xdp-cuckoo-fleet(7) says about the settings of a broker, at each broker. */
#include "fleet/commands.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "io/output.h"

struct checking {
	const struct fleet_options *options;
	struct broker *broker;
	const char *info; /* the answer to INFO */
	redisReply *settings;
	bool is_open; /* a client needs no password */
	enum command_status status;
};

/* A mistake, at the broker that is checked. */
#define MISTAKE(checking, ...) ((checking)->status = command_fail(STATUS_NO, "%s: " __VA_ARGS__))
#define WHERE(checking) (checking)->broker->connection.where

/* A value in an answer of names and values; NULL: it is not known. */
static const char *value_in(const redisReply *answer, const char *name)
{
	for (size_t i = 0; answer && i + 1 < answer->elements; i += 2)
		if (codec_text_of(answer, i) && !strcmp(codec_text_of(answer, i), name))
			return codec_text_of(answer, i + 1);
	return NULL;
}

static bool is_set_to(const struct checking *checking, const char *name, const char *value)
{
	const char *found = value_in(checking->settings, name);

	return found && !strcmp(found, value);
}

/* Whether the broker answers somebody who has not logged in. */
static bool is_open(const struct checking *checking)
{
	const char *certificates = broker_certificates();
	struct connection connection;
	struct reason ignored;
	bool answers = false;

	if (!connection_open(&connection, WHERE(checking), certificates, CONNECTION_TIMEOUT_MS, &ignored)) {
		answers = !connection_ask(&connection, NULL, &ignored, "PING");
		connection_close(&connection);
	}
	return answers;
}

/* What could lose the rules of the lists. */
static void check_keeping(struct checking *checking)
{
	char value[CODEC_INFO_BYTES], most[CODEC_INFO_BYTES];
	CODEC_FREED redisReply *reply = NULL;
	struct reason ignored;
	const char *commands;

	if (strcmp(codec_info(checking->info, "aof_enabled:", value), "1"))
		MISTAKE(checking, "it loses its data when it restarts: set appendonly yes", WHERE(checking));
	if (*codec_info(checking->info, "maxmemory_policy:", value) && strcmp(value, "noeviction"))
		MISTAKE(checking, "it drops keys when memory is short: set maxmemory-policy noeviction",
			WHERE(checking));
	if (value_in(checking->settings, "appendfsync") && !is_set_to(checking, "appendfsync", "always"))
		output_note("%s may lose the last 2 seconds if it is killed: set appendfsync always", WHERE(checking));
	if (atoll(codec_info(checking->info, "\nconnected_clients:", value)) * 10 >
	    atoll(codec_info(checking->info, "\nmaxclients:", most)) * 9)
		MISTAKE(checking, "it has %s clients, and takes %s: raise maxclients", WHERE(checking), value, most);
	/*
	 * Redis 7.0 reads its appendonly file with the rights of the user default. Without these, it leaves out each
	 * transaction, and so each entry of a list.
	 */
	if (!checking->is_open &&
	    !connection_ask(&checking->broker->connection, &reply, &ignored, "ACL GETUSER default")) {
		commands = value_in(reply, "commands");
		if (commands && strcmp(commands, "+@all"))
			MISTAKE(checking,
				"it loses all rules when it restarts: write 'user default off ~* &* +@all' into its aclfile",
				WHERE(checking));
	}
	if (checking->broker->is_master && checking->options->replicas) {
		if (!strcmp(codec_info(checking->info, "connected_slaves:", value), "0"))
			MISTAKE(checking, "replicas = %u, but it has none", WHERE(checking),
				checking->options->replicas);
		if (!*codec_info(checking->info, "min_slaves_good_slaves:", value))
			MISTAKE(checking,
				"it takes changes that no replica gets, and loses them after a failover: set "
				"min-replicas-to-write 1",
				WHERE(checking));
	}
	if (checking->options->brokers_count > 1 && !checking->is_open && is_set_to(checking, "masterauth", ""))
		MISTAKE(checking, "it cannot log in at another master: set masteruser and masterauth", WHERE(checking));
}

static void check_access(struct checking *checking)
{
	static const char *const files[] = { "aclfile", "tls-key-file" };
	const char *port = strrchr(WHERE(checking), ':'), *path;
	const bool is_remote = *WHERE(checking) != '/'; /* no socket of this host */
	struct stat status;
	char value[CODEC_INFO_BYTES];

	codec_info(checking->info, "tcp_port:", value);
	if (!checking->options->ca && is_remote)
		output_note("the connection to %s is not encrypted: set ca = FILE", WHERE(checking));
	else if (checking->options->ca && strcmp(value, port ? port + 1 : "6379"))
		MISTAKE(checking, "its port %s takes clients without TLS: set port 0", WHERE(checking), value);
	if (checking->is_open && checking->options->password_file)
		MISTAKE(checking, "anybody can use it without a password: write 'user default off' into its aclfile",
			WHERE(checking));
	else if (checking->is_open && is_remote)
		output_note("%s needs no password: see Access in xdp-cuckoo-fleet(7)", WHERE(checking));
	if (!checking->is_open && is_set_to(checking, "aclfile", ""))
		MISTAKE(checking, "it forgets its users when it restarts: set aclfile", WHERE(checking));
	if (!checking->settings)
		output_note("this user may not read the settings of %s, so these are not checked: appendfsync, aclfile, "
			    "masterauth, modes of files",
			    WHERE(checking));
	/* Others must not read the files of a broker on this host. */
	codec_info(checking->info, "config_file:", value);
	for (size_t i = 0; i < 3 && connection_is_local(&checking->broker->connection); i++) {
		path = i < 2 ? value_in(checking->settings, files[i]) : value;
		if (path && *path == '/' && !stat(path, &status) && status.st_mode & S_IRWXO)
			MISTAKE(checking, "others can read '%s': chmod o-rwx it", WHERE(checking), path);
	}
}

static enum command_status check_one(const struct fleet_options *options, const char *where)
{
	struct fleet_options alone = *options;
	struct broker broker;
	struct checking checking = { .options = options, .broker = &broker, .status = STATUS_DONE };
	CODEC_FREED redisReply *answer = NULL;
	struct reason reason;
	int error;

	alone.brokers[0] = where;
	alone.brokers_count = 1;
	error = broker_open(&broker, &alone, BROKER_READ, &reason);
	/* In TLS 1.3 a broker that wants a certificate of its clients says so only after the handshake. */
	if (!error)
		error = connection_ask(&broker.connection, &answer, &reason, "INFO");
	if (error) {
		broker_close(&broker);
		return command_fail(STATUS_SYSTEM, "%s%s", reason.text,
				    error == -EKEYREJECTED ?
					    "; its subjectAltName must have the name or address of `broker`" :
				    (error == -EPROTO || error == -ECONNRESET) && options->ca ?
					    "; does it have tls-auth-clients no?" :
					    "");
	}
	checking.info = answer->type == REDIS_REPLY_STRING ? answer->str : "";
	/* Only an administrator may ask this. */
	connection_ask(&broker.connection, &checking.settings, &reason,
		       "CONFIG GET appendfsync aclfile masterauth tls-key-file");
	checking.is_open = is_open(&checking);
	check_keeping(&checking);
	check_access(&checking);
	codec_free(&checking.settings);
	broker_close(&broker);
	return checking.status;
}

enum command_status fleet_check(const struct invocation *invocation, const struct config *config, struct broker *broker)
{
	const struct fleet_options *options = &config->fleet;
	enum command_status status = STATUS_DONE;
	CODEC_FREED redisReply *reply = NULL;
	struct reason reason;
	int error;

	for (size_t i = 0; i < options->brokers_count; i++) {
		const enum command_status found = check_one(options, options->brokers[i]);

		status = found != STATUS_DONE ? found : status;
	}
	error = broker_open(broker, options, BROKER_READ, &reason);
	if (!error)
		error = connection_ask(&broker->connection, &reply, &reason, "HGET xc:%s:meta id", invocation->name);
	if (error)
		return status != STATUS_DONE ? status : fleet_fail(error, &reason);
	if (reply->type != REDIS_REPLY_STRING)
		status =
			command_fail(STATUS_NO,
				     "there is no fleet '%s' on the broker: xdp-cuckoo%s fleet init",
				     invocation->name, session_name_option(invocation->name));
	if (status == STATUS_DONE)
		output_print(json_pack("{s:s, s:s, s:b}", "fleet", invocation->name, "broker", broker->connection.where,
				       "master", broker->is_master));
	return status;
}
