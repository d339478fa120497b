// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * How a filter runs: policies, monitor-only, panic, and changes that wait to be confirmed. abi_config.run has
 * most of this state, as bits.
 */
#include <stdio.h>

#include "base/memory.h"
#include "filter/internal.h"

static void set_run(struct abi_config *config, __u32 bit, bool is_set)
{
	if (is_set)
		__atomic_fetch_or(&config->run, bit, __ATOMIC_RELEASE);
	else
		__atomic_fetch_and(&config->run, ~bit, __ATOMIC_RELEASE);
}

#define ROUNDING_TICKS 2 /* see ticks_at() */

static void set_unconfirmed(struct abi_config *config, __u64 pending_id, __u32 tick)
{
	config->pending_id = pending_id;
	__atomic_store_n(&config->confirm_by, tick, __ATOMIC_RELEASE);
	set_run(config, ABI_RUN_UNCONFIRMED, true);
}

int filter_set_unconfirmed(struct filter *filter, __u64 pending_id, __s64 left_ms, struct reason *reason)
{
	__u32 tick;
	int error = ticks_at(left_ms ? left_ms : -1, &tick, reason);

	if (error)
		return error;
	/* A deadline that stays may be a tick or two later by rounding. A filter that passes everything must not filter again. */
	if (run_is_unconfirmed(&filter->kernel) && filter->kernel.config->pending_id == pending_id &&
	    tick - filter->kernel.config->confirm_by <= ROUNDING_TICKS)
		tick = filter->kernel.config->confirm_by;
	set_unconfirmed(filter->kernel.config, pending_id, tick);
	if (filter->successor)
		set_unconfirmed(filter->successor->filter.kernel.config, pending_id, tick);
	return 0;
}

void filter_confirm(struct filter *filter)
{
	set_run(filter->kernel.config, ABI_RUN_UNCONFIRMED, false);
	filter->kernel.config->pending_id = 0;
}

__u8 filter_drops(const struct store_settings *settings)
{
	__u8 drops = 0;

	for (enum abi_outcome outcome = 0; outcome < OUTCOME_POLICIES; outcome++)
		drops |= (settings->policy[outcome] == VERDICT_DROP) << outcome;
	return drops;
}

/*
 * Where processors reorder loads, a packet may have loaded the policies and monitor-only mode before it looks rules up: it is
 * over before keys come or leave.
 */
static int wait_for_early_loads(const struct filter *filter, struct reason *reason)
{
	return ABI_LOADS_IN_ORDER ? 0 : filter_wait_for_packets(filter, reason);
}

int filter_set_policies(struct filter *filter, struct store *store, struct reason *reason)
{
	struct store_settings settings;
	int error = store_settings(store, &settings);

	if (error)
		return store_unread_reason(error, reason);
	if (filter_abi_table(filter)->drops == filter_drops(&settings))
		return 0;
	/* A packet that has missed a key which is there by now must not meet the new policy. */
	error = filter_wait_for_packets(filter, reason);
	if (error)
		return error;
	__atomic_store_n(&filter_abi_table(filter)->drops, filter_drops(&settings), __ATOMIC_RELEASE);
	return wait_for_early_loads(filter, reason);
}

int filter_begin_monitor_only(struct filter *filter, struct store *store, struct reason *reason)
{
	struct store_settings settings;
	int error = store_settings(store, &settings);

	if (error)
		return store_unread_reason(error, reason);
	if (!settings.is_monitor_only || filter->kernel.config->run & ABI_RUN_MONITOR)
		return 0;
	set_run(filter->kernel.config, ABI_RUN_MONITOR, true);
	return wait_for_early_loads(filter, reason);
}

/*
 * The ports that Linux chooses for clients, in the network namespace of this process: see
 * bpf/new_only.h. Without /proc, the kernel's default.
 */
static void set_client_ports(struct abi_config *config)
{
	FILE_CLOSED FILE *range = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
	unsigned int lowest, highest;

	if (!range || fscanf(range, "%u %u", &lowest, &highest) != 2) {
		lowest = 32768;
		highest = 60999;
	}
	config->ephemeral_first = lowest;
	config->ephemeral_last = highest;
}

int filter_configure(struct filter *filter, struct store *store, struct reason *reason)
{
	struct abi_config *config = filter->kernel.config;
	struct store_settings settings;
	struct store_pending pending;
	int error = store_settings(store, &settings);

	if (!error)
		error = store_pending(store, &pending);
	if (error)
		return store_unread_reason(error, reason);
	error = filter_set_policies(filter, store, reason);
	set_client_ports(config);
	/* A packet that has found a rule which is gone by now would be dropped. */
	if (!error && config->run & ABI_RUN_MONITOR && !settings.is_monitor_only)
		error = filter_wait_for_packets(filter, reason);
	if (error)
		return error;
	set_run(config, ABI_RUN_MONITOR, settings.is_monitor_only);
	set_run(config, ABI_RUN_REPLACING, false); /* left by a tool that died */
	if (pending.id)
		return filter_set_unconfirmed(filter, pending.id, pending.left_ms, reason);
	/* A tool died after it confirmed or undid the change, or before it stored the change. */
	if (config->pending_id)
		filter_confirm(filter);
	return 0;
}

/*
 * ---- while a new filter replaces an old one ----
 *
 * `panic` takes no lock, so it may come at any moment of this. Before the exchange the new filter gets the panic of the
 * old one, and ABI_RUN_REPLACING. After the exchange it gets the panic again, because one may have reached the old
 * filter in between. But if ABI_RUN_REPLACING is gone, a panic has reached the new filter itself. That is the later
 * one, and stays.
 */

#define PANIC_BITS (ABI_RUN_PANIC | ABI_RUN_FLEET)

void filter_begin_replacing(struct abi_config *config, const struct abi_config *old)
{
	const __u32 panic = __atomic_load_n(&old->run, __ATOMIC_ACQUIRE) & PANIC_BITS;

	__atomic_store_n(&config->run, (config->run & ~PANIC_BITS) | panic | ABI_RUN_REPLACING, __ATOMIC_RELEASE);
}

void filter_end_replacing(struct abi_config *config, const struct abi_config *old)
{
	__u32 run = __atomic_load_n(&config->run, __ATOMIC_ACQUIRE), next;

	for (size_t i = 0; i < ABI_RECEIVED; i++) {
		if (__atomic_load_n(&old->received[i], __ATOMIC_RELAXED))
			continue;
		__atomic_store_n(&config->received[i], 0, __ATOMIC_RELAXED);
		config->received_upper[i] = 0;
	}
	do {
		if (!(run & ABI_RUN_REPLACING))
			return;
		next = (run & ~(ABI_RUN_REPLACING | PANIC_BITS)) |
		       (__atomic_load_n(&old->run, __ATOMIC_ACQUIRE) & PANIC_BITS);
	} while (!__atomic_compare_exchange_n(&config->run, &run, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
}

/* ---- questions ---- */

bool run_is_unconfirmed(const struct kernel_filter *kernel)
{
	return kernel->config->run & ABI_RUN_UNCONFIRMED;
}

__s64 run_confirm_left_ms(const struct kernel_filter *kernel)
{
	struct reason ignored;
	__s64 left_ms;

	if (!run_is_unconfirmed(kernel) || ticks_left(kernel->config->confirm_by, &left_ms, &ignored))
		return 0;
	return left_ms > 0 ? left_ms : 0;
}

bool run_is_confirm_late(const struct kernel_filter *kernel)
{
	return run_is_unconfirmed(kernel) && !run_confirm_left_ms(kernel);
}

bool run_is_filtering(const struct kernel_filter *kernel)
{
	const __u32 run = kernel->config->run;

	return (run & ABI_RUN_SET_UP) && !(run & (ABI_RUN_PANIC | ABI_RUN_MONITOR)) && !run_is_confirm_late(kernel);
}
