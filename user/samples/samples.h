/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Receives samples of dropped packets from all filters of a name, also from new tables of these filters and from
 * filters that are loaded later. include/sample.h explains samples and leases.
 */
#ifndef XDP_CUCKOO_SAMPLES_H
#define XDP_CUCKOO_SAMPLES_H

#include "kernel/kernel.h"
#include "abi.h"
#include "rule/rule.h"
#include "store/store.h"

#define LISTENER_RENEW_MS 1000 /* call listener_renew() as often as this */

struct listener {
	const char *name; /* of the filters */
	struct kernel_listener kernel;
	struct kernel_samples **samples; /* of each filter */
	size_t count;
	struct abi_sampling gone;             /* the counts of filters that no longer run */
	struct kernel_attachment *interfaces; /* where the filters run */
	size_t interfaces_count;
	int fd; /* readable when there are samples */
};

/*
 * If another listener has died, waits until its lease ends: at most KERNEL_LEASE_MS. 0; -ENOENT, without a reason:
 * no such filter runs; -EBUSY: another process listens; other -errno. On failure the listener is closed.
 * listener_close() accepts a zeroed struct.
 */
int listener_open(struct listener *listener, const char *name, __u32 every, __u32 rate, struct reason *reason);
void listener_close(struct listener *listener);

/* Renews the leases, and finds new tables and filters. 0; -EBUSY: another process listens; other -errno. */
int listener_renew(struct listener *listener, struct reason *reason);

/* Gives the leases up. After this, listener_read() gets the last samples. */
void listener_stop(struct listener *listener);

/* Passes all waiting samples to `visit`, until it returns -errno. Returns that, or 0. */
int listener_read(struct listener *listener, int (*visit)(const struct abi_sample *sample, void *context),
		  void *context);

/* The counts of all filters since listener_open(). */
int listener_count(const struct listener *listener, struct abi_sampling *sum, struct reason *reason);

/* ---- why a packet was dropped ---- */

/* Finds the flow of a sampled packet, and the rule or policy that dropped it. */

enum sample_cause {
	SAMPLE_RULE,         /* a stored rule */
	SAMPLE_UNKNOWN_RULE, /* a rule that is deleted or has ended, or a false positive of a compact table */
	SAMPLE_POLICY,       /* the policy for the sample's outcome */
};

struct sample_view {
	bool has_flow;
	struct rule flow; /* the flow of the packet, if has_flow */
	/*
	 * What the filter looked up: the flow with its details, and with `state new` if the packet may begin something.
	 * Of a sent packet, source and destination are exchanged.
	 */
	struct rule packet;
	bool is_sent;
	enum sample_cause cause;
	struct rule rule; /* with SAMPLE_RULE */
};

/* Uses the captured bytes of the frame, and the rules that are stored now. `store` may be NULL. */
struct sample_view sample_view(const struct abi_sample *sample, struct store *store);

#endif
