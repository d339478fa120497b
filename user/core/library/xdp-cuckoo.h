/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * libxdp-cuckoo is for programs that decide themselves what to block, for example a detector of attacks. It
 * uses the same store and the same running filter as the tool xdp-cuckoo, so the tool lists the rules that a
 * program adds. Link with `pkg-config --libs xdp-cuckoo`.
 *
 * Beside the tool. Programs and the tool can work on one filter at any time: each change waits for the one
 * before. If your program has a list of its own, it never takes away a rule that the operator or another list
 * wants, and the operator sees in `xdp-cuckoo lists` whose rule it is. Leave `xdp-cuckoo confirm` to the
 * operator: while a change of the tool waits for it, your changes stay, whether it comes or not. If it does not
 * come in time, all packets pass until the next change, perhaps yours, undoes that change. Only the tool has
 * panic, policies, list files, changes that wait for a confirmation, and compact tables.
 *
 * Results. Functions that can fail return 0 or a negative errno value. xdp_cuckoo_error() then returns the
 * reason, one line. The line is the tool's: where it advises --force, use XDP_CUCKOO_FORCE. All functions
 * that use a filter can return these errors, and others from the system:
 *   -EPERM, -EACCES     the process lacks privileges: see below
 *   -ENOENT             nothing was ever stored under that name
 *   -EBADMSG, -EPROTO   the store or the running filter is damaged, or of another version
 *   -ENOEXEC            the store is of a machine with another byte order or word size
 *   -ESTALE             the running filter was filled from another store, perhaps one that was deleted since
 *   -ENOSPC, -ENOMEM    the disk, a table that cannot grow, or memory is full
 *   -EBUSY              another thread uses the change of this handle, or a visit of this handle is active; so
 *                       a `visit` function cannot use its handle
 *   -EDEADLK            this thread has an active change or visit of another handle of the same name
 *   -EBADF              the handle was not opened
 *   -EINVAL             descriptor 0, 1 or 2 is closed: open /dev/null there, since what a program prints would
 *                       be written into the file that is opened next, for example the store's
 *
 * Privileges. The process needs to be root, or to have CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON and CAP_SYS_ADMIN.
 * Without CAP_SYS_ADMIN it needs the directory /sys/fs/bpf/xdp-cuckoo, owned by its user, in a BPF file
 * system. A store belongs to the user that made it, and to root. To read rules, read access to the store is
 * enough. A filter is looked for in the network namespace of the calling thread.
 *
 * Threads. Each thread may have its own handles. A handle may be used by one thread at a time. In a process,
 * only one handle has a given store open at a time. Others wait, also to read, until its change or visit is
 * over. Keep both short. After fork(), the child cannot use the parent's handles.
 *
 * Memory. The library does not keep pointers that you pass. It copies results to where your pointers say.
 * Free only handles, with xdp_cuckoo_close().
 *
 * The library does not print, exit, handle signals, start threads, or change privileges, umask or working
 * directory. Its descriptors are closed on exec; one that LMDB opens becomes so a moment later. LMDB maps the
 * store into memory: if the disk fails, or somebody truncates the file, the process gets SIGBUS; if a page
 * is damaged, SIGBUS or SIGSEGV, or the call fails with -EBADMSG. If a change
 * needs a file larger than RLIMIT_FSIZE, the process gets SIGXFSZ; if it ignores that, the call fails with
 * -EFBIG.
 */
#ifndef XDP_CUCKOO_H
#define XDP_CUCKOO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library, for example "0.1.0". Never NULL. */
const char *xdp_cuckoo_version(void);

/* ---- a filter ---- */

/* A handle for a filter by name. The filter may run on any number of interfaces, or on none. */
struct xdp_cuckoo_filter;

enum xdp_cuckoo_flag {
	XDP_CUCKOO_READ = 0,         /* look only */
	XDP_CUCKOO_CHANGE = 1 << 0,  /* change too; creates the store if it does not exist */
	XDP_CUCKOO_NO_WAIT = 1 << 1, /* -EBUSY instead of waiting for another writer */
	/* Allow changes that lock this host out: see xdp_cuckoo_commit(). */
	XDP_CUCKOO_FORCE = 1 << 2,
};

/*
 * Opens the filter `name` (NULL: "default"). Its rules are in the directory `state` (NULL:
 * /var/lib/xdp-cuckoo). `flags` are enum xdp_cuckoo_flag bits. Between calls nothing stays locked or open,
 * except after xdp_cuckoo_begin(). So the tool and other programs can work while you keep a handle.
 *
 * With XDP_CUCKOO_CHANGE it also creates the store, sets up a filter that another loader has loaded, and
 * repairs a filter whose writer died. On failure, pass *filter to xdp_cuckoo_error() and then to
 * xdp_cuckoo_close(). After -ENOMEM it may be NULL.
 *
 * -EINVAL: the name or the flags are not valid; -ENAMETOOLONG; -EBUSY, with XDP_CUCKOO_NO_WAIT. Any thread may call it.
 */
int xdp_cuckoo_open(const char *name, const char *state, unsigned int flags, struct xdp_cuckoo_filter **filter);

/* Aborts a change that this thread has begun and not committed. Accepts NULL. */
void xdp_cuckoo_close(struct xdp_cuckoo_filter *filter);

/*
 * Why the last call with this filter failed; "": it did not. After a call that returned 0: why some
 * filter does not follow changes, as one that has moved to another network namespace; or "". The
 * text is valid until the next call.
 */
const char *xdp_cuckoo_error(const struct xdp_cuckoo_filter *filter);

/* ---- rules ---- */

#define XDP_CUCKOO_COMMENT_BYTES 256 /* with the final 0 */
#define XDP_CUCKOO_TEXT_BYTES 576    /* for the longest rule, with the final 0 */

enum xdp_cuckoo_action {
	XDP_CUCKOO_DROP,
	XDP_CUCKOO_PASS,    /* wins over any drop rule */
	XDP_CUCKOO_MONITOR, /* a drop rule on trial: drops nothing, but counts what it would drop */
};

enum xdp_cuckoo_field {
	XDP_CUCKOO_PROTO = 1 << 0,
	XDP_CUCKOO_SPORT = 1 << 1,
	XDP_CUCKOO_DPORT = 1 << 2,
	XDP_CUCKOO_NEW = 1 << 3,     /* `state new`: only packets that begin something; not with XDP_CUCKOO_PASS */
	XDP_CUCKOO_DETAILS = 1 << 4, /* `details`, tcp_flags_mask or length is not 0, or XDP_CUCKOO_FRAGMENTS is set */
	XDP_CUCKOO_FRAGMENTS = 1 << 5, /* only fragments, of any kind; with XDP_CUCKOO_DETAILS */
	XDP_CUCKOO_RATE = 1 << 6,      /* only packets above xdp_cuckoo_rate(); not with XDP_CUCKOO_PASS */
};

/* Shifts in `details`. A block has 1, 16, 256 or 4,096 numbers and starts at a multiple of that: 0, 1, 2 or 3. */
enum xdp_cuckoo_detail {
	XDP_CUCKOO_FRAGMENT = 0,    /* 1: packets that are no fragments; 2: first fragments; 3: later fragments */
	XDP_CUCKOO_SPORT_BLOCK = 2, /* the port is the first of a block */
	XDP_CUCKOO_DPORT_BLOCK = 4,
	XDP_CUCKOO_LENGTH_BLOCK = 6, /* the length is the first of a block; 0 with length 0: any length */
};

/*
 * A rule, or the flows in a question. A field that is not given matches anything. At least an address, the
 * protocol or a port must be given. Everything unused must be 0, also the bits of an address after its
 * prefix.
 */
struct xdp_cuckoo_rule {
	uint16_t family;                        /* AF_INET, AF_INET6; 0: both, then without addresses */
	uint8_t action;                         /* enum xdp_cuckoo_action; ignored in a question */
	uint8_t fields;                         /* enum xdp_cuckoo_field bits: the fields that are given */
	uint8_t proto;                          /* IPPROTO_TCP, ..., at most 254 */
	uint8_t src_bits, dst_bits;             /* prefix lengths: 32 or 128 is one address, 0 any */
	uint8_t details;                        /* see enum xdp_cuckoo_detail */
	uint16_t sport, dport;                  /* in host byte order; for ICMP and ICMPv6: type and code */
	uint8_t src[16], dst[16];               /* in network byte order; IPv4 uses the first four bytes */
	uint8_t tcp_flags, tcp_flags_mask;      /* values, and which flags are compared: then proto is IPPROTO_TCP */
	uint16_t length;                        /* of the packet, by IP, in host byte order */
	int64_t timeout_ms;                     /* milliseconds until the rule ends, up to 68 years; 0: never */
	char comment[XDP_CUCKOO_COMMENT_BYTES]; /* UTF-8, without quotes and control characters */
};

/*
 * Reads the text of a rule as the tool does, for example "192.0.2.1 timeout 10m": see xdp-cuckoo-rules(5).
 * 0; -EINVAL. `filter` gets the reason, and may be NULL. Any thread may call it.
 */
int xdp_cuckoo_parse(struct xdp_cuckoo_filter *filter, const char *text, struct xdp_cuckoo_rule *rule);

/*
 * Writes the text of a rule, cut to `size` bytes with the final 0. 0; -EINVAL: not a rule, `text` is "". Any
 * thread may call it.
 */
int xdp_cuckoo_format(const struct xdp_cuckoo_rule *rule, char *text, size_t size);

/*
 * The rate of a rule with XDP_CUCKOO_RATE: packets a second, 1 to 10^12, or with XDP_CUCKOO_RATE_BITS bits a second.
 * The struct has no room for it, so the handle keeps one rate, 0 if there is none. Each such rule that a call or a
 * visit gives to you sets it, and so does xdp_cuckoo_set_rate(). xdp_cuckoo_rate() returns it, and may be called within
 * a visit. xdp_cuckoo_add(), xdp_cuckoo_list_add() and xdp_cuckoo_list_replace() use it for all such rules.
 * xdp_cuckoo_format() writes "rate ?". -EINVAL. Since 0.2.0.
 */
#define XDP_CUCKOO_RATE_BITS (1ULL << 63)
uint64_t xdp_cuckoo_rate(const struct xdp_cuckoo_filter *filter);
int xdp_cuckoo_set_rate(struct xdp_cuckoo_filter *filter, uint64_t rate);

/* ---- changes: of a filter opened with XDP_CUCKOO_CHANGE, else -EROFS ---- */

/*
 * A change: all calls between begin and commit take effect together, in commit. Its pass rules take effect
 * before its drop rules. Other writers, of any process, wait until the change is over. The thread that began
 * it must end it. A change costs mostly its fsync: put everything that you know at one time into one change.
 * -EBUSY: this handle has a change already, or, with XDP_CUCKOO_NO_WAIT, another writer is active.
 *
 * Commit ends the change in any case. If it returns 0, the change is durable (fsync) and active on every
 * interface that runs the filter. If it fails, nothing has changed, with one exception: if the kernel refuses
 * a table after the rules are durable, the next change activates them.
 *
 * -ECANCELED: the change would newly drop packets to or from this host's own addresses, from its default
 * gateways or name servers, or of its SSH session, its BGP sessions or its fleet; now, or after a change that waits
 * for `xdp-cuckoo confirm` is undone. XDP_CUCKOO_FORCE switches this check off. -EINVAL: commit or abort without a change.
 */
int xdp_cuckoo_begin(struct xdp_cuckoo_filter *filter);
int xdp_cuckoo_commit(struct xdp_cuckoo_filter *filter);
int xdp_cuckoo_abort(struct xdp_cuckoo_filter *filter);

/*
 * xdp_cuckoo_add() adds a rule as `xdp-cuckoo add` does. 0: the rule is new; or it had a timeout, and now has
 * the new one; or only lists had it, and it is added by hand too. -EEXIST: it was already added by hand,
 * permanently; -EINVAL; -E2BIG: too many kinds of rule (fields and prefix lengths). xdp_cuckoo_del() deletes
 * a rule; timeout and comment are ignored. 0; -ENOENT: there is no such rule; -EINVAL.
 *
 * Outside a change, each is a change of its own and can return the errors of xdp_cuckoo_commit(). Within a
 * change, any error except -EEXIST, -ENOENT, -EINVAL and -EUSERS is final: all later calls and the commit fail
 * with it.
 */
int xdp_cuckoo_add(struct xdp_cuckoo_filter *filter, const struct xdp_cuckoo_rule *rule);
int xdp_cuckoo_del(struct xdp_cuckoo_filter *filter, const struct xdp_cuckoo_rule *rule);

/*
 * Deletes the rules that have ended. They block nothing, but they use memory. Once a minute is enough; the
 * systemd timer of `xdp-cuckoo expire` may already do it. *count is their number; `count` may be NULL. Errors
 * as xdp_cuckoo_del().
 */
int xdp_cuckoo_expire(struct xdp_cuckoo_filter *filter, uint64_t *count);

/* In monitor-only mode packets are counted as dropped, but pass. This is a change of its own; the store keeps it. */
int xdp_cuckoo_set_monitor_only(struct xdp_cuckoo_filter *filter, bool is_on);

/*
 * ---- lists: rules that belong to whoever feeds them ----
 *
 * A rule may belong to several lists, and to the operator, who adds rules by hand. It stays until nobody wants
 * it any more. If all who want it gave it a timeout, it ends at the latest of their ends.
 *
 * `list` is the name of a list: 1 to 31 letters, digits, '.', '_' or '-', starting with none of '.' and '-'.
 * XDP_CUCKOO_BY_HAND means the rules that were added by hand, by the tool or by xdp_cuckoo_add(). All these
 * functions return -EINVAL if the name is not valid. Those that change a list are steps of a change, as
 * xdp_cuckoo_add() is, and have the same errors.
 */

#define XDP_CUCKOO_BY_HAND ""
#define XDP_CUCKOO_NAME_BYTES 32    /* of a list or a filter, with the final 0 */
#define XDP_CUCKOO_SOURCE_BYTES 256 /* with the final 0 */

struct xdp_cuckoo_list {
	char name[XDP_CUCKOO_NAME_BYTES];
	char source[XDP_CUCKOO_SOURCE_BYTES]; /* where the rules come from: a file, or what a program said */
	uint64_t rules;                       /* of the list, alone or with others */
	int64_t replaced_s;                   /* when it was last replaced: seconds since 1970; 0: never */
	uint8_t reserved[8];
};

/* How xdp_cuckoo_list_replace() changed the rules. */
struct xdp_cuckoo_replaced {
	uint64_t added;   /* new rules */
	uint64_t updated; /* existed, but not for this list, or with another timeout or comment */
	uint64_t kept;    /* as they were */
	uint64_t removed; /* nobody wants them any more */
	uint64_t left;    /* the list gave them up, but others want them */
};

/*
 * xdp_cuckoo_list_add() adds a rule to a list, and makes the list if there is none of that name. 0: the rule is
 * new, or has a new timeout, or is now in this list too. -EEXIST: the list has it already, permanently; -E2BIG:
 * too many kinds of rule; -EUSERS: there are 63 other lists.
 *
 * xdp_cuckoo_list_del() gives a rule up for a list. The rule is deleted if nobody else wants it. 0; -ENOENT: the
 * list does not have it, or there is no such list.
 */
int xdp_cuckoo_list_add(struct xdp_cuckoo_filter *filter, const char *list, const struct xdp_cuckoo_rule *rule);
int xdp_cuckoo_list_del(struct xdp_cuckoo_filter *filter, const char *list, const struct xdp_cuckoo_rule *rule);

/*
 * Makes the list consist of these `count` rules; 0 leaves it empty. `rules` may have any order; of rules that
 * differ only in timeout and comment the last counts. Outside a change, all of it takes effect in one moment,
 * if there is memory for a second table. Makes the list if there is none. `source` is what `xdp-cuckoo lists`
 * shows as its source; NULL: "libxdp-cuckoo". *replaced is what changed, and may be NULL.
 *
 * A timeout counts from now. So a timed rule that is already there counts as updated.
 *
 * -EINVAL: a rule is not valid, and nothing has changed. The reason has its number, counted from 0. -E2BIG,
 * -EUSERS: as above.
 */
int xdp_cuckoo_list_replace(struct xdp_cuckoo_filter *filter, const char *list, const char *source,
			    const struct xdp_cuckoo_rule *rules, size_t count, struct xdp_cuckoo_replaced *replaced);

/*
 * Deletes a list: gives up all its rules, as xdp_cuckoo_list_del(), and forgets its name. -ENOENT: there is no
 * such list; -EINVAL, also for XDP_CUCKOO_BY_HAND.
 */
int xdp_cuckoo_list_delete(struct xdp_cuckoo_filter *filter, const char *list);

/* Fills `lists` with at most `room` lists. *count is the number that exist, at most 63. */
int xdp_cuckoo_lists(struct xdp_cuckoo_filter *filter, struct xdp_cuckoo_list *lists, size_t room, size_t *count);

/* ---- questions: within a change they see its rules so far ---- */

enum xdp_cuckoo_answer {
	XDP_CUCKOO_NOT_BLOCKED,
	XDP_CUCKOO_BLOCKED,           /* by a drop rule */
	XDP_CUCKOO_PASSED,            /* by a pass rule */
	XDP_CUCKOO_BLOCKED_BY_POLICY, /* no rule passes them: `xdp-cuckoo policy no-rule drop`, or later-fragment */
	XDP_CUCKOO_MONITORED,         /* they pass, but a monitor rule counts them */
	XDP_CUCKOO_LIMITED,           /* they pass up to the rate of a rule */
	XDP_CUCKOO_PARTLY,            /* they are blocked, but a pass rule lets a part of them through */
};

/*
 * Whether the stored rules and policies drop packets of these flows. A rule counts if it matches all of them.
 * *rule is the rule that decides, or that would but for a policy, or all 0; `rule` may be NULL. 0; -EINVAL.
 */
int xdp_cuckoo_test(struct xdp_cuckoo_filter *filter, const struct xdp_cuckoo_rule *flow,
		    enum xdp_cuckoo_answer *answer, struct xdp_cuckoo_rule *rule);

/*
 * Calls `visit` for every rule that has not ended. timeout_ms is the time left. Stops if `visit` returns
 * non-zero. Returns that, or 0, or an error. `visit` must not use the filter, nor keep the pointer.
 */
int xdp_cuckoo_each(struct xdp_cuckoo_filter *filter, int (*visit)(const struct xdp_cuckoo_rule *rule, void *context),
		    void *context);

/* The same for the rules of one list; `list` NULL: all rules. -ENOENT: there is no such list; -EINVAL. */
int xdp_cuckoo_list_each(struct xdp_cuckoo_filter *filter, const char *list,
			 int (*visit)(const struct xdp_cuckoo_rule *rule, void *context), void *context);

struct xdp_cuckoo_info {
	uint64_t rules;             /* stored, including rules that have ended but are not deleted yet */
	uint64_t timed_rules;       /* those with a timeout */
	uint64_t interfaces;        /* in this network namespace that run the filter */
	uint64_t slots, used_slots; /* of its table; 0: it does not run */
	bool is_monitor_only;       /* only counts what it would drop */
	bool is_panic;              /* `xdp-cuckoo panic`: everything passes */
	uint8_t reserved[22];
};

/* Facts about the store and the running filter. Needs the privileges to inspect the kernel. */
int xdp_cuckoo_get_info(struct xdp_cuckoo_filter *filter, struct xdp_cuckoo_info *info);

/* The packets of one outcome since the filter was loaded, and their bytes including the Ethernet header. */
struct xdp_cuckoo_count {
	const char *outcome; /* "drop-rule", ...: see `xdp-cuckoo help stats`. Valid until exit */
	uint64_t passed_packets, passed_bytes;
	uint64_t dropped_packets, dropped_bytes;
	uint64_t would_drop_packets, would_drop_bytes; /* passed, because of monitor-only or a monitor rule */
};

/*
 * Fills `counts` with the sums over all interfaces and CPUs; the last one is "all". At most `room` are
 * filled. *count is the number that exist, now 14. -ENODEV: the filter runs on no interface.
 */
int xdp_cuckoo_counts(struct xdp_cuckoo_filter *filter, struct xdp_cuckoo_count *counts, size_t room, size_t *count);

/*
 * The packets that matched a rule, and their bytes including the Ethernet header, since the rule was added or
 * `xdp-cuckoo stats --reset`. If prefixes of rules overlap, a packet may count for several rules. Above about
 * 64,000 packets per second on a CPU the counts are estimates, which are right on average.
 */
struct xdp_cuckoo_matched {
	uint64_t packets, bytes;
};

/*
 * Counts by rule, summed over all interfaces and CPUs. xdp_cuckoo_rule_counts() fills *matched for one stored
 * rule; timeout and comment are ignored. xdp_cuckoo_each_counted() is xdp_cuckoo_list_each() with counts. Each
 * call looks for the running filter first, so for many rules use one visit. -ENOENT: there is no such rule or
 * list; -ENODEV: the filter runs on no interface; -EOPNOTSUPP: its table does not count by rule, see
 * `xdp-cuckoo help load`; -EINVAL.
 */
int xdp_cuckoo_rule_counts(struct xdp_cuckoo_filter *filter, const struct xdp_cuckoo_rule *rule,
			   struct xdp_cuckoo_matched *matched);
int xdp_cuckoo_each_counted(struct xdp_cuckoo_filter *filter, const char *list,
			    int (*visit)(const struct xdp_cuckoo_rule *rule, const struct xdp_cuckoo_matched *matched,
					 void *context),
			    void *context);

/*
 * ---- samples of dropped packets ----
 *
 * A filter has one listener at a time: this handle, another program, or `xdp-cuckoo monitor`. While there is
 * one, each dropped packet costs some nanoseconds more. A handle opened with XDP_CUCKOO_READ will do.
 */

enum xdp_cuckoo_cause {
	XDP_CUCKOO_CAUSE_RULE,         /* a stored rule */
	XDP_CUCKOO_CAUSE_UNKNOWN_RULE, /* a rule that has gone, or a false positive of a compact table */
	XDP_CUCKOO_CAUSE_POLICY,       /* the policy for the outcome */
};

struct xdp_cuckoo_sample {
	int64_t time_ns;       /* when the packet came: nanoseconds since 1970 */
	const char *outcome;   /* as in struct xdp_cuckoo_count. Valid until exit */
	const uint8_t *frame;  /* the packet from its Ethernet header on. Valid during the visit */
	uint32_t frame_bytes;  /* how many bytes of it `frame` has, at most 256 */
	uint32_t packet_bytes; /* its whole length, including the Ethernet header */
	uint32_t interface;    /* the index of the interface that received it, or sent it */
	uint8_t cause;         /* enum xdp_cuckoo_cause */
	bool is_dropped;       /* false: it passed, because of monitor-only mode or a monitor rule */
	bool has_flow;         /* it has IP addresses */
	bool is_sent;          /* this host sent it; then `flow` has source and destination exchanged, as rules have */
	struct xdp_cuckoo_rule flow; /* if has_flow: the flow, as a rule that matches only it; else all 0 */
	struct xdp_cuckoo_rule rule; /* if the cause is a rule: that rule, as stored now; else all 0 */
};

/* What happened to the packets that were dropped, or would be, since xdp_cuckoo_samples_open(). */
struct xdp_cuckoo_sampled {
	uint64_t seen;    /* all */
	uint64_t limited; /* not sampled, because they were beyond the rate */
	uint64_t lost;    /* not sampled, because the ring was full: it was not read in time */
};

/*
 * Begins to sample packets that are dropped, or would be. Of `every` such packets of a CPU one is sampled (0:
 * each), and at most `rate` per second on each CPU (0: 1000; at most 1,000,000). *fd is for poll(), select() or
 * epoll, and for nothing else. It becomes readable when there are samples, and once a second. Then call
 * xdp_cuckoo_samples_read(). If 5 seconds pass without that, sampling stops until the next call. It covers all
 * interfaces and tables of the filter, also those that come later.
 *
 * -ENODEV: the filter runs on no interface; -EBUSY: there is another listener, or this handle samples already;
 * -EINVAL: the rate is too high. If another listener has died, this waits until its lease ends, at most 5
 * seconds.
 */
int xdp_cuckoo_samples_open(struct xdp_cuckoo_filter *filter, uint32_t every, uint32_t rate, int *fd);

/*
 * Calls `visit` for the samples that have come, at most some thousands, and does not wait for more. Stops if
 * `visit` returns non-zero, and returns that; the rest stays for the next call. The rule of a sample is looked
 * up among those stored now. `visit` must not use the filter, nor keep the pointers: collect what to block, and
 * add it afterwards. 0; -EINVAL: this handle does not sample; -EBUSY: another listener has taken over, because
 * this one was not read for 5 seconds. Later calls try to get the samples back.
 */
int xdp_cuckoo_samples_read(struct xdp_cuckoo_filter *filter,
			    int (*visit)(const struct xdp_cuckoo_sample *sample, void *context), void *context);

/* Fills *sampled. -EINVAL: this handle does not sample. */
int xdp_cuckoo_samples_counts(struct xdp_cuckoo_filter *filter, struct xdp_cuckoo_sampled *sampled);

/* Ends sampling, and closes the descriptor. xdp_cuckoo_close() does it too. -EINVAL: this handle does not sample. */
int xdp_cuckoo_samples_close(struct xdp_cuckoo_filter *filter);

/*
 * ---- interfaces: of a filter opened with XDP_CUCKOO_CHANGE, else -EROFS; not within a change: -EBUSY ----
 */

enum xdp_cuckoo_mode {
	XDP_CUCKOO_AUTO,   /* native if the driver can, else generic */
	XDP_CUCKOO_NATIVE, /* in the driver */
	XDP_CUCKOO_SKB,    /* generic: works everywhere, slower */
};

/*
 * Runs the filter, with all stored rules, on an interface. It stays after this process ends. 0, also if it
 * already runs there; -ENODEV: there is no such interface; -EBUSY: the interface runs another XDP program;
 * -EOPNOTSUPP: not in this mode; -ENOSYS: the kernel lacks what filters need: bpf_loop() or XDP for frames in several buffers;
 * -EINVAL: the mode does not exist, or packets of the interface start
 * neither with an Ethernet header nor with IP; -ECANCELED: a stored rule would lock this host out, see xdp_cuckoo_commit().
 */
int xdp_cuckoo_load(struct xdp_cuckoo_filter *filter, const char *interface, enum xdp_cuckoo_mode mode);

/*
 * As xdp_cuckoo_load(), and also filters the packets that this host sends there: `xdp-cuckoo load --outgoing`. 0, also if it
 * did so, or filtered only received packets. After an error nothing has changed.
 */
int xdp_cuckoo_load_outgoing(struct xdp_cuckoo_filter *filter, const char *interface, enum xdp_cuckoo_mode mode);

/* Removes the filter from an interface; NULL: from all. The rules stay. -ENODEV: it does not run there. */
int xdp_cuckoo_unload(struct xdp_cuckoo_filter *filter, const char *interface);

#ifdef __cplusplus
}
#endif

#endif
