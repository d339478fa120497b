/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The maps that the BPF program and the tool share: names, layouts, magic and version. Both sides
 * compile this file; nothing else defines the layout. A config of all zeroes means "not set up":
 * the program passes every packet and counts it as OUTCOME_NOT_SET_UP.
 *
 * Time in the kernel is counted in ticks: the low 32 bits of jiffies64 >> ABI_TICK_SHIFT. They last for
 * 8.7 years of uptime at 1000 jiffies a second; what ends later than that, ends by the tool.
 */
#ifndef XDP_CUCKOO_ABI_H
#define XDP_CUCKOO_ABI_H

#include <linux/types.h>

#include "bucket.h"
#include "flow.h"
#include "hash.h"

#define ABI_MAGIC 0x6b637563 /* "cuck" */
#define ABI_VERSION 7
#define ABI_VERSION_OLDEST 3 /* in whose place this one's filter can be put: see struct abi_config */

/* Map names: the kernel keeps 15 characters. */
#define ABI_CONFIG_MAP "xc_config"
#define ABI_BUCKETS_MAP "xc_buckets"
#define ABI_RECORDS_MAP "xc_records"
#define ABI_COUNTERS_MAP "xc_counters"
#define ABI_HINTS_MAP "xc_hints"
#define ABI_COUNTS_MAP "xc_counts"
#define ABI_SAMPLES_MAP "xc_samples"
#define ABI_SAMPLING_MAP "xc_sampling"

#define ABI_SHAPES_MAX 32     /* active shapes of one family */
#define ABI_SLOTS_MIN_LOG2 10 /* of the table */
#define ABI_SLOTS_MAX_LOG2 30
#define ABI_SLOTS_DEFAULT_LOG2 20 /* of an object that another loader loaded */
#ifndef ABI_SEQUENCE_TRIES
#define ABI_SEQUENCE_TRIES 16 /* probes of one key while the writer moves entries; tests want fewer */
#endif
#define ABI_TICK_SHIFT 6
#define ABI_NAME_BYTES 32 /* of a filter, with the final 0 */

/* What became of a packet. The first six are what the parser says of a packet no rule matched. */
enum abi_outcome {
	OUTCOME_NO_RULE,          /* parsed whole, no rule matched */
	OUTCOME_LATER_FRAGMENT,   /* addresses and protocol, no ports */
	OUTCOME_NOT_IP,           /* no IPv4 or IPv6 behind VLAN tags, if any */
	OUTCOME_TRUNCATED,        /* a header runs past the frame or the length IP states */
	OUTCOME_MALFORMED,        /* a header contradicts itself */
	OUTCOME_TOO_MANY_HEADERS, /* more than parse.h reads, or than the first fragment has */
	OUTCOME_UNSETTLED,        /* every try to look a key up met a moving table */
	OUTCOME_POLICIES,
	OUTCOME_DROP_RULE = OUTCOME_POLICIES,
	OUTCOME_PASS_RULE,
	OUTCOME_NOT_SET_UP,
	OUTCOME_PANIC,       /* the operator lets everything pass */
	OUTCOME_UNCONFIRMED, /* the time to confirm is over: everything passes */
	OUTCOMES,
};

/* What was done with a packet, and what a policy says: a policy is one of the first two. */
enum abi_verdict {
	VERDICT_PASS,
	VERDICT_DROP,
	VERDICT_WOULD_DROP, /* passed, and dropped if the filter were not in monitor-only mode */
	VERDICTS,
};

/* Bits of abi_config.run: ABI_RUN_SET_UP alone is the common case, which costs one comparison. */
enum abi_run {
	ABI_RUN_SET_UP = 1 << 0,      /* the table is whole: look packets up */
	ABI_RUN_MONITOR = 1 << 1,     /* drop nothing; count what would be dropped */
	ABI_RUN_PANIC = 1 << 2,       /* pass everything, look at nothing */
	ABI_RUN_UNCONFIRMED = 1 << 3, /* from the tick confirm_by on, pass everything */
	/* For the tool: this table takes another's place, and has been told of no panic, nor of its end, itself. */
	ABI_RUN_HEIR = 1 << 4,
};

/*
 * What the program is compiled to do: constants in its read-only data, set before it is loaded, so
 * that the verifier removes the code of all else. As the object comes: 16 bits, exact, counting.
 */
struct abi_options {
	__u8 format;     /* enum bucket_format */
	__u8 is_exact;   /* each slot has a record; else fingerprints decide alone. BUCKET_16 only */
	__u8 has_counts; /* each rule is counted; exact only */
	__u8 is_alone;   /* the maps have no room for a second table; for the tool */
	__u8 reserved[4];
};

/*
 * Beside each slot of an exact table, at the same number (bucket * BUCKET_SLOTS + slot), stands a record: one word, so
 * that a reader sees all of it or nothing. Its upper bits are those of the key's tag: see hash_tag(). Its lower bits are
 * the key's end, in ticks since the table's epoch: from then on it matches nothing; 0: it never ends.
 */
#define ABI_END_BITS 28 /* 2.2 years at 250 jiffies a second */
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

/*
 * Of what is counted. Where rules are counted, one stands beside each slot, for the key that is there, and moves with it.
 */
struct abi_counter {
	__u64 packets, bytes;
};

/*
 * The per-CPU counters map: an element is a row of ABI_COUNTERS counters, of which that of an outcome and a
 * verdict is outcome * VERDICTS + verdict. A packet is counted in the row of the interface it came by; so
 * programs need no set-up to tell interfaces apart, and interfaces whose numbers are equal modulo the rows share
 * one. Behind these rows stand as many that programs do not know: what a row had when it was last reset, which
 * the tool subtracts. So what is counted only ever grows, and a reset takes nothing from a program under way.
 */
#define ABI_COUNTER_ROWS 64 /* a power of two */
#define ABI_COUNTER_ELEMENTS (2 * ABI_COUNTER_ROWS)

FLOW_INLINE __u32 abi_counter_row(__u32 ifindex)
{
	return ifindex & (ABI_COUNTER_ROWS - 1);
}

/*
 * Behind the outcomes, in `packets` of row 0, what is rare: how often a look-up was tried again because the table
 * moved, and how often a fingerprint matched that was not the key's, as its record told.
 */
#define ABI_COUNTER_RETRIES (OUTCOMES * VERDICTS)
#define ABI_COUNTER_STOPPED (ABI_COUNTER_RETRIES + 1)
#define ABI_COUNTERS (ABI_COUNTER_STOPPED + 1)

/*
 * Hints: for each family and each value of hint_index() a byte, which spares a flow of that index most look-ups.
 *
 * Its lower bits say which shapes to look for: bit i is clear where no key of the shapes whose `hint` is
 * bit i can match such a flow. A bit is set before the first key that needs it is published; one too
 * many only costs a probe. Shapes without a source prefix have ABI_HINT_ALWAYS instead, which is no bit
 * of the byte.
 *
 * The top bit is a shortcut: every flow of the index matches a key in the table that drops and never ends. So only
 * what can pass has to be looked for, and, where rules are counted, such keys. A shortcut is set after its key is in
 * the table, and cleared before it goes or gets an end; one too few only costs probes. Only IPv4 has them, where an
 * index is a /16.
 */
#define ABI_HINT_INDEXES 65536 /* of one family */
#define ABI_HINT_BITS 7
#define ABI_HINT_ALL ((1U << ABI_HINT_BITS) - 1)
#define ABI_HINT_SHORTCUT (1U << ABI_HINT_BITS)
#define ABI_HINT_ALWAYS (2U << ABI_HINT_BITS)
#define ABI_HINTS (FLOW_FAMILIES * ABI_HINT_INDEXES) /* of one table */

#define ABI_TABLES 2 /* that the maps have room for: see struct abi_table */

/*
 * A shape as the packet path uses it: key word i = flow word i & mask[i], and the tag, which holds
 * the whole identity of the shape, goes into the last word. So keys of different shapes never meet.
 */
struct abi_shape {
	__u64 mask[FLOW_KEY_WORDS_MAX];
	__u64 tag;
	__u64 hint;     /* one bit: of the hints, or ABI_HINT_ALWAYS */
	__u64 reserved; /* so that a shape is a line of the cache */
};

/*
 * A tag: bits of its own, and where the shape has no protocol, 255 in the protocol's place; so no rule
 * may name protocol 255, which is reserved. The lengths are one number, src * (bits + 1) + dst, with 32
 * or 128 for bits: in IPv4 that needs 11 bits, in IPv6 15.
 */
#define ABI_TAG_NO_PROTO (0xffULL << FLOW_KEY_PROTO_SHIFT)
#define ABI_TAG_PASS (1ULL << FLOW_KEY_TAG_SHIFT) /* rules of this shape pass */
#define ABI_TAG_SPORT (1ULL << (FLOW_KEY_TAG_SHIFT + 1))
#define ABI_TAG_DPORT (1ULL << (FLOW_KEY_TAG_SHIFT + 2))
#define ABI_TAG_LENGTHS_SHIFT (FLOW_KEY_TAG_SHIFT + 3)

/*
 * In sets of shapes, shape i is bit i; it stands at abi_shape_place(), so that the lowest shape of a set
 * is found by a multiplication: de Bruijn's sequence, see Leiserson, Prokop, Randall, "Using de Bruijn
 * Sequences to Index a 1 in a Computer Word", 1998. Shapes that pass come first.
 */
struct abi_shape_list {
	__u32 count;
	__u32 reads_hints;     /* 0 where it does not pay: every shape is probed */
	__u32 passing;         /* the shapes that pass */
	__u32 behind_shortcut; /* the shapes that are looked for where a hint has a shortcut */
	__u32 all;             /* the shapes, where every one is looked for */
	__u32 reserved[11];
	struct abi_shape shape[ABI_SHAPES_MAX];
	__u32 candidates[ABI_HINT_ALL + 1]; /* the shapes to look for, by a hint's lower bits */
};

/* Of the lowest bit that is set. */
FLOW_INLINE __u32 abi_shape_place(__u32 shapes)
{
	return (shapes & -shapes) * 0x077cb531U >> 27;
}

/*
 * Samples of dropped packets, for a listener: while its lease lasts, one packet in `sample_every` that is
 * dropped, or would be, goes into the ring of samples, at most sample_credit / ABI_SAMPLE_PRICE of them a
 * jiffy on each CPU. The lease is one word: the low half the tick that it ends at, the high half the
 * listener, who chose that number at random. The listener puts the tick off again and again; where it has
 * died, the first packet that is dropped after the tick clears the word.
 */
#define ABI_SAMPLE_BYTES 256           /* of a frame, the first ones */
#define ABI_SAMPLES_BYTES (256 * 1024) /* of the ring */
#define ABI_SAMPLE_PRICE 65536
#define ABI_SAMPLE_BURST 256 /* jiffies whose credit can be saved up; one sample's in any case */
#define ABI_LISTENER_SHIFT 32

/* An element of the ring. */
struct abi_sample {
	__u64 time_ns; /* CLOCK_MONOTONIC */
	__u32 ifindex;
	__u32 bytes;    /* of the frame */
	__u16 captured; /* of them, here: the first ones */
	__u8 outcome;   /* enum abi_outcome */
	__u8 verdict;   /* VERDICT_DROP or VERDICT_WOULD_DROP */
	__u8 reserved[2];
	__u8 frame[ABI_SAMPLE_BYTES]; /* placed as drivers do: IP headers are aligned */
	__u8 reserved2[2];
};

/*
 * How a CPU counts rules: each packet, as long as it has credit for as many as in the jiffy before; else one in
 * 2^shift of them, drawn at random, and that for 2^shift. So a flood behind one rule does not make all CPUs write to
 * one line, nor one over many rules every packet to a line of its own, and what is counted is right on average.
 */
#define ABI_PACE_RATE 256         /* of credit, a jiffy: 64,000 a second at 250 jiffies a second */
#define ABI_PACE_BURST (1U << 14) /* credit that is saved up */

struct abi_pace {
	__u64 jiffy; /* under way */
	__u64 random;
	__u32 packets; /* in it, that a rule matched */
	__u32 credit;
	__u32 shift;
	__u32 reserved;
};

/* The one element of the per-CPU map of sampling. */
struct abi_sampling {
	struct abi_pace pace;
	__u64 seen;             /* packets that were dropped, or would be, while somebody listened */
	__u64 limited;          /* of these, chosen, but more than the credit allows */
	__u64 lost;             /* of these, chosen, but the ring was full */
	__u64 credit, refilled; /* when: jiffies */
};

/*
 * All that a look-up depends on. A filter has two tables in one set of maps. Packets meet the active one. A change that
 * must be seen as a whole fills the other, which no packet meets, and then flips `active`: so all interfaces change
 * at once, without a new program. After a grace period the old table may be filled again.
 *
 * Table 0 starts at the first element of each map, table 1 at the middle one. Maps of large tables have no room for a
 * second one: then such a change needs new maps and new programs.
 */
struct abi_table {
	/* One line of the cache, which every packet reads. */
	struct bucket_geometry geometry;
	__u32 first_bucket, first_slot, first_hint; /* the table's own numbers count from these */
	__u32 epoch;                                /* the tick that ends count from: see abi_record() */
	__u64 sequence;                             /* every move of an entry increments it */
	__u64 shapes_active[FLOW_FAMILIES];         /* of each family's two lists, the one in use: 0 or 1 */
	__u64 reserved[2];
	struct hash_secret secret;
	/* The writer's. */
	__u64 moves;        /* of entries since the table was made; `sequence` counts other things too */
	__u64 used;         /* slots filled */
	__u64 plan;         /* of the store's choice of targets, by which the table is filled */
	__u64 longest_path; /* moves of the worst insert */
	__u64 reserved2[6];
	struct abi_shape_list shapes[FLOW_FAMILIES][2];
};

/*
 * Where magic, version, geometry, run with its bits, confirm_by, options, store_id, used, name and pending_id stand is the same in
 * every version from ABI_VERSION_OLDEST on, and must stay so: by these a tool of another version knows what runs, and
 * what to put in its place. geometry and used repeat what the active table says.
 */
struct abi_config {
	__u32 magic; /* ABI_MAGIC; the tool knows the map by it */
	__u32 version;
	__u64 listener; /* its lease; 0: nobody listens */
	__u64 active;   /* how often the tables were exchanged; the lowest bit names the one that packets meet */
	struct bucket_geometry geometry;
	__u8 policy[OUTCOME_POLICIES]; /* enum abi_verdict */
	__u8 reserved;
	__u64 zero;                 /* always 0, which the verifier cannot know: see verdict_hide() */
	__u32 run;                  /* enum abi_run bits; ABI_RUN_SET_UP is written last */
	__u32 confirm_by;           /* tick; with ABI_RUN_UNCONFIRMED */
	struct abi_options options; /* the program's, for the tool */
	/* For the tool only, in a line of its own: programs read the one before for every packet. */
	__u64 store_id[2]; /* the store this table is filled from */
	__u64 generation;  /* of the store, or ABI_GENERATION_DIRTY */
	__u64 used;        /* slots filled */
	char name[ABI_NAME_BYTES];
	__u32 sample_every, sample_credit;
	__u64 settled; /* as `active`: no packet is left in the table that this exchange put aside */
	__u64 reserved2[3];
	__u64 pending_id; /* of the store's change that ABI_RUN_UNCONFIRMED is set for; 0: of a load */
	__u64 reserved3[2];
	struct abi_table table[ABI_TABLES];
};

FLOW_INLINE const struct abi_table *abi_active(const struct abi_config *config)
{
	return &config->table[*(const volatile __u64 *)&config->active % ABI_TABLES];
}

/*
 * The shapes of a family that are in use, of two lists: the writer fills the idle one, then flips `shapes_active`, and
 * waits a grace period before it writes the one that was in use.
 */
FLOW_INLINE const struct abi_shape_list *abi_shapes(const struct abi_table *table, enum flow_family family)
{
	return &table->shapes[family][*(const volatile __u64 *)&table->shapes_active[family] & 1];
}

FLOW_INLINE const struct abi_shape *abi_shape_at(const struct abi_shape_list *list, __u32 i)
{
	return &list->shape[abi_shape_place(1U << i)];
}

#define ABI_HEAD_BYTES __builtin_offsetof(struct abi_config, table) /* what all versions have in common is in there */

#define ABI_GENERATION_DIRTY (~0ULL) /* a writer was, or still is, at work */

_Static_assert(sizeof(struct abi_counter) == 16, "counter layout");
_Static_assert(sizeof(struct abi_shape) == 64, "shape layout");
_Static_assert(sizeof(struct abi_shape_list) == 64 + 64 * ABI_SHAPES_MAX + 4 * 128, "shape list layout");
_Static_assert(sizeof(struct abi_options) == 8, "options layout");
_Static_assert(sizeof(struct abi_sample) == 24 + ABI_SAMPLE_BYTES, "sample layout");
_Static_assert(sizeof(struct abi_sampling) == 72, "sampling layout");
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
_Static_assert(sizeof(struct abi_table) % 64 == 0, "table layout");

#endif
