/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The plan of a run: rounds of faults and of quiet. */
#ifndef XDP_CUCKOO_SIMULATION_FAULTS_H
#define XDP_CUCKOO_SIMULATION_FAULTS_H

#include "simulation/server.h"

/* Nothing disturbs; what is broken is being healed. */
extern bool is_quiet;

/* False: hosts may connect as often as they like. */
extern bool is_rate_checked;

/* The server that has the truth. */
struct server *present_master(void);

/* A whole run of so many simulated seconds. `faults`: a letter for each kind that is allowed; NULL: all. */
void faults_run(unsigned int seconds, const char *kinds);

#endif
