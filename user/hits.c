// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "hits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int hits_open(struct hits *hits, __u64 slots)
{
	*hits = (struct hits){};
	if (slots > HITS_SLOTS_MAX)
		return -E2BIG;
	hits->slots = slots;
	hits->seen = calloc(slots, sizeof(*hits->seen));
	hits->visited = calloc(slots / HITS_CHUNK + 1, sizeof(*hits->visited));
	if (hits->seen && hits->visited)
		return 0;
	hits_close(hits);
	return -ENOMEM;
}

void hits_close(struct hits *hits)
{
	free(hits->seen);
	free(hits->visited);
	*hits = (struct hits){};
}

/* Into its place among the best, the most first, if it has one. */
static void rank(struct hits *hits, __u32 number, double rate)
{
	size_t place = hits->best_count;

	while (place && hits->best[place - 1].rate < rate)
		place--;
	if (place == HITS_BEST)
		return;
	if (hits->best_count < HITS_BEST)
		hits->best_count++;
	memmove(&hits->best[place + 1], &hits->best[place],
		(hits->best_count - place - 1) * sizeof(*hits->best));
	hits->best[place] = (struct hit){ number, rate };
}

/* What is less than it was belongs to another key now, or was reset. */
static void look(struct hits *hits, const struct table *table, __u64 number, double seconds)
{
	const __u64 packets = __atomic_load_n(&table_counter(table, number)->packets, __ATOMIC_RELAXED);
	const __u64 seen = hits->seen[number];

	if (packets == seen)
		return;
	hits->seen[number] = packets;
	if (seconds > 0 && packets)
		rank(hits, number, (packets < seen ? packets : packets - seen) / seconds);
}

static void end_pass(struct hits *hits)
{
	memcpy(hits->ranked, hits->best, hits->best_count * sizeof(*hits->best));
	hits->ranked_count = hits->best_count;
	hits->best_count = 0;
	hits->at = 0;
	hits->passes++;
}

bool hits_step(struct hits *hits, const struct table *table, double second)
{
	double *visited = &hits->visited[hits->at / HITS_CHUNK];
	const double seconds = *visited > 0 ? second - *visited : 0;
	const __u64 end = hits->at + HITS_CHUNK < hits->slots ? hits->at + HITS_CHUNK : hits->slots;

	for (; hits->at < end; hits->at++)
		look(hits, table, hits->at, seconds);
	*visited = second;
	if (end < hits->slots)
		return false;
	end_pass(hits);
	return true;
}
