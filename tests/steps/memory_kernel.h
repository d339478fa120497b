/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A kernel in plain memory, for tests: what filter/ and change/ use of kernel/, of the clock and of chance. Maps are memory,
 * interfaces are a list, and a packet meets the filter whose program its interface runs. Linked in front of the real
 * functions. All maps are in one range of memory, so that a test can watch every store to them: see every_store.h.
 */
#ifndef XDP_CUCKOO_STEPS_MEMORY_KERNEL_H
#define XDP_CUCKOO_STEPS_MEMORY_KERNEL_H

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/memory.h"
#include "base/waiting.h"
#include "bench/random.h"
#include "kernel/internal.h"
#include "steps/host_path.h"

#define MEMORY_BYTES (8UL << 30) /* of addresses; few pages are touched */
#define MEMORY_FILTERS PATH_FILTERS
#define MEMORY_INTERFACES 3
#define MEMORY_PAGE 4096UL

static struct {
	char *start;
	size_t used, counts; /* bytes of maps, and of the maps of counters behind them */
	struct {
		struct kernel_filter filter; /* its maps; no attachments */
	} filters[MEMORY_FILTERS];
	size_t filters_count;
	struct {
		size_t program;   /* the filter that runs there; 0: none */
		bool is_outgoing; /* it runs on sent packets, */
		bool is_both;     /* or on both */
	} interface[MEMORY_INTERFACES];
	uint64_t seed;
	void (*step)(void);     /* after each change of a program on an interface; or NULL */
	void (*grace)(void);    /* while the writer waits until all look-ups that have begun are over; or NULL */
	uint64_t until_failure; /* calls until one fails, this one too; 0: none does */
	bool has_failed;
	bool runs_elsewhere;   /* kernel_runs_elsewhere() */
	bool is_held;          /* no program of the filters can be replaced: kernel_held_attachment() */
	bool is_hidden;        /* kernel_find_filters() finds none */
	int open;              /* struct kernel_filter that nobody has closed */
	enum kernel_seen seen; /* what kernel_find_filters() could not look at */
} memory;

/* For what may fail: whether it does now. */
static inline bool memory_fails(void)
{
	if (!memory.until_failure || --memory.until_failure)
		return false;
	return memory.has_failed = true;
}

/* Of meters: of the filters that there are. */
static inline void memory_forget_credits(void)
{
	memset(path_credits, 0, memory.filters_count * sizeof(path_credits[0]));
}

static inline void memory_reset(uint64_t seed)
{
	if (!memory.start)
		memory.start = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory.start == MAP_FAILED || madvise(memory.start, MEMORY_BYTES, MADV_DONTNEED))
		abort();
	/* Most counters are read and never written, and most large memory is never touched: neither shall cost pages. */
	madvise(memory.start + MEMORY_BYTES / 2, MEMORY_BYTES / 2, MADV_HUGEPAGE);
	mallopt(M_MMAP_THRESHOLD, 1 << 20);
	memory_forget_credits();
	memory.used = memory.counts = 0;
	memory.filters_count = 0;
	memset(memory.filters, 0, sizeof(memory.filters));
	memset(memory.interface, 0, sizeof(memory.interface));
	memory.seed = seed;
	memory.step = NULL;
	memory.is_held = false;
}

static inline void memory_step(void)
{
	if (memory.step)
		memory.step();
}

/* ---- what the kernel says of a filter ---- */

static inline struct kernel_attachment memory_attachment(size_t interface)
{
	struct kernel_attachment attachment = { .ifindex = interface + 1,
						.mode = memory.interface[interface].is_outgoing ? INTERFACE_TC_SENT :
												  INTERFACE_NATIVE,
						.has_ethernet = true,
						.is_below = memory.is_held,
						.prog_id = memory.interface[interface].program,
						.root_id = memory.interface[interface].program };

	snprintf(attachment.interface, sizeof(attachment.interface), "m%zu", interface);
	return attachment;
}

static inline size_t memory_number(const struct kernel_filter *filter)
{
	return filter->map[KERNEL_CONFIG].id;
}

/* Puts a filter's program on an interface that has none. */
static inline void memory_attach(struct kernel_filter *filter, size_t interface, bool is_outgoing)
{
	struct kernel_attachment attachment;

	memory.interface[interface].program = memory_number(filter);
	memory.interface[interface].is_outgoing = is_outgoing;
	attachment = memory_attachment(interface);
	kernel_add_attachment(filter, &attachment);
	memory_step();
}

static inline int memory_copy(size_t number, struct kernel_filter *copy)
{
	*copy = memory.filters[number - 1].filter;
	for (size_t i = 0; i < MEMORY_INTERFACES; i++)
		if (memory.interface[i].program == number) {
			struct kernel_attachment attachment = memory_attachment(i);

			if (kernel_add_attachment(copy, &attachment))
				return -ENOMEM;
			attachment.mode = INTERFACE_TC_SENT;
			if (memory.interface[i].is_both && kernel_add_attachment(copy, &attachment))
				return -ENOMEM;
		}
	memory.open++;
	copy->config = copy->map[KERNEL_CONFIG].memory;
	copy->is_other_version = copy->config->magic && copy->config->version != ABI_VERSION;
	copy->options = copy->config->magic ? copy->config->options : copy->options;
	return 0;
}

/* The parts of the maps in `path` that the active table has. A filter that is not set up reads nothing. */
static inline void memory_ranges(void)
{
	const struct abi_table *table = abi_active(path.config);
	const size_t bucket_bytes = path.options.format == BUCKET_32 ? 16 : path.options.format == BUCKET_8 ? 4 : 8;
	const size_t slots = table->geometry.buckets * BUCKET_SLOTS;

	path.range[PATH_BUCKETS].start = (const char *)path.bucket + table->first_bucket * bucket_bytes;
	path.range[PATH_BUCKETS].bytes = table->geometry.buckets * bucket_bytes;
	path.range[PATH_ADDRESSES].start = (const char *)(path.bucket + table->addresses.first_bucket);
	path.range[PATH_ADDRESSES].bytes =
		path.options.has_addresses ? table->addresses.geometry.buckets * sizeof(__u64) : 0;
	path.range[PATH_RECORDS].start = (const char *)(path.record + table->first_slot);
	path.range[PATH_RECORDS].bytes = path.options.is_exact ? slots * sizeof(__u64) : 0;
	path.range[PATH_HINTS].start = (const char *)path.hint + table->first_hint[0];
	path.range[PATH_HINTS].bytes = ABI_HINTS(table->hint_shift);
	path.range[PATH_RATE_LINES].start = (const char *)&path.rates->line[table->first_rate_line];
	path.range[PATH_RATE_LINES].bytes = ABI_RATE_LINES * sizeof(path.rates->line[0]);
}

/* A reader that stands still may see the other table become active. */
static inline void memory_whole_ranges(void)
{
	path.range[PATH_BUCKETS].start = path.range[PATH_RECORDS].start = path.range[PATH_HINTS].start = memory.start;
	for (enum path_range range = 0; range < PATH_RATE_LINES; range++)
		path.range[range].bytes = memory.used;
}

/* The maps of the filter on an interface, for the packet path. False: no filter is there. */
static inline bool memory_path(size_t interface)
{
	const size_t number = memory.interface[interface].program;
	const struct kernel_filter *filter = number ? &memory.filters[number - 1].filter : NULL;

	if (!filter)
		return false;
	path = (struct path_maps){
		.options = filter->options,
		.config = filter->map[KERNEL_CONFIG].memory,
		.bucket = filter->map[KERNEL_BUCKETS].memory,
		.record = filter->map[KERNEL_RECORDS].memory,
		.count = filter->map[KERNEL_COUNTS].memory,
		.hint = filter->map[KERNEL_HINTS].memory,
		.rates = filter->map[KERNEL_RATES].memory,
		.credits = path_credits[number - 1],
		.buckets = filter->map[KERNEL_BUCKETS].entries,
		.records = filter->map[KERNEL_RECORDS].entries,
		.hints = filter->map[KERNEL_HINTS].entries,
		.counts = filter->map[KERNEL_COUNTS].entries,
	};
	memory_ranges();
	return true;
}

/* ---- in place of kernel/ ---- */

int kernel_find_filters(struct kernel_wish wish, struct kernel_filter **filters, size_t *count, struct reason *reason)
{
	struct kernel_filter *found = memory_fails() ? NULL : calloc(MEMORY_FILTERS, sizeof(*found));
	size_t n = 0;

	kernel_filters_free(*filters, *count);
	reason_set(reason, 0, "%s", memory.seen ? "the test hides one" : "");
	if (wish.seen)
		*wish.seen = memory.seen;
	for (size_t number = 1; found && number <= memory.filters_count && !memory.is_hidden; number++) {
		int error = memory_copy(number, &found[n]);

		if (error || !found[n].attachments_count)
			kernel_close(&found[n]);
		else
			n++;
	}
	*filters = found;
	*count = n;
	return found ? 0 : reason_set(reason, -ENOMEM, "the test has no memory");
}

bool kernel_runs_elsewhere(const __u64 store_id[2], const struct kernel_filter *filters, size_t count)
{
	(void)store_id, (void)filters, (void)count;
	return memory.runs_elsewhere;
}

int kernel_create(const struct kernel_sizes *sizes, struct kernel_filter *filter, struct reason *reason)
{
	static const size_t value_bytes[KERNEL_MAPS] = {
		[KERNEL_CONFIG] = sizeof(struct abi_config),  [KERNEL_RECORDS] = sizeof(__u64),
		[KERNEL_COUNTS] = sizeof(struct abi_counter), [KERNEL_HINTS] = sizeof(__u64),
		[KERNEL_RATES] = sizeof(struct abi_rates),
	};
	const size_t number = memory_fails() ? MEMORY_FILTERS + 1 : ++memory.filters_count;

	if (number > MEMORY_FILTERS)
		return reason_set(reason, -ENOMEM, "the test makes too many filters");
	*filter = (struct kernel_filter){ .options = sizes->options };
	for (enum kernel_map_name name = 0; name < KERNEL_MAPS; name++) {
		struct kernel_map *map = &filter->map[name];

		map->fd = 1;
		map->id = number;
		map->entries = kernel_sizes_entries(sizes, name);
		map->value_bytes = name == KERNEL_BUCKETS ? kernel_bucket_bytes(&sizes->options) : value_bytes[name];
		map->bytes = (size_t)map->entries * ((map->value_bytes + 7) & ~7U);
		if (!map->value_bytes)
			continue;
		/* No verdict depends on what rules have counted: these stores need no look. */
		if (name == KERNEL_COUNTS) {
			map->memory = memory.start + MEMORY_BYTES / 2 + memory.counts;
			memory.counts += map->bytes;
		} else {
			map->memory = memory.start + memory.used;
			memory.used += (map->bytes + MEMORY_PAGE - 1) & ~(MEMORY_PAGE - 1);
		}
		if (memory.used > MEMORY_BYTES / 2 || memory.counts > MEMORY_BYTES / 2)
			return reason_set(reason, -ENOMEM, "the test has too little memory for maps");
	}
	memory.open++;
	memory.filters[number - 1].filter = *filter;
	filter->config = filter->map[KERNEL_CONFIG].memory;
	return 0;
}

void kernel_close(struct kernel_filter *filter)
{
	memory.open -= filter->config != NULL;
	free(filter->attachments);
	*filter = (struct kernel_filter){};
}

/* The parts of a large table are mapped one after the other: of them each sixteenth may fail, the first, too. */
static inline bool memory_part_fails(size_t offset, size_t bytes)
{
	return !(offset / bytes % 16) && memory_fails();
}

int kernel_map_part(const struct kernel_map *map, size_t offset, size_t bytes)
{
	return memory_part_fails(offset, bytes) ? -ENOMEM : offset + bytes <= map->bytes ? 0 : -EINVAL;
}

const void *kernel_map_window(const struct kernel_map *map, size_t offset, size_t bytes)
{
	return !memory_part_fails(offset, bytes) && offset + bytes <= map->bytes ? (const char *)map->memory + offset : NULL;
}

void kernel_unmap_window(const void *window, size_t bytes)
{
	(void)window, (void)bytes;
}

int kernel_replace(struct kernel_filter *old, struct kernel_filter *filter, struct reason *reason)
{
	if (memory_fails())
		return reason_set(reason, -EBUSY, "the test refuses");
	for (size_t i = 0; i < MEMORY_INTERFACES; i++) {
		struct kernel_attachment attachment;

		if (memory.interface[i].program != memory_number(old))
			continue;
		memory.interface[i].program = memory_number(filter);
		memory_step();
		attachment = memory_attachment(i);
		if (kernel_add_attachment(filter, &attachment))
			return -ENOMEM;
	}
	return 0;
}

int kernel_runs_this_build(struct kernel_filter *filter, bool *is_own, struct reason *reason)
{
	(void)filter;
	*is_own = true;
	return memory_fails() ? reason_set(reason, -EIO, "the test refuses") : 0;
}

int kernel_cpus(void)
{
	return 1;
}

int kernel_row_counters(const struct kernel_filter *filter, __u32 row, struct abi_counter *counters,
			struct reason *reason)
{
	(void)filter, (void)reason;
	memset(counters, 0, ABI_COUNTERS * sizeof(*counters));
	if (row == 1)
		memcpy(counters, path_counters, sizeof(path_counters));
	return 0;
}

bool kernel_misses_interface(const struct kernel_filter *filter)
{
	bool misses = false;

	for (size_t i = 0; i < MEMORY_INTERFACES; i++)
		misses |= filter->config->received[i] && memory.interface[i].program != memory_number(filter);
	return misses;
}

void kernel_forget_gone(const struct kernel_filter *filter)
{
	(void)filter;
}

void kernel_want_received(const struct kernel_filter *filter, int ifindex, bool is_wanted)
{
	filter->config->received[ifindex - 1] = is_wanted ? ifindex : 0;
}

/* ---- time and chance ---- */

#define MEMORY_JIFFIES_A_S 250
#define MEMORY_TICK_MS (1000. / MEMORY_JIFFIES_A_S * (1 << ABI_TICK_SHIFT))

long ticks_jiffies(void)
{
	return MEMORY_JIFFIES_A_S;
}

int ticks_at(__s64 timeout_ms, __u32 *tick, struct reason *reason)
{
	if (memory_fails())
		return reason_set(reason, -EIO, "the test refuses");
	*tick = timeout_ms ? (path_jiffies >> ABI_TICK_SHIFT) + timeout_ms / MEMORY_TICK_MS + 2 : 0;
	return 0;
}

int ticks_now(__u32 *tick, struct reason *reason)
{
	(void)reason;
	*tick = (path_jiffies >> ABI_TICK_SHIFT) - 2;
	return 0;
}

int ticks_left(__u32 tick, __s64 *left_ms, struct reason *reason)
{
	(void)reason;
	*left_ms = ((__s64)tick - (__s64)(path_jiffies >> ABI_TICK_SHIFT)) * MEMORY_TICK_MS;
	return 0;
}

/* No look-up is under way while the writer waits: steps/readers.h. */
static unsigned int memory_graces;

int grace_wait(void)
{
	memory_graces++;
	if (memory.grace)
		memory.grace();
	return memory_fails() ? -EIO : 0;
}

int random_draw(void *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		((__u8 *)bytes)[i] = random_next(&memory.seed);
	return memory_fails() ? -EIO : 0;
}

#endif
