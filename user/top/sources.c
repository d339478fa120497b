// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "top/sources.h"

#include <stdlib.h>
#include <string.h>

#define KEPT 0.9           /* the weight of a sample from one interval to the next */
#define SAMPLES_LEAST 0.05 /* a source below is forgotten */

bool top_sources_many(const struct rule *rule)
{
	return rule->family == FLOW_NO_FAMILY || rule->src_len < rule_address_bits(rule->family);
}

void top_sources_choose(struct top_sources *sources, const struct rule *network)
{
	char now[RULE_TEXT_BYTES], before[RULE_TEXT_BYTES];

	if (sources->has_network && !strcmp(rule_format(network, now), rule_format(&sources->network, before)))
		return;
	*sources = (struct top_sources){ .network = *network, .has_network = true };
}

void top_sources_add(struct top_sources *sources, const struct rule *flow)
{
	struct top_source *rarest = sources->source, *end = sources->source + sources->count;

	if (!sources->has_network || !rule_covers(&sources->network, flow))
		return;
	sources->samples++;
	for (struct top_source *source = sources->source; source < end; source++) {
		if (source->family == flow->family && !memcmp(&source->address, &flow->src, sizeof(flow->src))) {
			source->samples++;
			return;
		}
		if (source->samples < rarest->samples)
			rarest = source;
	}
	if (sources->count < TOP_SOURCES) {
		sources->source[sources->count++] = (struct top_source){ flow->family, flow->src, 1 };
		return;
	}
	rarest->family = flow->family;
	rarest->address = flow->src;
	rarest->samples++;
}

static int compare(const void *a, const void *b)
{
	const struct top_source *x = a, *y = b;

	return x->samples == y->samples ? memcmp(&x->address, &y->address, sizeof(x->address)) :
					  (x->samples < y->samples) - (x->samples > y->samples);
}

void top_sources_age(struct top_sources *sources)
{
	qsort(sources->source, sources->count, sizeof(sources->source[0]), compare);
	for (size_t i = 0; i < sources->count; i++)
		sources->source[i].samples *= KEPT;
	sources->samples *= KEPT;
	while (sources->count && sources->source[sources->count - 1].samples < SAMPLES_LEAST)
		sources->samples -= sources->source[--sources->count].samples;
}

const char *top_sources_text(const struct top_sources *sources, size_t i, char text[INET6_ADDRSTRLEN])
{
	const struct top_source *source = &sources->source[i];

	inet_ntop(source->family == FLOW_IPV4 ? AF_INET : AF_INET6, &source->address, text, INET6_ADDRSTRLEN);
	return text;
}

double top_sources_share(const struct top_sources *sources, size_t i)
{
	return sources->samples > 0 ? sources->source[i].samples / sources->samples : 0;
}
