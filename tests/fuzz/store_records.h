/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The input of fuzz_store.c: records that are put into the databases of a store behind its back. A record: a
 * byte for the database, one for the length of the key, two for that of the value, key, value.
 */
#ifndef XDP_CUCKOO_TESTS_FUZZ_STORE_RECORDS_H
#define XDP_CUCKOO_TESTS_FUZZ_STORE_RECORDS_H

#define RECORD_HEAD_BYTES 4

static const char *const record_databases[] = { "meta", "rules", "shapes",     "deadlines",
						"undo", "lists", "undo_lists", "feeds" };

#define RECORD_DATABASES (sizeof(record_databases) / sizeof(record_databases[0]))

/* In place of the boot id of a meta: that of this boot, so that an input does not depend on it. */
#define RECORD_THIS_BOOT '='

#endif
