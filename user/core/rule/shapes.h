/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The shapes (include/abi.h) that rules use. For each shape the list has the number of its keys, and the shape that
 * packets are looked up by: probed_as. Each probed shape of a family costs a packet one look-up. So where there are
 * many prefix lengths, some shapes share a probed shape, and their keys are expanded to it (rule.h). The list is
 * sorted; shapes that pass come first. Plain memory; knows neither store nor table.
 */
#ifndef XDP_CUCKOO_SHAPES_H
#define XDP_CUCKOO_SHAPES_H

#include <stdbool.h>
#include <stddef.h>

#include "rule/rule.h"

#define SHAPE_LIST_MAX 512        /* shapes of both families */
#define SHAPE_LIST_PROBES 8       /* the goal: probed shapes per family */
#define SHAPE_LIST_JOIN_BITS 6    /* a new shape joins a probed shape if that makes at most 2^6 keys of one */
#define SHAPE_LIST_EXPAND_BITS 11 /* at most 2^11 keys of one, if ABI_SHAPES_MAX probed shapes need it */
#define SHAPE_LIST_GROWTH 4       /* shape_list_plan(): the keys that one key may become, on average */
#define SHAPE_LIST_WORSE 1.5   /* shape_list_plan_pays(): more than so many times the keys of a new plan are too many */
#define SHAPE_LIST_SPARE 65536 /* keys that small lists may have in addition */

struct shape_list_entry {
	struct rule_shape shape, probed_as;
	bool is_shared; /* a key of probed_as may belong to rules of other shapes, too */
	__u64 keys;     /* of the shape, before expansion; never 0 */
};

struct shape_list {
	size_t count;
	bool must_plan; /* it fits only after shape_list_plan(): until then do not look up packets by it */
	struct shape_list_entry entry[SHAPE_LIST_MAX];
};

/* NULL where the list has no such shape. */
const struct shape_list_entry *shape_list_find(const struct shape_list *list, const struct rule_shape *shape);

/*
 * Adds `keys` to the number of a shape's keys. A new shape is probed as itself while the family has fewer than
 * SHAPE_LIST_PROBES probed shapes. After that it is probed as a probed shape that it expands to; if there is none, as
 * itself. If the family then has more than ABI_SHAPES_MAX probed shapes, list->must_plan is set. 0; -E2BIG: the list
 * is full, or no plan has so few probed shapes, with at most 2^SHAPE_LIST_EXPAND_BITS keys for each. Then nothing has
 * changed. The order of the shapes does not matter, and if a list is taken, each part of it is, too.
 */
int shape_list_add(struct shape_list *list, const struct rule_shape *shape, __u64 keys);

/* Adds an entry that was stored elsewhere. 0; -EBADMSG: no list can have held it. */
int shape_list_restore(struct shape_list *list, const struct shape_list_entry *entry);

/* Takes 1 from the number of a shape's keys. At 0 the shape goes. 0; -ENOENT: the list has no such shape. */
int shape_list_remove(struct shape_list *list, const struct rule_shape *shape);

/* The number of keys of all shapes after expansion. A key that two rules share counts twice. */
__u64 shape_list_keys(const struct shape_list *list);

/*
 * The probed shapes of a family. Those that pass come first; then those with the most keys, because most
 * packets match them. `probed` has room for ABI_SHAPES_MAX. Returns how many.
 */
size_t shape_list_probed(const struct shape_list *list, enum flow_family family, struct rule_shape *probed);

/*
 * Chooses all probed shapes again: at most SHAPE_LIST_PROBES for a family, with as few keys as possible. At
 * first each shape is probed as itself; then the two probed shapes whose union adds the fewest keys are
 * united, again and again. This stops early, with more probed shapes, where it would take more than
 * SHAPE_LIST_GROWTH times the keys plus SHAPE_LIST_SPARE; it takes more only if more than ABI_SHAPES_MAX are left.
 * 0; -E2BIG: there is no such plan. Then nothing has changed.
 */
int shape_list_plan(struct shape_list *list);

/* Whether expansion makes so many keys that shape_list_plan_pays() should be asked, which takes longer. */
bool shape_list_is_expanded(const struct shape_list *list);

/*
 * Whether a new shape_list_plan() is worth a new table: it saves look-ups, or the present choice takes more
 * than SHAPE_LIST_WORSE times as many keys plus SHAPE_LIST_SPARE.
 */
bool shape_list_plan_pays(const struct shape_list *list);

/* ---- between shapes.c and choose_prefix_lengths.c ---- */

bool rule_shape_equal(const struct rule_shape *a, const struct rule_shape *b);

/* How many keys of `to` one key of `from` becomes. */
double rule_expansion_factor(const struct rule_shape *from, const struct rule_shape *to);

/* Sets is_shared of the entries that are probed as this shape. */
void shape_list_mark_shared(struct shape_list *list, const struct rule_shape *probed_as);

/* Chooses what a shape that is not in the list is to be probed as. False: all places are taken, by others. */
bool shape_list_choose(const struct shape_list *list, const struct rule_shape *shape, struct rule_shape *probed_as);

/* Whether shape_list_add() can take these shapes of the family. */
bool shape_list_fits(const struct shape_list *list, enum flow_family family);

#endif
