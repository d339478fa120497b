/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Metrics as Prometheus reads them: families of samples, gathered as JSON and written in its text format
 * 0.0.4.
 */
#ifndef XDP_CUCKOO_METRICS_H
#define XDP_CUCKOO_METRICS_H

#include <stdio.h>

#include <jansson.h>

enum metric_type { METRIC_COUNTER, METRIC_GAUGE };

/* An empty array of families; NULL: no memory. The calls below, by this thread, add to it. */
json_t *metrics_begin(void);

/* 0; -ENOMEM: something was not added for lack of memory. */
int metrics_end(void);

/*
 * Adds a family without samples. Returns it, borrowed. Names of families and labels are [a-z_]+; `help` is
 * one line.
 */
json_t *metrics_family(json_t *metrics, const char *name, enum metric_type type, const char *help);

/* A copy of labels. metrics_label() adds one label. */
json_t *metrics_copy_labels(const json_t *labels);
void metrics_label(json_t *labels, const char *name, const char *value);

/* Adds a sample. Releases `labels`, an object of strings in the order to write. */
void metrics_sample(json_t *family, json_t *labels, double value);

void metrics_write(FILE *to, const json_t *metrics);

#endif
