/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The machines of a simulation, and the commands of the tool that run there. */
#ifndef XDP_CUCKOO_SIMULATION_NODES_H
#define XDP_CUCKOO_SIMULATION_NODES_H

#include "simulation/world.h"

extern struct node nodes[NODES_MAX];
extern unsigned int nodes_count;
extern __s64 master_since_us; /* since when the present master has its data */

void nodes_open(unsigned int followers, unsigned int others, unsigned int brokers, unsigned int replicas);
void nodes_close(void);
struct node *node_named(const char *name);
bool node_follows(const struct node *node, int list);
/* The last note of its follower. */
const char *node_said(const struct node *node);
/* Whether it has said since the last call that it holds a list. */
bool node_has_held(const struct node *node);
bool node_has_panic(const struct node *node);
struct process *node_service(const struct node *node);

/* Starts a command of the tool there. `ended` may ask for its status and for what it has printed. */
struct process *node_run(struct node *node, const char *what, void (*ended)(struct process *process),
			 const char *format, ...) __attribute__((format(printf, 4, 5)));

/* The service: it starts again after a second. */
void node_follow(struct node *node, bool is_on);
/* A signal that asks its processes to end. */
void node_terminate(struct node *node);

#endif
