// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The shapes of a store's rules, in memory and in the database. */
#include <errno.h>
#include <string.h>

#include "store/internal.h"

/* The probed shape differs from the shape only in its lengths. Schema 1 has only `keys`. */
struct shape_value {
	__u64 keys;
	__u8 src_len, dst_len;
	__u8 reserved[6];
};

#define SHAPE_VALUE_BYTES_1 sizeof(__u64)
#define KEYS_MAX (1ULL << 60) /* so that no sum overflows */

_Static_assert(sizeof(struct shape_value) == 16, "shape value layout");

static bool is_shape(const struct rule_shape *shape)
{
	const unsigned int bits = shape->family == FLOW_IPV4 ? 32 : 128;

	return shape->family < FLOW_FAMILIES && shape->action < RULE_ACTIONS && shape->fields < RULE_FIELDS &&
	       shape->src_len <= bits && shape->dst_len <= bits;
}

static int shape_load(const struct store_pair *there, void *list)
{
	const MDB_val *key = &there->key, *value = &there->value;
	struct shape_list_entry entry = {};
	struct shape_value stored = {};

	if (key->mv_size != sizeof(entry.shape) ||
	    (value->mv_size != sizeof(stored) && value->mv_size != SHAPE_VALUE_BYTES_1))
		return -EBADMSG;
	memcpy(&entry.shape, key->mv_data, sizeof(entry.shape));
	memcpy(&stored, value->mv_data, value->mv_size);
	entry.keys = stored.keys;
	entry.probed_as = entry.shape;
	if (value->mv_size == sizeof(stored)) {
		entry.probed_as.src_len = stored.src_len;
		entry.probed_as.dst_len = stored.dst_len;
	}
	/* shape_list_restore() refuses a shape that does not expand to the checked one. */
	return entry.keys && entry.keys <= KEYS_MAX && is_shape(&entry.probed_as) ? shape_list_restore(list, &entry) :
										    -EBADMSG;
}

int store_shapes_read(const struct store *store, MDB_txn *txn, struct shape_list *list)
{
	list->count = 0;
	list->must_plan = false;
	return store_pairs_each(txn, store->shapes_db, shape_load, list);
}

int store_shapes_save(struct store *store)
{
	const struct shape_list *list = &store->shapes;
	int error = store_pairs_drop(store, store->shapes_db);

	for (size_t i = 0; i < list->count && !error; i++) {
		const struct shape_list_entry *entry = &list->entry[i];
		struct shape_value stored = { .keys = entry->keys,
					      .src_len = entry->probed_as.src_len,
					      .dst_len = entry->probed_as.dst_len };
		MDB_val key = { sizeof(entry->shape), (void *)&entry->shape };
		MDB_val value = { sizeof(stored), &stored };

		error = store_pair_put(store, store->shapes_db, &key, &value, 0);
	}
	return error;
}

int store_shapes(struct store *store, struct shape_list *list)
{
	MDB_txn *txn;
	int error = store_view_begin(store, &txn);

	if (error)
		return error;
	if (txn == store->write)
		*list = store->shapes;
	else
		error = store_shapes_read(store, txn, list);
	store_view_end(store);
	return error;
}

/* ---- the shapes from before the pending change ---- */

static MDB_val kept_name(void)
{
	return (MDB_val){ strlen("undo_shapes"), "undo_shapes" };
}

int store_shapes_keep(struct store *store)
{
	struct rule_shape shapes[SHAPE_LIST_MAX];
	MDB_val key = kept_name(), value = { store->shapes.count * sizeof(*shapes), shapes };

	for (size_t i = 0; i < store->shapes.count; i++)
		shapes[i] = store->shapes.entry[i].shape;
	return store_pair_put(store, store->meta_db, &key, &value, 0);
}

int store_shapes_forget_kept(struct store *store)
{
	const MDB_val key = kept_name();

	return store_pair_del(store, store->meta_db, &key);
}

int store_undone_shapes(struct store *store, struct shape_list *list)
{
	MDB_val key = kept_name(), value;
	MDB_txn *txn;
	int error = store_shapes(store, list);

	if (!error)
		error = store_view_begin(store, &txn);
	if (error)
		return error;
	error = environment_error(mdb_get(txn, store->meta_db, &key, &value));
	for (size_t i = 0; !error && list->count < SHAPE_LIST_MAX && i < value.mv_size / sizeof(struct rule_shape);
	     i++) {
		struct shape_list_entry entry = { .keys = 1 };

		memcpy(&entry.shape, (char *)value.mv_data + i * sizeof(entry.shape), sizeof(entry.shape));
		entry.probed_as = entry.shape;
		if (!shape_list_find(list, &entry.shape))
			error = is_shape(&entry.shape) ? shape_list_restore(list, &entry) : -EBADMSG;
	}
	store_view_end(store);
	return error == -ENOENT ? 0 : error;
}

const struct shape_list *store_shape_list(const struct store *store)
{
	return &store->shapes;
}

bool store_has_new_shape(const struct store *store)
{
	return store->has_new_shape;
}

int store_plan(struct store *store)
{
	int error = shape_list_plan(&store->shapes);

	if (error)
		return error;
	store->meta.plan++;
	store->is_changed = true;
	return 0;
}
