/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What all files of a fleet share. A fleet is one set of lists on many hosts, by a broker: Redis 7.0 or newer, or
 * valkey. fleet.lua describes the keys and what changes them; xdp-cuckoo-fleet(7) describes the whole.
 *
 * Words: the broker keeps a log and a state for each list. A position is the id of the last log entry that a state
 * includes. A publisher changes lists at the broker. A follower makes the lists of one host equal to the broker's.
 */
#ifndef XDP_CUCKOO_FLEET_H
#define XDP_CUCKOO_FLEET_H

#include <stdbool.h>
#include <stddef.h>

#include <linux/types.h>

#include "abi.h"
#include "config/config.h"
#include "rule/rule.h"

#define FLEET_FORMAT 1 /* of keys and entries: FORMAT in fleet.lua */
#define FLEET_ENTRY_LINES 1000
#define FLEET_ENTRY_BYTES 65536
#define FLEET_KEY_BYTES 128
#define FLEET_ID_BYTES 33
#define FLEET_HOST_BYTES 65
#define FLEET_HOST_EXPIRE_S (7 * 86400)

/* EPOCH-SEQ, as the broker numbers the entries of a list: fleet.lua explains epochs. 0-0: before the first. */
struct fleet_position {
	__u64 epoch, seq;
};

#define FLEET_EPOCH_MAX ((1ULL << 43) - 1) /* as in fleet.lua: the score of a position is an exact number in Redis */
#define FLEET_POSITION_BYTES 44
const char *fleet_position_format(struct fleet_position position, char text[FLEET_POSITION_BYTES]);

/* Reads all of `text`. 0; -EINVAL. */
int fleet_position_parse(const char *text, struct fleet_position *position);

/* Whether the list holds the rules that --stage tries. */
bool fleet_is_staged(const char *list);

/* Negative, 0 or positive, as strcmp(). */
int fleet_position_compare(struct fleet_position a, struct fleet_position b);

/* A number below 2^53 in the same order: fleet.lua gives a new epoch a number that is high enough. */
__u64 fleet_position_score(struct fleet_position position);

/* A key of a list: fleet_list_key(key, "default", "bad", "log"). */
const char *fleet_list_key(char key[FLEET_KEY_BYTES], const char *fleet, const char *list, const char *what);

__s64 fleet_now_ms(void); /* by CLOCK_BOOTTIME, which no clock setting moves and which runs while the host sleeps */

/* A random number below `limit`, from getrandom(). */
__u64 fleet_random_below(__u64 limit);

/* ---- the log of a list: the rule by which a follower reads it, and the lines of an entry ---- */

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
