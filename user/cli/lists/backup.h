/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writes all that a store holds as a text file, and makes a store equal to such a file. backup.c shows the format.
 * Interfaces, and the size and kind of tables, are not in the store.
 */
#ifndef XDP_CUCKOO_BACKUP_H
#define XDP_CUCKOO_BACKUP_H

#include <stdio.h>

#include "change/change.h"
#include "rule/rule_set.h"

#define BACKUP_HEAD "xdp-cuckoo backup " /* the start of the file; the number of its format follows */

struct backup {
	struct store_lists lists; /* numbered in the order of the file */
	unsigned int lists_count;
	struct store_feed feed[1 + STORE_LISTS_MAX];
	struct rule_set
		rules[1 + STORE_LISTS_MAX]; /* of each owner; timeout_ms is the moment when a rule ends, 0: never */
	struct store_settings settings;
	__u64 lines; /* that are rules */
	bool has_end;
	__u64 bad;   /* lines */
	__u64 ended; /* since the backup, so they are not restored */
	bool is_compared; /* backup_restore() is to find out whether it changes anything, */
	bool is_changed;  /* and it does */
};

/* Whether the file is a backup, by its first line. false: it is not, or it cannot be read. */
bool backup_is(const char *path);

/* Writes the store; NULL: an empty one. 0; -errno of the store. */
int backup_write(FILE *to, struct store *store);

/*
 * Reads a backup. `refuse` gets the first bad lines. -EINVAL: a line is bad or missing, or the format is of another
 * version; other -errno, with the reason. Call backup_free() in any case.
 */
int backup_read(struct backup *backup, const char *path, void (*refuse)(const char *text), struct reason *reason);
void backup_free(struct backup *backup);

/*
 * Makes the store equal to the backup, as one change; `confirm_ms`: see struct import_options. Frees the rules. -EBUSY:
 * a change is pending; other errors as import_change().
 */
int backup_restore(struct backup *backup, struct session *session, __s64 confirm_ms, struct reason *reason);

#endif
