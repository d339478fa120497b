/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Between rules and the entries of a table: which keys a rule needs there, given what its shape's target
 * is, and which rules have a key in common. Knows the store and no table.
 */
#ifndef XDP_CUCKOO_KEYS_H
#define XDP_CUCKOO_KEYS_H

#include "store/store.h"

/*
 * Visits every key that the rule, whose shapes are in the list, has in a table, until `visit` returns
 * non-zero; returns that, or 0. `is_shared`: other rules may have the key too.
 */
int keys_each(const struct shape_list *list, const struct rule *rule,
	      int (*visit)(const struct rule_key *key, bool is_shared, void *context), void *context);

/* What the store's rules say together of a key of some target. */
struct keys_state {
	struct rule owner;  /* the first of the rules that have it */
	unsigned int rules; /* how many have it */
	__s64 timeout_ms;   /* as a rule's: when the last of them ends */
};

/* 0; -ENOENT where no rule has the key; other -errno. */
int keys_state(struct store *store, const struct shape_list *list, const struct rule_key *key,
	       struct keys_state *state);

/* Whether two rules are the same but for timeout and comment. */
bool keys_same_rule(const struct rule *a, const struct rule *b);

#endif
