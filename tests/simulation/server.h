/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Redis servers of the model: clients, roles, asynchronous replication, and what is on disk when one is killed. The functions
 * are those of fleet.lua, run by the same Lua as in Redis.
 */
#ifndef XDP_CUCKOO_SIMULATION_SERVER_H
#define XDP_CUCKOO_SIMULATION_SERVER_H

#include "simulation/dataset.h"
#include "simulation/network.h"

enum disk {
	DISK_ALWAYS,   /* appendfsync always: nothing is lost */
	DISK_EVERYSEC, /* the last second is lost */
	DISK_SNAPSHOT, /* no log: the last minute is lost */
	DISK_NONE,
};

/* What the broker refuses now. */
enum denial {
	DENY_LOGIN = 1,
	DENY_REPORTS = 2,
	DENY_READS = 4,
	DENY_MEMORY = 8, /* OOM */
};

struct client;
struct lua_State;

struct server {
	unsigned int number;
	char where[24];
	bool is_up, is_silent; /* silent: it is stopped (SIGSTOP), or its machine hangs */
	unsigned int run;
	char run_id[41], replication_id[41];
	struct dataset data, durable;
	enum disk disk;
	struct bytes unsynced; /* effects that are not in `durable` yet */
	struct server *master; /* NULL: it is one */
	bool is_linked;        /* to its master */
	bool is_syncing;       /* the whole data of its master are on their way */
	__u64 link;            /* counts links, so that what is late is void */
	__s64 offset, acknowledged[SERVERS_MAX];
	__s64 arrives_us;    /* when the last effects on their way arrive here */
	bool is_cut_off;     /* no replication reaches it */
	__s64 lag_us;        /* of replication to it */
	__s64 wall_ms;       /* how wrong its clock is */
	unsigned int denies; /* enum denial */
	struct client *clients;
	struct lua_State *lua;
	struct bytes effects;      /* of the current command */
	__u64 commands[NODES_MAX]; /* of each node, since somebody set it to 0 */
};

extern struct server servers[SERVERS_MAX];
extern unsigned int servers_count;

void servers_open(unsigned int count);
__s64 server_wall_ms(const struct server *server);

void server_kill(struct server *server);
void server_start(struct server *server);
void server_promote(struct server *server);
void server_follow(struct server *server, struct server *master);
/* A machine that hangs, and goes on later. */
void server_be_silent(struct server *server, bool is_silent);
bool server_is_silent(const struct server *server);
/* The data becomes that of a backup; the server must be down. */
void server_restore(struct server *server, const struct dataset *backup);

/* Does a command as an administrator, or as a program of its own with these rights. False: it was refused. */
bool server_command(struct server *server, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool server_command_words(struct server *server, int count, const struct word *words);

/* ---- for network.c ---- */

bool server_accept(struct server *server, struct link *link);
void server_receive(struct client *client, const char *data, size_t count);
void server_forget_client(struct client *client);

#endif
