/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What apply.c and apply_change.c share. Only they include this header. */
#ifndef XDP_CUCKOO_APPLY_INTERNAL_H
#define XDP_CUCKOO_APPLY_INTERNAL_H

#include "fleet/apply.h"

struct apply_source {
	char id[FLEET_ID_BYTES]; /* of the fleet */
	struct fleet_position at;
	__u64 refused;
};

void apply_write_source(const struct apply *apply, const struct apply_list *list, struct fleet_position at,
			char source[STORE_SOURCE_BYTES]);

/* Whether the text is the source of a list of this fleet. */
bool apply_read_source(const struct apply *apply, const char *text, struct apply_source *source);

/* -ESTALE, with list->is_moved: the store has another position than list->at, which is updated; -EEXIST. */
int apply_check_position(const struct apply *apply, const struct store_lists *lists, struct apply_list *list,
			 struct reason *reason);

/* Notes a rule that is left out. `rule` NULL: a line that cannot be read. */
void apply_refuse(struct apply_list *list, const struct rule *rule);

/* Adds the rule, or deletes it (a negative timeout), as a change of its own. -ECANCELED: it would lock this host out. */
int apply_try_alone(struct apply *apply, struct session *session, struct apply_list *list, const struct rule *rule,
		    struct reason *reason);

/* Applies list->changes. -ESTALE, with list->is_moved: another command has changed the list; other -errno. */
int apply_change_list(struct apply *apply, struct session *session, struct apply_list *list, struct reason *reason);

#endif
