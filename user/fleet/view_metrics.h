/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The hosts and lists of a fleet as metrics for Prometheus: names, types, meanings and values. */
#ifndef XDP_CUCKOO_VIEW_METRICS_H
#define XDP_CUCKOO_VIEW_METRICS_H

#include <jansson.h>

#include "fleet/hosts.h"

/* An array for metrics_write() in *metrics. `now_ms`: the broker's time. 0; -ENOMEM. */
int view_metrics(const struct fleet_view *view, const char *fleet, bool is_panic, __s64 now_ms, json_t **metrics);

#endif
