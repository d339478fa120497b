/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The shapes that rules use, how many keys each has, and which shape the packet path probes for it: its
 * target. A packet costs a probe for each target of its family, so where prefix lengths are many, some
 * shapes share a target, to which their keys are expanded (rule.h). In one order: those that pass first.
 * Plain memory; knows neither store nor table.
 */
#ifndef XDP_CUCKOO_SHAPE_LIST_H
#define XDP_CUCKOO_SHAPE_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "rule/rule.h"

#define SHAPE_LIST_MAX 512     /* shapes of both families */
#define SHAPE_LIST_PROBES 8    /* targets of a family that are aimed at */
#define SHAPE_LIST_JOIN_BITS 6 /* a new shape joins a target at hand up to 2^6 keys for one */
#define SHAPE_LIST_GROWTH 4
#define SHAPE_LIST_WORSE 1.5
#define SHAPE_LIST_SPARE 65536

struct shape_list_entry {
	struct rule_shape shape, probed_as;
	bool is_shared; /* a key of the target may belong to rules of other shapes as well */
	__u64 keys;     /* of the shape itself; never 0 */
};

struct shape_list {
	size_t count;
	struct shape_list_entry entry[SHAPE_LIST_MAX];
};

/* NULL where the shape is not there. */
const struct shape_list_entry *shape_list_find(const struct shape_list *list, const struct rule_shape *shape);

/*
 * Counts `keys` more keys of a shape. A new one gets a target: itself where the family has less than
 * SHAPE_LIST_PROBES, else one at hand that it expands to, else itself. 0; -E2BIG: the family has
 * ABI_SHAPES_MAX targets, or the list is full; then nothing has changed.
 */
int shape_list_add(struct shape_list *list, const struct rule_shape *shape, __u64 keys);

/* Puts an entry into the list as it was kept elsewhere. 0; -EBADMSG where it cannot have been there. */
int shape_list_restore(struct shape_list *list, const struct shape_list_entry *entry);

/* Counts one key less; the last one takes the shape with it. 0; -ENOENT where it is not there. */
int shape_list_remove(struct shape_list *list, const struct rule_shape *shape);

/* The keys of all shapes after expansion, where keys that two rules have in common count twice. */
__u64 shape_list_keys(const struct shape_list *list);

/*
 * The targets of a family, those that pass first, then those to whose shapes the most keys belong, which
 * packets will meet most; `targets` has room for ABI_SHAPES_MAX. Returns how many.
 */
size_t shape_list_probed(const struct shape_list *list, enum flow_family family, struct rule_shape *targets);

/*
 * Chooses all targets anew, for the fewest keys at SHAPE_LIST_PROBES targets a family: starting from every
 * shape for itself, the two targets whose union costs the fewest keys become one, until they are few
 * enough. Where that would take more than SHAPE_LIST_GROWTH keys for one and SHAPE_LIST_SPARE beside,
 * more targets stay. 0; -E2BIG: more than ABI_SHAPES_MAX stay; then nothing has changed.
 */
int shape_list_plan(struct shape_list *list);

/* Whether expansion takes so many keys that it is time to ask shape_list_plan_pays(), which takes longer. */
bool shape_list_is_expanded(const struct shape_list *list);

/*
 * Whether that would save probes, or so many keys that it is worth a new table: those at hand take
 * SHAPE_LIST_WORSE times as many, and SHAPE_LIST_SPARE beside.
 */
bool shape_list_plan_pays(const struct shape_list *list);

/* ---- between shapes.c and choose_probed.c ---- */

bool rule_shape_equal(const struct rule_shape *a, const struct rule_shape *b);

/* How many keys of `to` one key of `from` becomes. */
double rule_expansion_factor(const struct rule_shape *from, const struct rule_shape *to);

/* Sets is_shared of all entries. */
void shape_list_note_shared(struct shape_list *list);

/* Chooses the target of a shape that is not in the list. -E2BIG. */
int shape_list_choose(const struct shape_list *list, const struct rule_shape *shape, struct rule_shape *target);

#endif
