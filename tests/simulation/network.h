/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Connections between processes and brokers. A link is one TCP connection; bytes arrive later, in order, in parts. */
#ifndef XDP_CUCKOO_SIMULATION_NETWORK_H
#define XDP_CUCKOO_SIMULATION_NETWORK_H

#include <poll.h>

#include "simulation/world.h"

#define SERVERS_MAX 3

enum link_state { LINK_NEW, LINK_CONNECTING, LINK_OPEN, LINK_GONE };

struct parcel;

struct queue {
	struct parcel *first; /* on its way */
	__s64 time_us;        /* when the last one arrives */
};

struct link {
	struct file *file; /* NULL: the process has closed it */
	struct node *node;
	struct server *server;
	unsigned int server_run; /* the start of the server that has accepted it */
	enum link_state state;
	struct client *client; /* of the server; NULL: it has closed it */
	struct queue up, down;
	unsigned int users; /* plans that name it */
	bool is_reset;      /* seen by the process */
};

/* Whether packets of the node reach the server. */
extern bool is_cut[NODES_MAX][SERVERS_MAX];

unsigned int link_server_number(const struct link *link);
short link_events(const struct file *file);
void link_connect(struct file *file, unsigned int server);
void link_send(struct link *link, const void *data, size_t count);
void link_close(struct link *link);

/* For the server: sends a reply; resets the connection. */
void link_answer(struct link *link, const void *data, size_t count);
void link_reset(struct link *link);

/* All connections between them end at once, as a firewall or a router does it. */
void links_reset(const struct node *node, const struct server *server);

/* How many connections the node has tried since the count was last set to 0, by node. */
extern unsigned int connects[NODES_MAX];

void files_close_of(const struct process *process);

#endif
