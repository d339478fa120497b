/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The running filters: find them, load and attach them, their maps as memory. The only module
 * that knows libbpf. Knows neither rules nor the store.
 *
 * A filter is one set of maps; any number of interfaces may run programs that share it. It is found
 * by its programs (interface -> XDP program -> map ids -> the config map), never by a pin, since
 * every loader pins elsewhere or not at all.
 */
#ifndef XDP_CUCKOO_KERNEL_H
#define XDP_CUCKOO_KERNEL_H

#include <stdbool.h>

#include "abi.h"
#include "interfaces.h"
#include "reason.h"

struct kernel_attachment {
	char interface[IF_NAMESIZE];
	int ifindex;
	enum interface_mode mode;
	__u32 prog_id; /* the program that runs our code */
	__u32 root_id; /* the one on the interface: the same, or libxdp's dispatcher */
};

struct xdp_cuckoo; /* the generated skeleton */

struct kernel_filter {
	__u32 config_id; /* the config map's, which identifies the filter */
	int config_fd, buckets_fd, counters_fd;
	struct abi_config *config; /* the running program's own memory */
	__u64 *bucket;
	__u64 buckets;
	struct xdp_cuckoo *programs; /* NULL until kernel_create() or kernel_attach() */
	struct kernel_attachment *attachments;
	size_t attachments_count;
};

enum kernel_mode { KERNEL_AUTO, KERNEL_NATIVE, KERNEL_SKB };

/*
 * All filters on the interfaces of this network namespace, set up or not. 0, with an array for
 * kernel_filters_free(); -EPERM, -EPROTO (a filter of another ABI version), other -errno.
 */
int kernel_find(struct kernel_filter **filters, size_t *count, struct reason *reason);
void kernel_filters_free(struct kernel_filter *filters, size_t count);

/* Loads new maps of `buckets` buckets and the programs over them; attaches nothing. -errno. */
int kernel_create(__u64 buckets, struct kernel_filter *filter, struct reason *reason);
void kernel_close(struct kernel_filter *filter);

/*
 * Runs the filter on an interface that has no XDP program: native with KERNEL_AUTO where the driver
 * can, else generic. It becomes the last of filter->attachments, and lives until kernel_detach() or
 * the interface goes; it needs neither this process nor a BPF file system. -ENODEV; -EBUSY where
 * another program is there; -EOPNOTSUPP; other -errno.
 */
int kernel_attach(struct kernel_filter *filter, const char *interface, enum kernel_mode wanted,
		  struct reason *reason);

/* Takes the program off, if it is still that program. -EBUSY where only another tool can do it. */
int kernel_detach(const struct kernel_attachment *attachment, struct reason *reason);

/* The sum over all CPUs. */
int kernel_counters(const struct kernel_filter *filter,
		    struct abi_counter counters[OUTCOMES][VERDICTS], struct reason *reason);

#endif
