// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Writes the seeds that are bytes: the frames of tests/unit/packets.c into DIR/parse, what a store keeps into DIR/store, and
 * what a process that fetches a list sends into DIR/feed. seeds.sh makes the seeds that are text.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "feed/feeds.h"
#include "unit/packets.h"
#include "rule/rule.h"
#include "store/internal.h"
#include "store_records.h"

#define PACKETS (sizeof(packets) / sizeof(packets[0]))

static const char *top;

static FILE *create(const char *target, const char *name, size_t number)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s/%s-%03zu", top, target, name, number);
	file = fopen(path, "w");
	if (!file) {
		perror(path);
		exit(1);
	}
	return file;
}

static void write_packets(void)
{
	for (size_t i = 0; i < PACKETS; i++) {
		FILE *file = create("parse", "frame", i);
		struct packet_frame frame;

		packet_build(&packets[i], &frame);
		fwrite(frame.byte, 1, frame.length, file);
		fclose(file);
	}
}

static void write_feeds(void)
{
	static const char text[] = "src 192.0.2.1\nsrc 2001:db8::/32 dport 53 proto udp\n";
	static const struct feed_message messages[] = {
		{ .outcome = FEED_FETCHED,
		  .bad_lines = 1,
		  .bytes = sizeof(text) - 1,
		  .etag = "\"1a2b3c\"",
		  .modified = "Mon, 23 Nov 2026 06:00:00 GMT",
		  .first_bad = "line 3: 'x' is no address" },
		{ .outcome = FEED_UNMODIFIED, .etag = "W/\"1\"" },
		{ .outcome = FEED_FAILED, .retry_after_s = 7200, .why = "the server answers 429" },
		{ .outcome = FEED_FAILED, .retry_after_s = FEED_WAIT_MAX_S + 1, .why = "wait" },
		{ .outcome = FEED_FAILED, .why = "\033[2J" },
		{ .outcome = FEED_FETCHED, .bytes = sizeof(text) },
	};

	for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
		FILE *file = create("feed", "message", i);

		fwrite(&messages[i], 1, sizeof(messages[i]), file);
		fwrite(text, 1, sizeof(text) - 1, file);
		fclose(file);
	}
}

/* ---- stores ---- */

static const char *const stores[][4] = {
	{ NULL },
	{ "src 192.0.2.1" },
	{ "src 192.0.2.0/24 comment \"a network\"", "src 198.51.100.0/25 action pass" },
	{ "2001:db8::/32", "2001:db8::1", "dst 2001:db8::/48 dport 53 proto udp" },
	{ "proto tcp src 192.0.2.1 sport 1234 dst 198.51.100.7 dport 443", "dport 53", "proto icmp type 8" },
	{ "src 192.0.2.1 timeout 1s", "src 192.0.2.2 timeout 1h comment \"an hour\"", "proto gre" },
	{ "list src 192.0.2.1", "src 192.0.2.1 timeout 1h", "list src 192.0.2.1 timeout 1h", "list src 192.0.2.2" },
	{ "src 192.0.2.1 timeout 1h", "list src 192.0.2.1", "list src 192.0.2.3 timeout 1h comment \"of a list\"" },
};

#define STORES (sizeof(stores) / sizeof(stores[0]))

static void fail(const char *what)
{
	fprintf(stderr, "seeds: %s\n", what);
	exit(1);
}

/* Each "list " is one of a list of its own. */
static int put(struct store *store, const char *text, size_t number)
{
	const bool is_of_list = !strncmp(text, "list ", 5);
	const char name[] = { 'a' + number, '\0' };
	unsigned int owner = STORE_BY_HAND;
	enum store_added ignored;
	struct reason reason;
	struct rule rule;
	int error = rule_parse(text + (is_of_list ? 5 : 0), &rule, &reason);

	if (!error && is_of_list)
		error = store_list_open(store, name, "/etc/list", &owner);
	if (!error)
		error = store_put(store, &rule, owner, 0, &ignored);
	return error;
}

/* What waits to be confirmed has undo records; the second change makes it wait. */
static void fill(const char *dir, const char *const *texts)
{
	static const struct store_feed feed = { .tried_s = 1, .failures = 1, .etag = "\"1\"", .why = "it is empty" };
	struct reason reason;
	struct store *store;

	if (store_open(dir, STORE_WRITE, &store, &reason))
		fail(reason.text);
	if (store_begin(store) || store_feed_put(store, "a", &feed) || store_commit(store))
		fail("a feed");
	for (size_t i = 0; i < 4 && texts[i]; i++) {
		if (store_begin(store) || (i == 1 && store_set_pending(store, 60000)) || put(store, texts[i], i) ||
		    store_commit(store))
			fail(texts[i]);
	}
	store_close(store);
}

static void write_record(FILE *file, unsigned char database, const MDB_val *key, const MDB_val *value)
{
	const unsigned char head[RECORD_HEAD_BYTES] = { database, key->mv_size, value->mv_size, value->mv_size >> 8 };
	struct store_meta meta;

	fwrite(head, 1, sizeof(head), file);
	fwrite(key->mv_data, 1, key->mv_size, file);
	if (!strcmp(record_databases[database], "meta")) {
		memcpy(&meta, value->mv_data, sizeof(meta));
		meta.boot_id[0] = RECORD_THIS_BOOT;
		memset(meta.id, 1, sizeof(meta.id));
		fwrite(&meta, 1, sizeof(meta), file);
	} else {
		fwrite(value->mv_data, 1, value->mv_size, file);
	}
}

static void write_database(FILE *file, MDB_txn *txn, unsigned char database)
{
	MDB_cursor *cursor = NULL;
	MDB_val key, value;
	MDB_dbi dbi;

	if (mdb_dbi_open(txn, record_databases[database], 0, &dbi) || mdb_cursor_open(txn, dbi, &cursor))
		fail(record_databases[database]);
	while (!mdb_cursor_get(cursor, &key, &value, MDB_NEXT))
		write_record(file, database, &key, &value);
	mdb_cursor_close(cursor);
}

static void write_store(const char *dir, size_t number)
{
	FILE *file = create("store", "store", number);
	MDB_env *env;
	MDB_txn *txn;

	if (environment_open(dir, true, &env) || mdb_txn_begin(env, NULL, MDB_RDONLY, &txn))
		fail(dir);
	for (unsigned int i = 0; i < RECORD_DATABASES; i++)
		write_database(file, txn, i);
	mdb_txn_abort(txn);
	mdb_env_close(env);
	fclose(file);
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fputs("usage: seeds DIR\n", stderr);
		return 2;
	}
	top = argv[1];
	write_packets();
	write_feeds();
	for (size_t i = 0; i < STORES; i++) {
		char dir[4096];

		snprintf(dir, sizeof(dir), "%s/state-%zu", top, i);
		fill(dir, stores[i]);
		write_store(dir, i);
	}
	return 0;
}
