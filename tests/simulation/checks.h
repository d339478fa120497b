/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What must always hold: the history that each position of the log stands for, the rules that were promised to publishers,
 * and what hosts have and say.
 *
 * Words: a rule is promised when a command that publishes it has ended with status 0. It is excused if a broker has lost
 * it in a way that the manual allows. A list is spoilt if a publisher has written garbage to its keys.
 */
#ifndef XDP_CUCKOO_SIMULATION_CHECKS_H
#define XDP_CUCKOO_SIMULATION_CHECKS_H

#include <jansson.h>

#include "fleet/apply.h"
#include "simulation/server.h"

#define LISTS_MAX 8

extern const char *const list_names[];
extern bool is_spoilt[LISTS_MAX];
/* The number of a list by its name or by a key of it. Negative: none. */
int list_of(const char *name);
int list_of_key(const char *key);

/* Called after each command that has changed a master. */
void history_note(struct server *server, int count, const struct word *words);

/* ---- promises ---- */

enum promise_state {
	PROMISE_NONE,
	PROMISE_MAYBE, /* a command has tried to add or to delete it, and did not end well, or has not ended */
	PROMISE_LIVE,
	PROMISE_GONE,
};

struct promise {
	char rule[64];
	int list;
	enum promise_state state;
	__s64 end_us; /* 0: never */
	__s64 since_us, excused_us;
	bool is_excused;        /* hosts and brokers may lack it */
	__u64 lost_epoch;       /* of the broker, when it had lost it */
	bool is_lost_at_broker; /* only brokers may lack it: hosts keep it until somebody accepts */
};

extern struct promise *promises;
extern size_t promises_count;

struct promise *promise_of(int list, const char *rule);
void promise_set(struct promise *promise, enum promise_state state, __s64 end_us);
void promise_excuse(struct promise *promise);
bool promise_is_live(const struct promise *promise);

/* After a server has become the truth with less data than before. `hosts_too`: hosts may follow the loss. */
void promises_excuse(const struct server *truth, bool hosts_too);
void promises_excuse_lost(void);
/* Whether the server has what was promised: no such rule, or the rule with this end. */
bool server_keeps(const struct server *server, const struct promise *promise);
/* Whether only one of them has the rule, or each with another end. */
bool servers_differ(const struct server *a, const struct server *b, const struct promise *promise);

/* ---- hosts ---- */

/* In a process of the host, after it has applied something. */
void check_host(struct apply *apply);
/* Somebody accepts on this host whatever the broker has, until hosts_accept_no_more(). */
void host_accepts(const struct node *node);
void hosts_accept_no_more(void);
struct fleet_position host_position(const struct node *node, int list);

/* Whether all hosts have all lists that are not spoilt as this master has them; if not, *why says what is missing. */
bool hosts_are_level(const struct server *master, char why[512]);
/* After the end: every promise is kept at the broker and on the hosts. */
void check_promises(const struct server *master);

/* What `fleet status` has said, when `master` answered. */
void check_status(const json_t *status, const struct server *master, int exit_status);

/* Commands and connections of hosts since the last call. */
void check_rates(__s64 us);

#endif
