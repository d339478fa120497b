/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Serves metrics over HTTP, until a signal comes. This process reads filters and stores, and needs privileges. Another one
 * without privileges has the listening socket and talks to the clients. It can only ask for the text of the metrics, once
 * a second. If it ends or hangs, this process starts another one.
 */
#ifndef XDP_CUCKOO_METRICS_EXPORTER_H
#define XDP_CUCKOO_METRICS_EXPORTER_H

#include "base/error_reason.h"
#include "metrics/http_server.h"

struct exporter {
	const char *state; /* the directory of all stores; NULL: the default */
	const char *where; /* the address, for messages */
	struct http_address address;
	void (*note)(const char *text);
};

/* 0: a signal; -errno. */
int exporter_run(const struct exporter *exporter, struct reason *reason);

#endif
