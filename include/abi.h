/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The maps that the BPF programs and the tool share: names, layouts, magic and version. Both sides compile this file,
 * and nothing else defines the layout. Shapes, hints and shortcuts are in shape.h, samples and the lease of a listener
 * in sample.h.
 *
 * A config of all zeroes means "not set up": the programs pass every packet and count it as OUTCOME_NOT_SET_UP.
 *
 * The words of this project:
 *   shape        Which fields a rule has, and how long its prefixes are. "src 192.0.2.0/24 dport 53" and "src
 *                10.0.0.0/24 dport 80" have the same shape. One look-up covers all rules of one shape.
 *   key          The fields of a flow that a shape compares, packed into words, and a number for the shape. A
 *                rule becomes one or more keys; a packet becomes one key for each shape.
 *   fingerprint  A few bits of a key's hash: 16, unless the table has another format.
 *   bucket       Four fingerprints that are read at once. The hash of a key names two buckets (see bucket.h).
 *   slot         The place of one fingerprint in a bucket. Slots of a table have numbers: bucket *
 *                BUCKET_SLOTS + i.
 *   entry        A key in a table: its fingerprint in a slot, and in an exact table the record of that slot.
 *   record       One word for each slot of an exact table. It says which key the entry is for and when it
 *                ends.
 *   hint         One byte for a range of source addresses. It says which shapes can match there, so that a
 *                packet skips the other look-ups.
 *   generation   A number that each commit to the store increments. The config has a copy. If they differ,
 *                the table does not hold what the store holds.
 *   tick         The unit of time in the kernel: the low 32 bits of jiffies64 >> ABI_TICK_SHIFT. The number
 *                wraps after 8.7 years of uptime at 1000 jiffies per second.
 *   epoch        The tick from which a table counts the ends of its entries.
 *   addresses    The second part of a large table. It has the drop rules that name an IPv4 source and nothing else, and
 *                never end. Its entries need no records: see struct abi_addresses.
 */
#ifndef XDP_CUCKOO_ABI_H
#define XDP_CUCKOO_ABI_H

#include <linux/types.h>

#include "bucket.h"
#include "flow.h"
#include "hash.h"
#include "permute.h"
#include "rate.h"
#include "sample.h"
#include "shape.h"
#include "verifier.h"

#define ABI_MAGIC 0x6b637563 /* "cuck" */
#define ABI_VERSION 17
#define ABI_VERSION_OLDEST 3 /* the oldest version whose filter this one can replace: see struct abi_config */

/* Map names. The kernel keeps 15 characters. */
#define ABI_CONFIG_MAP "xc_config"
#define ABI_BUCKETS_MAP "xc_buckets"
#define ABI_RECORDS_MAP "xc_records"
#define ABI_COUNTERS_MAP "xc_counters"
#define ABI_HINTS_MAP "xc_hints"
#define ABI_COUNTS_MAP "xc_counts"
#define ABI_RATES_MAP "xc_rates"
#define ABI_RATE_CREDITS_MAP "xc_rate_credits"
#define ABI_SAMPLES_MAP "xc_samples"
#define ABI_SAMPLING_MAP "xc_sampling"

#define ABI_SLOTS_MIN_LOG2 10 /* of the table */
#define ABI_SLOTS_MAX_LOG2 30
#define ABI_SLOTS_DEFAULT_LOG2 20 /* for other loaders of the object */
#ifndef ABI_SEQUENCE_TRIES
#define ABI_SEQUENCE_TRIES 16 /* of one look-up while entries move; tests define fewer */
#endif
#define ABI_TICK_SHIFT 6
#define ABI_NAME_BYTES 32 /* of a filter's name, with the final 0 */

/* What happened to a packet. The first six are results of the parser, for packets that no rule matches. */
enum abi_outcome {
	OUTCOME_NO_RULE,          /* everything was parsed */
	OUTCOME_LATER_FRAGMENT,   /* has addresses and a protocol, but no ports */
	OUTCOME_NOT_IP,           /* neither IPv4 nor IPv6, after any VLAN tags and PPPoE */
	OUTCOME_TRUNCATED,        /* the frame, or the packet by IP's length, ends inside a header */
	OUTCOME_MALFORMED,        /* a header contradicts itself */
	OUTCOME_TOO_MANY_HEADERS, /* more than parse_packet.h reads, or the first fragment lacks some or TCP flags */
	OUTCOME_UNSETTLED,        /* entries moved during every try of a look-up */
	OUTCOME_POLICIES,
	OUTCOME_DROP_RULE = OUTCOME_POLICIES,
	OUTCOME_PASS_RULE,
	OUTCOME_MONITOR_RULE, /* a drop rule on trial: the packet passes and is counted as "would drop" */
	OUTCOME_NOT_SET_UP,
	OUTCOME_PANIC,       /* the operator makes everything pass */
	OUTCOME_UNCONFIRMED, /* nobody confirmed a change in time: everything passes */
	OUTCOMES,
};

/* What the program did with a packet. A policy is one of the first two. */
enum abi_verdict {
	VERDICT_PASS,
	VERDICT_DROP,
	VERDICT_WOULD_DROP, /* passed, but only because of monitor-only mode or of a monitor rule */
	VERDICTS,
};

/* Bits of abi_config.run. The common case is ABI_RUN_SET_UP alone, which costs one comparison. */
enum abi_run {
	ABI_RUN_SET_UP = 1 << 0,      /* the table is whole: look packets up */
	ABI_RUN_MONITOR = 1 << 1,     /* drop nothing, but count what would be dropped */
	ABI_RUN_PANIC = 1 << 2,       /* pass every packet without parsing it */
	ABI_RUN_UNCONFIRMED = 1 << 3, /* pass everything from the tick confirm_by on */
	/* For the tool: this filter replaced another filter, and no command has started or ended a panic on it. */
	ABI_RUN_REPLACING = 1 << 4,
	/* For the tool: the fleet has set the panic here, even if an operator has ended it (filter/panic.c). */
	ABI_RUN_FLEET = 1 << 5,
};

/*
 * Whether the processor keeps loads in order. If not, look-ups keep them in order by address dependencies: see
 * bpf/lookup_key.h. Only the Makefile knows for which processor the BPF program is built: it defines __TARGET_ARCH_...
 */
#if defined(__TARGET_ARCH_x86) || defined(__TARGET_ARCH_s390x) || defined(__x86_64__) || defined(__s390x__)
#define ABI_LOADS_IN_ORDER 1
#else
#define ABI_LOADS_IN_ORDER 0
#endif

/*
 * What the program does: constants in its read-only data. The tool sets them before it loads the program, and the
 * verifier removes all other code. The defaults are 16 bits, exact, counting.
 */
struct abi_options {
	__u8 format;     /* enum bucket_format */
	__u8 is_exact;   /* each slot has a record; else only fingerprints decide. BUCKET_16 only */
	__u8 has_counts; /* packets are counted by rule; exact only */
	__u8 is_alone;   /* for the tool: the maps have no room for a second table */
	/* For the tool: look-ups order their loads by address dependencies. ABI_LOADS_IN_ORDER decides at build time. */
	__u8 orders_loads;
	__u8 has_addresses; /* the tables have a part for addresses; exact only */
	__u8 reserved[2];
};

/*
 * A record. It is one word, so that a reader sees all of it or nothing. The upper bits are more of the key's hash: see
 * hash_tag(). The lower bits are the end of the entry, in ticks since the table's epoch. From its end on, an entry
 * matches nothing. End 0 means never, or too late for these bits: then the tool deletes the entry in time.
 */
#define ABI_END_BITS 28 /* 2.2 years at 250 jiffies per second */
#define ABI_END_MAX ((1U << ABI_END_BITS) - 1)

FLOW_INLINE __u64 abi_record(__u64 tag, __u32 end)
{
	return tag | end;
}

FLOW_INLINE __u64 abi_record_tag(__u64 record)
{
	return record & ~(__u64)ABI_END_MAX;
}

FLOW_INLINE __u32 abi_record_end(__u64 record)
{
	return record & ABI_END_MAX;
}

/* If rules are counted, each slot has a counter too. It counts the key in the slot and moves with it. */
struct abi_counter {
	__u64 packets, bytes;
};

/*
 * The per-CPU map of counters. An element is a row of ABI_COUNTERS counters. The counter of an outcome and a verdict
 * has the number outcome * VERDICTS + verdict.
 *
 * Each interface has a row for received packets and, ABI_COUNTER_SENT further on, a row for sent ones. Interfaces whose
 * numbers are equal modulo ABI_COUNTER_SENT share rows. So a new interface needs no set-up. Programs use only the first
 * half of the map. The second half has the values that these rows had at the last reset, and the tool subtracts them.
 * So counters only grow, and a reset never races with a program.
 */
#define ABI_COUNTER_SENT 64 /* a power of two */
#define ABI_COUNTER_ROWS (2 * ABI_COUNTER_SENT)
#define ABI_COUNTER_ELEMENTS (2 * ABI_COUNTER_ROWS)

FLOW_INLINE __u32 abi_counter_row(__u32 ifindex)
{
	return ifindex & (ABI_COUNTER_SENT - 1);
}

/*
 * Rare events, counted in `packets` of row 0 after the outcomes: further tries of look-ups, and fingerprints
 * that matched although the record showed another key.
 */
#define ABI_COUNTER_RETRIES (OUTCOMES * VERDICTS)
#define ABI_COUNTER_STOPPED (ABI_COUNTER_RETRIES + 1)
#define ABI_COUNTERS (ABI_COUNTER_STOPPED + 1)

/*
 * The part of a table for addresses, in the same maps. A slot has no record, because bucket and fingerprint are the
 * prefix: see address_pair(). Its number in the maps, for its counter, is behind those of all records.
 */
struct abi_addresses {
	struct bucket_geometry geometry;
	__u32 first_bucket, first_slot;
	__u32 reciprocal;
	__u32 used; /* slots filled; only the writer uses this */
	__u64 reserved[5];
	struct permute_secret secret;
};

#define ABI_TABLES 2 /* for which the maps have room: see struct abi_table */

/*
 * Everything that a look-up depends on. A filter has two tables in one set of maps. Packets use the active
 * table. If a change must take effect as a whole, the tool fills the other table and then flips `active`. So
 * all interfaces change at once, without a new program. After a grace period the old table may be filled
 * again.
 *
 * Table 0 starts at the first element of each map, table 1 at the middle element. The maps of a large table
 * have no room for a second one. Then such a change needs new maps and new programs.
 */
struct abi_table {
	/* One cache line, which every packet reads. */
	struct bucket_geometry geometry;
	__u32 first_bucket, first_slot; /* of the table, in the maps */
	__u32 epoch;                    /* the tick from which ends count: see abi_record() */
	__u8 hint_shift;                /* see shape.h; 0: the table is not laid out */
	__u8 drops;                     /* the policies that drop, as bits: they change together with the rules */
	__u16 reserved1;
	__u64 sequence; /* incremented when an entry moves, and by some deletes: table/publish_order.h */
	__u64 shapes_active[FLOW_FAMILIES]; /* which of a family's two lists is in use: 0 or 1 */
	__u32 first_hint[FLOW_FAMILIES];    /* in the map */
	__u64 zero;                         /* as in struct abi_config */
	struct hash_secret secret;
	/* Only the writer uses these. */
	__u64 moves;        /* of entries since the table was made */
	__u64 used;         /* slots filled */
	__u64 plan;         /* the number of the plan in the store by which the table was filled: rule/shapes.h */
	__u64 longest_path; /* moves of the worst insert */
	__u32 rates;        /* keys that have a meter */
	/* Programs read this for packets that match a rule with a rate: see struct abi_rates. */
	__u32 first_rate_line;
	__u64 reserved2[7];
	struct abi_addresses addresses;
	struct abi_shape_list shapes[FLOW_FAMILIES][2];
};

/*
 * These members have the same place in every version from ABI_VERSION_OLDEST on, and must keep it: magic,
 * version, geometry, run and its bits, confirm_by, options, store_id, used, name, pending_id. They tell a
 * tool of another version what runs, so that it can replace it. geometry and used repeat the values of the
 * active table.
 */
#define ABI_RECEIVED 8

struct abi_config {
	__u32 magic; /* ABI_MAGIC, by which the tool recognizes the map */
	__u32 version;
	__u64 listener; /* its lease; 0: there is no listener. See sample.h */
	__u64 active;   /* the number of table exchanges; the lowest bit is the table that packets use */
	struct bucket_geometry geometry;
	__u8 reserved1[5];
	__u8 forgot_received;       /* for the tool: an interface lost its place, or got none */
	__u8 keeps_monitor_only;    /* for the tool, as `kept` */
	__u8 asks_conntrack;        /* for the tool: the programs ask connection tracking, see bpf/new_only.h */
	__u64 zero;                 /* always 0: see hide_from_verifier() */
	__u32 run;                  /* enum abi_run bits; ABI_RUN_SET_UP is written last */
	__u32 confirm_by;           /* a tick, with ABI_RUN_UNCONFIRMED */
	struct abi_options options; /* a copy of the program's, for the tool */
	/* For the tool only, in another cache line: programs read the line before for every packet. */
	__u64 store_id[2]; /* of the store that filled the table */
	__u64 generation;  /* of the store when it filled the table, or ABI_GENERATION_DIRTY */
	__u64 used;        /* slots filled */
	char name[ABI_NAME_BYTES];
	__u32 sample_every, sample_credit;
	__u64 settled; /* the last value of `active` after which no packet uses the other table */
	/* The ports that Linux chooses for clients in the network namespace: net.ipv4.ip_local_port_range. */
	__u16 ephemeral_first, ephemeral_last;
	__u32 kept; /* of a load that waits: later loads want these too, so the undo leaves them; see session_keep() */
	__u64 outgoing; /* bit abi_counter_row(): the tool has put the program for sent packets on this interface */
	__u8 received_upper[ABI_RECEIVED]; /* of the same indexes, from the upper bits; 0: an older tool noted the lower */
	__u64 pending_id; /* the store's change that ABI_RUN_UNCONFIRMED belongs to; 0: a load */
	/* Interfaces that the tool has put the program for received packets on: the lower bits of their indexes; 0: none. */
	__u16 received[ABI_RECEIVED];
	struct abi_table table[ABI_TABLES];
};

FLOW_INLINE const struct abi_table *abi_active(const struct abi_config *config)
{
	return &config->table[READ_ONCE(config->active) % ABI_TABLES];
}

/*
 * The list of a family's shapes that is in use. The writer fills the other list, then flips `shapes_active`.
 * It waits for a grace period before it writes to the old list.
 */
FLOW_INLINE const struct abi_shape_list *abi_shapes(const struct abi_table *table, enum flow_family family)
{
	return &table->shapes[family][READ_ONCE(table->shapes_active[family]) & 1];
}

/* The policy for packets of this outcome. */
FLOW_INLINE enum abi_verdict abi_policy(const struct abi_table *table, __u32 outcome)
{
	return READ_ONCE(table->drops) >> outcome & 1 ? VERDICT_DROP : VERDICT_PASS;
}

/* The part that all versions have in common. */
#define ABI_COMMON_BYTES __builtin_offsetof(struct abi_config, table)

#define ABI_GENERATION_DIRTY (~0ULL) /* a writer is at work, or died at work */

_Static_assert(sizeof(struct abi_counter) == 16, "counter layout");
_Static_assert(sizeof(struct abi_options) == 8, "options layout");
_Static_assert(__builtin_offsetof(struct abi_config, listener) == 8, "config layout");
_Static_assert(__builtin_offsetof(struct abi_config, geometry) == 24, "config layout");
_Static_assert(__builtin_offsetof(struct abi_config, run) == 48, "config layout");
_Static_assert(__builtin_offsetof(struct abi_config, options) == 56, "config layout");
_Static_assert(__builtin_offsetof(struct abi_config, store_id) == 64, "config layout");
_Static_assert(__builtin_offsetof(struct abi_config, name) == 96, "config layout");
_Static_assert(__builtin_offsetof(struct abi_config, pending_id) == 168, "config layout");
_Static_assert(__builtin_offsetof(struct abi_config, table) == 192, "config layout");
_Static_assert(__builtin_offsetof(struct abi_table, secret) == 64, "table layout");
_Static_assert(__builtin_offsetof(struct abi_table, shapes) % 64 == 0, "table layout");
_Static_assert(__builtin_offsetof(struct abi_table, addresses) % 64 == 0, "table layout");
_Static_assert(sizeof(struct abi_addresses) == 128, "addresses layout");
_Static_assert(sizeof(struct abi_table) % 64 == 0, "table layout");

#endif
