/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What hosts and lists a fleet has, as the broker knows it. */
#ifndef XDP_CUCKOO_HOSTS_H
#define XDP_CUCKOO_HOSTS_H

#include "fleet/broker.h"
#include "fleet/snapshot.h"
#include <jansson.h>

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
