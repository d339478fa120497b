/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * All running filters of this network namespace as metrics: what `metrics` prints and `exporter` serves. Knows the names,
 * types and meanings of all families, and not the format.
 */
#ifndef XDP_CUCKOO_METRICS_FILTERS_H
#define XDP_CUCKOO_METRICS_FILTERS_H

#include <jansson.h>

#include "base/error_reason.h"

/*
 * Gathers anew, and changes nothing. `state`: the directory of all stores; NULL: the default. `unread`: of a filter
 * beside others that cannot be used, or of the first store that cannot be read, so that its rules are not told; "" where
 * there is none. 0, with an array for metrics_write(), and to json_decref(); -ENOMEM; -EPERM, -EPROTO (none but filters
 * that cannot be used), other -errno with the reason.
 */
int metrics_filters_gather(const char *state, json_t **metrics, struct reason *unread, struct reason *reason);

#endif
