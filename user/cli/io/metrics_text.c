// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* https://prometheus.io/docs/instrumenting/exposition_formats/ */
#include "io/metrics_text.h"

#include <errno.h>
#include <stdbool.h>

static _Thread_local bool is_short; /* memory was short since metrics_begin() */

json_t *metrics_begin(void)
{
	is_short = false;
	return json_array();
}

int metrics_end(void)
{
	return is_short ? -ENOMEM : 0;
}

json_t *metrics_family(json_t *metrics, const char *name, enum metric_type type, const char *help)
{
	static const char *const types[] = { [METRIC_COUNTER] = "counter", [METRIC_GAUGE] = "gauge" };
	json_t *family =
		json_pack("{s:s, s:s, s:s, s:[]}", "metric", name, "type", types[type], "help", help, "samples");

	is_short |= json_array_append_new(metrics, family) != 0;
	return family;
}

void metrics_sample(json_t *family, json_t *labels, double value)
{
	json_t *sample = json_pack("{s:o, s:f}", "labels", labels, "value", value);

	is_short |= json_array_append_new(json_object_get(family, "samples"), sample) != 0;
}

static void write_labels(FILE *to, const json_t *labels)
{
	const char *name, *before = "{";
	json_t *value;

	json_object_foreach((json_t *)labels, name, value)
	{
		fprintf(to, "%s%s=\"", before, name);
		/* The name of an interface may contain quotes and backslashes, that of a host an end of line. */
		for (const char *c = json_string_value(value); *c; c++)
			if (*c == '\\' || *c == '"' || *c == '\n')
				fprintf(to, "\\%c", *c == '\n' ? 'n' : *c);
			else
				fputc(*c, to);
		fputc('"', to);
		before = ",";
	}
	if (json_object_size(labels))
		fputc('}', to);
}

void metrics_write(FILE *to, const json_t *metrics)
{
	const json_t *family, *sample;
	size_t i, k;

	json_array_foreach(metrics, i, family)
	{
		const char *name = json_string_value(json_object_get(family, "metric"));

		fprintf(to, "# HELP %s %s\n# TYPE %s %s\n", name, json_string_value(json_object_get(family, "help")),
			name, json_string_value(json_object_get(family, "type")));
		json_array_foreach(json_object_get(family, "samples"), k, sample)
		{
			fputs(name, to);
			write_labels(to, json_object_get(sample, "labels"));
			/* 16 digits write whole numbers up to 2^53 exactly, as far as Prometheus keeps them. */
			fprintf(to, " %.16g\n", json_number_value(json_object_get(sample, "value")));
		}
	}
}
