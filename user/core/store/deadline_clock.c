// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The clock of a store, by which timeouts end. store.h says how it runs. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "store/internal.h"

#define WALL_TOLERANCE_MS 1000

void store_clock_tick(struct store_clock *clock)
{
	clock->now_ms = clock_ms(CLOCK_BOOTTIME) + clock->ahead_ms;
}

__s64 store_lag_ms(const struct store *store)
{
	return clock_ms(CLOCK_BOOTTIME) + store->clock.ahead_ms - store->clock.now_ms;
}

__s64 store_wall_ms(const struct store *store)
{
	return store->clock.now_ms + store->clock.lead_ms;
}

/* A time namespace has a CLOCK_BOOTTIME of its own, as if it were another boot. */
static void add_time_namespace(char boot_id[STORE_BOOT_ID_BYTES])
{
	FILE_CLOSED FILE *offsets = fopen("/proc/self/timens_offsets", "re");
	long long s;

	if (offsets && fscanf(offsets, "monotonic %*d %*d boottime %lld", &s) == 1)
		for (size_t i = STORE_BOOT_ID_BYTES; i-- > STORE_BOOT_ID_TEXT; s /= 256)
			boot_id[i] = (char)(s % 256);
}

/*
 * The store's time is CLOCK_BOOTTIME and clock->ahead_ms. Nobody can set CLOCK_BOOTTIME, but it starts anew with each boot,
 * and only the wall clock tells how long the host was off. meta->wall_ms is by how much the wall clock was ahead of the
 * store's time, meta->seen_ms the store's time when it was last written. Three cases:
 *
 *   the same boot                     the difference is as stored
 *   another boot, the wall clock is   the time has gone on as the wall clock says
 *   later than at the last write
 *   another boot, it is earlier       the wall clock was lost or set back: the time goes on from the last write, so that
 *                                     timeouts end later, not sooner
 *
 * A meta without a boot id is new: the second case, and the store's time starts as the wall clock's.
 */
int store_clock_set(struct store_clock *clock, const struct store_meta *meta)
{
	const __s64 boot_ms = clock_ms(CLOCK_BOOTTIME), wall_ms = clock_ms(CLOCK_REALTIME);

	/* If the boot id cannot be read, it stays empty. Then each process that opens the store assumes a new boot. */
	if (!clock->boot_id[0]) {
		FD_CLOSED const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

		if (fd >= 0 && read(fd, clock->boot_id, STORE_BOOT_ID_TEXT) <= 0)
			clock->boot_id[0] = '\0';
		else if (fd >= 0)
			add_time_namespace(clock->boot_id);
	}
	if (meta->boot_id[0] && !memcmp(meta->boot_id, clock->boot_id, sizeof(clock->boot_id)))
		clock->ahead_ms = meta->clock_ms;
	else if (wall_ms - meta->wall_ms > meta->seen_ms)
		clock->ahead_ms = wall_ms - meta->wall_ms - boot_ms;
	else
		clock->ahead_ms = meta->seen_ms - boot_ms;
	clock->now_ms = boot_ms + clock->ahead_ms;
	/* Measured anew, the lead would differ by the time between two readings of clocks. */
	clock->lead_ms = wall_ms - clock->now_ms;
	if (llabs(clock->lead_ms - meta->wall_ms) <= WALL_TOLERANCE_MS)
		clock->lead_ms = meta->wall_ms;
	return llabs(clock->now_ms) <= STORE_CLOCK_MAX_MS ? 0 : -EBADMSG;
}

static bool is_other_boot(const struct store_clock *clock, const struct store_meta *meta)
{
	return memcmp(meta->boot_id, clock->boot_id, sizeof(meta->boot_id));
}

/*
 * Whether the wall clock was wrong when this boot began, for example because of an empty battery. Such a
 * clock must not be noted: if it is set right before the next boot, all timeouts would end at that boot.
 * But an operator who sets the clock back later during a boot does so on purpose.
 */
static bool is_wall_lost(const struct store_clock *clock, const struct store_meta *meta)
{
	const bool was_behind = meta->flags & STORE_META_WALL_BEHIND;
	/* The wall clock, without its known lead over the store's time. */
	const __s64 wall_ms = clock_ms(CLOCK_REALTIME) - meta->wall_ms;

	return (was_behind || (is_other_boot(clock, meta) && meta->boot_id[0])) &&
	       wall_ms < clock->now_ms - WALL_TOLERANCE_MS;
}

bool store_clock_moved(const struct store_clock *clock, const struct store_meta *meta)
{
	const __s64 wall_ms = clock_ms(CLOCK_REALTIME) - clock->now_ms;

	return is_other_boot(clock, meta) ||
	       (llabs(wall_ms - meta->wall_ms) > WALL_TOLERANCE_MS && !is_wall_lost(clock, meta));
}

void store_clock_record(const struct store_clock *clock, struct store_meta *meta)
{
	const bool is_lost = is_wall_lost(clock, meta);

	memcpy(meta->boot_id, clock->boot_id, sizeof(meta->boot_id));
	meta->clock_ms = clock->ahead_ms;
	meta->flags &= ~STORE_META_WALL_BEHIND;
	if (is_lost)
		meta->flags |= STORE_META_WALL_BEHIND;
	else
		meta->wall_ms = clock_ms(CLOCK_REALTIME) - (clock_ms(CLOCK_BOOTTIME) + clock->ahead_ms);
	meta->seen_ms = clock->now_ms;
}
