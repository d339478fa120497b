/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the commands of a fleet share. */
#ifndef XDP_CUCKOO_FLEET_CONFIG_H
#define XDP_CUCKOO_FLEET_CONFIG_H

#include "commands/command.h"
#include "config/config.h"
#include "fleet/broker.h"

/* Reads the configuration of --config, or of --name. Prints the error. The caller closes *config. */
enum command_status fleet_config_open(const struct invocation *invocation, struct config **config);

/* The same, and connects to a broker. The caller closes both, even after an error. */
enum command_status fleet_config_connect(const struct invocation *invocation, enum broker_use use,
					 struct config **config, struct broker *broker);

/* The exit status for `error` of a broker. Prints the reason. */
enum command_status fleet_fail(int error, const struct reason *reason);

#endif
