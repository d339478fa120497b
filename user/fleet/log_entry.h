/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The rule by which a follower reads the log of a list, and the lines of an entry. Knows no broker: all of it can be
 * tested alone.
 */
#ifndef XDP_CUCKOO_LOG_ENTRY_H
#define XDP_CUCKOO_LOG_ENTRY_H

#include "base/error_reason.h"
#include "fleet/fleet.h"
#include "rule/rule.h"

/* What the next entry is to a follower that has the list up to some position. */
enum log_step {
	LOG_NEXT,     /* the next one: apply it */
	LOG_DIVERGED, /* the broker went on from an older entry: the follower has some that are gone */
	LOG_GAP,      /* entries between are missing: the log was shortened meanwhile */
};

/*
 * The next entry must be the next of the same epoch, or the first of a later one whose base is the position. `base`:
 * the position after which its epoch begins, as the entry EPOCH-0 says; NULL: the entry does not.
 */
enum log_step log_step(struct fleet_position at, struct fleet_position entry, const struct fleet_position *base);

/* What the end of the broker's log is to that follower. */
enum log_head {
	LOG_LEVEL,
	LOG_BEHIND,   /* the log has more entries */
	LOG_LAGGING,  /* a replica that has not received all yet: wait */
	LOG_RESTORED, /* the broker's state is older, as after the restore of a backup */
	LOG_WIPED,    /* the broker has no such list any more */
};

/* `last`: 0-0 if there is no list. */
enum log_head log_head(struct fleet_position at, struct fleet_position last, bool is_master);

/*
 * Reads a line, `+ END RULE` or `- RULE`. *rule gets the time that is left of END, by `now_ms`, the broker's clock; it
 * is negative if the rule has ended. *is_added: it is a `+`. 0; -EINVAL; -EOPNOTSUPP: another kind of line, of a newer
 * version.
 */
int log_line_parse(const char *line, __s64 now_ms, struct rule *rule, bool *is_added, struct reason *reason);

/* Writes the line for the publisher. END is 0, or now_ms plus the rule's timeout. Returns `line`. */
#define LOG_LINE_BYTES (RULE_TEXT_BYTES + 24)
const char *log_line_format(const struct rule *rule, bool is_added, __s64 now_ms, char line[LOG_LINE_BYTES]);

#endif
