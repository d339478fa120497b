/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by publish.c and publish_lists.c only. */
#ifndef XDP_CUCKOO_COMMAND_PUBLISH_H
#define XDP_CUCKOO_COMMAND_PUBLISH_H

#include "commands/command.h"
#include "fleet/publisher.h"

struct publishing {
	const struct invocation *invocation;
	struct config *config;
	char list[ABI_NAME_BYTES];
	char dir[4096]; /* of the outboxes */
	struct publisher publisher;
	enum command_status status; /* of bad lines */
};

/* Opens the publisher of a list. Prints the error. */
enum command_status publish_open(struct publishing *publishing, const char *list);

/* Prints why publisher_flush() or publisher_put() failed, and what waits in the outbox. */
enum command_status publish_failed(const struct publishing *publishing, int error, const struct reason *reason);

/* Prints what was published; with --wait, when the hosts have it. publish_finish() first sends what is queued. */
enum command_status publish_print(struct publishing *publishing);
enum command_status publish_finish(struct publishing *publishing);

/* ---- publish_lists.c ---- */

enum command_status publish_import(struct publishing *publishing);

/* Reads the staged rules, adds them to the list if `is_released`, then empties the stage. */
enum command_status publish_stage_end(struct publishing *publishing, bool is_released);

#endif
