// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "environment.h"
#include "shape_list.h"
#include "store_dir.h"

struct store_meta {
	__u64 magic;
	__u32 schema, reserved;
	__u64 id[2];
	__u64 generation;
};

_Static_assert(__builtin_offsetof(struct store_meta, id) == 16, "meta layout");
_Static_assert(sizeof(struct store_meta) == 40, "meta layout");

struct store {
	int lock; /* file descriptor of writer.lock, or -1 */
	MDB_env *env;
	MDB_dbi meta, rules, shapes;
	MDB_txn *read;		 /* reset while nobody reads */
	unsigned int readers;	 /* nested reads that share it */
	MDB_txn *write;		 /* NULL outside of a transaction */
	struct shape_list count; /* of the transaction; goes to the database with its commit */
	bool changed;		 /* by the transaction */
};

static int shape_load(struct shape_list *list, const MDB_val *key, const MDB_val *value)
{
	struct rule_shape shape;
	__u64 keys;

	if (key->mv_size != sizeof(shape) || value->mv_size != sizeof(keys))
		return -EBADMSG;
	memcpy(&shape, key->mv_data, sizeof(shape));
	memcpy(&keys, value->mv_data, sizeof(keys));
	if (shape.family >= FLOW_FAMILIES || keys == 0 || !shape_list_fits(list, &shape))
		return -EBADMSG;
	shape_list_add(list, &shape, keys);
	return 0;
}

static int shapes_load(const struct store *store, MDB_txn *txn, struct shape_list *list)
{
	MDB_val key, value;
	MDB_cursor *cursor;
	int status, error;

	list->count = 0;
	status = mdb_cursor_open(txn, store->shapes, &cursor);
	if (status)
		return environment_error(status);
	do {
		status = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
		error = status ? environment_error(status) : shape_load(list, &key, &value);
	} while (!error);
	mdb_cursor_close(cursor);
	return error == -ENOENT ? 0 : error;
}

static int shapes_save(const struct store *store)
{
	const struct shape_list *list = &store->count;
	int status = mdb_drop(store->write, store->shapes, 0);

	for (size_t i = 0; i < list->count && !status; i++) {
		MDB_val key = { sizeof(list->shape[i]), (void *)&list->shape[i] };
		MDB_val value = { sizeof(list->keys[i]), (void *)&list->keys[i] };

		status = mdb_put(store->write, store->shapes, &key, &value, 0);
	}
	return status;
}

/* Meta. */

static const char meta_name[] = "store";

static int meta_load(const struct store *store, MDB_txn *txn, struct store_meta *meta)
{
	MDB_val key = { strlen(meta_name), (void *)meta_name }, value;
	int status = mdb_get(txn, store->meta, &key, &value);

	if (status)
		return status == MDB_NOTFOUND ? -EBADMSG : environment_error(status);
	if (value.mv_size < sizeof(*meta))
		return -EBADMSG;
	memcpy(meta, value.mv_data, sizeof(*meta));
	if (meta->magic != STORE_MAGIC)
		return -EBADMSG;
	if (meta->schema != STORE_SCHEMA)
		return -EPROTO;
	return value.mv_size == sizeof(*meta) ? 0 : -EBADMSG;
}

static int meta_save(const struct store *store, MDB_txn *txn, const struct store_meta *meta)
{
	MDB_val key = { strlen(meta_name), (void *)meta_name };
	MDB_val value = { sizeof(*meta), (void *)meta };

	return mdb_put(txn, store->meta, &key, &value, 0);
}

static int meta_create(const struct store *store, MDB_txn *txn)
{
	struct store_meta meta = { .magic = STORE_MAGIC, .schema = STORE_SCHEMA };

	if (getrandom(meta.id, sizeof(meta.id), 0) != sizeof(meta.id))
		return EIO;
	return meta_save(store, txn, &meta);
}

/* Opening. */

static int databases_open(struct store *store, MDB_txn *txn, unsigned int flags)
{
	struct store_meta meta;
	int status, error;

	status = mdb_dbi_open(txn, "meta", flags, &store->meta);
	if (!status && flags & MDB_CREATE)
		status = meta_create(store, txn);
	error = status ? environment_write_error(store->env, status) : meta_load(store, txn, &meta);
	if (error)
		return error;
	status = mdb_dbi_open(txn, "rules", flags, &store->rules);
	if (!status)
		status = mdb_dbi_open(txn, "shapes", flags, &store->shapes);
	return environment_write_error(store->env, status);
}

/* An environment without any database is one whose maker died early: as good as none. */
static int databases_attach_in(struct store *store, MDB_txn *txn, enum store_mode mode)
{
	MDB_stat root;
	MDB_dbi dbi;
	int status, error;

	/* Not mdb_env_stat(): that may be newer than the snapshot. */
	status = mdb_dbi_open(txn, NULL, 0, &dbi);
	if (!status)
		status = mdb_stat(txn, dbi, &root);
	if (status)
		return environment_error(status);
	if (!root.ms_entries)
		return mode == STORE_READ ? -ENOENT : databases_open(store, txn, MDB_CREATE);
	error = databases_open(store, txn, 0);
	return error == -ENOENT ? -EBADMSG : error;
}

static int databases_attach(struct store *store, enum store_mode mode)
{
	MDB_txn *txn;
	int error;

	error = environment_error(
		mdb_txn_begin(store->env, NULL, mode == STORE_READ ? MDB_RDONLY : 0, &txn));
	if (error)
		return error;
	error = databases_attach_in(store, txn, mode);
	if (!error)
		return environment_write_error(store->env, mdb_txn_commit(txn));
	mdb_txn_abort(txn);
	return error;
}

static int store_attach(struct store *store, const char *dir, enum store_mode mode)
{
	int error = 0;

	if (mode == STORE_WRITE) {
		error = store_dir_make(dir);
		if (!error)
			error = store_dir_lock(dir, &store->lock);
	}
	if (!error)
		error = environment_open(dir, mode == STORE_READ, &store->env);
	if (error)
		return error;
	/* Readers that were killed would keep old pages from being used again. */
	mdb_reader_check(store->env, NULL);
	return databases_attach(store, mode);
}

int store_open(const char *dir, enum store_mode mode, struct store **store, struct reason *reason)
{
	struct store *new = calloc(1, sizeof(*new));
	int error = -ENOMEM;

	*store = NULL;
	if (new) {
		new->lock = -1;
		error = store_attach(new, dir, mode);
	}
	if (error) {
		store_close(new);
		return store_dir_explain(error, dir, reason);
	}
	*store = new;
	return 0;
}

void store_close(struct store *store)
{
	if (!store)
		return;
	store_abort(store);
	mdb_txn_abort(store->read);
	if (store->env)
		mdb_env_close(store->env);
	if (store->lock >= 0)
		close(store->lock); /* last: the next writer finds the environment closed */
	free(store);
}

/* Transactions. */

int store_begin(struct store *store)
{
	int status, error;

	if (store->write || store->readers)
		return -EBUSY;
	status = mdb_txn_begin(store->env, NULL, 0, &store->write);
	if (status)
		return environment_error(status);
	store->changed = false;
	error = shapes_load(store, store->write, &store->count);
	if (error)
		store_abort(store);
	return error;
}

void store_abort(struct store *store)
{
	if (!store->write)
		return;
	mdb_txn_abort(store->write);
	store->write = NULL;
	environment_give_back(store->env);
}

static int store_save(struct store *store)
{
	struct store_meta meta;
	int status, error;

	error = meta_load(store, store->write, &meta);
	if (error)
		return error;
	meta.generation++;
	status = meta_save(store, store->write, &meta);
	if (!status)
		status = shapes_save(store);
	return environment_write_error(store->env, status);
}

int store_commit(struct store *store)
{
	int error = store->changed ? store_save(store) : 0;

	if (error) {
		store_abort(store);
		return error;
	}
	error = environment_write_error(store->env, mdb_txn_commit(store->write));
	store->write = NULL;
	if (error == -ENOSPC)
		environment_give_back(store->env);
	return error;
}

/* Adding, deleting, looking up. */

/* The bytes must live as long as the key. */
static MDB_val rule_bytes(const struct rule *rule, __u8 bytes[RULE_ENCODED_BYTES])
{
	return (MDB_val){ rule_encode(rule, bytes), bytes };
}

int store_put(struct store *store, const struct rule *rule)
{
	MDB_val comment = { strlen(rule->comment), (void *)rule->comment };
	struct rule_key keys[RULE_KEYS_MAX];
	size_t count = rule_keys(rule, keys);
	__u8 bytes[RULE_ENCODED_BYTES];
	MDB_val key = rule_bytes(rule, bytes);
	int status;

	for (size_t i = 0; i < count; i++) {
		if (!shape_list_fits(&store->count, &keys[i].shape))
			return -E2BIG;
	}
	status = mdb_put(store->write, store->rules, &key, &comment, MDB_NOOVERWRITE);
	if (status)
		return environment_write_error(store->env, status);
	for (size_t i = 0; i < count; i++)
		shape_list_add(&store->count, &keys[i].shape, 1);
	store->changed = true;
	return 0;
}

int store_del(struct store *store, const struct rule *rule)
{
	struct rule_key keys[RULE_KEYS_MAX];
	size_t count = rule_keys(rule, keys);
	__u8 bytes[RULE_ENCODED_BYTES];
	MDB_val key = rule_bytes(rule, bytes);
	int status = mdb_del(store->write, store->rules, &key, NULL);

	if (status)
		return environment_write_error(store->env, status);
	store->changed = true;
	for (size_t i = 0; i < count; i++) {
		if (shape_list_remove(&store->count, &keys[i].shape))
			return -EBADMSG;
	}
	return 0;
}

int store_clear(struct store *store)
{
	MDB_stat rules;
	int status = mdb_stat(store->write, store->rules, &rules);

	if (status || rules.ms_entries == 0)
		return environment_error(status);
	status = mdb_drop(store->write, store->rules, 0);
	if (status)
		return environment_write_error(store->env, status);
	store->count.count = 0;
	store->changed = true;
	return 0;
}

/* The open transaction, or the last committed state, which stays the same until view_end(). */
static int view_begin(struct store *store, MDB_txn **txn)
{
	int status = 0;

	*txn = store->write;
	if (*txn)
		return 0;
	if (store->readers == 0) {
		status = store->read ? mdb_txn_renew(store->read)
				     : mdb_txn_begin(store->env, NULL, MDB_RDONLY, &store->read);
	}
	if (status)
		return environment_error(status);
	store->readers++;
	*txn = store->read;
	return 0;
}

static void view_end(struct store *store)
{
	if (!store->write && --store->readers == 0)
		mdb_txn_reset(store->read);
}

static int comment_copy(struct rule *rule, const MDB_val *comment)
{
	if (comment->mv_size >= sizeof(rule->comment))
		return -EBADMSG;
	*(char *)mempcpy(rule->comment, comment->mv_data, comment->mv_size) = '\0';
	return 0;
}

int store_get(struct store *store, struct rule *rule)
{
	__u8 bytes[RULE_ENCODED_BYTES];
	MDB_val key = rule_bytes(rule, bytes), comment;
	MDB_txn *txn;
	int error = view_begin(store, &txn);

	if (error)
		return error;
	error = environment_error(mdb_get(txn, store->rules, &key, &comment));
	if (!error)
		error = comment_copy(rule, &comment);
	view_end(store);
	return error;
}

static int shapes_get(const struct store *store, MDB_txn *txn, struct shape_list *list)
{
	if (txn != store->write)
		return shapes_load(store, txn, list);
	*list = store->count;
	return 0;
}

static int info_load(struct store *store, MDB_txn *txn, struct store_info *info)
{
	struct shape_list list;
	struct store_meta meta;
	MDB_stat rules;
	int error = meta_load(store, txn, &meta);

	if (!error)
		error = environment_error(mdb_stat(txn, store->rules, &rules));
	if (!error)
		error = shapes_get(store, txn, &list);
	if (error)
		return error;
	*info = (struct store_info){
		.id = { meta.id[0], meta.id[1] },
		.generation = meta.generation,
		.rules = rules.ms_entries,
	};
	for (size_t i = 0; i < list.count; i++)
		info->keys += list.keys[i];
	return 0;
}

int store_info(struct store *store, struct store_info *info)
{
	MDB_txn *txn;
	int error = view_begin(store, &txn);

	if (error)
		return error;
	error = info_load(store, txn, info);
	view_end(store);
	return error;
}

static int each_visit(MDB_cursor *cursor, int (*visit)(const struct rule *rule, void *context),
		      void *context)
{
	MDB_val key, comment;
	struct rule rule;
	int result;

	do {
		result = environment_error(mdb_cursor_get(cursor, &key, &comment, MDB_NEXT));
		if (result)
			return result == -ENOENT ? 0 : result;
		result = rule_decode(key.mv_data, key.mv_size, &rule);
		if (!result)
			result = comment_copy(&rule, &comment);
		if (!result)
			result = visit(&rule, context);
	} while (!result);
	return result;
}

int store_each(struct store *store, int (*visit)(const struct rule *rule, void *context),
	       void *context)
{
	MDB_cursor *cursor;
	MDB_txn *txn;
	int result = view_begin(store, &txn);

	if (result)
		return result;
	result = environment_error(mdb_cursor_open(txn, store->rules, &cursor));
	if (!result) {
		result = each_visit(cursor, visit, context);
		mdb_cursor_close(cursor);
	}
	view_end(store);
	return result;
}

int store_shapes(struct store *store, struct rule_shape *shapes, __u64 *keys, size_t *count)
{
	struct shape_list list;
	MDB_txn *txn;
	int error = view_begin(store, &txn);

	if (error)
		return error;
	error = shapes_get(store, txn, &list);
	view_end(store);
	if (error)
		return error;
	memcpy(shapes, list.shape, list.count * sizeof(list.shape[0]));
	memcpy(keys, list.keys, list.count * sizeof(list.keys[0]));
	*count = list.count;
	return 0;
}
