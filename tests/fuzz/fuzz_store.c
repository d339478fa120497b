// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Fuzzes the reader of the store: input are records, as store_records.h says, put through LMDB into a store
 * that has been made. What they say is refused, or it is rules; what has then been changed is there, and the
 * store still opens. LMDB's own pages are not fuzzed: it trusts them.
 */
#include "fuzz_dir.h"

#include <fcntl.h>

#include "store/internal.h"
#include "store_records.h"

#define RECORDS_MAX 256
#define RULES_MAX 64 /* that are deleted again */

/* ---- the store as somebody else left it ---- */

static void take_this_boot(MDB_val *value, __u8 bytes[sizeof(struct store_meta)])
{
	struct store_meta meta;
	struct store_clock clock = {};

	if (value->mv_size != sizeof(meta))
		return;
	memcpy(&meta, value->mv_data, sizeof(meta));
	if (meta.boot_id[0] != RECORD_THIS_BOOT)
		return;
	store_clock_set(&clock, &(struct store_meta){});
	memcpy(meta.boot_id, clock.boot_id, sizeof(meta.boot_id));
	value->mv_data = memcpy(bytes, &meta, sizeof(meta));
}

static void put_record(MDB_txn *txn, const uint8_t *head, const uint8_t *key_bytes, const uint8_t *bytes)
{
	MDB_val key = { head[1], (void *)key_bytes }, value = { head[2] | head[3] << 8, (void *)bytes };
	__u8 meta[sizeof(struct store_meta)];
	MDB_dbi dbi;

	take_this_boot(&value, meta);
	fuzz_check(!mdb_dbi_open(txn, record_databases[head[0] % RECORD_DATABASES], MDB_CREATE, &dbi), "no database");
	if (key.mv_size)
		fuzz_check(!mdb_put(txn, dbi, &key, &value, 0), "a record is not put");
}

static void put_records(const uint8_t *data, size_t size)
{
	MDB_env *env;
	MDB_txn *txn;

	fuzz_check(!mdb_env_create(&env) && !mdb_env_set_maxdbs(env, 8) &&
			   !mdb_env_open(env, fuzz_dir, MDB_NOSYNC, 0600) && !mdb_txn_begin(env, NULL, 0, &txn),
		   "no environment");
	for (int i = 0; i < RECORDS_MAX; i++) {
		const uint8_t *head = fuzz_take(&data, &size, RECORD_HEAD_BYTES);
		const uint8_t *key = head ? fuzz_take(&data, &size, head[1]) : NULL;
		const uint8_t *value = key ? fuzz_take(&data, &size, head[2] | head[3] << 8) : NULL;

		if (!value)
			break;
		put_record(txn, head, key, value);
	}
	fuzz_check(!mdb_txn_commit(txn), "no commit");
	mdb_env_close(env);
}

/* ---- what it says ---- */

static bool is_refusal(int error)
{
	return error == -EBADMSG || error == -EPROTO;
}

static struct store *open_store(enum store_mode mode)
{
	struct reason reason = { "" };
	struct store *store;
	int error = store_open(fuzz_dir, mode, &store, &reason);

	if (error) {
		fuzz_check(is_refusal(error), "%s", strerror(-error));
		fuzz_check_reason(reason.text);
	}
	return store;
}

struct seen {
	struct store *store;
	size_t count;
	struct rule rules[RULES_MAX];
};

static int see(const struct rule *rule, void *context)
{
	struct seen *seen = context;
	struct rule got = *rule;
	int error = store_get(seen->store, &got);

	fuzz_check_rule(rule);
	fuzz_check(!error && got.timeout_ms == rule->timeout_ms && !strcmp(got.comment, rule->comment),
		   "%d, or another", error);
	if (seen->count < RULES_MAX)
		seen->rules[seen->count++] = *rule;
	return 0;
}

static int see_expired(const struct rule *rule, void *context)
{
	struct store *store = context;
	enum store_deleted ignored;
	int error;

	fuzz_check_rule(rule);
	fuzz_check(rule->owners.timed_ms < 0, "%lld ms are left", (long long)rule->owners.timed_ms);
	error = store_give_up(store, rule, STORE_ALL_OWNERS, &ignored);
	fuzz_check(!error || is_refusal(error), "%d", error);
	return error;
}

static int see_undone(const struct rule *rule, bool is_back, void *context)
{
	(void)is_back, (void)context;
	fuzz_check_rule(rule);
	return 0;
}

static void check_shapes(struct store *store)
{
	struct shape_list list;
	int error = store_shapes(store, &list);

	fuzz_check(!error || is_refusal(error), "%d", error);
	for (size_t i = 0; i < list.count && !error; i++) {
		const struct shape_list_entry *entry = &list.entry[i];

		fuzz_check(entry->keys && rule_can_expand(&entry->shape, &entry->probed_as), "shape %zu", i);
		fuzz_check(shape_list_find(&list, &entry->shape) == entry, "shape %zu is not found", i);
	}
	if (!error)
		shape_list_plan_pays(&list);
}

static void check_settings(struct store *store)
{
	struct store_settings settings;
	struct store_pending pending;

	fuzz_check(!store_settings(store, &settings), "no settings");
	for (size_t i = 0; i < OUTCOME_POLICIES; i++)
		fuzz_check(settings.policy[i] <= VERDICT_DROP, "policy %d", settings.policy[i]);
	fuzz_check(settings.is_monitor_only <= 1, "%d", settings.is_monitor_only);
	fuzz_check(!store_pending(store, &pending), "nothing of what is pending");
}

/* At most one of a name, and what they say can be shown. */
static void check_lists(struct store *store)
{
	struct store_lists lists;
	int error = store_lists(store, &lists);

	fuzz_check(!error || is_refusal(error), "%d", error);
	for (size_t i = 1; i <= STORE_LISTS_MAX && !error; i++) {
		const struct store_list *list = &lists.list[i];

		fuzz_check(!*list->name || store_lists_find(&lists, list->name) == i, "list %zu is not found", i);
		fuzz_check(memchr(list->name, 0, sizeof(list->name)) && memchr(list->source, 0, sizeof(list->source)) &&
				   rule_is_utf8(list->source),
			   "list %zu", i);
	}
}

static void check_feed(struct store *store)
{
	struct store_feed feed;
	int error = store_feed(store, "a", &feed);

	fuzz_check(!error || error == -ENOENT || is_refusal(error), "%d", error);
	fuzz_check(error || (feed.next_s >= 0 && memchr(feed.why, 0, sizeof(feed.why)) && rule_is_utf8(feed.why)),
		   "a feed");
}

static void check_reading(struct store *store, struct seen *seen)
{
	struct store_info info;
	int error;

	*seen = (struct seen){ .store = store };
	error = store_each(store, see, seen);
	fuzz_check(!error || is_refusal(error), "%d", error);
	error = store_info(store, &info);
	fuzz_check(!error || is_refusal(error), "%d", error);
	check_shapes(store);
	check_settings(store);
	check_lists(store);
	check_feed(store);
}

/* ---- changing it ---- */

/* What a change says: done, no, or that the store is not sound. */
static bool is_expected(int error)
{
	return !error || error == -EUSERS || error == -ENOENT || error == -E2BIG || error == -EBUSY ||
	       is_refusal(error);
}

static int change_lists(struct store *store, const struct seen *seen)
{
	unsigned int number;
	int error = store_list_open(store, "fuzz", "-", &number);

	fuzz_check(is_expected(error), "list: %d", error);
	for (size_t i = 0; i < seen->count && !error; i++) {
		enum store_deleted ignored;
		enum store_added added;
		int put = store_put(store, &seen->rules[i], number, 0, &added);

		fuzz_check(is_expected(put), "list, rule %zu: %d", i, put);
		error = is_refusal(put) ? put : 0;
		if (!put && added != STORE_UNCHANGED) {
			error = store_give_up(store, &seen->rules[i], 1ULL << number, &ignored);
			fuzz_check(is_expected(error), "given up, rule %zu: %d", i, error);
			error = is_refusal(error) ? error : 0;
		}
	}
	if (!error)
		error = store_list_delete(store, number);
	fuzz_check(is_expected(error) || error == -ENOTEMPTY, "list deleted: %d", error);
	return error;
}

static int change(struct store *store, const struct seen *seen)
{
	static const char *const texts[] = { "src 192.0.2.1 timeout 1h", "dport 53", "2001:db8::/32" };
	int error = store_undo_each(store, see_undone, NULL);
	enum store_deleted deleted;
	enum store_added added;
	struct reason reason;
	struct rule rule;

	fuzz_check(!error || is_refusal(error), "%d", error);
	if (!error)
		error = store_each_expired(store, see_expired, store);
	if (!error && !(error = store_set_pending(store, 1000)))
		error = store_forget_pending(store);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]) && !is_refusal(error); i++) {
		rule_parse(texts[i], &rule, &reason);
		error = store_put(store, &rule, STORE_BY_HAND, 0, &added);
		fuzz_check(is_expected(error), "put: %d", error);
	}
	for (size_t i = 0; i < seen->count && !is_refusal(error); i++) {
		rule = seen->rules[i];
		rule.timeout_ms = 5000;
		error = i % 2 ? store_give_up(store, &rule, STORE_ALL_OWNERS, &deleted) :
				store_put(store, &rule, STORE_BY_HAND, 0, &added);
		fuzz_check(is_expected(error), "rule %zu: %d", i, error);
	}
	if (!is_refusal(error))
		error = change_lists(store, seen);
	if (!is_refusal(error))
		error = store_plan(store);
	fuzz_check(is_expected(error), "plan: %d", error);
	return error;
}

/* A refusal in the middle ends the change, as commands do it. */
static void check_changing(struct store *store, const struct seen *seen)
{
	int error = store_begin(store);

	if (error) {
		fuzz_check(is_refusal(error), "%d", error);
		return;
	}
	if (is_refusal(change(store, seen))) {
		store_abort(store);
		return;
	}
	fuzz_check(!store_commit(store), "no commit");
	fuzz_check(!store_begin(store), "not readable after a commit");
	fuzz_check(!store_clear(store), "not cleared");
	fuzz_check(!store_commit(store), "no second commit");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct seen seen;
	struct store *store;

	fuzz_make_dir();
	store = open_store(STORE_WRITE);
	fuzz_check(store, "cannot be made");
	store_close(store);
	put_records(data, size);
	store = open_store(STORE_READ);
	if (store)
		check_reading(store, &seen);
	store_close(store);
	store = open_store(STORE_WRITE);
	if (store)
		check_changing(store, &seen);
	store_close(store);
	fuzz_remove_dir();
	return 0;
}
