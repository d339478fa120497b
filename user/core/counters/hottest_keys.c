// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "counters/counters.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "filter/filter.h"

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

#define SEEN_TAG_BITS 16 /* low bits of `seen`: a part of the tag, to notice when the slot gets another key */

/*
 * Compares each slot with the last pass, and ranks its key if enough packets came. A lower count was reset meanwhile, so
 * all of it is new.
 */
bool hits_step(struct hits *hits, const struct filter_tables *tables, double second)
{
	struct hits_visit *visited = &hits->visited[hits->at / HITS_CHUNK];
	const double seconds = visited->second > 0 ? second - visited->second : 0;
	const __u64 sequence = __atomic_load_n(tables->part->memory.sequence, __ATOMIC_ACQUIRE);
	const __u64 end = hits->at + HITS_CHUNK < hits->slots ? hits->at + HITS_CHUNK : hits->slots;
	const bool has_moves = visited->sequence != sequence;

	for (; hits->at < end; hits->at++) {
		const __u64 packets = __atomic_load_n(&filter_counter(tables, hits->at)->packets, __ATOMIC_RELAXED);
		const __u64 tag = packets ? filter_tag(tables, hits->at) : 0;
		const __u64 seen = hits->seen[hits->at], before = seen >> SEEN_TAG_BITS;
		const __u64 now = packets ? packets << SEEN_TAG_BITS | tag >> (64 - SEEN_TAG_BITS) : 0;
		size_t place = hits->best_count;
		double rate;

		if (now == seen)
			continue;
		hits->seen[hits->at] = now;
		if (seconds <= 0 || !packets)
			continue;
		/* A new key that already has a count may have moved here: its count is not new. */
		if (seen ? (seen ^ now) & ((1ULL << SEEN_TAG_BITS) - 1) : has_moves)
			continue;
		rate = (packets < before ? packets : packets - before) / seconds;
		while (place && hits->best[place - 1].rate < rate)
			place--;
		if (place == HITS_BEST)
			continue;
		if (hits->best_count < HITS_BEST)
			hits->best_count++;
		memmove(&hits->best[place + 1], &hits->best[place],
			(hits->best_count - place - 1) * sizeof(*hits->best));
		hits->best[place] = (struct hit){ tag, rate };
	}
	*visited = (struct hits_visit){ second, sequence };
	if (end < hits->slots)
		return false;
	memcpy(hits->ranked, hits->best, hits->best_count * sizeof(*hits->best));
	hits->ranked_count = hits->best_count;
	hits->best_count = 0;
	hits->at = 0;
	hits->passes++;
	return true;
}
