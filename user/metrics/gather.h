/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Gathers metrics of all running filters in this network namespace, for `metrics` and `exporter`. Knows the
 * names, types and meanings of all families; text_format.h knows the format.
 */
#ifndef XDP_CUCKOO_METRICS_FILTERS_H
#define XDP_CUCKOO_METRICS_FILTERS_H

#include <jansson.h>

#include "base/error_reason.h"

/*
 * Reads everything again and changes nothing. `state`: the directory of all stores; NULL: the default.
 * *unread says which filter could not be used, or whose stored rules could not be read (the first such
 * store), while others could; "": none. 0, with an array for metrics_write() that the caller releases.
 * -ENOMEM; -EPERM, -EPROTO: no filter could be used; other -errno with the reason.
 */
int metrics_filters_gather(const char *state, json_t **metrics, struct reason *unread, struct reason *reason);

#endif
