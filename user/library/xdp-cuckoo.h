/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * libxdp-cuckoo: for programs that decide by themselves what to block, say a detector of attacks. Rules that they add
 * here are the ones that the tool xdp-cuckoo lists, in the same store and the same running filter; what a program does
 * not need daily (panic, policies, lists, compact tables) is the tool's. Link with `pkg-config --libs xdp-cuckoo`.
 *
 * Results. Functions that can fail return 0, or an errno value less than 0; xdp_cuckoo_error() then has one line that
 * says why. The words are the tool's: where they advise --force, that is XDP_CUCKOO_FORCE. Beside those named at a
 * function, all that use a filter return:
 *   -EPERM, -EACCES  this process may not: see below
 *   -ENOENT          nothing was ever stored under that name
 *   -EBADMSG, -EPROTO   store or running filter are damaged, or of another version
 *   -ENOSPC, -ENOMEM    no room: on the disk, in a table that cannot grow, in memory
 *   -EBUSY           another thread of this process uses the filter's change, or a visit of this filter is under way
 *   -EDEADLK         this thread has a change or a visit of another handle of the same name under way
 *   -EBADF           it was not opened
 * and other ones that the system gave.
 *
 * Privileges are those of the process: root, or CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON and CAP_SYS_ADMIN; without
 * CAP_SYS_ADMIN a directory in a BPF file system, /sys/fs/bpf/xdp-cuckoo, that is this user's. A store belongs to the
 * user that made it, and to root. To read rules, reading the store is enough. Filters are those of the network namespace
 * of the calling thread.
 *
 * Threads may each use handles of their own; one handle is used by one thread at a time. In one process only one handle
 * has a store open at a time: others wait, also to read, until a change of it, or a visit, is over. Keep both short. No
 * handle survives fork() in the child.
 *
 * Memory. What is given is the caller's and is not kept; what is returned through pointers is copied there. Nothing is to
 * be freed but a handle, by xdp_cuckoo_close().
 *
 * What it does not do: print, end the process, handle signals, start threads, change privileges, umask or working
 * directory, leave descriptors open on exec (one that LMDB opens becomes so a moment later). The store is read as
 * memory, as LMDB does it: a disk that fails, or somebody who cuts the file short, means SIGBUS. A change that needs a
 * larger file than RLIMIT_FSIZE allows means SIGXFSZ, which ends a process that does not ignore it; else -EFBIG.
 */
#ifndef XDP_CUCKOO_H
#define XDP_CUCKOO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of the library, "0.1.0", say. Always there. */
const char *xdp_cuckoo_version(void);

/* ---- a filter ---- */

/* A handle. It names a filter, which may run or not, on any number of interfaces. */
struct xdp_cuckoo_filter;

enum xdp_cuckoo_flag {
	XDP_CUCKOO_READ = 0,         /* look only */
	XDP_CUCKOO_CHANGE = 1 << 0,  /* and change: makes the store where there is none */
	XDP_CUCKOO_NO_WAIT = 1 << 1, /* where somebody else is changing it: -EBUSY at once, instead of waiting */
	/* Also what locks this host out: see xdp_cuckoo_commit(). */
	XDP_CUCKOO_FORCE = 1 << 2,
};

/*
 * Opens the filter `name` (NULL: "default"), of which the rules are kept in the directory `state` (NULL:
 * /var/lib/xdp-cuckoo); `flags`: enum xdp_cuckoo_flag bits. Nothing stays locked or open between calls, but by
 * xdp_cuckoo_begin(): tool and other programs go on working beside a handle, however long it is kept.
 *
 * With XDP_CUCKOO_CHANGE it does at once what the first change would: makes the store; adopts a filter that somebody
 * else loaded; repairs one whose writer died. On failure *filter is still to be closed, and good for
 * xdp_cuckoo_error() until then; but for -ENOMEM, where it may be NULL.
 *
 * -EINVAL: no such name or flags, or a descriptor of 0, 1 and 2 is closed; -ENAMETOOLONG; with XDP_CUCKOO_NO_WAIT
 * -EBUSY. Any thread.
 */
int xdp_cuckoo_open(const char *name, const char *state, unsigned int flags, struct xdp_cuckoo_filter **filter);

/* Takes back a change that this thread has begun and not committed. NULL is none. */
void xdp_cuckoo_close(struct xdp_cuckoo_filter *filter);

/* Why the last call that used the filter failed; "" where it did not. Stays until the next one. */
const char *xdp_cuckoo_error(const struct xdp_cuckoo_filter *filter);

/* ---- rules ---- */

#define XDP_CUCKOO_COMMENT_BYTES 256 /* with the final 0 */
#define XDP_CUCKOO_TEXT_BYTES 544    /* of the longest rule, with the final 0 */

enum xdp_cuckoo_action {
	XDP_CUCKOO_DROP,
	XDP_CUCKOO_PASS, /* wins over any drop */
};

enum xdp_cuckoo_field {
	XDP_CUCKOO_PROTO = 1 << 0,
	XDP_CUCKOO_SPORT = 1 << 1,
	XDP_CUCKOO_DPORT = 1 << 2,
};

/*
 * A rule, or the flows that are asked about. What it does not name matches anything; one of address, protocol and port
 * must be named. All that is not used must be 0, the bits of an address behind its prefix too.
 */
struct xdp_cuckoo_rule {
	uint16_t family;            /* AF_INET, AF_INET6; 0: both, without addresses */
	uint8_t action;             /* enum xdp_cuckoo_action; ignored where it is flows */
	uint8_t fields;             /* enum xdp_cuckoo_field bits: which of the next are named */
	uint8_t proto;              /* IPPROTO_TCP, ..., at most 254 */
	uint8_t src_bits, dst_bits; /* of the prefix: 32 or 128 is one address, 0 is any */
	uint8_t reserved;
	uint16_t sport, dport;    /* in host byte order; of ICMP and ICMPv6: type and code */
	uint8_t src[16], dst[16]; /* in network byte order, as struct in6_addr; IPv4: the first four */
	uint8_t reserved2[4];
	int64_t timeout_ms;                     /* until it ends by itself, milliseconds, at most 68 years; 0: never */
	char comment[XDP_CUCKOO_COMMENT_BYTES]; /* UTF-8, without quotes and control characters */
};

/*
 * Reads a rule, as the tool does (xdp-cuckoo-rules(5)): "192.0.2.1 timeout 10m", "proto udp dst 198.51.100.7 dport 53".
 * 0; -EINVAL. `filter` is for the reason only, and may be NULL. Any thread.
 */
int xdp_cuckoo_parse(struct xdp_cuckoo_filter *filter, const char *text, struct xdp_cuckoo_rule *rule);

/* Writes the same form, cut to `size` bytes with the final 0. 0; -EINVAL: it is no rule, and `text` is "". Any thread. */
int xdp_cuckoo_format(const struct xdp_cuckoo_rule *rule, char *text, size_t size);

/* ---- changes: of a filter opened with XDP_CUCKOO_CHANGE, else -EROFS ---- */

/*
 * A change: what is between begin and commit happens together, in commit: until then packets meet what was there
 * before. Its pass rules are in force before its drop rules are. From begin to the end of it other writers wait, of
 * any process; a thread begins and ends it itself. Most of what a change costs is its fsync: what is known at one
 * time belongs into one. -EBUSY: one is under way already, or with XDP_CUCKOO_NO_WAIT somebody else's.
 *
 * When commit returns 0, the change is durable (fsync) and active on every interface that runs the filter. When it
 * fails, nothing has changed; only where the kernel refuses a table after the rules have become durable, it is the next
 * change that brings them into force. -ECANCELED: packets to or from this host's own addresses, from its default gateways,
 * name servers or its SSH session would be dropped that were not before, now or once another change that waits for
 * `xdp-cuckoo confirm` is undone, and XDP_CUCKOO_FORCE is not given. Either way the change is over. Commit and abort
 * without a change: -EINVAL.
 */
int xdp_cuckoo_begin(struct xdp_cuckoo_filter *filter);
int xdp_cuckoo_commit(struct xdp_cuckoo_filter *filter);
int xdp_cuckoo_abort(struct xdp_cuckoo_filter *filter);

/*
 * Adds a rule, as by hand. 0, also where it is there and ends by itself: now it ends when this one does, or where lists
 * have it: it is by hand too; -EEXIST: it is there by hand for good, and stays so; -EINVAL; -E2BIG: too many kinds of rule (fields and prefix lengths).
 * Deletes one; timeout and comment do not matter. 0; -ENOENT: there is none; -EINVAL.
 * Without xdp_cuckoo_begin() each is a change of its own, with what that may return. Within one, errors but -EEXIST,
 * -ENOENT and -EINVAL end it: the rest of it, and the commit, fail the same way.
 */
int xdp_cuckoo_add(struct xdp_cuckoo_filter *filter, const struct xdp_cuckoo_rule *rule);
int xdp_cuckoo_del(struct xdp_cuckoo_filter *filter, const struct xdp_cuckoo_rule *rule);

/*
 * Deletes the rules that have ended. They block nothing any more, but take room until then, as `xdp-cuckoo expire` or
 * its systemd timer may do already: once a minute is enough. *count may be NULL. As xdp_cuckoo_del().
 */
int xdp_cuckoo_expire(struct xdp_cuckoo_filter *filter, uint64_t *count);

/* Whether packets that rules and policies drop are passed, and only counted. A change of its own; kept in the store. */
int xdp_cuckoo_set_monitor_only(struct xdp_cuckoo_filter *filter, bool is_on);

/* ---- questions: within a change they see what it has made so far ---- */

enum xdp_cuckoo_answer {
	XDP_CUCKOO_NOT_BLOCKED,
	XDP_CUCKOO_BLOCKED,           /* by a drop rule */
	XDP_CUCKOO_PASSED,            /* by a pass rule */
	XDP_CUCKOO_BLOCKED_BY_POLICY, /* no rule passes them: `xdp-cuckoo policy no-rule drop` */
};

/*
 * Whether packets of these flows are dropped, by the stored rules: a rule decides if it matches all of them. *rule is the
 * one that decides, or all 0; it may be NULL. 0; -EINVAL.
 */
int xdp_cuckoo_test(struct xdp_cuckoo_filter *filter, const struct xdp_cuckoo_rule *flow,
		    enum xdp_cuckoo_answer *answer, struct xdp_cuckoo_rule *rule);

/*
 * Calls `visit` for every rule that has not ended, with what is left of its timeout, until it returns other than 0;
 * returns that, or 0, or an error. It must not use the filter; the rule is good until it returns.
 */
int xdp_cuckoo_each(struct xdp_cuckoo_filter *filter, int (*visit)(const struct xdp_cuckoo_rule *rule, void *context),
		    void *context);

struct xdp_cuckoo_info {
	uint64_t rules;             /* stored, those included that have ended and were not deleted yet */
	uint64_t timed_rules;       /* of them: those with a timeout */
	uint64_t interfaces;        /* of this network namespace that run the filter */
	uint64_t slots, used_slots; /* of its table; 0 where it does not run */
	bool is_monitor_only;       /* drops nothing, and counts what it would drop */
	bool is_panic;              /* the operator lets everything pass */
	uint8_t reserved[22];
};

/* What there is and what runs. It needs the privileges to look into the kernel. */
int xdp_cuckoo_info(struct xdp_cuckoo_filter *filter, struct xdp_cuckoo_info *info);

/* Packets of one outcome, and their bytes from the Ethernet header on, since the filter was loaded. */
struct xdp_cuckoo_count {
	const char *outcome; /* "drop rule", ...: see `xdp-cuckoo help stats`. Stays for good */
	uint64_t passed_packets, passed_bytes;
	uint64_t dropped_packets, dropped_bytes;
	uint64_t would_drop_packets, would_drop_bytes; /* passed, because of monitor-only */
};

/*
 * Fills `counts`, which has room for so many, with the sum over all interfaces and CPUs, and "all" last; *count is how
 * many there are, of which no more are filled than there is room for: 13 now. -ENODEV: no interface runs it.
 */
int xdp_cuckoo_counts(struct xdp_cuckoo_filter *filter, struct xdp_cuckoo_count *counts, size_t room, size_t *count);

/* ---- interfaces: of a filter opened with XDP_CUCKOO_CHANGE, else -EROFS; not within a change: -EBUSY ---- */

enum xdp_cuckoo_mode {
	XDP_CUCKOO_AUTO,   /* in the driver where it can, else generic */
	XDP_CUCKOO_NATIVE, /* in the driver */
	XDP_CUCKOO_SKB,    /* generic: works everywhere, slower */
};

/*
 * Runs the filter, with all stored rules, on an interface; it stays when this process ends. 0, also where it runs there;
 * -ENODEV: no such interface; -EBUSY: it runs another XDP program; -EOPNOTSUPP: not in this mode; -EINVAL: no such mode,
 * or the interface has no Ethernet header (tun, WireGuard, PPP); -ECANCELED as xdp_cuckoo_commit(), by what the stored
 * rules block.
 */
int xdp_cuckoo_load(struct xdp_cuckoo_filter *filter, const char *interface, enum xdp_cuckoo_mode mode);

/* Takes it off an interface, or with NULL off all. The rules stay. -ENODEV: it does not run there. */
int xdp_cuckoo_unload(struct xdp_cuckoo_filter *filter, const char *interface);

#ifdef __cplusplus
}
#endif

#endif
