/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Families of samples, kept as JSON, and written in the text format 0.0.4 of Prometheus. */
#ifndef XDP_CUCKOO_METRICS_TEXT_H
#define XDP_CUCKOO_METRICS_TEXT_H

#include <stdio.h>

#include <jansson.h>


enum metric_type { METRIC_COUNTER, METRIC_GAUGE };

/* metrics_begin() returns an empty array of families. metrics_end(), in the same thread: 0 or -ENOMEM. */
json_t *metrics_begin(void);
int metrics_end(void);

/* Adds a family without samples. Returns it, borrowed. Names are [a-z_]+; `help` is one line; NULL: no memory. */
json_t *metrics_family(json_t *metrics, const char *name, enum metric_type type, const char *help);

/* Adds a sample. Takes over `labels`, an object of strings in the order to write. */
void metrics_sample(json_t *family, json_t *labels, double value);

void metrics_write(FILE *to, const json_t *metrics);

#endif
