/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Readers in the middle of a change. readers_record() notes every store of a change, word by word, so that the memory at
 * each step can be made again. readers_stand() then lets the packet path read a frame at a step, stand still at one of its
 * loads from maps, and go on at a later step. A reader that has begun before a grace period ends with it.
 *
 * The program is compiled with -fsanitize=thread, but not linked with its runtime: so the compiler calls a function of this
 * file before each load.
 *
 * What need not be tried: a reader of which no later load is of a changed word ends as if nothing had changed; one of which
 * no earlier load is ends as if it had begun late. Between two loads of changed words all places are the same.
 */
#ifndef XDP_CUCKOO_STEPS_READERS_H
#define XDP_CUCKOO_STEPS_READERS_H

#include "steps/every_store.h"

#define READER_PLACES 4096
#define READER_PROGRAM (~0U)

static struct {
	/* A word of memory changes, or (READER_PROGRAM) the program of an interface. */
	struct reader_step {
		uint32_t word, interface;
		uint64_t old, new;
	} * step;
	size_t count, room;
	size_t graces[4096], graces_count; /* after how many steps */
	size_t at;                         /* the memory is as after so many steps */
	uint64_t *shadow;                  /* of the rates in the memory, without what readers write */
} replay;

static inline void replay_note(struct reader_step step)
{
	if (replay.count == replay.room) {
		replay.room = replay.room ? 2 * replay.room : 1 << 16;
		replay.step = realloc(replay.step, replay.room * sizeof(*replay.step));
		if (!replay.step)
			abort();
	}
	replay.step[replay.count++] = step;
}

static void replay_note_store(uintptr_t address)
{
	static size_t programs[MEMORY_INTERFACES];
	const uint64_t *words = (const void *)(address & ~63UL);

	if (address) {
		for (uint32_t i = 0; i < COUNT(every_store.before); i++)
			if (words[i] != every_store.before[i])
				replay_note((struct reader_step){ &words[i] - (const uint64_t *)memory.start, 0,
								  every_store.before[i], words[i] });
		return;
	}
	for (uint32_t i = 0; i < MEMORY_INTERFACES; i++) {
		if (programs[i] != memory.interface[i].program)
			replay_note(
				(struct reader_step){ READER_PROGRAM, i, programs[i], memory.interface[i].program });
		programs[i] = memory.interface[i].program;
	}
}

static void replay_note_grace(void)
{
	if (replay.graces_count == COUNT(replay.graces))
		abort();
	replay.graces[replay.graces_count++] = replay.count;
}

static inline void replay_record_begin(void)
{
	replay_note_store(0);
	replay.count = replay.graces_count = 0;
	memory.grace = replay_note_grace;
	every_store.is_whole = true;
	every_store_begin(replay_note_store);
}

static inline void replay_record_end(void)
{
	every_store_end();
	every_store.is_whole = false;
	memory.grace = NULL;
	replay.at = replay.count;
	if (!replay.shadow)
		replay.shadow = mmap(NULL, MEMORY_BYTES / 2, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	for (size_t i = 0; i < memory.filters_count; i++) {
		const struct kernel_map *rates = &memory.filters[i].filter.map[KERNEL_RATES];

		memcpy((char *)replay.shadow + ((char *)rates->memory - memory.start), rates->memory, rates->bytes);
	}
}

/* Makes the memory that of another step. */
static inline void replay_go(size_t to)
{
	uint64_t *memory_words = (uint64_t *)memory.start;

	while (replay.at != to) {
		const bool is_on = replay.at < to;
		const struct reader_step *step = &replay.step[is_on ? replay.at : replay.at - 1];
		const uint64_t value = is_on ? step->new : step->old;

		if (step->word == READER_PROGRAM)
			memory.interface[step->interface].program = value;
		else
			memory_words[step->word] = replay.shadow[step->word] = value;
		replay.at += is_on ? 1 : -1;
	}
}

/* ---- one reader ---- */

/* A load of the packet path from a map. */
struct reader_place {
	uintptr_t address;
	size_t bytes;
};

static struct {
	const void *frame;
	size_t bytes;
	volatile bool is_on;
	bool notes; /* its places */
	size_t at;  /* loads so far */
	struct reader_place place[READER_PLACES];
	size_t places;
	uint32_t noted, noted_by[4096]; /* its number, and the last one that loaded any word of such a number */
	struct reader_stop {
		size_t place, step; /* before this load, the memory becomes that of the step */
	} stop[2];
} reader;

#define READER_HOOK __attribute__((no_sanitize("thread")))

/* The compiler calls this before each load. */
READER_HOOK static void reader_load(const void *at, size_t bytes)
{
	if (!reader.is_on || (const char *)at < memory.start || (const char *)at >= memory.start + memory.used)
		return;
	for (size_t i = 0; i < COUNT(reader.stop); i++)
		if (reader.stop[i].place == reader.at)
			replay_go(reader.stop[i].step);
	if (reader.notes && reader.at < READER_PLACES) {
		const size_t word = ((const char *)at - memory.start) / 8;

		reader.place[reader.places++] = (struct reader_place){ (uintptr_t)at, bytes };
		for (size_t i = 0; i <= bytes / 8; i++)
			reader.noted_by[(word + i) % COUNT(reader.noted_by)] = reader.noted;
	}
	reader.at++;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define READER_ACCESS(bytes) \
	READER_HOOK void __tsan_read##bytes(void *at) \
	{ \
		reader_load(at, bytes); \
	} \
	READER_HOOK void __tsan_unaligned_read##bytes(void *at) \
	{ \
		reader_load(at, bytes); \
	} \
	READER_HOOK void __tsan_write##bytes(void *at) \
	{ \
		(void)at; \
	} \
	READER_HOOK void __tsan_unaligned_write##bytes(void *at) \
	{ \
		(void)at; \
	}
READER_ACCESS(1)
READER_ACCESS(2)
READER_ACCESS(4)
READER_ACCESS(8)
READER_ACCESS(16)

READER_HOOK void __tsan_read_range(void *at, long bytes)
{
	reader_load(at, bytes);
}

READER_HOOK void __tsan_write_range(void *at, long bytes)
{
	(void)at, (void)bytes;
}

READER_HOOK void __tsan_init(void)
{
}

READER_HOOK void __tsan_func_entry(void *caller)
{
	(void)caller;
}

READER_HOOK void __tsan_func_exit(void *caller)
{
	(void)caller;
}

READER_HOOK unsigned long __tsan_atomic64_fetch_add(volatile void *at, unsigned long value, int order)
{
	volatile unsigned long *word = at;

	(void)order;
	return (*word += value) - value;
}

READER_HOOK bool __tsan_atomic64_compare_exchange_strong(volatile void *at, void *expected, unsigned long value,
							 int order, int failed)
{
	volatile unsigned long *word = at;
	const unsigned long old = *word, wanted = *(unsigned long *)expected;

	(void)order, (void)failed;
	*(unsigned long *)expected = old;
	if (old == wanted)
		*word = value;
	return old == wanted;
}

#pragma GCC diagnostic pop

/* What the reader has written is undone. */
static inline void reader_put_back(void)
{
	while (path_used_count) {
		const struct path_used *used = &path_used[--path_used_count];
		struct abi_rate *rate = &path.rates->rate[used->number];

		memcpy(rate, (char *)replay.shadow + ((char *)rate - memory.start), sizeof(*rate));
		path.credits[used->number] = used->credit;
	}
}

#define READER_ON \
	(struct reader_stop) \
	{ \
		~0UL, 0 \
	}

/* Reads the frame from the step `from` on, and stands still as told. With `notes`, notes its places. */
static inline int reader_read(size_t from, bool notes, struct reader_stop first, struct reader_stop second)
{
	int verdict;

	replay_go(from);
	reader.stop[0] = first;
	reader.stop[1] = second;
	reader.notes = notes;
	reader.at = 0;
	if (notes) {
		reader.places = 0;
		reader.noted++;
	}
	reader.is_on = true;
	verdict = path_judge(reader.frame, reader.bytes).verdict != VERDICT_DROP;
	reader.is_on = false;
	reader_put_back();
	return verdict;
}

/* ---- all readers of a change ---- */

static struct {
	uint64_t pairs, spans; /* of a step and a place; the same with any number of steps */
	uint64_t noted, tried; /* readers that began at a step; those of them that stood still and went on */
} readers;

static inline bool reader_loads(const struct reader_place *place, uint32_t word)
{
	const size_t offset = place->address - (uintptr_t)memory.start;

	return word >= offset / 8 && word <= (offset + place->bytes - 1) / 8;
}

static inline bool reader_loads_any(uint32_t word)
{
	if (reader.noted_by[word % COUNT(reader.noted_by)] != reader.noted)
		return false;
	for (size_t i = 0; i < reader.places; i++)
		if (reader_loads(&reader.place[i], word))
			return true;
	return false;
}

/* The step up to which a reader lasts that has begun after `from` steps. */
static inline size_t replay_limit(size_t from)
{
	for (size_t i = 0; i < replay.graces_count; i++)
		if (replay.graces[i] > from)
			return replay.graces[i];
	return replay.count;
}

typedef void (*reader_judge)(int verdict, size_t from, struct reader_stop first, struct reader_stop second);

/*
 * The reader whose places are noted, if it begins after `from` steps: it stands still at each of them until each later step.
 */
static inline void readers_go_on(size_t from, reader_judge judge)
{
	static uint8_t is_changed[READER_PLACES];
	const size_t limit = replay_limit(from);
	bool is_old = false; /* new readers have another program */

	memset(is_changed, 0, reader.places);
	for (size_t to = from + 1; to <= limit; to++) {
		const uint32_t word = replay.step[to - 1].word;
		bool has_earlier;

		is_old |= word == READER_PROGRAM;
		has_earlier = is_old;
		if (word == READER_PROGRAM || !reader_loads_any(word))
			continue;
		for (size_t i = 0; i < reader.places; i++)
			is_changed[i] |= reader_loads(&reader.place[i], word);
		/* Stands still at a load of a changed word after another such load. */
		for (size_t i = 0; i < reader.places; i++) {
			const struct reader_stop stop = { i, to };

			if (is_changed[i] && has_earlier) {
				judge(reader_read(from, false, stop, READER_ON), from, stop, READER_ON);
				readers.tried++;
			}
			has_earlier |= is_changed[i];
		}
	}
	replay_go(from);
}

/* All readers of a frame on an interface: reader.frame. The memory is as before the change, before and after this call. */
static inline void readers_stand(size_t interface, reader_judge judge)
{
	for (size_t from = 0, to; from <= replay.count; from = to) {
		replay_go(from);
		to = from + 1;
		if (!memory_path(interface))
			continue;
		memory_whole_ranges();
		judge(reader_read(from, true, READER_ON, READER_ON), from, READER_ON, READER_ON);
		readers.noted++;
		/* A reader that begins some steps later reads the same, and lasts longer. */
		while (to <= replay.count && replay.step[to - 1].word != READER_PROGRAM &&
		       !reader_loads_any(replay.step[to - 1].word))
			to++;
		for (size_t i = from; i < to; i++)
			readers.spans += reader.places * (replay_limit(i) - i);
		readers.pairs += reader.places * (to - from);
		readers_go_on(to - 1, judge);
	}
	replay_go(0);
}

#endif
