/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What people do with a fleet: publish, release, set panic, look, and put right what broke. */
#ifndef XDP_CUCKOO_SIMULATION_WORK_H
#define XDP_CUCKOO_SIMULATION_WORK_H

#include "simulation/world.h"

#define PUBLISHERS 3 /* one for each list; then comes the operator */

/* Publishers begin to work, or stop after what they do now. */
void work_start(void);
void work_stop(void);
struct process *work_process(unsigned int publisher);

/* The operator's commands. */
void operator_init(void);
void operator_look(void);
void operator_panic(bool is_on);
extern bool wants_panic; /* the last panic that was set or ended with status 0 */
extern bool is_panic_sure;

/* After a loss: publishes all that was promised, then accepts it on each host. */
void operator_republish(void);
void operator_accept(void);

/* Garbage that the right of a publisher of this list allows. */
void write_garbage(unsigned int kind);
#define GARBAGE_KINDS 8

#endif
