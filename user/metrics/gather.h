/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The metrics of all running filters in this network namespace: names, types, meanings and values. */
#ifndef XDP_CUCKOO_METRICS_GATHER_H
#define XDP_CUCKOO_METRICS_GATHER_H

#include <jansson.h>

#include "base/error_reason.h"

/*
 * Returns an array for metrics_write() in *metrics. `state`: the directory of all stores; NULL: the default.
 * *unread names the first filter or store that could not be read; "": all could. 0; -ENOMEM; -EPERM, -EPROTO:
 * no filter could be read; other -errno.
 */
int metrics_gather(const char *state, json_t **metrics, struct reason *unread, struct reason *reason);

#endif
