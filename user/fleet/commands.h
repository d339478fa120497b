/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the commands of a fleet share. */
#ifndef XDP_CUCKOO_FLEET_COMMANDS_H
#define XDP_CUCKOO_FLEET_COMMANDS_H

#include "command/command.h"
#include "config/config.h"
#include "fleet/broker.h"
#include "fleet/publisher.h"

/* ---- command_fleet.c: for publish and follow too ---- */

/* Reads the configuration of --config, or of --name. Prints the error. The caller closes *config. */
enum command_status fleet_config_open(const struct invocation *invocation, struct config **config);

/*
 * Gives up all capabilities, because what follows reads what a broker sends. Open files before. Reads the secrets first,
 * and keeps them. May be called again. 0; -errno. fleet_connect() also opens a broker; close it after an error, too.
 */
int fleet_give_up(const struct config *config, struct reason *reason);
int fleet_connect(const struct config *config, bool writes, struct broker *broker, struct reason *reason);

/* The exit status for `error` of a broker. Prints the reason. */
enum command_status fleet_fail(int error, const struct reason *reason);

/* ---- command_check.c ---- */

enum command_status fleet_check(const struct invocation *invocation, const struct config *config,
				struct broker *broker);

/* ---- command_publish.c, command_publish_lists.c ---- */

struct publishing {
	const struct invocation *invocation;
	struct config *config;
	char list[ABI_NAME_BYTES];
	char dir[4096]; /* of the outboxes */
	struct publisher publisher;
	enum command_status status; /* of bad lines */
	bool has_noted_masked;      /* a note said that a prefix has host bits */
	json_t *answer;             /* printed at the end: see publish_answer() */
};

/* Adds the members of `more`, which it releases, to the answer: under --json a command prints one value. */
void publish_answer(struct publishing *publishing, json_t *more);

/* Opens the publisher of a list. Prints the error. */
enum command_status publish_open(struct publishing *publishing, const char *list);

/* Prints why publisher_flush() or publisher_put() failed, and what waits in the outbox. */
enum command_status publish_fail(const struct publishing *publishing, int error, const struct reason *reason);

/* Prints what was published; with --wait, when the hosts have it. publish_finish() first sends what is queued. */
enum command_status publish_report(struct publishing *publishing);
enum command_status publish_finish(struct publishing *publishing);

enum command_status publish_import(struct publishing *publishing);

/*
 * Prints what an addition, a deletion or, with --replace, an import of these sorted rules would change in the list at the
 * broker. Sends nothing. Hosts may still refuse rules: only they know what would lock them out.
 */
enum command_status publish_dry_run(struct publishing *publishing, const struct rule_set *rules, bool is_added);

/* Reads the staged rules, for `release` adds them to the list, then empties the stage. */
enum command_status publish_stage_end(struct publishing *publishing);

enum command_status publish_delete(struct publishing *publishing);

#endif
