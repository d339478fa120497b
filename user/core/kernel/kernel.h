/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The running filters: finds, loads, attaches and replaces them, and maps their maps into memory. Only
 * kernel/ knows libbpf. Knows neither rules nor the store, nor what is in a table.
 *
 * A filter is one set of maps; any number of interfaces may run programs that share it. It is found by its
 * programs (interface -> XDP program -> map ids -> the config map). It is not found by the name of a pin,
 * because every loader pins in another place or not at all.
 */
#ifndef XDP_CUCKOO_KERNEL_H
#define XDP_CUCKOO_KERNEL_H

#include <stdbool.h>
#include <string.h>

#include <linux/types.h>

#include "abi.h"
#include "kernel/interfaces.h"
#include "base/error_reason.h"

struct kernel_attachment {
	char interface[IF_NAMESIZE];
	int ifindex;
	enum interface_mode mode;
	bool is_frags;     /* runs the program for frames in several buffers */
	bool has_ethernet; /* without Ethernet headers XDP programs understand no packet */
	bool is_below; /* an interface above it (bridge, bond, VLAN, ...) runs a program: then the kernel replaces none here */
	__u32 prog_id;              /* our program */
	__u32 root_id;              /* the program on the interface: ours, or libxdp's dispatcher, which calls ours */
	__u32 mtu;                  /* of the interface, when it was last listed */
	__u64 lost;                 /* see struct interface; when it was last listed */
	bool is_tap, is_virtio_net; /* see struct interface */
	bool is_behind;             /* at tc, another tool's program comes first, and may pass packets */
	bool is_bypassed;           /* packets do not reach the filter: see kernel_watch() */
	bool is_new;                /* kernel_attach() or kernel_attach_outgoing() has made it */
	bool was_lost;              /* it replaces one that another tool had taken off: see kernel_detach_direction() */
};

enum kernel_map_name {
	KERNEL_CONFIG,
	KERNEL_BUCKETS,
	KERNEL_RECORDS,
	KERNEL_COUNTS,
	KERNEL_COUNTERS,
	KERNEL_HINTS,
	KERNEL_RATES,
	KERNEL_RATE_CREDITS,
	KERNEL_SAMPLES,
	KERNEL_SAMPLING,
	KERNEL_MAPS,
};

struct kernel_map {
	int fd; /* 0: not open */
	__u32 id;
	__u32 entries, value_bytes;
	size_t bytes; /* of its memory, which the running program uses, too */
	/* NULL: not mapped. A table can be used only where kernel_map_part() mapped it. */
	void *memory;
	struct kernel_part {
		size_t start, end;
	} * part; /* the last part that kernel_map_part() mapped */
};

/*
 * Makes a part of a map's memory usable. Mapping all of a large table takes longer than a small change,
 * because the kernel makes an entry for each page. 0 or -errno.
 */
int kernel_map_part(const struct kernel_map *map, size_t offset, size_t bytes);

/* Maps a part once more, to read it. NULL: no memory. kernel_unmap_window() gets the same size. */
const void *kernel_map_window(const struct kernel_map *map, size_t offset, size_t bytes);
void kernel_unmap_window(const void *window, size_t bytes);

static inline bool kernel_is_outgoing(const struct kernel_attachment *attachment)
{
	return attachment->mode == INTERFACE_TC_SENT;
}

/* The number of an attachment's interface, negative for sent packets: it tells apart all attachments of a filter. */
static inline int kernel_place(const struct kernel_attachment *attachment)
{
	return kernel_is_outgoing(attachment) ? -attachment->ifindex : attachment->ifindex;
}

/* The bit of abi_config.kept; several interfaces may share it. */
static inline __u32 kernel_kept_bit(const struct kernel_attachment *attachment)
{
	return 1U << (2U * attachment->ifindex + kernel_is_outgoing(attachment)) % 32;
}

struct bpf_object;

/* The programs that share the maps of a filter. */
enum kernel_program {
	KERNEL_XDP,
	KERNEL_XDP_FRAGS,
	KERNEL_SENT,    /* at tc: sent packets */
	KERNEL_IP,      /* at tc, for packets without Ethernet headers: received */
	KERNEL_IP_SENT, /* and sent */
	KERNEL_PROGRAMS,
};

struct kernel_filter {
	struct kernel_map map[KERNEL_MAPS]; /* the config map's id identifies the filter */
	__u32 constants_id;                 /* of the map of constants, if the program was found by id; else 0 */
	struct abi_config *config;          /* the memory of KERNEL_CONFIG */
	struct abi_options options;         /* with which its programs were loaded */
	bool is_other_version;              /* of the ABI: see struct kernel_wish */
	struct bpf_object *program[KERNEL_PROGRAMS]; /* NULL until kernel_load_program() */
	struct kernel_attachment *attachments;
	size_t attachments_count;
};

/* The maps that kernel_create() makes. */
struct kernel_sizes {
	struct abi_options options;
	unsigned int tables; /* the maps have room for so many: 1 or ABI_TABLES */
	__u64 slots;         /* of each table */
	__u64 bucket_bytes;  /* of each table, of both parts */
	__u64 addresses;     /* slots of each table's part for addresses; 0: it has none */
	__u32 hint_shift;    /* see include/shape.h */
	/* The new filter shares its counters and ring of samples. NULL: it gets its own. */
	const struct kernel_filter *predecessor;
};

enum kernel_mode { KERNEL_AUTO, KERNEL_NATIVE, KERNEL_SKB };

/*
 * Sets the directory for pins, in a BPF file system. Processes without CAP_SYS_ADMIN pin what they load,
 * because they cannot find it by id. `dir` must stay valid.
 */
#define KERNEL_PINS_DEFAULT "/sys/fs/bpf/xdp-cuckoo"
void kernel_use_pins(const char *dir);

/*
 * Between the two calls, libbpf's messages in this thread are not printed. The kernel's error texts in these messages
 * are kept for the reasons of errors.
 */
void kernel_catch_messages(void);
void kernel_catch_no_messages(void);

/* What kernel_find_filters() could not look at, if this matters for the filter that its caller wants. */
enum kernel_seen {
	KERNEL_SEEN,          /* nothing */
	KERNEL_SEEN_UNUSABLE, /* a filter that is damaged or, unless these are taken, of another version of the ABI */
	KERNEL_NOT_ALLOWED,   /* a program that only CAP_SYS_ADMIN may look at, or one at tc without CAP_NET_ADMIN */
};

/* 0, -EPROTO or -EPERM: for callers that can do nothing without the filter. */
int kernel_seen_error(enum kernel_seen seen);

/* What a caller of kernel_find_filters() wants. It does not choose the filters: they are all that can be used. */
struct kernel_wish {
	const char *must_see; /* the name of a filter; if it is found, it does not matter what could not be looked at */
	/* Such filters can be detached and replaced. Only their options and the config's common part can be used. */
	bool takes_other_versions;
	bool keeps_pins;        /* do not remove the pins of filters that no longer run */
	enum kernel_seen *seen; /* NULL: kernel_find_filters() returns kernel_seen_error() of it */
};

/*
 * Finds all filters on the interfaces of this network namespace, set up or not. Without CAP_SYS_ADMIN it finds only
 * pinned ones. *filters becomes an array for kernel_filters_free(). Pass NULL or an earlier array in it. The call frees
 * that, and takes over the mapped memory of the filters that still run, because mapping takes longer than finding. The
 * array keeps the memory of filters that no longer run, so free it before a fork().
 *
 * 0 or -errno. *reason is set after an error, and if *wish.seen is not KERNEL_SEEN. After -EPROTO and -EPERM the array
 * has all other filters, after other errors it is empty. After KERNEL_SEEN *reason is "", unless there is one more
 * filter that has the name, or may have it, but cannot be used: then it says why.
 */
int kernel_find_filters(struct kernel_wish wish, struct kernel_filter **filters, size_t *count, struct reason *reason);

/*
 * Whether a filter that this store has filled runs in another network namespace: it is none of `filters`, which were found
 * here. It may also be a filter whose interface has just gone. Reads all programs of the host; needs CAP_SYS_ADMIN.
 */
bool kernel_runs_elsewhere(const __u64 store_id[2], const struct kernel_filter *filters, size_t count);

/* Whether the config is that of the filter `name`. The second function: or it has no name yet, and may get this one. */
static inline bool kernel_is_named(const struct abi_config *config, const char *name)
{
	return config->magic && !strncmp(config->name, name, sizeof(config->name));
}

static inline bool kernel_may_be_named(const struct abi_config *config, const char *name)
{
	return !config->magic || kernel_is_named(config, name);
}

/* Says what a running filter of another version is, and what to do. -EPROTO. */
int kernel_other_version_reason(const struct kernel_filter *filter, struct reason *reason);

/* Says that there is no such interface, and which name may be meant. -ENODEV. */
int kernel_no_interface_reason(const char *name, struct reason *reason);
void kernel_filters_free(struct kernel_filter *filters, size_t count);

/* Seconds since its oldest program was loaded; negative: the kernel does not say. */
double kernel_age(const struct kernel_filter *filter);

/* Bytes of kernel memory for the maps of a plan, and of a filter. */
__u64 kernel_sizes_bytes(const struct kernel_sizes *sizes);
__u64 kernel_filter_bytes(const struct kernel_filter *filter);

/* Makes new maps, all 0. Loads the programs that run on the predecessor's interfaces. 0 or -errno. */
int kernel_create(const struct kernel_sizes *sizes, struct kernel_filter *filter, struct reason *reason);
void kernel_close(struct kernel_filter *filter);

/* The object file from which another loader makes such maps and loads the programs. 0: *file is for free(); -errno. */
int kernel_make_object_file(const struct kernel_sizes *sizes, char **file, size_t *bytes, struct reason *reason);

/*
 * Runs the filter on the received packets of an interface that has no XDP program. KERNEL_AUTO uses native XDP if the
 * driver can do it, else generic XDP; or tc, where packets have no Ethernet header. The new attachment becomes the last
 * of filter->attachments. It needs neither this process nor a BPF file system; it ends with kernel_detach() or with the
 * interface.
 *
 * 0: *reason says why KERNEL_AUTO did not use the driver, or is "". -ENODEV; -EINVAL: neither an Ethernet header nor IP;
 * -EBUSY: another program is there; -EOPNOTSUPP; -EIO; other -errno.
 */
int kernel_attach(struct kernel_filter *filter, const char *interface, enum kernel_mode wanted, struct reason *reason);

/*
 * The same for the packets that this host sends through the interface, at tc. There may be other programs, too: ours goes
 * before them.
 */
int kernel_attach_outgoing(struct kernel_filter *filter, const char *interface, struct reason *reason);

/*
 * Takes the filter's program off an interface. If that is the program for received packets, also takes off the one for
 * sent packets. So a caller that visits all attachments leaves out those for which kernel_goes_with_another() is true.
 * If a writer has meanwhile replaced the filter by another of the same name, takes that one off. 0 also where the
 * interface is gone or no longer runs a filter of the name. -EBUSY: only another tool can do it.
 * kernel_detach_direction(): only this program, for callers that undo what they have attached. What was_lost before is
 * noted as lost again.
 */
int kernel_detach_direction(const struct kernel_filter *filter, const struct kernel_attachment *attachment,
			    struct reason *reason);
int kernel_detach(const struct kernel_filter *filter, const struct kernel_attachment *attachment,
		  struct reason *reason);
bool kernel_goes_with_another(const struct kernel_filter *filter, const struct kernel_attachment *attachment);

/*
 * Takes filters off interfaces, in both directions, and tells of each interface. One that keeps its filter costs the others
 * nothing. Where another tool was faster (prog_id 0), the filter is wanted no more. `taken` is for free().
 */
struct kernel_where {
	const char *name;        /* of the filters; NULL: any */
	char *const *interfaces; /* any of the names that they have */
	size_t count;            /* 0 without is_except: all interfaces */
	bool is_except;          /* all but these */
	bool is_nameless_too;    /* filters that are not set up yet have no name */
};

struct kernel_taken {
	struct kernel_attachment attachment;
	char name[ABI_NAME_BYTES]; /* of the filter */
	int error;                 /* it is still there */
	struct reason reason;
};

bool kernel_is_meant(const struct kernel_where *where, const struct kernel_filter *filter, const char *interface);
int kernel_take_off(const struct kernel_filter *filters, size_t count, const struct kernel_where *where,
		    struct kernel_taken **taken, size_t *taken_count);

/*
 * Whether another tool has taken off the program for the other direction. False if the filter is of another version.
 * kernel_want_outgoing(): whether this interface needs the program for sent packets from now on.
 */
bool kernel_has_lost_direction(const struct kernel_filter *filter, const struct kernel_attachment *attachment);
void kernel_want_outgoing(const struct kernel_filter *filter, const struct kernel_attachment *attachment,
			  bool is_wanted);

/*
 * Whether filters[at] was put on this interface, and another tool has taken it off, in both directions, and none of
 * these `count` filters is there. It stays so until kernel_want_received() or kernel_attach(). False if the filter is of
 * another version, or kernel_may_be_unseen(). A filter remembers ABI_RECEIVED interfaces.
 */
bool kernel_has_lost_interface(const struct kernel_filter *filters, size_t count, size_t at, int ifindex);
/*
 * Whether the filter was loaded on an interface and is on none here with such an index: another
 * tool may have taken it off, or the interface is gone, or in another network namespace.
 * Also whether it has forgotten one.
 */
bool kernel_misses_interface(const struct kernel_filter *filter);
/*
 * How many interfaces that filters[at] was loaded on are gone from this network namespace, until kernel_forget_gone(). As
 * many as the `count` filters have unknown ones are taken for moved ones that are back.
 */
size_t kernel_gone_interfaces(const struct kernel_filter *filters, size_t count, size_t at);
void kernel_forget_gone(const struct kernel_filter *filter);
void kernel_want_received(const struct kernel_filter *filter, int ifindex, bool is_wanted);

/*
 * Whether this process may list the programs at tc. Since Linux 6.6 that takes CAP_NET_ADMIN. If it may not, a filter may be
 * there unseen: the program for sent packets, or on such an interface the one for received packets.
 */
bool kernel_sees_tc(void);
bool kernel_may_be_unseen(int ifindex);

/* The attachment of the same interface for the other direction; NULL: there is none. */
const struct kernel_attachment *kernel_other_direction(const struct kernel_filter *filter,
						       const struct kernel_attachment *attachment);

/*
 * Replaces `old` by `filter`, which kernel_create() made, on every interface that runs `old`. On each
 * interface this is one step, so every packet meets one of the two. If one interface refuses, all others
 * get `old` back.
 *
 * An interface that is gone, or runs neither filter, is left out: it is no longer among the attachments. If
 * all are left out, the attachments stay. After 0, no packet is in `old` any more. -EBUSY: libxdp's
 * dispatcher runs `old`, or an interface that runs it does not let it be replaced; other -errno.
 */
int kernel_replace(struct kernel_filter *old, struct kernel_filter *filter, struct reason *reason);

/*
 * kernel_is_mtu_too_large(): the program takes frames in one buffer only, and the MTU is above kernel_one_buffer_mtu(),
 * so the driver may lose large frames. Then kernel_fit_mtu() exchanges the program, without a gap, for the one for
 * frames in several buffers, if kernel and driver may take that: kernel_may_take_frags(). 0, also where nothing is to
 * be done; -EBUSY; other -errno. kernel_has_old_buffers(): the driver may lose large frames in receive buffers that it
 * made before the exchange or the load.
 */
__u32 kernel_one_buffer_mtu(void);
bool kernel_is_mtu_too_large(const struct kernel_attachment *attachment);
bool kernel_has_old_buffers(const struct kernel_attachment *attachment);
bool kernel_may_take_frags(const struct kernel_attachment *attachment);
int kernel_fit_mtu(struct kernel_filter *filter, struct kernel_attachment *attachment, struct reason *reason);

/*
 * Finds interfaces whose packets do not reach the filter, and sets is_bypassed: some drivers accept a program but never
 * run it. Returns when the filter sees packets, or after `quiet_ms` without packets, or after 2.5 to 4.5 s if packets
 * come that the filter does not count. Never sets is_bypassed after too few packets, nor behind libxdp's dispatcher,
 * where another program may take the packets.
 */
void kernel_watch(struct kernel_filter *filters, size_t count, unsigned int quiet_ms);

/*
 * The number of packets of an interface that the filter has counted, for a bond with those of its slaves.
 * `interfaces` must be all interfaces. 0 or -errno.
 */
int kernel_counted_on(const struct kernel_filter *filter, const struct kernel_attachment *attachment,
		      const struct interface *interfaces, size_t interfaces_count, __u64 *packets,
		      struct reason *reason);

/*
 * Whether every program of a running filter has the same instructions as this tool's programs, by the
 * kernel's tag. Loads this tool's programs over the filter's maps to compare. 0 or -errno.
 */
int kernel_runs_this_build(struct kernel_filter *filter, bool *is_own, struct reason *reason);

/*
 * Whether libxdp's dispatcher runs it. The first attachment with that, or is_below: we cannot replace it. NULL: none.
 */
bool kernel_is_held(const struct kernel_attachment *attachment);
const struct kernel_attachment *kernel_held_attachment(const struct kernel_filter *filter);

/*
 * Says why the filter at a held attachment must be exchanged, and that the tool cannot do it. Another loader can, with
 * an object file: `options` (" --capacity N", or "") are those of the command that writes the file. Returns `error`.
 */
__attribute__((format(printf, 6, 7))) int kernel_held_reason(const struct kernel_filter *filter,
							     const struct kernel_attachment *held, const char *options,
							     int error, struct reason *reason, const char *why, ...);

/*
 * The kernel's present tick (abi.h), and ticks per second, which is not an integer. Only a BPF program can
 * read jiffies, so this loads a program of three instructions and runs it. 0; -EPERM; other -errno.
 */
int kernel_tick(__u32 *tick, double *ticks_per_second, struct reason *reason);

/*
 * Counts since the map was made or last reset. kernel_counters() adds up all interfaces and CPUs.
 * kernel_row_counters() reads one row of interfaces (abi_counter_row()): ABI_COUNTERS for each of
 * kernel_cpus() CPUs.
 */
int kernel_counters(const struct kernel_filter *filter, struct abi_counter counters[ABI_COUNTERS],
		    struct reason *reason);
int kernel_row_counters(const struct kernel_filter *filter, __u32 row, struct abi_counter *counters,
			struct reason *reason);
int kernel_cpus(void); /* the largest possible number of CPUs; -errno */

/* Only for the writer. A packet that comes during the reset is counted either before it or after it. */
int kernel_reset_counters(const struct kernel_filter *filter, struct reason *reason);

/*
 * ---- samples ----
 *
 * Receives samples of dropped packets (struct abi_sample) from all filters of a name, also from new tables of these
 * filters and from filters that are loaded later. There are samples only while a listener has the lease.
 */

#define LISTENER_RATE_MAX 1000000
#define LISTENER_RENEW_MS 1000 /* call listener_renew() as often as this */

struct listener {
	const char *name;         /* of the filters */
	__u32 id;                 /* random, not 0: the lease has it */
	__u32 every;              /* takes each `every`th packet */
	__u32 credit;             /* by which the programs keep to the rate */
	struct samples **samples; /* of each filter */
	size_t count;
	struct abi_sampling gone;             /* the counts of filters that no longer run */
	struct kernel_attachment *interfaces; /* where the filters run */
	size_t interfaces_count;
	int fd; /* readable when there are samples */
};

/*
 * `rate`: samples per second on each CPU, 1 to LISTENER_RATE_MAX. If another listener has died, waits some seconds until
 * its lease ends. 0; -ENOENT, without a reason: no such filter runs; -EBUSY: another process listens; other -errno. On
 * failure the listener is closed. listener_close() accepts a zeroed struct.
 */
int listener_open(struct listener *listener, const char *name, __u32 every, __u32 rate, struct reason *reason);
void listener_close(struct listener *listener);

/* Renews the leases, and finds new tables and filters. 0; -EBUSY: another process listens; other -errno. */
int listener_renew(struct listener *listener, struct reason *reason);

/* Gives the leases up. After this, listener_read() gets the last samples. */
void listener_stop(struct listener *listener);

/* Passes waiting samples, at most some thousands of each filter, to `visit`, until it returns -errno. Returns that, or 0. */
int listener_read(struct listener *listener, int (*visit)(const struct abi_sample *sample, void *context),
		  void *context);

/* The counts of all filters since listener_open(). */
int listener_count(const struct listener *listener, struct abi_sampling *sum, struct reason *reason);

/* ---- ticks ---- */

/* Converts timeouts to the kernel's ticks (abi.h), by which the packet path ends rules, and back. */

/*
 * The tick at which a timeout that starts now ends; a negative timeout ended in the past. *tick is 0
 * (never) for timeout 0 and for timeouts that end after the last tick; else it is not 0. 0; -errno: the
 * kernel does not tell the tick.
 */
int ticks_at(__s64 timeout_ms, __u32 *tick, struct reason *reason);

/* The present tick, or a tick shortly before it: a tick that has certainly begun. */
int ticks_now(__u32 *tick, struct reason *reason);

/* Jiffies per second; 0: the kernel does not say. */
long ticks_jiffies(void);

/* The time that is left until a tick. */
int ticks_left(__u32 tick, __s64 *left_ms, struct reason *reason);

/*
 * ---- the program of bench ----
 *
 * Loads and runs the program of bpf/bench.bpf.c over the maps of a filter that no packet meets. Does not
 * know what the flows and the time stamps mean.
 */

struct bench_flow_ipv4;
struct bench_flow_ipv6;

struct kernel_bench {
	struct bpf_object *object;
	/* Shared with the program. The caller fills in BENCH_FLOWS flows; a frame's ethertype chooses. */
	struct bench_flow_ipv4 *ipv4;
	struct bench_flow_ipv6 *ipv6;
	__u64 *stamps; /* BENCH_SLICES for each worker */
};

/* Bytes of kernel memory that kernel_bench_open() takes. */
__u64 kernel_bench_bytes(unsigned int workers);

/* `filter` must not be running: its counters change. On failure *bench is zeroed. 0 or -errno. */
int kernel_bench_open(const struct kernel_filter *filter, unsigned int workers, struct kernel_bench *bench,
		      struct reason *reason);
void kernel_bench_close(struct kernel_bench *bench);

/*
 * Runs the program `packets` times on `frame`. The frame starts with a struct bench_head and keeps what the
 * last run wrote. *ns (may be NULL): time per packet, rounded down. Threads may call this at the same time,
 * each with its own frame and its own worker number. 0; -EPROTO: the program did not find its flows;
 * other -errno.
 */
int kernel_bench_run(const struct kernel_bench *bench, void *frame, size_t bytes, __u32 packets, __u32 *ns,
		     struct reason *reason);

#endif
