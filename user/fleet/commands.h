/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the commands of a fleet share. */
#ifndef XDP_CUCKOO_FLEET_COMMANDS_H
#define XDP_CUCKOO_FLEET_COMMANDS_H

#include "command/command.h"
#include "config/config.h"
#include "fleet/broker.h"
#include "fleet/publisher.h"
#include "fleet/snapshot.h"

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
	enum command_status status; /* of bad lines, or of what the broker refuses besides */
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

/*
 * ---- follow.c ----
 *
 * Follows a fleet: keeps the lists of this host equal to the broker's. Starts the reader (reader_process.c) as a process of
 * its own, applies what it sends (apply.h), and reports the state to the broker and to the service manager.
 */

struct follow {
	const struct fleet_options *options;
	const char *state, *name; /* of the filter, and the name of the fleet */
	bool is_once;             /* end when all lists are level */
	bool is_accepted;         /* follow another fleet, lists that are gone, and states that delete many rules */
	void (*note)(const char *text); /* prints what an operator should know */
};

/*
 * Follows until SIGINT or SIGTERM, or with is_once until all lists are level or one fails. 0; -EINVAL: the configuration
 * lacks something; -EBADE: with is_once, something must be accepted first; other -errno.
 */
int follow_run(const struct follow *follow, struct reason *reason);

/* ---- hosts.c: what hosts and lists a fleet has, as the broker knows it ---- */

#define HOSTS_SILENT_MS 20000 /* a host reports every 5 s, and after each change */

struct fleet_list {
	char name[ABI_NAME_BYTES];
	struct list_head head;
	size_t hosts;         /* that follow it */
	struct reason broken; /* why the broker's keys of it cannot be read; "": they can */
};

struct fleet_host {
	char name[FLEET_HOST_BYTES];
	redisReply *fields; /* of write_status() in follow.c, or what the host likes; NULL: not read, or unreadable */
};

struct fleet_view {
	struct fleet_list *lists;
	size_t lists_count;
	struct fleet_host *hosts;
	size_t hosts_count;
};

/* Lists of the broker, and hosts that have reported, sorted by name. 0; -errno. Call fleet_view_close() in any case. */
int fleet_view_open(struct fleet_view *view, struct broker *broker, const char *fleet, struct reason *reason);
void fleet_view_close(struct fleet_view *view);

/* A field of the host's status; "" if there is none. As a number: cut to 2^53. */
const char *fleet_host_field(const struct fleet_host *host, const char *name);
__s64 fleet_host_number(const struct fleet_host *host, const char *name);

/* The host's position in the list. False: the host does not follow the list. */
bool fleet_host_at(const struct fleet_host *host, const char *list, struct fleet_position *at);

/* Whether a list that the host follows has later entries than those that it reported. */
bool fleet_host_is_behind(const struct fleet_view *view, const struct fleet_host *host);

/*
 * "level", "behind", "silent", "unreadable", or another word of a-z and '-'. `view` NULL: does not look for "behind".
 */
const char *fleet_host_state(const struct fleet_view *view, const struct fleet_host *host, __s64 now_ms);

/* ---- waiting until hosts have a change ---- */

struct waiting {
	struct broker *broker;
	const char *fleet, *list;
	struct fleet_position first, last; /* of the change; first 0-0: it changed nothing */
	unsigned int percent;              /* of the hosts that must have it */
	size_t hosts, done, refusing;      /* as last seen; done: without those that refuse rules of the change */
};

/*
 * 0; -EBADE: too few hosts have it, and the reason names some that do not, and why; other -errno. Forgets hosts that have
 * not reported for so long that the broker forgot their state, or that do not follow the list any more.
 */
int waiting_for_hosts(struct waiting *waiting, struct reason *reason);

/* ---- metrics for Prometheus ---- */

/* An array for metrics_write() in *metrics. `now_ms`: the broker's time. 0; -ENOMEM. */
int view_metrics(const struct fleet_view *view, const char *fleet, bool is_panic, __s64 now_ms, json_t **metrics);

#endif
