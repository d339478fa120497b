/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The keys of rules. A shape may be probed as a longer shape: then each rule of the shape becomes several
 * keys of the longer one. This file finds the keys of a rule, and the rules of a key, because
 * several rules can have the same key. It reads the store, not the table.
 */
#ifndef XDP_CUCKOO_RULE_ENTRIES_H
#define XDP_CUCKOO_RULE_ENTRIES_H

#include "store/store.h"

/*
 * Visits every key of a rule until `visit` returns non-zero; returns that value, or 0. The list must have the
 * rule's shapes, else the result is -EBADMSG. `is_shared`: other rules may have the key too.
 */
int keys_each(const struct shape_list *list, const struct rule *rule,
	      int (*visit)(const struct rule_key *key, bool is_shared, void *context), void *context);

/* What all rules of the store that have a key say about it. */
struct keys_state {
	struct rule owner;  /* the first of these rules */
	unsigned int rules; /* how many they are */
	__s64 timeout_ms;   /* of the rule that ends last; 0: never */
};

/* 0; -ENOENT if no rule has the key; other -errno. */
int keys_state(struct store *store, const struct shape_list *list, const struct rule_key *key,
	       struct keys_state *state);

/* Counts one more rule in *state, of a key that `rule` has. */
void keys_state_add(struct keys_state *state, const struct rule *rule);

/* Whether two rules differ at most in timeout and comment. */
bool keys_same_rule(const struct rule *a, const struct rule *b);

#endif
