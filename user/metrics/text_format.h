/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Metrics as Prometheus reads them: families of samples, gathered as JSON, and written in its text format 0.0.4.
 * Knows nothing of what is measured.
 */
#ifndef XDP_CUCKOO_METRICS_H
#define XDP_CUCKOO_METRICS_H

#include <stdio.h>

#include <jansson.h>

enum metric_type { METRIC_COUNTER, METRIC_GAUGE };

/* An array without families; NULL where memory is short. What is added next, by this thread, is of it. */
json_t *metrics_begin(void);

/* Whether all is there that was added; jansson leaves out what it has no memory for. 0; -ENOMEM. */
int metrics_end(void);

/* A family without samples, added to the array `metrics`. Names and labels: [a-z_]+; `help`: one line. Borrowed. */
json_t *metrics_family(json_t *metrics, const char *name, enum metric_type type, const char *help);

/* A copy of labels, and one label more. */
json_t *metrics_copy_labels(const json_t *labels);
void metrics_label(json_t *labels, const char *name, const char *value);

/* `labels`: an object of strings, released; its order is kept. */
void metrics_sample(json_t *family, json_t *labels, double value);

void metrics_write(FILE *to, const json_t *metrics);

#endif
