/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The running filters: find them, load, attach and replace them, their maps as memory. The only module
 * that knows libbpf. Knows neither rules nor the store, nor what stands in a table.
 *
 * A filter is one set of maps; any number of interfaces may run programs that share it. It is found
 * by its programs (interface -> XDP program -> map ids -> the config map), never by the name of a pin,
 * since every loader pins elsewhere or not at all.
 */
#ifndef XDP_CUCKOO_KERNEL_H
#define XDP_CUCKOO_KERNEL_H

#include <stdbool.h>

#include "abi.h"
#include "kernel/interfaces.h"
#include "base/error_reason.h"

struct kernel_attachment {
	char interface[IF_NAMESIZE];
	int ifindex;
	enum interface_mode mode;
	bool is_frags;     /* the program for frames of several buffers */
	bool has_ethernet; /* else no packet there is what the program takes it for */
	__u32 prog_id;     /* the program that runs our code */
	__u32 root_id;     /* the one on the interface: the same, or libxdp's dispatcher */
	__u32 mtu;         /* of the interface, when it was looked at */
	bool is_bypassed;  /* see kernel_watch() */
};

enum kernel_map_name {
	KERNEL_CONFIG,
	KERNEL_BUCKETS,
	KERNEL_RECORDS,
	KERNEL_COUNTS,
	KERNEL_COUNTERS,
	KERNEL_HINTS,
	KERNEL_SAMPLES,
	KERNEL_SAMPLING,
	KERNEL_MAPS,
};

struct kernel_map {
	int fd; /* 0: not open */
	__u32 id;
	__u32 entries, value_bytes;
	size_t bytes; /* of its memory, which is the running program's own */
	/* NULL: not mapped. Of buckets, records and counts only what kernel_map_part() has made usable. */
	void *memory;
	struct kernel_part {
		size_t start, end;
	} * part; /* that was made usable last */
};

/*
 * Makes a part of a map's memory usable. The kernel makes an entry for each page when it maps an array: of large
 * tables that takes longer than a small change, which needs few of them. 0 or -errno.
 */
int kernel_map_part(const struct kernel_map *map, size_t offset, size_t bytes);

struct xdp_cuckoo; /* the generated skeleton */

struct kernel_filter {
	struct kernel_map map[KERNEL_MAPS]; /* the config map's id identifies the filter */
	struct abi_config *config;          /* the memory of KERNEL_CONFIG */
	struct abi_options options;         /* what its programs are compiled to do */
	bool is_other_version;              /* see kernel_find_all() */
	struct xdp_cuckoo *program[2];      /* by is_frags of an attachment; NULL until one needs it */
	struct kernel_attachment *attachments;
	size_t attachments_count;
};

/* What kernel_create() makes. */
struct kernel_plan {
	struct abi_options options;
	unsigned int tables; /* that there is room for: 1 or ABI_TABLES */
	__u64 slots;         /* of each */
	__u64 bucket_bytes;  /* of each */
	/* A filter in whose counters and ring of samples the new one goes on; NULL: it has its own. */
	const struct kernel_filter *predecessor;
};

enum kernel_mode { KERNEL_AUTO, KERNEL_NATIVE, KERNEL_SKB };

/*
 * Where those who lack CAP_SYS_ADMIN pin what they load, since they find nothing by its id: a directory in a
 * BPF file system. `dir` must stay.
 */
#define KERNEL_PINS_DEFAULT "/sys/fs/bpf/xdp-cuckoo"
void kernel_use_pins(const char *dir);

/*
 * From here on the kernel's words to this thread, which libbpf would print, are kept for the reasons given; and from
 * there on they are again whose they were.
 */
void kernel_listen(void);
void kernel_listen_no_more(void);

/*
 * All filters on the interfaces of this network namespace, set up or not; without CAP_SYS_ADMIN, those that are pinned.
 * `name`: that is asked for; NULL: any. 0, with an array for kernel_filters_free(); -EPROTO, and the array has all
 * others: a filter that is asked for is of another ABI version, or one that is not sound may be it, as far as no other
 * is of the name; -EPERM, in the same way: so may a program be that this process cannot look at; other -errno, with an
 * empty array.
 */
int kernel_find(const char *name, struct kernel_filter **filters, size_t *count, struct reason *reason);

/* The same, for who only looks: pins of what no longer runs stay. */
int kernel_look(const char *name, struct kernel_filter **filters, size_t *count, struct reason *reason);

/*
 * kernel_find() with filters of other ABI versions, which can be detached and replaced. Of these nothing else is there
 * but their options and what all versions have in common in the config.
 */
int kernel_find_all(const char *name, struct kernel_filter **filters, size_t *count, struct reason *reason);

/* -ENODEV, and as the reason that there is no such interface, and which may be meant. */
int kernel_no_interface(const char *name, struct reason *reason);
void kernel_filters_free(struct kernel_filter *filters, size_t count);

/* When the oldest of its programs was loaded, in seconds before now; negative: the kernel does not tell. */
double kernel_age(const struct kernel_filter *filter);

/* Bytes of kernel memory that the maps of a plan, and of a filter, take. */
__u64 kernel_plan_bytes(const struct kernel_plan *plan);
__u64 kernel_filter_bytes(const struct kernel_filter *filter);

/* Makes new maps, all 0; loads the programs that run on the predecessor's interfaces, if there is one. -errno. */
int kernel_create(const struct kernel_plan *plan, struct kernel_filter *filter, struct reason *reason);
void kernel_close(struct kernel_filter *filter);

/*
 * Runs the filter on an interface that has no XDP program: native with KERNEL_AUTO where the driver
 * can, else generic. It becomes the last of filter->attachments, and lives until kernel_detach() or
 * the interface goes; it needs neither this process nor a BPF file system. -ENODEV; -EINVAL: it
 * has no Ethernet header; -EBUSY where another program is there; -EOPNOTSUPP; -EIO; other -errno. Where it returns
 * 0, *reason says why KERNEL_AUTO did not take the driver; "" where it did.
 */
int kernel_attach(struct kernel_filter *filter, const char *interface, enum kernel_mode wanted, struct reason *reason);

/*
 * Takes a filter's program off, or that of the table which has got its place meanwhile; 0 too where the interface is
 * gone or runs no program of the filter's name any more. -EBUSY where only another tool can do it.
 */
int kernel_detach(const struct kernel_filter *filter, const struct kernel_attachment *attachment,
		  struct reason *reason);

/*
 * Puts `filter`, which kernel_create() made, in the place of `old` on every interface that runs it,
 * each in one step: every packet meets one of the two. All or none: where one interface refuses, the
 * others get `old` back. One that is gone meanwhile, or runs neither, refuses nothing: it is left out, and no longer
 * among the attachments, unless there is no other. When it returns 0 no packet is in `old` any more. -EBUSY where
 * libxdp's dispatcher holds `old`, or an interface runs it and yet does not give it; other -errno.
 */
int kernel_replace(struct kernel_filter *old, struct kernel_filter *filter, struct reason *reason);

/*
 * Whether the interface's MTU has grown beyond what the program there takes, so that larger frames may be lost in the
 * driver; kernel_fit_mtu() then puts the program for frames of several buffers in its place, while packets go on. 0,
 * also where there is nothing to do, or the driver has no such frames; -EBUSY; other -errno.
 */
bool kernel_is_mtu_too_large(const struct kernel_attachment *attachment);
int kernel_fit_mtu(struct kernel_filter *filter, struct kernel_attachment *attachment, struct reason *reason);

/*
 * Watches until each interface shows that its packets reach the filter, and sets is_bypassed where they do not: a
 * driver can take a program and never run it. 20 ms where packets come, 200 ms where none come; only where packets
 * come that the filter does not count, 2.5 to 4.5 s. Never set where too few come to be certain, nor behind libxdp's
 * dispatcher, where another program may take them.
 */
void kernel_watch(struct kernel_filter *filters, size_t count);

/*
 * Packets that the filter has counted of an interface, as kernel_row_counters() does; with those of a bond's slaves.
 * `interfaces`: all.
 */
int kernel_counted_on(const struct kernel_filter *filter, const struct kernel_attachment *attachment,
		      const struct interface *interfaces, size_t interfaces_count, __u64 *packets,
		      struct reason *reason);

/*
 * Whether every program of a running filter is made of the same instructions as this tool's own (the kernel's tag
 * of them); loads these, over the filter's maps, to know. 0; -errno.
 */
int kernel_runs_own_programs(struct kernel_filter *filter, bool *is_own, struct reason *reason);

/* The first attachment that libxdp's dispatcher holds, so that we cannot exchange it; NULL: none. */
const struct kernel_attachment *kernel_held_attachment(const struct kernel_filter *filter);

/*
 * The kernel's present tick (see abi.h), and how many ticks a second has, which is no whole number. 0;
 * -EPERM; other -errno. By a program of a few instructions, run once: nothing else tells jiffies.
 */
int kernel_tick(__u32 *tick, double *ticks_per_second, struct reason *reason);

/*
 * What has been counted since the map was made or last reset. kernel_counters(): summed over interfaces and CPUs.
 * kernel_row_counters(): of a row of interfaces (abi_counter_row()), ABI_COUNTERS for each of kernel_cpus() CPUs.
 */
int kernel_counters(const struct kernel_filter *filter, struct abi_counter counters[ABI_COUNTERS],
		    struct reason *reason);
int kernel_row_counters(const struct kernel_filter *filter, __u32 row, struct abi_counter *counters,
			struct reason *reason);
int kernel_cpus(void); /* that there may ever be; -errno */

/* One process at a time: the writer. What is counted meanwhile is counted before it or after it. */
int kernel_reset_counters(const struct kernel_filter *filter, struct reason *reason);

#endif
