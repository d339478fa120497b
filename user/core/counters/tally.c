// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Outcomes and verdicts in words; adds up what filters have counted, by outcome, verdict, interface and CPU. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "counters/counters.h"

/* ---- words ---- */

const struct outcome_words outcome_words[OUTCOMES] = {
	[OUTCOME_NO_RULE] = { "no-rule", "parsed completely, no rule matched" },
	[OUTCOME_LATER_FRAGMENT] = { "later-fragment",
				     "not the first fragment: it has no ports; only rules without ports apply" },
	[OUTCOME_NOT_IP] = { "not-ip", "neither IPv4 nor IPv6, behind VLAN tags or not" },
	[OUTCOME_TRUNCATED] = { "truncated", "a header runs past the frame or past the length that IP states" },
	[OUTCOME_MALFORMED] = { "malformed", "a header contradicts itself" },
	[OUTCOME_TOO_MANY_HEADERS] = { "too-many-headers",
				       "more than 64 VLAN tags or 182 IPv6 extension headers, or a first fragment "
				       "without all of them" },
	[OUTCOME_UNSETTLED] = { "unsettled", "the table moved during every look-up of a key" },
	[OUTCOME_DROP_RULE] = { "drop-rule", "a drop rule matched" },
	[OUTCOME_PASS_RULE] = { "pass-rule", "a pass rule matched" },
	[OUTCOME_MONITOR_RULE] = { "monitor-rule", "a monitor rule matched; no other rule decided" },
	[OUTCOME_NOT_SET_UP] = { "not-set-up", "the program was loaded but no table was set up yet" },
	[OUTCOME_PANIC] = { "panic", "everything passes: `panic`" },
	[OUTCOME_UNCONFIRMED] = { "unconfirmed", "everything passes: `confirm` did not come in time" },
};

const struct verdict_words verdict_words[VERDICTS] = {
	[VERDICT_PASS] = { "pass", "passed", "passed to the kernel" },
	[VERDICT_DROP] = { "drop", "dropped", "dropped, before the kernel spends anything on it" },
	[VERDICT_WOULD_DROP] = { "would-drop", "would_drop",
				 "passed only because of `monitor-only` or of a monitor rule" },
};

void explain_outcomes(FILE *to)
{
	for (int i = 0; i < OUTCOMES; i++)
		fprintf(to, "  %-18s %s\n", outcome_words[i].name, outcome_words[i].meaning);
}

void explain_policies(FILE *to)
{
	for (int i = 0; i < OUTCOME_POLICIES; i++)
		fprintf(to, "  %-18s %s\n", outcome_words[i].name, outcome_words[i].meaning);
}

bool outcome_can_have(enum abi_outcome outcome, enum abi_verdict verdict)
{
	if (outcome < OUTCOME_POLICIES)
		return true;
	if (outcome == OUTCOME_DROP_RULE)
		return verdict != VERDICT_PASS;
	return verdict == (outcome == OUTCOME_MONITOR_RULE ? VERDICT_WOULD_DROP : VERDICT_PASS);
}

/* ---- sums ---- */

static size_t cells(const struct tally *tally)
{
	return (size_t)ABI_COUNTER_ROWS * tally->cpus * ABI_COUNTERS;
}

static const struct tally_part *find_part(const struct tally *tally, __u32 id)
{
	for (size_t i = 0; i < tally->parts; i++)
		if (tally->part[i].id == id)
			return &tally->part[i];
	return NULL;
}

/* Adds a part whose counters are 0. NULL: no memory. */
static struct tally_part *add_part(struct tally *tally, __u32 id)
{
	struct abi_counter *counter = calloc(cells(tally), sizeof(*counter));

	if (!counter || array_grow(&tally->part, tally->parts, sizeof(*tally->part))) {
		free(counter);
		return NULL;
	}
	tally->part[tally->parts] = (struct tally_part){ .id = id };
	tally->part[tally->parts].counter = counter;
	return &tally->part[tally->parts++];
}

int tally_add(struct tally *tally, const struct kernel_filter *filter, struct reason *reason)
{
	const int cpus = kernel_cpus();
	const __u32 id = filter->map[KERNEL_COUNTERS].id;
	struct tally_part *part;
	int error = 0;

	if (cpus < 1)
		return reason_set(reason, -EIO,
				  "cannot tell how many CPUs there are: /sys is not mounted here; mount it "
				  "(mount -t sysfs sysfs /sys)");
	if (!tally->filters++)
		tally->seconds = clock_seconds();
	tally->cpus = cpus;
	tally->is_monitor_only |= filter->config->run & ABI_RUN_MONITOR;
	for (size_t i = 0; i < filter->attachments_count; i++) {
		const struct kernel_attachment *attachment = &filter->attachments[i];
		char *names = tally->interfaces[abi_counter_row(attachment->ifindex) +
						(kernel_is_outgoing(attachment) ? ABI_COUNTER_SENT : 0)];
		const size_t length = strlen(names), room = TALLY_NAME_BYTES - length;

		/* If there is no room for one more name, the names end with "...". */
		if ((size_t)snprintf(names + length, room, "%s%s", length ? "+" : "", attachment->interface) >= room)
			memcpy(names + TALLY_NAME_BYTES - 4, "...", 4);
		interface_clean_name(names);
		if (!kernel_is_outgoing(attachment))
			tally->lost[abi_counter_row(attachment->ifindex)] += attachment->lost;
	}
	/* A killed resize can leave two filters that count in one map. */
	if (find_part(tally, id))
		return 0;
	part = add_part(tally, id);
	if (!part)
		return reason_set(reason, -ENOMEM, "not enough memory");
	for (__u32 row = 0; row < ABI_COUNTER_ROWS && !error; row++)
		error = kernel_row_counters(filter, row, part->counter + (size_t)row * cpus * ABI_COUNTERS, reason);
	return error;
}

void tally_close(struct tally *tally)
{
	for (size_t i = 0; i < tally->parts; i++)
		free(tally->part[i].counter);
	free(tally->part);
	*tally = (struct tally){};
}

/* Prometheus' rate() treats a reset counter in the same way. */
static __u64 increase(__u64 before, __u64 now)
{
	return now < before ? now : now - before;
}

int tally_since(const struct tally *before, const struct tally *now, struct tally *difference)
{
	*difference = *now;
	difference->part = NULL;
	difference->parts = 0;
	difference->seconds = now->seconds - before->seconds;
	for (int row = 0; row < ABI_COUNTER_ROWS; row++)
		difference->lost[row] = increase(before->lost[row], now->lost[row]);
	for (size_t i = 0; i < now->parts; i++) {
		const struct tally_part *old = find_part(before, now->part[i].id);
		const struct tally_part *part = add_part(difference, now->part[i].id);

		if (!part) {
			tally_close(difference);
			return -ENOMEM;
		}
		memcpy(part->counter, now->part[i].counter, cells(now) * sizeof(*part->counter));
		for (size_t j = 0; old && j < cells(now); j++) {
			struct abi_counter *counter = &part->counter[j];

			counter->packets = increase(old->counter[j].packets, counter->packets);
			counter->bytes = increase(old->counter[j].bytes, counter->bytes);
		}
	}
	return 0;
}

static void add(struct abi_counter *sum, const struct abi_counter *counter)
{
	sum->packets += counter->packets;
	sum->bytes += counter->bytes;
}

const char *tally_direction(unsigned int row)
{
	return row < ABI_COUNTER_SENT ? "received" : "sent";
}

static bool is_of(unsigned int rows, unsigned int row)
{
	return rows == TALLY_ALL || row == rows || (row % ABI_COUNTER_SENT | TALLY_BOTH) == rows;
}

void tally_sum(const struct tally *tally, unsigned int row, unsigned int cpu, struct abi_counter sum[ABI_COUNTERS])
{
	const unsigned int cpu_end = cpu == TALLY_ALL ? tally->cpus : cpu + 1;

	memset(sum, 0, ABI_COUNTERS * sizeof(*sum));
	for (size_t part = 0; part < tally->parts; part++)
		for (unsigned int r = 0; r < ABI_COUNTER_ROWS; r++)
			for (unsigned int c = cpu == TALLY_ALL ? 0 : cpu; c < cpu_end && is_of(row, r); c++) {
				const size_t first = ((size_t)r * tally->cpus + c) * ABI_COUNTERS;

				for (int i = 0; i < ABI_COUNTERS; i++)
					add(&sum[i], &tally->part[part].counter[first + i]);
			}
}

void tally_sum_elsewhere(const struct tally *tally, struct abi_counter sum[ABI_COUNTERS])
{
	struct abi_counter of_row[ABI_COUNTERS];

	memset(sum, 0, ABI_COUNTERS * sizeof(*sum));
	for (unsigned int row = 0; row < ABI_COUNTER_ROWS; row++) {
		if (*tally->interfaces[row])
			continue;
		tally_sum(tally, row, TALLY_ALL, of_row);
		for (int i = 0; i < OUTCOMES * VERDICTS; i++)
			add(&sum[i], &of_row[i]);
	}
}

void tally_verdicts(const struct abi_counter counters[ABI_COUNTERS], struct abi_counter sum[VERDICTS])
{
	memset(sum, 0, VERDICTS * sizeof(*sum));
	for (int i = 0; i < OUTCOMES * VERDICTS; i++)
		add(&sum[i % VERDICTS], &counters[i]);
}

bool tally_has_packets(const struct abi_counter counters[ABI_COUNTERS])
{
	for (int i = 0; i < OUTCOMES * VERDICTS; i++)
		if (counters[i].packets)
			return true;
	return false;
}
