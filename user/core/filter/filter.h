/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * struct filter is one running filter that a command works on. It has the programs and maps of the filter (struct
 * kernel_filter) and the table in these maps (struct table). The maps are mapped into our memory, where the code of
 * user/core/table/ changes the table. The rules come from a store. This folder sets a filter up, makes it equal to its
 * store, replaces its table by a new one, and publishes its shapes. user/core/change/ decides what changes. include/abi.h
 * defines key, shape, hint, record, generation, tick and epoch.
 *
 * How a whole table comes to hold what the store holds:
 *   filter_update()            when a command opens the filter: looks at the generation; repairs by one of the others
 *   filter_fill_in_place()     adds what is missing, then removes what is too much
 *   filter_refill()            by filter_rebuild() if that can be, else by filter_fill_in_place()
 *   filter_rebuild()           filter_build_successor(), then filter_switch()
 *   filter_build_successor()   a new table beside this one, also from an open transaction; no packet uses it yet
 *   filter_switch()            all packets use the new table from here on; counts are carried over
 *   filter_take_over()         a new filter from the store takes the place of one of another version
 */
#ifndef XDP_CUCKOO_FILTER_H
#define XDP_CUCKOO_FILTER_H

#include <stdbool.h>
#include <stddef.h>

#include "kernel/kernel.h"
#include "base/error_reason.h"
#include "filter/hints.h"
#include "store/store.h"
#include "table/table.h"

enum filter_state {
	FILTER_UP_TO_DATE, /* its generation was the store's: its table was already equal to the store */
	FILTER_SET_UP,     /* it was not set up before; now it is */
	FILTER_REPAIRED,   /* it differed from the store, and is equal now */
	FILTER_TAKEN_OVER, /* it replaced a filter of another version */
};

/* How the present change reaches the table; change/filter_change.c has the transitions. */
enum filter_way {
	FILTER_KEY_BY_KEY, /* added keys enter the table before the commit; deleted keys leave it afterwards */
	FILTER_KEYS_IN,    /* the same; the added keys are in, and nothing else has changed yet */
	FILTER_REFILL,     /* after the commit filter_refill() makes the table equal to the store */
	FILTER_REPLACE,    /* a new table is made before the commit and takes over after the commit */
};

/* Why a filter needs a new table. */
enum filter_cause {
	FILTER_TOO_SMALL,
	FILTER_STUCK,    /* too many keys share a few buckets: a new secret solves this */
	FILTER_AGED,     /* half of the time for which records can tell ends has passed since its epoch */
	FILTER_NEW_PLAN, /* the store has chosen again which shapes are joined for look-up (rule/shapes.h) */
	FILTER_AT_ONCE,  /* the whole change must take effect at once */
};

/* The shapes of one family: the published ones, then those that have keys in the table but are not published yet. */
struct filter_shapes {
	size_t count;
	struct rule_shape shape[2 * ABI_SHAPES_MAX];
	__u64 hint[2 * ABI_SHAPES_MAX]; /* see struct abi_shape */
};

/* The parts of a table (parts.c), and how many keys or slots each has or gets. One without addresses has all in the first. */
enum filter_part { FILTER_RECORDS, FILTER_ADDRESSES, FILTER_PARTS };

struct filter_parts {
	__u64 records, addresses;
	__u64 both; /* keys that both count, as they may get an end: an upper bound */
};

struct filter_tables {
	struct table part[FILTER_PARTS]; /* all 0: it has no such part */
};

struct filter {
	struct kernel_filter kernel;
	unsigned int which; /* the number of `table`: 0 or 1 */
	bool shares_maps;   /* the maps belong to another struct filter; `table` is the other table in them */
	union {
		struct table table; /* the part with records */
		struct filter_tables tables;
	};
	enum filter_state state; /* what filter_update() found */
	enum filter_way way;
	enum filter_cause cause;            /* why `way` became FILTER_REPLACE; kept after the change, for messages */
	struct filter_successor *successor; /* what filter_build_successor() made; or NULL */
	__u64 slots_before;                 /* slots of the table that this one replaced; 0: it replaced none */
	struct filter_shapes shapes[FLOW_FAMILIES];
};

/* Takes ownership of `kernel` and opens its active table. On failure the filter is closed. */
int filter_open(struct filter *filter, struct kernel_filter *kernel, struct reason *reason);
void filter_close(struct filter *filter);

/* Closes the filter, but gives *kernel back, which filter_open() took. */
void filter_give_back(struct filter *filter, struct kernel_filter *kernel);

/* Opens the active table again, after something else wrote its memory. On failure the filter is closed. */
int filter_reopen(struct filter *filter, struct reason *reason);

/* The geometry of a filter's active table. If the filter is not set up: half of the room, or all with is_alone. */
struct bucket_geometry filter_geometry(const struct kernel_filter *kernel);

/* How many tables the maps have room for (1 or ABI_TABLES), and how many slots each of these tables can have. */
unsigned int filter_tables(const struct kernel_filter *kernel);
__u64 filter_room(const struct kernel_filter *kernel);

/* The hints of a filter's active table. */
struct hints filter_hints_of(const struct kernel_filter *kernel);

/* Opens both parts of a filter's active table, to read them. 0; -EINVAL; -ENOMEM. filter_tables_close() takes zeroed ones. */
int filter_open_tables(const struct kernel_filter *kernel, struct filter_tables *tables);
void filter_tables_close(struct filter_tables *tables);

/* The slots of a table, and of a filter's active one, of both parts. */
__u64 filter_tables_slots(const struct filter_tables *tables);
__u64 filter_slots(const struct kernel_filter *kernel);

/*
 * Finds a key in a part of a table; while a change moves it, it is in both. *slot: of the records, or behind their slots
 * one of the addresses. For such a slot, filter_counter(): what was counted, if the filter counts; filter_tag(): what tells
 * its key from others, if it is filled. filter_tags(): the tags of a key, in both parts.
 */
bool filter_find(const struct abi_table *in_config, const struct filter_tables *tables, const struct rule_key *key,
		 enum filter_part part, __u32 *slot);
struct abi_counter *filter_counter(const struct filter_tables *tables, __u64 slot);
__u64 filter_tag(const struct filter_tables *tables, __u64 slot);
void filter_tags(const struct kernel_filter *kernel, const struct rule_key *key, __u64 tags[FILTER_PARTS]);

/*
 * Loads a new, empty filter with at least `slots` slots, for the rules of the store. It is not attached and not set up.
 * -ENOMEM if there is not enough memory for it and for filling it.
 */
int filter_create(struct filter *filter, const struct abi_options *options, __u64 slots, struct store *store,
		  struct reason *reason);

/*
 * Makes an object file from which other loaders load a filter: with room for two tables of at least `slots` slots, or
 * for one if options->is_alone. 0: *file is for free(), *plan has the sizes; -errno.
 */
int filter_make_object_file(const struct abi_options *options, __u64 slots, struct kernel_sizes *plan, char **file,
			    size_t *bytes, struct reason *reason);

/* Like filter_create(), but the maps get the sizes that the maps of `kernel` have. */
int filter_create_like(struct filter *filter, const struct kernel_filter *kernel, struct reason *reason);

/*
 * Makes the table equal to the store, which must be open for writing. `name` is the name of the filter. A
 * table that is too small is replaced by a larger one. 0; -ESTALE: the filter belongs to another store;
 * -ENOSPC: the rules do not fit, and the table cannot be replaced; other -errno. A filter that was not set up
 * (FILTER_SET_UP) still passes everything, until filter_start().
 */
int filter_update(struct filter *filter, struct store *store, const char *name, struct reason *reason);

/* After filter_update(): packets use the table of a filter that was not set up. */
void filter_start(struct filter *filter);

/*
 * `kernel` is a running filter of another version. Makes a new filter from the store in *filter, and puts it in the
 * place of `kernel` on every interface. The old one filters until then, and still belongs to the caller. Its
 * counters are lost. -EBUSY: another tool holds the old filter. After a failure nothing has changed.
 */
int filter_take_over(struct filter *filter, struct kernel_filter *kernel, struct store *store, struct reason *reason);

/*
 * Makes the table equal to the store, whatever it holds now. filter_refill() makes a new table, if one can be made: so all
 * changes at once. filter_fill_in_place() changes one key after the other, in an order that fill_in_place.c explains.
 * `difference` may be NULL.
 */
int filter_fill_in_place(struct filter *filter, struct store *store, struct table_difference *difference,
			 struct reason *reason);
int filter_refill(struct filter *filter, struct store *store, struct reason *reason);

/*
 * The number of slots for a new table, of both parts, when `keys` did not fit into this table. It is the present number if
 * that is enough: then too many keys shared a few buckets, and a new secret solves this. Otherwise it is larger. If
 * another tool holds the filter (libxdp's dispatcher), it is at most the room of the maps.
 */
__u64 filter_slots_to_grow_to(const struct filter *filter, struct filter_parts keys);

/* Whether so many keys fit into the table: up to the load that the engine reaches. */
bool filter_has_room(const struct filter *filter, struct filter_parts keys);

/* The keys that the table has, with `more`. */
struct filter_parts filter_keys_with(const struct filter *filter, struct filter_parts more);

/* What the rules of a store need of a table. */
struct filter_need {
	struct store_info info;
	struct shape_list shapes;
	struct filter_parts keys; /* at most so many in each part */
};
int filter_read_need(struct store *store, struct filter_need *need);

/* Whether keys of the shape belong to a part for addresses, if they never end. */
bool filter_is_address(const struct rule_shape *shape);

/* From so many keys of addresses on, a new table gets a part for them. Tests set it. */
extern __u64 filter_addresses_least;

/*
 * Whether filter_build_successor() can make a table of `slots` slots. The table needs room in the filter's maps. Without
 * that room it gets new maps, which is impossible if another tool holds the filter.
 */
bool filter_can_build_successor(const struct filter *filter, __u64 slots);

/*
 * Makes a table of at least `slots` slots, with a new secret, that can replace this one. It is filled with
 * all that the store holds, including an open transaction. No packet uses it yet. If `options` is NULL, it is in the
 * filter's own maps if they have room. Else it is in new maps, and of the kind that `options` say. -ENOSPC: the keys
 * need more slots; -ENOMEM; -EBUSY: another tool holds the filter. After an error there is no new table.
 */
int filter_build_successor(struct filter *filter, struct store *store, const struct abi_options *options, __u64 slots,
			   struct reason *reason);

/*
 * Replaces this table on every interface by the one that filter_build_successor() made. Each packet uses either the
 * old or the new table. The counters are carried over. On failure the old table stays, and the new one is
 * freed.
 */
int filter_switch(struct filter *filter, struct reason *reason);

/* filter_build_successor() and filter_switch(). The store must not have an open transaction. */
int filter_rebuild(struct filter *filter, struct store *store, const struct abi_options *options, __u64 slots,
		   struct reason *reason);

/* Frees what filter_build_successor() made, if anything. */
void filter_drop_successor(struct filter *filter);

/* Forgets the shapes that are not published. Call this before the first key of a change. */
void filter_read_published(struct filter *filter);

/*
 * Adds a key that ends at a tick (0: never). Packets find it if its shape is published. 0; -ENOSPC; -E2BIG:
 * too many shapes in one change; -ENOMEM: see filter_unmapped_reason().
 */
int filter_insert(struct filter *filter, const struct rule_key *key, __u32 tick);

/* Whether the table's epoch is older than half of ABI_END_MAX, and `tick` is an end, not 0. */
bool filter_has_aged(const struct filter *filter, __u32 tick);

/*
 * The tick (see kernel/ticks.c) at which a timeout of the store ends. The store's clock stands still during a
 * transaction. So filter_tick() subtracts the time since the clock was set (store_lag_ms()). Timeout 0 gives tick 0:
 * never.
 */
int filter_tick(const struct store *store, __s64 timeout_ms, __u32 *tick, struct reason *reason);

/*
 * filter_delete() deletes a key. filter_set_end() makes it end at another tick; in compact tables it does nothing.
 * Before the commit, `is_done` is set: only a later end takes effect; *is_done: no second call is
 * needed. After the commit it is NULL: any end takes effect. A key that then belongs to the other
 * part of the table comes there by the first call, and leaves this one by the second.
 * 0; -ENOENT; -ENOMEM: see filter_unmapped_reason(); -ENOSPC, -E2BIG: as filter_insert(); other -errno with the reason.
 */
int filter_delete(struct filter *filter, const struct rule_key *key);
int filter_set_end(struct filter *filter, const struct rule_key *key, __u32 tick, bool *is_done,
		   struct reason *reason);

/* The hint bit of a shape. It is chosen at the first key of the shape. -E2BIG: too many shapes in one change. */
int filter_assign_hint(struct filter *filter, const struct rule_shape *shape, __u64 *hint);

/* The policies that drop, as in struct abi_table; in force from now on in this filter's table. 0 or -errno. */
__u8 filter_drops(const struct store_settings *settings);
int filter_set_policies(struct filter *filter, struct store *store, struct reason *reason);

/* Applies what the store has for running filters: policies, monitor-only, and an unconfirmed change. */
int filter_configure(struct filter *filter, struct store *store, struct reason *reason);

/* Before a change that switches monitor-only on drops anything. */
int filter_begin_monitor_only(struct filter *filter, struct store *store, struct reason *reason);

/*
 * Makes the filter pass every packet after `left_ms` milliseconds. filter_confirm() cancels it. So does
 * filter_configure() if the store's change `pending_id` is no longer pending. `pending_id` is 0 for a load, which
 * is not a change of the store. Also applies to a table that filter_build_successor() made.
 */
int filter_set_unconfirmed(struct filter *filter, __u64 pending_id, __s64 left_ms, struct reason *reason);
void filter_confirm(struct filter *filter);

/*
 * Tells the packet path which shapes and rates the store's rules have, and whether to read hints.
 * Then no packet uses the old lists. With `keeps`, the published shapes and rates stay beside them,
 * for keys that are still in the table. -E2BIG, -ENOSPC: with these, there are too many shapes or
 * rates; no shape has changed.
 */
int filter_publish_shapes(struct filter *filter, struct store *store, bool keeps, struct reason *reason);

/* Whether filter_publish_shapes() without `keeps` has room for them: 0, -E2BIG, or errors of the store. */
int filter_check_shapes(struct filter *filter, struct store *store, struct reason *reason);

/*
 * Waits until the look-ups that have begun are over. They may have missed a key that came during them. 0 or -errno. A change
 * that only deletes does not wait for a packet that outlasts the change before it: that has taken a commit to disk.
 */
int filter_wait_for_packets(const struct filter *filter, struct reason *reason);

/* Copies the counts of struct table (used slots, moves) into the filter's config, for the next command and `status`. */
void filter_save_counts(struct filter *filter);

/* The same, and sets the table's generation: the store's, or ABI_GENERATION_DIRTY. */
void filter_set_generation(struct filter *filter, __u64 generation);

/*
 * These set the reason. filter_unmapped_reason(): a part of the table cannot be mapped; returns -ENOMEM.
 * filter_full_reason(): `keys` keys do not fit into the table; returns -ENOSPC.
 */
int filter_unmapped_reason(struct reason *reason);
int filter_full_reason(const struct filter *filter, __u64 keys, struct reason *reason);

/*
 * ---- keys of rules ----
 *
 * A shape may be probed as a longer shape: then each rule of the shape becomes several keys of the longer one, and
 * several rules can have the same key. These functions find the keys of a rule, and the rules of a key, in the store.
 */

/*
 * Visits every key of a rule until `visit` returns non-zero; returns that value, or 0. The list must have the
 * rule's shapes, else the result is -EBADMSG. `is_shared`: other rules may have the key too.
 */
int keys_each(const struct shape_list *list, const struct rule *rule,
	      int (*visit)(const struct rule_key *key, bool is_shared, void *context), void *context);

/* What all rules of the store that have a key say about it. */
struct key_rules {
	struct rule owner;  /* the first of these rules */
	unsigned int rules; /* how many they are */
	__s64 timeout_ms;   /* of the rule that ends last; 0: never */
};

/* 0, also if no rule has the key: then `rules` is 0. -errno. */
int key_rules(struct store *store, const struct shape_list *list, const struct rule_key *key, struct key_rules *state);

/* Whether two rules differ at most in timeout and comment. */
bool keys_same_rule(const struct rule *a, const struct rule *b);

/* ---- run state ---- */

/* Whether it waits for `confirm`, or waited too long. */
bool run_is_unconfirmed(const struct kernel_filter *filter);

/* Milliseconds left to confirm it; 0: none, or it waits for nothing, or the kernel does not tell the time. */
__s64 run_confirm_left_ms(const struct kernel_filter *filter);

/* Whether it passes everything because nobody confirmed in time. */
bool run_is_confirm_late(const struct kernel_filter *filter);

/* Whether rules are in force: it is set up, and not in panic, not monitor-only and not unconfirmed too long. */
bool run_is_filtering(const struct kernel_filter *filter);

/* ---- panic: running filters pass everything, whatever their rules are ---- */

enum panic_by { PANIC_BY_OPERATOR, PANIC_BY_FLEET };

/* The bits of abi_config.run after `by` has set or ended a panic. See panic.c. */
__u32 panic_next(__u32 run, enum panic_by by, bool is_on);

/*
 * Sets or ends the panic of every running filter of the name; NULL: of all. Works while other commands change the
 * filters. *meant: how many filters there are; *is_changed becomes true if one was in another state. -EPROTO, -EPERM: some
 * filters cannot be seen or used; -EREMOTE, for an operator: one runs in another network namespace; all others are in the
 * wanted state. -EAGAIN: another command keeps replacing tables.
 */
int filter_panic(const char *name, enum panic_by by, bool is_on, size_t *meant, bool *is_changed,
		 struct reason *reason);

#endif
