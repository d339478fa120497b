// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The shapes of a store's rules, in memory and in the database. */
#include <errno.h>
#include <string.h>

#include "store/internal.h"

/*
 * The probed shape differs from the shape only in its lengths, and in how much of ports and lengths it compares.
 */
struct shape_value {
	__u64 keys;
	__u8 src_len, dst_len;
	__u8 has_details; /* the next members are those of the probed shape; older versions left them 0 */
	__u8 length_bits, sport_free, dport_free;
	__u8 reserved[2];
};

/* A shape as it is stored. One without details is stored without `details`, so that older versions can read it. */
struct shape_key {
	__u8 family, action, fields, src_len, dst_len;
	struct rule_details details;
};

#define SHAPE_KEY_BYTES_PLAIN offsetof(struct shape_key, details)

#define KEYS_MAX (1ULL << 60) /* so that no sum overflows */

_Static_assert(sizeof(struct shape_value) == 16, "shape value layout");

static bool is_shape(const struct rule_shape *shape)
{
	const unsigned int bits = shape->family == FLOW_IPV4 ? 32 : 128;

	return shape->family < FLOW_FAMILIES && shape->action < RULE_ACTIONS && shape->fields < RULE_FIELDS &&
	       shape->src_len <= bits && shape->dst_len <= bits && shape->details.fragment_mask <= FLOW_FRAGMENT_MASK &&
	       shape->details.length_bits <= RULE_PORT_BITS && shape->details.sport_free < RULE_PORT_BITS &&
	       shape->details.dport_free < RULE_PORT_BITS;
}

static MDB_val write_key(const struct rule_shape *shape, struct shape_key *key)
{
	*key = (struct shape_key){ shape->family,  shape->action,  shape->fields,
				   shape->src_len, shape->dst_len, shape->details };
	return (MDB_val){ shape->fields & RULE_DETAILS ? sizeof(*key) : SHAPE_KEY_BYTES_PLAIN, key };
}

/* Takes the next key off `bytes`. false: it is none. */
static bool read_key(MDB_val *bytes, struct rule_shape *shape)
{
	struct shape_key key = {};
	size_t length;

	if (bytes->mv_size < SHAPE_KEY_BYTES_PLAIN)
		return false;
	memcpy(&key, bytes->mv_data, SHAPE_KEY_BYTES_PLAIN);
	length = key.fields & RULE_DETAILS ? sizeof(key) : SHAPE_KEY_BYTES_PLAIN;
	if (bytes->mv_size < length)
		return false;
	memcpy(&key, bytes->mv_data, length);
	*bytes = (MDB_val){ bytes->mv_size - length, (char *)bytes->mv_data + length };
	*shape = (struct rule_shape){ .family = key.family,
				      .action = key.action,
				      .fields = key.fields,
				      .details = key.details,
				      .src_len = key.src_len,
				      .dst_len = key.dst_len };
	return is_shape(shape);
}

static int shape_load(const struct store_pair *there, void *list)
{
	const MDB_val *value = &there->value;
	MDB_val key = there->key;
	struct shape_list_entry entry = {};
	struct shape_value stored = {};

	if (!read_key(&key, &entry.shape) || key.mv_size || value->mv_size != sizeof(stored))
		return -EBADMSG;
	memcpy(&stored, value->mv_data, value->mv_size);
	entry.keys = stored.keys;
	entry.probed_as = entry.shape;
	entry.probed_as.src_len = stored.src_len;
	entry.probed_as.dst_len = stored.dst_len;
	if (stored.has_details) {
		entry.probed_as.details.length_bits = stored.length_bits;
		entry.probed_as.details.sport_free = stored.sport_free;
		entry.probed_as.details.dport_free = stored.dport_free;
		rule_mark_details(&entry.probed_as.fields, &entry.probed_as.details);
	}
	/* shape_list_restore() refuses a shape that does not expand to probed_as. */
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
		const struct rule_shape *probed = &entry->probed_as;
		struct shape_value stored = { .keys = entry->keys,
					      .src_len = probed->src_len,
					      .dst_len = probed->dst_len,
					      .has_details = !!(entry->shape.fields & RULE_DETAILS),
					      .length_bits = probed->details.length_bits,
					      .sport_free = probed->details.sport_free,
					      .dport_free = probed->details.dport_free };
		struct shape_key bytes;
		MDB_val key = write_key(&entry->shape, &bytes), value = { sizeof(stored), &stored };

		error = store_pair_put(store, store->shapes_db, &key, &value, 0);
	}
	return error;
}

int store_shapes(struct store *store, struct shape_list *list)
{
	STORE_VIEW view = store_view(store);

	if (view.error || view.txn != store->write)
		return view.error ? view.error : store_shapes_read(store, view.txn, list);
	*list = store->shapes;
	return 0;
}

/* ---- the shapes from before the pending change ---- */

static const char kept_name[] = "undo_shapes"; /* in database "meta" */

int store_shapes_keep(struct store *store)
{
	struct shape_key shapes[SHAPE_LIST_MAX], bytes;
	MDB_val key = store_key(kept_name), value = { 0, shapes };

	for (size_t i = 0; i < store->shapes.count; i++) {
		const MDB_val next = write_key(&store->shapes.entry[i].shape, &bytes);

		memcpy((char *)shapes + value.mv_size, &bytes, next.mv_size);
		value.mv_size += next.mv_size;
	}
	return store_pair_put(store, store->meta_db, &key, &value, 0);
}

int store_shapes_forget_kept(struct store *store)
{
	const MDB_val key = store_key(kept_name);

	return store_pair_del(store, store->meta_db, &key);
}

int store_undone_shapes(struct store *store, struct shape_list *list)
{
	STORE_VIEW view = store_view(store);
	MDB_val key = store_key(kept_name), value;
	int error = view.error ? view.error : store_shapes(store, list);

	if (!error)
		error = environment_error(mdb_get(view.txn, store->meta_db, &key, &value));
	while (!error && value.mv_size && list->count < SHAPE_LIST_MAX) {
		struct shape_list_entry entry = { .keys = 1 };

		if (!read_key(&value, &entry.shape))
			error = -EBADMSG;
		entry.probed_as = entry.shape;
		if (!error && !shape_list_find(list, &entry.shape))
			error = shape_list_restore(list, &entry);
	}
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
