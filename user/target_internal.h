/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What target.c and target_build.c share; nobody else includes it. */
#ifndef XDP_CUCKOO_TARGET_INTERNAL_H
#define XDP_CUCKOO_TARGET_INTERNAL_H

#include "target.h"

#define TARGET_NO_NUMBER 0xffffffffU

/* Keys, hashed under one secret. */
struct target_keys {
	const struct siphash_key *secret;
	struct siphash_value *value;
	size_t count, room;
	const struct target *predecessor; /* whose numbers of the keys are wanted; NULL: nobody's */
	__u32 *old_number;		  /* with a predecessor: of each key there, or TARGET_NO_NUMBER */
};

/* 0; -EBADMSG where there is no room. */
int target_collect_key(struct target_keys *keys, const struct rule_key *key);

/* All keys of a rule; for store_each(), with a struct target_keys. */
int target_collect_rule(const struct rule *rule, void *keys);

/* What a new table is filled from. */
struct target_source {
	struct store *store;
	const struct rule_key *extra; /* keys beside those of the store */
	size_t extra_count;
	const struct target *predecessor; /* its counts go on; NULL: none */
	struct target_keys keys; /* what target_build() leaves, for target_source_close() */
};

void target_source_close(struct target_source *source);

/*
 * Fills the table of a filter that no packet looks at, whatever is in its memory, under a fresh hash
 * key. -ENOSPC: the keys do not fit, under any of several hash keys.
 */
int target_build(struct target *target, struct target_source *source, struct reason *reason);

int target_store_failed(int error, struct reason *reason);

#endif
